//! The background task of a group: extends its lease from the acknowledgements of a quorum, records
//! reads that keep entries alive in the log, and purges the log.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use openraft::async_runtime::WatchReceiver;
use openraft::{AsyncRuntime, Instant, RaftMetrics, ServerState};

use crate::counters::add;
use crate::network::PAGE_TRIES_MAX;
use crate::shared::Shared;
use crate::state_machine::StateMachine;
use crate::types::Types;
use crate::{MemberId, SubmitError};

/// The maximum number of entries of one map in one partition that are recorded at a time.
const TOUCHES_MAX: usize = 256;

/// Maintains a group until it stops.
pub(crate) async fn run<R: AsyncRuntime, S: StateMachine>(group: Arc<Shared<R, S>>) {
    let mut metrics = group.raft.metrics();
    let rest = Duration::from_millis(group.settings.heartbeat_ms.max(1));
    // A lease that is extended late is only shorter.
    let pause = Duration::from_millis((group.settings.heartbeat_ms / 4).max(1));
    let touch_pause = Duration::from_millis((group.settings.lease_ms / 2).max(1));
    let mut touched = R::Instant::now();
    let mut begun_term = 0;
    while !group.has_stopped() {
        let (leading, led_term, applied) = {
            let now = metrics.borrow_watched();
            group.leader.store(now.current_leader.map_or(0, |leader| leader.0 + 1), Ordering::SeqCst);
            let led_term = if now.state == ServerState::Leader { now.current_term } else { 0 };
            (leading(&group, &now), led_term, now.last_applied.map(|last| last.index))
        };
        match leading {
            Some((term, acknowledged_ns)) => {
                if begun_term < term {
                    group.clock.begin_term(term);
                    group.replica.state.leadership_gained();
                    group.replica.leading.store(term, Ordering::SeqCst);
                    begun_term = term;
                    add(&group.counting.elections_won, 1);
                }
                let ended_ns = group.lease.extend(term, acknowledged_ns, group.settings.lease_ms * 1_000_000);
                // The state machine may have seen the end of the lease until now.
                if ended_ns <= group.nanoseconds(R::Instant::now()) {
                    group.replica.state.lease_gained();
                }
            }
            None => group.lease.withdraw(),
        }
        let begun = group.replica.leading.load(Ordering::SeqCst);
        if begun != 0 && begun != led_term {
            group.replica.leading.store(0, Ordering::SeqCst);
            let leader = group.leader.load(Ordering::SeqCst).checked_sub(1).map(MemberId);
            group.replica.state.leadership_lost(leader);
        }
        end_vote_limit(&group);
        answer_late(&group);
        if touched.elapsed() >= touch_pause && group.lease.check(group.nanoseconds(R::Instant::now())).is_some() {
            touched = R::Instant::now();
            // Refused if too many submissions wait: retried at the next turn.
            let _later = group.waiting.propose(touches(&group), group.settings.waiting_bytes_max);
        }
        drop_abandoned(&group);
        if let Some(applied) = applied {
            purge(&group, applied).await;
        }
        // Not at every change: under load there are thousands. And not without a change: an idle
        // group sleeps.
        R::sleep(pause).await;
        let _changed = R::select2(metrics.changed(), R::sleep(rest)).await;
    }
    group.lease.withdraw();
    if group.replica.leading.swap(0, Ordering::SeqCst) != 0 {
        group.replica.state.leadership_lost(None);
    }
    drop(group.replica.awaiting.take_all());
}

/// Lets this member vote and stand for election once its log has come far enough.
fn end_vote_limit<R: AsyncRuntime, S: StateMachine>(group: &Shared<R, S>) {
    let last = group.log.last().map(|last| last.index);
    if group.vote_limit.end(last, group.transport.epoch()) {
        group.raft.runtime_config().elect(true);
    }
}

