//! What the map API asks of a map: predicates, aggregators and projections, as the stock clients build and send them.
//!
//! They travel as IdentifiedDataSerializable of the factories -20 (predicates), -29 (aggregators) and -30 (projections).
//! Here they are plain trees; what they mean is the query engine's business.

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
