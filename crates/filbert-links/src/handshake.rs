//! The handshake of both sides. `hello.rs` describes its bytes.
//!
//! The dialling member proves the secret first: a stranger that dials receives neither a proof to
//! guess the secret from nor a hello. Proofs cover the modes, the nonces and the hellos so far, and
//! with TLS a key of the session, so that a third party cannot relay them.

use filbert_cluster::MemberId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::rustls::ConnectionCommon;
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};

use crate::error::MESSAGE_BYTES_MAX;
use crate::error::TLS;
use crate::hello::{Hello, Introduction, NONCE_BYTES, Verdict};
use crate::membership::Membership;
use crate::proof::{PROOF_BYTES, Role, is_proved, prove};
use crate::stream::{Both, Halves, Stream};
use crate::{HelloError, Identity, Kind, LinkError, LinkSettings, Refused};

/// The first bytes of a connection between members. They differ from the first bytes of Hazelcast,
/// PostgreSQL, HTTP and TLS clients, so that all of them can share a port.
pub const PREAMBLE: [u8; 4] = *b"FLM1";

const MODE_TLS: u8 = 1;
const MODE_SECRET: u8 = 2;
/// The label of a key that only both sides of a TLS session have.
const KEY_LABEL: &[u8] = b"EXPORTER-filbert-links";

/// The inputs of a member for a handshake.
#[derive(Clone, Copy)]
pub(crate) struct Own<'o> {
    pub(crate) settings: &'o LinkSettings,
    pub(crate) identity: &'o Identity,
    pub(crate) member: Option<Membership>,
}

/// The result of a handshake.
pub(crate) struct Agreed {
    pub(crate) peer: Hello,
    pub(crate) version: u16,
    pub(crate) halves: Halves,
}

impl Own<'_> {
    fn mode(&self) -> u8 {
        u8::from(self.settings.tls.is_some()) * MODE_TLS + u8::from(self.settings.secret.is_some()) * MODE_SECRET
    }

    fn check_mode(&self, peer: u8) -> Result<(), Refused> {
        let differs = self.mode() ^ peer;
        if differs & MODE_TLS != 0 {
            return Err(Refused::Encryption { here: self.settings.tls.is_some() });
        }
        if differs & MODE_SECRET != 0 {
            return Err(Refused::SecretMissing { here: self.settings.secret.is_some() });
        }
        Ok(())
    }

    fn introduce(&self, role: Role, hello: Vec<u8>, said: &[&[u8]]) -> Introduction {
        let proof = self.settings.secret.as_ref().map(|secret| prove(secret, role, &[said, &[&hello]].concat()));
        Introduction { hello, proof }
    }

    fn check_proof(&self, role: Role, peer: &Introduction, said: &[&[u8]]) -> Result<(), Refused> {
        let proof: &[u8] = peer.proof.as_ref().map_or(&[], |proof| &proof[..PROOF_BYTES]);
        match &self.settings.secret {
            Some(secret) if !is_proved(secret, role, &[said, &[&peer.hello]].concat(), proof) => Err(Refused::Secret),
            _ => Ok(()),
        }
    }
}

fn nonce() -> [u8; NONCE_BYTES] {
    rand::random()
}

/// Runs the handshake of the dialling member.
pub(crate) async fn dial(
    mut stream: TcpStream,
    own: Own<'_>,
    kind: Kind,
    dialled: Option<MemberId>,
) -> Result<Agreed, LinkError> {
    let mode = own.mode();
    let mut beginning = PREAMBLE.to_vec();
    beginning.push(mode);
    write(&mut stream, &beginning).await?;
    let mut answer = [0; 1 + NONCE_BYTES];
    read(&mut stream, &mut answer).await?;
    let (peer_mode, _) = answer.split_first().unwrap_or((&0, &[]));
    if *peer_mode > MODE_TLS + MODE_SECRET {
        return Err(HelloError::Value { what: "the mode", found: *peer_mode }.into());
    }
    own.check_mode(*peer_mode)?;
    let (mut stream, key) = match &own.settings.tls {
        None => (Stream::Plain(stream), Vec::new()),
        Some(tls) => {
            let connector = TlsConnector::from(std::sync::Arc::clone(&tls.client));
            let stream = connector.connect(tls.name.clone(), stream).await;
            let stream = stream.map_err(|error| LinkError::io(TLS, &error))?;
            let key = key(stream.get_ref().1)?;
            (Stream::Tls(Box::new(TlsStream::Client(stream))), key)
        }
    };
    let hello = Hello::new(own.identity, own.member, kind, dialled, nonce());
    let introduction = own.introduce(Role::Dials, hello.write(), &[&beginning, &answer, &key]);
    let mut message = Vec::new();
    introduction.write(&mut message);
    send(stream.both(), &message).await?;
    let peer = match Verdict::read(&receive(stream.both()).await?)? {
        Verdict::Known(peer) => peer,
        Verdict::Secret => return Err(Refused::Secret.into()),
        Verdict::Refused(text) => return Err(Refused::Reason(text).into()),
    };
    own.check_proof(Role::Answers, &peer, &[&beginning, &answer, &key, &introduction.hello])?;
    let peer = Hello::read(&peer.hello)?;
    let version = hello.check(&peer)?;
    Ok(Agreed { peer, version, halves: stream.split() })
}

