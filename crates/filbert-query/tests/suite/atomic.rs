//! A statement makes all of its changes or none: if it fails, if it moves rows to the keys of other
//! changed rows, and if many statements change the same rows.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use crate::common::Member;
use filbert_data::Value;
use filbert_grid::query::{Dialect, QueryEngine, SqlError, Statement, StatementResult, WriteMode};
use filbert_grid::{Caller, Change, Map};
use filbert_query::QueryConfig;
use uuid::Uuid;

/// Pseudorandom numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn member() -> Member {
    let config = QueryConfig { lock_wait_ms: 200, ..QueryConfig::default() };
    let mut member = Member::with(config);
    member.session = Member::of(Dialect::Postgres).session;
    member
}

fn table(member: &Member, rows: u32) {
    member.change("CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL CHECK (v < 1000000), s TEXT)");
    member.change(&format!("INSERT INTO t SELECT g, 0, 'x' FROM generate_series(1, {rows}) AS g"));
}

fn content(member: &Member) -> Vec<String> {
    member.rows("SELECT id, v, s FROM t ORDER BY id")
}

/// The outcome of a statement: the number of changed rows, or the SQLSTATE of its error.
fn outcome(member: &Member, text: &str) -> Result<u64, String> {
    match member.run(text, &[]) {
        Ok(StatementResult::Count(count)) => Ok(count),
        Ok(StatementResult::Rows(_)) => panic!("rows: {text}"),
        Err(error) => Err(error.sqlstate().to_owned()),
    }
}

fn caller(client: u128) -> Caller {
    Caller { client: Uuid::from_u128(client), thread: 1 }
}

fn keys(map: &Map) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    map.for_each(&mut |key, _| keys.push(key.to_vec()));
    keys
}

fn lock(map: &Map, key: &[u8], client: u128) -> bool {
    let change = Change::Lock { key, lease_ms: None, reference: 0 };
    map.change(map.partition_of(key), caller(client), change, |_| ()).is_ok()
}

fn unlock(map: &Map, key: &[u8], client: u128) {
    let change = Change::Unlock { key, reference: 0 };
    map.change(map.partition_of(key), caller(client), change, |_| ()).unwrap();
}

/// Frees expired entries and ends waits while `run` runs, as the program's timer does.
fn with_timer<R>(member: &Member, run: impl FnOnce() -> R) -> R {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                member.grid.run_expiry();
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let _done = Done(&done);
        run()
    })
}

/// Sets a flag at the end of a scope, also after a panic.
struct Done<'d>(&'d AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

#[test]
fn a_statement_that_fails_changes_nothing() {
    let member = member();
    table(&member, 3_000);
    let before = content(&member);
    for (text, sqlstate) in [
        ("INSERT INTO t VALUES (5000, 1, 'n'), (5001, 2, 'n'), (5, 3, 'n')", "23505"),
        ("INSERT INTO t VALUES (5000, 1, 'n'), (5001, 2, 'n'), (5000, 3, 'n')", "23505"),
        ("INSERT INTO t VALUES (5000, 1, 'n'), (5, 2, 'n') RETURNING id", "23505"),
        ("INSERT INTO t VALUES (5000, 1, 'n'), (5001, 1000000, 'n')", "23514"),
        ("INSERT INTO t VALUES (5000, 1, 'n'), (5001, NULL, 'n')", "23502"),
        ("INSERT INTO t SELECT id + 2000, v, s FROM t", "23505"),
        ("INSERT INTO t SELECT id + 5000, CASE id WHEN 2999 THEN NULL ELSE 1 END, s FROM t", "23502"),
        ("INSERT INTO t SELECT id + 5000, 1 / (id - 2999), s FROM t", "22012"),
        ("INSERT INTO t SELECT 5000 + g / 2, 1, 'n' FROM generate_series(1, 100) AS g", "23505"),
        ("UPDATE t SET v = CASE id WHEN 2999 THEN 1000000 ELSE 1 END", "23514"),
        ("UPDATE t SET v = NULL WHERE id > 100", "23502"),
        ("UPDATE t SET v = 1 / (id - 2999)", "22012"),
        ("UPDATE t SET v = CAST(s AS INT)", "22P02"),
        ("UPDATE t SET id = 1 WHERE id IN (2, 3)", "23505"),
        ("UPDATE t SET id = id + 1 WHERE id <= 2999", "23505"),
        ("UPDATE t SET id = id / 2 + 10000", "23505"),
        ("DELETE FROM t WHERE 1 / (id - 2999) = 0", "22012"),
        ("INSERT INTO t VALUES (1, 7, 'u'), (1, 8, 'u') ON CONFLICT (id) DO UPDATE SET v = excluded.v", "21000"),
        ("INSERT INTO t VALUES (7000, 7, 'u'), (7000, 8, 'u') ON CONFLICT (id) DO UPDATE SET v = 1", "21000"),
        (
            "INSERT INTO t SELECT g, 7, 'u' FROM generate_series(2990, 4000) AS g ON CONFLICT (id) DO UPDATE \
          SET v = 100 / (3000 - t.id)",
            "22012",
        ),
        ("INSERT INTO t VALUES (5000, 1, 'n') RETURNING 1 / (v - 1)", "22012"),
        ("INSERT INTO t VALUES (5000, 2, 'n'), (5001, 1, 'n') RETURNING 1 / (v - 1)", "22012"),
        ("UPDATE t SET v = v + 1 WHERE id = 1 RETURNING 1 / (v - 1)", "22012"),
        ("UPDATE t SET v = v + 1 WHERE id < 10 RETURNING 1 / (id - 9)", "22012"),
        ("DELETE FROM t WHERE id = 7 RETURNING 1 / (id - 7)", "22012"),
        ("DELETE FROM t RETURNING 1 / (id - 7)", "22012"),
    ] {
        let error = member.error(text);
        assert_eq!(error.sqlstate(), sqlstate, "{text}: {error}");
        assert_eq!(content(&member), before, "{text}");
    }
}

