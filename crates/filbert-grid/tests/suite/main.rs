//! Tests of maps, registries and limits. Members apply their changes directly, unless a test starts
//! a log; the program `over_loopback` runs most of these tests again, over a log.
//!
//! One program for all of them: each program more would link the whole crate once more.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod columns;
mod common;
mod indexes;
mod limits;
mod locks;
mod maps;
mod registries;
mod replacement;
mod replicated;
mod replicated_model;
mod session_limits;
mod together;
mod waiting;
