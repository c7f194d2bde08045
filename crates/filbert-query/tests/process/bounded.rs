//! Statements that need more memory or more planning than the limits allow are rejected, and other
//! statements are not affected.

use std::hint::black_box;
use std::sync::Arc;
use std::thread;

use crate::common::{Member, each_page};
use crate::{alone, memory_mib};
use filbert_grid::query::{Dialect, Session, StatementResult};
use filbert_grid::{MemberMemory, allocation};
use filbert_query::QueryConfig;

/// The memory limit of one query. The limit of results for a batch of rows is derived from it.
const QUERY_BYTES: usize = 128 << 20;
/// The maximum growth of the process, in MiB: several functions of a statement hold results at the
/// same time, on each query thread.
const GROWTH_MIB_MAX: u64 = 512;

/// Fails if the process has grown by more than [`GROWTH_MIB_MAX`] from `before`, and names the
/// statement.
fn check_growth(before: u64, statement: &str) {
    let (now, most) = (memory_mib("VmRSS"), memory_mib("VmHWM"));
    assert!(most < before + GROWTH_MIB_MAX, "{before} MiB before, {most} MiB at most, {now} MiB now: {statement}");
}

/// A chain of `WITH` queries. Each query reads the previous one twice.
fn doubled(count: usize, query: &str) -> String {
    let mut text = "WITH a0 AS (SELECT 1 AS x)".to_owned();
    for number in 1..count {
        let before = number - 1;
        text.push_str(&format!(", a{number} AS ({})", query.replace('@', &format!("a{before}"))));
    }
    format!("{text} SELECT count(*) FROM a{}", count - 1)
}

