//! Calls of window functions that DataFusion takes and answers otherwise than SQL has it: they are refused.

use arrow_schema::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use filbert_grid::query::SqlError;

use crate::error::{data_error, of_datafusion, parsing_error};

/// Refuses such calls.
pub(crate) fn check(plan: &LogicalPlan) -> Result<(), SqlError> {
    let mut refused = None;
    let done = plan.apply_with_subqueries(|node| {
        let LogicalPlan::Window(window) = node else { return Ok(TreeNodeRecursion::Continue) };
        let schema = merge_schema(&node.inputs());
        for expression in &window.window_expr {
            expression.apply(|inner| {
                if let Expr::WindowFunction(function) = inner {
                    let types = function.params.args.iter().map(|argument| argument.get_type(&schema).ok());
                    let types: Vec<Option<DataType>> = types.collect();
                    refused = refused.take().or_else(|| refusal(function.fun.name(), &function.params.args, &types));
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(if refused.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    done.map_err(|error| of_datafusion(&error))?;
    refused.map_or(Ok(()), Err)
}

fn refusal(name: &str, arguments: &[Expr], types: &[Option<DataType>]) -> Option<SqlError> {
    let number = |at: usize| match arguments.get(at).map(unwrapped) {
        Some(Expr::Literal(scalar, _)) => whole(scalar),
        _ => None,
    };
    let is_null =
        |at: usize| matches!(arguments.get(at).map(unwrapped), Some(Expr::Literal(scalar, _)) if scalar.is_null());
    let unsupported = |text: String| Some(parsing_error(text).with_sqlstate("0A000"));
    match name {
        "lag" | "lead" if is_null(1) => unsupported(format!("{name} is served with an offset that is not null")),
        "lag" | "lead" => {
            let (Some(Some(value)), Some(Some(default))) = (types.first(), types.get(2)) else { return None };
            let loses = value.is_integer() && !default.is_integer() && !default.is_null();
            let text = format!("{name} is served with a default of the type of its values; cast one of them");
            if loses { unsupported(text) } else { None }
        }
        "nth_value" if number(1).is_some_and(|number| number <= 0) => {
            Some(data_error("argument of nth_value must be greater than zero").with_sqlstate("22016"))
        }
        "ntile" if number(0).is_some_and(|number| number <= 0) => {
            Some(data_error("argument of ntile must be greater than zero").with_sqlstate("22014"))
        }
        _ => None,
    }
}

fn unwrapped(expression: &Expr) -> &Expr {
    match expression {
        Expr::Cast(cast) => unwrapped(&cast.expr),
        Expr::Alias(alias) => unwrapped(&alias.expr),
        other => other,
    }
}

fn whole(scalar: &ScalarValue) -> Option<i64> {
    match scalar {
        ScalarValue::Int64(number) => *number,
        ScalarValue::Int32(number) => number.map(i64::from),
        ScalarValue::Int16(number) => number.map(i64::from),
        ScalarValue::Int8(number) => number.map(i64::from),
        _ => None,
    }
}
