//! Types of parameters that neither the client nor an operator determines. They come from
//! neighbouring expressions.
//!
//! A parameter that is a `numeric` keeps the digits of its value, whatever digits the column has
//! that it is compared with.
//!
//! A parameter in an array, in `coalesce`, `nullif`, `greatest`, `least`, before `IN` or as a
//! result of `CASE` has the type of the other expressions there, like a string literal in
//! PostgreSQL. An argument of a function has the type that the function accepts, a condition is a
//! boolean, and a parameter after LIMIT or OFFSET is a whole number.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::logical_expr::expr::{InList, Placeholder, WindowFunction};
use datafusion::logical_expr::logical_plan::{Limit, Projection, Union};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator, cast};
use filbert_data::FieldType;
use filbert_dialect::calls::OPERAND;
use filbert_functions::frames::{RANGE_END, RANGE_START};
use filbert_functions::named::{map_named, with_types_of_inputs};
use filbert_functions::numbers::decimals::{FREE, is_free};
use filbert_functions::{field_beside, field_of, operand};
use filbert_grid::query::{Dialect, arrow_type};

use crate::client_context::ParameterTypes;
use crate::plan::arguments::{common_type, is_open, of_type, taken, taken_by_aggregate};
use crate::plan::planner::unaliased;
use crate::plan::set_operations::{field_at, with_rows_together};

/// Window functions that take a row number.
const OF_PLACES: [&str; 4] = ["lag", "lead", "nth_value", "ntile"];
/// Aggregates of a fraction.
const OF_FRACTIONS: [&str; 2] = ["percentile_cont", "percentile_disc"];
/// Functions with arguments of one common type.
const OF_ONE_TYPE: [&str; 7] = ["coalesce", "nullif", "greatest", "least", "nvl", "ifnull", "make_array"];

/// The context of a statement with parameters.
pub(crate) struct Known<'t> {
    /// The types that the client has declared.
    pub(crate) declared: &'t ParameterTypes,
    /// The dialect. In other dialects than PostgreSQL's, the value of a parameter often decides its
    /// type.
    pub(crate) dialect: Dialect,
}

impl Known<'_> {
    fn declares(&self, parameter: &Placeholder) -> bool {
        let number = parameter.id.strip_prefix('$').and_then(|number| number.parse::<usize>().ok());
        let declared = number.and_then(|number| self.declared.get(number.checked_sub(1)?));
        declared.is_some_and(Option::is_some)
    }

    fn is_postgres(&self) -> bool {
        self.dialect == Dialect::Postgres
    }

    /// The type of parameters that are beside each other alone. They are texts in PostgreSQL.
    fn text(&self) -> Option<FieldRef> {
        self.is_postgres().then(|| of_type(DataType::Utf8View))
    }
}

/// Gives parameters of a plan the types of neighbouring expressions. Types that the client has
/// declared stay.
pub(crate) fn infer_in_plan(plan: LogicalPlan, known: &Known<'_>) -> Result<LogicalPlan> {
    let transformed = with_rows_together(plan)?.transform_up_with_subqueries(|plan| {
        let plan = match plan {
            LogicalPlan::Union(union) => return in_union(union),
            LogicalPlan::Limit(limit) => return Ok(in_limit(limit)),
            LogicalPlan::Filter(mut filter) if is_open(&filter.predicate) => {
                give(std::iter::once(&mut filter.predicate), Some(&of_type(DataType::Boolean)));
                return Ok(Transformed::yes(LogicalPlan::Filter(filter)));
            }
            plan => plan,
        };
        let schema = merge_schema(&plan.inputs());
        let transformed = map_named(plan, |expression| {
            if !has_parameter(&expression) {
                return Ok(Transformed::no(expression));
            }
            infer(expression, &schema, known)
        })?;
        if !transformed.transformed {
            return Ok(transformed);
        }
        transformed.map_data(LogicalPlan::recompute_schema)
    })?;
    Ok(transformed.data)
}

/// Whether an expression of a plan has an operand that is a parameter without a type.
pub(crate) fn has_open_operands(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        if matches!(node, LogicalPlan::Limit(_)) {
            return Ok(TreeNodeRecursion::Continue);
        }
        node.apply_expressions(|expression| {
            let expression = unaliased(expression);
            found |= !is_open(expression) && expression.exists(|inner| Ok(is_open(inner)))?;
            Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })
    })?;
    Ok(found)
}