#[test]
fn what_takes_too_much_is_refused_and_the_member_serves_on() {
    let _alone = alone();
    let config = QueryConfig { query_memory_bytes_max: Some(QUERY_BYTES), ..QueryConfig::default() };
    let mut member = Member::with(config);
    member.session = Some(Arc::new(Session::new(Dialect::Postgres, "somebody")));
    member.change("CREATE TABLE t (id int PRIMARY KEY, s text)");
    member.change("INSERT INTO t VALUES (1, 'one')");
    let before = memory_mib("VmRSS");

    // A single value that is too long.
    for text in [
        "SELECT array_length(array_repeat(1, 2000000000), 1)",
        "SELECT array_length(array_resize(array[1], 2000000000), 1)",
        "SELECT length(repeat('x', 2000000000))",
        "SELECT length(lpad('x', 2000000000))",
        "SELECT length(replace(repeat('x', 20000000), 'x', 'yyyyyyyyyyyyyyyyyyyy'))",
        "SELECT length(array_to_string(array_fill('x'::text, array[100000]), repeat('y', 10000)))",
    ] {
        assert_eq!(member.error(text).sqlstate(), "54000", "{text}");
        check_growth(before, text);
    }
    // Values with too many bytes for one batch of rows.
    for value in [
        "length(repeat('x', 60000000 + g::int))",
        "length(lpad('x', 60000000 + g::int))",
        "length(concat(repeat('x', 20000000), g))",
        "length(replace(repeat('x', 600000), 'x', repeat('y', (g % 100)::int)))",
        "array_length(array_fill(g, array[1000000]), 1)",
        "array_length(array_repeat(g, 1000000), 1)",
        "length(upper(concat(repeat('x', 20000000), g)))",
        "length(repeat('x', 20000000) || g)",
        "length(regexp_replace(repeat('x', 100000), 'x', repeat('y', 10000), 'g'))",
    ] {
        let text = format!("SELECT sum({value}) FROM generate_series(1, 8192) g");
        assert_eq!(member.error(&text).sqlstate(), "53200", "{text}");
        check_growth(before, &text);
    }
    // One constant for each row.
    for text in [
        "SELECT array_fill(0, array[1000000]) FROM generate_series(1, 8192)",
        "SELECT count(string_to_array(repeat('x,', 100000), ',')) FROM generate_series(1, 8192)",
        "SELECT CASE WHEN g > 0 THEN array_fill(0, array[1000000]) END FROM generate_series(1, 8192) g",
    ] {
        assert_eq!(member.error(text).sqlstate(), "53200", "{text}");
        check_growth(before, text);
    }
    assert_eq!(member.rows("SELECT array_length(array_fill(0, array[1000000]), 1) FROM t"), ["1000000"]);
    // Values that an aggregate keeps, from a table and from generated rows.
    member.change("CREATE TABLE many (id int PRIMARY KEY, s text)");
    member.change("INSERT INTO many SELECT g, 'x' FROM generate_series(1, 40000) g");
    for aggregate in [
        "string_agg(repeat(s, 10000), ',')",
        "array_agg(repeat(s, 10000))",
        "json_agg(repeat(s, 10000))",
        "jsonb_object_agg(id, repeat(s, 10000))",
    ] {
        for rows in ["many", "(SELECT g AS id, 'x' AS s FROM generate_series(1, 40000) g) many"] {
            let text = format!("SELECT count(*) FROM (SELECT {aggregate} AS a FROM {rows}) x WHERE a IS NOT NULL");
            assert_eq!(member.error(&text).sqlstate(), "53200", "{text}");
            check_growth(before, &text);
        }
    }
    // Names of `WITH` queries and views that expand to many relations.
    let chain: Vec<String> =
        (1..30).map(|at| format!("v{at} AS (SELECT s || s AS s FROM v{} LIMIT 1)", at - 1)).collect();
    let text = format!("WITH v0 AS (SELECT repeat('x', 1000) AS s), {} SELECT length(s) FROM v29", chain.join(", "));
    let error = member.error(&text);
    assert!(["53200", "54000"].contains(&error.sqlstate()), "{error}");
    check_growth(before, &text);
    for query in ["SELECT x FROM @ UNION ALL SELECT x FROM @", "SELECT p.x FROM @ p JOIN @ q ON p.x = q.x"] {
        assert_eq!(member.error(&doubled(22, query)).sqlstate(), "54001", "{query}");
        check_growth(before, query);
    }
    member.change("CREATE VIEW v0 AS SELECT 1 AS x");
    let mut refused = 0;
    for number in 1..20 {
        let before = number - 1;
        let text = format!("CREATE VIEW v{number} AS SELECT a.x FROM v{before} a, v{before} b");
        match member.try_rows(&text, &[]) {
            Ok(_) => assert_eq!(refused, 0, "{text}"),
            Err(error) => {
                refused += 1;
                assert!(["54001", "42P01"].contains(&error.sqlstate()), "{text}: {error}");
            }
        }
    }
    assert!(refused > 0);
    // A plan with a large constant, which its text does not contain, is not cached.
    for number in 0..200 {
        let text = format!("SELECT count(*) FROM t WHERE s = repeat('x', 2000000 + {number})");
        assert_eq!(member.rows(&text), ["0"]);
        check_growth(before, &text);
    }

    assert_eq!(member.rows("SELECT s, repeat(s, 2), replace(s, 'o', 'abc') FROM t"), ["one|oneone|abcne"]);
}

/// A member with few bytes for queries.
fn small_member() -> Member {
    let (one, all) = (Some(64 << 20), Some(128 << 20));
    let config = QueryConfig { query_memory_bytes_max: one, queries_memory_bytes_max: all, ..QueryConfig::default() };
    let mut member = Member::with(config);
    member.session = Some(Arc::new(Session::new(Dialect::Postgres, "somebody")));
    member
}

#[test]
fn all_that_a_statement_holds_is_limited() {
    let _alone = alone();
    let member = small_member();
    member.change("CREATE TABLE crowd (id int PRIMARY KEY, g int, t text)");
    member.change("INSERT INTO crowd SELECT g, g % 10, repeat('x', 30) FROM generate_series(1, 100000) g");
    let before = memory_mib("VmRSS");
    for text in [
        "SELECT id % 3, string_agg(repeat('x', 3900), ',') AS v FROM crowd GROUP BY id % 3",
        "SELECT g, count(DISTINCT a.id || '-' || b.i) AS v FROM crowd a, generate_series(1, 1000) AS b(i) GROUP BY g",
        "SELECT g, array_agg(DISTINCT repeat(t, 50) || id) AS v FROM crowd GROUP BY g",
    ] {
        let text = format!("SELECT count(*) FROM ({text}) x WHERE v::text <> ''");
        assert_eq!(member.error(&text).sqlstate(), "53200", "{text}");
        check_growth(before, &text);
    }
    // The memory of the ended statements is free again.
    assert_eq!(member.rows("SELECT count(*), count(DISTINCT t || id) FROM crowd"), ["100000|100000"]);
}

