//! Fairness and completeness of parked changes: leases that ended before a sweep, late sweeps,
//! memory, destroyed maps, and a dropped member.

use std::sync::Arc;

use crate::common::{
    Answers, Said, answers, caller, change, get, key, lock, member, member_with, member_with_map, owned_lock,
    owned_put, park, put, unlock,
};
use filbert_grid::{
    Change, EvictionConfig, EvictionPolicy, GridConfig, GridError, Invalidation, MapConfig, MaxSizePolicy, Refused,
};
use parking_lot::Mutex;

#[test]
fn who_waited_goes_before_who_finds_the_lease_ended() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    let first = caller(1, 1);
    change(&map, first, Change::Lock { key: &key(1), lease_ms: Some(100), reference: 0 });
    let said = Answers::default();
    park(&map, caller(2, 1), owned_lock(1), None, &said, 2);
    park(&map, caller(3, 1), owned_lock(1), None, &said, 3);
    member.clock.advance(100);
    // No sweep has run when a new caller requests the lock.
    assert_eq!(lock(&map, caller(4, 1), 1), Said::Locked);
    assert_eq!(answers(&said), [(2, Said::Flag(true))]);
    assert_eq!(unlock(&map, caller(2, 1), 1), Said::Done);
    assert_eq!(answers(&said), [(2, Said::Flag(true)), (3, Said::Flag(true))]);
}

/// A client that lost a connection sends its request again by another connection, while the first
/// request may still wait.
#[test]
fn a_request_for_a_lock_that_waits_twice_is_answered_twice_and_takes_the_lock_once() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    lock(&map, caller(1, 1), 1);
    let said = Answers::default();
    let again = || Change::Lock { key: &key(1), lease_ms: None, reference: 7 }.to_owned();
    park(&map, caller(2, 1), again(), None, &said, 2);
    park(&map, caller(3, 1), owned_lock(1), None, &said, 3);
    park(&map, caller(2, 1), again(), None, &said, 4);
    assert_eq!(unlock(&map, caller(1, 1), 1), Said::Done);
    assert_eq!(answers(&said), [(2, Said::Flag(true)), (4, Said::Flag(true))]);
    assert_eq!(unlock(&map, caller(2, 1), 1), Said::Done);
    assert_eq!(answers(&said)[2..], [(3, Said::Flag(true))]);
}

#[test]
fn a_change_does_not_wait_for_its_own_callers_lock() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    lock(&map, caller(1, 1), 1);
    let said = Answers::default();
    park(&map, caller(2, 1), owned_lock(1), None, &said, 2);
    park(&map, caller(3, 1), owned_put(1, b"w"), None, &said, 3);
    park(&map, caller(2, 1), owned_put(1, b"v"), None, &said, 4);
    park(&map, caller(2, 1), owned_put(1, b"u"), None, &said, 5);
    assert_eq!(unlock(&map, caller(1, 1), 1), Said::Done);
    let previous = Said::Previous(Some(b"v".to_vec()));
    assert_eq!(answers(&said), [(2, Said::Flag(true)), (4, Said::Previous(None)), (5, previous)]);
    assert_eq!(unlock(&map, caller(2, 1), 1), Said::Done);
    assert_eq!(get(&map, 1), Some(b"w".to_vec()));
    assert_eq!(member.grid.statistics().parked_changes, 0);
}

#[test]
fn who_waited_too_long_gets_no_lock_though_the_sweep_is_late() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    lock(&map, caller(1, 1), 1);
    let said = Answers::default();
    let deadline = member.grid.now().plus(50);
    park(&map, caller(2, 1), owned_lock(1), Some(deadline), &said, 2);
    park(&map, caller(3, 1), owned_put(1, b"v"), None, &said, 3);
    member.clock.advance(60);
    assert_eq!(unlock(&map, caller(1, 1), 1), Said::Done);
    let timeout = Said::Error(GridError::LockTimeout { map: "m".to_owned() });
    assert_eq!(answers(&said), [(2, timeout), (3, Said::Previous(None))]);
    assert!(!map.is_locked(map.partition_of(&key(1)), &key(1)));
}

#[test]
fn deadlines_are_answered_in_time_when_earlier_ones_are_gone() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    let now = member.grid.now();
    let said = Answers::default();
    lock(&map, caller(1, 1), 1);
    for (name, after_ms) in [(1, 300), (2, 100), (3, 200)] {
        park(&map, caller(2, 1), owned_put(1, b"v"), Some(now.plus(after_ms)), &said, name);
    }
    let names = || answers(&said).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    for expected in [&[2][..], &[2, 3], &[2, 3, 1]] {
        member.clock.advance(100);
        assert!(member.run_expiry() > member.grid.now());
        assert_eq!(names(), expected);
    }
    assert_eq!(member.grid.statistics().parked_changes, 0);
}

