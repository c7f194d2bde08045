//! Picking entries to evict: out of samples, by policy. Who leads picks, and a command names what was picked: usage and
//! order, by which entries are picked, are each replica's own.
//!
//! A sample is a run of neighbours in the table from a random place on. As entries lie in order of hash, neighbours
//! have nothing else in common, so a run is as good as single draws and touches far less memory.

use crate::map::Map;
use crate::record::Record;
use crate::{EvictionPolicy, MapId, Millis, Partition};

impl Partition {
    /// The key of an entry that the policy would have go, for [`ChangeOf::EvictKeys`](crate::ChangeOf::EvictKeys): never one
    /// that someone holds, nor one that `spares` names (the key whose arrival made the eviction necessary, and what was
    /// picked before and is still there). An expired entry that turns up in the sample goes first. Changes nothing, and
    /// takes its chances from `random`; `None` if no entry may go.
    pub fn pick_eviction(
        &self,
        map: MapId,
        policy: EvictionPolicy,
        now: Millis,
        random: &mut dyn FnMut() -> u64,
        spares: &dyn Fn(&[u8]) -> bool,
    ) -> Option<&[u8]> {
        let map = self.map(map).filter(|_| policy != EvictionPolicy::None)?;
        map.pick(self.time_of_read(now), (random(), random()), policy, spares).map(Record::key)
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

    /// All records, from a random one on, around the end of the table, and up to where it began.
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

/// What the policy evicts first is least.
fn rank(policy: EvictionPolicy, record: &Record) -> (u32, crate::record::Stamp) {
    let usage = record.usage();
    match policy {
        EvictionPolicy::Lfu => (usage.hits, usage.accessed),
        EvictionPolicy::Lru | EvictionPolicy::Random | EvictionPolicy::None => (0, usage.accessed),
    }
}
