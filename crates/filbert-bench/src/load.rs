//! The load generator: settings, phases and the report of a run.
//!
//! ```text
//!              Work (shared, read-only): which call is number n, how it is encoded, what its reply must be
//!                |
//!   closed loop: Lane = one connection's window of calls; blocking (one thread each) or polled (several per thread)
//!   fixed rate:  a sender thread and a receiver thread per connection; a call is late from the time it was due
//! ```

use std::net::TcpStream;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use serde::Serialize;

use crate::distribution::{Distribution, KeyChooser, Mix, Operation};
use crate::error::{BenchError, Result};
use crate::latency::{Latencies, LatencySummary};
use crate::process::{Usage, UsagePerOperation};
use crate::requests::{Requests, ValueShape, Values};
use crate::session::{Session, Target};

mod blocking;
mod lane;
mod paced;
mod polled;
mod work;

pub use lane::DEPTH_MAX;
use lane::{Lane, Tally};
use work::Work;

/// A window of at most this many bytes is driven by blocking calls: it fits into the sockets' buffers, so that writer
/// and server cannot wait for each other.
const BLOCKING_WINDOW_BYTES_MAX: usize = 128 * 1024;

/// When calls are made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Every reply makes room for the next call: as fast as the server answers.
    Closed,
    /// This many calls per second over all connections, whatever the server does.
    Rate(f64),
}

/// When a phase ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// After this time.
    Time(Duration),
    /// After this many calls over all connections.
    Operations(u64),
}

/// A workload.
#[derive(Debug, Clone)]
pub struct Workload {
    /// The map's name.
    pub map: String,
    /// Shares of operations.
    pub mix: Mix,
    /// Number of keys.
    pub keys: u64,
    /// How keys are chosen.
    pub distribution: Distribution,
    /// What values look like.
    pub values: ValueShape,
    /// Connections, each logged in as a client of its own.
    pub connections: usize,
    /// Threads that drive the connections of a closed loop; `None`: one per connection up to 16, then one per core.
    pub threads: Option<usize>,
    /// Calls in flight per connection, at most [`DEPTH_MAX`].
    pub depth: usize,
    /// Closed loop or fixed rate.
    pub pace: Pace,
    /// After this many calls a connection waits for all replies before it goes on, as `Pipelining.results()` does.
    pub iteration: Option<u64>,
    /// Every n-th reply is compared with the value of its key; 0 compares none.
    pub check_every: u64,
    /// Source of all choices.
    pub seed: u64,
    /// The server's process, when it runs on this machine.
    pub server_pid: Option<u32>,
}

impl Workload {
    /// A closed loop of one connection and one call in flight, uniformly random keys, every reply checked.
    pub fn new(map: impl Into<String>, operation: Operation, keys: u64, values: ValueShape) -> Self {
        Self {
            map: map.into(),
            mix: Mix::only(operation),
            keys,
            distribution: Distribution::Uniform,
            values,
            connections: 1,
            threads: None,
            depth: 1,
            pace: Pace::Closed,
            iteration: None,
            check_every: 1,
            seed: 1,
            server_pid: None,
        }
    }

    /// The workload that sets every key once: the load before a measurement.
    pub fn load(map: impl Into<String>, keys: u64, values: ValueShape) -> Self {
        Self {
            distribution: Distribution::Sequential,
            depth: 64,
            check_every: 0,
            ..Self::new(map, Operation::Set, keys, values)
        }
    }

    fn validate(&self) -> Result<()> {
        let wrong = |text: String| Err(BenchError::Setting(text));
        if self.connections == 0 {
            return wrong("0 connections asked for, expected at least 1".to_owned());
        }
        if self.depth == 0 || self.depth > DEPTH_MAX {
            return wrong(format!("depth {}, expected 1 to {DEPTH_MAX}", self.depth));
        }
        match self.pace {
            Pace::Rate(rate) if !(rate > 0.0 && rate <= 1e9) => {
                wrong(format!("rate {rate}, expected more than 0 and at most 1,000,000,000 calls per second"))
            }
            _ => Ok(()),
        }
    }

    /// Whether one connection's window fits into the buffers of its socket.
    fn window_is_small(&self) -> bool {
        let value = match self.values {
            ValueShape::KeyText => 32,
            ValueShape::Text(characters) => characters + 32,
        };
        self.depth.saturating_mul(value + 128) <= BLOCKING_WINDOW_BYTES_MAX
    }

    fn thread_count(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let wanted = self.threads.unwrap_or(if self.connections <= 16 { self.connections } else { cores });
        wanted.clamp(1, self.connections)
    }
}

/// What a phase showed.
#[derive(Debug, Clone, Serialize)]
pub struct LoadReport {
    /// The server's name.
    pub target: String,
    /// Calls answered.
    pub operations: u64,
    /// Replies compared with the value of their key; all were right, or there would be no report.
    pub checked: u64,
    /// From the first call to the last reply.
    pub seconds: f64,
    /// Calls per second.
    pub operations_per_second: f64,
    /// Closed loop: from the writing of a call to the reading of its reply. Fixed rate: from the time it was due.
    pub latency: LatencySummary,
    /// All of them, for whoever sums up several phases.
    #[serde(skip)]
    pub latencies: Latencies,
    /// Fixed rate only: how late the generator itself wrote its calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness: Option<LatencySummary>,
    /// What the server's process used per call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<UsagePerOperation>,
    /// What this process used per call.
    pub generator: UsagePerOperation,
}

