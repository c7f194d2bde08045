//! String literals as defaults of dates and times. PostgreSQL parses such a literal once, when the
//! column gets its default: in the time zone of that session, and with the current timestamp for
//! `'now'`.

use datafusion::sql::sqlparser::ast::{Expr, Value as SqlValue};
use filbert_data::dates::Zone;
use filbert_data::{FieldType, Value};
use filbert_dialect::{ColumnDefinition, DeclaredType, Expression};
use filbert_functions::{cast_to_text, timestamp_of_column};
use filbert_grid::query::{Dialect, SqlError};

use crate::client_context::ClientContext;
use crate::dml::literals::constant;
use crate::parts::Parts;

/// Parses the literals of one statement.
pub(super) struct Literals {
    /// The time zone of the session. `None` in dialects that parse a literal for each row.
    zone: Option<Zone>,
}

impl Literals {
    pub(super) fn of(engine: &Parts, client: &ClientContext) -> Literals {
        let zone = || engine.sessions.execution(client.dialect(), client.session()).context().zone();
        Literals { zone: (client.dialect() == Dialect::Postgres).then(zone) }
    }

    /// The column with a default that means the same in every session.
    ///
    /// # Errors
    /// The literal is no value of the column's type.
    pub(super) fn column(&self, mut column: ColumnDefinition) -> Result<ColumnDefinition, SqlError> {
        if let (Some(default), Some(declared)) = (&column.default, &column.declared) {
            column.default = Some(self.default(default, declared)?);
        }
        Ok(column)
    }

    /// The default of a column of this type, with the same meaning in every session.
    ///
    /// # Errors
    /// Like [`Literals::column`].
    pub(super) fn default(&self, default: &Expression, declared: &DeclaredType) -> Result<Expression, SqlError> {
        let field_type = declared.field_type();
        let is_moment =
            matches!(field_type, FieldType::Date | FieldType::Time | FieldType::Timestamp | FieldType::TimestampTz);
        match (&self.zone, constant(&default.expr, Dialect::Postgres)) {
            (Some(zone), Some(literal @ Value::Text(_))) if is_moment => {
                let text = cast_to_text(&timestamp_of_column(literal, &field_type, zone)?, &Zone::UTC);
                Ok(Expression { text: format!("'{text}'"), expr: Expr::value(SqlValue::SingleQuotedString(text)) })
            }
            _ => Ok(default.clone()),
        }
    }
}
