//! The upper limit: a server with the minimal work of any server of this protocol.
//!
//! It accepts connections on the same runtime as Filbert (tokio, several threads), reads from the
//! sockets, splits messages with the same [`Splitter`], sends a reply of the right shape and size
//! with the correlation id of each request, and writes the replies to a batch of requests with one
//! write.
//!
//! It does not read names, keys or values, validate frames, store, route, count or measure
//! anything, expire connections, or limit its write buffer. Its replies never change: `Map.get` and
//! `Map.put` return a value of the configured size, regardless of earlier writes.

use std::net::SocketAddr;
use std::sync::Arc;

use filbert_wire::table::{client, map};
use filbert_wire::{CorrelationId, Limits, PREAMBLE, Request, Response, Split, Splitter, Uuid};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::buffer::ReadBuffer;
use crate::error::{BenchError, Result};

/// The number of partitions that clients receive. It is Hazelcast's default.
const PARTITION_COUNT: i32 = 271;
/// The offset of the message type in a message: after length and flags of the first frame.
const ID_AT: usize = 6;
/// The offset of the correlation id in a message.
const CORRELATION_AT: usize = ID_AT + 4;

/// Pre-encoded replies.
#[derive(Debug)]
struct Replies {
    value: Vec<u8>,
    set: Vec<u8>,
    size: Vec<u8>,
    authentication: Vec<u8>,
    empty: Vec<u8>,
}

impl Replies {
    fn new(value_characters: usize) -> Self {
        let id = CorrelationId(0);
        let mut text = vec![0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xF5];
        text.extend_from_slice(&(value_characters as u32).to_be_bytes());
        text.resize(text.len() + value_characters, b'x');
        let mut replies =
            Self { value: vec![], set: vec![], size: vec![], authentication: authentication(), empty: vec![] };
        map::get::Response { response: Some(&text) }.encode(id, &mut replies.value);
        map::set::Response {}.encode(id, &mut replies.set);
        map::size::Response { response: 0 }.encode(id, &mut replies.size);
        client::ping::Response {}.encode(id, &mut replies.empty);
        replies
    }

    /// Appends the reply to a request of this type.
    #[inline]
    fn answer(&self, id: u32, correlation: [u8; 8], out: &mut Vec<u8>) {
        const GET: u32 = map::get::Request::ID.0;
        const PUT: u32 = map::put::Request::ID.0;
        const SET: u32 = map::set::Request::ID.0;
        const SIZE: u32 = map::size::Request::ID.0;
        const AUTHENTICATION: u32 = client::authentication::Request::ID.0;
        // In Hazelcast's protocol the type of a reply is the type of the request plus one.
        let (reply, reply_id) = match id {
            GET | PUT => (&self.value, id + 1),
            SET => (&self.set, id + 1),
            SIZE => (&self.size, id + 1),
            AUTHENTICATION => (&self.authentication, id + 1),
            other => (&self.empty, other.wrapping_add(1)),
        };
        let start = out.len();
        out.extend_from_slice(reply);
        if let Some(place) = out.get_mut(start + ID_AT..start + CORRELATION_AT) {
            place.copy_from_slice(&reply_id.to_le_bytes());
        }
        if let Some(place) = out.get_mut(start + CORRELATION_AT..start + CORRELATION_AT + 8) {
            place.copy_from_slice(&correlation);
        }
    }
}

/// The minimal authentication reply that clients accept: one member, which is this server, without
/// a list of members or partitions.
fn authentication() -> Vec<u8> {
    let mut bytes = Vec::new();
    client::authentication::Response {
        status: 0,
        address: None,
        member_uuid: Some(Uuid::from_u128(1)),
        serialization_version: 1,
        server_hazelcast_version: "5.5.0",
        partition_count: PARTITION_COUNT,
        cluster_id: Uuid::from_u128(2),
        failover_supported: false,
        ..Default::default()
    }
    .encode(CorrelationId(0), &mut bytes);
    bytes
}

/// Serves until the process exits.
pub fn serve(address: SocketAddr, value_characters: usize, threads: Option<usize>) -> Result<()> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = threads {
        builder.worker_threads(threads.max(1));
    }
    let runtime = builder.enable_all().build().map_err(BenchError::io("starting the runtime"))?;
    runtime.block_on(async {
        let listener = TcpListener::bind(address).await.map_err(BenchError::io(format!("listening on {address}")))?;
        run(listener, value_characters).await
    })
}

/// Serves the connections of a listener.
pub async fn run(listener: TcpListener, value_characters: usize) -> Result<()> {
    let replies = Arc::new(Replies::new(value_characters));
    loop {
        let (stream, _) = listener.accept().await.map_err(BenchError::io("accepting a connection"))?;
        let replies = Arc::clone(&replies);
        tokio::spawn(async move {
            // A broken connection concerns only its client, which detects it.
            let _ = connection(stream, &replies).await;
        });
    }
}

async fn connection(mut stream: TcpStream, replies: &Replies) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut preamble = [0; PREAMBLE.len()];
    stream.read_exact(&mut preamble).await?;
    let mut splitter = Splitter::new(Limits::default());
    let mut input = ReadBuffer::new();
    let mut out = Vec::new();
    if preamble != PREAMBLE {
        return Ok(());
    }
    loop {
        let count = stream.read(input.space()).await?;
        if count == 0 {
            return Ok(());
        }
        input.received(count);
        out.clear();
        while let Some(split) = splitter.split(input.filled()).map_err(std::io::Error::other)? {
            let consumed = match &split {
                Split::Whole(count) | Split::Fragment(count) | Split::Assembled(count, _) => *count,
            };
            let message = match &split {
                Split::Whole(count) => input.filled().get(..*count),
                Split::Fragment(_) => None,
                Split::Assembled(_, bytes) => Some(bytes.as_slice()),
            };
            if let Some((id, correlation)) = message.and_then(header) {
                replies.answer(id, correlation, &mut out);
            }
            input.consume(consumed);
        }
        if !out.is_empty() {
            stream.write_all(&out).await?;
        }
    }
}

/// Reads the type and the correlation id of a message.
#[inline]
fn header(message: &[u8]) -> Option<(u32, [u8; 8])> {
    let (_, rest) = message.split_at_checked(ID_AT)?;
    let (id, rest) = rest.split_first_chunk::<4>()?;
    let (correlation, _) = rest.split_first_chunk::<8>()?;
    Some((u32::from_le_bytes(*id), *correlation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use filbert_wire::Message;

    #[test]
    fn replies_are_those_of_the_protocol() {
        let replies = Replies::new(5);
        let mut out = Vec::new();
        replies.answer(map::get::Request::ID.0, 77_i64.to_le_bytes(), &mut out);
        let message = Message::parse(&out).unwrap();
        assert_eq!(message.id(), <map::get::Response<'_> as Response>::ID);
        assert_eq!(message.correlation_id(), CorrelationId(77));
        let response: map::get::Response<'_> = message.decode().unwrap();
        assert_eq!(response.response.map(<[u8]>::len), Some(17));
    }

    #[test]
    fn unknown_requests_get_an_empty_reply_of_the_next_id() {
        let replies = Replies::new(5);
        let mut out = Vec::new();
        replies.answer(client::ping::Request::ID.0, 5_i64.to_le_bytes(), &mut out);
        assert!(Message::parse(&out).unwrap().decode::<client::ping::Response>().is_ok());
    }
}
