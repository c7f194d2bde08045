//! Snapshots: the state of a partition at one command of its log, in pages, while commands
//! continue.
//!
//! ```text
//!  begin_export ──► barrier: settings, locks and claims are copied; no work per record
//!       │
//!  export_page ──► walk in the order of hashes: written ... | position | ahead ............
//!       │                                                        ▲
//!       │           a command that changes a record ahead puts   │
//!       │           the old record, or a note that there was     │
//!       │           none, into `side`; the walk takes the state  │
//!       │           of the barrier from there ───────────────────┘
//!       ▼
//!  pages ──► Import::page ──► Import::finish ──► Partition; indexes and columns are rebuilt
//! ```
//!
//! # Memory
//!
//! While a snapshot is in progress, a partition has additional state: copies of locks and claims;
//! the old record of each entry that a command changed ahead of the walk, or only the key of a new
//! entry; events that the journal dropped before they were written; destroyed maps until they are
//! written. [`Partition::bytes`](crate::Partition::bytes) includes them. Their size is limited by
//! the changes during the snapshot, and the memory is freed as the walk advances; a partition is
//! never copied as a whole. A page has at least the requested number of bytes, and exceeds it by at
//! most one record (or several records with the same hash).
//!
//! # Content
//!
//! A snapshot contains everything that the log determines. It does not contain the hash seed, the
//! order of iteration, counters, layouts (only the log's numbers of them), and reads that the log
//! does not know. The numbers of hits and the times of the last access are those of the exporting
//! replica; under a log they have no influence on commands.
//!
//! # Pages
//!
//! The types of fields (*u32*, *flag*, *bytes*, *caller*, ..) are those of
//! [`codec`](crate::Decoder), all little-endian.
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 4 | `FbSn` |
//! | 4 | 2 | the version of the format: 1 |
//! | 6 | 2 | 1 in the last page, otherwise 0 |
//! | 8 | 8 | the number of the page, starting with 0 |
//! | 16 | 4 | CRC-32 (IEEE 802.3) of the 16 bytes before it and of all bytes after it |
//! | 20 | .. | items |
//!
//! An item is always within one page. It begins with its kind, *u8*:
//!
//! | kind | item | fields |
//! |---|---|---|
//! | 1 | the partition, first, once | partition, *u32*; time, *i64*; number of maps, *u32* |
//! | 2 | a map, in the order of ids | see below |
//! | 3 | a lock | see below |
//! | 4 | a completed unlock, the latest first | hash of the key, *u64*; caller; reference, *i64* |
//! | 5 | a claim, the oldest first | caller; number of hashes, *u32* (0 = all keys); sorted hashes, *u64* |
//! | 6 | a record | see below |
//! | 7 | an event of the journal, the oldest first | see below |
//! | 8 | the end of a map | number of records, *u64* |
//! | 9 | the end of the snapshot, in the last page | none |
//!
//! A map:
//!
//! - map, *u32*
//! - settings as in the command CreateMap
//! - number of changes (the sequence of invalidations), *u64*
//! - number of the next item of the schedule, *u64*
//! - has a layout, *flag*; its number, *u64*
//! - has a journal, *flag*; sequence of its next event after the snapshot, *i64*; number of its
//!   events, *u64*
//!
//! A lock:
//!
//! - owner, *caller*
//! - holds, *u32*
//! - end of the lease, *i64* (the maximum means none)
//! - references of the latest lock and unlock, *i64*
//! - key, *bytes*
//!
//! A record:
//!
//! - version, *u32*
//! - created, updated, accessed, *u32*, in units of 250 ms since 2018
//! - hits, *u32*
//! - can expire, *flag*; if set: time to live and max idle, their ends, time in the schedule,
//!   *i64*; number in the schedule, *u64*
//! - key, value, *bytes*
//!
//! An event:
//!
//! - sequence, *i64*
//! - time, *i64*
//! - kind, *u8*: 1 added, 2 updated, 3 removed, 4 evicted, 5 expired, 6 loaded
//! - values, *u8*: bit 0 = an old value, bit 1 = a new value
//! - key, and these values, *bytes*

mod export;
mod import;
mod items;
mod multi_partition;
mod page;

pub use import::{Import, ImportError};
pub use multi_partition::{MultiPartitionExport, MultiPartitionImport};
