//! Rewrites constructs of PostgreSQL and CrateDB that neither DataFusion nor Hazelcast's dialect
//! has.
//!
//! | source | becomes |
//! |---|---|
//! | `pg_catalog.lower(x)`, `current_schema` | `lower(x)`, `current_schema()` |
//! | `x::regclass`, `x::regtype`, .. | `reg_object('class', x)`: converts names and OIDs |
//! | `x OPERATOR(pg_catalog.~) y COLLATE "C"` | `x ~ y` |
//! | `ARRAY(SELECT x ..)` | `array_of_rows((SELECT array_agg(x) ..))` |
//! | `x = ANY($1)`, `x = ANY('{1,2}')` | `x = ANY(array_like($1, x))` |
//! | `(row).field` | `get_field(row, 'field')` |
//! | `_pg_expandarray(x)` | `unnest(_pg_expandarray(x))` |
//! | `x AT TIME ZONE z`, `EXTRACT(f FROM x)` | `timezone(z, x)`, `extract('f', x)` |
//! | `date(x)` | `x::date` |
//! | `FROM f(..) AS a(b)` | a table function, rows of an array, or one row of `f`'s value |
//! | `(a, b) = (c, d)` | `a = c AND b = d`, and similar comparisons (`rows`) |
//! | `x <> ALL (array)` | `compare_all('<>', x, array)` |
//! | `FROM jsonb_to_recordset(d) AS x(a int)` | a query of the members (`records`) |
//! | `lag(a, 1, b) OVER w` | `CASE WHEN lag(true, 1) OVER w IS NULL THEN b ELSE ..` (`shifts`) |
//! | columns without a name | the names that PostgreSQL and CrateDB give them |
//! | patterns, casts, functions of values | see `values` |

mod dates;
mod factors;
mod kinds;
mod members;
mod names;
mod operators;
mod records;
mod rows;
mod series;
mod shifts;
mod subqueries;
mod values;

use std::ops::ControlFlow;

pub(super) use members::condition;
pub(super) use names::name_returned;
pub(super) use records::takes_columns;
pub use rows::{ROWS, columns as columns_of_row};
pub use subqueries::{is_aggregate, is_aggregate_name};
pub(super) use values::whole_number;

use filbert_grid::query::{Dialect, SqlError, parsing_error};
use sqlparser::ast::{
    ArrayElemTypeDef, BinaryOperator, DataType, Expr, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArguments, ObjectName, Query, Select, SelectItem, SetExpr, TableFactor, TypedString, Value, ValueWithSpan,
    VisitMut, VisitorMut,
};
use sqlparser::parser::Parser;

use super::grammar::grammar;
use super::hooks;
use super::json::{call, text};
use crate::walk;

