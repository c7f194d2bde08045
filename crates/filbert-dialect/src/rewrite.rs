//! Rewrites constructs that DataFusion does not know into known ones.

use std::ops::ControlFlow;

use bigdecimal::BigDecimal;
use filbert_data::FieldType;
use filbert_grid::query::{Dialect, SqlError, SqlErrorCode, parsing_error};
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    BinaryOperator, CaseWhen, CastKind, DataType, ExactNumberInfo, Expr, Fetch, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentClause, FunctionArguments, Ident, LimitClause, Offset, OrderBy, OrderByKind, Query, Select,
    SelectItem, SetExpr, TableAlias, TableFactor, TypedString, UnaryOperator, Value, ValueWithSpan, Values, Visit,
    VisitMut, Visitor, VisitorMut,
};

use super::json::{call, text};
use super::names;
use super::precedence;
use super::served;
use super::server;
use super::types::{planner_type, sql_type};
use super::windows;
use super::work;
use crate::calls::{ABSOLUTE, NEGATED, OPERAND, TO_NUMERIC};
use crate::walk;

/// Rewrites a whole query or expression.
pub(super) fn rewrite<T: Visit + VisitMut>(tree: &mut T, of: Dialect) -> Result<(), SqlError> {
    rewrite_tree(tree, of, false)
}

/// Like [`rewrite`], for the source of an INSERT.
pub(super) fn rewrite_source(query: &mut Query, of: Dialect) -> Result<(), SqlError> {
    rewrite_tree(query, of, true)
}