#[test]
fn rows_that_are_copied_are_all_there_or_none_is() {
    let member = member();
    table(&member, 100);
    let before = content(&member);
    let map = member.grid.existing_map("t").unwrap();
    let rows = |last: i32| (101..2_000).chain([last]).flat_map(|id| [Value::Int32(id), Value::Int32(1)]).collect();
    let copy = |rows: Vec<Value<'_>>| {
        let mut writer = member.row_writer("INSERT INTO t (id, v) VALUES ($1, $2)", WriteMode::All).unwrap();
        let mut failure = None;
        writer.write(&rows, &mut |outcome| failure = outcome.err().or(failure.take()));
        match failure {
            Some(error) => Err(error),
            None => writer.finish(),
        }
    };
    // The last row has an existing key, or the key of an earlier row.
    for last in [100, 101] {
        assert_eq!(copy(rows(last)).unwrap_err().sqlstate(), "23505");
        assert_eq!(content(&member), before);
    }
    // A key without an entry is locked.
    let key = {
        member.change("INSERT INTO t VALUES (2000, 1, 'x')");
        let key = keys(&map).into_iter().find(|key| key.ends_with(&2_000i32.to_be_bytes())).unwrap();
        member.change("DELETE FROM t WHERE id = 2000");
        key
    };
    assert!(lock(&map, &key, 7));
    with_timer(&member, || assert_eq!(copy(rows(2_000)).unwrap_err().sqlstate(), "55P03"));
    assert_eq!(content(&member), before);
    unlock(&map, &key, 7);
    assert_eq!(copy(rows(2_000)).unwrap(), 1_900);
    assert_eq!(member.rows("SELECT count(*) FROM t"), ["2000"]);
}

#[test]
fn a_locked_key_holds_a_whole_statement_up() {
    let member = member();
    table(&member, 50);
    let before = content(&member);
    let map = member.grid.existing_map("t").unwrap();
    let key = keys(&map).swap_remove(20);
    assert!(lock(&map, &key, 7));
    with_timer(&member, || {
        for text in ["UPDATE t SET v = v + 1", "DELETE FROM t", "UPDATE t SET id = id + 1"] {
            let began = std::time::Instant::now();
            assert_eq!(member.error(text).sqlstate(), "55P03", "{text}");
            assert!(began.elapsed() >= Duration::from_millis(190));
            assert_eq!(content(&member), before);
        }
        // A waiting statement does not block the client that holds the lock.
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| outcome(&member, "UPDATE t SET v = v + 1"));
            while member.grid.statistics().parked_changes == 0 {
                std::thread::yield_now();
            }
            for key in keys(&map) {
                assert!(lock(&map, &key, 7));
                unlock(&map, &key, 7);
            }
            unlock(&map, &key, 7);
            assert_eq!(waiting.join().unwrap(), Ok(50));
        });
    });
    assert_eq!(member.rows("SELECT count(*), min(v), max(v) FROM t"), ["50|1|1"]);
    assert_eq!(map.statistics().locked_keys, 0);
}

