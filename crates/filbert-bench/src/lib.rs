//! The load generator of Filbert, and the experiments that compare it with the limit and with its peer.
//!
//! It speaks Hazelcast's Open Binary Client Protocol, so one and the same workload runs against Filbert, against a real
//! Hazelcast member, and against an echo server that does no more than any server of the protocol must. It knows
//! nothing of how a server works inside; the embedded comparison of experiment S uses Filbert's public API only.
//!
//! ```text
//!  experiment p, s, q, ..         starts servers, measures in turn, checks, reports
//!     |          |        \
//!   server, java, duckdb  load    one workload, many connections; latencies, CPU per call, memory
//!     |          |          |
//!   echo   bench/java,   session, requests, distribution
//!          bench/duckdb
//! ```
//!
//! Invariants:
//!
//! - A call is a pure function of the seed and its number: whoever reads a reply computes what it must be.
//! - A wrong result ends a run. There are no figures for a server that answers wrongly.
//! - Figures come with what they were measured on.
//!
//! Start at [`load::Load`]; then [`experiment`].

pub mod address;
pub mod buffer;
pub mod cluster;
pub mod distribution;
pub mod duckdb;
pub mod echo;
pub mod environment;
mod error;
pub mod experiment;
pub mod http;
pub mod java;
pub mod latency;
pub mod load;
pub mod process;
pub mod python;
pub mod requests;
pub mod rust_client;
pub mod server;
pub mod session;

pub use error::{BenchError, Result};
