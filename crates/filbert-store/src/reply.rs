//! What a partition answers: replies, the values they carry, and what it refuses.

use std::fmt;
use std::ops::Deref;

use crate::record::Record;
use crate::{BatchPlace, Caller, MapId, Millis};

/// The answer to a command. It may borrow from the partition, so it is read before the next command is applied.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply<'p> {
    /// It is done, and there is nothing to tell.
    Done,
    /// Whether it did something.
    Flag(bool),
    /// The value that was there before; for [`PutMode::IfAbsent`](crate::PutMode::IfAbsent), that is still there.
    Previous(Option<Value<'p>>),
    /// How many.
    Count(usize),
    /// The key is locked by someone else; nothing was changed.
    Locked {
        /// When the lease ends, if it does.
        free_at: Option<Millis>,
    },
    /// The keys of a batch are claimed. The places of those items that are not as expected.
    Claimed(Vec<BatchPlace>),
    /// The key of the item at this place is locked or claimed by someone else; nothing was claimed.
    Held(BatchPlace),
    /// The caller does not hold the lock that it wants to give back.
    NotOwner {
        /// Who holds it, if anybody does.
        owner: Option<Caller>,
    },
    /// The command cannot be applied; nothing was changed.
    Refused(StoreError),
}

impl Reply<'_> {
    /// The reply for whoever reads it after the partition has gone on: copies a value that the partition still has.
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

/// Why a command cannot be applied at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The key is longer than a record can hold.
    #[error("key of {bytes} bytes is too large, at most {bytes_max} are possible")]
    KeyTooLarge {
        /// The key's length.
        bytes: usize,
        /// The longest possible.
        bytes_max: usize,
    },
    /// The value is longer than a record can hold.
    #[error("value of {bytes} bytes is too large, at most {bytes_max} are possible")]
    ValueTooLarge {
        /// The value's length.
        bytes: usize,
        /// The longest possible.
        bytes_max: usize,
    },
    /// The map was never created in this partition, or is destroyed.
    #[error("map {} does not exist in this partition", .0.0)]
    NoSuchMap(MapId),
}

/// The bytes of a value: borrowed from the store, or taken out of it together with their record; copied for [`Reply::into_owned`]
/// alone.
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

    /// A value that came from elsewhere.
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
