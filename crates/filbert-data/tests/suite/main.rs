//! Tests of values, serialized formats, predicates and documents, through the public items of the
//! crate.
//!
//! One program for all of them: each program more would link the whole crate once more.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod broken;
mod common;
mod compact;
mod criteria;
mod criteria_properties;
mod describing;
mod fields;
mod golden;
mod json;
mod malformed;
mod order;
mod portable;
mod properties;
mod round_trip;
mod values;
mod writing;
