//! Parses statements in the dialects of Hazelcast, PostgreSQL and CrateDB.
//!
//! The crate knows sqlparser, values and their types. It must not know DataFusion, maps, the
//! catalog, or which names exist: [`Places`] provides the schemas of names.
//!
//! ```text
//! text ─ limits ─► tokens ─ start of the statement ─► own grammar ─► mapping, table, view, ..
//!                                                └──► sqlparser ── rewrite ──► query, INSERT, ..
//! ```
//!
//! The own grammar covers mappings, tables, indexes, views, `COPY`, `SHOW` and the session.
//! sqlparser parses queries, `INSERT`, `UPDATE` and `DELETE` with the settings of a dialect.
//!
//! | module | content |
//! |---|---|
//! | `tokens`, `statements` | tokens, positions in the text, the start of a statement |
//! | `grammar`, `hooks`, `precedence` | settings of sqlparser for each dialect |
//! | `tables`, `alter`, `table_statements` | statements about tables |
//! | `declared`, `declared_types` | declared types of columns |
//! | `unserved` | statements that are not served |
//! | `changes`, `copy`, `session` | changes of rows, `COPY`, settings and transactions |
//! | `rewrite`, `json`, `windows`, `types` | rewrites for DataFusion |
//! | `server` | rewrites for the dialects of PostgreSQL and CrateDB |
//! | `names`, `places`, `quoting` | names of tables, their schemas, quoted names |
//! | `reads`, `with_order` | relations that a query reads, the order of `WITH RECURSIVE` |
//! | [`calls`], [`system`] | names of functions and system relations for rewritten statements |
//! | [`walk`], `work` | walks over syntax trees, limits of the work for a statement |
//!
//! Names keep their case in Hazelcast's dialect; in the others, unquoted names are in lower case.
//! Each `?` becomes `$1`, `$2`, .. in the order of the text. Constructs that DataFusion does not
//! know (JSON functions, table functions in `TABLE(..)`, types) are rewritten to known ones, so
//! planning needs no further knowledge of the dialect.

mod alter;
pub mod arrays;
pub mod calls;
mod changes;
mod copy;
mod declared;
mod declared_types;
mod grammar;
mod hidden;
mod hooks;
mod json;
mod like;
mod names;
mod places;
mod precedence;
mod quoting;
mod reads;
mod rewrite;
mod served;
mod server;
mod session;
mod statements;
pub mod system;
mod table_statements;
mod tables;
mod tokens;
mod types;
mod unserved;
pub mod walk;
mod windows;
mod with_order;
mod work;

pub use alter::{AlterAction, AlterTable, Comment};
pub use copy::{Copy, FileFormat, Place};
pub use declared::{DeclaredType, ObjectPolicy};
pub use declared_types::{Counting, member_of, parse_declared_type};
pub use grammar::{HazelcastDialect, grammar};
pub use hidden::without_literals;
pub use json::call;
pub use like::{escaped_pattern, lower, lower_of};
pub use names::{CATALOGS, DEFAULT_SCHEMAS, REPEATED, catalog_name, catalog_of, in_schema, schema_of};
pub use places::{DefaultPlace, Places};
pub use quoting::quote_ident;
pub use reads::Reads;
pub use rewrite::{as_numeric, like_pattern, narrow, narrow_values, query_of};
pub use server::{ROWS, columns_of_row, is_aggregate, is_aggregate_name};
pub use session::{Command as SessionCommand, Job, Modes};
pub use table_statements::TableStatement;
pub use tables::{ColumnDefinition, Constraint, ConstraintKind, CreateTable, Expression, Like};
pub use tokens::{at, differ_in_literals_only, located, place_of_relation, word_count};
pub use types::sql_type;
pub use with_order::reads_one_behind;

use filbert_data::FieldType;
use filbert_grid::query::{Dialect, SqlError};
use sqlparser::ast::{Expr, Parens, Query, SelectItem, SetExpr, TableWithJoins, With};

/// The limits of a statement.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The maximum size of its text, in bytes.
    pub text_bytes_max: usize,
    /// The maximum number of words, numbers and symbols. A parser uses some hundred bytes for each
    /// of them, whatever its length.
    pub tokens_max: usize,
    /// The maximum number of parameters.
    pub parameters_max: usize,
    /// The maximum depth of nested expressions and queries.
    pub depth_max: usize,
    /// The maximum number of operators in a chain of one expression, except `AND` and `OR`, and of
    /// `UNION`s or joins of one query.
    pub operators_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            text_bytes_max: 10 << 20,
            tokens_max: 2_000_000,
            parameters_max: 65_535,
            depth_max: 128,
            operators_max: 500,
        }
    }
}

