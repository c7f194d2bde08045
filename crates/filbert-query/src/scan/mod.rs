//! Reads maps: from a map's entries to Arrow batches.
//!
//! ```text
//!  MapTable ─ AccessPlan (key, index, all) ─► Access ─► Scanner ─ per partition ─► RecordBatch
//!                                                │  rows: bytes copied under the lock, then read
//!                                                │  columns: chunks shared, no bytes copied
//!                                                │  leaders: pages of entries from other members
//!                                                └─ the filter is checked on each batch
//!  MapScanExec: the same as a leaf of a DataFusion plan, with metrics
//! ```

pub(crate) mod access;
pub(crate) mod chunks;
pub(crate) mod exec;
pub(crate) mod leaders;
pub(crate) mod provider;
pub(crate) mod rows;
pub(crate) mod scanner;
pub(crate) mod statistics;
pub(crate) mod table;
pub(crate) mod view;
