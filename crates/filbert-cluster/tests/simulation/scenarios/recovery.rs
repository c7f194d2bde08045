//! A group that has lost its majority for good continues with the most advanced surviving copy.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use filbert_cluster::{GroupCopy, MemberId};

use super::play_alone;
use crate::checker::Kind;
use crate::cluster::{Cluster, sleep_ms, until};

/// Makes changes that a leader acknowledges.
async fn change(cluster: &Cluster, leader: MemberId, keys: std::ops::Range<u32>) {
    for key in keys {
        assert!(cluster.change_at(leader, 1, key, Kind::Put(u64::from(key))).await.is_some());
    }
}

/// Fences the surviving members, and re-forms the group at the member with the most advanced copy.
async fn go_on(cluster: &Cluster, left: &[MemberId]) -> MemberId {
    let there: BTreeSet<MemberId> = left.iter().copied().collect();
    let term = left.iter().map(|id| cluster.of(*id).copy().term).max().unwrap() + 1_000;
    let mut copies: Vec<(GroupCopy, MemberId)> = Vec::new();
    for id in left {
        let there = there.clone();
        let fenced = cluster.at(*id, 0, move |group| async move { group.fence(term, &there).await }).await;
        copies.push((fenced.unwrap().unwrap(), *id));
    }
    let (copy, best) = copies.iter().max_by_key(|(copy, _)| copy.last).unwrap();
    cluster.0.voters_min.store(1, Ordering::SeqCst);
    cluster.forget_lost(0, copy.last.map_or(0, |last| last.index));
    cluster.at(*best, 0, move |group| async move { group.reform(term).await }).await.unwrap().unwrap();
    *best
}

/// Makes members voters in addition to the only voter.
async fn let_vote(cluster: &Cluster, leader: MemberId, members: &[MemberId]) {
    for id in members.iter().copied() {
        cluster.at(leader, 0, move |group| async move { group.add_learner(id).await }).await;
    }
    let to: BTreeSet<MemberId> = members.iter().copied().chain([leader]).collect();
    until("they have caught up", || {
        let status = cluster.of(leader).status();
        members.iter().all(|id| status.matched.get(id).copied() >= status.committed)
    })
    .await;
    let from = cluster.of(leader).status().voters;
    let wanted = to.clone();
    cluster.at(leader, 0, move |group| async move { group.change_voters(&from, wanted).await }).await;
    until("they vote", || cluster.of(leader).status().voters == to).await;
}

#[test]
fn what_is_left_goes_on_with_the_most_advanced_copy() {
    play_alone("most voters die", 5, |cluster| async move {
        let leader = cluster.serving_leader().await;
        let others = cluster.others(leader);
        change(&cluster, leader, 0..10).await;
        cluster.network().cut(&[others[0]], &cluster.others(others[0]));
        change(&cluster, leader, 10..20).await;
        cluster.network().cut(&[others[1]], &cluster.others(others[1]));
        change(&cluster, leader, 20..30).await;
        for dead in [leader, others[2], others[3]] {
            cluster.crash(dead);
        }
        cluster.network().heal();
        sleep_ms(3_000).await;
        let left = [others[0], others[1]];
        assert!(left.iter().all(|id| !cluster.has_lease(*id)), "without a majority nobody serves");
        let before = cluster.of(others[1]).status().applied;
        assert_eq!(go_on(&cluster, &left).await, others[1]);
        assert_eq!(cluster.serving_leader().await, others[1]);
        assert!(cluster.of(others[1]).status().applied > before);
        // The other member drops the entries that differ, and a new member receives all entries.
        let new = cluster.start_member().await;
        let_vote(&cluster, others[1], &[others[0], new]).await;
        change(&cluster, others[1], 30..40).await;
    });
}

#[test]
fn a_leader_that_has_lost_its_majority_goes_on_with_what_it_alone_has() {
    play_alone("a leader is left", 3, |cluster| async move {
        let leader = cluster.serving_leader().await;
        change(&cluster, leader, 0..10).await;
        for dead in cluster.others(leader) {
            cluster.crash(dead);
        }
        // No member answers: the change is only in this member's log.
        let unknown = cluster.change_at(leader, 1, 10, Kind::Put(10)).await;
        assert!(unknown.is_none());
        sleep_ms(3_000).await;
        let entries = cluster.of(leader).copy().last.unwrap();
        assert_eq!(go_on(&cluster, &[leader]).await, leader);
        assert!(cluster.of(leader).status().applied > Some(entries.index), "what it had alone is made");
        let first = cluster.start_member().await;
        let second = cluster.start_member().await;
        let_vote(&cluster, leader, &[first, second]).await;
        change(&cluster, leader, 11..20).await;
    });
}

#[test]
fn a_leader_that_is_heard_of_keeps_its_votes() {
    play_alone("the majority is there", 3, |cluster| async move {
        let leader = cluster.serving_leader().await;
        let one = cluster.others(leader)[0];
        let there: BTreeSet<MemberId> = [one].into();
        let term = cluster.of(one).copy().term + 1_000;
        let fenced = cluster.at(one, 0, move |group| async move { group.fence(term, &there).await }).await.unwrap();
        let why = fenced.unwrap_err().to_string();
        assert!(why.contains("has heard of its leader a moment ago"), "{why}");
        change(&cluster, leader, 0..10).await;
        assert_eq!(cluster.of(leader).status().term, cluster.of(one).copy().term);
    });
}
