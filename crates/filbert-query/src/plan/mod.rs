//! From a parsed query to a plan: what the dialects mean differently is put right in the syntax tree, names are resolved
//! (`scope`), the rest is DataFusion's planner and optimizer.

pub(crate) mod ahead;
mod calls;
pub(crate) mod columns;
pub(crate) mod context;
mod dependencies;
mod digits;
pub(crate) mod ending;
pub(crate) mod fairness;
mod giving_way;
pub(crate) mod groups;
pub(crate) mod listed;
mod marks;
pub(crate) mod memory;
pub(crate) mod order;
pub(crate) mod parameters;
pub(crate) mod planner;
mod relations;
mod rules;
pub(crate) mod scope;
pub(crate) mod session;
mod set_operations;
pub(crate) mod soft_limits;
pub(crate) mod ternary;
mod union_names;
pub(crate) mod values;
pub(crate) mod windows;
