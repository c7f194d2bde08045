//! What can be asked of a partition: a command, its change, and nothing about how it is done.

use uuid::Uuid;

use crate::{Caller, MapId, Millis};

/// One change of a partition, with everything that decides its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// The map to change. [`ChangeOf::Expire`] and [`ChangeOf::ReleaseLocks`] cover all maps and ignore it.
    pub map: MapId,
    /// The time at which the change happens; an earlier one than that of a command before counts as that one's.
    pub now: Millis,
    /// Who asks.
    pub caller: Caller,
    /// What to do.
    pub change: Change<'a>,
}

/// How long an entry lives, as clients say it.
///
/// For both durations, in milliseconds: negative = the map's default, 0 = for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// Time to live since the last update.
    pub ttl_ms: i64,
    /// Time to live since the last read or update.
    pub max_idle_ms: i64,
}

impl Expiry {
    /// Both durations as the map's settings say.
    pub const DEFAULT: Expiry = Expiry { ttl_ms: -1, max_idle_ms: -1 };
    /// The entry never expires, whatever the map's settings say.
    pub const NEVER: Expiry = Expiry { ttl_ms: 0, max_idle_ms: 0 };

    /// A time to live in milliseconds, and the map's default for max idle.
    #[must_use]
    pub const fn ttl(ttl_ms: i64) -> Expiry {
        Expiry { ttl_ms, max_idle_ms: -1 }
    }
}

impl Default for Expiry {
    fn default() -> Self {
        Expiry::DEFAULT
    }
}

/// The flavours of put: when they write and what they answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutMode {
    /// Always writes; answers [`Reply::Previous`](crate::Reply::Previous) with the old value.
    Put,
    /// Always writes; answers `Done`. Overwrites in place, without an allocation, when the length stays the same.
    Set,
    /// Writes if there is no entry; answers `Previous` with the existing value, which is `None` if it wrote.
    IfAbsent,
    /// As [`PutMode::Set`]; a map store would not hear of it.
    Transient,
    /// As [`PutMode::Set`], but answers `Flag(true)`.
    Try,
    /// Writes if there is an entry; answers `Previous` with the old value, which is `None` if it did not write.
    /// The command's [`Expiry`] is ignored: the entry keeps its durations, and both start anew.
    Replace,
    /// Always writes, with the statistics of an entry that lived elsewhere; answers `Done`; the event is `Loaded`.
    /// The expiry comes from the metadata.
    Metadata(Metadata),
}

/// What an entry brings along when it comes from elsewhere (putAllWithMetadata). Times in Unix milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// When the entry was created.
    pub created_ms: i64,
    /// When its value was last written.
    pub updated_ms: i64,
    /// When it was last read.
    pub accessed_ms: i64,
    /// When its time to live ends; `i64::MAX` = as `expiry` says, counted from now.
    pub expires_ms: i64,
    /// Number of reads; saturates at `u32::MAX`.
    pub hits: u64,
    /// Number of updates; saturates at `u32::MAX`.
    pub version: u64,
    /// Its durations.
    pub expiry: Expiry,
}

/// A change over borrowed bytes, as a command carries it.
pub type Change<'a> = ChangeOf<&'a [u8]>;

/// A change that owns its bytes, for commands that wait.
pub type OwnedChange = ChangeOf<Box<[u8]>>;

