//! What waits to be sent over a connection: frames are gathered, and written as many at once as there are.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

use crate::LinkError;
use crate::statistics::KindCounters;
use crate::wire::Frame;

/// Payloads up to here are copied beside others; longer ones are written from where they are.
const COPIED_BYTES_MAX: usize = 4 << 10;
/// Pieces of one write.
const PIECES_MAX: usize = 64;

#[derive(Default)]
struct Waiting {
    pieces: VecDeque<Bytes>,
    /// The last piece, which grows.
    tail: BytesMut,
    frames: u64,
    /// With what is being written.
    bytes: usize,
}

#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    filled: Notify,
    /// Something was written.
    pub(crate) drained: Notify,
}

impl Queue {
    /// Adds a frame. Refuses, and changes nothing, if there would be more than `bytes_max`; one frame alone is never refused.
    pub(crate) fn push(&self, frame: Frame, bytes_max: usize) -> bool {
        let (head, payload) = frame.write();
        let bytes = head.len() + payload.len();
        let mut waiting = self.waiting.lock();
        if waiting.bytes > 0 && waiting.bytes.saturating_add(bytes) > bytes_max {
            return false;
        }
        waiting.bytes += bytes;
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

    /// Bytes that are not yet written.
    pub(crate) fn bytes(&self) -> usize {
        self.waiting.lock().bytes
    }

    /// Throws away what waits.
    pub(crate) fn clear(&self) {
        *self.waiting.lock() = Waiting::default();
    }

    async fn take(&self) -> (VecDeque<Bytes>, u64) {
        loop {
            {
                let mut waiting = self.waiting.lock();
                if waiting.bytes > 0 {
                    let mut pieces = std::mem::take(&mut waiting.pieces);
                    let tail = waiting.tail.split().freeze();
                    pieces.extend(Some(tail).filter(|tail| !tail.is_empty()));
                    return (pieces, std::mem::take(&mut waiting.frames));
                }
            }
            self.filled.notified().await;
            // Whatever else is ready to run may have frames for this connection as well: they go in the same write.
            tokio::task::yield_now().await;
        }
    }

    /// Writes what comes, until the connection breaks; or when no byte could be written for `stall`.
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
                waiting.bytes = waiting.bytes.saturating_sub(written);
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
