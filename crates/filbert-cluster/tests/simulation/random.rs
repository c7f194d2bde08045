//! Histories with faults drawn from a seed.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::checker;
use crate::cluster::{Cluster, Faults, sleep_ms};
use crate::runtime::{self, TEST, spawn_on};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// One history: the trace of all that ran, how many operations there were, and the first key that is wrong.
pub fn history(seed: u64, faults: Faults, rounds: u32) -> (u64, usize, Result<(), String>) {
    let main = async move {
        let mut random = StdRng::seed_from_u64(seed);
        let voters = if random.random_range(0..3) == 0 { 5 } else { 3 };
        let groups = random.random_range(1..3);
        let cluster = Cluster::form(seed, voters, groups, faults).await;
        let clients = (0..4).map(|client| spawn_on(TEST, cluster.clone().client(client))).collect();
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
        let history = cluster.0.history.lock().unwrap();
        (history.len(), checker::check(&history).map_err(|wrong| format!("{wrong:#?}")))
    };
    let ((operations, checked), trace) = runtime::run(seed, main);
    (trace, operations, checked)
}

/// A fault of a random kind.
async fn fault(cluster: &Cluster, random: &mut StdRng) {
    let ids = cluster.ids();
    let one = ids[random.random_range(0..ids.len())];
    let other = ids[random.random_range(0..ids.len())];
    let network = &cluster.0.network;
    let leader = cluster.leader(0).unwrap_or(one);
    let others = |of| ids.iter().copied().filter(|id| *id != of).collect::<Vec<_>>();
    match random.random_range(0..13) {
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
        // The leader alone on its side.
        4 => network.cut(&[leader], &others(leader)),
        5 => {
            let (few, many) = ids.split_at(ids.len() / 2);
            network.cut(few, many);
        }
        // A bridge: two do not see each other, all others see both.
        6 => network.cut(&[one], &[other]),
        7 => network.set(|state| state.cuts.extend(others(leader).iter().map(|id| (*id, leader)))),
        8 => network.set(|state| state.cuts.extend(others(leader).iter().map(|id| (leader, *id)))),
        9 => network.set(|state| (state.drops, state.repeats) = (150, 150)),
        10 => network.set(|state| (state.reorders, state.delay_us) = (true, (100, 60_000))),
        11 => {
            cluster.at(leader, 0, move |group| async move { group.transfer_leadership(one).await }).await;
        }
        _ => {
            network.set(|state| (state.drops, state.reorders) = (80, true));
            cluster.crash(one);
            cluster.replace(one).await;
        }
    }
}

#[test]
fn random_histories_are_linearizable() {
    let first = number("FILBERT_SIM_SEED");
    let count = if first.is_some() { 1 } else { number("FILBERT_SIM_HISTORIES").unwrap_or(100) };
    for seed in (first.unwrap_or(1)..).take(count as usize) {
        eprintln!("seed {seed}");
        let (_, operations, checked) = history(seed, Faults::default(), 4);
        assert!(operations > 100, "seed {seed}: {operations} operations");
        if let Err(wrong) = checked {
            panic!("seed {seed} is not linearizable: {wrong}");
        }
    }
}

#[test]
fn one_seed_gives_one_history() {
    let (first, again) = (history(77, Faults::default(), 2), history(77, Faults::default(), 2));
    assert_eq!((first.0, first.1), (again.0, again.1));
    assert_ne!(first.0, history(78, Faults::default(), 2).0);
}