#[test]
fn an_update_that_moves_keys_does_not_meet_its_own_rows() {
    let member = member();
    table(&member, 20_000);
    assert_eq!(member.change("UPDATE t SET id = id + 1000000"), 20_000);
    assert_eq!(member.rows("SELECT count(*), min(id), max(id) FROM t"), ["20000|1000001|1020000"]);
    assert_eq!(member.change("UPDATE t SET id = id + 1, v = id - 1000000"), 20_000);
    let found = "SELECT count(*), min(id), max(id), count(DISTINCT v), max(id - v), min(id - v) FROM t";
    assert_eq!(member.rows(found), ["20000|1000002|1020001|20000|1000001|1000001"]);
    assert_eq!(member.change("INSERT INTO t SELECT id + 500000, v, s FROM t"), 20_000);
    assert_eq!(member.rows("SELECT count(*) FROM t"), ["40000"]);
    assert_eq!(member.change("DELETE FROM t WHERE (SELECT count(*) FROM t) = 40000"), 40_000);
    // Two rows exchange their keys.
    member.change("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b')");
    assert_eq!(member.rows("UPDATE t SET id = 3 - id RETURNING id, v").len(), 2);
    assert_eq!(content(&member), ["1|20|b", "2|10|a"]);
}

#[test]
fn what_moves_between_rows_stays_the_same_in_sum() {
    let member = member();
    table(&member, 40);
    member.change("UPDATE t SET v = 1000");
    let moved = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (member, moved) = (&member, &moved);
            scope.spawn(move || {
                let mut numbers = Numbers(thread);
                for _ in 0..60 {
                    let (from, to) = (numbers.below(40) + 1, numbers.below(40) + 1);
                    let text = match numbers.below(3) {
                        // By the general plan, and with all rows at once.
                        0 => format!(
                            "UPDATE t SET v = v + CASE id WHEN {from} THEN -1 WHEN {to} THEN 1 ELSE 0 END WHERE {from} <> {to}"
                        ),
                        1 => format!(
                            "UPDATE t SET v = v + CASE id WHEN {from} THEN -1 ELSE 1 END \
                             WHERE id IN ({from}, {to}) AND {from} <> {to}"
                        ),
                        // By an insert of existing rows.
                        _ if from != to => format!(
                            "INSERT INTO t VALUES ({from}, -1, 'x'), ({to}, 1, 'x') \
                             ON CONFLICT (id) DO UPDATE SET v = t.v + excluded.v"
                        ),
                        _ => continue,
                    };
                    match outcome(member, &text) {
                        Ok(_) => _ = moved.fetch_add(1, Ordering::Relaxed),
                        // A wait for a key ends after a while, which six threads on a busy machine
                        // may take.
                        Err(sqlstate) => assert!(["40001", "55P03"].contains(&&*sqlstate), "{sqlstate}: {text}"),
                    }
                }
            });
        }
    });
    assert_eq!(member.rows("SELECT count(*), sum(v) FROM t"), ["40|40000"]);
    assert!(moved.load(Ordering::Relaxed) > 100);
}

#[test]
fn of_inserts_of_the_same_rows_each_is_there_whole_or_not_at_all() {
    let member = member();
    table(&member, 1);
    member.change("DELETE FROM t");
    let outcomes: Vec<(u64, u64, bool)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..6u64)
            .map(|thread| {
                let member = &member;
                scope.spawn(move || {
                    let mut outcomes = Vec::new();
                    let mut numbers = Numbers(thread + 100);
                    for round in 0..80u64 {
                        let (tag, first) = (thread * 1_000 + round, numbers.below(600));
                        let text = match round % 2 {
                            0 => {
                                let rows = (0..5).map(|n| format!("({}, {tag}, 'n')", first + n)).collect::<Vec<_>>();
                                format!("INSERT INTO t VALUES {}", rows.join(", "))
                            }
                            _ => format!(
                                "INSERT INTO t SELECT g, {tag}, 'n' FROM generate_series({first}, {first} + 4) AS g"
                            ),
                        };
                        let result = outcome(member, &text);
                        assert!(matches!(result.as_ref().map_err(String::as_str), Ok(5) | Err("23505")), "{result:?}");
                        outcomes.push((tag, first, result.is_ok()));
                    }
                    outcomes
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut wanted = Vec::new();
    for (tag, first, made) in outcomes {
        wanted.extend((0..5).filter(|_| made).map(|n| (first + n, format!("{}|{tag}|n", first + n))));
    }
    wanted.sort();
    assert_eq!(content(&member), wanted.into_iter().map(|(_, row)| row).collect::<Vec<_>>());
}

#[test]
fn keys_that_move_while_others_change_rows_lose_none() {
    let member = member();
    table(&member, 300);
    let added = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let member = &member;
            scope.spawn(move || {
                for _ in 0..15 {
                    let text = format!("UPDATE t SET id = (id + {}) % 5000", 601 + thread);
                    let result = outcome(member, &text);
                    // On a busy machine, the wait for a key may end.
                    let allowed = |error: &String| ["40001", "23505", "55P03"].contains(&error.as_str());
                    assert!(result.as_ref().err().is_none_or(allowed), "{result:?}: {text}");
                }
            });
        }
        for thread in 0..3 {
            let (member, added) = (&member, &added);
            scope.spawn(move || {
                let mut numbers = Numbers(thread);
                for _ in 0..150 {
                    let text = format!("UPDATE t SET v = v + 1 WHERE id % 300 = {}", numbers.below(300));
                    added.fetch_add(outcome(member, &text).unwrap_or(0), Ordering::Relaxed);
                }
            });
        }
    });
    let wanted = format!("300|300|{}", added.load(Ordering::Relaxed));
    assert_eq!(member.rows("SELECT count(*), count(DISTINCT id), sum(v) FROM t"), [wanted]);
}

