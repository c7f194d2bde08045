//! Paged queries: the ordered results of a predicate, page by page.

use std::sync::Arc;

use filbert_data::criteria::Predicate;
use filbert_data::{FromBlob, ToBlob};
use filbert_wire::{
    Message,
    structure::{AnchorDataListHolder, PagingPredicateHolder},
    table::map,
};

use crate::{
    Call, Client, ClientError, Map,
    bulk::{list, pairs},
    inner::Target,
    query::predicate_blob,
};

/// The last entry of a page: page number, serialized key, serialized value. The member continues
/// after this entry instead of sorting the entries before it.
type Anchor = (i32, Vec<u8>, Vec<u8>);

/// A page and all anchors known so far.
type Answer<T> = (Vec<T>, Vec<Anchor>);

/// Sends the request for a page.
type Ask<T> = fn(&Client, Target, &str, PagingPredicateHolder<'_>) -> Call<Answer<T>>;

/// The results of a predicate, page by page. Keys and entries are ordered by key, values by value.
/// Entries that are added or removed between two requests may move other entries to another page.
pub struct Pages<T> {
    client: Client,
    name: Arc<str>,
    predicate: Result<Option<Vec<u8>>, ClientError>,
    partition_key: Option<Vec<u8>>,
    target: Target,
    page_size: i32,
    iteration: u8,
    ask: Ask<T>,
    anchors: Vec<Anchor>,
    next: Option<usize>,
}

impl<T> Pages<T> {
    /// Returns the page with this number, counted from 0. A page after the last is empty.
    ///
    /// # Errors
    ///
    /// The request fails.
    pub async fn get(&mut self, page: usize) -> Result<Vec<T>, ClientError> {
        let predicate = self.predicate.as_ref().map_err(Clone::clone)?;
        let holder = PagingPredicateHolder {
            anchor_data_list_holder: AnchorDataListHolder {
                anchor_page_list: self.anchors.iter().map(|(page, ..)| *page).collect(),
                anchor_data_list: self.anchors.iter().map(|(_, key, value)| (&key[..], &value[..])).collect(),
            },
            predicate_data: predicate.as_deref(),
            comparator_data: None,
            page_size: self.page_size,
            page: i32::try_from(page).unwrap_or(i32::MAX),
            iteration_type_id: self.iteration,
            partition_key_data: self.partition_key.as_deref(),
            partition_keys_data: None,
        };
        let (items, anchors) = (self.ask)(&self.client, self.target, &self.name, holder).await?;
        self.anchors = anchors;
        Ok(items)
    }

    /// Returns the next page, or `None` after the last page. The first page that is not full is the
    /// last.
    ///
    /// # Errors
    ///
    /// The request fails. The next call requests the same page again.
    pub async fn next(&mut self) -> Result<Option<Vec<T>>, ClientError> {
        let Some(page) = self.next else { return Ok(None) };
        let items = self.get(page).await?;
        let is_full = usize::try_from(self.page_size).is_ok_and(|size| items.len() >= size);
        self.next = is_full.then_some(page + 1);
        Ok(if items.is_empty() { None } else { Some(items) })
    }
}

fn anchors(holder: &AnchorDataListHolder<'_>) -> Vec<Anchor> {
    let pages = holder.anchor_page_list.iter().zip(&holder.anchor_data_list);
    pages.map(|(page, (key, value))| (*page, key.to_vec(), value.to_vec())).collect()
}

/// Requests and reads pages of one kind.
macro_rules! ask {
    ($message:ident, $read:expr) => {
        |client, target, name, predicate| {
            let request = map::$message::Request { name, predicate };
            Call::send(&client.inner, target, &request, |answer: &Message<'_>| {
                let answer = answer.decode::<map::$message::Response<'_>>()?;
                Ok(($read(&answer.response)?, anchors(&answer.anchor_data_list)))
            })
        }
    };
}

impl<K: ToBlob + FromBlob, V: ToBlob + FromBlob> Map<K, V> {
    /// Returns the keys of the entries that match a predicate, or of all entries, in order and page
    /// by page. A page size of 0 means 1.
    pub fn key_pages(&self, predicate: Option<&Predicate>, page_size: usize) -> Pages<K> {
        self.pages(predicate, page_size, 0, ask!(key_set_with_paging_predicate, list))
    }

    /// As [`Map::key_pages`], but returns the values.
    pub fn value_pages(&self, predicate: Option<&Predicate>, page_size: usize) -> Pages<V> {
        self.pages(predicate, page_size, 1, ask!(values_with_paging_predicate, list))
    }

    /// As [`Map::key_pages`], but returns the entries.
    pub fn entry_pages(&self, predicate: Option<&Predicate>, page_size: usize) -> Pages<(K, V)> {
        self.pages(predicate, page_size, 2, ask!(entries_with_paging_predicate, pairs))
    }

    fn pages<T>(&self, predicate: Option<&Predicate>, page_size: usize, iteration: u8, ask: Ask<T>) -> Pages<T> {
        let target = self.predicate_target(predicate);
        let (partition_key, predicate) = match predicate {
            Some(Predicate::Partition { key, predicate }) => (Some(key.as_bytes().to_vec()), Some(&**predicate)),
            other => (None, other),
        };
        Pages {
            client: self.client.clone(),
            name: self.name.clone(),
            predicate: predicate_blob(self, predicate),
            partition_key,
            target,
            page_size: i32::try_from(page_size.max(1)).unwrap_or(i32::MAX),
            iteration,
            ask,
            anchors: Vec::new(),
            next: Some(0),
        }
    }
}
