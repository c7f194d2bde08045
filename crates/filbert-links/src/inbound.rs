//! A connection from another member: its requests are passed to the service in the order of
//! arrival, and answers are sent back as they complete.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use filbert_cluster::BoxFuture;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep};

use crate::handshake::{self, Agreed};
use crate::held::Held;
use crate::logged_errors::PeerAddress;
use crate::queue::Queue;
use crate::shared::Shared;
use crate::statistics::{Counted, add};
use crate::stream::{Halves, prepare};
use crate::wire::{Frame, make_room};
use crate::{Channel, FrameError, Kind, LinkError, Peer, Refusal, Refused};

/// The number and the length of a request, and its result.
type Answered = (u64, usize, Result<Bytes, Refusal>);

/// Serves a connection. `first` are bytes that were read from it already.
pub(crate) async fn run(shared: Arc<Shared>, stream: TcpStream, first: Bytes, handshaking: OwnedSemaphorePermit) {
    let address = match prepare(&stream) {
        Ok(address) => address,
        Err(error) => return tracing::debug!("a connection broke at once: {error}"),
    };
    let peer_address = PeerAddress::From(address.ip());
    let agreed = shake_hands(&shared, stream, &first).await;
    drop(handshaking);
    let (Agreed { peer, version, halves }, _connection) = match agreed {
        Ok(agreed) => agreed,
        Err(error) => {
            add(&shared.counters.refused, 1);
            return shared.logged_errors.log(&peer_address, &error);
        }
    };
    shared.logged_errors.forget(&peer_address);
    let kind = peer.kind;
    let peer = Peer { member: peer.member, incarnation: peer.incarnation, address, version };
    tracing::debug!(%address, kind = kind.name(), version, member = ?peer.member, "a member has connected");
    let _counted = Counted::new(&shared.counters.of(kind).accepted);
    let error = Inbound::new(&shared, peer, kind).serve(halves).await;
    if error.needs_operator() {
        shared.logged_errors.log(&peer_address, &error);
    }
    tracing::debug!(%address, kind = kind.name(), "the connection of a member ended: {error}");
}

async fn shake_hands(
    shared: &Shared,
    stream: TcpStream,
    first: &[u8],
) -> Result<(Agreed, OwnedSemaphorePermit), LinkError> {
    let limit_ms = shared.settings.handshake_ms_max;
    let handshake = handshake::answer(stream, first, shared.own());
    let agreed = tokio::time::timeout(Duration::from_millis(limit_ms), handshake).await;
    let agreed = agreed.map_err(|_| LinkError::Time { what: "the handshake", limit_ms })??;
    let connection = Arc::clone(&shared.connections).try_acquire_owned();
    Ok((agreed, connection.map_err(|_| Refused::Reason("this member has too many connections".to_owned()))?))
}

struct Inbound<'s> {
    shared: &'s Shared,
    peer: Peer,
    kind: Kind,
    answering: FuturesUnordered<BoxFuture<Answered>>,
    /// The size in bytes of the requests that are being answered.
    answering_bytes: usize,
    /// These requests, and the buffer of received bytes.
    held: Held,
}

impl<'s> Inbound<'s> {
    fn new(shared: &'s Shared, peer: Peer, kind: Kind) -> Self {
        let (answering, held) = (FuturesUnordered::new(), Held::new(&shared.service));
        Inbound { shared, peer, kind, answering, answering_bytes: 0, held }
    }

    async fn serve(mut self, mut halves: Halves) -> LinkError {
        let (counters, silence) = (self.shared.counters.of(self.kind), self.shared.settings.silence());
        let queue = Queue::new(&self.shared.service);
        let mut writing = pin!(queue.write_to(&mut *halves.writer, Some(silence), counters));
        let mut alive = pin!(sleep(silence / 4));
        let mut came = BytesMut::new();
        loop {
            // The peer also awaits an answer while a long request is arriving.
            let waited = self.answering.is_empty() && came.is_empty();
            let may_read = match self.hand_over(&mut came, &queue).await {
                Ok(may_read) => may_read,
                Err(error) => return error.into(),
            };
            if waited {
                alive.as_mut().reset(Instant::now() + silence / 4);
            }
            if may_read {
                make_room(&mut came);
            }
            self.held.set(self.answering_bytes.saturating_add(came.capacity()));
            tokio::select! {
                error = &mut writing => return error,
                Some(answered) = self.answering.next() => {
                    let mut next = Some(answered);
                    while let Some(answered) = next {
                        self.answer(answered, &queue);
                        // Other completed answers go into the same write.
                        next = poll_fn(|cx| Poll::Ready(match self.answering.poll_next_unpin(cx) {
                            Poll::Ready(answered) => answered,
                            Poll::Pending => None,
                        })).await;
                    }
                }
                read = halves.reader.read_buf(&mut came), if may_read => match read {
                    Ok(0) => return LinkError::Closed,
                    Ok(bytes) => counters.received(bytes),
                    Err(error) => return LinkError::io("read from the peer", &error),
                },
                () = queue.drained.notified(), if !may_read => {}
                () = &mut alive, if !self.answering.is_empty() || !came.is_empty() => {
                    queue.push(Frame::Alive, usize::MAX);
                    alive.as_mut().reset(Instant::now() + silence / 4);
                }
            }
        }
    }

