//! The types of values that a column accepts in PostgreSQL's dialect. They are checked before a row
//! is read. A statement is therefore rejected whether or not it has rows, and whatever values they
//! have.
//!
//! A string literal, NULL and a parameter match any type: their conversion depends on their values.

use std::sync::Arc;

use arrow_schema::{DataType, Field};
use datafusion::logical_expr::logical_plan::Projection;
use datafusion::logical_expr::{Expr as PlannedExpr, LogicalPlan, cast};
use datafusion::sql::sqlparser::ast::{
    CastKind, DataType as SqlType, Expr, Query, Select, SelectItem, SetExpr, UnaryOperator, Value as SqlValue, Values,
};
use filbert_data::FieldType;
use filbert_functions::error::{data_error, of_datafusion};
use filbert_functions::pg_types;
use filbert_functions::types::{
    ARRAY_OF_JSON, ARRAY_OF_JSONB, ARRAY_OF_UUID, BPCHAR, JSON, JSONB, VARCHAR, field_type_of, is_untyped, pg_type_of,
};
use filbert_grid::query::SqlError;

use crate::catalog::Mapping;
use crate::dml::rows::RowMaker;

/// The OID of PostgreSQL's type `name`.
const NAME: u32 = 19;

/// The kind of a type, which decides the assignments that are possible.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Boolean,
    Number,
    Text,
    Date,
    /// A timestamp with or without a time zone.
    Timestamp,
    Time,
    Interval,
    Uuid,
    Json,
    Bytes,
    Array(Box<Kind>),
    /// Any other type: the conversion depends on the value.
    Other,
}

impl Kind {
    fn of(field_type: &FieldType, pg_type: Option<u32>) -> Kind {
        match (field_type, pg_type) {
            (FieldType::Json, _) => Kind::Json,
            (FieldType::Array(_), Some(ARRAY_OF_JSON | ARRAY_OF_JSONB)) => Kind::Array(Box::new(Kind::Json)),
            (FieldType::Array(_), Some(ARRAY_OF_UUID)) => Kind::Array(Box::new(Kind::Uuid)),
            (FieldType::Array(item), _) => Kind::Array(Box::new(Kind::of(item, None))),
            (FieldType::Varchar | FieldType::Char, None | Some(VARCHAR | BPCHAR | NAME)) => Kind::Text,
            (FieldType::Varchar, Some(JSON | JSONB)) => Kind::Json,
            (_, Some(_)) => Kind::Other,
            (FieldType::Boolean, None) => Kind::Boolean,
            (FieldType::Date, None) => Kind::Date,
            (FieldType::Timestamp | FieldType::TimestampTz, None) => Kind::Timestamp,
            (FieldType::Time, None) => Kind::Time,
            (FieldType::Interval, None) => Kind::Interval,
            (FieldType::Uuid, None) => Kind::Uuid,
            (FieldType::Binary, None) => Kind::Bytes,
            (FieldType::Object, None) => Kind::Other,
            (FieldType::TinyInt | FieldType::SmallInt | FieldType::Integer | FieldType::BigInt, None)
            | (FieldType::Real | FieldType::Double | FieldType::Decimal(_), None) => Kind::Number,
        }
    }

    /// Whether values of another kind may be assigned, according to PostgreSQL's `pg_cast`.
    fn takes(&self, other: &Kind) -> bool {
        match (self, other) {
            (Kind::Other, _) | (_, Kind::Other) | (Kind::Text, _) => true,
            (Kind::Date, Kind::Timestamp) | (Kind::Timestamp, Kind::Date) => true,
            (Kind::Time, Kind::Timestamp | Kind::Interval) | (Kind::Interval, Kind::Time) => true,
            (Kind::Array(own), Kind::Array(of)) => own.takes(of),
            (own, other) => own == other,
        }
    }
}

/// The columns of a query that are assigned to columns of a table.
#[derive(Clone, Copy)]
pub(super) struct Assigned<'a> {
    pub(super) maker: &'a RowMaker,
    /// The table columns with typed values, each with the position of its values in the query.
    pub(super) typed: &'a [(usize, usize)],
}

