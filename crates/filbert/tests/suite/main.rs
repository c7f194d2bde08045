//! Tests of the program, of its configuration, and of a member within another program.
//!
//! One program for all of them: each program more would link the whole crate once more.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

mod client;
mod client_queries;
mod config;
mod embedded;
mod program;
