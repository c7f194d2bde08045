//! Planning ends when its statement does: cancelled, late, or of a connection that is gone.
//!
//! DataFusion plans in one go, without a moment at which a task could be dropped. Plans and functions are made for many statements,
//! therefore each task tells which statement it plans, and whoever comes by between two steps looks whether it is still wanted: each rule
//! of the analyzer and the optimizer before each node, operators while a text becomes a plan, functions of constants.

use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::{AnalyzerRule, ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::{PhysicalOptimizerContext, PhysicalOptimizerRule};
use datafusion::physical_plan::ExecutionPlan;
use filbert_grid::query::SqlError;

use crate::cursor::Limits;
use crate::error::carried;

tokio::task_local! {
    static STATEMENT: Ending;
}

/// What ends the statement of a task.
struct Ending {
    limits: Limits,
    /// Why it was refused.
    refusal: RefCell<Option<SqlError>>,
}

/// Runs a task's work, which ends with these limits.
pub(crate) async fn ended_by<T>(limits: Limits, work: impl Future<Output = T>) -> T {
    STATEMENT.scope(Ending { limits, refusal: RefCell::default() }, work).await
}

/// What ends the statement of this task, if it has one.
pub(crate) fn limits() -> Option<Limits> {
    STATEMENT.try_with(|ending| ending.limits.clone()).ok()
}

/// Notes that a part of the statement takes too much. The planner takes the error of a constant for one that may never show, and computes
/// the constant again with each of its rules; the statement ends at the next [`check`] instead.
pub(crate) fn refuse(error: SqlError) -> DataFusionError {
    // Outside of a statement nobody looks.
    let _ = STATEMENT.try_with(|ending| ending.refusal.replace(Some(error.clone())));
    carried(error)
}

/// Looks whether the statement of this task is to go on.
///
/// # Errors
/// 57014: nobody wants it any more. What it was refused for.
pub(crate) fn check() -> Result<()> {
    let over = STATEMENT.try_with(|ending| {
        let is_over = ending.limits.are_over();
        if is_over { Some(ending.limits.why_over()) } else { ending.refusal.borrow().clone() }
    });
    over.ok().flatten().map_or(Ok(()), |error| Err(carried(error)))
}

/// A rule that looks whether the statement is still wanted before it does anything.
struct Ended<R: ?Sized>(Arc<R>);

/// The rule, for plans of statements that may end meanwhile.
pub(super) fn analyzing(rule: Arc<dyn AnalyzerRule + Send + Sync>) -> Arc<dyn AnalyzerRule + Send + Sync> {
    Arc::new(Ended(rule))
}

/// As [`analyzing`].
pub(super) fn optimizing(rule: Arc<dyn OptimizerRule + Send + Sync>) -> Arc<dyn OptimizerRule + Send + Sync> {
    Arc::new(Ended(rule))
}

/// As [`analyzing`].
pub(super) fn optimizing_physical(
    rule: Arc<dyn PhysicalOptimizerRule + Send + Sync>,
) -> Arc<dyn PhysicalOptimizerRule + Send + Sync> {
    Arc::new(Ended(rule))
}

impl<R: fmt::Debug + ?Sized> fmt::Debug for Ended<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl AnalyzerRule for Ended<dyn AnalyzerRule + Send + Sync> {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        check()?;
        self.0.analyze(plan, config)
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

impl OptimizerRule for Ended<dyn OptimizerRule + Send + Sync> {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        check()?;
        self.0.rewrite(plan, config)
    }
}

impl PhysicalOptimizerRule for Ended<dyn PhysicalOptimizerRule + Send + Sync> {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        check()?;
        self.0.optimize(plan, config)
    }

    fn optimize_with_context(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        context: &dyn PhysicalOptimizerContext,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        check()?;
        self.0.optimize_with_context(plan, context)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}
