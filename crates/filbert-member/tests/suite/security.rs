//! Access to a cluster: members must know its secret, present a certificate of its authority, or
//! both. A stranger can neither read nor join.

use std::sync::Arc;

use crate::certificates::{Directory, Good, Identified, authority};
use crate::common::data::{found, is_whole, put};
use crate::common::{join_all, listen, stop_all, until, within};
use bytes::Bytes;
use filbert_cluster::{BoxFuture, GroupSettings};
use filbert_grid::GridConfig;
use filbert_links::{Channel, Identity, LinkSettings, Links, Peer, Refusal, Secret, Service, TlsSettings};
use filbert_member::{MemberError, MemberSettings, Starting};
use uuid::Uuid;

struct Silent;

impl Service for Silent {
    fn answer(&self, _: Peer, _: Channel, _: Bytes) -> BoxFuture<Result<Bytes, Refusal>> {
        Box::pin(std::future::pending())
    }
}

/// Sends a greeting from a stranger to a member. Returns the answer or the error.
async fn greeted(address: &str, settings: LinkSettings) -> Result<Bytes, String> {
    let groups = GroupSettings::default();
    let identity = Identity {
        cluster: GridConfig::default().cluster_name,
        incarnation: Uuid::new_v4(),
        partitions: groups.partitions,
        groups: groups.groups,
        versions: 1..=1,
    };
    let links = Links::start(settings, identity, Arc::new(Silent)).unwrap();
    let answer = links.call_address(address, Channel::Join, Bytes::from_static(b"\x01\"Greet\""));
    let answer = within("it is answered or refused", answer).await;
    links.stop().await;
    answer.map_err(|error| error.to_string())
}

fn settings(directory: &Directory, ca: Option<&Identified>, name: &'static str, secret: Option<&str>) -> LinkSettings {
    let tls = ca.map(|ca| TlsSettings::read(&ca.member(directory, name, Good::Now)).unwrap());
    LinkSettings { tls, secret: secret.map(Secret::new), ..LinkSettings::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn members_with_a_secret_or_certificates_or_both_form_a_cluster_and_strangers_do_not_get_in() {
    let (directory, ca, strangers) = (Directory::new(), authority("members"), authority("strangers"));
    for (has_tls, secret) in [(true, None), (false, Some("open sesame")), (true, Some("open sesame"))] {
        let of_cluster = has_tls.then_some(&ca);
        let mut starting: Vec<Starting> = Vec::new();
        for name in ["db1", "db2", "db3"] {
            let links = settings(&directory, of_cluster, name, secret);
            let settings = MemberSettings { links, ..MemberSettings::default() };
            starting.push(listen(settings, GridConfig::default()).await.unwrap());
        }
        let addresses: Vec<String> = starting.iter().map(|member| member.address().to_owned()).collect();
        let members = join_all(starting, &addresses).await;
        until("all is well", || members.iter().all(|member| is_whole(member, 3))).await;
        let all: Vec<_> = members.iter().collect();
        put(&all, 0..100).await;
        assert_eq!(found(&all, 0..100).await.len(), 100);

        let known = greeted(&addresses[0], settings(&directory, of_cluster, "db4", secret)).await.unwrap();
        assert!(known.starts_with(b"\x01{\"InCluster\""), "{known:?}");
        let nothing = greeted(&addresses[0], LinkSettings::default()).await.unwrap_err();
        let expected = if has_tls { "uses TLS" } else { "has a secret" };
        assert!(nothing.contains(expected), "{nothing}");
        if has_tls {
            let other =
                greeted(&addresses[0], settings(&directory, Some(&strangers), "db4", secret)).await.unwrap_err();
            assert!(other.contains("cannot agree on TLS"), "{other}");
            let other = greeted(&addresses[0], settings(&directory, None, "db4", secret)).await.unwrap_err();
            assert!(other.contains("uses TLS"), "{other}");
        }
        if secret.is_some() {
            let other = settings(&directory, of_cluster, "db4", Some("open sesamf"));
            let refused = greeted(&addresses[0], other.clone()).await.unwrap_err();
            assert_eq!(refused, "the peer has another secret");
            // A member with another secret does not wait for ever.
            let other = MemberSettings { links: other, addresses: addresses.clone(), ..MemberSettings::default() };
            match within("it is refused", listen(other, GridConfig::default()).await.unwrap().join()).await {
                Err(MemberError::Refused(why)) => assert!(why.contains("the peer has another secret"), "{why}"),
                Err(error) => panic!("{error}"),
                Ok(_) => panic!("it was let in"),
            }
        }
        assert_eq!(members[0].registry().members().count(), 3);
        stop_all(members).await;
    }
}
