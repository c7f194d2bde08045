//! Random commands, compared with a plain model of a map. Indexes and columns are created and
//! dropped, and iterations run while the map changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::common::changes::{caller, change, policy, settings};
use crate::common::{Store, derived, event_text, text_of};
use filbert_data::PartitionId;
use filbert_store::*;
use proptest::prelude::*;

/// A step of a test.
#[derive(Clone, Debug)]
enum Step {
    Apply(u8, OwnedChange),
    Get(Vec<u8>),
    Contains(Vec<u8>),
    Forward(i64),
    Layout(u8),
    Evict(EvictionPolicy, usize, Option<Vec<u8>>),
}

#[derive(Clone, Debug)]
struct Entry {
    value: Vec<u8>,
    ttl_ms: i64,
    idle_ms: i64,
    ttl_from: i64,
    idle_from: i64,
    hits: u64,
    version: u64,
}

impl Entry {
    /// Durations of `i64::MAX` are unlimited.
    fn expires(&self) -> i64 {
        self.ttl_from.saturating_add(self.ttl_ms).min(self.idle_from.saturating_add(self.idle_ms))
    }
}

#[derive(Clone, Debug)]
struct Held {
    owner: Caller,
    count: u32,
    until: i64,
    references: Vec<i64>,
}

/// A map from the view of its users: without hashing, a schedule, or delayed work.
struct Model {
    settings: MapSettings,
    entries: BTreeMap<Vec<u8>, Entry>,
    locks: BTreeMap<Vec<u8>, Held>,
    claims: BTreeMap<Caller, BTreeSet<Vec<u8>>>,
    /// The callers that have claimed all keys.
    claims_of_all: BTreeSet<Caller>,
    now: i64,
}

impl Model {
    /// Removes expired entries and ended leases. The store does so later, which must not be
    /// visible.
    fn settle(&mut self) {
        let now = self.now;
        self.entries.retain(|_, entry| entry.expires() > now);
        self.locks.retain(|_, held| held.until > now);
    }

    fn resolve(wanted: i64, default: i64) -> i64 {
        let ms = if wanted < 0 { default } else { wanted };
        if ms == 0 { i64::MAX } else { ms }
    }

    fn write(&mut self, key: &[u8], value: &[u8], expiry: Expiry) {
        let now = self.now;
        let old = self.entries.get(key);
        let ttl_ms = Self::resolve(expiry.ttl_ms, self.settings.ttl_default_ms);
        let idle_ms = Self::resolve(expiry.max_idle_ms, self.settings.max_idle_default_ms);
        let (hits, version) = old.map_or((0, 0), |old| (old.hits, old.version + 1));
        let entry = Entry { value: value.into(), ttl_ms, idle_ms, ttl_from: now, idle_from: now, hits, version };
        self.entries.insert(key.into(), entry);
    }

    fn read(&mut self, key: &[u8]) -> Option<Vec<u8>> {
        let entry = self.entries.get_mut(key)?;
        entry.idle_from = self.now;
        entry.hits += 1;
        Some(entry.value.clone())
    }

    fn locked_for(&self, key: &[u8], caller: Caller) -> Option<String> {
        let by_key = self.claims.iter().any(|(owner, keys)| *owner != caller && keys.contains(key));
        if by_key || self.all_claimed_for(caller) {
            return Some("locked".into());
        }
        let held = self.locks.get(key).filter(|held| held.owner != caller)?;
        Some(if held.until == i64::MAX { "locked".into() } else { format!("locked until {}", held.until) })
    }

    /// Whether another caller has claimed all keys.
    fn all_claimed_for(&self, caller: Caller) -> bool {
        self.claims_of_all.iter().any(|owner| *owner != caller)
    }

    fn claim_all(&mut self, caller: Caller) -> String {
        let claims = self.claims.iter().filter(|(_, keys)| !keys.is_empty()).map(|(owner, _)| *owner);
        let locks = self.locks.values().map(|held| held.owner);
        if claims.chain(locks).any(|owner| owner != caller) || self.all_claimed_for(caller) {
            return "held at 0".into();
        }
        self.claims_of_all.insert(caller);
        "claimed but []".into()
    }

