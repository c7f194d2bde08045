//! Clusters that have lost their majority for good continue with the surviving members, by an order
//! or by the setting for pairs. Members that come back later notice this.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::common::data::{found, have_all, is_whole, key, put};
use crate::common::{Proxy, join, join_all, listen, listen_all, listen_behind_proxies, stop, stop_all, until, within};
use filbert_grid::{ClusterOrder, ClusterStatus, GridConfig, GridError, PartitionId};
use filbert_member::{ClusterSettings, Ending, Member, MemberSettings};
use uuid::Uuid;

fn status(member: &Member) -> ClusterStatus {
    member.grid().cluster().unwrap().status().unwrap()
}

/// The number of groups of partitions, plus one for the registry.
fn groups() -> usize {
    ClusterSettings::default().groups as usize + 1
}

fn all_lost() -> String {
    format!("{0} of {0} groups have lost their majority", groups())
}

fn lost(member: &Member) -> usize {
    status(member).lost_groups().count()
}

async fn recover(member: &Member, accepts_data_loss: bool) -> Result<String, String> {
    let (sender, outcome) = tokio::sync::oneshot::channel();
    let done = move |result: Result<String, GridError>| {
        let _gone = sender.send(result.map_err(|error| error.to_string()));
    };
    member.grid().cluster().unwrap().order(ClusterOrder::Recover { accepts_data_loss }, Box::new(done));
    within("the order is carried out or refused", outcome).await.unwrap()
}

async fn ending(member: &Member) -> Option<Ending> {
    let mut ending = member.ending();
    *within("the member is told to end", ending.wait_for(Option::is_some)).await.unwrap()
}

fn partition_uuids(member: &Member) -> Vec<(PartitionId, Uuid)> {
    member.grid().invalidation_metadata([]).partition_uuids
}

