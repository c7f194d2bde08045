//! Our own client as a driver: calls through filbert-client, as a program makes them.
//!
//! The generator of this crate measures the server. This driver measures the user's view: it
//! includes the serialization of keys, the conversion of values to texts, and the wakeup of tasks.

use std::time::{Duration, Instant};

use filbert_client::{Client, ClientConfig, ClientError, Map, Pipelining};
use tokio::runtime::{Builder, Runtime};

use crate::distribution::{Distribution, KeyChooser};
use crate::error::{BenchError, Result};
use crate::latency::Latencies;
use crate::session::Target;

/// A connected client with a map of integers to texts.
#[derive(Debug)]
pub struct RustClient {
    runtime: Runtime,
    client: Client,
    map: Map<i32, String>,
    target: String,
    /// Whether the values are the keys as text. The echo server returns other values.
    check: bool,
}

/// The result of a series of calls.
#[derive(Debug)]
pub struct Done {
    /// The number of answered calls.
    pub calls: u64,
    /// The time from the first call to the last result. For gets it excludes the choice of keys and
    /// the comparison of values.
    pub elapsed: Duration,
    /// The latencies of single calls, if the calls were made one by one.
    pub latencies: Option<Latencies>,
}

/// The kind of a call. Keys are random.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Reads the value of a key.
    Get,
    /// Stores a text with this number of characters.
    Set {
        /// The length of the value, in characters.
        characters: usize,
    },
    /// Stores entries with consecutive keys from a random key on.
    PutAll {
        /// The length of each value, in characters.
        characters: usize,
        /// The number of entries per call.
        entries: u64,
    },
}

/// The concurrency of calls.
#[derive(Debug, Clone, Copy)]
pub enum Calls {
    /// Each of several concurrent callers waits for its reply.
    OneByOne {
        /// The number of concurrent callers.
        callers: usize,
    },
    /// A [`Pipelining`] of this depth.
    Pipelined {
        /// The number of calls in flight.
        depth: usize,
    },
}

impl RustClient {
    /// Connects. The client's tasks run on the thread that makes the calls. A separate thread would
    /// add the cost of a wakeup to every call.
    pub fn connect(target: &Target, map: &str, check: bool) -> Result<RustClient> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(BenchError::io("starting the client's runtime"))?;
        let config = ClientConfig {
            addresses: vec![target.address.to_string()],
            cluster_name: target.cluster.clone(),
            ..ClientConfig::default()
        };
        let client = runtime.block_on(Client::connect(config)).map_err(|error| failed(&target.name, &error))?;
        let map = client.map(map);
        Ok(RustClient { runtime, client, map, target: target.name.clone(), check })
    }

    /// Makes `iterations` times `calls` gets of random keys: one by one at depth 1, otherwise
    /// through a [`Pipelining`] of that depth. The end of each iteration waits for all results.
    pub fn gets(&self, depth: usize, iterations: u64, calls: u64, keys: u64, seed: u64) -> Result<Done> {
        let chooser = KeyChooser::new(Distribution::Uniform, keys, seed)?;
        let mut latencies = if depth == 1 { Some(Latencies::new()?) } else { None };
        let mut elapsed = Duration::ZERO;
        for iteration in 0..iterations {
            let keys: Vec<i32> = (0..calls).map(|call| chooser.key(iteration * calls + call)).collect();
            let begun = Instant::now();
            let values = match &mut latencies {
                Some(latencies) => self.runtime.block_on(self.single(&keys, latencies)),
                None => self.runtime.block_on(self.pipelined(&keys, depth)),
            };
            elapsed += begun.elapsed();
            for (key, value) in keys.iter().zip(values) {
                self.check(*key, value)?;
            }
        }
        Ok(Done { calls: iterations * calls, elapsed, latencies })
    }

    /// Makes calls of a kind. Every failure is an error. Values of gets are not compared.
    pub fn calls(&self, kind: Kind, how: Calls, count: u64, keys: u64, seed: u64) -> Result<Done> {
        let chooser = KeyChooser::new(Distribution::Uniform, keys, seed)?;
        let begun = Instant::now();
        let answers = match how {
            Calls::OneByOne { callers } => self.runtime.block_on(one_by_one(&self.map, kind, callers, count, &chooser)),
            Calls::Pipelined { depth } => {
                self.runtime.block_on(piped(&self.map, kind, depth, count, &chooser)).map(|()| None)
            }
        };
        let elapsed = begun.elapsed();
        let latencies = answers.map_err(|error| failed(&self.target, &error))?;
        let latencies = match latencies {
            None => None,
            Some(each) => {
                let mut latencies = Latencies::new()?;
                each.into_iter().for_each(|latency| latencies.record(latency));
                Some(latencies)
            }
        };
        Ok(Done { calls: count, elapsed, latencies })
    }

    /// Stores every key once.
    pub fn fill(&self, keys: u64, characters: usize) -> Result<()> {
        const AT_ONCE: u64 = 1_000;
        for from in (0..keys).step_by(AT_ONCE as usize) {
            let entries = (from..keys.min(from + AT_ONCE)).filter_map(|key| i32::try_from(key).ok());
            let entries = entries.map(|key| (key, value(key, characters)));
            let stored = self.runtime.block_on(self.map.put_all(entries));
            stored.map_err(|error| failed(&self.target, &error))?;
        }
        Ok(())
    }

    /// Returns the number of entries of the map.
    pub fn size(&self) -> Result<u64> {
        let size = self.runtime.block_on(async { self.map.size().await });
        Ok(size.map_err(|error| failed(&self.target, &error))? as u64)
    }

    async fn single(&self, keys: &[i32], latencies: &mut Latencies) -> Vec<Answer> {
        let mut values = Vec::with_capacity(keys.len());
        let mut before = Instant::now();
        for key in keys {
            values.push(self.map.get(key).await);
            let after = Instant::now();
            latencies.record(after - before);
            before = after;
        }
        values
    }

    async fn pipelined(&self, keys: &[i32], depth: usize) -> Vec<Answer> {
        let mut pipeline = Pipelining::new(depth);
        for key in keys {
            pipeline.add(self.map.get(key)).await;
        }
        pipeline.results().await
    }

    fn check(&self, key: i32, value: Answer) -> Result<()> {
        let value = value.map_err(|error| failed(&self.target, &error))?;
        if !self.check || value.as_deref() == Some(key.to_string().as_str()) {
            return Ok(());
        }
        Err(BenchError::Wrong { target: self.target.clone(), what: format!("key {key} has the value {value:?}") })
    }
}

