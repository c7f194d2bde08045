//! Every function of every dialect is called with arguments that ask for much: none takes more
//! memory than a query may use.

use std::fs;
use std::sync::Arc;

use crate::common::Member;
use crate::{alone, memory_mib};
use filbert_grid::query::{Dialect, Session};
use filbert_query::QueryConfig;

/// Memory that one query may use.
const QUERY_BYTES: usize = 128 << 20;
/// What the process may grow by at one statement, in MiB: two query threads make a value of 64 MiB
/// at the same time, its characters are up to three more copies of it, and a statement that is late
/// goes on for a moment.
const GROWTH_MIB_MAX: u64 = 512;

/// Begins anew to note the most resident memory; what it is in MiB.
fn begin() -> u64 {
    fs::write("/proc/self/clear_refs", "5").unwrap();
    memory_mib("VmHWM")
}

/// Arguments that make much of little, with which any function can be called.
const GREEDY: [&str; 12] = [
    "2000000000",
    "'x', 2000000000",
    "2000000000, 'x'",
    "'x', 2000000000, 'y'",
    "1, 2000000000",
    "1, 2000000000, 1",
    "array[1], 2000000000",
    "array[1], 2000000000, 1",
    "1, array[50000, 50000]",
    "repeat('x', 1000000), 'x', repeat('y', 1000)",
    "repeat('x', 1000000), 'x', repeat('y', 1000), 'g'",
    "repeat('%1$s', 100000), repeat('y', 10000)",
];

#[test]
fn no_function_makes_much_of_little() {
    let _alone = alone();
    let config =
        QueryConfig { query_memory_bytes_max: Some(QUERY_BYTES), timeout_ms: Some(2_000), ..QueryConfig::default() };
    let mut greedy = Vec::new();
    for dialect in [Dialect::Postgres, Dialect::Crate, Dialect::Hazelcast] {
        let mut member = Member::with(config.clone());
        member.session = Some(Arc::new(Session::new(Dialect::Postgres, "somebody")));
        let names = member.rows("SELECT DISTINCT proname FROM pg_proc WHERE prokind = 'f' ORDER BY 1");
        assert!(names.len() > 200, "{names:?}");
        member.session = Some(Arc::new(Session::new(dialect, "somebody")));
        for name in &names {
            for arguments in GREEDY {
                let of_rows = arguments.replacen("2000000000", "60000000 + CAST(v AS INT)", 1);
                let of_one = format!("SELECT \"{name}\"({arguments}) IS NULL");
                let of_all = format!("SELECT count(\"{name}\"({of_rows})) FROM TABLE(generate_series(1, 8192)) g(v)");
                // What is the same for all rows is computed once.
                let all = (of_rows != arguments).then_some(of_all);
                for text in [of_one].into_iter().chain(all) {
                    let before = begin();
                    // The answers are for other tests: this one is about the memory that they take.
                    let _ = member.try_rows(&text, &[]);
                    let most = memory_mib("VmHWM");
                    if most > before + GROWTH_MIB_MAX {
                        greedy.push(format!("{dialect:?}: {text}: {before} MiB before, {most} MiB at most"));
                    }
                }
            }
        }
    }
    assert!(greedy.is_empty(), "{greedy:#?}");
}
