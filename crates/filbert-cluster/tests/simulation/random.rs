//! Histories with random faults, derived from a seed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use bytes::Bytes;
use filbert_cluster::{Lane, MemberId};
use filbert_data::PartitionId;
use filbert_store::{Caller, Change, Command, Encoder, Expiry, Millis, PutMode};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::cluster::{Cluster, Faults, MAP, sleep_ms};
use crate::runtime::{self, TEST, spawn_on};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// The result of one history.
pub struct Played {
    /// A hash of all steps.
    trace: u64,
    operations: usize,
    /// The number of observed events, by name.
    seen: BTreeMap<&'static str, u64>,
    /// The operations of the first wrong key.
    pub checked: Result<(), String>,
}

/// Runs one history with `rounds` faults.
pub fn history(seed: u64, faults: Faults, rounds: u32) -> Played {
    let main = async move {
        let mut random = StdRng::seed_from_u64(seed);
        let voters = if random.random_range(0..3) == 0 { 5 } else { 3 };
        let groups = random.random_range(1..3);
        let cluster = Cluster::form(seed, voters, groups, faults).await;
        let clients = cluster.start_clients();
        for _ in 0..rounds {
            fault(&cluster, &mut random).await;
            sleep_ms(random.random_range(100..3_500)).await;
            cluster.0.network.heal();
            for id in cluster.ids() {
                runtime::resume(cluster.node(id));
            }
            sleep_ms(random.random_range(100..1_200)).await;
        }
        cluster.settle(clients).await;
        let (operations, checked) = cluster.checked();
        let seen = cluster.0.seen.lock().unwrap().clone();
        (operations, seen, checked.map_err(|wrong| format!("{wrong:#?}")))
    };
    let ((operations, seen, checked), trace) = runtime::run(seed, main);
    Played { trace, operations, seen, checked }
}

/// Injects a random fault.
async fn fault(cluster: &Cluster, random: &mut StdRng) {
    let ids = cluster.ids();
    let one = ids[random.random_range(0..ids.len())];
    let other = ids[random.random_range(0..ids.len())];
    let network = &cluster.0.network;
    let leader = cluster.leader(0).unwrap_or(one);
    let others = cluster.others(leader);
    match random.random_range(0..22) {
        0 => {
            cluster.crash(one);
            cluster.replace(one).await;
        }
        1 => {
            cluster.crash(leader);
            cluster.replace(leader).await;
        }
        2 => runtime::pause(cluster.node(leader)),
        3 => runtime::pause(cluster.node(one)),
        // The leader is alone on its side.
        4 => network.cut(&[leader], &others),
        5 => {
            let (few, many) = ids.split_at(ids.len() / 2);
            network.cut(few, many);
        }
        // A bridge: two members do not see each other, and all others see both.
        6 => network.cut(&[one], &[other]),
        7 => network.set(|state| state.cuts.extend(others.iter().map(|id| (*id, leader)))),
        8 => network.set(|state| state.cuts.extend(others.iter().map(|id| (leader, *id)))),
        9 => network.set(|state| (state.drops, state.repeats) = (150, 150)),
        10 => network.set(|state| (state.reorders, state.delay_us) = (true, (100, 60_000))),
        11 => {
            cluster.at(leader, 0, move |group| async move { group.transfer_leadership(one).await }).await;
        }
        12 => {
            network.set(|state| (state.drops, state.reorders) = (80, true));
            cluster.crash(one);
            cluster.replace(one).await;
        }
        13 => runtime::suspend(cluster.node(one), Duration::from_millis(random.random_range(200..3_000))),
        14 => cluster.jump_clock(one, random.random_range(-2_000..2_000)),
        15 => network.set(|state| state.bursts_ms = Some((250, 400))),
        // Both members need a snapshot afterwards, and one of them receives its pages late.
        16 => lag(cluster, &others, others[0]).await,
        17 => lag(cluster, &others[..1], others[0]).await,
        18 => overload(cluster, leader).await,
        19 => move_replica(cluster, one).await,
        // The members that move back may have given up their replicas, or be about to.
        20 => {
            network.set(|state| (state.drops, state.reorders) = (50, true));
            move_replica(cluster, other).await;
        }
        _ => {
            // A majority is left of the group, and then of the change that replaces the first
            // member.
            cluster.crash(one);
            let changing = cluster.clone();
            let change = spawn_on(TEST, async move { changing.replace(one).await });
            sleep_ms(random.random_range(0..400)).await;
            network.cut(&[other], &cluster.others(other));
            sleep_ms(random.random_range(100..1_500)).await;
            network.heal();
            change.await.unwrap();
        }
    }
}

