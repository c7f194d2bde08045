//! Small values for maps, times and callers.

use std::fmt;

use uuid::Uuid;

/// The id of a map, the same in all partitions of a member. The grid assigns the ids; the store
/// does not know the names of maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MapId(pub u32);

/// A time in milliseconds since the Unix epoch. Callers always pass it in.
///
/// Arithmetic saturates: a clock that jumps to the end of the range must not cause an overflow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Millis(pub i64);

impl Millis {
    /// The latest time; it means "never".
    pub const MAX: Millis = Millis(i64::MAX);

    /// The time `duration_ms` later, at most [`Millis::MAX`]. A negative duration goes back.
    #[must_use]
    pub const fn plus(self, duration_ms: i64) -> Millis {
        Millis(self.0.saturating_add(duration_ms))
    }

    /// The milliseconds from `earlier` to this time; negative if `earlier` is in fact later.
    #[must_use]
    pub const fn since(self, earlier: Millis) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The end of a period that begins now and lasts `duration_ms`; 0 or less means unlimited.
    pub(crate) const fn deadline(self, duration_ms: i64) -> Millis {
        if duration_ms <= 0 { Millis::MAX } else { self.plus(duration_ms) }
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// The caller of a change: the owner of locks, and the source named in events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Caller {
    /// The client or the member.
    pub client: Uuid,
    /// The thread of the client. Locks are reentrant for each client and thread.
    pub thread: i64,
}
