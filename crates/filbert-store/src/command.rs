//! The commands of a partition: commands and changes as data, without their implementation.

use uuid::Uuid;

use crate::{Caller, MapId, Millis};

/// One change of a partition, with everything that determines its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command<'a> {
    /// The map to change. [`ChangeOf::Expire`] and [`ChangeOf::ReleaseLocks`] apply to all maps and
    /// ignore it.
    pub map: MapId,
    /// The time of the change. If a previous command had a later time, that time is used.
    pub now: Millis,
    /// The caller: the owner of locks and claims.
    pub caller: Caller,
    /// The change.
    pub change: Change<'a>,
}

/// The lifetime of an entry, as clients specify it.
///
/// Both durations are in milliseconds: negative = the default of the map, 0 = unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// Time to live since the last update.
    pub ttl_ms: i64,
    /// Time to live since the last read or update.
    pub max_idle_ms: i64,
}

impl Expiry {
    /// Both durations from the settings of the map.
    pub const DEFAULT: Expiry = Expiry { ttl_ms: -1, max_idle_ms: -1 };
    /// The entry never expires, regardless of the settings of the map.
    pub const NEVER: Expiry = Expiry { ttl_ms: 0, max_idle_ms: 0 };

    /// A time to live in milliseconds, with the max idle time of the map.
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

/// The modes of put: the condition for writing, and the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutMode {
    /// Always writes. Replies [`Reply::Previous`](crate::Reply::Previous) with the old value.
    Put,
    /// Always writes. Replies `Done`. A value of the same length is overwritten in place, without
    /// an allocation.
    Set,
    /// Writes if there is no entry. Replies `Previous` with the existing value, or with `None` if
    /// it wrote.
    IfAbsent,
    /// Same as [`PutMode::Set`]. A map store would not be notified.
    Transient,
    /// Same as [`PutMode::Set`], but replies `Flag(true)`.
    Try,
    /// Writes if there is an entry. Replies `Previous` with the old value, or with `None` if it did
    /// not write. The [`Expiry`] of the command is ignored: the entry gets the map's durations, as
    /// in Hazelcast.
    Replace,
    /// Always writes, with the statistics of an entry from elsewhere. Replies `Done`; the event is
    /// `Loaded`. The expiry comes from the metadata.
    Metadata(Metadata),
}

/// The metadata of an entry that comes from elsewhere (putAllWithMetadata). Times are in Unix
/// milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The time of creation.
    pub created_ms: i64,
    /// The time of the last write.
    pub updated_ms: i64,
    /// The time of the last read.
    pub accessed_ms: i64,
    /// The end of the time to live; `i64::MAX` = determined by `expiry`, counted from now.
    pub expires_ms: i64,
    /// Number of reads; saturates at `u32::MAX`.
    pub hits: u64,
    /// Number of updates; saturates at `u32::MAX`.
    pub version: u64,
    /// The durations of the entry.
    pub expiry: Expiry,
}

/// A change with borrowed bytes.
pub type Change<'a> = ChangeOf<&'a [u8]>;

/// A change that owns its bytes, for commands that wait.
pub type OwnedChange = ChangeOf<Box<[u8]>>;