fn rewrite_tree<T: Visit + VisitMut>(tree: &mut T, of: Dialect, is_source: bool) -> Result<(), SqlError> {
    served::check(tree)?;
    names::check_tables(tree)?;
    precedence::resolve(tree);
    if of != Dialect::Hazelcast {
        server::rewrite(tree, of, is_source)?;
    }
    match walk::change(tree, &mut Rewriter { of, derived: 0 }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Whether a query has parameters.
pub(super) fn has_parameters(query: &Query) -> bool {
    struct Finder;
    impl Visitor for Finder {
        type Break = ();

        fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<()> {
            match value.value {
                Value::Placeholder(_) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    walk::read(query, &mut Finder).is_break()
}

struct Rewriter {
    of: Dialect,
    /// The number of unnamed queries so far.
    derived: usize,
}

fn refuse(message: impl Into<String>) -> ControlFlow<SqlError> {
    ControlFlow::Break(parsing_error(message))
}

impl VisitorMut for Rewriter {
    type Break = SqlError;

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<SqlError> {
        if !is_read_only(&query.body) {
            return refuse("a query cannot change anything");
        }
        if !query.locks.is_empty() || query.for_clause.is_some() {
            return refuse("FOR after a query is not served");
        }
        if let (SetExpr::Select(select), Some(OrderBy { kind: OrderByKind::Expressions(order), .. })) =
            (query.body.as_ref(), query.order_by.as_mut())
        {
            windows::resolve_order(select, order)?;
        }
        match query.fetch.take() {
            None => ControlFlow::Continue(()),
            Some(fetch) => fetch_as_limit(query, fetch),
        }
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<SqlError> {
        if let TableFactor::Derived { lateral: true, subquery, .. } = factor {
            alias_columns(&mut subquery.body);
        }
        // Another rewriting has handled it in the other dialects.
        if let TableFactor::Table { with_ordinality: true, .. }
        | TableFactor::Function { with_ordinality: true, .. }
        | TableFactor::UNNEST { with_ordinality: true, .. } = factor
        {
            return ControlFlow::Break(parsing_error("WITH ORDINALITY is not served").with_sqlstate("0A000"));
        }
        let (name, args, alias) = match factor {
            TableFactor::TableFunction { expr: Expr::Function(function), alias } => {
                let FunctionArguments::List(list) = &mut function.args else {
                    return refuse("a table function is called with arguments in brackets");
                };
                (function.name.clone(), std::mem::take(&mut list.args), alias.take())
            }
            TableFactor::TableFunction { .. } => return refuse("TABLE(..) holds a table function's call"),
            TableFactor::Table { name, args: Some(args), alias, .. } => {
                (name.clone(), std::mem::take(&mut args.args), alias.take())
            }
            // Without an alias, the query's names would be invisible, to DataFusion as well.
            TableFactor::Derived { alias: alias @ None, .. } => {
                self.derived += 1;
                *alias = Some(alias_of(&format!("$derived{}", self.derived)));
                return ControlFlow::Continue(());
            }
            _ => return ControlFlow::Continue(()),
        };
        let function = name.to_string().to_ascii_lowercase();
        let args = match positional(&function, args) {
            Ok(args) => args,
            Err(error) => return ControlFlow::Break(error),
        };
        let alias = Some(alias.unwrap_or_else(|| alias_of(&function)));
        *factor = TableFactor::Function {
            lateral: false,
            name: Ident::new(function).into(),
            args,
            with_ordinality: false,
            alias,
        };
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<SqlError> {
        for item in &mut select.projection {
            if let SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } = item {
                narrow(expression, self.of);
            }
        }
        windows::resolve(select)
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<SqlError> {
        // The smallest 64-bit number: its digits without the sign are out of range.
        if let Expr::UnaryOp { op: UnaryOperator::Minus, expr } = &*expression
            && let Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) = expr.as_ref()
            && self.of != Dialect::Crate
            && digits.parse::<i64>().is_err()
            && format!("-{digits}").parse::<i64>().is_ok()
        {
            *expression = Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(text(&format!("-{digits}"))),
                data_type: DataType::BigInt(None),
                array: false,
                format: None,
            };
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<SqlError> {
        if self.of == Dialect::Postgres {
            fold_signs(expression);
        }
        match expression {
            Expr::Cast { kind, expr, data_type, array, format } => {
                if *array || format.is_some() {
                    return refuse("CAST is served as CAST(expression AS type)");
                }
                let Some(field_type) = sql_type(data_type) else {
                    return refuse(format!("there is no type {data_type} to cast to"));
                };
                if field_type == FieldType::Interval && self.of == Dialect::Hazelcast {
                    return refuse("nothing can be cast to INTERVAL");
                }
                // A number without declared digits keeps its own digits.
                if self.of == Dialect::Postgres && field_type == FieldType::Decimal(None) {
                    let inner = std::mem::replace(expr.as_mut(), Expr::value(Value::Null));
                    *expression = as_numeric(inner);
                    return ControlFlow::Continue(());
                }
                if let Some(planned) = planner_type(&field_type) {
                    *data_type = planned;
                    if *kind == CastKind::DoubleColon {
                        *kind = CastKind::Cast;
                    }
                    return ControlFlow::Continue(());
                }
                let function = match field_type {
                    FieldType::Json => "cast_json",
                    FieldType::Object => "cast_object",
                    FieldType::Uuid => "cast_uuid",
                    other => return refuse(format!("nothing can be cast to {other}")),
                };
                let inner = std::mem::replace(expr.as_mut(), Expr::value(Value::Null));
                *expression = call(function, vec![inner], Vec::new(), None);
            }
            Expr::TypedString(TypedString { data_type, .. }) => {
                let planned = sql_type(data_type).as_ref().and_then(planner_type);
                match planned {
                    Some(planned) => *data_type = planned,
                    None => return refuse(format!("there is no literal of type {data_type}")),
                }
            }
            Expr::Case { .. } if self.of != Dialect::Crate => narrow(expression, self.of),
            Expr::Ceil { expr, .. } | Expr::Floor { expr, .. } if self.of == Dialect::Hazelcast => {
                narrow(expr, self.of);
            }
            Expr::Function(function) if self.of == Dialect::Hazelcast => {
                narrow_arguments(function, &OF_ARGUMENTS_IN_HAZELCAST, &OF_FIRST_IN_HAZELCAST, self.of);
                operator(function).into_iter().for_each(|operator| *expression = operator);
            }
            Expr::UnaryOp { op: UnaryOperator::Minus, expr }
                if self.of == Dialect::Hazelcast && server::whole_number(expr).is_none() && !is_signed(expr) =>
            {
                *expression = of_one_operand(NEGATED, expr);
            }
            // The planner has a function of its own for the syntax.
            Expr::Substring { expr, substring_from, substring_for, .. } if self.of == Dialect::Hazelcast => {
                let from = substring_from.take().map_or_else(|| number("1"), |from| *from);
                let arguments = [Some(*taken(expr)), Some(from), substring_for.take().map(|length| *length)];
                *expression = call("substr", arguments.into_iter().flatten().collect(), Vec::new(), None);
            }
            Expr::Function(function) if self.of == Dialect::Postgres => {
                narrow_arguments(function, &OF_ARGUMENTS, &OF_FIRST, self.of);
                function.within_group.iter_mut().for_each(|item| narrow(&mut item.expr, self.of));
                match nullif(function) {
                    Ok(choice) => choice.into_iter().for_each(|choice| *expression = choice),
                    Err(error) => return ControlFlow::Break(error),
                }
            }
            Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. })
                if self.of == Dialect::Postgres && is_beyond_planner(digits) =>
            {
                match exact_number(digits) {
                    Ok(plain) => *expression = plain,
                    Err(error) => return ControlFlow::Break(error),
                }
            }
            Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. })
                if self.of == Dialect::Hazelcast && is_beyond_bigint(digits) =>
            {
                *expression = Expr::Cast {
                    kind: CastKind::Cast,
                    expr: Box::new(text(digits)),
                    data_type: DataType::Decimal(ExactNumberInfo::PrecisionAndScale(BIG_DIGITS_MAX, 0)),
                    array: false,
                    format: None,
                };
            }
            Expr::UnaryOp { op, expr } if self.of == Dialect::Postgres && function_of_sign(*op).is_some() => {
                narrow(expr, self.of);
                let inner = std::mem::replace(expr.as_mut(), Expr::value(Value::Null));
                // The operator is for `double precision` only, the function for `numeric` too.
                let inner = match op {
                    UnaryOperator::PGSquareRoot => Expr::Cast {
                        kind: CastKind::Cast,
                        expr: Box::new(Expr::Nested(Box::new(inner))),
                        data_type: DataType::DoublePrecision,
                        array: false,
                        format: None,
                    },
                    _ => inner,
                };
                if let Some(function) = function_of_sign(*op) {
                    *expression = call(function, vec![inner], Vec::new(), None);
                }
            }
            Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. })
                if digits.contains(['e', 'E']) && !digits.starts_with("0x") =>
            {
                *expression = Expr::Cast {
                    kind: CastKind::Cast,
                    expr: Box::new(text(digits)),
                    data_type: DataType::DoublePrecision,
                    array: false,
                    format: None,
                };
            }
            Expr::Like { any: false, pattern, escape_char, .. }
            | Expr::ILike { any: false, pattern, escape_char, .. }
                if self.of == Dialect::Hazelcast =>
            {
                return like(pattern, escape_char);
            }
            Expr::Extract { field, expr, .. } => {
                let field = field.to_string().trim_matches(['\'', '"']).to_ascii_uppercase();
                let inner = std::mem::replace(expr.as_mut(), Expr::value(Value::Null));
                *expression = call("extract_field", vec![text(&field), inner], Vec::new(), None);
            }
            Expr::UnaryOp { op: UnaryOperator::Plus, expr } => {
                *expression = std::mem::replace(expr.as_mut(), Expr::value(Value::Null));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// The number of digits of a `DECIMAL` in Hazelcast's dialect.
const BIG_DIGITS_MAX: u64 = 38;

/// Whether a whole number is a `DECIMAL` in Hazelcast's dialect, because a `BIGINT` does not hold
/// it.
fn is_beyond_bigint(digits: &str) -> bool {
    let is_whole = digits.bytes().all(|digit| digit.is_ascii_digit());
    is_whole && digits.parse::<i64>().is_err() && digits.trim_start_matches('0').len() as u64 <= BIG_DIGITS_MAX
}

/// `x::numeric` in PostgreSQL's dialect. A string literal keeps its digits.
pub fn as_numeric(inner: Expr) -> Expr {
    let mut arguments = vec![inner];
    if let Some(Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(digits), .. })) = arguments.first()
        && let Ok(number) = digits.trim().parse::<BigDecimal>()
        && let scale @ ..=36 = number.as_bigint_and_exponent().1.max(0)
    {
        let digits = |count: i64| Expr::value(Value::Number(count.to_string(), false));
        arguments.extend([digits(76), digits(scale)]);
    }
    call(TO_NUMERIC, arguments, Vec::new(), None)
}

/// The maximum precision of an exact number.
const DIGITS_MAX: i64 = 76;
/// The maximum scale.
const SCALE_MAX: i64 = 36;

/// Whether a number is a `numeric` in PostgreSQL but not for the planner: one with an exponent, or
/// beyond 64 bits.
fn is_beyond_planner(digits: &str) -> bool {
    let is_large = || digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<i64>().is_err();
    !digits.starts_with("0x") && (digits.contains(['e', 'E']) || is_large())
}

/// A number beyond the planner's numbers as a `numeric`. A number beyond the maximum precision or
/// scale is a `double precision` if that has all of its digits.
///
/// # Errors
/// Neither type has all digits of the number.
fn exact_number(digits: &str) -> Result<Expr, SqlError> {
    let digits = digits.replace('_', "");
    let beyond = || {
        let text = format!(
            "the number {digits} has more digits than numeric has here: {DIGITS_MAX}, {SCALE_MAX} of them behind the \
             point"
        );
        SqlError::new(SqlErrorCode::DataException, text).with_sqlstate("22003")
    };
    let number = digits.parse::<BigDecimal>().map_err(|_| beyond())?;
    let (unscaled, exponent) = number.as_bigint_and_exponent();
    let whole = i64::try_from(unscaled.magnitude().to_string().len()).unwrap_or(i64::MAX).saturating_sub(exponent);
    let scale = exponent.max(0);
    if scale > SCALE_MAX || whole.saturating_add(scale) > DIGITS_MAX {
        return match is_double(&number) {
            true => Ok(call("to_float8", vec![text(&digits)], Vec::new(), None)),
            false => Err(beyond()),
        };
    }
    // A number with few digits has the same type as other numbers with few digits.
    let precision = if whole.max(1) + scale <= 38 { whole.max(1) + scale } else { DIGITS_MAX };
    let plain = text(&number.with_scale(scale).to_plain_string());
    let count = |count: i64| Expr::value(Value::Number(count.to_string(), false));
    Ok(call(TO_NUMERIC, vec![plain, count(precision), count(scale)], Vec::new(), None))
}

/// Whether a `double precision` shows all digits of a number.
fn is_double(number: &BigDecimal) -> bool {
    let double = number.to_string().parse::<f64>().ok().filter(|double| double.is_finite());
    double.is_some_and(|double| format!("{double:e}").parse().is_ok_and(|shown: BigDecimal| shown == *number))
}

/// Gives columns of a query their names as aliases. For a column of another relation beside a
/// `LATERAL` query, the planner would invent a name.
fn alias_columns(query: &mut SetExpr) {
    match query {
        SetExpr::Select(select) => {
            for item in &mut select.projection {
                let SelectItem::UnnamedExpr(expr) = item else { continue };
                let alias = match &*expr {
                    Expr::Identifier(name) => Some(name.clone()),
                    Expr::CompoundIdentifier(names) => names.last().cloned(),
                    _ => None,
                };
                if let Some(alias) = alias {
                    *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
                }
            }
        }
        SetExpr::Query(query) => alias_columns(&mut query.body),
        SetExpr::SetOperation { left, .. } => alias_columns(left),
        _ => {}
    }
}

/// Functions with a result of their arguments' types, in PostgreSQL's dialect.
const OF_ARGUMENTS: [&str; 17] = [
    "abs",
    "array_agg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "coalesce",
    "gcd",
    "generate_series",
    "greatest",
    "lcm",
    "least",
    "max",
    "min",
    "mod",
    "nullif",
    "pg_typeof",
    "sum",
];
/// Functions with a result of their first argument's type, in PostgreSQL's dialect.
const OF_FIRST: [&str; 6] = ["array_fill", "first_value", "lag", "last_value", "lead", "nth_value"];
/// Functions with a result that depends on their arguments' types, in Hazelcast's dialect.
const OF_ARGUMENTS_IN_HAZELCAST: [&str; 8] = ["coalesce", "greatest", "least", "max", "min", "nullif", "sign", "sum"];
/// Functions with a result of their first argument's type, in Hazelcast's dialect.
const OF_FIRST_IN_HAZELCAST: [&str; 6] = ["ceil", "ceiling", "floor", "round", "trunc", "truncate"];

/// Gives whole-number arguments of such functions the smallest type of the dialect.
fn narrow_arguments(function: &mut Function, of_arguments: &[&str], of_first: &[&str], of: Dialect) {
    let name = function.name.to_string().to_ascii_lowercase();
    let FunctionArguments::List(list) = &mut function.args else { return };
    let count = match name.as_str() {
        name if of_arguments.contains(&name) => list.args.len(),
        name if of_first.contains(&name) => 1,
        _ => 0,
    };
    if count > 0 {
        // The expressions of DISTINCT and ORDER BY must stay the same.
        for clause in &mut list.clauses {
            if let FunctionArgumentClause::OrderBy(order) = clause {
                order.iter_mut().for_each(|item| narrow(&mut item.expr, of));
            }
        }
        for argument in list.args.iter_mut().take(count) {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) = argument {
                narrow(argument, of);
            }
        }
    }
}

/// Whether the planner applies a sign to an operand itself: to numbers and intervals that are
/// written out.
fn is_signed(operand: &Expr) -> bool {
    match operand {
        Expr::Value(ValueWithSpan { value, .. }) => *value != Value::Null,
        operand => matches!(operand, Expr::Interval(_)),
    }
}

fn number(digits: &str) -> Expr {
    Expr::value(Value::Number(digits.to_owned(), false))
}

/// `MOD(a, b)` and `ABS(x)` of Hazelcast's dialect as operators, which have types of their own;
/// `None` for other functions.
fn operator(function: &mut Function) -> Option<Expr> {
    let name = function.name.to_string().to_ascii_lowercase();
    let FunctionArguments::List(list) = &mut function.args else { return None };
    match (name.as_str(), list.args.as_mut_slice()) {
        ("abs", [FunctionArg::Unnamed(FunctionArgExpr::Expr(operand))]) => Some(of_one_operand(ABSOLUTE, operand)),
        (
            "mod",
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(left)), FunctionArg::Unnamed(FunctionArgExpr::Expr(right))],
        ) => {
            let (left, right) = (taken(left), taken(right));
            Some(Expr::Nested(Box::new(Expr::BinaryOp { left, op: BinaryOperator::Modulo, right })))
        }
        _ => None,
    }
}

