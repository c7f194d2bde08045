//! Calls between healthy members.

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

use crate::common::*;
use bytes::Bytes;
use filbert_cluster::{BoxFuture, Lane, MemberId, TransportError};
use filbert_links::*;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use uuid::Uuid;

const DATA: Channel = Channel::Consensus(Lane::Data);
const CHANNELS: [Channel; 6] = [
    DATA,
    Channel::Consensus(Lane::Heartbeats),
    Channel::Consensus(Lane::Control),
    Channel::Consensus(Lane::Snapshots),
    Channel::Requests,
    Channel::Join,
];

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_all_channels_are_answered_and_say_from_whom() {
    let says = service(|from, channel, request| {
        let said = format!("{channel:?} of {:?}: {}", from.member, String::from_utf8_lossy(&request));
        Box::pin(async move { Ok(said.into()) })
    });
    let (one, _two) = pair(LinkSettings::default(), says).await;
    for channel in CHANNELS {
        let answer = one.links.call(MemberId(2), channel, Bytes::from_static(b"hi")).await.unwrap();
        assert_eq!(answer, format!("{channel:?} of Some(MemberId(1)): hi"));
    }
    let statistics = one.links.statistics();
    let dialled: Vec<_> = Kind::ALL.iter().map(|kind| statistics.of(*kind).dialled).collect();
    assert_eq!(dialled, [1; 5], "one connection of each kind");
    assert_eq!(statistics.of(Kind::Control).frames_received, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_arrive_in_the_order_of_calls_and_many_in_one_write() {
    let came = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&came);
    let notes = service(move |_, _, request| {
        let noted = Arc::clone(&noted);
        Box::pin(async move {
            noted.lock().push(u32::from_le_bytes(request[..].try_into().unwrap()));
            tokio::task::yield_now().await;
            Ok(request)
        })
    });
    let (one, _two) = pair(LinkSettings::default(), notes).await;
    let call = |number: u32| one.links.call(MemberId(2), DATA, Bytes::copy_from_slice(&number.to_le_bytes()));
    let calls: Vec<_> = (0..10_000).map(call).collect();
    for (number, call) in (0_u32..).zip(calls) {
        assert_eq!(call.await.unwrap()[..], number.to_le_bytes());
    }
    assert!(came.lock().iter().copied().eq(0..10_000));
    let counted = one.links.statistics().of(Kind::Data);
    assert_eq!(counted.frames_sent, 10_000);
    assert_eq!(counted.bytes_sent, 10_000 * 18);
    assert!(counted.writes < 1_000, "{counted:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_requests_and_answers_come_over_whole_and_longer_ones_are_refused() {
    let settings = LinkSettings { frame_bytes_max: 4 << 20, ..LinkSettings::default() };
    let twice = service(|_, _, request| {
        Box::pin(async move { Ok(if request[0] == 2 { request.repeat(2).into() } else { request }) })
    });
    let (one, _two) = pair(settings, twice).await;
    let call = |first: u8, bytes: usize| {
        let mut request: Vec<u8> = (0..bytes).map(|at| (at / 7) as u8).collect();
        request[0] = first;
        let request = Bytes::from(request);
        let answer = one.links.call(MemberId(2), DATA, request.clone());
        async move { answer.await.map(|answer| answer == request) }
    };
    let calls = [1, 4_096, 4_097, 70_000, 4 << 20].map(|bytes| call(1, bytes));
    for call in calls {
        assert_eq!(call.await, Ok(true));
    }
    let (member, bytes, bytes_max) = (MemberId(2), (4 << 20) + 1, 4 << 20);
    assert_eq!(call(1, bytes).await, Err(TransportError::TooLong { member, bytes, bytes_max }));
    let why = "the answer has 6000000 bytes, at most 4194304 are allowed".to_owned();
    assert_eq!(call(2, 3_000_000).await, Err(TransportError::Refused { member, why }));
    assert_eq!(call(1, 1).await, Ok(true), "on the same connection");
    assert_eq!(one.links.statistics().of(Kind::Data).reconnects, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_an_answer_and_breaks_nothing() {
    let refuses = service(|_, _, _| Box::pin(async { Err(Refusal("not today".to_owned())) }));
    let (one, _two) = pair(LinkSettings::default(), refuses).await;
    for _ in 0..2 {
        let refused = TransportError::Refused { member: MemberId(2), why: "not today".to_owned() };
        assert_eq!(one.links.call(MemberId(2), Channel::Requests, Bytes::new()).await, Err(refused));
    }
    let counted = one.links.statistics().of(Kind::Requests);
    assert_eq!((counted.dialled, counted.reconnects), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_id_may_join_and_tells_its_id_when_it_has_one() {
    let says = service(|from: Peer, _, _| Box::pin(async move { Ok(format!("{:?}", from.member).into()) }));
    let new = Node::start(None, LinkSettings::default(), echo()).await;
    let old = Node::start(Some(2), LinkSettings::default(), says).await;
    new.knows(2, old.address);
    let by_name = format!("localhost:{}", old.address.port());
    let ask = || Bytes::from_static(b"may I");
    assert_eq!(new.links.call_address(by_name, Channel::Join, ask()).await.unwrap(), "None");
    let error = new.links.call_address(old.address, Channel::Requests, ask()).await.unwrap_err();
    assert_eq!(error, Refused::NoMember(Kind::Requests).into());
    assert_eq!(new.links.call(MemberId(2), DATA, ask()).await, Err(TransportError::Unreachable(MemberId(2))));
    // The same connection before and after.
    assert_eq!(new.links.call(MemberId(2), Channel::Join, ask()).await.unwrap(), "None");
    new.links.become_member(MemberId(7), CLUSTER).unwrap();
    assert_eq!(new.links.call(MemberId(2), Channel::Join, ask()).await.unwrap(), "Some(MemberId(7))");
    assert_eq!(new.links.statistics().of(Kind::Join).reconnects, 0);
    assert_eq!(new.links.call(MemberId(2), DATA, ask()).await.unwrap(), "Some(MemberId(7))");
    let error = new.links.become_member(MemberId(8), CLUSTER).unwrap_err();
    assert_eq!(error, LinkError::AlreadyMember { found: MemberId(7) });
    // A connection to an address ends with its call.
    until(async || old.links.statistics().of(Kind::Join).accepted == 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_calls_fail_at_once_and_those_given_up_make_room() {
    let settings = LinkSettings { calls_max: 4, queue_bytes_max: 1_000, ..LinkSettings::default() };
    let (one, _two) = pair(settings, service(|_, _, _| Box::pin(std::future::pending()))).await;
    let call = |bytes: usize| one.links.call(MemberId(2), DATA, Bytes::from(vec![0; bytes]));
    let calls: Vec<_> = (0..4).map(|_| call(10)).collect();
    assert_eq!(call(10).await, Err(TransportError::Overloaded(MemberId(2))));
    drop(calls);
    until(async || {
        use futures_util::FutureExt;
        call(10).now_or_never().is_none()
    })
    .await;
    // The limit on queued bytes, with a peer that does not continue the handshake.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    one.knows(3, silent.local_addr().unwrap());
    let one_alone = one.links.call(MemberId(3), DATA, Bytes::from(vec![0; 5_000]));
    let second = one.links.call(MemberId(3), DATA, Bytes::from(vec![0; 1]));
    assert_eq!(second.await, Err(TransportError::Overloaded(MemberId(3))));
    drop(one_alone);
}

#[tokio::test(flavor = "multi_thread")]
async fn so_many_requests_are_answered_at_once_and_no_more() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let go_on = Arc::new(Semaphore::new(0));
    let counted = (Arc::clone(&now), Arc::clone(&most), Arc::clone(&go_on));
    let waits = service(move |_, _, request| {
        let (now, most, go_on) = counted.clone();
        Box::pin(async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            go_on.acquire().await.unwrap().forget();
            now.fetch_sub(1, Ordering::SeqCst);
            Ok(request)
        })
    });
    let settings = LinkSettings { answering_max: 3, ..LinkSettings::default() };
    let (one, _two) = pair(settings, waits).await;
    let calls: Vec<_> = (0..50).map(|_| one.links.call(MemberId(2), Channel::Requests, Bytes::new())).collect();
    until(async || now.load(Ordering::SeqCst) == 3).await;
    go_on.add_permits(50);
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

/// Answers once it may, and counts the memory of connections.
struct Counting {
    held: AtomicIsize,
    go_on: Semaphore,
}

struct OfCounting(Arc<Counting>);

impl Service for OfCounting {
    fn answer(&self, _: Peer, _: Channel, request: Bytes) -> BoxFuture<Result<Bytes, Refusal>> {
        let counting = self.0.clone();
        Box::pin(async move {
            counting.go_on.acquire().await.unwrap().forget();
            Ok(request)
        })
    }

    fn held_changed(&self, bytes: isize) {
        let before = self.0.held.fetch_add(bytes, Ordering::SeqCst);
        assert!(before + bytes >= 0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_of_connections_is_known_and_given_back() {
    let counting = || Arc::new(Counting { held: AtomicIsize::new(0), go_on: Semaphore::new(0) });
    let (of_one, of_two) = (counting(), counting());
    let one = Node::start(Some(1), LinkSettings::default(), Arc::new(OfCounting(of_one.clone()))).await;
    let two = Node::start(Some(2), LinkSettings::default(), Arc::new(OfCounting(of_two.clone()))).await;
    // Nothing is sent before the other side has taken the connection over.
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    one.knows(2, port.local_addr().unwrap());
    let held = |of: &Counting| of.held.load(Ordering::SeqCst).cast_unsigned();
    // A buffer for received bytes may be as large as the last request.
    let (bytes, small) = (1_000_000, 2_000_000);
    let calls: Vec<_> = (0..5).map(|_| one.links.call(MemberId(2), DATA, Bytes::from(vec![7; bytes]))).collect();
    assert!(held(&of_one) >= 5 * bytes, "queued");
    taken_over(&port, &two).await;
    until(async || (5 * bytes..5 * bytes + small).contains(&held(&of_two))).await;
    until(async || held(&of_one) < small).await;
    of_two.go_on.add_permits(5);
    for call in calls {
        assert_eq!(call.await.unwrap().len(), bytes);
    }
    until(async || held(&of_two) < small).await;
    let unanswered = one.links.call(MemberId(2), DATA, Bytes::from(vec![7; bytes]));
    until(async || held(&of_two) >= bytes).await;
    two.links.stop().await;
    one.links.stop().await;
    assert!(unanswered.await.is_err());
    drop((one, two));
    until(async || held(&of_one) == 0 && held(&of_two) == 0).await;
}

/// Hands the next connection of a port of the test over to a node, with its first bytes.
async fn taken_over(port: &tokio::net::TcpListener, node: &Node) {
    let (mut stream, _) = port.accept().await.unwrap();
    let mut first = [0; 4];
    tokio::io::AsyncReadExt::read_exact(&mut stream, &mut first).await.unwrap();
    assert_eq!(first, PREAMBLE);
    node.links.accept(stream, &first);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_accepted_elsewhere_is_taken_over() {
    let (one, two) = pair(LinkSettings::default(), echo()).await;
    let shared_port = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    one.knows(2, shared_port.local_addr().unwrap());
    let call = one.links.call(MemberId(2), DATA, Bytes::from_static(b"hear"));
    taken_over(&shared_port, &two).await;
    assert_eq!(call.await.unwrap(), "hear");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_after_a_stop() {
    let (one, two) = pair(LinkSettings::default(), service(|_, _, _| Box::pin(std::future::pending()))).await;
    let call = one.links.call(MemberId(2), DATA, Bytes::new());
    until(async || two.links.statistics().of(Kind::Data).frames_received == 1).await;
    two.links.stop().await;
    assert_eq!(call.await, Err(TransportError::Broken(MemberId(2))));
    assert_eq!(two.links.statistics().of(Kind::Data).accepted, 0);
    assert!(tokio::net::TcpStream::connect(two.address).await.is_err());
    let call = one.links.call(MemberId(2), Channel::Requests, Bytes::new());
    one.links.stop().await;
    assert!(call.await.is_err());
    assert!(one.links.call(MemberId(2), DATA, Bytes::new()).await.is_err());
}

/// Members that were stopped while others founded a new cluster have numbers that the new cluster
/// has too.
#[tokio::test(flavor = "multi_thread")]
async fn members_of_two_clusters_of_one_name_may_only_ask_each_other() {
    let says = service(|from: Peer, _, _| Box::pin(async move { Ok(format!("{:?}", from.member).into()) }));
    let (new, old) = (Uuid::from_u128(2), CLUSTER);
    let one = Node::start(Some(1), LinkSettings::default(), echo()).await;
    let two = Node::start(None, LinkSettings::default(), says).await;
    two.links.become_member(MemberId(2), new).unwrap();
    one.knows(2, two.address);
    let ask = || Bytes::from_static(b"who leads");
    for channel in [DATA, Channel::Requests] {
        assert_eq!(one.links.call(MemberId(2), channel, ask()).await, Err(TransportError::Unreachable(MemberId(2))));
        let refused = one.links.last_error(MemberId(2), channel.kind()).unwrap();
        assert_eq!(refused, Refused::OtherCluster { found: new, expected: old }.into());
    }
    // The messages for joining name the cluster.
    assert_eq!(one.links.call(MemberId(2), Channel::Join, ask()).await.unwrap(), "Some(MemberId(1))");
}
