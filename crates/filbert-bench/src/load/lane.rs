//! The window of calls in flight of one connection in a closed loop, without I/O.

use std::time::Instant;

use filbert_wire::{Limits, Message, Split, Splitter};

use super::Limit;
use super::work::Work;
use crate::buffer::ReadBuffer;
use crate::error::{BenchError, Result};
use crate::latency::Latencies;

/// The low bits of a correlation id contain the slot in the window. The high bits contain the index
/// of the call.
const SLOT_BITS: u32 = 20;

/// The maximum window depth.
pub const DEPTH_MAX: usize = 1 << SLOT_BITS;

/// The counters of a phase.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) latencies: Latencies,
    pub(super) lateness: Option<Latencies>,
    pub(super) checked: u64,
    /// The start of the first thread and the end of the last thread.
    pub(super) span: Option<(Instant, Instant)>,
}

impl Tally {
    pub(super) fn new() -> Result<Self> {
        Ok(Self { latencies: Latencies::new()?, lateness: None, checked: 0, span: None })
    }

    pub(super) fn add(&mut self, other: &Tally) -> Result<()> {
        self.latencies.add(&other.latencies)?;
        self.checked += other.checked;
        self.span = match (self.span, other.span) {
            (Some(mine), Some(other)) => Some((mine.0.min(other.0), mine.1.max(other.1))),
            (mine, other) => mine.or(other),
        };
        match (&mut self.lateness, &other.lateness) {
            (Some(mine), Some(other)) => mine.add(other)?,
            (None, Some(other)) => self.lateness = Some(other.clone()),
            (_, None) => {}
        }
        Ok(())
    }
}

/// A slot of the window.
#[derive(Debug, Clone, Copy)]
struct Slot {
    correlation: i64,
    number: u64,
    sent: Instant,
}

/// The calls in flight, and the statistics of answered calls.
#[derive(Debug)]
struct Calls<'a> {
    work: &'a Work<'a>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    tally: Tally,
}

/// The window of one connection. The driver transfers the bytes in this order: `issue`, write
/// `out`, read into `input`, `absorb`.
#[derive(Debug)]
pub(super) struct Lane<'a> {
    calls: Calls<'a>,
    lane: u64,
    issued: u64,
    share: u64,
    splitter: Splitter,
    /// Received bytes that are not processed yet.
    pub(super) input: ReadBuffer,
    /// Encoded calls that are not written yet.
    pub(super) out: Vec<u8>,
}

impl<'a> Lane<'a> {
    pub(super) fn new(work: &'a Work<'a>, lane: u64, limit: Limit) -> Result<Self> {
        let depth = work.depth.min(DEPTH_MAX);
        let never = Slot { correlation: -1, number: 0, sent: Instant::now() };
        Ok(Self {
            calls: Calls {
                work,
                slots: vec![never; depth],
                free: (0..depth as u32).rev().collect(),
                tally: Tally::new()?,
            },
            lane,
            issued: 0,
            share: work.share(lane, limit),
            splitter: Splitter::new(Limits::default()),
            input: ReadBuffer::new(),
            out: Vec::new(),
        })
    }

    /// The number of calls in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.calls.slots.len() - self.calls.free.len()
    }

    /// Whether all calls have been made and answered.
    pub(super) fn is_over(&self) -> bool {
        self.issued >= self.share && self.in_flight() == 0
    }

    /// Adds new calls to the window, up to the end of the phase or of the iteration.
    #[inline]
    pub(super) fn issue(&mut self, now: Instant, deadline: Option<Instant>) {
        if deadline.is_some_and(|deadline| now >= deadline) {
            self.share = self.issued;
        }
        let mut until = self.share;
        if let Some(iteration) = self.calls.work.iteration {
            // An iteration ends at the next multiple. The first call after it waits until all calls
            // of the iteration are answered.
            let boundary = self.issued.next_multiple_of(iteration.max(1));
            let at_boundary = boundary == self.issued;
            match (at_boundary, self.in_flight()) {
                (true, 0) => until = until.min(self.issued + iteration.max(1)),
                (true, _) => return,
                (false, _) => until = until.min(boundary),
            }
        }
        while self.issued < until {
            let Some(slot) = self.calls.free.pop() else { break };
            let number = self.calls.work.number(self.lane, self.issued);
            let correlation = ((self.issued << SLOT_BITS) | u64::from(slot)) as i64;
            self.calls.work.encode(number, correlation, &mut self.out);
            if let Some(place) = self.calls.slots.get_mut(slot as usize) {
                *place = Slot { correlation, number, sent: now };
            }
            self.issued += 1;
        }
    }

    /// Processes the replies in `input`, which were read at the time `now`.
    #[inline]
    pub(super) fn absorb(&mut self, now: Instant) -> Result<()> {
        let target = self.calls.work.target;
        while let Some(split) = self.splitter.split(self.input.filled()).map_err(BenchError::wire(target))? {
            let consumed = match split {
                Split::Fragment(count) => count,
                Split::Whole(count) => {
                    let bytes = self.input.filled().get(..count).unwrap_or_default();
                    self.calls.complete(bytes, now)?;
                    count
                }
                Split::Assembled(count, bytes) => {
                    self.calls.complete(&bytes, now)?;
                    count
                }
            };
            self.input.consume(consumed);
        }
        Ok(())
    }

    pub(super) fn into_tally(self) -> Tally {
        self.calls.tally
    }

    /// The error for a server that closed the connection.
    pub(super) fn closed(&self) -> BenchError {
        BenchError::Program {
            program: self.calls.work.target.to_owned(),
            what: format!("closed a connection with {} calls in flight", self.in_flight()),
        }
    }

    /// The error for a server that does not reply.
    pub(super) fn silent(&self) -> BenchError {
        BenchError::Silent {
            target: self.calls.work.target.to_owned(),
            waited: crate::session::SILENCE_MAX,
            in_flight: self.in_flight(),
        }
    }
}

impl Calls<'_> {
    #[inline]
    fn complete(&mut self, bytes: &[u8], now: Instant) -> Result<()> {
        let message = Message::parse(bytes).map_err(BenchError::wire(self.work.target))?;
        if message.is_event() {
            return Ok(());
        }
        let correlation = message.correlation_id().0;
        let slot = (correlation as u64 & (DEPTH_MAX as u64 - 1)) as u32;
        let call = match self.slots.get_mut(slot as usize) {
            Some(call) if call.correlation == correlation => call,
            _ => {
                return Err(BenchError::Wrong {
                    target: self.work.target.to_owned(),
                    what: format!("a reply for correlation id {correlation}, which is not in flight"),
                });
            }
        };
        call.correlation = -1;
        self.tally.latencies.record(now - call.sent);
        self.tally.checked += u64::from(self.work.check(call.number, &message)?);
        self.free.push(slot);
        Ok(())
    }
}
