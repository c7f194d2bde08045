//! Queries of the map API: predicates, aggregators, projections and pages over the entries of one
//! map.
//!
//! ```text
//!  blob ── criteria ──► Predicate ── compile ──► Condition (true or false for each entry)
//!                                 └─ candidates ─► by key, by index, or all entries
//!  entries that match ──► answers │ Aggregation │ projection │ page
//! ```
//!
//! A predicate is true or false, never unknown: a null equals a null. In this it differs from SQL,
//! and therefore it does not use the SQL planner. Fields, comparison, indexes and columns are the
//! same.

mod aggregate;
mod candidates;
mod compare;
mod condition;
mod members;
mod page;
mod prepared;

pub(crate) use prepared::{Filter, Projector, prepare};
