//! What can be asked of maps: SQL, and the map API's predicates, aggregators, projections and pages. The only crate that
//! knows DataFusion.
//!
//! It must not know sockets, protocols or doors: it implements the traits of `filbert_grid::query` and is found there. It
//! reads and changes maps through their handles alone.
//!
//! ```text
//!  Statement ─► plan cache ─ hit ─► short plan ── in place ──────────────────────────► rows, count
//!                  │ miss
//!                  ▼
//!              dialect ─► Parsed ─┬─ query ──► planner (DataFusion) ─► short plan, or physical plan over MapScan ─► cursor
//!                                 ├─ INSERT, SINK, UPDATE, DELETE ──► dml ─► changes of entries
//!                                 └─ mappings, views, indexes, SHOW ──► ddl ─► catalog
//!
//!  MapQuery ─► predicates: condition, candidates ─► entries ─► answers, aggregate, projection, page
//!
//!  both ─► scan, indexes and columns of filbert-grid; fields of filbert-data
//! ```
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

mod arrays;
mod asker;
mod catalog;
mod catalogs;
mod config;
mod copy;
mod cursor;
mod ddl;
mod describe;
mod dialect;
mod dml;
mod engine;
mod error;
mod explain;
mod functions;
mod jobs;
mod named;
mod paths;
mod plan;
mod plan_cache;
mod plans;
mod predicates;
mod row_writer;
mod scan;
mod session;
mod short;
mod subqueries;
mod surroundings;
mod tables;
mod template;
mod threads;
mod types;
mod walk;
mod words;

pub use config::QueryConfig;
pub use engine::{Engine, QueryStatistics};
pub use plans::PlanCacheStatistics;
