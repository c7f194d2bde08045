//! A cache's content made anew, partition by partition, where its client has lost changes and may not know of it.
//!
//! | number | event | what a client does |
//! |---|---|---|
//! | -1 | the end of the numbers so far | forgets what it has missed, and expects number 1 |
//! | 1 | the partition was cleared | forgets the partition's entries |
//! | 2 .. | an entry was added | takes it |
//! | behind | changes since the content was read | as ever |
//!
//! A client that did not ask for a first content has none that could be made: it is told of the loss. So is one whose content cannot be read.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use filbert_grid::{
    EventKinds, Grid, GridError, PartitionId,
    query::{Answer, MapQuery},
};
use tokio::{runtime::Handle, sync::oneshot};

use super::{Change, Channel, Content, Phase, QueryCache};

/// The number by which a client hears that numbers begin again.
const END: i64 = -1;

/// A number that is never the next one: who hears it knows of a loss.
const LOST: i64 = i64::MAX;

/// How long nothing is made anew: a client that has lost its last connection asks for its caches again by itself.
const PAUSE: Duration = Duration::from_millis(500);

/// Bytes that may wait for a client before the next partition is made anew.
const WAITING_BYTES_MAX: usize = 2 << 20;

/// How often it is looked whether a client has read.
const LOOK: Duration = Duration::from_millis(20);

/// Bytes of entries that are told at once.
const BATCH_BYTES: usize = 64 << 10;

/// How often a partition is read again that has changed by more than is kept.
const READS_MAX: usize = 5;

/// How a cache reads its map.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    grid: Weak<Grid>,
    runtime: Handle,
    is_in_cluster: bool,
}

impl Reader {
    /// To be made within the door's runtime.
    pub(crate) fn new(grid: &Arc<Grid>) -> Self {
        let is_in_cluster = grid.cluster().is_some();
        Self { grid: Arc::downgrade(grid), runtime: Handle::current(), is_in_cluster }
    }

    pub(super) fn is_in_cluster(&self) -> bool {
        self.is_in_cluster
    }
}

/// What has become of a partition.
enum Renewed {
    Done,
    /// More has changed meanwhile than is kept.
    Again,
    /// Nobody wants it any more.
    Over,
}

/// The change by which a client knows of a loss.
fn loss(now: Instant) -> Change {
    // If it is ever taken, it leaves nothing that is wrong.
    Change::new(EventKinds::CLEAR_ALL, None, None, now).numbered(LOST)
}

impl Channel {
    /// Has everyone who listens know that changes of partitions are lost.
    pub(super) fn tell_loss(&self, map: &str, source: &str, partitions: impl IntoIterator<Item = PartitionId>) {
        let loss = loss(Instant::now());
        for partition in partitions {
            self.tell(map, source, partition, &mut std::iter::once(&loss));
        }
    }
}

impl QueryCache {
    fn partitions(&self) -> impl Iterator<Item = PartitionId> + use<> {
        (0..self.map.partition_count()).map(PartitionId)
    }

    /// Changes of these partitions were not heard of. May be called with a partition's lock held.
    pub(super) fn lose<const N: usize>(self: &Arc<Self>, partitions: [PartitionId; N]) {
        if self.wanted.populate {
            self.renew(partitions);
        } else {
            self.channel.tell_loss(self.map.name(), &self.wanted.source, partitions);
        }
    }

    /// Tells the client that changes of all partitions are lost.
    pub(super) fn tell_loss(&self) {
        self.channel.tell_loss(self.map.name(), &self.wanted.source, self.partitions());
    }

    /// As [`QueryCache::renew`], of all partitions.
    pub(super) fn renew_all(self: &Arc<Self>) {
        if self.wanted.populate {
            self.renew(self.partitions());
        } else {
            self.tell_loss();
        }
    }

    /// Begins to tell, of no partition before its content was made anew. For a client that has been told by another member.
    pub(crate) fn begin_anew(self: &Arc<Self>) {
        let mut state = self.state.lock();
        if matches!(state.phase, Phase::Closed) {
            return;
        }
        state.phase = Phase::Telling;
        state.snapshot_room.shrink(0);
        self.partitions().for_each(|partition| state.buffers.set_aside(partition));
        drop(state);
        self.renew_all();
    }

    /// Makes the content of partitions anew, once changes are told; false if the cache has ended.
    pub(super) fn renew(self: &Arc<Self>, partitions: impl IntoIterator<Item = PartitionId>) -> bool {
        let mut state = self.state.lock();
        if matches!(state.phase, Phase::Closed) {
            return false;
        }
        state.anew.extend(partitions);
        let begins = !state.anew.is_empty() && !state.is_renewed && matches!(state.phase, Phase::Telling);
        state.is_renewed |= begins;
        drop(state);
        if begins {
            self.reader.runtime.spawn(Self::run(Arc::downgrade(self)));
        }
        true
    }

