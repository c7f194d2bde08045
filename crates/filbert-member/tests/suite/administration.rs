//! The status and the orders of operators: members in one process, over real links.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{join_all, listen_all, stop, stop_all, until, within};
use bytes::Bytes;
use filbert_cluster::{BoxFuture, GroupSettings, MemberId};
use filbert_grid::{ClusterOrder, ClusterStatus, ErrorKind, Grid, GridConfig, GridError, MemberState};
use filbert_links::{Channel, Identity, LinkSettings, Links, Peer, Refusal, Service};
use filbert_member::{ClusterSettings, Ending, Member, MemberSettings};
use uuid::Uuid;

/// Starts a cluster of members at the same time.
async fn cluster(members: usize, dead_after: Duration) -> (Vec<Member>, Vec<String>) {
    let settings = MemberSettings { dead_after, ..MemberSettings::default() };
    let (starting, addresses) = listen_all(members, &settings, &GridConfig::default()).await;
    (join_all(starting, &addresses).await, addresses)
}

/// The number of groups of partitions, plus one for the registry.
fn groups() -> usize {
    ClusterSettings::default().groups as usize + 1
}

const LONG: Duration = Duration::from_secs(60);

fn status(grid: &Grid) -> ClusterStatus {
    grid.cluster().unwrap().status().unwrap()
}

fn is_whole(member: &Member, voters: usize) -> bool {
    let status = status(member.grid());
    status.warnings().is_empty()
        && status.groups.iter().all(|group| {
            group.leader.is_some() && group.voters.len() == voters && group.voters.values().all(|lag| *lag == Some(0))
        })
}

async fn order(member: &Member, order: ClusterOrder) -> Result<String, GridError> {
    let (sender, outcome) = tokio::sync::oneshot::channel();
    let done = move |result| {
        let _gone = sender.send(result);
    };
    member.grid().cluster().unwrap().order(order, Box::new(done));
    within("the order is carried out or refused", outcome).await.unwrap()
}

