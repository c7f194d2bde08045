//! A group of three members over real links: it survives the loss of the leader's links.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::*;
use bytes::Bytes;
use filbert_cluster::*;
use filbert_data::PartitionId;
use filbert_links::*;
use filbert_store::{Caller, Change, Command, Encoder, Expiry, LogCommand, MapId, MapSettings, Millis, PutMode};

const PARTITION: PartitionId = PartitionId(0);
const MAP: MapId = MapId(1);

struct Wall;

impl WallClock for Wall {
    fn now(&self) -> Millis {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        Millis(since.as_millis() as i64)
    }
}

struct Member {
    node: Node,
    group: Group<BootRuntime>,
}

fn key(number: u32) -> Vec<u8> {
    format!("some-key-{number:05}").into_bytes()
}

fn put(number: u32) -> Bytes {
    let change = Change::Put { key: &key(number), value: &[7; 112], expiry: Expiry::NEVER, mode: PutMode::Set };
    let command = Command { map: MAP, now: Millis(0), caller: Caller::default(), change };
    let mut commands = Encoder::default();
    commands.push(PARTITION, &command.into()).unwrap();
    commands.take().into()
}

async fn start(links: &LinkSettings) -> Vec<Member> {
    // A member becomes a candidate after a lease, and after a further random time between
    // `election_ms_min` and `lease_ms`: after 1.4 s at most. The test allows two seconds for the
    // failover.
    let (lease_ms, election_ms_min) = (700, 350);
    let settings = GroupSettings { groups: 1, partitions: 1, lease_ms, election_ms_min, ..GroupSettings::default() };
    let mut members = Vec::new();
    for id in 1..=3 {
        let replicas = Arc::new(Replicas::<BootRuntime>::new(MemberId(id)));
        let answering = Arc::clone(&replicas);
        let answers = service(move |_, _, request| {
            let replicas = Arc::clone(&answering);
            Box::pin(async move { replicas.answer(request).await.map_err(|error| Refusal(error.to_string())) })
        });
        let node = Node::start(Some(id), links.clone(), answers).await;
        let transport = Arc::new(SharedHeartbeats::<BootRuntime>::new(node.links.clone(), &settings));
        let state = Arc::new(Partitions::new(GroupId(0), &settings, 1));
        let group = Group::start(MemberId(id), GroupId(0), settings.clone(), transport, Arc::new(Wall), state).await;
        let group = group.unwrap();
        replicas.add(GroupId(0), group.clone());
        members.push(Member { node, group });
    }
    for member in &members {
        for (id, other) in (1..).zip(&members) {
            member.node.knows(id, other.node.address);
        }
    }
    members[0].group.form(&(1..=3).map(MemberId).collect::<BTreeSet<_>>()).await.unwrap();
    members
}

async fn leader(members: &[Member], besides: Option<usize>) -> usize {
    loop {
        let leads = |(at, member): &(usize, &Member)| Some(*at) != besides && member.group.has_lease().is_some();
        if let Some((at, _)) = members.iter().enumerate().find(leads) {
            return at;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn survives(links: LinkSettings) {
    let members = start(&links).await;
    let first = leader(&members, None).await;
    let mut make = Encoder::default();
    make.push(PARTITION, &LogCommand::CreateMap { map: MAP, settings: MapSettings::default() }).unwrap();
    members[first].group.submit(None, make.take().into()).await.unwrap();
    let (acknowledge, mut acknowledged) = tokio::sync::mpsc::unbounded_channel();
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (group, acknowledge) = (members[first].group.clone(), acknowledge.clone());
            tokio::spawn(async move {
                for number in (writer..).step_by(8) {
                    if group.submit(None, put(number)).await.is_ok() {
                        acknowledge.send(number).unwrap();
                    }
                }
            })
        })
        .collect();
    let mut kept = Vec::new();
    while kept.len() < 2_000 {
        kept.push(acknowledged.recv().await.unwrap());
    }
    members[first].node.links.stop().await;
    let cut = Instant::now();
    let second = leader(&members, Some(first)).await;
    let took = cut.elapsed();
    println!("another member leads after {took:?}");
    // Submissions to the old leader may never be answered.
    writers.iter().for_each(tokio::task::JoinHandle::abort);
    while let Ok(number) = acknowledged.try_recv() {
        kept.push(number);
    }
    let has = |number: u32| {
        let read =
            members[second].group.read(PARTITION, |partition, now| partition.get(MAP, &key(number), now).is_some());
        read.unwrap()
    };
    let lost: Vec<_> = kept.iter().filter(|number| !has(**number)).collect();
    assert!(lost.is_empty(), "{} of {} are lost", lost.len(), kept.len());
    members[second].group.submit(None, put(9_999_999)).await.unwrap();
    assert!(has(9_999_999));
    until(async || members[first].group.has_lease().is_none()).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    for member in &members {
        member.group.stop().await;
        member.node.links.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_survives_the_loss_of_its_leaders_links() {
    survives(LinkSettings::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_survives_it_with_tls_and_a_secret() {
    let secret = Some(Secret::new("open sesame"));
    survives(LinkSettings { secret, tls: Some(tls("localhost")), ..LinkSettings::default() }).await;
}
