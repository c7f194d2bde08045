//! Submissions on their way into the log: what arrives while entries are on their way is merged into the next one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use openraft::AsyncRuntime;
use openraft::Instant;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::ClientWriteError;
use openraft::raft::ClientWriteResult;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::counters::add;
use crate::group::Shared;
use crate::replica::Replica;
use crate::state_machine::StateMachine;
use crate::types::{Batch, Committed, OnResult, Types};
use crate::wire::{BatchEntry, Source, Submission, write_batch};
use crate::{GroupSettings, MemberId, OriginId, SubmitError};

/// What a submission that waits takes beside its commands.
pub(crate) const SUBMISSION_OVERHEAD_BYTES: usize = size_of::<Submission>();

/// Who awaits what of a submission.
pub(crate) enum Awaits<S: StateMachine> {
    /// The replies to commands.
    Replies(S::Awaiting),
    /// That it is applied.
    Applied(oneshot::Sender<()>),
    /// The id of an origin.
    Origin(oneshot::Sender<Result<OriginId, SubmitError>>),
}

impl<S: StateMachine> Awaits<S> {
    /// Tells that the submission was not applied.
    pub(crate) fn refuse(self, state: &S, why: SubmitError) {
        match self {
            Awaits::Replies(awaiting) => state.answer(awaiting, Err(why)),
            Awaits::Applied(_) => {}
            // Whoever asked may have gone.
            Awaits::Origin(sender) => _ = sender.send(Err(why)),
        }
    }
}

/// A submission that waits, and since when.
struct Waits<S: StateMachine, T> {
    source: Source,
    commands: Bytes,
    awaits: Option<Awaits<S>>,
    since: T,
}

impl<S: StateMachine, T> Waits<S, T> {
    fn bytes(&self) -> usize {
        self.commands.len() + SUBMISSION_OVERHEAD_BYTES
    }
}

/// What waits to be proposed.
pub(crate) struct Waiting<S: StateMachine, T> {
    submissions: Mutex<VecDeque<Waits<S, T>>>,
    bytes: AtomicUsize,
    /// Grows while `submissions` is locked: whoever hands over waits for zero.
    entries_on_way: AtomicUsize,
    /// How many hold submissions back. Grows as above.
    holding: AtomicUsize,
    changed: Notify,
    /// An entry that was on its way has its result.
    landed: Notify,
}

impl<S: StateMachine, T> Default for Waiting<S, T> {
    fn default() -> Self {
        let (submissions, bytes, entries_on_way, holding) = Default::default();
        Waiting { submissions, bytes, entries_on_way, holding, changed: Notify::new(), landed: Notify::new() }
    }
}

impl<S: StateMachine, T: Instant> Waiting<S, T> {
    /// Adds a submission; gives back who awaits it, beyond the limit.
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

    /// Adds commands of the leader's own, whose answer nobody waits for; `false` beyond the limit.
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

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Takes what goes into the next entry, which counts as one on its way from now on.
    fn take_entry(self: &Arc<Self>, bytes_max: usize, on_way_max: usize) -> Option<Taken<S, T>> {
        let mut submissions = self.submissions.lock();
        let is_full = self.entries_on_way.load(Ordering::SeqCst) >= on_way_max.max(1);
        if is_full || submissions.is_empty() || self.holding.load(Ordering::SeqCst) > 0 {
            return None;
        }
        self.entries_on_way.fetch_add(1, Ordering::SeqCst);
        Some((self.take(&mut submissions, bytes_max), OnWay(Arc::clone(self))))
    }

    /// Holds submissions back until what is returned is dropped.
    pub(crate) fn hold(self: &Arc<Self>) -> Held<S, T> {
        let _taking = self.submissions.lock();
        self.holding.fetch_add(1, Ordering::SeqCst);
        Held(Arc::clone(self))
    }

    /// Waits until no entry is on its way: all that this member has proposed has its result, and is applied if it was committed.
    pub(crate) async fn landed(&self) {
        loop {
            let mut landed = std::pin::pin!(self.landed.notified());
            landed.as_mut().enable();
            if self.entries_on_way.load(Ordering::SeqCst) == 0 {
                return;
            }
            landed.await;
        }
    }

