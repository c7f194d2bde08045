//! The metrics of maps.

use std::cmp::Reverse;

use filbert_grid::{Grid, MapStatistics};

use super::text::{Families, Labels};

type Figure<T> = (&'static str, &'static str, fn(&MapStatistics) -> T);

const GAUGES: [Figure<usize>; 6] = [
    ("filbert_map_entries", "Entries of a map.", |map| map.entries),
    ("filbert_map_bytes", "Memory that a map owns.", |map| map.bytes_owned),
    ("filbert_map_record_bytes", "Memory of a map's keys and values.", |map| map.record_bytes),
    ("filbert_map_index_bytes", "Memory of a map's indexes.", |map| map.index_bytes),
    ("filbert_map_column_bytes", "Memory of a map's columns.", |map| map.column_bytes),
    ("filbert_map_locked_keys", "Keys of a map that are locked.", |map| map.locked_keys),
];

const COUNTERS: [Figure<u64>; 6] = [
    ("filbert_map_gets_total", "Reads of single entries.", |map| map.gets),
    ("filbert_map_hits_total", "Reads of single entries that found one.", |map| map.hits),
    ("filbert_map_puts_total", "Writes of single entries.", |map| map.puts),
    ("filbert_map_removes_total", "Removals of single entries.", |map| map.removes),
    ("filbert_map_evictions_total", "Entries that were evicted.", |map| map.evictions),
    ("filbert_map_expirations_total", "Entries whose time was over.", |map| map.expirations),
];

/// Writes the metrics of the largest maps, at most `maps_max`. Locks every partition for each map.
pub(super) fn write(families: &mut Families, grid: &Grid, maps_max: usize) {
    let mut maps: Vec<(String, MapStatistics)> = grid
        .map_names()
        .into_iter()
        .filter_map(|name| grid.existing_map(&name).map(|map| (name, map.statistics())))
        .collect();
    if maps.len() > maps_max {
        maps.sort_by_key(|(_, map)| Reverse(map.bytes_owned));
        maps.truncate(maps_max);
    }
    let labels: Vec<[(&str, &str); 1]> = maps.iter().map(|(name, _)| [("map", name.as_str())]).collect();
    let each = || labels.iter().map(|labels| labels as Labels<'_>).zip(&maps);
    for (name, help, figure) in GAUGES {
        families.gauges(name, help, each().map(|(labels, (_, map))| (labels, figure(map) as f64)));
    }
    for (name, help, figure) in COUNTERS {
        families.counters(name, help, each().map(|(labels, (_, map))| (labels, figure(map))));
    }
}
