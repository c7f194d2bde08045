//! Snapshots that are made when a member needs one, and brought page by page.
//!
//! Page 0 is the head: 1 byte of version (1); id of the last entry; id of the entry that had the membership; the membership; origins.
//! Each further page is the partition, 4, and a page of [`filbert_store::Partition::export_page`], which has a number and
//! a checksum of its own; partitions come in order. The last page is empty.
//!
//! A page is made when the one before it was taken, so that memory is that of one page and of what changes meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use filbert_data::PartitionId;
use filbert_store::{Import, Partition};

use crate::origins::Origins;
use crate::replica::Replica;
use crate::types::{SnapshotMeta, StoredMembership, Vote};
use crate::wire::{Reader, append_log_id, append_membership, read_log_id, read_membership};

/// What consensus hands around as a snapshot.
pub(crate) enum SnapshotData {
    /// Only where it would stand in the log: enough to purge what is before.
    Position,
    /// One that is being made; `None` while the replica makes another one.
    Making(Option<Making>),
    /// One that was brought.
    Taken(Box<Taken>),
}

static NUMBERS: AtomicU64 = AtomicU64::new(1);

impl SnapshotData {
    /// Begins a snapshot of a replica as it is.
    pub(crate) fn begin(replica: &Arc<Replica>) -> SnapshotData {
        if replica.exporting.swap(true, Ordering::SeqCst) {
            return SnapshotData::Making(None);
        }
        for cell in replica.cells() {
            let begun = cell.lock().begin_export();
            debug_assert!(begun, "a replica makes one snapshot at a time");
        }
        let mut head = vec![1];
        let applied = replica.applied.lock();
        append_log_id(&mut head, applied.last.as_ref());
        append_log_id(&mut head, applied.membership.log_id().as_ref());
        append_membership(&mut head, applied.membership.membership());
        applied.origins.append(&mut head);
        drop(applied);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        SnapshotData::Making(Some(Making { replica: Arc::clone(replica), number, head: Some(head.into()), at: 0 }))
    }
}

/// A snapshot that is being made. Dropped, it is given up.
pub(crate) struct Making {
    replica: Arc<Replica>,
    pub(crate) number: u64,
    head: Option<Bytes>,
    /// The place of the partition whose pages are made.
    at: usize,
}

impl Making {
    /// The next page, of about `bytes_min` bytes; an empty one is the last.
    pub(crate) fn next_page(&mut self, bytes_min: usize) -> Bytes {
        if let Some(head) = self.head.take() {
            return head;
        }
        let (Some(cell), Some(id)) = (self.replica.cells().get(self.at), self.replica.ids().nth(self.at)) else {
            return Bytes::new();
        };
        let mut page = Vec::new();
        let more = cell.lock().export_page(&mut page, bytes_min);
        if !more {
            self.at += 1;
        }
        let mut framed = id.0.to_le_bytes().to_vec();
        framed.append(&mut page);
        framed.into()
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        self.replica.cells().iter().for_each(|cell| cell.lock().end_export());
        self.replica.exporting.store(false, Ordering::SeqCst);
    }
}

/// What was brought of a snapshot.
pub(crate) struct Taken {
    pub(crate) partitions: Vec<Partition>,
    pub(crate) origins: Origins,
}

/// A snapshot on its way to here.
pub(crate) struct Taking {
    pub(crate) vote: Vote,
    pub(crate) snapshot: u64,
    pub(crate) next: u64,
    head: Option<(SnapshotMeta, Origins)>,
    partitions: Vec<Partition>,
    import: Option<(PartitionId, Import)>,
}

impl Taking {
    pub(crate) fn new(vote: Vote, snapshot: u64) -> Self {
        Taking { vote, snapshot, next: 0, head: None, partitions: Vec::new(), import: None }
    }

    /// Takes the page that has to come next; what was brought, if that was the last one.
    pub(crate) fn page(&mut self, replica: &Replica, page: Bytes) -> Result<Option<(SnapshotMeta, Taken)>, String> {
        self.next += 1;
        if self.head.is_none() {
            self.head = Some(read_head(page).map_err(|error| error.to_string())?);
            return Ok(None);
        }
        if page.is_empty() {
            let partitions = std::mem::take(&mut self.partitions);
            let Some((meta, origins)) = self.head.take().filter(|_| partitions.len() == replica.cells().len()) else {
                return Err(format!("it ends after {} partitions", partitions.len()));
            };
            return Ok(Some((meta, Taken { partitions, origins })));
        }
        let mut reader = Reader::new(&page);
        let id = PartitionId(reader.u32("the partition of a page").map_err(|error| error.to_string())?);
        let (_, rest) = page.split_at(reader.offset());
        if replica.ids().nth(self.partitions.len()) != Some(id) {
            return Err(format!("a page of {id} is not the next one"));
        }
        let (_, import) = self.import.get_or_insert_with(|| (id, Import::new(replica.settings(id))));
        import.page(rest).map_err(|error| error.to_string())?;
        if import.is_complete()
            && let Some((_, import)) = self.import.take()
        {
            self.partitions.push(import.finish(replica.layouts()).map_err(|error| error.to_string())?);
        }
        Ok(None)
    }
}

fn read_head(page: Bytes) -> Result<(SnapshotMeta, Origins), filbert_store::CodecError> {
    let mut reader = Reader::new(&page);
    reader.version("the version of a snapshot")?;
    let last_log_id = read_log_id(&mut reader)?;
    let membership_id = read_log_id(&mut reader)?;
    let last_membership = StoredMembership::new(membership_id, read_membership(&mut reader)?);
    let origins = Origins::read(&mut reader)?;
    reader.end("the head of a snapshot")?;
    Ok((SnapshotMeta { last_log_id, last_membership }, origins))
}
