//! Tables in FROM that a query stands for: their columns have the types of the rows of all parts of a `UNION` at once, and no column
//! decides others.
//!
//! DataFusion gives a `UNION` the types of its first part until types are coerced, and that is after its planner has chosen operators by
//! the types of columns. It groups by columns that it believes to be decided by those of `GROUP BY` (`dependencies`).

use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::Result;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::sql::sqlparser::ast::TableFactor;

use super::{dependencies, set_operations};

/// Plans the tables of one statement.
#[derive(Debug, Default)]
pub(super) struct Relations {
    /// Whether the next table is asked for by this planner itself.
    is_own: AtomicBool,
}

impl RelationPlanner for Relations {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let is_query = matches!(relation, TableFactor::Derived { .. } | TableFactor::Table { args: None, .. });
        if !is_query || self.is_own.swap(false, Ordering::Relaxed) {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        }
        self.is_own.store(true, Ordering::Relaxed);
        let plan = dependencies::without(set_operations::with_common_types(context.plan(relation)?)?)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}