/// A parsed statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Parsed {
    /// `CREATE MAPPING`.
    CreateMapping(CreateMapping),
    /// `DROP MAPPING`.
    DropMapping {
        /// The mapping.
        name: String,
        /// Whether a missing mapping is no error.
        if_exists: bool,
    },
    /// `CREATE INDEX`.
    CreateIndex(CreateIndex),
    /// `DROP INDEX`.
    DropIndex {
        /// The index.
        name: String,
        /// The map; `None` = the map that has an index of this name.
        map: Option<String>,
        /// Whether a missing index is no error.
        if_exists: bool,
    },
    /// `CREATE VIEW`.
    CreateView {
        /// The view.
        name: String,
        /// Whether it replaces an existing view.
        or_replace: bool,
        /// Whether an existing view is no error.
        if_not_exists: bool,
        /// Its query, as written. If the statement names the columns, the query is within one
        /// that gives them these names.
        query_text: String,
        /// Its query.
        query: Box<Query>,
    },
    /// `DROP VIEW`.
    DropView {
        /// The views.
        names: Vec<String>,
        /// Whether a missing view is no error.
        if_exists: bool,
        /// Whether views that read them are dropped too.
        cascade: bool,
    },
    /// A statement about tables.
    Table(TableStatement),
    /// `COPY`.
    Copy(Box<Copy>),
    /// `SHOW` of the catalog.
    Show(ShowWhat),
    /// A statement about the session and its transactions.
    Session(SessionCommand),
    /// `INSERT INTO` or `SINK INTO`.
    Insert(Insert),
    /// `UPDATE`.
    Update(Update),
    /// `DELETE FROM`.
    Delete(Delete),
    /// A statement with rows.
    Query(Box<Query>),
    /// `EXPLAIN`.
    Explain {
        /// Whether the statement runs.
        analyze: bool,
        /// The explained statement.
        statement: Box<Parsed>,
    },
}

impl Parsed {
    /// The `RETURNING` clause of a statement that changes rows.
    pub fn returning(&self) -> Option<&[SelectItem]> {
        match self {
            Parsed::Insert(insert) => insert.returning.as_deref(),
            Parsed::Update(update) => update.returning.as_deref(),
            Parsed::Delete(delete) => delete.returning.as_deref(),
            _ => None,
        }
    }

    /// The table or mapping that a statement changes, and PostgreSQL's name of the statement.
    pub fn changed_table(&self) -> Option<(&str, &'static str)> {
        match self {
            Parsed::Insert(insert) => Some((&insert.table, "INSERT")),
            Parsed::Update(update) => Some((&update.table, "UPDATE")),
            Parsed::Delete(delete) => Some((&delete.table, "DELETE")),
            _ => None,
        }
    }

    /// Whether a statement that changes rows has a `RETURNING` clause.
    pub fn tells_rows(&self) -> bool {
        self.returning().is_some()
    }
}

/// A statement and its number of parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedStatement {
    /// The statement.
    pub parsed: Parsed,
    /// The number of parameters.
    pub parameters: usize,
}

/// `CREATE [OR REPLACE] [EXTERNAL] MAPPING`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateMapping {
    /// The mapping.
    pub name: String,
    /// Whether it replaces an existing mapping.
    pub or_replace: bool,
    /// Whether an existing mapping is no error.
    pub if_not_exists: bool,
    /// The map, if its name differs from the mapping's.
    pub external_name: Option<String>,
    /// The columns; empty = inferred from a stored entry or the format.
    pub columns: Vec<ColumnDeclaration>,
    /// The connector, as written: only `IMap` is supported.
    pub connector: String,
    /// The options, in the order of the text.
    pub options: Vec<(String, String)>,
}

/// A column of `CREATE MAPPING`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnDeclaration {
    /// Its name.
    pub name: String,
    /// Its type.
    pub field_type: FieldType,
    /// `EXTERNAL NAME`.
    pub external_name: Option<String>,
}

/// The index types of statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndexType {
    /// Equality and ranges.
    Sorted,
    /// Equality.
    Hash,
    /// Few distinct values.
    Bitmap,
}

