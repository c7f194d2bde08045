//! Network partitions, and lost and late messages.

use filbert_cluster::{Lane, ReadError};
use filbert_data::PartitionId;

use super::{play, play_alone};
use crate::checker::{Kind, Outcome};
use crate::cluster::sleep_ms;
use crate::runtime;

#[test]
fn a_bridge_partition_keeps_one_history() {
    play("bridge", 3, |cluster| async move {
        let id = cluster.serving_leader().await;
        let other = cluster.others(id)[0];
        cluster.network().cut(&[id], &[other]);
        sleep_ms(4_000).await;
        cluster.network().heal();
    });
}

#[test]
fn a_leader_alone_on_its_side_serves_nothing() {
    play("leader in the minority", 5, |cluster| async move {
        let id = cluster.serving_leader().await;
        cluster.network().cut(&[id], &cluster.others(id));
        sleep_ms(1_200).await;
        assert!(!cluster.has_lease(id));
        let read = runtime::on(cluster.node(id), || cluster.of(id).read(PartitionId(0), |_, _| ()));
        assert!(matches!(read, Err(ReadError::NoLease { .. })), "{read:?}");
        sleep_ms(2_000).await;
        assert!(cluster.serving_leader().await != id, "the others have elected a leader");
        cluster.network().heal();
    });
}

#[test]
fn one_way_cuts_do_not_split_the_group() {
    play("one-way cuts", 3, |cluster| async move {
        for outwards in [true, false] {
            let id = cluster.serving_leader().await;
            let others = cluster.others(id);
            let pairs = others.into_iter().map(|other| if outwards { (id, other) } else { (other, id) });
            cluster.network().set(|state| state.cuts.extend(pairs));
            sleep_ms(3_000).await;
            cluster.network().heal();
            sleep_ms(500).await;
        }
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
fn acknowledgements_out_of_order_among_five_voters_commit_no_gap() {
    play("acknowledgements out of order", 5, |cluster| async move {
        cluster.network().set(|state| (state.reorders, state.delay_us) = (true, (100, 80_000)));
        for _ in 0..4 {
            // In each round another member is later than the others. The leader changes in between.
            let id = cluster.serving_leader().await;
            let slow = cluster.others(id)[0];
            cluster.network().set(|state| state.slow = Some((slow, Lane::Data, 120_000)));
            sleep_ms(1_500).await;
            cluster.at(id, 0, move |group| async move { group.transfer_leadership(slow).await }).await;
        }
    });
}

#[test]
fn locks_and_ids_of_the_minority_side_are_not_given_out() {
    play_alone("locks and ids of the minority", 3, |cluster| async move {
        let old = cluster.serving_leader().await;
        cluster.network().cut(&[old], &cluster.others(old));
        assert_eq!(cluster.change_at(old, 1, 0, Kind::Lock).await, None, "nobody else knows of the lock");
        let opened = cluster.at(old, 0, |group| async move { group.open_origin().await }).await;
        assert!(!matches!(opened, Some(Ok(_))), "an id that others may be given as well: {opened:?}");
        sleep_ms(2_500).await;
        let new = cluster.serving_leader().await;
        assert_ne!(new, old);
        assert_eq!(cluster.change_at(new, 2, 0, Kind::Lock).await, Some(Outcome::Flag(true)));
        let ids = [0, 1].map(|_| cluster.at(new, 0, |group| async move { group.open_origin().await }));
        let [first, second] = ids;
        let (first, second) = (first.await.unwrap().unwrap(), second.await.unwrap().unwrap());
        assert_ne!(first, second);
        cluster.network().heal();
        sleep_ms(1_500).await;
        // The lock that was requested on the minority side was not granted.
        let now = cluster.serving_leader().await;
        assert_eq!(cluster.change_at(now, 1, 0, Kind::Put(1)).await, Some(Outcome::Locked));
        assert_eq!(cluster.change_at(now, 2, 0, Kind::Put(2)).await, Some(Outcome::Value(None)));
        let third = cluster.at(now, 0, |group| async move { group.open_origin().await }).await.unwrap().unwrap();
        assert!(third != first && third != second);
    });
}
