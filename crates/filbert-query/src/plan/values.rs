//! `VALUES` with rows that DataFusion cannot make one relation of. They become a `UNION ALL` of
//! rows with their positions, ordered by position.
//!
//! DataFusion requires the items of a column to agree in metadata that distinguishes types with the
//! same Arrow type. It evaluates no subqueries among them, and determines the column types before
//! the dialect's types of operators are known. A union of queries determines the common types after
//! that.

use std::ops::ControlFlow;

use datafusion::common::DataFusionError;
use datafusion::sql::sqlparser::ast::{
    DataType, Expr, Ident, Parens, Query, SelectItem, SetExpr, SetOperator, SetQuantifier, TableFactor, TimezoneInfo,
    UnaryOperator, Value, Values, Visitor, VisitorMut,
};
use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::Parser;
use filbert_data::FieldType;
use filbert_dialect::walk;

use crate::client_context::ParameterTypes;

/// The maximum number of rows of a `VALUES` that become queries: the plan has a node for each.
const ROWS_MAX: usize = 1_000;
/// The column of a row's position.
pub(super) const PLACE: &str = "$place";

/// Whether a query has `VALUES` with several rows, and whether they contain items for which
/// DataFusion determines the type too early: subqueries, computed values and floating-point
/// numbers.
pub(crate) fn found_in(query: &Query) -> (bool, bool) {
    struct Found(bool, bool);
    impl Visitor for Found {
        type Break = ();

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            let mut all = Vec::new();
            sets(&query.body, &mut all);
            for values in all {
                self.0 |= values.rows.len() > 1;
                let items = || values.rows.iter().flat_map(|row| &row.content);
                self.1 |= items().any(|item| !is_written_out(item)) && !items().any(is_counted);
            }
            ControlFlow::Continue(())
        }
    }
    let mut found = Found(false, false);
    let _ = walk::read(query, &mut found);
    (found.0, found.1)
}

/// Whether a column of a query's `VALUES` has dates and timestamps, and some of them are parameters
/// or casts, or has floating-point parameters. DataFusion determines the common type before it
/// knows the types of parameters, and may select a type that cannot represent all dates, or
/// decimals.
pub(crate) fn mix_types(query: &Query, types: &ParameterTypes) -> bool {
    struct Mixed<'t>(&'t ParameterTypes, bool);
    impl Visitor for Mixed<'_> {
        type Break = ();

        fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
            let mut all = Vec::new();
            sets(&query.body, &mut all);
            self.1 |= all.iter().any(|values| {
                let width = values.rows.first().map_or(0, |row| row.content.len());
                (0..width).any(|at| {
                    let items = || values.rows.iter().filter_map(|row| row.content.get(at));
                    let mut kinds = items().filter_map(|item| date_type_of(item, self.0));
                    let first = kinds.next();
                    let mix_dates = kinds.any(|kind| Some(kind) != first);
                    mix_dates || values.rows.len() > 1 && items().any(|item| is_float_parameter(item, self.0))
                })
            });
            ControlFlow::Continue(())
        }
    }
    let mut mixed = Mixed(types, false);
    let _ = walk::read(query, &mut mixed);
    mixed.1
}

/// The declared type of a parameter.
fn declared<'t>(name: &str, types: &'t ParameterTypes) -> Option<&'t FieldType> {
    let number: usize = name.strip_prefix('$')?.parse().ok()?;
    Some(&types.get(number.checked_sub(1)?)?.as_ref()?.field_type)
}

/// Whether an item is a floating-point number as a parameter.
fn is_float_parameter(item: &Expr, types: &ParameterTypes) -> bool {
    match item {
        Expr::Nested(inner) => is_float_parameter(inner, types),
        Expr::Value(value) => match &value.value {
            Value::Placeholder(name) => matches!(declared(name, types), Some(FieldType::Real | FieldType::Double)),
            _ => false,
        },
        _ => false,
    }
}

