//! Shared parts of the tests: a door with an engine of fixed results, and a client that writes
//! bytes.

#![allow(dead_code, unreachable_pub, reason = "each test binary uses a part of it")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use filbert_grid::{Environment, Grid, GridConfig, SystemClock};
use filbert_http::{HttpConfig, HttpDoor, HttpMonitor};
use filbert_test_engine::Engine;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The time that a test waits for an event before it fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A door that runs until it is dropped.
pub struct Running {
    pub address: SocketAddr,
    pub monitor: HttpMonitor,
    pub grid: Arc<Grid>,
    pub engine: Arc<Engine>,
    runtime: Runtime,
    stop: Option<oneshot::Sender<()>>,
    task: Option<JoinHandle<()>>,
}

/// A door on any free port.
pub fn door(config: HttpConfig) -> Running {
    door_with(config, 1 << 30)
}

/// A door of a member with `buffers_bytes_max` bytes for buffers.
pub fn door_with(config: HttpConfig, buffers_bytes_max: usize) -> Running {
    let environment = Environment { clock: Arc::new(SystemClock::default()), random_seed: 7 };
    let grid =
        Grid::new(GridConfig { buffers_bytes_max: Some(buffers_bytes_max), ..GridConfig::default() }, environment)
            .unwrap();
    let engine = Arc::new(Engine::default());
    assert!(grid.serve_queries(engine.clone()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let config = HttpConfig { listen: SocketAddr::from(([127, 0, 0, 1], 0)), ..config };
    let door = runtime.block_on(HttpDoor::bind(grid.clone(), config)).unwrap();
    let (address, monitor) = (door.local_addr(), door.monitor());
    let (stop, stopped) = oneshot::channel::<()>();
    let task = runtime.spawn(door.run(async { _ = stopped.await }));
    Running { address, monitor, grid, engine, runtime, stop: Some(stop), task: Some(task) }
}

impl Running {
    pub fn connect(&self) -> Client {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Client { stream, buffer: Vec::new() }
    }

    /// Runs a statement on a new connection.
    pub fn sql(&self, body: &str) -> Answer {
        self.connect().post("/_sql", "", body)
    }

    /// Begins to close the door.
    pub fn begin_stop(&mut self) {
        drop(self.stop.take());
    }

    /// Waits until the door has stopped.
    pub fn wait(&mut self) {
        let task = self.task.take().unwrap();
        self.runtime.block_on(async { tokio::time::timeout(PATIENCE, task).await.unwrap().unwrap() });
    }
}

/// Waits until a condition holds.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "{what} did not come true");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A connection to the door.
pub struct Client {
    pub stream: TcpStream,
    buffer: Vec<u8>,
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// The headers line by line, with names in lower case and values unchanged.
    pub head: String,
    pub body: String,
    /// Whether the whole body arrived.
    pub is_whole: bool,
}

impl Answer {
    pub fn json(&self) -> serde_json::Value {
        assert!(self.is_whole, "{self:?}");
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code and message of an error.
    pub fn error(&self) -> (u16, u64, String) {
        let error = &self.json()["error"];
        (self.status, error["code"].as_u64().unwrap(), error["message"].as_str().unwrap().to_owned())
    }
}

impl Client {
    pub fn send(&mut self, text: &str) {
        self.send_bytes(text.as_bytes());
    }

    fn send_bytes(&mut self, bytes: &[u8]) {
        match self.stream.write_all(bytes) {
            // A door that has already answered may have closed the connection.
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => {}
            written => written.unwrap(),
        }
    }

    pub fn get(&mut self, path: &str, headers: &str) -> Answer {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n"));
        self.answer()
    }

    pub fn post(&mut self, path: &str, headers: &str, body: &str) -> Answer {
        self.send_post(path, headers, body);
        self.answer()
    }

    /// Posts a statement without reading its response.
    pub fn send_sql(&mut self, body: &str) {
        self.send_post("/_sql", "", body);
    }

    fn send_post(&mut self, path: &str, headers: &str, body: &str) {
        self.send(&format!("POST {path} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()));
    }

    /// Posts a body of raw bytes.
    pub fn post_bytes(&mut self, headers: &str, body: &[u8]) -> Answer {
        self.send(&format!("POST /_sql HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {}\r\n\r\n", body.len()));
        self.send_bytes(body);
        self.answer()
    }

    /// Reads more bytes. Returns whether any arrived.
    fn more(&mut self) -> bool {
        let mut bytes = [0; 65536];
        match self.stream.read(&mut bytes) {
            Err(error) if error.kind() == ErrorKind::Interrupted => self.more(),
            Ok(0) | Err(_) => false,
            Ok(count) => {
                self.buffer.extend_from_slice(&bytes[..count]);
                true
            }
        }
    }

    fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\r\n") {
                let line = String::from_utf8(self.buffer[..end].to_vec()).unwrap();
                self.buffer.drain(..end + 2);
                return Some(line);
            }
            if !self.more() {
                return None;
            }
        }
    }

    fn take(&mut self, count: usize) -> Option<String> {
        while self.buffer.len() < count {
            if !self.more() {
                return None;
            }
        }
        Some(String::from_utf8(self.buffer.drain(..count).collect()).unwrap())
    }

    /// Returns the next response. If it is cut off, it has the part that arrived.
    pub fn answer(&mut self) -> Answer {
        let first = self.line().expect("an answer");
        let status = first.split(' ').nth(1).unwrap().parse().unwrap();
        let (mut head, mut length, mut is_chunked) = (String::new(), 0, false);
        loop {
            let line = self.line().expect("a whole head");
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').unwrap();
            let (name, value) = (name.to_ascii_lowercase(), value.trim());
            match name.as_str() {
                "content-length" => length = value.parse().unwrap(),
                "transfer-encoding" => is_chunked = value == "chunked",
                _ => {}
            }
            head.push_str(&format!("{name}: {value}\n"));
        }
        let mut body = String::new();
        let is_whole = if is_chunked { self.chunks(&mut body) } else { self.plain(length, &mut body) };
        Answer { status, head, body, is_whole }
    }

    fn plain(&mut self, length: usize, body: &mut String) -> bool {
        match self.take(length) {
            Some(text) => {
                *body = text;
                true
            }
            None => false,
        }
    }

    fn chunks(&mut self, body: &mut String) -> bool {
        loop {
            let Some(size) = self.line() else { return false };
            let size = usize::from_str_radix(&size, 16).unwrap();
            let Some(text) = self.take(size) else { return false };
            body.push_str(&text);
            if self.line().is_none() {
                return false;
            }
            if size == 0 {
                return true;
            }
        }
    }

    /// Whether the server has closed the connection.
    pub fn is_closed(&mut self) -> bool {
        !self.more()
    }
}