/// An operator with one operand, as a binary operator.
fn of_one_operand(name: &str, operand: &mut Expr) -> Expr {
    let left = Box::new(call(name, Vec::new(), Vec::new(), None));
    Expr::Nested(Box::new(Expr::BinaryOp { left, op: BinaryOperator::Minus, right: taken(operand) }))
}

/// An operand, which is replaced where it was.
fn taken(operand: &mut Expr) -> Box<Expr> {
    Box::new(Expr::Nested(Box::new(std::mem::replace(operand, Expr::value(Value::Null)))))
}

/// `nullif(a, b)` becomes `CASE WHEN a = b THEN NULL ELSE a END` with the type that the operator
/// coerces the first argument to: a string literal, or NULL, takes the other argument's type.
fn nullif(function: &Function) -> Result<Option<Expr>, SqlError> {
    if !function.name.to_string().eq_ignore_ascii_case("nullif") {
        return Ok(None);
    }
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(first)), FunctionArg::Unnamed(FunctionArgExpr::Expr(second))] =
        list.args.as_slice()
    else {
        return Ok(None);
    };
    work::copy(first)?;
    work::copy(second)?;
    let operand = |of: &Expr, beside: &Expr| call(OPERAND, vec![of.clone(), beside.clone()], Vec::new(), None);
    let nested = |expression: &Expr| Box::new(Expr::Nested(Box::new(expression.clone())));
    let condition = Expr::BinaryOp { left: nested(first), op: BinaryOperator::Eq, right: nested(second) };
    let mut conditions = vec![CaseWhen { condition, result: Expr::value(Value::Null) }];
    let of_any_type = |value: &Value| matches!(value, Value::SingleQuotedString(_) | Value::Null);
    let is_of_any_type = |expression: &Expr| matches!(expression, Expr::Value(given) if of_any_type(&given.value));
    let result = match is_of_any_type(first) && !is_of_any_type(second) {
        true => {
            conditions.push(CaseWhen { condition: Expr::value(Value::Boolean(true)), result: first.clone() });
            operand(second, first)
        }
        false => operand(first, second),
    };
    Ok(Some(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions,
        else_result: Some(Box::new(result)),
    }))
}

