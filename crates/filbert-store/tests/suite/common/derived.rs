//! Indexes and columns over texts, compared with a plain scan.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests fail as tests do")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use filbert_data::{DataError, FieldType, Value};
use filbert_store::*;

use super::Store;

/// The fields that [`Texts`] reads: the key; the value; its first letter, if it has one; its
/// letters; the number of its letters.
pub(crate) const FINDS_MANY: [bool; 5] = [false, false, false, true, false];

/// Reads entries with texts as keys and values. A value with two b's cannot be read.
pub(crate) struct Texts;

impl EntryReader for Texts {
    fn read<'a>(
        &self,
        key: &'a [u8],
        value: &'a [u8],
        visit: &mut dyn FnMut(usize, Value<'a>),
    ) -> Result<(), DataError> {
        let key = std::str::from_utf8(key).unwrap();
        visit(0, Value::text(key));
        let value = std::str::from_utf8(value).unwrap();
        if value.contains("bb") {
            return Err(DataError::BrokenPath { path: value.to_owned(), reason: "two b's".to_owned() });
        }
        visit(4, Value::Int32(value.len() as i32));
        visit(1, Value::text(value));
        visit(2, value.get(..1).map_or(Value::Null, Value::text));
        visit(
            3,
            Value::Array(value.char_indices().filter_map(|(at, _)| value.get(at..=at)).map(Value::text).collect()),
        );
        Ok(())
    }
}

/// The layouts of the tests. Layout 0 has no indexes and columns.
pub(crate) fn layout(number: u8) -> Option<Layout> {
    let all = [
        IndexLayout::new(IndexId(0), IndexKind::Sorted, vec![1]),
        IndexLayout::new(IndexId(1), IndexKind::Hash, vec![2]),
        IndexLayout::new(IndexId(2), IndexKind::Bitmap, vec![4]),
        IndexLayout::new(IndexId(3), IndexKind::Sorted, vec![3]),
        IndexLayout::new(IndexId(4), IndexKind::Sorted, vec![2, 4]),
        IndexLayout::new(IndexId(5), IndexKind::Hash, vec![0, 3]),
    ];
    let column = |id, field, field_type| ColumnLayout { id: ColumnId(id), field, field_type };
    let columns = vec![
        column(0, 4, FieldType::Integer),
        column(1, 1, FieldType::Varchar),
        column(2, 0, FieldType::Varchar),
        column(3, 2, FieldType::Varchar),
    ];
    let (indexes, columns) = match number {
        1 => (all[..1].to_vec(), vec![]),
        2 => (all[..3].to_vec(), columns),
        3 => (all.to_vec(), vec![]),
        4 => (vec![], columns),
        5 => (all[3..].to_vec(), columns[1..].to_vec()),
        _ => return None,
    };
    Some(Layout::new(Arc::new(Texts), &FINDS_MANY, indexes, columns, 0))
}

fn encoded(value: &Value<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    value.append_index_key(&mut key);
    key
}

/// Whether the keys of an entry with this value are unknown in an index over these fields.
fn is_unread(value: &[u8], fields: &[usize]) -> bool {
    super::text(value).contains("bb") && fields.iter().any(|field| *field != 0)
}

/// The keys of an entry in an index over these fields.
fn keys_of(key: &[u8], value: &[u8], fields: &[usize]) -> BTreeSet<Vec<u8>> {
    let mut by_field: BTreeMap<usize, Vec<Vec<u8>>> = BTreeMap::new();
    let _ = Texts.read(key, value, &mut |field, value| {
        let keys = match &value {
            Value::Array(items) => items.iter().map(encoded).collect(),
            value => vec![encoded(value)],
        };
        by_field.insert(field, keys);
    });
    let mut all = BTreeSet::from([vec![]]);
    for field in fields {
        let values = by_field.get(field).filter(|keys| !keys.is_empty()).cloned().unwrap_or_else(|| vec![vec![0]]);
        all = all.iter().flat_map(|start| values.iter().map(move |value| [start.as_slice(), value].concat())).collect();
    }
    all
}

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn probed(store: &Store, index: IndexId, probe: &Probe) -> Entries {
    let mut found = Vec::new();
    let whole = store.partition.probe(store.map, index, probe, store.now, &mut |key, value| {
        found.push((key.to_vec(), value.to_vec()));
        true
    });
    assert_eq!(whole, Some(true));
    let slots = store.partition.probe_slots(store.map, index, probe).unwrap();
    let mut by_slots = Vec::new();
    store.partition.visit_slots(store.map, &slots, store.now, &mut |key, value| {
        by_slots.push((key.to_vec(), value.to_vec()));
        true
    });
    let mut sorted = found.clone();
    sorted.sort();
    by_slots.sort();
    assert_eq!(by_slots, sorted);
    found
}

