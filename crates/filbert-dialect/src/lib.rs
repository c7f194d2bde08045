//! From the text of a statement to what it asks for, in the dialects of Hazelcast, PostgreSQL and CrateDB.
//!
//! The crate knows sqlparser, values and their types. It must not know DataFusion, maps, the catalog, or whether a name that a statement
//! writes is there: [`Places`] tells the schemas of names.
//!
//! ```text
//! text ── limits ──► tokens ── head of the statement ──► own grammar (mappings, tables, indexes, views, COPY, SHOW, session)
//!                                                   └──► sqlparser with a dialect's grammar ── rewrite ──► query, INSERT, UPDATE, DELETE
//! ```
//!
//! | here | what |
//! |---|---|
//! | `tokens`, `statements` | tokens of a text, positions within it, the head of a statement |
//! | `grammar`, `hooks`, `precedence` | what sqlparser is told of each dialect |
//! | `tables`, `alter`, `table_statements`, `declared`, `declared_types` | statements about tables; the types that columns are declared with |
//! | `changes`, `copy`, `session` | changes of rows, `COPY`, settings and transactions |
//! | `rewrite`, `json`, `windows`, `types` | what DataFusion would not know, as what it knows |
//! | `server` | the same for PostgreSQL and CrateDB |
//! | `names`, `places`, `quoting` | names of tables, the schemas of names without one, names in quotes |
//! | [`calls`], [`system`] | names of functions and system relations that statements are rewritten by |
//! | [`walk`] | walks over syntax trees |
//!
//! Names keep their case in Hazelcast's dialect; in the others, those without quotes are in lower case. `?` become `$1`, `$2`, .. in the
//! order of the text. Everything that DataFusion would not know (JSON functions, table functions in `TABLE(..)`, types) is rewritten to
//! what it knows, so that planning needs no more of the dialect.

mod alter;
pub mod arrays;
pub mod calls;
mod changes;
mod copy;
mod declared;
mod declared_types;
mod grammar;
mod hooks;
mod json;
mod like;
mod names;
mod places;
mod precedence;
mod quoting;
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
pub mod walk;
mod windows;

pub use alter::{AlterAction, AlterTable, Comment};
pub use copy::{Copy, FileFormat, Place};
pub use declared::{DeclaredType, ObjectPolicy};
pub use declared_types::{Counting, member_of, parse_declared_type};
pub use grammar::{HazelcastDialect, grammar};
pub use json::call;
pub use like::{escaped_pattern, lower, lower_of};
pub use names::{CATALOGS, DEFAULT_SCHEMAS, REPEATED, catalog_name, catalog_of, in_schema, schema_of};
pub use places::{DefaultPlace, Places};
pub use quoting::quote_ident;
pub use rewrite::{like_pattern, narrow, narrow_values};
pub use server::{ROWS, columns_of_row, is_aggregate};
pub use session::{Command as SessionCommand, Job, Modes};
pub use table_statements::TableStatement;
pub use tables::{ColumnDefinition, Constraint, ConstraintKind, CreateTable, Expression, Like};
pub use tokens::{at, differ_in_literals_only, located, place_of_relation};
pub use types::sql_type;

use filbert_data::FieldType;
use filbert_grid::query::{Dialect, SqlError};
use sqlparser::ast::{Expr, Parens, Query, SelectItem, SetExpr, TableWithJoins};

/// What a statement may have at most.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of its text.
    pub text_bytes_max: usize,
    /// Words, numbers and signs: what a parser keeps of each is some hundred bytes, whatever its length.
    pub tokens_max: usize,
    /// Parameters.
    pub parameters_max: usize,
    /// Expressions and queries within each other.
    pub depth_max: usize,
    /// Operators of one expression beside each other, `AND` and `OR` apart; and `UNION`s, joins of one query.
    pub operators_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            text_bytes_max: 10 << 20,
            tokens_max: 2_000_000,
            parameters_max: 10_000,
            depth_max: 128,
            operators_max: 500,
        }
    }
}

/// A statement that was understood.
#[derive(Clone, Debug, PartialEq)]
pub enum Parsed {
    /// `CREATE MAPPING`.
    CreateMapping(CreateMapping),
    /// `DROP MAPPING`.
    DropMapping {
        /// The mapping.
        name: String,
        /// Whether its absence is no error.
        if_exists: bool,
    },
    /// `CREATE INDEX`.
    CreateIndex(CreateIndex),
    /// `DROP INDEX`.
    DropIndex {
        /// The index.
        name: String,
        /// The map; `None` = the one that has an index of the name.
        map: Option<String>,
        /// Whether its absence is no error.
        if_exists: bool,
    },
    /// `CREATE VIEW`.
    CreateView {
        /// The view.
        name: String,
        /// Whether it takes the place of one that is there.
        or_replace: bool,
        /// Whether it is no error that it is there.
        if_not_exists: bool,
        /// Its query as written.
        query_text: String,
        /// Its query.
        query: Box<Query>,
    },
    /// `DROP VIEW`.
    DropView {
        /// The view.
        name: String,
        /// Whether its absence is no error.
        if_exists: bool,
    },
    /// A statement about tables.
    Table(TableStatement),
    /// `COPY`.
    Copy(Box<Copy>),
    /// `SHOW` of what the catalog has.
    Show(ShowWhat),
    /// What concerns the session and its transactions.
    Session(SessionCommand),
    /// `INSERT INTO` or `SINK INTO`.
    Insert(Insert),
    /// `UPDATE`.
    Update(Update),
    /// `DELETE FROM`.
    Delete(Delete),
    /// Everything that has rows.
    Query(Box<Query>),
    /// `EXPLAIN`.
    Explain {
        /// Whether it is run.
        analyze: bool,
        /// What is explained.
        statement: Box<Parsed>,
    },
}