    /// Passes the received requests to the service, in order. Returns whether there is room for
    /// more.
    async fn hand_over(&mut self, came: &mut BytesMut, queue: &Queue) -> Result<bool, FrameError> {
        let settings = &self.shared.settings;
        loop {
            let bytes = self.answering_bytes.saturating_add(queue.bytes());
            if self.answering.len() >= settings.answering_max || bytes >= settings.answering_bytes_max {
                return Ok(false);
            }
            let Some(frame) = Frame::read(came, settings.frame_bytes_max)? else { return Ok(true) };
            self.shared.counters.of(self.kind).frame_received();
            match frame {
                Frame::Request { channel, number, request } => self.begin(channel, number, request, queue).await?,
                Frame::Member(member) if self.peer.member.is_none_or(|known| known == member) => {
                    self.peer.member = Some(member);
                }
                Frame::Member(_) => return Err(FrameError::Unexpected("second member id")),
                Frame::Answer { .. } | Frame::Refusal { .. } => return Err(FrameError::Unexpected("answer")),
                Frame::Alive => return Err(FrameError::Unexpected("sign of life")),
            }
        }
    }

    async fn begin(&mut self, channel: Channel, number: u64, request: Bytes, queue: &Queue) -> Result<(), FrameError> {
        if channel.kind() != self.kind {
            return Err(FrameError::Channel { kind: 1, channel: channel.byte() });
        }
        let bytes = request.len();
        self.answering_bytes += bytes;
        let mut answer = self.shared.service.answer(self.peer, channel, request);
        // The first step of each answer runs in the order of the requests. Most answers complete in
        // it.
        match poll_fn(|cx| Poll::Ready(answer.as_mut().poll(cx))).await {
            Poll::Ready(result) => self.answer((number, bytes, result), queue),
            Poll::Pending => self.answering.push(Box::pin(async move { (number, bytes, answer.await) })),
        }
        Ok(())
    }

    fn answer(&mut self, (number, bytes, result): Answered, queue: &Queue) {
        self.answering_bytes = self.answering_bytes.saturating_sub(bytes);
        let bytes_max = self.shared.settings.frame_bytes_max;
        let frame = match result {
            Ok(answer) if answer.len() > bytes_max => {
                let text = format!("the answer has {} bytes, at most {bytes_max} are allowed", answer.len());
                Frame::Refusal { number, text }
            }
            Ok(answer) => Frame::Answer { number, answer },
            Err(Refusal(text)) => Frame::Refusal { number, text },
        };
        // There is room: nothing is read without room, and the requests being answered have a
        // limit.
        queue.push(frame, usize::MAX);
    }
}

/// Accepts connections of members until the links are stopped.
pub(crate) async fn listen(shared: Arc<Shared>, listener: tokio::net::TcpListener) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => accept(&shared, stream, peer, Bytes::new()),
            Err(error) => {
                // An error of one connection ends with the connection. A lack of file descriptors
                // does not.
                tracing::warn!("cannot accept a connection of a member: {error}");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Starts the handshake of a connection, unless too many connections are in the handshake.
pub(crate) fn accept(shared: &Arc<Shared>, stream: TcpStream, peer: SocketAddr, first: Bytes) {
    if let Ok(handshaking) = Arc::clone(&shared.handshakes).try_acquire_owned() {
        return shared.spawn(run(Arc::clone(shared), stream, first, handshaking));
    }
    add(&shared.counters.refused, 1);
    tracing::debug!(%peer, "too many connections are in the handshake");
}
