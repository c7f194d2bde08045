//! Reports of changes to listeners, while leaders change: invariants 25 and 26.

use super::play;
use crate::cluster::{Cluster, sleep_ms};
use crate::runtime;

/// Checks that each change was reported at least once. Returns the number of changes that were
/// reported twice.
async fn count_reported_twice(cluster: &Cluster) -> usize {
    // Entries that were in flight when the last leader took over are applied after this time.
    sleep_ms(500).await;
    let event_reports = cluster.0.event_reports.lock().unwrap();
    assert!(event_reports.count() > 50, "only {} changes", event_reports.count());
    assert_eq!(event_reports.unreported(), [], "changes of which nobody has told");
    assert_eq!(event_reports.reported_by_more_than(2), [], "changes of which three members have told");
    event_reports.twice
}

#[test]
fn leadership_that_is_handed_over_loses_no_event_and_reports_none_twice() {
    play("events while leadership is handed over", 3, |cluster| async move {
        for turn in 0..24 {
            let id = cluster.serving_leader().await;
            let to = cluster.others(id)[turn % 2];
            // With the longer delays, changes wait for each other.
            cluster.network().set(|state| state.delay_us = if turn % 3 == 0 { (20_000, 40_000) } else { (100, 2_000) });
            cluster.at(id, 0, move |group| async move { group.transfer_leadership(to).await }).await;
            sleep_ms(150).await;
        }
        cluster.network().heal();
        cluster.serving_leader().await;
        assert_eq!(count_reported_twice(&cluster).await, 0, "told twice");
        assert_eq!(
            cluster.0.event_reports.lock().unwrap().out_of_order(),
            [],
            "told after a later one of the same key"
        );
    });
}

#[test]
fn changes_in_flight_when_a_leader_died_are_reported_by_the_next_one() {
    play("events of a leader that dies", 3, |cluster| async move {
        for _ in 0..4 {
            let id = cluster.serving_leader().await;
            cluster.network().set(|state| state.delay_us = (10_000, 40_000));
            sleep_ms(700).await;
            cluster.crash(id);
            cluster.network().heal();
            cluster.replace(id).await;
        }
        count_reported_twice(&cluster).await;
    });
}

#[test]
fn changes_in_flight_when_a_leader_was_cut_off_are_reported() {
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
        count_reported_twice(&cluster).await;
    });
}
