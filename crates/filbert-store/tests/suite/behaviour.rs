//! The behaviour of a partition, case by case, through its public API.

use crate::common::{CLIENT, OTHER, Store};
use filbert_store::*;

#[test]
fn put_answers_the_old_value_and_set_nothing() {
    let mut store = Store::new(MapSettings::default());
    assert_eq!(store.put("k", "a", PutMode::Put), "previous none");
    assert_eq!(store.put("k", "b", PutMode::Put), "previous a");
    assert_eq!(store.put("k", "c", PutMode::Set), "done");
    assert_eq!(store.put("k", "longer than before", PutMode::Transient), "done");
    assert_eq!(store.put("k", "d", PutMode::Try), "true");
    assert_eq!(store.get("k"), Some("d".into()));
    assert_eq!(
        store.take_events(),
        [
            "1 Added k=a",
            "2 Updated k=b old a",
            "3 Updated k=c old b",
            "4 Updated k=longer than before old c",
            "5 Updated k=d old longer than before"
        ]
    );
}

#[test]
fn put_if_absent_keeps_the_first_value() {
    let mut store = Store::new(MapSettings::default());
    assert_eq!(store.put("k", "a", PutMode::IfAbsent), "previous none");
    assert_eq!(store.put("k", "b", PutMode::IfAbsent), "previous a");
    assert_eq!(store.get("k"), Some("a".into()));
    assert_eq!(store.view("k").unwrap().hits, 2);
}

#[test]
fn replace_writes_only_over_an_entry_and_only_over_the_expected_value() {
    let mut store = Store::new(MapSettings::default());
    assert_eq!(store.put("k", "a", PutMode::Replace), "previous none");
    assert_eq!(store.get("k"), None);
    store.put("k", "a", PutMode::Set);
    assert_eq!(store.put("k", "b", PutMode::Replace), "previous a");
    assert_eq!(store.apply(Change::ReplaceIfSame { key: b"k", expected: b"x", value: b"y" }), "false");
    assert_eq!(store.apply(Change::ReplaceIfSame { key: b"k", expected: b"b", value: b"c" }), "true");
    assert_eq!(store.get("k"), Some("c".into()));
}

#[test]
fn removal_comes_in_three_flavours() {
    let mut store = Store::new(MapSettings::default());
    for key in ["a", "b", "c"] {
        store.put(key, "v", PutMode::Set);
    }
    store.take_events();
    assert_eq!(store.apply(Change::Remove { key: b"a" }), "previous v");
    assert_eq!(store.apply(Change::Remove { key: b"a" }), "previous none");
    assert_eq!(store.apply(Change::Delete { key: b"b" }), "true");
    assert_eq!(store.apply(Change::Delete { key: b"b" }), "false");
    assert_eq!(store.apply(Change::RemoveIfSame { key: b"c", expected: b"x" }), "false");
    assert_eq!(store.apply(Change::RemoveIfSame { key: b"c", expected: b"v" }), "true");
    assert_eq!(store.take_events(), ["4 Removed a old v", "5 Removed b old v", "6 Removed c old v"]);
    assert_eq!(store.bytes(), Store::emptied_bytes());
}

#[test]
fn an_entry_view_has_creation_update_access_hits_and_version() {
    let mut store = Store::new(MapSettings::default());
    let start = store.now.0;
    store.put("k", "a", PutMode::Set);
    store.now = Millis(start + 1_000);
    store.put("k", "b", PutMode::Set);
    store.now = Millis(start + 2_000);
    store.get("k");
    assert!(store.contains("k"));
    let view = store.view("k").unwrap();
    assert_eq!((view.created_ms, view.updated_ms, view.accessed_ms), (start, start + 1_000, start + 2_000));
    assert_eq!((view.hits, view.version), (2, 1));
    assert_eq!((view.ttl_ms, view.max_idle_ms, view.expires_ms), (i64::MAX, i64::MAX, i64::MAX));
}

