//! Members of objects, `object['member']['member']`, and their use where types are known only from
//! values.
//!
//! | source | becomes |
//! |---|---|
//! | `o['a']['b']` | `object_get(o, 'a', 'b')` |
//! | `o['a'][1]` | `object_get(o, 'a', 0)`: CrateDB counts elements from 1 |
//! | `d['a'][x]` in PostgreSQL | `json_get_path(d, ARRAY['a', x::text])` |
//! | `abs(o['a'])`, `stddev(o['a'])` | `abs(object_number(..))` |
//! | `min(o['a'])` | `object_min(..)` |
//! | `WHERE o['a']` | `WHERE object_truth(..)` |
//! | `o['a']::text` | `object_plain(..)::text`: casts keep marks, but a text is no document |

use filbert_grid::query::Dialect;
use sqlparser::ast::{
    AccessExpr, Array, BinaryOperator, CastKind, DataType, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Ident, ObjectName, Subscript, UnaryOperator, Value, ValueWithSpan,
};

use super::super::json::call;
use super::taken;

/// Numeric functions that would accept a text at planning, and fail at run time.
const OF_NUMBERS: [&str; 42] = [
    "abs",
    "acos",
    "asin",
    "atan",
    "atan2",
    "cbrt",
    "ceil",
    "ceiling",
    "corr",
    "cos",
    "cot",
    "covar_pop",
    "covar_samp",
    "degrees",
    "exp",
    "floor",
    "ln",
    "log",
    "log10",
    "log2",
    "median",
    "mod",
    "pow",
    "power",
    "radians",
    "round",
    "sign",
    "sin",
    "sqrt",
    "square",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "tan",
    "trunc",
    "truncate",
    "var",
    "var_pop",
    "var_samp",
    "variance",
    "percentile_cont",
    "approx_percentile_cont",
];

/// The member that a chain of keys selects; `None` for a chain of array indexes only.
pub(super) fn access(root: &mut Expr, chain: &[AccessExpr], of: Dialect) -> Option<Expr> {
    // The parts of a column's name: `t.o['a']`.
    let is_part = |access: &&AccessExpr| matches!(access, AccessExpr::Dot(Expr::Identifier(_)));
    let named = chain.iter().take_while(is_part).count();
    let (parts, chain) = chain.split_at(named);
    let index = |access: &AccessExpr| match access {
        AccessExpr::Subscript(Subscript::Index { index }) => Some(index.clone()),
        _ => None,
    };
    let indexes: Vec<Expr> = chain.iter().map(index).collect::<Option<_>>()?;
    // Only a document has a text as an index; an object has names and numbers that are written out.
    let is_document = indexes.iter().any(is_text)
        || indexes.iter().any(is_name) && indexes.iter().any(|index| key_of(index, of).is_none());
    if of == Dialect::Postgres && is_document {
        let document = column(root, parts)?;
        return Some(call("json_get_path", vec![document, path(indexes)], Vec::new(), None));
    }
    let first = indexes.iter().position(is_name)?;
    let (places, keys) = indexes.split_at(first);
    let column = column(root, parts)?;
    // Only a document has an element with members, as an array of documents takes no names.
    if of == Dialect::Postgres && !places.is_empty() {
        return Some(call("json_get_path", vec![column, path(indexes)], Vec::new(), None));
    }
    let object = match places.is_empty() {
        true => column,
        // An object in an array of objects.
        false => Expr::CompoundFieldAccess { root: Box::new(column), access_chain: chain.get(..first)?.to_vec() },
    };
    let keys = keys.iter().map(|key| key_of(key, of)).collect::<Option<Vec<_>>>()?;
    Some(call("object_get", std::iter::once(object).chain(keys).collect(), Vec::new(), None))
}

/// A column with the remaining parts of its name; `None` if the first part is not a name.
pub(super) fn column(root: &mut Expr, parts: &[AccessExpr]) -> Option<Expr> {
    if parts.is_empty() {
        return Some(taken(root));
    }
    let mut names = match root {
        Expr::Identifier(name) => vec![name.clone()],
        Expr::CompoundIdentifier(names) => names.clone(),
        _ => return None,
    };
    names.extend(parts.iter().filter_map(|part| match part {
        AccessExpr::Dot(Expr::Identifier(name)) => Some(name.clone()),
        _ => None,
    }));
    Some(Expr::CompoundIdentifier(names))
}

