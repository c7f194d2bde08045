//! A member with an open door, and a client that sends whole messages and can violate the protocol.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

/// The grid's log in one process.
#[path = "../../../../filbert-grid/tests/suite/common/loopback.rs"]
pub mod loopback;
pub mod members;

use std::{
    collections::VecDeque,
    io::{ErrorKind, Read, Write},
    net::{Shutdown, SocketAddr, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use filbert_grid::{Environment, Grid, GridConfig, SystemClock};
use filbert_hazelcast::{Door, DoorConfig, Monitor};
use filbert_wire::{
    CorrelationId, Decode, Message, MessageId, PREAMBLE, Request, Split, Splitter, Uuid, error_message::ErrorMessage,
    table::client::authentication,
};
use loopback::{Loopback, Whims};
use tokio::{runtime::Runtime, sync::oneshot};

/// Whether the members of this test binary send their changes through a log, see
/// the program `over_loopback`.
const REPLICATED: bool = matches!(env!("CARGO_CRATE_NAME").as_bytes(), b"over_loopback");

/// The timeout of a wait in a test.
const PATIENCE: Duration = Duration::from_secs(60);

/// A member that serves until it is dropped.
pub struct Server {
    pub address: SocketAddr,
    pub grid: Arc<Grid>,
    pub monitor: Monitor,
    stop: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<()>>,
    timer: Option<JoinHandle<()>>,
    stopped: Arc<AtomicBool>,
}

impl Server {
    pub fn start() -> Self {
        Self::with(DoorConfig::default(), GridConfig::default())
    }

    pub fn with_door(change: impl FnOnce(&mut DoorConfig)) -> Self {
        let mut config = DoorConfig::default();
        change(&mut config);
        Self::with(config, GridConfig::default())
    }

    pub fn with(door: DoorConfig, grid: GridConfig) -> Self {
        let environment = Environment { clock: Arc::new(SystemClock::new()), random_seed: 42 };
        if !REPLICATED {
            return Self::direct_with(door, grid);
        }
        Self::of(door, Loopback::start(grid, environment, Whims::default()).0)
    }

    /// A server that makes changes in place.
    pub fn direct(door: DoorConfig) -> Self {
        Self::direct_with(door, GridConfig::default())
    }

    fn direct_with(door: DoorConfig, grid: GridConfig) -> Self {
        let environment = Environment { clock: Arc::new(SystemClock::new()), random_seed: 42 };
        Self::of(door, Grid::new(grid, environment).unwrap())
    }

    /// A server whose changes go through a log, and the log.
    pub fn replicated(door: DoorConfig) -> (Self, Arc<Loopback>) {
        let environment = Environment { clock: Arc::new(SystemClock::new()), random_seed: 42 };
        let (grid, loopback) = Loopback::start(GridConfig::default(), environment, Whims::default());
        (Self::of(door, grid), loopback)
    }

    /// A server for a grid.
    pub fn of(mut door: DoorConfig, grid: Arc<Grid>) -> Self {
        door.listen = SocketAddr::from(([127, 0, 0, 1], 0));
        let runtime = Runtime::new().unwrap();
        let door = runtime.block_on(Door::bind(grid.clone(), door)).unwrap();
        let (address, monitor) = (door.local_addr(), door.monitor());
        let (stop, stopping) = oneshot::channel::<()>();
        let served = thread::spawn(move || {
            runtime.block_on(door.run(async {
                stopping.await.ok();
            }));
        });
        let stopped = Arc::new(AtomicBool::new(false));
        let timer = thread::spawn({
            let (grid, stopped) = (grid.clone(), stopped.clone());
            move || {
                while !stopped.load(Ordering::Acquire) {
                    grid.run_expiry();
                    thread::sleep(Duration::from_millis(5));
                }
            }
        });
        Self { address, grid, monitor, stop: Some(stop), served: Some(served), timer: Some(timer), stopped }
    }

    /// Closes the door, and waits until it is closed.
    pub fn stop(&mut self) {
        self.stop.take();
        if let Some(served) = self.served.take() {
            served.join().unwrap();
        }
        self.stopped.store(true, Ordering::Release);
        if let Some(timer) = self.timer.take() {
            timer.join().unwrap();
        }
    }

    /// Begins to close the door.
    pub fn begin_to_stop(&mut self) {
        self.stop.take();
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address)
    }

    /// Checks that a well-behaved client is served.
    pub fn assert_serves(&self) {
        use filbert_wire::table::map::{get, put};
        let mut client = self.client();
        client.ok(&put::Request { name: "probe", key: b"probe key", value: b"probe value", thread_id: 1, ttl: -1 });
        let reply = client.ok(&get::Request { name: "probe", key: b"probe key", thread_id: 1 });
        assert_eq!(reply.decode::<get::Response<'_>>().response, Some(b"probe value".as_slice()));
        client.ok(&filbert_wire::table::map::clear::Request { name: "probe" });
    }

    /// Waits until the door holds no buffers, and at most `connections` connections.
    pub fn wait_until_idle(&self, connections: usize) {
        wait_until("the door's buffers are given back", || {
            let statistics = self.monitor.statistics();
            statistics.buffer_bytes == 0 && statistics.connections <= connections
        });
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let started = std::time::Instant::now();
    while !condition() {
        assert!(started.elapsed() < PATIENCE, "waited in vain until {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A received message.
pub struct Reply(pub Vec<u8>);

impl Reply {
    pub fn message(&self) -> Message<'_> {
        Message::parse(&self.0).unwrap()
    }

    pub fn decode<'a, T: Decode<'a>>(&'a self) -> T {
        match self.message().decode() {
            Ok(decoded) => decoded,
            Err(error) if self.message().id() == MessageId::ERROR => panic!("{error}: {:?}", self.error()),
            Err(error) => panic!("{error}"),
        }
    }

    /// Code, class and text of an error reply.
    pub fn error(&self) -> (i32, String, String) {
        let error: ErrorMessage<'_> = self.message().decode().unwrap();
        let holder = &error.holders[0];
        (holder.code, holder.class_name.to_owned(), holder.message.unwrap_or_default().to_owned())
    }
}

/// A client over a blocking socket.
pub struct Client {
    pub stream: TcpStream,
    pub uuid: Uuid,
    splitter: Splitter,
    received: Vec<u8>,
    events: VecDeque<Reply>,
    /// Replies that came before they were requested: with a log, replies come in the log's order.
    early: Vec<Reply>,
    next_correlation: i64,
}

impl Client {
    /// A connection that has not sent anything yet.
    pub fn raw(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            stream,
            uuid: Uuid::new_v4(),
            splitter: Splitter::default(),
            received: Vec::new(),
            events: VecDeque::new(),
            early: Vec::new(),
            next_correlation: 1,
        }
    }

    /// A client that is authenticated.
    pub fn connect(address: SocketAddr) -> Self {
        Self::connect_as(address, Uuid::new_v4())
    }

    pub fn connect_as(address: SocketAddr, uuid: Uuid) -> Self {
        let mut client = Self::raw(address);
        client.uuid = uuid;
        client.write(&PREAMBLE);
        let reply = client.call(&client.authentication());
        assert_eq!(reply.decode::<authentication::Response<'_>>().status, 0);
        client
    }

    pub fn authentication(&self) -> authentication::Request<'static> {
        authentication::Request {
            cluster_name: "dev",
            uuid: Some(self.uuid),
            client_type: "TST",
            serialization_version: 1,
            client_hazelcast_version: "5.7.0",
            client_name: "test",
            ..authentication::Request::default()
        }
    }

    pub fn write(&mut self, bytes: &[u8]) {
        match self.stream.write_all(bytes) {
            // A closed door has already sent the reason, if there is one.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {}
            written => written.unwrap(),
        }
    }

    /// Encodes a request with a new correlation id.
    pub fn encode(&mut self, request: &impl Request, partition: i32) -> (i64, Vec<u8>) {
        let correlation = self.next_correlation;
        self.next_correlation += 1;
        let mut bytes = Vec::new();
        request.encode(CorrelationId(correlation), partition, &mut bytes);
        (correlation, bytes)
    }

    pub fn send(&mut self, request: &impl Request) -> i64 {
        self.send_to(request, -1)
    }

    pub fn send_to(&mut self, request: &impl Request, partition: i32) -> i64 {
        let (correlation, bytes) = self.encode(request, partition);
        self.write(&bytes);
        correlation
    }

    /// The next message of any kind; `None` when the server has closed the connection.
    pub fn receive(&mut self) -> Option<Reply> {
        loop {
            match self.splitter.split(&self.received).unwrap() {
                Some(Split::Whole(length)) => {
                    let rest = self.received.split_off(length);
                    return Some(Reply(std::mem::replace(&mut self.received, rest)));
                }
                Some(_) => panic!("a fragment"),
                None => {}
            }
            let mut chunk = vec![0; 1 << 16];
            match self.stream.read(&mut chunk) {
                Ok(0) => return None,
                Ok(bytes) => self.received.extend_from_slice(&chunk[..bytes]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// The reply to one request. Events before it are kept for [`Client::event`].
    pub fn reply_to(&mut self, correlation: i64) -> Reply {
        let is_it = |reply: &Reply| reply.message().correlation_id() == CorrelationId(correlation);
        if let Some(place) = self.early.iter().position(is_it) {
            return self.early.swap_remove(place);
        }
        loop {
            let reply = self.receive().expect("the server closed the connection");
            if reply.message().is_event() {
                self.events.push_back(reply);
                continue;
            }
            if REPLICATED && !is_it(&reply) {
                self.early.push(reply);
                continue;
            }
            assert_eq!(reply.message().correlation_id(), CorrelationId(correlation));
            return reply;
        }
    }

    /// The next event.
    pub fn event(&mut self) -> Reply {
        if let Some(event) = self.events.pop_front() {
            return event;
        }
        let event = self.receive().expect("the server closed the connection");
        assert!(event.message().is_event(), "an event is expected: {:?}", event.message());
        event
    }

    pub fn call(&mut self, request: &impl Request) -> Reply {
        let correlation = self.send(request);
        self.reply_to(correlation)
    }

    /// A call that must succeed.
    pub fn ok(&mut self, request: &impl Request) -> Reply {
        let reply = self.call(request);
        assert_ne!(reply.message().id(), MessageId::ERROR, "{:?}", reply.error());
        reply
    }

    /// A call that must fail.
    pub fn error(&mut self, request: &impl Request) -> (i32, String, String) {
        self.call(request).error()
    }

    /// Waits until the server closes the connection. Returns the messages that came before.
    pub fn read_to_end(&mut self) -> Vec<Reply> {
        std::iter::from_fn(|| self.receive()).collect()
    }

    pub fn close(self) {
        self.stream.shutdown(Shutdown::Both).ok();
    }
}
