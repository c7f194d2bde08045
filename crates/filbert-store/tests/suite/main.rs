//! Tests of a partition and of its replicas, through the public items of the crate.
//!
//! One program for all of them: each program more would link the whole crate once more.
#![allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test fails by panicking")]

mod behaviour;
mod codec;
mod common;
mod model;
mod replicas;
mod shares;
mod snapshot;