/// Parameters in LIMIT and OFFSET.
fn in_limit(mut limit: Limit) -> Transformed<LogicalPlan> {
    let numbers = limit.skip.iter_mut().chain(&mut limit.fetch).map(AsMut::as_mut);
    let is_changed = give(numbers.flat_map(counted), Some(&of_type(DataType::Int64)));
    Transformed::new_transformed(LogicalPlan::Limit(limit), is_changed)
}

/// An expression for a number of rows, without the casts that the planner adds.
fn counted(mut expression: &mut Expr) -> Option<&mut Expr> {
    while let Expr::Cast(cast) = expression {
        expression = cast.expr.as_mut();
    }
    Some(expression)
}

/// Parameters that are columns of one part of a `UNION` have the column types of the other parts.
fn in_union(union: Union) -> Result<Transformed<LogicalPlan>> {
    let open_columns = |input: &LogicalPlan| match input {
        LogicalPlan::Projection(projection) => {
            projection.expr.iter().map(|expr| is_open(unaliased(expr))).collect::<Vec<_>>()
        }
        _ => Vec::new(),
    };
    let open: Vec<Vec<bool>> = union.inputs.iter().map(|input| open_columns(input)).collect();
    if !open.iter().flatten().any(|open| *open) {
        // Its queries may have got types.
        return with_types_of_inputs(union).map(|union| Transformed::yes(LogicalPlan::Union(union)));
    }
    let mut known: Vec<Option<FieldRef>> = Vec::new();
    for (input, open) in union.inputs.iter().zip(&open) {
        for at in 0..input.schema().fields().len() {
            known.resize(known.len().max(at + 1), None);
            if let Some(place @ None) = known.get_mut(at)
                && !open.get(at).is_some_and(|open| *open)
            {
                *place = field_at(input, at).filter(|field| !field.data_type().is_null()).map(Arc::new);
            }
        }
    }
    let mut inputs = Vec::with_capacity(union.inputs.len());
    for input in &union.inputs {
        inputs.push(match input.as_ref() {
            LogicalPlan::Projection(projection) => {
                let mut exprs = projection.expr.clone();
                for (expr, wanted) in exprs.iter_mut().zip(&known) {
                    let name = expr.schema_name().to_string();
                    if is_open(unaliased(expr)) {
                        let mut inner = unaliased(expr).clone();
                        give(std::iter::once(&mut inner), wanted.as_ref());
                        *expr = inner.alias(name);
                    }
                }
                Arc::new(LogicalPlan::Projection(Projection::try_new(exprs, Arc::clone(&projection.input))?))
            }
            _ => Arc::clone(input),
        });
    }
    Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)))
}

