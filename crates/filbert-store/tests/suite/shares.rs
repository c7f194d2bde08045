//! Maps that are only declared: reads give the same results as for emptied maps, and each map takes
//! two words.

use std::sync::Arc;

use crate::common::{CLIENT, derived};
use filbert_data::PartitionId;
use filbert_store::*;

const SETTINGS: PartitionSettings = PartitionSettings { id: PartitionId(3), hash_seed: 77, exact_read_times: false };
const NOW: Millis = Millis(1_000);

fn apply(partition: &mut Partition, map: MapId, change: Change<'_>) {
    let command = Command { map, now: NOW, caller: CLIENT, change };
    assert!(!matches!(partition.apply(&command, &mut NoObserver), Reply::Refused(_)));
}

fn put(partition: &mut Partition, map: MapId, key: &[u8]) {
    apply(partition, map, Change::Put { key, value: b"v", expiry: Expiry::DEFAULT, mode: PutMode::Set });
}

fn with_journal() -> MapSettings {
    MapSettings { journal: Some(JournalSettings { capacity: 9, ttl_ms: 0 }), ..MapSettings::default() }
}

/// The results of all reads of map 1, except the statistics.
fn read(partition: &mut Partition, layout: &Layout) -> Vec<String> {
    let map = MapId(1);
    let mut said = vec![
        format!("{:?}", partition.get(map, b"k", NOW)),
        format!("{:?}", partition.contains_key(map, b"k", NOW)),
        format!("{:?} {}", partition.entry_view(map, b"k", NOW), partition.contains_value(map, b"v", NOW)),
        format!("{:?}", partition.fetch(map, Cursor::START, 10, NOW, &mut |_, _| ())),
        format!("{:?}", partition.lock_state(map, b"k", NOW)),
        format!("{:?} {}", partition.next_expiry(), partition.len(map, NOW)),
        format!("{:?}", partition.journal(map).map(|journal| journal.oldest_sequence() > 99)),
        format!("{:?}", partition.columns(map).map(|columns| (columns.rows(), columns.position(ColumnId(99))))),
        format!("{:?}", partition.columns(map).map(|columns| columns.position(layout.columns()[0].id))),
        format!("{:?}", partition.pick_eviction(map, EvictionPolicy::Lru, NOW, &mut || 7, &|_| false)),
    ];
    for index in layout.indexes().iter().map(|index| index.id).chain([IndexId(99)]) {
        let probe = Probe::All { descending: false };
        said.push(format!("{:?}", partition.probe(map, index, &probe, NOW, &mut |_, _| true)));
        said.push(format!("{:?}", partition.probe_keys(map, index, &probe, &mut |_, _| true)));
        said.push(format!("{:?}", partition.probe_slots(map, index, &probe)));
        said.push(format!("{:?}", partition.index_statistics(map, index)));
    }
    said
}

#[test]
fn a_declared_map_is_read_as_one_that_was_emptied() {
    let layout =
        (0..20).filter_map(derived::layout).find(|layout| !layout.indexes().is_empty() && !layout.columns().is_empty());
    let layout = Arc::new(layout.unwrap());
    for settings in [MapSettings::default(), with_journal()] {
        for layouts in [vec![Some(layout.clone())], vec![Some(layout.clone()), None], vec![]] {
            let mut both = [Partition::new(SETTINGS), Partition::new(SETTINGS)];
            for (number, partition) in both.iter_mut().enumerate() {
                partition.create_map(MapId(1), settings.clone());
                if number == 1 {
                    put(partition, MapId(1), b"k");
                    apply(partition, MapId(1), Change::Delete { key: b"k" });
                }
                layouts.iter().for_each(|layout| partition.set_layout(MapId(1), layout.clone()));
            }
            let [declared, emptied] = &mut both;
            assert!(declared.bytes() <= 16 && emptied.bytes() > 500);
            assert_eq!(read(declared, &layout), read(emptied, &layout));
            let signature = Arc::new(Signature::new(8, 100, 1));
            let id = layout.indexes()[0].id;
            let set = both.each_mut().map(|partition| partition.set_signature(MapId(1), id, Some(signature.clone())));
            assert_eq!(set, [layouts.len() == 1; 2]);
            // A new key is added to the summary.
            let [declared, _] = &mut both;
            apply(declared, MapId(1), Change::Clear);
            assert!(declared.bytes() <= 16);
            put(declared, MapId(1), b"k");
            let found = declared.index_statistics(MapId(1), id).map(|found| found.entries > 0);
            assert_eq!(found, (layouts.len() == 1).then_some(true));
            if layouts.len() == 1 {
                let mut partitions = PartitionSet::none_of(8);
                let mut key = None;
                declared.probe_keys(MapId(1), id, &Probe::All { descending: false }, &mut |found, _| {
                    key = Some(found.to_vec());
                    false
                });
                signature.add_partitions_of(&key.unwrap(), &mut partitions);
                assert_eq!(partitions.iter().collect::<Vec<_>>(), [SETTINGS.id]);
            }
        }
    }
}

