//! Planning ends with its statement, and so do computations during planning. A statement that times
//! out takes only a part of the processor time that its whole planning takes.

use std::fs;
use std::sync::mpsc;

use crate::alone;
use crate::common::Member;
use filbert_grid::query::{Dialect, QueryEngine, Statement};
use filbert_query::QueryConfig;

/// The minimal planning time of a tested statement, in hundredths of a second of processor time:
/// long enough to show an early end.
const LONG: u64 = 60;
/// An ended statement may take at most the planning time divided by this: some steps run to their
/// end before the next check.
const PART: u64 = 2;
/// The longest step takes less than the planning time divided by this.
const STEPS: u64 = 6;
/// A step that is too long fails all attempts. A busy machine does not.
const ATTEMPTS: usize = 3;
/// DataFusion's rule `eliminate_cross_join` orders all joins in one step, which takes half of the
/// time. The number of joins is limited.
const ONE_STEP: &str = "joins";

/// The processor time of this process, in hundredths of a second.
fn processor() -> u64 {
    let figures = fs::read_to_string("/proc/self/stat").unwrap();
    let (_, figures) = figures.rsplit_once(") ").unwrap();
    figures.split(' ').skip(11).take(2).map(|figure| figure.parse::<u64>().unwrap()).sum()
}

fn joined(count: usize, separator: &str, part: impl Fn(usize) -> String) -> String {
    (0..count).map(part).collect::<Vec<_>>().join(separator)
}

/// Generates a statement of a given size.
type TextOf = fn(usize) -> String;

/// Statements with a planning time that grows with their size.
const KINDS: [(&str, TextOf); 8] = [
    ("conditions that all hold", |size| {
        format!("SELECT 1 FROM t WHERE {}", joined(size, " AND ", |at| format!("a <> {at}")))
    }),
    ("conditions of which one holds", |size| {
        format!("SELECT 1 FROM t WHERE {}", joined(size, " OR ", |at| format!("a = {at} AND b = {at}")))
    }),
    ("joins", |size| {
        let relations = joined(size, ", ", |at| format!("t t{at}"));
        format!("SELECT 1 FROM {relations} WHERE {}", joined(size, " AND ", |at| format!("t{at}.a = t0.b")))
    }),
    ("windows", |size| {
        let windows = joined(size, ", ", |at| format!("sum(a) OVER (PARTITION BY b % {} ORDER BY id)", at + 2));
        format!("SELECT {windows} FROM t")
    }),
    ("subqueries", |size| {
        let items = joined(size, ", ", |at| format!("(SELECT max(a) FROM t t{at} WHERE t{at}.id = t.id + {at})"));
        format!("SELECT {items} FROM t")
    }),
    ("lateral joins", |size| {
        let joins = joined(size, ", ", |at| format!("LATERAL (SELECT a FROM t t{at} WHERE t{at}.id = t.id) l{at}"));
        format!("SELECT 1 FROM t, {joins}")
    }),
    ("WITH queries", |size| {
        let queries =
            joined(size, ", ", |at| format!("c{} AS (SELECT id + 1 AS id FROM c{at} WHERE id > {at})", at + 1));
        format!("WITH c0 AS (SELECT id FROM t), {queries} SELECT * FROM c{size}")
    }),
    ("parts of a pattern", |size| format!("SELECT repeat('a', {}) LIKE repeat('%a_', {size}) || 'b'", size * 1_000)),
];

/// The delays after the end of a statement that are too long, for one kind of statement. No text is
/// planned twice.
#[allow(clippy::print_stdout, reason = "the figures of a test")]
fn late_of(member: &mut Member, name: &str, text_of: TextOf, attempt: usize) -> Vec<String> {
    let text_of = |size| format!("{} -- attempt {attempt},", text_of(size));
    let mut late = Vec::new();
    let mut size = 64;
    let (size, whole) = loop {
        let before = processor();
        let told = member.try_rows(&text_of(size), &[]);
        let taken = processor() - before;
        match told {
            // The statement reaches a limit before its planning takes long.
            Err(error) => {
                assert!(["54000", "54001", "42601", "54011"].contains(&error.sqlstate()), "{size} {name}: {error}");
                break (size, None);
            }
            Ok(_) if taken >= LONG => break (size, Some(taken)),
            Ok(_) => size *= 2,
        }
    };
    println!("{size} {name}: {whole:?}");
    let Some(whole) = whole else { return late };
    let text = format!("{} again", text_of(size));
    let before = processor();
    let (sender, receiver) = mpsc::channel();
    let statement = Statement { timeout_ms: Some(1), ..member.statement(&text, &[]) };
    let running = member.engine.execute(&statement, Box::new(move |result| sender.send(result).unwrap()));
    let error = receiver.recv().unwrap().err().unwrap();
    assert_eq!(error.sqlstate(), "57014", "{size} {name}: {error}");
    drop(running);
    member.describe(&format!("SELECT a + {size} FROM t -- {attempt}")).unwrap();
    let ended = processor() - before;
    println!("{size} {name}: {ended} of {whole}");
    if ended * PART > whole {
        late.push(format!("{size} {name} took {ended} of {whole} hundredths of a second after their end"));
    }
    // Checks that late steps are as short as early steps.
    for quarters in 1..if name == ONE_STEP { 2 } else { 4 } {
        let text = format!("{} {quarters} quarters", text_of(size));
        let before = processor();
        let (sender, receiver) = mpsc::channel();
        let allowed = whole * quarters / 4;
        let statement = Statement { timeout_ms: Some(allowed * 10), ..member.statement(&text, &[]) };
        let running = member.engine.execute(&statement, Box::new(move |result| drop(sender.send(result))));
        let error = receiver.recv().unwrap().err();
        drop(running);
        member.describe(&format!("SELECT b + {size} + {quarters} FROM t -- {attempt}")).unwrap();
        let ended = processor() - before;
        println!("{size} {name}: {ended} of {whole}, {allowed} allowed");
        if error.is_some() && ended > allowed + whole / STEPS {
            late.push(format!("{size} {name}, ended after {allowed} of {whole}: took {ended} hundredths of a second"));
        }
    }
    // The same for a description that its client has cancelled.
    let text = format!("{} described", text_of(size));
    let before = processor();
    let (sender, receiver) = mpsc::channel();
    let statement = member.statement(&text, &[]);
    let running = member.engine.describe(&statement, &[], Box::new(move |told| sender.send(told).unwrap()));
    running.cancel();
    let error = receiver.recv().unwrap().err().unwrap();
    assert_eq!(error.sqlstate(), "57014", "{size} {name}: {error}");
    let ended = processor() - before;
    if ended * PART > whole {
        late.push(format!("{size} {name} described: {ended} of {whole} hundredths of a second after their end"));
    }
    late
}

#[test]
fn planning_ends_with_its_statement() {
    let _alone = alone();
    let mut member = Member::of(Dialect::Postgres);
    let session = member.session.clone();
    // With one query thread, the description at the end waits until the ended statement has freed
    // the thread.
    member = Member { session, ..Member::with(QueryConfig { threads: Some(1), ..QueryConfig::default() }) };
    member.change("CREATE TABLE t (id int PRIMARY KEY, a int, b int)");
    for (name, text_of) in KINDS {
        let mut late = Vec::new();
        for attempt in 0..ATTEMPTS {
            late = late_of(&mut member, name, text_of, attempt);
            if late.is_empty() {
                break;
            }
        }
        assert!(late.is_empty(), "{late:#?}");
    }
}
