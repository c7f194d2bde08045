//! The load generator: settings, phases and the report of a run.
//!
//! ```text
//!   Work          shared and read-only: number, encoding and expected reply of each call
//!     |
//!   closed loop   Lane: the window of calls of one connection;
//!                 blocking (a thread per connection) or polled (several connections per thread)
//!   fixed rate    a sender and a receiver thread per connection; latency starts at the due time
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

/// The maximum window, in bytes, for blocking calls. Such a window fits into the socket buffers, so
/// that generator and server cannot block each other.
const BLOCKING_WINDOW_BYTES_MAX: usize = 128 * 1024;

/// The pace of calls.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Each reply permits the next call: as fast as the server answers.
    Closed,
    /// This number of calls per second over all connections, regardless of the server's speed.
    Rate(f64),
}

/// The end of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// After this time.
    Time(Duration),
    /// After this number of calls over all connections.
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
    /// The distribution of keys.
    pub distribution: Distribution,
    /// The shape of values.
    pub values: ValueShape,
    /// The number of connections. Each authenticates as a separate client.
    pub connections: usize,
    /// The number of threads that drive the connections of a closed loop. `None`: one per
    /// connection up to 16, then one per core.
    pub threads: Option<usize>,
    /// Calls in flight per connection, at most [`DEPTH_MAX`].
    pub depth: usize,
    /// Closed loop or fixed rate.
    pub pace: Pace,
    /// After this number of calls a connection waits for all replies before it continues, as
    /// `Pipelining.results()` does.
    pub iteration: Option<u64>,
    /// Every n-th reply is compared with the value of its key. 0 disables the comparison.
    pub check_every: u64,
    /// The seed of all random choices.
    pub seed: u64,
    /// The process id of the server, if it runs on this machine.
    pub server_pid: Option<u32>,
}

impl Workload {
    /// A closed loop with one connection and one call in flight, uniformly distributed keys, and a
    /// check of every reply.
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

    /// The load phase before a measurement: it sets every key once.
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

    /// Whether the window of one connection fits into the buffers of its socket.
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

/// The result of a phase.
#[derive(Debug, Clone, Serialize)]
pub struct LoadReport {
    /// The server's name.
    pub target: String,
    /// The number of answered calls.
    pub operations: u64,
    /// The number of replies that were compared with the value of their key. All were right: a
    /// wrong one ends the run.
    pub checked: u64,
    /// The time from the first call to the last reply.
    pub seconds: f64,
    /// Calls per second.
    pub operations_per_second: f64,
    /// Closed loop: from writing a call to reading its reply. Fixed rate: from the due time.
    pub latency: LatencySummary,
    /// All latencies, to combine several phases.
    #[serde(skip)]
    pub latencies: Latencies,
    /// Fixed rate only: the delay between the due time of a call and its write by the generator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lateness: Option<LatencySummary>,
    /// The resource usage of the server process per call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<UsagePerOperation>,
    /// The resource usage of this process per call.
    pub generator: UsagePerOperation,
}

/// Connections to a server, with their workload.
#[derive(Debug)]
pub struct Load {
    workload: Workload,
    target: String,
    streams: Vec<TcpStream>,
    requests: Requests,
    chooser: KeyChooser,
}

impl Load {
    /// Opens and authenticates all connections.
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

    /// Runs one phase over the open connections: the calls `first`, `first + 1`, ... until the
    /// limit. Then it waits for all replies.
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

/// Runs a closed loop over all connections, with the number of threads of the workload.
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
            // Rounding up may leave the last threads without connections. They only wait at the
            // barrier.
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

/// Drives several connections on this thread until the phase is over.
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