fn range_of(numbers: std::ops::Range<u32>) -> BTreeSet<u32> {
    numbers.collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_one_that_is_left_of_three_goes_on_with_what_it_holds_by_an_order_alone() {
    let settings = MemberSettings::default();
    let (starting, addresses) = listen_all(3, &settings, &GridConfig::default()).await;
    let mut members = join_all(starting, &addresses).await;
    until("all is well", || members.iter().all(|member| is_whole(member, 3))).await;
    put(&members.iter().collect::<Vec<_>>(), 0..300).await;
    until("all have all", || have_all(&members.iter().collect::<Vec<_>>())).await;
    let refused = recover(&members[0], true).await.unwrap_err();
    assert!(
        refused.contains(&format!("all {} groups have a majority of their voters", groups()))
            && refused.contains("nothing to"),
        "{refused}"
    );

    let left = members.remove(1);
    let before = partition_uuids(&left);
    let gone: Vec<u64> = members.iter().map(|member| member.id().0).collect();
    stop_all(members).await;
    until("nobody leads", || lost(&left) == groups()).await;
    // The possible losses are described, and nothing is changed.
    let text = recover(&left, false).await.unwrap();
    assert!(text.contains(&all_lost()) && text.contains("The registry: of the voters"), "{text}");
    assert!(gone.iter().all(|id| text.contains(&format!("{id} at 127.0.0.1:"))), "{text}");
    assert_eq!((lost(&left), status(&left).recoveries, left.registry().members().count()), (groups(), 0, 3));

    let text = recover(&left, true).await.unwrap();
    assert!(text.contains("The cluster goes on in epoch 1"), "{text}");
    until("all are led", || lost(&left) == 0).await;
    assert_eq!((status(&left).recoveries, left.registry().members().count()), (1, 1));
    let after = partition_uuids(&left);
    assert!(before.iter().zip(&after).all(|(before, after)| before.0 == after.0 && before.1 != after.1));
    let losses = left.grid().cluster().unwrap().view().losses.clone();
    assert!(losses.len() == 271 && losses.iter().all(|loss| loss.is_some_and(|loss| loss.copies_lost == 2)));
    // This member had received all acknowledged changes, too.
    assert_eq!(found(&[&left], 0..300).await, range_of(0..300));
    put(&[&left], 300..400).await;

    // New members join, hold all data, and know the partitions by the same UUIDs.
    let mut all = vec![left];
    for _ in 0..2 {
        let starting = listen(settings.clone(), GridConfig::default()).await.unwrap();
        all.push(join(starting, &[addresses[1].clone()]).await);
    }
    until("all is well again", || all.iter().all(|member| is_whole(member, 3))).await;
    assert!(all.iter().all(|member| partition_uuids(member) == after));
    let first = all.remove(0);
    stop(first).await;
    assert_eq!(found(&all.iter().collect::<Vec<_>>(), 0..400).await, range_of(0..400));
    assert!(all.iter().all(|member| member.ending().borrow().is_none()));
    stop_all(all).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_five_members_two_go_on_and_what_nobody_of_them_held_is_lost() {
    let (starting, addresses) = listen_all(5, &MemberSettings::default(), &GridConfig::default()).await;
    let mut members = join_all(starting, &addresses).await;
    until("all is well", || members.iter().all(|member| is_whole(member, 3))).await;
    put(&members.iter().collect::<Vec<_>>(), 0..600).await;
    until("all have all", || have_all(&members.iter().collect::<Vec<_>>())).await;
    let left: Vec<Member> = members.drain(3..).collect();
    let left_ids: BTreeSet<u64> = left.iter().map(|member| member.id().0).collect();
    let before = status(&left[0]);
    let voters_left =
        |group: &filbert_grid::GroupStatus| group.voters.keys().filter(|id| left_ids.contains(id)).count();
    let has_majority: BTreeSet<Option<u32>> =
        before.groups.iter().filter(|group| voters_left(group) >= 2).map(|group| group.number).collect();
    let has_none: BTreeSet<Option<u32>> =
        before.groups.iter().filter(|group| voters_left(group) == 0).map(|group| group.number).collect();
    stop_all(members).await;
    let expected = before.groups.len() - has_majority.len();
    until("most have no leader", || left.iter().all(|member| lost(member) == expected)).await;
    let text = recover(&left[0], false).await.unwrap();
    assert!(text.contains(&format!("{expected} of {} groups have lost their majority", groups())), "{text}");
    recover(&left[1], true).await.unwrap();
    // The death of a member does not make a group smaller that has its majority.
    let is_held = |group: &filbert_grid::GroupStatus| {
        group.leader.is_some() && group.voters.len() == if has_majority.contains(&group.number) { 3 } else { 2 }
    };
    until("all are led, and held by both", || left.iter().all(|it| status(it).groups.iter().all(is_held))).await;
    let both: Vec<&Member> = left.iter().collect();
    let map = left[0].grid().map("m").unwrap();
    let of_partitions = ClusterSettings::default().groups;
    let group = |n: &u32| Some(map.partition_of(&key(*n)).0 % of_partitions);
    let kept: BTreeSet<u32> = (0..600).filter(|n| !has_none.contains(&group(n))).collect();
    assert_eq!(found(&both, 0..600).await, kept);
    put(&both, 0..600).await;
    assert_eq!(found(&both, 0..600).await, range_of(0..600));
    // Groups that had their majority have lost nothing, and report no loss.
    let losses = left[0].grid().cluster().unwrap().view().losses.clone();
    for (partition, loss) in (0..).zip(&losses) {
        assert_eq!(loss.is_none(), has_majority.contains(&Some(partition % of_partitions)), "partition {partition}");
    }
    stop_all(left).await;
}

fn cut(proxies: &[Proxy], is_cut: bool) {
    proxies.iter().for_each(|proxy| proxy.cut(is_cut));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn those_that_were_left_behind_come_back_and_neither_serve_nor_overwrite() {
    let (starting, proxies, addresses) =
        listen_behind_proxies(3, &MemberSettings::default(), &GridConfig::default()).await;
    let mut members = join_all(starting, &addresses).await;
    until("all is well", || members.iter().all(|member| is_whole(member, 3))).await;
    put(&members.iter().collect::<Vec<_>>(), 0..100).await;
    until("all have all", || have_all(&members.iter().collect::<Vec<_>>())).await;
    // All members are cut off from each other.
    cut(&proxies, true);
    until("nobody leads", || members.iter().all(|member| lost(member) == groups())).await;
    recover(&members[0], true).await.unwrap();
    put(&[&members[0]], 100..200).await;
    // The other two members are a majority by their own registry.
    cut(&proxies, false);
    for behind in &members[1..] {
        assert_eq!(ending(behind).await, Some(Ending::LeftBehind));
        assert!(behind.holdings().starts_with("100 entries of 1 maps: 100 of \"m\""), "{}", behind.holdings());
    }
    let behind: Vec<Member> = members.drain(1..).collect();
    let left = members.remove(0);
    let refused = recover(&behind[0], true).await.unwrap_err();
    assert!(refused.contains("in epoch 1"), "{refused}");
    for member in behind {
        within("it leaves at once", member.leave()).await.unwrap();
        stop(member).await;
    }
    assert_eq!(found(&[&left], 0..200).await, range_of(0..200));
    // Each of them joins as a new member, in this test at another address.
    let mut all = vec![left];
    for _ in 0..2 {
        let starting = listen(MemberSettings::default(), GridConfig::default()).await.unwrap();
        all.push(join(starting, &addresses[..1]).await);
    }
    until("all is well again", || all.iter().all(|member| is_whole(member, 3))).await;
    assert_eq!(found(&all.iter().collect::<Vec<_>>(), 0..200).await, range_of(0..200));
    stop_all(all).await;
}

fn pair_settings(pair_continues: bool) -> MemberSettings {
    MemberSettings { dead_after: Duration::from_secs(2), pair_continues, ..MemberSettings::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_survivor_of_two_stops_unless_it_is_configured_to_continue() {
    for continues in [false, true] {
        let settings = pair_settings(continues);
        let (starting, addresses) = listen_all(2, &settings, &GridConfig::default()).await;
        let mut pair = join_all(starting, &addresses).await;
        until("all is well", || pair.iter().all(|member| is_whole(member, 2))).await;
        put(&pair.iter().collect::<Vec<_>>(), 0..100).await;
        until("both have all", || have_all(&pair.iter().collect::<Vec<_>>())).await;
        let warnings = status(&pair[0]).warnings();
        let text = if continues { "both go on, and what one of them" } else { "no majority without each other" };
        assert!(warnings.iter().any(|warning| warning.text.contains(text)), "{warnings:?}");
        let dies = pair.remove(0);
        let left = pair.remove(0);
        stop(dies).await;
        until("nobody leads", || lost(&left) == groups()).await;
        if !continues {
            // Longer than the time after which it would continue.
            let other = status(&left).members.iter().find(|member| member.id != left.id().0).unwrap().id;
            let silent = || status(&left).member(other).and_then(|member| member.silent_for);
            until("the other one is silent for long", || silent().is_some_and(|it| it > Duration::from_secs(6))).await;
            assert_eq!((lost(&left), status(&left).recoveries), (groups(), 0));
            stop(left).await;
            continue;
        }
        until("it goes on", || lost(&left) == 0).await;
        assert_eq!((status(&left).recoveries, left.registry().members().count()), (1, 1));
        assert_eq!(found(&[&left], 0..100).await, range_of(0..100));
        put(&[&left], 100..200).await;
        let starting = listen(settings, GridConfig::default()).await.unwrap();
        let joined = join(starting, &addresses[1..]).await;
        until("both hold all", || is_whole(&left, 2) && is_whole(&joined, 2)).await;
        assert_eq!(found(&[&left, &joined], 0..200).await, range_of(0..200));
        stop_all(vec![left, joined]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_two_members_that_have_both_continued_one_restarts() {
    let (starting, proxies, addresses) = listen_behind_proxies(2, &pair_settings(true), &GridConfig::default()).await;
    let pair = join_all(starting, &addresses).await;
    until("all is well", || pair.iter().all(|member| is_whole(member, 2))).await;
    put(&pair.iter().collect::<Vec<_>>(), 0..50).await;
    until("both have all", || have_all(&pair.iter().collect::<Vec<_>>())).await;
    cut(&proxies, true);
    until("both go on", || pair.iter().all(|member| lost(member) == 0 && status(member).recoveries == 1)).await;
    put(&[&pair[0]], 50..100).await;
    put(&[&pair[1]], 100..130).await;
    cut(&proxies, false);
    // Of two epochs with the same number, the epoch of the member with the greater id is the later
    // one.
    let (stays, goes): (Vec<&Member>, Vec<&Member>) = {
        let greatest = pair.iter().map(Member::id).max();
        pair.iter().partition(|member| Some(member.id()) == greatest)
    };
    assert_eq!(ending(goes[0]).await, Some(Ending::LeftBehind));
    assert!(stays[0].ending().borrow().is_none());
    assert_eq!(lost(stays[0]), 0);
    let (stays_at, goes_at) = if stays[0].id() == pair[0].id() { (0, 1) } else { (1, 0) };
    let own = if stays_at == 0 { 50..100 } else { 100..130 };
    let expected: BTreeSet<u32> = (0..50).chain(own.clone()).collect();
    assert_eq!(found(&stays, 0..130).await, expected);
    let holds = goes[0].holdings();
    assert!(holds.starts_with(&format!("{} entries", 50 + 80 - own.len())), "{holds}");
    assert_ne!(stays_at, goes_at);
    stop_all(pair).await;
}