impl Drop for RustClient {
    fn drop(&mut self) {
        self.runtime.block_on(self.client.shutdown());
    }
}

/// Makes one call.
async fn call(map: &Map<i32, String>, kind: Kind, key: i32, keys: u64) -> std::result::Result<(), ClientError> {
    match kind {
        Kind::Get => map.get(&key).await.map(drop),
        Kind::Set { characters } => map.set(&key, value(key, characters).as_str()).await,
        Kind::PutAll { characters, entries } => {
            let key_at = |n: u64| i32::try_from((u64::from(key.unsigned_abs()) + n) % keys).unwrap_or(0);
            let all: Vec<(i32, String)> = (0..entries).map(|n| (key_at(n), value(key_at(n), characters))).collect();
            map.put_all(all).await
        }
    }
}

/// A text that differs for each key.
fn value(key: i32, characters: usize) -> String {
    format!("{key:0characters$}")
}

async fn one_by_one(
    map: &Map<i32, String>,
    kind: Kind,
    callers: usize,
    count: u64,
    chooser: &KeyChooser,
) -> std::result::Result<Option<Vec<Duration>>, ClientError> {
    let mut tasks = tokio::task::JoinSet::new();
    for caller in 0..callers as u64 {
        let (map, keys) = (map.clone(), chooser.keys());
        let mine: Vec<i32> = (caller..count).step_by(callers).map(|call| chooser.key(call)).collect();
        tasks.spawn(async move {
            let mut latencies = Vec::with_capacity(mine.len());
            for key in mine {
                let begun = Instant::now();
                call(&map, kind, key, keys).await?;
                latencies.push(begun.elapsed());
            }
            Ok::<_, ClientError>(latencies)
        });
    }
    let mut all = Vec::new();
    while let Some(latencies) = tasks.join_next().await {
        // The panic hook has already reported a panic of the task.
        all.extend(latencies.unwrap_or_else(|_| Ok(Vec::new()))?);
    }
    Ok(Some(all))
}

async fn piped(
    map: &Map<i32, String>,
    kind: Kind,
    depth: usize,
    count: u64,
    chooser: &KeyChooser,
) -> std::result::Result<(), ClientError> {
    /// The maximum number of results that a pipeline collects before they are checked.
    const PIECE: u64 = 10_000;
    for from in (0..count).step_by(PIECE as usize) {
        let keys = (from..count.min(from + PIECE)).map(|call| chooser.key(call));
        match kind {
            Kind::Set { characters } => {
                let mut pipeline = Pipelining::new(depth);
                for key in keys {
                    pipeline.add(map.set(&key, value(key, characters).as_str())).await;
                }
                pipeline.results().await.into_iter().collect::<std::result::Result<(), _>>()?;
            }
            Kind::Get | Kind::PutAll { .. } => {
                let mut pipeline = Pipelining::new(depth);
                for key in keys {
                    pipeline.add(map.get(&key)).await;
                }
                pipeline.results().await.into_iter().try_for_each(|value| value.map(drop))?;
            }
        }
    }
    Ok(())
}

/// The result of a get.
type Answer = std::result::Result<Option<String>, ClientError>;

fn failed(target: &str, error: &ClientError) -> BenchError {
    BenchError::Program { program: format!("filbert-client on {target}"), what: error.to_string() }
}
