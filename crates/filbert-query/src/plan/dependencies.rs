//! Removes functional dependencies from plans. DataFusion keeps them with each schema, but the rows
//! do not always have them.
//!
//! DataFusion matches dependencies by the names of expressions, and a cast has the name of its
//! operand: `GROUP BY id::bool` counts as a group by the key `id`. Above an aggregate, a column
//! that determines some columns of a join counts as one that determines all of them. Its rules then
//! remove groups, sort keys and `DISTINCT`. Schemas therefore have no dependencies when such rules
//! run. Columns that a primary key determines are added to the groups before planning (`scope`).

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{DFSchema, DFSchemaRef, FunctionalDependencies, Result};
use datafusion::logical_expr::logical_plan::Aggregate;
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// The rule that removes the dependencies of a plan. The rule after it must look at a node before
/// it rebuilds the nodes below.
pub(super) fn independence() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(Independence)
}

/// The rule for `DISTINCT`.
pub(super) fn distinct_rows() -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(DistinctRows)
}

/// The plan with schemas without dependencies. A plan without any is returned unchanged.
pub(super) fn without(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut any = false;
    plan.apply_with_subqueries(|node| {
        any = dependent_schema(node).is_some();
        Ok(if any { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if any { Ok(plan.transform_up_with_subqueries(independent)?.data) } else { Ok(plan) }
}

fn independent(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let Some(schema) = dependent_schema(&plan) else { return Ok(Transformed::no(plan)) };
    let schema = DFSchema::clone(schema).with_functional_dependencies(FunctionalDependencies::empty())?;
    Ok(Transformed::yes(with_schema(plan, Arc::new(schema))))
}

/// The schema of a node, if the node has its own schema and it has dependencies.
fn dependent_schema(plan: &LogicalPlan) -> Option<&DFSchemaRef> {
    own_schema(plan).filter(|schema| !schema.functional_dependencies().is_empty())
}

/// The schema of a node; `None` for a node that has its input's schema, or has no dependencies.
fn own_schema(plan: &LogicalPlan) -> Option<&DFSchemaRef> {
    match plan {
        LogicalPlan::Projection(node) => Some(&node.schema),
        LogicalPlan::Window(node) => Some(&node.schema),
        LogicalPlan::Aggregate(node) => Some(&node.schema),
        LogicalPlan::Join(node) => Some(&node.schema),
        LogicalPlan::Union(node) => Some(&node.schema),
        LogicalPlan::TableScan(node) => Some(&node.projected_schema),
        LogicalPlan::SubqueryAlias(node) => Some(&node.schema),
        LogicalPlan::EmptyRelation(node) => Some(&node.schema),
        LogicalPlan::Values(node) => Some(&node.schema),
        LogicalPlan::Distinct(Distinct::On(node)) => Some(&node.schema),
        LogicalPlan::Unnest(node) => Some(&node.schema),
        _ => None,
    }
}

fn with_schema(mut plan: LogicalPlan, schema: DFSchemaRef) -> LogicalPlan {
    match &mut plan {
        LogicalPlan::Projection(node) => node.schema = schema,
        LogicalPlan::Window(node) => node.schema = schema,
        LogicalPlan::Aggregate(node) => node.schema = schema,
        LogicalPlan::Join(node) => node.schema = schema,
        LogicalPlan::Union(node) => node.schema = schema,
        LogicalPlan::TableScan(node) => node.projected_schema = schema,
        LogicalPlan::SubqueryAlias(node) => node.schema = schema,
        LogicalPlan::EmptyRelation(node) => node.schema = schema,
        LogicalPlan::Values(node) => node.schema = schema,
        LogicalPlan::Distinct(Distinct::On(node)) => node.schema = schema,
        LogicalPlan::Unnest(node) => node.schema = schema,
        _ => {}
    }
    plan
}

#[derive(Debug)]
struct Independence;

impl OptimizerRule for Independence {
    fn name(&self) -> &str {
        "independence"
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        // The change does not require another run of the rules.
        Ok(Transformed::no(without(plan)?))
    }

    fn supports_rewrite(&self) -> bool {
        true
    }
}

/// `DISTINCT` as an aggregate that groups by all columns. DataFusion's own rule removes it where it
/// assumes that all rows are distinct.
#[derive(Debug)]
struct DistinctRows;

impl OptimizerRule for DistinctRows {
    fn name(&self) -> &str {
        "distinct_rows"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Distinct(Distinct::All(input)) if !input.schema().fields().is_empty() => {
                let groups = input.schema().columns().into_iter().map(Expr::Column).collect();
                Ok(Transformed::yes(LogicalPlan::Aggregate(Aggregate::try_new(input, groups, Vec::new())?)))
            }
            other => Ok(Transformed::no(other)),
        }
    }

    fn supports_rewrite(&self) -> bool {
        true
    }
}
