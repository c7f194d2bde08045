//! Announcements of commits: held until the next entries, and sent at once for a read at a
//! follower.

use filbert_cluster::{GroupSettings, Lane};

use crate::checker::Kind;
use crate::cluster::{Cluster, Faults, settings, sleep_ms, until};
use crate::runtime;

const CHANGES: u64 = 40;

/// The number of requests with entries or commits for each of several sequential changes.
async fn requests_per_change(cluster: &Cluster) -> u64 {
    let leader = cluster.serving_leader().await;
    let sent = || cluster.network().0.lock().unwrap().requests.get(&Lane::Data).copied().unwrap_or(0);
    let before = sent();
    for value in 0..CHANGES {
        cluster.change_at(leader, 1, 0, Kind::Put(value)).await.unwrap();
    }
    (sent() - before) / CHANGES
}

fn cluster_with<F>(commit_hold_ms: u64, play: impl FnOnce(Cluster) -> F + Send + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    runtime::run(7, async move {
        let settings = GroupSettings { commit_hold_ms, ..settings(1) };
        let cluster = Cluster::form_with(7, 3, settings, Faults::default()).await;
        play(cluster.clone()).await;
        cluster.settle(Vec::new()).await;
    });
}

#[test]
fn entries_bring_the_commits_before_them() {
    cluster_with(0, |cluster| async move {
        assert!(requests_per_change(&cluster).await >= 3, "each follower hears twice");
    });
    cluster_with(20, |cluster| async move {
        assert_eq!(requests_per_change(&cluster).await, 2, "each follower hears once");
    });
}

#[test]
fn followers_hear_of_the_last_commit_without_another_entry() {
    cluster_with(20, |cluster| async move {
        let leader = cluster.serving_leader().await;
        cluster.change_at(leader, 1, 0, Kind::Put(1)).await.unwrap();
        let applied = cluster.of(leader).state().0;
        sleep_ms(30).await;
        for follower in cluster.others(leader) {
            assert_eq!(cluster.of(follower).state().0, applied, "before the next heartbeat");
        }
    });
}

#[test]
fn whoever_reads_at_a_follower_does_not_wait_for_held_commits() {
    // Heartbeats would carry the commit after 100 ms.
    cluster_with(60_000, |cluster| async move {
        let leader = cluster.serving_leader().await;
        for value in 0..CHANGES {
            cluster.change_at(leader, 1, 0, Kind::Put(value)).await.unwrap();
            let point = cluster.of(leader).read_point().await.unwrap();
            let began_ns = runtime::now_ns();
            for follower in cluster.others(leader) {
                cluster.of(follower).reach(point).await;
            }
            let waited_ms = (runtime::now_ns() - began_ns) / 1_000_000;
            assert!(waited_ms < 10, "the followers heard of commit {} after {waited_ms} ms", point.index);
        }
        until("the last is applied everywhere", || {
            let applied = |id| cluster.of(id).state().0;
            cluster.ids().into_iter().map(applied).collect::<std::collections::BTreeSet<_>>().len() == 1
        })
        .await;
    });
}
