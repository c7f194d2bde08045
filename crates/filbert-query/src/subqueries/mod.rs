//! Rewrites subqueries within expressions into joins, and into forms that DataFusion plans
//! correctly.
//!
//! DataFusion's own rules handle the forms below. They reject other forms late, or plan them
//! wrongly: a NOT IN beside other conditions, conditions over outer columns only, EXISTS over an
//! aggregate, three-valued IN within OR or CASE. Each subquery therefore gets one of these forms
//! before the plan is optimized:
//!
//! | subquery | form |
//! |---|---|
//! | uncorrelated | a scalar subquery, which runs once |
//! | uncorrelated `IN` and `NOT IN` as conditions | a semi join, a null-aware anti join |
//! | `EXISTS` as a condition, correlated in conditions over its rows | a semi or anti join |
//! | an aggregate over rows with `inner = outer` | one aggregation and a left join |
//! | without a relation | its expression (`inline`) |
//! | any other | a join with the distinct outer values (`push`) |
//!
//! `x IN (..)` within an expression is true if an equal row exists, otherwise unknown if a null may
//! make one equal, otherwise false. The same holds for `<op> ANY (..)` and `<op> ALL (..)`.

mod forms;
mod inline;
mod laterals;
mod push;
mod reached;
mod single;

use std::collections::HashSet;
use std::sync::Arc;

use arrow_schema::Field;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, ExprSchema, Result, ScalarValue, Spans};
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::functions_aggregate::expr_fn::count;
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison, SetQuantifier};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::{split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{
    BinaryExpr, Distinct, DistinctOn, Expr, Filter, Join, JoinType, LogicalPlan, LogicalPlanBuilder, Operator,
    Projection, Sort, SortExpr, Subquery, SubqueryAlias, lit, not, when,
};
use filbert_functions::error::{carried, parsing_error};
use filbert_functions::{compared_with_rows, ending, guards, key_of};

use self::forms::{exists_form, has_always_a_row, is_of_table, is_one_row, is_plain_aggregate, narrowed};
use self::push::Domain;
use crate::extent;

/// Gives every subquery of a plan a form that DataFusion plans correctly.
pub(crate) fn unnest(plan: LogicalPlan) -> Result<LogicalPlan> {
    let any = plan.exists(|plan| Ok(matches!(plan, LogicalPlan::Subquery(_)) || has_subqueries(plan)))?;
    if !any {
        return Ok(plan);
    }
    no_outer_aggregates(&plan)?;
    let plan = laterals::narrowed(inline::inline(plan)?)?;
    let mut unnest = Unnest { number: 0, assumed: Vec::new() };
    Ok(plan.transform_up_with_subqueries(|plan| unnest.node(plan))?.data)
}

/// Outer rows, joined with the results of subqueries, one column each.
struct Outer {
    rows: LogicalPlan,
    /// The same rows before each of these joins, the narrowest first.
    narrower: Vec<LogicalPlan>,
}

impl Outer {
    fn new(rows: LogicalPlan) -> Self {
        Outer { rows, narrower: Vec::new() }
    }

    /// Adds a column to the rows.
    fn widen(&mut self, rows: LogicalPlan) {
        self.narrower.push(std::mem::replace(&mut self.rows, rows));
    }

    /// The narrowest of the plans that has these columns. A subquery takes its outer values from
    /// it. If it took them from the joined rows, each subquery would double the plan.
    fn with(&self, columns: &[Column]) -> &LogicalPlan {
        let has_all = |rows: &&LogicalPlan| columns.iter().all(|column| rows.schema().has_column(column));
        self.narrower.iter().find(has_all).unwrap_or(&self.rows)
    }
}

/// Generates the names of columns that joins add, and tracks the conditions that rows satisfy.
struct Unnest {
    number: usize,
    /// The conditions under which the current expression is evaluated; see [`reached`].
    assumed: Vec<Expr>,
}

/// Whether the value of a subquery is wanted, or whether it has rows.
#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    Value,
    Existence,
}

