//! Reads of partitions that this member does not hold: their leader sends the entries, page by
//! page.
//!
//! ```text
//!  here: LeaderRead ── Replicator::read(group, Request) ──► leader: Grid::answer_read
//!            ▲                                                   │ under its lease
//!            └────────── EntryPage: entries, and the place ◄─────┘
//!                        from which the next page begins
//! ```
//!
//! A page sees all changes that were acknowledged before it was requested. Pages of one partition
//! are read at different times: an entry that exists during the whole read is read once, even if
//! the leader changes. Members of a cluster hold the entries of a partition in one order, of their
//! hashes, so a place within a partition is valid at the next leader.
//!
//! This module has the reader's side, `answer` the leader's side, and `messages` their messages.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use filbert_data::{Blob, FieldPath, Kinds, PartitionId};
use filbert_store::{Cursor, IndexKind, MapId, Probe};

use self::messages::{Content, Request};
use crate::cluster::{Done, ReadView};
use crate::errors::GridError;
use crate::groups::{GroupId, SubmitError};
use crate::map::Map;

mod answer;
mod messages;

pub use messages::EntryPage;

/// The size from which on a page is sent: large enough that a request costs little beside it. Also
/// the size of the keys of one request.
const PAGE_BYTES: usize = 256 << 10;
/// The interval between two checks whether a blocking read is still wanted.
const CHECKED_EVERY: Duration = Duration::from_millis(20);

/// The entries that a read selects.
#[derive(Clone, Debug)]
pub enum EntrySelection {
    /// All entries.
    All,
    /// The number of all entries, without the entries.
    Count,
    /// The number of keys that clients have locked, without the entries.
    CountLocked,
    /// The entries with these keys.
    Keys(Vec<Blob>),
    /// The entries that an index finds, if the leader has it; otherwise all entries.
    Index(IndexSelection),
}

/// The entries that an index finds. Members number their indexes differently, so the index is
/// described.
#[derive(Clone, Debug)]
pub struct IndexSelection {
    /// The kind of the index.
    pub kind: IndexKind,
    /// The indexed fields. Each field of the probe has the kinds of values for which the probe
    /// finds all entries. If the field has a value of another kind, the index is not used.
    pub fields: Arc<[(FieldPath, Kinds)]>,
    /// The keys.
    pub probe: Probe,
}

/// A read of partitions of one group at their leader.
#[derive(Clone, Debug)]
pub struct LeaderRead {
    group: GroupId,
    selection: Arc<EntrySelection>,
    /// The partitions that are not complete, the next one first.
    partitions: Vec<PartitionId>,
    /// The place in the first partition.
    cursor: Cursor,
    /// The order of entries that the place is of.
    order: u64,
    /// Entries that are read by key, before the partitions.
    by_key: Option<ByKey>,
    /// Whether entries come with their metadata.
    metadata: bool,
}

/// The keys of the entries to be read.
#[derive(Clone, Debug)]
struct ByKey {
    keys: Arc<EntrySelection>,
    /// The number of the next key.
    next: Cursor,
}

impl ByKey {
    fn new(keys: Vec<Blob>) -> ByKey {
        ByKey { keys: Arc::new(EntrySelection::Keys(keys)), next: Cursor::START }
    }
}

impl LeaderRead {
    /// The reads of the partitions that `is_wanted` accepts and that the view does not have here:
    /// one for each group, or several for many keys.
    pub fn beside(
        map: &Map,
        view: &ReadView,
        selection: &Arc<EntrySelection>,
        is_wanted: &dyn Fn(PartitionId) -> bool,
    ) -> Vec<LeaderRead> {
        let mut reads: Vec<LeaderRead> = Vec::new();
        if view.is_complete() {
            return reads;
        }
        let elsewhere = |partition: &PartitionId| !view.is_here(*partition) && is_wanted(*partition);
        for partition in (0..map.partition_count()).map(PartitionId).filter(elsewhere) {
            let group = map.shared.group_of(partition);
            match reads.iter_mut().find(|read| read.group == group) {
                Some(read) => read.partitions.push(partition),
                None => reads.push(LeaderRead {
                    group,
                    selection: selection.clone(),
                    partitions: vec![partition],
                    cursor: Cursor::START,
                    order: 0,
                    by_key: None,
                    metadata: false,
                }),
            }
        }
        match &**selection {
            EntrySelection::Keys(keys) => reads.iter().flat_map(|read| read.of_keys(map, keys)).collect(),
            _ => reads,
        }
    }

    /// Reads of the keys that are in the partitions of this one, in requests of a limited size.
    fn of_keys(&self, map: &Map, keys: &[Blob]) -> Vec<LeaderRead> {
        let of_read = keys.iter().filter(|key| self.partitions.contains(&map.partition_of(key)));
        let mut parts: Vec<(usize, Vec<Blob>)> = Vec::new();
        for key in of_read {
            match parts.last_mut().filter(|(bytes, _)| *bytes < PAGE_BYTES) {
                Some((bytes, part)) => {
                    *bytes += key.len();
                    part.push(key.clone());
                }
                None => parts.push((key.len(), vec![key.clone()])),
            }
        }
        let of_part = |(_, part)| LeaderRead { partitions: Vec::new(), by_key: Some(ByKey::new(part)), ..self.clone() };
        parts.into_iter().map(of_part).collect()
    }

