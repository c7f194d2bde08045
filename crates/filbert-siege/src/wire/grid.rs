//! The client protocol without a client library: an authenticated connection that sends any frames
//! and reads only on request.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail};
use filbert_wire::error_message::ErrorMessage;
use filbert_wire::table::client;
use filbert_wire::{CorrelationId, Limits, Message, MessageId, PREAMBLE, Request, Split, Splitter, Uuid};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The name of the map service in requests that create and destroy objects.
pub(crate) const MAP_SERVICE: &str = "hz:impl:mapService";

/// The size limit of a reply.
const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// A connection.
pub(crate) struct Connection {
    stream: TcpStream,
    splitter: Splitter,
    received: Vec<u8>,
    correlation: i64,
}

/// Encodes a request.
pub(crate) fn encoded(request: &impl Request, correlation: i64, partition: i32) -> Vec<u8> {
    let mut bytes = Vec::new();
    request.encode(CorrelationId(correlation), partition, &mut bytes);
    bytes
}

/// Encodes the authentication request of a client of the cluster `dev`.
pub(crate) fn login(user: Option<&str>, password: Option<&str>) -> Vec<u8> {
    let request = client::authentication::Request {
        cluster_name: "dev",
        username: user,
        password,
        uuid: Some(Uuid::new_v4()),
        client_type: "RST",
        serialization_version: 1,
        client_hazelcast_version: "5.5.0",
        client_name: "siege",
        labels: Vec::new(),
        routing_mode: 0,
        cp_direct_to_leader_routing: false,
    };
    encoded(&request, 1, -1)
}

impl Connection {
    /// Connects and sends only the preamble.
    pub(crate) async fn silent(address: SocketAddr) -> Result<Connection> {
        let mut stream = TcpStream::connect(address).await.context("connecting to Hazelcast's door")?;
        stream.set_nodelay(true)?;
        stream.write_all(&PREAMBLE).await.context("writing to Hazelcast's door")?;
        let limits = Limits { message_bytes_max: MESSAGE_BYTES_MAX, ..Limits::default() };
        Ok(Connection { stream, splitter: Splitter::new(limits), received: Vec::new(), correlation: 1 })
    }

    /// Connects and authenticates.
    pub(crate) async fn open(address: SocketAddr) -> Result<Connection> {
        let mut connection = Connection::silent(address).await?;
        connection.send(&login(None, None)).await?;
        let answer = connection.next().await?;
        let status = Message::parse(&answer)?.decode::<client::authentication::Response<'_>>()?.status;
        if status != 0 {
            bail!("Hazelcast's door refuses a client with status {status}");
        }
        Ok(connection)
    }

    /// Sends raw bytes.
    pub(crate) async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).await.context("writing to Hazelcast's door")
    }

    /// Sends a request without reading its reply.
    pub(crate) async fn request(&mut self, request: &impl Request, partition: i32) -> Result<()> {
        self.correlation += 1;
        let bytes = encoded(request, self.correlation, partition);
        self.send(&bytes).await
    }

    /// Sends a request and reads its reply, as a complete message. Earlier events are discarded. An
    /// error reply is an error with its class.
    pub(crate) async fn call(&mut self, request: &impl Request) -> Result<Vec<u8>> {
        self.request(request, -1).await?;
        let expected = CorrelationId(self.correlation);
        loop {
            let answer = self.next().await?;
            let message = Message::parse(&answer)?;
            if message.is_event() || message.correlation_id() != expected {
                continue;
            }
            if message.id() == MessageId::ERROR {
                bail!("{}", error_class(&message));
            }
            return Ok(answer);
        }
    }

    /// Reads the next message.
    pub(crate) async fn next(&mut self) -> Result<Vec<u8>> {
        loop {
            match self.splitter.split(&self.received)? {
                Some(Split::Fragment(count)) => drop(self.received.drain(..count)),
                Some(Split::Whole(count)) => return Ok(self.received.drain(..count).collect()),
                Some(Split::Assembled(count, bytes)) => {
                    self.received.drain(..count);
                    return Ok(bytes);
                }
                None => {
                    let count =
                        self.stream.read_buf(&mut self.received).await.context("reading from Hazelcast's door")?;
                    if count == 0 {
                        bail!("Hazelcast's door closed the connection");
                    }
                }
            }
        }
    }

    /// Reads until the member closes the connection. Returns the number of bytes.
    pub(crate) async fn drain(&mut self) -> u64 {
        let mut piece = [0; 16 << 10];
        let mut total = 0;
        while let Ok(count @ 1..) = self.stream.read(&mut piece).await {
            total += count as u64;
        }
        total
    }
}

/// The exception class of an error reply, without its package.
fn error_class(message: &Message<'_>) -> String {
    let Ok(error) = message.decode::<ErrorMessage<'_>>() else { return "an error that cannot be read".to_owned() };
    let Some(first) = error.holders.first() else { return "an empty error".to_owned() };
    let class = first.class_name.rsplit('.').next().unwrap_or_default();
    format!("{class}: {}", first.message.unwrap_or_default())
}
