//! Calls every function of every dialect with arguments that request huge results. No call may take
//! more memory than the limit of a query.

use std::fs;
use std::sync::Arc;

use crate::common::Member;
use crate::{alone, memory_mib};
use filbert_grid::query::{Dialect, Session};
use filbert_query::QueryConfig;

/// The memory limit of one query.
const QUERY_BYTES: usize = 128 << 20;
/// The maximum growth of the process by one statement, in MiB: two query threads create a value of
/// 64 MiB at the same time, its characters take up to three more copies, and a statement ends
/// shortly after its timeout.
const GROWTH_MIB_MAX: u64 = 512;

/// Resets the peak of the resident memory. Returns the resident memory in MiB.
fn begin() -> u64 {
    fs::write("/proc/self/clear_refs", "5").unwrap();
    memory_mib("VmHWM")
}

/// Short arguments that request huge results, for calls of any function.
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
                // A call with the same arguments for all rows is computed once.
                let all = (of_rows != arguments).then_some(of_all);
                for text in [of_one].into_iter().chain(all) {
                    let before = begin();
                    // Other tests check the results. This test checks only the memory.
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
