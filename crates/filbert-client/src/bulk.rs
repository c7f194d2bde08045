//! Operations on many keys of a map at once.

use std::collections::HashMap;

use filbert_data::{FromBlob, PartitionId, ToBlob};
use filbert_wire::{Data, table::map};

use crate::{Call, ClientError, Map, SerializesAs, inner::Target};

/// A serialized key and value.
type Entry = (Vec<u8>, Vec<u8>);

impl<K: ToBlob + FromBlob, V: ToBlob + FromBlob> Map<K, V> {
    /// Returns the entries of these keys; absent keys are omitted. Sends one request per partition,
    /// all at once.
    ///
    /// # Errors
    ///
    /// One of the requests fails.
    pub async fn get_all<'k, Q: SerializesAs<K> + ?Sized + 'k>(
        &self,
        keys: impl IntoIterator<Item = &'k Q>,
    ) -> Result<Vec<(K, V)>, ClientError> {
        let mut by_partition: HashMap<PartitionId, Vec<Vec<u8>>> = HashMap::new();
        for key in keys {
            let key = self.serialize(map::get_all::ID, key)?;
            by_partition.entry(self.client.inner.partition_of(&key)).or_default().push(key);
        }
        let sent = by_partition.iter().map(|(partition, keys)| {
            let keys = keys.iter().map(Vec::as_slice).collect();
            let request = map::get_all::Request { name: &self.name, keys };
            Call::send(&self.client.inner, Target::Partition(*partition), &request, |answer| {
                pairs(&answer.decode::<map::get_all::Response<'_>>()?.response)
            })
        });
        // All requests are sent before the first response is awaited.
        let sent: Vec<Call<Vec<(K, V)>>> = sent.collect();
        let mut entries = Vec::new();
        for call in sent {
            entries.extend(call.await?);
        }
        Ok(entries)
    }

    /// Stores these entries. Sends one request per partition, all at once. The operation is not
    /// atomic, and the order of the partitions is undefined.
    ///
    /// # Errors
    ///
    /// One of the requests fails. The other requests may have been executed.
    pub async fn put_all<Q, W>(&self, entries: impl IntoIterator<Item = (Q, W)>) -> Result<(), ClientError>
    where
        Q: SerializesAs<K>,
        W: SerializesAs<V>,
    {
        let mut by_partition: HashMap<PartitionId, Vec<Entry>> = HashMap::new();
        for (key, value) in entries {
            let key = self.serialize(map::put_all::ID, &key)?;
            let value = self.serialize(map::put_all::ID, &value)?;
            by_partition.entry(self.client.inner.partition_of(&key)).or_default().push((key, value));
        }
        let sent = by_partition.iter().map(|(partition, entries)| {
            let entries = entries.iter().map(|(key, value)| (key.as_slice(), value.as_slice())).collect();
            let request = map::put_all::Request { name: &self.name, entries, trigger_map_loader: true };
            Call::send(&self.client.inner, Target::Partition(*partition), &request, |answer| {
                Ok(answer.decode::<map::put_all::Response>().map(drop)?)
            })
        });
        let sent: Vec<Call<()>> = sent.collect();
        let mut result = Ok(());
        for call in sent {
            result = result.and(call.await);
        }
        result
    }

    /// Returns all keys in one message. For a large map use [`Map::iter_keys`].
    pub fn key_set(&self) -> Call<Vec<K>> {
        self.on_any(&map::key_set::Request { name: &self.name }, |answer| {
            list(&answer.decode::<map::key_set::Response<'_>>()?.response)
        })
    }

    /// Returns all values in one message. For a large map use [`Map::iter`].
    pub fn values(&self) -> Call<Vec<V>> {
        self.on_any(&map::values::Request { name: &self.name }, |answer| {
            list(&answer.decode::<map::values::Response<'_>>()?.response)
        })
    }

    /// Returns all entries in one message. For a large map use [`Map::iter`].
    pub fn entry_set(&self) -> Call<Vec<(K, V)>> {
        self.on_any(&map::entry_set::Request { name: &self.name }, |answer| {
            pairs(&answer.decode::<map::entry_set::Response<'_>>()?.response)
        })
    }
}

pub(crate) fn list<T: FromBlob>(items: &[Data<'_>]) -> Result<Vec<T>, ClientError> {
    Ok(items.iter().map(|item| T::from_blob(item)).collect::<Result<_, _>>()?)
}

pub(crate) fn pairs<K: FromBlob, V: FromBlob>(entries: &[(Data<'_>, Data<'_>)]) -> Result<Vec<(K, V)>, ClientError> {
    let read = entries.iter().map(|(key, value)| Ok((K::from_blob(key)?, V::from_blob(value)?)));
    read.collect()
}