/// Everything that can change a partition. `B` holds keys and values: see [`Change`] and [`OwnedChange`].
///
/// Each change of a key that is locked by another caller answers [`Reply::Locked`](crate::Reply::Locked) and changes
/// nothing, unless its text says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeOf<B> {
    /// Writes a value; the mode says when, and what is answered. An update counts the entry's version up, replaces its
    /// durations by `expiry` (a put without one returns to the map's defaults) and starts both clocks anew.
    Put {
        /// The key's bytes.
        key: B,
        /// The value's bytes.
        value: B,
        /// How long the entry lives from now on.
        expiry: Expiry,
        /// When to write and what to answer.
        mode: PutMode,
    },
    /// Writes `value` if the entry's value is `expected`; `Flag`: whether it wrote. Expiry as [`PutMode::Replace`].
    ReplaceIfSame {
        /// The key's bytes.
        key: B,
        /// The value that must be there, byte for byte.
        expected: B,
        /// The new value.
        value: B,
    },
    /// Takes the entry out; `Previous` with its value.
    Remove {
        /// The key's bytes.
        key: B,
    },
    /// Takes the entry out; `Flag`: whether there was one.
    Delete {
        /// The key's bytes.
        key: B,
    },
    /// Takes the entry out if its value is `expected`; `Flag`: whether it did.
    RemoveIfSame {
        /// The key's bytes.
        key: B,
        /// The value that must be there, byte for byte.
        expected: B,
    },
    /// Takes the entry out as eviction does (event `Evicted`); `Flag`: whether it did. A locked key, whoever holds the
    /// lock, stays: `Flag(false)`.
    Evict {
        /// The key's bytes.
        key: B,
    },
    /// Changes the time to live of an entry, counted from now, and nothing else; `Flag`: whether there is an entry.
    /// It is no event: the value stays.
    SetTtl {
        /// The key's bytes.
        key: B,
        /// Milliseconds; negative = the map's default, 0 = for ever.
        ttl_ms: i64,
    },
    /// Locks the key for the caller, once more if it holds the lock already; `Flag(true)`. The lease of the latest call
    /// counts. A repeated reference is answered as before and counts once.
    Lock {
        /// The key's bytes; there need not be an entry.
        key: B,
        /// How long the lock lasts, in milliseconds, counted from now; `None` = until it is given back.
        lease_ms: Option<i64>,
        /// The caller's number for this call, by which a retry is known; 0 = none.
        reference: i64,
    },
    /// Gives back one hold of the lock; `Done`, or `NotOwner`. A repeated reference is answered as before.
    Unlock {
        /// The key's bytes.
        key: B,
        /// The caller's number for this call, by which a retry is known; 0 = none.
        reference: i64,
    },
    /// Frees the key whoever holds it, however often; `Done`.
    ForceUnlock {
        /// The key's bytes.
        key: B,
        /// The caller's number for this call. A repetition does no harm, so it is not kept.
        reference: i64,
    },
    /// Changes nothing, and so waits, where it is parked, until no one else holds the key; `Done`.
    Await {
        /// The key's bytes.
        key: B,
    },
    /// Claims the keys of a [`Batch`](crate::Batch) for the caller, beside what it has claimed before: until it gives them back,
    /// others find these keys locked; nothing else shows it. `Claimed`, with the places of
    /// those that are not as expected, which are claimed all the same; or `Held`, where someone else holds a key: then
    /// nothing was claimed.
    Claim {
        /// The batch's bytes.
        batch: B,
    },
    /// Makes the changes of a batch, whose keys the caller has claimed; `Count` of changes.
    WriteBatch {
        /// The batch's bytes.
        batch: B,
    },
    /// Gives back all that the caller has claimed of the map; `Done`.
    Unclaim,
    /// Takes out all entries but those of locked keys, one event `Cleared`; `Count` of entries.
    Clear,
    /// As [`ChangeOf::Clear`], with one event `EvictedAll`.
    EvictAll,
    /// Frees every lock and claim of one client, in all maps; `Count` of locks.
    ReleaseLocks {
        /// The client that went.
        client: Uuid,
    },
    /// Frees expired entries, leases and journal events of all maps; `Count` of entries and leases freed.
    /// More is due while [`Partition::next_expiry`](crate::Partition::next_expiry) is not later than now.
    Expire {
        /// How many entries and leases to look at, at most.
        limit: usize,
    },
    /// Evicts the entries that who leads has picked, see [`Partition::pick_eviction`](crate::Partition::pick_eviction);
    /// `Count` of entries. Keys that someone holds, and those without an entry, are passed over; an entry whose time is over
    /// goes as expired.
    EvictKeys {
        /// The bytes of a [`KeyList`](crate::KeyList).
        keys: B,
    },
    /// Starts the idle clock of an entry anew at the moment of a read, which the log does not know of; `Flag`: whether there is
    /// an entry. It revives one whose deadline is over as long as no command has freed it: who leads sends it ahead of
    /// commands that would, see [`Partition::touches_for`](crate::Partition::touches_for). Locks do not hold it up, as they
    /// do not hold up reads.
    Touch {
        /// The key's bytes.
        key: B,
        /// When the entry was read.
        read_at: Millis,
    },
}

impl<B> ChangeOf<B> {
    /// The one key that this change is about; `None` for those about whole maps.
    fn key_ref(&self) -> Option<&B> {
        match self {
            ChangeOf::Put { key, .. }
            | ChangeOf::ReplaceIfSame { key, .. }
            | ChangeOf::Remove { key }
            | ChangeOf::Delete { key }
            | ChangeOf::RemoveIfSame { key, .. }
            | ChangeOf::Evict { key }
            | ChangeOf::SetTtl { key, .. }
            | ChangeOf::Lock { key, .. }
            | ChangeOf::Unlock { key, .. }
            | ChangeOf::ForceUnlock { key, .. }
            | ChangeOf::Await { key }
            | ChangeOf::Touch { key, .. } => Some(key),
            ChangeOf::Claim { .. }
            | ChangeOf::WriteBatch { .. }
            | ChangeOf::Unclaim
            | ChangeOf::Clear
            | ChangeOf::EvictAll
            | ChangeOf::ReleaseLocks { .. }
            | ChangeOf::Expire { .. }
            | ChangeOf::EvictKeys { .. } => None,
        }
    }

