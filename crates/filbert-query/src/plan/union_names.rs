//! The column names of a union, which are those of its first query.
//!
//! DataFusion removes queries without rows from a union and keeps the union's names. If the first
//! query was removed, the plan that runs has the names of the next query, and the nodes above do
//! not find their columns.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::logical_plan::{Projection, Union};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

/// Gives the columns of a union's first query the names of the union.
#[derive(Debug)]
pub(super) struct UnionNames;

impl OptimizerRule for UnionNames {
    fn name(&self) -> &str {
        "names_of_unions"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Union(union) = plan else { return Ok(Transformed::no(plan)) };
        let Some(first) = union.inputs.first() else { return Ok(Transformed::no(LogicalPlan::Union(union))) };
        let mut names = first.schema().fields().iter().zip(union.schema.fields());
        if names.all(|(own, name)| own.name() == name.name()) {
            return Ok(Transformed::no(LogicalPlan::Union(union)));
        }
        let columns = first.schema().columns().into_iter().zip(union.schema.fields());
        let items = columns.map(|(column, field)| match column.name == *field.name() {
            true => Expr::Column(column),
            false => Expr::Column(column).alias(field.name()),
        });
        let named = Projection::try_new(items.collect(), Arc::clone(first))?;
        let Union { mut inputs, schema } = union;
        if let Some(first) = inputs.first_mut() {
            *first = Arc::new(LogicalPlan::Projection(named));
        }
        Ok(Transformed::yes(LogicalPlan::Union(Union { inputs, schema })))
    }

    fn supports_rewrite(&self) -> bool {
        true
    }
}