#[test]
fn an_expired_entry_is_absent_at_once_and_freed_by_expire() {
    let mut store = Store::new(MapSettings::default());
    store.put_expiring("k", "v", Expiry::ttl(1_000));
    store.put("stays", "v", PutMode::Set);
    store.take_events();
    store.forward(999);
    assert_eq!((store.get("k"), store.len()), (Some("v".into()), 2));
    store.forward(1);
    assert_eq!((store.get("k"), store.len(), store.contains("k")), (None, 1, false));
    assert!(store.view("k").is_none());
    assert_eq!(store.keys(), ["stays"]);
    assert_eq!(store.next_expiry(), Some(store.now));
    assert_eq!(store.apply(Change::Expire { limit: 10 }), "count 1");
    assert_eq!(store.take_events(), ["3 Expired k old v"]);
    assert_eq!((store.next_expiry(), store.statistics().entries), (None, 1));
}

#[test]
fn a_write_finds_an_expired_entry_gone() {
    let mut store = Store::new(MapSettings::default());
    store.put_expiring("k", "old", Expiry::ttl(1_000));
    store.forward(1_000);
    store.take_events();
    assert_eq!(store.put("k", "new", PutMode::Put), "previous none");
    assert_eq!(store.take_events(), ["2 Expired k old old", "3 Added k=new"]);
    assert_eq!(store.next_expiry(), None);
}

#[test]
fn a_put_without_ttl_returns_to_the_default_of_the_map() {
    let settings = MapSettings { ttl_default_ms: 5_000, ..MapSettings::default() };
    let mut store = Store::new(settings);
    store.put("k", "v", PutMode::Set);
    assert_eq!(store.view("k").unwrap().ttl_ms, 5_000);
    store.put_expiring("k", "v", Expiry::ttl(100));
    assert_eq!(store.view("k").unwrap().ttl_ms, 100);
    store.put("k", "v", PutMode::Put);
    assert_eq!(store.view("k").unwrap().ttl_ms, 5_000);
    store.put_expiring("k", "v", Expiry::NEVER);
    assert_eq!(store.view("k").unwrap().ttl_ms, i64::MAX);
    assert_eq!(store.next_expiry(), None);
}

#[test]
fn an_update_restarts_the_ttl_and_a_replace_ends_it() {
    let mut store = Store::new(MapSettings::default());
    store.put_expiring("k", "v", Expiry::ttl(1_000));
    store.forward(900);
    store.put_expiring("k", "w", Expiry::ttl(1_000));
    store.forward(900);
    assert_eq!(store.view("k").unwrap().ttl_ms, 1_000);
    store.forward(99);
    assert_eq!(store.get("k"), Some("w".into()));
    // The entry gets the map's durations, as in Hazelcast.
    assert_eq!(store.put("k", "x", PutMode::Replace), "previous w");
    assert_eq!(store.view("k").unwrap().ttl_ms, i64::MAX);
    store.forward(1_000_000);
    assert_eq!(store.get("k"), Some("x".into()));
    store.put_expiring("k", "v", Expiry::ttl(1_000));
    assert_eq!(store.apply(Change::ReplaceIfSame { key: b"k", expected: b"v", value: b"w" }), "true");
    assert_eq!(store.view("k").unwrap().ttl_ms, i64::MAX);
    store.put_expiring("k", "v", Expiry::ttl(1_000));
    store.forward(1_000);
    assert_eq!(store.get("k"), None);
    assert_eq!(store.apply(Change::Expire { limit: 10 }), "count 1");
}

#[test]
fn reads_put_off_the_end_of_an_idle_entry() {
    let mut store = Store::new(MapSettings { max_idle_default_ms: 1_000, ..MapSettings::default() });
    store.put("k", "v", PutMode::Set);
    for _ in 0..5 {
        store.forward(900);
        assert_eq!(store.get("k"), Some("v".into()));
        assert_eq!(store.apply(Change::Expire { limit: 10 }), "count 0");
        store.forward(900);
        assert!(store.contains("k"));
    }
    store.forward(900);
    assert!(store.view("k").is_some(), "a view is no read");
    store.forward(100);
    assert_eq!(store.apply(Change::Expire { limit: 10 }), "count 1");
}