/// Checks that indexes find the same entries as a scan.
pub(crate) fn check_indexes(store: &Store, layout: &Layout) {
    let mut scanned: Entries = Vec::new();
    store.partition.for_each(store.map, store.now, &mut |key, value| scanned.push((key.to_vec(), value.to_vec())));
    scanned.sort();
    for index in layout.indexes() {
        let mut by_key: BTreeMap<Vec<u8>, Entries> = BTreeMap::new();
        let is_read = |entry: &&(Vec<u8>, Vec<u8>)| !is_unread(&entry.1, &index.fields);
        let unread: Entries = scanned.iter().filter(|entry| !is_read(entry)).cloned().collect();
        for (key, value) in scanned.iter().filter(is_read) {
            for index_key in keys_of(key, value, &index.fields) {
                by_key.entry(index_key).or_default().push((key.clone(), value.clone()));
            }
        }
        for (index_key, entries) in &by_key {
            let mut found = probed(store, index.id, &Probe::Equal(index_key.clone()));
            found.sort();
            let mut wanted = [entries.as_slice(), &unread].concat();
            wanted.sort();
            assert_eq!(found, wanted, "{index:?} {index_key:?}");
        }
        let mut found = probed(store, index.id, &Probe::Equal(vec![99]));
        found.sort();
        assert_eq!(found, unread);
        let mut all = probed(store, index.id, &Probe::All { descending: false });
        let is_single = !index.fields.contains(&3);
        if index.kind == IndexKind::Sorted && is_single {
            let key = |(key, value): &(Vec<u8>, Vec<u8>)| keys_of(key, value, &index.fields);
            let read_count = scanned.len() - unread.len();
            assert!(all[..read_count].is_sorted_by_key(key));
            let backwards = probed(store, index.id, &Probe::All { descending: true });
            assert!(backwards[..read_count].is_sorted_by(|a, b| key(a) >= key(b)));
            let from_b = std::ops::Bound::Included(encoded(&Value::text("b")));
            let probe = Probe::Range { from: from_b, to: std::ops::Bound::Unbounded, descending: false };
            let is_within =
                |entry: &(Vec<u8>, Vec<u8>)| key(entry).iter().any(|key| *key >= encoded(&Value::text("b")));
            let wanted = scanned.iter().filter(|entry| !is_read(entry) || is_within(entry));
            assert_eq!(probed(store, index.id, &probe).len(), wanted.count());
        }
        all.sort();
        assert_eq!(all, scanned);
        let statistics = store.partition.index_statistics(store.map, index.id).unwrap();
        // Expired entries that are not yet freed are counted, too.
        assert!(statistics.distinct >= by_key.len());
        assert!(statistics.unread >= unread.len());
        assert!(statistics.entries >= by_key.values().map(Vec::len).sum());
        let mut counted = (0, 0);
        store.partition.probe_keys(store.map, index.id, &Probe::All { descending: false }, &mut |_, count| {
            counted = (counted.0 + 1, counted.1 + count);
            true
        });
        assert_eq!(counted, (statistics.distinct, statistics.entries));
    }
    assert_eq!(store.partition.index_statistics(store.map, IndexId(77)), None);
}

/// The row of a live slot: the values of all columns as text.
fn row(columns: &Columns, chunk: &Chunk, slot: usize, wanted: &[ColumnLayout]) -> Vec<String> {
    let is_set = |bits: &[u64]| bits.get(slot / 64).is_some_and(|word| word >> (slot % 64) & 1 == 1);
    let shown = |column: &ColumnLayout| {
        let position = columns.position(column.id).unwrap();
        if is_set(chunk.broken(position)) {
            assert!(!is_set(chunk.validity(position).unwrap()));
            return "broken".to_owned();
        }
        if chunk.validity(position).is_some_and(|validity| !is_set(validity)) {
            return "null".to_owned();
        }
        match chunk.column(position).unwrap() {
            ColumnView::Int32(values) => values[slot].to_string(),
            ColumnView::Text(..) => super::text(chunk.text(position, slot).unwrap()),
            other => panic!("{other:?}"),
        }
    };
    wanted.iter().map(shown).collect()
}

/// Checks that columns contain the same values as a scan. The column with id 2 is the key.
pub(crate) fn check_columns(store: &Store, layout: &Layout) {
    let columns = store.partition.columns(store.map);
    assert_eq!(columns.is_some(), !layout.columns().is_empty());
    let Some(columns) = columns else { return };
    let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let key_column = layout.columns().iter().position(|column| column.id == ColumnId(2)).unwrap();
    let mut counts = vec![(0, 0); layout.columns().len()];
    for chunk in columns.chunks() {
        let live: Vec<usize> = (0..chunk.slots()).filter(|slot| chunk.is_live(*slot)).collect();
        assert_eq!(live.len(), chunk.live_count());
        for slot in live {
            let row = row(&columns, chunk, slot, layout.columns());
            for (count, value) in counts.iter_mut().zip(&row) {
                count.0 += usize::from(value == "null" || value == "broken");
                count.1 += usize::from(value == "broken");
            }
            assert_eq!(rows.insert(row[key_column].clone(), row), None);
        }
    }
    for (position, count) in counts.into_iter().enumerate() {
        let of = |count: &dyn Fn(&Chunk) -> usize| columns.chunks().iter().map(|chunk| count(chunk)).sum::<usize>();
        assert_eq!(of(&|chunk| chunk.null_count(position)), count.0);
        assert_eq!(of(&|chunk| chunk.broken_count(position)), count.1);
    }
    assert_eq!(columns.rows(), rows.len());
    assert_eq!(rows.len(), store.statistics().entries);
    store.partition.for_each(store.map, store.now, &mut |key, value| {
        let mut read: BTreeMap<usize, String> = BTreeMap::new();
        let _ = Texts.read(key, value, &mut |field, value| {
            let shown = match value {
                Value::Null => "null".to_owned(),
                Value::Text(text) => text.into_owned(),
                Value::Int32(number) => number.to_string(),
                other => format!("{other:?}"),
            };
            read.insert(field, shown);
        });
        let wanted: Vec<String> = layout
            .columns()
            .iter()
            .map(|column| read.get(&column.field).cloned().unwrap_or_else(|| "broken".to_owned()))
            .collect();
        assert_eq!(rows.get(&super::text(key)), Some(&wanted));
    });
}
