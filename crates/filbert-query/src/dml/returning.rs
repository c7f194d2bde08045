//! `RETURNING`: what is told of each row that a statement changed.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::Schema;
use datafusion::execution::session_state::SessionState;
use datafusion::sql::sqlparser::ast::{Expr, Ident, SelectItem, SelectItemQualifiedWildcardKind};
use filbert_data::{FieldType, Value};
use filbert_dialect::narrow;
use filbert_functions::builder::{ColumnBuilder, batch};
use filbert_functions::error::{data_error, of_datafusion, parsing_error};
use filbert_functions::types::field;
use filbert_functions::value_bytes;
use filbert_grid::query::{ColumnMeta, SqlError};

use crate::asker::ParameterTypes;
use crate::catalog::Mapping;
use crate::dml::expressions::{Inputs, RowScope, RowValue};
use crate::occasion::Occasion;
use crate::plan::session::dialect_of;

/// What is told of each row.
pub(crate) struct Returning {
    columns: Arc<[ColumnMeta]>,
    values: Vec<RowValue>,
}

/// The rows that are told.
struct Told {
    builders: Vec<ColumnBuilder>,
    rows: usize,
    /// Bytes of all values so far.
    bytes: usize,
}

impl Returning {
    /// What a statement's items tell of the rows of a mapping, which goes by `name` in them.
    ///
    /// # Errors
    /// An item names what is not there, or has a query within.
    pub(crate) fn of(
        state: &SessionState,
        mapping: &Mapping,
        name: &str,
        items: &[SelectItem],
        types: &ParameterTypes,
    ) -> Result<Returning, SqlError> {
        let scope = RowScope::of(mapping, name, false, types)?;
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        let mut tell = |name: &str, expr: &Expr| -> Result<(), SqlError> {
            let mut expr = expr.clone();
            narrow(&mut expr, dialect_of(state));
            let (value, column) = scope.told(state, &expr)?;
            columns.push(ColumnMeta { name: name.to_owned(), ..column });
            values.push(value);
            Ok(())
        };
        for item in items {
            match item {
                SelectItem::UnnamedExpr(expr) => tell(name_of(expr), expr)?,
                SelectItem::ExprWithAlias { expr, alias } => tell(&alias.value, expr)?,
                SelectItem::Wildcard(_)
                | SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(_), _) => {
                    for column in mapping.columns.iter().filter(|column| !column.hidden) {
                        tell(&column.name, &Expr::Identifier(Ident::with_quote('"', &column.name)))?;
                    }
                }
                other => return Err(parsing_error(format!("RETURNING {other} is not served")).with_sqlstate("0A000")),
            }
        }
        Ok(Returning { columns: columns.into(), values })
    }

    /// The columns that are told.
    pub(crate) fn columns(&self) -> &Arc<[ColumnMeta]> {
        &self.columns
    }

    /// What is told of all rows that a statement changes. To be asked before it changes them.
    ///
    /// # Errors
    /// A value cannot be computed, or all take more than a query may use.
    pub(crate) fn of_rows<'r>(
        &self,
        rows: impl Iterator<Item = &'r [Value<'static>]>,
        parameters: &[Value<'_>],
        occasion: &Occasion,
    ) -> Result<RecordBatch, SqlError> {
        let mut told = self.begin();
        for row in rows {
            self.tell(&mut told, row, parameters, occasion)?;
        }
        self.end(told)
    }

    /// No rows yet.
    fn begin(&self) -> Told {
        let builders = self.columns.iter().map(|column| ColumnBuilder::new(&column.field_type)).collect();
        Told { builders, rows: 0, bytes: 0 }
    }

    /// Tells of a row.
    fn tell(
        &self,
        told: &mut Told,
        row: &[Value<'_>],
        parameters: &[Value<'_>],
        occasion: &Occasion,
    ) -> Result<(), SqlError> {
        let inputs = Inputs { row, excluded: &[], parameters, occasion: Some(occasion) };
        for ((value, builder), column) in self.values.iter().zip(&mut told.builders).zip(self.columns.iter()) {
            let value = value.evaluate(&inputs)?;
            let value = match (&column.field_type, value) {
                // A parameter or a constant of any type is told as text.
                (_, Value::Null) => Value::Null,
                (FieldType::Varchar, value) => {
                    value.convert(&FieldType::Varchar).map_err(|error| data_error(error.to_string()))?
                }
                (_, value) => value,
            };
            told.bytes += value_bytes(&value);
            builder.append(value).map_err(|error| data_error(error.to_string()))?;
        }
        told.rows += 1;
        let bytes_max = occasion.server().map_or(usize::MAX, |server| server.limits.query_bytes_max);
        if told.bytes > bytes_max {
            let text = format!(
                "the rows of RETURNING take more than {bytes_max} bytes, expected as much as a query may use; see \
                 query_memory_bytes_max"
            );
            return Err(data_error(text).with_sqlstate("53200"));
        }
        Ok(())
    }

    /// All rows that were told.
    fn end(&self, mut told: Told) -> Result<RecordBatch, SqlError> {
        let fields = self.columns.iter().map(|column| field(&column.name, &column.field_type, true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let arrays = told.builders.iter_mut().map(ColumnBuilder::finish).collect();
        batch(&schema, arrays, told.rows).map_err(|error| of_datafusion(&error))
    }
}

/// The name of an expression's column, as PostgreSQL gives it.
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