    /// Makes anew what is to be, one partition after the other, as fast as the client reads.
    async fn run(cache: Weak<Self>) {
        tokio::time::sleep(PAUSE).await;
        loop {
            let Some(cache) = cache.upgrade() else { return };
            if cache.has_waiting() {
                drop(cache);
                tokio::time::sleep(LOOK).await;
                continue;
            }
            let Some(partition) = cache.next_to_renew() else { return };
            let Some(engine) = cache.reader.grid.upgrade().and_then(|grid| grid.queries().cloned()) else { return };
            let (sender, renewed) = oneshot::channel();
            let job = cache.clone();
            engine.run_later(Box::new(move || {
                job.renew_one(partition);
                // Nobody waits any more if the door has closed.
                _ = sender.send(());
            }));
            if renewed.await.is_err() {
                return;
            }
        }
    }

    /// Whether the client has not read what it was told.
    fn has_waiting(&self) -> bool {
        self.channel.0.lock().iter().any(|subscriber| subscriber.link.held_bytes() > WAITING_BYTES_MAX)
    }

    fn next_to_renew(&self) -> Option<PartitionId> {
        let mut state = self.state.lock();
        let next = if matches!(state.phase, Phase::Telling) { state.anew.pop_first() } else { None };
        state.is_renewed = next.is_some();
        next
    }

    fn renew_one(&self, partition: PartitionId) {
        for _ in 0..READS_MAX {
            // What changes from here on is behind what is read.
            self.state.lock().buffers.set_aside(partition);
            match self.read(partition).map(|found| self.tell_anew(partition, &found)) {
                Ok(Renewed::Done | Renewed::Over) => return,
                Ok(Renewed::Again) => {}
                Err(_) if self.is_closed() => return,
                Err(error) => {
                    tracing::warn!(map = self.map.name(), "a query cache cannot be made anew: {error}");
                    break;
                }
            }
        }
        let mut state = self.state.lock();
        state.buffers.give_up(partition);
        self.channel.tell_loss(self.map.name(), &self.wanted.source, [partition]);
    }

    fn read(&self, partition: PartitionId) -> Result<Content, GridError> {
        let grid = self.reader.grid.upgrade().ok_or(GridError::NotActive)?;
        let engine = grid.queries().ok_or(GridError::NotActive)?;
        let (predicate, partitions) = (Some(&*self.wanted.predicate), Some(vec![partition]));
        let mut query = engine.prepare(&self.map, MapQuery::Entries { predicate, partitions })?;
        let (mut found, mut bytes, mut room) = (Content::new(), 0, self.budget.empty());
        query.run(&mut |answer| {
            if let Answer::Entry(key, value) = answer
                && self.map.partition_of(key) == partition
            {
                let value = if self.wanted.include_value { value } else { &[] };
                bytes += key.len() + value.len() + size_of::<(Vec<u8>, Vec<u8>)>();
                room.follow(bytes)?;
                found.push((key.to_vec(), value.to_vec()));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// Tells a partition's content from number 1 on, and then what has changed meanwhile.
    fn tell_anew(&self, partition: PartitionId, found: &Content) -> Renewed {
        let now = Instant::now();
        let mut state = self.state.lock();
        if !matches!(state.phase, Phase::Telling) {
            return Renewed::Over;
        }
        let told = i64::try_from(found.len()).unwrap_or(i64::MAX).saturating_add(1);
        let Some(kept) = state.buffers.go_on(partition, told) else { return Renewed::Again };
        let end = Change::new(EventKinds(0), None, None, now).numbered(END);
        let cleared = Change::new(EventKinds::CLEAR_ALL, None, None, now).numbered(1);
        let (mut batch, mut bytes) = (vec![end, cleared], 0);
        for (sequence, (key, value)) in (2..).zip(found) {
            let value = self.wanted.include_value.then_some(&value[..]);
            let change = Change::new(EventKinds::ADDED, Some(key), value, now).numbered(sequence);
            bytes += change.bytes();
            batch.push(change);
            if bytes >= BATCH_BYTES {
                self.tell(partition, &mut batch.iter());
                (batch, bytes) = (Vec::new(), 0);
            }
        }
        if !batch.is_empty() {
            self.tell(partition, &mut batch.iter());
        }
        for change in kept {
            state.buffers.append(partition, change);
        }
        state.buffers.tell_due(partition, now, &mut |partition, changes| self.tell(partition, changes));
        Renewed::Done
    }
}
