//! Tests of the embedded API: all operations, locks between threads and tasks, iteration,
//! lifetimes, and shutdown.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use filbert::{
    Blob, Config, Error, EventKind, EvictionConfig, EvictionPolicy, Filbert, FromBlob, Json, Lifetime, List,
    ListenerOptions, Map, MapConfig, ToBlob,
};

fn start() -> Filbert {
    Filbert::start(Config::default()).unwrap()
}

/// Waits until a condition holds. A generous timeout turns a hang into a failure.
#[track_caller]
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what} did not come true");
        thread::sleep(Duration::from_millis(2));
    }
}

fn numbers(filbert: &Filbert) -> Map<i32, String> {
    filbert.map("numbers").unwrap()
}

#[test]
fn put_gives_the_old_value_and_set_does_not() {
    let filbert = start();
    let map = numbers(&filbert);
    assert_eq!(map.put(&1, "one").unwrap(), None);
    assert_eq!(map.put(&1, "uno").unwrap().as_deref(), Some("one"));
    map.set(&1, "eins").unwrap();
    assert_eq!(map.get(&1).unwrap().as_deref(), Some("eins"));
    assert_eq!(map.get(&2).unwrap(), None);
    assert_eq!(map.name(), "numbers");
}

#[test]
fn put_if_absent_keeps_the_first_value() {
    let filbert = start();
    let map = numbers(&filbert);
    assert_eq!(map.put_if_absent(&1, "one").unwrap(), None);
    assert_eq!(map.put_if_absent(&1, "uno").unwrap().as_deref(), Some("one"));
    assert_eq!(map.get(&1).unwrap().as_deref(), Some("one"));
}

#[test]
fn replace_needs_an_entry_and_replace_if_same_its_value() {
    let filbert = start();
    let map = numbers(&filbert);
    assert_eq!(map.replace(&1, "one").unwrap(), None);
    assert!(!map.contains_key(&1).unwrap());
    map.set(&1, "one").unwrap();
    assert_eq!(map.replace(&1, "uno").unwrap().as_deref(), Some("one"));
    assert!(!map.replace_if_same(&1, "one", "eins").unwrap());
    assert!(map.replace_if_same(&1, "uno", "eins").unwrap());
    assert_eq!(map.get(&1).unwrap().as_deref(), Some("eins"));
}

#[test]
fn remove_gives_the_value_and_delete_whether_there_was_one() {
    let filbert = start();
    let map = numbers(&filbert);
    map.put_all([(&1, "one"), (&2, "two"), (&3, "three")]).unwrap();
    assert_eq!(map.remove(&1).unwrap().as_deref(), Some("one"));
    assert_eq!(map.remove(&1).unwrap(), None);
    assert!(map.delete(&2).unwrap());
    assert!(!map.delete(&2).unwrap());
    assert!(!map.remove_if_same(&3, "tres").unwrap());
    assert!(map.remove_if_same(&3, "three").unwrap());
    assert!(map.is_empty());
}

#[test]
fn whole_map_operations_see_every_entry() {
    let filbert = start();
    let map = numbers(&filbert);
    for number in 0..1000 {
        map.set(&number, number.to_string().as_str()).unwrap();
    }
    assert_eq!(map.len(), 1000);
    assert!(map.contains_value("777").unwrap());
    assert!(!map.contains_value("1000").unwrap());
    let keys: BTreeSet<i32> = map.keys().unwrap().into_iter().collect();
    assert_eq!(keys, (0..1000).collect());
    assert_eq!(map.values().unwrap().len(), 1000);
    assert!(map.entries().unwrap().iter().all(|(key, value)| key.to_string() == *value));
    let some = map.get_all([&5, &5000, &6]).unwrap();
    assert_eq!(some, [(&5, "5".to_owned()), (&6, "6".to_owned())]);
    assert_eq!(map.clear().unwrap(), 1000);
    assert!(map.is_empty());
}

