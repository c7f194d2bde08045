//! `GET /metrics`: the metrics of the member, in Prometheus' format.

mod cluster;
mod maps;
mod process;
mod text;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use filbert_grid::allocation;
use filbert_grid::metrics::Metrics;

use crate::failure::Failure;
use crate::shared::{ROUTES, Shared};

use text::{Families, Labels};

/// Answers a scrape. The metrics of maps need every partition, so that they are collected outside
/// of the network tasks.
pub(crate) async fn handle(State(shared): State<Arc<Shared>>) -> Response {
    match tokio::task::spawn_blocking(move || render(&shared)).await {
        Ok(body) => ([(CONTENT_TYPE, text::CONTENT_TYPE)], body).into_response(),
        Err(_) => Failure::unavailable("this member is shutting down").into_response(),
    }
}

fn render(shared: &Shared) -> String {
    let mut families = Families::default();
    member(&mut families, shared);
    process::write(&mut families);
    doors(&mut families, shared);
    operations(&mut families, shared.grid.metrics());
    statements(&mut families, shared);
    cluster::write(&mut families, &shared.grid);
    maps::write(&mut families, &shared.grid, shared.config.metrics_maps_max);
    families.finish()
}

fn member(families: &mut Families, shared: &Shared) {
    let grid = &shared.grid;
    let figures = grid.statistics();
    let member = grid.member_uuid().to_string();
    let build: Labels<'_> =
        &[("version", env!("CARGO_PKG_VERSION")), ("cluster", grid.cluster_name()), ("member", &member)];
    families.gauges("filbert_build_info", "What runs here; always 1.", [(build, 1.0)]);
    let uptime = shared.started.elapsed().as_secs_f64();
    families.gauge("filbert_uptime_seconds", "Time since the HTTP door was opened.", Some(uptime));
    let active = f64::from(u8::from(shared.is_serving()));
    families.gauge("filbert_active", "1 while the member takes operations, 0 while it is stopping.", Some(active));
    let partitions = f64::from(grid.partition_count());
    families.gauge("filbert_partitions", "Partitions of this member.", Some(partitions));
    let memory = figures.memory_bytes as f64;
    families.gauge("filbert_memory_bytes", "Memory that all maps own, indexes and columns included.", Some(memory));
    let limit = figures.memory_bytes_max.map(|bytes| bytes as f64);
    families.gauge("filbert_memory_limit_bytes", "The limit of the member's memory (memory_bytes_max).", limit);
    for (name, help, value) in [
        ("filbert_statement_bytes", "Memory that statements and kept plans hold.", figures.statement_bytes),
        ("filbert_buffer_bytes", "Memory of what is under way: messages, bodies, events.", figures.buffer_bytes),
        ("filbert_buffer_limit_bytes", "The limit of that (buffers_bytes_max).", figures.buffer_bytes_max),
        (
            "filbert_allocated_bytes",
            "Memory that the process has allocated, in an account or not.",
            allocation::total(),
        ),
        ("filbert_maps", "Maps.", figures.maps),
        ("filbert_objects", "Distributed objects.", figures.objects),
        ("filbert_clients", "Connected Hazelcast clients.", figures.clients),
        ("filbert_client_connections", "Connections of Hazelcast clients.", figures.connections),
        ("filbert_listeners", "Listeners of any kind.", figures.listeners),
        ("filbert_schemas", "Compact schemas.", figures.schemas),
        ("filbert_parked_changes", "Changes that wait for locked keys.", figures.parked_changes),
    ] {
        families.gauge(name, help, Some(value as f64));
    }
    let help = "How often there was no room for what a client sent or asked for.";
    families.counter("filbert_buffers_refused_total", help, figures.buffers_refused);
}

fn doors(families: &mut Families, shared: &Shared) {
    let doors: Vec<_> =
        shared.grid.metrics().doors().into_iter().map(|door| (door.address.to_string(), door)).collect();
    let labels: Vec<[(&str, &str); 2]> =
        doors.iter().map(|(address, door)| [("door", door.name), ("address", address.as_str())]).collect();
    let each = || labels.iter().zip(&doors).map(|(labels, (_, door))| (labels.as_slice(), door));
    let connections = each().map(|(labels, door)| (labels, door.connections as f64));
    families.gauges("filbert_door_connections", "Open connections of a front door.", connections);
    let bytes = each().map(|(labels, door)| (labels, door.buffer_bytes as f64));
    families.gauges("filbert_door_buffer_bytes", "Bytes of requests and answers that wait at a front door.", bytes);
    let accepted = each().map(|(labels, door)| (labels, door.accepted));
    families.counters("filbert_door_accepted_total", "Connections that a front door accepted.", accepted);
    let refused = each().map(|(labels, door)| (labels, door.refused));
    families.counters("filbert_door_refused_total", "Connections that a front door turned away.", refused);
    let requests: Vec<([(&str, &str); 2], u64)> = ROUTES
        .iter()
        .zip(&shared.counters.answers)
        .flat_map(|(route, by_class)| {
            let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"];
            let sample = |(class, count): (&'static str, &std::sync::atomic::AtomicU64)| {
                ([("path", *route), ("status", class)], count.load(Ordering::Relaxed))
            };
            classes.into_iter().zip(by_class).map(sample)
        })
        .filter(|(_, count)| *count > 0)
        .collect();
    let requests = requests.iter().map(|(labels, count)| (labels.as_slice(), *count));
    families.counters("filbert_http_answers_total", "Answers over HTTP, by path and class of status.", requests);
}