#[test]
fn reads_that_find_nothing_are_counted_and_change_nothing() {
    let mut partition = Partition::new(SETTINGS);
    partition.create_map(MapId(1), MapSettings::default());
    let bytes = partition.bytes();
    for _ in 0..70_000 {
        let located = partition.locate(MapId(1), b"k");
        assert_eq!(partition.get_located(MapId(1), located, NOW), None);
        assert_eq!(partition.get(MapId(1), b"k", NOW), None);
    }
    assert_eq!((partition.statistics(MapId(1)).gets, partition.bytes()), (140_000, bytes));
    put(&mut partition, MapId(1), b"k");
    partition.get(MapId(1), b"k", NOW);
    let found = partition.statistics(MapId(1));
    assert_eq!((found.gets, found.hits, found.puts), (140_001, 1, 1));
    partition.destroy_map(MapId(1));
    partition.create_map(MapId(1), MapSettings::default());
    assert_eq!((partition.statistics(MapId(1)).gets, partition.bytes()), (0, bytes));
}

#[test]
fn a_map_is_made_by_the_first_change_that_stays_and_no_other() {
    for (change, stays) in [
        (Change::Clear, false),
        (Change::EvictAll, false),
        (Change::Evict { key: b"k" }, false),
        (Change::SetTtl { key: b"k", ttl_ms: 5 }, false),
        (Change::Touch { key: b"k", read_at: NOW }, false),
        (Change::ForceUnlock { key: b"k", reference: 1 }, false),
        (Change::Await { key: b"k" }, false),
        (Change::Unclaim, false),
        (Change::Expire { limit: 9 }, false),
        (Change::ReleaseLocks { client: CLIENT.client }, false),
        (Change::Lock { key: b"k", lease_ms: None, reference: 1 }, true),
        (Change::ClaimAll, true),
        // These are counted in the statistics.
        (Change::Remove { key: b"k" }, true),
        (Change::Put { key: b"k", value: b"v", expiry: Expiry::DEFAULT, mode: PutMode::Replace }, true),
    ] {
        let mut partition = Partition::new(SETTINGS);
        partition.create_map(MapId(1), with_journal());
        let (bytes, what) = (partition.bytes(), format!("{change:?}"));
        apply(&mut partition, MapId(1), change);
        assert_eq!(partition.bytes() > bytes, stays, "{what}");
        partition.destroy_map(MapId(1));
        assert_eq!(partition.bytes(), 0);
    }
}

#[test]
fn a_snapshot_has_declared_maps_as_they_were_whatever_becomes_of_them() {
    let ids: Vec<MapId> = (1..=8).map(MapId).collect();
    for begun in 0..ids.len() {
        let mut partition = Partition::new(SETTINGS);
        for id in &ids {
            partition.create_map(*id, if id.0 % 2 == 0 { with_journal() } else { MapSettings::default() });
            partition.apply_logged(&LogCommand::SetLayout { map: *id, layout: Some(7) }, &NoLayouts, &mut NoObserver);
        }
        put(&mut partition, MapId(4), b"k");
        let (state, bytes) = (partition.logged_state(), partition.bytes());
        assert!(partition.begin_export());
        let (mut import, mut page) = (Import::new(SETTINGS), Vec::new());
        for _ in 0..begun {
            assert!(partition.export_page(&mut page, 40));
            import.page(&page).unwrap();
        }
        for id in &ids {
            match id.0 {
                1 | 8 => put(&mut partition, *id, b"new"),
                2 | 7 => partition.create_map(*id, MapSettings { ttl_default_ms: 9, ..MapSettings::default() }),
                3 => {
                    partition.destroy_map(*id);
                    partition.create_map(*id, with_journal());
                    put(&mut partition, *id, b"new");
                }
                5 => {
                    let command = LogCommand::SetLayout { map: *id, layout: None };
                    partition.apply_logged(&command, &NoLayouts, &mut NoObserver);
                }
                6 => drop(partition.destroy_map(*id)),
                _ => {}
            }
        }
        partition.create_map(MapId(9), MapSettings::default());
        put(&mut partition, MapId(9), b"new");
        loop {
            let more = partition.export_page(&mut page, 40);
            import.page(&page).unwrap();
            if !more {
                break;
            }
        }
        let restored = import.finish(&NoLayouts).unwrap();
        assert_eq!(restored.logged_state(), state);
        assert_eq!(restored.bytes(), bytes, "what was declared alone is so again");
        let of_maps = partition.map_ids().map(|id| partition.statistics(id).bytes_owned);
        assert_eq!(partition.bytes(), of_maps.sum::<usize>());
    }
}
