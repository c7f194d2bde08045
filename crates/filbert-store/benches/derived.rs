//! The costs of indexes and columns for writers, and their benefits for readers compared with a
//! scan of the records.
//!
//! `cargo bench --profile release -p filbert-store --bench derived`. One partition of 4,000 entries
//! (as many as each of 271 partitions has of a map of 1,000,000), with JSON values of about 100
//! bytes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs, reason = "a bench may panic and has no users")]

use std::hint::black_box;
use std::ops::Bound;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use filbert_data::compact::{Schema, SchemaId};
use filbert_data::{FieldPath, FieldReader, FieldType, Formats, Json, PartitionId, SchemaSource, ToBlob, Value};
use filbert_store::{
    Caller, Change, ColumnId, ColumnLayout, ColumnView, Command, Expiry, IndexId, IndexKind, IndexLayout, Layout,
    MapId, MapSettings, Millis, NoObserver, Partition, PartitionSettings, Probe, PutMode,
};

const MAP: MapId = MapId(0);
const ENTRIES: i32 = 4_000;
const NOW: Millis = Millis(1_700_000_000_000);

struct NoSchemas;

impl SchemaSource for NoSchemas {
    fn schema(&self, _: SchemaId) -> Option<Arc<Schema>> {
        None
    }
}

fn layout(indexes: &[IndexKind], columns: bool) -> Option<Arc<Layout>> {
    if indexes.is_empty() && !columns {
        return None;
    }
    let fields = ["age", "city", "salary"].map(|field| FieldPath::parse(field).unwrap()).to_vec();
    let formats = Formats { schemas: Arc::new(NoSchemas), key_layout: None, value_layout: None };
    let reader = Arc::new(FieldReader::new(fields, formats));
    let indexes = (0..).zip(indexes).map(|(id, kind)| IndexLayout::new(IndexId(id), *kind, vec![0]));
    let column = |field: usize, field_type| ColumnLayout { id: ColumnId(field as u32), field, field_type };
    let columns = match columns {
        true => vec![column(0, FieldType::BigInt), column(1, FieldType::Varchar), column(2, FieldType::Double)],
        false => Vec::new(),
    };
    Some(Arc::new(Layout::new(reader, &[false; 3], indexes.collect(), columns, 0)))
}

fn value(number: i32) -> Vec<u8> {
    let text = format!(
        r#"{{"name": "person {number}", "age": {number}, "address": "somewhere", "city": "a city far {}", "salary": {}.5}}"#,
        number % 100,
        number * 3
    );
    Json::new(text).to_blob().unwrap().to_vec()
}

fn put(partition: &mut Partition, key: &[u8], value: &[u8]) {
    let change = Change::Put { key, value, expiry: Expiry::DEFAULT, mode: PutMode::Set };
    let command = Command { map: MAP, now: NOW, caller: Caller::default(), change };
    black_box(partition.apply(&command, &mut NoObserver));
}

fn key(number: i32) -> Vec<u8> {
    number.to_blob().unwrap().to_vec()
}

fn filled(layout: Option<Arc<Layout>>) -> Partition {
    let mut partition = Partition::new(PartitionSettings { id: PartitionId(0), hash_seed: 1, exact_read_times: false });
    partition.create_map(MAP, MapSettings::default());
    for number in 0..ENTRIES {
        put(&mut partition, &key(number), &value(number));
    }
    partition.set_layout(MAP, layout);
    partition
}

fn encoded(value: &Value<'_>) -> Vec<u8> {
    let mut key = Vec::new();
    value.append_index_key(&mut key);
    key
}

fn writes(c: &mut Criterion) {
    let mut group = c.benchmark_group("set of an entry of the map, another value");
    let values: Vec<_> = (0..2).map(|round| (0..ENTRIES).map(|n| value(n + round)).collect::<Vec<_>>()).collect();
    let keys: Vec<_> = (0..ENTRIES).map(key).collect();
    for (name, indexes, columns) in [
        ("neither", vec![], false),
        ("hash index", vec![IndexKind::Hash], false),
        ("sorted index", vec![IndexKind::Sorted], false),
        ("three columns", vec![], true),
        ("both indexes, three columns", vec![IndexKind::Hash, IndexKind::Sorted], true),
    ] {
        let mut partition = filled(layout(&indexes, columns));
        let mut at = 0;
        group.bench_function(name, |b| {
            b.iter(|| {
                at += 617;
                let (number, round) = (at % keys.len(), at / keys.len() % 2);
                put(&mut partition, &keys[number], &values[round][number]);
            })
        });
    }
    group.finish();
    let mut partition = filled(None);
    let all = layout(&[IndexKind::Hash, IndexKind::Sorted], true);
    c.bench_function("4,000 entries: building two indexes and three columns", |b| {
        b.iter(|| {
            partition.set_layout(MAP, all.clone());
            partition.set_layout(MAP, None);
        })
    });
}

fn reads(c: &mut Criterion) {
    let partition = filled(layout(&[IndexKind::Hash, IndexKind::Sorted], true));
    let mut group = c.benchmark_group("lookup");
    let mut number = 0;
    let mut probe = |name: &str, index: u32, width: Option<i32>| {
        group.bench_function(name, |b| {
            b.iter(|| {
                number = (number + 617) % ENTRIES;
                let probe = match width {
                    None => Probe::Equal(encoded(&Value::Int32(number))),
                    Some(width) => Probe::Range {
                        from: Bound::Included(encoded(&Value::Int32(number))),
                        to: Bound::Excluded(encoded(&Value::Int32(number + width))),
                        descending: false,
                    },
                };
                let mut bytes = 0;
                partition.probe(MAP, IndexId(index), &probe, NOW, &mut |_, value| {
                    bytes += value.len();
                    true
                });
                bytes
            })
        });
    };
    probe("hash index, equal", 0, None);
    probe("sorted index, equal", 1, None);
    probe("sorted index, a range of 100", 1, Some(100));
    let absent = Probe::Equal(encoded(&Value::text("absent")));
    group.bench_function("hash index, absent", |b| {
        b.iter(|| partition.probe(MAP, IndexId(0), black_box(&absent), NOW, &mut |_, _| true))
    });
    group.finish();

    let mut group = c.benchmark_group("sum over 4,000 entries");
    group.bench_function("column", |b| {
        b.iter(|| {
            let columns = partition.columns(MAP).unwrap();
            let mut total = 0;
            for chunk in columns.chunks() {
                let Some(ColumnView::Int64(values)) = chunk.column(0) else { return 0 };
                total += values.iter().sum::<i64>();
            }
            total
        })
    });
    let formats = Formats { schemas: Arc::new(NoSchemas), key_layout: None, value_layout: None };
    let reader = FieldReader::new(vec![FieldPath::parse("age").unwrap()], formats);
    group.bench_function("records", |b| {
        b.iter(|| {
            let mut total = 0;
            partition.for_each(MAP, NOW, &mut |key, value| {
                if let Ok(Value::Int64(number)) = reader.read_one(key, value) {
                    total += number;
                }
            });
            total
        })
    });
    group.finish();
}

criterion_group!(benches, writes, reads);
criterion_main!(benches);
