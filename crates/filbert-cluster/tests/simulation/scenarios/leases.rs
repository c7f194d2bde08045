//! The right to serve reads: pauses, suspensions, hand-over, and leaders that have not begun.

use std::time::Duration;

use filbert_cluster::{Lane, ReadError};
use filbert_data::PartitionId;

use super::{play, play_alone};
use crate::checker::{Kind, Outcome};
use crate::cluster::{sleep_ms, until};
use crate::runtime::{self, TEST, spawn_on};

#[test]
fn a_pause_of_the_leader_beyond_its_lease_serves_no_old_reads() {
    play("pause beyond the lease", 3, |cluster| async move {
        for pause_ms in [600, 1_100, 2_500] {
            let id = cluster.serving_leader().await;
            runtime::pause(cluster.node(id));
            sleep_ms(pause_ms).await;
            runtime::resume(cluster.node(id));
            sleep_ms(700).await;
        }
    });
}

#[test]
fn a_lease_that_runs_out_in_the_midst_of_a_read_serves_nothing_of_it() {
    play_alone("pause in the midst of a read", 3, |cluster| async move {
        // Each answer to a heartbeat is repeated, sometimes after the pause.
        cluster.network().set(|state| (state.repeats, state.reorders, state.delay_us) = (1_000, true, (100, 30_000)));
        for _ in 0..5 {
            let id = cluster.serving_leader().await;
            let node = cluster.node(id);
            let read = runtime::on(node, || {
                cluster.of(id).read(PartitionId(0), |_, _| runtime::suspend(node, Duration::from_millis(1_500)))
            });
            assert!(matches!(read, Err(ReadError::NoLease { .. })), "{read:?}");
            // Acknowledgements from before the pause do not restore the lease: the lease counts
            // from requests that were sent after it.
            let lease = runtime::on(node, || cluster.of(id).has_lease());
            assert_eq!(lease, None);
            sleep_ms(800).await;
        }
    });
}

#[test]
fn a_machine_that_was_suspended_has_no_lease() {
    play("suspension", 3, |cluster| async move {
        for suspended_ms in [900, 3_000] {
            let id = cluster.serving_leader().await;
            runtime::suspend(cluster.node(id), Duration::from_millis(suspended_ms));
            assert!(!cluster.has_lease(id), "its clock has run on");
            sleep_ms(1_000).await;
        }
    });
}

#[test]
fn a_new_leader_serves_no_read_before_its_first_entry_is_committed() {
    play_alone("a read before the first entry", 3, |cluster| async move {
        let old = cluster.serving_leader().await;
        assert_eq!(cluster.change_at(old, 1, 0, Kind::Put(1)).await, Some(Outcome::Value(None)));
        // A leader that is elected by votes cannot replicate its first entry.
        let others = cluster.others(old);
        let pairs = [(others[0], others[1], Lane::Data), (others[1], others[0], Lane::Data)];
        cluster.network().set(|state| state.lane_cuts.extend(pairs));
        cluster.crash(old);
        cluster.0.voters_min.store(0, std::sync::atomic::Ordering::SeqCst);
        until("a leader by votes", || cluster.leader(0).is_some()).await;
        for _ in 0..50 {
            for id in &others {
                assert!(!cluster.has_lease(*id), "no entry of its term is committed");
                let read = runtime::on(cluster.node(*id), || cluster.of(*id).read(PartitionId(0), |_, _| ()));
                assert!(matches!(read, Err(ReadError::NoLease { .. })), "{read:?}");
            }
            sleep_ms(20).await;
        }
        cluster.network().heal();
        let new = cluster.serving_leader().await;
        assert_eq!(cluster.get_at(new, 0).await, Some(Some(1)));
    });
}

#[test]
fn leadership_is_handed_over_and_the_old_lease_ends_first() {
    play("handing over", 3, |cluster| async move {
        for _ in 0..5 {
            let id = cluster.serving_leader().await;
            let to = cluster.others(id)[0];
            cluster.at(id, 0, move |group| async move { group.transfer_leadership(to).await }).await;
            assert!(!cluster.has_lease(id));
            sleep_ms(400).await;
        }
    });
}

#[test]
fn reads_by_lease_during_a_transfer_that_is_late_are_those_of_one_leader() {
    play_alone("reads during a transfer", 3, |cluster| async move {
        for value in 1..6u64 {
            let old = cluster.serving_leader().await;
            let term = cluster.of(old).status().term;
            let to = cluster.others(old)[0];
            // The hand-over message arrives long after the leader has sent it.
            cluster.network().set(|state| state.slow = Some((to, Lane::Control, 200_000)));
            let handing = cluster.clone();
            let handed = spawn_on(TEST, async move {
                handing.at(old, 0, move |group| async move { group.transfer_leadership(to).await }).await
            });
            handed.await.unwrap();
            while cluster.of(old).status().term == term {
                assert!(!cluster.has_lease(old), "the lease does not return in a term that was handed over");
                sleep_ms(5).await;
            }
            cluster.network().heal();
            let new = cluster.serving_leader().await;
            assert!(cluster.change_at(new, 1, 0, Kind::Put(value)).await.is_some());
            for id in cluster.ids() {
                let seen = cluster.get_at(id, 0).await;
                assert!(seen.is_none_or(|seen| seen == Some(value)), "member {id} shows {seen:?}");
            }
        }
    });
}
