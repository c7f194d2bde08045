//! Clients of a member whose changes go through a log: exactly the same tests as for a member that
//! makes changes in place. `common::Server` starts the other kind of member in this binary.
#![allow(clippy::duplicate_mod, reason = "each of these files is a test binary of its own as well")]

#[path = "bad_input.rs"]
mod bad_input;
#[path = "handshake.rs"]
mod handshake;
#[path = "locks_and_events.rs"]
mod locks_and_events;
#[path = "maps.rs"]
mod maps;
#[path = "queries.rs"]
mod queries;
#[path = "query_caches.rs"]
mod query_caches;
