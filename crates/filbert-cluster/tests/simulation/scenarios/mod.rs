//! Scenarios that revealed defects in other systems, one test each, by topic.

mod commits;
mod events;
mod leases;
mod members;
mod partitions;
mod planted;
mod recovery;
mod time;

use std::future::Future;

use crate::cluster::sleep_ms;
use crate::cluster::{Cluster, Faults};
use crate::runtime;

/// Runs a scenario together with clients, for several seeds. The history must be linearizable, and
/// all replicas must be equal at the end.
fn play<F>(name: &str, voters: u64, scenario: impl Fn(Cluster) -> F + Copy + Send + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    for seed in 1..3 {
        eprintln!("{name}: seed {seed}");
        let ((operations, checked), _) = runtime::run(seed, async move {
            let cluster = Cluster::form(seed, voters, 1, Faults::default()).await;
            let clients = cluster.start_clients();
            sleep_ms(500).await;
            scenario(cluster.clone()).await;
            cluster.settle(clients).await;
            cluster.checked()
        });
        assert!(operations > 50, "{name}: seed {seed} has {operations} operations");
        assert!(checked.is_ok(), "{name}: seed {seed} is not linearizable: {:#?}", checked.err());
    }
}

/// Runs a scenario without clients. The scenario makes its own requests.
fn play_alone<F>(name: &str, voters: u64, scenario: impl Fn(Cluster) -> F + Copy + Send + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    for seed in 1..5 {
        eprintln!("{name}: seed {seed}");
        runtime::run(seed, async move {
            let cluster = Cluster::form(seed, voters, 1, Faults::default()).await;
            scenario(cluster.clone()).await;
            cluster.settle(Vec::new()).await;
        });
    }
}
