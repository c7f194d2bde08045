//! The members of a simulated cluster: start, crash and replacement, and the operations of the
//! test.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use filbert_cluster::{
    Group, GroupId, GroupSettings, MemberId, Partitions, Replicas, SharedHeartbeats, Transport, WallClock,
};
use filbert_data::PartitionId;
use filbert_store::{
    Caller, Change, Command, Encoder, Event, JournalSettings, LogCommand, MapId, MapSettings, Millis, NoObserver,
};
use openraft::AsyncRuntime;

use crate::checker::{self, Operation, Slack};
use crate::client::KEYS;
use crate::event_reports::EventReports;
use crate::invariants::Seen;
use crate::network::{End, Network};
use crate::runtime::{self, NodeId, Sim, TEST, add_node, kill, local_ms, now_ns, spawn_on};

pub const MAP: MapId = MapId(1);
pub const PARTITIONS: u32 = 4;
/// The maximum difference between the wall clocks of two members at the start of the simulation.
const WALLS_MS: i64 = 400;

/// Planted defects that the checker must find.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub reads_without_lease: bool,
    pub followers_read_as_they_are: bool,
    pub acknowledges_before_commit: bool,
    pub snapshots_forget_locks: bool,
    pub no_deduplication: bool,
    pub forgets_times: bool,
}

/// The wall clock of a member. It may jump.
struct Wall(AtomicI64);

impl WallClock for Wall {
    fn now(&self) -> Millis {
        Millis(1_700_000_000_000 + self.0.load(Ordering::SeqCst) + local_ms())
    }
}

pub struct Member {
    pub node: NodeId,
    pub groups: Vec<Group<Sim>>,
    wall: Arc<Wall>,
}

pub struct Inner {
    pub network: Network,
    pub members: Mutex<BTreeMap<MemberId, Member>>,
    pub settings: GroupSettings,
    pub history: Mutex<Vec<Operation>>,
    pub faults: Faults,
    pub stop: AtomicBool,
    /// The minimum number of voters of each group.
    pub voters_min: AtomicUsize,
    /// The latest time of a completed read, by group.
    pub read_times: Mutex<BTreeMap<u32, Millis>>,
    pub invariants: Mutex<Seen>,
    /// The changes that members have reported to listeners.
    pub event_reports: Arc<Mutex<EventReports>>,
    events: AtomicU64,
    next: AtomicU64,
    pub seed: u64,
    have_jumped: AtomicBool,
    /// The number of observed events, by name. They show that a test covers its purpose.
    pub seen: Mutex<BTreeMap<&'static str, u64>>,
}

#[derive(Clone)]
pub struct Cluster(pub Arc<Inner>);

pub async fn sleep_ms(ms: u64) {
    Sim::sleep(Duration::from_millis(ms)).await;
}

/// Waits for a condition, for at most a minute of the simulation.
pub async fn until(what: &str, is_so: impl Fn() -> bool) {
    let end = now_ns() + 60_000_000_000;
    while !is_so() {
        assert!(now_ns() < end, "waited for a minute in vain: {what}");
        sleep_ms(10).await;
    }
}

pub fn settings(groups: u32) -> GroupSettings {
    GroupSettings {
        groups,
        partitions: PARTITIONS,
        log_entries_max: 40,
        log_bytes_kept: 64 << 10,
        log_bytes_max: 128 << 10,
        waiting_bytes_max: 64 << 10,
        page_bytes: 256,
        ..GroupSettings::default()
    }
}

impl Cluster {
    pub async fn form(seed: u64, voters: u64, groups: u32, faults: Faults) -> Cluster {
        Self::form_with(seed, voters, settings(groups), faults).await
    }

