//! Counts and times statements, as a wrapper of the query engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use super::{Histogram, HistogramCounts, Metrics};
use crate::cluster::ReadView;
use crate::errors::GridError;
use crate::listeners::EntryFilter;
use crate::map::Map;
use crate::query::{
    ColumnMeta, Cursor, DescribeReply, EngineFigures, EntryProjection, MapQuery, Page, PageReply, ParameterType,
    PreparedQuery, QueryEngine, RowWriterReply, Running, SqlError, Statement, StatementReply, StatementResult,
    WriteMode,
};

/// The kinds of statements, by their first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum StatementKind {
    /// `SELECT`, and other statements that return rows and change nothing: `WITH`, `VALUES`,
    /// `TABLE`, `SHOW`, `EXPLAIN`.
    Select,
    /// `INSERT` and `SINK`.
    Insert,
    /// `UPDATE`.
    Update,
    /// `DELETE` and `TRUNCATE`.
    Delete,
    /// `COPY`.
    Copy,
    /// `CREATE`, `ALTER`, `DROP`.
    Schema,
    /// All other statements, for example `SET` and `BEGIN`.
    Other,
}

impl StatementKind {
    /// Every kind, in order.
    pub const ALL: [StatementKind; 7] = [
        StatementKind::Select,
        StatementKind::Insert,
        StatementKind::Update,
        StatementKind::Delete,
        StatementKind::Copy,
        StatementKind::Schema,
        StatementKind::Other,
    ];

    /// The name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            StatementKind::Select => "select",
            StatementKind::Insert => "insert",
            StatementKind::Update => "update",
            StatementKind::Delete => "delete",
            StatementKind::Copy => "copy",
            StatementKind::Schema => "schema",
            StatementKind::Other => "other",
        }
    }

    /// The kind of a statement, from its text.
    pub fn of(text: &str) -> StatementKind {
        const WORDS: [(&str, StatementKind); 16] = [
            ("select", StatementKind::Select),
            ("insert", StatementKind::Insert),
            ("update", StatementKind::Update),
            ("delete", StatementKind::Delete),
            ("with", StatementKind::Select),
            ("values", StatementKind::Select),
            ("table", StatementKind::Select),
            ("show", StatementKind::Select),
            ("explain", StatementKind::Select),
            ("sink", StatementKind::Insert),
            ("truncate", StatementKind::Delete),
            ("copy", StatementKind::Copy),
            ("create", StatementKind::Schema),
            ("alter", StatementKind::Schema),
            ("drop", StatementKind::Schema),
            ("refresh", StatementKind::Other),
        ];
        let rest = without_comments(text);
        let end = rest.find(|char: char| !char.is_ascii_alphabetic()).unwrap_or(rest.len());
        let word = rest.get(..end).unwrap_or_default();
        let found = WORDS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
        found.map_or(StatementKind::Other, |(_, kind)| *kind)
    }
}

/// The text of a statement, starting at its first word.
fn without_comments(text: &str) -> &str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|char: char| char.is_whitespace() || char == '(' || char == ';');
        if rest.starts_with("--") {
            rest = rest.split_once('\n').map_or("", |(_, rest)| rest);
        } else if rest.starts_with("/*") {
            rest = rest.split_once("*/").map_or("", |(_, rest)| rest);
        } else {
            return rest;
        }
    }
}

/// Statistics of one kind of statement.
#[derive(Clone, Debug)]
pub struct StatementFigures {
    /// The kind.
    pub kind: StatementKind,
    /// The number of statements that succeeded since the start.
    pub succeeded: u64,
    /// The number of statements that failed since the start.
    pub failed: u64,
    /// The durations of statements until their count or the first page of their rows was available.
    pub durations: HistogramCounts,
}

#[derive(Default)]
struct OfKind {
    succeeded: AtomicU64,
    failed: AtomicU64,
    durations: Histogram,
}

/// The counters of all kinds.
#[derive(Default)]
pub(crate) struct Statements {
    kinds: [OfKind; StatementKind::ALL.len()],
    running: AtomicUsize,
}

impl Statements {
    fn ended(&self, kind: StatementKind, started: Instant, is_success: bool) {
        let Some(of_kind) = self.kinds.get(kind as usize) else { return };
        let counter = if is_success { &of_kind.succeeded } else { &of_kind.failed };
        counter.fetch_add(1, Ordering::Relaxed);
        of_kind.durations.observe(started.elapsed());
    }

    pub(super) fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    pub(super) fn figures(&self) -> Vec<StatementFigures> {
        let figures = |(kind, of_kind): (StatementKind, &OfKind)| StatementFigures {
            kind,
            succeeded: of_kind.succeeded.load(Ordering::Relaxed),
            failed: of_kind.failed.load(Ordering::Relaxed),
            durations: of_kind.durations.counts(),
        };
        StatementKind::ALL.into_iter().zip(&self.kinds).map(figures).collect()
    }
}

/// A running statement. It ends when its count was returned, or its rows were read or the cursor
/// was dropped.
struct Run {
    metrics: Arc<Metrics>,
    kind: StatementKind,
    started: Instant,
    is_counted: bool,
}

impl Run {
    fn begin(metrics: &Arc<Metrics>, kind: StatementKind) -> Run {
        metrics.statements.running.fetch_add(1, Ordering::Relaxed);
        Run { metrics: metrics.clone(), kind, started: Instant::now(), is_counted: false }
    }