/// Moves a voter's replicas to a member without a vote: to one that has moved away before, or to a
/// new one. The voter gives up its replicas meanwhile.
async fn move_replica(cluster: &Cluster, from: MemberId) {
    let voters = cluster.voters();
    if !voters.contains(&from) {
        return;
    }
    let idle = cluster.ids().into_iter().find(|id| !voters.contains(id));
    let to = match idle {
        Some(idle) => idle,
        None => cluster.start_member().await,
    };
    let giving_up = cluster.clone();
    let given_up = spawn_on(TEST, async move {
        for _ in 0..20 {
            for group in 0..giving_up.0.settings.groups {
                if giving_up.give_up(from, group).await {
                    giving_up.saw("replica given up");
                }
            }
            sleep_ms(60).await;
        }
    });
    cluster.replace_by(from, to).await;
    given_up.await.unwrap();
}

/// Keeps members behind until they need a snapshot, as far as a majority remains. One of them
/// receives its pages late.
async fn lag(cluster: &Cluster, behind: &[MemberId], slow: MemberId) {
    let voters: BTreeSet<MemberId> = cluster.ids().into_iter().collect();
    let count = behind.len().min((voters.len() - 1) / 2);
    for id in &behind[..count] {
        cluster.network().cut(&[*id], &cluster.others(*id));
    }
    sleep_ms(2_500).await;
    cluster.network().heal();
    cluster.network().set(|state| state.slow = Some((slow, Lane::Snapshots, 40_000)));
}

/// Submits more than may wait.
async fn overload(cluster: &Cluster, leader: MemberId) {
    let value = vec![7; 4 << 10];
    let change = Change::Put { key: b"large", value: &value, expiry: Expiry::NEVER, mode: PutMode::Set };
    let command = Command { map: MAP, now: Millis(0), caller: Caller::default(), change };
    let mut commands = Encoder::default();
    commands.push(PartitionId(0), &command.into()).unwrap();
    let commands = Bytes::from(commands.take());
    for _ in 0..60 {
        let (cluster, commands) = (cluster.clone(), commands.clone());
        drop(spawn_on(TEST, async move {
            let submitted = cluster.at(leader, 0, |group| async move { group.submit(None, commands).await }).await;
            if let Some(Err(filbert_cluster::SubmitError::Overloaded { .. })) = submitted {
                cluster.saw("overload");
            }
        }));
    }
}

#[test]
fn random_histories_are_linearizable() {
    let first = number("FILBERT_SIM_SEED");
    let time = number("FILBERT_SIM_SECONDS").map(Duration::from_secs);
    let count = match (time, first) {
        (Some(_), _) => u64::MAX,
        (None, Some(_)) => 1,
        (None, None) => number("FILBERT_SIM_HISTORIES").unwrap_or(100),
    };
    let (began, mut histories, mut operations) = (Instant::now(), 0, 0);
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    for seed in (first.unwrap_or(1)..).take(count as usize) {
        if time.is_some_and(|time| began.elapsed() >= time) {
            break;
        }
        eprintln!("seed {seed}");
        let played = history(seed, Faults::default(), 4);
        assert!(played.operations > 100, "seed {seed}: {} operations", played.operations);
        if let Err(wrong) = played.checked {
            panic!("seed {seed} is not linearizable: {wrong}");
        }
        (histories, operations) = (histories + 1, operations + played.operations);
        played.seen.into_iter().for_each(|(what, count)| *seen.entry(what).or_default() += count);
    }
    eprintln!("{histories} histories, {operations} operations; {seen:?}");
}

#[test]
fn one_seed_gives_one_history() {
    let (first, second) = (history(77, Faults::default(), 2), history(77, Faults::default(), 2));
    assert_eq!((first.trace, first.operations), (second.trace, second.operations));
    assert_ne!(first.trace, history(78, Faults::default(), 2).trace);
}
