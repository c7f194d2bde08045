//! The dialect of SQL that Hazelcast's users write: a statement's text to what it asks for.
//!
//! ```text
//! text ── limits ──► tokens ── head of the statement ──► own grammar (mappings, indexes, views, SHOW)
//!                                                   └──► sqlparser with our dialect ── rewrite ──► query, INSERT, UPDATE, DELETE
//! ```
//!
//! Names keep their case in Hazelcast's dialect; in the others, those without quotes are in lower case. `?` become `$1`, `$2`, .. in the order of the text. Everything that DataFusion would not know (JSON functions,
//! table functions in `TABLE(..)`, types) is rewritten to what it knows, so that planning needs no more of the dialect.

mod alter;
mod changes;
mod copy;
mod declared_types;
mod grammar;
mod hooks;
mod json;
mod names;
mod places;
mod precedence;
mod rewrite;
mod served;
mod server;
mod session;
mod statements;
mod table_statements;
mod tables;
mod tokens;
mod types;
mod windows;

pub(crate) use alter::{AlterAction, AlterTable, Comment};
pub(crate) use copy::{Copy, FileFormat, Place};
pub(crate) use declared_types::{Counting, parse_declared_type};
pub(crate) use grammar::{HazelcastDialect, grammar};
pub(crate) use json::call;
pub(crate) use names::{CATALOGS, DEFAULT_SCHEMAS, catalog_name, in_schema, schema_of};
#[cfg(test)]
pub(crate) use places::DefaultPlace;
pub(crate) use places::Places;
pub(crate) use rewrite::{like_pattern, narrow, narrow_values};
pub(crate) use server::{ROWS, columns_of_row, is_aggregate};
pub(crate) use session::{Command as SessionCommand, Job, Modes};
pub(crate) use table_statements::TableStatement;
pub(crate) use tables::{ColumnDefinition, Constraint, ConstraintKind, CreateTable, Like};
pub(crate) use tokens::{at, differ_in_literals_only, located, place_of_relation};
pub(crate) use types::sql_type;

use datafusion::sql::sqlparser::ast::{Expr, Parens, Query, SelectItem, SetExpr, TableWithJoins};
use filbert_data::FieldType;
use filbert_grid::query::{Dialect, SqlError};

/// What a statement may have at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of its text.
    pub(crate) text_bytes_max: usize,
    /// Words, numbers and signs: what a parser keeps of each is some hundred bytes, whatever its length.
    pub(crate) tokens_max: usize,
    /// Parameters.
    pub(crate) parameters_max: usize,
    /// Expressions and queries within each other.
    pub(crate) depth_max: usize,
    /// Operators of one expression beside each other, `AND` and `OR` apart; and `UNION`s, joins of one query.
    pub(crate) operators_max: usize,
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
pub(crate) enum Parsed {
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
    pub(crate) fn returning(&self) -> Option<&[SelectItem]> {
        match self {
            Parsed::Insert(insert) => insert.returning.as_deref(),
            Parsed::Update(update) => update.returning.as_deref(),
            Parsed::Delete(delete) => delete.returning.as_deref(),
            _ => None,
        }
    }

    /// The table or mapping whose rows a statement changes, and the words by which PostgreSQL names such statements.
    pub(crate) fn changed_table(&self) -> Option<(&str, &'static str)> {
        match self {
            Parsed::Insert(insert) => Some((&insert.table, "INSERT")),
            Parsed::Update(update) => Some((&update.table, "UPDATE")),
            Parsed::Delete(delete) => Some((&delete.table, "DELETE")),
            _ => None,
        }
    }

    /// Whether a statement that changes rows tells of them.
    pub(crate) fn tells_rows(&self) -> bool {
        self.returning().is_some()
    }
}

/// A statement and how many parameters it has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ParsedStatement {
    /// The statement.
    pub(crate) parsed: Parsed,
    /// Parameters, `$1` to this one.
    pub(crate) parameters: usize,
}

/// `CREATE [OR REPLACE] [EXTERNAL] MAPPING`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CreateMapping {
    /// The mapping.
    pub(crate) name: String,
    /// Whether it takes the place of one that is there.
    pub(crate) or_replace: bool,
    /// Whether it is no error that it is there.
    pub(crate) if_not_exists: bool,
    /// The map, if it is not of the mapping's name.
    pub(crate) external_name: Option<String>,
    /// The columns; empty = they follow from a stored entry or the format.
    pub(crate) columns: Vec<ColumnDeclaration>,
    /// The connector, as written: only `IMap` can be.
    pub(crate) connector: String,
    /// The options, in the order of the text.
    pub(crate) options: Vec<(String, String)>,
}

