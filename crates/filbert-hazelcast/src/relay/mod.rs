//! Requests that other members answer: sent on to them in the client's name, so that a client may ask any member for anything.
//!
//! ```text
//!  client ──► connection ── Session::way ──► answered here
//!                  ▲             │ led elsewhere
//!                  │             ▼
//!               Outbox        Pipe ── task ──► TCP ──► door of the member that leads
//!                  ▲                    │               (the client's credentials and id, a preamble of its own)
//!                  └── the answer as it is, or as a part of one (Gather)
//! ```
//!
//! Each connection of a client has at most one way to each other member, opened when it is first needed and ended with the
//! connection, by which the client's locks there end. This module must not know what a request means, beyond the tables in
//! `route.rs` and the merging in `gather.rs`, nor how it is agreed who leads.
//!
//! # Invariants
//!
//! - A request that was sent on is not sent on again: connections of `task.rs` have no [`Relays`]. A member that does not lead says so.
//! - What nobody has made, or may be made twice, waits until it is known who leads, and is made again (`held.rs`). The client is told
//!   to try again after a while only.
//! - Requests of one connection about one partition are done in their order. Those for one member go one way; a request goes
//!   another way only when those before it are answered (`Session::put_off`).
//! - Every request that was taken is answered once. When the way to a member is lost, the error says whether the request may be sent again.
//! - Requests that are not answered count in `write_buffer_bytes_max`, and while so many bytes of replies wait, none are read
//!   from other members.
//! - Nothing of this is there for a member without a cluster.

use std::collections::HashMap;
use std::sync::Arc;

use filbert_grid::{Cluster, ClusterView, ErrorKind, PartitionId};
use filbert_wire::{CorrelationId, Message, MessageId, Request, Uuid, table::map::remove_entry_listener};

use crate::failure::{Failure, Outcome};
use crate::session::Session;

mod gather;
mod held;
mod holding;
mod listeners;
mod pipe;
mod route;
pub(crate) mod scoped;
mod sending;
pub(crate) mod standing;
mod task;

pub(crate) use held::Again;
pub(crate) use holding::Waiting;
pub(crate) use route::Way;
pub(crate) use task::PREAMBLE;

use gather::Gather;
use held::{Held, Turn};
use listeners::{At, Listeners, Registered};
use pipe::{Parcel, Pipe, To, Traffic};

/// The ways of one client's connection to other members.
pub(crate) struct Relays {
    cluster: Arc<dyn Cluster>,
    itself: Uuid,
    cluster_id: Uuid,
    partition_count: u32,
    view: Arc<ClusterView>,
    leads_all: bool,
    pipes: HashMap<Uuid, Arc<Pipe>>,
    traffic: Arc<Traffic>,
    /// The client's authentication, to be repeated at each member.
    authentication: Vec<u8>,
    listeners: Listeners,
    /// The last correlation id of a request of this side's own.
    own_correlation: i64,
    /// How many changes of the cluster were looked at.
    changes_seen: u64,
    /// Requests that wait until it is known who leads.
    held: Arc<Held>,
    /// The one of them that is being made again.
    turn: Option<Turn>,
    /// Whether all of them are tried, though the view has not changed.
    is_tick: bool,
    /// The change after which this connection is woken for them.
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
    /// None are open yet.
    pub(crate) fn new(session: &Session, cluster: Arc<dyn Cluster>, authentication: Vec<u8>) -> Self {
        let view = cluster.view();
        let traffic = Arc::new(Traffic::new(session.link.clone(), session.config.clone()));
        let mut relays = Self {
            cluster,
            itself: session.grid.member_uuid(),
            cluster_id: session.grid.cluster_id(),
            partition_count: session.grid.partition_count(),
            view,
            leads_all: false,
            pipes: HashMap::new(),
            listeners: Listeners::new(traffic.clone()),
            traffic,
            authentication,
            own_correlation: i64::MIN,
            changes_seen: session.views.change_count(),
            held: Arc::new(Held::new(session.link.clone(), session.config.relay_hold_max)),
            turn: None,
            is_tick: false,
            woken_after: None,
        };
        relays.look_at_view();
        relays
    }

