//! What runs beside a group: its lease follows what a quorum has acknowledged, and its log is purged.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use openraft::async_runtime::WatchReceiver;
use openraft::{AsyncRuntime, Instant, ServerState};

use crate::group::Shared;

/// Looks after a group until it stops.
pub(crate) async fn run<R: AsyncRuntime>(group: Arc<Shared<R>>) {
    let mut metrics = group.raft.metrics();
    // A lease that is extended later than it could be is shorter, and no more.
    let pause = Duration::from_millis((group.settings.heartbeat_ms / 4).max(1));
    while !group.has_stopped() {
        let applied = {
            let now = metrics.borrow_watched();
            group.leader.store(now.current_leader.map_or(0, |leader| leader.0 + 1), Ordering::SeqCst);
            let term = now.current_term;
            let leads = now.state == ServerState::Leader && now.running_state.is_ok();
            // The first entry of its own term is applied: all that others have acknowledged is there.
            let has_begun = now.last_applied.is_some_and(|last| **last.committed_leader_id() == term);
            let is_alone = now.membership_config.voter_ids().all(|voter| voter == group.member);
            let at = if is_alone { Some(R::Instant::now()) } else { now.last_quorum_acked.map(|at| *at) };
            let acknowledged = at.map(|at| group.nanoseconds(at));
            match acknowledged.filter(|_| leads && has_begun) {
                Some(at) => group.lease.extend(term, at, group.settings.lease_ms * 1_000_000),
                None => group.lease.withdraw(),
            }
            now.last_applied.map(|last| last.index)
        };
        if let Some(applied) = applied {
            purge(&group, applied).await;
        }
        if metrics.changed().await.is_err() {
            break;
        }
        R::sleep(pause).await;
    }
    group.lease.withdraw();
}

/// Purges the older half of a log that is beyond its limits. The snapshot that this needs is only a position: one is made when a member
/// needs it.
async fn purge<R: AsyncRuntime>(group: &Shared<R>, applied: u64) {
    let entries = group.log_size.entries.load(Ordering::Relaxed);
    let bytes = group.log_size.bytes.load(Ordering::Relaxed);
    if entries <= group.settings.log_entries_max && bytes <= group.settings.log_bytes_max {
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
