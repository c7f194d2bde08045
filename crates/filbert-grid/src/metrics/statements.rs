//! Statements counted and timed on their way to the engine.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use filbert_data::FieldType;

use super::{Histogram, HistogramCounts, Metrics};
use crate::query::{
    DescribeReply, EngineFigures, EntryFilter, EntryProjection, MapQuery, PreparedQuery, QueryEngine, RowWriterReply,
    Running, SqlError, Statement, StatementReply, StatementResult, WriteMode,
};
use crate::{GridError, Map};

/// Statements by their first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum StatementKind {
    /// `SELECT`, and what else has rows and changes nothing: `WITH`, `VALUES`, `TABLE`, `SHOW`, `EXPLAIN`.
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
    /// Everything else: `SET`, `BEGIN` and the like.
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

    /// The kind of a statement.
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

/// A statement from its first word on.
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

/// Figures of one kind of statement.
#[derive(Clone, Debug)]
pub struct StatementFigures {
    /// The kind.
    pub kind: StatementKind,
    /// Statements that gave a result since the start.
    pub succeeded: u64,
    /// Statements that gave an error since the start.
    pub failed: u64,
    /// How long each took until its result began: all rows that follow are apart.
    pub durations: HistogramCounts,
}

#[derive(Default)]
struct OfKind {
    succeeded: AtomicU64,
    failed: AtomicU64,
    durations: Histogram,
}

/// Counts of all kinds.
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

/// A statement that runs, until its reply is called or dropped.
struct Run {
    metrics: Arc<Metrics>,
    kind: StatementKind,
    started: Instant,
}

impl Run {
    fn begin(metrics: &Arc<Metrics>, kind: StatementKind) -> Run {
        metrics.statements.running.fetch_add(1, Ordering::Relaxed);
        Run { metrics: metrics.clone(), kind, started: Instant::now() }
    }

    fn end<T>(self, result: &Result<T, SqlError>) {
        self.metrics.statements.ended(self.kind, self.started, result.is_ok());
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.metrics.statements.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An engine whose statements are counted and timed. It passes everything on.
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
        let run = Run::begin(&self.metrics, StatementKind::of(statement.text));
        let reply = Box::new(move |result: Result<StatementResult, SqlError>| {
            run.end(&result);
            reply(result);
        });
        self.engine.execute(statement, reply)
    }

    fn describe(&self, statement: &Statement<'_>, types: &[Option<FieldType>], reply: DescribeReply) {
        self.engine.describe(statement, types, reply);
    }

    fn row_writer(&self, statement: &Statement<'_>, mode: WriteMode, reply: RowWriterReply) {
        let run = Run::begin(&self.metrics, StatementKind::of(statement.text));
        let reply = Box::new(move |result: Result<_, SqlError>| {
            run.end(&result);
            reply(result);
        });
        self.engine.row_writer(statement, mode, reply);
    }

    fn mapping_ddl(&self, map: &str) -> Option<String> {
        self.engine.mapping_ddl(map)
    }

    fn prepare(&self, map: &Arc<Map>, query: MapQuery<'_>) -> Result<Box<dyn PreparedQuery>, GridError> {
        self.engine.prepare(map, query)
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
