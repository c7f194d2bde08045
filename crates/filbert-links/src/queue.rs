//! The queue of a connection: frames are collected, and as many as possible are written at once.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

use crate::held::Held;
use crate::statistics::KindCounters;
use crate::wire::Frame;
use crate::{LinkError, Service};

/// Payloads up to this size are copied next to other frames. Longer payloads are written without a
/// copy.
const COPIED_BYTES_MAX: usize = 4 << 10;
/// The maximum number of pieces of one write.
const PIECES_MAX: usize = 64;

struct Waiting {
    pieces: VecDeque<Bytes>,
    /// The last piece, to which frames are appended.
    tail: BytesMut,
    frames: u64,
    /// The size of all pieces, including the pieces that are being written.
    held: Held,
}

pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    filled: Notify,
    /// Notified after a write.
    pub(crate) drained: Notify,
}

impl Queue {
    pub(crate) fn new(service: &Arc<dyn Service>) -> Queue {
        let (pieces, tail, frames, held) = (VecDeque::new(), BytesMut::new(), 0, Held::new(service));
        let waiting = Mutex::new(Waiting { pieces, tail, frames, held });
        Queue { waiting, filled: Notify::new(), drained: Notify::new() }
    }

    /// Adds a frame. Returns `false` and changes nothing if the queue would exceed `bytes_max`. A
    /// single frame is never refused.
    pub(crate) fn push(&self, frame: Frame, bytes_max: usize) -> bool {
        let (head, payload) = frame.write();
        let bytes = head.len() + payload.len();
        let mut waiting = self.waiting.lock();
        let before = waiting.held.bytes();
        if before > 0 && before.saturating_add(bytes) > bytes_max {
            return false;
        }
        waiting.held.set(before.saturating_add(bytes));
        waiting.frames += 1;
        waiting.tail.extend_from_slice(&head);
        if payload.len() <= COPIED_BYTES_MAX {
            waiting.tail.extend_from_slice(&payload);
        } else {
            let tail = waiting.tail.split().freeze();
            waiting.pieces.extend([tail, payload]);
        }
        drop(waiting);
        self.filled.notify_one();
        true
    }

    /// The number of bytes that are not written yet.
    pub(crate) fn bytes(&self) -> usize {
        self.waiting.lock().held.bytes()
    }

    /// Discards all queued frames.
    pub(crate) fn clear(&self) {
        let mut waiting = self.waiting.lock();
        (waiting.pieces, waiting.tail, waiting.frames) = Default::default();
        waiting.held.set(0);
    }

    async fn take(&self) -> (VecDeque<Bytes>, u64) {
        loop {
            {
                let mut waiting = self.waiting.lock();
                if waiting.held.bytes() > 0 {
                    let mut pieces = std::mem::take(&mut waiting.pieces);
                    let tail = waiting.tail.split().freeze();
                    pieces.extend(Some(tail).filter(|tail| !tail.is_empty()));
                    return (pieces, std::mem::take(&mut waiting.frames));
                }
            }
            self.filled.notified().await;
            // Other ready tasks may have frames for this connection as well: they go into the same
            // write.
            tokio::task::yield_now().await;
        }
    }

    /// Writes queued frames until the connection breaks, or until no byte could be written for
    /// `stall`.
    pub(crate) async fn write_to(
        &self,
        writer: &mut (dyn AsyncWrite + Send + Unpin),
        stall: Option<Duration>,
        counters: &KindCounters,
    ) -> LinkError {
        loop {
            let (pieces, frames) = self.take().await;
            counters.frames_sent(frames);
            if let Err(error) = self.write_pieces(pieces, writer, stall, counters).await {
                return error;
            }
        }
    }

    async fn write_pieces(
        &self,
        mut pieces: VecDeque<Bytes>,
        writer: &mut (dyn AsyncWrite + Send + Unpin),
        stall: Option<Duration>,
        counters: &KindCounters,
    ) -> Result<(), LinkError> {
        let failed = |error| LinkError::io("write to the peer", &error);
        while !pieces.is_empty() {
            let slices: Vec<IoSlice<'_>> = pieces.iter().take(PIECES_MAX).map(|piece| IoSlice::new(piece)).collect();
            let mut written = within(stall, writer.write_vectored(&slices)).await?.map_err(failed)?;
            if written == 0 {
                return Err(LinkError::Closed);
            }
            counters.sent(written);
            {
                let mut waiting = self.waiting.lock();
                let left = waiting.held.bytes().saturating_sub(written);
                waiting.held.set(left);
            }
            self.drained.notify_one();
            while let Some(piece) = pieces.front_mut().filter(|_| written > 0) {
                let of_piece = written.min(piece.len());
                piece.advance(of_piece);
                written -= of_piece;
                if piece.is_empty() {
                    pieces.pop_front();
                }
            }
        }
        within(stall, writer.flush()).await?.map_err(failed)
    }
}

async fn within<T>(limit: Option<Duration>, writing: impl Future<Output = T>) -> Result<T, LinkError> {
    let Some(limit) = limit else { return Ok(writing.await) };
    let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
    let too_long = |_| LinkError::Time { what: "writing to the peer, which does not read,", limit_ms };
    tokio::time::timeout(limit, writing).await.map_err(too_long)
}