/// Runs a statement with a timeout.
fn run_within(member: &Member, text: &str, timeout_ms: u64) -> Result<StatementResult, SqlError> {
    let statement = Statement { timeout_ms: Some(timeout_ms), ..member.statement(text, &[]) };
    let (sender, receiver) = mpsc::channel();
    member.engine.execute(&statement, Box::new(move |result| sender.send(result).unwrap()));
    receiver.recv().unwrap()
}

#[test]
fn a_cancelled_statement_has_changed_all_rows_or_none() {
    let member = member();
    table(&member, 5_000);
    let map = member.grid.existing_map("t").unwrap();
    let mut numbers = Numbers(5);
    let (mut made, mut cancelled) = (0, 0);
    for round in 0..120 {
        // Some statements wait for a lock at their timeout.
        let key = (round % 8 == 0).then(|| keys(&map).swap_remove(0));
        key.iter().for_each(|key| assert!(lock(&map, key, 7)));
        match run_within(&member, "UPDATE t SET v = v + 1", numbers.below(40) + 1) {
            Ok(_) => made += 1,
            Err(_) => cancelled += 1,
        }
        key.iter().for_each(|key| unlock(&map, key, 7));
        let rows = member.rows("UPDATE t SET v = v WHERE id > 0 RETURNING v");
        assert_eq!(rows.len(), 5_000);
        assert!(rows.iter().all(|row| *row == rows[0]), "half a statement is there");
    }
    assert!(cancelled > 0);
    // The number of successful statements is the number of applied changes.
    assert_eq!(member.rows("SELECT max(v) FROM t"), [made.to_string()]);
    assert_eq!(map.statistics().locked_keys, 0);
}

#[test]
fn statements_and_clients_that_lock_keys_get_past_each_other() {
    let member = member();
    table(&member, 60);
    let map = member.grid.existing_map("t").unwrap();
    let all = keys(&map);
    let (statements, puts) = (AtomicU64::new(0), AtomicU64::new(0));
    with_timer(&member, || {
        std::thread::scope(|scope| {
            for client in 1..4u128 {
                let (map, all, puts) = (&map, &all, &puts);
                scope.spawn(move || {
                    let mut numbers = Numbers(client as u64);
                    for _ in 0..200 {
                        let mut held = Vec::new();
                        for _ in 0..4 {
                            let key = &all[numbers.below(60) as usize];
                            if lock(map, key, client) {
                                held.push(key);
                            }
                        }
                        std::thread::yield_now();
                        held.iter().for_each(|key| unlock(map, key, client));
                        puts.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            for _ in 0..3 {
                let (member, statements) = (&member, &statements);
                scope.spawn(move || {
                    for _ in 0..40 {
                        match outcome(member, "UPDATE t SET v = v + 1") {
                            Ok(count) => {
                                assert_eq!(count, 60);
                                statements.fetch_add(1, Ordering::Relaxed);
                            }
                            Err(sqlstate) => assert!(["40001", "55P03"].contains(&sqlstate.as_str()), "{sqlstate}"),
                        }
                    }
                });
            }
        });
    });
    let v = statements.load(Ordering::Relaxed);
    assert_eq!(member.rows("SELECT count(*), min(v), max(v) FROM t"), [format!("60|{v}|{v}")]);
    assert!(v > 10);
    assert_eq!(map.statistics().locked_keys, 0);
    assert_eq!(member.grid.statistics().parked_changes, 0);
}