impl Assigned<'_> {
    /// The plan of the query with values in the types of the columns. It casts to text where
    /// PostgreSQL's text of a value differs from the text of the conversion.
    ///
    /// # Errors
    /// A column does not accept values of their type.
    pub(super) fn fit(self, plan: LogicalPlan) -> Result<LogicalPlan, SqlError> {
        let mut texts = Vec::new();
        for &(target, place) in self.typed {
            let Some(field) = plan.schema().fields().get(place) else { continue };
            self.maker.check_type(target, field)?;
            if self.maker.becomes_text(target, field) {
                texts.push(place);
            }
        }
        if texts.is_empty() {
            return Ok(plan);
        }
        let items = plan.schema().columns().into_iter().enumerate().map(|(place, column)| {
            let (relation, name) = (column.relation.clone(), column.name.clone());
            match texts.contains(&place) {
                true => cast(PlannedExpr::Column(column), DataType::Utf8View).alias_qualified(relation, name),
                false => PlannedExpr::Column(column),
            }
        });
        let items = items.collect();
        let projection = Projection::try_new(items, Arc::new(plan)).map_err(|error| of_datafusion(&error))?;
        Ok(LogicalPlan::Projection(projection))
    }
}

/// Whether the column of a table is text and the values of the field have another type.
pub(super) fn becomes_text(mapping: &Mapping, target: usize, source: &Field) -> bool {
    let column = mapping.columns.get(target).filter(|_| mapping.table.is_some());
    column.is_some_and(|column| Kind::of(&column.field_type, None) == Kind::Text)
        && !is_untyped(source)
        && !is_null(source)
        && !source.data_type().is_string()
}

/// Casts an expression to text as PostgreSQL does.
pub(super) fn as_text(expr: &Expr) -> Expr {
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(Expr::Nested(Box::new(expr.clone()))),
        data_type: SqlType::Text,
        array: false,
        format: None,
    }
}

/// Fails if a table's column does not accept values of a field.
pub(super) fn check(mapping: &Mapping, target: usize, source: &Field) -> Result<(), SqlError> {
    if mapping.table.is_none() || is_untyped(source) || is_null(source) {
        return Ok(());
    }
    let Some(column) = mapping.columns.get(target) else { return Ok(()) };
    let (found, declared) = (field_type_of(source), pg_type_of(source));
    if Kind::of(&column.field_type, None).takes(&Kind::of(&found, declared)) {
        return Ok(());
    }
    let wanted = mapping.table.as_ref().and_then(|table| table.columns.get(target));
    let wanted = wanted.map_or_else(String::new, |facts| facts.declared.bare_name());
    let found = pg_types::format(declared.map_or_else(|| pg_types::of_field_type(&found).0, i64::from), None);
    let text = format!("column {:?} is of type {wanted} but expression is of type {found}", column.name);
    Err(data_error(text).with_sqlstate("42804"))
}

/// Whether a field has no type, or is an array of elements without a type.
fn is_null(field: &Field) -> bool {
    match field.data_type() {
        DataType::List(item) => is_null(item),
        found => found.is_null(),
    }
}

/// The columns of a query that have values of any type; `width` is the number of columns.
pub(super) fn of_any_type(query: &Query, width: usize) -> Vec<bool> {
    match query.body.as_ref() {
        SetExpr::Select(select) => of_select(select, width),
        SetExpr::Query(query) => of_any_type(query, width),
        SetExpr::Values(values) => of_values(values, width),
        _ => vec![false; width],
    }
}

fn of_select(select: &Select, width: usize) -> Vec<bool> {
    let is_open = |item: &SelectItem| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => is_of_any_type(expr),
        _ => false,
    };
    let items = &select.projection;
    let is_plain = |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    let mut open = vec![false; width];
    // The columns of a `*` lie between the columns before and behind it.
    for (place, item) in open.iter_mut().zip(items.iter().take_while(|item| is_plain(item))) {
        *place = is_open(item);
    }
    for (place, item) in open.iter_mut().rev().zip(items.iter().rev().take_while(|item| is_plain(item))) {
        *place |= is_open(item);
    }
    open
}

fn of_values(values: &Values, width: usize) -> Vec<bool> {
    let mut open = vec![false; width];
    for row in &values.rows {
        for (place, item) in open.iter_mut().zip(&row.content) {
            *place |= is_of_any_type(item);
        }
    }
    open
}

/// Whether an expression matches any type.
pub(super) fn is_of_any_type(expr: &Expr) -> bool {
    match expr {
        Expr::Nested(inner) => is_of_any_type(inner),
        Expr::UnaryOp { op: UnaryOperator::Plus | UnaryOperator::Minus, expr } => is_of_any_type(expr),
        Expr::Value(value) => !matches!(value.value, SqlValue::Number(..) | SqlValue::Boolean(_)),
        _ => false,
    }
}