/// Waits until a member is to end. Returns the reason.
async fn ending(member: &Member) -> Option<Ending> {
    let mut ending = member.ending();
    *within("the member is told to end", ending.wait_for(Option::is_some)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_member_reports_the_same_status_of_all_groups() {
    let (members, addresses) = cluster(3, LONG).await;
    until("all is well", || members.iter().all(|member| is_whole(member, 3))).await;
    for member in &members {
        let status = status(member.grid());
        assert_eq!((status.member, status.replicas_held(), status.groups.len()), (member.id().0, 3, groups()));
        assert_eq!(status.cluster, member.registry().cluster);
        let mut found: Vec<&String> = status.members.iter().map(|member| &member.address).collect();
        found.sort();
        let mut expected: Vec<&String> = addresses.iter().collect();
        expected.sort();
        assert_eq!(found, expected);
        assert!(status.members.iter().all(|one| one.state == MemberState::Active && one.joined_ms > 0));
        assert_eq!(status.members.iter().filter(|one| one.silent_for.is_none()).count(), 1, "the one that tells");
    }
    stop_all(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_member_is_asked_to_leave_at_any_other() {
    let (members, _) = cluster(3, LONG).await;
    until("all is well", || members.iter().all(|member| is_whole(member, 3))).await;
    order(&members[0], ClusterOrder::Leave(members[2].id().0)).await.unwrap();
    assert_eq!(ending(&members[2]).await, Some(Ending::LeaveRequested));
    assert_eq!(*members[1].ending().borrow(), None);
    let refused = order(&members[0], ClusterOrder::Leave(77)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::IllegalArgument);
    assert!(refused.to_string().contains("there is no member 77, expected one of 1, 2, 3"), "{refused}");
    stop_all(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_last_member_with_data_does_not_leave() {
    let (members, _) = cluster(1, LONG).await;
    until("groups are led", || is_led(&members[0])).await;
    let refused = order(&members[0], ClusterOrder::Leave(1)).await.unwrap_err().to_string();
    assert!(refused.contains("the last one that holds data"), "{refused}");
    stop_all(members).await;
}

fn is_led(member: &Member) -> bool {
    status(member.grid()).lost_groups().count() == 0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_dead_are_taken_out_at_once_and_the_living_are_not() {
    let (mut members, _) = cluster(3, LONG).await;
    until("all is well", || members.iter().all(|member| is_whole(member, 3))).await;
    for id in [2, members[0].id().0] {
        let alive = order(&members[0], ClusterOrder::Remove(id)).await.unwrap_err().to_string();
        assert!(alive.contains("is alive: have it leave"), "{alive}");
    }
    let dies = members.remove(2);
    let dead = dies.id();
    stop(dies).await;
    // This works even before other members have taken over the leadership.
    order(&members[0], ClusterOrder::Remove(dead.0)).await.unwrap();
    until("it is no member", || members.iter().all(|member| member.registry().members().count() == 2)).await;
    until("groups are led", || members.iter().all(is_led)).await;
    let warnings = status(members[0].grid()).warnings();
    assert!(warnings.iter().any(|warning| warning.text.contains("no majority without each other")), "{warnings:?}");

    // The death of the next member takes away the majority of all groups.
    let dies = members.remove(1);
    let dead = dies.id();
    stop(dies).await;
    until("nobody leads", || status(members[0].grid()).lost_groups().count() == groups()).await;
    let cluster_status = status(members[0].grid());
    let title = format!("{0} of {0} groups have no leader", groups());
    assert!(cluster_status.warnings()[0].is_critical && cluster_status.warnings()[0].title.starts_with(&title));
    assert_eq!(cluster_status.member(dead.0).map(|member| member.state), Some(MemberState::Unreachable));
    let refused = order(&members[0], ClusterOrder::Remove(dead.0)).await.unwrap_err().to_string();
    assert!(refused.contains("nobody may be taken out"), "{refused}");
    // Without acceptance of data loss, the recovery is only described (`recovery.rs`).
    let text = order(&members[0], ClusterOrder::Recover { accepts_data_loss: false }).await.unwrap();
    assert!(text.contains(&format!("{0} of {0} groups have lost their majority", groups())), "{text}");
    assert_eq!(status(members[0].grid()).lost_groups().count(), groups());
    stop_all(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_removed_member_is_notified() {
    let (members, _) = cluster(3, LONG).await;
    until("all is well", || members.iter().all(|member| is_whole(member, 3))).await;
    // As if it had been cut off for long: it is not involved in the removal.
    within("it is taken out", members[0].remove(members[2].id())).await.unwrap();
    assert_eq!(ending(&members[2]).await, Some(Ending::TakenOut));
    // It does not wait for members that do not know it any more.
    within("it leaves", members[2].leave()).await.unwrap();
    until("others go on", || members[..2].iter().all(is_led)).await;
    assert!(members[..2].iter().all(|member| member.ending().borrow().is_none()));
    stop_all(members).await;
}

/// A service that never answers.
struct Dead;

impl Service for Dead {
    fn answer(&self, _: Peer, _: Channel, _: Bytes) -> BoxFuture<Result<Bytes, Refusal>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_member_that_died_before_it_followed_is_taken_out_as_well() {
    let (members, addresses) = cluster(3, Duration::from_secs(4)).await;
    until("all is well", || members.iter().all(|member| is_whole(member, 3))).await;
    let groups = GroupSettings::default();
    let config = GridConfig::default();
    let identity = Identity {
        cluster: config.cluster_name.clone(),
        incarnation: Uuid::new_v4(),
        partitions: groups.partitions,
        groups: groups.groups,
        versions: 1..=1,
    };
    let links = Links::start(LinkSettings::default(), identity, Arc::new(Dead)).unwrap();
    let join = format!(
        "\u{1}{{\"Join\":{{\"uuid\":\"{}\",\"address\":\"127.0.0.1:1\",\"client_host\":\"127.0.0.1\",\"client_port\":1,\"is_lite\":false}}}}",
        Uuid::new_v4()
    );
    let answer = links.call_address(addresses[0].as_str(), Channel::Join, Bytes::from(join));
    within("it is answered", answer).await.unwrap();
    assert!(members[0].registry().member(MemberId(4)).is_some(), "it is let in");
    until("it is taken out", || members.iter().all(|member| member.registry().members().count() == 3)).await;
    until("all is well", || members.iter().all(|member| is_whole(member, 3))).await;
    within("the links end", links.stop()).await;
    stop_all(members).await;
}
