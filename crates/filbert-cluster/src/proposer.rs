//! Submissions on their way into the log: what arrives while entries are on their way is merged into the next one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use openraft::AsyncRuntime;
use openraft::async_runtime::WatchReceiver;
use openraft::errors::ClientWriteError;
use openraft::raft::ClientWriteResult;
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::group::Shared;
use crate::types::{Batch, Committed, OnResult, Types};
use crate::wire::{Answer, Source, Submission, write_batch};
use crate::{MemberId, SubmitError};

pub(crate) type AnswerSender = oneshot::Sender<Result<Answer, SubmitError>>;

/// What waits to be proposed.
#[derive(Default)]
pub(crate) struct Waiting {
    submissions: Mutex<VecDeque<(Source, Bytes, AnswerSender)>>,
    bytes: AtomicUsize,
    entries_on_way: AtomicUsize,
    changed: Notify,
}

impl Waiting {
    /// Adds a submission; `false` beyond the limit.
    pub(crate) fn push(&self, source: Source, commands: Bytes, answer: AnswerSender, bytes_max: usize) -> bool {
        let added = commands.len() + size_of::<Submission>();
        if self.bytes.fetch_add(added, Ordering::SeqCst) + added > bytes_max {
            self.bytes.fetch_sub(added, Ordering::SeqCst);
            return false;
        }
        self.submissions.lock().push_back((source, commands, answer));
        self.changed.notify_one();
        true
    }

    /// Adds commands of the leader's own, whose answer nobody waits for; `false` beyond the limit.
    pub(crate) fn propose(&self, commands: Bytes, bytes_max: usize) -> bool {
        commands.is_empty() || self.push(Source::Plain, commands, oneshot::channel().0, bytes_max)
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    fn take(&self, bytes_max: usize) -> Vec<(Source, Bytes, AnswerSender)> {
        let mut submissions = self.submissions.lock();
        let (mut taken, mut bytes) = (Vec::new(), 0);
        while bytes < bytes_max
            && let Some(submission) = submissions.pop_front()
        {
            bytes += submission.1.len() + size_of::<Submission>();
            taken.push(submission);
        }
        self.bytes.fetch_sub(bytes, Ordering::SeqCst);
        taken
    }
}

/// Counts an entry as long as it is on its way.
struct OnWay(Arc<Waiting>);

impl Drop for OnWay {
    fn drop(&mut self) {
        self.0.entries_on_way.fetch_sub(1, Ordering::SeqCst);
        self.0.changed.notify_one();
    }
}

/// Proposes what waits, until the group stops.
pub(crate) async fn run<R: AsyncRuntime>(group: Arc<Shared<R>>) {
    let waiting = Arc::clone(&group.waiting);
    while !group.has_stopped() {
        let is_full = waiting.entries_on_way.load(Ordering::SeqCst) >= group.settings.entries_on_way_max.max(1);
        let taken = if is_full { Vec::new() } else { waiting.take(group.settings.entry_bytes_max) };
        if taken.is_empty() {
            waiting.changed.notified().await;
            continue;
        }
        waiting.entries_on_way.fetch_add(1, Ordering::SeqCst);
        let on_way = OnWay(Arc::clone(&waiting));
        propose(&group, taken, on_way).await;
    }
}

impl Waiting {
    pub(crate) fn wake(&self) {
        self.changed.notify_one();
    }
}

async fn propose<R: AsyncRuntime>(group: &Arc<Shared<R>>, taken: Vec<(Source, Bytes, AnswerSender)>, on_way: OnWay) {
    let (member, id) = (group.member, group.replica.group);
    let (term, leader) = {
        let metrics = group.raft.metrics();
        let now = metrics.borrow_watched();
        (now.current_term, now.current_leader)
    };
    if leader != Some(member) {
        for (_, _, sender) in taken {
            let _gone = sender.send(Err(SubmitError::NotLeader { member, group: id, leader }));
        }
        return;
    }
    // Reads stay at this time until the entry is applied.
    let stamp = group.clock.stamp(term);
    let time = stamp.time;
    let (mut submissions, mut senders) = (Vec::with_capacity(taken.len()), Vec::with_capacity(taken.len()));
    for (source, commands, sender) in taken {
        let touches = group.replica.touches_for(&commands, time);
        submissions.push(Submission { source, touches, commands });
        senders.push(sender);
    }
    let on_result = move |result: ClientWriteResult<Types<R>>| {
        let _on_way = (on_way, stamp);
        match result {
            Ok(written) => senders.into_iter().zip(written.data).for_each(|(sender, answer)| {
                let answer = match answer {
                    Answer::Refused(why) => Err(SubmitError::Origin(why)),
                    answer => Ok(answer),
                };
                // Who asked may have gone.
                let _gone = sender.send(answer);
            }),
            Err(ClientWriteError::ForwardToLeader(forward)) => {
                let leader: Option<MemberId> = forward.leader_id;
                for sender in senders {
                    let _gone = sender.send(Err(SubmitError::NotLeader { member, group: id, leader }));
                }
            }
            // The senders are dropped: the outcome is unknown.
            Err(_) => {}
        }
    };
    let responder = OnResult(Box::new(on_result));
    let write = group.raft.write(Batch(write_batch(time, &submissions)));
    if let Err(error) = write.with_leader(Committed::new(term)).responder(responder).await {
        tracing::debug!(group = id.0, "a proposal was dropped: {error}");
    }
}