/// Connections to a server with a workload for them.
#[derive(Debug)]
pub struct Load {
    workload: Workload,
    target: String,
    streams: Vec<TcpStream>,
    requests: Requests,
    chooser: KeyChooser,
}

impl Load {
    /// Opens and logs in all connections.
    pub fn connect(target: &Target, workload: Workload) -> Result<Load> {
        workload.validate()?;
        let mut partition_count = 0;
        let mut streams = Vec::new();
        for _ in 0..workload.connections {
            let session = Session::open(target)?;
            partition_count = session.partition_count();
            streams.push(session.into_stream());
        }
        let values = Values::new(workload.values, workload.seed);
        let requests = Requests::new(&workload.mix, &workload.map, values, partition_count)?;
        let chooser = KeyChooser::new(workload.distribution, workload.keys, workload.seed)?;
        Ok(Load { workload, target: target.name.clone(), streams, requests, chooser })
    }

    /// Runs one phase over the open connections: calls number `first`, `first + 1`, ... until the limit; then all
    /// replies are waited for.
    pub fn run(&mut self, first: u64, limit: Limit) -> Result<LoadReport> {
        let work = Work {
            requests: &self.requests,
            chooser: &self.chooser,
            mix: &self.workload.mix,
            target: &self.target,
            seed: self.workload.seed,
            check_every: self.workload.check_every,
            depth: self.workload.depth,
            iteration: self.workload.iteration,
            lanes: self.streams.len() as u64,
            first,
        };
        let pid = self.workload.server_pid;
        let before = (pid.map(Usage::of).transpose()?, Usage::of(std::process::id())?);
        let (tally, elapsed) = match self.workload.pace {
            Pace::Closed => closed(&work, &self.workload, &mut self.streams, limit)?,
            Pace::Rate(rate) => paced::run(&work, rate, &self.streams, limit)?,
        };
        let after = (pid.map(Usage::of).transpose()?, Usage::of(std::process::id())?);
        let operations = tally.latencies.len();
        Ok(LoadReport {
            target: self.target.clone(),
            operations,
            checked: tally.checked,
            seconds: elapsed.as_secs_f64(),
            operations_per_second: operations as f64 / elapsed.as_secs_f64().max(1e-9),
            latency: tally.latencies.summary(),
            lateness: tally.lateness.as_ref().map(Latencies::summary),
            server: before.0.zip(after.0).map(|(b, a)| UsagePerOperation::between(&b, &a, operations)),
            generator: UsagePerOperation::between(&before.1, &after.1, operations),
            latencies: tally.latencies,
        })
    }
}

/// A closed loop over all connections, on as many threads as the workload asks for.
fn closed(work: &Work<'_>, workload: &Workload, streams: &mut [TcpStream], limit: Limit) -> Result<(Tally, Duration)> {
    let threads = workload.thread_count();
    let blocking = threads == streams.len() && workload.window_is_small();
    for stream in streams.iter() {
        stream.set_nonblocking(!blocking).map_err(BenchError::io("changing the mode of a socket"))?;
    }
    let barrier = Barrier::new(threads + 1);
    let per_thread = streams.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let mut handles = Vec::new();
        let mut lane_number = 0_u64;
        let mut chunks = streams.chunks_mut(per_thread);
        for _ in 0..threads {
            // Rounding up may leave the last threads without a connection; they only pass the barrier.
            let chunk = chunks.next().unwrap_or_default();
            let numbers = lane_number..lane_number + chunk.len() as u64;
            lane_number = numbers.end;
            let barrier = &barrier;
            handles.push(scope.spawn(move || {
                let lanes = numbers.map(|number| Lane::new(work, number, limit)).collect::<Result<Vec<_>>>();
                barrier.wait();
                drive(chunk, lanes?, blocking, limit)
            }));
        }
        barrier.wait();
        let mut total = Tally::new()?;
        let mut failure = None;
        for handle in handles {
            match handle.join() {
                Ok(Ok(tally)) => total.add(&tally)?,
                Ok(Err(error)) => failure = failure.or(Some(error)),
                Err(_) => {
                    failure = failure.or(Some(BenchError::Setting("a thread of the generator ended early".to_owned())));
                }
            }
        }
        match failure {
            Some(error) => Err(error),
            None => {
                let elapsed = total.span.map_or(Duration::ZERO, |(begun, ended)| ended - begun);
                Ok((total, elapsed))
            }
        }
    })
}

/// Drives some connections on this thread until their phase is over.
fn drive(streams: &mut [TcpStream], lanes: Vec<Lane<'_>>, blocking: bool, limit: Limit) -> Result<Tally> {
    let begun = Instant::now();
    let deadline = match limit {
        Limit::Time(time) => Some(begun + time),
        Limit::Operations(_) => None,
    };
    let mut total = Tally::new()?;
    if blocking {
        for (stream, lane) in streams.iter_mut().zip(lanes) {
            total.add(&blocking::drive(stream, lane, deadline)?)?;
        }
    } else {
        total = polled::drive(streams, lanes, deadline)?;
    }
    total.span = (!streams.is_empty()).then(|| (begun, Instant::now()));
    Ok(total)
}
