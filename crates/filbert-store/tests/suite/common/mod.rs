//! A partition with one map, with texts as keys and values, and with replies and events as lines of
//! text.
#![allow(dead_code, reason = "each test binary uses its own part")]

pub(crate) mod changes;
pub(crate) mod derived;

use filbert_data::PartitionId;
use filbert_store::*;
use uuid::Uuid;

pub(crate) const CLIENT: Caller = Caller { client: Uuid::from_u128(1), thread: 1 };
pub(crate) const OTHER: Caller = Caller { client: Uuid::from_u128(2), thread: 1 };

pub(crate) struct Store {
    pub(crate) partition: Partition,
    pub(crate) map: MapId,
    pub(crate) now: Millis,
    pub(crate) caller: Caller,
    events: Vec<String>,
    random: u64,
}

impl Store {
    pub(crate) fn new(settings: MapSettings) -> Store {
        let id = PartitionId(3);
        let mut partition = Partition::new(PartitionSettings { id, hash_seed: 11, exact_read_times: false });
        partition.create_map(MapId(1), settings);
        Store {
            partition,
            map: MapId(1),
            now: Millis(1_700_000_000_000),
            caller: CLIENT,
            events: Vec::new(),
            random: 22,
        }
    }

    pub(crate) fn apply(&mut self, change: Change<'_>) -> String {
        let command = Command { map: self.map, now: self.now, caller: self.caller, change };
        let events = &mut self.events;
        text_of(&self.partition.lead(&command, &mut |event: &Event<'_>| events.push(event_text(event))))
    }

    /// Evicts entries as the leader does: picks a key, then names it in a command. Returns the
    /// number of evicted entries.
    pub(crate) fn evict(&mut self, policy: EvictionPolicy, count: usize, except: Option<&[u8]>) -> usize {
        let mut gone = 0;
        for _ in 0..count {
            let mut random = || {
                self.random =
                    self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                self.random ^ self.random >> 32
            };
            let spares = |key: &[u8]| except == Some(key);
            let picked = self.partition.pick_eviction(self.map, policy, self.now, &mut random, &spares);
            let mut keys = KeyList::default();
            let Some(picked) = picked else { break };
            keys.push(picked);
            assert_eq!(self.apply(Change::EvictKeys { keys: keys.as_bytes() }), "count 1");
            gone += 1;
        }
        gone
    }

    pub(crate) fn put(&mut self, key: &str, value: &str, mode: PutMode) -> String {
        self.apply(Change::Put { key: key.as_bytes(), value: value.as_bytes(), expiry: Expiry::DEFAULT, mode })
    }

    pub(crate) fn put_expiring(&mut self, key: &str, value: &str, expiry: Expiry) {
        let change = Change::Put { key: key.as_bytes(), value: value.as_bytes(), expiry, mode: PutMode::Set };
        assert_eq!(self.apply(change), "done");
    }

    pub(crate) fn forward(&mut self, ms: i64) {
        self.now = self.now.plus(ms);
    }

    pub(crate) fn get(&mut self, key: &str) -> Option<String> {
        self.partition.get(self.map, key.as_bytes(), self.now).map(text)
    }

    pub(crate) fn contains(&mut self, key: &str) -> bool {
        self.partition.contains_key(self.map, key.as_bytes(), self.now)
    }

    pub(crate) fn view(&self, key: &str) -> Option<EntryView<'_>> {
        self.partition.entry_view(self.map, key.as_bytes(), self.now)
    }

    pub(crate) fn is_locked(&self, key: &str) -> bool {
        self.partition.is_locked(self.map, key.as_bytes(), self.now)
    }

    pub(crate) fn len(&self) -> usize {
        self.partition.len(self.map, self.now)
    }

    pub(crate) fn keys(&self) -> Vec<String> {
        let mut keys = Vec::new();
        self.partition.for_each(self.map, self.now, &mut |key, _| keys.push(text(key)));
        keys.sort();
        keys
    }

    pub(crate) fn bytes(&self) -> usize {
        assert_eq!(self.partition.bytes(), self.partition.statistics(self.map).bytes_owned);
        self.partition.bytes()
    }

    /// The bytes of a map that had an entry and was cleared.
    pub(crate) fn emptied_bytes() -> usize {
        let mut store = Store::new(MapSettings::default());
        let declared = store.bytes();
        store.put("k", "v", PutMode::Set);
        store.apply(Change::Clear);
        assert!(declared <= 16 && store.bytes() < 1_000, "{declared}, then {}", store.bytes());
        store.bytes()
    }

    pub(crate) fn next_expiry(&self) -> Option<Millis> {
        self.partition.next_expiry()
    }

    pub(crate) fn statistics(&self) -> MapStatistics {
        self.partition.statistics(self.map)
    }

    pub(crate) fn take_events(&mut self) -> Vec<String> {
        std::mem::take(&mut self.events)
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(crate) fn text_of(reply: &Reply<'_>) -> String {
    match reply {
        Reply::Done => "done".into(),
        Reply::Flag(flag) => flag.to_string(),
        Reply::Previous(value) => {
            format!("previous {}", value.as_ref().map_or_else(|| "none".into(), |value| text(value)))
        }
        Reply::Claimed(differing) => format!("claimed but {differing:?}"),
        Reply::Held(place) => format!("held at {place}"),
        Reply::Count(count) => format!("count {count}"),
        Reply::Locked { free_at: Some(free_at) } => format!("locked until {}", free_at.0),
        Reply::Locked { free_at: None } => "locked".into(),
        Reply::NotOwner { owner } => format!("not owner, but {:?}", owner.map(|owner| owner.client.as_u128())),
        Reply::Refused(error) => format!("refused: {error}"),
    }
}

pub(crate) fn event_text(event: &Event<'_>) -> String {
    let mut line = format!("{} {:?} {}", event.sequence, event.kind, text(event.key));
    if let Some(value) = event.value {
        line += &format!("={}", text(value));
    }
    if let Some(old) = event.old_value {
        line += &format!(" old {}", text(old));
    }
    if event.count > 1 {
        line += &format!(" x{}", event.count);
    }
    line
}
