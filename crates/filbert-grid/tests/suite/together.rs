//! Changes of several keys that are applied together: claims, refusals, released claims, and
//! waiters.

use crate::common::{
    Answers, Heard, Said, answers, caller, get, key, lock, member, member_with, member_with_map, owned_put, park, put,
    put_ttl, settle, unlock,
};
use filbert_grid::{
    Change, EventKinds, EvictionConfig, EvictionPolicy, Expected, GridConfig, GridError, ListenerSpec, Map, MapConfig,
    MaxSizePolicy, NotMade, Together,
};

fn inserts(map: &Map, keys: impl Iterator<Item = u32>, value: &[u8]) -> Together {
    let mut together = Together::new(map);
    keys.for_each(|n| assert!(together.add(&key(n), Expected::Nothing, Some(value)).unwrap()));
    together
}

#[test]
fn changes_are_made_as_they_were_added() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    let heard = Heard::default();
    let all = ListenerSpec { key: None, filter: None, include_value: true, kinds: EventKinds::ALL, connection: None };
    map.add_listener(all, heard.sink()).unwrap();
    put(&map, caller(1, 1), 1, b"one");
    put(&map, caller(1, 1), 2, b"two");
    heard.take();
    let mut together = Together::new(&map);
    assert!(together.add(&key(1), Expected::Value(b"one"), Some(b"ONE")).unwrap());
    assert!(together.add(&key(2), Expected::Value(b"two"), None).unwrap());
    assert!(together.add(&key(3), Expected::Nothing, Some(b"three")).unwrap());
    assert!(together.add(&key(4), Expected::Anything, Some(b"four")).unwrap());
    assert!(together.add(&key(5), Expected::Nothing, Some(b"five")).unwrap());
    assert!(!together.add(&key(3), Expected::Anything, None).unwrap());
    assert_eq!(together.get(&key(3)).unwrap().value, Some(b"three".as_slice()));
    assert!(together.take_out(&key(5)) && !together.take_out(&key(5)));
    assert_eq!(together.len(), 4);
    map.make_together(&together, &mut map.claims()).unwrap();
    let values: Vec<_> = (1..=5).map(|n| get(&map, n)).collect();
    assert_eq!(values, [Some(b"ONE".to_vec()), None, Some(b"three".to_vec()), Some(b"four".to_vec()), None]);
    let mut events = heard.take();
    events.sort();
    assert_eq!(events, ["Added 3 ->three 1", "Added 4 ->four 1", "Removed 2 two>- 1", "Updated 1 one>ONE 1"]);
}

#[test]
fn what_differs_stays_claimed_until_it_is_given_back() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    put(&map, caller(1, 1), 7, b"there");
    let together = inserts(&map, 0..20, b"new");
    let mut claims = map.claims();
    assert_eq!(map.make_together(&together, &mut claims), Err(NotMade::Differ(vec![key(7).into()])));
    assert_eq!(map.size(), 1);
    // Other writers wait. Readers do not wait, and see no lock.
    assert_eq!(put(&map, caller(1, 1), 3, b"x"), Said::Locked);
    assert_eq!(lock(&map, caller(1, 1), 3), Said::Locked);
    assert_eq!(get(&map, 7), Some(b"there".to_vec()));
    assert!(!map.is_locked(map.partition_of(&key(3)), &key(3)));
    assert_eq!(put(&map, caller(1, 1), 100, b"x"), Said::Previous(None));
    let other = inserts(&map, 19..30, b"other");
    let NotMade::Held(held) = map.make_together(&other, &mut map.claims()).unwrap_err() else { panic!() };
    assert_eq!(*held, *key(19));
    let said = Answers::default();
    park(&map, caller(2, 1), owned_put(3, b"parked"), None, &said, 1);
    park(&map, caller(3, 1), Change::Await { key: &key(4) }.to_owned(), None, &said, 2);
    assert!(answers(&said).is_empty());
    drop(claims);
    let mut said = answers(&said);
    said.sort_by_key(|(name, _)| *name);
    assert_eq!(said, [(1, Said::Previous(None)), (2, Said::Done)]);
    assert_eq!((get(&map, 3), map.size()), (Some(b"parked".to_vec()), 3));
    map.make_together(&other, &mut map.claims()).unwrap();
    assert_eq!(map.size(), 14);
    assert_eq!(member.grid.statistics().parked_changes, 0);
}

