//! Expiry of entries and of leases of locks, with clocks that differ.

use std::time::Duration;

use filbert_cluster::Lane;

use super::play_alone;
use crate::checker::{Kind, Outcome};
use crate::cluster::{Cluster, Faults, sleep_ms, until};
use crate::runtime::{self, TEST, spawn_on};

#[test]
fn the_holder_of_a_lock_that_was_paused_beyond_its_lease_has_lost_it() {
    play_alone("a lock's holder paused", 3, |cluster| async move {
        let at = cluster.serving_leader().await;
        assert_eq!(cluster.change_at(at, 1, 0, Kind::LockFor(500)).await, Some(Outcome::Flag(true)));
        assert_eq!(cluster.change_at(at, 2, 0, Kind::Lock).await, Some(Outcome::Locked));
        // The holder does nothing for longer than its lease.
        sleep_ms(1_500).await;
        let at = cluster.serving_leader().await;
        assert_eq!(cluster.change_at(at, 2, 0, Kind::Lock).await, Some(Outcome::Flag(true)));
        assert_eq!(cluster.change_at(at, 1, 0, Kind::Put(1)).await, Some(Outcome::Locked));
        assert_eq!(cluster.change_at(at, 1, 0, Kind::Unlock).await, Some(Outcome::NotOwner));
        assert_eq!(cluster.change_at(at, 2, 0, Kind::Put(2)).await, Some(Outcome::Value(None)));
    });
}

#[test]
fn a_lease_of_a_lock_ends_once_whoever_leads() {
    play_alone("a lock's lease over leaders", 3, |cluster| async move {
        let old = cluster.serving_leader().await;
        assert_eq!(cluster.change_at(old, 1, 0, Kind::LockFor(1_500)).await, Some(Outcome::Flag(true)));
        cluster.crash(old);
        cluster.replace(old).await;
        sleep_ms(1_500).await;
        let new = cluster.serving_leader().await;
        assert_eq!(cluster.change_at(new, 2, 0, Kind::Lock).await, Some(Outcome::Flag(true)));
        assert_eq!(cluster.change_at(new, 1, 0, Kind::Unlock).await, Some(Outcome::NotOwner));
    });
}

/// Returns whether an entry comes back that a read has found expired, if another member leads
/// before a command has recorded the expiry.
async fn expired_entry_comes_back(cluster: &Cluster) -> bool {
    let old = cluster.serving_leader().await;
    let others = cluster.others(old);
    // The wall clock of each next leader is behind the clock of the old leader by more than a
    // failover takes.
    others.iter().for_each(|id| cluster.jump_clock(*id, -6_000));
    cluster.change_at(old, 1, 0, Kind::PutFor(1, 300)).await.unwrap();
    while cluster.get_at(old, 0).await != Some(None) {
        sleep_ms(10).await;
    }
    cluster.crash(old);
    cluster.0.voters_min.store(0, std::sync::atomic::Ordering::SeqCst);
    let new = cluster.serving_leader().await;
    let seen = cluster.get_at(new, 0).await;
    seen == Some(Some(1))
}

#[test]
fn a_read_beside_a_write_in_flight_is_at_no_later_time() {
    play_alone("a read beside a write", 3, |cluster| async move {
        let leader = cluster.serving_leader().await;
        cluster.change_at(leader, 1, 0, Kind::PutFor(1, 300)).await.unwrap();
        // Entries do not arrive any more. Heartbeats do, and the lease continues.
        let pairs: Vec<_> = cluster.others(leader).into_iter().map(|id| (leader, id, Lane::Data)).collect();
        cluster.network().set(|state| state.lane_cuts.extend(pairs));
        let writing = cluster.clone();
        let write = spawn_on(TEST, async move { writing.change_at(leader, 1, 0, Kind::Put(2)).await });
        sleep_ms(500).await;
        assert_eq!(cluster.get_at(leader, 0).await, Some(Some(1)), "the write will find it alive");
        cluster.network().heal();
        assert_eq!(write.await.unwrap(), Some(Outcome::Value(Some(1))));
        assert_eq!(cluster.get_at(leader, 0).await, Some(Some(2)));
    });
}

#[test]
fn what_a_read_has_found_expired_is_expired_for_the_next_leader() {
    play_alone("expired for the next leader", 3, |cluster| async move {
        assert!(!expired_entry_comes_back(&cluster).await);
    });
}

