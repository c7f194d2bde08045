//! A blocking connection to a member: authentication, and single calls outside the measured part.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use filbert_wire::error_message::ErrorMessage;
use filbert_wire::table::{client, map};
use filbert_wire::{CorrelationId, Limits, Message, MessageId, PREAMBLE, Request, Split, Splitter};

use crate::buffer::ReadBuffer;
use crate::error::{BenchError, Result};

/// The maximum time without a reply while a call is in flight. It is long enough for a full garbage
/// collection of a large Java heap.
pub const SILENCE_MAX: Duration = Duration::from_secs(60);

/// The message id of error replies.
pub const ERROR_ID: MessageId = MessageId(0);

/// The address and the credentials of a server.
#[derive(Debug, Clone)]
pub struct Target {
    /// The name in reports.
    pub name: String,
    /// Its address.
    pub address: SocketAddr,
    /// The cluster's name.
    pub cluster: String,
    /// User name and password, if the server requires them.
    pub credentials: Option<(String, String)>,
}

impl Target {
    /// A server in the cluster `dev`, without credentials.
    pub fn new(name: impl Into<String>, address: SocketAddr) -> Self {
        Self { name: name.into(), address, cluster: "dev".to_owned(), credentials: None }
    }
}

/// An authenticated connection.
#[derive(Debug)]
pub struct Session {
    stream: TcpStream,
    splitter: Splitter,
    buffer: ReadBuffer,
    target: String,
    partition_count: u32,
    last_correlation: i64,
}

impl Session {
    /// Connects and authenticates.
    pub fn open(target: &Target) -> Result<Session> {
        let attempt = || format!("connecting to {} at {}", target.name, target.address);
        let stream = TcpStream::connect(target.address).map_err(BenchError::io(attempt()))?;
        stream.set_nodelay(true).map_err(BenchError::io(attempt()))?;
        stream.set_read_timeout(Some(SILENCE_MAX)).map_err(BenchError::io(attempt()))?;
        let mut session = Session {
            stream,
            splitter: Splitter::new(Limits::default()),
            buffer: ReadBuffer::new(),
            target: target.name.clone(),
            partition_count: 0,
            last_correlation: 0,
        };
        session.stream.write_all(&PREAMBLE).map_err(BenchError::io(attempt()))?;
        let request = client::authentication::Request {
            cluster_name: &target.cluster,
            username: target.credentials.as_ref().map(|(user, _)| user.as_str()),
            password: target.credentials.as_ref().map(|(_, password)| password.as_str()),
            uuid: Some(uuid::Uuid::new_v4()),
            client_type: "RST",
            serialization_version: 1,
            client_hazelcast_version: "5.5.0",
            client_name: "filbert-bench",
            labels: Vec::new(),
            routing_mode: 0,
            cp_direct_to_leader_routing: false,
        };
        let (status, partition_count) =
            session.call(&request, -1, |response| (response.status, response.partition_count))?;
        if status != 0 {
            return Err(BenchError::Refused { target: target.name.clone(), status });
        }
        session.partition_count = u32::try_from(partition_count).unwrap_or(0);
        Ok(session)
    }

    /// The number of partitions of the server's cluster.
    pub fn partition_count(&self) -> u32 {
        self.partition_count
    }

    /// Makes one call: sends the request, waits for its reply, and passes the reply to `read`.
    pub fn call<Q: Request, T>(
        &mut self,
        request: &Q,
        partition: i32,
        read: impl FnOnce(Q::Response<'_>) -> T,
    ) -> Result<T> {
        self.last_correlation += 1;
        let correlation = CorrelationId(self.last_correlation);
        let mut bytes = Vec::new();
        request.encode(correlation, partition, &mut bytes);
        let target = self.target.clone();
        self.stream.write_all(&bytes).map_err(BenchError::io(format!("writing to {target}")))?;
        loop {
            let split = self.splitter.split(self.buffer.filled()).map_err(BenchError::wire(&target))?;
            let (consumed, assembled) = match split {
                None => {
                    self.receive()?;
                    continue;
                }
                Some(Split::Fragment(count)) => {
                    self.buffer.consume(count);
                    continue;
                }
                Some(Split::Whole(count)) => (count, None),
                Some(Split::Assembled(count, bytes)) => (count, Some(bytes)),
            };
            let bytes =
                assembled.as_deref().unwrap_or_else(|| self.buffer.filled().get(..consumed).unwrap_or_default());
            let message = Message::parse(bytes).map_err(BenchError::wire(&target))?;
            if message.correlation_id() == correlation && !message.is_event() {
                if message.id() == ERROR_ID {
                    return Err(server_error(&target, &message));
                }
                let answer = read(message.decode().map_err(BenchError::wire(&target))?);
                self.buffer.consume(consumed);
                return Ok(answer);
            }
            self.buffer.consume(consumed);
        }
    }

    fn receive(&mut self) -> Result<()> {
        let attempt = format!("reading from {}", self.target);
        let count = self.stream.read(self.buffer.space()).map_err(BenchError::io(attempt))?;
        if count == 0 {
            return Err(BenchError::Program { program: self.target.clone(), what: "closed the connection".to_owned() });
        }
        self.buffer.received(count);
        Ok(())
    }

    /// Returns the number of entries of a map.
    pub fn map_size(&mut self, name: &str) -> Result<u64> {
        self.call(&map::size::Request { name }, -1, |response| u64::try_from(response.response).unwrap_or(0))
    }

    /// Removes all entries of a map.
    pub fn map_clear(&mut self, name: &str) -> Result<()> {
        self.call(&map::clear::Request { name }, -1, |_| ())
    }

    /// Returns the stream for the measured part. No call is in flight and no data is buffered,
    /// because no listener was registered.
    pub fn into_stream(self) -> TcpStream {
        self.stream
    }
}

/// Converts an error reply.
pub fn server_error(target: &str, message: &Message<'_>) -> BenchError {
    match message.decode::<ErrorMessage<'_>>() {
        Ok(error) => {
            let first = error.holders.first();
            BenchError::Server {
                target: target.to_owned(),
                code: first.map_or(0, |holder| holder.code),
                class_name: first.map_or("an empty error", |holder| holder.class_name).to_owned(),
                message: first.and_then(|holder| holder.message).unwrap_or_default().to_owned(),
            }
        }
        Err(source) => BenchError::Wire { target: target.to_owned(), source },
    }
}
