//! A connection that this member makes: from its address to its end.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt};

use crate::handshake::{self, Agreed};
use crate::notes::About;
use crate::shared::Shared;
use crate::statistics::{Counted, add};
use crate::stream::prepare;
use crate::way::{Target, Way};
use crate::wire::{Frame, make_room};
use crate::{Address, LinkError};

/// Frames that are handed over at once.
const FRAMES_MAX: usize = 1_024;

/// Tells the way of the end, however it comes.
struct Running {
    way: Arc<Way>,
    shared: Arc<Shared>,
    error: LinkError,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.way.ended(&self.error, &self.shared);
    }
}

/// Connects a way, and serves it until the connection breaks.
pub(crate) fn run(way: Arc<Way>, shared: Arc<Shared>) -> impl Future<Output = ()> + Send + 'static {
    // Not within the task, which may be dropped before it has begun.
    let running = Running { way, shared, error: LinkError::Stopped };
    async move {
        let mut running = running;
        let error = tokio::select! {
            error = connection(&running.way, &running.shared) => error,
            () = running.way.cutting.notified() => LinkError::Stopped,
        };
        running.error = error;
    }
}

async fn connection(way: &Way, shared: &Shared) -> LinkError {
    let counters = shared.counters.of(way.kind);
    let address = match &way.target {
        Target::Address(address) => address.clone(),
        Target::Member(member) => match shared.addresses.read().get(member) {
            Some(address) => address.clone(),
            None => return LinkError::NoAddress,
        },
    };
    let about = About::Dialled(address.clone());
    let own = shared.own();
    let agreed = match connect(way, shared, &address).await {
        Ok(agreed) => agreed,
        Err(error) => {
            add(&counters.failures, 1);
            shared.notes.tell(&about, &error);
            return error;
        }
    };
    shared.notes.forget(&about);
    let Agreed { mut halves, version, .. } = agreed;
    tracing::debug!(%address, kind = way.kind.name(), version, "connected to a member");
    let _counted = Counted::new(&counters.dialled);
    let member = shared.member.get().copied();
    let before = way.connected(own.member.is_some(), member, shared.settings.queue_bytes_max);
    add(&counters.reconnects, u64::from(before > 0));
    let error = tokio::select! {
        error = read_answers(way, shared, &mut *halves.reader) => error,
        error = way.queue.write_to(&mut *halves.writer, None, counters) => error,
        error = silence(way, shared.settings.silence_ms_max, shared.settings.silence()) => error,
    };
    tracing::info!(%address, kind = way.kind.name(), "the connection to a member ended: {error}");
    error
}

async fn connect(way: &Way, shared: &Shared, address: &Address) -> Result<Agreed, LinkError> {
    let settings = &shared.settings;
    let limit_ms = settings.connect_ms_max;
    let connected = tokio::time::timeout(Duration::from_millis(limit_ms), address.connect()).await;
    let connected = connected.map_err(|_| LinkError::Time { what: "connecting", limit_ms })?;
    let stream = connected.map_err(|error| LinkError::io("connect", &error))?;
    prepare(&stream)?;
    let dialled = if let Target::Member(member) = way.target { Some(member) } else { None };
    let limit_ms = settings.handshake_ms_max;
    let handshake = handshake::dial(stream, shared.own(), way.kind, dialled);
    let agreed = tokio::time::timeout(Duration::from_millis(limit_ms), handshake).await;
    agreed.map_err(|_| LinkError::Time { what: "the handshake", limit_ms })?
}

async fn read_answers(way: &Way, shared: &Shared, reader: &mut (dyn AsyncRead + Send + Unpin)) -> LinkError {
    let counters = shared.counters.of(way.kind);
    let mut came = BytesMut::new();
    loop {
        make_room(&mut came);
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
                way.hear();
                break;
            }
            if let Err(error) = way.take(frames) {
                return error.into();
            }
        }
    }
}

/// Ends when nothing has come for too long.
async fn silence(way: &Way, limit_ms: u64, limit: Duration) -> LinkError {
    loop {
        let left = limit.saturating_sub(way.silence());
        if left.is_zero() {
            return LinkError::Time { what: "an answer, or a sign of life,", limit_ms };
        }
        tokio::time::sleep(left.max(limit / 16)).await;
    }
}