#[test]
fn reads_put_nothing_off_for_commands_unless_who_leads_touches() {
    let mut store = Store::new(MapSettings { max_idle_default_ms: 1_000, ..MapSettings::default() });
    store.put("k", "v", PutMode::Set);
    store.forward(900);
    let read_at = store.now;
    assert_eq!(store.get("k"), Some("v".into()));
    store.forward(500);
    assert_eq!((store.len(), store.view("k").unwrap().expires_ms), (1, read_at.0 + 1_000));
    let expire = Command { map: store.map, now: store.now, caller: CLIENT, change: Change::Expire { limit: 9 } };
    let mut touches = Vec::new();
    store.partition.touches_for(&expire, &mut |map, key, read_at| touches.push((map, key.to_vec(), read_at)));
    assert_eq!(touches, [(store.map, b"k".to_vec(), read_at)]);
    assert_eq!(store.apply(Change::Touch { key: b"k", read_at }), "true");
    store.partition.touches_for(&expire, &mut |_, _, _| panic!("it has been touched"));
    assert_eq!(store.partition.apply(&expire, &mut NoObserver), Reply::Count(0));
    store.forward(600);
    assert_eq!(store.apply(Change::Touch { key: b"absent", read_at }), "false");
    let expire = Command { now: store.now, ..expire };
    assert_eq!(store.partition.apply(&expire, &mut NoObserver), Reply::Count(1));
}

/// A batch that replaces the value "v" of the key "k" by "w".
fn replacement() -> Vec<u8> {
    let mut batch = Batch::default();
    batch.push(&BatchItem { key: b"k", expected: Expected::Value(b"v"), value: Some(b"w") }).unwrap();
    batch.as_bytes().to_vec()
}

#[test]
fn every_command_finds_what_reads_have_kept_alive() {
    let batch = replacement();
    let mut keys = KeyList::default();
    keys.push(b"k");
    let expiry = Expiry::DEFAULT;
    let changes = [
        (Change::Put { key: b"k", value: b"w", expiry, mode: PutMode::Replace }, "previous v", "2 Updated k=w old v"),
        (Change::Remove { key: b"k" }, "previous v", "2 Removed k old v"),
        (Change::SetTtl { key: b"k", ttl_ms: 9 }, "true", ""),
        (Change::Evict { key: b"k" }, "true", "2 Evicted k old v"),
        (Change::Claim { batch: &batch }, "claimed but []", ""),
        (Change::Clear, "count 1", "2 Cleared "),
        (Change::EvictAll, "count 1", "2 EvictedAll "),
        (Change::EvictKeys { keys: keys.as_bytes() }, "count 1", "2 Evicted k old v"),
        (Change::Expire { limit: 1 }, "count 0", ""),
    ];
    for (change, reply, event) in changes {
        let mut store = Store::new(MapSettings { max_idle_default_ms: 1_000, ..MapSettings::default() });
        store.put("k", "v", PutMode::Set);
        store.forward(900);
        store.get("k");
        store.forward(900);
        store.take_events();
        assert_eq!(store.apply(change), reply, "{change:?}");
        assert_eq!(store.take_events().concat(), event, "{change:?}");
    }
}

#[test]
fn a_batch_is_written_again_while_its_keys_are_claimed_and_not_after() {
    let batch = replacement();
    let mut store = Store::new(MapSettings { max_idle_default_ms: 1_000, ..MapSettings::default() });
    store.put("k", "v", PutMode::Set);
    store.forward(900);
    store.get("k");
    store.forward(900);
    assert_eq!(store.apply(Change::Claim { batch: &batch }), "claimed but []");
    // A statement repeats its write when the partition changes its leader.
    for _ in 0..2 {
        assert_eq!(store.apply(Change::WriteBatch { batch: &batch }), "count 1");
    }
    assert_eq!(store.apply(Change::Unclaim), "done");
    store.put("k", "later", PutMode::Set);
    assert_eq!(store.apply(Change::WriteBatch { batch: &batch }), "false");
    assert_eq!(store.get("k"), Some("later".into()));
}

