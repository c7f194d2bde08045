//! Members for tests: real links on separate ports, and peers that do not behave like members.

#![allow(dead_code, clippy::unwrap_used, clippy::indexing_slicing, reason = "tests, and each uses a part of it")]

pub(crate) mod certificates;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use filbert_cluster::{BoxFuture, MemberId};
use filbert_links::*;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use uuid::Uuid;

pub(crate) struct Answering<F>(F);

impl<F> Service for Answering<F>
where
    F: Fn(Peer, Channel, Bytes) -> BoxFuture<Result<Bytes, Refusal>> + Send + Sync + 'static,
{
    fn answer(&self, from: Peer, channel: Channel, request: Bytes) -> BoxFuture<Result<Bytes, Refusal>> {
        (self.0)(from, channel, request)
    }
}

pub(crate) fn service<F>(answer: F) -> Arc<dyn Service>
where
    F: Fn(Peer, Channel, Bytes) -> BoxFuture<Result<Bytes, Refusal>> + Send + Sync + 'static,
{
    Arc::new(Answering(answer))
}

pub(crate) fn echo() -> Arc<dyn Service> {
    service(|_, _, request| Box::pin(async move { Ok(request) }))
}

pub(crate) fn identity() -> Identity {
    let (cluster, incarnation) = ("test".to_owned(), Uuid::new_v4());
    Identity { cluster, incarnation, partitions: 271, groups: 24, versions: 1..=1 }
}

/// The id of the cluster of all nodes that are members.
pub(crate) const CLUSTER: Uuid = Uuid::from_u128(1);

pub(crate) struct Node {
    pub(crate) links: Arc<Links>,
    pub(crate) address: SocketAddr,
}

impl Node {
    pub(crate) async fn start(member: Option<u64>, settings: LinkSettings, service: Arc<dyn Service>) -> Node {
        Node::with(member, settings, identity(), service).await
    }

    pub(crate) async fn with(
        member: Option<u64>,
        settings: LinkSettings,
        own: Identity,
        service: Arc<dyn Service>,
    ) -> Node {
        let links = Arc::new(Links::start(settings, own, service).unwrap());
        if let Some(member) = member {
            links.become_member(MemberId(member), CLUSTER).unwrap();
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        links.serve(listener);
        Node { links, address }
    }

    pub(crate) fn knows(&self, member: u64, address: SocketAddr) {
        self.links.addresses().set(MemberId(member), address);
    }

    pub(crate) async fn echoes(&self, member: u64, channel: Channel) -> bool {
        let answer = self.links.call(MemberId(member), channel, Bytes::from_static(b"hear")).await;
        answer.is_ok_and(|answer| answer == "hear")
    }
}

/// Starts two members. The first one knows the address of the second one.
pub(crate) async fn pair(settings: LinkSettings, answers: Arc<dyn Service>) -> (Node, Node) {
    let one = Node::start(Some(1), settings.clone(), echo()).await;
    let two = Node::start(Some(2), settings, answers).await;
    one.knows(2, two.address);
    (one, two)
}

pub(crate) async fn until(mut condition: impl AsyncFnMut() -> bool) {
    while !condition().await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/certificates").join(name)
}

/// TLS settings for both sides, for members with this name.
pub(crate) fn tls(name: &'static str) -> TlsSettings {
    let certificate = || vec![CertificateDer::from_pem_file(file("localhost.pem")).unwrap()];
    let key = || PrivateKeyDer::from_pem_file(file("localhost.key")).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate().remove(0)).unwrap();
    let roots = Arc::new(roots);
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(&provider));
    let server = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
    let server = server.unwrap().with_client_cert_verifier(verifier.build().unwrap());
    let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let client = client.with_root_certificates(roots).with_client_auth_cert(certificate(), key());
    TlsSettings {
        server: Arc::new(server.with_single_cert(certificate(), key()).unwrap()),
        client: Arc::new(client.unwrap()),
        name: ServerName::try_from(name).unwrap(),
    }
}

/// A hello of member `member`, as bytes.
pub(crate) fn hello(kind: Kind, member: u64, dialled: Option<u64>) -> Vec<u8> {
    let id = |member: Option<u64>| [&[u8::from(member.is_some())][..], &member.unwrap_or(0).to_le_bytes()].concat();
    let kind = Kind::ALL.iter().position(|other| *other == kind).unwrap() as u8;
    let (versions, incarnation) = ([1, 0, 1, 0], *Uuid::new_v4().as_bytes());
    let (partitions, groups) = (271_u32.to_le_bytes(), 24_u32.to_le_bytes());
    let ids = [id(Some(member)), id(dialled)].concat();
    let cluster = CLUSTER.as_bytes();
    [&versions[..], &[kind], &incarnation, &[7; 32], &ids, cluster, &partitions, &groups, b"test"].concat()
}

fn message(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u16).to_le_bytes()[..], bytes].concat()
}

async fn receive(stream: &mut TcpStream) -> Vec<u8> {
    let bytes = stream.read_u16_le().await.unwrap();
    let mut message = vec![0; usize::from(bytes)];
    stream.read_exact(&mut message).await.unwrap();
    message
}

/// Accepts a connection like a member, and leaves it to the test.
pub(crate) async fn take(listener: &TcpListener, member: u64) -> TcpStream {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut beginning = [0; 5];
    stream.read_exact(&mut beginning).await.unwrap();
    assert_eq!(&beginning, b"FLM1\0");
    stream.write_all(&[0; 33]).await.unwrap();
    let kind = Kind::ALL[usize::from(receive(&mut stream).await[6])];
    let known = [&[0][..], &message(&hello(kind, member, None))].concat();
    stream.write_all(&message(&known)).await.unwrap();
    stream
}

/// Connects like a member, with a proof or without, and leaves the rest to the test. Also returns
/// the answer to the hello.
pub(crate) async fn connect(address: SocketAddr, hello: &[u8], proof: &[u8]) -> (TcpStream, Vec<u8>) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let mode = if proof.is_empty() { 0 } else { 2 };
    stream.write_all(&[&PREAMBLE[..], &[mode]].concat()).await.unwrap();
    stream.read_exact(&mut [0; 33]).await.unwrap();
    let introduction = [&message(hello)[..], proof].concat();
    stream.write_all(&message(&introduction)).await.unwrap();
    let answer = receive(&mut stream).await;
    (stream, answer)
}

/// A frame as bytes.
pub(crate) fn frame(kind: u8, channel: u8, number: u64, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32 + 10).to_le_bytes();
    [&length[..], &[kind, channel], &number.to_le_bytes(), payload].concat()
}