#[test]
fn statements_that_wait_for_a_key_have_it_in_turn() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    let said = Answers::default();
    let names = || answers(&said).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    lock(&map, caller(1, 1), 7);
    for name in 1..=4 {
        park(&map, caller(2, name.into()), Change::Await { key: &key(7) }.to_owned(), None, &said, name);
    }
    park(&map, caller(3, 1), owned_put(7, b"parked"), None, &said, 5);
    unlock(&map, caller(1, 1), 7);
    settle();
    assert_eq!(names(), [1]);
    // The statement claims the key: the next one is told when it releases the key.
    let mut claims = map.claims();
    let change = |expected| {
        let mut together = Together::new(&map);
        together.add(&key(7), expected, Some(b"changed")).unwrap();
        together
    };
    assert!(matches!(map.make_together(&change(Expected::Value(b"other")), &mut claims), Err(NotMade::Differ(_))));
    member.clock.advance(1_000);
    member.grid.run_expiry();
    settle();
    assert_eq!(names(), [1]);
    map.make_together(&change(Expected::Nothing), &mut claims).unwrap();
    settle();
    assert_eq!(names(), [1, 2]);
    // A statement that has ended does not claim the key: the next one is told a little later.
    member.grid.run_expiry();
    settle();
    assert_eq!(names(), [1, 2]);
    member.clock.advance(50);
    member.grid.run_expiry();
    settle();
    assert_eq!(names(), [1, 2, 3]);
    // The put of a client waits for its place, too.
    member.clock.advance(50);
    member.grid.run_expiry();
    settle();
    member.clock.advance(50);
    member.grid.run_expiry();
    settle();
    assert_eq!(names(), [1, 2, 3, 4, 5]);
    assert_eq!(get(&map, 7), Some(b"parked".to_vec()));
    assert_eq!(member.grid.statistics().parked_changes, 0);
}

#[test]
fn a_second_attempt_keeps_what_the_first_one_claimed() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    put(&map, caller(1, 1), 1, b"old");
    let mut together = inserts(&map, 1..10, b"new");
    let mut claims = map.claims();
    assert!(matches!(map.make_together(&together, &mut claims), Err(NotMade::Differ(_))));
    together.take_out(&key(1));
    assert!(together.add(&key(1), Expected::Value(b"old"), Some(b"newer")).unwrap());
    map.make_together(&together, &mut claims).unwrap();
    assert_eq!((get(&map, 1), get(&map, 9)), (Some(b"newer".to_vec()), Some(b"new".to_vec())));
    // The claims are released, although the guard still exists.
    assert_eq!(put(&map, caller(1, 1), 5, b"x"), Said::Previous(Some(b"new".to_vec())));
    // A later attempt with fewer keys releases the claims of the other keys.
    assert!(matches!(map.make_together(&inserts(&map, 1..10, b"n"), &mut claims), Err(NotMade::Differ(_))));
    map.make_together(&inserts(&map, 50..51, b"n"), &mut claims).unwrap();
    assert_eq!(put(&map, caller(1, 1), 5, b"y"), Said::Previous(Some(b"x".to_vec())));
}

#[test]
fn a_lock_gives_everything_back() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    lock(&map, caller(1, 1), 5);
    let together = inserts(&map, 0..10, b"v");
    let mut claims = map.claims();
    assert_eq!(map.make_together(&together, &mut claims), Err(NotMade::Held(key(5).into())));
    for n in (0..10).filter(|n| *n != 5) {
        assert_eq!(put(&map, caller(2, 1), n, b"x"), Said::Previous(None));
    }
    unlock(&map, caller(1, 1), 5);
    assert!(matches!(map.make_together(&together, &mut claims), Err(NotMade::Differ(keys)) if keys.len() == 9));
}

