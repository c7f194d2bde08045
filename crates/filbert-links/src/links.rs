//! The links of a member: the public interface.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use filbert_cluster::{BoxFuture, Lane, MemberId, Transport, TransportError};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, watch};
use uuid::Uuid;

use crate::membership::Membership;
use crate::peer_link::{PeerLink, Target};
use crate::shared::Shared;
use crate::statistics::LinkStatistics;
use crate::{Address, AddressBook, Channel, Identity, Kind, LinkError, LinkSettings, Service, calls, inbound};

/// The connections between a member and other members, in both directions. Dropping it closes them
/// all.
pub struct Links(Arc<Shared>);

impl Links {
    /// Starts without connections, addresses and a member id.
    ///
    /// # Errors
    /// The name of the cluster is too long, or the caller is not in a tokio runtime.
    pub fn start(mut settings: LinkSettings, identity: Identity, service: Arc<dyn Service>) -> Result<Self, LinkError> {
        identity.check()?;
        let what = "start links outside of tokio's runtime";
        let runtime = Handle::try_current().map_err(|error| LinkError::Io { what, why: error.to_string() })?;
        // At most 1 GiB, because a frame length has four bytes.
        settings.frame_bytes_max = settings.frame_bytes_max.min(1 << 30);
        let (handshakes, connections) = (settings.handshakes_max, settings.connections_max);
        let permits = |permits: usize| Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS)));
        Ok(Links(Arc::new(Shared {
            settings,
            identity,
            member: OnceLock::new(),
            service,
            addresses: Default::default(),
            links: Default::default(),
            counters: Default::default(),
            logged_errors: Default::default(),
            stop: watch::Sender::new(false),
            handshakes: permits(handshakes),
            connections: permits(connections),
            runtime,
        })))
    }

    /// Sets the id of this member and of its cluster. They never change. Connected peers are
    /// informed.
    ///
    /// # Errors
    /// The member has another id, or is in another cluster.
    pub fn become_member(&self, member: MemberId, cluster: Uuid) -> Result<(), LinkError> {
        let membership = Membership { id: member, cluster };
        let found = *self.0.member.get_or_init(|| membership);
        if found != membership {
            return Err(LinkError::AlreadyMember { found: found.id });
        }
        let links: Vec<_> = self.0.links.read().values().cloned().collect();
        for link in links {
            link.send_id(member, self.0.settings.queue_bytes_max);
        }
        Ok(())
    }

    /// The id of this member, if it has one.
    #[must_use]
    pub fn member(&self) -> Option<MemberId> {
        self.0.member.get().map(|member| member.id)
    }

    /// The addresses of members.
    #[must_use]
    pub fn addresses(&self) -> AddressBook {
        AddressBook(Arc::clone(&self.0))
    }

    /// Accepts connections of members on a separate port.
    pub fn serve(&self, listener: TcpListener) {
        self.0.spawn(inbound::listen(Arc::clone(&self.0), listener));
    }

    /// Takes over a connection that was accepted elsewhere, on a port that members share with
    /// clients. `first` are the bytes that were read from it: [`PREAMBLE`](crate::PREAMBLE), and at
    /// most one more byte.
    pub fn accept(&self, stream: TcpStream, first: &[u8]) {
        let unknown = SocketAddr::from(([0; 4], 0));
        let peer = stream.peer_addr().unwrap_or(unknown);
        inbound::accept(&self.0, stream, peer, Bytes::copy_from_slice(first));
    }

    /// Sends a request to a member's [`Service`], and returns its answer. The request is queued
    /// when this function returns, in the order of the calls of a channel, whether or not the
    /// future is polled. Dropping the future does not cancel the request.
    ///
    /// # Errors
    /// See each [`TransportError`]. Only with `Unreachable`, `Overloaded` and `TooLong` it is
    /// certain that the request did not arrive.
    pub fn call(&self, to: MemberId, channel: Channel, request: Bytes) -> BoxFuture<Result<Bytes, TransportError>> {
        let answer = calls::call(&self.0, to, channel, request);
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

    /// Sends a request to the member at an address, over a connection for this call alone: for a
    /// member with an unknown id.
    ///
    /// # Errors
    /// The peer cannot be reached, is refused, refuses, or does not answer. See [`LinkError`].
    pub fn call_address(
        &self,
        to: impl Into<Address>,
        channel: Channel,
        request: Bytes,
    ) -> BoxFuture<Result<Bytes, LinkError>> {
        let link = Arc::new(PeerLink::new(Target::Address(to.into()), channel.kind(), &self.0.service));
        let answer = calls::call_on(&self.0, &link, channel, request);
        let cut = CutWhenDropped(link);
        Box::pin(async move {
            let answer = answer.await;
            drop(cut);
            answer
        })
    }

    /// The reason why a member could not be reached by a kind of connection, or why the last
    /// connection ended. `None` while there is a connection.
    #[must_use]
    pub fn last_error(&self, member: MemberId, kind: Kind) -> Option<LinkError> {
        self.0.links.read().get(&(member, kind)).and_then(|link| link.error())
    }

    /// Returns the counters.
    #[must_use]
    pub fn statistics(&self) -> LinkStatistics {
        self.0.counters.read()
    }

    /// Closes all connections, and waits for the end of their tasks. Later calls fail. A service
    /// must not await this while it answers a request.
    pub async fn stop(&self) {
        self.0.stop.send_replace(true);
        let links: Vec<_> = self.0.links.write().drain().map(|(_, link)| link).collect();
        for link in links {
            link.cut();
        }
        self.0.stop.closed().await;
    }
}

struct CutWhenDropped(Arc<PeerLink>);

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