fn operations(families: &mut Families, metrics: &Metrics) {
    let figures = metrics.operations();
    let labels: Vec<[(&str, &str); 1]> = figures.iter().map(|figures| [("kind", figures.kind.name())]).collect();
    let counts = labels.iter().zip(&figures).map(|(labels, figures)| (labels.as_slice(), figures.count));
    families.counters("filbert_operations_total", "Operations of Hazelcast clients, by kind.", counts);
    families.histograms(
        "filbert_operation_duration_seconds",
        "How long operations took within the member. Some are timed, not all.",
        "kind",
        figures.iter().map(|figures| (figures.kind.name(), &figures.durations)),
    );
}

fn statements(families: &mut Families, shared: &Shared) {
    let metrics = shared.grid.metrics();
    let figures = metrics.statements();
    let outcomes: Vec<([(&str, &str); 2], u64)> = figures
        .iter()
        .flat_map(|figures| {
            let kind = ("kind", figures.kind.name());
            [([kind, ("outcome", "success")], figures.succeeded), ([kind, ("outcome", "failure")], figures.failed)]
        })
        .collect();
    let samples = outcomes.iter().map(|(labels, count)| (labels.as_slice(), *count));
    families.counters("filbert_statements_total", "SQL statements of all front doors that were done.", samples);
    let running = metrics.statements_running() as f64;
    families.gauge(
        "filbert_statements_running",
        "SQL statements that run, or whose rows are not all read.",
        Some(running),
    );
    families.histograms(
        "filbert_statement_duration_seconds",
        "How long SQL statements took until their count or first rows were there.",
        "kind",
        figures.iter().map(|figures| (figures.kind.name(), &figures.durations)),
    );
    let Some(engine) = shared.grid.queries() else { return };
    let engine = engine.figures();
    families.gauge("filbert_plan_cache_plans", "Plans of statements that are kept.", Some(engine.plans as f64));
    families.counter("filbert_plan_cache_hits_total", "Statements whose plan was kept.", engine.plan_hits);
    families.counter("filbert_plan_cache_misses_total", "Statements whose plan was made.", engine.plan_misses);
    let bytes = |bytes: Option<usize>| bytes.map(|bytes| bytes as f64);
    families.gauge("filbert_query_memory_bytes", "Memory that running queries hold.", bytes(engine.memory_bytes));
    let limit = bytes(engine.memory_bytes_max);
    families.gauge("filbert_query_memory_limit_bytes", "The limit of the queries' memory.", limit);
    families.gauge("filbert_query_threads", "Threads that run queries.", Some(engine.threads as f64));
}

#[cfg(test)]
mod tests {
    use filbert_grid::{Environment, Grid, GridConfig, SystemClock};

    use super::*;
    use crate::HttpConfig;

    /// Checks the rules of promtool: one HELP and one TYPE before a family's samples, the samples
    /// of a family together, no duplicate samples, names of counters with `_total`, names in base
    /// units.
    fn check(text: &str) -> usize {
        let mut families = std::collections::HashSet::new();
        let mut samples = std::collections::HashSet::new();
        let (mut family, mut kind) = ("", "");
        let mut helped = "";
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                assert!(!help.is_empty(), "{line}");
                assert!(families.insert(name), "{line}");
                helped = name;
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                (family, kind) = rest.split_once(' ').unwrap();
                assert_eq!(family, helped);
                assert_eq!(kind == "counter", family.ends_with("_total"), "{line}");
                assert!(!family.contains("_ms") && !family.contains("milli") && !family.contains("kilo"), "{line}");
            } else {
                let (sample, value) = line.rsplit_once(' ').unwrap();
                assert!(samples.insert(sample), "{line}");
                value.parse::<f64>().unwrap();
                let name = sample.split('{').next().unwrap();
                let suffix = name.strip_prefix(family).unwrap();
                let allowed: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
                assert!(allowed.contains(&suffix), "{line}");
            }
        }
        assert!(text.ends_with('\n'));
        samples.len()
    }

    #[test]
    fn metrics_keep_the_rules() {
        let environment = Environment { clock: Arc::new(SystemClock::default()), random_seed: 1 };
        let grid = Grid::new(GridConfig::default(), environment).unwrap();
        let map = grid.map("a \"map\"").unwrap();
        let _ = map.statistics();
        grid.metrics().observe(filbert_grid::metrics::OperationKind::Get, std::time::Duration::from_micros(3));
        let shared = Arc::new(Shared::new(grid.clone(), HttpConfig::default()));
        grid.metrics().add_door(&shared);
        let text = render(&shared);
        assert!(check(&text) > 50, "{text}");
        assert!(text.contains("filbert_map_entries{map=\"a \\\"map\\\"\"} 0\n"), "{text}");
        assert!(text.contains("filbert_door_connections{door=\"http\",address=\"127.0.0.1:4200\"} 0\n"), "{text}");
        assert!(text.contains("filbert_operation_duration_seconds_count{kind=\"get\"} 1\n"), "{text}");
    }
}
