//! The load generator of Filbert, and the experiments that compare Filbert with the upper limit and
//! with Hazelcast.
//!
//! It speaks Hazelcast's Open Binary Client Protocol, so the same workload runs against Filbert,
//! against a real Hazelcast member, and against an echo server with the minimal work of the
//! protocol. It knows nothing about the internals of a server. The embedded comparison of
//! experiment S uses only Filbert's public API.
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
//! - A call is a pure function of the seed and its number: the receiver of a reply computes the
//!   expected result.
//! - A wrong result ends a run. There are no figures for a server with wrong results.
//! - Figures are reported together with the environment of the run.
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
