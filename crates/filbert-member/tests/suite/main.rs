//! Tests of members that listen and join over real links, within one process.
//!
//! One program for all of them: each program more would link the whole crate once more.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod administration;
#[path = "../../../filbert-links/tests/suite/common/certificates.rs"]
mod certificates;
mod clocks;
mod cluster;
mod common;
mod events;
mod founding;
mod leader_reads;
mod recovery;
mod replacing;
mod security;
mod upgrades;