#[test]
fn an_iteration_sees_what_stays_while_the_map_changes() {
    let filbert = start();
    let map = numbers(&filbert);
    for number in 0..2000 {
        map.set(&number, "x").unwrap();
    }
    let mut seen = Vec::new();
    for (step, entry) in map.iter().enumerate() {
        let (key, _) = entry.unwrap();
        if key < 1000 {
            seen.push(key);
        }
        // Keys from 1000 on are removed, and other keys are added.
        let step = step as i32;
        map.delete(&(1000 + step % 1000)).unwrap();
        map.set(&(10_000 + step), "y").unwrap();
        if step > 100_000 {
            panic!("the iteration does not end");
        }
    }
    assert_eq!(seen.len(), 1000, "each exactly once");
    assert_eq!(seen.into_iter().collect::<BTreeSet<_>>(), (0..1000).collect());
}

#[test]
fn evicted_entries_are_gone_unless_their_key_is_locked() {
    let filbert = start();
    let map = numbers(&filbert);
    map.put_all([(&1, "one"), (&2, "two"), (&3, "three")]).unwrap();
    assert!(map.evict(&1).unwrap());
    assert!(!map.evict(&1).unwrap());
    map.lock(&2).unwrap();
    assert!(!map.evict(&2).unwrap());
    assert_eq!(map.evict_all().unwrap(), 1);
    assert_eq!(map.keys().unwrap(), [2]);
}

#[test]
fn entries_expire_by_their_lifetime_and_memory_comes_back() {
    let filbert = start();
    let map = numbers(&filbert);
    map.set_with(&1, "soon", Lifetime::ttl(Duration::from_millis(20))).unwrap();
    map.set_with(&2, "idle", Lifetime::max_idle(Duration::from_millis(20))).unwrap();
    map.set_with(&3, "kept", Lifetime::FOREVER).unwrap();
    assert_eq!(map.put_with(&4, "later", Lifetime::ttl(Duration::from_secs(3600))).unwrap(), None);
    assert!(map.set_ttl(&4, Duration::from_millis(20)).unwrap());
    assert!(!map.set_ttl(&99, Duration::from_millis(20)).unwrap());
    // Nothing reads the entries: the timer removes them.
    eventually("the sweep", || map.statistics().entries == 1);
    assert_eq!(map.statistics().expirations, 3);
    assert_eq!(map.keys().unwrap(), [3]);
}

#[test]
fn an_entry_view_tells_the_truth() {
    let filbert = start();
    let map = numbers(&filbert);
    assert_eq!(map.entry_view(&1).unwrap(), None);
    map.set_with(&1, "a", Lifetime::ttl(Duration::from_secs(100)).and_max_idle(Duration::from_secs(50))).unwrap();
    map.set_with(&1, "b", Lifetime::ttl(Duration::from_secs(100)).and_max_idle(Duration::from_secs(50))).unwrap();
    map.get(&1).unwrap();
    map.get(&1).unwrap();
    let view = map.entry_view(&1).unwrap().unwrap();
    assert_eq!((view.key, view.value.as_str(), view.hits, view.version), (1, "b", 2, 1));
    assert_eq!((view.ttl, view.max_idle), (Some(Duration::from_secs(100)), Some(Duration::from_secs(50))));
    assert!(view.expires.is_some() && view.cost_bytes > 0);
    map.set_with(&2, "c", Lifetime::FOREVER).unwrap();
    let view = map.entry_view(&2).unwrap().unwrap();
    assert_eq!((view.expires, view.ttl, view.max_idle), (None, None, None));
}

#[test]
fn statistics_count_what_was_done() {
    let filbert = start();
    let map = numbers(&filbert);
    map.set(&1, "a").unwrap();
    map.get(&1).unwrap();
    map.get(&2).unwrap();
    map.remove(&1).unwrap();
    let statistics = map.statistics();
    assert_eq!((statistics.gets, statistics.hits, statistics.puts, statistics.removes), (2, 1, 1, 1));
    assert_eq!(statistics.entries, 0);
}