    fn take(&self, submissions: &mut VecDeque<Waits<S, T>>, bytes_max: usize) -> Vec<Waits<S, T>> {
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

    /// Takes those who have waited for longer than a limit: they were never proposed.
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

/// What goes into an entry, and the entry as one on its way.
type Taken<S, T> = (Vec<Waits<S, T>>, OnWay<S, T>);

/// Counts an entry as long as it is on its way.
struct OnWay<S: StateMachine, T>(Arc<Waiting<S, T>>);

impl<S: StateMachine, T> Drop for OnWay<S, T> {
    fn drop(&mut self) {
        self.0.entries_on_way.fetch_sub(1, Ordering::SeqCst);
        self.0.changed.notify_one();
        self.0.landed.notify_waiters();
    }
}

/// Holds submissions back as long as it is there.
pub(crate) struct Held<S: StateMachine, T>(Arc<Waiting<S, T>>);

impl<S: StateMachine, T> Drop for Held<S, T> {
    fn drop(&mut self) {
        self.0.holding.fetch_sub(1, Ordering::SeqCst);
        self.0.changed.notify_one();
    }
}

/// Once it is dropped, an entry has its result: nobody awaits it any more. Those who were not told when it was applied are dropped, as
/// the outcome is unknown.
struct Told<S: StateMachine, T: Instant> {
    replica: Arc<Replica<S, T>>,
    ticket: u64,
}

impl<S: StateMachine, T: Instant> Drop for Told<S, T> {
    fn drop(&mut self) {
        drop(self.replica.awaiting.take(self.ticket));
    }
}

/// Proposes what waits, until the group stops.
pub(crate) async fn run<R: AsyncRuntime, S: StateMachine>(group: Arc<Shared<R, S>>) {
    let waiting = Arc::clone(&group.waiting);
    while !group.has_stopped() {
        let GroupSettings { entry_bytes_max, entries_on_way_max, .. } = group.settings;
        match waiting.take_entry(entry_bytes_max, entries_on_way_max) {
            Some((taken, on_way)) => propose(&group, taken, on_way).await,
            None => waiting.changed.notified().await,
        }
    }
    let left = waiting.take(&mut waiting.submissions.lock(), usize::MAX);
    for waits in left {
        let (member, id) = (group.member, group.replica.group);
        if let Some(awaits) = waits.awaits {
            awaits.refuse(&group.replica.state, SubmitError::NotLeader { member, group: id, leader: None });
        }
    }
}

async fn propose<R: AsyncRuntime, S: StateMachine>(
    group: &Arc<Shared<R, S>>,
    taken: Vec<Waits<S, R::Instant>>,
    on_way: OnWay<S, R::Instant>,
) {
    let (member, id) = (group.member, group.replica.group);
    let (term, leader) = {
        let metrics = group.raft.metrics();
        let now = metrics.borrow_watched();
        (now.current_term, now.current_leader)
    };
    if leader != Some(member) {
        for awaits in taken.into_iter().filter_map(|waits| waits.awaits) {
            awaits.refuse(&group.replica.state, SubmitError::NotLeader { member, group: id, leader });
        }
        return;
    }
    group.replica.telling.leads(term);
    // Reads stay at this time until the entry is applied.
    let stamp = group.clock.stamp(term);
    let time = stamp.time;
    let requirement = group.replica.state.requirement();
    let (mut submissions, mut awaiting) = (Vec::with_capacity(taken.len()), Vec::with_capacity(taken.len()));
    for Waits { source, commands, awaits, .. } in taken {
        let touches = group.replica.state.touches_for(&commands, time);
        submissions.push(Submission { source, touches, commands });
        awaiting.push(awaits);
    }
    let ticket = group.replica.awaiting.add(awaiting, R::Instant::now());
    let told = Told { replica: Arc::clone(&group.replica), ticket };
    let on_result = move |result: ClientWriteResult<Types<R>>| {
        let _on_way = (on_way, stamp);
        if let Err(ClientWriteError::ForwardToLeader(forward)) = result {
            let leader: Option<MemberId> = forward.leader_id;
            for awaits in told.replica.awaiting.take(ticket).into_iter().flatten() {
                awaits.refuse(&told.replica.state, SubmitError::NotLeader { member, group: id, leader });
            }
        }
    };
    let responder = OnResult(Box::new(on_result));
    add(&group.counting.proposals, 1);
    let bytes = write_batch(&BatchEntry { stamp: time, requirement, submissions });
    let write = group.raft.write(Batch { bytes, ticket });
    if let Err(error) = write.with_leader(Committed::new(term)).responder(responder).await {
        tracing::debug!(group = id.0, "a proposal was dropped: {error}");
    }
}
