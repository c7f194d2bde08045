//! Crashes and replacements of members, changes of voters, and snapshots.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use filbert_cluster::{GroupSettings, Lane, MemberId, MembershipError};

use super::{play, play_alone};
use crate::checker::Kind;
use crate::cluster::{Cluster, Faults, settings, sleep_ms, until};
use crate::runtime::{self, TEST, now_ns, spawn_on};

#[test]
fn a_leader_that_crashes_is_replaced_by_a_new_member() {
    play("crash of the leader", 3, |cluster| async move {
        for _ in 0..2 {
            let old = cluster.serving_leader().await;
            cluster.crash(old);
            let new = cluster.replace(old).await;
            let leader = cluster.serving_leader().await;
            let voters = cluster.of(leader).status().voters;
            assert!(voters.contains(&new) && !voters.contains(&old) && voters.len() == 3, "{voters:?}");
        }
    });
}

#[test]
fn a_log_is_purged_while_a_member_lags_and_a_snapshot_is_made_when_it_returns() {
    play("purge while a member lags", 3, |cluster| async move {
        let lagging = cluster.others(cluster.serving_leader().await)[0];
        let behind = lose_entries(&cluster, lagging).await;
        cluster.network().heal();
        until("it has caught up", || cluster.of(lagging).status().applied > behind.map(|index| index + 40)).await;
        assert!(cluster.of(lagging).status().purged > behind, "it came by a snapshot");
    });
}

/// Cuts a member off until the other members have purged the entries that it lacks. Returns its
/// applied index.
async fn lose_entries(cluster: &Cluster, id: MemberId) -> Option<u64> {
    cluster.network().cut(&[id], &cluster.others(id));
    let behind = cluster.of(id).status().applied;
    until("its entries are purged", || {
        let leader = cluster.leader(0).filter(|leader| *leader != id);
        leader.is_some_and(|leader| cluster.of(leader).status().purged > behind.map(|index| index + 20))
    })
    .await;
    behind
}

