//! Snapshots: a partition as it was at one command of its log, in pages, while commands go on.
//!
//! ```text
//!  begin_export ──► barrier: small things are copied (settings, locks, claims); nothing is done per record
//!       │
//!  export_page ──► walk in order of hash ──►  done | position | ahead ........................ |
//!       │                                            ▲   a command that changes a record ahead leaves the old one,
//!       │                                            │   or a note that there was none, on the side
//!       │                                            └── the walk takes from the side what the barrier had
//!       ▼
//!  pages ──► Import::page ──► Import::finish ──► Partition: indexes and columns are built of the records
//! ```
//!
//! # Memory
//!
//! While a snapshot is made, a partition keeps besides what it has: locks and claims once more; for each entry that a command changed
//! ahead of the walk, the old record, or the key alone if it was new; events that the journal gave up and that are
//! not written yet; a map that was destroyed, until it is written. [`Partition::bytes`](crate::Partition::bytes) counts it. It is bounded by what changes while the
//! snapshot is made, and given back as the walk passes; in no case is a partition copied. A page has at least the bytes that
//! it was asked to have, and no more than one record (or several, if they have the same hash) beyond them.
//!
//! # What is in it
//!
//! All that the log decides. Not: hash seed, order of iteration, counters, layouts (the log's numbers of them are), reads that
//! the log does not know of. Hits and the time of the last access are as the exporting replica has them; nothing is decided by
//! them under the log.
//!
//! # Pages
//!
//! Numbers are little-endian, *bytes* and *caller* as in [`codec`](crate::Decoder).
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 4 | `FbSn` |
//! | 4 | 2 | version of the format: 1 |
//! | 6 | 2 | 1 in the last page, else 0 |
//! | 8 | 8 | number of the page, from 0 |
//! | 16 | 4 | CRC-32 (IEEE 802.3) of the 16 bytes before it and of all bytes behind it |
//! | 20 | .. | items |
//!
//! An item, each whole within one page:
//!
//! | first byte | what | what follows |
//! |---|---|---|
//! | 1 | the partition, once, first | partition, 4; time, 8, signed; maps, 4 |
//! | 2 | a map, in the order of ids | map, 4; settings as in the command CreateMap; changes counted (the sequence of invalidations), 8; number of the next item of the schedule, 8; 1: whether there is a layout; its number, 8; 1: whether there is a journal; sequence of its next event after the snapshot, 8, signed; its events, 8 |
//! | 3 | a lock | owner, caller; holds, 4; end of the lease, 8, signed (the greatest: none); references of the latest lock and unlock, 8 each, signed; key, bytes |
//! | 4 | an unlock that is remembered, the latest first | hash of the key, 8; caller; reference, 8, signed |
//! | 5 | a claim, the oldest first | caller; number of hashes, 4; hashes, 8 each, in order |
//! | 6 | a record | version, 4; created, updated, accessed, 4 each, in units of 250 ms since 2018; hits, 4; 1: whether it can expire; if so, time to live and max idle, 8 each; their ends, 8 each, signed; place in the schedule: moment, 8, signed, and number, 8; then key, value, bytes |
//! | 7 | an event of the journal, the oldest first | sequence, 8, signed; time, 8, signed; kind, 1: 1 added, 2 updated, 3 removed, 4 evicted, 5 expired, 6 loaded; 1: 1 with an old value, 2 with a new one, 3 with both; key, old value, new value, bytes |
//! | 8 | the end of a map | records, 8 |
//! | 9 | the end of the snapshot, in the last page | nothing |

mod export;
mod import;
mod items;
mod page;
mod several;
mod side;

pub use import::{Import, ImportError};
pub use several::{SeveralExport, SeveralImport};

pub(crate) use export::Export;
pub(crate) use side::{JournalExport, MapExport};
