//! The log of a group, in memory. Purged entries are gone. The size is kept in atomics, for the
//! decisions to purge and to refuse submissions.

use std::collections::{BTreeSet, VecDeque};
use std::fmt::Debug;
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use openraft::storage::{IOFlushed, RaftLogReader, RaftLogStorage};
use openraft::{AsyncRuntime, LogState, OptionalSend};
use parking_lot::Mutex;

use crate::MemberId;
use crate::types::{Entry, LogId, Payload, Types, Vote};

/// The approximate size of an entry beside its batch.
const ENTRY_BYTES: usize = 128;

#[derive(Default)]
struct Inner {
    entries: VecDeque<Entry>,
    purged: Option<LogId>,
    vote: Option<Vote>,
    committed: Option<LogId>,
}

/// A log, shared by all its clones.
#[derive(Clone)]
pub(crate) struct RaftLog {
    inner: Arc<Mutex<Inner>>,
    size: Arc<Size>,
    read_bytes_max: usize,
}

/// Called with the bytes that a log takes more, or fewer.
pub(crate) type OnChange = Box<dyn Fn(isize) + Send + Sync>;

/// The size of a log.
pub(crate) struct Size {
    pub(crate) bytes: AtomicUsize,
    pub(crate) entries: AtomicUsize,
    /// The index of the first entry that is present, or will be.
    pub(crate) first: AtomicU64,
    on_change: OnChange,
}

impl Size {
    fn changed(&self, added: usize, taken: usize) {
        self.bytes.fetch_add(added, Ordering::Relaxed);
        self.bytes.fetch_sub(taken, Ordering::Relaxed);
        (self.on_change)(added.cast_signed() - taken.cast_signed());
    }
}

impl Drop for Size {
    fn drop(&mut self) {
        self.changed(0, self.bytes.load(Ordering::Relaxed));
    }
}

fn bytes_of(entry: &Entry) -> usize {
    ENTRY_BYTES + if let Payload::Normal(batch) = &entry.payload { batch.bytes.len() } else { 0 }
}

impl RaftLog {
    /// Creates an empty log, which is read in pieces of at most `read_bytes_max` bytes, or of one
    /// entry. `vote` = the latest vote of this member.
    pub(crate) fn new(read_bytes_max: usize, vote: Option<Vote>, on_change: OnChange) -> Self {
        let (bytes, entries, first) = Default::default();
        let size = Size { bytes, entries, first, on_change };
        let inner = Inner { vote, ..Inner::default() };
        RaftLog { inner: Arc::new(Mutex::new(inner)), size: Arc::new(size), read_bytes_max }
    }

    pub(crate) fn size(&self) -> Arc<Size> {
        Arc::clone(&self.size)
    }

    fn measure(&self, inner: &Inner, added: usize, taken: usize) {
        self.size.changed(added, taken);
        self.size.entries.store(inner.entries.len(), Ordering::Relaxed);
        self.size.first.store(inner.first(), Ordering::Relaxed);
    }

    fn read(&self, range: (Bound<u64>, Bound<u64>), bytes_max: usize) -> Vec<Entry> {
        let inner = self.inner.lock();
        let first = inner.first();
        let skip = match range.0 {
            Bound::Included(start) => start.saturating_sub(first),
            Bound::Excluded(start) => (start + 1).saturating_sub(first),
            Bound::Unbounded => 0,
        };
        let mut bytes = 0;
        let is_within = |entry: &&Entry| range.contains(&entry.log_id.index);
        let fits = |entry: &&Entry| {
            let before = bytes;
            bytes += bytes_of(entry);
            before == 0 || bytes <= bytes_max
        };
        inner.entries.iter().skip(skip as usize).take_while(is_within).take_while(fits).cloned().collect()
    }

    /// The ids of the entries that are present, to compare logs with each other.
    pub(crate) fn ids(&self) -> Vec<(u64, u64)> {
        self.inner
            .lock()
            .entries
            .iter()
            .map(|entry| (entry.log_id.index, **entry.log_id.committed_leader_id()))
            .collect()
    }

    /// The latest vote of this member.
    pub(crate) fn vote(&self) -> Option<Vote> {
        self.inner.lock().vote
    }

    /// The id of the last entry, even if it was purged.
    pub(crate) fn last(&self) -> Option<LogId> {
        let inner = self.inner.lock();
        inner.entries.back().map(|entry| entry.log_id).or(inner.purged)
    }

    /// The index and the sets of voters of the membership entries.
    pub(crate) fn voters(&self) -> Vec<(u64, Vec<BTreeSet<MemberId>>)> {
        let changed = |entry: &Entry| match &entry.payload {
            Payload::Membership(membership) => Some((entry.log_id.index, membership.get_joint_config().clone())),
            _ => None,
        };
        self.inner.lock().entries.iter().filter_map(changed).collect()
    }
}

impl Inner {
    fn first(&self) -> u64 {
        self.purged.map_or(0, |purged| purged.index + 1)
    }
}

impl<R: AsyncRuntime> RaftLogReader<Types<R>> for RaftLog {
    async fn try_get_log_entries<B: RangeBounds<u64> + Clone + Debug + OptionalSend>(
        &mut self,
        range: B,
    ) -> Result<Vec<Entry>, io::Error> {
        Ok(self.read((range.start_bound().cloned(), range.end_bound().cloned()), usize::MAX))
    }

    async fn limited_get_log_entries(&mut self, start: u64, end: u64) -> Result<Vec<Entry>, io::Error> {
        Ok(self.read((Bound::Included(start), Bound::Excluded(end)), self.read_bytes_max))
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(self.inner.lock().vote)
    }
}

impl<R: AsyncRuntime> RaftLogStorage<Types<R>> for RaftLog {
    type LogReader = RaftLog;

    async fn get_log_state(&mut self) -> Result<LogState<Types<R>>, io::Error> {
        let inner = self.inner.lock();
        let last = inner.entries.back().map(|entry| entry.log_id).or(inner.purged);
        Ok(LogState { last_purged_log_id: inner.purged, last_log_id: last })
    }

    async fn get_log_reader(&mut self) -> RaftLog {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        self.inner.lock().vote = Some(*vote);
        Ok(())
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), io::Error> {
        self.inner.lock().committed = committed;
        Ok(())
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, io::Error> {
        Ok(self.inner.lock().committed)
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<Types<R>>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        {
            let mut inner = self.inner.lock();
            let mut added = 0;
            for entry in entries {
                added += bytes_of(&entry);
                inner.entries.push_back(entry);
            }
            self.measure(&inner, added, 0);
        }
        callback.io_completed(Ok(()));
        Ok(())
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        let mut inner = self.inner.lock();
        let end = last.map_or(0, |last| last.index + 1);
        let mut taken = 0;
        while inner.entries.back().is_some_and(|entry| entry.log_id.index >= end) {
            taken += inner.entries.pop_back().as_ref().map_or(0, bytes_of);
        }
        self.measure(&inner, 0, taken);
        Ok(())
    }

    async fn purge(&mut self, upto: LogId) -> Result<(), io::Error> {
        let mut inner = self.inner.lock();
        let mut taken = 0;
        while inner.entries.front().is_some_and(|entry| entry.log_id.index <= upto.index) {
            taken += inner.entries.pop_front().as_ref().map_or(0, bytes_of);
        }
        inner.purged = inner.purged.max(Some(upto));
        self.measure(&inner, 0, taken);
        Ok(())
    }
}
