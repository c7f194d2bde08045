//! The text form of definitions that the members of a cluster keep. It is JSON; a missing member
//! has the meaning from before the member was introduced.
//!
//! An expression is written in SQL, and read by the same grammar. An expression that would not be
//! read back unchanged is rejected at its declaration.

use std::sync::Arc;

use datafusion::sql::sqlparser::ast::Expr;
use datafusion::sql::sqlparser::parser::Parser;
use filbert_data::FieldType;
use filbert_dialect::{DeclaredType, Expression, grammar};
use filbert_grid::query::{Dialect, SqlError, SqlErrorCode};
use serde::{Deserialize, Serialize};

use super::format::EntryFormat;
use super::mapping::{Mapping, MappingColumn};
use super::sequence::{Sequence, Written as WrittenSequence};
use super::table::{CheckFacts, ColumnFacts, Identity, TableFacts};
use super::{Entry, View};

/// The definition of a name.
#[derive(Serialize, Deserialize)]
enum Written {
    Mapping(Box<WrittenMapping>),
    View(WrittenView),
    Schema,
}

#[derive(Serialize, Deserialize)]
struct WrittenMapping {
    name: String,
    external_name: String,
    columns: Vec<MappingColumn>,
    key_format: EntryFormat,
    value_format: EntryFormat,
    options: Vec<(String, String)>,
    columnar: bool,
    table: Option<WrittenTable>,
}

#[derive(Serialize, Deserialize)]
struct WrittenTable {
    columns: Vec<WrittenColumn>,
    primary_key: Vec<String>,
    primary_key_name: String,
    checks: Vec<(String, WrittenExpression)>,
    clustered_by: Option<String>,
    shards: Option<u32>,
    partitioned_by: Vec<String>,
    options: Vec<(String, String)>,
    comment: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    map: Option<u32>,
}

#[derive(Serialize, Deserialize)]
struct WrittenColumn {
    declared: DeclaredType,
    not_null: bool,
    default: Option<WrittenExpression>,
    generated: Option<WrittenExpression>,
    /// Whether the identity is `ALWAYS`, and the sequence.
    identity: Option<(bool, WrittenSequence)>,
    comment: Option<String>,
}

/// As written, and as planned.
#[derive(Serialize, Deserialize)]
struct WrittenExpression(String, String);

#[derive(Serialize, Deserialize)]
struct WrittenView {
    name: String,
    query: String,
    dialect: String,
    path: Vec<String>,
    columns: Vec<(String, FieldType)>,
}

/// Looks up the sequences of identity columns.
pub(super) type Counters<'c> = &'c dyn Fn(&WrittenSequence) -> Option<Arc<Sequence>>;

/// The text of an entry.
///
/// # Errors
/// An expression would not be read back unchanged.
pub(super) fn write(entry: &Entry) -> Result<String, SqlError> {
    let written = match entry {
        Entry::Mapping(mapping) => Written::Mapping(Box::new(of_mapping(mapping)?)),
        Entry::View(view) => Written::View(WrittenView {
            name: view.name.clone(),
            query: view.query.clone(),
            dialect: view.dialect.name().to_owned(),
            path: view.path.clone(),
            columns: view.columns.clone(),
        }),
        Entry::Schema => Written::Schema,
    };
    serde_json::to_string(&written).map_err(|error| not_kept(&error.to_string()))
}

/// The entry of a text; `None` if it cannot be read, for example because it has a later version.
pub(super) fn read(text: &str, counters: Counters<'_>) -> Option<Entry> {
    match serde_json::from_str(text).ok()? {
        Written::Mapping(mapping) => Some(Entry::Mapping(Arc::new(to_mapping(*mapping, counters)?))),
        Written::View(view) => Some(Entry::View(Arc::new(View {
            name: view.name,
            query: view.query,
            dialect: Dialect::of_name(&view.dialect)?,
            path: view.path,
            columns: view.columns,
        }))),
        Written::Schema => Some(Entry::Schema),
    }
}