#[test]
fn members_that_do_not_keep_the_time_of_reads_are_found() {
    let faults = Faults { forgets_times: true, ..Faults::default() };
    let comes_back = |seed| {
        let main = async move {
            let cluster = Cluster::form(seed, 3, 1, faults).await;
            expired_entry_comes_back(&cluster).await
        };
        runtime::run(seed, main).0
    };
    assert!((1..10).any(comes_back));
}

#[test]
fn what_reads_keep_alive_lives_on_under_the_next_leader_and_what_nobody_read_goes() {
    play_alone("max idle over leaders", 3, |cluster| async move {
        let old = cluster.serving_leader().await;
        cluster.change_at(old, 1, 0, Kind::PutIdle(1, 2_000)).await.unwrap();
        cluster.change_at(old, 1, 4, Kind::PutIdle(2, 2_000)).await.unwrap();
        for _ in 0..30 {
            sleep_ms(60).await;
            assert_eq!(cluster.get_at(old, 0).await, Some(Some(1)));
        }
        // By the log alone, the entry would expire soon.
        let to = cluster.others(old)[0];
        cluster.at(old, 0, move |group| async move { group.transfer_leadership(to).await }).await;
        let new = cluster.serving_leader().await;
        assert_ne!(new, old);
        sleep_ms(700).await;
        assert_eq!(cluster.get_at(new, 0).await, Some(Some(1)), "its reads were told");
        assert_eq!(cluster.get_at(new, 4).await, Some(None), "nobody has read it");
    });
}

#[test]
fn an_entry_that_is_read_all_the_time_outlives_a_leader_that_crashes() {
    // By the log alone, the entry expires during the election if no read was recorded.
    for read_ms in (600..3_900).step_by(300) {
        play_alone("max idle over a crash", 3, move |cluster| async move {
            let old = cluster.serving_leader().await;
            cluster.change_at(old, 1, 0, Kind::PutIdle(1, 4_000)).await.unwrap();
            for _ in 0..read_ms / 60 {
                sleep_ms(60).await;
                assert_eq!(cluster.get_at(old, 0).await, Some(Some(1)));
            }
            cluster.crash(old);
            let new = cluster.serving_leader().await;
            assert_eq!(cluster.get_at(new, 0).await, Some(Some(1)), "its reads were recorded");
            cluster.replace(old).await;
        });
    }
}

#[test]
fn a_leader_that_returns_has_forgotten_what_it_read_in_an_earlier_term() {
    play_alone("reads of an earlier term", 3, |cluster| async move {
        let first = cluster.serving_leader().await;
        cluster.change_at(first, 1, 0, Kind::PutIdle(1, 8_000)).await.unwrap();
        sleep_ms(3_500).await;
        // The log need not know of the read yet, as the entry expires much later by the log. After
        // that, the leader cannot reach other members any more.
        assert_eq!(cluster.get_at(first, 0).await, Some(Some(1)));
        cluster.network().cut(&[first], &cluster.others(first));
        until("another leader", || cluster.leader(0) != Some(first)).await;
        let second = cluster.serving_leader().await;
        cluster.network().heal();
        sleep_ms(6_500).await;
        assert_eq!(cluster.get_at(second, 0).await, Some(None), "nobody has told it of the read");
        cluster.at(second, 0, move |group| async move { group.transfer_leadership(first).await }).await;
        let third = cluster.serving_leader().await;
        assert_eq!(cluster.get_at(third, 0).await, Some(None), "expired for one leader, expired for all");
    });
}

#[test]
fn reads_go_on_while_the_time_of_day_jumps_ahead_and_back() {
    play_alone("times of day that jump", 3, |cluster| async move {
        for ms in [60_000, -120_000, 3_600_000, -7_200_000] {
            let id = cluster.serving_leader().await;
            cluster.jump_clock(id, ms);
            runtime::suspend(cluster.node(cluster.others(id)[0]), Duration::from_millis(10));
            sleep_ms(400).await;
            let at = cluster.serving_leader().await;
            assert!(cluster.get_at(at, 0).await.is_some());
            cluster.change_at(at, 1, 0, Kind::PutFor(1, 300)).await.unwrap();
            cluster
                .at(at, 0, {
                    let to = cluster.others(at)[0];
                    move |group| async move { group.transfer_leadership(to).await }
                })
                .await;
        }
    });
}