    fn previous(value: Option<Vec<u8>>) -> String {
        format!("previous {}", value.map_or("none".into(), |value| crate::common::text(&value)))
    }

    /// The reply to a change. `None` if the model does not determine it.
    fn apply(&mut self, caller: Caller, change: &Change<'_>) -> Option<String> {
        if let Some(key) = change.key()
            && !matches!(change, Change::Unlock { .. } | Change::ForceUnlock { .. } | Change::Evict { .. })
            && let Some(locked) = self.locked_for(key, caller)
        {
            return Some(locked);
        }
        Some(match *change {
            Change::Put { key, value, expiry, mode } => self.put(key, value, expiry, mode),
            Change::ReplaceIfSame { key, expected, value } => {
                let same = self.entries.get(key).is_some_and(|entry| entry.value == expected);
                if same {
                    self.write(key, value, Expiry::DEFAULT);
                }
                same.to_string()
            }
            Change::Remove { key } => Self::previous(self.entries.remove(key).map(|entry| entry.value)),
            Change::Delete { key } => self.entries.remove(key).is_some().to_string(),
            Change::RemoveIfSame { key, expected } => {
                let same = self.entries.get(key).is_some_and(|entry| entry.value == expected);
                if same {
                    self.entries.remove(key);
                }
                same.to_string()
            }
            Change::Evict { key } => (!self.is_held(key) && self.entries.remove(key).is_some()).to_string(),
            Change::SetTtl { key, ttl_ms } => {
                let (now, default) = (self.now, self.settings.ttl_default_ms);
                let entry = self.entries.get_mut(key);
                let found = entry.is_some();
                if let Some(entry) = entry {
                    (entry.ttl_ms, entry.ttl_from) = (Self::resolve(ttl_ms, default), now);
                }
                found.to_string()
            }
            Change::Lock { key, lease_ms, reference } => self.lock(key, caller, lease_ms, reference),
            Change::Unlock { key, .. } => self.unlock(key, caller),
            Change::ForceUnlock { key, .. } => {
                self.locks.remove(key);
                "done".into()
            }
            Change::Await { .. } => "done".into(),
            Change::Claim { batch } => self.claim(caller, batch),
            // A batch that comes again finds its claims released.
            Change::ClaimAll => self.claim_all(caller),
            Change::WriteBatch { .. }
                if self.claims.get(&caller).is_none_or(BTreeSet::is_empty) && !self.claims_of_all.contains(&caller) =>
            {
                "false".into()
            }
            Change::WriteBatch { batch } => self.write_batch(batch),
            Change::Unclaim => {
                self.claims.remove(&caller);
                self.claims_of_all.remove(&caller);
                "done".into()
            }
            Change::Clear | Change::EvictAll if self.all_claimed_for(caller) => "held at 0".into(),
            Change::Clear | Change::EvictAll => {
                let before = self.entries.len();
                let locks = &self.locks;
                self.entries.retain(|key, _| locks.contains_key(key));
                format!("count {}", before - self.entries.len())
            }
            Change::ReleaseLocks { client } => {
                let before = self.locks.len();
                self.locks.retain(|_, held| held.owner.client != client);
                self.claims.retain(|owner, _| owner.client != client);
                self.claims_of_all.retain(|owner| owner.client != client);
                format!("count {}", before - self.locks.len())
            }
            // The model has no expired entries, and cannot restart the idle time of a removed
            // entry.
            Change::Expire { .. } | Change::EvictKeys { .. } | Change::Touch { .. } => return None,
        })
    }

    fn put(&mut self, key: &[u8], value: &[u8], expiry: Expiry, mode: PutMode) -> String {
        let old = self.entries.get(key).map(|entry| entry.value.clone());
        match mode {
            PutMode::IfAbsent if old.is_some() => return Self::previous(self.read(key)),
            PutMode::Replace if old.is_none() => return Self::previous(None),
            PutMode::Replace => self.write(key, value, Expiry::DEFAULT),
            _ => self.write(key, value, expiry),
        }
        match mode {
            PutMode::Put | PutMode::IfAbsent | PutMode::Replace => Self::previous(old),
            PutMode::Try => "true".into(),
            _ => "done".into(),
        }
    }