#[test]
fn maps_of_one_name_are_one_map_and_types_are_the_handles() {
    let filbert = start();
    filbert.map::<i32, String>("a").unwrap().set(&1, "text").unwrap();
    let wrong = filbert.map::<i32, i64>("a").unwrap().get(&1).unwrap_err();
    assert!(matches!(wrong, Error::Data { what: "a value", .. }), "{wrong}");
    assert_eq!(wrong.to_string(), "cannot convert a value of map \"a\"");
    // An int is not a long, as in Java: the keys differ.
    assert_eq!(filbert.map::<i64, String>("a").unwrap().get(&1).unwrap(), None);
    assert_eq!(filbert.map::<i32, String>("b").unwrap().get(&1).unwrap(), None);
}

#[test]
fn blobs_are_what_the_clients_write() {
    let filbert = start();
    filbert.map::<String, i32>("m").unwrap().set("a", &7).unwrap();
    let raw = filbert.map::<Blob, Blob>("m").unwrap();
    let (key, value) = raw.entries().unwrap().pop().unwrap();
    // Partition hash 0, type -11 (text), length 1, "a"; then type -7 (int), 7.
    assert_eq!(key.as_bytes(), [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xf5, 0, 0, 0, 1, b'a']);
    assert_eq!(value.as_bytes(), [0, 0, 0, 0, 0xff, 0xff, 0xff, 0xf9, 0, 0, 0, 7]);
    raw.set(&key, &8i32.to_blob().unwrap()).unwrap();
    assert_eq!(filbert.map::<String, i32>("m").unwrap().get("a").unwrap(), Some(8));
}

#[test]
fn every_type_of_value_comes_back() {
    fn check<V: ToBlob + FromBlob + PartialEq + std::fmt::Debug>(filbert: &Filbert, value: V) {
        let map = filbert.map::<String, V>("types").unwrap();
        map.set("key", &value).unwrap();
        assert_eq!(map.get("key").unwrap(), Some(value));
    }
    let filbert = start();
    check(&filbert, true);
    check(&filbert, -1i8);
    check(&filbert, -1i16);
    check(&filbert, i32::MIN);
    check(&filbert, i64::MAX);
    check(&filbert, 1.5f32);
    check(&filbert, -0.25f64);
    check(&filbert, 'ß');
    check(&filbert, "höher".to_owned());
    check(&filbert, vec![0u8, 255, 7]);
    check(&filbert, vec![1i64, -1]);
    check(&filbert, vec!["a".to_owned(), String::new()]);
    check(&filbert, Json("{\"a\": [1, 2]}".to_owned()));
    check(&filbert, List(vec![Some(1i32), None]));
    check(&filbert, None::<String>);
}

#[test]
fn a_lock_holds_others_back_until_it_is_given_back() {
    let filbert = start();
    let map = numbers(&filbert);
    map.set(&1, "mine").unwrap();
    map.lock(&1).unwrap();
    map.lock(&1).unwrap();
    assert!(map.is_locked(&1).unwrap());
    let (sender, receiver) = mpsc::channel();
    let other = map.clone();
    let writer = thread::spawn(move || {
        sender.send(other.try_lock(&1).unwrap()).unwrap();
        sender.send(other.try_put(&1, "no", Duration::ZERO).unwrap()).unwrap();
        sender.send(other.try_remove(&1, Duration::from_millis(5)).unwrap()).unwrap();
        assert!(matches!(other.unlock(&1), Err(Error::NotLockOwner { .. })));
        // Reads do not wait.
        assert_eq!(other.get(&1).unwrap().as_deref(), Some("mine"));
        sender.send(true).unwrap();
        let old = other.put(&1, "theirs").unwrap();
        assert_eq!(old.as_deref(), Some("still mine"));
    });
    assert_eq!(receiver.iter().take(4).collect::<Vec<_>>(), [false, false, false, true]);
    map.set(&1, "still mine").unwrap();
    map.unlock(&1).unwrap();
    assert!(map.is_locked(&1).unwrap(), "held twice");
    map.unlock(&1).unwrap();
    writer.join().unwrap();
    assert_eq!(map.get(&1).unwrap().as_deref(), Some("theirs"));
    assert!(matches!(map.unlock(&1), Err(Error::NotLockOwner { .. })));
}

