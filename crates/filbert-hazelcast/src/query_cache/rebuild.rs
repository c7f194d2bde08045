//! The rebuild of a cache's content, partition by partition, after its client has lost changes and
//! may not know of it.
//!
//! | number | event | effect at the client |
//! |---|---|---|
//! | -1 | the end of the current numbers | forgets the gap, and expects number 1 |
//! | 1 | the partition was cleared | removes the partition's entries |
//! | 2 .. | an entry was added | adds the entry |
//! | later | changes since the content was read | as usual |
//!
//! A client that did not request an initial content has no content to rebuild: it is notified of
//! the loss. The same holds if the content cannot be read.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use filbert_grid::{
    EventKinds, Grid, GridError, PartitionId, ReadView,
    query::{Answer, MapQuery},
};
use tokio::{runtime::Handle, sync::oneshot};

use super::{Change, Channel, Content, Phase, QueryCache};

/// The number that tells a client that numbers begin again.
const END: i64 = -1;

/// A number that is never the next one, so its receiver notices a loss.
const LOST: i64 = i64::MAX;

/// The pause before a rebuild: a client that has lost its last connection requests its caches again
/// by itself.
const PAUSE: Duration = Duration::from_millis(500);

/// The limit of a client's waiting bytes, above which the rebuild of the next partition waits.
const WAITING_BYTES_MAX: usize = 2 << 20;

/// The interval of checks whether a client has read.
const LOOK: Duration = Duration::from_millis(20);

/// The size of a batch of entries, in bytes.
const BATCH_BYTES: usize = 64 << 10;

/// The maximum number of reads of a partition. It is read again if more changes arrive during a
/// read than may be kept.
const READS_MAX: usize = 5;

/// The access of a cache to its map, for a rebuild.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    grid: Weak<Grid>,
    runtime: Handle,
    is_in_cluster: bool,
}

impl Reader {
    /// Must be called within the door's runtime.
    pub(crate) fn new(grid: &Arc<Grid>) -> Self {
        let is_in_cluster = grid.cluster().is_some();
        Self { grid: Arc::downgrade(grid), runtime: Handle::current(), is_in_cluster }
    }

    pub(super) fn is_in_cluster(&self) -> bool {
        self.is_in_cluster
    }
}

/// The result of the rebuild of a partition.
enum RebuildResult {
    Done,
    /// More changes arrived in the meantime than may be kept.
    Retry,
    /// The cache has ended.
    Closed,
}

/// The change that notifies a client of a loss.
fn loss(now: Instant) -> Change {
    // If a client ever applies it, no wrong entries remain.
    Change::new(EventKinds::CLEAR_ALL, None, None, now).numbered(LOST)
}

impl Channel {
    /// Notifies all listeners that changes of partitions are lost.
    pub(super) fn send_loss(&self, map: &str, source: &str, partitions: impl IntoIterator<Item = PartitionId>) {
        let loss = loss(Instant::now());
        for partition in partitions {
            self.send(map, source, partition, &mut std::iter::once(&loss));
        }
    }
}

impl QueryCache {
    fn partitions(&self) -> impl Iterator<Item = PartitionId> + use<> {
        (0..self.map.partition_count()).map(PartitionId)
    }

    /// Handles the loss of changes of these partitions. May be called with a partition's lock held.
    pub(super) fn lose<const N: usize>(self: &Arc<Self>, partitions: [PartitionId; N]) {
        if self.request.populate {
            self.rebuild(partitions);
        } else {
            self.channel.send_loss(self.map.name(), &self.request.source, partitions);
        }
    }

    /// Notifies the client that changes of all partitions are lost.
    pub(super) fn send_loss(&self) {
        self.channel.send_loss(self.map.name(), &self.request.source, self.partitions());
    }

    /// Rebuilds the content of all partitions. Without an initial content, notifies the client of
    /// the loss.
    pub(super) fn rebuild_all(self: &Arc<Self>) {
        if self.request.populate {
            self.rebuild(self.partitions());
        } else {
            self.send_loss();
        }
    }

    /// Begins to send changes, for each partition only after its content is rebuilt. For a client
    /// that has received its events from another member.
    pub(crate) fn begin_with_rebuild(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if matches!(state.phase, Phase::Closed) {
            return;
        }
        state.phase = Phase::Sending;
        state.snapshot_room.shrink(0);
        self.partitions().for_each(|partition| state.buffers.begin_rebuild(partition));
        drop(state);
        self.rebuild_all();
    }

    /// Rebuilds the content of partitions, once changes are sent. Returns `false` if the cache has
    /// ended.
    pub(super) fn rebuild(self: &Arc<Self>, partitions: impl IntoIterator<Item = PartitionId>) -> bool {
        let mut state = self.state.lock();
        if matches!(state.phase, Phase::Closed) {
            return false;
        }
        state.to_rebuild.extend(partitions);
        let begins = !state.to_rebuild.is_empty() && !state.is_rebuilding && matches!(state.phase, Phase::Sending);
        state.is_rebuilding |= begins;
        drop(state);
        if begins {
            self.reader.runtime.spawn(Self::run(Arc::downgrade(self)));
        }
        true
    }

