//! The orders of operators to a cluster, and the counters of this member. `view.rs` computes the
//! status that operators see.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use filbert_cluster::{BootRuntime, Group, MemberId, StateMachine, TransportError};
use filbert_grid::{
    ClusterCounters, ClusterOrder, ClusterStatus, GridError, GroupStatus, LinkCounters, MemberState, OrderDone,
};
use filbert_links::{Channel, Links};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout_at};

use crate::ending::{Ending, EndingSender, end};
use crate::messages::Request;
use crate::partitions::PartitionGroup;
use crate::recovery::Recovery;
use crate::registry::Command;
use crate::registry_client::RegistryClient;
use crate::view::Views;

/// The pause between two checks of a condition.
const PAUSE: Duration = Duration::from_millis(50);
/// The time within which groups of a dead leader have elected another one.
const FAILOVER_MAX: Duration = Duration::from_secs(10);

/// The services of this member for operators.
#[derive(Clone)]
pub(crate) struct Administration {
    pub(crate) member: MemberId,
    pub(crate) views: Arc<Views>,
    pub(crate) registry_client: Arc<RegistryClient>,
    pub(crate) groups: Arc<Vec<PartitionGroup>>,
    pub(crate) links: Arc<Links>,
    pub(crate) ending: Arc<EndingSender>,
    pub(crate) recovery: Arc<Recovery>,
    /// A member that answers within this time is alive.
    pub(crate) lease: Duration,
    /// The runtime in which orders are carried out.
    pub(crate) runtime: Handle,
}

impl Administration {
    /// The counters of this member's groups and links.
    pub(crate) fn counters(&self) -> ClusterCounters {
        let mut counters = ClusterCounters::default();
        self.groups.iter().for_each(|group| count(group, &mut counters));
        count(self.registry_client.group(), &mut counters);
        let statistics = self.links.statistics();
        let links = statistics.kinds.iter().map(|(kind, of)| LinkCounters {
            kind,
            connections: of.dialled.saturating_add(of.accepted),
            failures: of.failures,
            bytes_sent: of.bytes_sent,
            bytes_received: of.bytes_received,
        });
        ClusterCounters { links: links.collect(), ..counters }
    }

    /// Carries out an order in the background, and calls `done` with the result.
    pub(crate) fn order(&self, order: ClusterOrder, done: OrderDone) {
        let this = self.clone();
        self.runtime.spawn(async move { done(this.carry_out(order).await) });
    }
}

/// Adds the status and the counters of a group.
fn count<S: StateMachine>(group: &Group<BootRuntime, S>, to: &mut ClusterCounters) {
    let (status, done) = (group.status(), group.counters());
    to.leads += usize::from(group.has_lease().is_some());
    to.votes += usize::from(status.voters.contains(&group.member()));
    to.log_entries += status.log_entries as u64;
    to.log_bytes += status.log_bytes as u64;
    to.waiting_bytes += status.waiting_bytes as u64;
    to.behind_entries += status.committed.unwrap_or(0).saturating_sub(status.applied.unwrap_or(0));
    to.proposals += done.proposals;
    to.elections_won += done.elections_won;
    to.snapshot_bytes_sent += done.snapshot_bytes_sent;
    to.snapshot_bytes_received += done.snapshot_bytes_received;
}

fn refused(why: String) -> GridError {
    GridError::IllegalState(why)
}

impl Administration {
    async fn carry_out(&self, order: ClusterOrder) -> Result<String, GridError> {
        match order {
            ClusterOrder::Leave(id) => self.leave(MemberId(id)).await.map(|()| String::new()),
            ClusterOrder::Remove(id) => self.remove(MemberId(id)).await.map(|()| String::new()),
            ClusterOrder::Recover { accepts_data_loss } => {
                let recovered = self.recovery.recover(accepts_data_loss).await;
                recovered.map_err(|error| refused(error.to_string()))
            }
        }
    }

