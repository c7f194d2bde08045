//! Runs tests of directly applied changes again, with members that send their changes through a
//! log. `common::member` creates that kind of member in this binary.
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../suite/columns.rs"]
mod columns;
#[path = "../suite/common/mod.rs"]
mod common;
#[path = "../suite/indexes.rs"]
mod indexes;
#[path = "../suite/limits.rs"]
mod limits;
#[path = "../suite/locks.rs"]
mod locks;
#[path = "../suite/maps.rs"]
mod maps;
#[path = "../suite/registries.rs"]
mod registries;
#[path = "../suite/replacement.rs"]
mod replacement;
#[path = "../suite/together.rs"]
mod together;
#[path = "../suite/waiting.rs"]
mod waiting;