/// The function for a sign before an operand in PostgreSQL's dialect.
fn function_of_sign(op: UnaryOperator) -> Option<&'static str> {
    Some(match op {
        UnaryOperator::PGSquareRoot => "sqrt",
        UnaryOperator::PGCubeRoot => "cbrt",
        UnaryOperator::PGAbs => "abs",
        UnaryOperator::BitwiseNot => "whole_not",
        _ => return None,
    })
}

/// A query that consists of a body alone.
pub fn query_of(body: SetExpr) -> Query {
    Query {
        with: None,
        body: Box::new(body),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

pub(super) fn alias_of(name: &str) -> TableAlias {
    TableAlias { explicit: true, name: Ident::with_quote('"', name), columns: Vec::new(), at: None }
}

/// Gives whole numbers of `VALUES` the type that they have in a SELECT list.
pub fn narrow_values(values: &mut Values, of: Dialect) {
    values.rows.iter_mut().flat_map(|row| row.content.iter_mut()).for_each(|value| narrow(value, of));
}

/// Gives a whole number of a SELECT list the smallest type of the dialect that holds it.
pub fn narrow(expression: &mut Expr, of: Dialect) {
    if let Expr::Nested(inner) = expression {
        return narrow(inner, of);
    }
    if let Expr::Case { conditions, else_result, .. } = expression {
        let results = conditions.iter_mut().map(|when| &mut when.result);
        results.chain(else_result.as_deref_mut()).for_each(|result| narrow(result, of));
        return;
    }
    let Some(number) = server::whole_number(expression) else { return };
    // PostgreSQL's whole-number literals have at least 32 bits.
    let is_narrow = of == Dialect::Hazelcast;
    let data_type = if is_narrow && i8::try_from(number).is_ok() {
        DataType::TinyInt(None)
    } else if is_narrow && i16::try_from(number).is_ok() {
        DataType::SmallInt(None)
    } else if i32::try_from(number).is_ok() {
        DataType::Int(None)
    } else {
        return;
    };
    let literal = std::mem::replace(expression, Expr::value(Value::Null));
    *expression = Expr::Cast { kind: CastKind::Cast, expr: Box::new(literal), data_type, array: false, format: None };
}

/// A whole number with several signs, as one with its sign: `-(-4)` as `4`, which has 32 bits, and
/// `+4` as `4`.
fn fold_signs(expression: &mut Expr) {
    let is_signed = match expression {
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => !matches!(**expr, Expr::Value(_)),
        Expr::UnaryOp { op: UnaryOperator::Plus, .. } => true,
        _ => false,
    };
    if is_signed && let Some(number) = server::whole_number(expression) {
        let digits = Expr::value(Value::Number(number.unsigned_abs().to_string(), false));
        *expression = match number < 0 {
            true => Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(digits) },
            false => digits,
        };
    }
}

fn is_read_only(body: &SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => select.into.is_none(),
        SetExpr::Query(_) | SetExpr::Values(_) | SetExpr::Table(_) => true,
        SetExpr::SetOperation { left, right, .. } => is_read_only(left) && is_read_only(right),
        _ => false,
    }
}

