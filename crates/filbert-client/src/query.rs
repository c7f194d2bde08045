//! Queries of a map: which entries a predicate finds, what is made of them, and indexes that find them.

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

/// Hazelcast's numbers of units of memory.
const KILOBYTES: i32 = 1;
const MEGABYTES: i32 = 2;

/// An index of a map: it finds the entries whose attributes have certain values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    name: Option<String>,
    kind: i32,
    attributes: Vec<String>,
    unique_key: Option<(String, UniqueKey)>,
}

/// How the key of an entry becomes the number that a bitmap index knows it by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UniqueKey {
    /// Objects are numbered in the order in which they come.
    #[default]
    Object = 0,
    /// Whole numbers are taken as they are, other values are numbered.
    Long = 1,
    /// Whole numbers are taken as they are; other values are errors.
    Raw = 2,
}

impl Index {
    /// An ordered index, for ranges as well as for equality. Attributes are paths such as `address.city`; several make
    /// a composite index.
    pub fn sorted<A: Into<String>>(attributes: impl IntoIterator<Item = A>) -> Self {
        Self::new(0, attributes)
    }

    /// A hash index, for equality.
    pub fn hash<A: Into<String>>(attributes: impl IntoIterator<Item = A>) -> Self {
        Self::new(1, attributes)
    }

    /// A bitmap index, for attributes of few different values. `unique_key` is an attribute that no two entries
    /// share, as a rule `__key`.
    pub fn bitmap(attribute: &str, unique_key: &str, transformation: UniqueKey) -> Self {
        Self { unique_key: Some((unique_key.to_owned(), transformation)), ..Self::new(2, [attribute]) }
    }

    fn new<A: Into<String>>(kind: i32, attributes: impl IntoIterator<Item = A>) -> Self {
        Self { name: None, kind, attributes: attributes.into_iter().map(Into::into).collect(), unique_key: None }
    }

    /// Names the index. Without this the member makes a name of the map's, the kind and the attributes.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = Some(name.to_owned());
        self
    }
}

/// The bytes of what was serialized, or returns a call that failed.
macro_rules! blob {
    ($map:expr, $message:ident, $value:expr, $decode:expr) => {
        match $map.serialize(map::$message::ID, $value) {
            Ok(bytes) => bytes,
            Err(error) => return Call::failed::<map::$message::Request<'_>>(&$map.client.inner, error, $decode),
        }
    };
}

impl<K, V> Map<K, V> {
    /// Predicates of one partition go to its owner, others to any member.
    pub(crate) fn predicate_target(&self, predicate: Option<&Predicate>) -> Target {
        match predicate {
            Some(Predicate::Partition { key, .. }) => Target::Partition(self.client.inner.partition_of(key)),
            _ => Target::Any,
        }
    }

    /// What an aggregator makes of all entries, or of those that a predicate finds; none if there is nothing to make it
    /// of. The aggregator tells what `T` has to be: a sum of ints is an `i64`, an entry an
    /// [`Entry`](filbert_data::criteria::Entry), distinct values a [`Distinct`](filbert_data::criteria::Distinct); a
    /// [`Blob`](crate::Blob) is always right.
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

    /// What a projection makes of each entry, or of each that a predicate finds. One attribute is a value of its type,
    /// several are a [`List`](crate::List). They come in one message.
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

    /// Removes the entries that a predicate finds.
    pub fn remove_all_with(&self, predicate: &Predicate) -> Call<()> {
        let decode: DecodeFn<()> = |answer| Ok(answer.decode::<map::remove_all::Response>().map(drop)?);
        let target = self.predicate_target(Some(predicate));
        let predicate = blob!(self, remove_all, predicate, decode);
        let request = map::remove_all::Request { name: &self.name, predicate: &predicate };
        Call::send(&self.client.inner, target, &request, decode)
    }

    /// Builds an index, also over the entries that are there. Nothing happens if the map has it.
    pub fn add_index(&self, index: &Index) -> Call<()> {
        let index_config = IndexConfig {
            name: index.name.as_deref(),
            kind: index.kind,
            attributes: index.attributes.iter().map(String::as_str).collect(),
            bitmap_index_options: index.unique_key.as_ref().map(|(unique_key, transformation)| BitmapIndexOptions {
                unique_key,
                unique_key_transformation: *transformation as i32,
            }),
            // Hazelcast wants them of every index, and uses them for those outside of the heap alone.
            b_tree_index_config: Some(BTreeIndexConfig {
                page_size: Capacity { value: 16, unit: KILOBYTES },
                memory_tier_config: MemoryTierConfig { capacity: Capacity { value: 256, unit: MEGABYTES } },
            }),
        };
        let request = map::add_index::Request { name: &self.name, index_config };
        self.on_any(&request, |answer| Ok(answer.decode::<map::add_index::Response>().map(drop)?))
    }
}

/// Methods that ask for what a predicate finds.
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
        /// The keys of the entries that a predicate finds. They come in one message: for many use
        /// [`Map::key_pages`].
        fn keys_with -> Vec<K> = key_set_with_predicate |answer| list(&answer.response);

        /// The values of the entries that a predicate finds. They come in one message: for many use
        /// [`Map::value_pages`].
        fn values_with -> Vec<V> = values_with_predicate |answer| list(&answer.response);

        /// The entries that a predicate finds. They come in one message: for many use [`Map::entry_pages`].
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
