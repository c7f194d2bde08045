//! Picks entries to evict from samples, by policy. The leader picks, and a command names the picked
//! keys: the choice depends on usage and order, which differ between replicas.
//!
//! A sample is a run of neighbours in the table from a random place on. Entries are in the order of
//! hashes, so neighbours have nothing in common, and a run is as good as single random entries. It
//! accesses much less memory.

use crate::map::Map;
use crate::record::Record;
use crate::{EvictionPolicy, MapId, Millis, Partition};

impl Partition {
    /// The key of an entry that the policy selects, for
    /// [`ChangeOf::EvictKeys`](crate::ChangeOf::EvictKeys). Never selects a locked or claimed key,
    /// nor a key for which `spares` returns `true` (the key that made the eviction necessary, and
    /// picked keys that are not yet evicted). An expired entry in the sample is selected first.
    /// Changes nothing, and takes random numbers from `random`. `None` if no entry may be evicted.
    pub fn pick_eviction(
        &self,
        map: MapId,
        policy: EvictionPolicy,
        now: Millis,
        random: &mut dyn FnMut() -> u64,
        spares: &dyn Fn(&[u8]) -> bool,
    ) -> Option<&[u8]> {
        let map = self.map(map).filter(|_| policy != EvictionPolicy::None)?;
        map.pick(self.read_time(now), (random(), random()), policy, spares).map(Record::key)
    }
}

impl Map {
    fn pick(
        &self,
        now: Millis,
        random: (u64, u64),
        policy: EvictionPolicy,
        spares: &dyn Fn(&[u8]) -> bool,
    ) -> Option<&Record> {
        let size = if policy == EvictionPolicy::Random { 1 } else { self.settings.eviction_sample_size.max(1) };
        let mut best: Option<&Record> = None;
        let eligible = self.run_from(random).filter(|record| !spares(record.key()) && !self.is_held(record.key(), now));
        for record in eligible.take(size) {
            if record.is_expired_for_reads(now) {
                return Some(record);
            }
            if best.is_none_or(|best| rank(policy, record) < rank(policy, best)) {
                best = Some(record);
            }
        }
        best
    }

    /// All records from a random one on: to the end of the table, and then from its beginning to
    /// that record.
    fn run_from(&self, (start, offset): (u64, u64)) -> impl Iterator<Item = &Record> {
        let first = self.table.range_at(start);
        let first_len = self.table.records_at(start).count().max(1);
        let skip = (offset % first_len as u64) as usize;
        let mut position = first.next().unwrap_or(0);
        let others = std::iter::from_fn(move || {
            if position == first.first {
                return None;
            }
            let records = self.table.records_at(position);
            position = self.table.range_at(position).next().unwrap_or(0);
            Some(records)
        });
        self.table.records_at(start).skip(skip).chain(others.flatten()).chain(self.table.records_at(start).take(skip))
    }
}

/// The rank of a record: the policy evicts the lowest rank first.
fn rank(policy: EvictionPolicy, record: &Record) -> (u32, crate::record::Stamp) {
    let usage = record.usage();
    match policy {
        EvictionPolicy::Lfu => (usage.hits, usage.accessed),
        EvictionPolicy::Lru | EvictionPolicy::Random | EvictionPolicy::None => (0, usage.accessed),
    }
}
