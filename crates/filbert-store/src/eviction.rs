//! Picking entries to evict: out of samples, by policy, with the partition's own generator.
//!
//! A sample is a run of neighbours in the table from a random place on. As entries lie in order of hash, neighbours
//! have nothing else in common, so a run is as good as single draws and touches far less memory.

use crate::map::{Context, Map};
use crate::record::Record;
use crate::table::Place;
use crate::{EventKind, EvictionPolicy, Millis};

/// SplitMix64 (Steele, Lea, Flood 2014): small, and the same everywhere.
#[derive(Clone, Debug)]
pub(crate) struct Generator(u64);

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Generator(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

impl Map {
    /// Evicts up to `count` entries, neither locked ones nor `except`. Expired entries that turn up in a sample go first,
    /// as expired. Returns how many went.
    pub(crate) fn evict_sample(
        &mut self,
        cx: &mut Context<'_>,
        generator: &mut Generator,
        policy: EvictionPolicy,
        count: usize,
        except: Option<&[u8]>,
    ) -> usize {
        let mut evicted_count = 0;
        while evicted_count < count && policy != EvictionPolicy::None {
            let random = (generator.next(), generator.next());
            let Some((hash, place, kind)) = self.pick(cx.now, random, policy, except) else { break };
            if self.take(cx, hash, place, kind).is_none() {
                break;
            }
            evicted_count += 1;
        }
        evicted_count
    }

    fn pick(
        &self,
        now: Millis,
        random: (u64, u64),
        policy: EvictionPolicy,
        except: Option<&[u8]>,
    ) -> Option<(u64, Place, EventKind)> {
        let size = if policy == EvictionPolicy::Random { 1 } else { self.settings.eviction_sample_size.max(1) };
        let mut best: Option<&Record> = None;
        let eligible =
            self.run_from(random).filter(|record| except != Some(record.key()) && !self.is_held(record.key(), now));
        for record in eligible.take(size) {
            if record.is_expired(now) {
                return self.locate(record, EventKind::Expired);
            }
            if best.is_none_or(|best| rank(policy, record) < rank(policy, best)) {
                best = Some(record);
            }
        }
        self.locate(best?, EventKind::Evicted)
    }

    fn locate(&self, record: &Record, kind: EventKind) -> Option<(u64, Place, EventKind)> {
        let hash = self.table.hash(record.key());
        Some((hash, self.table.find(hash, record.key())?, kind))
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