/// Runs the handshake of the answering member. `first` are bytes that were read already.
pub(crate) async fn answer(mut stream: TcpStream, first: &[u8], own: Own<'_>) -> Result<Agreed, LinkError> {
    let mut beginning = first.to_vec();
    if let Some(missing) = (PREAMBLE.len() + 1).checked_sub(first.len()) {
        let mut rest = vec![0; missing];
        read(&mut stream, &mut rest).await?;
        beginning.extend_from_slice(&rest);
    }
    let peer_mode = match beginning.strip_prefix(&PREAMBLE) {
        Some([mode]) if *mode <= MODE_TLS + MODE_SECRET => *mode,
        // The dialling member waits for the answer before it sends more.
        _ => {
            beginning.truncate(PREAMBLE.len() + 1);
            return Err(HelloError::Beginning(beginning).into());
        }
    };
    let mut answer = vec![own.mode()];
    answer.extend_from_slice(&nonce());
    write(&mut stream, &answer).await?;
    own.check_mode(peer_mode)?;
    let (mut stream, key) = match &own.settings.tls {
        None => (Stream::Plain(stream), Vec::new()),
        Some(tls) => {
            let stream = TlsAcceptor::from(std::sync::Arc::clone(&tls.server)).accept(stream).await;
            let stream = stream.map_err(|error| LinkError::io(TLS, &error))?;
            let key = key(stream.get_ref().1)?;
            (Stream::Tls(Box::new(TlsStream::Server(stream))), key)
        }
    };
    let introduction = Introduction::read(&receive(stream.both()).await?)?;
    if let Err(refused) = own.check_proof(Role::Dials, &introduction, &[&beginning, &answer, &key]) {
        send(stream.both(), &Verdict::Secret.write()).await?;
        return Err(refused.into());
    }
    let peer = Hello::read(&introduction.hello)?;
    let hello = Hello::new(own.identity, own.member, peer.kind, None, nonce());
    if peer.member.is_none() && peer.kind != Kind::Join {
        let refused = Refused::NoMember(peer.kind);
        send(stream.both(), &Verdict::Refused(refused.to_string()).write()).await?;
        return Err(refused.into());
    }
    // Both sides compare the hellos, and each finds its own reasons to refuse.
    let said: [&[u8]; 4] = [&beginning, &answer, &key, &introduction.hello];
    let known = own.introduce(Role::Answers, hello.write(), &said);
    send(stream.both(), &Verdict::Known(known).write()).await?;
    let version = hello.check(&peer)?;
    Ok(Agreed { peer, version, halves: stream.split() })
}

fn key<Data>(connection: &ConnectionCommon<Data>) -> Result<Vec<u8>, LinkError> {
    let exported = connection.export_keying_material(vec![0; 32], KEY_LABEL, None);
    exported.map_err(|error| LinkError::Io { what: TLS, why: error.to_string() })
}

async fn write(stream: &mut dyn Both, bytes: &[u8]) -> Result<(), LinkError> {
    let written = async {
        stream.write_all(bytes).await?;
        stream.flush().await
    };
    written.await.map_err(|error| LinkError::io("write to the peer in the handshake", &error))
}

async fn read(stream: &mut dyn Both, bytes: &mut [u8]) -> Result<(), LinkError> {
    let read = stream.read_exact(bytes).await;
    read.map(|_| ()).map_err(|error| LinkError::io("read from the peer in the handshake", &error))
}

async fn send(stream: &mut dyn Both, message: &[u8]) -> Result<(), LinkError> {
    let length = u16::try_from(message.len()).map_err(|_| HelloError::TooLong { bytes: message.len() })?;
    write(stream, &[&length.to_le_bytes()[..], message].concat()).await
}

async fn receive(stream: &mut dyn Both) -> Result<Vec<u8>, LinkError> {
    let mut length = [0; 2];
    read(stream, &mut length).await?;
    let bytes = usize::from(u16::from_le_bytes(length));
    if bytes > MESSAGE_BYTES_MAX {
        return Err(HelloError::TooLong { bytes }.into());
    }
    let mut message = vec![0; bytes];
    read(stream, &mut message).await?;
    Ok(message)
}
