//! Snapshots that are exported when a member needs one, and sent page by page.
//!
//! Page 0 is the header: 1 byte of version (1); id of the last entry; id of the membership entry;
//! the membership; origins. Each further page comes from the state machine
//! ([`StateMachine::export_page`]). The last page is empty.
//!
//! A page is created after the previous page was acknowledged. So the memory in use is one page,
//! and the entries that change meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use crate::applied::Applied;
use crate::origins::Origins;
use crate::state_machine::StateMachine;
use crate::types::{SnapshotMeta, StoredMembership, Vote};
use crate::wire::{Reader, append_log_id, append_membership, read_log_id, read_membership};

/// The contents of a snapshot, as openraft passes it on.
pub(crate) enum SnapshotData<S: StateMachine> {
    /// Only a log position: enough to purge the log before it.
    Position,
    /// A snapshot that is being exported. `None` if the replica is already exporting another one.
    Making(Option<Making<S>>),
    /// A snapshot that was received completely.
    Taken(Box<Taken<S>>),
}

static NUMBERS: AtomicU64 = AtomicU64::new(1);

impl<S: StateMachine> SnapshotData<S> {
    /// Begins a snapshot of the current state of a state machine, and of the state that the log
    /// decides beside it.
    pub(crate) fn begin(state: &Arc<S>, applied: &Mutex<Applied>) -> SnapshotData<S> {
        let Some(export) = state.begin_export() else { return SnapshotData::Making(None) };
        let mut head = vec![1];
        let applied = applied.lock();
        append_log_id(&mut head, applied.last.as_ref());
        append_log_id(&mut head, applied.membership.log_id().as_ref());
        append_membership(&mut head, applied.membership.membership());
        applied.origins.append(&mut head);
        drop(applied);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let state = Arc::clone(state);
        SnapshotData::Making(Some(Making { state, number, head: Some(head.into()), export }))
    }
}

/// A snapshot that is being exported. Dropping it cancels the export.
pub(crate) struct Making<S: StateMachine> {
    state: Arc<S>,
    pub(crate) number: u64,
    head: Option<Bytes>,
    export: S::Export,
}

impl<S: StateMachine> Making<S> {
    /// Returns the next page, of about `bytes_min` bytes. An empty page is the last one.
    pub(crate) fn next_page(&mut self, bytes_min: usize) -> Bytes {
        if let Some(head) = self.head.take() {
            return head;
        }
        self.state.export_page(&mut self.export, bytes_min).unwrap_or_default()
    }
}

/// The received contents of a snapshot.
pub(crate) struct Taken<S: StateMachine> {
    pub(crate) import: S::Import,
    pub(crate) origins: Origins,
}

/// A snapshot that is being received.
pub(crate) struct Taking<S: StateMachine> {
    pub(crate) vote: Vote,
    pub(crate) snapshot: u64,
    pub(crate) next: u64,
    /// The time of the last page, in nanoseconds of the group.
    pub(crate) last_ns: u64,
    head: Option<(SnapshotMeta, Taken<S>)>,
}

/// The result of a page that was received.
pub(crate) enum Received<S: StateMachine> {
    /// Further pages are expected.
    Page,
    /// The page was the last one.
    Whole(SnapshotMeta, Taken<S>),
    /// This member has no room for another snapshot.
    NoRoom,
}

impl<S: StateMachine> Taking<S> {
    pub(crate) fn new(vote: Vote, snapshot: u64) -> Self {
        Taking { vote, snapshot, next: 0, last_ns: 0, head: None }
    }

    /// Takes the next page.
    pub(crate) fn page(&mut self, state: &S, page: Bytes) -> Result<Received<S>, String> {
        self.next += 1;
        match &mut self.head {
            None => {
                let (meta, origins) = read_head(page).map_err(|error| error.to_string())?;
                let Some(import) = state.begin_import() else { return Ok(Received::NoRoom) };
                self.head = Some((meta, Taken { import, origins }));
                Ok(Received::Page)
            }
            Some((_, taken)) if !page.is_empty() => {
                state.import_page(&mut taken.import, page).map_err(|error| error.to_string())?;
                Ok(Received::Page)
            }
            Some((_, taken)) => {
                state.check_import(&taken.import).map_err(|error| error.to_string())?;
                Ok(self.head.take().map_or(Received::Page, |(meta, taken)| Received::Whole(meta, taken)))
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