#[test]
fn a_lease_frees_a_key_by_itself() {
    let filbert = start();
    let map = numbers(&filbert);
    map.lock_with_lease(&1, Duration::from_millis(20)).unwrap();
    let other = map.clone();
    thread::spawn(move || {
        other.lock(&1).unwrap();
        other.unlock(&1).unwrap();
    })
    .join()
    .unwrap();
    assert!(!map.is_locked(&1).unwrap());
    assert!(map.try_lock_within(&1, Duration::from_millis(1), Some(Duration::from_secs(60))).unwrap());
    map.force_unlock(&1).unwrap();
    assert!(!map.is_locked(&1).unwrap());
}

#[test]
fn a_lock_by_many_threads_lets_one_in_at_a_time() {
    let filbert = start();
    let map = filbert.map::<String, i64>("counters").unwrap();
    map.set("n", &0).unwrap();
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let map = map.clone();
            thread::spawn(move || {
                for _ in 0..250 {
                    map.lock("n").unwrap();
                    let n = map.get("n").unwrap().unwrap();
                    map.set("n", &(n + 1)).unwrap();
                    map.unlock("n").unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(map.get("n").unwrap(), Some(1000));
}

#[test]
fn async_operations_yield_while_a_key_is_locked() {
    let filbert = start();
    let map = numbers(&filbert);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    // There is only one thread: if a waiting operation blocked it, the other task could never
    // unlock.
    runtime.block_on(async {
        let holder = map.asynchronous();
        let waiter = map.asynchronous();
        holder.lock(&1).await.unwrap();
        assert!(!waiter.try_lock(&1).await.unwrap());
        assert!(!waiter.try_put(&1, "no", Duration::from_millis(2)).await.unwrap());
        let (put, ()) = tokio::join!(waiter.put(&1, "second"), async {
            tokio::task::yield_now().await;
            holder.set(&1, "first").await.unwrap();
            holder.unlock(&1).await.unwrap();
        });
        assert_eq!(put.unwrap().as_deref(), Some("first"));
        assert_eq!(waiter.get(&1).await.unwrap().as_deref(), Some("second"));
        assert!(matches!(waiter.unlock(&1).await, Err(Error::NotLockOwner { .. })));
    });
}

#[test]
fn every_async_operation_does_what_its_sync_twin_does() {
    let filbert = start();
    let map = numbers(&filbert).asynchronous();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        assert_eq!(map.put(&1, "a").await.unwrap(), None);
        assert_eq!(map.put_with(&1, "b", Lifetime::FOREVER).await.unwrap().as_deref(), Some("a"));
        map.set(&1, "c").await.unwrap();
        map.set_with(&1, "d", Lifetime::FOREVER).await.unwrap();
        map.put_transient(&1, "e", Lifetime::FOREVER).await.unwrap();
        assert_eq!(map.put_if_absent(&1, "f").await.unwrap().as_deref(), Some("e"));
        assert_eq!(map.put_if_absent_with(&2, "f", Lifetime::FOREVER).await.unwrap(), None);
        assert_eq!(map.replace(&1, "g").await.unwrap().as_deref(), Some("e"));
        assert!(map.replace_if_same(&1, "g", "h").await.unwrap());
        assert!(map.try_put(&1, "i", Duration::ZERO).await.unwrap());
        assert!(map.set_ttl(&1, Duration::from_secs(60)).await.unwrap());
        assert!(map.contains_key(&1).await.unwrap());
        assert!(!map.remove_if_same(&1, "x").await.unwrap());
        assert_eq!(map.remove(&1).await.unwrap().as_deref(), Some("i"));
        assert!(map.delete(&2).await.unwrap());
        assert!(!map.try_remove(&2, Duration::ZERO).await.unwrap());
        assert!(!map.evict(&2).await.unwrap());
        map.lock_with_lease(&1, Duration::from_secs(60)).await.unwrap();
        assert!(map.is_locked(&1).await.unwrap());
        map.force_unlock(&1).await.unwrap();
        assert!(map.try_lock_within(&1, Duration::ZERO, None).await.unwrap());
        map.unlock(&1).await.unwrap();
        assert!(map.sync().is_empty());
    });
}

#[test]
fn a_member_can_be_used_from_within_an_async_program() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let config = Config::default().with_listener((Ipv4Addr::LOCALHOST, 0).into());
        let filbert = Filbert::start(config).unwrap();
        let map = numbers(&filbert);
        map.lock_with_lease(&1, Duration::from_millis(5)).unwrap();
        map.asynchronous().set(&1, "a").await.unwrap();
        filbert.shutdown();
    });
}

