//! Planted defects, which must be found. Otherwise the simulation proves nothing.

use crate::checker::{Kind, Outcome};
use crate::cluster::{Cluster, Faults, sleep_ms};
use crate::{random, runtime};

/// At least one of several histories must find the defect.
fn is_found(faults: Faults) -> bool {
    (1..30).any(|seed| random::history(seed, faults, 4).checked.is_err())
}

#[test]
fn a_leader_that_reads_without_a_lease_is_found() {
    let faults = Faults { reads_without_lease: true, ..Faults::default() };
    let is_found = (1..8).any(|seed| {
        let main = async move {
            let cluster = Cluster::form(seed, 3, 1, faults).await;
            let clients = cluster.start_clients();
            sleep_ms(500).await;
            // The leader is cut off. It still considers itself the leader, while the others elect
            // another one.
            let old = cluster.serving_leader().await;
            cluster.network().cut(&[old], &cluster.others(old));
            sleep_ms(5_000).await;
            cluster.settle(clients).await;
            cluster.checked().1.is_err()
        };
        runtime::run(seed, main).0
    });
    assert!(is_found);
}

#[test]
fn a_follower_that_reads_without_asking_how_far_the_leader_is_is_found() {
    assert!(is_found(Faults { followers_read_as_they_are: true, ..Faults::default() }));
}

#[test]
fn an_acknowledgement_before_commit_is_found() {
    assert!(is_found(Faults { acknowledges_before_commit: true, ..Faults::default() }));
}

#[test]
fn a_snapshot_that_forgets_locks_is_found() {
    let faults = Faults { snapshots_forget_locks: true, ..Faults::default() };
    let is_locked_twice = |faults| {
        let main = async move {
            let cluster = Cluster::form(1, 3, 1, faults).await;
            let leader = cluster.serving_leader().await;
            assert_eq!(cluster.change_at(leader, 1, 0, Kind::Lock).await, Some(Outcome::Flag(true)));
            // In the end all members have received their state by a snapshot.
            for old in cluster.ids() {
                cluster.crash(old);
                cluster.replace(old).await;
            }
            let leader = cluster.serving_leader().await;
            cluster.change_at(leader, 2, 0, Kind::Lock).await == Some(Outcome::Flag(true))
        };
        runtime::run(1, main).0
    };
    assert!(is_locked_twice(faults) && !is_locked_twice(Faults::default()));
}

#[test]
fn writes_that_are_repeated_without_a_sequence_are_found() {
    assert!(is_found(Faults { no_deduplication: true, ..Faults::default() }));
}
