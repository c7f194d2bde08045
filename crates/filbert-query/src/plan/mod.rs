//! From a parsed query to a plan. Differences of the dialects are corrected in the syntax tree,
//! names are resolved (`scope`), and DataFusion plans and optimizes the result.

pub(crate) mod ahead;
mod arguments;
mod bounds;
mod branches;
mod calls;
pub(crate) mod columns;
mod constant_keys;
pub(crate) mod context;
mod dependencies;
mod digits;
pub(crate) mod ended;
pub(crate) mod fairness;
mod filtered;
mod first_uses;
mod forgetting;
mod frames;
mod giving_way;
pub(crate) mod groups;
mod growth;
mod guarded;
mod idle_keys;
mod inferences;
mod inputs;
pub(crate) mod listed;
mod marks;
pub(crate) mod order;
pub(crate) mod parameters;
pub(crate) mod planner;
mod projections;
mod references;
mod relations;
mod result_order;
mod rules;
pub(crate) mod scope;
pub(crate) mod session;
mod set_operations;
pub(crate) mod soft_limits;
mod sorts_of_unions;
pub(crate) mod ternary;
mod union_names;
mod unnested;
mod unreached;
pub(crate) mod values;
pub(crate) mod windows;

/// Helpers of the tests of several rules.
#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it is wrong")]

    use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, lit};

    /// A relation with one row and one column.
    pub(super) fn relation(name: &str) -> LogicalPlan {
        let rows = LogicalPlanBuilder::values(vec![vec![lit(1)]]).unwrap();
        rows.alias(name).unwrap().build().unwrap()
    }
}
