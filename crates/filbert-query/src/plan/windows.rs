//! Rejects calls of window functions that DataFusion accepts but evaluates differently from SQL,
//! and rewrites frames over types without `RANGE` support.

use arrow_schema::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result as Planned, ScalarValue};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    Expr, ExprSchemable, LogicalPlan, WindowFrame, WindowFrameBound, WindowFrameUnits, cast,
};
use datafusion::optimizer::AnalyzerRule;
use filbert_functions::error::{carried, data_error, of_datafusion, parsing_error};
use filbert_functions::named::map_named;
use filbert_functions::numbers::is_shift;
use filbert_grid::query::SqlError;

use crate::plan::frames;

/// Gives frames their distances. Turns a `RANGE` between peer rows into `GROUPS`, which is
/// equivalent, for types without `RANGE` support. Widens whole numbers in the order of a `RANGE`
/// with a distance, because a bound beyond their type would include rows of NULL.
#[derive(Debug)]
pub(crate) struct Frames;

impl AnalyzerRule for Frames {
    fn name(&self) -> &str {
        "frames_of_groups"
    }

    fn analyze(&self, plan: LogicalPlan, options: &ConfigOptions) -> Planned<LogicalPlan> {
        each(plan, |function, schema| {
            let is_settled = frames::settle(function, options)?;
            Ok(framed(function, schema)? || is_settled)
        })
    }
}

/// Checks frames with distances of their final types.
#[derive(Debug)]
pub(crate) struct FinishedFrames;

impl AnalyzerRule for FinishedFrames {
    fn name(&self) -> &str {
        "finished_frames"
    }

    fn analyze(&self, plan: LogicalPlan, options: &ConfigOptions) -> Planned<LogicalPlan> {
        each(plan, |function, schema| frames::finish(function, schema, options))
    }
}

/// Changes the window functions of a plan. `change` returns whether it changed the function.
fn each(
    plan: LogicalPlan,
    mut change: impl FnMut(&mut WindowFunction, &DFSchema) -> Planned<bool>,
) -> Planned<LogicalPlan> {
    let transformed = plan.transform_up_with_subqueries(|node| {
        if !matches!(node, LogicalPlan::Window(_)) {
            return Ok(Transformed::no(node));
        }
        let schema = merge_schema(&node.inputs());
        let transformed = map_named(node, |expression| {
            expression.transform_up(|inner| {
                let Expr::WindowFunction(mut function) = inner else { return Ok(Transformed::no(inner)) };
                let is_changed = change(&mut function, &schema)?;
                Ok(Transformed::new_transformed(Expr::WindowFunction(function), is_changed))
            })
        })?;
        if transformed.transformed { transformed.map_data(LogicalPlan::recompute_schema) } else { Ok(transformed) }
    })?;
    Ok(transformed.data)
}

fn framed(function: &mut WindowFunction, schema: &DFSchema) -> Planned<bool> {
    if !lacks_ranges(function, schema) {
        return Ok(widen(function, schema));
    }
    let frame = &function.params.window_frame;
    let is_open = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => distance.is_null(),
        WindowFrameBound::CurrentRow => true,
    };
    if !is_open(&frame.start_bound) || !is_open(&frame.end_bound) {
        let text = "RANGE with a distance is not served in an order of values of this type";
        return Err(carried(parsing_error(text).with_sqlstate("0A000")));
    }
    let groups = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(_) => WindowFrameBound::Preceding(ScalarValue::UInt64(None)),
        WindowFrameBound::Following(_) => WindowFrameBound::Following(ScalarValue::UInt64(None)),
        WindowFrameBound::CurrentRow => WindowFrameBound::CurrentRow,
    };
    let (start, end) = (groups(&frame.start_bound), groups(&frame.end_bound));
    function.params.window_frame = WindowFrame::new_bounds(WindowFrameUnits::Groups, start, end);
    Ok(true)
}

/// Gives the order of a `RANGE` with a distance a type that holds all bounds; returns whether the
/// type changed.
fn widen(function: &mut WindowFunction, schema: &DFSchema) -> bool {
    let frame = &function.params.window_frame;
    let distances = [&frame.start_bound, &frame.end_bound].into_iter().filter_map(|bound| match bound {
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) if !distance.is_null() => {
            Some(distance)
        }
        _ => None,
    });
    // A distance that is no whole number stays rejected.
    let are_whole = distances.map(|distance| match distance.try_as_str() {
        Some(written) => written.is_some_and(|written| written.parse::<i64>().is_ok()),
        None => whole(distance).is_some(),
    });
    let are_whole: Vec<bool> = are_whole.collect();
    let is_concerned = frame.units == WindowFrameUnits::Range && !are_whole.is_empty() && !are_whole.contains(&false);
    let [sort] = function.params.order_by.as_mut_slice() else { return false };
    let wider = match sort.expr.get_type(schema) {
        Ok(DataType::Int8 | DataType::Int16 | DataType::Int32) if is_concerned => DataType::Int64,
        Ok(DataType::Int64) if is_concerned => DataType::Decimal128(38, 0),
        _ => return false,
    };
    sort.expr = cast(std::mem::take(&mut sort.expr), wider);
    true
}

fn lacks_ranges(function: &WindowFunction, schema: &DFSchema) -> bool {
    let first =
        function.params.order_by.first().filter(|_| function.params.window_frame.units == WindowFrameUnits::Range);
    first.is_some_and(|sort| {
        sort.expr.get_type(schema).is_ok_and(|found| {
            matches!(found, DataType::Time32(_) | DataType::Time64(_) | DataType::Interval(_) | DataType::Duration(_))
                || found.is_binary()
        })
    })
}

/// Rejects such calls.
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
                    let types = if is_shift(&function.fun) { Vec::new() } else { types };
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