/// Many statements make a large batch in one step each, before any of them is measured.
#[test]
fn equal_statements_with_large_batches_are_limited_together() {
    let _alone = alone();
    let member = small_member();
    let before = memory_mib("VmRSS");
    let text = "SELECT repeat('x', 1000000 + g::int) FROM generate_series(1, 10) g";
    let read = || match member.run(text, &[]).unwrap() {
        StatementResult::Rows(cursor) => each_page(cursor, 1_000, |page| assert_eq!(page.num_rows(), 10)),
        _ => panic!("{text} has rows"),
    };
    let refused = thread::scope(|scope| {
        let readers: Vec<_> = (0..120).map(|_| scope.spawn(read)).collect();
        readers.into_iter().filter_map(|reader| reader.join().unwrap().err()).collect::<Vec<_>>()
    });
    refused.iter().for_each(|error| assert_eq!(error.sqlstate(), "53200", "{error}"));
    assert!(refused.len() < 120, "some of them have room");
    check_growth(before, text);
}

/// Allocated memory that is not touched, so that it never becomes resident: other tests measure the
/// peak of the process.
fn untouched(mib: usize) -> Vec<u8> {
    black_box(vec![0; mib << 20])
}

#[test]
fn memory_in_no_account_leaves_statements_and_buffers_less_room() {
    let _alone = alone();
    let memory = MemberMemory::new(Some(1 << 30));
    let embedded = memory.room_of_statements();
    let foreign = untouched(300);
    assert_eq!(memory.room_of_statements(), embedded, "the memory of an embedding program");
    drop(foreign);
    allocation::dedicate_process();
    let rooms = || [memory.room_of_statements() >> 20, memory.room_of_buffers() >> 20];
    let before = rooms();
    let held = untouched(300);
    let meanwhile = rooms();
    drop(held);
    let after = rooms();
    for (before, (meanwhile, after)) in before.into_iter().zip(meanwhile.into_iter().zip(after)) {
        // Threads of former tests may still release memory, and 16 MiB need no account.
        assert!(meanwhile + 250 < before && before < after + 50, "{before} MiB, {meanwhile} MiB, {after} MiB");
    }
    let held = untouched(2_048);
    assert_eq!(rooms(), [128, 64], "the guaranteed parts stay");
    drop(held);
}

#[test]
fn rows_that_a_client_has_read_are_not_held_by_their_statement() {
    let _alone = alone();
    let member = small_member();
    let before = memory_mib("VmRSS");
    let text = "SELECT repeat('x', 1500) || g FROM generate_series(1, 400000) g";
    let StatementResult::Rows(cursor) = member.run(text, &[]).unwrap() else { panic!("{text} has rows") };
    let mut rows = 0;
    each_page(cursor, 1_000, |page| rows += page.num_rows()).unwrap();
    assert_eq!(rows, 400_000);
    check_growth(before, text);
}

#[test]
fn the_plans_of_wide_statements_do_not_fill_the_memory() {
    let _alone = alone();
    let member = small_member();
    member.change("CREATE TABLE known (id int PRIMARY KEY, n int)");
    let before = memory_mib("VmRSS");
    for number in 0..200 {
        let columns: String = (0..1_000).map(|column| format!(", n + id AS c{number}_{column}")).collect();
        assert_eq!(member.rows(&format!("SELECT id{columns} FROM known WHERE id = 7")), Vec::<String>::new());
    }
    // A plan takes about 1.5 MiB.
    let now = memory_mib("VmRSS");
    assert!(now < before + 160, "{before} MiB before, {now} MiB with the plans");
}