/// All changes of a partition. `B` is the type of keys and values: see [`Change`] and
/// [`OwnedChange`].
///
/// Unless stated otherwise, a change of a key that another caller has locked replies
/// [`Reply::Locked`](crate::Reply::Locked) and changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeOf<B> {
    /// Writes a value. The mode determines the condition for writing and the reply. An update
    /// increments the version of the entry, replaces its durations by `expiry` (a put without one
    /// returns to the defaults of the map) and restarts both durations.
    Put {
        /// The key's bytes.
        key: B,
        /// The value's bytes.
        value: B,
        /// The lifetime of the entry from now on.
        expiry: Expiry,
        /// The condition for writing, and the reply.
        mode: PutMode,
    },
    /// Writes `value` if the value of the entry is `expected`. Replies `Flag`: whether it wrote.
    /// The expiry is that of [`PutMode::Replace`].
    ReplaceIfSame {
        /// The key's bytes.
        key: B,
        /// The expected value, compared byte for byte.
        expected: B,
        /// The new value.
        value: B,
    },
    /// Removes the entry. Replies `Previous` with its value.
    Remove {
        /// The key's bytes.
        key: B,
    },
    /// Removes the entry. Replies `Flag`: whether there was an entry.
    Delete {
        /// The key's bytes.
        key: B,
    },
    /// Removes the entry if its value is `expected`. Replies `Flag`: whether it was removed.
    RemoveIfSame {
        /// The key's bytes.
        key: B,
        /// The expected value, compared byte for byte.
        expected: B,
    },
    /// Evicts the entry (event `Evicted`). Replies `Flag`: whether it was evicted. The entry of a
    /// locked or claimed key stays, even if the caller is the owner: `Flag(false)`.
    Evict {
        /// The key's bytes.
        key: B,
    },
    /// Changes only the time to live of an entry, counted from now. Replies `Flag`: whether there
    /// is an entry. Causes no event, because the value is unchanged.
    SetTtl {
        /// The key's bytes.
        key: B,
        /// Milliseconds; negative = the default of the map, 0 = unlimited.
        ttl_ms: i64,
    },
    /// Locks the key for the caller. If the caller already holds the lock, its count is
    /// incremented. Replies `Flag(true)`. The lease of the latest call applies. A repeated
    /// reference gets the same reply and counts once.
    Lock {
        /// The key's bytes. An entry is not required.
        key: B,
        /// The duration of the lock in milliseconds, counted from now; `None` = until it is
        /// unlocked.
        lease_ms: Option<i64>,
        /// The caller's number of this call. It identifies retries; 0 = no number.
        reference: i64,
    },
    /// Releases one hold of the lock. Replies `Done`, or `NotOwner`. A repeated reference gets the
    /// same reply.
    Unlock {
        /// The key's bytes.
        key: B,
        /// The caller's number of this call. It identifies retries; 0 = no number.
        reference: i64,
    },
    /// Releases all holds of the lock, regardless of the owner. Replies `Done`.
    ForceUnlock {
        /// The key's bytes.
        key: B,
        /// The caller's number of this call. It is not kept, because a repetition is harmless.
        reference: i64,
    },
    /// Changes nothing. Replies `Done`. Like other changes it can be parked until no other caller
    /// holds the key; the changes parked behind it then let its caller claim the key.
    Await {
        /// The key's bytes.
        key: B,
    },
    /// Claims the keys of a [`Batch`](crate::Batch) for the caller, in addition to its earlier
    /// claims. Until the claims are released, the keys are locked for other callers; nothing else
    /// is visible. Replies `Claimed` with the places of the items that are not as expected; their
    /// keys are claimed nevertheless. Replies `Held` if another caller holds one of the keys; then
    /// nothing is claimed.
    Claim {
        /// The batch's bytes.
        batch: B,
    },
    /// Claims all keys of the map for the caller, existing and new ones. Replies `Claimed`, without
    /// places; or `Held`, with any place, if another caller holds a key; then nothing is claimed.
    ClaimAll,
    /// Applies the changes of a batch. The caller must have claimed its keys. Replies `Count` of
    /// the changes, or `Flag(false)` if the caller has claimed nothing.
    WriteBatch {
        /// The batch's bytes.
        batch: B,
    },
    /// Releases all claims of the caller on the map. Replies `Done`.
    Unclaim,
    /// Removes all entries except those of locked keys, with one event `Cleared`. Replies `Count`
    /// of the removed entries; or `Held`, with any place, if another caller has claimed all keys.
    Clear,
    /// Same as [`ChangeOf::Clear`], with one event `EvictedAll`.
    EvictAll,
    /// Releases all locks and claims of one client, in all maps. Replies `Count` of the locks.
    ReleaseLocks {
        /// The client, which has disconnected.
        client: Uuid,
    },
    /// Frees expired entries, leases and journal events of all maps. Replies `Count` of the freed
    /// entries and leases. More work is due while
    /// [`Partition::next_expiry`](crate::Partition::next_expiry) is not later than now.
    Expire {
        /// The maximum number of entries and leases to examine.
        limit: usize,
    },
    /// Evicts the entries that the leader picked with
    /// [`Partition::pick_eviction`](crate::Partition::pick_eviction). Replies `Count` of the
    /// entries. Locked and claimed keys and keys without an entry are skipped. An entry past its
    /// deadline is removed as expired.
    EvictKeys {
        /// The bytes of a [`KeyList`](crate::KeyList).
        keys: B,
    },
    /// Restarts the idle time of an entry at the time of a read that is not in the log. Replies
    /// `Flag`: whether there is an entry. It revives an entry past its deadline, as long as no
    /// command has freed the entry: the leader sends it before a command that would free the entry,
    /// see [`Partition::touches_for`](crate::Partition::touches_for). Like reads, it ignores locks.
    Touch {
        /// The key's bytes.
        key: B,
        /// The time of the read.
        read_at: Millis,
    },
}

impl<B> ChangeOf<B> {
    /// The only key of this change; `None` for changes of several keys or of whole maps.
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
            | ChangeOf::ClaimAll
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
            ChangeOf::ClaimAll => ChangeOf::ClaimAll,
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
    /// The only key of this change; `None` for changes of several keys or of whole maps.
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
    /// The only key of this change; `None` for changes of several keys or of whole maps.
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
            Change::ClaimAll,
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
