//! Limits of maps that many threads fill concurrently, locked entries that cannot be evicted, and
//! the names of settings.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Said, caller, change, get, key, lock, member_with, member_with_map, put, settle, unlock};
use filbert_grid::{
    Change, Environment, EvictionConfig, EvictionPolicy, Expiry, Grid, GridConfig, GridError, InMemoryFormat,
    MapConfig, MapConfigs, MaxSizePolicy, Millis, PartitionId, PutMode, eviction_policy_from_name,
};

fn evicting(policy: EvictionPolicy, max_size_policy: MaxSizePolicy, size: u32) -> MapConfig {
    MapConfig { eviction: EvictionConfig { policy, max_size_policy, size }, ..MapConfig::default() }
}

#[test]
fn per_node_is_exact_after_eight_threads_have_filled_the_map() {
    for policy in [EvictionPolicy::Lru, EvictionPolicy::Lfu, EvictionPolicy::Random] {
        let member = member_with_map(evicting(policy, MaxSizePolicy::PerNode, 100));
        let map = member.grid.map("m").unwrap();
        thread::scope(|scope| {
            for thread in 0..8 {
                let map = map.clone();
                scope.spawn(move || {
                    for n in 0..2_000 {
                        put(&map, caller(1, 1), thread * 10_000 + n, b"v");
                    }
                });
            }
        });
        settle();
        assert_eq!(map.size(), 100, "{policy:?}");
    }
}

#[test]
fn per_partition_is_exact_in_each_partition() {
    let member = member_with_map(evicting(EvictionPolicy::Lru, MaxSizePolicy::PerPartition, 3));
    let map = member.grid.map("m").unwrap();
    let mut entries = vec![0usize; 271];
    for n in 0..3_000 {
        put(&map, caller(1, 1), n, b"v");
        // The newest entry is never evicted.
        assert_eq!(get(&map, n), Some(b"v".to_vec()));
        let partition = map.partition_of(&key(n)).0 as usize;
        entries[partition] = (entries[partition] + 1).min(3);
    }
    assert_eq!(map.size(), entries.iter().sum::<usize>());
}

#[test]
fn locked_entries_stay_and_the_limit_holds_again_once_they_may_go() {
    let member = member_with_map(evicting(EvictionPolicy::Lru, MaxSizePolicy::PerNode, 5));
    let map = member.grid.map("m").unwrap();
    let owner = caller(1, 1);
    for n in 0..10 {
        lock(&map, owner, n);
        put(&map, owner, n, b"v");
    }
    assert_eq!(map.size(), 10, "an entry that is locked is not evicted");
    for n in 0..10 {
        unlock(&map, owner, n);
    }
    put(&map, owner, 11, b"v");
    assert_eq!(map.size(), 5);
    assert_eq!(get(&map, 11), Some(b"v".to_vec()));
}

#[test]
fn an_update_of_a_full_map_evicts_nothing() {
    let member = member_with_map(evicting(EvictionPolicy::Random, MaxSizePolicy::PerNode, 5));
    let map = member.grid.map("m").unwrap();
    for n in 0..5 {
        put(&map, caller(1, 1), n, b"v");
    }
    for n in 0..5 {
        assert_eq!(put(&map, caller(1, 1), n, b"w"), Said::Previous(Some(b"v".to_vec())));
    }
    assert_eq!(map.size(), 5);
}

#[test]
fn room_comes_back_with_removals_expiry_and_clearing() {
    let member = member_with_map(evicting(EvictionPolicy::Lru, MaxSizePolicy::PerNode, 10));
    let map = member.grid.map("m").unwrap();
    let fill = |from: u32| (from..from + 10).for_each(|n| drop(put(&map, caller(1, 1), n, b"v")));
    fill(0);
    (0..10).for_each(|n| drop(change(&map, caller(1, 1), Change::Delete { key: &key(n) })));
    fill(10);
    assert_eq!(map.size(), 10);
    map.clear(caller(1, 1)).unwrap();
    for n in 20..30 {
        let key = key(n);
        change(
            &map,
            caller(1, 1),
            Change::Put { key: &key, value: b"v", expiry: Expiry::ttl(1_000), mode: PutMode::Set },
        );
    }
    assert_eq!(map.size(), 10);
    member.clock.advance(1_000);
    member.run_expiry();
    fill(30);
    assert_eq!(map.size(), 10);
    assert_eq!(map.statistics().evictions, 0, "there was room each time");
}

