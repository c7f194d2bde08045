//! The response of `GET /_filbert/status`.

use std::sync::Arc;

use filbert_grid::metrics::{DoorFigures, OperationFigures, StatementFigures};
use filbert_grid::{ClientView, Grid};
use serde::{Serialize, Serializer};

use super::latency::{Percentiles, percentiles};
use super::maps::MapFigures;
use super::sampler::{INTERVAL, Sampler};
use super::samples::Sample;
use super::sources::{Sources, Warning};
use super::{machine, warnings};

/// The maximum number of listed clients. 200: a person reads no more, and thousands would be sent
/// every two seconds.
const CLIENTS_MAX: usize = 200;

#[derive(Serialize)]
pub(super) struct Status {
    version: &'static str,
    now_ms: i64,
    interval_ms: u128,
    cluster: Cluster,
    members: Vec<Member>,
    /// The member's cluster. `None` if the member is not in a cluster.
    membership: Option<crate::cluster::Cluster>,
    doors: Vec<Door>,
    operations: Vec<OperationStatus>,
    statements: Vec<OperationStatus>,
    clients: Clients,
    warnings: Vec<Warning>,
    #[serde(serialize_with = "shared")]
    maps: Arc<Vec<MapFigures>>,
    samples: Vec<Sample>,
}

#[derive(Serialize)]
struct Cluster {
    name: String,
    id: String,
    partitions: u32,
}

#[derive(Serialize)]
struct Member {
    id: String,
    active: bool,
    partitions: u32,
    processors: usize,
    threads: Option<u64>,
    memory_bytes: usize,
    memory_bytes_max: Option<usize>,
    machine_bytes: Option<u64>,
    resident_bytes: Option<u64>,
    listeners: usize,
    schemas: usize,
    parked_changes: usize,
}

#[derive(Serialize)]
struct Door {
    name: &'static str,
    address: String,
    connections: usize,
    refused: u64,
}

/// Operations or statements of one kind, since the start.
#[derive(Serialize)]
struct OperationStatus {
    kind: &'static str,
    count: u64,
    failed: u64,
    #[serde(flatten)]
    took: Percentiles,
}

#[derive(Serialize)]
struct Clients {
    clients: usize,
    connections: usize,
    list: Vec<Client>,
}

#[derive(Serialize)]
struct Client {
    name: String,
    kind: String,
    version: String,
    address: Option<String>,
    labels: Vec<String>,
    connections: usize,
}

/// The current status, and the samples after `since_ms`.
pub(super) fn status(grid: &Grid, sources: &Sources, sampler: &Sampler, since_ms: i64) -> Status {
    let statistics = grid.statistics();
    let process = machine::process();
    let machine_bytes = machine::memory_bytes();
    let mut clients: Vec<Client> = grid.clients().list().into_iter().map(client).collect();
    clients.sort_unstable_by(|a, b| a.name.cmp(&b.name).then_with(|| a.address.cmp(&b.address)));
    clients.truncate(CLIENTS_MAX);
    Status {
        version: env!("CARGO_PKG_VERSION"),
        now_ms: grid.now().0,
        interval_ms: INTERVAL.as_millis(),
        cluster: Cluster {
            name: grid.cluster_name().to_owned(),
            id: grid.cluster_id().to_string(),
            partitions: grid.partition_count(),
        },
        members: vec![Member {
            id: grid.member_uuid().to_string(),
            active: grid.is_active(),
            partitions: grid.partition_count(),
            processors: machine::processors(),
            threads: process.threads,
            memory_bytes: statistics.memory_bytes,
            memory_bytes_max: statistics.memory_bytes_max,
            machine_bytes,
            resident_bytes: process.resident_bytes,
            listeners: statistics.listeners,
            schemas: statistics.schemas,
            parked_changes: statistics.parked_changes,
        }],
        membership: crate::cluster::status_of(grid),
        doors: doors(grid),
        operations: operations(grid),
        statements: statements(grid),
        clients: Clients { clients: statistics.clients, connections: statistics.connections, list: clients },
        warnings: warnings::all(grid, &statistics, machine_bytes, sources.warnings.clone()),
        maps: sampler.maps(),
        samples: sampler.since(since_ms),
    }
}

fn doors(grid: &Grid) -> Vec<Door> {
    let door = |door: DoorFigures| Door {
        name: door.name,
        address: door.address.to_string(),
        connections: door.connections,
        refused: door.refused,
    };
    grid.metrics().doors().into_iter().map(door).collect()
}

fn operations(grid: &Grid) -> Vec<OperationStatus> {
    let seen = grid.metrics().operations().into_iter().filter(|figures| figures.count > 0);
    let kind = |figures: OperationFigures| OperationStatus {
        kind: figures.kind.name(),
        count: figures.count,
        failed: 0,
        took: percentiles(&figures.durations),
    };
    seen.map(kind).collect()
}

fn statements(grid: &Grid) -> Vec<OperationStatus> {
    let kind = |figures: StatementFigures| OperationStatus {
        kind: figures.kind.name(),
        count: figures.succeeded + figures.failed,
        failed: figures.failed,
        took: percentiles(&figures.durations),
    };
    grid.metrics().statements().into_iter().map(kind).filter(|kind| kind.count > 0).collect()
}

fn shared<S: Serializer>(maps: &Arc<Vec<MapFigures>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(maps.iter())
}

fn client(view: ClientView) -> Client {
    Client {
        name: view.info.name,
        kind: view.info.kind,
        version: view.info.version,
        address: view.info.address.map(|address| address.to_string()),
        labels: view.info.labels,
        connections: view.connections,
    }
}