#[test]
fn reads_that_would_be_lost_with_the_leader_are_reported_ahead() {
    let mut store = Store::new(MapSettings { max_idle_default_ms: 1_000, ..MapSettings::default() });
    store.put("read", "v", PutMode::Set);
    store.put("unread", "v", PutMode::Set);
    store.forward(400);
    store.get("read");
    let until = |ms| {
        let mut touched = Vec::new();
        let (now, until) = (store.now, store.now.plus(ms));
        store.partition.touches_until(now, until, 9, &mut |_, key, _| touched.push(crate::common::text(key)));
        touched
    };
    assert_eq!(until(599), Vec::<String>::new());
    assert_eq!(until(600), ["read"]);
    // Also for times after the extended deadline, because another read may come before it.
    assert_eq!(until(5_000), ["read"]);
    store.partition.forget_reads();
    store.forward(600);
    assert_eq!(store.get("read"), None, "the log was not told of the read");
}

#[test]
fn what_expires_at_one_time_is_reported_in_the_order_of_creation() {
    let mut store = Store::new(MapSettings::default());
    let keys: Vec<String> = (0..100).map(|number| format!("k{:02}", number * 37 % 100)).collect();
    keys.iter().for_each(|key| store.put_expiring(key, "v", Expiry::ttl(10)));
    store.take_events();
    store.forward(10);
    assert_eq!(store.apply(Change::Expire { limit: 60 }), "count 60");
    assert_eq!(store.apply(Change::Expire { limit: 60 }), "count 40");
    let expired: Vec<String> =
        store.take_events().iter().map(|line| line.split(' ').nth(2).unwrap().to_owned()).collect();
    assert_eq!(expired, keys);
}

#[test]
fn a_command_with_an_earlier_time_happens_at_the_time_of_the_one_before() {
    let mut store = Store::new(MapSettings::default());
    let start = store.now;
    store.put_expiring("k", "v", Expiry::ttl(1_000));
    store.forward(1_000);
    assert_eq!(store.apply(Change::Delete { key: b"other" }), "false");
    store.now = start;
    assert_eq!((store.get("k"), store.len(), store.partition.time()), (None, 0, start.plus(1_000)));
    assert_eq!(store.apply(Change::Lock { key: b"k", lease_ms: Some(5), reference: 0 }), "true");
    let state = store.partition.lock_state(store.map, b"k", start).unwrap();
    assert_eq!(state.lease_until, Some(start.plus(1_005)));
}

#[test]
fn clearing_writes_the_journal_in_the_order_of_keys() {
    for capacity in [0, 1, 7, 100, 1_000] {
        let journal = JournalSettings { capacity, ttl_ms: 0 };
        let mut store = Store::new(MapSettings { journal: Some(journal), ..MapSettings::default() });
        for number in 0..100 {
            store.put(&format!("k{:02}", number * 37 % 100), "v", PutMode::Set);
        }
        store.put_expiring("z", "v", Expiry::ttl(10));
        store.put_expiring("a", "v", Expiry::ttl(10));
        store.forward(10);
        store.take_events();
        assert_eq!(store.apply(Change::Clear), "count 100");
        assert_eq!(store.take_events(), ["103 Expired a old v", "104 Expired z old v", "105 Cleared  x100"]);
        let journal = store.partition.journal(store.map).unwrap();
        assert_eq!(journal.newest_sequence(), 203);
        let oldest = journal.oldest_sequence();
        assert_eq!(oldest, (204 - capacity as i64).max(0));
        let found: Vec<String> =
            journal.read(oldest, 999).unwrap().map(|event| crate::common::text(&event.key)).collect();
        let wanted: Vec<String> = (0..100).map(|number| format!("k{number:02}")).collect();
        let kept = capacity.min(100);
        assert_eq!(found[found.len() - kept..], wanted[100 - kept..]);
    }
}