#[test]
fn percentages_of_the_memory_limit_are_kept() {
    let max = 16 << 20;
    // A percentage is computed in whole bytes, rounded down.
    let free = max - max / 100 * 50;
    for (policy, percent, allowed) in
        [(MaxSizePolicy::UsedHeapPercentage, 25, max / 4), (MaxSizePolicy::FreeNativeMemoryPercentage, 50, free)]
    {
        let mut config = GridConfig { memory_bytes_max: Some(max), ..GridConfig::default() };
        config.maps.insert("m", evicting(EvictionPolicy::Lru, policy, percent));
        let member = member_with(config);
        let map = member.grid.map("m").unwrap();
        for n in 0..10_000 {
            assert_eq!(put(&map, caller(1, 1), n, &[7; 2_000]), Said::Previous(None));
            assert!(map.statistics().bytes_owned <= allowed);
        }
        assert!(map.statistics().bytes_owned > allowed / 2, "{policy:?} leaves the rest in use");
    }
}

#[test]
fn a_member_never_grows_beyond_its_memory_limit() {
    let member = member_with(GridConfig { memory_bytes_max: Some(8 << 20), ..GridConfig::default() });
    let map = member.grid.map("m").unwrap();
    let refused = (0..20_000)
        .filter(|n| matches!(put(&map, caller(1, 1), *n, &[7; 1_000]), Said::Error(GridError::OutOfMemory { .. })))
        .count();
    assert!(refused > 10_000, "{refused}");
    let used = member.grid.statistics().memory_bytes;
    // The split of a table may take a little more memory than the record's share.
    assert!(used < (8 << 20) + (64 << 10), "{used}");
    // Changes that write nothing are not refused for lack of memory.
    let value = vec![7; 5_000];
    let replace = Change::Put { key: &key(90_000), value: &value, expiry: Expiry::DEFAULT, mode: PutMode::Replace };
    assert_eq!(change(&map, caller(1, 1), replace), Said::Previous(None));
    let if_absent = Change::Put { key: &key(0), value: &value, expiry: Expiry::DEFAULT, mode: PutMode::IfAbsent };
    assert_eq!(change(&map, caller(1, 1), if_absent), Said::Previous(Some(vec![7; 1_000])));
}

