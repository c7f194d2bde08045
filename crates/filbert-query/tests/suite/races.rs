//! Concurrent changes of tables by many threads, compared with a model. No acknowledged change may
//! be lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, Ordering};
use std::thread;

use crate::common::Member;
use filbert_data::Value;
use filbert_grid::query::{Dialect, Session, SqlError, WriteMode};

/// The same member, with another session.
fn beside(member: &Arc<Member>) -> Member {
    Member {
        grid: member.grid.clone(),
        engine: member.engine.clone(),
        session: Some(Arc::new(Session::new(Dialect::Postgres, "another"))),
    }
}

fn postgres() -> Arc<Member> {
    Arc::new(Member::of(Dialect::Postgres))
}

fn sqlstate(done: &Result<Vec<String>, SqlError>) -> &'static str {
    match done {
        Ok(_) => "",
        Err(error) => error.sqlstate(),
    }
}

#[test]
fn every_column_that_was_added_is_there() {
    let member = postgres();
    member.change("CREATE TABLE t (id INT PRIMARY KEY)");
    member.change("INSERT INTO t VALUES (1), (2)");
    let threads: Vec<_> = (0..12)
        .map(|number| {
            let member = beside(&member);
            thread::spawn(move || {
                for round in 0..5 {
                    let default = if number % 2 == 0 { " DEFAULT 7" } else { "" };
                    member.change(&format!("ALTER TABLE t ADD COLUMN c{number}_{round} INT{default}"));
                }
                member.change(&format!("ALTER TABLE t RENAME COLUMN c{number}_0 TO r{number}"));
                member.change(&format!("ALTER TABLE t DROP COLUMN c{number}_1"));
                member.change(&format!("COMMENT ON COLUMN t.c{number}_2 IS 'of {number}'"));
                member.change(&format!("CREATE INDEX i{number} ON t (c{number}_3)"));
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let columns = "SELECT column_name FROM information_schema.columns WHERE table_name = 't' ORDER BY 1";
    let mut expected: BTreeSet<String> = BTreeSet::from(["id".to_owned()]);
    for number in 0..12 {
        expected.insert(format!("r{number}"));
        expected.extend((2..5).map(|round| format!("c{number}_{round}")));
    }
    assert_eq!(member.rows(columns), expected.iter().cloned().collect::<Vec<_>>());
    assert_eq!(member.rows("SELECT count(*), sum(c0_4), count(c1_4) FROM t"), ["2|14|0"]);
    assert_eq!(member.rows("SHOW INDEXES ON t").len(), 12);
    let comments = "SELECT count(*) FROM pg_description WHERE description LIKE 'of %'";
    assert_eq!(member.rows(comments), ["12"]);
}

/// Writers that move amounts between rows and add rows, with every kind of statement. They count
/// the acknowledged changes.
struct Writers {
    over: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<BTreeMap<i64, i64>>>,
}

impl Writers {
    fn start(member: &Arc<Member>, count: i64) -> Writers {
        let over = Arc::new(AtomicBool::new(false));
        let threads = (0..count)
            .map(|writer| {
                let (member, over) = (beside(member), over.clone());
                thread::spawn(move || {
                    let mut rows = BTreeMap::new();
                    let mut next = 0;
                    while !over.load(Ordering::SeqCst) {
                        next += 1;
                        let id = writer * 1_000_000 + next;
                        write(&member, &mut rows, id, next);
                    }
                    rows
                })
            })
            .collect();
        Writers { over, threads }
    }

    fn end(self) -> BTreeMap<i64, i64> {
        self.over.store(true, Ordering::SeqCst);
        self.threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    }
}

/// Makes one change, and records it in the model if it is acknowledged. A statement that fails
/// because the table was altered meanwhile changes nothing.
fn write(member: &Member, rows: &mut BTreeMap<i64, i64>, id: i64, round: i64) {
    let ask = |text: String| {
        let done = member.try_rows(&text, &[]);
        assert!(matches!(sqlstate(&done), "" | "40001"), "{text}: {done:?}");
        done
    };
    let Some(some) = rows.keys().nth(usize::try_from(round * 7).unwrap() % rows.len().max(1)).copied() else {
        if ask(format!("INSERT INTO t (id, n) VALUES ({id}, 1)")).is_ok() {
            rows.insert(id, 1);
        }
        return;
    };
    match round % 6 {
        0 => {
            if ask(format!("UPDATE t SET n = n + 1 WHERE id = {some}")).is_ok_and(|done| done == ["count 1"]) {
                *rows.get_mut(&some).unwrap() += 1;
            }
        }
        1 => {
            if ask(format!("UPDATE t SET n = n + 2 WHERE id + 0 = {some}")).is_ok_and(|done| done == ["count 1"]) {
                *rows.get_mut(&some).unwrap() += 2;
            }
        }
        2 => {
            if ask(format!("DELETE FROM t WHERE id = {some}")).is_ok_and(|done| done == ["count 1"]) {
                rows.remove(&some);
            }
        }
        3 => {
            if ask(format!("INSERT INTO t (id, n) SELECT {id}, 5")).is_ok() {
                rows.insert(id, 5);
            }
        }
        4 => {
            let Ok(mut writer) = member.row_writer("INSERT INTO t (id, n) VALUES ($1, $2)", WriteMode::All) else {
                return;
            };
            writer.write(&[Value::Int64(id), Value::Int64(9)], &mut |_| ());
            if writer.finish().is_ok_and(|count| count == 1) {
                rows.insert(id, 9);
            }
        }
        _ => {
            if ask(format!("INSERT INTO t (id, n) VALUES ({id}, 3)")).is_ok() {
                rows.insert(id, 3);
            }
        }
    }
}

#[test]
fn no_acknowledged_row_is_lost_while_the_table_is_altered() {
    let member = postgres();
    member.change("CREATE TABLE t (id BIGINT PRIMARY KEY, n BIGINT NOT NULL, other TEXT)");
    member.change("CREATE INDEX by_n ON t (n)");
    // A row that violates the constraint below, even if no writer has added a row yet.
    member.change("INSERT INTO t VALUES (-1, 1, NULL)");
    let writers = Writers::start(&member, 4);
    for round in 0..12 {
        for text in [
            format!("ALTER TABLE t ADD COLUMN c{round} INT DEFAULT {round}"),
            "ALTER TABLE t ADD COLUMN free TEXT".to_owned(),
            "ALTER TABLE t DROP CONSTRAINT t_pkey".to_owned(),
            "ALTER TABLE t ADD CONSTRAINT t_pkey PRIMARY KEY (id)".to_owned(),
            "ALTER TABLE t DROP COLUMN free".to_owned(),
            format!("ALTER TABLE t RENAME COLUMN c{round} TO d{round}"),
            format!("ALTER TABLE t DROP COLUMN d{round}"),
            "ALTER TABLE t ALTER COLUMN other TYPE VARCHAR(50)".to_owned(),
            "ALTER TABLE t ALTER COLUMN other TYPE TEXT".to_owned(),
        ] {
            member.change(&text);
        }
        // The table has no primary key for a short time. Writers create no duplicates meanwhile.
        let refused = member.error("ALTER TABLE t ADD CONSTRAINT small CHECK (n < 0)");
        assert_eq!(refused.sqlstate(), "23514", "{refused}");
    }
    let mut rows = writers.end();
    rows.insert(-1, 1);
    let expected: Vec<String> = rows.iter().map(|(id, n)| format!("{id}|{n}")).collect();
    assert_eq!(member.rows("SELECT id, n FROM t ORDER BY id"), expected);
    assert_eq!(
        member.rows("SELECT count(*), sum(n) FROM t"),
        [format!("{}|{}", rows.len(), rows.values().sum::<i64>())]
    );
    let columns = "SELECT column_name FROM information_schema.columns WHERE table_name = 't' ORDER BY ordinal_position";
    assert_eq!(member.rows(columns), ["id", "n", "other"]);
    assert_eq!(member.rows("SHOW INDEXES ON t"), ["by_n"]);
}

#[test]
fn a_key_that_is_not_unique_leaves_the_table_as_it_was() {
    let member = postgres();
    member.change("CREATE TABLE t (id INT PRIMARY KEY, a INT, b TEXT)");
    member.change("INSERT INTO t SELECT v, v % 100, 'x' FROM generate_series(1, 500) g(v)");
    let before = member.rows("SELECT * FROM t ORDER BY id");
    for (text, state) in [
        ("ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (a)", "23505"),
        ("ALTER TABLE t ALTER COLUMN b TYPE INT USING b::int", "22P02"),
        ("ALTER TABLE t ADD COLUMN c INT NOT NULL", "23502"),
        ("ALTER TABLE t ADD CHECK (a < 50)", "23514"),
        ("ALTER TABLE t ADD COLUMN c INT DEFAULT 1, ADD CHECK (c > 1)", "23514"),
        ("ALTER TABLE t ALTER COLUMN id TYPE SMALLINT USING id * 100", "22003"),
        ("ALTER TABLE t RENAME TO t", "42P07"),
    ] {
        let error = member.error(text);
        assert_eq!(error.sqlstate(), state, "{text}: {error}");
        assert_eq!(member.rows("SELECT * FROM t ORDER BY id"), before, "{text}");
    }
    member.change("UPDATE t SET b = NULL WHERE id = 7");
    assert_eq!(member.error("ALTER TABLE t ALTER COLUMN b SET NOT NULL").sqlstate(), "23502");
    assert_eq!(member.change("INSERT INTO t VALUES (501, 1, NULL)"), 1);
    member.change("ALTER TABLE t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (a, id)");
    assert_eq!(member.rows("SELECT count(*), sum(id), sum(a) FROM t"), ["501|125751|24751"]);
    assert_eq!(member.rows("SELECT b FROM t WHERE a = 3 AND id = 103"), ["x"]);
    member.change("ALTER TABLE t RENAME TO u");
    assert_eq!(member.rows("SELECT count(*), sum(id), sum(a) FROM u"), ["501|125751|24751"]);
    assert_eq!(member.error("SELECT * FROM t").sqlstate(), "42P01");
    assert_eq!(member.grid.map_names(), ["u"]);
}

#[test]
fn an_insert_beside_a_drop_leaves_nothing_behind() {
    let member = postgres();
    let over = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..3)
        .map(|writer| {
            let (member, over) = (beside(&member), over.clone());
            thread::spawn(move || {
                let mut number = 0;
                while !over.load(Ordering::SeqCst) {
                    number += 1;
                    let id = writer * 1_000_000 + number;
                    let text = match number % 3 {
                        0 => format!("INSERT INTO t VALUES ({id}, 1)"),
                        1 => format!("INSERT INTO t SELECT {id}, 2"),
                        _ => format!("UPDATE t SET n = 3 WHERE id = {id}"),
                    };
                    let done = member.try_rows(&text, &[]);
                    assert!(matches!(sqlstate(&done), "" | "42P01" | "40001"), "{text}: {done:?}");
                }
            })
        })
        .collect();
    for round in 0..200 {
        let made = member.try_rows("CREATE TABLE t (id INT PRIMARY KEY, n INT)", &[]);
        assert!(made.is_ok(), "round {round}: {made:?}");
        member.change("INSERT INTO t VALUES (-1, 1)");
        assert_eq!(member.rows("SELECT count(*) FROM t WHERE id < 0"), ["1"]);
        member.change("DROP TABLE t");
        assert!(member.grid.existing_map("t").is_none(), "round {round}");
    }
    over.store(true, Ordering::SeqCst);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn one_of_many_who_make_the_same_is_told_that_it_was_made() {
    let member = postgres();
    member.change("CREATE TABLE of_index (a INT)");
    for (text, after, state) in [
        ("CREATE TABLE t (a INT)", "DROP TABLE t", "42P07"),
        ("CREATE TABLE t AS SELECT 1 AS a", "DROP TABLE t", "42P07"),
        ("CREATE VIEW t AS SELECT 1 AS a", "DROP VIEW t", "42P07"),
        ("CREATE INDEX t ON of_index (a)", "DROP INDEX t", "42P07"),
        ("CREATE SCHEMA t", "DROP SCHEMA t", "42P06"),
    ] {
        for _ in 0..20 {
            let made = Arc::new(AtomicI64::new(0));
            let ask = |text: &'static str, state: &'static str| {
                let threads: Vec<_> = (0..6)
                    .map(|_| {
                        let (member, made) = (beside(&member), made.clone());
                        thread::spawn(move || match member.try_rows(text, &[]) {
                            Ok(_) => _ = made.fetch_add(1, Ordering::SeqCst),
                            Err(error) => assert_eq!(error.sqlstate(), state, "{text}: {error}"),
                        })
                    })
                    .collect();
                threads.into_iter().for_each(|thread| thread.join().unwrap());
                assert_eq!(made.swap(0, Ordering::SeqCst), 1, "{text}");
            };
            ask(text, state);
            let gone = match after {
                "DROP INDEX t" => "42704",
                "DROP SCHEMA t" => "3F000",
                _ => "42P01",
            };
            ask(after, gone);
        }
    }
}

#[test]
fn what_a_client_puts_into_the_map_of_a_table_is_not_lost_either() {
    let member = postgres();
    member.change("CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    member.change("INSERT INTO t VALUES (0, 0)");
    let map = member.grid.map("t").unwrap();
    // The value of a row as a client reads it. The client puts it under other keys.
    let mut sample = None;
    map.for_each(&mut |_, value| sample = Some(value.to_vec()));
    let (value, over) = (sample.unwrap(), Arc::new(AtomicBool::new(false)));
    // The maximum number of rows of the client. It grows with each change of the table: otherwise
    // the changes would copy more and more rows on a busy machine, and never end.
    let allowed = Arc::new(AtomicI32::new(5_000));
    let client = {
        let (grid, over, allowed) = (member.grid.clone(), over.clone(), allowed.clone());
        thread::spawn(move || {
            let (mut acknowledged, mut map) = (Vec::new(), grid.map("t").unwrap());
            for number in 1.. {
                while number > allowed.load(Ordering::SeqCst) && !over.load(Ordering::SeqCst) {
                    thread::yield_now();
                }
                if over.load(Ordering::SeqCst) {
                    return acknowledged;
                }
                if map.is_destroyed() {
                    map = grid.map("t").unwrap();
                }
                let key = filbert_data::ToBlob::to_blob(&Value::Int32(number)).unwrap();
                let change = filbert_grid::Change::Put {
                    key: &key,
                    value: &value,
                    expiry: filbert_grid::Expiry::DEFAULT,
                    mode: filbert_grid::PutMode::Set,
                };
                if map.change(map.partition_of(&key), filbert_grid::Caller::default(), change, |_| ()).is_ok() {
                    acknowledged.push(number);
                }
            }
            acknowledged
        })
    };
    for round in 0..20 {
        member.change(&format!("ALTER TABLE t ADD COLUMN c{round} INT DEFAULT 1"));
        allowed.fetch_add(5_000, Ordering::SeqCst);
    }
    over.store(true, Ordering::SeqCst);
    let acknowledged = client.join().unwrap();
    assert_eq!(member.rows("SELECT count(*) FROM t"), [(acknowledged.len() + 1).to_string()]);
}
