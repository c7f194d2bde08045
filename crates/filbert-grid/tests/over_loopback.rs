//! What a member does, of one whose changes go through a log: the same tests as of one that makes them where it is asked,
//! word for word. `common::member` makes the other kind of member in this binary.
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
#[path = "succession.rs"]
mod succession;
#[path = "together.rs"]
mod together;
#[path = "waiting.rs"]
mod waiting;
