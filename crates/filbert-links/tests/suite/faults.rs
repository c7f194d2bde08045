//! Peers that go away, come back elsewhere, stop reading, or send rubbish.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::*;
use bytes::Bytes;
use filbert_cluster::{Lane, MemberId, TransportError};
use filbert_links::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const DATA: Channel = Channel::Consensus(Lane::Data);

fn broken() -> Result<Bytes, TransportError> {
    Err(TransportError::Broken(MemberId(2)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_restarts_elsewhere_is_reached_there() {
    let (one, two) = pair(LinkSettings::default(), echo()).await;
    for channel in [DATA, Channel::Requests] {
        assert!(one.echoes(2, channel).await);
    }
    two.links.stop().await;
    until(async || !one.echoes(2, DATA).await).await;
    let two = Node::start(Some(2), LinkSettings::default(), echo()).await;
    one.knows(2, two.address);
    // At once: the back-off was for the old address.
    for channel in [DATA, Channel::Requests] {
        assert!(one.echoes(2, channel).await);
    }
    // On the same port, without a change of the address book.
    two.links.stop().await;
    until(async || !one.echoes(2, DATA).await).await;
    let links = Links::start(LinkSettings::default(), identity(), echo()).unwrap();
    links.become_member(MemberId(2), CLUSTER).unwrap();
    links.serve(TcpListener::bind(two.address).await.unwrap());
    until(async || one.echoes(2, DATA).await).await;
    assert!(one.links.statistics().of(Kind::Data).reconnects > 0);
    one.links.addresses().remove(MemberId(2));
    let gone = one.links.call(MemberId(2), DATA, Bytes::new()).await;
    assert_eq!(gone, Err(TransportError::Unreachable(MemberId(2))));
    until(async || one.links.statistics().of(Kind::Data).dialled == 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_dialled_again_before_the_back_off_is_over() {
    let settings = LinkSettings { backoff_ms_min: 60_000, backoff_ms_max: 60_000, ..LinkSettings::default() };
    let (one, two) = pair(settings, echo()).await;
    two.links.stop().await;
    for _ in 0..100 {
        let failed = one.links.call(MemberId(2), DATA, Bytes::new()).await;
        assert_eq!(failed, Err(TransportError::Unreachable(MemberId(2))));
    }
    assert_eq!(one.links.statistics().of(Kind::Data).failures, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_stops_reading_is_given_up_and_disturbs_nobody() {
    let settings = LinkSettings { silence_ms_max: 1_000, queue_bytes_max: 1 << 20, ..LinkSettings::default() };
    let (one, three) =
        (Node::start(Some(1), settings, echo()).await, Node::start(Some(3), LinkSettings::default(), echo()).await);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    one.knows(2, listener.local_addr().unwrap());
    one.knows(3, three.address);
    let call = |bytes| one.links.call(MemberId(2), DATA, Bytes::from(vec![1; bytes]));
    let first = call(1);
    let _stuck = take(&listener, 2).await;
    // Fills the buffers of the operating system, and the queue.
    let mut calls = vec![first];
    loop {
        use futures_util::FutureExt;
        let mut next = call(64 << 10);
        match (&mut next).now_or_never() {
            None => calls.push(next),
            Some(failed) => {
                assert_eq!(failed, Err(TransportError::Overloaded(MemberId(2))));
                break;
            }
        }
        tokio::task::yield_now().await;
        assert!(calls.len() < 1_000, "64 MiB have gone somewhere");
    }
    assert!(one.echoes(3, DATA).await);
    for call in calls {
        assert_eq!(call.await, broken());
    }
    let error = one.links.last_error(MemberId(2), Kind::Data).unwrap();
    assert_eq!(error.to_string(), "an answer, or a sign of life, took longer than 1000 ms");
    assert!(one.echoes(3, DATA).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_does_not_read_its_answers_is_closed() {
    let answered = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&answered);
    let long = service(move |from: Peer, _, request| {
        counted.fetch_add(usize::from(from.member == Some(MemberId(9))), Ordering::SeqCst);
        Box::pin(async move { Ok(if request.is_empty() { vec![7; 1 << 20].into() } else { request }) })
    });
    let settings = LinkSettings { silence_ms_max: 500, answering_bytes_max: 4 << 20, ..LinkSettings::default() };
    let (one, two) = pair(settings, long).await;
    let (mut greedy, answer) = connect(two.address, &hello(Kind::Data, 9, Some(2)), &[]).await;
    assert_eq!(answer[0], 0);
    until(async || two.links.statistics().of(Kind::Data).accepted == 1).await;
    let requests: Vec<u8> = (1..=1_000).flat_map(|number| frame(1, 0, number, &[])).collect();
    greedy.write_all(&requests).await.unwrap();
    assert!(one.echoes(2, DATA).await);
    until(async || two.links.statistics().of(Kind::Data).accepted == 1).await;
    assert!(one.echoes(2, DATA).await);
    // The operating system buffers a few MiB as well.
    assert!(answered.load(Ordering::SeqCst) < 50, "{answered:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_answers_late_but_lives_is_waited_for() {
    let late = service(|_, _, request| {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            Ok(request)
        })
    });
    let (one, _two) = pair(LinkSettings { silence_ms_max: 400, ..LinkSettings::default() }, late).await;
    assert!(one.echoes(2, Channel::Requests).await);
    let counted = one.links.statistics().of(Kind::Requests);
    assert!(counted.frames_received > 2, "signs of life have come: {counted:?}");
    assert_eq!((counted.reconnects, counted.failures), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_noticed_though_every_call_is_given_up_early() {
    let settings = LinkSettings { silence_ms_max: 300, ..LinkSettings::default() };
    let one = Node::start(Some(1), settings, echo()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    one.knows(2, listener.local_addr().unwrap());
    drop(one.links.call(MemberId(2), DATA, Bytes::new()));
    let _silent = take(&listener, 2).await;
    until(async || {
        drop(one.links.call(MemberId(2), DATA, Bytes::new()));
        matches!(one.links.last_error(MemberId(2), Kind::Data), Some(LinkError::Time { .. }))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sign_of_life_goes_back_while_a_request_is_coming() {
    let settings = LinkSettings { silence_ms_max: 300, ..LinkSettings::default() };
    let (_one, two) = pair(settings, echo()).await;
    let (mut slow, _) = connect(two.address, &hello(Kind::Data, 9, None), &[]).await;
    let request = frame(1, 0, 1, b"slowly");
    slow.write_all(&request[..10]).await.unwrap();
    let mut came = vec![0; 14];
    slow.read_exact(&mut came).await.unwrap();
    assert_eq!(came, frame(4, 0, 0, &[]));
    slow.write_all(&request[10..]).await.unwrap();
    while came[4] != 2 {
        slow.read_exact(&mut came).await.unwrap();
    }
    assert_eq!(came, frame(2, 0, 1, b"slowly")[..14]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_waits_for_ever_when_links_are_stopped_beside_it() {
    for _ in 0..200 {
        let (one, two) = pair(LinkSettings::default(), echo()).await;
        let (links, address) = (Arc::clone(&one.links), two.address);
        let calls = tokio::spawn(async move {
            while links.call_address(address, Channel::Join, Bytes::new()).await.is_ok() {
                if links.call(MemberId(2), DATA, Bytes::new()).await.is_err() {
                    break;
                }
            }
        });
        until(async || two.links.statistics().of(Kind::Join).frames_received > 0).await;
        one.links.stop().await;
        calls.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rubbish_in_the_place_of_answers_breaks_the_connection() {
    let one = Node::start(Some(1), LinkSettings::default(), echo()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    one.knows(2, listener.local_addr().unwrap());
    let rubbish: [(Vec<u8>, &str); 8] = [
        (vec![0xff; 100], "4294967285 bytes"),
        (vec![1, 0, 0, 0, 1], "expected at least 10"),
        (frame(2, 0, 5, b"x"), "a request that was not made"),
        (frame(1, 0, 1, b"x"), "a request came"),
        (frame(9, 0, 1, b"x"), "of kind 9"),
        (frame(2, 1, 1, b"x"), "channel 1"),
        (frame(3, 0, 1, &[0xff]), "of kind 3 has 1 bytes"),
        (frame(5, 0, 1, &[]), "a member id came"),
    ];
    for (bytes, expected) in rubbish {
        let mut call = one.links.call(MemberId(2), DATA, Bytes::from_static(b"hear"));
        // A connection that has brought no answer is made again after a back-off.
        while let Ok(failed) = tokio::time::timeout(Duration::from_millis(10), &mut call).await {
            assert_eq!(failed, Err(TransportError::Unreachable(MemberId(2))));
            call = one.links.call(MemberId(2), DATA, Bytes::from_static(b"hear"));
        }
        let mut stream = take(&listener, 2).await;
        stream.read_exact(&mut [0; 18]).await.unwrap();
        stream.write_all(&bytes).await.unwrap();
        assert_eq!(call.await, broken());
        let error = one.links.last_error(MemberId(2), Kind::Data).unwrap().to_string();
        assert!(error.contains(expected), "{error}");
        // A new link, as after a change of the address.
        one.links.addresses().remove(MemberId(2));
        one.knows(2, listener.local_addr().unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rubbish_in_the_place_of_requests_breaks_the_connection() {
    let (one, two) = pair(LinkSettings::default(), echo()).await;
    let rubbish = [
        vec![0xff; 100],
        frame(1, 4, 1, b"a request on the connection for entries"),
        frame(1, 9, 1, b"x"),
        frame(2, 0, 1, b"an answer"),
        frame(4, 0, 0, &[]),
        frame(5, 0, 77, &[]),
    ];
    for bytes in rubbish {
        let (mut stream, answer) = connect(two.address, &hello(Kind::Data, 9, None), &[]).await;
        assert_eq!(answer[0], 0);
        let request = frame(1, 0, 1, b"well");
        stream.write_all(&request).await.unwrap();
        let mut echoed = vec![0; request.len()];
        stream.read_exact(&mut echoed).await.unwrap();
        assert_eq!(echoed, frame(2, 0, 1, b"well"));
        stream.write_all(&bytes).await.unwrap();
        assert_eq!(stream.read(&mut [0; 10]).await.unwrap_or(0), 0);
        assert!(one.echoes(2, DATA).await);
    }
    assert_eq!(one.links.statistics().of(Kind::Data).reconnects, 0);
}