    fn convert<'s, C>(&'s self, bytes: impl Fn(&'s B) -> C) -> ChangeOf<C> {
        match self {
            ChangeOf::Put { key, value, expiry, mode } => {
                ChangeOf::Put { key: bytes(key), value: bytes(value), expiry: *expiry, mode: *mode }
            }
            ChangeOf::ReplaceIfSame { key, expected, value } => {
                ChangeOf::ReplaceIfSame { key: bytes(key), expected: bytes(expected), value: bytes(value) }
            }
            ChangeOf::Remove { key } => ChangeOf::Remove { key: bytes(key) },
            ChangeOf::Delete { key } => ChangeOf::Delete { key: bytes(key) },
            ChangeOf::RemoveIfSame { key, expected } => {
                ChangeOf::RemoveIfSame { key: bytes(key), expected: bytes(expected) }
            }
            ChangeOf::Evict { key } => ChangeOf::Evict { key: bytes(key) },
            ChangeOf::SetTtl { key, ttl_ms } => ChangeOf::SetTtl { key: bytes(key), ttl_ms: *ttl_ms },
            ChangeOf::Lock { key, lease_ms, reference } => {
                ChangeOf::Lock { key: bytes(key), lease_ms: *lease_ms, reference: *reference }
            }
            ChangeOf::Unlock { key, reference } => ChangeOf::Unlock { key: bytes(key), reference: *reference },
            ChangeOf::ForceUnlock { key, reference } => {
                ChangeOf::ForceUnlock { key: bytes(key), reference: *reference }
            }
            ChangeOf::Await { key } => ChangeOf::Await { key: bytes(key) },
            ChangeOf::Claim { batch } => ChangeOf::Claim { batch: bytes(batch) },
            ChangeOf::WriteBatch { batch } => ChangeOf::WriteBatch { batch: bytes(batch) },
            ChangeOf::Unclaim => ChangeOf::Unclaim,
            ChangeOf::Clear => ChangeOf::Clear,
            ChangeOf::EvictAll => ChangeOf::EvictAll,
            ChangeOf::ReleaseLocks { client } => ChangeOf::ReleaseLocks { client: *client },
            ChangeOf::Expire { limit } => ChangeOf::Expire { limit: *limit },
            ChangeOf::EvictKeys { keys } => ChangeOf::EvictKeys { keys: bytes(keys) },
            ChangeOf::Touch { key, read_at } => ChangeOf::Touch { key: bytes(key), read_at: *read_at },
        }
    }
}

impl<'a> Change<'a> {
    /// The one key that this change is about; `None` for those about whole maps.
    #[must_use]
    pub fn key(&self) -> Option<&'a [u8]> {
        self.key_ref().copied()
    }

    /// A copy that owns its bytes.
    #[must_use]
    pub fn to_owned(&self) -> OwnedChange {
        self.convert(|bytes| Box::from(*bytes))
    }
}

impl OwnedChange {
    /// The one key that this change is about; `None` for those about whole maps.
    #[must_use]
    pub fn key(&self) -> Option<&[u8]> {
        self.key_ref().map(AsRef::as_ref)
    }

    /// The change, borrowed.
    #[must_use]
    pub fn borrow(&self) -> Change<'_> {
        self.convert(|bytes| bytes.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_keeps_its_meaning_when_it_owns_its_bytes() {
        let changes = [
            Change::Put { key: b"k", value: b"v", expiry: Expiry::ttl(5), mode: PutMode::Try },
            Change::ReplaceIfSame { key: b"k", expected: b"a", value: b"b" },
            Change::Remove { key: b"k" },
            Change::Delete { key: b"k" },
            Change::RemoveIfSame { key: b"k", expected: b"a" },
            Change::Evict { key: b"k" },
            Change::SetTtl { key: b"k", ttl_ms: 9 },
            Change::Lock { key: b"k", lease_ms: Some(1), reference: 2 },
            Change::Unlock { key: b"k", reference: 3 },
            Change::ForceUnlock { key: b"k", reference: 4 },
            Change::Await { key: b"k" },
            Change::Claim { batch: b"b" },
            Change::WriteBatch { batch: b"b" },
            Change::Unclaim,
            Change::Clear,
            Change::EvictAll,
            Change::ReleaseLocks { client: Uuid::from_u128(7) },
            Change::Expire { limit: 8 },
            Change::EvictKeys { keys: b"\x01\0\0\0k" },
            Change::Touch { key: b"k", read_at: Millis(4) },
        ];
        for change in changes {
            let owned = change.to_owned();
            assert_eq!(owned.borrow(), change);
            assert_eq!(owned.key(), change.key());
        }
    }
}
