//! Random changes, callers and settings.
#![allow(clippy::unwrap_used, dead_code, reason = "helpers of tests fail as tests do, and each uses its own part")]

use filbert_store::*;
use proptest::prelude::*;
use uuid::Uuid;

/// The number of cases: `PROPTEST_CASES`, which the configuration of a test would otherwise
/// override, or the default.
pub(crate) fn cases(default: u32) -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(default)
}

pub(crate) fn caller(number: u8) -> Caller {
    Caller { client: Uuid::from_u128(u128::from(number / 2)), thread: i64::from(number % 2) }
}

/// Changes of a few keys, except those with keys that only a leader can pick.
pub(crate) fn change() -> impl Strategy<Value = OwnedChange> {
    let key = || (0u8..24).prop_map(|number| Box::<[u8]>::from([b'k', b'a' + number]));
    let value = || prop::collection::vec(b'a'..b'd', 0..4).prop_map(Vec::into_boxed_slice);
    let ms = || prop_oneof![Just(-1i64), Just(0), 1i64..3_000];
    let expiry = || (ms(), ms()).prop_map(|(ttl_ms, max_idle_ms)| Expiry { ttl_ms, max_idle_ms });
    let mode = || {
        let modes = [PutMode::Put, PutMode::Set, PutMode::IfAbsent, PutMode::Transient, PutMode::Try, PutMode::Replace];
        prop::sample::select(modes.to_vec())
    };
    prop_oneof![
        12 => (key(), value(), expiry(), mode())
            .prop_map(|(key, value, expiry, mode)| OwnedChange::Put { key, value, expiry, mode }),
        2 => (key(), value(), value())
            .prop_map(|(key, expected, value)| OwnedChange::ReplaceIfSame { key, expected, value }),
        2 => key().prop_map(|key| OwnedChange::Remove { key }),
        1 => key().prop_map(|key| OwnedChange::Delete { key }),
        2 => (key(), value()).prop_map(|(key, expected)| OwnedChange::RemoveIfSame { key, expected }),
        1 => key().prop_map(|key| OwnedChange::Evict { key }),
        2 => (key(), ms()).prop_map(|(key, ttl_ms)| OwnedChange::SetTtl { key, ttl_ms }),
        4 => (key(), prop::option::of(1i64..3_000))
            .prop_map(|(key, lease_ms)| OwnedChange::Lock { key, lease_ms, reference: 0 }),
        4 => batch().prop_map(|batch| OwnedChange::Claim { batch }),
        4 => batch().prop_map(|batch| OwnedChange::WriteBatch { batch }),
        1 => Just(OwnedChange::ClaimAll),
        3 => Just(OwnedChange::Unclaim),
        1 => key().prop_map(|key| OwnedChange::Await { key }),
        4 => key().prop_map(|key| OwnedChange::Unlock { key, reference: 0 }),
        1 => key().prop_map(|key| OwnedChange::ForceUnlock { key, reference: 0 }),
        1 => prop::sample::select(vec![OwnedChange::Clear, OwnedChange::EvictAll]),
        1 => (0u8..4).prop_map(|number| OwnedChange::ReleaseLocks { client: caller(number).client }),
        3 => (0usize..20).prop_map(|limit| OwnedChange::Expire { limit }),
    ]
}

/// Changes of several keys. No key occurs twice.
pub(crate) fn batch() -> impl Strategy<Value = Box<[u8]>> {
    let text = || prop::collection::vec(prop::sample::select(b"abc".to_vec()), 0..4);
    let change = (0u8..3, text(), prop::option::of(text()));
    prop::collection::btree_map(0u8..24, change, 0..6).prop_map(|changes| {
        let mut batch = Batch::default();
        for (number, (kind, expected, value)) in &changes {
            let expected = match kind {
                0 => Expected::Anything,
                1 => Expected::Nothing,
                _ => Expected::Value(expected),
            };
            batch.push(&BatchItem { key: &[b'k', b'a' + number], expected, value: value.as_deref() }).unwrap();
        }
        batch.as_bytes().into()
    })
}

pub(crate) fn settings() -> impl Strategy<Value = MapSettings> {
    let default_ms = || prop_oneof![Just(0i64), Just(2_000i64)];
    (default_ms(), default_ms(), any::<bool>()).prop_map(|(ttl_default_ms, max_idle_default_ms, keep)| MapSettings {
        ttl_default_ms,
        max_idle_default_ms,
        eviction_sample_size: 4,
        journal: keep.then_some(JournalSettings { capacity: 5, ttl_ms: 1_500 }),
        ..MapSettings::default()
    })
}

pub(crate) fn policy() -> impl Strategy<Value = EvictionPolicy> {
    use EvictionPolicy::*;
    prop::sample::select(vec![None, Lru, Lfu, Random])
}