fn fetch_as_limit(query: &mut Query, fetch: Fetch) -> ControlFlow<SqlError> {
    if fetch.with_ties || fetch.percent {
        return refuse("FETCH is served as FETCH FIRST n ROWS ONLY");
    }
    let one = || Expr::value(Value::Number("1".to_owned(), false));
    let limit = Some(fetch.quantity.unwrap_or_else(one));
    match &mut query.limit_clause {
        Some(LimitClause::LimitOffset { limit: given, .. }) if given.is_none() => *given = limit,
        none @ None => {
            *none = Some(LimitClause::LimitOffset { limit, offset: None::<Offset>, limit_by: Vec::new() });
        }
        _ => return refuse("LIMIT and FETCH exclude each other"),
    }
    ControlFlow::Continue(())
}

/// The arguments of a table function in positional order.
fn positional(name: &str, args: Vec<FunctionArg>) -> Result<Vec<FunctionArg>, SqlError> {
    let names: &[&str] = match name {
        "generate_series" => &["start", "stop", "step"],
        "generate_stream" => &["rate"],
        _ => &[],
    };
    let mut places: Vec<Option<FunctionArg>> = Vec::new();
    for (at, argument) in args.into_iter().enumerate() {
        let (place, argument) = match argument {
            FunctionArg::Named { name: given, arg, .. } => {
                let place = names.iter().position(|name| given.value.eq_ignore_ascii_case(name));
                let Some(place) = place else {
                    return Err(parsing_error(format!("{name} has no argument '{}'", given.value)));
                };
                (place, FunctionArg::Unnamed(arg))
            }
            other => (at, other),
        };
        if places.len() <= place {
            places.resize(place + 1, None);
        }
        if let Some(slot) = places.get_mut(place)
            && slot.replace(argument).is_some()
        {
            return Err(parsing_error(format!("an argument of {name} is given twice")));
        }
    }
    let null = || FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::value(Value::Null)));
    Ok(places.into_iter().map(|argument| argument.unwrap_or_else(null)).collect())
}

