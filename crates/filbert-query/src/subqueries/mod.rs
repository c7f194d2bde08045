//! Subqueries within expressions, as joins and as what DataFusion plans right.
//!
//! DataFusion's own rules know the forms below; what they make of others is refused late or wrong (a NOT IN beside other conditions,
//! conditions that name outer columns only, EXISTS over an aggregate, three-valued IN within OR or CASE). So each subquery is
//! given one of these forms before a plan is optimized:
//!
//! | subquery | form |
//! |---|---|
//! | refers to no outer row | a scalar subquery, which runs once; `IN` as a condition, a semi join; `NOT IN`, a null-aware anti join |
//! | `EXISTS` as a condition, with outer columns in the conditions over its rows alone | a semi or anti join |
//! | an aggregate over rows with `inner = outer` | one aggregation and a left join |
//! | without rows of its own | the expression that it is (`inline`) |
//! | everything else | a join with the distinct outer values (`push`) |
//!
//! `x IN (..)` within an expression is whether there is such a row, else whether there may be one for a null, else false; and so
//! are `<op> ANY (..)` and `<op> ALL (..)`.

mod forms;
mod inline;
mod push;
mod single;

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::Field;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, Result, ScalarValue, Spans};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_rewriter::{NamePreserver, strip_outer_reference};
use datafusion::logical_expr::utils::{conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Expr, Filter, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Operator, Projection, Sort, SortExpr,
    Subquery, SubqueryAlias, lit, not, when,
};
use filbert_functions::error::{carried, parsing_error};
use filbert_functions::{compared_with_rows, key_of};

use self::forms::{exists_form, has_always_a_row, is_of_table, is_one_row, is_plain_aggregate, narrowed};
use self::push::Domain;

/// Gives every subquery of a plan a form that DataFusion plans right.
pub(crate) fn unnest(plan: LogicalPlan) -> Result<LogicalPlan> {
    let any = plan.exists(|plan| Ok(matches!(plan, LogicalPlan::Subquery(_)) || has_subqueries(plan)))?;
    if !any {
        return Ok(plan);
    }
    no_outer_aggregates(&plan)?;
    let plan = inline::inline(plan)?;
    let mut unnest = Unnest { number: 0 };
    Ok(plan.transform_up_with_subqueries(|plan| unnest.node(plan))?.data)
}

/// Outer rows, to which what subqueries give is joined, a column each.
struct Outer {
    rows: LogicalPlan,
    /// The same rows before each column was joined to them, narrowest first.
    narrower: Vec<LogicalPlan>,
}

impl Outer {
    fn new(rows: LogicalPlan) -> Self {
        Outer { rows, narrower: Vec::new() }
    }

    /// The same rows with another column.
    fn widen(&mut self, rows: LogicalPlan) {
        self.narrower.push(std::mem::replace(&mut self.rows, rows));
    }

    /// The narrowest of the plans that has these columns. A subquery's outer values are taken from it: taken from the rows
    /// with what was joined to them, each subquery would double the plan.
    fn with(&self, columns: &[Column]) -> &LogicalPlan {
        let has_all = |rows: &&LogicalPlan| columns.iter().all(|column| rows.schema().has_column(column));
        self.narrower.iter().find(has_all).unwrap_or(&self.rows)
    }
}

/// Makes the names of columns that joins add.
struct Unnest {
    number: usize,
}

/// Whether a subquery is wanted as a column, or whether it has rows.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    Value,
    Existence,
}

/// Where an expression stands.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// In a condition over rows: there DataFusion knows `EXISTS`.
    Condition,
    /// In a SELECT list.
    Item,
}

