//! `RETURNING`: the rows that a statement reports about the rows that it changed.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use datafusion::execution::session_state::SessionState;
use datafusion::sql::sqlparser::ast::{Expr, Ident, ObjectName, SelectItem, SelectItemQualifiedWildcardKind};
use filbert_data::{FieldType, Value};
use filbert_dialect::narrow;
use filbert_functions::builder::{ColumnBuilder, batch};
use filbert_functions::error::{data_error, of_datafusion, parsing_error};
use filbert_functions::types::field;
use filbert_functions::value_bytes;
use filbert_grid::query::{ColumnMeta, SqlError};

use crate::catalog::Mapping;
use crate::client_context::ParameterTypes;
use crate::dml::expressions::{Inputs, Place, RowScope, RowValue};
use crate::dml::joined::JoinedColumn;
use crate::execution::Execution;
use crate::plan::session::dialect_of;

/// A `RETURNING` clause.
pub(crate) struct Returning {
    columns: Arc<[ColumnMeta]>,
    values: Vec<RowValue>,
    /// The columns of joined tables that the values read, by number.
    joined: Vec<usize>,
}

/// The rows of the result so far.
struct ReturnedRows {
    builders: Vec<ColumnBuilder>,
    rows: usize,
    /// The size of all values so far, in bytes.
    bytes: usize,
}

impl Returning {
    /// Plans a `RETURNING` clause over the rows of a mapping with the relation name `name`, and the
    /// columns of joined tables.
    ///
    /// # Errors
    /// An item uses an unknown name, or contains a query.
    pub(crate) fn of(
        state: &SessionState,
        mapping: &Mapping,
        name: &str,
        joined: &[JoinedColumn],
        items: &[SelectItem],
        types: &ParameterTypes,
    ) -> Result<Returning, SqlError> {
        let scope = RowScope::of(mapping, name, false, types)?.beside(joined)?;
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        let mut add = |name: &str, expr: &Expr| -> Result<(), SqlError> {
            let mut expr = expr.clone();
            narrow(&mut expr, dialect_of(state));
            let (value, column) = scope.returned(state, &expr)?;
            columns.push(ColumnMeta { name: name.to_owned(), ..column });
            values.push(value);
            Ok(())
        };
        for item in items {
            match item {
                SelectItem::UnnamedExpr(expr) => add(name_of(expr), expr)?,
                SelectItem::ExprWithAlias { expr, alias } => add(&alias.value, expr)?,
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(relation), _)
                    if !is_called(relation, name) =>
                {
                    let is_of = |column: &&JoinedColumn| {
                        column.relation.as_deref().is_some_and(|joined| is_called(relation, joined))
                    };
                    let mut columns = joined.iter().filter(is_of).peekable();
                    if columns.peek().is_none() {
                        let text = format!("missing FROM-clause entry for table \"{relation}\"");
                        return Err(parsing_error(text).with_sqlstate("42P01"));
                    }
                    columns.try_for_each(|column| add(column.field.name(), &column.expr()))?;
                }
                SelectItem::Wildcard(_)
                | SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(_), _) => {
                    for column in mapping.columns.iter().filter(|column| !column.hidden) {
                        let parts = [name, column.name.as_str()].map(|part| Ident::with_quote('"', part));
                        add(&column.name, &Expr::CompoundIdentifier(parts.to_vec()))?;
                    }
                    let mut others = joined.iter().filter(|_| matches!(item, SelectItem::Wildcard(_)));
                    others.try_for_each(|column| add(column.field.name(), &column.expr()))?;
                }
                other => return Err(parsing_error(format!("RETURNING {other} is not served")).with_sqlstate("0A000")),
            }
        }
        let width = mapping.columns.len();
        let of_joined = |place| match place {
            Place::Row(index) => index.checked_sub(width),
            _ => None,
        };
        let mut joined: Vec<usize> = values.iter().flat_map(RowValue::reads).filter_map(of_joined).collect();
        joined.sort_unstable();
        joined.dedup();
        Ok(Returning { columns: columns.into(), values, joined })
    }

    /// The columns of joined tables that it reads, by number. In a row they follow the columns of
    /// the mapping, each at its number.
    pub(crate) fn joined(&self) -> &[usize] {
        &self.joined
    }

    /// The columns of the result.
    pub(crate) fn columns(&self) -> &Arc<[ColumnMeta]> {
        &self.columns
    }

    /// The result for all rows that a statement changes. It must be computed before the rows are
    /// changed.
    ///
    /// # Errors
    /// A value cannot be computed, or the result takes more memory than a query may use.
    pub(crate) fn of_rows<'r>(
        &self,
        rows: impl Iterator<Item = &'r [Value<'static>]>,
        parameters: &[Value<'_>],
        execution: &Execution,
    ) -> Result<RecordBatch, SqlError> {
        let mut returned = self.begin();
        for row in rows {
            self.add(&mut returned, row, parameters, execution)?;
        }
        self.end(returned)
    }

    /// Starts an empty result.
    fn begin(&self) -> ReturnedRows {
        let builders = self.columns.iter().map(|column| ColumnBuilder::new(&column.field_type)).collect();
        ReturnedRows { builders, rows: 0, bytes: 0 }
    }

    /// Adds the result for a row.
    fn add(
        &self,
        returned: &mut ReturnedRows,
        row: &[Value<'_>],
        parameters: &[Value<'_>],
        execution: &Execution,
    ) -> Result<(), SqlError> {
        let inputs = Inputs { row, excluded: &[], parameters, execution: Some(execution) };
        for ((value, builder), column) in self.values.iter().zip(&mut returned.builders).zip(self.columns.iter()) {
            let value = value.evaluate(&inputs)?;
            let value = match (&column.field_type, value) {
                // A parameter or a constant of any type is returned as text.
                (_, Value::Null) => Value::Null,
                (FieldType::Varchar, value) => {
                    value.convert(&FieldType::Varchar).map_err(|error| data_error(error.to_string()))?
                }
                (_, value) => value,
            };
            returned.bytes += value_bytes(&value);
            builder.append(value).map_err(|error| data_error(error.to_string()))?;
        }
        returned.rows += 1;
        let bytes_max = execution.server().map_or(usize::MAX, |server| server.limits.query_bytes_max);
        if returned.bytes > bytes_max {
            let text = format!(
                "the rows of RETURNING take more than {bytes_max} bytes, expected as much as a query may use; see \
                 query_memory_bytes_max"
            );
            return Err(data_error(text).with_sqlstate("53200"));
        }
        Ok(())
    }

    /// Completes the result.
    fn end(&self, mut returned: ReturnedRows) -> Result<RecordBatch, SqlError> {
        let fields = self.columns.iter().map(|column| field(&column.name, &column.field_type, true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let arrays = returned.builders.iter_mut().map(ColumnBuilder::finish).collect();
        batch(&schema, arrays, returned.rows).map_err(|error| of_datafusion(&error))
    }
}

/// Whether a relation name, with a schema or without one, is this name.
fn is_called(relation: &ObjectName, name: &str) -> bool {
    relation.0.last().and_then(|part| part.as_ident()).is_some_and(|last| last.value == name)
}

/// The column name of an expression, as in PostgreSQL.
fn name_of(expr: &Expr) -> &str {
    match expr {
        Expr::Identifier(name) => &name.value,
        Expr::CompoundIdentifier(names) => names.last().map_or("?column?", |name| name.value.as_str()),
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => name_of(inner),
        Expr::Function(function) => {
            function.name.0.last().and_then(|part| part.as_ident()).map_or("?column?", |name| name.value.as_str())
        }
        _ => "?column?",
    }
}
