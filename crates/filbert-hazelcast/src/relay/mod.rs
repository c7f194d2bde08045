//! Requests that other members answer. They are forwarded in the client's name, so a client may
//! send any request to any member.
//!
//! ```text
//!  client ──► connection ── Session::route ──► answered here
//!                  ▲             │ led by another member
//!                  │             ▼
//!               Outbox        Pipe ── task ──► TCP ──► door of the leader
//!                  ▲                    │              (with the client's credentials and id,
//!                  │                    │              after a special preamble)
//!                  └── the reply as received, or as a part of a reply (Gather)
//! ```
//!
//! Each connection of a client has at most one connection to each other member. It is opened on
//! first use. It is closed with the client's connection, which releases the client's locks at that
//! member. This module must not know the meaning of requests, except for the merging in
//! `gather.rs`, nor their routes (`routing.rs`), nor how members agree on leaders.
//!
//! # Invariants
//!
//! - A forwarded request is not forwarded again: sessions of connections from `task.rs` have no
//!   [`Relays`]. A member that does not lead rejects the request.
//! - A request that no member has executed, or that may be repeated, waits until the leader is
//!   known. Then it is repeated (`held.rs`). The client is asked to retry only after some time.
//! - The requests of one connection for one partition are executed in order. Requests for one
//!   member use one connection. A request takes another route only after the requests before it are
//!   answered (`Session::held_if_busy`).
//! - Every accepted request is answered exactly once. If the connection to a member is lost, the
//!   error says whether the request may be sent again.
//! - Unanswered requests count in `write_buffer_bytes_max`. While more bytes of replies than that
//!   wait for the client, no replies are read from other members.
//! - A member without a cluster uses nothing of this.

use std::collections::HashMap;
use std::sync::Arc;

use filbert_grid::{Cluster, ClusterView, ErrorKind, Grid, PartitionId};
use filbert_wire::{CorrelationId, Message, MessageId, Uuid};

use crate::client_link::ClientLink;
use crate::config::DoorConfig;
use crate::failure::{Failure, Outcome};

pub(crate) mod announcing;
mod between;
mod following;
mod gather;
mod held;
mod listeners;
mod pipe;
mod registering;
mod task;

pub(crate) use between::between_members;
pub(crate) use gather::{Emptied, Gather};
pub(crate) use held::{RepeatableRequest, Turn};
pub(crate) use listeners::{listener_scope, registration_in};
pub(crate) use task::PREAMBLE;

use held::Held;
use listeners::Listeners;
use pipe::{Parcel, Pipe, To, Traffic};

/// The connections of one client's connection to other members.
pub(crate) struct Relays {
    cluster: Arc<dyn Cluster>,
    itself: Uuid,
    cluster_id: Uuid,
    partition_count: u32,
    view: Arc<ClusterView>,
    leads_all: bool,
    pipes: HashMap<Uuid, Arc<Pipe>>,
    traffic: Arc<Traffic>,
    /// The client's authentication, which is sent to each member.
    authentication: Vec<u8>,
    listeners: Listeners,
    /// The correlation id of this side's own last request.
    own_correlation: i64,
    /// The number of cluster changes that were handled.
    changes_seen: u64,
    /// Requests that are held until the leader is known.
    held: Arc<Held>,
    /// The turn of the held request that is being repeated.
    turn: Option<Turn>,
    /// Whether all held requests are tried, although the view has not changed.
    is_tick: bool,
    /// The number of cluster changes at which this connection was last registered to be woken.
    woken_after: Option<u64>,
}

impl Drop for Relays {
    fn drop(&mut self) {
        self.held.close();
        for pipe in self.pipes.values() {
            pipe.close();
        }
    }
}

impl Relays {
    /// Creates the state without open connections. The caller has handled `changes_seen` changes of
    /// the cluster.
    pub(crate) fn new(
        grid: &Grid,
        link: &Arc<ClientLink>,
        config: &Arc<DoorConfig>,
        cluster: Arc<dyn Cluster>,
        authentication: Vec<u8>,
        changes_seen: u64,
    ) -> Self {
        let view = cluster.view();
        let traffic = Arc::new(Traffic::new(link.clone(), config.clone()));
        let mut relays = Self {
            cluster,
            itself: grid.member_uuid(),
            cluster_id: grid.cluster_id(),
            partition_count: grid.partition_count(),
            view,
            leads_all: false,
            pipes: HashMap::new(),
            listeners: Listeners::new(traffic.clone()),
            traffic,
            authentication,
            own_correlation: i64::MIN,
            changes_seen,
            held: Arc::new(Held::new(link.clone(), config.relay_hold_max, grid.pending_requests().clone())),
            turn: None,
            is_tick: false,
            woken_after: None,
        };
        relays.update_leads_all();
        relays
    }

