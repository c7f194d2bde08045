//! Members that authenticate by certificates: members of the authority are accepted in both
//! directions, and all other peers are refused.

use crate::common::certificates::{Directory, Good, authority};
use crate::common::{Node, echo};
use bytes::Bytes;
use filbert_cluster::{Lane, MemberId};
use filbert_links::*;
use tokio::io::AsyncReadExt;

const DATA: Channel = Channel::Consensus(Lane::Data);

fn settings(tls: &TlsFiles, secret: Option<&str>) -> LinkSettings {
    let tls = Some(TlsSettings::read(tls).unwrap());
    LinkSettings { tls, secret: secret.map(Secret::new), ..LinkSettings::default() }
}

/// Makes a call from one member to the other. Returns the reason if there is no connection.
async fn between(here: LinkSettings, there: LinkSettings) -> Result<(), String> {
    let (one, two) = (Node::start(Some(1), here, echo()).await, Node::start(Some(2), there, echo()).await);
    one.knows(2, two.address);
    match one.links.call(MemberId(2), DATA, Bytes::from_static(b"hear")).await {
        Ok(answer) => {
            assert_eq!(answer, "hear");
            Ok(())
        }
        Err(_) => {
            let heard = two.links.statistics().of(Kind::Data).frames_received;
            assert_eq!(heard, 0, "nothing of a stranger's is listened to");
            Err(one.links.last_error(MemberId(2), Kind::Data).unwrap().to_string())
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_one_authority_reach_each_other_whatever_their_names() {
    let (directory, ca) = (Directory::new(), authority("members"));
    let [one, two] = ["db1.example.org", "db2.example.org"].map(|name| ca.member(&directory, name, Good::Now));
    assert_eq!(between(settings(&one, None), settings(&two, None)).await, Ok(()));
    // With a secret as well, which both members must know.
    assert_eq!(between(settings(&one, Some("s")), settings(&two, Some("s"))).await, Ok(()));
    let refused = between(settings(&one, Some("s")), settings(&two, Some("t"))).await.unwrap_err();
    assert_eq!(refused, "the peer has another secret");
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_refused_whichever_side_dials() {
    let (directory, ca, other) = (Directory::new(), authority("members"), authority("strangers"));
    let member = || settings(&ca.member(&directory, "db1.example.org", Good::Now), None);
    let mut forged = other.member(&directory, "db1.example.org", Good::Now);
    // The stranger trusts the members, and the members do not trust it.
    forged.authority = ca.member(&directory, "db3.example.org", Good::Now).authority;
    let stranger = || {
        let files = TlsFiles { authority: other.member(&directory, "x", Good::Now).authority, ..forged.clone() };
        let mut settings = settings(&files, None);
        let of_members = ca.member(&directory, "db2.example.org", Good::Now);
        settings.tls.as_mut().unwrap().server = TlsSettings::read(&of_members).unwrap().server;
        settings
    };
    for (here, there) in [(stranger(), member()), (settings(&other.member(&directory, "x", Good::Now), None), member())]
    {
        let refused = between(here, there).await.unwrap_err();
        assert!(refused.starts_with("cannot agree on TLS with the peer"), "{refused}");
    }
    let refused = between(member(), settings(&other.member(&directory, "x", Good::Now), None)).await.unwrap_err();
    assert!(refused.starts_with("cannot agree on TLS with the peer"), "{refused}");
    // Nor without TLS.
    let refused = between(LinkSettings::default(), member()).await.unwrap_err();
    assert_eq!(refused, "the peer uses TLS, this member does not");
    let refused = between(member(), LinkSettings::default()).await.unwrap_err();
    assert_eq!(refused, "the peer does not use TLS, expected it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_all_members_have_is_looked_at_on_both_sides() {
    let (directory, ca) = (Directory::new(), authority("company"));
    let with_name = |of: &'static str, name: Option<&str>| {
        settings(&TlsFiles { name: name.map(str::to_owned), ..ca.member(&directory, of, Good::Now) }, None)
    };
    let member = || with_name("filbert.example.org", Some("filbert.example.org"));
    assert_eq!(between(member(), member()).await, Ok(()));
    // A peer with another certificate of the authority, which checks no name itself.
    let other = || with_name("mail.example.org", None);
    assert!(between(other(), member()).await.is_err());
    assert!(between(member(), other()).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_without_a_certificate_gets_no_hello() {
    let (directory, ca) = (Directory::new(), authority("members"));
    let node = Node::start(Some(2), settings(&ca.member(&directory, "db1", Good::Now), None), echo()).await;
    let mut stream = tokio::net::TcpStream::connect(node.address).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, b"FLM1\x01").await.unwrap();
    let mut answer = [0; 33];
    stream.read_exact(&mut answer).await.unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stream, b"no TLS at all, and far more than one record's head")
        .await
        .unwrap();
    let mut rest = Vec::new();
    // Closed, or reset if the node had not read everything.
    let _reset = stream.read_to_end(&mut rest).await;
    assert!(rest.len() < 16, "an alert of TLS at most: {rest:?}");
}

#[test]
fn files_that_cannot_be_used_say_why() {
    let (directory, ca) = (Directory::new(), authority("members"));
    let good = ca.member(&directory, "db1", Good::Now);
    let other = ca.member(&directory, "db2", Good::Now);
    let check = |files: TlsFiles, expected: &str| {
        let error = TlsSettings::read(&files).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}, expected {expected}");
    };
    let missing = directory.path().join("missing.pem");
    check(TlsFiles { key: missing.clone(), ..good.clone() }, "cannot read the PEM file");
    check(TlsFiles { authority: missing, ..good.clone() }, "missing.pem");
    check(TlsFiles { certificate: good.key.clone(), ..good.clone() }, "has no certificate in PEM");
    check(TlsFiles { key: good.certificate.clone(), ..good.clone() }, "has no private key in PEM");
    check(TlsFiles { key: other.key, ..good.clone() }, "cannot be used");
    // Certificates that other members would refuse are reported at the start.
    let stranger = authority("strangers").member(&directory, "db1", Good::Now);
    check(TlsFiles { authority: stranger.authority, ..good.clone() }, "cannot be used");
    check(ca.member(&directory, "db3", Good::Before), "cannot be used");
    check(TlsFiles { name: Some("other".to_owned()), ..good.clone() }, "cannot be used");
    check(TlsFiles { name: Some("no name at all".to_owned()), ..good }, "is no name that certificates can have");
}
