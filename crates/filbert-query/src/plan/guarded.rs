//! The query planner of the engine: [`guards`] are added to a plan before it becomes physical.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::Session;
use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::execution::context::QueryPlanner;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_planner::{DefaultPhysicalPlanner, PhysicalPlanner};
use filbert_functions::guards;

/// DataFusion's planner over plans with guarded conditions.
#[derive(Debug)]
pub(super) struct Guarded;

#[async_trait]
impl QueryPlanner for Guarded {
    async fn create_physical_plan(&self, plan: &LogicalPlan, state: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let planner = DefaultPhysicalPlanner::default();
        match has_connective(plan)? {
            true => planner.create_physical_plan(&of_plan(plan.clone())?, state).await,
            // Most plans that are executed again and again: lookups with filters of a scan.
            false => planner.create_physical_plan(plan, state).await,
        }
    }
}

/// Whether a plan has `AND` or `OR` in other expressions than the filters of its tables.
fn has_connective(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        if !matches!(node, LogicalPlan::TableScan(_)) {
            node.apply_expressions(|expression| {
                found |= guards::has_connective(expression);
                Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
            })?;
        }
        Ok(if found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(found)
}

/// Guards the conditions of a plan. Scans guard the filters of their tables themselves, with
/// [`guards::condition`].
fn of_plan(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = plan.transform_up_with_subqueries(|node| {
        let schema = merge_schema(&node.inputs());
        match node {
            LogicalPlan::Filter(mut filter) => {
                filter.predicate = guards::condition(filter.predicate, &schema)?;
                Ok(Transformed::yes(LogicalPlan::Filter(filter)))
            }
            LogicalPlan::Join(mut join) => {
                join.filter = join.filter.map(|filter| guards::condition(filter, &schema)).transpose()?;
                for (left, right) in &mut join.on {
                    *left = guards::value(std::mem::take(left), &schema)?;
                    *right = guards::value(std::mem::take(right), &schema)?;
                }
                Ok(Transformed::yes(LogicalPlan::Join(join)))
            }
            node @ LogicalPlan::TableScan(_) => Ok(Transformed::no(node)),
            node => {
                let names = NamePreserver::new(&node);
                node.map_expressions(|expression| {
                    if !guards::has_connective(&expression) {
                        return Ok(Transformed::no(expression));
                    }
                    let name = names.save(&expression);
                    Ok(Transformed::yes(name.restore(guards::value(expression, &schema)?)))
                })
            }
        }
    })?;
    Ok(plan.data)
}
