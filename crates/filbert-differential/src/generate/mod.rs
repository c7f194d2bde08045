//! Statements from a seed: schemas, rows, queries and changes that PostgreSQL mostly accepts.
//!
//! ```text
//! schema (tables, rows) ──► scope (what a place can name) ──► expression ──► query ──► change
//!                                        functions.txt ──────────┘
//! ```
//!
//! Expressions are typed, and made from the table `functions.txt`; queries tell what they give, so that queries can stand
//! in queries. Where a query has a limit its order is total, so that its rows are the same everywhere.

mod change;
mod expression;
pub(crate) mod functions;
pub(crate) mod partition;
mod query;
pub(crate) mod schema;
mod select;
mod values;

use crate::random::Random;
use crate::tree::{Dialect, Expr, Statement, Type};
use functions::Functions;
use schema::Schema;

/// What a place in a statement can name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    /// Columns, and with them anything that can be repeated: keys of a GROUP BY.
    names: Vec<Expr>,
    /// Columns that tell the rows of FROM apart.
    unique: Vec<Expr>,
    /// What aggregates see, where they may stand.
    inner: Option<Box<Scope>>,
    /// Whether windows may stand here.
    has_windows: bool,
}

/// Makes statements.
pub(crate) struct Generator<'a> {
    pub(crate) random: Random,
    functions: &'a Functions,
    schema: &'a Schema,
    /// Of a hundred literals, so many are odd ones; each statement has its own share.
    odd_percent: usize,
    /// Queries that this statement may still hold.
    queries_left: usize,
    /// Numbers for names that are unique within a statement.
    named: usize,
    /// Queries of the WITH in scope: their names and columns.
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

    /// Any type.
    fn any_type(&mut self) -> Type {
        self.random.pick(self.functions.dialect.types()).copied().unwrap_or(Type::Int4)
    }

    /// A query.
    pub(crate) fn a_query(&mut self) -> Statement {
        self.begin();
        Statement::Query(self.top_query())
    }

    /// A change of a table.
    pub(crate) fn a_change(&mut self) -> Statement {
        self.begin();
        self.change()
    }

    /// A name that no other in this statement has.
    fn name(&mut self, prefix: &str) -> String {
        self.named += 1;
        format!("{prefix}{}", self.named)
    }
}