/// Rewrites a whole query or expression. `is_source` says that a query is the source of an INSERT.
pub(super) fn rewrite<T: VisitMut>(tree: &mut T, of: Dialect, is_source: bool) -> Result<(), SqlError> {
    match walk::change(tree, &mut Rewriter { of, is_source, derived: 0, depth: 0 }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Rewriter {
    of: Dialect,
    /// Whether the outermost query is the source of an INSERT.
    is_source: bool,
    /// The number of relations with a generated name.
    derived: usize,
    /// The number of enclosing queries.
    depth: usize,
}

/// Functions that SQL calls without parentheses; sqlparser parses them as columns.
const WITHOUT_BRACKETS: [&str; 3] = ["current_schema", "current_role", "session_user"];

impl VisitorMut for Rewriter {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        self.depth += 1;
        // Each row of an INSERT has the types of the table's columns.
        let has_columns = self.is_source && self.depth == 1;
        if let (SetExpr::Values(rows), false) = (query.body.as_mut(), has_columns) {
            values::same_types(rows, self.of);
        }
        if self.of == Dialect::Postgres
            && let Err(error) = series::place(query)
        {
            return ControlFlow::Break(error);
        }
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        self.depth = self.depth.saturating_sub(1);
        if self.of == Dialect::Postgres {
            series::order(query);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        names::name(&mut select.projection, self.of, self.depth <= 1);
        tell_items(&mut select.projection, self.of);
        kinds::prune(select);
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } = item {
                series::as_rows(expression);
            }
        }
        select.selection.iter_mut().chain(&mut select.having).for_each(condition);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<SqlError> {
        match self.of {
            Dialect::Postgres => records::rewrite(factor),
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<SqlError> {
        factors::rewrite(factor, &mut self.derived)
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<SqlError> {
        let matches = match operators::matches_with_each(expression) {
            Ok(matches) => matches,
            Err(error) => return ControlFlow::Break(error),
        };
        if let Some((mut matches, is_any)) = matches {
            for one in &mut matches {
                if let Err(error) = values::rewrite(one, self.of) {
                    return ControlFlow::Break(error);
                }
            }
            let op = if is_any { BinaryOperator::Or } else { BinaryOperator::And };
            all_of(matches.into_iter(), &op).into_iter().for_each(|all| *expression = all);
            return ControlFlow::Continue(());
        }
        if rows::among(expression) {
            return rows::rewrite(expression);
        }
        if let Some(matches) = operators::matches_with_items(expression) {
            *expression = matches;
            return ControlFlow::Continue(());
        }
        match expression {
            Expr::Case { operand, conditions, else_result, .. } if self.of == Dialect::Postgres => {
                if let Some(operand) = operand {
                    marked_as_varchar(operand);
                    conditions.iter_mut().for_each(|when| marked_as_varchar(&mut when.condition));
                }
                let results = conditions.iter_mut().map(|when| &mut when.result);
                results.chain(else_result.as_deref_mut()).for_each(marked_as_varchar);
            }
            Expr::Array(array) if self.of == Dialect::Postgres => {
                array.elem.iter_mut().for_each(marked_as_varchar);
            }
            Expr::Function(function) => {
                unqualify(&mut function.name);
                if self.of == Dialect::Postgres
                    && TELLING.contains(&function.name.to_string().to_ascii_lowercase().as_str())
                    && let FunctionArguments::List(list) = &mut function.args
                {
                    for argument in &mut list.args {
                        if let FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) = argument {
                            marked_as_varchar(argument);
                        }
                    }
                    for clause in &mut list.clauses {
                        if let FunctionArgumentClause::OrderBy(order) = clause {
                            order.iter_mut().for_each(|sort| marked_as_varchar(&mut sort.expr));
                        }
                    }
                }
                if function.name.to_string().eq_ignore_ascii_case("make_interval") {
                    dates::rewrite(expression)?;
                } else if let Some(operand) = dates::cast_by_name(function, self.of) {
                    *expression = values::cast(operand, DataType::Date);
                } else {
                    members::in_call(function);
                    if let Some(query) = subqueries::array_query(function) {
                        return subqueries::aggregated(expression, *query);
                    }
                    // A function that returns composite rows, anywhere in a SELECT list.
                    if function.name.to_string() == "_pg_expandarray" {
                        *expression = call("unnest", vec![taken(expression)], Vec::new(), None);
                    }
                }
            }
            Expr::Identifier(name) if name.quote_style.is_none() && WITHOUT_BRACKETS.contains(&name.value.as_str()) => {
                *expression = call(&name.value.clone(), Vec::new(), Vec::new(), None);
            }
            Expr::Cast { .. } => {
                if let Err(error) = cast(expression, self.of) {
                    return ControlFlow::Break(error);
                }
                members::in_cast(expression);
                dates::rewrite(expression)?;
            }
            Expr::TypedString(_) | Expr::Interval(_) | Expr::Extract { .. } | Expr::AtTimeZone { .. } => {
                dates::rewrite(expression)?;
            }
            Expr::BinaryOp { op: BinaryOperator::Overlaps, .. } => dates::rewrite(expression)?,
            Expr::Exists { subquery, negated } if subqueries::is_always_empty(subquery) => {
                *expression = Expr::value(Value::Boolean(*negated));
            }
            Expr::Subquery(query) => subqueries::empty(query).into_iter().for_each(|null| *expression = null),
            Expr::CompoundFieldAccess { root, access_chain } => {
                if let Some(fields) = operators::fields(root, access_chain) {
                    let row = taken(root);
                    let field = |row, field: String| call("get_field", vec![row, text(&field)], Vec::new(), None);
                    *expression = fields.into_iter().fold(row, field);
                } else if let Some(member) = members::access(root, access_chain, self.of) {
                    *expression = member;
                }
            }
            Expr::UnaryOp { op: sqlparser::ast::UnaryOperator::Minus, expr }
                if matches!(expr.as_ref(), Expr::Interval(_)) =>
            {
                return dates::rewrite(expression);
            }
            Expr::UnaryOp { op, expr } => {
                members::in_sign(*op, expr).into_iter().for_each(|signed| *expression = signed)
            }
            Expr::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } if members::is_member(right) => {
                *expression = call("object_has", vec![taken(right), taken(left)], Vec::new(), None);
            }
            Expr::BinaryOp { left, op, right } if operators::function(op).is_some() => {
                let arguments = vec![taken(left), taken(right)];
                if let Some(function) = operators::function(op) {
                    *expression = call(function, arguments, Vec::new(), None);
                }
            }
            Expr::AnyOp { left, compare_op, right, .. } | Expr::AllOp { left, compare_op, right } => {
                let (left, compare_op, right) = (left.clone(), compare_op.clone(), right.clone());
                let is_any = matches!(expression, Expr::AnyOp { .. });
                match operators::quantified(&left, &compare_op, &right, is_any, self.of) {
                    Ok(compared) => compared.into_iter().for_each(|compared| *expression = compared),
                    Err(error) => return ControlFlow::Break(error),
                }
            }
            Expr::Collate { expr, collation } => {
                if let Err(error) = crate::names::check_collation(collation) {
                    return ControlFlow::Break(error);
                }
                *expression = taken(expr);
            }
            Expr::BinaryOp { op: BinaryOperator::PGCustomBinaryOperator(parts), .. } => {
                let Some(known) = parts.last().and_then(|sign| operators::of_sign(sign)) else {
                    return refuse(format!("operator {} does not exist", parts.join(".")), "42883");
                };
                if let Expr::BinaryOp { op, .. } = expression {
                    *op = known;
                }
            }
            Expr::BinaryOp { .. }
            | Expr::InList { .. }
            | Expr::InSubquery { .. }
            | Expr::Between { .. }
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::IsDistinctFrom(..)
            | Expr::IsNotDistinctFrom(..) => {
                if self.of == Dialect::Postgres {
                    compared_mut(expression).into_iter().for_each(marked_as_varchar);
                }
                rows::rewrite(expression)?;
            }
            Expr::Value(ValueWithSpan { value: Value::UnicodeStringLiteral(text), .. }) if text.contains('\0') => {
                return refuse("invalid Unicode escape value", "42601");
            }
            Expr::Value(ValueWithSpan { value, .. }) => plain_text(value),
            _ => {}
        }
        match values::rewrite(expression, self.of) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}

fn refuse(message: impl Into<String>, sqlstate: &'static str) -> ControlFlow<SqlError> {
    ControlFlow::Break(parsing_error(message).with_sqlstate(sqlstate))
}

fn taken(expression: &mut Expr) -> Expr {
    std::mem::replace(expression, Expr::value(Value::Null))
}

/// Converts PostgreSQL's other forms of string literals to plain ones.
fn plain_text(value: &mut Value) {
    match value {
        Value::EscapedStringLiteral(text) | Value::UnicodeStringLiteral(text) | Value::NationalStringLiteral(text) => {
            *value = Value::SingleQuotedString(std::mem::take(text));
        }
        Value::DollarQuotedString(text) => *value = Value::SingleQuotedString(std::mem::take(&mut text.value)),
        _ => {}
    }
}

/// Removes `pg_catalog` from a name.
fn unqualify(name: &mut ObjectName) {
    let is_system =
        |name: &str| name.eq_ignore_ascii_case("pg_catalog") || name.eq_ignore_ascii_case("information_schema");
    let qualified = match name.0.as_slice() {
        [schema, _] => schema.as_ident().is_some_and(|schema| is_system(&schema.value)),
        _ => false,
    };
    if qualified {
        name.0.remove(0);
    }
}

/// The terms under one operator, in order, as a balanced tree: a walk over a chain would use the
/// stack for each term.
fn all_of(terms: impl Iterator<Item = Expr>, op: &BinaryOperator) -> Option<Expr> {
    hooks::balanced(terms.collect(), op)
}

/// Sets the types of SELECT items that casts name and plans do not know.
pub(super) fn tell_items(items: &mut [SelectItem], of: Dialect) {
    for item in items {
        if let SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } = item
            && of == Dialect::Postgres
        {
            marked_as_varchar(expression);
        }
    }
}

/// Functions whose results distinguish `varchar` from `text`.
const TELLING: [&str; 11] = [
    "array_agg",
    "coalesce",
    "first_value",
    "greatest",
    "lag",
    "last_value",
    "lead",
    "least",
    "nth_value",
    "nullif",
    "pg_typeof",
];

/// The operands of a comparison, which may be beside a fixed-length text.
fn compared_mut(expression: &mut Expr) -> Vec<&mut Expr> {
    use BinaryOperator::{Eq, Gt, GtEq, Lt, LtEq, NotEq};
    match expression {
        Expr::BinaryOp { left, op: Eq | NotEq | Lt | LtEq | Gt | GtEq, right }
        | Expr::IsDistinctFrom(left, right)
        | Expr::IsNotDistinctFrom(left, right) => {
            let operands = [left.as_mut(), right.as_mut()].into_iter();
            operands
                .flat_map(|operand| match operand {
                    Expr::Tuple(items) => items.iter_mut().collect(),
                    other => vec![other],
                })
                .collect()
        }
        Expr::InList { expr, list, .. } => std::iter::once(expr.as_mut()).chain(list).collect(),
        Expr::InSubquery { expr, .. } => vec![expr.as_mut()],
        Expr::Between { expr, low, high, .. } => vec![expr.as_mut(), low.as_mut(), high.as_mut()],
        _ => Vec::new(),
    }
}

/// A cast to `varchar` where its type is reported or compared. Computations treat it as text.
fn marked_as_varchar(mut expression: &mut Expr) {
    while let Expr::Nested(inner) = expression {
        expression = inner.as_mut();
    }
    let (Expr::Cast { data_type, .. } | Expr::TypedString(TypedString { data_type, .. })) = &*expression else {
        return;
    };
    if matches!(data_type, DataType::Varchar(None) | DataType::CharacterVarying(None) | DataType::CharVarying(None)) {
        *expression = call("marked_as_varchar", vec![taken(expression)], Vec::new(), None);
    }
}

/// Casts to types of the system catalog.
fn cast(expression: &mut Expr, of: Dialect) -> Result<(), SqlError> {
    let Expr::Cast { expr, data_type, .. } = &mut *expression else { return Ok(()) };
    if let Some(plain) = system_type(data_type, of) {
        *data_type = plain;
    }
    if let (DataType::Array(ArrayElemTypeDef::SquareBracket(item, _)), Some(written)) = (&*data_type, literal_of(expr))
    {
        let mut item = item.as_ref();
        while let DataType::Array(ArrayElemTypeDef::SquareBracket(inner, _)) = item {
            item = inner;
        }
        if values::is_long_array(written) {
            let text = values::cast(taken(expr), DataType::Text);
            **expr = text;
            return Ok(());
        }
        let Some(array) = values::written_array(written, item) else {
            let message = format!("malformed array literal: {written:?}");
            return Err(filbert_grid::query::data_error(message).with_sqlstate("22P02"));
        };
        // An array of arrays already has the type of its elements.
        match &array {
            Expr::Array(items) if matches!(items.elem.first(), Some(Expr::Array(_))) => *expression = array,
            _ => **expr = array,
        }
        return Ok(());
    }
    let Some(name) = type_name(data_type) else {
        // An object that is cast further to text becomes its name; to other types, its OID.
        if let Some(argument) = reg_object(expr) {
            let function = match data_type {
                DataType::Text | DataType::Varchar(_) => "reg_name",
                DataType::BigInt(_) | DataType::Int(_) | DataType::Integer(_) => "reg_oid",
                _ => return Ok(()),
            };
            *expression = call(function, argument, Vec::new(), None);
        }
        return Ok(());
    };
    match name.as_str() {
        "oid" | "xid" | "cid" | "xid8" => match reg_object(expr) {
            Some(arguments) => *expression = call("reg_oid", arguments, Vec::new(), None),
            None => *data_type = DataType::BigInt(None),
        },
        "char" => {
            *expression =
                call("left", vec![taken(expr), Expr::value(Value::Number("1".to_owned(), false))], Vec::new(), None)
        }
        // A string literal has its own length.
        "bpchar" => {
            let length = literal_of(expr).map(|written| written.chars().count()).filter(|length| *length > 0);
            let length = length.map(|length| Expr::value(Value::Number(length.to_string(), false)));
            *expression = call("cast_char", std::iter::once(taken(expr)).chain(length).collect(), Vec::new(), None);
        }
        "name" | "cstring" | "unknown" | "citext" => *data_type = DataType::Text,
        "timestamptz" => *data_type = timestamp_tz(),
        "int2vector" | "oidvector" => {
            *expression = call(&format!("cast_{name}"), vec![taken(expr)], Vec::new(), None);
        }
        "double" => *data_type = DataType::DoublePrecision,
        "long" => *data_type = DataType::BigInt(None),
        "short" => *data_type = DataType::SmallInt(None),
        "byte" => *data_type = DataType::TinyInt(None),
        "ip" | "inet" => *expression = call("cast_inet", vec![taken(expr)], Vec::new(), None),
        "cidr" => *expression = call("cast_cidr", vec![taken(expr)], Vec::new(), None),
        "string" => *data_type = DataType::Text,
        name => {
            if let Some(kind) = name.strip_prefix("reg") {
                let kind = if kind == "procedure" { "proc" } else { kind };
                let mut arguments = vec![text(kind)];
                arguments.push(match reg_object(expr) {
                    // Converts from one kind of object to another by OID.
                    Some(inner) => call("reg_oid", inner, Vec::new(), None),
                    None => taken(expr),
                });
                *expression = call("reg_object", arguments, Vec::new(), None);
            }
        }
    }
    Ok(())
}

/// The text of a literal.
fn literal_of(expression: &Expr) -> Option<&str> {
    match expression {
        Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) => Some(text),
        _ => None,
    }
}

/// The arguments of a call for a cast to a type like `regclass`.
fn reg_object(expression: &mut Expr) -> Option<Vec<Expr>> {
    let mut inner = expression;
    while let Expr::Nested(nested) = inner {
        inner = nested;
    }
    let Expr::Function(function) = inner else { return None };
    if function.name.to_string() != "reg_object" {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    let of_argument = |argument: &sqlparser::ast::FunctionArg| match argument {
        sqlparser::ast::FunctionArg::Unnamed(sqlparser::ast::FunctionArgExpr::Expr(expression)) => {
            Some(expression.clone())
        }
        _ => None,
    };
    list.args.iter().map(of_argument).collect()
}

fn timestamp_tz() -> DataType {
    DataType::Timestamp(None, sqlparser::ast::TimezoneInfo::WithTimeZone)
}

fn array_of(item: DataType) -> DataType {
    DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(item), None))
}