#[test]
fn set_ttl_changes_the_ttl_and_nothing_else() {
    let mut store = Store::new(MapSettings::default());
    assert_eq!(store.apply(Change::SetTtl { key: b"k", ttl_ms: 500 }), "false");
    store.put("k", "v", PutMode::Set);
    store.take_events();
    let before = store.view("k").unwrap().version;
    assert_eq!(store.apply(Change::SetTtl { key: b"k", ttl_ms: 500 }), "true");
    assert_eq!((store.view("k").unwrap().ttl_ms, store.view("k").unwrap().version), (500, before));
    assert_eq!(store.take_events(), Vec::<String>::new());
    store.forward(499);
    assert_eq!(store.apply(Change::SetTtl { key: b"k", ttl_ms: 0 }), "true");
    store.forward(10_000);
    assert_eq!(store.get("k"), Some("v".into()));
    assert_eq!(store.next_expiry(), None);
}

#[test]
fn expire_looks_at_no_more_than_its_limit() {
    let mut store = Store::new(MapSettings::default());
    for number in 0..100 {
        store.put_expiring(&number.to_string(), "v", Expiry::ttl(10));
    }
    store.forward(10);
    assert_eq!(store.apply(Change::Expire { limit: 30 }), "count 30");
    assert!(store.next_expiry().unwrap() <= store.now);
    assert_eq!(store.apply(Change::Expire { limit: 1_000 }), "count 70");
    assert_eq!((store.next_expiry(), store.bytes()), (None, Store::emptied_bytes()));
}

#[test]
fn a_clock_that_goes_back_expires_nothing_early_and_breaks_nothing() {
    let mut store = Store::new(MapSettings { max_idle_default_ms: 1_000, ..MapSettings::default() });
    let start = store.now;
    store.put("k", "v", PutMode::Set);
    for now in [Millis(0), Millis(i64::MIN), Millis(start.0 - 5_000), start] {
        store.now = now;
        assert_eq!(store.get("k"), Some("v".into()));
        assert_eq!(store.apply(Change::Expire { limit: 10 }), "count 0");
    }
    store.now = start.plus(999);
    assert_eq!(store.get("k"), Some("v".into()));
    store.now = Millis(i64::MIN);
    // The lifetime starts at the time of the previous commands.
    store.put_expiring("early", "v", Expiry { ttl_ms: 10_000, max_idle_ms: 0 });
    store.put_expiring("never", "v", Expiry { ttl_ms: i64::MAX, max_idle_ms: i64::MAX });
    store.now = Millis(-3);
    assert_eq!(store.get("early"), Some("v".into()));
    store.now = Millis::MAX;
    assert_eq!((store.get("early"), store.get("never")), (None, Some("v".into())));
    assert_eq!(store.apply(Change::Expire { limit: 10 }), "count 2");
}

#[test]
fn a_locked_key_refuses_every_write_of_others_and_no_read() {
    let mut store = Store::new(MapSettings::default());
    store.put("k", "v", PutMode::Set);
    let change = Change::Lock { key: b"k", lease_ms: Some(5_000), reference: 1 };
    assert_eq!(store.apply(change), "true");
    store.take_events();
    store.caller = OTHER;
    let expiry = Expiry::DEFAULT;
    let modes = [PutMode::Put, PutMode::Set, PutMode::IfAbsent, PutMode::Transient, PutMode::Try, PutMode::Replace];
    let mut changes: Vec<Change<'_>> =
        modes.map(|mode| Change::Put { key: b"k", value: b"x", expiry, mode }).into_iter().collect();
    changes.extend([
        Change::ReplaceIfSame { key: b"k", expected: b"v", value: b"x" },
        Change::Remove { key: b"k" },
        Change::Delete { key: b"k" },
        Change::RemoveIfSame { key: b"k", expected: b"v" },
        Change::SetTtl { key: b"k", ttl_ms: 1 },
        Change::Lock { key: b"k", lease_ms: None, reference: 1 },
    ]);
    for change in changes {
        assert_eq!(store.apply(change), format!("locked until {}", store.now.0 + 5_000), "{change:?}");
    }
    assert_eq!(store.apply(Change::Evict { key: b"k" }), "false");
    assert_eq!(store.apply(Change::Unlock { key: b"k", reference: 9 }), "not owner, but Some(1)");
    assert_eq!((store.get("k"), store.contains("k")), (Some("v".into()), true));
    assert_eq!(store.take_events(), Vec::<String>::new());
    store.caller = CLIENT;
    assert_eq!(store.put("k", "mine", PutMode::Put), "previous v");
}

