//! Clients with one operation at a time, which record their operations, and a task that removes
//! expired entries.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use filbert_cluster::{GroupId, MemberId, OriginId, OwnedReply, SubmitError, Turn};
use filbert_data::PartitionId;
use filbert_store::{Caller, Change, Command, Encoder, Expiry, Millis, PutMode};
use openraft::AsyncRuntime;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::checker::{Kind, Operation, Outcome};
use crate::cluster::{Cluster, MAP, PARTITIONS, sleep_ms};
use crate::runtime::{self, JoinHandle, Sim, TEST, now_ns, spawn_on};

pub const KEYS: u32 = 8;
/// Times to live, maximum idle times and leases, in milliseconds: expired before a failover ends,
/// expired within a history, and rarely expired.
const LASTING_MS: [u64; 3] = [300, 2_500, 6_000];

impl Cluster {
    /// Starts four clients, and a task that removes expired entries.
    pub fn start_clients(&self) -> Vec<JoinHandle<()>> {
        let sweeper = spawn_on(TEST, self.clone().sweep());
        (0..4).map(|number| spawn_on(TEST, self.clone().client(number))).chain([sweeper]).collect()
    }

    async fn client(self, number: u32) {
        let mut random = StdRng::seed_from_u64(runtime::mix(self.0.seed ^ u64::from(number) << 40));
        let mut origins: BTreeMap<u32, (OriginId, u64)> = BTreeMap::new();
        let mut value = u64::from(number) * 1_000_000;
        while !self.0.stop.load(Ordering::SeqCst) {
            let key = random.random_range(0..KEYS);
            value += 1;
            let lasting_ms = LASTING_MS[random.random_range(0..3)];
            let kind = match random.random_range(0..100) {
                0..28 => Kind::Get,
                28..38 => Kind::Look,
                38..50 => Kind::Put(value),
                50..57 => Kind::PutFor(value, lasting_ms),
                57..61 => Kind::PutIdle(value, lasting_ms),
                61..68 => Kind::PutIfAbsent(value),
                68..78 => Kind::ReplaceIfSame(value - 1, value),
                78..86 => Kind::Remove,
                86..89 => Kind::Lock,
                89..93 => Kind::LockFor(lasting_ms),
                _ => Kind::Unlock,
            };
            self.operate(number, key, kind, &mut origins, &mut random).await;
            sleep_ms(random.random_range(1..30)).await;
        }
    }

    /// Carries out an operation, and records it.
    async fn operate(
        &self,
        client: u32,
        key: u32,
        kind: Kind,
        origins: &mut BTreeMap<u32, (OriginId, u64)>,
        random: &mut StdRng,
    ) {
        let (began, from_ms) = (self.event(), now_ns() / 1_000_000);
        let outcome = match kind {
            Kind::Get => self.get(key, random).await,
            Kind::Look => self.look(key, random).await,
            _ => self.change(client, key, kind, origins, random).await,
        };
        let ended = outcome.map(|outcome| (self.event(), outcome));
        let to_ms = if ended.is_some() { now_ns() / 1_000_000 + 1 } else { u64::MAX };
        let operation = Operation { client, key, kind, began, ended, within_ms: (from_ms, to_ms) };
        self.0.history.lock().unwrap().push(operation);
    }

    /// Removes expired entries, as a leader does all the time.
    async fn sweep(self) {
        while !self.0.stop.load(Ordering::SeqCst) {
            for partition in (0..PARTITIONS).map(PartitionId) {
                let group = partition.0 % self.0.settings.groups;
                let commands = command(partition, Caller::default(), Change::Expire { limit: 3 });
                if let Some(leader) = self.leader(group) {
                    self.at(leader, group, move |group| async move { group.submit(None, commands).await }).await;
                }
            }
            sleep_ms(400).await;
        }
    }

