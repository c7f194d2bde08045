//! Queries during changes of the map, queries that are too large, and queries that are cancelled.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::common::{Member, texts};
use filbert_data::criteria::Predicate;
use filbert_data::{Json, ToBlob, Value};
use filbert_grid::query::{
    Answer, Cursor, MapQuery, Page, QueryEngine, Running, SqlError, SqlErrorCode, Statement, StatementResult,
};
use filbert_grid::{Caller, Change, Expiry, Map, PutMode, ReadView};
use filbert_query::QueryConfig;

/// The duration of concurrent queries and changes.
const LOAD: Duration = Duration::from_millis(1_000);
/// The time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

fn mapping(member: &Member, name: &str, options: &str) {
    member.change(&format!(
        "CREATE MAPPING {name} (__key INT, n BIGINT, t VARCHAR) TYPE IMap \
         OPTIONS ('keyFormat'='int', 'valueFormat'='json-flat'{options})"
    ));
}

fn put_text(map: &Map, key: i32, text: String) {
    let (key, value) = (key.to_blob().unwrap(), Json(text).to_blob().unwrap());
    let change = Change::Put { key: &key, value: &value, expiry: Expiry::DEFAULT, mode: PutMode::Set };
    map.change(map.partition_of(&key), Caller::default(), change, |_| ()).unwrap();
}

fn put(map: &Map, key: i32, n: i64) {
    put_text(map, key, format!(r#"{{"n": {n}, "t": "text {n}"}}"#));
}

/// Runs `change` and `ask` repeatedly for [`LOAD`], in two threads.
fn beside(change: impl Fn(u32) + Sync, mut ask: impl FnMut()) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let changes = scope.spawn(|| {
            let mut round = 0;
            while !stop.load(Ordering::Relaxed) {
                change(round);
                round += 1;
            }
        });
        let begin = Instant::now();
        let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            while begin.elapsed() < LOAD {
                ask();
            }
        }));
        stop.store(true, Ordering::Relaxed);
        changes.join().unwrap();
        asked.unwrap();
    });
}

fn start(member: &Member, text: &str, timeout_ms: Option<u64>) -> (Running, Result<StatementResult, SqlError>) {
    let statement = Statement { timeout_ms, ..member.statement(text, &[]) };
    let (sender, receiver) = mpsc::channel();
    let running = member.engine.execute(&statement, Box::new(move |result| drop(sender.send(result))));
    (running, receiver.recv_timeout(PATIENCE).unwrap())
}

fn cursor(member: &Member, text: &str) -> Box<dyn Cursor> {
    match start(member, text, None).1.unwrap() {
        StatementResult::Rows(cursor) => cursor,
        StatementResult::Count(count) => panic!("a count of {count}: {text}"),
    }
}

fn page(cursor: Box<dyn Cursor>, rows_max: usize) -> (Box<dyn Cursor>, Result<Page, SqlError>) {
    let (sender, receiver) = mpsc::channel();
    cursor.page(rows_max, Box::new(move |cursor, page| drop(sender.send((cursor, page)))));
    receiver.recv_timeout(PATIENCE).unwrap()
}

#[test]
fn scans_see_each_row_at_most_once_while_the_map_is_cleared_refilled_and_evicted() {
    let member = Member::start();
    for (name, options) in [("plain", ""), ("columns", ", 'columnar'='true'")] {
        mapping(&member, name, options);
        let map = member.grid.map(name).unwrap();
        let change = |round: u32| {
            for key in 0..2_000 {
                put(&map, key, i64::from(key));
            }
            for key in 0..500_i32 {
                let key = key.to_blob().unwrap();
                map.change(map.partition_of(&key), Caller::default(), Change::Evict { key: &key }, |_| ()).unwrap();
            }
            match round % 3 {
                0 => map.clear(Caller::default()).map(drop).unwrap(),
                1 => map.evict_all(Caller::default()).map(drop).unwrap(),
                _ => {}
            }
        };
        beside(change, || {
            let totals = member.rows(&format!("SELECT count(*), count(n), max(n) FROM {name} WHERE n >= 0"));
            let (count, rest) = totals.first().unwrap().split_once('|').unwrap();
            assert!(count.parse::<u32>().unwrap() <= 2_000, "{totals:?}");
            assert!(rest.starts_with(&format!("{count}|")), "{totals:?}");

            let mut seen = HashSet::new();
            let mut rows = cursor(&member, &format!("SELECT __key, n, t FROM {name}"));
            loop {
                let (back, read) = page(rows, 150);
                rows = back;
                let read = read.unwrap();
                for row in texts(&read.rows) {
                    let key = row.split('|').next().unwrap().to_owned();
                    assert_eq!(row, format!("{key}|{key}|text {key}"));
                    assert!(seen.insert(key), "{row} came twice");
                }
                if read.last {
                    break;
                }
            }
        });
        map.clear(Caller::default()).unwrap();
        assert_eq!(member.rows(&format!("SELECT count(*), sum(n) FROM {name}")), ["0|NULL"]);
    }
}

