//! What the console asks the door: figures that are counted for all doors.

use std::sync::Arc;
use std::time::Duration;

use filbert_grid::metrics::{HistogramCounts, Metrics};

use crate::HttpConfig;
use crate::console::{DoorFigures, LatencyCounts, Sources, Warning, WarningLevel, bucket_of};
use crate::shared::Shared;

/// The console's sources: doors, latencies and statements from the member's metrics.
pub(crate) fn sources(shared: &Shared) -> Sources {
    let metrics = || shared.grid.metrics().clone();
    let (of_doors, of_latency, of_statements) = (metrics(), metrics(), metrics());
    let warnings = warnings(&shared.config);
    Sources {
        warnings: Arc::new(move || warnings.clone()),
        doors: Arc::new(move || doors(&of_doors)),
        latency: Arc::new(move || latency(&of_latency)),
        statements: Arc::new(move || of_statements.statements().iter().map(|kind| kind.succeeded + kind.failed).sum()),
    }
}

fn warnings(config: &HttpConfig) -> Vec<Warning> {
    if !config.users.is_empty() || config.listen.ip().is_loopback() {
        return Vec::new();
    }
    let title = "Everybody who reaches this page may do anything".to_owned();
    let text = format!(
        "HTTP is served on {} and no users are configured. Configure users, or listen on a loopback address.",
        config.listen
    );
    vec![Warning { level: WarningLevel::Warning, title, text }]
}

fn doors(metrics: &Metrics) -> Vec<DoorFigures> {
    let door = |door: filbert_grid::metrics::DoorFigures| DoorFigures {
        name: door.name.to_owned(),
        address: door.address.to_string(),
        connections: door.connections,
    };
    metrics.doors().into_iter().map(door).collect()
}

/// Statements, and the operations that were timed.
fn latency(metrics: &Metrics) -> LatencyCounts {
    let mut counts = LatencyCounts::default();
    let statements = metrics.statements().into_iter().map(|kind| kind.durations);
    let operations = metrics.operations().into_iter().map(|kind| kind.durations);
    for durations in statements.chain(operations) {
        add(&mut counts, &durations);
    }
    counts
}

fn add(counts: &mut LatencyCounts, durations: &HistogramCounts) {
    /// Everything that is longer than the longest bucket with an end.
    const LONGEST: Duration = Duration::from_secs(3600);
    for (end, count) in durations.buckets().filter(|(_, count)| *count > 0) {
        let micros = end.unwrap_or(LONGEST).as_secs_f64() * 1e6;
        if let Some(bucket) = counts.0.get_mut(bucket_of(micros)) {
            *bucket += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use filbert_grid::metrics::OperationKind;

    use super::*;

    #[test]
    fn an_open_door_without_users_is_warned_of() {
        let listen = "0.0.0.0:4200".parse().unwrap();
        assert_eq!(warnings(&HttpConfig { listen, ..HttpConfig::default() }).len(), 1);
        assert_eq!(warnings(&HttpConfig::default()), []);
    }

    #[test]
    fn latencies_of_all_kinds_come_together() {
        let metrics = Metrics::default();
        metrics.observe(OperationKind::Get, Duration::from_nanos(200));
        metrics.observe(OperationKind::Put, Duration::from_millis(1));
        metrics.observe(OperationKind::Query, Duration::from_secs(500));
        let counts = latency(&metrics);
        assert_eq!(counts.0.iter().sum::<u64>(), 3);
        assert_eq!(counts.0[0], 1);
        assert_eq!(*counts.0.last().unwrap(), 1);
    }
}
