//! String literals in `VALUES`. PostgreSQL gives them the type of the other values in their column.
//! Beside numbers with a fraction, they are numbers with the digits that they are written with.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, ExactNumberInfo, Expr, Query, SetExpr, Value, ValueWithSpan, VisitorMut,
};
use filbert_data::FieldType;
use filbert_dialect::calls::TO_NUMERIC;
use filbert_dialect::{as_numeric, sql_type, walk};

/// Casts such literals to the type of the first value that has a type.
pub(crate) fn type_quoted(query: &mut Query) {
    let _ = walk::change(query, &mut Lists);
}

struct Lists;

impl VisitorMut for Lists {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let SetExpr::Values(values) = query.body.as_mut() else { return ControlFlow::Continue(()) };
        let width = values.rows.first().map_or(0, |row| row.content.len());
        for at in 0..width {
            let first = values.rows.iter().find_map(|row| row.content.get(at).and_then(type_of));
            let cells = || values.rows.iter().filter_map(|row| row.content.get(at));
            let is_exact = cells().any(is_numeric) && !cells().filter_map(type_of).any(|found| is_floating(&found));
            if first.is_none() && !is_exact {
                continue;
            }
            for cell in values.rows.iter_mut().filter_map(|row| row.content.get_mut(at)) {
                if !is_quoted(cell) {
                    continue;
                }
                let text = std::mem::replace(cell, Expr::value(Value::Null));
                if is_exact {
                    *cell = as_numeric(text);
                } else if let Some(first) = &first {
                    let text = Box::new(text);
                    let data_type = first.clone();
                    *cell = Expr::Cast { kind: CastKind::Cast, expr: text, data_type, array: false, format: None };
                }
            }
        }
        ControlFlow::Continue(())
    }
}

fn is_quoted(cell: &Expr) -> bool {
    matches!(cell, Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(_), .. }))
}

/// Whether an item is a `numeric`, as it is written or rewritten.
fn is_numeric(cell: &Expr) -> bool {
    match cell {
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => is_numeric(inner),
        Expr::Cast { data_type, .. } => {
            matches!(data_type, DataType::Numeric(_) | DataType::Decimal(_) | DataType::Dec(_))
        }
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => digits.contains('.'),
        Expr::Function(function) => {
            let name = function.name.0.last().and_then(|part| part.as_ident());
            name.is_some_and(|name| name.value == TO_NUMERIC)
        }
        _ => false,
    }
}

fn is_floating(data_type: &DataType) -> bool {
    matches!(sql_type(data_type), Some(FieldType::Real | FieldType::Double))
}

fn type_of(cell: &Expr) -> Option<DataType> {
    match cell {
        Expr::Nested(inner) => type_of(inner),
        Expr::Cast { data_type, .. } => Some(data_type.clone()),
        Expr::TypedString(text) => Some(text.data_type.clone()),
        Expr::Interval(_) => Some(DataType::Interval { fields: None, precision: None }),
        Expr::UnaryOp { expr, .. } => type_of(expr),
        Expr::Value(ValueWithSpan { value: Value::Boolean(_), .. }) => Some(DataType::Boolean),
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => Some(match digits.parse::<i64>() {
            Ok(number) if i32::try_from(number).is_ok() => DataType::Int(None),
            Ok(_) => DataType::BigInt(None),
            Err(_) => DataType::Numeric(ExactNumberInfo::None),
        }),
        _ => None,
    }
}
