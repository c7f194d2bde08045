//! Evaluates a subquery for many outer rows at once: its plan runs over the distinct outer values.
//!
//! The distinct outer values are joined with the relations at the leaves of the subquery, and every
//! plan above carries the values along (Neumann, Kemper: "Unnesting Arbitrary Queries", 2015):
//!
//! | plan | carries the values |
//! |---|---|
//! | uncorrelated | by a cross join with all values |
//! | projection, condition | as further columns |
//! | aggregate | as further keys |
//! | window | as further keys of its partitions |
//! | `LIMIT`, `OFFSET` | by the row number among the rows of the same values |
//! | join | on the correlated side |
//! | outer join | on both sides, as further join keys |
//!
//! An aggregate without keys also returns a row for values without rows: the result of an aggregate
//! over no rows.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, ScalarValue, TableReference};
use datafusion::functions_window::row_number::row_number;
use datafusion::logical_expr::expr::WindowFunctionParams;
use datafusion::logical_expr::{
    Aggregate, Distinct, Expr, ExprFunctionExt, Join, JoinType, Limit, LogicalPlan, LogicalPlanBuilder, Projection,
    SortExpr, Union, Unnest as UnnestPlan, Values, Window, lit, when,
};

use super::forms::limited;
use super::{Unnest, columns, is_same, project, unsupported};

/// The distinct values of some outer columns.
#[derive(Clone)]
pub(super) struct Domain {
    plan: LogicalPlan,
    /// The outer columns.
    outer: Vec<Column>,
    /// Their names in the subquery's plan.
    named: Vec<String>,
}

impl Domain {
    /// The distinct values of columns among outer rows.
    pub(super) fn of(rows: &LogicalPlan, outer: &[Column], unnest: &mut Unnest) -> Result<Domain> {
        let named: Vec<String> = outer.iter().map(|_| unnest.name("outer")).collect();
        let items = outer.iter().zip(&named).map(|(column, name)| Expr::Column(column.clone()).alias(name));
        let items: Vec<Expr> = items.collect();
        let plan = LogicalPlanBuilder::from(project(rows.clone(), items)?).distinct()?.build()?;
        Ok(Domain { plan, outer: outer.to_vec(), named })
    }

    /// The same values under other names, for another part of a plan.
    fn again(&self, unnest: &mut Unnest) -> Result<Domain> {
        let named: Vec<String> = self.named.iter().map(|_| unnest.name("outer")).collect();
        let items = self.columns().zip(&named).map(|(column, name)| column.alias(name));
        let plan = project(self.plan.clone(), items)?;
        Ok(Domain { plan, outer: self.outer.clone(), named })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.named.iter().map(String::as_str)
    }

    pub(super) fn columns(&self) -> impl Iterator<Item = Expr> {
        self.names().map(|name| Expr::Column(Column::new_unqualified(name)))
    }

    /// Equality of the values with these columns.
    pub(super) fn equal(&self, others: &[Column]) -> impl Iterator<Item = Expr> {
        let others: Vec<Expr> = others.iter().cloned().map(Expr::Column).collect();
        self.are_same(others).into_iter()
    }

    fn is_same_as(&self, other: &Domain) -> Vec<Expr> {
        self.are_same(other.columns().collect())
    }

    fn are_same(&self, others: Vec<Expr>) -> Vec<Expr> {
        let fields = self.plan.schema().fields().iter();
        self.columns().zip(others).zip(fields).map(|((own, other), field)| is_same(other, own, field)).collect()
    }

    /// An expression with the values in place of the outer columns.
    fn within(&self, expression: Expr) -> Result<Expr> {
        let transformed = expression.transform_up(|inner| {
            let Expr::OuterReferenceColumn(_, column) = &inner else { return Ok(Transformed::no(inner)) };
            let found = self.outer.iter().zip(self.names()).find(|(outer, _)| *outer == column);
            Ok(match found {
                Some((_, name)) => Transformed::yes(Expr::Column(Column::new_unqualified(name))),
                None => Transformed::no(inner),
            })
        })?;
        Ok(transformed.data)
    }

    /// The same, under the original name of the expression.
    fn named(&self, expression: Expr, qualifier: Option<&TableReference>, name: &str) -> Result<Expr> {
        let inner = self.within(expression)?;
        let is_named = match &inner {
            Expr::Column(column) => column.relation.as_ref() == qualifier && column.name == name,
            other => qualifier.is_none() && other.schema_name().to_string() == name,
        };
        Ok(if is_named { inner } else { inner.unalias().alias_qualified(qualifier.cloned(), name) })
    }

