//! The in-process maps that experiment S compares.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use filbert::{Blob, Config, Filbert, FromBlob, Map, ToBlob};

use crate::distribution::Operation;
use crate::error::{BenchError, Result};
use crate::latency::Latencies;
use crate::requests::{TEXT_OVERHEAD_BYTES, ValueShape, Values, int_key};

/// A map with keys and values that are generated in advance.
pub(super) trait Embedded {
    /// The name in reports.
    fn name(&self) -> &'static str;

    /// Writes every entry once. `put` returns the old value before the next call.
    fn write_all(&mut self, operation: Operation) -> Result<Duration>;

    /// As [`Embedded::write_all`], and records the latency of each call.
    fn write_all_timed(&mut self, operation: Operation, latencies: &mut Latencies) -> Result<()>;

    /// Checks the value of every entry.
    fn check(&mut self) -> Result<()>;
}

/// Creates all maps and fills them once.
pub(super) fn all(entries: u64, characters: usize, seed: u64) -> Result<Vec<Box<dyn Embedded>>> {
    let values = Values::new(ValueShape::Text(characters), seed);
    let mut maps: Vec<Box<dyn Embedded>> = vec![
        Box::new(LockedTable::new(entries, &values)),
        Box::new(Member::<i32, String>::typed(entries, &values)?),
        Box::new(Member::<Blob, Blob>::blobs(entries, &values)?),
    ];
    for map in &mut maps {
        map.write_all(Operation::Set)?;
        map.check()?;
    }
    Ok(maps)
}

/// The reference: the standard library's hash table behind one lock, with serialized keys and
/// values. Like every map it must copy its arguments.
struct LockedTable {
    entries: Vec<(Vec<u8>, Vec<u8>)>,
    table: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
}

impl LockedTable {
    fn new(entries: u64, values: &Values) -> Self {
        let entries = (0..entries as i32).map(|key| (int_key(key).to_vec(), values.of(key))).collect();
        Self { entries, table: Mutex::new(HashMap::new()) }
    }

    #[inline]
    fn put(&self, key: &[u8], value: &[u8]) -> Option<Vec<u8>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_vec(), value.to_vec())
    }

    /// Writes one entry. A set frees the old value, a put reads it.
    #[inline]
    fn write(&self, operation: Operation, key: &[u8], value: &[u8]) {
        let old = self.put(key, value);
        if operation == Operation::Put {
            std::hint::black_box(old);
        }
    }
}

impl Embedded for LockedTable {
    fn name(&self) -> &'static str {
        "locked hash table"
    }

    fn write_all(&mut self, operation: Operation) -> Result<Duration> {
        let begun = Instant::now();
        for (key, value) in &self.entries {
            self.write(operation, key, value);
        }
        Ok(begun.elapsed())
    }

    fn write_all_timed(&mut self, operation: Operation, latencies: &mut Latencies) -> Result<()> {
        for (key, value) in &self.entries {
            let begun = Instant::now();
            self.write(operation, key, value);
            latencies.record(begun.elapsed());
        }
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let right = self.entries.iter().all(|(key, value)| table.get(key) == Some(value));
        if right && table.len() == self.entries.len() {
            return Ok(());
        }
        Err(BenchError::Wrong {
            target: self.name().to_owned(),
            what: format!("{} entries, expected {} with their values", table.len(), self.entries.len()),
        })
    }
}

/// An embedded Filbert member with a map.
struct Member<K, V> {
    name: &'static str,
    entries: Vec<(K, V)>,
    map: Map<K, V>,
    /// Stops when it is dropped.
    _filbert: Filbert,
}

impl Member<i32, String> {
    /// The typed API as a program uses it: each call serializes its key and value.
    fn typed(entries: u64, values: &Values) -> Result<Self> {
        let text = |key| {
            let blob = values.of(key);
            String::from_utf8_lossy(blob.get(TEXT_OVERHEAD_BYTES..).unwrap_or_default()).into_owned()
        };
        Self::start("filbert", (0..entries as i32).map(|key| (key, text(key))).collect())
    }
}

impl Member<Blob, Blob> {
    /// Keys and values are serialized in advance, as in the locked table.
    fn blobs(entries: u64, values: &Values) -> Result<Self> {
        let entry = |key| (Blob::from(int_key(key).to_vec()), Blob::from(values.of(key)));
        Self::start("filbert, blobs", (0..entries as i32).map(entry).collect())
    }
}

impl<K, V> Member<K, V> {
    fn start(name: &'static str, entries: Vec<(K, V)>) -> Result<Self> {
        let filbert = Filbert::start(Config::default()).map_err(|error| failed(name, &error))?;
        let map = filbert.map("bench-s").map_err(|error| failed(name, &error))?;
        Ok(Self { name, entries, map, _filbert: filbert })
    }
}

fn failed(name: &str, error: &filbert::Error) -> BenchError {
    BenchError::Program { program: format!("embedded {name}"), what: error.to_string() }
}

impl<K, V> Member<K, V>
where
    K: ToBlob + Borrow<K>,
    V: ToBlob + FromBlob + Borrow<V>,
{
    #[inline]
    fn write(&self, operation: Operation, key: &K, value: &V) -> std::result::Result<(), filbert::Error> {
        match operation {
            Operation::Put => self.map.put(key, value).map(|old| drop(std::hint::black_box(old))),
            Operation::Get | Operation::Set => self.map.set(key, value),
        }
    }
}

impl<K, V> Embedded for Member<K, V>
where
    K: ToBlob + Borrow<K>,
    V: ToBlob + FromBlob + Borrow<V> + PartialEq + Debug,
{
    fn name(&self) -> &'static str {
        self.name
    }

    fn write_all(&mut self, operation: Operation) -> Result<Duration> {
        let begun = Instant::now();
        for (key, value) in &self.entries {
            self.write(operation, key, value).map_err(|error| failed(self.name, &error))?;
        }
        Ok(begun.elapsed())
    }

    fn write_all_timed(&mut self, operation: Operation, latencies: &mut Latencies) -> Result<()> {
        for (key, value) in &self.entries {
            let begun = Instant::now();
            self.write(operation, key, value).map_err(|error| failed(self.name, &error))?;
            latencies.record(begun.elapsed());
        }
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        for (key, value) in &self.entries {
            let found = self.map.get(key).map_err(|error| failed(self.name, &error))?;
            if found.as_ref() != Some(value) {
                let what = format!("an entry has the value {found:?}, expected {value:?}");
                return Err(BenchError::Wrong { target: self.name.to_owned(), what });
            }
        }
        if self.map.len() == self.entries.len() {
            return Ok(());
        }
        let what = format!("{} entries, expected {}", self.map.len(), self.entries.len());
        Err(BenchError::Wrong { target: self.name.to_owned(), what })
    }
}
