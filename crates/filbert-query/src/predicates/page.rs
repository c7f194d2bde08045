//! Pages of a query: sorts the entries and cuts them into pages. The last entry of each page is an
//! anchor for the next.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use filbert_data::criteria::IterationType;
use filbert_data::{Blob, DataError, FieldPath, FieldReader, Formats, Value};
use filbert_grid::query::PageEnd;

/// The maximum number of entries that are sorted to find one page. Later pages need an anchor.
pub(crate) const ENTRIES_MAX: usize = 10_000_000;

/// An entry with its sort value.
struct Sorted {
    by: Value<'static>,
    key: Blob,
    value: Blob,
}

impl Sorted {
    /// Values of types without an order are ordered by their bytes, and equal values by their keys.
    /// The order is thus the same for every page.
    fn order(&self, other: &Sorted) -> Ordering {
        self.by
            .compare(&other.by)
            .unwrap_or_else(|| match (self.by.is_null(), other.by.is_null()) {
                (true, false) => Ordering::Less,
                (false, true) => Ordering::Greater,
                _ => Ordering::Equal,
            })
            .then_with(|| self.key.cmp(&other.key))
    }
}

impl PartialEq for Sorted {
    fn eq(&self, other: &Self) -> bool {
        self.order(other).is_eq()
    }
}

impl Eq for Sorted {}

impl PartialOrd for Sorted {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Sorted {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order(other)
    }
}

/// Finds one page of the added entries.
pub(crate) struct Pager {
    reader: FieldReader,
    /// The smallest entries so far, the greatest of them on top.
    least: BinaryHeap<Sorted>,
    keep: usize,
    after: Option<Sorted>,
    first_page: usize,
    page: usize,
    page_size: usize,
}

/// The end of a page: its number, and its last entry's key and value.
pub(crate) type Anchor = (usize, Blob, Blob);

impl Pager {
    /// Creates a pager for a page, counted from 0. The last anchor before the page saves sorting
    /// the entries before it.
    pub(crate) fn new(
        iteration: IterationType,
        page: usize,
        page_size: usize,
        anchors: &[PageEnd<'_>],
        formats: &Formats,
    ) -> Result<Self, DataError> {
        let path = if iteration == IterationType::Value { FieldPath::THIS } else { FieldPath::KEY };
        let reader = FieldReader::new(vec![path], formats.clone());
        let anchor = anchors
            .iter()
            .filter_map(|(number, key, value)| Some((*number, (*key)?, value.unwrap_or_default())))
            .filter(|(number, ..)| *number < page)
            .max_by_key(|(number, ..)| *number);
        let after = match anchor {
            Some((_, key, value)) => {
                let by = reader.read_one(key, value)?.into_owned();
                Some(Sorted { by, key: Blob::from(key), value: Blob::from(value) })
            }
            None => None,
        };
        let first_page = anchor.map_or(0, |(number, ..)| number + 1);
        let keep = (page + 1 - first_page.min(page)).saturating_mul(page_size).min(ENTRIES_MAX);
        Ok(Pager { reader, least: BinaryHeap::new(), keep, after, first_page, page, page_size })
    }

    pub(crate) fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), DataError> {
        let by = self.reader.read_one(key, value)?.into_owned();
        let entry = Sorted { by, key: Blob::from(key), value: Blob::from(value) };
        if self.after.as_ref().is_some_and(|after| entry <= *after) {
            return Ok(());
        }
        if self.least.len() < self.keep {
            self.least.push(entry);
        } else if let Some(mut greatest) = self.least.peek_mut()
            && entry < *greatest
        {
            *greatest = entry;
        }
        Ok(())
    }

    /// The entries of the page, and the anchors up to this page.
    pub(crate) fn finish(self) -> (Vec<(Blob, Blob)>, Vec<Anchor>) {
        let sorted = self.least.into_sorted_vec();
        let mut anchors = Vec::new();
        let mut entries = Vec::new();
        for (offset, of_page) in sorted.chunks(self.page_size.max(1)).enumerate() {
            let number = self.first_page + offset;
            if let Some(last) = of_page.last() {
                anchors.push((number, last.key.clone(), last.value.clone()));
            }
            if number == self.page {
                entries = of_page.iter().map(|entry| (entry.key.clone(), entry.value.clone())).collect();
            }
        }
        (entries, anchors)
    }
}
