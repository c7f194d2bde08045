//! Going through a map: all at once, or entry by entry while it changes.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;

use filbert_data::{FromBlob, PartitionId};
use filbert_grid::Cursor;

use super::core::Core;
use super::{Error, Map};

/// Entries that an iteration copies at once. Enough to make the partition's lock cheap, little enough to hold it for
/// some ten microseconds only.
const BATCH_ENTRIES: usize = 128;

impl<K: FromBlob, V: FromBlob> Map<K, V> {
    /// An iteration over the entries, in no order that means anything. It copies some entries at a time and holds no
    /// lock between: an entry that is there throughout comes once, one that comes or goes meanwhile may or may not.
    ///
    /// ```
    /// # use filbert::{Config, Filbert};
    /// # let filbert = Filbert::start(Config::default())?;
    /// let map = filbert.map::<i32, String>("names")?;
    /// map.set(&1, "one")?;
    /// map.set(&2, "two")?;
    /// let mut keys = map.iter().map(|entry| entry.map(|(key, _)| key)).collect::<Result<Vec<_>, _>>()?;
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

    /// All entries.
    ///
    /// # Errors
    /// [`Error::Data`]: an entry is not of the map's types.
    pub fn entries(&self) -> Result<Vec<(K, V)>, Error> {
        self.iter().collect()
    }
}

impl<K: FromBlob, V> Map<K, V> {
    /// All keys.
    ///
    /// # Errors
    /// [`Error::Data`]: a key is not a `K`.
    pub fn keys(&self) -> Result<Vec<K>, Error> {
        collect(&self.core, |core, key, _| core.key(key))
    }
}

impl<K, V: FromBlob> Map<K, V> {
    /// All values.
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

/// Key and value as they are stored.
type Entry = (Box<[u8]>, Box<[u8]>);

/// An iteration over a map's entries; see [`Map::iter`].
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