    fn check_known(&self, id: MemberId) -> Result<(), GridError> {
        let state = self.registry_client.registry().state();
        if state.member(id).is_some() {
            return Ok(());
        }
        let known: Vec<String> = state.members().map(|(id, _)| id.to_string()).collect();
        let text = format!("there is no member {id}, expected one of {}", known.join(", "));
        Err(GridError::IllegalArgument(text))
    }

    /// Orders a member to leave in order, as SIGTERM does.
    async fn leave(&self, id: MemberId) -> Result<(), GridError> {
        self.check_known(id)?;
        let state = self.registry_client.registry().state();
        let others =
            state.members().filter(|(other, facts)| *other != id && !facts.is_lite && !state.is_leaving(*other));
        let holds = state.member(id).is_some_and(|facts| !facts.is_lite);
        if holds && others.count() == 0 {
            return Err(refused(format!(
                "member {id} is the last one that holds data, and what it holds would be lost: end its process if that is meant"
            )));
        }
        self.have_leaders(&self.views.status(self.member), "leaving in order needs all of them")?;
        if id == self.member {
            end(&self.ending, Ending::LeaveRequested);
            return Ok(());
        }
        let answer = self.links.call(id, Channel::Requests, Request::Leave.write()).await;
        answer.map(|_| ()).map_err(|error| {
            refused(format!("member {id} cannot be asked to leave: {error}; one that is dead is to be removed"))
        })
    }

    fn have_leaders(&self, status: &ClusterStatus, why: &str) -> Result<(), GridError> {
        let lost: Vec<String> = status.lost_groups().map(GroupStatus::name).collect();
        match lost.as_slice() {
            [] => Ok(()),
            lost => Err(refused(format!("these groups have no leader: {}; {why}", lost.join(", ")))),
        }
    }

    /// Removes a dead member at once.
    async fn remove(&self, id: MemberId) -> Result<(), GridError> {
        self.check_known(id)?;
        if id == self.member || self.answers(id).await {
            return Err(refused(format!("member {id} is alive: have it leave, or end its process first")));
        }
        let status = self.without_leader(id).await;
        self.have_leaders(&status, "they have no majority without more of their members, and nobody may be taken out")?;
        // The members that answer, without the dead one.
        let there: BTreeSet<u64> = status
            .members
            .iter()
            .filter(|member| member.id != id.0 && member.state != MemberState::Unreachable)
            .map(|member| member.id)
            .collect();
        for group in &status.groups {
            let left = group.voters.keys().filter(|voter| there.contains(voter)).count();
            if left < group.majority() {
                let (name, voters) = (group.name(), group.voters.len());
                let text = format!(
                    "group {name} would be left with {left} of {voters} voters, expected at least {}",
                    group.majority()
                );
                return Err(refused(text));
            }
        }
        tracing::warn!("member {id} is taken out by an operator's order");
        self.registry_client.execute(Command::Remove { member: id.0 }).await.map_err(GridError::from).map(|_| ())
    }

    /// Whether a member answers within the time of a lease.
    async fn answers(&self, id: MemberId) -> bool {
        let until = Instant::now() + self.lease;
        while Instant::now() < until {
            match timeout_at(until, self.links.call(id, Channel::Requests, Request::Ping.write())).await {
                // A member that refuses is alive.
                Ok(Ok(_) | Err(TransportError::Refused { .. })) => return true,
                // The links do not dial again immediately after a failure.
                Ok(Err(_)) => sleep(PAUSE).await,
                Err(_) => return false,
            }
        }
        false
    }

    /// Returns the status once the dead member leads no group any more, or at the latest after the
    /// time that a failover takes.
    async fn without_leader(&self, id: MemberId) -> ClusterStatus {
        let until = Instant::now() + FAILOVER_MAX;
        loop {
            let status = self.views.status(self.member);
            let is_led = |group: &GroupStatus| group.leader.is_some_and(|leader| leader != id.0);
            if status.groups.iter().all(is_led) || Instant::now() >= until {
                return status;
            }
            sleep(PAUSE).await;
        }
    }
}
