//! Subqueries in FROM: their columns have the common types of all parts of a `UNION`, and no
//! functional dependencies.
//!
//! DataFusion gives a `UNION` the types of its first part until type coercion, which is after its
//! planner has chosen operators by the column types. It also groups by columns that it considers
//! determined by those of `GROUP BY` (`dependencies`).

use std::sync::atomic::{AtomicBool, Ordering};

use datafusion::common::Result;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::sql::sqlparser::ast::TableFactor;
use filbert_grid::query::Dialect;

use super::{dependencies, set_operations};

/// Plans the relations of one statement.
#[derive(Debug)]
pub(super) struct Relations {
    dialect: Dialect,
    /// Whether this planner itself requests the next relation.
    is_own: AtomicBool,
}

impl Relations {
    /// A planner of relations in a dialect.
    pub(super) fn of(dialect: Dialect) -> Relations {
        Relations { dialect, is_own: AtomicBool::default() }
    }
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
        let plan = set_operations::with_common_types(context.plan(relation)?, self.dialect)?;
        let plan = dependencies::without(plan)?;
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
    }
}