impl Unnest {
    fn node(&mut self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Join(join) if is_lateral(&join.right) => self.lateral(join),
            plan if !has_subqueries(&plan) => Ok(Transformed::no(plan)),
            LogicalPlan::Filter(filter) => self.filter(filter).map(Transformed::yes),
            LogicalPlan::Projection(projection) => self.projection(projection).map(Transformed::yes),
            LogicalPlan::Join(join) => self.condition_of_join(join).map(Transformed::yes),
            LogicalPlan::Sort(Sort { expr, input, fetch: None })
                if matches!(input.as_ref(), LogicalPlan::Projection(_)) =>
            {
                self.sorted(expr, &input).map(Transformed::yes)
            }
            LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) | LogicalPlan::Sort(_) | LogicalPlan::Distinct(_) => {
                self.hoisted(plan).map(Transformed::yes)
            }
            other => Ok(Transformed::no(other)),
        }
    }

    fn filter(&mut self, filter: Filter) -> Result<LogicalPlan> {
        let before = columns(&filter.input);
        let mut input = Outer::new(Arc::unwrap_or_clone(filter.input));
        let mut terms = Vec::new();
        for term in split_conjunction_owned(filter.predicate) {
            terms.push(if has_subquery(&term) { self.condition(term, &mut input)? } else { term });
        }
        let is_wider = input.rows.schema().fields().len() != before.len();
        let mut plan = LogicalPlanBuilder::from(input.rows);
        if let Some(condition) = conjunction(terms) {
            plan = plan.filter(condition)?;
        }
        if is_wider { plan.project(before)?.build() } else { plan.build() }
    }

    fn projection(&mut self, projection: Projection) -> Result<LogicalPlan> {
        let names = NamePreserver::new_for_projection();
        let mut input = Outer::new(Arc::unwrap_or_clone(projection.input));
        let mut items = Vec::with_capacity(projection.expr.len());
        for item in projection.expr {
            let name = names.save(&item);
            let item = if has_subquery(&item) { self.value(item, &mut input, Place::Item)? } else { item };
            items.push(name.restore(item));
        }
        Ok(LogicalPlan::Projection(Projection::try_new(items, Arc::new(input.rows))?))
    }

    /// Subqueries of sort keys become columns of what is sorted: they may be about rows of which the result has nothing.
    fn sorted(&mut self, keys: Vec<SortExpr>, input: &LogicalPlan) -> Result<LogicalPlan> {
        let LogicalPlan::Projection(projection) = input else { return Ok(input.clone()) };
        let before = columns(input);
        let mut items = projection.expr.clone();
        let mut rewritten = Vec::with_capacity(keys.len());
        for key in keys {
            let transformed = key.expr.clone().transform_up(|inner| {
                if !is_subquery(&inner) {
                    return Ok(Transformed::no(inner));
                }
                let name = self.name("sorted");
                items.push(inner.alias(&name));
                Ok(Transformed::yes(Expr::Column(Column::new_unqualified(name))))
            })?;
            rewritten.push(key.with_expr(transformed.data));
        }
        let wider = self.projection(Projection::try_new(items, projection.input.clone())?)?;
        LogicalPlanBuilder::from(wider).sort(rewritten)?.project(before)?.build()
    }

    /// Subqueries of other plans become columns of their input.
    fn hoisted(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let Some(input) = plan.inputs().first().map(|input| (*input).clone()) else { return Ok(plan) };
        let before = plan.schema().clone();
        let mut items = columns(&input);
        let mut input = Outer::new(input);
        let mut subqueries: Vec<(Expr, String)> = Vec::new();
        let names = NamePreserver::new(&plan);
        let rewritten = plan.map_expressions(|expression| {
            let name = names.save(&expression);
            let transformed = expression.transform_up(|inner| {
                if !is_subquery(&inner) {
                    return Ok(Transformed::no(inner));
                }
                let known = subqueries.iter().find(|(subquery, _)| *subquery == inner).map(|(_, name)| name.clone());
                let column = known.unwrap_or_else(|| {
                    let name = self.name("hoisted");
                    subqueries.push((inner, name.clone()));
                    name
                });
                Ok(Transformed::yes(Expr::Column(Column::new_unqualified(column))))
            })?;
            Ok(transformed.update_data(|expression| name.restore(expression)))
        })?;
        for (subquery, name) in subqueries {
            let value = self.value(subquery, &mut input, Place::Item)?;
            items.push(value.alias(name));
        }
        let input = LogicalPlanBuilder::from(input.rows).project(items)?.build()?;
        let plan = rewritten.data;
        let expressions = plan.expressions();
        let plan = plan.with_new_exprs(expressions, vec![input])?.recompute_schema()?;
        if plan.schema().fields().len() == before.fields().len() {
            return Ok(plan);
        }
        // What was added to the input is not of the result.
        LogicalPlanBuilder::from(plan).project(before.columns().into_iter().map(Expr::Column))?.build()
    }

    /// A join whose condition has subqueries: each is a column of the side that it refers to.
    fn condition_of_join(&mut self, mut join: Join) -> Result<LogicalPlan> {
        let Some(condition) = join.filter.take() else { return Ok(LogicalPlan::Join(join)) };
        let before: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
        let (left, right) = (Arc::unwrap_or_clone(join.left), Arc::unwrap_or_clone(join.right));
        if join.join_type == JoinType::Inner {
            let on = join.on.into_iter().map(|(left, right)| left.eq(right));
            let joined = LogicalPlanBuilder::from(left).join_on(right, JoinType::Inner, on)?.build()?;
            return self.filter(Filter::try_new(condition, Arc::new(joined))?);
        }
        let (of_left, of_right) = (left.schema().clone(), right.schema().clone());
        let (mut left, mut right) = (Outer::new(left), Outer::new(right));
        let transformed = condition.transform_up(|inner| {
            if !is_subquery(&inner) {
                return Ok(Transformed::no(inner));
            }
            let is_within = |schema: &DFSchema| all_columns(&inner).iter().all(|column| !schema.has_column(column));
            let side = if is_within(&of_left) {
                &mut right
            } else if is_within(&of_right) {
                &mut left
            } else {
                return Err(unsupported("a subquery in the condition of an outer join refers to one of its sides"));
            };
            let name = self.name("joined");
            let mut items = columns(&side.rows);
            let value = self.value(inner, side, Place::Item)?;
            items.push(value.alias(name.clone()));
            side.rows = LogicalPlanBuilder::from(side.rows.clone()).project(items)?.build()?;
            Ok(Transformed::new(Expr::Column(Column::new_unqualified(name)), true, TreeNodeRecursion::Jump))
        })?;
        let on = join.on.into_iter().map(|(left, right)| left.eq(right));
        let on: Vec<Expr> = on.chain([transformed.data]).collect();
        LogicalPlanBuilder::from(left.rows).join_on(right.rows, join.join_type, on)?.project(before)?.build()
    }

    /// `LATERAL`: the rows of a subquery for each row of the left side.
    fn lateral(&mut self, join: Join) -> Result<Transformed<LogicalPlan>> {
        if !matches!(join.join_type, JoinType::Inner | JoinType::Left) {
            return Err(unsupported("LATERAL stands in an inner or a left join"));
        }
        let before: Vec<Expr> = join.schema.columns().into_iter().map(Expr::Column).collect();
        let left = join.left.as_ref().clone();
        let rows = join.right.as_ref();
        let correlated = outer_columns(rows, left.schema());
        let on = join.on.iter().map(|(left, right)| left.clone().eq(right.clone())).chain(join.filter.clone());
        if correlated.is_empty() {
            let rows = unwrapped(rows)?;
            let plan = LogicalPlanBuilder::from(left).join_on(rows, join.join_type, on)?.project(before)?.build()?;
            return Ok(Transformed::yes(plan));
        }
        let domain = Domain::of(&left, &correlated, self)?;
        let rows = self.push(rows, &domain)?;
        let on: Vec<Expr> = on.chain(domain.equal(&correlated)).collect();
        let plan = LogicalPlanBuilder::from(left).join_on(rows, join.join_type, on)?.project(before)?.build()?;
        Ok(Transformed::yes(plan))
    }

    /// A condition of its own, for which unknown is as good as false.
    fn condition(&mut self, term: Expr, input: &mut Outer) -> Result<Expr> {
        match term {
            Expr::Not(inner) => match *inner {
                Expr::Exists(Exists { subquery, negated }) => {
                    self.exists(&subquery.subquery, !negated, input, Place::Condition)
                }
                Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                    self.is_in(*expr, &subquery.subquery, !negated, input)
                }
                inner => self.value(not(inner), input, Place::Condition),
            },
            Expr::Exists(Exists { subquery, negated }) => {
                self.exists(&subquery.subquery, negated, input, Place::Condition)
            }
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                self.is_in(*expr, &subquery.subquery, negated, input)
            }
            Expr::SetComparison(SetComparison { expr, subquery, op: Operator::Eq, quantifier: SetQuantifier::Any }) => {
                self.is_in(*expr, &subquery.subquery, false, input)
            }
            Expr::SetComparison(SetComparison {
                expr,
                subquery,
                op: Operator::NotEq,
                quantifier: SetQuantifier::All,
            }) => self.is_in(*expr, &subquery.subquery, true, input),
            term => self.value(term, input, Place::Condition),
        }
    }

    /// `IN` and `NOT IN` as a condition.
    fn is_in(&mut self, expr: Expr, rows: &LogicalPlan, negated: bool, input: &mut Outer) -> Result<Expr> {
        let expr = if has_subquery(&expr) { self.value(expr, input, Place::Condition)? } else { expr };
        let is_free = rows.all_out_ref_exprs().is_empty();
        if is_free && (!negated || keeps_columns(&expr)) {
            // DataFusion finds the subquery's column in a projection only.
            let rows = match rows {
                LogicalPlan::Projection(_) => rows.clone(),
                other => LogicalPlanBuilder::from(other.clone()).project(columns(other))?.build()?,
            };
            return Ok(Expr::InSubquery(InSubquery::new(Box::new(expr), subquery_of(rows), negated)));
        }
        let equal = |column: Expr, expr: Expr| match negated {
            // It is among them, or it may be.
            true => compared(expr, Operator::Eq, column, rows.schema()).is_not_false(),
            false => compared(expr, Operator::Eq, column, rows.schema()),
        };
        let rows = narrowed(rows, outer(expr, input.rows.schema())?, equal)?;
        self.exists(&rows, negated, input, Place::Condition)
    }

    /// An expression without subqueries but those that DataFusion knows in its place.
    fn value(&mut self, expression: Expr, input: &mut Outer, place: Place) -> Result<Expr> {
        let transformed = expression.transform_up(|inner| {
            let replaced = match inner {
                Expr::Exists(Exists { subquery, negated }) => self.exists(&subquery.subquery, negated, input, place)?,
                Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                    let found = self.quantified(*expr, Operator::Eq, &subquery.subquery, true, input, place)?;
                    if negated { not(found) } else { found }
                }
                Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
                    let is_any = quantifier == SetQuantifier::Any;
                    self.quantified(*expr, op, &subquery.subquery, is_any, input, place)?
                }
                Expr::ScalarSubquery(subquery) => self.scalar(subquery, input)?,
                other => return Ok(Transformed::no(other)),
            };
            Ok(Transformed::yes(replaced))
        })?;
        Ok(transformed.data)
    }

    /// `expr <op> ANY (rows)` or `ALL`, three-valued.
    fn quantified(
        &mut self,
        expr: Expr,
        op: Operator,
        rows: &LogicalPlan,
        is_any: bool,
        input: &mut Outer,
        place: Place,
    ) -> Result<Expr> {
        let outer_expr = outer(expr.clone(), input.rows.schema())?;
        let compare = |column: Expr, expr: Expr| compared(expr, op, column, rows.schema());
        let decisive = narrowed(rows, outer_expr, |column, expr| match is_any {
            true => compare(column, expr),
            false => compare(column, expr).is_false(),
        })?;
        let decided = self.exists(&decisive, false, input, place)?;
        // A comparison is unknown for a null on either side.
        let nulls = narrowed(rows, lit(true), |column, _| column.is_null())?;
        let of_null = self.exists(&nulls, false, input, place)?;
        let is_there = self.exists(rows, false, input, place)?;
        let unknown = of_null.or(expr.is_null().and(is_there));
        when(decided, lit(is_any)).when(unknown, lit(ScalarValue::Boolean(None))).otherwise(lit(!is_any))
    }

    /// Whether a subquery has rows.
    fn exists(&mut self, rows: &LogicalPlan, negated: bool, input: &mut Outer, place: Place) -> Result<Expr> {
        let form = match exists_form(rows)? {
            Ok(form) => form,
            Err(known) => return Ok(lit(known != negated)),
        };
        let (outside, within): (Vec<Expr>, Vec<Expr>) = form
            .terms
            .into_iter()
            .partition(|term| term.contains_outer() && term.column_refs().is_empty() && !has_subquery(term));
        // What is about the outer row alone decides for all rows.
        let outside = conjunction(outside).map(strip_outer_reference);
        let outside = outside.map(|condition| coalesce(vec![condition, lit(false)]));
        let (rows, within) = distinctly_named(form.rows.clone(), within)?;
        let mut plan = LogicalPlanBuilder::from(rows);
        if let Some(condition) = conjunction(within.clone()) {
            plan = plan.filter(condition)?;
        }
        let plan = plan.build()?;
        let is_free = plan.all_out_ref_exprs().is_empty();
        // Where both sides have a relation of one name, DataFusion takes the outer row's columns for the subquery's own.
        let is_plain = form.rows.all_out_ref_exprs().is_empty()
            && refers_only_to(&plan, input.rows.schema())
            && !has_namesakes(plan.schema(), &within)
            && !shares_a_relation(&plan, input.rows.schema());
        let found = if is_free {
            any_row(plan)?
        } else if is_plain && place == Place::Condition {
            Expr::Exists(Exists { subquery: subquery_of(plan), negated: false })
        } else {
            self.attach(input, &plan, Wanted::Existence)?
        };
        Ok(match (outside, negated) {
            (None, false) => found,
            (None, true) => negation(found),
            (Some(outside), false) => outside.and(found),
            (Some(outside), true) => negation(outside.and(found)),
        })
    }

    /// A subquery that is one value.
    fn scalar(&mut self, subquery: Subquery, input: &mut Outer) -> Result<Expr> {
        let rows = subquery.subquery.as_ref();
        let is_kept = rows.all_out_ref_exprs().is_empty()
            || is_plain_aggregate(rows) && refers_only_to(rows, input.rows.schema());
        if !is_kept {
            return self.attach(input, rows, Wanted::Value);
        }
        let schema = rows.schema();
        if has_always_a_row(rows) || schema.field(0).is_nullable() && is_of_table(rows) {
            return Ok(Expr::ScalarSubquery(subquery_of(rows.clone())));
        }
        // Without rows it is null, however its column never is: DataFusion takes `(SELECT true ..) IS NULL` for false, at the latest
        // when it has found that a column never is.
        let (_, field) = schema.qualified_field(0);
        let value = single::of(Expr::Column(Column::from(schema.qualified_field(0)))).alias(field.name());
        let rows = LogicalPlanBuilder::from(rows.clone()).aggregate(Vec::<Expr>::new(), [value])?.build()?;
        Ok(Expr::ScalarSubquery(subquery_of(rows)))
    }

    /// Joins what a subquery gives to each outer row; the expression is about the column that `input` has from then on.
    fn attach(&mut self, input: &mut Outer, rows: &LogicalPlan, wanted: Wanted) -> Result<Expr> {
        let correlated = outer_columns(rows, input.rows.schema());
        let (name, known) = (self.name("found"), columns(&input.rows));
        let domain = match correlated.is_empty() {
            true => None,
            false => Some(Domain::of(input.with(&correlated), &correlated, self)?),
        };
        let pushed = match &domain {
            Some(domain) => self.push(rows, domain)?,
            None => rows.clone(),
        };
        let names: Vec<Expr> = domain.iter().flat_map(Domain::columns).collect();
        let found = match wanted {
            Wanted::Existence => {
                let mut items = names.clone();
                items.push(lit(true).alias(&name));
                let plan = LogicalPlanBuilder::from(pushed).project(items)?;
                plan.distinct()?.build()?
            }
            Wanted::Value => {
                let at = names.len();
                let value = Expr::Column(Column::from(pushed.schema().qualified_field(at)));
                let plan = LogicalPlanBuilder::from(pushed.clone());
                if is_one_row(rows) {
                    let mut items = names.clone();
                    items.push(value.alias(&name));
                    plan.project(items)?.build()?
                } else {
                    plan.aggregate(names.clone(), [single::of(value).alias(&name)])?.build()?
                }
            }
        };
        let outer = input.rows.clone();
        let joined = match &domain {
            Some(domain) => {
                let on: Vec<Expr> = domain.equal(&correlated).collect();
                LogicalPlanBuilder::from(outer).join_on(found, JoinType::Left, on)?
            }
            None => LogicalPlanBuilder::from(outer).join_on(found, JoinType::Left, [lit(true)])?,
        };
        let column = Expr::Column(Column::new_unqualified(name));
        // Names of the outer values are not for those who read the result.
        input.widen(joined.project(known.into_iter().chain([column.clone()]))?.build()?);
        Ok(match wanted {
            Wanted::Value => column,
            Wanted::Existence => column.is_not_null(),
        })
    }

    fn name(&mut self, of: &str) -> String {
        self.number += 1;
        format!("${of}{}", self.number)
    }
}