/// Converts patterns to DataFusion's form. There a backslash always escapes; here only the
/// character of `ESCAPE` does.
fn like(pattern: &mut Box<Expr>, escape_char: &mut Option<ValueWithSpan>) -> ControlFlow<SqlError> {
    let escape = match escape_char.take() {
        None => None,
        Some(ValueWithSpan { value: Value::SingleQuotedString(escape), .. }) if escape.chars().count() == 1 => {
            escape.chars().next()
        }
        Some(other) => return refuse(format!("ESCAPE takes one character, not {other}")),
    };
    if let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(written), .. }) = pattern.as_mut() {
        match like_pattern(written, escape) {
            Ok(planned) => *written = planned,
            Err(error) => return ControlFlow::Break(error),
        }
    } else if !matches!(pattern.as_ref(), Expr::Value(ValueWithSpan { value: Value::Null, .. })) {
        let inner = std::mem::replace(pattern.as_mut(), Expr::value(Value::Null));
        let escape = escape.map(String::from).unwrap_or_default();
        **pattern = call("like_pattern", vec![inner, text(&escape)], Vec::new(), None);
    }
    ControlFlow::Continue(())
}

/// Converts a pattern of `LIKE` to one with the backslash as escape character.
///
/// # Errors
/// The escape character is not followed by `%`, `_` or itself.
pub fn like_pattern(pattern: &str, escape: Option<char>) -> Result<String, SqlError> {
    let mut planned = String::with_capacity(pattern.len());
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        if Some(character) == escape {
            match characters.next() {
                Some(next @ ('%' | '_')) => planned.extend(['\\', next]),
                Some('\\') if escape == Some('\\') => planned.push_str("\\\\"),
                Some(next) if Some(next) == escape => planned.push(next),
                _ => {
                    return Err(filbert_grid::query::data_error(format!(
                        "Only '_', '%' and the escape character can be escaped in the LIKE pattern '{pattern}'"
                    )));
                }
            }
        } else if character == '\\' {
            planned.push_str("\\\\");
        } else {
            planned.push(character);
        }
    }
    Ok(planned)
}