    fn is_held(&self, key: &[u8]) -> bool {
        let by_key = self.claims.values().any(|keys| keys.contains(key));
        self.locks.contains_key(key) || by_key || !self.claims_of_all.is_empty()
    }

    fn claim(&mut self, caller: Caller, batch: &[u8]) -> String {
        let (mut keys, mut differing) = (BTreeSet::new(), Vec::new());
        for (place, item) in Batch::of_bytes(batch).items() {
            if self.locked_for(item.key, caller).is_some() {
                return format!("held at {place}");
            }
            let found = self.entries.get(item.key).map(|entry| entry.value.as_slice());
            let as_expected = match item.expected {
                Expected::Anything => true,
                Expected::Nothing => found.is_none(),
                Expected::Value(value) => found == Some(value),
            };
            if !as_expected {
                differing.push(place);
            }
            keys.insert(item.key.to_vec());
        }
        self.claims.entry(caller).or_default().extend(keys);
        format!("claimed but {differing:?}")
    }

    fn write_batch(&mut self, batch: &[u8]) -> String {
        let mut count = 0;
        for (_, item) in Batch::of_bytes(batch).items() {
            let found = self.entries.contains_key(item.key);
            count += match (item.value, item.expected) {
                (None, _) => usize::from(self.entries.remove(item.key).is_some()),
                (Some(_), Expected::Value(_)) if !found => 0,
                (Some(value), _) => {
                    self.write(item.key, value, Expiry::DEFAULT);
                    1
                }
            };
        }
        format!("count {count}")
    }

    fn lock(&mut self, key: &[u8], caller: Caller, lease_ms: Option<i64>, reference: i64) -> String {
        let until = lease_ms.map_or(i64::MAX, |lease_ms| self.now + lease_ms);
        let held = self.locks.entry(key.into()).or_insert(Held { owner: caller, count: 0, until, references: vec![] });
        if held.references.last() != Some(&reference) {
            held.count += 1;
            held.until = until;
            held.references.push(reference);
        }
        "true".into()
    }

    fn unlock(&mut self, key: &[u8], caller: Caller) -> String {
        match self.locks.get_mut(key) {
            Some(held) if held.owner == caller => {
                held.count -= 1;
                if held.count == 0 {
                    self.locks.remove(key);
                }
                "done".into()
            }
            held => format!("not owner, but {:?}", held.map(|held| held.owner.client.as_u128())),
        }
    }
}

fn step() -> impl Strategy<Value = Step> {
    let key = || (0u8..24).prop_map(|number| vec![b'k', b'a' + number]);
    prop_oneof![
        10 => (0u8..4, change()).prop_map(|(caller, change)| Step::Apply(caller, change)),
        3 => key().prop_map(Step::Get),
        1 => key().prop_map(Step::Contains),
        2 => (0i64..1_200).prop_map(Step::Forward),
        1 => (0u8..6).prop_map(Step::Layout),
        1 => (policy(), 0usize..4, prop::option::of(key()))
            .prop_map(|(policy, count, except)| Step::Evict(policy, count, except)),
    ]
}

