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
    /// Whether it ends as soon as its client waits for nothing.
    stopping: AtomicBool,
    /// Whether new statements are refused: the member stops, and only what runs is waited for.
    refuses_statements: AtomicBool,
    /// Bytes of buffers that the connection's task held at the end of its last turn.
    held_bytes: AtomicUsize,
    /// Requests that other threads are to answer.
    queries: AtomicUsize,
    pub(crate) cursors: Cursors,
}

impl Link {
    pub(crate) fn new(peer: SocketAddr, event_buffer_bytes_max: usize, events: &MemoryBudget) -> Self {
        Self {
            outbox: Outbox::new(event_buffer_bytes_max, events),
            peer,
            reads: AtomicU64::new(0),
            authenticated: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
            refuses_statements: AtomicBool::new(false),
            held_bytes: AtomicUsize::new(0),
            queries: AtomicUsize::new(0),
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

    pub(crate) fn set_stopping(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
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
        self.queries.fetch_add(1, Ordering::SeqCst)
    }

    /// Notes that one of them is over: its reply is in the outbox.
    pub(crate) fn end_query(&self) {
        self.queries.fetch_sub(1, Ordering::SeqCst);
        if self.is_stopping() {
            // The connection may wait for this one alone.
            self.outbox.poke();
        }
    }

    /// Whether another thread is to answer a request, or a statement has rows that the client has not read.
    pub(crate) fn has_statements(&self) -> bool {
        self.queries.load(Ordering::SeqCst) > 0 || self.cursors.len() > 0
    }

    pub(crate) fn refuse_statements(&self) {
        self.refuses_statements.store(true, Ordering::Relaxed);
    }

    pub(crate) fn refuses_statements(&self) -> bool {
        self.refuses_statements.load(Ordering::Relaxed)
    }

    pub(crate) fn end(&self, end: End) {
        self.outbox.end(end);
    }
}
