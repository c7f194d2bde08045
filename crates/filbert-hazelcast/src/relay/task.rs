//! The connection to one other member, for one client. It is opened in the client's name. Then
//! requests go one way, and replies the other.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use filbert_wire::{
    CorrelationId, Limits, Message, MessageId, Request, Split, Splitter, Uuid,
    error_message::ErrorMessage,
    table::client::{authentication, authentication_custom, ping},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::ReadHalf;
use tokio::time::timeout;
use tracing::debug;

use super::pipe::{Next, Pipe};
use crate::linger::linger_on;

/// The first bytes of such a connection, instead of a client's preamble. The sender is served like
/// a client, with the same credentials, with two exceptions: its requests are not forwarded, and it
/// may send the messages of `handlers/scoped.rs` and `handlers/standby_announcement.rs`.
pub(crate) const PREAMBLE: [u8; 3] = *b"CPR";

/// The allowance for the parts of a reply besides its data, in bytes.
const ANSWER_MARGIN_BYTES: usize = 1 << 20;

/// The pause after the loss of a connection, before listeners are registered at the member again.
const PAUSE: Duration = Duration::from_millis(500);

/// The interval of checks for expired waits while replies are awaited.
const LOOK: Duration = Duration::from_millis(250);
/// The interval of pings while replies are awaited.
const ALIVE: Duration = Duration::from_secs(1);

/// The interval of pings while no replies are awaited, as of stock clients. Without pings the other
/// member would disconnect the client.
const PING_INTERVAL: Duration = Duration::from_secs(5);
/// The correlation id of pings, which no client uses.
const PING: CorrelationId = CorrelationId(i64::MIN);

/// The data of the task.
pub(super) struct Task {
    pub(super) pipe: Arc<Pipe>,
    pub(super) host: String,
    pub(super) port: u16,
    /// The client's authentication.
    pub(super) authentication: Vec<u8>,
    pub(super) cluster: Uuid,
}

/// Received bytes that are not handled yet.
struct Input {
    bytes: Vec<u8>,
    splitter: Splitter,
}

impl Task {
    pub(super) async fn run(self) {
        let config = self.pipe.traffic.config.clone();
        let member = self.pipe.member;
        let mut input = Input {
            bytes: Vec::new(),
            splitter: Splitter::new(Limits {
                message_bytes_max: config
                    .message_bytes_max
                    .max(config.reply_bytes_max)
                    .saturating_add(ANSWER_MARGIN_BYTES),
                ..Limits::default()
            }),
        };
        let why = match timeout(config.relay_connect_timeout, self.connect(&mut input)).await {
            Ok(Ok(mut stream)) => match self.transfer(&mut stream, &mut input).await {
                Ok(()) => {
                    linger_on(stream, config.close_timeout).await;
                    return;
                }
                Err(why) => why,
            },
            Ok(Err(why)) => why,
            Err(_) => format!("{}:{} has not answered in {:?}", self.host, self.port, config.relay_connect_timeout),
        };
        debug!(%member, peer = %self.pipe.traffic.link.peer, "a client's connection to another member ended: {why}");
        self.pipe.fail(&why);
        // Listeners at that member are registered again.
        tokio::time::sleep(PAUSE).await;
        self.pipe.traffic.set_broken();
        self.pipe.traffic.link.outbox.poke();
    }

    async fn connect(&self, input: &mut Input) -> Result<TcpStream, String> {
        let at = |error: io::Error| format!("{}:{}: {error}", self.host, self.port);
        let mut stream = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(at)?;
        stream.set_nodelay(true).map_err(at)?;
        stream.write_all(&[&PREAMBLE, self.authentication.as_slice()].concat()).await.map_err(at)?;
        loop {
            match input.splitter.split(&input.bytes).map_err(|error| error.to_string())? {
                Some(Split::Whole(length)) => {
                    let rest = input.bytes.split_off(length);
                    let reply = std::mem::replace(&mut input.bytes, rest);
                    self.check_admitted(&reply)?;
                    return Ok(stream);
                }
                Some(_) => return Err("a fragment where the answer to an authentication is expected".to_owned()),
                None if stream.read_buf(&mut input.bytes).await.map_err(at)? == 0 => {
                    return Err(format!("{}:{} has closed the connection", self.host, self.port));
                }
                None => {}
            }
        }
    }

