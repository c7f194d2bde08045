//! The data of a member: partitions of maps, as deterministic state machines over records of bytes.
//!
//! This crate must not know the wire protocols, configuration files, other partitions, or the
//! meaning of a value. It reads no clock, generates no random numbers, does no I/O, and has no
//! threads and no async code: time, caller and seeds are parameters. Therefore the same code serves
//! a standalone member (commands are applied immediately) and a replicated member (commands are
//! applied in the order of a log).
//!
//! ```text
//!   log: Decoder --> LogCommand            leader: Partition::lead, touches_for, pick_eviction
//!                  |                                         |
//!                  v                                         v
//!   Command { map, now, caller, change }           get, entry_view, fetch, ...
//!                  |                                         |
//!                  v                                         v
//!   Partition::apply --> map --> table --> record (one allocation: header, key, value)
//!                  |        |--> schedule of expiry, locks, claims, journal, counters
//!                  |        |--> derived: indexes and columns, by the slot of the record
//!                  |        \--> export: old state that a snapshot needs --> pages --> Import
//!                  |--> Observer: one Event per change, in order
//!                  v
//!                Reply
//! ```
//!
//! # Invariants
//!
//! - Only [`Partition::apply`] changes the entries, locks and claims of a map. Reads change only
//!   counters and the times of the latest reads.
//! - The same commands give the same replies, events and journals, and the same entries, lifetimes,
//!   locks and claims. Nothing else has an influence: not reads, hash seeds, restoring from a
//!   snapshot, indexes and columns, memory limits, or statistics. The leader makes the decisions
//!   that depend on these (the entries to evict, the entries that reads have kept alive) and names
//!   the keys in a command. The order of iteration can differ between replicas.
//! - Time does not go back: a command or a read with an earlier time than a previous command
//!   happens at the time of that command. [`PartitionSettings::exact_read_times`] exempts reads.
//! - A change that is rejected, or that finds its key locked by another caller, changes no entry.
//! - Expired entries are absent immediately. [`ChangeOf::Expire`] or the next change of their key
//!   frees them, with an event in both cases. A clock that goes back expires nothing early.
//! - Memory is returned: an emptied map owns only its fixed size. A partition creates a map with
//!   the first change that has a lasting effect. Until then it has two words for the map, and a
//!   declaration that it shares with other partitions (`share.rs`). Only the number of bytes shows
//!   the difference.
//! - Indexes and columns follow every change before it is announced. They never cause the rejection
//!   of a value: every probe of an index finds an entry with an unreadable value, and a column
//!   marks such a value as broken. The results of an index are candidates, and no matching entry is
//!   missing.
//!
//! # Modules, from bottom to top
//!
//! Each module uses the modules before it. `record`, `table`, `expiry`, `locks`, `claims` and
//! `journal` each contain one data structure; `derived` contains `indexes` and `columns`. `map`
//! contains all of them for one map, and the old state that a snapshot needs. `take`, `put` and
//! `batch_writes` change a map, and `change` dispatches commands to them. `share` is a map or its
//! declaration. `partition` contains shares and applies commands to them. `touch`, `eviction`,
//! `probing` and `log` are further operations of a partition. `codec` and `snapshot` encode
//! commands and partitions as bytes.
//!
//! # Costs
//!
//! A declared map takes 16 bytes per partition, with or without indexes and columns. The first
//! entry adds 580 bytes, 100 bytes for the table, and at least 250 bytes for each index; an emptied
//! map keeps all of these except the table. With many entries, the table takes 12 to 13 bytes per
//! entry, and a record takes 28 bytes besides key and value (56 more if it can expire, and 38 in
//! the schedule). The example `memory` measures this: 1,000,000 entries of 12 + 112 bytes over 271
//! partitions take 60 bytes of overhead each with glibc's allocator, and 50 with mimalloc. Only
//! mimalloc returns the memory of a cleared map to the operating system.
//!
//! A map with an index or a column numbers its entries, which takes 13 bytes per entry. A sorted
//! index of distinct numbers takes 62 bytes per entry, a hash index 40 to 90 (its table doubles);
//! keys that many entries share take 2 bytes per entry. A column takes the width of its type and
//! one bit; a short text takes 16 bytes. The bench `derived` measures the time that indexes and
//! columns cost.
//!
//! # `unsafe`
//!
//! Only `record.rs` contains unsafe code. Its tests are small enough for Valgrind (a "possibly
//! lost" report would be about threads of the test harness):
//!
//! ```text
//! cargo test --release -p filbert-store --lib --no-run --message-format=short
//! valgrind --error-exitcode=1 --leak-check=full --errors-for-leak-kinds=definite \
//!   <the test binary just named> record::
//! ```
//!
//! # Where to start
//!
//! ```
//! use filbert_store::*;
//! use filbert_data::PartitionId;
//!
//! let map = MapId(1);
//! let mut partition = Partition::new(PartitionSettings {
//!     id: PartitionId(0),
//!     hash_seed: 1,
//!     exact_read_times: false,
//! });
//! partition.create_map(map, MapSettings::default());
//!
//! let (expiry, mode) = (Expiry::DEFAULT, PutMode::Put);
//! let change = Change::Put { key: b"key", value: b"value", expiry, mode };
//! let command = Command { map, now: Millis(1_000), caller: Caller::default(), change };
//! let mut kinds = Vec::new();
//! let reply = partition.apply(&command, &mut |event: &Event<'_>| kinds.push(event.kind));
//! assert_eq!(reply, Reply::Previous(None));
//! assert_eq!(kinds, [EventKind::Added]);
//! assert_eq!(partition.get(map, b"key", Millis(2_000)), Some(b"value".as_slice()));
//! ```

mod batch;
mod batch_writes;
mod change;
mod claims;
mod codec;
mod columns;
mod command;
mod derived;
mod error;
mod event;
mod eviction;
mod expiry;
mod hash;
mod ids;
mod indexes;
mod journal;
mod keys;
mod layout;
mod locks;
mod log;
mod map;
mod partition;
mod probing;
mod put;
mod record;
mod reply;
mod settings;
mod share;
mod slots;
mod snapshot;
mod table;
mod take;
mod touch;
mod view;

pub use batch::{Batch, BatchItem, BatchPlace, Expected};
pub use codec::{
    COMMANDS_VERSION, CodecError, Decoder, Encoder, Problem, Reader, TooLong, append_metadata, read_metadata,
};
pub use columns::{Chunk, ColumnRange, ColumnType, ColumnView, Columns};
pub use command::{Change, ChangeOf, Command, Expiry, Metadata, OwnedChange, PutMode};
pub use error::StoreError;
pub use event::{Event, EventKind, NoObserver, Observer};
pub use ids::{Caller, MapId, Millis};
pub use indexes::{IndexStatistics, PartitionSet, Probe, SIGNATURE_PARTITIONS_MAX, Signature};
pub use journal::{Journal, JournalEvent, JournalGone};
pub use keys::KeyList;
pub use layout::{ColumnId, ColumnLayout, EntryReader, IndexId, IndexKind, IndexLayout, Layout, SeenKinds};
pub use log::{LayoutSource, LogCommand, NoLayouts};
pub use map::entry_order;
pub use partition::{Located, Partition};
pub use probing::SlotSet;
pub use reply::{Reply, Value};
pub use settings::{EvictionPolicy, JournalSettings, MapSettings, PartitionSettings};
pub use share::Declarations;
pub use snapshot::{Import, ImportError, MultiPartitionExport, MultiPartitionImport};
pub use view::{Cursor, EntryView, LockState, MapStatistics};
