//! The queue of submissions that wait to be proposed, with their waiters, and the number of entries
//! in flight.
//!
//! It knows neither consensus nor leaders: it is a queue with limits.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use openraft::Instant;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::state_machine::StateMachine;
use crate::wire::{Source, Submission};
use crate::{OriginId, SubmitError};

/// The size of a waiting submission beside its commands.
pub(crate) const SUBMISSION_OVERHEAD_BYTES: usize = size_of::<Submission>();

/// The waiter for the result of a submission.
pub(crate) enum Awaits<S: StateMachine> {
    /// A waiter for the replies to commands.
    Replies(S::Awaiting),
    /// A waiter for the application of the commands.
    Applied(oneshot::Sender<()>),
    /// A waiter for the id of an origin.
    Origin(oneshot::Sender<Result<OriginId, SubmitError>>),
}

impl<S: StateMachine> Awaits<S> {
    /// Reports that the submission was not applied.
    pub(crate) fn refuse(self, state: &S, why: SubmitError) {
        match self {
            Awaits::Replies(awaiting) => state.answer(awaiting, Err(why)),
            Awaits::Applied(_) => {}
            // The waiter may have gone.
            Awaits::Origin(sender) => _ = sender.send(Err(why)),
        }
    }
}

/// A waiting submission, and the time since which it waits.
pub(crate) struct Waits<S: StateMachine, T> {
    pub(crate) source: Source,
    pub(crate) commands: Bytes,
    pub(crate) awaits: Option<Awaits<S>>,
    since: T,
}

impl<S: StateMachine, T> Waits<S, T> {
    fn bytes(&self) -> usize {
        self.commands.len() + SUBMISSION_OVERHEAD_BYTES
    }
}

/// The queue of waiting submissions.
pub(crate) struct Waiting<S: StateMachine, T> {
    submissions: Mutex<VecDeque<Waits<S, T>>>,
    bytes: AtomicUsize,
    /// The number of entries in flight. Incremented while `submissions` is locked: a hand-over of
    /// leadership waits for zero.
    entries_in_flight: AtomicUsize,
    /// The number of holders that hold submissions back. Incremented while `submissions` is locked.
    holding: AtomicUsize,
    changed: Notify,
    /// Notified when an entry in flight has its result.
    landed: Notify,
}

impl<S: StateMachine, T> Default for Waiting<S, T> {
    fn default() -> Self {
        let (submissions, bytes, entries_in_flight, holding) = Default::default();
        Waiting { submissions, bytes, entries_in_flight, holding, changed: Notify::new(), landed: Notify::new() }
    }
}

impl<S: StateMachine, T: Instant> Waiting<S, T> {
    /// Adds a submission. Returns the waiter if the limit is exceeded.
    pub(crate) fn push(
        &self,
        source: Source,
        commands: Bytes,
        awaits: Awaits<S>,
        bytes_max: usize,
    ) -> Result<(), Awaits<S>> {
        let waits = Waits { source, commands, awaits: Some(awaits), since: T::now() };
        self.add(waits, bytes_max).map_err(|mut waits| waits.awaits.take()).or_else(|awaits| awaits.map_or(Ok(()), Err))
    }

    /// Adds commands of the leader itself, without a waiter. Returns `false` if the limit is
    /// exceeded.
    pub(crate) fn propose(&self, commands: Bytes, bytes_max: usize) -> bool {
        let waits = Waits { source: Source::Plain, commands, awaits: None, since: T::now() };
        waits.commands.is_empty() || self.add(waits, bytes_max).is_ok()
    }

    fn add(&self, waits: Waits<S, T>, bytes_max: usize) -> Result<(), Waits<S, T>> {
        let added = waits.bytes();
        if self.bytes.fetch_add(added, Ordering::SeqCst) + added > bytes_max {
            self.bytes.fetch_sub(added, Ordering::SeqCst);
            return Err(waits);
        }
        self.submissions.lock().push_back(waits);
        self.changed.notify_one();
        Ok(())
    }

