//! Queries of the map API: predicates, pages, aggregators and projections over one map.

use std::sync::Arc;

use filbert_data::PartitionId;
use filbert_data::criteria::IterationType;
use filbert_store::Caller;

use crate::errors::GridError;

/// A query of the map API. Predicates, aggregators and projections are blobs in the serialization
/// of the clients.
#[derive(Clone, Debug)]
pub enum MapQuery<'a> {
    /// The entries that match a predicate.
    Entries {
        /// The predicate; `None` = all entries.
        predicate: Option<&'a [u8]>,
        /// The partitions to read; `None` = all.
        partitions: Option<Vec<PartitionId>>,
    },
    /// One page of the matching entries, in order.
    Page(Paging<'a>),
    /// One value, aggregated from the matching entries.
    Aggregate {
        /// The aggregator.
        aggregator: &'a [u8],
        /// The predicate; `None` = all entries.
        predicate: Option<&'a [u8]>,
    },
    /// One value for each matching entry.
    Project {
        /// The projection.
        projection: &'a [u8],
        /// The predicate; `None` = all entries.
        predicate: Option<&'a [u8]>,
    },
    /// Removes the matching entries.
    Remove {
        /// The predicate.
        predicate: &'a [u8],
        /// The caller.
        caller: Caller,
    },
}

/// The end of a page that was read before: its number, and the key and value of its last entry.
pub type PageEnd<'a> = (usize, Option<&'a [u8]>, Option<&'a [u8]>);

/// A page of a query's entries.
#[derive(Clone, Debug)]
pub struct Paging<'a> {
    /// The predicate; `None` = all entries.
    pub predicate: Option<&'a [u8]>,
    /// A key that restricts the query to its partition; `None` = all partitions.
    pub partition_key: Option<&'a [u8]>,
    /// The number of entries per page.
    pub page_size: usize,
    /// The number of the requested page, starting at 0.
    pub page: usize,
    /// The requested part of the entries. It defines the order: keys by key, values by value,
    /// entries by key.
    pub iteration: IterationType,
    /// The ends of pages that were read before. The query need not sort the entries before them.
    pub anchors: Vec<PageEnd<'a>>,
}

/// A copy of a [`MapQuery`] that does not borrow from a message.
#[derive(Debug)]
pub struct OwnedMapQuery(OwnedQuery);

#[derive(Debug)]
enum OwnedQuery {
    Entries { predicate: Option<Vec<u8>>, partitions: Option<Vec<PartitionId>> },
    Page(OwnedPaging),
    Aggregate { aggregator: Vec<u8>, predicate: Option<Vec<u8>> },
    Project { projection: Vec<u8>, predicate: Option<Vec<u8>> },
    Remove { predicate: Vec<u8>, caller: Caller },
}

#[derive(Debug)]
struct OwnedPaging {
    predicate: Option<Vec<u8>>,
    partition_key: Option<Vec<u8>>,
    page_size: usize,
    page: usize,
    iteration: IterationType,
    anchors: Vec<OwnedPageEnd>,
}

/// The page number, and the key and value of the page's last entry.
type OwnedPageEnd = (usize, Option<Vec<u8>>, Option<Vec<u8>>);

impl MapQuery<'_> {
    /// An owned copy of the query.
    #[must_use]
    pub fn to_owned(&self) -> OwnedMapQuery {
        let copy = |bytes: &Option<&[u8]>| bytes.map(<[u8]>::to_vec);
        OwnedMapQuery(match self {
            MapQuery::Entries { predicate, partitions } => {
                OwnedQuery::Entries { predicate: copy(predicate), partitions: partitions.clone() }
            }
            MapQuery::Page(paging) => OwnedQuery::Page(OwnedPaging {
                predicate: copy(&paging.predicate),
                partition_key: copy(&paging.partition_key),
                page_size: paging.page_size,
                page: paging.page,
                iteration: paging.iteration,
                anchors: paging.anchors.iter().map(|(page, key, value)| (*page, copy(key), copy(value))).collect(),
            }),
            MapQuery::Aggregate { aggregator, predicate } => {
                OwnedQuery::Aggregate { aggregator: aggregator.to_vec(), predicate: copy(predicate) }
            }
            MapQuery::Project { projection, predicate } => {
                OwnedQuery::Project { projection: projection.to_vec(), predicate: copy(predicate) }
            }
            MapQuery::Remove { predicate, caller } => {
                OwnedQuery::Remove { predicate: predicate.to_vec(), caller: *caller }
            }
        })
    }
}

impl OwnedMapQuery {
    /// The query, borrowed.
    #[must_use]
    pub fn borrow(&self) -> MapQuery<'_> {
        match &self.0 {
            OwnedQuery::Entries { predicate, partitions } => {
                MapQuery::Entries { predicate: predicate.as_deref(), partitions: partitions.clone() }
            }
            OwnedQuery::Page(paging) => MapQuery::Page(Paging {
                predicate: paging.predicate.as_deref(),
                partition_key: paging.partition_key.as_deref(),
                page_size: paging.page_size,
                page: paging.page,
                iteration: paging.iteration,
                anchors: paging
                    .anchors
                    .iter()
                    .map(|(page, key, value)| (*page, key.as_deref(), value.as_deref()))
                    .collect(),
            }),
            OwnedQuery::Aggregate { aggregator, predicate } => {
                MapQuery::Aggregate { aggregator, predicate: predicate.as_deref() }
            }
            OwnedQuery::Project { projection, predicate } => {
                MapQuery::Project { projection, predicate: predicate.as_deref() }
            }
            OwnedQuery::Remove { predicate, caller } => MapQuery::Remove { predicate, caller: *caller },
        }
    }
}

/// A part of a query's result.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// The key and the value of a matching entry.
    Entry(&'a [u8], &'a [u8]),
    /// The result of an aggregator or a projection; `None` = null.
    Value(Option<&'a [u8]>),
    /// The last entry of a page, for each page up to the requested one: page number, key, value.
    Anchor(usize, &'a [u8], &'a [u8]),
    /// The number of removed entries.
    Removed(usize),
}

/// Returns whether no caller waits for a query's result any more. Called often, on the thread that
/// runs the query.
pub type Ending = Arc<dyn Fn() -> bool + Send + Sync>;

/// A prepared query.
pub trait PreparedQuery: Send {
    /// Whether it takes only microseconds, so that a network task may run it directly.
    fn is_short(&self) -> bool;

    /// Sets a condition for cancellation. The query checks `is_over` before each partition and
    /// every few thousand entries, and ends with an error if it returns `true`. Entries that it has
    /// removed stay removed.
    fn end_when(&mut self, is_over: Ending);

    /// Runs the query and calls `answer` for each part of the result, possibly under a partition's
    /// lock: `answer` must neither block nor call back into the grid. An error of `answer` ends the
    /// query.
    ///
    /// # Errors
    /// A value cannot be decoded as the query requires, `answer` has returned an error, or no
    /// caller waits for the result any more.
    fn run(&mut self, answer: &mut dyn FnMut(Answer<'_>) -> Result<(), GridError>) -> Result<(), GridError>;
}

/// A projection of single entries.
pub trait EntryProjection: Send + Sync {
    /// The projected value of an entry, as a blob; `None` = null.
    ///
    /// # Errors
    /// The entry cannot be decoded as the projection requires.
    fn project(&self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, GridError>;
}
