//! The replacement of a map by another map.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::common::*;
use filbert_data::Blob;
use filbert_grid::{
    Change, EntryEvent, EventKinds, Expiry, Grid, GridError, Invalidation, ListenerSpec, Map, MapReplacement, PutMode,
    Refused,
};

fn copy(replacement: &MapReplacement) {
    let mut entries = Vec::new();
    replacement.old().for_each(&mut |key, value| entries.push((Blob::from(key), Blob::from(value))));
    for (key, value) in entries {
        let metadata = replacement.metadata(&key).unwrap();
        let mode = PutMode::Metadata(metadata);
        let change = Change::Put { key: &key, value: &value, expiry: Expiry::DEFAULT, mode };
        replacement.new_map().change(replacement.new_map().partition_of(&key), caller(0, 0), change, |_| ()).unwrap();
    }
}

fn begin(grid: &Arc<Grid>, name: &str, new: &str) -> MapReplacement {
    grid.succeed(&grid.map(name).unwrap(), new).unwrap()
}

fn finish(mut replacement: MapReplacement) -> Arc<Map> {
    replacement.put_in_place().unwrap();
    replacement.new_map().clone()
}

#[test]
fn a_map_takes_the_place_of_another_with_its_times_and_listeners() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    let heard = Arc::new(AtomicUsize::new(0));
    let counts = heard.clone();
    let spec = ListenerSpec { key: None, filter: None, include_value: false, kinds: EventKinds::ALL, connection: None };
    let listener =
        map.add_listener(spec, Arc::new(move |_: &EntryEvent<'_>| _ = counts.fetch_add(1, Ordering::SeqCst)));
    let forgotten = Arc::new(AtomicUsize::new(0));
    let counts = forgotten.clone();
    map.add_invalidation_listener(
        None,
        Arc::new(move |invalidation: &Invalidation<'_>| {
            counts.fetch_add(usize::from(invalidation.key.is_none()), Ordering::SeqCst);
        }),
    )
    .unwrap();
    put_ttl(&map, 1, b"a", 1_000);
    put(&map, caller(1, 1), 2, b"b");
    assert_eq!(heard.load(Ordering::SeqCst), 2);
    let replacement = begin(&member.grid, "m", "m");
    copy(&replacement);
    assert_eq!(heard.load(Ordering::SeqCst), 2, "nobody hears of the copy");
    let new = finish(replacement);
    assert!(map.is_destroyed());
    assert!(forgotten.load(Ordering::SeqCst) > 0, "near caches forget what they have");
    let found = member.grid.map("m").unwrap();
    assert_eq!((get(&found, 1), get(&new, 2)), (Some(b"a".to_vec()), Some(b"b".to_vec())));
    put(&found, caller(1, 1), 3, b"c");
    assert_eq!(heard.load(Ordering::SeqCst), 3, "listeners are those of the new map");
    member.clock.advance(1_000);
    assert_eq!((get(&found, 1), get(&found, 2)), (None, Some(b"b".to_vec())));
    assert!(member.grid.remove_map_listener("m", listener.unwrap()));
    let error = put(&map, caller(1, 1), 4, b"d");
    // A client with the old handle sends the change again, and then finds the new map.
    assert!(matches!(error, Said::Error(GridError::BeingReplaced { .. })), "{error:?}");
}

#[test]
fn one_that_is_given_up_leaves_everything_as_it_was() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    put(&map, caller(1, 1), 1, b"a");
    let bytes = member.grid.statistics().memory_bytes;
    let replacement = begin(&member.grid, "m", "m");
    copy(&replacement);
    let error = put(&map, caller(1, 1), 2, b"b");
    assert!(matches!(error, Said::Error(GridError::BeingReplaced { .. })), "{error:?}");
    assert!(matches!(map.clear(caller(1, 1)), Err(GridError::BeingReplaced { .. })));
    assert!(matches!(member.grid.succeed(&map, "m"), Err(GridError::BeingReplaced { .. })));
    assert_eq!(get(&map, 1), Some(b"a".to_vec()));
    drop(replacement);
    settle();
    assert_eq!(member.grid.statistics().memory_bytes, bytes);
    assert!(!map.is_destroyed());
    put(&map, caller(1, 1), 2, b"b");
    assert_eq!(map.size(), 2);
    lock(&map, caller(1, 1), 7);
    assert!(matches!(member.grid.succeed(&map, "m"), Err(GridError::IllegalState(_))), "a client holds a lock");
    unlock(&map, caller(1, 1), 7);
    let _other = member.grid.map("other").unwrap();
    assert!(matches!(member.grid.succeed(&map, "other"), Err(GridError::IllegalArgument(_))));
    let renamed = begin(&member.grid, "m", "renamed");
    copy(&renamed);
    finish(renamed);
    assert_eq!(member.grid.map_names(), ["other", "renamed"]);
    let mut gone = begin(&member.grid, "renamed", "renamed");
    member.destroy_map("renamed");
    assert!(matches!(gone.put_in_place(), Err(GridError::Destroyed { .. })));
    assert_eq!(member.grid.map_names(), ["other"]);
}

/// Changes an entry as doors do, which get a new handle if the map was destroyed.
fn put_as_doors_do(grid: &Grid, handle: &mut Arc<Map>, n: u32, value: &[u8]) -> bool {
    if handle.is_destroyed() {
        *handle = grid.map("m").unwrap();
    }
    let key = key(n);
    let change = Change::Put { key: &key, value, expiry: Expiry::DEFAULT, mode: PutMode::Set };
    match handle.change(handle.partition_of(&key), caller(1, 1), change, |_| ()) {
        Ok(()) => true,
        Err(Refused::Error(GridError::BeingReplaced { .. } | GridError::Destroyed { .. })) => false,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn no_acknowledged_change_is_lost_beside_a_succession() {
    let member = member();
    let grid = member.grid.clone();
    let over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4u32)
        .map(|writer| {
            let (grid, over) = (grid.clone(), over.clone());
            std::thread::spawn(move || {
                let mut handle = grid.map("m").unwrap();
                let mut acknowledged = BTreeMap::new();
                let mut round = 0u32;
                while !over.load(Ordering::SeqCst) {
                    round += 1;
                    let n = writer * 1_000 + round % 500;
                    if put_as_doors_do(&grid, &mut handle, n, &round.to_be_bytes()) {
                        acknowledged.insert(n, round);
                    }
                }
                acknowledged
            })
        })
        .collect();
    for round in 0..30 {
        let replacement = begin(&grid, "m", "m");
        copy(&replacement);
        // Every third replacement is cancelled.
        if round % 3 != 0 {
            finish(replacement);
        }
    }
    over.store(true, Ordering::SeqCst);
    let map = grid.map("m").unwrap();
    let mut count = 0;
    for writer in writers {
        for (n, round) in writer.join().unwrap() {
            assert_eq!(get(&map, n), Some(round.to_be_bytes().to_vec()), "{n}");
            count += 1;
        }
    }
    assert_eq!(map.size(), count);
}
