//! Locks of keys and the changes that wait for them.

use std::sync::Arc;

use crate::common::*;
use filbert_grid::{Change, GridConfig, GridError};
use uuid::Uuid;

#[test]
fn a_write_waits_for_the_lock_and_is_made_by_whoever_unlocks() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    let (owner, other) = (caller(1, 1), caller(2, 1));
    let given = Answers::default();
    assert_eq!(lock(&map, owner, 7), Said::Flag(true));
    assert_eq!(put(&map, other, 7, b"no"), Said::Locked);
    park(&map, other, owned_put(7, b"later"), None, &given, 1);
    assert_eq!(answers(&given), []);
    assert_eq!(put(&map, owner, 7, b"mine"), Said::Previous(None));
    assert_eq!(unlock(&map, owner, 7), Said::Done);
    assert_eq!(answers(&given), [(1, Said::Previous(Some(b"mine".to_vec())))]);
    assert_eq!(get(&map, 7), Some(b"later".to_vec()));
    assert_eq!(member.grid.statistics().parked_changes, 0);
}

#[test]
fn waiters_run_in_order_and_a_granted_lock_stops_the_queue() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    let given = Answers::default();
    lock(&map, caller(1, 1), 7);
    park(&map, caller(2, 1), owned_put(7, b"a"), None, &given, 1);
    park(&map, caller(3, 1), owned_lock(7), None, &given, 2);
    park(&map, caller(2, 1), owned_put(7, b"b"), None, &given, 3);
    unlock(&map, caller(1, 1), 7);
    assert_eq!(answers(&given), [(1, Said::Previous(None)), (2, Said::Flag(true))]);
    assert_eq!(get(&map, 7), Some(b"a".to_vec()));
    unlock(&map, caller(3, 1), 7);
    assert_eq!(answers(&given).last(), Some(&(3, Said::Previous(Some(b"a".to_vec())))));
}

#[test]
fn a_waiter_gives_up_at_its_deadline() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    let given = Answers::default();
    lock(&map, caller(1, 1), 7);
    let deadline = member.grid.now().plus(100);
    park(&map, caller(2, 1), owned_put(7, b"v"), Some(deadline), &given, 1);
    assert!(member.run_expiry() <= deadline);
    member.clock.advance(99);
    member.run_expiry();
    assert_eq!(answers(&given), []);
    member.clock.advance(1);
    member.run_expiry();
    assert_eq!(answers(&given), [(1, Said::Error(GridError::LockTimeout { map: "m".to_owned() }))]);
    unlock(&map, caller(1, 1), 7);
    assert_eq!(get(&map, 7), None);
}

#[test]
fn the_end_of_a_lease_lets_waiters_run_and_calls_for_the_sweep() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    let given = Answers::default();
    let called = Arc::new(std::sync::Mutex::new(Vec::new()));
    let calls = called.clone();
    member.run_expiry();
    member.grid.on_due(move |time| calls.lock().unwrap().push(time));
    let now = member.grid.now();
    change(&map, caller(1, 1), Change::Lock { key: &key(7), lease_ms: Some(50), reference: 0 });
    assert_eq!(*called.lock().unwrap(), [now.plus(50)]);
    park(&map, caller(2, 1), owned_put(7, b"v"), None, &given, 1);
    member.clock.advance(50);
    member.run_expiry();
    assert_eq!(answers(&given), [(1, Said::Previous(None))]);
}

#[test]
fn what_a_client_held_goes_with_its_last_connection() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    let given = Answers::default();
    let (first, second) = (client(&member, 1), client(&member, 1));
    lock(&map, caller(1, 1), 7);
    lock(&map, caller(1, 2), 8);
    park(&map, caller(2, 1), owned_put(7, b"v"), None, &given, 1);
    drop(first);
    assert_eq!(answers(&given), []);
    drop(second);
    assert_eq!(answers(&given), [(1, Said::Previous(None))]);
    assert_eq!(map.statistics().locked_keys, 0);
    assert_eq!(member.grid.statistics().clients, 0);
}

#[test]
fn a_client_that_goes_waits_no_more() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    let given = Answers::default();
    let waiting = client(&member, 2);
    lock(&map, caller(1, 1), 7);
    park(&map, caller(2, 1), owned_lock(7), None, &given, 1);
    drop(waiting);
    assert_eq!(answers(&given), [(1, Said::Error(GridError::ClientGone { client: Uuid::from_u128(2) }))]);
    unlock(&map, caller(1, 1), 7);
    assert_eq!(lock(&map, caller(3, 1), 7), Said::Flag(true));
}

#[test]
fn waiters_are_bounded() {
    let member = member_with(GridConfig { lock_waiters_max: 2, ..GridConfig::default() });
    let map = member.grid.map("m").unwrap();
    let given = Answers::default();
    lock(&map, caller(1, 1), 7);
    for name in 0..3 {
        park(&map, caller(2, 1), owned_put(7, b"v"), None, &given, name);
    }
    let limit =
        GridError::LimitReached { what: "changes waiting for locked keys", setting: "lock_waiters_max", limit: 2 };
    assert_eq!(answers(&given), [(2, Said::Error(limit))]);
    unlock(&map, caller(1, 1), 7);
    assert_eq!(answers(&given).len(), 3);
}

#[test]
fn shutdown_and_destroy_answer_those_who_wait() {
    let member = member();
    let (map, doomed) = (member.grid.map("m").unwrap(), member.grid.map("doomed").unwrap());
    let given = Answers::default();
    lock(&map, caller(1, 1), 7);
    lock(&doomed, caller(1, 1), 7);
    park(&map, caller(2, 1), owned_put(7, b"v"), None, &given, 1);
    park(&doomed, caller(2, 1), owned_put(7, b"v"), None, &given, 2);
    assert!(member.destroy_map("doomed"));
    assert!(matches!(answers(&given)[0], (2, Said::Error(GridError::Destroyed { .. }))));
    member.grid.shutdown();
    assert_eq!(answers(&given)[1], (1, Said::Error(GridError::NotActive)));
    assert_eq!(put(&map, caller(1, 1), 1, b"v"), Said::Error(GridError::NotActive));
    park(&map, caller(2, 1), owned_put(7, b"v"), None, &given, 3);
    assert_eq!(answers(&given)[2], (3, Said::Error(GridError::NotActive)));
}

#[test]
fn counting_under_a_lock_from_many_threads_loses_nothing() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let map = &map;
            scope.spawn(move || {
                for _ in 0..500 {
                    let me = caller(9, thread);
                    let (sender, receiver) = std::sync::mpsc::channel();
                    let partition = map.partition_of(&key(7));
                    map.change_when_free(
                        partition,
                        me,
                        owned_lock(7),
                        None,
                        Box::new(move |answer| sender.send(answer.is_ok()).unwrap()),
                    );
                    assert!(receiver.recv().unwrap());
                    let count = get(map, 7).map_or(0, |bytes| u32::from_be_bytes(bytes.try_into().unwrap()));
                    put(map, me, 7, &(count + 1).to_be_bytes());
                    assert_eq!(unlock(map, me, 7), Said::Done);
                }
            });
        }
    });
    assert_eq!(get(&map, 7), Some(2_000u32.to_be_bytes().to_vec()));
}