    /// Bytes of unanswered requests.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.traffic.bytes().saturating_add(self.held.bytes())
    }

    /// Whether requests for locks or for journal events are waiting at other members.
    pub(crate) fn waits(&self) -> bool {
        self.traffic.waits()
    }

    /// Bytes of requests that are held until the leader is known.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held.bytes()
    }

    /// Refreshes the view. Called before each batch of requests.
    pub(crate) fn refresh(&mut self) {
        let view = self.cluster.view();
        if !Arc::ptr_eq(&self.view, &view) {
            self.view = view;
            self.update_leads_all();
        }
    }

    fn update_leads_all(&mut self) {
        let leads = self.view.leaders.iter().filter(|leader| **leader == Some(self.itself)).count();
        self.leads_all = leads == self.partition_count as usize;
    }

    /// Sends the requests that the batch has queued.
    pub(crate) fn flush(&self) {
        for pipe in self.pipes.values() {
            pipe.filled.notify_one();
        }
    }

    /// Signals that the client has read replies, so more may be read from other members.
    pub(crate) fn drained(&self) {
        self.traffic.drained.notify_waiters();
    }

    /// The UUID of this member.
    #[inline]
    pub(crate) fn itself(&self) -> Uuid {
        self.itself
    }

    /// The view of the last refresh.
    #[inline]
    pub(crate) fn view(&self) -> &ClusterView {
        &self.view
    }

    /// Whether this member leads all partitions.
    #[inline]
    pub(crate) fn leads_all(&self) -> bool {
        self.leads_all
    }

    #[inline]
    pub(crate) fn partition_count(&self) -> u32 {
        self.partition_count
    }

    /// The member that has not answered requests for a partition yet.
    pub(crate) fn busy_at(&self, partition: PartitionId) -> Option<Uuid> {
        self.traffic.busy_at(partition)
    }

    /// All other members.
    pub(crate) fn others(&self) -> Vec<Uuid> {
        let others = self.view.members.iter().map(|member| member.uuid);
        others.filter(|member| *member != self.itself).collect()
    }

    /// The connection to a member. Opens it if there is none.
    fn pipe(&mut self, member: Uuid) -> Result<Arc<Pipe>, Box<Failure>> {
        if let Some(pipe) = self.pipes.get(&member).filter(|pipe| !pipe.is_broken()) {
            return Ok(pipe.clone());
        }
        let Some(of) = self.view.member(member) else {
            let text = format!("member {member} is not in the cluster, the request can be sent again");
            return Err(Failure::new(ErrorKind::NotLeader, text));
        };
        if self.pipes.contains_key(&member) {
            // The listeners of the lost connection are lost with it.
            self.listeners.forget(|other| other != member);
            self.traffic.set_broken();
        }
        let pipe = Arc::new(Pipe::new(self.traffic.clone(), member));
        let task = task::Task {
            pipe: pipe.clone(),
            host: of.host.clone(),
            port: of.port,
            authentication: self.authentication.clone(),
            cluster: self.cluster_id,
        };
        tokio::spawn(task.run());
        self.pipes.insert(member, pipe.clone());
        Ok(pipe)
    }

    fn push(&mut self, member: Uuid, parcel: Parcel<'_>) -> Outcome {
        self.pipe(member)?.push(parcel)
    }

    fn next_own_correlation(&mut self) -> CorrelationId {
        // Clients count up from one. The lowest number is the id of pings.
        self.own_correlation = self.own_correlation.wrapping_add(1).min(-2);
        CorrelationId(self.own_correlation)
    }

    /// The partitions by leader. This member comes first.
    pub(crate) fn partitions_by_leader(&self) -> Result<Vec<(Uuid, Vec<PartitionId>)>, Box<Failure>> {
        let mut by_leader = vec![(self.itself, Vec::new())];
        for partition in (0..self.partition_count).map(PartitionId) {
            let Some(leader) = self.view.leader(partition).map(|member| member.uuid) else {
                let text = format!("no member is known to lead partition {partition}, the request can be sent again");
                return Err(Failure::new(ErrorKind::NotLeader, text));
            };
            match by_leader.iter_mut().find(|(member, _)| *member == leader) {
                Some((_, led)) => led.push(partition),
                None => by_leader.push((leader, vec![partition])),
            }
        }
        by_leader.retain(|(_, led)| !led.is_empty());
        Ok(by_leader)
    }

    /// Forwards a request to a member.
    ///
    /// # Errors
    /// The request cannot be queued for that member.
    pub(crate) fn forward(
        &mut self,
        message: &Message<'_>,
        bytes: &[u8],
        member: Uuid,
        partition: Option<PartitionId>,
    ) -> Outcome {
        let (id, correlation) = (message.id(), message.correlation_id());
        let repeatable = self.repeatable(message, partition, Some(member));
        let pipe = self.pipe(member)?;
        if let Some(partition) = partition.filter(|partition| self.held.has(*partition)) {
            // The connection was lost just now, with other requests of the partition.
            self.hold_behind(message, partition);
            return Ok(());
        }
        pipe.push(Parcel { id, correlation, partition, bytes, to: To::Client(repeatable) })
    }

    /// Requests a part of a reply from a member.
    pub(crate) fn ask(
        &mut self,
        member: Uuid,
        id: MessageId,
        correlation: CorrelationId,
        bytes: &[u8],
        gather: &Arc<Gather>,
    ) {
        let taker = gather.clone();
        let to = To::Taker(Box::new(move |answer, bytes| taker.take(answer.map(|_| bytes.to_vec()))));
        if let Err(failure) = self.push(member, Parcel { id, correlation, partition: None, bytes, to }) {
            gather.take(Err(failure));
        }
    }

    /// As [`Relays::ask`]. An unreachable member is not a failure.
    pub(crate) fn ask_leniently(
        &mut self,
        member: Uuid,
        id: MessageId,
        correlation: CorrelationId,
        bytes: &[u8],
        gather: &Arc<Gather>,
    ) {
        let taker = gather.clone();
        let to = To::Taker(Box::new(move |answer, bytes| match answer {
            Ok(_) => taker.take(Ok(bytes.to_vec())),
            Err(_) => taker.take_nothing(),
        }));
        if self.push(member, Parcel { id, correlation, partition: None, bytes, to }).is_err() {
            gather.take_nothing();
        }
    }
}
