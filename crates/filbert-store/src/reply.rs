//! Replies of a partition, and the values in them.

use std::fmt;
use std::ops::Deref;

use crate::record::Record;
use crate::{BatchPlace, Caller, Millis, StoreError};

/// The reply to a command. It may borrow from the partition, so it must be read before the next
/// command is applied.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply<'p> {
    /// The command was applied; there is no result.
    Done,
    /// Whether the command had an effect.
    Flag(bool),
    /// The value before the change. For [`PutMode::IfAbsent`](crate::PutMode::IfAbsent), the
    /// existing value, which stays.
    Previous(Option<Value<'p>>),
    /// A number of entries, locks or changes, depending on the command.
    Count(usize),
    /// The key is locked or claimed by another caller; nothing was changed.
    Locked {
        /// The end of the lease, if the lock has one.
        free_at: Option<Millis>,
    },
    /// The keys of a batch are claimed. Contains the places of the items that are not as expected.
    Claimed(Vec<BatchPlace>),
    /// The key of the item at this place is locked or claimed by another caller; nothing was
    /// claimed.
    Held(BatchPlace),
    /// The caller does not hold the lock that it wants to release.
    NotOwner {
        /// The owner of the lock, if the key is locked.
        owner: Option<Caller>,
    },
    /// The command cannot be applied; nothing was changed.
    Refused(StoreError),
}

impl Reply<'_> {
    /// A reply that can be read after the partition has changed: copies a value that is still in
    /// the partition.
    #[must_use]
    pub fn into_owned(self) -> Reply<'static> {
        match self {
            Reply::Done => Reply::Done,
            Reply::Flag(flag) => Reply::Flag(flag),
            Reply::Previous(value) => Reply::Previous(value.map(Value::into_owned)),
            Reply::Count(count) => Reply::Count(count),
            Reply::Locked { free_at } => Reply::Locked { free_at },
            Reply::Claimed(places) => Reply::Claimed(places),
            Reply::Held(place) => Reply::Held(place),
            Reply::NotOwner { owner } => Reply::NotOwner { owner },
            Reply::Refused(error) => Reply::Refused(error),
        }
    }
}

/// The bytes of a value: borrowed from the store, or taken out of it with their record. Only
/// [`Reply::into_owned`] and [`Value::copied`] copy them.
pub struct Value<'p>(Held<'p>);

enum Held<'p> {
    Borrowed(&'p [u8]),
    Taken(Record),
    Copied(Box<[u8]>),
}

impl<'p> Value<'p> {
    pub(crate) fn borrowed(bytes: &'p [u8]) -> Self {
        Value(Held::Borrowed(bytes))
    }

    /// A value from elsewhere.
    #[must_use]
    pub fn copied(bytes: Box<[u8]>) -> Value<'static> {
        Value(Held::Copied(bytes))
    }

    pub(crate) fn taken(record: Record) -> Self {
        Value(Held::Taken(record))
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match &self.0 {
            Held::Borrowed(bytes) => bytes,
            Held::Taken(record) => record.value(),
            Held::Copied(bytes) => bytes,
        }
    }

    fn into_owned(self) -> Value<'static> {
        Value(match self.0 {
            Held::Borrowed(bytes) => Held::Copied(bytes.into()),
            Held::Taken(record) => Held::Taken(record),
            Held::Copied(bytes) => Held::Copied(bytes),
        })
    }
}

impl Deref for Value<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl AsRef<[u8]> for Value<'_> {
    fn as_ref(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Value<'_> {}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.as_bytes();
        write!(f, "Value({} bytes: {:02x?})", bytes.len(), bytes.get(..16).unwrap_or(bytes))
    }
}