#[test]
fn a_destroyed_map_refuses_and_a_new_handle_makes_it_anew() {
    let filbert = start();
    let map = numbers(&filbert);
    map.set(&1, "a").unwrap();
    let old = map.clone();
    map.destroy().unwrap();
    assert!(old.set(&1, "b").is_err());
    assert_eq!(numbers(&filbert).get(&1).unwrap(), None);
}

#[test]
fn settings_of_a_map_count() {
    let eviction = EvictionConfig { policy: EvictionPolicy::Lru, size: 100, ..EvictionConfig::default() };
    let config = Config::default().map("cache-*", MapConfig { eviction, ..MapConfig::default() });
    let filbert = Filbert::start(config).unwrap();
    let cache = filbert.map::<i32, i32>("cache-1").unwrap();
    for number in 0..1000 {
        cache.set(&number, &number).unwrap();
    }
    assert_eq!(cache.len(), 100);
    assert_eq!(cache.get(&999).unwrap(), Some(999));
}

#[test]
fn a_memory_limit_refuses_writes_and_nothing_else() {
    let filbert = Filbert::start(Config::default().memory_bytes_max(4 << 20)).unwrap();
    let map = filbert.map::<i32, Vec<u8>>("m").unwrap();
    let value = vec![1u8; 10_000];
    let refused = (0..1000).find_map(|number| map.set(&number, &value).err().map(|error| (number, error)));
    let (number, error) = refused.unwrap();
    assert!(number > 100 && error.to_string().contains("not enough memory"), "{number}: {error}");
    assert_eq!(map.get(&0).unwrap().as_deref(), Some(value.as_slice()));
    for number in 0..number {
        assert!(map.delete(&number).unwrap());
    }
    map.set(&0, &value).unwrap();
}

#[test]
fn wrong_settings_are_refused_at_start() {
    let mut config = Config::default();
    config.grid.partition_count = 0;
    let error = Filbert::start(config).unwrap_err();
    assert!(matches!(error, Error::Configuration(_)), "{error}");
}

#[test]
fn an_address_in_use_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = Filbert::start(Config::default().with_listener(address)).unwrap_err();
    assert!(matches!(error, Error::Listen(_)), "{error}");
}

