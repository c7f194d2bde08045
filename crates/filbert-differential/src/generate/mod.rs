//! Generates statements from a seed: schemas, rows, queries, and changes that PostgreSQL mostly
//! accepts.
//!
//! ```text
//! schema (tables, rows) ──► scope (visible names) ──► expression ──► query ──► change
//!                                        functions.txt ──────────┘
//! ```
//!
//! Expressions are typed and generated from the table `functions.txt`. Queries have known result
//! types, so that they can be nested. A query with a limit has a total order, so that its rows are
//! the same on every server.

mod change;
mod expression;
pub(crate) mod functions;
pub(crate) mod partition;
mod query;
mod report;
pub(crate) mod schema;
mod select;
mod values;

use crate::random::Random;
use crate::tree::{Dialect, Expr, Statement, Type};
use functions::Functions;
use schema::Schema;

/// The names that a part of a statement can use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// Columns, and other expressions that can be repeated, such as GROUP BY keys.
    names: Vec<Expr>,
    /// Columns that identify the rows of FROM.
    unique: Vec<Expr>,
    /// The scope of aggregate arguments, where aggregates are permitted.
    inner: Option<Box<Scope>>,
    /// Whether window functions are permitted.
    has_windows: bool,
}

/// A generator of statements.
pub(crate) struct Generator<'a> {
    pub(crate) random: Random,
    functions: &'a Functions,
    schema: &'a Schema,
    /// The percentage of unusual literals. It is chosen for each statement.
    odd_percent: usize,
    /// The number of queries that this statement may still contain.
    queries_left: usize,
    /// The counter for names that are unique within a statement.
    named: usize,
    /// The common table expressions in scope: their names and columns.
    common: Vec<(String, Vec<(String, Type)>)>,
}

impl<'a> Generator<'a> {
    pub(crate) fn new(random: Random, functions: &'a Functions, schema: &'a Schema) -> Generator<'a> {
        Generator { random, functions, schema, odd_percent: 0, queries_left: 0, named: 0, common: Vec::new() }
    }

    fn begin(&mut self) {
        self.odd_percent = if self.random.chance(40) { 15 } else { 0 };
        self.queries_left = if self.is_postgres() { self.random.below(4) } else { 0 };
        self.named = 0;
        self.common.clear();
    }

    fn is_postgres(&self) -> bool {
        self.functions.dialect == Dialect::Postgres
    }

    /// Chooses any type.
    fn any_type(&mut self) -> Type {
        self.random.pick(self.functions.dialect.types()).copied().unwrap_or(Type::Int4)
    }

    /// Generates a query.
    pub(crate) fn a_query(&mut self) -> Statement {
        self.begin();
        Statement::Query(self.top_query())
    }

    /// Generates a change of a table.
    pub(crate) fn a_change(&mut self) -> Statement {
        self.begin();
        self.change()
    }

    /// Returns a name that is unique within this statement.
    fn name(&mut self, prefix: &str) -> String {
        self.named += 1;
        format!("{prefix}{}", self.named)
    }
}