/// Like [`infer_in_plan`], for an expression.
pub(crate) fn infer(expression: Expr, schema: &DFSchema, known: &Known<'_>) -> Result<Transformed<Expr>> {
    expression.transform_up(|expression| {
        Ok(match expression {
            // Beside NULL alone a parameter is a text, as in PostgreSQL.
            Expr::Placeholder(parameter) if known.is_postgres() && is_null(&parameter) => {
                Transformed::yes(Expr::Placeholder(Placeholder::new_with_field(parameter.id, known.text())))
            }
            Expr::Placeholder(parameter) => with_free_digits(parameter),
            Expr::Cast(mut cast) if is_open(&cast.expr) => {
                let wanted = Arc::clone(&cast.field);
                let changed = give(std::iter::once(cast.expr.as_mut()), Some(&wanted));
                Transformed::new_transformed(Expr::Cast(cast), changed)
            }
            Expr::ScalarFunction(mut call) if call.func.name() == OPERAND && call.args.first().is_some_and(is_open) => {
                let wanted = common_type(call.args.iter(), schema);
                let changed = give(call.args.iter_mut(), wanted.as_ref());
                match operand::settled(&call, schema)? {
                    Some(operand) => Transformed::yes(operand),
                    None => Transformed::new_transformed(Expr::ScalarFunction(call), changed),
                }
            }
            Expr::ScalarFunction(mut call) if OF_ONE_TYPE.contains(&call.func.name()) => {
                let wanted = common_type(call.args.iter(), schema).or_else(|| known.text());
                let changed = give(call.args.iter_mut(), wanted.as_ref());
                Transformed::new_transformed(Expr::ScalarFunction(call), changed)
            }
            Expr::AggregateFunction(mut call) if OF_FRACTIONS.contains(&call.func.name()) => {
                let changed = give(call.params.args.iter_mut(), Some(&of_type(DataType::Float64)));
                Transformed::new_transformed(Expr::AggregateFunction(call), changed)
            }
            Expr::ScalarFunction(mut call) if call.args.iter().any(is_open) => {
                let mut changed = false;
                let wanted: Vec<Option<FieldRef>> =
                    (0..call.args.len()).map(|at| taken(&call, at, schema, known.dialect)).collect();
                for (arg, wanted) in call.args.iter_mut().zip(&wanted) {
                    changed |= give(std::iter::once(arg), wanted.as_ref());
                }
                Transformed::new_transformed(Expr::ScalarFunction(call), changed)
            }
            Expr::AggregateFunction(mut call) if known.is_postgres() => {
                let wanted = taken_by_aggregate(call.func.name());
                let mut changed = give(call.params.args.iter_mut(), wanted.as_ref());
                changed |= call.params.filter.as_deref_mut().is_some_and(|condition| give_truth(condition, known));
                Transformed::new_transformed(Expr::AggregateFunction(call), changed)
            }
            Expr::WindowFunction(mut window) => {
                let changed = in_window(&mut window, schema, known)?;
                Transformed::new_transformed(Expr::WindowFunction(window), changed)
            }
            Expr::Case(mut case) => {
                let results = case.when_then_expr.iter().map(|(_, then)| then.as_ref());
                let wanted = common_type(results.chain(case.else_expr.as_deref()), schema).or_else(|| known.text());
                let results = case.when_then_expr.iter_mut().map(|(_, then)| then.as_mut());
                let mut changed = give(results.chain(case.else_expr.as_deref_mut()), wanted.as_ref());
                let wanted = match &case.expr {
                    None => Some(of_type(DataType::Boolean)),
                    Some(_) if !known.is_postgres() => None,
                    Some(compared) => {
                        let others = case.when_then_expr.iter().map(|(when, _)| when.as_ref());
                        common_type(std::iter::once(compared.as_ref()).chain(others), schema).or_else(|| known.text())
                    }
                };
                let compared = case.when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
                changed |= give(compared.chain(case.expr.as_deref_mut()), wanted.as_ref());
                Transformed::new_transformed(Expr::Case(case), changed)
            }
            Expr::InList(mut list) if is_open(&list.expr) => {
                let wanted = common_type(list.list.iter(), schema);
                let changed = give(std::iter::once(list.expr.as_mut()), wanted.as_ref());
                Transformed::new_transformed(Expr::InList(list), changed)
            }
            Expr::InList(mut list) => {
                let mut changed = known.is_postgres() && widen(&mut list, schema, known);
                for item in &mut list.list {
                    changed |= correct(item, &list.expr, schema, known);
                    changed |= known.is_postgres() && narrow(item, &list.expr, known);
                }
                Transformed::new_transformed(Expr::InList(list), changed)
            }
            Expr::Between(mut between) => {
                let mut changed = false;
                if known.is_postgres() && is_open(&between.expr) {
                    let wanted = common_type([between.low.as_ref(), between.high.as_ref()].into_iter(), schema);
                    changed = give(std::iter::once(between.expr.as_mut()), wanted.as_ref());
                }
                for bound in [between.low.as_mut(), between.high.as_mut()] {
                    changed |= correct(bound, &between.expr, schema, known);
                    changed |= known.is_postgres() && narrow(bound, &between.expr, known);
                }
                Transformed::new_transformed(Expr::Between(between), changed)
            }
            Expr::Like(mut like) => {
                let changed = correct(&mut like.pattern, &like.expr, schema, known);
                Transformed::new_transformed(Expr::Like(like), changed)
            }
            Expr::BinaryExpr(mut conditions) if matches!(conditions.op, Operator::And | Operator::Or) => {
                let (left, right) = (conditions.left.as_mut(), conditions.right.as_mut());
                let changed = give_truth(left, known) | give_truth(right, known);
                Transformed::new_transformed(Expr::BinaryExpr(conditions), changed)
            }
            Expr::BinaryExpr(mut compared)
                if matches!(compared.op, Operator::IsDistinctFrom | Operator::IsNotDistinctFrom) =>
            {
                let wanted = common_type([compared.left.as_ref(), compared.right.as_ref()].into_iter(), schema);
                let (left, right) = (compared.left.as_mut(), compared.right.as_mut());
                let mut changed = known.is_postgres() && (narrow(left, right, known) || narrow(right, left, known));
                changed |= give([left, right].into_iter(), wanted.as_ref());
                Transformed::new_transformed(Expr::BinaryExpr(compared), changed)
            }
            Expr::BinaryExpr(mut operands) => {
                let is_compared = known.is_postgres() && operands.op.supports_propagation();
                let (left, right) = (operands.left.as_mut(), operands.right.as_mut());
                let mut changed = correct(left, right, schema, known) || correct(right, left, schema, known);
                if is_compared {
                    changed |= narrow(left, right, known) || narrow(right, left, known);
                }
                Transformed::new_transformed(Expr::BinaryExpr(operands), changed)
            }
            mut other => {
                let changed = tested(&mut other).is_some_and(|condition| give_truth(condition, known));
                Transformed::new_transformed(other, changed)
            }
        })
    })
}

