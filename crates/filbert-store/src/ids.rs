//! The small values that name things and moments: maps, callers, points in time.

use std::fmt;

use uuid::Uuid;

/// A map within every partition of a member. The grid gives out the numbers; the store never learns a map's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MapId(pub u32);

/// A point in time: milliseconds since the Unix epoch, always passed in by the caller.
///
/// Arithmetic saturates: a clock that jumps to either end of time must not overflow anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Millis(pub i64);

impl Millis {
    /// Later than every other point in time; stands for "never".
    pub const MAX: Millis = Millis(i64::MAX);

    /// The point `duration_ms` later, or the end of time. A negative duration goes back.
    #[must_use]
    pub const fn plus(self, duration_ms: i64) -> Millis {
        Millis(self.0.saturating_add(duration_ms))
    }

    /// Milliseconds from `earlier` to this point; negative when `earlier` is in fact later.
    #[must_use]
    pub const fn since(self, earlier: Millis) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The end of something that begins now and lasts `duration_ms`, where 0 or less means without end.
    pub(crate) const fn deadline(self, duration_ms: i64) -> Millis {
        if duration_ms <= 0 { Millis::MAX } else { self.plus(duration_ms) }
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ms", self.0)
    }
}

/// Who asks for a change: the owner of locks and the source named in events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Caller {
    /// The client or the member.
    pub client: Uuid,
    /// The client's thread; locks are reentrant per client and thread.
    pub thread: i64,
}
