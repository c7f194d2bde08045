//! Who tells listeners of what, while leaders change: invariants 25 and 26.

use super::play;
use crate::cluster::{Cluster, sleep_ms};
use crate::runtime;

/// Of each change, listeners hear once at least. Says how many they heard of twice.
async fn is_told(cluster: &Cluster) -> usize {
    // What was on its way when the last leader came is applied.
    sleep_ms(500).await;
    let told = cluster.0.told.lock().unwrap();
    assert!(told.count() > 50, "only {} changes", told.count());
    assert_eq!(told.untold(), [], "changes of which nobody has told");
    assert_eq!(told.told_by_more_than(2), [], "changes of which three members have told");
    told.twice
}

#[test]
fn leadership_that_is_handed_over_loses_no_event_and_tells_none_twice() {
    play("events while leadership is handed over", 3, |cluster| async move {
        for turn in 0..24 {
            let id = cluster.serving_leader().await;
            let to = cluster.others(id)[turn % 2];
            // Another round lets changes wait for each other.
            cluster.network().set(|state| state.delay_us = if turn % 3 == 0 { (20_000, 40_000) } else { (100, 2_000) });
            cluster.at(id, 0, move |group| async move { group.transfer_leadership(to).await }).await;
            sleep_ms(150).await;
        }
        cluster.network().heal();
        cluster.serving_leader().await;
        assert_eq!(is_told(&cluster).await, 0, "told twice");
        assert_eq!(cluster.0.told.lock().unwrap().out_of_order(), [], "told after a later one of the same key");
    });
}

#[test]
fn changes_that_were_on_their_way_when_a_leader_died_are_told_by_the_next_one() {
    play("events of a leader that dies", 3, |cluster| async move {
        for _ in 0..4 {
            let id = cluster.serving_leader().await;
            cluster.network().set(|state| state.delay_us = (10_000, 40_000));
            sleep_ms(700).await;
            cluster.crash(id);
            cluster.network().heal();
            cluster.replace(id).await;
        }
        is_told(&cluster).await;
    });
}

#[test]
fn changes_that_were_on_their_way_when_a_leader_was_cut_off_are_told() {
    play("events of a leader that is cut off", 3, |cluster| async move {
        for turn in 0..6 {
            let id = cluster.serving_leader().await;
            let others = cluster.others(id);
            match turn % 3 {
                0 => cluster.network().cut(&[id], &others),
                // Its entries arrive, and no answer comes back.
                1 => cluster.network().set(|state| state.cuts.extend(others.iter().map(|other| (*other, id)))),
                _ => runtime::pause(cluster.node(id)),
            }
            sleep_ms(2_500).await;
            cluster.network().heal();
            runtime::resume(cluster.node(id));
            sleep_ms(500).await;
        }
        is_told(&cluster).await;
    });
}
