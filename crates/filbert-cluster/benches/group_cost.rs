//! The cost of an entry: groups of three members in one process, without a network, with sequential
//! and with concurrent submissions.
//!
//! `cargo bench -p filbert-cluster --bench group_cost`

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a program for the command line"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use filbert_cluster::*;
use filbert_data::PartitionId;
use filbert_store::{Caller, Change, Command, Encoder, Expiry, LogCommand, MapId, MapSettings, Millis, PutMode};

type Members = Arc<OnceLock<BTreeMap<MemberId, Arc<Replicas<BootRuntime>>>>>;
type Copy = Group<BootRuntime>;

/// A transport that calls other members directly, and counts the calls.
struct Direct(Members);

static CALLS: AtomicU64 = AtomicU64::new(0);

impl Transport for Direct {
    fn call(&self, to: MemberId, _: Lane, request: Bytes) -> BoxFuture<Result<Bytes, TransportError>> {
        CALLS.fetch_add(1, Ordering::Relaxed);
        let member = self.0.get().and_then(|members| members.get(&to)).cloned();
        Box::pin(async move {
            let member = member.ok_or(TransportError::Unreachable(to))?;
            member.answer(request).await.map_err(|_| TransportError::Broken(to))
        })
    }
}

struct Wall;

impl WallClock for Wall {
    fn now(&self) -> Millis {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Millis(since.as_millis() as i64)
    }
}

fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn put(group: u32) -> Bytes {
    let change = Change::Put { key: b"some-key-016", value: &[7; 112], expiry: Expiry::NEVER, mode: PutMode::Set };
    let command = Command { map: MapId(1), now: Millis(0), caller: Caller::default(), change };
    let mut commands = Encoder::default();
    commands.push(PartitionId(group), &command.into()).unwrap();
    commands.take().into()
}

/// Starts all groups. Returns all replicas, and the leaders.
async fn start(groups: u32, share: bool) -> (Vec<Copy>, Vec<Copy>) {
    let members: Members = Arc::default();
    let settings = GroupSettings { groups, partitions: groups, ..GroupSettings::default() };
    let ids: BTreeSet<MemberId> = (1..=3).map(MemberId).collect();
    let (mut all, mut copies) = (BTreeMap::new(), Vec::new());
    for id in &ids {
        let replicas = Arc::new(Replicas::new(*id));
        let direct: Arc<dyn Transport> = Arc::new(Direct(Arc::clone(&members)));
        let transport = if share { Arc::new(SharedHeartbeats::<BootRuntime>::new(direct, &settings)) } else { direct };
        for group in (0..groups).map(GroupId) {
            let transport = Arc::clone(&transport);
            let state = Arc::new(Partitions::new(group, &settings, 1));
            let started = Group::start(*id, group, settings.clone(), transport, Arc::new(Wall), state).await.unwrap();
            replicas.add(group, started.clone());
            copies.push((group, started));
        }
        all.insert(*id, replicas);
    }
    members.set(all).ok().unwrap();
    for (_, copy) in copies.iter().take(groups as usize) {
        copy.form(&ids).await.unwrap();
    }
    let mut leaders = Vec::new();
    for group in 0..groups {
        let leader = loop {
            let mut of_group = copies.iter().filter(|(of, _)| *of == GroupId(group)).map(|(_, copy)| copy);
            if let Some(leader) = of_group.find(|copy| copy.has_lease().is_some()) {
                break leader.clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        };
        let mut make = Encoder::default();
        make.push(PartitionId(group), &LogCommand::CreateMap { map: MapId(1), settings: MapSettings::default() })
            .unwrap();
        leader.submit(None, make.take().into()).await.unwrap();
        leaders.push(leader);
    }
    (copies.into_iter().map(|(_, copy)| copy).collect(), leaders)
}

/// Submits to all groups, `at_once` submissions concurrently to each, and prints the cost of one.
async fn measure(leaders: &[Group<BootRuntime>], at_once: usize, rounds: usize) {
    let (begin, cpu_before) = (Instant::now(), cpu());
    let tasks: Vec<_> = (0..)
        .zip(leaders)
        .flat_map(|(number, leader)| std::iter::repeat_n((number, leader.clone()), at_once))
        .map(|(number, leader)| {
            tokio::spawn(async move {
                for _ in 0..rounds {
                    leader.submit(None, put(number)).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let count = (leaders.len() * at_once * rounds) as f64;
    let (cpu_us, wall) = ((cpu() - cpu_before).as_secs_f64() * 1e6 / count, begin.elapsed());
    let rate = count / wall.as_secs_f64();
    println!(
        "{:>3} groups, {at_once:>3} at once to each: {cpu_us:>7.1} us of CPU per submission, {rate:>8.0} per second",
        leaders.len()
    );
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    for (groups, share) in [(1, false), (12, false), (12, true)] {
        let (copies, leaders) = start(groups, share).await;
        let (before, calls) = (cpu(), CALLS.load(Ordering::Relaxed));
        tokio::time::sleep(Duration::from_secs(2)).await;
        let calls = (CALLS.load(Ordering::Relaxed) - calls) / 2;
        let heartbeats = if share { "shared" } else { "each its own" };
        println!(
            "{groups:>3} groups, heartbeats {heartbeats}, idle: {:.2} % of one CPU, {calls} requests per second",
            (cpu() - before).as_secs_f64() * 50.0
        );
        for (at_once, rounds) in [(1, 500), (4, 500), (16, 400), (64, 200)] {
            measure(&leaders, at_once, rounds).await;
        }
        let begin = Instant::now();
        for _ in 0..1_000_000 {
            leaders[0]
                .read(PartitionId(0), |partition, now| partition.get(MapId(1), b"some-key-016", now).is_some())
                .unwrap();
        }
        println!("a read by lease: {:.0} ns", begin.elapsed().as_secs_f64() * 1e3);
        for copy in copies {
            copy.stop().await;
        }
    }
}