#[test]
fn a_parked_put_that_runs_keeps_the_maps_limit() {
    let eviction = EvictionConfig { policy: EvictionPolicy::Lru, max_size_policy: MaxSizePolicy::PerNode, size: 10 };
    let member = member_with_map(MapConfig { eviction, ..MapConfig::default() });
    let map = member.grid.map("m").unwrap();
    lock(&map, caller(1, 1), 100);
    for n in 0..10 {
        put(&map, caller(1, 1), n, b"v");
    }
    let said = Answers::default();
    park(&map, caller(2, 1), owned_put(100, b"v"), None, &said, 0);
    unlock(&map, caller(1, 1), 100);
    assert_eq!(answers(&said), [(0, Said::Previous(None))]);
    member.run_expiry();
    assert_eq!(map.size(), 10);
    assert_eq!(get(&map, 100), Some(b"v".to_vec()));
}

#[test]
fn parked_values_count_as_memory_until_they_are_answered() {
    let mut config = GridConfig { memory_bytes_max: Some(4 << 20), ..GridConfig::default() };
    config.partition_count = 1;
    let member = member_with(config);
    let map = member.grid.map("m").unwrap();
    lock(&map, caller(1, 1), 1);
    let before = member.grid.statistics().memory_bytes;
    let said = Answers::default();
    let value = vec![0; 1 << 20];
    for name in 0..5 {
        park(&map, caller(2, 1), owned_put(1, &value), None, &said, name);
    }
    let refused = answers(&said);
    assert!(matches!(refused[..], [(3, Said::Error(GridError::OutOfMemory { .. })), (4, _)]), "{refused:?}");
    assert!(member.grid.statistics().memory_bytes > before + (3 << 20));
    member.destroy_map("m");
    assert_eq!(answers(&said).len(), 5);
    assert!(member.grid.statistics().memory_bytes < before);
}

#[test]
fn a_member_that_is_dropped_answers_those_who_wait() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    lock(&map, caller(1, 1), 1);
    let said = Answers::default();
    park(&map, caller(2, 1), owned_put(1, b"v"), None, &said, 0);
    drop(member);
    assert_eq!(answers(&said), [(0, Said::Error(GridError::NotActive))]);
    assert_eq!(put(&map, caller(1, 1), 2, b"v"), Said::Error(GridError::NotActive));
}

#[test]
fn destroying_a_map_empties_near_caches_and_refuses_what_comes_late() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = heard.clone();
    map.add_invalidation_listener(
        None,
        Arc::new(move |invalidation: &Invalidation<'_>| {
            sink.lock().push((invalidation.partition, invalidation.key.is_none(), invalidation.sequence));
        }),
    )
    .unwrap();
    put(&map, caller(1, 1), 1, b"v");
    let (partition, _, of_put) = heard.lock().remove(0);
    assert!(member.destroy_map("m"));
    let heard = heard.lock().clone();
    assert_eq!(heard.len(), 271);
    assert!(heard.contains(&(partition, true, of_put + 1)));
    assert_eq!(member.grid.statistics().listeners, 0);

    let destroyed = GridError::Destroyed { service: "hz:impl:mapService".to_owned(), name: "m".to_owned() };
    let late = map.add_invalidation_listener(None, Arc::new(|_: &Invalidation<'_>| {}));
    assert_eq!(late.unwrap_err(), destroyed);
    assert_eq!(member.grid.statistics().listeners, 0);
    assert_eq!(map.clear(caller(1, 1)).unwrap_err(), destroyed);
    assert_eq!(put(&map, caller(1, 1), 1, b"v"), Said::Error(destroyed));
    assert_eq!(get(&map, 1), None);
    // The name is free for a new map.
    let again = member.grid.map("m").unwrap();
    assert_eq!(put(&again, caller(1, 1), 1, b"new"), Said::Previous(None));
    assert_eq!(get(&map, 1), None);
}

#[test]
fn a_change_of_a_whole_map_is_refused_where_one_of_a_key_is_expected() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    let partition = map.partition_of(&key(1));
    let refused = map.change(partition, caller(1, 1), Change::Clear, |_| ());
    assert!(matches!(refused, Err(Refused::Error(GridError::IllegalArgument(_)))), "{refused:?}");
}
