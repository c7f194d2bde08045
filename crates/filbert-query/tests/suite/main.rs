//! Tests of the query engine, with statements and predicates as the doors send them.
//!
//! One program for all of them: each program more would link the whole crate once more.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod answers;
mod array_casts;
mod atomic;
mod casts;
mod catalogs;
mod common;
mod conversions;
mod defaults;
mod error_texts;
mod evaluator;
mod keys;
mod literals;
mod load;
mod model;
mod nesting;
mod objects;
mod parameters;
mod patterns;
mod plans;
mod races;
mod repeating;
mod result_order;
mod sessions;
mod signatures;
mod statements;
mod table_changes;
mod table_schemas;
mod tables;
mod templates;
mod ternary;
mod values;
mod zones;
