//! A member with an open door, a stock client, and a client that sends raw bytes and can misbehave.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

pub mod types;

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::Arc,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use filbert_grid::{Environment, Grid, GridConfig, MemoryBudget, SystemClock};
use filbert_postgres::{PostgresConfig, PostgresDoor, PostgresMonitor};
use filbert_test_engine::Engine;
use tokio::{runtime::Runtime, sync::oneshot};
use tokio_postgres::{Client, Config, NoTls};

/// The time that a test waits for an event before it fails.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A member that serves until it is dropped.
pub struct Server {
    pub address: SocketAddr,
    pub engine: Arc<Engine>,
    pub monitor: PostgresMonitor,
    /// The memory budget of all buffers of the member.
    pub budget: MemoryBudget,
    stop: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start() -> Self {
        Self::with(|_| ())
    }

    pub fn with(change: impl FnOnce(&mut PostgresConfig)) -> Self {
        Self::of(None, change)
    }

    /// A member with a limit of `bytes_max` bytes for buffers.
    pub fn with_buffers(bytes_max: usize) -> Self {
        Self::of(Some(bytes_max), |_| ())
    }

    fn of(buffers_bytes_max: Option<usize>, change: impl FnOnce(&mut PostgresConfig)) -> Self {
        let mut config = PostgresConfig { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..PostgresConfig::default() };
        change(&mut config);
        let environment = Environment { clock: Arc::new(SystemClock::new()), random_seed: 42 };
        let grid = Grid::new(GridConfig { buffers_bytes_max, ..GridConfig::default() }, environment).unwrap();
        let budget = grid.budget().clone();
        let engine = Arc::new(Engine::default());
        let (columns, rows) = types::all();
        engine.answers("select types", columns, rows);
        assert!(grid.serve_queries(engine.clone()));
        let (stop, stopping) = oneshot::channel::<()>();
        let (sender, opened) = std::sync::mpsc::channel();
        // A runtime of its own, since the test may already run on one.
        let served = thread::spawn(move || {
            Runtime::new().unwrap().block_on(async {
                let door = PostgresDoor::bind(grid, config).await.unwrap();
                sender.send((door.local_addr(), door.monitor())).unwrap();
                door.run(async {
                    let _ = stopping.await;
                })
                .await;
            });
        });
        let (address, monitor) = opened.recv().unwrap();
        Server { address, engine, monitor, budget, stop: Some(stop), served: Some(served) }
    }

    /// Begins to close the door. [`Server::drop`] waits until it is closed.
    pub fn begin_stop(&mut self) {
        drop(self.stop.take());
    }

    pub fn config(&self) -> Config {
        let mut config = Config::new();
        config.host("127.0.0.1").port(self.address.port()).user("ann").dbname("filbert");
        config
    }

    /// A stock client. Its connection runs on the current runtime.
    pub async fn connect(&self) -> Client {
        let (client, connection) = self.config().connect(NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.begin_stop();
        self.served.take().unwrap().join().unwrap();
    }
}

/// Waits until `check` holds.
pub fn eventually(what: &str, mut check: impl FnMut() -> bool) {
    let start = Instant::now();
    while !check() {
        assert!(start.elapsed() < PATIENCE, "{what} did not come true");
        thread::sleep(Duration::from_millis(5));
    }
}

/// A connection that sends and receives raw bytes.
pub struct Raw(pub TcpStream);

impl Raw {
    pub fn open(server: &Server) -> Raw {
        let stream = TcpStream::connect(server.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Raw(stream)
    }

    /// A connection with a session.
    pub fn session(server: &Server) -> Raw {
        let mut raw = Raw::open(server);
        raw.startup(0x0003_0000, &[("user", "ann")]);
        while raw.read().0 != 'Z' {}
        raw
    }

    pub fn startup(&mut self, version: u32, parameters: &[(&str, &str)]) {
        let mut body = version.to_be_bytes().to_vec();
        for (name, value) in parameters {
            body.extend_from_slice(format!("{name}\0{value}\0").as_bytes());
        }
        body.push(0);
        self.bytes(&[&(body.len() as u32 + 4).to_be_bytes()[..], &body].concat());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        // An error is ignored: a door that has already closed has sent the reason.
        let _ = self.try_bytes(bytes);
    }

    pub fn try_bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.write_all(bytes)
    }

    pub fn send(&mut self, tag: char, body: impl AsRef<[u8]>) {
        let body = body.as_ref();
        self.bytes(&[&[tag as u8], &(body.len() as u32 + 4).to_be_bytes()[..], body].concat());
    }

    pub fn query(&mut self, text: &str) {
        self.send('Q', format!("{text}\0"));
    }

    /// The next message. `'-'` at the end of the connection.
    pub fn read(&mut self) -> (char, Vec<u8>) {
        let mut header = [0; 5];
        if self.0.read_exact(&mut header).is_err() {
            return ('-', Vec::new());
        }
        let [tag, length @ ..] = header;
        let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
        self.0.read_exact(&mut body).unwrap();
        (tag.into(), body)
    }

    /// The type bytes of the messages up to the next `ReadyForQuery`, or to the end of the
    /// connection. Errors are shown with their SQLSTATE, `CommandComplete` and `ReadyForQuery` with
    /// their text.
    pub fn until_ready(&mut self) -> String {
        let mut names = Vec::new();
        loop {
            let (tag, body) = self.read();
            names.push(match tag {
                'E' | 'N' => format!("{tag}{}", error_field(&body, 'C')),
                'C' | 'Z' => format!("{tag}({})", String::from_utf8_lossy(&body).trim_end_matches('\0')),
                tag => tag.to_string(),
            });
            if matches!(tag, 'Z' | '-') {
                return names.join(" ");
            }
        }
    }
}

/// A field of an error message, by its letter.
pub fn error_field(body: &[u8], name: char) -> String {
    let mut fields = body.split(|byte| *byte == 0).filter(|field| !field.is_empty());
    let field = fields.find(|field| field[0] == name as u8).map(|field| &field[1..]);
    String::from_utf8(field.unwrap_or_default().to_vec()).unwrap()
}