/// `CREATE INDEX`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreateIndex {
    /// Its name; `None` = generated from the map and the columns.
    pub name: Option<String>,
    /// The mapping of the indexed map.
    pub map: String,
    /// Its kind.
    pub kind: IndexType,
    /// The columns.
    pub attributes: Vec<String>,
    /// Whether the index is unique.
    pub unique: bool,
    /// Whether an existing index is no error.
    pub if_not_exists: bool,
    /// The options, in the order of the text.
    pub options: Vec<(String, String)>,
}

/// The subject of `SHOW`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShowWhat {
    /// The mappings.
    Mappings,
    /// The views.
    Views,
    /// The jobs: there are none.
    Jobs,
    /// The data connections: there are none.
    DataConnections,
    /// The resources of a data connection.
    Resources(String),
    /// The indexes of a mapping; `None` = of all mappings.
    Indexes(Option<String>),
}

/// `INSERT INTO` or `SINK INTO`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Insert {
    /// Whether existing entries are overwritten.
    pub sink: bool,
    /// The table or mapping.
    pub table: String,
    /// Its name within the statement, if different.
    pub alias: Option<String>,
    /// The columns; empty = all that are not hidden.
    pub columns: Vec<String>,
    /// The rows; `None` = one row of defaults.
    pub source: Option<Box<Query>>,
    /// The action for rows with an existing key; `None` = an error.
    pub on_conflict: Option<OnConflict>,
    /// The `RETURNING` clause.
    pub returning: Option<Vec<SelectItem>>,
}

impl Insert {
    /// The rows of `VALUES`, if the source consists of nothing else.
    pub fn values(&self) -> Option<&[Parens<Vec<Expr>>]> {
        let query = self.source.as_ref()?;
        let bare =
            query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
        match &*query.body {
            SetExpr::Values(values) if bare => Some(&values.rows),
            _ => None,
        }
    }
}

/// `ON CONFLICT`.
#[derive(Clone, Debug, PartialEq)]
pub struct OnConflict {
    /// The key that it refers to.
    pub target: ConflictTarget,
    /// The assignments in the existing row; `None` = nothing is done.
    pub update: Option<Vec<(String, Expr)>>,
    /// The condition on the existing rows; `None` = all are updated.
    pub selection: Option<Expr>,
}

/// The key that an `ON CONFLICT` refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConflictTarget {
    /// Any key.
    Any,
    /// The key with these columns.
    Columns(Vec<String>),
    /// The key with this constraint name.
    Constraint(String),
}

/// `UPDATE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// The queries that it may read by name: `WITH`.
    pub with: Option<With>,
    /// The table or mapping.
    pub table: String,
    /// Its name within the statement, if different.
    pub alias: Option<String>,
    /// Columns and their new values.
    pub assignments: Vec<(String, Expr)>,
    /// Further tables for the condition and the new values: `FROM`.
    pub from: Vec<TableWithJoins>,
    /// The condition on the rows; `None` = all rows.
    pub selection: Option<Expr>,
    /// The `RETURNING` clause.
    pub returning: Option<Vec<SelectItem>>,
}

/// `DELETE FROM`.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// The queries that it may read by name: `WITH`.
    pub with: Option<With>,
    /// The table or mapping.
    pub table: String,
    /// Its name within the statement, if different.
    pub alias: Option<String>,
    /// Further tables for the condition: `USING`.
    pub using: Vec<TableWithJoins>,
    /// The condition on the rows; `None` = all rows.
    pub selection: Option<Expr>,
    /// The `RETURNING` clause.
    pub returning: Option<Vec<SelectItem>>,
}

/// Parses one statement. `places` provides the schemas of names without one.
///
/// # Errors
/// The statement exceeds a limit, has a syntax error, or uses an unsupported feature. Syntax errors
/// report line and column, from 1.
pub fn parse(text: &str, dialect: Dialect, limits: &Limits, places: &dyn Places) -> Result<ParsedStatement, SqlError> {
    let tokenized = tokens::tokens(text, dialect, limits).map_err(|error| tokens::located(error, text, dialect));
    let (tokens, parameters) = tokenized?;
    let mut parsed =
        statements::statement(text, tokens, dialect, limits).map_err(|error| tokens::located(error, text, dialect))?;
    places::settle(&mut parsed, places);
    Ok(ParsedStatement { parsed, parameters })
}

#[cfg(test)]
mod tests;