/// A column of `CREATE MAPPING`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnDeclaration {
    /// Its name.
    pub(crate) name: String,
    /// Its type.
    pub(crate) field_type: FieldType,
    /// `EXTERNAL NAME`.
    pub(crate) external_name: Option<String>,
}

/// The kinds of indexes that statements name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexType {
    /// Equality and ranges.
    Sorted,
    /// Equality.
    Hash,
    /// Few distinct values.
    Bitmap,
}

/// `CREATE INDEX`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CreateIndex {
    /// Its name; `None` = made of the map and the columns.
    pub(crate) name: Option<String>,
    /// The mapping whose map is indexed.
    pub(crate) map: String,
    /// Its kind.
    pub(crate) kind: IndexType,
    /// The columns.
    pub(crate) attributes: Vec<String>,
    /// Whether no two rows may have the same values.
    pub(crate) unique: bool,
    /// Whether it is no error that it is there.
    pub(crate) if_not_exists: bool,
    /// The options, in the order of the text.
    pub(crate) options: Vec<(String, String)>,
}

/// What `SHOW` shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShowWhat {
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
pub(crate) struct Insert {
    /// Whether entries that are there are overwritten.
    pub(crate) sink: bool,
    /// The table or mapping.
    pub(crate) table: String,
    /// The name that it has within the statement, if another.
    pub(crate) alias: Option<String>,
    /// The columns; empty = all that are not hidden.
    pub(crate) columns: Vec<String>,
    /// The rows; `None` = one row of defaults.
    pub(crate) source: Option<Box<Query>>,
    /// What is done with rows whose key is there; `None` = an error.
    pub(crate) on_conflict: Option<OnConflict>,
    /// What is told of each row.
    pub(crate) returning: Option<Vec<SelectItem>>,
}

impl Insert {
    /// The rows of `VALUES`, if there is nothing else to its source.
    pub(crate) fn values(&self) -> Option<&[Parens<Vec<Expr>>]> {
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
pub(crate) struct OnConflict {
    /// Which key it is about.
    pub(crate) target: ConflictTarget,
    /// What is set in the row that is there; `None` = nothing is done.
    pub(crate) update: Option<Vec<(String, Expr)>>,
    /// Which of the rows that are there are updated; `None` = all.
    pub(crate) selection: Option<Expr>,
}

/// Which key an `ON CONFLICT` is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConflictTarget {
    /// Any.
    Any,
    /// The one of these columns.
    Columns(Vec<String>),
    /// The one of this name.
    Constraint(String),
}

/// `UPDATE`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Update {
    /// The table or mapping.
    pub(crate) table: String,
    /// The name that it has within the statement, if another.
    pub(crate) alias: Option<String>,
    /// Columns and what they become.
    pub(crate) assignments: Vec<(String, Expr)>,
    /// Tables that tell which rows, and what they become: `FROM`.
    pub(crate) from: Vec<TableWithJoins>,
    /// Which rows; `None` = all.
    pub(crate) selection: Option<Expr>,
    /// What is told of each row.
    pub(crate) returning: Option<Vec<SelectItem>>,
}

/// `DELETE FROM`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Delete {
    /// The table or mapping.
    pub(crate) table: String,
    /// The name that it has within the statement, if another.
    pub(crate) alias: Option<String>,
    /// Tables that tell which rows: `USING`.
    pub(crate) using: Vec<TableWithJoins>,
    /// Which rows; `None` = all.
    pub(crate) selection: Option<Expr>,
    /// What is told of each row.
    pub(crate) returning: Option<Vec<SelectItem>>,
}

/// Understands one statement; `places` tells the schemas of names without one.
///
/// # Errors
/// It is beyond a limit, is not of the grammar, or asks for what is not served. Errors of the grammar tell line and column, from 1.
pub(crate) fn parse(
    text: &str,
    dialect: Dialect,
    limits: &Limits,
    places: &dyn Places,
) -> Result<ParsedStatement, SqlError> {
    let tokenized = tokens::tokens(text, dialect, limits).map_err(|error| tokens::located(error, text, dialect));
    let (tokens, parameters) = tokenized?;
    let mut parsed =
        statements::statement(text, tokens, dialect, limits).map_err(|error| tokens::located(error, text, dialect))?;
    places::settle(&mut parsed, places);
    Ok(ParsedStatement { parsed, parameters })
}

#[cfg(test)]
mod tests;