impl Parsed {
    /// What a statement that changes rows tells of them.
    pub fn returning(&self) -> Option<&[SelectItem]> {
        match self {
            Parsed::Insert(insert) => insert.returning.as_deref(),
            Parsed::Update(update) => update.returning.as_deref(),
            Parsed::Delete(delete) => delete.returning.as_deref(),
            _ => None,
        }
    }

    /// The table or mapping whose rows a statement changes, and the words by which PostgreSQL names such statements.
    pub fn changed_table(&self) -> Option<(&str, &'static str)> {
        match self {
            Parsed::Insert(insert) => Some((&insert.table, "INSERT")),
            Parsed::Update(update) => Some((&update.table, "UPDATE")),
            Parsed::Delete(delete) => Some((&delete.table, "DELETE")),
            _ => None,
        }
    }

    /// Whether a statement that changes rows tells of them.
    pub fn tells_rows(&self) -> bool {
        self.returning().is_some()
    }
}

/// A statement and how many parameters it has.
#[derive(Clone, Debug, PartialEq)]
pub struct ParsedStatement {
    /// The statement.
    pub parsed: Parsed,
    /// Parameters, `$1` to this one.
    pub parameters: usize,
}

/// `CREATE [OR REPLACE] [EXTERNAL] MAPPING`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateMapping {
    /// The mapping.
    pub name: String,
    /// Whether it takes the place of one that is there.
    pub or_replace: bool,
    /// Whether it is no error that it is there.
    pub if_not_exists: bool,
    /// The map, if it is not of the mapping's name.
    pub external_name: Option<String>,
    /// The columns; empty = they follow from a stored entry or the format.
    pub columns: Vec<ColumnDeclaration>,
    /// The connector, as written: only `IMap` can be.
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

/// The kinds of indexes that statements name.
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
    /// Its name; `None` = made of the map and the columns.
    pub name: Option<String>,
    /// The mapping whose map is indexed.
    pub map: String,
    /// Its kind.
    pub kind: IndexType,
    /// The columns.
    pub attributes: Vec<String>,
    /// Whether no two rows may have the same values.
    pub unique: bool,
    /// Whether it is no error that it is there.
    pub if_not_exists: bool,
    /// The options, in the order of the text.
    pub options: Vec<(String, String)>,
}

/// What `SHOW` shows.
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
    /// The indexes of a mapping, of all mappings without one.
    Indexes(Option<String>),
}

/// `INSERT INTO` or `SINK INTO`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Insert {
    /// Whether entries that are there are overwritten.
    pub sink: bool,
    /// The table or mapping.
    pub table: String,
    /// The name that it has within the statement, if another.
    pub alias: Option<String>,
    /// The columns; empty = all that are not hidden.
    pub columns: Vec<String>,
    /// The rows; `None` = one row of defaults.
    pub source: Option<Box<Query>>,
    /// What is done with rows whose key is there; `None` = an error.
    pub on_conflict: Option<OnConflict>,
    /// What is told of each row.
    pub returning: Option<Vec<SelectItem>>,
}

impl Insert {
    /// The rows of `VALUES`, if there is nothing else to its source.
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
    /// Which key it is about.
    pub target: ConflictTarget,
    /// What is set in the row that is there; `None` = nothing is done.
    pub update: Option<Vec<(String, Expr)>>,
    /// Which of the rows that are there are updated; `None` = all.
    pub selection: Option<Expr>,
}

/// Which key an `ON CONFLICT` is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConflictTarget {
    /// Any.
    Any,
    /// The one of these columns.
    Columns(Vec<String>),
    /// The one of this name.
    Constraint(String),
}

/// `UPDATE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// The table or mapping.
    pub table: String,
    /// The name that it has within the statement, if another.
    pub alias: Option<String>,
    /// Columns and what they become.
    pub assignments: Vec<(String, Expr)>,
    /// Tables that tell which rows, and what they become: `FROM`.
    pub from: Vec<TableWithJoins>,
    /// Which rows; `None` = all.
    pub selection: Option<Expr>,
    /// What is told of each row.
    pub returning: Option<Vec<SelectItem>>,
}

/// `DELETE FROM`.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// The table or mapping.
    pub table: String,
    /// The name that it has within the statement, if another.
    pub alias: Option<String>,
    /// Tables that tell which rows: `USING`.
    pub using: Vec<TableWithJoins>,
    /// Which rows; `None` = all.
    pub selection: Option<Expr>,
    /// What is told of each row.
    pub returning: Option<Vec<SelectItem>>,
}

/// Understands one statement; `places` tells the schemas of names without one.
///
/// # Errors
/// It is beyond a limit, is not of the grammar, or asks for what is not served. Errors of the grammar tell line and column, from 1.
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
