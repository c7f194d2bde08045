//! The shared part of a connection, used by its task and by the rest of the door: the outbox, and
//! signs of life.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use filbert_grid::MemoryBudget;

use crate::{
    cursors::Cursors,
    outbox::{End, Outbox},
};

/// The part of a connection that other tasks use.
#[derive(Debug)]
pub(crate) struct ClientLink {
    pub(crate) outbox: Outbox,
    pub(crate) peer: SocketAddr,
    /// The number of reads that returned bytes. The door compares it from time to time, so requests
    /// do not have to read the clock.
    reads: AtomicU64,
    authenticated: AtomicBool,
    closing: AtomicBool,
    /// Bytes of the task's buffers at the end of its last turn.
    held_bytes: AtomicUsize,
    /// The number of requests that other threads are answering.
    queries: AtomicUsize,
    /// Whether one of these requests is so long that no other requests begin before its reply.
    parking: AtomicBool,
    /// The budget for replies.
    pub(crate) replies: MemoryBudget,
    pub(crate) cursors: Cursors,
}

impl ClientLink {
    pub(crate) fn new(
        peer: SocketAddr,
        event_buffer_bytes_max: usize,
        events: &MemoryBudget,
        replies: &MemoryBudget,
    ) -> Self {
        Self {
            outbox: Outbox::new(event_buffer_bytes_max, events, replies),
            peer,
            reads: AtomicU64::new(0),
            authenticated: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            held_bytes: AtomicUsize::new(0),
            queries: AtomicUsize::new(0),
            parking: AtomicBool::new(false),
            replies: replies.clone(),
            cursors: Cursors::default(),
        }
    }

    #[inline]
    pub(crate) fn count_read(&self) {
        // Only the connection's own task writes this counter, so a load and a store are enough.
        self.reads.store(self.reads.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }

    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    pub(crate) fn set_authenticated(&self) {
        self.authenticated.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_authenticated(&self) -> bool {
        self.authenticated.load(Ordering::Relaxed)
    }

    pub(crate) fn set_closing(&self) {
        self.closing.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.closing.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set_held_bytes(&self, bytes: usize) {
        self.held_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Bytes of all buffers of the connection.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes.load(Ordering::Relaxed) + self.outbox.bytes()
    }

    /// Counts a request that another thread will answer. Returns the number of such requests
    /// before.
    pub(crate) fn begin_query(&self) -> usize {
        self.queries.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts the end of such a request.
    pub(crate) fn end_query(&self) {
        self.queries.fetch_sub(1, Ordering::Relaxed);
    }

    /// Begins no other requests until [`ClientLink::unpark`].
    pub(crate) fn park(&self) {
        self.parking.store(true, Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_parking(&self) -> bool {
        self.parking.load(Ordering::Acquire)
    }

    /// Begins requests again.
    pub(crate) fn unpark(&self) {
        self.parking.store(false, Ordering::Release);
        self.outbox.poke();
    }

    pub(crate) fn end(&self, end: End) {
        self.outbox.end(end);
    }
}
