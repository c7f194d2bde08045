//! The pass over a plan that sets the types of its expressions.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::{InSubquery, Placeholder, ScalarFunction, SetComparison};
use datafusion::logical_expr::planner::RawBinaryExpr;
use datafusion::logical_expr::{BinaryExpr, Distinct, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use filbert_dialect::calls::{ARRAY_LIKE, COMPARE_ALL, COMPARE_ANY, OPERAND};

use super::super::operators::{binary, call};
use super::operand;
use super::rows::{has_own_blanks, rows_without_blanks, without_blanks};
use super::{
    ARRAY, OF_ONE_TYPE, as_of_one, as_one_of, branches, common, filled, has_blanks, is_of_array, is_text, mark_of,
    marked_as, rtrim, trimmed, without_blanks_of_items,
};
use crate::named::{map_named, number_of, schema_within};
use crate::types::{ARRAY_OF_VARCHAR, BPCHAR, JSONB, Length, Mark, VARCHAR};

/// Aggregates with results that keep the blanks of their values.
const OF_VALUES: [&str; 6] = ["array_agg", "first_value", "last_value", "max", "min", "single_value"];
/// Functions, most of them of any type, that see trailing blanks of a fixed-length text.
const OF_ANY: [&str; 15] = [
    "cast_bytea",
    "concat",
    "concat_ws",
    "format",
    "json_build_array",
    "json_build_object",
    "json_item",
    "json_of_row",
    "json_pair",
    "jsonb_build_array",
    "jsonb_build_object",
    "octet_length",
    "pg_typeof",
    "to_json",
    "to_jsonb",
];
/// Functions of a text and of values of any type: the blanks of the text do not count.
const OF_TEXT_AND_ANY: [&str; 2] = ["concat_ws", "format"];
/// The functions of `~`, SIMILAR TO and ILIKE. As for LIKE, the blanks of the text count, and those
/// of the pattern do not.
const OF_MATCHES: [&str; 3] = ["lower_as_it_is", "matches_each", "text_matches"];
/// The functions of `ANY` and `ALL` over an array.
const OF_ITEMS: [&str; 2] = [COMPARE_ANY, COMPARE_ALL];
/// The functions that handle blanks.
const OF_BLANKS: [&str; 4] = ["marked_as", "marked_as_varchar", "rpad", "rtrim"];

/// Sets the types of a plan's expressions.
pub fn mark_types(plan: LogicalPlan) -> Result<LogicalPlan> {
    if !is_concerned(&plan)? {
        return Ok(plan);
    }
    let mut pass = Pass::default();
    // The rows of a recursive query are fed back unchanged, so their types cannot be set again.
    let down = |plan| {
        let next = match plan {
            LogicalPlan::RecursiveQuery(_) => TreeNodeRecursion::Jump,
            _ => TreeNodeRecursion::Continue,
        };
        Ok(Transformed::new(plan, false, next))
    };
    Ok(plan.transform_down_up_with_subqueries(down, |plan| pass.plan(plan))?.data)
}

/// Whether a plan has expressions that lose a type.
fn is_concerned(plan: &LogicalPlan) -> Result<bool> {
    let mut is_concerned = false;
    plan.apply_with_subqueries(|plan| {
        is_concerned |= matches!(plan, LogicalPlan::Union(_) | LogicalPlan::Unnest(_));
        plan.apply_expressions(|expression| {
            is_concerned |= expression.exists(|inner| {
                Ok(match inner {
                    Expr::AggregateFunction(call) => call.func.name() == "array_agg",
                    Expr::Like(_) | Expr::SimilarTo(_) => true,
                    Expr::ScalarFunction(call)
                        if OF_MATCHES.contains(&call.func.name()) || OF_ITEMS.contains(&call.func.name()) =>
                    {
                        true
                    }
                    Expr::Placeholder(_) => is_document(inner) || has_blanks_of_its_own(inner),
                    Expr::Cast(cast) if matches!(plan, LogicalPlan::Values(_)) => {
                        Mark::of(&cast.field).oid == Some(VARCHAR)
                    }
                    Expr::Cast(_) => shows(plan) && is_cast_to_text(inner),
                    Expr::ScalarFunction(call) if call.func.name() == OPERAND => true,
                    Expr::ScalarFunction(call) if is_of_array(call) || OF_ANY.contains(&call.func.name()) => true,
                    Expr::ScalarFunction(call) if call.args.iter().any(is_subquery) => true,
                    other => branches(other).is_some(),
                })
            })?;
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(is_concerned)
}

/// Whether the expressions of a node are visible above it; conditions are not.
fn shows(plan: &LogicalPlan) -> bool {
    !matches!(plan, LogicalPlan::Filter(_) | LogicalPlan::Join(_) | LogicalPlan::TableScan(_))
}

fn is_cast_to_text(expression: &Expr) -> bool {
    matches!(expression, Expr::Cast(cast) if cast.field.data_type().is_string())
}

/// Whether an expression is a `char` parameter, which keeps the blanks of its value.
fn has_blanks_of_its_own(expression: &Expr) -> bool {
    let Expr::Placeholder(Placeholder { field: Some(field), .. }) = expression else { return false };
    Mark::of(field).oid == Some(BPCHAR)
}

/// Whether an expression is a `jsonb` parameter.
fn is_document(expression: &Expr) -> bool {
    let Expr::Placeholder(Placeholder { field: Some(field), .. }) = expression else { return false };
    Mark::of(field).oid == Some(JSONB)
}

/// The state of the pass.
#[derive(Default)]
pub(super) struct Pass {
    /// Whether a field has another type than at planning.
    pub(super) is_changed: bool,
    /// Whether there may be texts with insignificant blanks.
    pub(super) has_blanks: bool,
    /// Whether the expressions of the current node are visible above it.
    shows: bool,
}

impl Pass {
    fn plan(&mut self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let plan = match plan {
            LogicalPlan::Union(union) => self.union(union)?,
            LogicalPlan::Values(values) => self.values(values)?,
            LogicalPlan::Distinct(Distinct::All(input)) if self.has_blanks => {
                LogicalPlan::Distinct(Distinct::All(Arc::new(without_blanks(input)?)))
            }
            plan if self.is_changed => plan.recompute_schema()?,
            plan => plan,
        };
        if let LogicalPlan::Unnest(unnest) = plan {
            return self.items(unnest);
        }
        let schema = schema_within(&plan)?;
        self.shows = shows(&plan);
        // Texts that differ in insignificant blanks are equal.
        let is_compared = matches!(plan, LogicalPlan::Sort(_) | LogicalPlan::Join(_));
        let groups = match &plan {
            LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.iter().map(number_of).sum(),
            _ => 0,
        };
        let mut number = 0;
        let transformed = map_named(plan, |expression| {
            let marked = expression.transform_up(|expression| self.expression(expression, &schema))?;
            number += 1;
            let is_compared = is_compared || number <= groups;
            Ok(match is_compared && self.has_blanks && has_blanks(&marked.data, &schema) {
                true => Transformed::yes(trimmed(marked.data)),
                false => marked,
            })
        })?;
        let is_changed = transformed.transformed;
        self.is_changed |= is_changed;
        let plan = if is_changed { transformed.data.recompute_schema()? } else { transformed.data };
        Ok(Transformed::yes(plan))
    }

    fn expression(&mut self, expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
        let is_cast = matches!(expression, Expr::Cast(_) | Expr::TryCast(_) | Expr::ScalarFunction(_));
        let expression = match self.has_blanks && sees_no_blanks(&expression) {
            true => expression.map_children(|operand| {
                Ok(match has_blanks(&operand, schema) {
                    true if is_cast => Transformed::yes(rtrim(operand)),
                    true => Transformed::yes(trimmed(operand)),
                    false => Transformed::no(operand),
                })
            })?,
            false => Transformed::no(expression),
        };
        let is_changed = expression.transformed;
        let marked = match expression.data {
            Expr::AggregateFunction(mut function) if function.func.name() == "array_agg" => {
                let mut has_changed = false;
                // Distinct values are ordered by their displayed form.
                let order = function.params.order_by.iter_mut().filter(|_| function.params.distinct);
                for item in function.params.args.iter_mut().chain(order.map(|sort| &mut sort.expr)) {
                    has_changed |= self.fill(item, schema);
                }
                Transformed::new_transformed(Expr::AggregateFunction(function), has_changed)
            }
            Expr::InSubquery(compared) if has_own_blanks(&compared.subquery) => {
                let subquery = rows_without_blanks(compared.subquery)?;
                Transformed::yes(Expr::InSubquery(InSubquery { subquery, ..compared }))
            }
            Expr::SetComparison(compared) if has_own_blanks(&compared.subquery) => {
                let subquery = rows_without_blanks(compared.subquery)?;
                Transformed::yes(Expr::SetComparison(SetComparison { subquery, ..compared }))
            }
            // A subquery that runs separately has no type when the call is computed.
            Expr::ScalarFunction(mut call) if call.args.iter().any(is_subquery) && !loses_type(&call) => {
                for argument in call.args.iter_mut().filter(|argument| is_subquery(argument)) {
                    let mark = mark_of(argument, schema).unwrap_or_default();
                    if mark != Mark::default() {
                        *argument = marked_as(std::mem::take(argument), mark);
                    }
                }
                Transformed::yes(Expr::ScalarFunction(call))
            }
            Expr::Like(mut like) => {
                let is_filled = self.fill(&mut like.expr, schema);
                Transformed::new_transformed(Expr::Like(like), is_filled)
            }
            Expr::SimilarTo(mut like) => {
                let is_filled = self.fill(&mut like.expr, schema);
                Transformed::new_transformed(Expr::SimilarTo(like), is_filled)
            }
            Expr::ScalarFunction(mut call) if OF_MATCHES.contains(&call.func.name()) => {
                let is_filled = call.args.first_mut().is_some_and(|text| self.fill(text, schema));
                Transformed::new_transformed(Expr::ScalarFunction(call), is_filled)
            }
            Expr::ScalarFunction(mut call) if OF_ANY.contains(&call.func.name()) => {
                let name = call.func.name().to_owned();
                let mut has_changed = false;
                let mut args = call.args.iter_mut().filter(|_| name != "pg_typeof");
                if OF_TEXT_AND_ANY.contains(&name.as_str())
                    && let Some(text) = args.next()
                    && mark_of(text, schema).is_some_and(|mark| mark.length == Length::Own)
                {
                    *text = rtrim(std::mem::take(text));
                    has_changed = true;
                }
                for argument in args {
                    has_changed |= self.fill(argument, schema);
                }
                Transformed::new_transformed(Expr::ScalarFunction(call), has_changed)
            }
            // Insignificant trailing blanks of elements do not count in comparisons with them.
            Expr::ScalarFunction(mut call) if OF_ITEMS.contains(&call.func.name()) => {
                let is_concerned =
                    |array: &Expr| mark_of(array, schema).is_some_and(|mark| mark.of_item().length == Length::Own);
                let is_of =
                    |operand: &Expr, oid: u32| mark_of(operand, schema).is_some_and(|mark| mark.oid == Some(oid));
                let mut has_changed = false;
                if call.args.iter().any(is_concerned) {
                    // Beside them a string literal and a `varchar` are fixed-length texts.
                    for text in call.args.iter_mut().filter(|text| is_text(text) || is_of(text, VARCHAR)) {
                        *text = rtrim(std::mem::take(text));
                        has_changed = true;
                    }
                }
                let is_beside_fixed = call.args.iter().any(|item| is_of(item, BPCHAR));
                // An array in quotes, or a parameter, has the type of the elements beside it.
                let is_open =
                    |array: &Expr| matches!(array, Expr::ScalarFunction(read) if read.func.name() == ARRAY_LIKE);
                let is_trimmed = |array: &Expr| {
                    is_concerned(array) || is_beside_fixed && (is_of(array, ARRAY_OF_VARCHAR) || is_open(array))
                };
                for array in call.args.iter_mut().filter(|array| is_trimmed(array)) {
                    if let Some(trimmed) = without_blanks_of_items(array) {
                        *array = trimmed;
                        has_changed = true;
                    }
                }
                Transformed::new_transformed(Expr::ScalarFunction(call), has_changed)
            }
            // A document from a client is a text until here.
            parameter @ Expr::Placeholder(_) if has_blanks_of_its_own(&parameter) => {
                self.has_blanks = true;
                Transformed::no(parameter)
            }
            parameter @ Expr::Placeholder(_) if is_document(&parameter) => {
                call("cast_jsonb", vec![parameter.clone()]).map_or(Transformed::no(parameter), Transformed::yes)
            }
            // The field of a cast has the metadata of its operand.
            cast if self.shows && is_cast_to_text(&cast) => {
                let field = cast.to_field(schema)?.1;
                match mark_of(&cast, schema).filter(|mark| *mark != Mark::of(&field)) {
                    Some(mark) => Transformed::yes(marked_as(cast, mark)),
                    None => Transformed::no(cast),
                }
            }
            Expr::BinaryExpr(compared) if self.is_changed => operator(compared, schema),
            Expr::ScalarFunction(call) if call.func.name() == OPERAND => {
                Transformed::yes(operand::marked(call, schema))
            }
            Expr::ScalarFunction(mut call) if is_of_array(&call) => {
                let converted = as_of_one(&call, schema);
                let whole = Expr::ScalarFunction(call.clone());
                let mark = mark_of(&whole, schema).unwrap_or_default();
                self.has_blanks |= mark.length == Length::Own;
                let is_converted = converted.is_some();
                converted.into_iter().for_each(|args| call.args = args);
                let call = Expr::ScalarFunction(call);
                match mark == Mark::default() {
                    true => Transformed::new_transformed(call, is_converted),
                    false => Transformed::yes(marked_as(call, mark)),
                }
            }
            other if branches(&other).is_some() => self.choice(other, schema),
            other => Transformed::no(other),
        };
        Ok(Transformed::new_transformed(marked.data, marked.transformed || is_changed))
    }

    /// An expression that returns one of several values.
    fn choice(&mut self, mut choice: Expr, schema: &DFSchema) -> Transformed<Expr> {
        let common = branches(&choice).and_then(|branches| common(&branches, schema));
        let Some(mut wanted) = common else { return Transformed::no(choice) };
        let is_array = matches!(&choice, Expr::ScalarFunction(call) if call.func.name() == ARRAY);
        // Elements of an array are padded.
        if is_array && wanted.oid == Some(BPCHAR) {
            wanted.length = Length::Own;
        }
        self.has_blanks |= wanted.length == Length::Own;
        let marked = match is_array {
            true => wanted.of_array(),
            false => mark_of(&choice, schema).unwrap_or_default(),
        };
        let mut is_changed = false;
        for branch in branches_mut(&mut choice) {
            let mark = mark_of(branch, schema);
            if mark.is_some() || is_text(branch) {
                let (converted, has_changed) = as_one_of(std::mem::take(branch), mark, wanted);
                *branch = converted;
                is_changed |= has_changed;
            }
        }
        match marked == Mark::default() {
            true => Transformed::new_transformed(choice, is_changed),
            false => Transformed::yes(marked_as(choice, marked)),
        }
    }

    /// Pads an element of an array.
    fn fill(&mut self, item: &mut Expr, schema: &DFSchema) -> bool {
        let Some(mark @ Mark { length: Length::Of(length), .. }) = mark_of(item, schema) else { return false };
        *item = marked_as(filled(std::mem::take(item), length), Mark { length: Length::Own, ..mark });
        self.has_blanks = true;
        true
    }
}

/// Whether a call gets a type from its arguments.
fn loses_type(call: &ScalarFunction) -> bool {
    OF_ONE_TYPE.contains(&call.func.name()) || call.func.name() == ARRAY || is_of_array(call)
}

fn is_subquery(expression: &Expr) -> bool {
    matches!(expression, Expr::ScalarSubquery(_))
}

/// Whether the computation must not see insignificant blanks of its operands.
fn sees_no_blanks(expression: &Expr) -> bool {
    match expression {
        Expr::ScalarFunction(call) => {
            let name = call.func.name();
            !OF_MATCHES.contains(&name)
                && !OF_BLANKS.contains(&name)
                && !OF_ANY.contains(&name)
                && name != OPERAND
                && branches(expression).is_none()
        }
        Expr::AggregateFunction(call) => !OF_VALUES.contains(&call.func.name()),
        Expr::BinaryExpr(_) | Expr::InList(_) | Expr::Between(_) => true,
        Expr::InSubquery(_) | Expr::SetComparison(_) => true,
        Expr::Cast(_) | Expr::TryCast(_) => true,
        _ => false,
    }
}

/// An operator with operands that may have got new types since planning.
fn operator(compared: BinaryExpr, schema: &DFSchema) -> Transformed<Expr> {
    let op = match compared.op {
        Operator::Eq => BinaryOperator::Eq,
        Operator::NotEq => BinaryOperator::NotEq,
        Operator::Lt => BinaryOperator::Lt,
        Operator::LtEq => BinaryOperator::LtEq,
        Operator::Gt => BinaryOperator::Gt,
        Operator::GtEq => BinaryOperator::GtEq,
        Operator::StringConcat => BinaryOperator::StringConcat,
        _ => return Transformed::no(Expr::BinaryExpr(compared)),
    };
    let raw = RawBinaryExpr { op, left: compared.left.as_ref().clone(), right: compared.right.as_ref().clone() };
    match binary(&raw, schema) {
        Some(planned) => Transformed::yes(planned),
        None => Transformed::no(Expr::BinaryExpr(compared)),
    }
}

fn branches_mut(expression: &mut Expr) -> Vec<&mut Expr> {
    match expression {
        Expr::Case(case) => {
            let results = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
            results.chain(case.else_expr.as_deref_mut()).collect()
        }
        Expr::ScalarFunction(call) => call.args.iter_mut().collect(),
        _ => Vec::new(),
    }
}