    /// Counts the statement once, with its duration until now.
    fn count(&mut self, is_success: bool) {
        if !std::mem::replace(&mut self.is_counted, true) {
            self.metrics.statements.ended(self.kind, self.started, is_success);
        }
    }
}

/// A statement that is dropped before its first result counts as failed.
impl Drop for Run {
    fn drop(&mut self) {
        self.count(false);
        self.metrics.statements.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A cursor of a statement, which is counted with its first page and runs until its last page.
struct MeteredCursor {
    cursor: Box<dyn Cursor>,
    run: Option<Run>,
}

impl MeteredCursor {
    fn new(cursor: Box<dyn Cursor>, mut run: Option<Run>, page: &Result<Page, SqlError>) -> MeteredCursor {
        if let Some(run) = &mut run {
            run.count(page.is_ok());
        }
        let goes_on = page.as_ref().is_ok_and(|page| !page.last);
        MeteredCursor { cursor, run: run.filter(|_| goes_on) }
    }
}

impl Cursor for MeteredCursor {
    fn columns(&self) -> &Arc<[ColumnMeta]> {
        self.cursor.columns()
    }

    fn is_infinite(&self) -> bool {
        self.cursor.is_infinite()
    }

    fn page_now(&mut self, rows_max: usize) -> Option<Result<Page, SqlError>> {
        let page = self.cursor.page_now(rows_max)?;
        if let Some(run) = &mut self.run {
            run.count(page.is_ok());
        }
        if page.as_ref().map_or(true, |page| page.last) {
            self.run = None;
        }
        Some(page)
    }

    fn page(self: Box<Self>, rows_max: usize, reply: PageReply) {
        let MeteredCursor { cursor, run } = *self;
        let reply = Box::new(move |cursor: Box<dyn Cursor>, page: Result<Page, SqlError>| {
            reply(Box::new(MeteredCursor::new(cursor, run, &page)), page);
        });
        cursor.page(rows_max, reply);
    }
}

/// An engine that counts and times statements, and forwards all calls to the inner engine.
pub(crate) struct Metered {
    engine: Arc<dyn QueryEngine>,
    metrics: Arc<Metrics>,
}

impl Metered {
    pub(crate) fn new(engine: Arc<dyn QueryEngine>, metrics: Arc<Metrics>) -> Metered {
        Metered { engine, metrics }
    }
}

impl QueryEngine for Metered {
    fn execute_short(&self, statement: &Statement<'_>) -> Option<Result<StatementResult, SqlError>> {
        let started = Instant::now();
        let result = self.engine.execute_short(statement);
        if let Some(result) = &result {
            self.metrics.statements.ended(StatementKind::of(statement.text), started, result.is_ok());
        }
        result
    }

    fn execute(&self, statement: &Statement<'_>, reply: StatementReply) -> Running {
        let mut run = Run::begin(&self.metrics, StatementKind::of(statement.text));
        let reply = Box::new(move |result: Result<StatementResult, SqlError>| {
            reply(match result {
                Ok(StatementResult::Rows(cursor)) => {
                    Ok(StatementResult::Rows(Box::new(MeteredCursor { cursor, run: Some(run) })))
                }
                other => {
                    run.count(other.is_ok());
                    drop(run);
                    other
                }
            });
        });
        self.engine.execute(statement, reply)
    }

    fn describe(&self, statement: &Statement<'_>, types: &[Option<ParameterType>], reply: DescribeReply) -> Running {
        self.engine.describe(statement, types, reply)
    }

    fn row_writer(&self, statement: &Statement<'_>, mode: WriteMode, reply: RowWriterReply) {
        let mut run = Run::begin(&self.metrics, StatementKind::of(statement.text));
        let reply = Box::new(move |result: Result<_, SqlError>| {
            run.count(result.is_ok());
            drop(run);
            reply(result);
        });
        self.engine.row_writer(statement, mode, reply);
    }

    fn mapping_ddl(&self, map: &str) -> Option<String> {
        self.engine.mapping_ddl(map)
    }

    fn prepare(
        &self,
        map: &Arc<Map>,
        query: MapQuery<'_>,
        view: ReadView,
    ) -> Result<Box<dyn PreparedQuery>, GridError> {
        self.engine.prepare(map, query, view)
    }

    fn filter(&self, map: &Arc<Map>, predicate: &[u8]) -> Result<Arc<dyn EntryFilter>, GridError> {
        self.engine.filter(map, predicate)
    }

    fn projection(&self, map: &Arc<Map>, projection: &[u8]) -> Result<Arc<dyn EntryProjection>, GridError> {
        self.engine.projection(map, projection)
    }

    fn run_later(&self, job: Box<dyn FnOnce() + Send>) {
        self.engine.run_later(job);
    }

    fn figures(&self) -> EngineFigures {
        self.engine.figures()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_known_by_their_first_word() {
        for (text, kind) in [
            ("SELECT 1", StatementKind::Select),
            (" \n(select 1)", StatementKind::Select),
            ("/* a */ -- b\n insert into t values (1)", StatementKind::Insert),
            ("with x as (select 1) select * from x", StatementKind::Select),
            ("CREATE TABLE t (a int)", StatementKind::Schema),
            ("begin", StatementKind::Other),
            ("-- nothing", StatementKind::Other),
            ("", StatementKind::Other),
        ] {
            assert_eq!(StatementKind::of(text), kind, "{text}");
        }
    }
}