fn unsupported(message: &str) -> datafusion::common::DataFusionError {
    carried(parsing_error(format!("{message}, which is not served here")).with_sqlstate("0A000"))
}

/// That two values of a field are the same, or both null.
///
/// As equalities, which DataFusion joins by: over a join in which nulls are equal, it takes nulls for equal in every other
/// condition as well.
pub(crate) fn is_same(left: Expr, right: Expr, field: &Field) -> Expr {
    let (left, right, some) = match key_of(field) {
        Some((key, none)) => (key(left), key(right), Ok(none)),
        None => (left, right, ScalarValue::new_default(field.data_type())),
    };
    if !field.is_nullable() {
        return left.eq(right);
    }
    match some {
        Ok(some) if !some.is_null() => {
            let value = |side: Expr| coalesce(vec![side, lit(some.clone())]);
            let both_null = left.clone().is_null().eq(right.clone().is_null());
            value(left).eq(value(right)).and(both_null)
        }
        _ => Expr::BinaryExpr(BinaryExpr::new(Box::new(left), Operator::IsNotDistinctFrom, Box::new(right))),
    }
}

/// Whether a side of a join is for each row of the other.
fn is_lateral(side: &LogicalPlan) -> bool {
    match side {
        LogicalPlan::Subquery(_) => true,
        LogicalPlan::SubqueryAlias(alias) => is_lateral(&alias.input),
        _ => false,
    }
}

