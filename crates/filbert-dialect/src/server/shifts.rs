//! `lag` and `lead` with a default value that depends on the row. The planner takes only constants:
//!
//! ```text
//! lag(a, n, b) OVER w  =>  CASE WHEN lag(true, n) OVER w IS NULL THEN b ELSE lag(a, n) OVER w END
//! ```

use std::ops::ControlFlow;

use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{
    CaseWhen, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, Value,
};

use crate::walk;

/// The functions.
const SHIFTS: [&str; 2] = ["lag", "lead"];

/// The choice between the value of another row and the default value; `None` for other functions,
/// and for a default value that is a constant.
pub(super) fn chosen(function: &Function) -> Option<Expr> {
    let name = function.name.to_string().to_ascii_lowercase();
    if function.over.is_none() || function.null_treatment.is_some() || !SHIFTS.contains(&name.as_str()) {
        return None;
    }
    let FunctionArguments::List(list) = &function.args else { return None };
    if list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
        return None;
    }
    let [FunctionArg::Unnamed(value), offset, FunctionArg::Unnamed(FunctionArgExpr::Expr(default))] =
        list.args.as_slice()
    else {
        return None;
    };
    if !depends_on_row(default) {
        return None;
    }
    let of = |value: FunctionArgExpr| {
        let args = vec![FunctionArg::Unnamed(value), offset.clone()];
        let list = FunctionArgumentList { args, ..list.clone() };
        Expr::Function(Function { args: FunctionArguments::List(list), ..function.clone() })
    };
    let is_there = of(FunctionArgExpr::Expr(Expr::value(Value::Boolean(true))));
    Some(Expr::Nested(Box::new(Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen { condition: Expr::IsNull(Box::new(is_there)), result: default.clone() }],
        else_result: Some(Box::new(of(value.clone()))),
    })))
}

fn depends_on_row(expression: &Expr) -> bool {
    let is_column = |inner: &Expr| match inner {
        Expr::Identifier(_) | Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    walk::expressions(expression, is_column).is_break()
}
