//! A request's body as one piece of memory, within limits, and unpacked.

mod gzip;

use std::sync::Arc;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use tokio::time::timeout;

use gzip::GzipError;

use crate::failure::Failure;
use crate::shared::{Room, Shared};

/// A body that has arrived. The room that it takes is given back when it is dropped.
pub(crate) struct Received {
    pub(crate) bytes: Bytes,
    _room: Room,
}

/// Memory that is taken for a body in advance, whatever length is announced.
const RESERVED_BYTES_MAX: usize = 1 << 20;

/// Packed bytes that are unpacked by the network task itself: that takes less than a millisecond.
const IN_PLACE_BYTES_MAX: usize = 32 << 10;

/// Receives a body.
///
/// # Errors
/// It is announced to be, or is, longer than allowed; it does not arrive in time, or not whole; it is packed in an unknown way.
pub(crate) async fn receive(shared: &Arc<Shared>, headers: &HeaderMap, mut body: Body) -> Result<Received, Failure> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.trim().parse::<u64>().ok());
    let limit = shared.config.body_bytes_max;
    if announced.is_some_and(|bytes| usize::try_from(bytes).map_or(true, |bytes| bytes > limit)) {
        return Err(Failure::body_too_large(limit));
    }
    let encoding = headers.get(CONTENT_ENCODING).map_or("", |value| value.to_str().unwrap_or("?").trim());
    let is_packed = encoding.eq_ignore_ascii_case("gzip") || encoding.eq_ignore_ascii_case("x-gzip");
    if !is_packed && !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity") {
        return Err(Failure::wrong_encoding(encoding));
    }
    let mut room = Room::new(shared.clone());
    let mut whole = BytesMut::new();
    let mut first = Bytes::new();
    while let Some(frame) = next(shared, &mut body).await? {
        room.grow(frame.len())?;
        if first.is_empty() && whole.is_empty() {
            first = frame;
            continue;
        }
        if whole.is_empty() {
            let announced = announced.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or_default();
            whole.reserve(announced.min(RESERVED_BYTES_MAX));
            whole.extend_from_slice(&first);
        }
        whole.extend_from_slice(&frame);
    }
    // Most bodies come in one piece, which need not be copied.
    let bytes = if whole.is_empty() { first } else { whole.freeze() };
    let bytes = if is_packed { unpacked(bytes, &mut room, limit).await? } else { bytes };
    Ok(Received { bytes, _room: room })
}

/// Unpacks a body, a long one beside the network tasks.
async fn unpacked(packed: Bytes, room: &mut Room, limit: usize) -> Result<Bytes, Failure> {
    let is_long = packed.len() > IN_PLACE_BYTES_MAX;
    let unpack = move || gzip::unpack(&packed, limit);
    let unpacked = match is_long {
        true => tokio::task::spawn_blocking(unpack)
            .await
            .map_err(|_| Failure::unavailable("this member is shutting down"))?,
        false => unpack(),
    };
    let unpacked = unpacked.map_err(|error| match error {
        GzipError::TooLong { limit } => Failure::body_too_large(limit),
        error => Failure::parse(format!("the body's bytes cannot be unpacked: {error}")),
    })?;
    room.grow(unpacked.len())?;
    Ok(unpacked.into())
}

/// The next bytes of a body.
async fn next(shared: &Shared, body: &mut Body) -> Result<Option<Bytes>, Failure> {
    let wait = shared.config.body_timeout;
    loop {
        match timeout(wait, body.frame()).await {
            Ok(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) if data.is_empty() => {}
                Ok(data) => return Ok(Some(data)),
                // Trailers.
                Err(_) => {}
            },
            Ok(Some(Err(error))) => {
                return Err(Failure::body_missing(format!("the body did not arrive whole: {error}")));
            }
            Ok(None) => return Ok(None),
            Err(_) => {
                let text = format!("no more of the body came for {} s (body_timeout)", wait.as_secs());
                return Err(Failure::body_missing(text));
            }
        }
    }
}

/// Unpacks bytes as [`receive`] does.
pub(crate) fn unpacked_for_probe(packed: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    gzip::unpack(packed, bytes_max).ok()
}
