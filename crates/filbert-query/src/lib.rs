//! Queries on maps: SQL, and the map API's predicates, aggregators, projections and pages. The only
//! crate that plans and runs with DataFusion.
//!
//! It must not know sockets, protocols or front doors. It implements the traits of
//! `filbert_grid::query`, and front doors find it there. It reads and changes maps through their
//! handles alone.
//!
//! ```text
//!  Statement ─► plan cache ─ hit ─► short plan ── in place ──────────────────────────► rows, count
//!                  │ miss
//!                  ▼
//!   filbert-dialect ─► Parsed ─┬─ query ──► plan ─► short plan, or physical plan ─► cursor
//!                              ├─ INSERT, SINK, UPDATE, DELETE ──► dml ─► changes of entries
//!                              └─ mappings, tables, views, indexes, SHOW ──► ddl ─► catalog
//!
//!  MapQuery ─► predicates: condition, candidates ─► entries ─► answers, aggregate, page
//!
//!  both ─► scan, indexes and columns of filbert-grid; fields of filbert-data
//! ```
//!
//! # Modules
//!
//! A module uses the modules above it, and none below it.
//!
//! | module | purpose |
//! |---|---|
//! | `config`, `memory`, `spill`, `jobs` | settings, memory and disk of queries, running statements |
//! | `turns`, `release`, `threads` | fair shares; release of memory; threads of queries |
//! | `error_dialects` | error dialects |
//! | `plan_sources` | the definitions that a plan was made from, and their changes |
//! | `catalog` | declared mappings, tables, views and sequences |
//! | `scan`, `predicates`, `subqueries` | reading maps; map API queries; subqueries as joins |
//! | `client_context`, `session` | session context, statements about the session |
//! | `cursor`, `paths` | results in pages, search paths |
//! | `tables`, `server`, `execution` | names as tables; the member for functions; one run |
//! | `system` | system relations and functions about the catalog, for each dialect |
//! | `table_catalog`, `plan` | the catalog for DataFusion; planning |
//! | `dml`, `short` | changes of rows; plans that run in place |
//! | `plan_cache`, `plans`, `template` | cached plans |
//! | `parts` | the parts of the engine that statements share |
//! | `planning`, `row_writer`, `copy`, `ddl`, `describe`, `explain` | statements of each kind |
//! | `engine` | the engine |
//!
//! # Invariants
//!
//! - A lookup finds candidates. The whole condition is checked on each of them, unless it is known
//!   to hold.
//! - A plan is valid until a definition changes that its planning has looked up: a mapping, view,
//!   schema, index or column. Every lookup and every change is recorded (`plan_sources`).
//! - UPDATE and DELETE change an entry only if it is still the one that their condition was checked
//!   on.
//! - Network tasks run short plans alone. Everything else runs on the engine's threads, which give
//!   way to network tasks.
//! - A query holds no more memory than its limit. Results are produced as they are fetched.
//!
//! Start reading at [`Engine`], then `engine.rs`.

mod catalog;
mod client_context;
mod config;
mod copy;
mod cursor;
mod ddl;
mod describe;
mod dml;
mod engine;
mod error_dialects;
mod execution;
mod explain;
mod extent;
mod jobs;
mod memory;
mod oids;
mod parts;
mod paths;
mod plan;
mod plan_cache;
mod plan_sources;
mod planning;
mod plans;
mod predicates;
mod release;
mod row_writer;
mod scan;
mod server;
mod session;
mod short;
mod spill;
mod subqueries;
mod system;
mod table_catalog;
mod tables;
mod template;
mod threads;
mod turns;

pub use config::QueryConfig;
pub use engine::{Engine, QueryStatistics};
pub use plans::PlanCacheStatistics;