    /// Bytes of requests that are not answered.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.traffic.bytes().saturating_add(self.held.bytes())
    }

    /// Whether requests that wait for others are on their way.
    pub(crate) fn waits(&self) -> bool {
        self.traffic.waits()
    }

    /// Bytes of requests that wait until it is known who leads.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held.bytes()
    }

    /// Looks who leads what, before a batch of requests.
    pub(crate) fn refresh(&mut self) {
        let view = self.cluster.view();
        if !Arc::ptr_eq(&self.view, &view) {
            self.view = view;
            self.look_at_view();
        }
    }

    fn look_at_view(&mut self) {
        let leads = self.view.leaders.iter().filter(|leader| **leader == Some(self.itself)).count();
        self.leads_all = leads == self.partition_count as usize;
    }

    /// Sends what the batch has pushed.
    pub(crate) fn flush(&self) {
        for pipe in self.pipes.values() {
            pipe.filled.notify_one();
        }
    }

    pub(crate) fn way(&self, message: &Message<'_>) -> Way {
        let (view, itself, leads_all, partition_count) =
            (&*self.view, self.itself, self.leads_all, self.partition_count);
        route::Map { view, itself, leads_all, partition_count }.way(message)
    }

    /// The client has taken replies: more may come.
    pub(crate) fn drained(&self) {
        self.traffic.drained.notify_waiters();
    }

    fn others(&self) -> Vec<Uuid> {
        let others = self.view.members.iter().map(|member| member.uuid);
        others.filter(|member| *member != self.itself).collect()
    }

    /// The way to a member, opened if there is none.
    fn pipe(&mut self, member: Uuid) -> Result<Arc<Pipe>, Box<Failure>> {
        if let Some(pipe) = self.pipes.get(&member).filter(|pipe| !pipe.is_broken()) {
            return Ok(pipe.clone());
        }
        let Some(of) = self.view.member(member) else {
            let text = format!("member {member} is not in the cluster, the request can be sent again");
            return Err(Failure::new(ErrorKind::NotLeader, text));
        };
        if self.pipes.contains_key(&member) {
            // What was registered by the way that was lost has gone with it.
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
        // Clients count up from one; the lowest number is that of pings.
        self.own_correlation = self.own_correlation.wrapping_add(1).min(-2);
        CorrelationId(self.own_correlation)
    }

    /// The partitions by the members that lead them, this one first.
    fn partitions_by_leader(&self) -> Result<Vec<(Uuid, Vec<PartitionId>)>, Box<Failure>> {
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

    /// Has every other member have a listener that this one has.
    fn register_at(&mut self, member: Uuid, gather: Option<&Arc<Gather>>, of: ToRegister<'_>) {
        let ToRegister { local, id, correlation, request, map, standing } = of;
        let pipe = match self.pipe(member) {
            Ok(pipe) => pipe,
            Err(failure) => {
                if let Some(standing) = &standing {
                    standing.take(None);
                }
                if let Some(gather) = gather {
                    gather.take(Err(failure));
                }
                return;
            }
        };
        let (weak, undo_correlation) = (Arc::downgrade(&pipe), self.next_own_correlation());
        let undo = move |map: &str, there: Uuid| {
            if let Some(pipe) = weak.upgrade() {
                // If it cannot be sent, the way is lost, and the listener with it.
                _ = remove_there(&pipe, undo_correlation, map, there);
                pipe.filled.notify_one();
            }
        };
        let taker = self.listeners.taker(local, member, gather.cloned(), undo, map.to_owned());
        let to = To::Taker(match &standing {
            Some(standing) => standing.clone().taker(taker),
            None => taker,
        });
        let parcel = Parcel { id, correlation, partition: None, bytes: request, to };
        let Err(failure) = pipe.push(parcel) else { return };
        if let Some(standing) = standing {
            standing.take(None);
        }
        if let Some(gather) = gather {
            gather.take(Err(failure));
        }
    }

    /// Asks a member for a part of a reply.
    fn ask(&mut self, member: Uuid, id: MessageId, correlation: CorrelationId, bytes: &[u8], gather: &Arc<Gather>) {
        let taker = gather.clone();
        let to = To::Taker(Box::new(move |answer, bytes| taker.take(answer.map(|_| bytes.to_vec()))));
        if let Err(failure) = self.push(member, Parcel { id, correlation, partition: None, bytes, to }) {
            gather.take(Err(failure));
        }
    }

    /// As [`Relays::ask`]; that the member cannot be asked is no failure.
    fn ask_leniently(
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

    /// Removes a listener at all other members.
    fn unregister(&mut self, registered: &Registered) {
        for (member, at) in &registered.at {
            let At::There(there) = at else { continue };
            let correlation = self.next_own_correlation();
            if let Some(pipe) = self.pipes.get(member) {
                // As above.
                _ = remove_there(pipe, correlation, &registered.map, *there);
            }
        }
    }
}

/// A listener that other members are to have.
struct ToRegister<'a> {
    local: Uuid,
    id: MessageId,
    correlation: CorrelationId,
    request: &'a [u8],
    map: &'a str,
    /// For what is no listener but a query cache that others stand by for.
    standing: Option<Arc<standing::Asked>>,
}

fn remove_there(pipe: &Pipe, correlation: CorrelationId, map: &str, there: Uuid) -> Outcome {
    let mut bytes = Vec::new();
    remove_entry_listener::Request { name: map, registration_id: there }.encode(correlation, -1, &mut bytes);
    let id = remove_entry_listener::ID;
    pipe.push(Parcel { id, correlation, partition: None, bytes: &bytes, to: To::Nobody })
}
