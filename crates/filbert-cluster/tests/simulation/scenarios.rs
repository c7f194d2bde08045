//! Scenarios that found defects in other systems, one test each.

use std::future::Future;

use crate::checker;
use crate::cluster::{Cluster, Faults, sleep_ms};
use crate::runtime::{self, TEST, spawn_on};

/// Runs a scenario beside clients, over several seeds; the history must be linearizable and every replica the same in the end. Returns
/// what was seen.
fn play<F>(name: &str, voters: u64, scenario: impl Fn(Cluster) -> F + Copy + Send + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    for seed in 1..3 {
        eprintln!("{name}: seed {seed}");
        let (checked, _) = runtime::run(seed, async move {
            let cluster = Cluster::form(seed, voters, 1, Faults::default()).await;
            let clients = (0..4).map(|client| spawn_on(TEST, cluster.clone().client(client))).collect();
            sleep_ms(500).await;
            scenario(cluster.clone()).await;
            cluster.settle(clients).await;
            let history = cluster.0.history.lock().unwrap();
            assert!(history.iter().filter(|operation| operation.ended.is_some()).count() > 50, "{}", history.len());
            checker::check(&history)
        });
        assert!(checked.is_ok(), "{name}: seed {seed} is not linearizable: {:#?}", checked.err());
    }
}

/// The leader, once there is one that may serve reads.
async fn leader(cluster: &Cluster) -> filbert_cluster::MemberId {
    loop {
        if let Some(id) = cluster.leader(0)
            && runtime::on(cluster.node(id), || cluster.group(id, 0).unwrap().has_lease().is_some())
        {
            return id;
        }
        sleep_ms(10).await;
    }
}

fn others(cluster: &Cluster, id: filbert_cluster::MemberId) -> Vec<filbert_cluster::MemberId> {
    cluster.ids().into_iter().filter(|other| *other != id).collect()
}

#[test]
fn a_leader_that_crashes_is_replaced_by_a_new_member() {
    play("crash of the leader", 3, |cluster| async move {
        for _ in 0..2 {
            let old = leader(&cluster).await;
            cluster.crash(old);
            let new = cluster.replace(old).await;
            let leader = leader(&cluster).await;
            let voters = cluster.group(leader, 0).unwrap().status().voters;
            assert!(voters.contains(&new) && !voters.contains(&old) && voters.len() == 3, "{voters:?}");
        }
    });
}

#[test]
fn a_log_is_purged_while_a_member_lags_and_a_snapshot_is_made_when_it_returns() {
    play("purge while a member lags", 3, |cluster| async move {
        let lagging = others(&cluster, leader(&cluster).await)[0];
        cluster.network().cut(&[lagging], &others(&cluster, lagging));
        let behind = cluster.group(lagging, 0).unwrap().status().applied;
        // Until all that it lacks is gone from the others' logs.
        loop {
            sleep_ms(100).await;
            let id = leader(&cluster).await;
            let purged = cluster.group(id, 0).unwrap().status().purged;
            if purged > behind.map(|index| index + 20) {
                break;
            }
        }
        cluster.network().heal();
        loop {
            sleep_ms(50).await;
            let status = cluster.group(lagging, 0).unwrap().status();
            if status.applied > behind.map(|index| index + 40) {
                assert!(status.purged > behind, "it came by a snapshot");
                break;
            }
        }
    });
}

#[test]
fn a_pause_of_the_leader_beyond_its_lease_serves_no_old_reads() {
    play("pause beyond the lease", 3, |cluster| async move {
        for pause_ms in [600, 1_100, 2_500] {
            let id = leader(&cluster).await;
            runtime::pause(cluster.node(id));
            sleep_ms(pause_ms).await;
            runtime::resume(cluster.node(id));
            sleep_ms(700).await;
        }
    });
}

#[test]
fn a_bridge_partition_keeps_one_history() {
    play("bridge", 3, |cluster| async move {
        let id = leader(&cluster).await;
        let other = others(&cluster, id)[0];
        cluster.network().cut(&[id], &[other]);
        sleep_ms(4_000).await;
        cluster.network().heal();
    });
}