#[test]
fn a_lease_that_ends_frees_the_key_for_the_next_write() {
    let mut store = Store::new(MapSettings::default());
    store.apply(Change::Lock { key: b"k", lease_ms: Some(100), reference: 1 });
    assert!(store.is_locked("k"));
    assert_eq!(store.next_expiry(), Some(store.now.plus(100)));
    store.caller = OTHER;
    store.forward(100);
    assert!(!store.is_locked("k"));
    assert_eq!(store.put("k", "v", PutMode::Set), "done");
    assert_eq!(store.take_events(), ["0 LockReleased k", "1 Added k=v"]);
    store.apply(Change::Lock { key: b"other", lease_ms: Some(100), reference: 1 });
    store.forward(100);
    assert_eq!(store.apply(Change::Expire { limit: 5 }), "count 1");
    assert_eq!(store.take_events(), ["1 LockReleased other"]);
    assert_eq!(store.statistics().locked_keys, 0);
}

#[test]
fn a_lock_needs_no_entry_and_outlives_its_removal() {
    let mut store = Store::new(MapSettings::default());
    assert_eq!(store.apply(Change::Lock { key: b"k", lease_ms: None, reference: 1 }), "true");
    store.put("k", "v", PutMode::Set);
    store.apply(Change::Remove { key: b"k" });
    assert!(store.is_locked("k"));
    assert!(store.bytes() > 0);
    assert_eq!(store.apply(Change::Unlock { key: b"k", reference: 2 }), "done");
    assert_eq!(store.apply(Change::Unlock { key: b"k", reference: 2 }), "done");
    assert_eq!(store.apply(Change::Unlock { key: b"k", reference: 3 }), "not owner, but None");
    store.apply(Change::Lock { key: b"k", lease_ms: None, reference: 4 });
    store.caller = OTHER;
    assert_eq!(store.apply(Change::ForceUnlock { key: b"k", reference: 5 }), "done");
    assert!(!store.is_locked("k"));
}

#[test]
fn the_locks_of_a_client_are_released_together_in_all_maps() {
    let mut store = Store::new(MapSettings::default());
    store.partition.create_map(MapId(9), MapSettings::default());
    for key in [b"b", b"a"] {
        store.apply(Change::Lock { key, lease_ms: None, reference: 0 });
        store.apply(Change::Lock { key, lease_ms: None, reference: 0 });
    }
    store.map = MapId(9);
    store.apply(Change::Lock { key: b"c", lease_ms: Some(10_000), reference: 0 });
    store.caller = OTHER;
    store.apply(Change::Lock { key: b"d", lease_ms: None, reference: 0 });
    assert_eq!(store.apply(Change::ReleaseLocks { client: CLIENT.client }), "count 3");
    assert_eq!(store.take_events(), ["0 LockReleased a", "0 LockReleased b", "0 LockReleased c"]);
    assert!(store.is_locked("d"));
}

#[test]
fn clearing_skips_locked_keys_and_is_one_event() {
    for (change, event) in [(Change::Clear, "11 Cleared  x9"), (Change::EvictAll, "11 EvictedAll  x9")] {
        let mut store = Store::new(MapSettings::default());
        for number in 0..10 {
            store.put_expiring(&format!("k{number}"), "v", Expiry::ttl(1_000));
        }
        store.apply(Change::Lock { key: b"k3", lease_ms: None, reference: 0 });
        store.take_events();
        assert_eq!(store.apply(change), "count 9");
        assert_eq!(store.take_events(), [event]);
        assert_eq!(store.keys(), ["k3"]);
        assert_eq!(store.apply(change), "count 0");
        assert_eq!(store.take_events(), Vec::<String>::new());
        store.forward(1_000);
        assert_eq!(store.apply(Change::Expire { limit: 9 }), "count 1");
    }
}