    /// Chooses the member that a client asks: the apparent leader, or any member.
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
        let number = key % PARTITIONS % self.0.settings.groups;
        for _ in 0..15 {
            let asked = self.someone(number, random);
            if let Some(value) = self.get_at(asked, key).await {
                self.saw("read");
                return Some(Outcome::Value(value));
            }
            sleep_ms(random.random_range(5..40)).await;
        }
        None
    }

    /// Reads with a lease at one member. The read time must not be earlier than that of any read
    /// that had completed before.
    pub async fn get_at(&self, asked: MemberId, key: u32) -> Option<Option<u64>> {
        let partition = PartitionId(key % PARTITIONS);
        let number = partition.0 % self.0.settings.groups;
        let no_lease = self.0.faults.reads_without_lease;
        let latest = self.0.read_times.lock().unwrap().get(&number).copied();
        let read = self.at(asked, number, move |group| async move {
            let value = |bytes: Option<&[u8]>| bytes.map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
            if no_lease && group.status().leads {
                let now = Millis(i64::MIN);
                let got = group.inspect(partition, |p| value(p.get(MAP, &key.to_le_bytes(), now)));
                return got.map(|value| (value, now));
            }
            group.read(partition, |p, now| (value(p.get(MAP, &key.to_le_bytes(), now)), now)).ok()
        });
        let (value, now) = read.await??;
        if !no_lease && !self.0.faults.forgets_times {
            assert!(latest.is_none_or(|latest| now >= latest), "reads go back in time, from {latest:?} to {now:?}");
        }
        let mut times = self.0.read_times.lock().unwrap();
        let last = times.entry(number).or_insert(now);
        *last = now.max(*last);
        Some(value)
    }

    /// Reads at any member, once it has reached the leader's read point.
    async fn look(&self, key: u32, random: &mut StdRng) -> Option<Outcome> {
        let partition = PartitionId(key % PARTITIONS);
        let number = partition.0 % self.0.settings.groups;
        let ids = self.ids();
        let here = ids[random.random_range(0..ids.len())];
        let waits = !self.0.faults.followers_read_as_they_are;
        let asked = self.someone(number, random);
        let point = self.at(asked, number, |group| async move { group.read_point().await }).await?.ok()?;
        sleep_ms(random.random_range(0..40)).await;
        let looked = self.at(here, number, move |group| async move {
            if waits {
                group.reach(point).await;
            }
            let now = group.read_time();
            let value = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
            let found =
                group.inspect(partition, |p| p.entry_view(MAP, &key.to_le_bytes(), now).map(|view| value(view.value)));
            (now, found)
        });
        let (now, found) = looked.await?;
        assert!(!waits || now >= point.time, "a follower reads before the leader, at {now:?} instead of {point:?}");
        self.saw("read of a follower");
        Some(Outcome::Value(found?))
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
                Some(Err(SubmitError::Overloaded { .. })) => {
                    self.saw("overload");
                    sleep_ms(random.random_range(5..80)).await;
                }
                _ => sleep_ms(random.random_range(5..80)).await,
            }
        }
    }

    /// Submits a change of one key once, like a client that does not retry.
    pub async fn change_at(&self, asked: MemberId, client: u32, key: u32, kind: Kind) -> Option<Outcome> {
        let commands = commands_of(client, PartitionId(key % PARTITIONS), key, kind);
        let group = key % PARTITIONS % self.0.settings.groups;
        let submitted = self.at(asked, group, move |group| async move { group.submit(None, commands).await });
        submitted.await?.ok()?.into_iter().next().map(outcome_of)
    }
}

fn command(partition: PartitionId, caller: Caller, change: Change<'_>) -> Bytes {
    let mut commands = Encoder::default();
    commands.push(partition, &Command { map: MAP, now: Millis(0), caller, change }.into()).unwrap();
    commands.take().into()
}

fn commands_of(number: u32, partition: PartitionId, key: u32, kind: Kind) -> Bytes {
    let key = &key.to_le_bytes();
    let (value, expected) = match kind {
        Kind::Put(value) | Kind::PutFor(value, _) | Kind::PutIdle(value, _) | Kind::PutIfAbsent(value) => {
            (value.to_le_bytes(), [0; 8])
        }
        Kind::ReplaceIfSame(expected, value) => (value.to_le_bytes(), expected.to_le_bytes()),
        _ => ([0; 8], [0; 8]),
    };
    let put = |expiry, mode| Change::Put { key, value: &value, expiry, mode };
    let change = match kind {
        Kind::Get | Kind::Look => unreachable!("a read is no command"),
        Kind::Put(_) => put(Expiry::NEVER, PutMode::Put),
        Kind::PutFor(_, ms) => put(Expiry::ttl(ms as i64), PutMode::Put),
        Kind::PutIdle(_, ms) => put(Expiry { max_idle_ms: ms as i64, ..Expiry::NEVER }, PutMode::Put),
        Kind::PutIfAbsent(_) => put(Expiry::NEVER, PutMode::IfAbsent),
        Kind::ReplaceIfSame(..) => Change::ReplaceIfSame { key, expected: &expected, value: &value },
        Kind::Remove => Change::Remove { key },
        Kind::Lock => Change::Lock { key, lease_ms: None, reference: 0 },
        Kind::LockFor(ms) => Change::Lock { key, lease_ms: Some(ms as i64), reference: 0 },
        Kind::Unlock => Change::Unlock { key, reference: 0 },
    };
    let caller = Caller { client: uuid::Uuid::from_u128(u128::from(number) + 1), thread: 1 };
    command(partition, caller, change)
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