/// The lower-case name of a type that sqlparser does not know.
fn type_name(data_type: &DataType) -> Option<String> {
    match data_type {
        DataType::Custom(name, arguments) if arguments.is_empty() => match name.0.as_slice() {
            [name] => Some(name.as_ident()?.value.to_ascii_lowercase()),
            _ => None,
        },
        DataType::Regclass => Some("regclass".to_owned()),
        _ => None,
    }
}

/// A type that is qualified with `pg_catalog`, or an array of a system type, as an unqualified
/// type.
fn system_type(data_type: &DataType, of: Dialect) -> Option<DataType> {
    match data_type {
        DataType::Custom(name, arguments) => {
            let [schema, name] = name.0.as_slice() else { return None };
            if !schema.as_ident()?.value.eq_ignore_ascii_case("pg_catalog") {
                return None;
            }
            let name = name.as_ident()?;
            if name.quote_style.is_some() {
                return Some(DataType::Custom(name.clone().into(), Vec::new()));
            }
            let mut written = name.value.clone();
            if !arguments.is_empty() {
                written.push_str(&format!("({})", arguments.join(", ")));
            }
            let mut parser = Parser::new(grammar(of)).try_with_sql(&written).ok()?;
            parser.parse_data_type().ok()
        }
        DataType::Array(ArrayElemTypeDef::SquareBracket(item, _)) => {
            let plain = system_type(item, of);
            let item = plain.as_ref().unwrap_or(item);
            let kept = match type_name(item).as_deref() {
                Some("oid" | "xid" | "regclass" | "regtype" | "regproc") => DataType::BigInt(None),
                Some("name" | "char" | "cstring" | "bpchar") => DataType::Text,
                _ => plain?,
            };
            Some(array_of(kept))
        }
        _ => None,
    }
}
