//! Queries of the map API. Predicates, aggregators and projections are plain bytes here, not blobs.

use std::sync::Arc;

use filbert_grid::{
    Caller, Change, GridError, Map,
    query::{Answer, Ending, EntryFilter, EntryProjection, MapQuery, Paging, PreparedQuery},
};

use crate::hanging::Hanging;

/// The values that begin with some bytes.
pub(crate) struct Prefix {
    bytes: Vec<u8>,
    /// Whether queries run on another thread.
    is_long: bool,
}

impl Prefix {
    pub(crate) fn new(predicate: &[u8]) -> Result<Prefix, GridError> {
        if predicate == b"broken" {
            return Err(GridError::Serialization("a broken predicate".to_owned()));
        }
        let long = predicate.strip_prefix(b"long:");
        Ok(Prefix { bytes: long.unwrap_or(predicate).to_vec(), is_long: long.is_some() })
    }

    fn hangs(&self) -> bool {
        self.is_long && self.bytes == b"hang"
    }
}

impl EntryFilter for Prefix {
    fn matches(&self, _: &[u8], value: &[u8]) -> bool {
        value.starts_with(&self.bytes)
    }
}

/// The projection to the first byte of a value.
pub(crate) struct FirstByte;

impl EntryProjection for FirstByte {
    fn project(&self, _: &[u8], value: &[u8]) -> Result<Option<Vec<u8>>, GridError> {
        Ok(value.first().map(|first| vec![*first]))
    }
}

enum Wanted {
    Entries,
    Page { size: usize, page: usize },
    Count,
    FirstBytes,
    Removal(Caller),
}

/// A query of one map.
pub(crate) struct Query {
    map: Arc<Map>,
    prefix: Prefix,
    wanted: Wanted,
    is_over: Option<Ending>,
    hanging: Arc<Hanging>,
}

impl Query {
    pub(crate) fn new(map: &Arc<Map>, query: MapQuery<'_>, hanging: &Arc<Hanging>) -> Result<Query, GridError> {
        let (predicate, wanted) = match query {
            MapQuery::Entries { predicate, .. } => (predicate, Wanted::Entries),
            MapQuery::Page(Paging { predicate, page_size, page, .. }) => {
                (predicate, Wanted::Page { size: page_size, page })
            }
            MapQuery::Aggregate { predicate, .. } => (predicate, Wanted::Count),
            MapQuery::Project { predicate, .. } => (predicate, Wanted::FirstBytes),
            MapQuery::Remove { predicate, caller } => (Some(predicate), Wanted::Removal(caller)),
        };
        let prefix = Prefix::new(predicate.unwrap_or_default())?;
        Ok(Query { map: map.clone(), prefix, wanted, is_over: None, hanging: hanging.clone() })
    }

    /// The matching entries, ordered by key.
    fn found(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut found = Vec::new();
        self.map.for_each(&mut |key, value| {
            if self.prefix.matches(key, value) {
                found.push((key.to_vec(), value.to_vec()));
            }
        });
        found.sort();
        found
    }
}

impl PreparedQuery for Query {
    fn is_short(&self) -> bool {
        !self.prefix.is_long
    }

    fn end_when(&mut self, is_over: Ending) {
        self.is_over = Some(is_over);
    }

    fn run(&mut self, answer: &mut dyn FnMut(Answer<'_>) -> Result<(), GridError>) -> Result<(), GridError> {
        if self.prefix.hangs() {
            self.hanging.wait_until(|| self.is_over.as_ref().is_some_and(|is_over| is_over()));
            return Err(GridError::Query("nobody waits any more".to_owned()));
        }
        let found = self.found();
        match self.wanted {
            Wanted::Entries => found.iter().try_for_each(|(key, value)| answer(Answer::Entry(key, value))),
            Wanted::Page { size, page } => {
                for (number, chunk) in found.chunks(size).enumerate().take(page + 1) {
                    if let Some((key, value)) = chunk.last() {
                        answer(Answer::Anchor(number, key, value))?;
                    }
                    if number == page {
                        chunk.iter().try_for_each(|(key, value)| answer(Answer::Entry(key, value)))?;
                    }
                }
                Ok(())
            }
            Wanted::Count => answer(Answer::Value(Some(found.len().to_string().as_bytes()))),
            Wanted::FirstBytes => found.iter().try_for_each(|(key, value)| {
                let first = FirstByte.project(key, value)?;
                answer(Answer::Value(first.as_deref()))
            }),
            Wanted::Removal(caller) => {
                for (key, _) in &found {
                    let partition = self.map.partition_of(key);
                    let change = self.map.change(partition, caller, Change::Delete { key }, |_| ());
                    change.map_err(|refused| GridError::Query(refused.to_string()))?;
                }
                answer(Answer::Removed(found.len()))
            }
        }
    }
}
