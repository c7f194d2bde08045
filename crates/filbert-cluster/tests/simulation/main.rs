//! Groups under simulation: the real crate over a network, clocks and randomness that follow from a seed, clients whose history must be
//! linearizable, and invariants that are looked at every 23 ms.
//!
//! `FILBERT_SIM_HISTORIES=1000 cargo test --release -p filbert-cluster --test simulation random` for more histories than usual;
//! `FILBERT_SIM_SEED=7` runs the one history of a seed. A failure prints its seed.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]
#![allow(clippy::panic, clippy::print_stderr, reason = "helpers of tests fail as tests do")]

mod checker;
mod cluster;
mod network;
mod random;
mod runtime;
mod scenarios;