/// A side of a join without the mark that it is for each row of the other.
fn unwrapped(side: &LogicalPlan) -> Result<LogicalPlan> {
    Ok(match side {
        LogicalPlan::Subquery(subquery) => subquery.subquery.as_ref().clone(),
        LogicalPlan::SubqueryAlias(alias) => {
            LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(unwrapped(&alias.input)?), alias.alias.clone())?)
        }
        other => other.clone(),
    })
}

/// Refuses aggregates of outer columns alone: they would be aggregates of the outer query.
fn no_outer_aggregates(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|plan| {
        let LogicalPlan::Aggregate(aggregate) = plan else { return Ok(TreeNodeRecursion::Continue) };
        for expression in &aggregate.aggr_expr {
            expression.apply(|inner| match inner {
                Expr::AggregateFunction(function)
                    if function.params.args.iter().any(Expr::contains_outer)
                        && function.params.args.iter().all(|argument| argument.column_refs().is_empty()) =>
                {
                    Err(unsupported("an aggregate within a subquery is about columns of the outer query alone"))
                }
                _ => Ok(TreeNodeRecursion::Continue),
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

fn negation(found: Expr) -> Expr {
    match found {
        Expr::Exists(Exists { subquery, negated }) => Expr::Exists(Exists { subquery, negated: !negated }),
        other => not(other),
    }
}

/// The columns of a plan as expressions.
fn columns(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}

fn is_subquery(expression: &Expr) -> bool {
    matches!(expression, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_))
}

/// A comparison with a column of a subquery, as the types of both have it.
fn compared(expr: Expr, op: Operator, column: Expr, schema: &DFSchema) -> Expr {
    let plain = |expr, column| Expr::BinaryExpr(BinaryExpr::new(Box::new(expr), op, Box::new(column)));
    compared_with_rows(op, expr.clone(), column.clone(), schema).unwrap_or_else(|| plain(expr, column))
}

fn has_subquery(expression: &Expr) -> bool {
    expression.exists(|inner| Ok(is_subquery(inner))).unwrap_or(false)
}

fn has_subqueries(plan: &LogicalPlan) -> bool {
    let mut found = false;
    let _ = plan.apply_expressions(|expression| {
        found |= has_subquery(expression);
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    found
}

fn subquery_of(rows: LogicalPlan) -> Subquery {
    let outer_ref_columns = rows.all_out_ref_exprs();
    Subquery { subquery: Arc::new(rows), outer_ref_columns, spans: Spans::new() }
}

/// The outer columns of a plan that a schema has.
fn outer_columns(plan: &LogicalPlan, schema: &DFSchema) -> Vec<Column> {
    let outer = plan.all_out_ref_exprs().into_iter().filter_map(|expression| match expression {
        Expr::OuterReferenceColumn(_, column) if schema.has_column(&column) => Some(column),
        _ => None,
    });
    outer.collect()
}

fn refers_only_to(plan: &LogicalPlan, schema: &DFSchema) -> bool {
    plan.all_out_ref_exprs().len() == outer_columns(plan, schema).len()
}

/// The rows of `EXISTS`, and the conditions over them, with no two columns of one name: DataFusion knows them by their names alone once
/// it has made a join of them.
fn distinctly_named(rows: LogicalPlan, terms: Vec<Expr>) -> Result<(LogicalPlan, Vec<Expr>)> {
    // Subqueries within refer to the columns by their own names.
    if !has_namesakes(rows.schema(), &terms) || terms.iter().any(has_subquery) {
        return Ok((rows, terms));
    }
    let columns = rows.schema().columns();
    let name = |at: usize| format!("$of{at}");
    let items = columns.iter().enumerate().map(|(at, column)| Expr::Column(column.clone()).alias(name(at)));
    let renamed = LogicalPlanBuilder::from(rows.clone()).project(items.collect::<Vec<_>>())?.build()?;
    let terms = terms.into_iter().map(|term| {
        let transformed = term.transform_up(|inner| match &inner {
            Expr::Column(column) => {
                let at = rows.schema().index_of_column(column)?;
                Ok(Transformed::yes(Expr::Column(Column::new_unqualified(name(at)))))
            }
            _ => Ok(Transformed::no(inner)),
        });
        transformed.map(|transformed| transformed.data)
    });
    Ok((renamed, terms.collect::<Result<_>>()?))
}

/// Whether a column that conditions about an outer row name has the name of another.
fn has_namesakes<'t>(schema: &DFSchema, terms: impl IntoIterator<Item = &'t Expr>) -> bool {
    let correlated = terms.into_iter().filter(|term| term.contains_outer() || has_subquery(term));
    let named: HashSet<&str> = correlated.flat_map(Expr::column_refs).map(|column| column.name.as_str()).collect();
    let is_named = |field: &&Arc<Field>| named.contains(field.name().as_str());
    let mut seen = HashSet::new();
    !schema.fields().iter().filter(is_named).all(|field| seen.insert(field.name()))
}

/// Whether a plan has a relation of the name of one of a schema.
fn shares_a_relation(plan: &LogicalPlan, schema: &DFSchema) -> bool {
    plan.exists(|node| {
        let mut qualifiers = node.schema().iter().filter_map(|(qualifier, _)| qualifier);
        Ok(qualifiers.any(|qualifier| schema.iter().any(|(outer, _)| outer == Some(qualifier))))
    })
    .unwrap_or(true)
}

/// The columns of an expression, and the outer ones of the subqueries within.
fn all_columns(expression: &Expr) -> Vec<Column> {
    let mut found = Vec::new();
    let _ = expression.apply(|inner| {
        let rows = match inner {
            Expr::Column(column) => {
                found.push(column.clone());
                None
            }
            Expr::ScalarSubquery(subquery) => Some(&subquery.subquery),
            Expr::Exists(Exists { subquery, .. })
            | Expr::InSubquery(InSubquery { subquery, .. })
            | Expr::SetComparison(SetComparison { subquery, .. }) => Some(&subquery.subquery),
            _ => None,
        };
        found.extend(rows.into_iter().flat_map(|rows| rows.all_out_ref_exprs()).filter_map(|outer| match outer {
            Expr::OuterReferenceColumn(_, column) => Some(column),
            _ => None,
        }));
        Ok(TreeNodeRecursion::Continue)
    });
    found
}

/// An expression over the outer row, as it is written within a subquery.
fn outer(expression: Expr, schema: &DFSchema) -> Result<Expr> {
    let transformed = expression.transform_up(|inner| match inner {
        Expr::Column(column) => {
            let field = schema.field_from_column(&column)?.clone();
            Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(transformed.data)
}

/// Whether a subquery that refers to no outer row has rows.
fn any_row(rows: LogicalPlan) -> Result<Expr> {
    let counted = LogicalPlanBuilder::from(rows).project([lit(true).alias("$any")])?.limit(0, Some(1))?;
    let counted = counted.aggregate(Vec::<Expr>::new(), [count(lit(1_i64)).alias("$rows")])?.build()?;
    Ok(Expr::ScalarSubquery(subquery_of(counted)).gt(lit(0_i64)))
}

#[cfg(test)]
mod tests;

/// Whether an expression surely is about columns also when it is simplified. An anti join about what becomes a constant loses the rows of
/// the subquery that are NULL.
fn keeps_columns(expression: &Expr) -> bool {
    match expression {
        Expr::Column(_) => true,
        Expr::Alias(alias) => keeps_columns(&alias.expr),
        Expr::Cast(cast) => keeps_columns(&cast.expr),
        Expr::TryCast(cast) => keeps_columns(&cast.expr),
        Expr::ScalarFunction(call) => {
            let is_known = |argument: &Expr| matches!(argument, Expr::Literal(scalar, _) if !scalar.is_null());
            call.func.conditional_arguments(&call.args).is_none()
                && call.args.iter().any(keeps_columns)
                && call.args.iter().all(|argument| is_known(argument) || keeps_columns(argument))
        }
        _ => false,
    }
}