/// Parameters of a window function. Returns whether any got a type.
fn in_window(window: &mut WindowFunction, schema: &DFSchema, known: &Known<'_>) -> Result<bool> {
    let name = window.fun.name();
    let params = &mut window.params;
    let mut changed = false;
    if OF_PLACES.contains(&name) {
        let place = if name == "ntile" { 0 } else { 1 };
        changed = give(params.args.get_mut(place).into_iter(), Some(&of_type(DataType::Int32)));
        // The default value of `lag` and `lead` has the type of their value, which gets all digits
        // of a decimal.
        if let [value, _, default] = params.args.as_mut_slice()
            && matches!(default, Expr::Placeholder(_))
        {
            let wanted = value.to_field(schema)?.1;
            changed |= give(std::iter::once(&mut *default), Some(&wanted));
            let free = free_type(wanted.data_type());
            if free != *wanted.data_type() {
                *value = cast(value.clone(), free);
                changed = true;
            }
        }
    }
    if !known.is_postgres() {
        return Ok(changed);
    }
    changed |= give(params.args.iter_mut(), taken_by_aggregate(name).as_ref());
    changed |= params.filter.as_deref_mut().is_some_and(|condition| give_truth(condition, known));
    let distance = match params.order_by.as_slice() {
        [ordered] => field_of(&ordered.expr, schema).map(|field| distance_within(field.data_type())),
        _ => None,
    };
    for key in &mut params.partition_by {
        if let Expr::ScalarFunction(bound) = key
            && matches!(bound.func.name(), RANGE_START | RANGE_END)
        {
            changed |= give(bound.args.iter_mut(), distance.as_ref());
        }
    }
    Ok(changed)
}

/// The type of the distance between two values of a type.
fn distance_within(data_type: &DataType) -> FieldRef {
    match data_type {
        found if found.is_temporal() => of_type(arrow_type(&FieldType::Interval)),
        DataType::Float32 => of_type(DataType::Float64),
        found => of_type(found.clone()),
    }
}

/// The condition of `NOT`, or of a test such as `IS TRUE`.
fn tested(test: &mut Expr) -> Option<&mut Expr> {
    match test {
        Expr::Not(condition)
        | Expr::IsTrue(condition)
        | Expr::IsNotTrue(condition)
        | Expr::IsFalse(condition)
        | Expr::IsNotFalse(condition)
        | Expr::IsUnknown(condition)
        | Expr::IsNotUnknown(condition) => Some(condition),
        _ => None,
    }
}

/// Gives a parameter that is a condition its type. Returns whether it did. Beside another parameter
/// it was taken for a text before.
fn give_truth(condition: &mut Expr, known: &Known<'_>) -> bool {
    if let Expr::Placeholder(placeholder) = &mut *condition
        && known.is_postgres()
        && !known.declares(placeholder)
        && placeholder.field.as_ref().is_some_and(|field| *field.data_type() != DataType::Boolean)
    {
        placeholder.field = None;
    }
    give(std::iter::once(condition), Some(&of_type(DataType::Boolean)))
}

/// Gives a parameter beside a cast the type that it casts to: the planner takes the metadata of the
/// operand as well. Returns whether it did.
fn correct(parameter: &mut Expr, beside: &Expr, schema: &DFSchema, known: &Known<'_>) -> bool {
    let Expr::Placeholder(placeholder) = parameter else { return false };
    let (Some(field), Expr::Cast(_) | Expr::TryCast(_)) = (&placeholder.field, unaliased(beside)) else { return false };
    if field.metadata().is_empty() || known.declares(placeholder) {
        return false;
    }
    let Ok(wanted) = field_beside(beside, schema) else { return false };
    if wanted.data_type() != field.data_type() || wanted.metadata() == field.metadata() {
        return false;
    }
    placeholder.field = None;
    give(std::iter::once(parameter), Some(&wanted))
}