#[test]
fn many_thousand_conditions_are_planned() {
    let _alone = alone();
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE t (id int PRIMARY KEY, a int)");
    member.change("INSERT INTO t VALUES (1, 100000)");
    let joined = |count: usize, sign: &str, form: &str| {
        let terms: Vec<String> = (0..count).map(|number| form.replace('@', &number.to_string())).collect();
        format!("SELECT id FROM t WHERE {}", terms.join(sign))
    };
    assert_eq!(member.rows(&joined(4_000, " AND ", "a <> @")), ["1"]);
    assert_eq!(member.rows(&joined(4_000, " AND ", "a <> @ + 100000 * 0 + 1")), ["1"]);
    assert_eq!(member.rows(&joined(4_000, " OR ", "a = @ AND id = 1")), Vec::<String>::new());
    let numbers: Vec<String> = (0..200_000).map(|number| number.to_string()).collect();
    let text = format!("SELECT cardinality('{{{}}}'::int[]), ('{{{0}}}'::int[])[7]", numbers.join(","));
    assert_eq!(member.rows(&text), ["200000|6"]);
}

#[test]
fn texts_that_hardly_grow_are_replaced_however_long_they_are() {
    let _alone = alone();
    let member = Member::of(Dialect::Postgres);
    let text = "SELECT length(replace(repeat('x', 1000000) || '@', '@', repeat('y', 1000)))";
    assert_eq!(member.rows(text), ["1001000"]);
    assert_eq!(member.rows(&doubled(9, "SELECT x FROM @ UNION ALL SELECT x FROM @")), ["256"]);
}

#[test]
fn a_chain_of_more_joins_than_a_turn_of_a_task_has_steps_comes_to_its_end() {
    let _alone = alone();
    let member = Member::of(Dialect::Postgres);
    // Two parts, because one FROM has fewer relations.
    let joined = |first: &str, numbers: std::ops::Range<usize>| {
        let relations: String = numbers.clone().map(|at| format!(", (SELECT 1 AS id) t{at}")).collect();
        let conditions: Vec<String> = numbers.map(|at| format!("t{}.id = t{at}.id", at - 1)).collect();
        format!("FROM {first}{relations} WHERE {}", conditions.join(" AND "))
    };
    let inner = joined("(SELECT 1 AS id) t0", 1..100);
    let outer = joined(&format!("(SELECT t0.id {inner}) t99"), 100..200);
    assert_eq!(member.rows(&format!("SELECT count(*) {outer}")), ["1"]);
}

/// A member with little memory for a query, and `spill` bytes of disk in this directory.
fn sorts_on_disk(spill: u64, directory: &std::path::Path) -> Member {
    let config = QueryConfig {
        query_memory_bytes_max: Some(16 << 20),
        queries_spill_bytes_max: spill,
        spill_directory: Some(directory.to_owned()),
        ..QueryConfig::default()
    };
    let mut member = Member::with(config);
    member.session = Some(Arc::new(Session::new(Dialect::Postgres, "somebody")));
    member
}

/// The files below a directory.
fn files_below(directory: &std::path::Path) -> usize {
    std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| if entry.file_type().unwrap().is_dir() { files_below(&entry.path()) } else { 1 })
        .sum()
}

#[test]
fn rows_that_are_sorted_on_disk_are_limited_and_leave_nothing_behind() {
    let _alone = alone();
    let text = "SELECT count(*), sum(n) FROM (SELECT i - lag(i) OVER (ORDER BY -i) AS n \
                FROM generate_series(1, 2000000) s(i)) x";
    let directory = tempfile::tempdir().unwrap();
    let member = sorts_on_disk(1 << 30, directory.path());
    assert_eq!(member.rows(text), ["2000000|-1999999"]);
    assert_eq!(files_below(directory.path()), 0);
    drop(member);

    let member = sorts_on_disk(1 << 20, directory.path());
    for _ in 0..3 {
        let error = member.error(text);
        assert_eq!(error.sqlstate(), "53400", "{error}");
        assert!(error.message.contains("queries_spill_bytes_max"), "{error}");
    }
    assert_eq!(files_below(directory.path()), 0);
    assert_eq!(member.rows("SELECT count(*) FROM generate_series(1, 10)"), ["10"]);
}
