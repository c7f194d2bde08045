//! Going through a map of any size with the memory of two batches.

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

/// Entries that one request asks for, unless told otherwise: some tens of kilobytes for small entries.
const BATCH_DEFAULT: usize = 1000;

/// Where a partition's iteration stands, in the words of the protocol: table index and table size. Opaque to clients.
type Pointers = Vec<(i32, i32)>;

/// One batch, and where the next begins.
type Batch<T> = (Pointers, Vec<T>);

/// Asks for a batch of a partition: from where on, and how many items.
type Fetch<T> = Box<dyn Fn(PartitionId, &[(i32, i32)], i32) -> Call<Batch<T>> + Send + Sync>;

/// Goes through a map partition by partition. An entry that is there from begin to end is seen exactly once; one that
/// is put or removed meanwhile may be seen or not.
///
/// The next batch is asked for while the last is being used.
pub struct Cursor<T> {
    fetch: Fetch<T>,
    batch: i32,
    partition: u32,
    partition_count: u32,
    pending: Option<Call<Batch<T>>>,
    ready: vec::IntoIter<T>,
}

impl<T> Cursor<T> {
    /// Asks for `entries` entries at a time, 1000 by default.
    #[must_use]
    pub fn with_batch(mut self, entries: usize) -> Self {
        self.batch = i32::try_from(entries.max(1)).unwrap_or(i32::MAX);
        self
    }

    /// The next item; none at the end. After an error the partition at hand is left out.
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

    /// All that is left.
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
    /// All keys, a batch at a time.
    pub fn iter_keys(&self) -> Cursor<K> {
        let map = self.clone();
        self.cursor(Box::new(move |partition, pointers, batch| {
            let request = map::fetch_keys::Request { name: &map.name, iteration_pointers: pointers.to_vec(), batch };
            Call::send(&map.client.inner, Target::Partition(partition), &request, keys)
        }))
    }

    /// All entries, a batch at a time.
    pub fn iter(&self) -> Cursor<(K, V)> {
        let map = self.clone();
        self.cursor(Box::new(move |partition, pointers, batch| {
            let request = map::fetch_entries::Request { name: &map.name, iteration_pointers: pointers.to_vec(), batch };
            Call::send(&map.client.inner, Target::Partition(partition), &request, entries)
        }))
    }

    /// What a projection makes of each entry that a predicate finds, a batch at a time: in no order, without the limits of
    /// a single message, and with the memory of two batches.
    ///
    /// # Errors
    ///
    /// Projection or predicate cannot be written.
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