#[test]
fn maps_are_made_and_destroyed_while_the_sweep_and_writers_run() {
    let member = member_with(GridConfig { partition_count: 7, ..GridConfig::default() });
    let grid = &member.grid;
    thread::scope(|scope| {
        for thread in 0..3u32 {
            scope.spawn(move || {
                for round in 0..200 {
                    let name = format!("m{}", round % 5);
                    let map = grid.map(&name).unwrap();
                    for n in 0..20 {
                        let key = key(thread * 100 + n);
                        let partition = map.partition_of(&key);
                        let change = Change::Put { key: &key, value: b"v", expiry: Expiry::ttl(1), mode: PutMode::Set };
                        // The map may be destroyed by another thread at any time.
                        let _ = map.change(partition, caller(1, 1), change, |_| ());
                    }
                    if round % 7 == 0 {
                        grid.destroy_map(&name).unwrap();
                    }
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..2_000 {
                member.clock.advance(1);
                grid.run_expiry();
            }
        });
    });
    for name in grid.map_names() {
        grid.destroy_map(&name).unwrap();
    }
    settle();
    // Who has changed an entry counts its bytes after the change; the sweep may still be at it.
    let deadline = Instant::now() + Duration::from_secs(60);
    while grid.statistics().memory_bytes != 0 && Instant::now() < deadline {
        thread::yield_now();
    }
    assert_eq!(grid.statistics().memory_bytes, 0);
    assert!(grid.objects().is_empty());
}

#[test]
fn settings_are_found_by_exact_name_then_by_the_best_pattern() {
    let mut maps = MapConfigs::default();
    let with_ttl = |ttl_seconds| MapConfig { ttl_seconds, ..MapConfig::default() };
    for (pattern, ttl) in [("default", 1), ("orders", 2), ("orders*", 3), ("orders-eu-*", 4), ("*-x", 5)] {
        maps.insert(pattern, with_ttl(ttl));
    }
    let ttl = |maps: &MapConfigs, name: &str| maps.find(name).map(|map| map.ttl_seconds);
    assert_eq!(ttl(&maps, "orders"), Ok(2));
    assert_eq!(ttl(&maps, "orders@partition-key"), Ok(2));
    assert_eq!(ttl(&maps, "orders-us-1"), Ok(3));
    assert_eq!(ttl(&maps, "orders-eu-1"), Ok(4));
    assert_eq!(ttl(&maps, "customers"), Ok(1));
    assert_eq!(ttl(&maps, "customers-x"), Ok(5));
    maps.insert("o*", with_ttl(6));
    assert_eq!(ttl(&maps, "other-x"), Ok(5));
    maps.insert("ot*", with_ttl(7));
    assert!(matches!(ttl(&maps, "other-x"), Err(GridError::AmbiguousPattern { .. })));
}

#[test]
fn a_map_whose_name_fits_two_patterns_is_refused_and_nothing_is_made() {
    let mut config = GridConfig::default();
    config.maps.insert("a-*", MapConfig::default());
    config.maps.insert("*-b", MapConfig::default());
    let member = member_with(config);
    assert!(matches!(member.grid.map("a-b"), Err(GridError::AmbiguousPattern { .. })));
    assert!(member.grid.objects().is_empty());
    assert!(member.grid.map("a-c").is_ok());
}

#[track_caller]
fn check_refused(config: GridConfig, expected: &str) {
    let clock = Arc::new(filbert_grid::SystemClock::new());
    let refused = Grid::new(config, Environment { clock, random_seed: 1 }).err().map(|error| error.to_string());
    assert_eq!(refused.as_deref(), Some(expected));
}

#[test]
fn settings_that_cannot_be_used_are_refused_by_name() {
    let with_map = |map: MapConfig| {
        let mut config = GridConfig::default();
        config.maps.insert("m", map);
        config
    };
    check_refused(
        GridConfig { partition_count: 0, ..GridConfig::default() },
        "partition count is 0, expected 1 to 65535",
    );
    check_refused(
        with_map(evicting(EvictionPolicy::Lru, MaxSizePolicy::FreeHeapPercentage, 10)),
        "map \"m\": max size policy FREE_HEAP_PERCENTAGE needs a memory limit (memory_bytes_max)",
    );
    let mut config = with_map(evicting(EvictionPolicy::Lru, MaxSizePolicy::UsedHeapPercentage, 101));
    config.memory_bytes_max = Some(1 << 30);
    check_refused(config, "map \"m\": eviction size is 101 %, expected 0 to 100");
    let mut config = GridConfig::default();
    config.maps.insert("a*b*", MapConfig::default());
    check_refused(config, "map pattern \"a*b*\" has several *, expected one");
}

#[test]
fn settings_have_the_names_that_existing_configurations_use() {
    for policy in MaxSizePolicy::ALL {
        assert_eq!(MaxSizePolicy::from_name(&policy.name().to_lowercase()), Some(policy));
    }
    assert_eq!(MaxSizePolicy::from_name("ENTRY_COUNT"), None);
    assert_eq!(InMemoryFormat::from_name("object"), Some(InMemoryFormat::Object));
    assert_eq!(eviction_policy_from_name("lfu"), Some(EvictionPolicy::Lfu));
}

#[test]
fn a_key_is_found_though_the_caller_names_a_partition_that_is_not_there() {
    let member = member_with(GridConfig::default());
    let map = member.grid.map("m").unwrap();
    let partition = PartitionId(u32::MAX);
    let put = Change::Put { key: &key(1), value: b"v", expiry: Expiry::DEFAULT, mode: PutMode::Set };
    map.change(partition, caller(1, 1), put, |_| ()).unwrap();
    assert!(map.contains_key(map.partition_of(&key(1)), &key(1)));
    assert!(map.journal_subscribe(partition).is_err());
}

#[test]
fn a_clock_at_either_end_of_time_breaks_nothing() {
    for now in [i64::MIN, -1, 0, i64::MAX] {
        struct At(i64);
        impl filbert_grid::Clock for At {
            fn now(&self) -> Millis {
                Millis(self.0)
            }
        }
        let environment = Environment { clock: Arc::new(At(now)), random_seed: 1 };
        let grid = Grid::new(GridConfig::default(), environment).unwrap();
        let map = grid.map("m").unwrap();
        for ttl_ms in [-1, 0, 1, i64::MAX] {
            let put = Change::Put { key: &key(1), value: b"v", expiry: Expiry::ttl(ttl_ms), mode: PutMode::Set };
            change(&map, caller(1, 1), put);
        }
        change(&map, caller(1, 1), Change::Lock { key: &key(2), lease_ms: Some(i64::MAX), reference: 0 });
        grid.run_expiry();
        grid.statistics();
    }
}
