//! From a parsed query to a plan: what Hazelcast's dialect means differently is put right in the syntax tree, the rest is
//! DataFusion's planner and optimizer.

pub(crate) mod columns;
pub(crate) mod fairness;
pub(crate) mod memory;
pub(crate) mod planner;
pub(crate) mod session;
