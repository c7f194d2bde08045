//! Queries of the map API: predicates, pages, aggregators and projections over one map.

use std::sync::Arc;

use filbert_store::Caller;

use filbert_data::criteria::IterationType;

use crate::{GridError, PartitionId};

/// A query of the map API. Predicates, aggregators and projections are blobs, as the clients serialize them.
#[derive(Clone, Debug)]
pub enum MapQuery<'a> {
    /// The entries that a predicate finds.
    Entries {
        /// The predicate; `None` = all entries.
        predicate: Option<&'a [u8]>,
        /// The partitions to look at; `None` = all.
        partitions: Option<Vec<PartitionId>>,
    },
    /// One page of them, in order.
    Page(Paging<'a>),
    /// One value made of them.
    Aggregate {
        /// The aggregator.
        aggregator: &'a [u8],
        /// Which entries; `None` = all.
        predicate: Option<&'a [u8]>,
    },
    /// One value for each of them.
    Project {
        /// The projection.
        projection: &'a [u8],
        /// Which entries; `None` = all.
        predicate: Option<&'a [u8]>,
    },
    /// Takes them out.
    Remove {
        /// The predicate.
        predicate: &'a [u8],
        /// Who asks.
        caller: Caller,
    },
}

/// The end of a page that was read before: its number, and its last entry's key and value.
pub type PageEnd<'a> = (usize, Option<&'a [u8]>, Option<&'a [u8]>);

/// A page of a query's entries.
#[derive(Clone, Debug)]
pub struct Paging<'a> {
    /// Which entries; `None` = all.
    pub predicate: Option<&'a [u8]>,
    /// Only those of the partition of this key.
    pub partition_key: Option<&'a [u8]>,
    /// Entries of one page.
    pub page_size: usize,
    /// The page asked for, counted from 0.
    pub page: usize,
    /// What is asked for: it decides the order (keys by key, values by value, entries by key).
    pub iteration: IterationType,
    /// The ends of pages that were read before. They save sorting what came before.
    pub anchors: Vec<PageEnd<'a>>,
}

/// A [`MapQuery`] that outlives the message that it came with.
#[derive(Debug)]
pub struct OwnedMapQuery(Kind);

#[derive(Debug)]
enum Kind {
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

/// Page, key and value of its last entry.
type OwnedPageEnd = (usize, Option<Vec<u8>>, Option<Vec<u8>>);

impl MapQuery<'_> {
    /// A copy for later.
    #[must_use]
    pub fn to_owned(&self) -> OwnedMapQuery {
        let copy = |bytes: &Option<&[u8]>| bytes.map(<[u8]>::to_vec);
        OwnedMapQuery(match self {
            MapQuery::Entries { predicate, partitions } => {
                Kind::Entries { predicate: copy(predicate), partitions: partitions.clone() }
            }
            MapQuery::Page(paging) => Kind::Page(OwnedPaging {
                predicate: copy(&paging.predicate),
                partition_key: copy(&paging.partition_key),
                page_size: paging.page_size,
                page: paging.page,
                iteration: paging.iteration,
                anchors: paging.anchors.iter().map(|(page, key, value)| (*page, copy(key), copy(value))).collect(),
            }),
            MapQuery::Aggregate { aggregator, predicate } => {
                Kind::Aggregate { aggregator: aggregator.to_vec(), predicate: copy(predicate) }
            }
            MapQuery::Project { projection, predicate } => {
                Kind::Project { projection: projection.to_vec(), predicate: copy(predicate) }
            }
            MapQuery::Remove { predicate, caller } => Kind::Remove { predicate: predicate.to_vec(), caller: *caller },
        })
    }
}

impl OwnedMapQuery {
    /// The query.
    #[must_use]
    pub fn borrow(&self) -> MapQuery<'_> {
        match &self.0 {
            Kind::Entries { predicate, partitions } => {
                MapQuery::Entries { predicate: predicate.as_deref(), partitions: partitions.clone() }
            }
            Kind::Page(paging) => MapQuery::Page(Paging {
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
            Kind::Aggregate { aggregator, predicate } => {
                MapQuery::Aggregate { aggregator, predicate: predicate.as_deref() }
            }
            Kind::Project { projection, predicate } => {
                MapQuery::Project { projection, predicate: predicate.as_deref() }
            }
            Kind::Remove { predicate, caller } => MapQuery::Remove { predicate, caller: *caller },
        }
    }
}

/// A part of a query's result.
#[derive(Clone, Copy, Debug)]
pub enum Answer<'a> {
    /// An entry that was found: key and value.
    Entry(&'a [u8], &'a [u8]),
    /// What an aggregator or a projection made; `None` = null.
    Value(Option<&'a [u8]>),
    /// The last entry of a page up to the one asked for: page, key, value.
    Anchor(usize, &'a [u8], &'a [u8]),
    /// Entries that were taken out.
    Removed(usize),
}

/// Tells whether nobody waits for a query's result any more. Asked often, from the thread that runs the query.
pub type Ending = Arc<dyn Fn() -> bool + Send + Sync>;

/// A query that is ready to run.
pub trait PreparedQuery: Send {
    /// Whether it takes microseconds, so that a network task may run it in place.
    fn is_short(&self) -> bool;

    /// Has it end early, with an error, when `is_over` says so: it asks before each partition and every few thousand entries. What it has
    /// removed by then stays removed.
    fn end_when(&mut self, is_over: Ending);

    /// Runs it and calls `answer` for each part of the result, maybe under a partition's lock: it must neither block nor
    /// call back into the grid. An error of `answer` ends the query.
    ///
    /// # Errors
    /// A value cannot be read as the query needs it, `answer` says so, or nobody waits for the result any more.
    fn run(&mut self, answer: &mut dyn FnMut(Answer<'_>) -> Result<(), GridError>) -> Result<(), GridError>;
}

/// Tells entries that are of interest from others.
pub trait EntryFilter: Send + Sync {
    /// Whether an entry is of interest. A value that cannot be read is not.
    fn matches(&self, key: &[u8], value: &[u8]) -> bool;
}

/// Makes one value of an entry.
pub trait EntryProjection: Send + Sync {
    /// The value of an entry, as a blob; `None` = null.
    ///
    /// # Errors
    /// The entry cannot be read as the projection needs it.
    fn project(&self, key: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, GridError>;
}