    /// Whether a plan refers to the outer columns.
    fn is_in(&self, plan: &LogicalPlan) -> bool {
        plan.all_out_ref_exprs()
            .iter()
            .any(|outer| matches!(outer, Expr::OuterReferenceColumn(_, column) if self.outer.contains(column)))
    }

    /// The values, followed by the columns of a plan that carries them, named as in the schema.
    fn renamed(&self, plan: LogicalPlan, schema: &DFSchema) -> Result<LogicalPlan> {
        let mut items: Vec<Expr> = self.columns().collect();
        let carried: Vec<Expr> = columns(&plan).into_iter().skip(items.len()).collect();
        for (column, (qualifier, field)) in carried.into_iter().zip(schema.iter()) {
            let is_same = matches!(&column, Expr::Column(own)
                if own.relation.as_ref() == qualifier && own.name == *field.name());
            items.push(if is_same { column } else { column.alias_qualified(qualifier.cloned(), field.name()) });
        }
        project(plan, items)
    }
}

impl Unnest {
    /// The plan over all values of a domain. The values are the first columns.
    pub(super) fn push(&mut self, plan: &LogicalPlan, domain: &Domain) -> Result<LogicalPlan> {
        if !domain.is_in(plan) {
            return self.leaf(plan, domain);
        }
        match plan {
            LogicalPlan::Projection(projection) => self.push_projection(projection, domain),
            LogicalPlan::Filter(filter) => {
                let input = self.push(&filter.input, domain)?;
                LogicalPlanBuilder::from(input).filter(domain.within(filter.predicate.clone())?)?.build()
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let input = self.push(&alias.input, domain)?;
                domain.renamed(input, &alias.schema)
            }
            LogicalPlan::Aggregate(aggregate) => self.push_aggregate(aggregate, domain),
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.push(&sort.input, domain),
            LogicalPlan::Limit(limit) => self.push_limit(limit, domain),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                LogicalPlanBuilder::from(self.push(input, domain)?).distinct()?.build()
            }
            LogicalPlan::Window(window) => self.push_window(window, domain),
            LogicalPlan::Join(join) => self.push_join(join, domain),
            LogicalPlan::Union(union) => {
                let inputs = union.inputs.iter().map(|input| Ok(Arc::new(self.push(input, domain)?)));
                let pushed = Union::try_new_with_loose_types(inputs.collect::<Result<_>>()?)?;
                self.unqualified(LogicalPlan::Union(pushed), domain, &union.schema)
            }
            LogicalPlan::Values(values) => self.push_values(values, domain),
            LogicalPlan::Unnest(UnnestPlan { input, exec_columns, options, schema, .. }) => {
                let input = self.push(input, domain)?;
                let plan = LogicalPlanBuilder::from(input)
                    .unnest_columns_with_options(exec_columns.clone(), options.clone())?
                    .build()?;
                domain.renamed(plan, schema)
            }
            LogicalPlan::Subquery(subquery) => self.push(&subquery.subquery, domain),
            _ => Err(unsupported("a subquery refers to the outer row within this form of a query")),
        }
    }

    /// The values of a union may have a qualifier.
    fn unqualified(&mut self, plan: LogicalPlan, domain: &Domain, schema: &DFSchema) -> Result<LogicalPlan> {
        let carried = columns(&plan);
        let names = domain.names().map(|name| (None, name.to_owned()));
        let rest = schema.iter().map(|(qualifier, field)| (qualifier.cloned(), field.name().clone()));
        let items = carried.into_iter().zip(names.chain(rest));
        let items: Vec<Expr> =
            items.map(|(column, (qualifier, name))| column.alias_qualified(qualifier, name)).collect();
        project(plan, items)
    }

    fn leaf(&mut self, plan: &LogicalPlan, domain: &Domain) -> Result<LogicalPlan> {
        match plan {
            LogicalPlan::EmptyRelation(empty) if empty.produce_one_row && empty.schema.fields().is_empty() => {
                Ok(domain.plan.clone())
            }
            plan => LogicalPlanBuilder::from(domain.plan.clone()).cross_join(plan.clone())?.build(),
        }
    }

    fn push_projection(&mut self, projection: &Projection, domain: &Domain) -> Result<LogicalPlan> {
        let input = self.push(&projection.input, domain)?;
        let mut items: Vec<Expr> = domain.columns().collect();
        for (item, (qualifier, field)) in projection.expr.iter().zip(projection.schema.iter()) {
            items.push(domain.named(item.clone(), qualifier, field.name())?);
        }
        project(input, items)
    }

    fn push_aggregate(&mut self, aggregate: &Aggregate, domain: &Domain) -> Result<LogicalPlan> {
        if aggregate.group_expr.iter().any(|key| matches!(key, Expr::GroupingSet(_))) {
            return Err(unsupported("grouping sets stand in a subquery that refers to the outer row"));
        }
        let input = self.push(&aggregate.input, domain)?;
        let (keys, results) = (aggregate.group_expr.len(), aggregate.schema.iter().collect::<Vec<_>>());
        debug_assert_eq!(keys + aggregate.aggr_expr.len(), results.len(), "a group stands twice");
        let mut groups: Vec<Expr> = domain.columns().collect();
        for (key, (qualifier, field)) in aggregate.group_expr.iter().zip(&results) {
            groups.push(domain.named(key.clone(), *qualifier, field.name())?);
        }
        let mut aggregates = Vec::with_capacity(aggregate.aggr_expr.len());
        for (expression, (qualifier, field)) in aggregate.aggr_expr.iter().zip(results.iter().skip(keys)) {
            aggregates.push(domain.named(expression.clone(), *qualifier, field.name())?);
        }
        let grouped = LogicalPlanBuilder::from(input).aggregate(groups, aggregates)?.build()?;
        let grouped = domain.renamed(grouped, &aggregate.schema)?;
        if keys > 0 {
            return Ok(grouped);
        }
        // An aggregate also returns a row for values without rows.
        let (every, mark) = (domain.again(self)?, self.name("grouped"));
        let mut marked = columns(&grouped);
        marked.push(lit(true).alias(&mark));
        let marked = project(grouped, marked)?;
        let joined =
            LogicalPlanBuilder::from(every.plan.clone()).join_on(marked, JoinType::Left, every.is_same_as(domain))?;
        let mut items: Vec<Expr> =
            every.columns().zip(domain.names()).map(|(column, name)| column.alias(name)).collect();
        for (expression, (qualifier, field)) in aggregate.aggr_expr.iter().zip(&results) {
            let column = Expr::Column(Column::new(qualifier.cloned(), field.name()));
            let of_nothing = of_no_rows(expression, field.data_type())?;
            items.push(match of_nothing.is_null() {
                true => column,
                false => {
                    let is_missing = Expr::Column(Column::new_unqualified(&mark)).is_null();
                    let value = when(is_missing, lit(of_nothing)).otherwise(column)?;
                    value.alias_qualified(qualifier.cloned(), field.name())
                }
            });
        }
        joined.project(items)?.build()
    }

    fn push_limit(&mut self, limit: &Limit, domain: &Domain) -> Result<LogicalPlan> {
        let Some((skip, fetch)) = limited(limit)? else {
            return Err(unsupported("LIMIT of a subquery that refers to the outer row is a number"));
        };
        // Sorted rows with a projection above are handled like the sort itself.
        if let LogicalPlan::Projection(projection) = limit.input.as_ref()
            && let LogicalPlan::Sort(_) = projection.input.as_ref()
        {
            let taken = LogicalPlan::Limit(Limit { input: projection.input.clone(), ..limit.clone() });
            let swapped =
                Projection::try_new_with_schema(projection.expr.clone(), Arc::new(taken), projection.schema.clone())?;
            return self.push_projection(&swapped, domain);
        }
        let (order, input): (&[SortExpr], &LogicalPlan) = match limit.input.as_ref() {
            LogicalPlan::Sort(sort) => (&sort.expr, &sort.input),
            other => (&[], other),
        };
        let order = order.iter().map(|item| Ok(item.with_expr(domain.within(item.expr.clone())?)));
        let order = order.collect::<Result<Vec<_>>>()?;
        // DataFusion numbers rows only in an order. Without one, it is the order of the values,
        // which are equal.
        let order = match order.is_empty() {
            true => domain.columns().map(|column| column.sort(true, false)).collect(),
            false => order,
        };
        let pushed = self.push(input, domain)?;
        let (kept, number) = (columns(&pushed), self.name("number"));
        let numbered = row_number().partition_by(domain.columns().collect()).order_by(order).build()?;
        let name = numbered.schema_name().to_string();
        let mut items = kept.clone();
        items.push(Expr::Column(Column::new_unqualified(name)).alias(&number));
        let number = Expr::Column(Column::new_unqualified(number));
        let first = u64::try_from(skip).unwrap_or(u64::MAX);
        let mut condition = number.clone().gt(lit(first));
        if let Some(fetch) = fetch {
            let last = first.saturating_add(u64::try_from(fetch).unwrap_or(u64::MAX));
            condition = condition.and(number.lt_eq(lit(last)));
        }
        let plan = LogicalPlanBuilder::from(pushed).window([numbered])?.project(items)?.filter(condition)?;
        plan.project(kept)?.build()
    }

    fn push_window(&mut self, window: &Window, domain: &Domain) -> Result<LogicalPlan> {
        let input = self.push(&window.input, domain)?;
        let expressions = window.window_expr.iter().map(|expression| {
            let within = domain.within(expression.clone())?.transform_down(|inner| match inner {
                Expr::WindowFunction(mut function) => {
                    let WindowFunctionParams { partition_by, .. } = &mut function.params;
                    partition_by.extend(domain.columns());
                    Ok(Transformed::new(Expr::WindowFunction(function), true, TreeNodeRecursion::Jump))
                }
                other => Ok(Transformed::no(other)),
            });
            Ok(within?.data)
        });
        let expressions = expressions.collect::<Result<Vec<_>>>()?;
        let plan = LogicalPlanBuilder::from(input).window(expressions)?.build()?;
        domain.renamed(plan, &window.schema)
    }

    fn push_join(&mut self, join: &Join, domain: &Domain) -> Result<LogicalPlan> {
        let (of_left, of_right) = (domain.is_in(&join.left), domain.is_in(&join.right));
        // Rows of nulls are added for each of the values.
        let (to_left, to_right) = match join.join_type {
            JoinType::Inner => (of_left || !of_right, of_right),
            JoinType::Left => (true, of_right),
            JoinType::Right => (of_left, true),
            JoinType::Full => (true, true),
            _ => return Err(unsupported("a subquery refers to the outer row within this form of a join")),
        };
        let both = to_left && to_right;
        let other = if both { domain.again(self)? } else { domain.clone() };
        let left = if to_left { self.push(&join.left, domain)? } else { join.left.as_ref().clone() };
        let right = if to_right {
            let pushed = self.push(&join.right, domain)?;
            if both { renamed_values(pushed, domain, &other)? } else { pushed }
        } else {
            join.right.as_ref().clone()
        };
        let mut on = Vec::new();
        for (left, right) in &join.on {
            on.push(domain.within(left.clone())?.eq(domain.within(right.clone())?));
        }
        if let Some(condition) = &join.filter {
            on.push(domain.within(condition.clone())?);
        }
        if both {
            on.extend(domain.is_same_as(&other));
        }
        let carried: Vec<Expr> = domain
            .columns()
            .zip(other.columns())
            .zip(domain.names())
            .map(|((left, right), name)| match (both, join.join_type) {
                (true, JoinType::Right) => right.alias(name),
                (true, JoinType::Full) => datafusion::functions::core::expr_fn::coalesce(vec![left, right]).alias(name),
                _ => left,
            })
            .collect();
        let items = carried.into_iter().chain(join.schema.columns().into_iter().map(Expr::Column));
        project(LogicalPlanBuilder::from(left).join_on(right, join.join_type, on)?.build()?, items)
    }

    /// `VALUES` with outer columns: a row of the values for each row.
    fn push_values(&mut self, values: &Values, domain: &Domain) -> Result<LogicalPlan> {
        let mut rows = Vec::with_capacity(values.values.len());
        for row in &values.values {
            let mut items: Vec<Expr> = domain.columns().collect();
            for (value, (_, field)) in row.iter().zip(values.schema.iter()) {
                items.push(domain.within(value.clone())?.alias(field.name()));
            }
            rows.push(Arc::new(project(domain.plan.clone(), items)?));
        }
        let plan = match rows.as_slice() {
            [row] => row.as_ref().clone(),
            _ => LogicalPlan::Union(Union::try_new_with_loose_types(rows)?),
        };
        self.unqualified(plan, domain, &values.schema)
    }
}

/// A plan with renamed values.
fn renamed_values(plan: LogicalPlan, domain: &Domain, other: &Domain) -> Result<LogicalPlan> {
    let mut items: Vec<Expr> = domain.columns().zip(other.names()).map(|(column, name)| column.alias(name)).collect();
    items.extend(columns(&plan).into_iter().skip(items.len()));
    project(plan, items)
}

/// The result of an aggregate over no rows.
fn of_no_rows(expression: &Expr, data_type: &arrow_schema::DataType) -> Result<ScalarValue> {
    let mut inner = expression;
    while let Expr::Alias(alias) = inner {
        inner = &alias.expr;
    }
    match inner {
        Expr::AggregateFunction(aggregate) => aggregate.func.default_value(data_type),
        _ => ScalarValue::try_from(data_type),
    }
}
