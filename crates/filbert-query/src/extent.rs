//! The extent of a plan: its depth and its number of nodes.
//!
//! Plans are walked recursively, by DataFusion's rules as well as when they run: a plan of some
//! thousand nodes below each other would overflow the stack of its thread, which ends the process.
//! Such a plan needs no deep text: each window is a node above the one before, each `WITH` query
//! can read the one before, and a correlated subquery doubles the plan of the rows around it in the
//! worst case. Therefore a plan is measured before DataFusion's rules see it.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::{Exists, InSubquery, SetComparison};
use datafusion::logical_expr::{Expr, LogicalPlan};
use filbert_functions::error::{carried, parsing_error};

/// The maximum depth of a plan: half of the depth for which the stack of a query thread is large
/// enough. Not a setting, like the size of the stack.
const DEPTH_MAX: usize = 1_000;
/// The maximum number of nodes. The optimizer holds about ten kilobytes for each. Not a setting: no
/// statement in use comes near.
const NODES_MAX: usize = 10_000;
/// The number of nodes that a subquery within an expression adds above the rows around it: a join,
/// a projection, an aggregate.
const ABOVE_OUTER_ROWS: usize = 3;

/// Checks a plan.
///
/// # Errors
/// 54001: it is too deep or too large.
pub(crate) fn check(plan: &LogicalPlan) -> Result<()> {
    let mut extent = Extent::default();
    extent.measure(plan, 0)?;
    while let Some((plan, depth)) = extent.subqueries.pop() {
        extent.measure(&plan, depth)?;
    }
    Ok(())
}

#[derive(Default)]
struct Extent {
    nodes: usize,
    /// The subqueries that are not measured yet, each with its depth.
    subqueries: Vec<(Arc<LogicalPlan>, usize)>,
}

impl Extent {
    /// Counts the nodes of a plan at a depth, without its subqueries.
    fn measure(&mut self, root: &LogicalPlan, depth: usize) -> Result<()> {
        let mut open = vec![(root, depth)];
        while let Some((plan, depth)) = open.pop() {
            self.nodes += 1;
            if self.nodes > NODES_MAX {
                return refused(format!("its plan has more than {NODES_MAX} nodes"));
            }
            if depth > DEPTH_MAX {
                return refused(format!("its plan is more than {DEPTH_MAX} nodes deep"));
            }
            let known = self.subqueries.len();
            plan.apply_expressions(|expression| {
                expression.apply(|inner| {
                    let subquery = match inner {
                        Expr::ScalarSubquery(subquery)
                        | Expr::Exists(Exists { subquery, .. })
                        | Expr::InSubquery(InSubquery { subquery, .. })
                        | Expr::SetComparison(SetComparison { subquery, .. }) => subquery,
                        _ => return Ok(TreeNodeRecursion::Continue),
                    };
                    self.subqueries.push((subquery.subquery.clone(), depth + 1));
                    Ok(TreeNodeRecursion::Continue)
                })
            })?;
            let above = (self.subqueries.len() - known) * ABOVE_OUTER_ROWS;
            open.extend(plan.inputs().into_iter().map(|input| (input, depth + 1 + above)));
        }
        Ok(())
    }
}

fn refused(reason: String) -> Result<()> {
    let text = format!("the statement is too complex: {reason}");
    Err(carried(parsing_error(text).with_sqlstate("54001")))
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::{LogicalPlanBuilder, Subquery, lit};

    use super::*;

    fn row() -> LogicalPlanBuilder {
        LogicalPlanBuilder::empty(true)
    }

    fn limits(count: usize) -> LogicalPlanBuilder {
        (0..count).try_fold(row(), |plan, _| plan.limit(0, Some(1))).unwrap()
    }

    fn is_refused(plan: LogicalPlanBuilder) -> bool {
        check(&plan.build().unwrap()).is_err()
    }

    /// `count` items that are subqueries with a number of nodes.
    fn subqueries(count: usize, nodes: usize) -> LogicalPlanBuilder {
        let plan = Arc::new(limits(nodes).project([lit(1)]).unwrap().build().unwrap());
        let of = |at: usize| {
            let subquery =
                Subquery { subquery: plan.clone(), outer_ref_columns: Vec::new(), spans: Default::default() };
            Expr::ScalarSubquery(subquery).alias(format!("c{at}"))
        };
        row().project((0..count).map(of)).unwrap()
    }

    #[test]
    fn plans_that_are_too_deep_are_refused() {
        assert!(!is_refused(limits(DEPTH_MAX)));
        assert!(is_refused(limits(DEPTH_MAX + 1)));
        assert!(!is_refused(subqueries(1, DEPTH_MAX - 3)));
        assert!(is_refused(subqueries(1, DEPTH_MAX)));
    }

    #[test]
    fn subqueries_of_one_node_are_joined_above_each_other() {
        assert!(!is_refused(subqueries(300, 1)));
        assert!(is_refused(subqueries(400, 1)));
    }

    #[test]
    fn plans_that_are_too_large_are_refused() {
        assert!(!is_refused(subqueries(30, 300)));
        assert!(is_refused(subqueries(40, 300)));
    }
}