/// Answers waiters that have waited for longer than a failover takes: a leader that is cut off
/// keeps its entries for as long as it is cut off.
fn answer_late<R: AsyncRuntime, S: StateMachine>(group: &Shared<R, S>) {
    let limit = Duration::from_millis(group.settings.answer_ms_max);
    let now = R::Instant::now();
    // The outcome of entries in the log is unknown. Waiting submissions were never proposed.
    drop(group.replica.awaiting.take_older(now, limit));
    let (member, id) = (group.member, group.replica.group);
    for awaits in group.waiting.take_older(now, limit) {
        awaits.refuse(&group.replica.state, SubmitError::NotLeader { member, group: id, leader: None });
    }
}

/// Drops the received pages of a snapshot that no member sends any more. They take memory, and
/// other snapshots may wait for this memory.
fn drop_abandoned<R: AsyncRuntime, S: StateMachine>(group: &Shared<R, S>) {
    let now = group.nanoseconds(R::Instant::now());
    // A sender gives up after that time, and the next page may have waited for its rate limit.
    let settings = &group.settings;
    let sending = settings.request_timeout().saturating_mul(PAGE_TRIES_MAX + 1);
    let page_bytes = settings.page_bytes.saturating_add(settings.waiting_bytes_max) as u64;
    let pause = Duration::from_millis(page_bytes.saturating_mul(1_000) / settings.snapshot_bytes_per_s_max.max(1));
    let limit_ns = u64::try_from(sending.saturating_add(pause).as_nanos()).unwrap_or(u64::MAX);
    let mut taking = group.taking.lock();
    if taking.as_ref().is_some_and(|taking| now.saturating_sub(taking.last_ns) > limit_ns) {
        let abandoned = taking.take();
        drop(taking);
        drop(abandoned);
    }
}

/// Returns the term in which this member leads and may serve reads, and the time at which the
/// requests that a quorum has acknowledged were sent, in nanoseconds of the group's clock.
fn leading<R: AsyncRuntime, S: StateMachine>(group: &Shared<R, S>, now: &RaftMetrics<Types<R>>) -> Option<(u64, u64)> {
    let term = now.current_term;
    let leads = now.state == ServerState::Leader && now.running_state.is_ok();
    // The first entry of its own term is applied: all changes that earlier leaders have
    // acknowledged are applied.
    let has_begun = now.last_applied.is_some_and(|last| **last.committed_leader_id() == term);
    if !leads || !has_begun {
        return None;
    }
    let voters: &[BTreeSet<MemberId>] = now.membership_config.membership().get_joint_config();
    let is_alone = voters.iter().flatten().all(|voter| *voter == group.member);
    let acknowledged_ns = if is_alone {
        group.clock.promise();
        group.nanoseconds(R::Instant::now())
    } else {
        group.acknowledged_ns.by_majorities(term, group.member, u64::MAX, voters)?
    };
    group.clock.grant(term, group.member, voters).then_some((term, acknowledged_ns))
}

/// The reads that must be recorded in the log: of entries that would expire before another member
/// may have become the leader.
pub(crate) fn touches<R: AsyncRuntime, S: StateMachine>(group: &Shared<R, S>) -> Bytes {
    group.replica.touches_until(group.settings.lease_ms, TOUCHES_MAX)
}

/// Purges the older half of a log that exceeds its limits. The snapshot that openraft needs for
/// this is only a position: its contents are exported when a member needs them.
async fn purge<R: AsyncRuntime, S: StateMachine>(group: &Shared<R, S>, applied: u64) {
    let entries = group.log_size.entries.load(Ordering::Relaxed);
    let bytes = group.log_size.bytes.load(Ordering::Relaxed);
    if entries <= group.settings.log_entries_max && bytes <= group.settings.log_bytes_kept {
        return;
    }
    let upto = (group.log_size.first.load(Ordering::Relaxed) + entries as u64 / 2).min(applied);
    let trigger = group.raft.trigger();
    if let Err(error) = trigger.snapshot().await {
        tracing::debug!(group = group.replica.group.0, "the log is not purged: {error}");
        return;
    }
    if let Err(error) = trigger.purge_log(upto).await {
        tracing::debug!(group = group.replica.group.0, "the log is not purged: {error}");
    }
}
