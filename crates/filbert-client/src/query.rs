//! Queries of a map: predicates, aggregations, projections and indexes.

use filbert_data::criteria::{Aggregator, Predicate, Projection};
use filbert_data::{FromBlob, ToBlob};
use filbert_wire::{
    Message,
    structure::{BTreeIndexConfig, BitmapIndexOptions, Capacity, IndexConfig, MemoryTierConfig},
    table::map,
};

use crate::{
    Call, ClientError, Map,
    bulk::{list, pairs},
    call::DecodeFn,
    inner::Target,
    map::value,
};

/// Hazelcast's numbers of memory units.
const KILOBYTES: i32 = 1;
const MEGABYTES: i32 = 2;

/// The definition of an index on attributes of a map's entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    name: Option<String>,
    kind: i32,
    attributes: Vec<String>,
    unique_key: Option<(String, UniqueKey)>,
}

/// The conversion of an entry's unique key to the number that a bitmap index stores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UniqueKey {
    /// Values are numbered in the order of their insertion.
    #[default]
    Object = 0,
    /// Integers are used directly; other values are numbered.
    Long = 1,
    /// Integers are used directly; other values are errors.
    Raw = 2,
}

impl Index {
    /// A sorted index, for range and equality predicates. Attributes are paths such as
    /// `address.city`; several attributes form a composite index.
    pub fn sorted<A: Into<String>>(attributes: impl IntoIterator<Item = A>) -> Self {
        Self::new(0, attributes)
    }

    /// A hash index, for equality predicates.
    pub fn hash<A: Into<String>>(attributes: impl IntoIterator<Item = A>) -> Self {
        Self::new(1, attributes)
    }

    /// A bitmap index, for attributes with few distinct values. `unique_key` is an attribute with a
    /// different value in each entry, usually `__key`.
    pub fn bitmap(attribute: &str, unique_key: &str, transformation: UniqueKey) -> Self {
        Self { unique_key: Some((unique_key.to_owned(), transformation)), ..Self::new(2, [attribute]) }
    }

    fn new<A: Into<String>>(kind: i32, attributes: impl IntoIterator<Item = A>) -> Self {
        Self { name: None, kind, attributes: attributes.into_iter().map(Into::into).collect(), unique_key: None }
    }

    /// Sets the name of the index. By default the member derives the name from the map name, the
    /// kind of the index and the attributes.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }
}

/// Serializes a value. On an error, returns a failed call from the enclosing function.
macro_rules! blob {
    ($map:expr, $message:ident, $value:expr, $decode:expr) => {
        match $map.serialize(map::$message::ID, $value) {
            Ok(bytes) => bytes,
            Err(error) => return Call::failed::<map::$message::Request<'_>>(&$map.client.inner, error, $decode),
        }
    };
}

impl<K, V> Map<K, V> {
    /// Returns the target of a query. A partition predicate goes to the owner of the partition, any
    /// other predicate to any member.
    pub(crate) fn predicate_target(&self, predicate: Option<&Predicate>) -> Target {
        match predicate {
            Some(Predicate::Partition { key, .. }) => Target::Partition(self.client.inner.partition_of(key)),
            _ => Target::Any,
        }
    }

