//! Short plans: statements whose shape is known, run without DataFusion's operators.
//!
//! A statement is planned and optimized by DataFusion once. If what comes out is a lookup by key or by an index, or one pass
//! of aggregation over one map, it is kept in a form that needs no planning any more:
//!
//! | statement | runs |
//! |---|---|
//! | rows by key, by keys, by what an index finds | in place, in the thread that asks |
//! | `count`, `sum`, `min`, `max`, `avg` over a map, with or without a filter | on the engine's threads, one part of the map each |
//! | INSERT and SINK of constants, UPDATE and DELETE by key | in place |
//!
//! Conditions, conversions and results are those of the plan it was made from, as expressions and accumulators are the same.

mod aggregate;
mod dml;
mod key;
mod query;

pub(crate) use dml::ShortDml;
pub(crate) use query::ShortQuery;
