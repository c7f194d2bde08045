//! Texts in quotes in `VALUES`, which PostgreSQL takes for literals of the type that others in their column have.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, ExactNumberInfo, Expr, Query, SetExpr, Value, ValueWithSpan, VisitorMut,
};
use filbert_dialect::walk;

/// Casts such texts to the type of the first value that tells its own.
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
            let told = values.rows.iter().find_map(|row| row.content.get(at).and_then(type_of));
            let Some(told) = told else { continue };
            for cell in values.rows.iter_mut().filter_map(|row| row.content.get_mut(at)) {
                if is_quoted(cell) {
                    let text = Box::new(std::mem::replace(cell, Expr::value(Value::Null)));
                    let data_type = told.clone();
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

fn type_of(cell: &Expr) -> Option<DataType> {
    match cell {
        Expr::Nested(inner) => type_of(inner),
        Expr::Cast { data_type, .. } => Some(data_type.clone()),
        Expr::TypedString(text) => Some(text.data_type.clone()),
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