    /// Returns the result of an aggregator over all entries, or over the entries that match a
    /// predicate; `None` if the aggregator has no result, such as the maximum of no entries. The
    /// aggregator determines `T`: a sum of integers is an `i64`, an entry an
    /// [`Entry`](filbert_data::criteria::Entry), distinct values a
    /// [`Distinct`](filbert_data::criteria::Distinct). A [`Blob`](crate::Blob) can hold every
    /// result.
    pub fn aggregate<T: FromBlob>(&self, aggregator: &Aggregator, predicate: Option<&Predicate>) -> Call<Option<T>> {
        let target = self.predicate_target(predicate);
        let Some(predicate) = predicate else {
            let decode: DecodeFn<Option<T>> = |answer| value(answer.decode::<map::aggregate::Response<'_>>()?.response);
            let aggregator = blob!(self, aggregate, aggregator, decode);
            let request = map::aggregate::Request { name: &self.name, aggregator: &aggregator };
            return self.on_any(&request, decode);
        };
        let decode: DecodeFn<Option<T>> =
            |answer| value(answer.decode::<map::aggregate_with_predicate::Response<'_>>()?.response);
        let aggregator = blob!(self, aggregate_with_predicate, aggregator, decode);
        let predicate = blob!(self, aggregate_with_predicate, predicate, decode);
        let request =
            map::aggregate_with_predicate::Request { name: &self.name, aggregator: &aggregator, predicate: &predicate };
        Call::send(&self.client.inner, target, &request, decode)
    }

    /// Returns the projections of all entries, or of the entries that match a predicate. The
    /// projection of one attribute is a value of its type, the projection of several attributes a
    /// [`List`](crate::List). All results arrive in one message.
    pub fn project<T: FromBlob>(&self, projection: &Projection, predicate: Option<&Predicate>) -> Call<Vec<Option<T>>> {
        let target = self.predicate_target(predicate);
        let Some(predicate) = predicate else {
            let decode: DecodeFn<Vec<Option<T>>> =
                |answer| answer.decode::<map::project::Response<'_>>()?.response.into_iter().map(value).collect();
            let projection = blob!(self, project, projection, decode);
            return self.on_any(&map::project::Request { name: &self.name, projection: &projection }, decode);
        };
        let decode: DecodeFn<Vec<Option<T>>> = |answer| {
            answer.decode::<map::project_with_predicate::Response<'_>>()?.response.into_iter().map(value).collect()
        };
        let projection = blob!(self, project_with_predicate, projection, decode);
        let predicate = blob!(self, project_with_predicate, predicate, decode);
        let request =
            map::project_with_predicate::Request { name: &self.name, projection: &projection, predicate: &predicate };
        Call::send(&self.client.inner, target, &request, decode)
    }

    /// Removes the entries that match a predicate.
    pub fn remove_all_with(&self, predicate: &Predicate) -> Call<()> {
        let decode: DecodeFn<()> = |answer| Ok(answer.decode::<map::remove_all::Response>().map(drop)?);
        let target = self.predicate_target(Some(predicate));
        let predicate = blob!(self, remove_all, predicate, decode);
        let request = map::remove_all::Request { name: &self.name, predicate: &predicate };
        Call::send(&self.client.inner, target, &request, decode)
    }

    /// Creates an index and adds the existing entries to it. Does nothing if the index exists.
    pub fn add_index(&self, index: &Index) -> Call<()> {
        let index_config = IndexConfig {
            name: index.name.as_deref(),
            kind: index.kind,
            attributes: index.attributes.iter().map(String::as_str).collect(),
            bitmap_index_options: index.unique_key.as_ref().map(|(unique_key, transformation)| BitmapIndexOptions {
                unique_key,
                unique_key_transformation: *transformation as i32,
            }),
            // Hazelcast requires these settings for every index, but uses them only for indexes
            // outside the heap.
            b_tree_index_config: Some(BTreeIndexConfig {
                page_size: Capacity { value: 16, unit: KILOBYTES },
                memory_tier_config: MemoryTierConfig { capacity: Capacity { value: 256, unit: MEGABYTES } },
            }),
        };
        let request = map::add_index::Request { name: &self.name, index_config };
        self.on_any(&request, |answer| Ok(answer.decode::<map::add_index::Response>().map(drop)?))
    }
}

/// Methods that return the keys, values or entries that match a predicate.
macro_rules! found {
    ($( $(#[$doc:meta])* fn $name:ident -> $out:ty = $message:ident |$answer:ident| $decode:expr; )*) => {
        $(
            $(#[$doc])*
            pub fn $name(&self, predicate: &Predicate) -> Call<$out> {
                let decode: DecodeFn<$out> = |message: &Message<'_>| {
                    let $answer = message.decode::<map::$message::Response<'_>>()?;
                    $decode
                };
                let target = self.predicate_target(Some(predicate));
                let predicate = blob!(self, $message, predicate, decode);
                let request = map::$message::Request { name: &self.name, predicate: &predicate };
                Call::send(&self.client.inner, target, &request, decode)
            }
        )*
    };
}

impl<K: ToBlob + FromBlob, V: ToBlob + FromBlob> Map<K, V> {
    found! {
        /// Returns the keys of the entries that match a predicate, in one message. For large
        /// results use [`Map::key_pages`].
        fn keys_with -> Vec<K> = key_set_with_predicate |answer| list(&answer.response);

        /// Returns the values of the entries that match a predicate, in one message. For large
        /// results use [`Map::value_pages`].
        fn values_with -> Vec<V> = values_with_predicate |answer| list(&answer.response);

        /// Returns the entries that match a predicate, in one message. For large results use
        /// [`Map::entry_pages`].
        fn entries_with -> Vec<(K, V)> = entries_with_predicate |answer| pairs(&answer.response);
    }
}

/// Serializes a predicate outside of a call.
pub(crate) fn predicate_blob<K, V>(
    map: &Map<K, V>,
    predicate: Option<&Predicate>,
) -> Result<Option<Vec<u8>>, ClientError> {
    predicate.map(|predicate| map.serialize(map::entries_with_paging_predicate::ID, predicate)).transpose()
}