#[test]
fn what_expires_or_is_cleared_between_stays_gone() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    put_ttl(&map, 1, b"short", 100);
    put(&map, caller(1, 1), 2, b"long");
    let mut together = Together::new(&map);
    together.add(&key(1), Expected::Value(b"short"), Some(b"new")).unwrap();
    together.add(&key(2), Expected::Value(b"long"), Some(b"new")).unwrap();
    member.clock.advance(100);
    let mut claims = map.claims();
    assert_eq!(map.make_together(&together, &mut claims), Err(NotMade::Differ(vec![key(1).into()])));
    // A clear ignores claims.
    assert_eq!(map.clear(caller(1, 1)), Ok(1));
    assert!(matches!(map.make_together(&together, &mut claims), Err(NotMade::Differ(keys)) if keys.len() == 2));
    assert_eq!(map.size(), 0);
}

#[test]
fn limits_are_checked_before_anything_is_written() {
    let member = member_with(GridConfig { memory_bytes_max: Some(1 << 20), ..GridConfig::default() });
    let map = member.grid.map("m").unwrap();
    let before = member.grid.statistics().memory_bytes;
    let together = inserts(&map, 0..100, &[0; 20_000]);
    let made = map.make_together(&together, &mut map.claims());
    assert!(matches!(made, Err(NotMade::Error(GridError::OutOfMemory { .. }))), "{made:?}");
    assert_eq!((map.size(), member.grid.statistics().memory_bytes), (0, before));
    map.make_together(&inserts(&map, 0..20, &[0; 20_000]), &mut map.claims()).unwrap();
    assert_eq!(map.size(), 20);
    member.grid.shutdown();
    let made = map.make_together(&inserts(&map, 50..60, b"v"), &mut map.claims());
    assert_eq!(made, Err(NotMade::Error(GridError::NotActive)));
}

#[test]
fn a_map_with_a_limit_keeps_it() {
    let eviction = EvictionConfig { policy: EvictionPolicy::Lru, max_size_policy: MaxSizePolicy::PerNode, size: 1_000 };
    let member = member_with_map(MapConfig { eviction, ..MapConfig::default() });
    let map = member.grid.map("m").unwrap();
    map.make_together(&inserts(&map, 0..3_000, b"v"), &mut map.claims()).unwrap();
    settle();
    assert_eq!(map.size(), 1_000);
}

#[test]
fn entries_that_expired_do_not_count_against_a_limit_once_the_map_is_cleared() {
    let eviction = EvictionConfig { policy: EvictionPolicy::Lru, max_size_policy: MaxSizePolicy::PerNode, size: 10 };
    let member = member_with_map(MapConfig { eviction, ..MapConfig::default() });
    let map = member.grid.map("m").unwrap();
    for clear in [Map::clear, Map::evict_all] {
        for n in 0..8 {
            put_ttl(&map, n, b"v", 100);
        }
        // The expired entries are not swept yet when the map is cleared.
        member.clock.advance(100);
        clear(&map, caller(1, 1)).unwrap();
        for n in 0..10 {
            put(&map, caller(1, 1), n, b"v");
        }
        assert_eq!(map.size(), 10);
        clear(&map, caller(1, 1)).unwrap();
    }
}

#[test]
fn a_member_that_leaves_knows_of_claims_and_refuses_further_changes_of_statements() {
    let member = member();
    let map = member.grid.map("m").unwrap();
    put(&map, caller(1, 1), 7, b"there");
    let mut together = inserts(&map, 0..20, b"new");
    let mut claims = map.claims();
    assert!(matches!(map.make_together(&together, &mut claims), Err(NotMade::Differ(_))));
    member.grid.refuse_statements();
    assert_eq!(member.grid.claiming_statements(), 1);
    together.take_out(&key(7));
    assert_eq!(map.make_together(&together, &mut claims), Err(NotMade::Error(GridError::NotActive)));
    assert_eq!(
        map.make_together(&inserts(&map, 30..40, b"x"), &mut map.claims()),
        Err(NotMade::Error(GridError::NotActive))
    );
    drop(claims);
    assert_eq!((member.grid.claiming_statements(), map.size()), (0, 1));
    assert_eq!(put(&map, caller(1, 1), 3, b"x"), Said::Previous(None));
}
