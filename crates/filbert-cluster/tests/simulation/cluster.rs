//! Members, clients and what must hold of them at every moment.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use filbert_cluster::{
    Group, GroupId, GroupSettings, MemberId, OriginId, OwnedReply, Replicas, SubmitError, Turn, WallClock,
};
use filbert_data::PartitionId;
use filbert_store::{Caller, Change, Command, Encoder, Expiry, LogCommand, MapId, MapSettings, Millis, PutMode};
use openraft::AsyncRuntime;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::checker::{Kind, Operation, Outcome};
use crate::network::{End, Network};
use crate::runtime::{self, NodeId, Sim, TEST, add_node, kill, local_ms, now_ns, spawn_on};

pub const MAP: MapId = MapId(1);
pub const PARTITIONS: u32 = 4;

/// Defects that the checker must find.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub reads_without_lease: bool,
    pub acknowledges_before_commit: bool,
    pub snapshots_forget_locks: bool,
    pub no_deduplication: bool,
}

struct Wall(i64);

impl WallClock for Wall {
    fn now(&self) -> Millis {
        Millis(1_700_000_000_000 + self.0 + local_ms())
    }
}

pub struct Member {
    pub node: NodeId,
    pub groups: Vec<Group<Sim>>,
}

pub struct Inner {
    pub network: Network,
    pub members: Mutex<BTreeMap<MemberId, Member>>,
    pub settings: GroupSettings,
    pub history: Mutex<Vec<Operation>>,
    pub faults: Faults,
    pub stop: AtomicBool,
    events: AtomicU64,
    next: AtomicU64,
    seed: u64,
    checks: Mutex<Checks>,
    /// What was seen, by name: shows that a test did what it is for.
    pub seen: Mutex<BTreeMap<&'static str, u64>>,
}

#[derive(Default)]
struct Checks {
    leaders: BTreeMap<(u32, u64), MemberId>,
    applied: BTreeMap<(MemberId, u32), u64>,
    terms: BTreeMap<(MemberId, u32), u64>,
    committed: BTreeMap<(u32, u64), u64>,
    states: BTreeMap<(u32, u64), Vec<u8>>,
    times: BTreeMap<(MemberId, u32), i64>,
}

#[derive(Clone)]
pub struct Cluster(pub Arc<Inner>);

pub async fn sleep_ms(ms: u64) {
    Sim::sleep(Duration::from_millis(ms)).await;
}