#[test]
fn answers_are_right_while_indexes_come_and_go_under_load() {
    let member = Member::start();
    mapping(&member, "busy", "");
    let map = member.grid.map("busy").unwrap();
    for key in 0..1_000 {
        put(&map, key, i64::from(key % 10));
    }
    let predicate = Predicate::Equal("n".to_owned(), Value::Int64(3)).to_blob().unwrap();
    // The changes affect other rows than the queries.
    let change = |round: u32| {
        let kind = if round & 1 == 0 { "HASH" } else { "SORTED" };
        member.change(&format!("CREATE INDEX by_n ON busy (n) TYPE {kind}"));
        for key in 1_000..1_200 {
            put(&map, key, i64::from(round % 7) + 100);
        }
        member.change("DROP INDEX by_n ON busy");
    };
    beside(change, || {
        assert_eq!(member.rows("SELECT count(*) FROM busy WHERE n = 3"), ["100"]);
        assert_eq!(member.rows("SELECT count(*), min(n) FROM busy WHERE n BETWEEN 2 AND 4"), ["300|2"]);
        let rows = member.rows_with("SELECT n FROM busy WHERE n = ?", &[Value::Int64(7)]);
        assert_eq!(rows.len(), 100);
        let query = MapQuery::Entries { predicate: Some(&predicate), partitions: None };
        let mut found = 0;
        let mut prepared = member.engine.prepare(&map, query, ReadView::complete()).unwrap();
        prepared
            .run(&mut |answer| {
                found += usize::from(matches!(answer, Answer::Entry(..)));
                Ok(())
            })
            .unwrap();
        assert_eq!(found, 100);
    });
}