/// The type of an item that is a date or a timestamp by its cast, or as a parameter.
fn date_type_of(item: &Expr, types: &ParameterTypes) -> Option<FieldType> {
    match item {
        Expr::Nested(inner) => date_type_of(inner, types),
        Expr::Value(value) => match &value.value {
            Value::Placeholder(name) => {
                let found = declared(name, types)?;
                let is_one = matches!(found, FieldType::Date | FieldType::Timestamp | FieldType::TimestampTz);
                is_one.then(|| found.clone())
            }
            _ => None,
        },
        Expr::Cast { data_type, .. } => match data_type {
            DataType::Date => Some(FieldType::Date),
            DataType::Timestamp(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => Some(FieldType::Timestamp),
            DataType::Timestamp(..) => Some(FieldType::TimestampTz),
            _ => None,
        },
        _ => None,
    }
}

/// The rows of an INSERT's `VALUES` as queries, in order. Each item is converted to its column's
/// type whatever other rows have there: rows of one query have items of the same shapes, and a row
/// with a computed item is a query of its own.
pub(crate) fn split(query: Query) -> Vec<Query> {
    let SetExpr::Values(values) = query.body.as_ref() else { return vec![query] };
    let width = |row: &Parens<Vec<Expr>>| row.content.len();
    let is_plain = query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
    let is_even = values.rows.windows(2).all(|pair| matches!(pair, [one, other] if width(one) == width(other)));
    if values.rows.len() < 2 || !is_plain || !is_even {
        return vec![query];
    }
    let mut groups: Vec<Group<'_>> = Vec::new();
    for row in &values.rows {
        let shapes: Vec<Shape> = row.content.iter().map(Shape::of).collect();
        match groups.last_mut().filter(|group| group.takes(&shapes)) {
            Some(group) => group.add(row, shapes),
            None => groups.push(Group { rows: vec![row], shapes }),
        }
    }
    if groups.len() == 1 {
        return vec![query];
    }
    let of_group = |group: &Group<'_>| {
        let rows = group.rows.iter().map(|row| (*row).clone()).collect();
        let values = Values { rows, explicit_row: values.explicit_row, value_keyword: values.value_keyword };
        Query { body: Box::new(SetExpr::Values(values)), ..query.clone() }
    };
    groups.iter().map(of_group).collect()
}

/// Rows that become one query.
struct Group<'v> {
    rows: Vec<&'v Parens<Vec<Expr>>>,
    /// The shape of each column.
    shapes: Vec<Shape>,
}

impl<'v> Group<'v> {
    fn takes(&self, shapes: &[Shape]) -> bool {
        self.shapes.iter().zip(shapes).all(|(own, other)| own.suits(other))
    }

    fn add(&mut self, row: &'v Parens<Vec<Expr>>, shapes: Vec<Shape>) {
        self.rows.push(row);
        for (own, other) in self.shapes.iter_mut().zip(shapes) {
            if *own == Shape::Null {
                *own = other;
            }
        }
    }
}

/// The form of an item of `VALUES`, which decides its type.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shape {
    /// `NULL`, which suits every other shape.
    Null,
    Number,
    Text,
    Boolean,
    Parameter,
    /// A literal of the type with this name.
    Typed(String),
    Array(Vec<Shape>),
    /// An item with a type that only planning finds.
    Computed,
}

impl Shape {
    fn of(item: &Expr) -> Shape {
        match item {
            Expr::Nested(inner) => Shape::of(inner),
            Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } => Shape::of(expr),
            Expr::Value(value) => match &value.value {
                Value::Null => Shape::Null,
                Value::Number(..) => Shape::Number,
                Value::Boolean(_) => Shape::Boolean,
                Value::Placeholder(_) => Shape::Parameter,
                _ => Shape::Text,
            },
            Expr::TypedString(typed) => Shape::Typed(typed.data_type.to_string()),
            Expr::Interval(_) => Shape::Typed("INTERVAL".to_owned()),
            Expr::Cast { expr, data_type, .. } if is_written_out(expr) => Shape::Typed(data_type.to_string()),
            Expr::Array(array) => {
                let mut shapes: Vec<Shape> = array.elem.iter().map(Shape::of).collect();
                shapes.dedup();
                match shapes.contains(&Shape::Computed) {
                    true => Shape::Computed,
                    false => Shape::Array(shapes),
                }
            }
            _ => Shape::Computed,
        }
    }

    fn suits(&self, other: &Shape) -> bool {
        match (self, other) {
            (Shape::Computed, _) | (_, Shape::Computed) => false,
            (Shape::Null, _) | (_, Shape::Null) => true,
            (own, other) => own == other,
        }
    }
}

/// Whether an item is the next value of a sequence. Rows get these values in order.
fn is_counted(item: &Expr) -> bool {
    let Expr::Function(function) = item else { return false };
    let name = function.name.0.last().and_then(|part| part.as_ident());
    name.is_some_and(|name| name.value.eq_ignore_ascii_case("nextval"))
}