    pub async fn form_with(seed: u64, voters: u64, settings: GroupSettings, faults: Faults) -> Cluster {
        let groups = settings.groups;
        let cluster = Cluster(Arc::new(Inner {
            network: Network::new(seed),
            members: Mutex::default(),
            settings,
            history: Mutex::default(),
            faults,
            stop: AtomicBool::new(false),
            voters_min: AtomicUsize::new(voters as usize),
            read_times: Mutex::default(),
            invariants: Mutex::default(),
            event_reports: Arc::default(),
            events: AtomicU64::new(0),
            next: AtomicU64::new(1),
            seed,
            have_jumped: AtomicBool::new(false),
            seen: Mutex::default(),
        }));
        cluster.network().set(|state| state.forgets_times = faults.forgets_times);
        let mut ids = BTreeSet::new();
        for _ in 0..voters {
            ids.insert(cluster.start_member().await);
        }
        for group in 0..groups {
            cluster.group(MemberId(1), group).unwrap().form(&ids).await.unwrap();
        }
        for group in 0..groups {
            cluster.make_maps(group).await;
        }
        let watcher = cluster.clone();
        drop(spawn_on(TEST, async move {
            loop {
                watcher.check_invariants();
                sleep_ms(23).await;
            }
        }));
        cluster
    }

    pub fn network(&self) -> Network {
        self.0.network.clone()
    }

    pub fn saw(&self, what: &'static str) {
        *self.0.seen.lock().unwrap().entry(what).or_default() += 1;
    }

    /// Returns the number of the next event of the history.
    pub fn event(&self) -> u64 {
        self.0.events.fetch_add(1, Ordering::SeqCst)
    }