#[test]
fn a_partition_during_a_change_of_members_keeps_one_history() {
    play("partition during a change", 5, |cluster| async move {
        let id = cluster.serving_leader().await;
        let dead = cluster.others(id)[0];
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
fn more_than_a_minority_crash_one_after_the_other() {
    play("one after the other", 3, |cluster| async move {
        for _ in 0..3 {
            let one = cluster.ids()[0];
            cluster.crash(one);
            cluster.replace(one).await;
        }
    });
}

#[test]
fn one_is_isolated_while_another_restarts_as_a_new_member() {
    play("isolated and restarting", 3, |cluster| async move {
        let leader = cluster.serving_leader().await;
        let others = cluster.others(leader);
        cluster.network().cut(&[others[0]], &cluster.others(others[0]));
        cluster.crash(others[1]);
        // Without a majority nothing is served, and no member joins.
        sleep_ms(1_500).await;
        assert!(cluster.ids().iter().all(|id| !cluster.has_lease(*id)));
        let replacing = cluster.clone();
        let replaced = spawn_on(TEST, async move { replacing.replace(others[1]).await });
        sleep_ms(1_500).await;
        cluster.network().heal();
        let new = replaced.await.unwrap();
        let leader = cluster.serving_leader().await;
        assert!(cluster.of(leader).status().voters.contains(&new));
    });
}

#[test]
fn two_operators_who_remove_different_members_at_once_do_not_undo_each_other() {
    play_alone("two operators", 5, |cluster| async move {
        cluster.0.voters_min.store(3, Ordering::SeqCst);
        let leader = cluster.serving_leader().await;
        let from = cluster.of(leader).status().voters;
        let gone: Vec<MemberId> = cluster.others(leader).into_iter().take(2).collect();
        let removing = |gone: MemberId, from: BTreeSet<MemberId>| {
            let cluster = cluster.clone();
            let to: BTreeSet<MemberId> = from.iter().copied().filter(|id| *id != gone).collect();
            spawn_on(TEST, async move {
                let change = cluster.at(leader, 0, move |group| async move { group.change_voters(&from, to).await });
                change.await.expect("the group answers in time")
            })
        };
        let (first, second) = (removing(gone[0], from.clone()), removing(gone[1], from.clone()));
        let results = [first.await.unwrap(), second.await.unwrap()];
        let refused: Vec<_> = results.iter().filter_map(|result| result.as_ref().err()).collect();
        assert_eq!(refused.len(), 1, "one of two changes of the same voters: {results:?}");
        assert!(
            matches!(refused[0], MembershipError::Changed { .. } | MembershipError::InProgress { .. }),
            "{}",
            refused[0]
        );
        let now = cluster.of(leader).status().voters;
        assert_eq!(now.len(), 4);
        // An operator that checks the voters again can remove the other member as well.
        let left = gone.into_iter().find(|id| now.contains(id)).unwrap();
        assert_eq!(removing(left, now).await.unwrap(), Ok(()));
        until("three voters", || cluster.of(leader).status().voters.len() == 3).await;
    });
}

#[test]
fn voters_are_not_changed_by_a_leader_whom_no_majority_answers() {
    play_alone("reconfiguration during a partition", 5, |cluster| async move {
        let old = cluster.serving_leader().await;
        let others = cluster.others(old);
        let from = cluster.of(old).status().voters;
        cluster.network().cut(&[old, others[0]], &others[1..]);
        sleep_ms(1_100).await;
        let few: BTreeSet<MemberId> = [old, others[0], others[1]].into();
        let wanted = from.clone();
        let change = cluster.at(old, 0, move |group| async move { group.change_voters(&wanted, few).await }).await;
        assert!(matches!(change, Some(Err(MembershipError::NoMajority { answered: 2, needed: 3, .. }))), "{change:?}");
        // The other side has a majority, and replaces missing members. The wanted voters must
        // answer as well.
        until("a leader of the majority", || cluster.leader(0).is_some_and(|id| id != old)).await;
        let new = cluster.serving_leader().await;
        let absent: BTreeSet<MemberId> = [MemberId(77), MemberId(78), old, others[0], new].into();
        let wanted = from.clone();
        let change = cluster.at(new, 0, move |group| async move { group.change_voters(&wanted, absent).await }).await;
        assert!(matches!(change, Some(Err(MembershipError::NoMajority { answered: 1, .. }))), "{change:?}");
        cluster.replace(others[0]).await;
        cluster.network().heal();
        until("all know", || !cluster.of(old).status().voters.contains(&others[0])).await;
        cluster.crash(others[0]);
    });
}

#[test]
fn a_snapshot_that_takes_the_place_of_a_configuration_that_was_never_committed_has_the_committed_one() {
    play("snapshot over a configuration", 3, |cluster| async move {
        let old = cluster.serving_leader().await;
        let stranger = cluster.start_member().await;
        cluster.network().cut(&[old], &cluster.others(old));
        // Appended only on this member: a configuration with a member that is unknown to the
        // others.
        let proposing = cluster.clone();
        let proposed = spawn_on(TEST, async move {
            proposing.at(old, 0, move |group| async move { group.add_learner(stranger).await }).await
        });
        lose_entries(&cluster, old).await;
        assert!(!matches!(proposed.await.unwrap(), Some(Ok(()))), "nobody has agreed to it");
        cluster.network().heal();
        let new = cluster.serving_leader().await;
        until("it follows", || cluster.of(old).status().leader == cluster.leader(0)).await;
        until("it came by a snapshot", || cluster.of(old).status().purged.is_some()).await;
        assert_eq!(cluster.of(old).status().voters, cluster.of(new).status().voters);
        cluster.crash(stranger);
    });
}

#[test]
fn a_snapshot_is_brought_while_the_voters_are_being_changed() {
    play("snapshot during a change", 5, |cluster| async move {
        let leader = cluster.serving_leader().await;
        let others = cluster.others(leader);
        lose_entries(&cluster, others[0]).await;
        cluster.network().heal();
        cluster.network().set(|state| state.slow = Some((others[0], Lane::Snapshots, 30_000)));
        cluster.crash(others[1]);
        cluster.replace(others[1]).await;
        let applied = cluster.of(leader).status().applied;
        until("it has caught up", || cluster.of(others[0]).status().applied >= applied).await;
    });
}

#[test]
fn a_member_that_gave_up_its_replica_does_not_vote_for_a_member_that_knows_nothing_of_it() {
    play("vote without a log", 3, |cluster| async move {
        let leader = cluster.serving_leader().await;
        let [late, gone] = cluster.others(leader)[..] else { panic!("three members") };
        cluster.network().cut(&[late], &cluster.others(late));
        // The late member knows only the configuration with the member that is removed here.
        let new = cluster.start_member().await;
        cluster.replace_by(gone, new).await;
        while !cluster.give_up(gone, 0).await {
            sleep_ms(50).await;
        }
        cluster.network().heal();
        cluster.network().cut(&[late, gone], &[cluster.serving_leader().await, new]);
        // Both would be a majority of that configuration.
        let elected = cluster.of(late).counters().elections_won;
        sleep_ms(5_000).await;
        assert_eq!(cluster.of(late).counters().elections_won, elected, "it has no majority");
        cluster.network().heal();
        // A member that comes back receives everything anew.
        cluster.replace_by(late, gone).await;
        cluster.crash(late);
    });
}

#[test]
fn a_leader_does_not_take_its_own_vote() {
    play_alone("own vote", 3, |cluster| async move {
        let leader = cluster.serving_leader().await;
        let new = cluster.start_member().await;
        let from = cluster.of(leader).status().voters;
        let to: BTreeSet<MemberId> = cluster.others(leader).into_iter().collect();
        assert!(to.contains(&new));
        let change = cluster.at(leader, 0, move |group| async move { group.change_voters(&from, to).await }).await;
        assert!(matches!(change, Some(Err(MembershipError::OwnVote { member, .. })) if member == leader), "{change:?}");
        // It hands over before.
        cluster.replace_by(leader, new).await;
        assert!(!cluster.of(cluster.serving_leader().await).status().voters.contains(&leader));
    });
}

#[test]
fn a_member_gives_up_its_replica_only_if_it_was_removed() {
    play("no reason to give up", 3, |cluster| async move {
        let leader = cluster.serving_leader().await;
        let voter = cluster.others(leader)[0];
        assert!(!cluster.give_up(voter, 0).await);
        let learner = cluster.start_member().await;
        let added = cluster.at(leader, 0, move |group| async move { group.add_learner(learner).await }).await;
        until("it follows", || !cluster.of(learner).is_empty() || !matches!(added, Some(Ok(())))).await;
        assert!(!cluster.give_up(learner, 0).await);
        cluster.crash(learner);
    });
}

#[test]
fn a_snapshot_keeps_to_its_rate() {
    const RATE: u64 = 4 << 10;
    for seed in 1..3 {
        runtime::run(seed, async move {
            let settings = GroupSettings { snapshot_bytes_per_s_max: RATE, ..settings(1) };
            let cluster = Cluster::form_with(seed, 3, settings, Faults::default()).await;
            let leader = cluster.serving_leader().await;
            let lagging = cluster.others(leader)[0];
            cluster.network().cut(&[lagging], &cluster.others(lagging));
            for key in 0..2_000 {
                assert!(cluster.change_at(leader, 1, key, Kind::Put(u64::from(key))).await.is_some());
            }
            // A record has at least its key and value in a page.
            let bytes_min = 2_000 * (4 + 8);
            let began = now_ns();
            cluster.network().heal();
            let applied = cluster.of(leader).status().applied;
            loop {
                sleep_ms(50).await;
                if cluster.of(lagging).status().applied >= applied {
                    break;
                }
                assert!(now_ns() - began < 120_000_000_000, "the snapshot does not come");
            }
            let took_ms = (now_ns() - began) / 1_000_000;
            // Clocks run up to 4 % faster.
            assert!(took_ms * RATE * 104 / 100 >= bytes_min * 1_000, "{bytes_min} bytes in {took_ms} ms");
            cluster.settle(Vec::new()).await;
        });
    }
}
