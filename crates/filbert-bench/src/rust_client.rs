//! Our own client as a driver: gets through filbert-client, as a program would make them.
//!
//! The generator of this crate shows what a server can do; this shows what a user of the client gets. Serializing keys,
//! making text of values and waking tasks are all in it.

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
    /// Whether values are the keys as text; the echo server's are not.
    check: bool,
}

/// What gets took.
#[derive(Debug)]
pub struct Gets {
    /// Calls answered.
    pub calls: u64,
    /// From the first call to the last result, without the choice of keys and the comparison of values.
    pub elapsed: Duration,
    /// Of the single calls, when they were made one by one.
    pub latencies: Option<Latencies>,
}

impl RustClient {
    /// Connects. The client's tasks run on the thread that makes the calls: with a thread of their own every call would
    /// pay for waking it.
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

    /// `iterations` times `calls` gets of random keys: one by one at depth 1, else through a [`Pipelining`] of that depth, which is
    /// emptied at the end of each iteration.
    pub fn gets(&self, depth: usize, iterations: u64, calls: u64, keys: u64, seed: u64) -> Result<Gets> {
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
        Ok(Gets { calls: iterations * calls, elapsed, latencies })
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

/// A get's result.
type Answer = std::result::Result<Option<String>, ClientError>;

fn failed(target: &str, error: &ClientError) -> BenchError {
    BenchError::Program { program: format!("filbert-client on {target}"), what: error.to_string() }
}
