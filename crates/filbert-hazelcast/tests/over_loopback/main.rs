//! Clients of members that send their changes through a log: the tests of `suite` again, and tests
//! of replicated members and of clusters.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

#[path = "../suite/bad_input.rs"]
mod bad_input;
mod cluster;
mod cluster_query_caches;
#[path = "../suite/common/mod.rs"]
mod common;
#[path = "../suite/handshake.rs"]
mod handshake;
#[path = "../suite/locks_and_events.rs"]
mod locks_and_events;
#[path = "../suite/maps.rs"]
mod maps;
#[path = "../suite/queries.rs"]
mod queries;
#[path = "../suite/query_caches.rs"]
mod query_caches;
mod replicated;
