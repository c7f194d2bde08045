//! Predicates, aggregators and projections of the map API, as the stock clients build and send
//! them.
//!
//! They are serialized as IdentifiedDataSerializable of the factories -20 (predicates), -29
//! (aggregators) and -30 (projections). In this module they are plain trees. This module must not
//! know how they are evaluated: that is the task of the query engine.

mod answer;
mod class;
mod decode;
mod encode;
mod object;
mod predicate;
mod sql_text;
mod summary;

pub use answer::{Distinct, Entry};
pub use encode::{distinct_blob, entry_blob, row_blob};
pub use predicate::{IterationType, PagingPredicate, Predicate};
pub use summary::{Aggregator, Projection};
