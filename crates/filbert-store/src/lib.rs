//! What a member holds: partitions of maps, as deterministic state machines over records of bytes.
//!
//! This crate must not know the wire, configuration files, other partitions, or what a value means. It reads no clock,
//! draws no randomness, does no I/O, has no threads and nothing async: time, callers and seeds are passed in. So the
//! same code serves a standalone member (commands applied at once) and a replicated one (applied in the order of a log).
//!
//! ```text
//!   log: Decoder --> LogCommand                  who leads: Partition::lead, touches_for, pick_eviction
//!                  |                                          |
//!                  v                                          v
//!   Command { map, now, caller, change }             get, entry_view, fetch, ...
//!                  |                                          |
//!                  v                                          v
//!   Partition::apply --> map --> table --> record (one allocation: header, key, value)
//!                  |        |--> schedule of expiry, locks, claims, journal, counters
//!                  |        |--> derived: indexes and columns, by the slot of the record
//!                  |        \--> what a snapshot that is being made still needs --> pages --> Import
//!                  |--> Observer: one Event per change, in order
//!                  v
//!                Reply
//! ```
//!
//! # Invariants
//!
//! - [`Partition::apply`] is the one way to change what readers see; reads change only counters, and note when they were.
//! - Same commands: same replies, same events, same journals, same entries, lifetimes, locks and claims. Nothing else decides:
//!   neither reads, nor hash seeds, nor what was there before a snapshot, nor indexes and columns, nor limits of memory, nor
//!   statistics. What depends on these (which entries to evict, which entries reads have kept alive) is found by who leads,
//!   and said in a command, by key. The order of iteration is each replica's own.
//! - Time does not go back: a command or a read that is earlier than a command before happens at that one's time.
//! - A change that is refused, or finds its key locked by another caller, changes no entry.
//! - Expired entries are absent at once, and freed by [`ChangeOf::Expire`] or by the next change of their key, with an
//!   event either way. A clock that goes back expires nothing early.
//! - Memory is given back: an emptied map owns no more than its fixed size. A partition makes a map with the first change of it that
//!   stays; until then it has two words, and a declaration that it shares with other partitions (`share.rs`). Nobody can tell but by bytes.
//! - Indexes and columns follow every change before it is announced. No value is refused because of them: one that cannot
//!   be read is found by every probe of an index, and marked as broken in a column. What an index finds are candidates, and
//!   none is missed.
//!
//! # What it costs
//!
//! A map that is declared takes 16 bytes per partition, with indexes and columns or without. The first entry adds 580 bytes,
//! 100 bytes of table, and 250 bytes and more for each index; what was emptied keeps all but the table. With many entries, the table takes 12 to 13 bytes per entry, and a record 28 bytes besides key and value (56 more when it can
//! expire, and 38 in the schedule). The example `memory` measures it: 1,000,000 entries of 12 + 112 bytes over 271
//! partitions take 60 bytes of overhead each with glibc's allocator, 50 with mimalloc; and only mimalloc gives the memory
//! of a cleared map back to the system.
//!
//! A map with an index or a column numbers its entries, which takes 13 bytes for each. A sorted index of different
//! numbers takes 62 bytes per entry, a hash index 40 to 90 (its table doubles); keys that many entries share take 2
//! bytes per entry. A column takes the width of its type and a bit; a short text 16 bytes. The bench `derived` tells what
//! they cost in time.
//!
//! # `unsafe`
//!
//! Only `record.rs` has any. Its tests are small enough for Valgrind (whose "possibly lost" would be about the test
//! harness's own threads):
//!
//! ```text
//! cargo test --release -p filbert-store --lib --no-run --message-format=short
//! valgrind --error-exitcode=1 --leak-check=full --errors-for-leak-kinds=definite <the test binary just named> record::
//! ```
//!
//! # Where to start
//!
//! ```
//! use filbert_store::*;
//! use filbert_data::PartitionId;
//!
//! let map = MapId(1);
//! let mut partition = Partition::new(PartitionSettings { id: PartitionId(0), hash_seed: 1, reads_before_commands: false });
//! partition.create_map(map, MapSettings::default());
//!
//! let change = Change::Put { key: b"key", value: b"value", expiry: Expiry::DEFAULT, mode: PutMode::Put };
//! let command = Command { map, now: Millis(1_000), caller: Caller::default(), change };
//! let mut kinds = Vec::new();
//! let reply = partition.apply(&command, &mut |event: &Event<'_>| kinds.push(event.kind));
//! assert_eq!(reply, Reply::Previous(None));
//! assert_eq!(kinds, [EventKind::Added]);
//! assert_eq!(partition.get(map, b"key", Millis(2_000)), Some(b"value".as_slice()));
//! ```

mod batch;
mod claims;
mod codec;
mod columns;
mod command;
mod derived;
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
mod together;
mod touch;
mod view;

pub use batch::{Batch, BatchItem, BatchPlace, Expected};
pub use codec::{COMMANDS_VERSION, CodecError, Decoder, Encoder, Problem, Reader, TooLong};
pub use columns::{Chunk, ColumnRange, ColumnType, ColumnView, Columns};
pub use command::{Change, ChangeOf, Command, Expiry, Metadata, OwnedChange, PutMode};
pub use event::{Event, EventKind, NoObserver, Observer};
pub use ids::{Caller, MapId, Millis};
pub use indexes::{IndexStatistics, PartitionSet, Probe, SIGNATURE_PARTITIONS_MAX, Signature};
pub use journal::{Journal, JournalEvent, JournalGone};
pub use keys::KeyList;
pub use layout::{ColumnId, ColumnLayout, EntryReader, IndexId, IndexKind, IndexLayout, Layout, SeenKinds};
pub use log::{LayoutSource, LogCommand, NoLayouts};
pub use partition::{Located, Partition};
pub use probing::SlotSet;
pub use reply::{Reply, StoreError, Value};
pub use settings::{EvictionPolicy, JournalSettings, MapSettings, PartitionSettings};
pub use share::Declarations;
pub use snapshot::{Import, ImportError, SeveralExport, SeveralImport};
pub use view::{Cursor, EntryView, LockState, MapStatistics};
