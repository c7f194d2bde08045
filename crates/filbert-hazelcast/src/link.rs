//! What a connection's task shares with the rest of the door: its outbox, and signs of life.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
};

use filbert_grid::MemoryBudget;

use crate::{
    cursors::Cursors,
    outbox::{End, Outbox},
};

/// The side of a connection that other tasks see.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) outbox: Outbox,
    pub(crate) peer: SocketAddr,
    /// Counts the reads that brought something. The door compares it from time to time, so that no request pays for
    /// a clock.
    reads: AtomicU64,
    authenticated: AtomicBool,
    closing: AtomicBool,
    /// Bytes of buffers that the connection's task held at the end of its last turn.
    held_bytes: AtomicUsize,
    /// Requests that other threads are to answer.
    queries: AtomicUsize,
    /// Whether one of them is so long that no others are begun beside it.
    parking: AtomicBool,
    /// That of replies.
    pub(crate) replies: MemoryBudget,
    pub(crate) cursors: Cursors,
}

impl Link {
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
        // Only this connection's task writes, so a load and a store do.
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

    /// Notes one more request that another thread is to answer; how many there were before.
    pub(crate) fn begin_query(&self) -> usize {
        self.queries.fetch_add(1, Ordering::Relaxed)
    }

    /// Notes that one of them is over.
    pub(crate) fn end_query(&self) {
        self.queries.fetch_sub(1, Ordering::Relaxed);
    }

    /// Has no other request begun until [`Link::go_on`].
    pub(crate) fn park(&self) {
        self.parking.store(true, Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_parking(&self) -> bool {
        self.parking.load(Ordering::Acquire)
    }

    /// Has requests begun again.
    pub(crate) fn go_on(&self) {
        self.parking.store(false, Ordering::Release);
        self.outbox.poke();
    }

    pub(crate) fn end(&self, end: End) {
        self.outbox.end(end);
    }
}
