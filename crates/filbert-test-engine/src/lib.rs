//! A query engine with fixed results, for the tests of front doors. It produces at will the
//! conditions that are rare with the real engine: statements that never end, errors in the middle
//! of rows, pages from other threads. It records the events that tests check.
//!
//! It must not know front doors, their protocols, and the replies that their clients expect. It is
//! a dependency of tests only: no part of it ships.
//!
//! # Statements
//!
//! | statement | result |
//! |---|---|
//! | `select now n` | `n` rows (see below), in place |
//! | `select later n` | the same; the result and each page come from another thread |
//! | `select later n then fail` | `n` rows, then an error |
//! | `select later n then hang` | `n` rows, then nothing until it is cancelled; the rows never end |
//! | `select texts n of b` | as `select now n`, with texts of `b` bytes |
//! | `select hang` | nothing until it is cancelled; then an error, on the thread that cancels |
//! | `select hang later` | the same, with the error from another thread |
//! | `select echo $1, ..` | one text: the parameters with their types, separated by `\|` |
//! | `select timestamp $1` | the parameter as a text; an error if it is no timestamp |
//! | `who` | one text: the user, the schema, and the setting `mood` of the session |
//! | `insert n` | a count, in place |
//! | `insert later n` | a count, from another thread |
//! | `insert warned n` | as `insert n`, with a warning and a notice |
//! | `insert` | takes rows of an id and a timestamp, each for itself |
//! | `update $1` | the parameter as a count, in place; an error if it is no number |
//! | `begin`, `commit`, `rollback`, `set name value` | as in SQL |
//! | `copy t from stdin` | takes rows of an id and a text, all or none |
//! | `copy arrays from stdin` | takes rows of an id and an array, all or none |
//! | `copy n to stdout` | the rows of `select later n` |
//! | `copy ..` with `csv`, `binary`, `header` at the end | the same in this format |
//! | `fail` | the error of an unknown statement, in place |
//! | a text that [`Engine::answers`] was given | the rows that were given, in place |
//! | anything else | a syntax error at character 3, with a suggestion |
//!
//! The rows consist of `id`, a number from 0 on, and `text`, which is `row` and the number in rows
//! with an even number, and null in the others. Of rows that are taken, those with the id -1 are
//! refused as duplicates.
//!
//! # Queries of the map API
//!
//! | predicate | entries |
//! |---|---|
//! | bytes | the entries with values that begin with these bytes, in place |
//! | `long:` and bytes | the same, for another thread |
//! | `long:hang` | none: the query runs until nobody waits for it |
//! | `broken` | none: an error |
//!
//! Every aggregator counts entries, as a decimal text, and every projection is the value's first
//! byte. Each map has a mapping, except the map `nothing`.
//!
//! # Modules
//!
//! From bottom to top: `hanging` keeps the work that waits for its cancellation, `seen` counts
//! events, `failures` builds errors, `rows` produces rows, `script` reads statements, `writer`
//! takes rows, `predicates` runs queries of maps, `engine` is the engine. Start reading at
//! [`Engine`].

mod engine;
mod failures;
mod hanging;
mod predicates;
mod rows;
mod script;
mod seen;
mod writer;

pub use engine::Engine;
pub use rows::column;