#[test]
fn metadata_comes_along_and_is_an_event_of_its_own() {
    let mut store = Store::new(MapSettings::default());
    let start = store.now.0;
    let metadata = Metadata {
        created_ms: start - 50_000,
        updated_ms: start - 40_000,
        accessed_ms: start - 30_000,
        expires_ms: start + 7_000,
        hits: 12,
        version: 34,
        expiry: Expiry::ttl(60_000),
    };
    assert_eq!(store.put("k", "v", PutMode::Metadata(metadata)), "done");
    let view = store.view("k").unwrap();
    assert_eq!((view.created_ms, view.updated_ms, view.accessed_ms), (start - 50_000, start - 40_000, start - 30_000));
    assert_eq!((view.hits, view.version, view.ttl_ms, view.expires_ms), (12, 34, 60_000, start + 7_000));
    assert_eq!(store.take_events(), ["1 Loaded k=v"]);
    store.forward(7_000);
    assert_eq!(store.get("k"), None);
}

#[test]
fn the_journal_keeps_every_change_with_both_values() {
    let journal = JournalSettings { capacity: 8, ttl_ms: 0 };
    let mut store = Store::new(MapSettings { journal: Some(journal), ..MapSettings::default() });
    store.put("k", "a", PutMode::Set);
    store.put("k", "b", PutMode::Set);
    store.apply(Change::Remove { key: b"k" });
    store.put_expiring("k", "c", Expiry::ttl(10));
    store.forward(10);
    store.apply(Change::Expire { limit: 1 });
    store.put("k", "d", PutMode::Set);
    store.apply(Change::Evict { key: b"k" });
    store.put("k", "e", PutMode::Set);
    store.apply(Change::Clear);
    let journal = store.partition.journal(store.map).unwrap();
    assert_eq!((journal.oldest_sequence(), journal.newest_sequence()), (1, 8));
    let text =
        |bytes: &Option<Box<[u8]>>| bytes.as_ref().map_or("-".into(), |b| String::from_utf8_lossy(b).to_string());
    let events: Vec<String> = journal
        .read(1, 99)
        .unwrap()
        .map(|event| format!("{:?} {} {}", event.kind, text(&event.old_value), text(&event.new_value)))
        .collect();
    let wanted = ["Updated a b", "Removed b -", "Added - c", "Expired c -", "Added - d", "Evicted d -", "Added - e"];
    assert_eq!(events[..7], wanted);
    assert_eq!(events[7], "Removed e -");
    assert!(journal.read(0, 1).is_err());
}

#[test]
fn eviction_takes_the_least_used_of_a_sample_and_never_a_locked_or_spared_key() {
    for policy in [EvictionPolicy::Lru, EvictionPolicy::Lfu] {
        let mut store = Store::new(MapSettings { eviction_sample_size: 100, ..MapSettings::default() });
        for number in 0..20 {
            store.put(&format!("k{number:02}"), "v", PutMode::Set);
        }
        store.forward(1_000);
        for number in (0..20).filter(|number| ![3, 7, 11, 15].contains(number)) {
            store.get(&format!("k{number:02}"));
        }
        store.apply(Change::Lock { key: b"k07", lease_ms: None, reference: 0 });
        store.take_events();
        assert_eq!(store.evict(policy, 3, Some(b"k11")), 3);
        let keys = store.keys();
        for gone in ["k03", "k15"] {
            assert!(!keys.contains(&gone.to_string()), "{policy:?}: {gone} should be gone");
        }
        for kept in ["k07", "k11"] {
            assert!(keys.contains(&kept.to_string()), "{policy:?}: {kept} should be kept");
        }
        assert_eq!(store.take_events().len(), 3);
        assert_eq!(store.statistics().evictions, 3);
    }
}

#[test]
fn eviction_stops_when_nothing_may_go() {
    let mut store = Store::new(MapSettings::default());
    let evict = |store: &mut Store, policy| store.evict(policy, 5, Some(b"spared"));
    assert_eq!(evict(&mut store, EvictionPolicy::Lru), 0);
    store.put("spared", "v", PutMode::Set);
    store.put("locked", "v", PutMode::Set);
    store.put("free", "v", PutMode::Set);
    store.apply(Change::Lock { key: b"locked", lease_ms: None, reference: 0 });
    assert_eq!(evict(&mut store, EvictionPolicy::None), 0);
    assert_eq!(evict(&mut store, EvictionPolicy::Random), 1);
    assert_eq!(store.keys(), ["locked", "spared"]);
}

