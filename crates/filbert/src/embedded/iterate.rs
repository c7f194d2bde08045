//! Iteration over a map: all entries at once, or entry by entry while the map changes.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;

use filbert_data::{FromBlob, PartitionId};
use filbert_grid::Cursor;

use super::core::Core;
use super::{Error, Map};

/// The number of entries that an iteration copies at once: large enough to amortize the cost of the
/// partition lock, small enough to hold the lock for only some ten microseconds.
const BATCH_ENTRIES: usize = 128;

impl<K: FromBlob, V: FromBlob> Map<K, V> {
    /// Iterates over the entries, in an unspecified order. The iterator copies a batch of entries
    /// at a time and holds no lock between batches. An entry that exists throughout the iteration
    /// is returned once. An entry that is added or removed meanwhile may or may not be returned.
    ///
    /// ```
    /// # use filbert::{Config, Filbert};
    /// # let filbert = Filbert::start(Config::default())?;
    /// let map = filbert.map::<i32, String>("names")?;
    /// map.set(&1, "one")?;
    /// map.set(&2, "two")?;
    /// let keys = map.iter().map(|entry| entry.map(|(key, _)| key));
    /// let mut keys = keys.collect::<Result<Vec<_>, _>>()?;
    /// keys.sort();
    /// assert_eq!(keys, [1, 2]);
    /// # Ok::<(), filbert::Error>(())
    /// ```
    pub fn iter(&self) -> Iter<K, V> {
        Iter {
            core: self.core.clone(),
            partition: 0,
            cursor: Cursor::START,
            batch: VecDeque::new(),
            types: PhantomData,
        }
    }

    /// Returns all entries.
    ///
    /// # Errors
    /// [`Error::Data`]: an entry is not of the map's types.
    pub fn entries(&self) -> Result<Vec<(K, V)>, Error> {
        self.iter().collect()
    }
}

impl<K: FromBlob, V> Map<K, V> {
    /// Returns all keys.
    ///
    /// # Errors
    /// [`Error::Data`]: a key is not a `K`.
    pub fn keys(&self) -> Result<Vec<K>, Error> {
        collect(&self.core, |core, key, _| core.key(key))
    }
}

impl<K, V: FromBlob> Map<K, V> {
    /// Returns all values.
    ///
    /// # Errors
    /// [`Error::Data`]: a value is not a `V`.
    pub fn values(&self) -> Result<Vec<V>, Error> {
        collect(&self.core, |core, _, value| core.value(value))
    }
}

fn collect<T>(core: &Core, read: impl Fn(&Core, &[u8], &[u8]) -> Result<T, Error>) -> Result<Vec<T>, Error> {
    let mut items = Ok(Vec::new());
    core.map.for_each(&mut |key, value| {
        if let Ok(read_so_far) = &mut items {
            match read(core, key, value) {
                Ok(item) => read_so_far.push(item),
                Err(error) => items = Err(error),
            }
        }
    });
    items
}

/// Key and value in stored form.
type Entry = (Box<[u8]>, Box<[u8]>);

/// An iterator over the entries of a map; see [`Map::iter`].
pub struct Iter<K, V> {
    core: Core,
    partition: u32,
    cursor: Cursor,
    batch: VecDeque<Entry>,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K, V> Iter<K, V> {
    fn fill(&mut self) {
        while self.batch.is_empty() && self.partition < self.core.grid.partition_count() {
            let batch = &mut self.batch;
            let next =
                self.core.map.fetch(PartitionId(self.partition), self.cursor, BATCH_ENTRIES, &mut |key, value| {
                    batch.push_back((key.into(), value.into()));
                });
            match next {
                Some(cursor) => self.cursor = cursor,
                None => {
                    self.partition += 1;
                    self.cursor = Cursor::START;
                }
            }
        }
    }
}

impl<K: FromBlob, V: FromBlob> Iterator for Iter<K, V> {
    type Item = Result<(K, V), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.fill();
        let (key, value) = self.batch.pop_front()?;
        Some(self.core.key(&key).and_then(|key| Ok((key, self.core.value(&value)?))))
    }
}

impl<K, V> fmt::Debug for Iter<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter").field("map", &self.core.map.name()).field("partition", &self.partition).finish()
    }
}
