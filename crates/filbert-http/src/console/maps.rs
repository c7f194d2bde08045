//! The statistics of maps: a summary of each map, and the details of one map.

use filbert_grid::{Grid, Map, MapStatistics, SIZE_UNLIMITED, eviction_policy_name};
use serde::Serialize;

/// A map in the list of all maps.
#[derive(Clone, Debug, Serialize)]
pub(super) struct MapFigures {
    pub(super) name: String,
    pub(super) entries: usize,
    /// The memory of the map: records, their table, indexes, columns.
    pub(super) bytes: usize,
    pub(super) record_bytes: usize,
    pub(super) index_bytes: usize,
    pub(super) column_bytes: usize,
    pub(super) columns: usize,
    pub(super) indexes: usize,
    pub(super) locked_keys: usize,
    #[serde(flatten)]
    pub(super) counters: Counters,
    pub(super) last_access_ms: i64,
    pub(super) last_update_ms: i64,
}

/// The operations on a map, or on all maps, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Counters {
    pub(super) gets: u64,
    pub(super) hits: u64,
    pub(super) puts: u64,
    pub(super) removes: u64,
    pub(super) evictions: u64,
    pub(super) expirations: u64,
}

impl Counters {
    fn of(figures: &MapStatistics) -> Counters {
        Counters {
            gets: figures.gets,
            hits: figures.hits,
            puts: figures.puts,
            removes: figures.removes,
            evictions: figures.evictions,
            expirations: figures.expirations,
        }
    }

    /// Adds the operations since `before`. The counters of a map that was destroyed and created
    /// again begin at 0.
    pub(super) fn add_since(&mut self, now: &Counters, before: &Counters) {
        let since = |now: u64, before: u64| now.checked_sub(before).unwrap_or(now);
        self.gets += since(now.gets, before.gets);
        self.hits += since(now.hits, before.hits);
        self.puts += since(now.puts, before.puts);
        self.removes += since(now.removes, before.removes);
        self.evictions += since(now.evictions, before.evictions);
        self.expirations += since(now.expirations, before.expirations);
    }
}

/// The existing maps. Reading them creates no map. A map that is destroyed meanwhile is left out.
fn existing(grid: &Grid) -> impl Iterator<Item = std::sync::Arc<Map>> {
    grid.map_names().into_iter().filter_map(|name| grid.existing_map(&name))
}

/// The statistics of all maps, in the order of their names. Locks every partition for each map.
pub(super) fn list(grid: &Grid) -> Vec<MapFigures> {
    existing(grid).map(|map| figures(&map)).collect()
}

fn figures(map: &Map) -> MapFigures {
    let layout = map.layout();
    let statistics = map.statistics();
    MapFigures {
        name: map.name().to_owned(),
        entries: statistics.entries,
        bytes: statistics.bytes_owned,
        record_bytes: statistics.record_bytes,
        index_bytes: statistics.index_bytes,
        column_bytes: statistics.column_bytes,
        columns: layout.columns.len(),
        indexes: layout.indexes.len(),
        locked_keys: statistics.locked_keys,
        counters: Counters::of(&statistics),
        last_access_ms: statistics.last_access_ms,
        last_update_ms: statistics.last_update_ms,
    }
}

/// The details of one map.
#[derive(Debug, Serialize)]
pub(super) struct MapDetails {
    #[serde(flatten)]
    figures: MapFigures,
    columns_kept: Vec<Column>,
    indexes_kept: Vec<Index>,
    settings: Vec<Setting>,
    /// The statement that would create a mapping of the map, if it can be derived.
    mapping: Option<String>,
}

#[derive(Debug, Serialize)]
struct Column {
    field: String,
    #[serde(rename = "type")]
    field_type: String,
    ready: bool,
}

#[derive(Debug, Serialize)]
struct Index {
    name: String,
    kind: String,
    fields: Vec<String>,
    ready: bool,
    entries: usize,
    /// An upper bound: each partition counts its own distinct values.
    distinct: usize,
    nulls: usize,
    bytes: usize,
}

#[derive(Debug, Serialize)]
struct Setting {
    name: &'static str,
    value: String,
}

/// The details of a map. `None` if it does not exist. Locks every partition for the map and for
/// each of its indexes.
pub(super) fn details(grid: &Grid, name: &str) -> Option<MapDetails> {
    let map = grid.existing_map(name)?;
    let layout = map.layout();
    let column = |column: &filbert_grid::ColumnInfo| Column {
        field: column.field.to_string(),
        field_type: column.field_type.to_string(),
        ready: column.ready,
    };
    let index = |index: &filbert_grid::IndexInfo| {
        let statistics = map.index_statistics(index.id).unwrap_or_default();
        Index {
            name: index.name.clone(),
            kind: format!("{:?}", index.kind).to_lowercase(),
            fields: index.fields.iter().map(ToString::to_string).collect(),
            ready: index.ready,
            entries: statistics.entries,
            distinct: statistics.distinct,
            nulls: statistics.nulls,
            bytes: statistics.bytes,
        }
    };
    Some(MapDetails {
        figures: figures(&map),
        columns_kept: layout.columns.iter().map(column).collect(),
        indexes_kept: layout.indexes.iter().map(index).collect(),
        settings: settings(&map),
        mapping: grid.queries().and_then(|engine| engine.mapping_ddl(name)),
    })
}

fn settings(map: &Map) -> Vec<Setting> {
    let config = map.config();
    let seconds = |seconds: u32| if seconds == 0 { "never".to_owned() } else { format!("after {seconds} s") };
    let eviction = match config.eviction.size {
        0 | SIZE_UNLIMITED => "never".to_owned(),
        size => format!(
            "{} beyond {size} ({})",
            eviction_policy_name(config.eviction.policy),
            config.eviction.max_size_policy.name()
        ),
    };
    let journal =
        config.event_journal.map_or_else(|| "none".to_owned(), |journal| format!("{} events", journal.capacity));
    vec![
        Setting { name: "In-memory format", value: config.in_memory_format.name().to_owned() },
        Setting { name: "Expires", value: seconds(config.ttl_seconds) },
        Setting { name: "Expires when idle", value: seconds(config.max_idle_seconds) },
        Setting { name: "Evicts", value: eviction },
        Setting { name: "Event journal", value: journal },
        Setting {
            name: "Backups",
            value: format!("{} + {} asynchronous", config.backup_count, config.async_backup_count),
        },
    ]
}