/// Locks with reference 0 are never retries, so the model gets a unique number for each of them.
fn modelled(change: Change<'_>, number: i64) -> Change<'_> {
    match change {
        Change::Lock { key, lease_ms, .. } => Change::Lock { key, lease_ms, reference: number },
        other => other,
    }
}

fn check_eviction(store: &Store, model: &mut Model, count: usize, except: Option<&[u8]>, replied: usize) {
    let left: BTreeSet<Vec<u8>> = store.keys().into_iter().map(String::into_bytes).collect();
    let gone: Vec<Vec<u8>> = model.entries.keys().filter(|key| !left.contains(*key)).cloned().collect();
    assert!(gone.len() <= count);
    // Expired entries in the sample count as well.
    assert!(replied >= gone.len() && replied <= count);
    for key in gone {
        assert!(!model.is_held(&key), "a key that is locked or claimed was evicted");
        assert_ne!(Some(key.as_slice()), except, "the spared key was evicted");
        model.entries.remove(&key);
    }
}

/// The number of entries that an event adds to a map. Negative if it removes entries.
fn entries_more(line: &str) -> i64 {
    let kind = line.split(' ').nth(1).unwrap();
    let count = line.rsplit_once(" x").map_or(1, |(_, count)| count.parse().unwrap());
    match kind {
        "Added" => 1,
        "Loaded" if !line.contains(" old ") => 1,
        "Removed" | "Evicted" | "Expired" => -1,
        "Cleared" | "EvictedAll" => -count,
        _ => 0,
    }
}

fn check_content(store: &Store, model: &Model) {
    let mut content = BTreeMap::new();
    store.partition.for_each(store.map, store.now, &mut |key, value| {
        assert!(content.insert(key.to_vec(), value.to_vec()).is_none());
    });
    let wanted: BTreeMap<_, _> = model.entries.iter().map(|(key, entry)| (key.clone(), entry.value.clone())).collect();
    assert_eq!(content, wanted);
    assert_eq!(store.len(), wanted.len());
    for (key, entry) in &model.entries {
        let view = store.partition.entry_view(store.map, key, store.now).unwrap();
        assert_eq!((view.hits, view.version), (entry.hits, entry.version));
        assert_eq!((view.ttl_ms, view.max_idle_ms), (entry.ttl_ms, entry.idle_ms));
        assert_eq!(view.expires_ms, entry.expires());
        if view.expires_ms != i64::MAX {
            assert!(store.next_expiry().unwrap().0 <= view.expires_ms);
        }
    }
    for number in 0..24 {
        let key = [b'k', b'a' + number];
        let state = store.partition.lock_state(store.map, &key, store.now);
        let held = model.locks.get(key.as_slice());
        assert_eq!(state.map(|state| (state.owner, state.count)), held.map(|held| (held.owner, held.count)));
    }
    store.bytes();
}

/// Applies steps to a new partition. Returns all replies, events and fetched entries as text.
fn transcript(settings: &MapSettings, steps: &[Step]) -> Vec<String> {
    let map = MapId(1);
    let mut partition = Partition::new(PartitionSettings { id: PartitionId(0), hash_seed: 5, exact_read_times: false });
    partition.create_map(map, settings.clone());
    let mut lines = Vec::new();
    let mut now = Millis(1_700_000_000_000);
    for step in steps {
        match step {
            Step::Apply(number, change) => {
                let command = Command { map, now, caller: caller(*number), change: change.borrow() };
                let mut events = Vec::new();
                let reply = partition.lead(&command, &mut |event: &Event<'_>| events.push(event_text(event)));
                lines.push(text_of(&reply));
                lines.append(&mut events);
            }
            Step::Get(key) => lines.push(format!("{:?}", partition.get(map, key, now))),
            Step::Contains(key) => lines.push(partition.contains_key(map, key, now).to_string()),
            Step::Forward(ms) => now = now.plus(*ms),
            Step::Layout(number) => partition.set_layout(map, derived::layout(*number).map(Arc::new)),
            Step::Evict(policy, _, except) => {
                let spares = |key: &[u8]| except.as_deref() == Some(key);
                let picked = partition.pick_eviction(map, *policy, now, &mut || now.0 as u64, &spares);
                lines.push(format!("{picked:?}"));
            }
        }
        partition.fetch(map, Cursor::START, 5, now, &mut |key, value| lines.push(format!("{key:?} {value:?}")));
    }
    lines
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn a_partition_does_what_the_model_says(
        settings in settings(),
        steps in prop::collection::vec(step(), 0..300),
    ) {
        let mut store = Store::new(settings.clone());
        let mut model = Model { settings, entries: BTreeMap::new(), locks: BTreeMap::new(), claims: BTreeMap::new(), claims_of_all: BTreeSet::new(), now: store.now.0 };
        let mut counted = 0;
        let mut layout = None;
        for (number, step) in steps.into_iter().enumerate() {
            model.settle();
            match step {
                Step::Apply(who, change) => {
                    store.caller = caller(who);
                    let change = change.borrow();
                    let sequence = store.partition.sequence(store.map);
                    let reply = store.apply(change);
                    if let Some(wanted) = model.apply(caller(who), &modelled(change, number as i64)) {
                        prop_assert_eq!(&reply, &wanted, "{:?}", change);
                    }
                    let events = store.take_events();
                    let is_change = |line: &&String| !line.contains("LockReleased") && !line.contains("Unclaimed");
                    let announced = events.iter().filter(is_change).count();
                    counted += events.iter().map(|line| entries_more(line)).sum::<i64>();
                    prop_assert_eq!(store.partition.sequence(store.map), sequence + announced as u64);
                }
                Step::Evict(policy, count, except) => {
                    let replied = store.evict(policy, count, except.as_deref());
                    check_eviction(&store, &mut model, count, except.as_deref(), replied);
                    counted += store.take_events().iter().map(|line| entries_more(line)).sum::<i64>();
                }
                Step::Get(key) => {
                    let now = store.now;
                    let found = store.partition.get(store.map, &key, now).map(<[u8]>::to_vec);
                    prop_assert_eq!(found, model.read(&key));
                }
                Step::Contains(key) => {
                    let now = store.now;
                    let found = store.partition.contains_key(store.map, &key, now);
                    prop_assert_eq!(found, model.read(&key).is_some());
                }
                Step::Forward(ms) => {
                    store.forward(ms);
                    model.now += ms;
                }
                Step::Layout(number) => {
                    layout = derived::layout(number).map(Arc::new);
                    store.partition.set_layout(store.map, layout.clone());
                }
            }
            model.settle();
            check_content(&store, &model);
            // The number of entries can be derived from the events alone, although expired entries
            // may not be freed yet.
            prop_assert_eq!(store.statistics().entries as i64, counted);
            if let Some(layout) = &layout {
                derived::check_indexes(&store, layout);
                derived::check_columns(&store, layout);
            }
        }
        // Twice, because expiry is journaled, and these events are dropped later.
        for _ in 0..2 {
            store.forward(10_000);
            store.apply(Change::Expire { limit: usize::MAX });
            model.now += 10_000;
        }
        model.settle();
        check_content(&store, &model);
        prop_assert_eq!(store.statistics().entries, model.entries.len());
        prop_assert_eq!(store.statistics().locked_keys, model.locks.len());
        prop_assert_eq!(store.next_expiry(), None);
    }

    #[test]
    fn the_same_commands_give_the_same_replies_events_and_order(
        settings in settings(),
        steps in prop::collection::vec(step(), 0..200),
    ) {
        prop_assert_eq!(transcript(&settings, &steps), transcript(&settings, &steps));
    }

    #[test]
    fn fetching_while_the_map_changes_misses_and_repeats_nothing_that_was_there_throughout(
        stay in 0u32..2_000,
        page in 1usize..300,
        churn in prop::collection::vec((0u32..4_000, any::<bool>()), 0..4_000),
        pages_between in 1usize..40,
    ) {
        let mut store = Store::new(MapSettings::default());
        for number in 0..stay {
            store.put(&format!("s{number}"), "v", PutMode::Set);
        }
        let mut churn = churn.into_iter();
        let mut seen: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
        let mut cursor = Some(Cursor::START);
        while let Some(from) = cursor {
            let mut visited = 0;
            let count = |key: &[u8], _: &[u8]| {
                visited += 1;
                *seen.entry(key.to_vec()).or_default() += 1;
            };
            let mut count = count;
            cursor = store.partition.fetch(store.map, from, page, store.now, &mut count);
            prop_assert!(cursor.is_none() || visited >= page);
            for (number, add) in churn.by_ref().take(100 * pages_between) {
                let key = format!("c{number}");
                if add {
                    store.put(&key, "v", PutMode::Set);
                } else {
                    store.apply(Change::Delete { key: key.as_bytes() });
                }
            }
        }
        for number in 0..stay {
            let key = format!("s{number}");
            prop_assert_eq!(seen.get(key.as_bytes()), Some(&1));
        }
    }
}