#[test]
fn a_leader_alone_on_its_side_serves_nothing() {
    play("leader in the minority", 5, |cluster| async move {
        let id = leader(&cluster).await;
        cluster.network().cut(&[id], &others(&cluster, id));
        sleep_ms(1_200).await;
        let group = cluster.group(id, 0).unwrap();
        assert_eq!(runtime::on(cluster.node(id), || group.has_lease()), None);
        let partition = filbert_data::PartitionId(0);
        let read = runtime::on(cluster.node(id), || group.read(partition, |_, _| ()));
        assert!(matches!(read, Err(filbert_cluster::ReadError::NoLease { .. })), "{read:?}");
        sleep_ms(2_000).await;
        assert!(leader(&cluster).await != id, "the others have elected a leader");
        cluster.network().heal();
    });
}

#[test]
fn one_way_cuts_do_not_split_the_group() {
    play("one-way cuts", 3, |cluster| async move {
        for outwards in [true, false] {
            let id = leader(&cluster).await;
            let others = others(&cluster, id);
            let pairs = others.into_iter().map(|other| if outwards { (id, other) } else { (other, id) });
            cluster.network().set(|state| state.cuts.extend(pairs));
            sleep_ms(3_000).await;
            cluster.network().heal();
            sleep_ms(500).await;
        }
    });
}

#[test]
fn leadership_is_handed_over_and_the_old_lease_ends_first() {
    play("handing over", 3, |cluster| async move {
        for _ in 0..5 {
            let id = leader(&cluster).await;
            let to = others(&cluster, id)[0];
            cluster.at(id, 0, move |group| async move { group.transfer_leadership(to).await }).await;
            assert_eq!(runtime::on(cluster.node(id), || cluster.group(id, 0).unwrap().has_lease()), None);
            sleep_ms(400).await;
        }
    });
}

#[test]
fn a_partition_during_a_change_of_members_keeps_one_history() {
    play("partition during a change", 5, |cluster| async move {
        let id = leader(&cluster).await;
        let dead = others(&cluster, id)[0];
        cluster.crash(dead);
        let changing = cluster.clone();
        let change = spawn_on(TEST, async move { changing.replace(dead).await });
        sleep_ms(180).await;
        let ids = cluster.ids();
        let (few, many) = ids.split_at(2);
        cluster.network().cut(few, many);
        sleep_ms(3_000).await;
        cluster.network().heal();
        change.await.unwrap();
    });
}

#[test]
fn messages_lost_repeated_and_reordered_do_not_double_writes() {
    play("lost, repeated, reordered", 3, |cluster| async move {
        cluster.network().set(|state| {
            (state.drops, state.repeats, state.reorders, state.delay_us) = (100, 300, true, (100, 40_000));
        });
        sleep_ms(6_000).await;
    });
}

#[test]
fn more_than_a_minority_crash_one_after_the_other() {
    play("one after the other", 3, |cluster| async move {
        for _ in 0..3 {
            let one = cluster.ids()[0];
            cluster.crash(one);
            cluster.replace(one).await;
        }
    });
}

/// The defect must be found by one of several histories.
fn is_found(faults: Faults) -> bool {
    (1..30).any(|seed| crate::random::history(seed, faults, 4).2.is_err())
}

#[test]
fn a_leader_that_reads_without_a_lease_is_found() {
    let faults = Faults { reads_without_lease: true, ..Faults::default() };
    let is_found = (1..8).any(|seed| {
        let main = async move {
            let cluster = Cluster::form(seed, 3, 1, faults).await;
            let clients = (0..4).map(|client| spawn_on(TEST, cluster.clone().client(client))).collect();
            sleep_ms(500).await;
            // Cut off, it leads on as far as it knows, while the others elect another one.
            let old = leader(&cluster).await;
            cluster.network().cut(&[old], &others(&cluster, old));
            sleep_ms(5_000).await;
            cluster.settle(clients).await;
            let history = cluster.0.history.lock().unwrap();
            checker::check(&history).is_err()
        };
        runtime::run(seed, main).0
    });
    assert!(is_found);
}

#[test]
fn an_acknowledgement_before_commit_is_found() {
    assert!(is_found(Faults { acknowledges_before_commit: true, ..Faults::default() }));
}

#[test]
fn a_snapshot_that_forgets_locks_is_found() {
    assert!(is_found(Faults { snapshots_forget_locks: true, ..Faults::default() }));
}

#[test]
fn writes_that_are_repeated_without_a_sequence_are_found() {
    assert!(is_found(Faults { no_deduplication: true, ..Faults::default() }));
}
