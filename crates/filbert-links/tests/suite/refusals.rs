//! Peers with different settings, and strangers.

use crate::common::*;
use bytes::Bytes;
use filbert_cluster::{Lane, MemberId, TransportError};
use filbert_links::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const DATA: Channel = Channel::Consensus(Lane::Data);

/// Returns the refusal between members 1 and 2 of the same cluster. `change` changes the identity
/// and the settings. Member 1 dials.
async fn refused(change: impl FnOnce(&mut Identity, &mut LinkSettings, &mut LinkSettings)) -> LinkError {
    let (mut own, mut here, mut there) = (identity(), LinkSettings::default(), LinkSettings::default());
    change(&mut own, &mut here, &mut there);
    let one = Node::start(Some(1), here, echo()).await;
    let two = Node::with(Some(2), there, own, echo()).await;
    one.knows(2, two.address);
    let failed = one.links.call(MemberId(2), DATA, Bytes::new()).await;
    assert_eq!(failed, Err(TransportError::Unreachable(MemberId(2))));
    until(async || two.links.statistics().refused == 1).await;
    assert_eq!(two.links.statistics().of(Kind::Data).frames_received, 0);
    one.links.last_error(MemberId(2), Kind::Data).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_must_be_the_same_and_is_not_is_told_with_what_was_found() {
    let error = refused(|own, _, _| own.cluster = "prod".to_owned()).await;
    assert_eq!(error.to_string(), "the peer is of cluster \"prod\", expected \"test\"");
    let error = refused(|own, _, _| own.partitions = 1_024).await;
    assert_eq!(error, Refused::Partitions { found: 1_024, expected: 271 }.into());
    let error = refused(|own, _, _| own.groups = 12).await;
    assert_eq!(error.to_string(), "the peer has 12 groups of partitions, expected 24");
    let error = refused(|own, _, _| own.versions = 2..=5).await;
    assert_eq!(error.to_string(), "the peer speaks versions 2 to 5, expected one of 1 to 1");
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_and_encryption_must_be_the_same() {
    let error = refused(|_, here, there| {
        here.secret = Some(Secret::new("open sesame"));
        there.secret = Some(Secret::new("open sesamf"));
    })
    .await;
    assert_eq!(error, Refused::Secret.into());
    let error = refused(|_, here, _| here.secret = Some(Secret::new("open sesame"))).await;
    assert_eq!(error, Refused::SecretMissing { here: true }.into());
    let error = refused(|_, _, there| there.secret = Some(Secret::new("open sesame"))).await;
    assert_eq!(error, Refused::SecretMissing { here: false }.into());
    let error = refused(|_, here, _| here.tls = Some(tls("localhost"))).await;
    assert_eq!(error, Refused::Encryption { here: true }.into());
    let error = refused(|_, _, there| there.tls = Some(tls("localhost"))).await;
    assert_eq!(error.to_string(), "the peer uses TLS, this member does not");
    let error = refused(|_, here, there| {
        here.tls = Some(tls("example.org"));
        there.tls = Some(tls("example.org"));
    })
    .await;
    assert!(error.to_string().starts_with("cannot agree on TLS with the peer"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_with_tls_and_a_secret_reach_each_other() {
    for (encrypts, secret) in [(true, None), (false, Some("open sesame")), (true, Some("open sesame"))] {
        let secret = secret.map(Secret::new);
        let settings = LinkSettings { tls: encrypts.then(|| tls("localhost")), secret, ..LinkSettings::default() };
        let (one, _two) = pair(settings, echo()).await;
        let long = Bytes::from(vec![7; 3 << 20]);
        let calls: Vec<_> = (0..20).map(|_| one.links.call(MemberId(2), DATA, long.clone())).collect();
        let mut answers = 0;
        for call in calls {
            // Some calls may not fit into the queue.
            answers += usize::from(call.await.is_ok_and(|answer| answer == long));
        }
        assert!(answers > 5, "TLS: {encrypts}, answers: {answers}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_member_than_expected_is_not_talked_to() {
    let (one, two) = pair(LinkSettings::default(), echo()).await;
    one.knows(3, two.address);
    assert!(one.links.call(MemberId(3), DATA, Bytes::new()).await.is_err());
    let error = one.links.last_error(MemberId(3), Kind::Data).unwrap();
    assert_eq!(error.to_string(), "member 2 was found at the address, expected member 3");
    one.knows(4, one.address);
    assert!(one.links.call(MemberId(4), DATA, Bytes::new()).await.is_err());
    assert_eq!(one.links.last_error(MemberId(4), Kind::Data), Some(Refused::Itself.into()));
    let error = one.links.call_address(one.address, Channel::Join, Bytes::new()).await.unwrap_err();
    assert_eq!(error, Refused::Itself.into());
    let same = Node::start(Some(1), LinkSettings::default(), echo()).await;
    let error = one.links.call_address(same.address, Channel::Join, Bytes::new()).await.unwrap_err();
    assert_eq!(error, Refused::SameMember(MemberId(1)).into());
    let new = Node::start(None, LinkSettings::default(), echo()).await;
    one.knows(5, new.address);
    assert!(one.links.call(MemberId(5), DATA, Bytes::new()).await.is_err());
    let error = one.links.last_error(MemberId(5), Kind::Data).unwrap();
    assert_eq!(error.to_string(), "a peer without a member id was found at the address, expected member 5");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_learns_nothing_but_that_it_is_refused() {
    let settings = LinkSettings { secret: Some(Secret::new("open sesame")), ..LinkSettings::default() };
    let node = Node::start(Some(2), settings, echo()).await;
    let (mut stream, answer) = connect(node.address, &hello(Kind::Data, 1, None), &[0; 32]).await;
    assert_eq!(answer, [1]);
    assert_eq!(stream.read(&mut [0; 10]).await.unwrap(), 0);
    // Without a valid proof, and with rubbish instead of the hello, the answer is the same.
    let (_, answer) = connect(node.address, b"rubbish", &[1; 32]).await;
    assert_eq!(answer, [1]);
    until(async || node.links.statistics().refused == 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_both_speak_is_agreed_on() {
    let says = service(|from: Peer, _, _| Box::pin(async move { Ok(from.version.to_string().into()) }));
    let one = Node::with(Some(1), LinkSettings::default(), Identity { versions: 1..=3, ..identity() }, echo()).await;
    let two = Node::with(Some(2), LinkSettings::default(), Identity { versions: 2..=9, ..identity() }, says).await;
    one.knows(2, two.address);
    assert_eq!(one.links.call(MemberId(2), DATA, Bytes::new()).await.unwrap(), "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn rubbish_is_refused_and_others_are_served() {
    let (one, two) = pair(LinkSettings::default(), echo()).await;
    let long = [b"FLM1\0", &[0xff; 5_000][..]].concat();
    let starts: [&[u8]; 6] =
        [b"GET / HTTP/1.1\r\n\r\n", b"CP2\0\0", b"FLM1\x04", b"FLM2\0", &long, &[0x16, 3, 1, 2, 0]];
    for (count, start) in (1..).zip(starts) {
        let mut stream = TcpStream::connect(two.address).await.unwrap();
        stream.write_all(start).await.unwrap();
        until(async || two.links.statistics().refused == count).await;
        let mut rest = Vec::new();
        // Closed, or reset if the member had not read everything.
        let _reset = stream.read_to_end(&mut rest).await;
        assert!(rest.len() <= 33, "{rest:?}");
        assert!(one.echoes(2, DATA).await);
    }
    assert_eq!(one.links.statistics().of(Kind::Data).reconnects, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_nothing_in_the_handshake_is_closed_and_only_so_many_may() {
    let settings = LinkSettings { handshake_ms_max: 300, handshakes_max: 1, ..LinkSettings::default() };
    let (one, two) = pair(settings, echo()).await;
    let mut silent = TcpStream::connect(two.address).await.unwrap();
    let mut second = TcpStream::connect(two.address).await.unwrap();
    assert_eq!(second.read(&mut [0; 1]).await.unwrap(), 0, "there is one already");
    assert_eq!(silent.read(&mut [0; 1]).await.unwrap(), 0, "its time is over");
    until(async || one.echoes(2, DATA).await).await;
    assert!(two.links.statistics().refused >= 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_of_others_have_a_limit() {
    let settings = LinkSettings { connections_max: 1, ..LinkSettings::default() };
    let (one, two) = pair(settings, echo()).await;
    assert!(one.echoes(2, DATA).await);
    assert!(!one.echoes(2, Channel::Requests).await);
    until(async || two.links.statistics().refused > 0).await;
    assert!(one.echoes(2, DATA).await);
}