/// The location of an expression.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    /// In a condition over rows, where DataFusion supports `EXISTS`.
    Condition,
    /// In a SELECT list.
    Item,
}

impl Unnest {
    fn node(&mut self, plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        ending::check()?;
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
        let terms = split_conjunction_owned(filter.predicate);
        let many = self.assumptions();
        terms.iter().for_each(|term| self.assume(term.clone().is_true()));
        let terms = terms.into_iter().map(|term| match has_subquery(&term) {
            true => self.condition(term, &mut input),
            false => Ok(term),
        });
        let terms = terms.collect::<Result<Vec<_>>>()?;
        self.assume_only(many);
        let is_wider = input.rows.schema().fields().len() != before.len();
        let mut plan = LogicalPlanBuilder::from(input.rows);
        if let Some(condition) = guards::all_of(terms) {
            plan = plan.filter(condition)?;
        }
        let plan = plan.build()?;
        if is_wider { project(plan, before) } else { Ok(plan) }
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

    /// Sort keys with subqueries become columns of the sorted input, because their subqueries may
    /// refer to columns that the result lacks, and their conditions decide for which rows a
    /// subquery is evaluated.
    fn sorted(&mut self, keys: Vec<SortExpr>, input: &LogicalPlan) -> Result<LogicalPlan> {
        let LogicalPlan::Projection(projection) = input else { return Ok(input.clone()) };
        let before = columns(input);
        let mut items = projection.expr.clone();
        let mut rewritten = Vec::with_capacity(keys.len());
        for key in keys {
            if !has_subquery(&key.expr) {
                rewritten.push(key);
                continue;
            }
            // A key may refer to columns of the result.
            let transformed = key.expr.clone().transform_up(|inner| {
                let Expr::Column(column) = &inner else { return Ok(Transformed::no(inner)) };
                let index = projection.schema.maybe_index_of_column(column);
                Ok(match index.and_then(|index| projection.expr.get(index)) {
                    Some(item) if item.is_volatile() => {
                        return Err(unsupported(
                            "a sort key with a subquery refers to a column that differs each time",
                        ));
                    }
                    Some(item) => Transformed::yes(item.clone().unalias_nested().data),
                    None => Transformed::no(inner),
                })
            })?;
            let name = self.name("sorted");
            items.push(transformed.data.alias(&name));
            rewritten.push(key.with_expr(Expr::Column(Column::new_unqualified(name))));
        }
        let wider = self.projection(Projection::try_new(items, projection.input.clone())?)?;
        project(LogicalPlanBuilder::from(wider).sort(rewritten)?.build()?, before)
    }

    /// Subqueries of other plans become columns of their input.
    fn hoisted(&mut self, plan: LogicalPlan) -> Result<LogicalPlan> {
        let Some(input) = plan.inputs().first().map(|input| (*input).clone()) else { return Ok(plan) };
        let before = plan.schema().clone();
        let mut items = columns(&input);
        let mut input = Outer::new(input);
        let mut hoisted: Vec<(Expr, String)> = Vec::new();
        let names = NamePreserver::new(&plan);
        let rewritten = plan.map_expressions(|expression| {
            let name = names.save(&expression);
            let rewritten = self.hoist(expression, &mut hoisted)?;
            Ok(Transformed::yes(name.restore(rewritten)))
        })?;
        for (expression, name) in hoisted {
            let value = self.value(expression, &mut input, Place::Item)?;
            items.push(value.alias(name));
        }
        let input = project(input.rows, items)?;
        let plan = match rewritten.data {
            // DataFusion does not give this node other expressions.
            LogicalPlan::Distinct(Distinct::On(on)) => {
                LogicalPlan::Distinct(Distinct::On(DistinctOn { input: Arc::new(input), ..on }))
            }
            plan => {
                let expressions = plan.expressions();
                plan.with_new_exprs(expressions, vec![input])?
            }
        };
        let plan = plan.recompute_schema()?;
        if plan.schema().fields().len() == before.fields().len() {
            return Ok(plan);
        }
        // Columns that were added to the input are not part of the result.
        project(plan, before.columns().into_iter().map(Expr::Column))
    }

    /// Replaces the expressions with subqueries by columns: the whole expressions over rows. Their
    /// conditions decide for which rows a subquery is evaluated.
    fn hoist(&mut self, expression: Expr, hoisted: &mut Vec<(Expr, String)>) -> Result<Expr> {
        if !has_subquery(&expression) {
            return Ok(expression);
        }
        let is_of_groups = |inner: &Expr| matches!(inner, Expr::AggregateFunction(_) | Expr::WindowFunction(_));
        if expression.exists(|inner| Ok(is_of_groups(inner)))? {
            return Ok(expression.map_children(|child| self.hoist(child, hoisted).map(Transformed::yes))?.data);
        }
        let known = hoisted.iter().find(|(known, _)| *known == expression).map(|(_, name)| name.clone());
        let name = known.unwrap_or_else(|| {
            let name = self.name("hoisted");
            hoisted.push((expression, name.clone()));
            name
        });
        Ok(Expr::Column(Column::new_unqualified(name)))
    }

    /// A join with subqueries in its condition. Each becomes a column of the side that it refers
    /// to.
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
        let many = self.assumptions();
        split_conjunction(&condition).into_iter().for_each(|term| self.assume(term.clone().is_true()));
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
            side.rows = project(side.rows.clone(), items)?;
            Ok(Transformed::new(Expr::Column(Column::new_unqualified(name)), true, TreeNodeRecursion::Jump))
        })?;
        self.assume_only(many);
        let on = join.on.into_iter().map(|(left, right)| left.eq(right));
        let on: Vec<Expr> = on.chain([transformed.data]).collect();
        project(LogicalPlanBuilder::from(left.rows).join_on(right.rows, join.join_type, on)?.build()?, before)
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
            let plan = LogicalPlanBuilder::from(left).join_on(rows, join.join_type, on)?.build()?;
            return project(plan, before).map(Transformed::yes);
        }
        let domain = Domain::of(laterals::values_from(&left, rows, &correlated), &correlated, self)?;
        let rows = self.push(rows, &domain)?;
        let on: Vec<Expr> = on.chain(domain.equal(&correlated)).collect();
        let plan = LogicalPlanBuilder::from(left).join_on(rows, join.join_type, on)?.build()?;
        // Where the left side had to be copied, the next join copies it again.
        extent::check(&plan)?;
        project(plan, before).map(Transformed::yes)
    }

    /// A term of a conjunction, where unknown is equivalent to false.
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
            // DataFusion finds the subquery's column only in a projection.
            let rows = match rows {
                LogicalPlan::Projection(_) => rows.clone(),
                other => project(other.clone(), columns(other))?,
            };
            return Ok(Expr::InSubquery(InSubquery::new(Box::new(expr), subquery_of(rows), negated)));
        }
        let equal = |column: Expr, expr: Expr| match negated {
            // The value is among them, or, for `NOT IN`, may be.
            true => compared(expr, Operator::Eq, column, rows.schema()).is_not_false(),
            false => compared(expr, Operator::Eq, column, rows.schema()),
        };
        let rows = narrowed(rows, outer(expr, input.rows.schema())?, equal)?;
        self.exists(&rows, negated, input, Place::Condition)
    }

    /// Rewrites an expression so that it only has subqueries that DataFusion supports in this
    /// location.
    fn value(&mut self, expression: Expr, input: &mut Outer, place: Place) -> Result<Expr> {
        if !has_subquery(&expression) {
            return Ok(expression);
        }
        match self.operands(expression, input, place)? {
            Expr::Exists(Exists { subquery, negated }) => self.exists(&subquery.subquery, negated, input, place),
            Expr::InSubquery(InSubquery { expr, subquery, negated }) => {
                let found = self.quantified(*expr, Operator::Eq, &subquery.subquery, true, input, place)?;
                Ok(if negated { not(found) } else { found })
            }
            Expr::SetComparison(SetComparison { expr, subquery, op, quantifier }) => {
                let is_any = quantifier == SetQuantifier::Any;
                self.quantified(*expr, op, &subquery.subquery, is_any, input, place)
            }
            Expr::ScalarSubquery(subquery) => self.scalar(subquery, input),
            other => Ok(other),
        }
    }

    /// `expr <op> ANY (rows)` or `ALL`, in three-valued logic.
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
        // A comparison with a null on either side is unknown.
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
        // A condition on the outer row alone holds for all rows or for none.
        let outside = guards::all_of(outside).map(|term| within_reach(term, input.rows.schema())).transpose()?;
        let outside = outside.map(|condition| coalesce(vec![condition, lit(false)]));
        let (rows, within) = distinctly_named(form.rows.clone(), within)?;
        let mut plan = LogicalPlanBuilder::from(rows);
        if let Some(condition) = guards::all_of(within.clone()) {
            plan = plan.filter(condition)?;
        }
        let plan = plan.build()?;
        let is_free = plan.all_out_ref_exprs().is_empty();
        // If both sides have a relation with the same name, DataFusion would take the outer row's
        // columns for the subquery's own.
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

    /// A scalar subquery.
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
        // Without rows it is null, even if its column is not nullable. DataFusion takes
        // `(SELECT true ..) IS NULL` for false, at the latest when it has found that the column is
        // not nullable.
        let (_, field) = schema.qualified_field(0);
        let value = single::of(Expr::Column(Column::from(schema.qualified_field(0)))).alias(field.name());
        let rows = LogicalPlanBuilder::from(rows.clone()).aggregate(Vec::<Expr>::new(), [value])?.build()?;
        Ok(Expr::ScalarSubquery(subquery_of(rows)))
    }

    /// Joins the result of a subquery to each outer row. The returned expression uses the new
    /// column of `input`.
    fn attach(&mut self, input: &mut Outer, rows: &LogicalPlan, wanted: Wanted) -> Result<Expr> {
        ending::check()?;
        let correlated = outer_columns(rows, input.rows.schema());
        let (name, known) = (self.name("found"), columns(&input.rows));
        let domain = match correlated.is_empty() {
            true => None,
            false => {
                let rows = self.rows_that_reach(input.with(&correlated))?;
                Some(Domain::of(&rows, &correlated, self)?)
            }
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
                LogicalPlanBuilder::from(project(pushed, items)?).distinct()?.build()?
            }
            Wanted::Value => {
                let at = names.len();
                let value = Expr::Column(Column::from(pushed.schema().qualified_field(at)));
                if is_one_row(rows) {
                    let mut items = names.clone();
                    items.push(value.alias(&name));
                    project(pushed, items)?
                } else {
                    LogicalPlanBuilder::from(pushed)
                        .aggregate(names.clone(), [single::of(value).alias(&name)])?
                        .build()?
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
        // The names of the outer values must not be visible in the result.
        input.widen(project(joined.build()?, known.into_iter().chain([column.clone()]))?);
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

/// Whether two values of a field are equal or both null.
///
/// It consists of equalities, because DataFusion joins by them. In a join with equal nulls, it
/// would treat nulls as equal in every other condition as well.
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

/// Whether a side of a join is lateral.
fn is_lateral(side: &LogicalPlan) -> bool {
    match side {
        LogicalPlan::Subquery(_) => true,
        LogicalPlan::SubqueryAlias(alias) => is_lateral(&alias.input),
        _ => false,
    }
}

/// A side of a join without its lateral marker.
fn unwrapped(side: &LogicalPlan) -> Result<LogicalPlan> {
    Ok(match side {
        LogicalPlan::Subquery(subquery) => subquery.subquery.as_ref().clone(),
        LogicalPlan::SubqueryAlias(alias) => {
            LogicalPlan::SubqueryAlias(SubqueryAlias::try_new(Arc::new(unwrapped(&alias.input)?), alias.alias.clone())?)
        }
        other => other.clone(),
    })
}

/// Rejects aggregates of outer columns alone: in SQL they are aggregates of the outer query.
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

/// A projection of columns that have the names of the plan's schema. The builder's method would
/// look up each column in the whole plan.
fn project(plan: LogicalPlan, items: impl IntoIterator<Item = Expr>) -> Result<LogicalPlan> {
    Ok(LogicalPlan::Projection(Projection::try_new(items.into_iter().collect(), Arc::new(plan))?))
}

/// The columns of a plan as expressions.
fn columns(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().columns().into_iter().map(Expr::Column).collect()
}

fn is_subquery(expression: &Expr) -> bool {
    matches!(expression, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_))
}

/// A comparison with a column of a subquery, in the types of both.
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

/// The rows of `EXISTS` and the conditions over them, with unique column names. DataFusion refers
/// to the columns by name alone once it has made a join.
fn distinctly_named(rows: LogicalPlan, terms: Vec<Expr>) -> Result<(LogicalPlan, Vec<Expr>)> {
    // Subqueries within the conditions refer to the columns by their original names.
    if !has_namesakes(rows.schema(), &terms) || terms.iter().any(has_subquery) {
        return Ok((rows, terms));
    }
    let columns = rows.schema().columns();
    let name = |at: usize| format!("$of{at}");
    let items = columns.iter().enumerate().map(|(at, column)| Expr::Column(column.clone()).alias(name(at)));
    let renamed = project(rows.clone(), items)?;
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

/// Whether a column in conditions over an outer row has the same name as another column.
fn has_namesakes<'t>(schema: &DFSchema, terms: impl IntoIterator<Item = &'t Expr>) -> bool {
    let correlated = terms.into_iter().filter(|term| term.contains_outer() || has_subquery(term));
    let named: HashSet<&str> = correlated.flat_map(Expr::column_refs).map(|column| column.name.as_str()).collect();
    let is_named = |field: &&Arc<Field>| named.contains(field.name().as_str());
    let mut seen = HashSet::new();
    !schema.fields().iter().filter(is_named).all(|field| seen.insert(field.name()))
}

/// Whether a plan has a relation with the name of a relation of the schema.
fn shares_a_relation(plan: &LogicalPlan, schema: &DFSchema) -> bool {
    plan.exists(|node| {
        let mut qualifiers = node.schema().iter().filter_map(|(qualifier, _)| qualifier);
        Ok(qualifiers.any(|qualifier| schema.iter().any(|(outer, _)| outer == Some(qualifier))))
    })
    .unwrap_or(true)
}

/// The columns of an expression, and the outer columns of the subqueries within it.
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

/// An expression over the outer row, in the form that it has within a subquery.
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

/// A condition over outer rows as a condition over rows of the enclosing query. Columns of the
/// queries around it stay outer columns.
fn within_reach(term: Expr, schema: &DFSchema) -> Result<Expr> {
    let transformed = term.transform_up(|inner| {
        Ok(match inner {
            Expr::OuterReferenceColumn(_, column) if schema.has_column(&column) => {
                Transformed::yes(Expr::Column(column))
            }
            other => Transformed::no(other),
        })
    })?;
    Ok(transformed.data)
}

/// Whether an uncorrelated subquery has rows.
fn any_row(rows: LogicalPlan) -> Result<Expr> {
    let counted = LogicalPlanBuilder::from(rows).project([lit(true).alias("$any")])?.limit(0, Some(1))?;
    let counted = counted.aggregate(Vec::<Expr>::new(), [count(lit(1_i64)).alias("$rows")])?.build()?;
    Ok(Expr::ScalarSubquery(subquery_of(counted)).gt(lit(0_i64)))
}

#[cfg(test)]
mod tests;

/// Whether an expression certainly still has columns after simplification. An anti join over a
/// constant would lose the rows of the subquery that are NULL.
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