fn of_mapping(mapping: &Mapping) -> Result<WrittenMapping, SqlError> {
    let table = match &mapping.table {
        Some(facts) => Some(of_table(facts)?),
        None => None,
    };
    Ok(WrittenMapping {
        name: mapping.name.clone(),
        external_name: mapping.external_name.clone(),
        columns: mapping.columns.clone(),
        key_format: mapping.key_format.clone(),
        value_format: mapping.value_format.clone(),
        options: mapping.options.clone(),
        columnar: mapping.columnar,
        table,
    })
}

fn to_mapping(written: WrittenMapping, counters: Counters<'_>) -> Option<Mapping> {
    let table = match written.table {
        Some(table) => Some(Arc::new(to_table(table, counters)?)),
        None => None,
    };
    Some(Mapping {
        name: written.name,
        external_name: written.external_name,
        columns: written.columns,
        key_format: written.key_format,
        value_format: written.value_format,
        options: written.options,
        columnar: written.columnar,
        table,
    })
}

fn of_table(facts: &TableFacts) -> Result<WrittenTable, SqlError> {
    let column = |column: &ColumnFacts| {
        Ok(WrittenColumn {
            declared: column.declared.clone(),
            not_null: column.not_null,
            default: column.default.as_ref().map(of_expression).transpose()?,
            generated: column.generated.as_ref().map(of_expression).transpose()?,
            identity: column.identity.as_ref().map(|identity| (identity.always, identity.sequence.written())),
            comment: column.comment.clone(),
        })
    };
    let check = |check: &CheckFacts| Ok((check.name.clone(), of_expression(&check.condition)?));
    Ok(WrittenTable {
        columns: facts.columns.iter().map(column).collect::<Result<_, SqlError>>()?,
        primary_key: facts.primary_key.clone(),
        primary_key_name: facts.primary_key_name.clone(),
        checks: facts.checks.iter().map(check).collect::<Result<_, SqlError>>()?,
        clustered_by: facts.clustered_by.clone(),
        shards: facts.shards,
        partitioned_by: facts.partitioned_by.clone(),
        options: facts.options.clone(),
        comment: facts.comment.clone(),
        map: facts.map,
    })
}

fn to_table(written: WrittenTable, counters: Counters<'_>) -> Option<TableFacts> {
    let expression = |written: Option<WrittenExpression>| match written {
        Some(written) => to_expression(written).map(Some),
        None => Some(None),
    };
    let column = |column: WrittenColumn| {
        let identity = match column.identity {
            Some((always, sequence)) => Some(Identity { always, sequence: counters(&sequence)? }),
            None => None,
        };
        Some(ColumnFacts {
            declared: column.declared,
            not_null: column.not_null,
            default: expression(column.default)?,
            generated: expression(column.generated)?,
            identity,
            comment: column.comment,
        })
    };
    let check = |(name, condition)| Some(CheckFacts { name, condition: to_expression(condition)? });
    Some(TableFacts {
        columns: written.columns.into_iter().map(column).collect::<Option<_>>()?,
        primary_key: written.primary_key,
        primary_key_name: written.primary_key_name,
        checks: written.checks.into_iter().map(check).collect::<Option<_>>()?,
        clustered_by: written.clustered_by,
        shards: written.shards,
        partitioned_by: written.partitioned_by,
        options: written.options,
        comment: written.comment,
        map: written.map,
    })
}

fn of_expression(expression: &Expression) -> Result<WrittenExpression, SqlError> {
    let written = expression.expr.to_string();
    if parse(&written).as_ref() != Some(&expression.expr) {
        return Err(not_kept(&format!("the expression {} would be read as another one", expression.text)));
    }
    Ok(WrittenExpression(expression.text.clone(), written))
}

fn to_expression(WrittenExpression(text, written): WrittenExpression) -> Option<Expression> {
    Some(Expression { text, expr: parse(&written)? })
}

/// Parses a planned expression, which every dialect reads alike.
fn parse(text: &str) -> Option<Expr> {
    Parser::new(grammar(Dialect::Postgres)).try_with_sql(text).ok()?.parse_expr().ok()
}

fn not_kept(why: &str) -> SqlError {
    let text = format!("this cannot be declared to all members of a cluster: {why}");
    SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("0A000")
}
