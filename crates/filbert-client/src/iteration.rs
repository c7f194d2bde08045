//! Iteration over a map of any size, with at most two batches in memory.

use std::vec;

use filbert_data::{
    FromBlob, PartitionId, ToBlob,
    criteria::{Predicate, Projection},
};
use filbert_wire::{Message, table::map};

use crate::{
    Call, ClientError, Map,
    bulk::{list, pairs},
    inner::Target,
    map::value,
};

/// The default number of entries per request: some tens of kilobytes for small entries.
const BATCH_DEFAULT: usize = 1000;

/// The position of the iteration in a partition, as in the protocol: pairs of table index and table
/// size. Opaque to clients.
type Pointers = Vec<(i32, i32)>;

/// One batch, and the position of the next batch.
type Batch<T> = (Pointers, Vec<T>);

/// Requests a batch of a partition. Its arguments are the partition, the position and the number of
/// items.
type Fetch<T> = Box<dyn Fn(PartitionId, &[(i32, i32)], i32) -> Call<Batch<T>> + Send + Sync>;

/// Iterates over a map, partition by partition. An entry that exists during the whole iteration is
/// returned exactly once; an entry that is added or removed meanwhile may be returned or not.
///
/// The next batch is requested while the current one is consumed.
pub struct Cursor<T> {
    fetch: Fetch<T>,
    batch: i32,
    partition: u32,
    partition_count: u32,
    pending: Option<Call<Batch<T>>>,
    ready: vec::IntoIter<T>,
}

impl<T> Cursor<T> {
    /// Sets the number of entries per request, at least 1. Default: 1000.
    #[must_use]
    pub fn with_batch(mut self, entries: usize) -> Self {
        self.batch = i32::try_from(entries.max(1)).unwrap_or(i32::MAX);
        self
    }

    /// Returns the next item, or `None` at the end. After an error the rest of the current
    /// partition is skipped.
    pub async fn next(&mut self) -> Option<Result<T, ClientError>> {
        loop {
            if let Some(item) = self.ready.next() {
                return Some(Ok(item));
            }
            let call = match self.pending.as_mut() {
                Some(call) => call,
                None if self.partition < self.partition_count => {
                    self.pending.insert((self.fetch)(PartitionId(self.partition), &[(i32::MAX, -1)], self.batch))
                }
                None => return None,
            };
            let result = call.await;
            self.pending = None;
            match result {
                Ok((pointers, items)) => {
                    self.ready = items.into_iter();
                    self.ask_on(&pointers);
                }
                Err(error) => {
                    self.partition += 1;
                    return Some(Err(error));
                }
            }
        }
    }

    /// Returns all remaining items.
    ///
    /// # Errors
    ///
    /// A request fails.
    pub async fn collect(mut self) -> Result<Vec<T>, ClientError> {
        let mut items = Vec::new();
        while let Some(item) = self.next().await {
            items.push(item?);
        }
        Ok(items)
    }

    fn ask_on(&mut self, pointers: &[(i32, i32)]) {
        let is_over = pointers.last().is_none_or(|(index, _)| *index < 0);
        if !is_over {
            self.pending = Some((self.fetch)(PartitionId(self.partition), pointers, self.batch));
            return;
        }
        self.partition += 1;
        if self.partition < self.partition_count {
            self.pending = Some((self.fetch)(PartitionId(self.partition), &[(i32::MAX, -1)], self.batch));
        }
    }
}

fn keys<K: FromBlob>(answer: &Message<'_>) -> Result<Batch<K>, ClientError> {
    let answer = answer.decode::<map::fetch_keys::Response<'_>>()?;
    Ok((answer.iteration_pointers, list(&answer.keys)?))
}

fn entries<K: FromBlob, V: FromBlob>(answer: &Message<'_>) -> Result<Batch<(K, V)>, ClientError> {
    let answer = answer.decode::<map::fetch_entries::Response<'_>>()?;
    Ok((answer.iteration_pointers, pairs(&answer.entries)?))
}

fn projected<T: FromBlob>(answer: &Message<'_>) -> Result<Batch<Option<T>>, ClientError> {
    let answer = answer.decode::<map::fetch_with_query::Response<'_>>()?;
    let items = answer.results.into_iter().map(value).collect::<Result<_, _>>()?;
    Ok((answer.iteration_pointers, items))
}

impl<K: ToBlob + FromBlob + 'static, V: ToBlob + FromBlob + 'static> Map<K, V> {
    /// Iterates over all keys, in batches.
    pub fn iter_keys(&self) -> Cursor<K> {
        let map = self.clone();
        self.cursor(Box::new(move |partition, pointers, batch| {
            let request = map::fetch_keys::Request { name: &map.name, iteration_pointers: pointers.to_vec(), batch };
            Call::send(&map.client.inner, Target::Partition(partition), &request, keys)
        }))
    }

    /// Iterates over all entries, in batches.
    pub fn iter(&self) -> Cursor<(K, V)> {
        let map = self.clone();
        self.cursor(Box::new(move |partition, pointers, batch| {
            let request = map::fetch_entries::Request { name: &map.name, iteration_pointers: pointers.to_vec(), batch };
            Call::send(&map.client.inner, Target::Partition(partition), &request, entries)
        }))
    }

    /// Iterates over the projections of the entries that match a predicate, in batches and in no
    /// particular order. The result may be larger than a single message; at most two batches are in
    /// memory.
    ///
    /// # Errors
    ///
    /// The projection or the predicate cannot be serialized, or is too large.
    pub fn iter_projected<T: FromBlob + 'static>(
        &self,
        projection: &Projection,
        predicate: &Predicate,
    ) -> Result<Cursor<Option<T>>, ClientError> {
        let map = self.clone();
        let projection = self.serialize(map::fetch_with_query::ID, projection)?;
        let predicate = self.serialize(map::fetch_with_query::ID, predicate)?;
        Ok(self.cursor(Box::new(move |partition, pointers, batch| {
            let request = map::fetch_with_query::Request {
                name: &map.name,
                iteration_pointers: pointers.to_vec(),
                batch,
                projection: &projection,
                predicate: &predicate,
            };
            Call::send(&map.client.inner, Target::Partition(partition), &request, projected)
        })))
    }

    fn cursor<T>(&self, fetch: Fetch<T>) -> Cursor<T> {
        Cursor {
            fetch,
            batch: BATCH_DEFAULT as i32,
            partition: 0,
            partition_count: self.client.partition_count(),
            pending: None,
            ready: Vec::new().into_iter(),
        }
    }
}
