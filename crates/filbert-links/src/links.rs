//! The links of a member: what is called from outside.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use filbert_cluster::{BoxFuture, Lane, MemberId, Transport, TransportError};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};

use crate::shared::Shared;
use crate::statistics::LinkStatistics;
use crate::way::{Target, Way};
use crate::{Address, AddressBook, Channel, Identity, Kind, LinkError, LinkSettings, Service, inbound};

/// The connections of a member to others, and of others to it. Dropping it ends them all.
pub struct Links(Arc<Shared>);

impl Links {
    /// Starts with no connection, no address and no member id.
    ///
    /// # Errors
    /// The name of the cluster is too long, or this is not called within a runtime of tokio.
    pub fn start(mut settings: LinkSettings, identity: Identity, service: Arc<dyn Service>) -> Result<Self, LinkError> {
        identity.check()?;
        let what = "start links outside of tokio's runtime";
        let runtime = Handle::try_current().map_err(|error| LinkError::Io { what, why: error.to_string() })?;
        // Of one billion: lengths have four bytes.
        settings.frame_bytes_max = settings.frame_bytes_max.min(1 << 30);
        let (handshakes, connections) = (settings.handshakes_max, settings.connections_max);
        let permits = |permits: usize| Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)));
        Ok(Links(Arc::new(Shared {
            settings,
            identity,
            member: OnceLock::new(),
            service,
            addresses: Default::default(),
            ways: Default::default(),
            counters: Default::default(),
            notes: Default::default(),
            stop: watch::Sender::new(false),
            handshakes: permits(handshakes),
            connections: permits(connections),
            runtime,
        })))
    }

    /// Gives this member its id, which it keeps. Others that it is connected to are told.
    ///
    /// # Errors
    /// It has another one.
    pub fn become_member(&self, member: MemberId) -> Result<(), LinkError> {
        let found = *self.0.member.get_or_init(|| member);
        if found != member {
            return Err(LinkError::AlreadyMember { found });
        }
        let ways: Vec<_> = self.0.ways.read().values().cloned().collect();
        for way in ways {
            way.tell(member, self.0.settings.queue_bytes_max);
        }
        Ok(())
    }

    /// This member's id, if it has one.
    #[must_use]
    pub fn member(&self) -> Option<MemberId> {
        self.0.member.get().copied()
    }

    /// Where members are.
    #[must_use]
    pub fn addresses(&self) -> AddressBook {
        AddressBook(Arc::clone(&self.0))
    }

    /// Accepts connections of members from a port of their own.
    pub fn serve(&self, listener: TcpListener) {
        self.0.spawn(inbound::listen(Arc::clone(&self.0), listener));
    }

    /// Takes over a connection that was accepted elsewhere, on a port that members share with clients. `first` is what was read of it:
    /// [`PREAMBLE`](crate::PREAMBLE), and at most one byte more.
    pub fn accept(&self, stream: TcpStream, first: &[u8]) {
        let unknown = SocketAddr::from(([0; 4], 0));
        let peer = stream.peer_addr().unwrap_or(unknown);
        inbound::accept(&self.0, stream, peer, Bytes::copy_from_slice(first));
    }

    /// Brings a request to a member's [`Service`], and its answer back. It is on its way when this returns, in the order of calls of a
    /// channel, whether or not the future is polled; dropping the future does not take it back.
    ///
    /// # Errors
    /// As each [`TransportError`] says. Only `Unreachable`, `Overloaded` and `TooLong` are sure that the request did not arrive.
    pub fn call(&self, to: MemberId, channel: Channel, request: Bytes) -> BoxFuture<Result<Bytes, TransportError>> {
        let answer = self.0.call(to, channel, request);
        Box::pin(async move {
            answer.await.map_err(|error| match error {
                LinkError::Broken => TransportError::Broken(to),
                LinkError::Overloaded => TransportError::Overloaded(to),
                LinkError::TooLong { bytes, bytes_max } => TransportError::TooLong { member: to, bytes, bytes_max },
                LinkError::Answer(why) => TransportError::Refused { member: to, why },
                _ => TransportError::Unreachable(to),
            })
        })
    }

    /// Asks whoever is at an address, over a connection for this call alone: for a member whose id is not known.
    ///
    /// # Errors
    /// The peer cannot be reached, is refused or refuses, or does not answer; as [`LinkError`] says.
    pub fn call_address(
        &self,
        to: impl Into<Address>,
        channel: Channel,
        request: Bytes,
    ) -> BoxFuture<Result<Bytes, LinkError>> {
        let way = Arc::new(Way::new(Target::Address(to.into()), channel.kind()));
        let answer = self.0.call_on(&way, channel, request);
        let cut = CutWhenDropped(way);
        Box::pin(async move {
            let answer = answer.await;
            drop(cut);
            answer
        })
    }

    /// Why a member could not be reached by one kind of connection, or why the last one ended. `None` while there is one.
    #[must_use]
    pub fn last_error(&self, member: MemberId, kind: Kind) -> Option<LinkError> {
        self.0.ways.read().get(&(member, kind)).and_then(|way| way.error())
    }

    /// Counts.
    #[must_use]
    pub fn statistics(&self) -> LinkStatistics {
        self.0.counters.read()
    }

    /// Closes all connections and waits for the end of their tasks. Calls from now on fail. Not to be awaited by a service while it answers.
    pub async fn stop(&self) {
        self.0.stop.send_replace(true);
        let ways: Vec<_> = self.0.ways.write().drain().map(|(_, way)| way).collect();
        for way in ways {
            way.cut();
        }
        self.0.stop.closed().await;
    }
}

struct CutWhenDropped(Arc<Way>);

impl Drop for CutWhenDropped {
    fn drop(&mut self) {
        self.0.cut();
    }
}

impl Drop for Links {
    fn drop(&mut self) {
        self.0.stop.send_replace(true);
    }
}

impl Transport for Links {
    fn call(&self, to: MemberId, lane: Lane, request: Bytes) -> BoxFuture<Result<Bytes, TransportError>> {
        Links::call(self, to, Channel::Consensus(lane), request)
    }
}
