//! Snapshots that are made when a member needs one, and brought page by page.
//!
//! Page 0 is the head: 1 byte of version (1); id of the last entry; id of the entry that had the membership; the membership; origins.
//! Each further page is the state machine's ([`StateMachine::export_page`]). The last page is empty.
//!
//! A page is made when the one before it was taken, so that memory is that of one page and of what changes meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;

use crate::origins::Origins;
use crate::replica::Replica;
use crate::state_machine::StateMachine;
use crate::types::{SnapshotMeta, StoredMembership, Vote};
use crate::wire::{Reader, append_log_id, append_membership, read_log_id, read_membership};

/// What consensus hands around as a snapshot.
pub(crate) enum SnapshotData<S: StateMachine> {
    /// Only where it would stand in the log: enough to purge what is before.
    Position,
    /// One that is being made; `None` while the replica makes another one.
    Making(Option<Making<S>>),
    /// One that was brought.
    Taken(Box<Taken<S>>),
}

static NUMBERS: AtomicU64 = AtomicU64::new(1);

impl<S: StateMachine> SnapshotData<S> {
    /// Begins a snapshot of a replica as it is.
    pub(crate) fn begin<T>(replica: &Replica<S, T>) -> SnapshotData<S> {
        let Some(export) = replica.state.begin_export() else { return SnapshotData::Making(None) };
        let mut head = vec![1];
        let applied = replica.applied.lock();
        append_log_id(&mut head, applied.last.as_ref());
        append_log_id(&mut head, applied.membership.log_id().as_ref());
        append_membership(&mut head, applied.membership.membership());
        applied.origins.append(&mut head);
        drop(applied);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let state = Arc::clone(&replica.state);
        SnapshotData::Making(Some(Making { state, number, head: Some(head.into()), export }))
    }
}

/// A snapshot that is being made. Dropped, it is given up.
pub(crate) struct Making<S: StateMachine> {
    state: Arc<S>,
    pub(crate) number: u64,
    head: Option<Bytes>,
    export: S::Export,
}

impl<S: StateMachine> Making<S> {
    /// The next page, of about `bytes_min` bytes; an empty one is the last.
    pub(crate) fn next_page(&mut self, bytes_min: usize) -> Bytes {
        if let Some(head) = self.head.take() {
            return head;
        }
        self.state.export_page(&mut self.export, bytes_min).unwrap_or_default()
    }
}

/// What was brought of a snapshot.
pub(crate) struct Taken<S: StateMachine> {
    pub(crate) import: S::Import,
    pub(crate) origins: Origins,
}

/// A snapshot on its way to here.
pub(crate) struct Taking<S: StateMachine> {
    pub(crate) vote: Vote,
    pub(crate) snapshot: u64,
    pub(crate) next: u64,
    head: Option<(SnapshotMeta, Taken<S>)>,
}

impl<S: StateMachine> Taking<S> {
    pub(crate) fn new(vote: Vote, snapshot: u64) -> Self {
        Taking { vote, snapshot, next: 0, head: None }
    }

    /// Takes the page that has to come next; what was brought, if that was the last one.
    pub(crate) fn page(&mut self, state: &S, page: Bytes) -> Result<Option<(SnapshotMeta, Taken<S>)>, String> {
        self.next += 1;
        match &mut self.head {
            None => {
                let (meta, origins) = read_head(page).map_err(|error| error.to_string())?;
                self.head = Some((meta, Taken { import: state.begin_import(), origins }));
                Ok(None)
            }
            Some((_, taken)) if !page.is_empty() => {
                state.import_page(&mut taken.import, page).map_err(|error| error.to_string())?;
                Ok(None)
            }
            Some((_, taken)) => {
                state.check_import(&taken.import).map_err(|error| error.to_string())?;
                Ok(self.head.take())
            }
        }
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
