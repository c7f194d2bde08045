//! Receives the body of a request into contiguous memory, within limits, and decompresses it.

mod buffer;
mod gzip;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use bytes::Bytes;
use filbert_grid::{MemoryBudget, Reservation};
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use buffer::Buffer;
use gzip::GzipError;

use crate::failure::Failure;
use crate::shared::Shared;

/// A body that has arrived. Dropping it releases its memory reservation.
pub(crate) struct Received {
    pub(crate) bytes: Bytes,
    _reservation: Reservation,
}

/// The maximum size of a compressed body that the network task itself decompresses. The
/// decompressed size is four megabytes at most, which takes some milliseconds.
const IN_PLACE_BYTES_MAX: usize = 4 << 10;

/// Receives a body.
///
/// # Errors
/// The announced or actual length exceeds the limit, the body does not arrive in time or not
/// completely, or its encoding is unknown.
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
    let expected = announced.and_then(|bytes| usize::try_from(bytes).ok());
    let mut whole = Buffer::new(shared.bodies.empty(), limit, expected);
    let mut first: Option<(Bytes, Reservation)> = None;
    let mut arrival = Arrival { began: Instant::now(), bytes: 0 };
    while let Some(frame) = arrival.next(shared, &mut body).await? {
        if first.is_none() && whole.is_empty() {
            if frame.len() > limit {
                return Err(Failure::body_too_large(limit));
            }
            // A short body always fits.
            let mut reservation = shared.bodies.empty();
            reservation.follow(frame.len())?;
            first = Some((frame, reservation));
            continue;
        }
        if let Some((first, _reservation)) = first.take() {
            whole.append(&first)?;
        }
        whole.append(&frame)?;
    }
    // Most bodies arrive in one piece, which is not copied.
    let (bytes, reservation) = first.unwrap_or_else(|| whole.finish());
    if !is_packed {
        return Ok(Received { bytes, _reservation: reservation });
    }
    let (bytes, reservation) = unpacked(shared, bytes, limit).await?;
    Ok(Received { bytes, _reservation: reservation })
}

/// Decompresses a body. A long body is decompressed outside of the network tasks.
async fn unpacked(shared: &Shared, packed: Bytes, limit: usize) -> Result<(Bytes, Reservation), Failure> {
    let is_long = packed.len() > IN_PLACE_BYTES_MAX;
    let mut out = Buffer::new(shared.bodies.empty(), limit, None);
    let unpack = move || gzip::unpack(&packed, &mut out).map(|()| out);
    let unpacked = match is_long {
        true => tokio::task::spawn_blocking(unpack)
            .await
            .map_err(|_| Failure::unavailable("this member is shutting down"))?,
        false => unpack(),
    };
    match unpacked {
        Ok(out) => Ok(out.finish()),
        Err(GzipError::Refused(failure)) => Err(failure),
        Err(GzipError::Broken(error)) => Err(Failure::parse(format!("the body's bytes cannot be unpacked: {error}"))),
    }
}

/// The progress of a body, for its timeouts.
struct Arrival {
    began: Instant,
    bytes: usize,
}

impl Arrival {
    /// Returns the next bytes of a body.
    async fn next(&mut self, shared: &Shared, body: &mut Body) -> Result<Option<Bytes>, Failure> {
        let config = &shared.config;
        loop {
            // There are two deadlines: one for the next bytes, and one for the minimum rate of all
            // bytes so far.
            let rate = u64::try_from(config.body_rate_min.max(1)).unwrap_or(u64::MAX);
            let earned = Duration::from_secs(u64::try_from(self.bytes).unwrap_or(u64::MAX) / rate);
            let soon = Instant::now() + config.body_timeout;
            let late = self.began.checked_add(config.body_timeout + earned).unwrap_or(soon);
            match timeout_at(soon.min(late), body.frame()).await {
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) if data.is_empty() => {}
                    Ok(data) => {
                        self.bytes += data.len();
                        return Ok(Some(data));
                    }
                    // Trailers.
                    Err(_) => {}
                },
                Ok(Some(Err(error))) => {
                    return Err(Failure::body_missing(format!("the body did not arrive whole: {error}")));
                }
                Ok(None) => return Ok(None),
                Err(_) if soon <= late => {
                    let text =
                        format!("no more of the body came for {} s (body_timeout)", config.body_timeout.as_secs());
                    return Err(Failure::body_missing(text));
                }
                Err(_) => {
                    let (bytes, rate) = (self.bytes, config.body_rate_min);
                    let text = format!("{bytes} bytes of the body came, fewer than {rate} a second (body_rate_min)");
                    return Err(Failure::body_missing(text));
                }
            }
        }
    }
}

/// Decompresses bytes as [`receive`] does.
pub(crate) fn unpacked_for_probe(packed: &[u8], bytes_max: usize) -> Option<Vec<u8>> {
    let mut out = Buffer::new(MemoryBudget::new(usize::MAX, "none").empty(), bytes_max, None);
    gzip::unpack(packed, &mut out).ok()?;
    Some(out.finish().0.to_vec())
}