/// Gives a parameter beside a number the type `integer`, if the number has it. Returns whether it
/// did.
fn narrow(parameter: &mut Expr, beside: &Expr, known: &Known<'_>) -> bool {
    let Expr::Placeholder(placeholder) = parameter else { return false };
    let is_wide = placeholder.field.as_ref().is_some_and(|field| *field.data_type() == DataType::Int64);
    let is_small = match beside {
        Expr::Literal(ScalarValue::Int64(Some(number)), _) => i32::try_from(*number).is_ok(),
        _ => false,
    };
    if !is_wide || !is_small || known.declares(placeholder) {
        return false;
    }
    placeholder.field = None;
    give(std::iter::once(parameter), Some(&of_type(DataType::Int32)))
}

/// Gives parameters in a list the common type of the numbers that they stand beside, as PostgreSQL
/// does in a list of several constants: in `smallint IN (8, $1)` the type is `integer`. Returns
/// whether it did.
fn widen(list: &mut InList, schema: &DFSchema, known: &Known<'_>) -> bool {
    let is_constant = |item: &&Expr| item.column_refs().is_empty();
    let is_typed = |item: &Expr| !matches!(item, Expr::Placeholder(_));
    let constants: Vec<&Expr> = list.list.iter().filter(is_constant).collect();
    let numbers: Vec<&Expr> =
        std::iter::once(list.expr.as_ref()).chain(constants.iter().copied().filter(|item| is_typed(item))).collect();
    let is_number = |item: &&Expr| item.get_type(schema).is_ok_and(|found| found.is_numeric());
    if constants.len() + 1 == numbers.len() || numbers.len() == 1 || !numbers.iter().all(is_number) {
        return false;
    }
    let Some(wanted) = common_type(numbers.into_iter(), schema) else { return false };
    let mut changed = false;
    for item in &mut list.list {
        if let Expr::Placeholder(parameter) = item
            && !known.declares(parameter)
            && parameter.field.as_ref().is_some_and(|found| found.data_type() != wanted.data_type())
        {
            parameter.field = None;
            changed |= give(std::iter::once(item), Some(&wanted));
        }
    }
    changed
}

/// Whether the planner gave a parameter the type of a NULL.
fn is_null(parameter: &Placeholder) -> bool {
    parameter.field.as_ref().is_some_and(|field| field.data_type().is_null())
}

fn has_parameter(expression: &Expr) -> bool {
    expression.exists(|expression| Ok(matches!(expression, Expr::Placeholder(_)))).unwrap_or(false)
}

/// A decimal parameter with the type that holds all numbers.
fn with_free_digits(parameter: Placeholder) -> Transformed<Expr> {
    match &parameter.field {
        Some(field) if free_type(field.data_type()) != *field.data_type() => {
            let field = Arc::new(free(field).with_name(&parameter.id));
            Transformed::yes(Expr::Placeholder(Placeholder::new_with_field(parameter.id, Some(field))))
        }
        _ => Transformed::no(Expr::Placeholder(parameter)),
    }
}

/// The field with the type that holds all numbers, if it is of decimals.
fn free(field: &Field) -> Field {
    field.clone().with_data_type(free_type(field.data_type()))
}

/// A type of decimals, or of arrays of them, with the type that holds all numbers.
fn free_type(data_type: &DataType) -> DataType {
    match data_type {
        decimal if decimal.is_decimal() && !is_free(decimal) => FREE,
        DataType::List(item) => DataType::List(Arc::new(free(item))),
        other => other.clone(),
    }
}

/// Gives parameters a type; returns whether there were any.
fn give<'e>(siblings: impl Iterator<Item = &'e mut Expr>, wanted: Option<&FieldRef>) -> bool {
    let Some(wanted) = wanted.filter(|wanted| !wanted.data_type().is_null()) else { return false };
    let mut changed = false;
    for sibling in siblings {
        if let Expr::Placeholder(placeholder) = sibling
            && placeholder.field.is_none()
        {
            let field = free(wanted).with_name(&placeholder.id).with_nullable(true);
            *placeholder = Placeholder::new_with_field(placeholder.id.clone(), Some(Arc::new(field)));
            changed = true;
        }
    }
    changed
}