    /// Rebuilds the pending partitions one after the other, as fast as the client reads.
    async fn run(cache: Weak<Self>) {
        tokio::time::sleep(PAUSE).await;
        loop {
            let Some(cache) = cache.upgrade() else { return };
            if cache.has_waiting() {
                drop(cache);
                tokio::time::sleep(LOOK).await;
                continue;
            }
            let Some(partition) = cache.next_to_rebuild() else { return };
            let Some(engine) = cache.reader.grid.upgrade().and_then(|grid| grid.queries().cloned()) else { return };
            let (sender, rebuilt) = oneshot::channel();
            let job = cache.clone();
            engine.run_later(Box::new(move || {
                job.rebuild_partition(partition);
                // The receiver is gone if the door has closed.
                _ = sender.send(());
            }));
            if rebuilt.await.is_err() {
                return;
            }
        }
    }

    /// Whether a listener has too many unread bytes.
    fn has_waiting(&self) -> bool {
        self.channel.0.lock().iter().any(|subscriber| subscriber.link.held_bytes() > WAITING_BYTES_MAX)
    }

    fn next_to_rebuild(&self) -> Option<PartitionId> {
        let mut state = self.state.lock();
        let next = if matches!(state.phase, Phase::Sending) { state.to_rebuild.pop_first() } else { None };
        state.is_rebuilding = next.is_some();
        next
    }

    fn rebuild_partition(&self, partition: PartitionId) {
        for _ in 0..READS_MAX {
            // Later changes come after the content that is read.
            self.state.lock().buffers.begin_rebuild(partition);
            match self.read(partition).map(|found| self.send_rebuilt(partition, &found)) {
                Ok(RebuildResult::Done | RebuildResult::Closed) => return,
                Ok(RebuildResult::Retry) => {}
                Err(_) if self.is_closed() => return,
                Err(error) => {
                    tracing::warn!(map = self.map.name(), "a query cache cannot be made anew: {error}");
                    break;
                }
            }
        }
        let mut state = self.state.lock();
        state.buffers.abort_rebuild(partition);
        self.channel.send_loss(self.map.name(), &self.request.source, [partition]);
    }

    fn read(&self, partition: PartitionId) -> Result<Content, GridError> {
        let grid = self.reader.grid.upgrade().ok_or(GridError::NotActive)?;
        let engine = grid.queries().ok_or(GridError::NotActive)?;
        let (predicate, partitions) = (Some(&*self.request.predicate), Some(vec![partition]));
        // The home of a cache holds all partitions.
        let query = MapQuery::Entries { predicate, partitions };
        let mut query = engine.prepare(&self.map, query, ReadView::complete())?;
        let (mut found, mut bytes, mut room) = (Content::new(), 0, self.budget.empty());
        query.run(&mut |answer| {
            if let Answer::Entry(key, value) = answer
                && self.map.partition_of(key) == partition
            {
                let value = if self.request.include_value { value } else { &[] };
                bytes += key.len() + value.len() + size_of::<(Vec<u8>, Vec<u8>)>();
                room.follow(bytes)?;
                found.push((key.to_vec(), value.to_vec()));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Sends a partition's content, numbered from 1, and then the changes since the read.
    fn send_rebuilt(&self, partition: PartitionId, found: &Content) -> RebuildResult {
        let now = Instant::now();
        let mut state = self.state.lock();
        if !matches!(state.phase, Phase::Sending) {
            return RebuildResult::Closed;
        }
        let sent = i64::try_from(found.len()).unwrap_or(i64::MAX).saturating_add(1);
        let Some(kept) = state.buffers.finish_rebuild(partition, sent) else { return RebuildResult::Retry };
        let end = Change::new(EventKinds(0), None, None, now).numbered(END);
        let cleared = Change::new(EventKinds::CLEAR_ALL, None, None, now).numbered(1);
        let (mut batch, mut bytes) = (vec![end, cleared], 0);
        for (sequence, (key, value)) in (2..).zip(found) {
            let value = self.request.include_value.then_some(&value[..]);
            let change = Change::new(EventKinds::ADDED, Some(key), value, now).numbered(sequence);
            bytes += change.bytes();
            batch.push(change);
            if bytes >= BATCH_BYTES {
                self.send(partition, &mut batch.iter());
                (batch, bytes) = (Vec::new(), 0);
            }
        }
        if !batch.is_empty() {
            self.send(partition, &mut batch.iter());
        }
        for change in kept {
            state.buffers.append(partition, change);
        }
        state.buffers.send_due(partition, now, &mut |partition, changes| self.send(partition, changes));
        RebuildResult::Done
    }
}