    /// The same read, with the metadata of entries ([`EntryPage::for_each_record`]).
    pub(crate) fn with_metadata(self) -> LeaderRead {
        LeaderRead { metadata: true, ..self }
    }

    /// Moves behind a page. Returns whether more entries follow.
    ///
    /// # Errors
    /// The map was destroyed. Or the partition has another leader with another order of entries,
    /// and a part of the partition was read.
    pub fn advance(&mut self, map: &Map, page: &EntryPage) -> Result<bool, GridError> {
        match page.content {
            Content::Moved => {
                let hint = "its next leader orders entries differently, they can be read again".to_owned();
                return Err(SubmitError::NotLeader { group: self.group, hint }.into());
            }
            Content::Dropped => return Err(map.core.destroyed_error()),
            Content::Entries | Content::Keys => {}
        }
        match &mut self.by_key {
            Some(by_key) if page.cursor != Cursor::START => by_key.next = page.cursor,
            Some(_) => self.by_key = None,
            None => {
                self.partitions.drain(..page.complete.min(self.partitions.len()));
                self.cursor = page.cursor;
                self.order = page.order;
                self.by_key = page.keys_alone().map(ByKey::new);
            }
        }
        Ok(self.by_key.is_some() || !self.partitions.is_empty())
    }

    /// The request for the next page.
    fn request(&self, map: MapId) -> Request {
        let (partitions, cursor, selection) = match &self.by_key {
            Some(by_key) => (Vec::new(), by_key.next, by_key.keys.clone()),
            None => (self.partitions.clone(), self.cursor, self.selection.clone()),
        };
        Request { map, partitions, cursor, order: self.order, selection, metadata: self.metadata }
    }
}

impl Map {
    /// Requests the next page of a read from the leader. `done` is called once, on another thread.
    /// The request is repeated while the partitions have no leader.
    pub fn read_at_leader(&self, read: &LeaderRead, done: Done<EntryPage>) {
        let Some(replication) = &self.shared.replication else {
            return done(Err(GridError::Internal("a read at a leader, without a cluster".to_owned())));
        };
        let decoded = |bytes: Vec<u8>| {
            let page = EntryPage::read(&bytes);
            page.map_err(|error| GridError::Internal(format!("a page of entries cannot be decoded: {error}")))
        };
        let done = Box::new(move |answer: Result<Vec<u8>, SubmitError>| {
            done(answer.map_err(GridError::from).and_then(decoded));
        });
        replication.replicator.read(read.group, read.request(self.core.id).write(), done);
    }

    /// Reads at leaders and visits the pages, until `visit` returns `false`. Blocks. Must not be
    /// called on a thread for which other threads wait.
    ///
    /// # Errors
    /// No leader was found, the read cannot advance ([`LeaderRead::advance`]), or `visit` or `check`
    /// has failed. `check` is called often while there is no answer.
    pub fn visit_at_leaders(
        &self,
        reads: Vec<LeaderRead>,
        check: &dyn Fn() -> Result<(), GridError>,
        visit: &mut dyn FnMut(&EntryPage) -> Result<bool, GridError>,
    ) -> Result<(), GridError> {
        for mut read in reads {
            let mut goes_on = true;
            while goes_on {
                let (sender, answer) = mpsc::sync_channel(1);
                // The reader may have gone.
                self.read_at_leader(&read, Box::new(move |page| _ = sender.send(page)));
                let page = loop {
                    match answer.recv_timeout(CHECKED_EVERY) {
                        Ok(page) => break page?,
                        Err(RecvTimeoutError::Timeout) => check()?,
                        Err(RecvTimeoutError::Disconnected) => return Err(GridError::NotActive),
                    }
                };
                goes_on = read.advance(self, &page)?;
                if !visit(&page)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The view of a statement that found newer values of these keys at their leaders than in this
    /// member's replicas, which may lag: their groups are read at the leaders. Without a cluster,
    /// the same view.
    pub fn view_at_leaders<'k>(&self, view: &ReadView, keys: impl IntoIterator<Item = &'k [u8]>) -> ReadView {
        let Some(replication) = self.shared.replication.as_ref().filter(|_| self.forwards()) else {
            return view.clone();
        };
        let groups = keys.into_iter().map(|key| replication.group_of(self.partition_of(key)));
        view.without(&groups.collect(), replication.groups)
    }

    /// The value of a key, read at the place that a view says. Does not count as a read of the
    /// entry. May block, see [`Map::visit_at_leaders`].
    ///
    /// # Errors
    /// The leader of the key's partition was not found.
    pub fn value_by(&self, view: &ReadView, key: &[u8]) -> Result<Option<Blob>, GridError> {
        let partition = self.partition_of(key);
        if view.is_here(partition) {
            return Ok(self.entry_view(partition, key, |view| view.map(|view| Blob::from(view.value))));
        }
        let selection = Arc::new(EntrySelection::Keys(vec![Blob::from(key)]));
        let reads = LeaderRead::beside(self, view, &selection, &|of| of == partition);
        let mut value = None;
        self.visit_at_leaders(reads, &|| Ok(()), &mut |page| {
            page.for_each(&mut |_, found| value = Some(Blob::from(found)));
            Ok(true)
        })?;
        Ok(value)
    }
}