fn is_name(index: &Expr) -> bool {
    matches!(index, Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(_), .. }))
}

/// Whether an index is cast to a text.
fn is_text(index: &Expr) -> bool {
    matches!(
        index,
        Expr::Cast { data_type: DataType::Text | DataType::Varchar(None) | DataType::CharacterVarying(None), .. }
    )
}

/// The path of indexes in a document, as an array of texts.
fn path(indexes: Vec<Expr>) -> Expr {
    let step = |index: Expr| match index {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => {
            Expr::value(Value::SingleQuotedString(digits))
        }
        index if is_name(&index) || is_text(&index) => index,
        other => {
            let (kind, expr) = (CastKind::Cast, Box::new(other));
            Expr::Cast { kind, expr, data_type: DataType::Text, array: false, format: None }
        }
    };
    Expr::Array(Array { elem: indexes.into_iter().map(step).collect(), named: true })
}

/// The name of a member, or the index of an element from 0.
fn key_of(index: &Expr, of: Dialect) -> Option<Expr> {
    match index {
        name if is_name(name) => Some(name.clone()),
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => {
            let place = digits.parse::<i64>().ok()?;
            let place = if of == Dialect::Crate { place.checked_sub(1)? } else { place };
            (place >= 0).then(|| Expr::value(Value::Number(place.to_string(), false)))
        }
        _ => None,
    }
}

fn is_call(expression: &Expr, name: &str) -> bool {
    matches!(expression, Expr::Function(function) if function.name.to_string() == name)
}

/// Whether an expression is a member of an object.
pub(super) fn is_member(expression: &Expr) -> bool {
    match expression {
        Expr::Nested(inner) => is_member(inner),
        expression => is_call(expression, "object_get"),
    }
}

/// Whether the type of an expression may be known only from its values.
fn may_be_untyped(expression: &Expr) -> bool {
    match expression {
        Expr::Nested(inner) | Expr::UnaryOp { expr: inner, .. } => may_be_untyped(inner),
        Expr::BinaryOp { left, right, .. } => may_be_untyped(left) || may_be_untyped(right),
        expression => is_member(expression),
    }
}

/// Converts member arguments of numeric functions to numbers, and replaces aggregates of members.
pub(super) fn in_call(function: &mut Function) {
    let name = function.name.to_string().to_ascii_lowercase();
    let FunctionArguments::List(list) = &mut function.args else { return };
    let mut expressions = list.args.iter_mut().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Some(expression),
        _ => None,
    });
    if OF_NUMBERS.contains(&name.as_str()) {
        for expression in expressions.filter(|expression| may_be_untyped(expression)) {
            *expression = call("object_number", vec![taken(expression)], Vec::new(), None);
        }
    } else if matches!(name.as_str(), "min" | "max") && expressions.any(|expression| may_be_untyped(expression)) {
        function.name = ObjectName::from(Ident::new(format!("object_{name}")));
    }
}

/// Removes the mark from a member that is cast to text.
pub(super) fn in_cast(expression: &mut Expr) {
    let Expr::Cast { expr, data_type, .. } = expression else { return };
    let is_text = matches!(
        data_type,
        DataType::Text | DataType::Varchar(_) | DataType::CharacterVarying(_) | DataType::String(_)
    );
    if is_text && may_be_untyped(expr) {
        **expr = call("object_plain", vec![taken(expr)], Vec::new(), None);
    }
}

/// A sign or a `NOT` before a member of unknown type.
pub(super) fn in_sign(op: UnaryOperator, operand: &mut Expr) -> Option<Expr> {
    match op {
        UnaryOperator::Minus if may_be_untyped(operand) => Some(Expr::Nested(Box::new(Expr::BinaryOp {
            left: Box::new(Expr::value(Value::Number("0".to_owned(), false))),
            op: BinaryOperator::Minus,
            right: Box::new(taken(operand)),
        }))),
        UnaryOperator::Not if is_member(operand) => {
            condition(operand);
            Some(Expr::UnaryOp { op, expr: Box::new(taken(operand)) })
        }
        _ => None,
    }
}

/// A condition that consists of a member, as a boolean.
pub(crate) fn condition(condition: &mut Expr) {
    if is_member(condition) {
        *condition = call("object_truth", vec![taken(condition)], Vec::new(), None);
    }
}
