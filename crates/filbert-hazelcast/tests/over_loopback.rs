//! What clients see of a member whose changes go through a log: the same tests as of one that makes them where it is asked, word for
//! word. `common::Server` starts the other kind of member in this binary.
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