    /// Starts a member with a new id, a clock with its own rate, and its own wall clock.
    pub async fn start_member(&self) -> MemberId {
        let id = MemberId(self.0.next.fetch_add(1, Ordering::SeqCst));
        let random = runtime::mix(self.0.seed ^ id.0);
        // Up to 4 % faster or slower.
        let node = add_node(960_000_000 + random % 80_000_001);
        let (network, settings) = (self.0.network.clone(), self.0.settings.clone());
        let replicas = Arc::new(Replicas::new(id));
        let of_member = Arc::clone(&replicas);
        let wall = Arc::new(Wall(AtomicI64::new((random >> 32) as i64 % WALLS_MS)));
        let of_groups = Arc::clone(&wall);
        let event_reports = Arc::clone(&self.0.event_reports);
        let cluster = Arc::downgrade(&self.0);
        let groups = spawn_on(node, async move {
            let mut groups = Vec::new();
            let end = Arc::new(End { network, from: id });
            // Several groups share their heartbeats.
            let shared = Arc::new(SharedHeartbeats::<Sim>::new(end.clone(), &settings));
            for group in (0..settings.groups).map(GroupId) {
                let transport: Arc<dyn Transport> = if settings.groups > 1 { shared.clone() } else { end.clone() };
                let (settings, wall) = (settings.clone(), Arc::clone(&of_groups));
                let state = Partitions::new(group, &settings, random);
                let event_reports = Arc::clone(&event_reports);
                let listener = move |event: &Event<'_>, reports_event| {
                    event_reports.lock().unwrap().record(id, event, reports_event)
                };
                let (imports, cluster) = (AtomicU64::new(0), cluster.clone());
                let has_room = move || {
                    let number = imports.fetch_add(1, Ordering::SeqCst);
                    let has_room = !runtime::mix(random ^ number).is_multiple_of(3);
                    if let Some(inner) = cluster.upgrade().filter(|_| !has_room) {
                        Cluster(inner).saw("snapshot without room");
                    }
                    has_room
                };
                let state = state.with_listener(Arc::new(listener)).with_room_for_imports(Arc::new(has_room));
                let state = Arc::new(state);
                let started = Group::start(id, group, settings, transport, wall, state).await.unwrap();
                of_member.add(group, started.clone());
                groups.push(started);
            }
            groups
        });
        let groups = groups.await.unwrap();
        self.0.network.set(|state| drop(state.members.insert(id, (node, replicas))));
        self.0.members.lock().unwrap().insert(id, Member { node, groups, wall });
        id
    }

    pub fn crash(&self, id: MemberId) {
        let member = self.0.members.lock().unwrap().remove(&id).unwrap();
        self.0.network.set(|state| drop(state.members.remove(&id)));
        kill(member.node);
        self.saw("crash");
    }

    /// Lets a member's wall clock jump. From then on, lifetimes are not compared with true time.
    pub fn jump_clock(&self, id: MemberId, ms: i64) {
        self.0.have_jumped.store(true, Ordering::SeqCst);
        self.0.members.lock().unwrap()[&id].wall.0.fetch_add(ms, Ordering::SeqCst);
        self.saw("clock that jumped");
    }

    pub fn node(&self, id: MemberId) -> NodeId {
        self.0.members.lock().unwrap()[&id].node
    }

    pub fn ids(&self) -> Vec<MemberId> {
        self.0.members.lock().unwrap().keys().copied().collect()
    }

    pub fn others(&self, id: MemberId) -> Vec<MemberId> {
        self.ids().into_iter().filter(|other| *other != id).collect()
    }

    pub fn group(&self, id: MemberId, group: u32) -> Option<Group<Sim>> {
        self.0.members.lock().unwrap().get(&id)?.groups.get(group as usize).cloned()
    }

    /// The member's replica of the first group.
    pub fn of(&self, id: MemberId) -> Group<Sim> {
        self.group(id, 0).unwrap()
    }

    pub fn has_lease(&self, id: MemberId) -> bool {
        runtime::on(self.node(id), || self.of(id).has_lease().is_some())
    }

    /// Runs an operation of a member on the member's node.
    pub async fn at<T, F>(&self, id: MemberId, group: u32, ask: impl FnOnce(Group<Sim>) -> F) -> Option<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let group = self.group(id, group)?;
        let node = self.0.members.lock().unwrap().get(&id)?.node;
        let asked = ask(group);
        Sim::timeout(Duration::from_millis(900), spawn_on(node, asked)).await.ok()?.ok()
    }

    /// Returns the leader in the latest term.
    pub fn leader(&self, group: u32) -> Option<MemberId> {
        let members = self.0.members.lock().unwrap();
        let statuses = members.iter().map(|(id, member)| (*id, member.groups[group as usize].status()));
        statuses.filter(|(_, status)| status.leads).max_by_key(|(_, status)| status.term).map(|(id, _)| id)
    }

    /// The members with a vote in any group, as far as its leader knows.
    pub fn voters(&self) -> BTreeSet<MemberId> {
        let of_group = |group| self.leader(group).and_then(|leader| self.group(leader, group));
        (0..self.0.settings.groups).filter_map(of_group).flat_map(|group| group.status().voters).collect()
    }

    /// Waits for a leader of the first group with a lease, and returns it.
    pub async fn serving_leader(&self) -> MemberId {
        let serves = || self.leader(0).filter(|id| self.has_lease(*id));
        until("a leader with a lease", || serves().is_some()).await;
        serves().unwrap()
    }

    async fn make_maps(&self, group: u32) {
        let mut commands = Encoder::default();
        let journal = Some(JournalSettings { capacity: 20, ttl_ms: 0 });
        for id in (0..PARTITIONS).filter(|id| id % self.0.settings.groups == group) {
            let settings = MapSettings { journal, ..MapSettings::default() };
            commands.push(PartitionId(id), &LogCommand::CreateMap { map: MAP, settings }).unwrap();
        }
        let commands = bytes::Bytes::from(commands.take());
        loop {
            if let Some(leader) = self.leader(group) {
                let commands = commands.clone();
                let made = self.at(leader, group, |group| async move { group.submit(None, commands).await });
                if let Some(Ok(_)) = made.await {
                    return;
                }
            }
            sleep_ms(50).await;
        }
    }

    /// Replaces a dead voter by a new member, in one joint change for each group.
    pub async fn replace(&self, dead: MemberId) -> MemberId {
        let new = self.start_member().await;
        self.replace_by(dead, new).await;
        self.saw("replacement");
        new
    }

    /// Replaces a voter by a member without a vote, in one joint change for each group.
    pub async fn replace_by(&self, dead: MemberId, new: MemberId) {
        for group in 0..self.0.settings.groups {
            loop {
                sleep_ms(100).await;
                let Some(leader) = self.leader(group) else { continue };
                let from = self.group(leader, group).unwrap().status().voters;
                if !from.contains(&dead) && from.contains(&new) {
                    break;
                }
                if let Some(heir) = from.iter().copied().find(|id| leader == dead && *id != dead) {
                    self.at(leader, group, move |group| async move { group.transfer_leadership(heir).await }).await;
                    continue;
                }
                self.at(leader, group, move |group| async move { group.add_learner(new).await }).await;
                sleep_ms(100).await;
                let mut to = from.clone();
                to.remove(&dead);
                to.insert(new);
                self.at(leader, group, move |group| async move { group.change_voters(&from, to).await }).await;
            }
        }
        if self.0.faults.snapshots_forget_locks {
            self.forget_locks(new);
        }
    }

    /// Lets a member give up its replica of a group that it has no vote in. Returns whether it has
    /// nothing of the group any more.
    pub async fn give_up(&self, id: MemberId, group: u32) -> bool {
        let Some(leader) = self.leader(group).filter(|leader| *leader != id) else { return false };
        self.0.invariants.lock().unwrap().may_begin_anew(id, group);
        let given_up = self.at(id, group, move |group| async move { group.give_up(leader).await }).await;
        if let Some(given_up) = given_up {
            given_up.expect("an empty replica starts");
        }
        self.group(id, group).is_some_and(|group| group.is_empty())
    }

    fn forget_locks(&self, id: MemberId) {
        for partition in 0..PARTITIONS {
            let group = self.group(id, partition % self.0.settings.groups).unwrap();
            group.inspect(PartitionId(partition), |partition| {
                for key in 0..KEYS {
                    let change = Change::ForceUnlock { key: &key.to_le_bytes(), reference: 0 };
                    let (map, now, caller) = (MAP, partition.time(), Caller::default());
                    partition.apply(&Command { map, now, caller, change }, &mut NoObserver);
                }
            });
        }
    }

    /// Ends all faults and stops the clients, and waits until all replicas have the same state.
    pub async fn settle(&self, clients: Vec<runtime::JoinHandle<()>>) {
        self.0.network.heal();
        for id in self.ids() {
            runtime::resume(self.node(id));
        }
        self.0.stop.store(true, Ordering::SeqCst);
        for client in clients {
            client.await.unwrap();
        }
        let is_at_rest = |group| {
            let Some(leader) = self.leader(group) else { return false };
            let Some(of) = self.group(leader, group) else { return false };
            let (voters, applied) = (of.status().voters, of.state().0);
            let serves = runtime::on(self.node(leader), || of.has_lease().is_some());
            serves && voters.iter().all(|id| self.group(*id, group).is_none_or(|of| of.state().0 == applied))
        };
        until("rest without faults", || (0..self.0.settings.groups).all(is_at_rest)).await;
        self.check_invariants();
        // Numbers of changes are reused if changes were lost.
        if !self.0.invariants.lock().unwrap().has_reformed() {
            let event_reports = self.0.event_reports.lock().unwrap();
            assert_eq!(event_reports.unreported(), [], "changes of which nobody has told");
        }
    }

    /// The maximum difference between the time of a group and true time: the initial difference of
    /// the wall clocks; their drift since then, including suspensions; the time that stands still
    /// while answers are late; and reads of a lost leader that were not recorded in the log. Time
    /// also stands still while an entry is in flight: a majority may need a snapshot first.
    fn slack(&self) -> Slack {
        let GroupSettings { lease_ms, heartbeat_ms, .. } = self.0.settings;
        let apart_ms = now_ns() / 1_000_000 * 8 / 100 + runtime::ahead_ms();
        let jumped = self.0.have_jumped.load(Ordering::SeqCst);
        let late_ms = self.0.invariants.lock().unwrap().in_flight_ms_max();
        Slack { ms: (!jumped).then_some(WALLS_MS as u64 + apart_ms + 2 * lease_ms + 2 * heartbeat_ms), late_ms }
    }

    /// Returns the number of operations, and the operations of the first key with a history that is
    /// not linearizable.
    pub fn checked(&self) -> (usize, Result<(), Vec<Operation>>) {
        let history = self.0.history.lock().unwrap();
        (history.len(), checker::check(&history, self.slack()))
    }
}
