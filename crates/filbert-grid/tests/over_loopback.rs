//! Runs tests of directly applied changes again, with members that send their changes through a
//! log. `common::member` creates that kind of member in this binary.
#![allow(clippy::duplicate_mod, reason = "each of these files is a test binary of its own as well")]

#[path = "columns.rs"]
mod columns;
#[path = "indexes.rs"]
mod indexes;
#[path = "limits.rs"]
mod limits;
#[path = "locks.rs"]
mod locks;
#[path = "maps.rs"]
mod maps;
#[path = "registries.rs"]
mod registries;
#[path = "replacement.rs"]
mod replacement;
#[path = "together.rs"]
mod together;
#[path = "waiting.rs"]
mod waiting;