    /// The size of all waiting submissions in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Takes the submissions of the next entry, which counts as in flight from now on.
    pub(crate) fn take_entry(self: &Arc<Self>, bytes_max: usize, in_flight_max: usize) -> Option<Taken<S, T>> {
        let mut submissions = self.submissions.lock();
        let is_full = self.entries_in_flight.load(Ordering::SeqCst) >= in_flight_max.max(1);
        if is_full || submissions.is_empty() || self.holding.load(Ordering::SeqCst) > 0 {
            return None;
        }
        self.entries_in_flight.fetch_add(1, Ordering::SeqCst);
        Some((self.take_within(&mut submissions, bytes_max), EntryInFlight(Arc::clone(self))))
    }

    /// Holds submissions back until the returned guard is dropped.
    pub(crate) fn hold(self: &Arc<Self>) -> Held<S, T> {
        let _taking = self.submissions.lock();
        self.holding.fetch_add(1, Ordering::SeqCst);
        Held(Arc::clone(self))
    }

    /// Waits until no entry is in flight: each entry that this member has proposed has its result,
    /// and is applied if it was committed.
    pub(crate) async fn landed(&self) {
        loop {
            let mut landed = std::pin::pin!(self.landed.notified());
            landed.as_mut().enable();
            if self.entries_in_flight.load(Ordering::SeqCst) == 0 {
                return;
            }
            landed.await;
        }
    }

    /// Takes all waiting submissions.
    pub(crate) fn take_left(&self) -> Vec<Waits<S, T>> {
        self.take_within(&mut self.submissions.lock(), usize::MAX)
    }

    /// Waits until the queue may have submissions to take.
    pub(crate) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn take_within(&self, submissions: &mut VecDeque<Waits<S, T>>, bytes_max: usize) -> Vec<Waits<S, T>> {
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while bytes < bytes_max
            && let Some(submission) = submissions.pop_front()
        {
            bytes += submission.bytes();
            taken.push(submission);
        }
        self.bytes.fetch_sub(bytes, Ordering::SeqCst);
        taken
    }

    /// Takes the waiters that have waited for longer than a limit. Their submissions were never
    /// proposed.
    pub(crate) fn take_older(&self, now: T, limit: Duration) -> Vec<Awaits<S>> {
        let mut submissions = self.submissions.lock();
        let mut taken = Vec::new();
        let is_late = |first: &Waits<S, T>| now.saturating_duration_since(first.since) > limit;
        while submissions.front().is_some_and(is_late)
            && let Some(first) = submissions.pop_front()
        {
            self.bytes.fetch_sub(first.bytes(), Ordering::SeqCst);
            taken.extend(first.awaits);
        }
        taken
    }

    pub(crate) fn wake(&self) {
        self.changed.notify_one();
    }
}

/// The submissions of an entry, and the guard that counts the entry as in flight.
pub(crate) type Taken<S, T> = (Vec<Waits<S, T>>, EntryInFlight<S, T>);

/// Counts an entry as in flight until it is dropped.
pub(crate) struct EntryInFlight<S: StateMachine, T>(Arc<Waiting<S, T>>);

impl<S: StateMachine, T> Drop for EntryInFlight<S, T> {
    fn drop(&mut self) {
        self.0.entries_in_flight.fetch_sub(1, Ordering::SeqCst);
        self.0.changed.notify_one();
        self.0.landed.notify_waiters();
    }
}

/// Holds submissions back until it is dropped.
pub(crate) struct Held<S: StateMachine, T>(Arc<Waiting<S, T>>);

impl<S: StateMachine, T> Drop for Held<S, T> {
    fn drop(&mut self) {
        self.0.holding.fetch_sub(1, Ordering::SeqCst);
        self.0.changed.notify_one();
    }
}
