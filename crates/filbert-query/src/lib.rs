//! What can be asked of maps: SQL, and the map API's predicates, aggregators, projections and pages. The only crate that
//! plans and runs with DataFusion.
//!
//! It must not know sockets, protocols or doors: it implements the traits of `filbert_grid::query` and is found there. It
//! reads and changes maps through their handles alone.
//!
//! ```text
//!  Statement ─► plan cache ─ hit ─► short plan ── in place ──────────────────────────► rows, count
//!                  │ miss
//!                  ▼
//!           filbert-dialect ─► Parsed ─┬─ query ──► plan (DataFusion) ─► short plan, or physical plan over MapScan ─► cursor
//!                                      ├─ INSERT, SINK, UPDATE, DELETE ──► dml ─► changes of entries
//!                                      └─ mappings, tables, views, indexes, SHOW ──► ddl ─► catalog
//!
//!  MapQuery ─► predicates: condition, candidates ─► entries ─► answers, aggregate, projection, page
//!
//!  both ─► scan, indexes and columns of filbert-grid; fields of filbert-data
//! ```
//!
//! # Modules
//!
//! Each uses those above it, and none below.
//!
//! | here | what |
//! |---|---|
//! | `config`, `memory`, `jobs`, `threads`, `words` | settings, the memory of queries, running statements, their threads, errors in a client's dialect |
//! | `catalog` | mappings, tables, views, sequences: what is declared |
//! | `scan`, `predicates`, `subqueries` | reading maps; the map API's queries; subqueries as joins |
//! | `asker`, `session`, `cursor`, `paths` | the session of a statement, statements about it, results page by page, schemas of names |
//! | `tables`, `server`, `occasion` | names as tables; the member as functions see it; one run of a statement |
//! | `system` | system relations and functions about the catalog, of each dialect |
//! | `table_catalog`, `plan` | the catalog that DataFusion sees; planning: scope, types of parameters, rules, sessions |
//! | `dml`, `short` | changes of rows; plans that run in place |
//! | `plan_cache`, `plans`, `template`, `parts` | plans that are kept; the parts of the engine that statements share |
//! | `planning`, `row_writer`, `copy`, `ddl`, `describe`, `explain` | statements of each kind |
//! | `engine` | the engine |
//!
//! # Invariants
//!
//! - What a lookup finds are candidates; the whole condition is checked on each, unless it is known to hold.
//! - A plan is good for one version of the catalog: every change of mappings, views, indexes and columns makes another.
//! - UPDATE and DELETE change an entry only while it is the one that their condition was checked on.
//! - Network tasks run short plans alone; everything else runs on the engine's threads, which stand back for them.
//! - A query holds no more memory than its limit, and results are made as they are fetched.
//!
//! Start reading at [`Engine`], then `engine.rs`.

mod asker;
mod catalog;
mod config;
mod copy;
mod cursor;
mod ddl;
mod describe;
mod dml;
mod engine;
mod explain;
mod jobs;
mod memory;
mod occasion;
mod oids;
mod parts;
mod paths;
mod plan;
mod plan_cache;
mod planning;
mod plans;
mod predicates;
mod row_writer;
mod scan;
mod server;
mod session;
mod short;
mod subqueries;
mod system;
mod table_catalog;
mod tables;
mod template;
mod threads;
mod words;

pub use config::QueryConfig;
pub use engine::{Engine, QueryStatistics};
pub use plans::PlanCacheStatistics;