#[test]
fn a_thousand_cursors_that_are_dropped_leave_no_memory_behind() {
    let member = Member::start();
    mapping(&member, "m", "");
    let map = member.grid.map("m").unwrap();
    for key in 0..300 {
        put(&map, key, i64::from(key));
    }
    let mut cursors = Vec::new();
    for _ in 0..1_000 {
        // Sorted rows are held until they are read.
        let (cursor, first) = page(cursor(&member, "SELECT n, t FROM m ORDER BY t"), 10);
        assert_eq!(first.unwrap().rows.num_rows(), 10);
        cursors.push(cursor);
    }
    drop(cursors);
    let begin = Instant::now();
    while member.engine.statistics().memory_bytes > 0 {
        assert!(begin.elapsed() < PATIENCE, "{:?}", member.engine.statistics());
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(member.rows("SELECT count(*) FROM m"), ["300"]);
}

#[test]
fn statements_that_are_too_large_are_errors_and_the_next_one_is_answered() {
    let member = Member::start();
    let nested = |open: &str, close: &str| format!("SELECT {}1{}", open.repeat(50_000), close.repeat(50_000));
    let parameters = vec!["?"; 65_536].join(", ");
    for text in [
        format!("SELECT '{}'", "x".repeat(10 << 20)),
        nested("(", ")"),
        nested("NOT ", ""),
        nested("abs(", ")"),
        nested("(SELECT ", ")"),
        format!("SELECT 1 IN ({parameters})"),
    ] {
        let error = member.error(&text);
        assert!(error.message.len() < 10_000, "an error of {} bytes", error.message.len());
        assert_eq!(member.rows("SELECT 1"), ["1"]);
    }
}

#[test]
fn a_join_beyond_the_memory_is_an_error_and_the_next_query_is_answered() {
    let member = Member::with(QueryConfig { query_memory_bytes_max: Some(8 << 20), ..QueryConfig::default() });
    mapping(&member, "large", "");
    let insert = |from: u32, to: u32| {
        format!(
            "INSERT INTO large SELECT v, v % 1000, CAST(v AS VARCHAR) || \
             '----------------------------------------------------------------------------------------------------' \
             FROM TABLE(generate_series({from}, {to}))"
        )
    };
    // A statement holds its changes in memory until it makes them.
    let error = member.error(&insert(1, 80_000));
    assert!(error.message.contains("not enough memory for the changes of one statement"), "{error}");
    assert_eq!((error.sqlstate(), member.rows("SELECT count(*) FROM large")), ("53200", vec!["0".to_owned()]));
    let counts: u64 = (0..8).map(|part| member.change(&insert(part * 10_000 + 1, (part + 1) * 10_000))).sum();
    assert_eq!(counts, 80_000);
    let error = member.error("SELECT count(a.t), min(b.t) FROM large a JOIN large b ON a.t = b.t");
    assert!(error.message.to_lowercase().contains("memory"), "{error}");
    assert_eq!(member.rows("SELECT count(*) FROM large"), ["80000"]);
}

#[test]
fn a_value_that_is_no_json_is_named_by_its_key() {
    let member = Member::start();
    for (name, options) in [("plain", ""), ("columns", ", 'columnar'='true'")] {
        mapping(&member, name, options);
        let map = member.grid.map(name).unwrap();
        for key in 0..1_000 {
            put(&map, key, 1);
        }
        put_text(&map, 777, "{\"n\": oops".to_owned());
        for text in ["SELECT sum(n) FROM", "SELECT n, count(*) FROM", "SELECT t FROM"] {
            let grouped = if text.contains("count") { " GROUP BY n" } else { "" };
            let error = member.error(&format!("{text} {name}{grouped}"));
            assert!(error.message.contains("777"), "{text} {name}: {error}");
        }
        let rows = member.rows(&format!("SELECT n FROM {name} WHERE __key = 5"));
        assert_eq!(rows, ["1"]);
        put(&map, 777, 1);
        assert_eq!(member.rows(&format!("SELECT sum(n) FROM {name}")), ["1000"]);
    }
}

/// A query that takes hours.
const HOURS: &str = "SELECT count(*) FROM TABLE(generate_series(1, 10000000)) a \
                     JOIN TABLE(generate_series(1, 10000000)) b ON a.v * b.v < b.v - a.v";

fn ended(member: &Member, timeout_ms: Option<u64>, cancel: bool) -> SqlError {
    let begin = Instant::now();
    let (running, result) = start(member, HOURS, timeout_ms);
    let running = Arc::new(running);
    if cancel {
        let running = running.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            running.cancel();
        });
    }
    let error = match result {
        Ok(StatementResult::Rows(cursor)) => page(cursor, 10).1.map(drop).unwrap_err(),
        Ok(StatementResult::Count(count)) => panic!("a count of {count}"),
        Err(error) => error,
    };
    assert!(begin.elapsed() < PATIENCE);
    error
}

#[test]
fn a_query_that_takes_hours_is_cancelled_and_times_out() {
    let member = Member::start();
    assert_eq!(ended(&member, None, true).code, SqlErrorCode::Cancelled);
    assert_eq!(ended(&member, Some(200), false).code, SqlErrorCode::Timeout);
    assert_eq!(member.rows("SELECT 1"), ["1"]);
}

#[test]
fn joins_of_all_with_all_hold_up_nobody_and_end_with_who_asked() {
    let member = Member::with(QueryConfig { threads: Some(1), ..QueryConfig::default() });
    mapping(&member, "m", "");
    let map = member.grid.map("m").unwrap();
    (0..2_000).for_each(|key| put(&map, key, i64::from(key)));
    let joins = [
        "SELECT count(*) FROM m a, m b, m c, m d WHERE a.n + b.n + c.n + d.n = -1",
        "SELECT count(*) FROM m a, m b, m c, m d",
        HOURS,
    ];
    for text in joins {
        let (sender, receiver) = mpsc::channel();
        let running = match start(&member, text, None) {
            (running, Ok(StatementResult::Rows(cursor))) => {
                cursor.page(10, Box::new(move |_, page| drop(sender.send(page.map(drop)))));
                running
            }
            (_, other) => panic!("{text}: {:?}", other.map(drop)),
        };
        // The join runs on the only query thread.
        assert_eq!(member.rows("SELECT count(*), max(n) FROM m WHERE n < 1000"), ["1000|999"]);
        running.cancel();
        let ended = receiver.recv_timeout(PATIENCE).unwrap();
        assert_eq!(ended.unwrap_err().code, SqlErrorCode::Cancelled, "{text}");
        assert_eq!(member.rows("SELECT 2 + 3"), ["5"]);
    }
}