#[test]
fn a_member_opens_no_socket_unless_told_to() {
    assert_eq!(start().address(), None);
    let filbert = Filbert::start(Config::default().with_listener((Ipv4Addr::LOCALHOST, 0).into())).unwrap();
    let address = filbert.address().unwrap();
    TcpStream::connect(address).unwrap();
    filbert.shutdown();
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn shutdown_ends_what_waits() {
    let filbert = start();
    let map = numbers(&filbert);
    map.lock(&1).unwrap();
    let other = map.clone();
    let waiter = thread::spawn(move || other.set(&1, "late"));
    eventually("the waiter", || filbert.grid().statistics().parked_changes == 1);
    filbert.shutdown();
    assert!(waiter.join().unwrap().is_err());
    assert!(map.set(&1, "too late").is_err());
}

#[test]
fn members_in_one_program_are_apart() {
    let (one, other) = (start(), start());
    numbers(&one).set(&1, "one").unwrap();
    assert_eq!(numbers(&other).get(&1).unwrap(), None);
}

#[test]
fn a_listener_hears_every_change_in_order() {
    let filbert = start();
    let map = numbers(&filbert);
    let mut events = map.events(ListenerOptions::default()).unwrap();
    map.set(&1, "a").unwrap();
    map.set(&1, "b").unwrap();
    map.remove(&1).unwrap();
    map.set(&1, "c").unwrap();
    map.evict(&1).unwrap();
    map.set_with(&1, "d", Lifetime::ttl(Duration::from_millis(5))).unwrap();
    let expect = [
        (EventKind::Added, Some("a"), None),
        (EventKind::Updated, Some("b"), Some("a")),
        (EventKind::Removed, None, Some("b")),
        (EventKind::Added, Some("c"), None),
        (EventKind::Evicted, None, Some("c")),
        (EventKind::Added, Some("d"), None),
        (EventKind::Expired, None, Some("d")),
    ];
    for (kind, value, old_value) in expect {
        let event = events.recv().unwrap();
        assert_eq!((event.kind, event.key), (kind, Some(1)));
        assert_eq!((event.value.as_deref(), event.old_value.as_deref()), (value, old_value), "{kind:?}");
    }
    map.put_all([(&1, "x"), (&2, "y")]).unwrap();
    map.clear().unwrap();
    events.recv().unwrap();
    events.recv().unwrap();
    let event = events.recv().unwrap();
    assert_eq!((event.kind, event.key, event.entries), (EventKind::Cleared, None, 2));
    assert_eq!(events.try_recv().unwrap(), None);
}

#[test]
fn a_listener_of_one_key_without_values_hears_only_that() {
    let filbert = start();
    let map = numbers(&filbert);
    let mut events = map.events_of(&1, ListenerOptions { values: false }).unwrap();
    map.set(&2, "b").unwrap();
    map.set(&1, "a").unwrap();
    let event = events.recv().unwrap();
    assert_eq!((event.kind, event.key, event.value), (EventKind::Added, Some(1), None));
    assert_eq!(events.try_recv().unwrap(), None);
}

#[test]
fn a_closure_that_listens_may_use_the_map_until_it_is_dropped() {
    let filbert = start();
    let map = numbers(&filbert);
    let copy = filbert.map::<i32, String>("copy").unwrap();
    let target = copy.clone();
    let listener = map
        .on_event(ListenerOptions::default(), move |event| {
            let event = event.unwrap();
            target.set(&event.key.unwrap(), event.value.unwrap().as_str()).unwrap();
        })
        .unwrap();
    map.set(&1, "a").unwrap();
    eventually("the copy", || copy.len() == 1);
    drop(listener);
    eventually("the listener's end", || filbert.grid().statistics().listeners == 0);
    map.set(&2, "b").unwrap();
    assert_eq!(copy.len(), 1);
}

#[test]
fn a_listener_that_lags_loses_events_and_knows_how_many() {
    let config = Config { listener_events_max: 10, ..Config::default() };
    let filbert = Filbert::start(config).unwrap();
    let map = numbers(&filbert);
    let mut events = map.events(ListenerOptions::default()).unwrap();
    for number in 0..25 {
        map.set(&number, "x").unwrap();
    }
    assert_eq!(events.missed(), 15);
    for number in 0..10 {
        assert_eq!(events.recv().unwrap().key, Some(number));
    }
    assert_eq!(events.try_recv().unwrap(), None);
}

#[test]
fn a_listener_learns_of_the_end() {
    let filbert = start();
    let map = numbers(&filbert);
    let mut events = map.events(ListenerOptions::default()).unwrap();
    map.set(&1, "a").unwrap();
    filbert.shutdown();
    assert_eq!(events.recv().unwrap().key, Some(1));
    assert!(matches!(events.recv(), Err(Error::ShutDown)));
}
