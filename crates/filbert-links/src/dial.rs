//! A connection that this member makes, from dialling to its end.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::handshake::{self, Agreed};
use crate::held::Held;
use crate::logged_errors::PeerAddress;
use crate::peer_link::{PeerLink, Target};
use crate::shared::Shared;
use crate::statistics::{Counted, add};
use crate::stream::prepare;
use crate::wire::{Frame, make_room};
use crate::{Address, LinkError};

/// The maximum number of frames that are handled at once.
const FRAMES_MAX: usize = 1_024;

/// Reports the end of the connection to its link, whatever the cause.
struct Running {
    link: Arc<PeerLink>,
    shared: Arc<Shared>,
    error: LinkError,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.link.record_ended(&self.error, &self.shared.settings);
    }
}

/// Connects a link, and serves it until the connection breaks.
pub(crate) fn run(link: Arc<PeerLink>, shared: Arc<Shared>) -> impl Future<Output = ()> + Send + 'static {
    // Created outside the task, which may be dropped before it has begun.
    let running = Running { link, shared, error: LinkError::Stopped };
    async move {
        let mut running = running;
        let error = tokio::select! {
            error = connection(&running.link, &running.shared) => error,
            () = running.link.cutting.notified() => LinkError::Stopped,
        };
        running.error = error;
    }
}

async fn connection(link: &PeerLink, shared: &Shared) -> LinkError {
    let counters = shared.counters.of(link.kind);
    let address = match &link.target {
        Target::Address(address) => address.clone(),
        Target::Member(member) => match shared.addresses.read().get(member) {
            Some(address) => address.clone(),
            None => return LinkError::NoAddress,
        },
    };
    let peer_address = PeerAddress::Dialled(address.clone());
    let own = shared.own();
    let agreed = match connect(link, shared, &address).await {
        Ok(agreed) => agreed,
        Err(error) => {
            add(&counters.failures, 1);
            shared.logged_errors.log(&peer_address, &error);
            return error;
        }
    };
    shared.logged_errors.forget(&peer_address);
    let Agreed { mut halves, version, .. } = agreed;
    tracing::debug!(%address, kind = link.kind.name(), version, "connected to a member");
    let _counted = Counted::new(&counters.dialled);
    let member = shared.member.get().map(|member| member.id);
    let before = link.record_connected(own.member.is_some(), member, shared.settings.queue_bytes_max);
    add(&counters.reconnects, u64::from(before > 0));
    let error = tokio::select! {
        error = read_answers(link, shared, &mut *halves.reader) => error,
        error = link.queue.write_to(&mut *halves.writer, None, counters) => error,
        error = silence(link, shared.settings.silence_ms_max, shared.settings.silence()) => error,
    };
    tracing::info!(%address, kind = link.kind.name(), "the connection to a member ended: {error}");
    error
}

async fn connect(link: &PeerLink, shared: &Shared, address: &Address) -> Result<Agreed, LinkError> {
    let settings = &shared.settings;
    let limit_ms = settings.connect_ms_max;
    let connected = tokio::time::timeout(Duration::from_millis(limit_ms), address.connect()).await;
    let connected = connected.map_err(|_| LinkError::Time { what: "connecting", limit_ms })?;
    let stream = connected.map_err(|error| LinkError::io("connect", &error))?;
    prepare(&stream)?;
    let dialled = if let Target::Member(member) = link.target { Some(member) } else { None };
    let limit_ms = settings.handshake_ms_max;
    let handshake = handshake::dial(stream, shared.own(), link.kind, dialled);
    let agreed = tokio::time::timeout(Duration::from_millis(limit_ms), handshake).await;
    agreed.map_err(|_| LinkError::Time { what: "the handshake", limit_ms })?
}

async fn read_answers(link: &PeerLink, shared: &Shared, reader: &mut (dyn AsyncRead + Send + Unpin)) -> LinkError {
    let counters = shared.counters.of(link.kind);
    let (mut came, mut held) = (BytesMut::new(), Held::new(&shared.service));
    loop {
        make_room(&mut came);
        held.set(came.capacity());
        match reader.read_buf(&mut came).await {
            Ok(0) => return LinkError::Closed,
            Ok(bytes) => counters.received(bytes),
            Err(error) => return LinkError::io("read from the peer", &error),
        }
        loop {
            let mut frames = Vec::new();
            while frames.len() < FRAMES_MAX {
                match Frame::read(&mut came, shared.settings.frame_bytes_max) {
                    Ok(Some(frame)) => frames.push(frame),
                    Ok(None) => break,
                    Err(error) => return error.into(),
                }
                counters.frame_received();
            }
            if frames.is_empty() {
                link.record_received();
                break;
            }
            if let Err(error) = link.take(frames) {
                return error.into();
            }
        }
    }
}

/// Completes when no bytes have arrived for too long.
async fn silence(link: &PeerLink, limit_ms: u64, limit: Duration) -> LinkError {
    loop {
        let left = limit.saturating_sub(link.silence());
        if left.is_zero() {
            return LinkError::Time { what: "an answer, or a sign of life,", limit_ms };
        }
        tokio::time::sleep(left.max(limit / 16)).await;
    }
}
