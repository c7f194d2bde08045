//! Members of this version and of the next version in one cluster, over real links: one of the
//! members announces the next version as well.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::common::data::{found, have_all, is_whole, put};
use crate::common::{join, listen, stop_all, until, within};
use bytes::Bytes;
use filbert_cluster::{BoxFuture, GroupSettings, MemberId};
use filbert_grid::{Grid, GridConfig};
use filbert_links::{Channel, Identity, LinkSettings, Links, Peer, Refusal, Service};
use filbert_member::{Member, MemberError, MemberSettings};
use uuid::Uuid;

/// Logs are purged early, so that a member that joins receives a snapshot.
fn of_version(versions: std::ops::RangeInclusive<u16>) -> MemberSettings {
    let groups = GroupSettings { log_entries_max: 8, ..GroupSettings::default() };
    MemberSettings { versions, groups, ..MemberSettings::default() }
}

async fn start(settings: MemberSettings, to: &[String]) -> (Member, Vec<String>) {
    let starting = listen(settings, GridConfig::default()).await.unwrap();
    let own = vec![starting.address().to_owned()];
    let member = join(starting, if to.is_empty() { &own } else { to }).await;
    (member, own)
}

fn snapshot_bytes_received(grid: &Grid) -> u64 {
    grid.cluster().unwrap().counters().snapshot_bytes_received
}

/// Whether the beginning of each log was purged, so that a member that joins needs a snapshot.
fn are_purged(member: &Member) -> bool {
    member.groups().iter().all(|status| status.purged.is_some())
}

fn same(one: &Member, other: &Member) -> bool {
    (0..one.groups().len() as u32).all(|group| one.group_state(group) == other.group_state(group))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn members_of_this_version_and_of_the_next_are_one_cluster_whoever_begins() {
    let (this, next) = (of_version(1..=1), of_version(1..=2));
    for (begins, joins) in [(&this, &next), (&next, &this)] {
        let (first, address) = start(begins.clone(), &[]).await;
        put(&[&first], 0..1_000).await;
        until("its logs are purged", || are_purged(&first)).await;
        // A snapshot from the first member to the second one.
        let (second, second_address) = start(joins.clone(), &address).await;
        until("both hold all", || is_whole(&first, 2) && is_whole(&second, 2)).await;
        assert!(snapshot_bytes_received(second.grid()) > 0);
        let leads = |member: &Member| member.groups().iter().filter(|status| status.leads).count();
        until("both lead", || leads(&first) > 0 && leads(&first) == leads(&second)).await;
        // Changes through both members.
        put(&[&first, &second], 1_000..1_500).await;
        until("both have all", || have_all(&[&first, &second]) && same(&first, &second)).await;
        assert_eq!(found(&[&first, &second], 0..1_500).await.len(), 1_500);
        let registry = second.registry();
        let versions: Vec<u16> = registry.members().map(|(_, facts)| facts.version).collect();
        assert_eq!(versions, [*begins.versions.end(), *joins.versions.end()]);
        assert_eq!(registry.version_of_all(), 1);
        // A rolling upgrade replaces members one by one: a snapshot from the second member to one
        // of the first member's version.
        within("it leaves", first.leave()).await.unwrap();
        stop_all(vec![first]).await;
        put(&[&second], 1_500..2_000).await;
        until("its logs are purged", || are_purged(&second)).await;
        let (third, _) = start(begins.clone(), &second_address).await;
        until("both hold all", || is_whole(&second, 2) && is_whole(&third, 2)).await;
        assert!(snapshot_bytes_received(third.grid()) > 0);
        until("both have all", || have_all(&[&second, &third]) && same(&second, &third)).await;
        assert_eq!(found(&[&second, &third], 0..2_000).await, (0..2_000).collect::<BTreeSet<u32>>());
        stop_all(vec![second, third]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_version_that_is_too_new_is_refused_and_says_what_it_found() {
    let (member, address) = start(of_version(1..=1), &[]).await;
    let mut starting = listen(of_version(2..=3), GridConfig::default()).await.unwrap();
    starting.set_addresses(address);
    match within("it is refused", starting.join()).await {
        Err(MemberError::Refused(why)) => {
            assert!(why.contains("the peer speaks versions 1 to 1, expected one of 2 to 3"), "{why}");
        }
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was let in"),
    }
    assert_eq!(member.registry().members().count(), 1);
    stop_all(vec![member]).await;
}

/// A service that never answers.
struct Silent;

impl Service for Silent {
    fn answer(&self, _: Peer, _: Channel, _: Bytes) -> BoxFuture<Result<Bytes, Refusal>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_later_version_says_more_is_passed_over_and_what_is_not_known_is_refused() {
    let (member, address) = start(of_version(1..=1), &[]).await;
    let (groups, config) = (GroupSettings::default(), GridConfig::default());
    let identity = Identity {
        cluster: config.cluster_name.clone(),
        incarnation: Uuid::new_v4(),
        partitions: groups.partitions,
        groups: groups.groups,
        versions: 1..=2,
    };
    let links = Links::start(LinkSettings::default(), identity, Arc::new(Silent)).unwrap();
    let ask = async |request: String| {
        let answer = links.call_address(address[0].as_str(), Channel::Join, Bytes::from(request));
        within("it is answered", answer).await.map_err(|error| error.to_string())
    };
    let join = format!(
        "\u{1}{{\"Join\":{{\"uuid\":\"{}\",\"address\":\"127.0.0.1:1\",\"client_host\":\"127.0.0.1\",\"client_port\":1,\"is_lite\":true,\
         \"version\":2,\"zone\":{{\"name\":\"a\"}}}}}}",
        Uuid::new_v4()
    );
    let welcome = ask(join).await.unwrap();
    assert!(welcome.starts_with(b"\x01{\"id\":2,"), "{welcome:?}");
    assert_eq!(member.registry().member(MemberId(2)).map(|facts| facts.version), Some(2));
    let refused = ask("\u{1}{\"Dance\":3}".to_owned()).await.unwrap_err();
    assert!(refused.contains("cannot read a message: unknown variant `Dance`"), "{refused}");
    let refused = ask("\u{2}{\"Greet\":null}".to_owned()).await.unwrap_err();
    assert!(refused.contains("a message of version 2, expected version 1"), "{refused}");
    within("the links end", links.stop()).await;
    stop_all(vec![member]).await;
}