/// Whether an item is a literal or a parameter, possibly under a cast.
fn is_written_out(item: &Expr) -> bool {
    match item {
        Expr::Value(_) | Expr::TypedString(_) | Expr::Interval(_) | Expr::Identifier(_) => true,
        Expr::UnaryOp { op: UnaryOperator::Minus | UnaryOperator::Plus, expr } | Expr::Nested(expr) => {
            is_written_out(expr)
        }
        Expr::Cast { expr, data_type, .. } => is_written_out(expr) && !is_float(data_type),
        Expr::Array(array) => array.elem.iter().all(is_written_out),
        _ => false,
    }
}

fn is_float(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Float(_)
            | DataType::Float4
            | DataType::Float8
            | DataType::Real
            | DataType::Double(_)
            | DataType::DoublePrecision
    )
}

/// Whether an error says that the items of a column do not agree.
pub(crate) fn is_of_items(error: &DataFusionError) -> bool {
    let says = |text: &str| text.starts_with("Inconsistent ") && text.contains(" across values list");
    matches!(error.find_root(), DataFusionError::Plan(text) if says(text))
}

/// Turns the rows of each `VALUES` into queries.
pub(crate) fn as_union(query: &mut Query) {
    struct Rewriter;
    impl VisitorMut for Rewriter {
        type Break = ();

        fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
            rewrite(&mut query.body);
            ControlFlow::Continue(())
        }
    }
    let _ = walk::change(query, &mut Rewriter);
}

fn sets<'q>(body: &'q SetExpr, found: &mut Vec<&'q Values>) {
    match body {
        SetExpr::Values(values) => found.push(values),
        SetExpr::SetOperation { left, right, .. } => {
            sets(left, found);
            sets(right, found);
        }
        _ => {}
    }
}

fn rewrite(body: &mut SetExpr) {
    match body {
        SetExpr::Values(values) if (1..=ROWS_MAX).contains(&values.rows.len()) => {
            if let Some(union) = union_of(values) {
                *body = union;
            }
        }
        SetExpr::SetOperation { left, right, .. } => {
            rewrite(left);
            rewrite(right);
        }
        _ => {}
    }
}

/// `SELECT column1, .. FROM (SELECT 0 AS "$place", a AS column1, .. UNION ALL .. ORDER BY "$place")
/// AS "$values"`
fn union_of(values: &Values) -> Option<SetExpr> {
    let rows = values.rows.iter().enumerate().map(|(at, row)| {
        let place = Expr::value(Value::Number(at.to_string(), false));
        let items = std::iter::once((place, PLACE.to_owned()));
        let items = items.chain((1..).zip(&row.content).map(|(at, item)| (item.clone(), format!("column{at}"))));
        let projection =
            items.map(|(expr, name)| SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) });
        let mut query = parsed("SELECT 1")?;
        let SetExpr::Select(select) = query.body.as_mut() else { return None };
        select.projection = projection.collect();
        Some(*query.body)
    });
    let rows = rows.collect::<Option<Vec<_>>>()?;
    let width = values.rows.first()?.content.len();
    let names = (1..=width).map(|at| format!("column{at}")).collect::<Vec<_>>().join(", ");
    let mut outer = parsed(&format!("SELECT {names} FROM (SELECT 1 ORDER BY \"{PLACE}\") AS \"$values\""))?;
    let SetExpr::Select(select) = outer.body.as_mut() else { return None };
    let TableFactor::Derived { subquery, .. } = &mut select.from.first_mut()?.relation else { return None };
    *subquery.body = balanced(rows)?;
    Some(*outer.body)
}

/// The union of queries, as a balanced tree.
fn balanced(mut rows: Vec<SetExpr>) -> Option<SetExpr> {
    if rows.len() < 2 {
        return rows.pop();
    }
    let right = rows.split_off(rows.len().div_ceil(2));
    Some(SetExpr::SetOperation {
        op: SetOperator::Union,
        set_quantifier: SetQuantifier::All,
        left: Box::new(balanced(rows)?),
        right: Box::new(balanced(right)?),
    })
}

fn parsed(text: &str) -> Option<Query> {
    Parser::new(&PostgreSqlDialect {}).try_with_sql(text).ok()?.parse_query().ok().map(|query| *query)
}
