//! Short plans: statements of a known shape that run without DataFusion's operators.
//!
//! DataFusion plans and optimizes a statement once. If the result is a lookup by key or by index,
//! or one pass of aggregation over one map, the plan is kept in a form that needs no further
//! planning:
//!
//! | statement | runs |
//! |---|---|
//! | rows by key, by keys, by index | in place, on the calling thread |
//! | `count`, `sum`, `min`, `max`, `avg` over a map | on the engine's threads |
//! | INSERT and SINK of constants, UPDATE and DELETE by key | in place |
//!
//! An aggregation may have a filter, and gives each thread one part of the map. Conditions,
//! conversions and results are those of the original plan, because expressions and accumulators are
//! the same.

mod aggregate;
mod dml;
mod key;
mod query;

pub(crate) use dml::ShortDml;
pub(crate) use query::ShortQuery;