#[test]
fn random_eviction_spares_no_part_of_the_map() {
    let mut store = Store::new(MapSettings::default());
    for number in 0..4_000 {
        store.put(&format!("k{number:04}"), "v", PutMode::Set);
    }
    assert_eq!(store.evict(EvictionPolicy::Random, 2_000, None), 2_000);
    let old = store.keys().iter().filter(|key| key.as_str() < "k2000").count();
    assert!((850..1_150).contains(&old), "{old} of the older half are left, of 2,000 entries");
}

#[test]
fn values_of_0_bytes_and_of_100_megabytes_are_values() {
    let mut store = Store::new(MapSettings::default());
    store.put("empty", "", PutMode::Set);
    assert_eq!(store.get("empty"), Some(String::new()));
    let large = vec![b'x'; 100_000_000];
    let change = Change::Put { key: b"large", value: &large, expiry: Expiry::DEFAULT, mode: PutMode::Set };
    assert_eq!(store.apply(change), "done");
    let now = store.now;
    assert_eq!(store.partition.get(store.map, b"large", now).map(<[u8]>::len), Some(large.len()));
    assert!(store.bytes() > large.len());
    assert_eq!(store.apply(Change::Clear), "count 2");
    assert_eq!(store.bytes(), Store::emptied_bytes());
}

#[test]
fn a_map_that_does_not_exist_is_empty_and_refuses_changes() {
    let mut store = Store::new(MapSettings::default());
    store.put("k", "v", PutMode::Set);
    store.apply(Change::Lock { key: b"k", lease_ms: None, reference: 0 });
    assert_eq!(store.partition.destroy_map(store.map), 1);
    assert_eq!(store.partition.destroy_map(store.map), 0);
    assert_eq!((store.get("k"), store.len(), store.bytes()), (None, 0, 0));
    assert_eq!(store.put("k", "v", PutMode::Set), "refused: map 1 does not exist in this partition");
    assert_eq!(store.apply(Change::Expire { limit: 1 }), "count 0");
}

#[test]
fn statistics_count_lookups_and_hits() {
    let mut store = Store::new(MapSettings::default());
    store.put("a", "v", PutMode::Set);
    store.put("b", "v", PutMode::Put);
    store.get("a");
    store.get("missing");
    store.apply(Change::Remove { key: b"b" });
    store.apply(Change::Evict { key: b"a" });
    let found = store.statistics();
    assert_eq!((found.gets, found.hits, found.puts, found.removes, found.evictions), (2, 1, 2, 1, 1));
    assert_eq!((found.entries, found.bytes_owned, found.record_bytes), (0, Store::emptied_bytes(), 0));
    assert_eq!(found.last_update_ms, store.now.0);
}

#[test]
fn new_settings_of_a_map_hold_for_later_puts() {
    let mut store = Store::new(MapSettings::default());
    store.put("old", "v", PutMode::Set);
    store.partition.create_map(store.map, MapSettings { ttl_default_ms: 10, ..MapSettings::default() });
    store.put("new", "v", PutMode::Set);
    store.forward(10);
    assert_eq!(store.keys(), ["old"]);
}

#[test]
fn a_partition_and_what_it_answers_move_between_threads() {
    fn check<T: Send>(_: &T) {}
    let mut store = Store::new(MapSettings::default());
    store.put("k", "v", PutMode::Set);
    check(&store.partition);
    let change = Change::Remove { key: b"k" };
    let command = Command { map: store.map, now: store.now, caller: store.caller, change };
    check(&store.partition.apply(&command, &mut NoObserver));
}

#[test]
fn a_retried_lock_counts_once() {
    let mut store = Store::new(MapSettings::default());
    for _ in 0..3 {
        assert_eq!(store.apply(Change::Lock { key: b"k", lease_ms: None, reference: 7 }), "true");
    }
    assert_eq!(store.apply(Change::Unlock { key: b"k", reference: 8 }), "done");
    assert!(!store.is_locked("k"));
}