impl Cluster {
    pub async fn form(seed: u64, voters: u64, groups: u32, faults: Faults) -> Cluster {
        let settings = GroupSettings {
            groups,
            partitions: PARTITIONS,
            log_entries_max: 40,
            log_bytes_max: 64 << 10,
            page_bytes: 256,
            ..GroupSettings::default()
        };
        let cluster = Cluster(Arc::new(Inner {
            network: Network::new(seed),
            members: Mutex::default(),
            settings,
            history: Mutex::default(),
            faults,
            stop: AtomicBool::new(false),
            events: AtomicU64::new(0),
            next: AtomicU64::new(1),
            seed,
            checks: Mutex::default(),
            seen: Mutex::default(),
        }));
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

    /// A member with a number that was never used, a clock of its own rate and a time of day of its own.
    pub async fn start_member(&self) -> MemberId {
        let id = MemberId(self.0.next.fetch_add(1, Ordering::SeqCst));
        let random = runtime::mix(self.0.seed ^ id.0);
        // Up to 4 % faster or slower.
        let node = add_node(960_000_000 + random % 80_000_001);
        let (network, settings) = (self.0.network.clone(), self.0.settings.clone());
        let replicas = Arc::new(Replicas::new(id));
        let of_member = Arc::clone(&replicas);
        let groups = spawn_on(node, async move {
            let mut groups = Vec::new();
            for group in (0..settings.groups).map(GroupId) {
                let end = Arc::new(End { network: network.clone(), from: id });
                let wall = Arc::new(Wall((random >> 32) as i64 % 400));
                let started = Group::start(id, group, settings.clone(), end, wall, random).await.unwrap();
                of_member.add(group, started.clone());
                groups.push(started);
            }
            groups
        });
        let groups = groups.await.unwrap();
        self.0.network.set(|state| drop(state.members.insert(id, (node, replicas))));
        self.0.members.lock().unwrap().insert(id, Member { node, groups });
        id
    }

    pub fn crash(&self, id: MemberId) {
        let member = self.0.members.lock().unwrap().remove(&id).unwrap();
        self.0.network.set(|state| drop(state.members.remove(&id)));
        kill(member.node);
        self.saw("crash");
    }

    pub fn node(&self, id: MemberId) -> NodeId {
        self.0.members.lock().unwrap()[&id].node
    }

    pub fn ids(&self) -> Vec<MemberId> {
        self.0.members.lock().unwrap().keys().copied().collect()
    }

    pub fn group(&self, id: MemberId, group: u32) -> Option<Group<Sim>> {
        self.0.members.lock().unwrap().get(&id)?.groups.get(group as usize).cloned()
    }

    /// Runs something of a member in its own time.
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

    pub fn leader(&self, group: u32) -> Option<MemberId> {
        let members = self.0.members.lock().unwrap();
        let statuses = members.iter().map(|(id, member)| (*id, member.groups[group as usize].status()));
        statuses.filter(|(_, status)| status.leads).max_by_key(|(_, status)| status.term).map(|(id, _)| id)
    }

    async fn make_maps(&self, group: u32) {
        let mut commands = Encoder::default();
        for id in (0..PARTITIONS).filter(|id| id % self.0.settings.groups == group) {
            let make = LogCommand::CreateMap { map: MAP, settings: MapSettings::default() };
            commands.push(PartitionId(id), &make).unwrap();
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

    /// Takes dead voters out and a new member in, as one joint change for each group.
    pub async fn replace(&self, dead: MemberId) -> MemberId {
        let new = self.start_member().await;
        for group in 0..self.0.settings.groups {
            loop {
                sleep_ms(100).await;
                let Some(leader) = self.leader(group) else { continue };
                let mut voters = self.group(leader, group).unwrap().status().voters;
                if !voters.contains(&dead) && voters.contains(&new) {
                    break;
                }
                self.at(leader, group, move |group| async move { group.add_learner(new).await }).await;
                sleep_ms(100).await;
                voters.remove(&dead);
                voters.insert(new);
                self.at(leader, group, move |group| async move { group.change_voters(voters).await }).await;
            }
        }
        if self.0.faults.snapshots_forget_locks {
            self.forget_locks(new);
        }
        self.saw("replacement");
        new
    }

    fn forget_locks(&self, id: MemberId) {
        for partition in 0..PARTITIONS {
            let group = self.group(id, partition % self.0.settings.groups).unwrap();
            group.inspect(PartitionId(partition), |partition| {
                for key in 0..KEYS {
                    let change = Change::ForceUnlock { key: &key.to_le_bytes(), reference: 0 };
                    let (map, now, caller) = (MAP, partition.time(), Caller::default());
                    partition.apply(&Command { map, now, caller, change }, &mut filbert_store::NoObserver);
                }
            });
        }
    }

    /// What must hold at every moment.
    pub fn check_invariants(&self) {
        let mut checks = self.0.checks.lock().unwrap();
        let checks = &mut *checks;
        let members = self.0.members.lock().unwrap();
        for group in 0..self.0.settings.groups {
            let mut holders = Vec::new();
            let mut logs: BTreeMap<u64, u64> = BTreeMap::new();
            for (id, member) in members.iter() {
                let (of, at) = (&member.groups[group as usize], (*id, group));
                let status = of.status();
                assert_eq!(status.failure, None, "a group does not stop by itself: member {id}");
                if status.leads {
                    let first = checks.leaders.entry((group, status.term)).or_insert(*id);
                    assert_eq!(first, id, "election safety: one leader in term {}", status.term);
                }
                let term = checks.terms.entry(at).or_default();
                assert!(status.term >= *term, "terms of a member do not go back");
                *term = status.term;
                let (applied, state) = of.state();
                let applied = applied.map_or(0, |index| index + 1);
                let before = checks.applied.entry(at).or_default();
                assert!(applied >= *before, "applied does not go back: member {id} from {before} to {applied}");
                *before = applied;
                if !self.0.faults.snapshots_forget_locks {
                    let same = checks.states.entry((group, applied)).or_insert_with(|| state.clone());
                    assert!(*same == state, "replicas of group {group} differ at entry {applied}: member {id}");
                }
                for (index, term) in of.log_ids() {
                    if index < applied {
                        let first = *checks.committed.entry((group, index)).or_insert(term);
                        assert_eq!(first, term, "what is applied stays in the log: entry {index} of member {id}");
                    }
                    logs.entry(index).or_insert(term);
                }
                assert!(status.purged.is_none_or(|purged| purged < applied), "only what is applied is purged");
                assert!(status.log_bytes <= 4 * self.0.settings.log_bytes_max, "a log keeps to its limit");
                let time = (0..PARTITIONS).filter(|id| id % self.0.settings.groups == group);
                let time = time.filter_map(|id| of.inspect(PartitionId(id), |partition| partition.time().0)).min();
                let last = checks.times.entry(at).or_insert(i64::MIN);
                assert!(time.is_none_or(|time| time >= *last), "time does not go back");
                *last = time.unwrap_or(*last);
                if runtime::on(member.node, || of.has_lease().is_some()) {
                    holders.push(*id);
                }
                if status.is_joint {
                    *self.0.seen.lock().unwrap().entry("joint").or_default() += 1;
                }
                if status.purged.is_some() {
                    *self.0.seen.lock().unwrap().entry("purge").or_default() += 1;
                }
            }
            assert!(holders.len() <= 1, "one lease holder of group {group}: {holders:?}");
        }
        // States are compared as replicas pass by; old ones are not needed.
        while checks.states.len() > 400 {
            checks.states.pop_first();
        }
    }

    fn event(&self) -> u64 {
        self.0.events.fetch_add(1, Ordering::SeqCst)
    }

    /// A client with one operation at a time, until the cluster stops.
    pub async fn client(self, number: u32) {
        let mut random = StdRng::seed_from_u64(runtime::mix(self.0.seed ^ u64::from(number) << 40));
        let mut origins: BTreeMap<u32, (OriginId, u64)> = BTreeMap::new();
        let mut value = u64::from(number) * 1_000_000;
        while !self.0.stop.load(Ordering::SeqCst) {
            let key = random.random_range(0..KEYS);
            value += 1;
            let kind = match random.random_range(0..100) {
                0..35 => Kind::Get,
                35..60 => Kind::Put(value),
                60..68 => Kind::PutIfAbsent(value),
                68..78 => Kind::ReplaceIfSame(value - 1, value),
                78..86 => Kind::Remove,
                86..92 => Kind::Lock,
                _ => Kind::Unlock,
            };
            let (client, began) = (number, self.event());
            let outcome = if kind == Kind::Get {
                self.get(key, &mut random).await
            } else {
                self.change(number, key, kind, &mut origins, &mut random).await
            };
            let ended = outcome.map(|outcome| (self.event(), outcome));
            self.0.history.lock().unwrap().push(Operation { client, key, kind, began, ended });
            sleep_ms(random.random_range(1..30)).await;
        }
    }

    /// Whom a client asks: who seems to lead, or anyone.
    fn someone(&self, group: u32, random: &mut StdRng) -> MemberId {
        let ids = self.ids();
        if random.random_range(0..3) > 0
            && let Some(leader) = self.leader(group)
        {
            return leader;
        }
        ids[random.random_range(0..ids.len())]
    }

    async fn get(&self, key: u32, random: &mut StdRng) -> Option<Outcome> {
        let partition = PartitionId(key % PARTITIONS);
        let number = partition.0 % self.0.settings.groups;
        for _ in 0..15 {
            let asked = self.someone(number, random);
            let no_lease = self.0.faults.reads_without_lease;
            let read = self.at(asked, number, move |group| async move {
                let value = |bytes: Option<&[u8]>| bytes.map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
                if no_lease && group.status().leads {
                    let now = Millis(i64::MIN);
                    let got = group.inspect(partition, |p| value(p.get(MAP, &key.to_le_bytes(), now)));
                    return got.ok_or(());
                }
                group.read(partition, |p, now| value(p.get(MAP, &key.to_le_bytes(), now))).map_err(|_| ())
            });
            if let Some(Ok(value)) = read.await {
                self.saw("read");
                return Some(Outcome::Value(value));
            }
            sleep_ms(random.random_range(5..40)).await;
        }
        None
    }

    async fn change(
        &self,
        number: u32,
        key: u32,
        kind: Kind,
        origins: &mut BTreeMap<u32, (OriginId, u64)>,
        random: &mut StdRng,
    ) -> Option<Outcome> {
        let partition = PartitionId(key % PARTITIONS);
        let group = partition.0 % self.0.settings.groups;
        let commands = commands_of(number, partition, key, kind);
        let mut tries = 0;
        let mut turn = None;
        loop {
            tries += 1;
            let sent = tries;
            if tries > 25 || self.0.stop.load(Ordering::SeqCst) && tries > 12 {
                origins.remove(&group);
                return None;
            }
            let asked = self.someone(group, random);
            if turn.is_none() && !self.0.faults.no_deduplication {
                if origins.get(&group).is_none() {
                    let opened = self.at(asked, group, |group| async move { group.open_origin().await });
                    match opened.await {
                        Some(Ok(origin)) => drop(origins.insert(group, (origin, 0))),
                        _ => sleep_ms(random.random_range(5..40)).await,
                    }
                    continue;
                }
                let (origin, last) = origins.get_mut(&group).unwrap();
                *last += 1;
                turn = Some(Turn { origin: *origin, sequence: *last, unanswered: *last });
            }
            let (commands, impatient) = (commands.clone(), random.random_range(0..20) == 0);
            let early = self.0.faults.acknowledges_before_commit && matches!(kind, Kind::Put(_));
            let asking = self.at(asked, group, move |group| async move {
                if early && group.status().leads {
                    drop(Sim::spawn(async move { group.submit(turn, commands).await }));
                    return Ok(Vec::new());
                }
                if impatient {
                    // The answer is lost on its way to the client.
                    let _lost = group.submit(turn, commands).await;
                    return Err(SubmitError::Unknown { group: GroupId(0) });
                }
                group.submit(turn, commands).await
            });
            match asking.await {
                Some(Ok(replies)) => {
                    if sent > 1 {
                        self.saw("write after retries");
                    }
                    let Some(reply) = replies.into_iter().next() else { return Some(Outcome::Value(None)) };
                    return Some(outcome_of(reply));
                }
                Some(Err(SubmitError::Origin(_))) => {
                    origins.remove(&group);
                    return None;
                }
                Some(Err(SubmitError::NotLeader { .. })) => sleep_ms(random.random_range(5..40)).await,
                _ => sleep_ms(random.random_range(5..80)).await,
            }
        }
    }

    /// Ends the clients, and waits until all replicas hold the same.
    pub async fn settle(&self, clients: Vec<runtime::JoinHandle<()>>) {
        self.0.network.heal();
        for id in self.ids() {
            runtime::resume(self.node(id));
        }
        self.0.stop.store(true, Ordering::SeqCst);
        for client in clients {
            client.await.unwrap();
        }
        let end = now_ns() + 60_000_000_000;
        loop {
            sleep_ms(200).await;
            let same = (0..self.0.settings.groups).all(|group| {
                let Some(leader) = self.leader(group) else { return false };
                let Some(of) = self.group(leader, group) else { return false };
                let voters = of.status().voters;
                let state = of.state();
                let ready = runtime::on(self.node(leader), || of.has_lease().is_some());
                ready && voters.iter().all(|id| self.group(*id, group).is_none_or(|of| of.state().0 == state.0))
            });
            if same {
                return self.check_invariants();
            }
            assert!(now_ns() < end, "the cluster does not come to rest within a minute without faults");
        }
    }
}

pub const KEYS: u32 = 8;

fn commands_of(number: u32, partition: PartitionId, key: u32, kind: Kind) -> bytes::Bytes {
    let key = &key.to_le_bytes();
    let (value, expected) = match kind {
        Kind::Put(value) | Kind::PutIfAbsent(value) => (value.to_le_bytes(), [0; 8]),
        Kind::ReplaceIfSame(expected, value) => (value.to_le_bytes(), expected.to_le_bytes()),
        _ => ([0; 8], [0; 8]),
    };
    let put = |mode| Change::Put { key, value: &value, expiry: Expiry::NEVER, mode };
    let change = match kind {
        Kind::Get => unreachable!("a read is no command"),
        Kind::Put(_) => put(PutMode::Put),
        Kind::PutIfAbsent(_) => put(PutMode::IfAbsent),
        Kind::ReplaceIfSame(..) => Change::ReplaceIfSame { key, expected: &expected, value: &value },
        Kind::Remove => Change::Remove { key },
        Kind::Lock => Change::Lock { key, lease_ms: None, reference: 0 },
        Kind::Unlock => Change::Unlock { key, reference: 0 },
    };
    let caller = Caller { client: uuid::Uuid::from_u128(u128::from(number) + 1), thread: 1 };
    let mut commands = Encoder::default();
    commands.push(partition, &Command { map: MAP, now: Millis(0), caller, change }.into()).unwrap();
    commands.take().into()
}

fn outcome_of(reply: OwnedReply) -> Outcome {
    match reply {
        OwnedReply::Previous(value) => {
            Outcome::Value(value.map(|value| u64::from_le_bytes(value[..].try_into().unwrap())))
        }
        OwnedReply::Flag(flag) => Outcome::Flag(flag),
        OwnedReply::Done => Outcome::Done,
        OwnedReply::Locked { .. } => Outcome::Locked,
        OwnedReply::NotOwner { .. } => Outcome::NotOwner,
        reply => panic!("no such reply was asked for: {reply:?}"),
    }
}
