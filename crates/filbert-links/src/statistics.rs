//! Counters of connections, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Kind;

/// The counters of connections of one kind since the start of the links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindStatistics {
    /// The number of current connections that this member made.
    pub dialled: u64,
    /// The number of current connections from other members.
    pub accepted: u64,
    /// The number of connections that this member made after an earlier one to the same member.
    pub reconnects: u64,
    /// The number of failed attempts to connect.
    pub failures: u64,
    /// The number of frames that were passed to the operating system or to TLS, or are about to be.
    pub frames_sent: u64,
    /// The number of received frames.
    pub frames_received: u64,
    /// The number of sent bytes in frames, without the overhead of TLS.
    pub bytes_sent: u64,
    /// The number of received bytes in frames, without the overhead of TLS.
    pub bytes_received: u64,
    /// The number of writes. It is small if each write has many frames.
    pub writes: u64,
}

/// The counters of all links.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkStatistics {
    /// The counters by kind, in the order of [`Kind::ALL`].
    pub kinds: Vec<(&'static str, KindStatistics)>,
    /// The number of connections from other members that were refused in the handshake, or exceeded
    /// a limit.
    pub refused: u64,
}

impl LinkStatistics {
    /// The counters of one kind.
    #[must_use]
    pub fn of(&self, kind: Kind) -> KindStatistics {
        let found = self.kinds.iter().find(|(name, _)| *name == kind.name());
        found.map(|(_, statistics)| *statistics).unwrap_or_default()
    }
}

#[derive(Default)]
pub(crate) struct KindCounters {
    pub(crate) dialled: AtomicU64,
    pub(crate) accepted: AtomicU64,
    pub(crate) reconnects: AtomicU64,
    pub(crate) failures: AtomicU64,
    frames_sent: AtomicU64,
    frames_received: AtomicU64,
    bytes_sent: AtomicU64,
    bytes_received: AtomicU64,
    writes: AtomicU64,
}

pub(crate) fn add(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

impl KindCounters {
    pub(crate) fn frames_sent(&self, frames: u64) {
        add(&self.frames_sent, frames);
    }

    /// Counts one write.
    pub(crate) fn sent(&self, bytes: usize) {
        add(&self.bytes_sent, bytes as u64);
        add(&self.writes, 1);
    }

    pub(crate) fn received(&self, bytes: usize) {
        add(&self.bytes_received, bytes as u64);
    }

    pub(crate) fn frame_received(&self) {
        add(&self.frames_received, 1);
    }

    fn read(&self) -> KindStatistics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        KindStatistics {
            dialled: read(&self.dialled),
            accepted: read(&self.accepted),
            reconnects: read(&self.reconnects),
            failures: read(&self.failures),
            frames_sent: read(&self.frames_sent),
            frames_received: read(&self.frames_received),
            bytes_sent: read(&self.bytes_sent),
            bytes_received: read(&self.bytes_received),
            writes: read(&self.writes),
        }
    }
}

#[derive(Default)]
pub(crate) struct Counters {
    data: KindCounters,
    control: KindCounters,
    snapshots: KindCounters,
    requests: KindCounters,
    join: KindCounters,
    pub(crate) refused: AtomicU64,
}

impl Counters {
    pub(crate) fn of(&self, kind: Kind) -> &KindCounters {
        match kind {
            Kind::Data => &self.data,
            Kind::Control => &self.control,
            Kind::Snapshots => &self.snapshots,
            Kind::Requests => &self.requests,
            Kind::Join => &self.join,
        }
    }

    pub(crate) fn read(&self) -> LinkStatistics {
        let kinds = Kind::ALL.iter().map(|kind| (kind.name(), self.of(*kind).read())).collect();
        LinkStatistics { kinds, refused: self.refused.load(Ordering::Relaxed) }
    }
}

/// Counts a connection as long as it exists.
pub(crate) struct Counted<'c>(&'c AtomicU64);

impl<'c> Counted<'c> {
    pub(crate) fn new(counter: &'c AtomicU64) -> Self {
        add(counter, 1);
        Counted(counter)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