    /// Checks that the peer is the expected member, and that it has accepted the client.
    fn check_admitted(&self, reply: &[u8]) -> Result<(), String> {
        let message = Message::parse(reply).map_err(|error| error.to_string())?;
        if message.id() == MessageId::ERROR {
            let error: ErrorMessage<'_> = message.decode().map_err(|error| error.to_string())?;
            let text = error.holders.first().and_then(|holder| holder.message);
            return Err(text.unwrap_or("the authentication failed").to_owned());
        }
        let (status, member, cluster) = match message.id() {
            id if id == authentication_custom::ID.part(1) => {
                let reply: authentication_custom::Response<'_> = message.decode().map_err(|error| error.to_string())?;
                (reply.status, reply.member_uuid, reply.cluster_id)
            }
            _ => {
                let reply: authentication::Response<'_> = message.decode().map_err(|error| error.to_string())?;
                (reply.status, reply.member_uuid, reply.cluster_id)
            }
        };
        if status != 0 {
            return Err(format!("the authentication was refused with status {status}"));
        }
        match member == Some(self.pipe.member) && cluster == self.cluster {
            true => Ok(()),
            false => Err(format!("{}:{} is another member", self.host, self.port)),
        }
    }

    /// Sends requests and receives replies until one direction ends. `Ok` if the client has
    /// disconnected.
    async fn transfer(&self, stream: &mut TcpStream, input: &mut Input) -> Result<(), String> {
        let (mut read, mut write) = stream.split();
        tokio::select! {
            why = self.receive(&mut read, input) => Err(why),
            sent = self.send(&mut write) => sent.map_err(|error| error.to_string()),
        }
    }

    async fn send(&self, write: &mut (impl AsyncWriteExt + Unpin)) -> io::Result<()> {
        let interval = PING_INTERVAL.min(self.pipe.traffic.config.heartbeat_timeout / 4);
        let (mut sent, mut looked) = (Instant::now(), Instant::now());
        loop {
            // Also checked if the pipe is filled, or woken without a reason, again and again.
            if looked.elapsed() >= LOOK && self.pipe.is_awaited() {
                looked = Instant::now();
                self.look()?;
            }
            match self.pipe.next() {
                Next::Send(bytes) => {
                    self.write(write, &bytes).await?;
                    sent = Instant::now();
                }
                Next::Close => return Ok(()),
                Next::Wait => {
                    let (pause, silence) = if self.pipe.is_awaited() { (LOOK, ALIVE) } else { (interval, interval) };
                    let _woken = timeout(pause, self.pipe.filled.notified()).await;
                    if sent.elapsed() >= silence {
                        let mut bytes = Vec::new();
                        ping::Request {}.encode(PING, -1, &mut bytes);
                        self.write(write, &bytes).await?;
                        sent = Instant::now();
                    }
                }
            }
        }
    }

    async fn write(&self, write: &mut (impl AsyncWriteExt + Unpin), mut bytes: &[u8]) -> io::Result<()> {
        self.pipe.sent(false);
        while !bytes.is_empty() {
            match timeout(LOOK, write.write(bytes)).await {
                Ok(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    bytes = bytes.get(written?..).unwrap_or_default();
                    if !bytes.is_empty() {
                        // The member accepts bytes.
                        self.pipe.sent(true);
                    }
                }
                Err(_) => self.look()?,
            }
        }
        Ok(())
    }

    /// Ends expired waits. Fails if the member is silent.
    fn look(&self) -> io::Result<()> {
        match self.pipe.look(Instant::now()) {
            true => Err(io::Error::new(io::ErrorKind::TimedOut, "it shows no sign of life")),
            false => Ok(()),
        }
    }

    async fn receive(&self, read: &mut ReadHalf<'_>, input: &mut Input) -> String {
        loop {
            self.wait_for_room().await;
            if let Err(error) = read.readable().await {
                return error.to_string();
            }
            input.bytes.reserve(self.pipe.traffic.config.read_buffer_bytes);
            match read.try_read_buf(&mut input.bytes) {
                Ok(0) => return "it has closed the connection".to_owned(),
                Ok(_) => self.pipe.heard(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return error.to_string(),
            }
            let mut at = 0;
            loop {
                let rest = input.bytes.get(at..).unwrap_or_default();
                match input.splitter.split(rest) {
                    Ok(None) => break,
                    Ok(Some(Split::Whole(length))) => {
                        self.pipe.arrived(rest.get(..length).unwrap_or_default());
                        at += length;
                    }
                    Ok(Some(Split::Fragment(length))) => at += length,
                    Ok(Some(Split::Assembled(length, message))) => {
                        self.pipe.arrived(&message);
                        at += length;
                    }
                    Err(error) => return error.to_string(),
                }
            }
            input.bytes.drain(..at);
            if input.bytes.is_empty() {
                // An idle connection holds no buffer.
                input.bytes = Vec::new();
            }
        }
    }

    /// Waits while the client does not read its replies.
    async fn wait_for_room(&self) {
        let traffic = &self.pipe.traffic;
        loop {
            // Created before the check, so no notification is missed.
            let drained = traffic.drained.notified();
            if traffic.link.outbox.reply_bytes() <= traffic.config.write_buffer_bytes_max {
                return;
            }
            self.pipe.set_paused(true);
            drained.await;
            self.pipe.set_paused(false);
        }
    }
}
