//! Clusters of members in one process, over real links: members form a cluster, make changes
//! together, and continue after the death of other members.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::common::data::{self, key};
use crate::common::{LIMIT, join_all, listen, listen_all, stop_all, until, within};
use filbert_cluster::{GroupSettings, MemberId};
use filbert_data::compact::{FieldDescriptor, FieldKind, Schema};
use filbert_grid::{
    Caller, Change, Cursor, EntryEvent, EntrySink, ErrorKind, EventKinds, EvictionConfig, EvictionPolicy, Expected,
    Expiry, Grid, GridConfig, GridError, IndexConfig, IndexKind, ListenerSpec, Map, MapConfig, MaxSizePolicy, NotMade,
    PartitionId, PutMode, Redefinition, Refused, Reply, Together,
};
use filbert_member::{Member, MemberError, MemberSettings};
use uuid::Uuid;

const CALLER: Caller = Caller { client: Uuid::nil(), thread: 1 };

/// The settings of a member with these settings of groups.
fn settings_with(groups: &GroupSettings) -> MemberSettings {
    MemberSettings { groups: groups.clone(), ..MemberSettings::default() }
}

/// Adds another member to a cluster.
async fn join(addresses: &[String], groups: &GroupSettings, grid: &GridConfig) -> Member {
    let starting = listen(settings_with(groups), grid.clone()).await.unwrap();
    crate::common::join(starting, addresses).await
}

/// Starts a cluster of `members` members at the same time.
async fn cluster(members: usize) -> (Vec<Member>, Vec<String>) {
    cluster_with(members, &GroupSettings::default(), &GridConfig::default()).await
}

async fn cluster_with(members: usize, groups: &GroupSettings, grid: &GridConfig) -> (Vec<Member>, Vec<String>) {
    let (starting, addresses) = listen_all(members, &settings_with(groups), grid).await;
    (join_all(starting, &addresses).await, addresses)
}

/// Whether each group has `voters` voters and one leader, the leaders are spread evenly, and all
/// members know this.
fn is_whole(members: &[&Member], voters: usize) -> bool {
    let groups: Vec<_> = members.iter().map(|member| member.groups()).collect();
    let count = groups[0].len();
    let leads: Vec<usize> = groups.iter().map(|of| of.iter().filter(|status| status.leads).count()).collect();
    (0..count).all(|group| {
        let leaders = groups.iter().filter(|of| of[group].leads).count();
        leaders == 1 && groups.iter().all(|of| of[group].voters.len() == voters && !of[group].is_joint)
    }) && leads.iter().max().unwrap() - leads.iter().min().unwrap() <= 2
}

/// The grid of the member that leads the partition of a key, according to the members.
fn leader_of<'m>(members: &[&'m Member], map: &Map, key: &[u8]) -> Option<&'m Arc<Grid>> {
    let partition = map.partition_of(key);
    members.iter().map(|member| member.grid()).find(|grid| {
        let view = grid.cluster().unwrap().view();
        view.leaders[partition.0 as usize] == Some(grid.member_uuid())
    })
}

fn put(grid: &Grid, key: &[u8], value: &[u8]) -> Result<(), GridError> {
    let map = grid.map("m")?;
    let change = Change::Put { key, value, expiry: Expiry::NEVER, mode: PutMode::Set };
    match map.change(map.partition_of(key), CALLER, change, |_| ()) {
        Ok(()) => Ok(()),
        Err(Refused::Error(error)) => Err(error),
        Err(Refused::Locked { .. }) => panic!("nobody locks"),
    }
}

fn get(grid: &Grid, key: &[u8]) -> Result<Option<Vec<u8>>, GridError> {
    let map = grid.map("m")?;
    let partition = map.partition_of(key);
    map.answering(partition, || map.get(partition, key, |value| value.map(<[u8]>::to_vec)))
}

/// Counts events.
struct Heard(Arc<AtomicU32>);

impl EntrySink for Heard {
    fn deliver(&self, _: &EntryEvent<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Puts a key at the leader of its partition. Retries if that is safe. Returns `false` if the
/// outcome is unknown.
fn put_somewhere(members: &[&Member], n: u32) -> bool {
    let map = members[0].grid().existing_map("m").unwrap();
    let begin = Instant::now();
    loop {
        let made = leader_of(members, &map, &key(n)).map(|grid| put(grid, &key(n), b"value"));
        match &made {
            Some(Ok(())) => return true,
            Some(Err(error)) if error.kind() == ErrorKind::Indeterminate => return false,
            Some(Err(error)) if error.kind() != ErrorKind::NotLeader => panic!("{error}"),
            _ => {}
        }
        assert!(begin.elapsed() < LIMIT, "waited in vain: a leader puts key {n}, {made:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn has_somewhere(members: &[&Member], n: u32) -> bool {
    let map = members[0].grid().existing_map("m").unwrap();
    let begin = Instant::now();
    loop {
        let found = leader_of(members, &map, &key(n)).map(|grid| get(grid, &key(n)));
        if let Some(Ok(value)) = found {
            return value.is_some();
        }
        assert!(begin.elapsed() < LIMIT, "waited in vain: a leader reads key {n}, {found:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Runs code that waits for changes, without blocking the runtime that applies them.
async fn beside<T: Send>(wait: impl FnOnce() -> T + Send) -> T {
    tokio::task::block_in_place(wait)
}

async fn same_everywhere(members: &[&Member]) {
    for group in 0..members[0].groups().len() as u32 {
        until("all members have applied the same", || {
            let states: Vec<_> = members.iter().map(|member| member.group_state(group).unwrap()).collect();
            states.iter().all(|state| *state == states[0])
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn members_that_start_at_once_form_one_cluster_and_hold_the_same() {
    let begin = Instant::now();
    let (members, _) = cluster(3).await;
    println!("three members are there after {:?}", begin.elapsed());
    let all: Vec<&Member> = members.iter().collect();
    until("every group has three voters", || is_whole(&all, 3)).await;
    println!("every group has three voters after {:?}", begin.elapsed());
    assert!(members.iter().all(|member| member.registry().members().count() == 3));
    assert!(members.iter().all(|member| member.grid().cluster_id() == members[0].grid().cluster_id()));
    // A map that one member creates is known to all members, with the same id and the same
    // partition UUIDs for near caches.
    beside(|| members[1].grid().map("m").map(|_| ())).await.unwrap();
    until("the map is known", || all.iter().all(|member| member.grid().existing_map("m").is_some())).await;
    let uuids: Vec<_> = all.iter().map(|member| member.grid().invalidation_metadata(["m"]).partition_uuids).collect();
    assert!(uuids.iter().all(|found| *found == uuids[0]));
    beside(|| (0..1_000).for_each(|n| assert!(put_somewhere(&all, n)))).await;
    assert!(beside(|| (0..1_000).all(|n| has_somewhere(&all, n))).await);
    same_everywhere(&all).await;
    // One member notifies listeners, as clients register them at all members. A member resumes
    // operations that wait for a key.
    let map = members[0].grid().map("m").unwrap();
    let (partition, notified) = (map.partition_of(&key(1)), Arc::new(AtomicU32::new(0)));
    let (sender, answered) = std::sync::mpsc::channel();
    let kinds = EventKinds::UPDATED;
    for member in &all {
        let spec = ListenerSpec { key: None, filter: None, include_value: false, kinds, connection: None };
        member.grid().map("m").unwrap().add_listener(spec, Arc::new(Heard(notified.clone()))).unwrap();
    }
    let lock = Change::Lock { key: &key(1), lease_ms: None, reference: 1 };
    beside(|| map.change(partition, CALLER, lock, |_| ())).await.unwrap();
    let other = Caller { client: Uuid::from_u128(1), thread: 2 };
    let change = Change::Put { key: &key(1), value: b"later", expiry: Expiry::NEVER, mode: PutMode::Set };
    let reply = Box::new(move |answer: Result<Reply<'_>, GridError>| sender.send(answer.is_ok()).unwrap());
    beside(|| map.change_when_free(partition, other, change.to_owned(), None, reply)).await;
    assert!(answered.try_recv().is_err(), "the key is locked");
    let unlock = Change::Unlock { key: &key(1), reference: 2 };
    beside(|| map.change(partition, CALLER, unlock, |_| ())).await.unwrap();
    let answer = tokio::task::block_in_place(|| answered.recv_timeout(LIMIT));
    assert_eq!(answer, Ok(true), "the change is made once the key is free");
    same_everywhere(&all).await;
    assert_eq!(notified.load(Ordering::SeqCst), 1);
    // A member that does not lead forwards changes to the leader, and refuses reads that only the
    // leader may answer. The lead may move at any time.
    until("the leader answers alone", || {
        let leader = leader_of(&all, &map, &key(1)).map(|grid| grid.member_uuid());
        let Some(other) = all.iter().find(|member| Some(member.grid().member_uuid()) != leader) else { return false };
        if tokio::task::block_in_place(|| put(other.grid(), &key(1), b"w")).is_err() {
            return false;
        }
        let answers: Vec<_> = all.iter().map(|member| get(member.grid(), &key(1))).collect();
        let refused = |answer: &Result<_, GridError>| answer.as_ref().is_err_and(|e| e.kind() == ErrorKind::NotLeader);
        assert!(answers.iter().all(|answer| refused(answer) || answer == &Ok(Some(b"w".to_vec()))), "{answers:?}");
        answers.iter().filter(|answer| refused(answer)).count() == 2
    })
    .await;
    // A destroyed map is destroyed on all members.
    assert!(beside(|| members[2].grid().destroy_map("m").unwrap()).await);
    assert!(all.iter().all(|member| member.grid().existing_map("m").is_none()));
    same_everywhere(&all).await;
    until("its entries are gone", || all.iter().all(|member| member.grid().statistics().memory_bytes == 0)).await;
    stop_all(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_put_after_a_map_was_destroyed_is_not_destroyed_with_it() {
    let (members, _) = cluster(3).await;
    let all: Vec<&Member> = members.iter().collect();
    until("every group has three voters", || is_whole(&all, 3)).await;
    for round in 0..40 {
        data::put(&all, 0..20).await;
        assert!(beside(|| all[round % 3].grid().destroy_map("m").unwrap()).await);
        assert!(
            all.iter().all(|member| member.grid().existing_map("m").is_none()),
            "round {round}: the map is still there"
        );
        data::put(&all, 20..40).await;
        let found = data::found(&all, 0..40).await;
        assert_eq!(found, (20..40).collect(), "round {round}");
    }
    stop_all(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_map_that_is_full_keeps_as_many_entries_as_it_may() {
    const MOST: u32 = 1_000;
    let mut config = GridConfig::default();
    let eviction = EvictionConfig { policy: EvictionPolicy::Lru, size: MOST, ..EvictionConfig::default() };
    config.maps.insert("m", MapConfig { eviction, ..MapConfig::default() });
    let (members, _) = cluster_with(3, &GroupSettings::default(), &config).await;
    let all: Vec<&Member> = members.iter().collect();
    until("every group has three voters", || is_whole(&all, 3)).await;
    beside(|| all[0].grid().map("m").map(|_| ())).await.unwrap();
    until("the map is known", || all.iter().all(|member| member.grid().existing_map("m").is_some())).await;
    // The sweep makes the evictions that a leader leaves to other leaders. The program runs it; in
    // this test, nothing else does.
    let size = || {
        all.iter().for_each(|member| _ = member.grid().run_expiry());
        all[0].grid().map("m").unwrap().size()
    };
    // Sequential and concurrent writers: each leader must see the entries that other leaders added
    // before it sees the entries that they evicted.
    for writers in [1, 8] {
        beside(|| {
            std::thread::scope(|scope| {
                for writer in 0..writers {
                    let all = &all;
                    scope.spawn(move || {
                        (0..4_000).filter(|n| n % writers == writer).for_each(|n| assert!(put_somewhere(all, n)))
                    });
                }
            });
        })
        .await;
        until("what is too much is gone", || size() <= MOST as usize).await;
        assert!(size() >= MOST as usize * 9 / 10, "{} of {MOST} are left", size());
    }
    stop_all(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_member_that_dies_takes_nothing_with_it_and_a_new_one_takes_its_place() {
    let (mut members, addresses) = cluster(3).await;
    {
        let all: Vec<&Member> = members.iter().collect();
        until("every group has three voters", || is_whole(&all, 3)).await;
        beside(|| all[0].grid().map("m").map(|_| ())).await.unwrap();
        until("the map is known", || all.iter().all(|member| member.grid().existing_map("m").is_some())).await;
    }
    let dies = members.remove(1);
    let dead = dies.id();
    let members = Arc::new(members);
    // Writers at the surviving members, throughout.
    let (stop, acknowledged) = (Arc::new(AtomicBool::new(false)), Arc::new(parking_lot::Mutex::new(Vec::new())));
    let next = Arc::new(AtomicU32::new(0));
    let longest = Arc::new(parking_lot::Mutex::new(Duration::ZERO));
    let writers: Vec<_> = (0..4)
        .map(|_| {
            let (members, stop, acknowledged) = (members.clone(), stop.clone(), acknowledged.clone());
            let (next, longest) = (next.clone(), longest.clone());
            std::thread::spawn(move || {
                let all: Vec<&Member> = members.iter().collect();
                while !stop.load(Ordering::SeqCst) {
                    let (n, begin) = (next.fetch_add(1, Ordering::SeqCst), Instant::now());
                    if put_somewhere(&all, n) {
                        acknowledged.lock().push(n);
                    }
                    let mut longest = longest.lock();
                    *longest = begin.elapsed().max(*longest);
                }
            })
        })
        .collect();
    // The writers wait for the partitions of the third member's groups until it is dead.
    crate::common::stop(dies).await;
    let all: Vec<&Member> = members.iter().collect();
    let count = acknowledged.lock().len();
    until("changes go on", || acknowledged.lock().len() > count + 2_000).await;
    stop.store(true, Ordering::SeqCst);
    for writer in writers {
        beside(|| writer.join()).await.unwrap();
    }
    println!("the longest change took {:?}", longest.lock());
    let kept = acknowledged.lock().clone();
    let lost = beside(|| kept.iter().filter(|n| !has_somewhere(&all, **n)).count()).await;
    assert_eq!(lost, 0, "of {}", kept.len());
    // A new member joins with a new id, once the dead member has been removed.
    let joined = tokio::spawn(async move { join(&addresses, &GroupSettings::default(), &GridConfig::default()).await });
    within("the dead one is taken out", all[0].remove(dead)).await.unwrap();
    let joined = within("the new member is there", joined).await.unwrap();
    assert!(joined.id() > MemberId(3), "{}", joined.id());
    let all: Vec<&Member> = members.iter().chain([&joined]).collect();
    until("every group has three voters again", || is_whole(&all, 3)).await;
    same_everywhere(&all).await;
    assert!(beside(|| kept.iter().all(|n| has_somewhere(&all, *n))).await);
    crate::common::stop(joined).await;
    stop_all(Arc::into_inner(members).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn five_members_that_start_at_once_share_the_groups() {
    let (members, _) = cluster(5).await;
    until("every group has three voters", || {
        let all: Vec<_> = members.iter().map(Member::groups).collect();
        let led: Vec<_> = all.iter().flatten().filter(|status| status.leads && !status.is_joint).collect();
        let held_by = |member: &Member| led.iter().filter(|status| status.voters.contains(&member.id())).count();
        led.len() == all[0].len()
            && led.iter().all(|status| status.voters.len() == 3)
            && members.iter().all(|member| (led.len() * 3 / 5..=(led.len() * 3).div_ceil(5)).contains(&held_by(member)))
    })
    .await;
    stop_all(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_member_that_starts_again_at_its_address_takes_the_dead_ones_place_at_once() {
    let (mut members, addresses) = cluster(3).await;
    until("every group has three voters", || is_whole(&members.iter().collect::<Vec<_>>(), 3)).await;
    // The member that founded the cluster, and leads the registry.
    let (dies, address) = (members.remove(0), addresses[0].parse().unwrap());
    let dead = dies.id();
    crate::common::stop(dies).await;
    let settings = MemberSettings { listen: address, ..MemberSettings::default() };
    let starting = listen(settings, GridConfig::default()).await.unwrap();
    members.push(crate::common::join(starting, &addresses).await);
    let all: Vec<&Member> = members.iter().collect();
    until("every group has three voters again", || is_whole(&all, 3)).await;
    assert!(all.iter().all(|member| member.registry().member(dead).is_none()));
    stop_all(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_schema_that_a_client_has_sent_is_known_to_members_that_join_later() {
    let (mut members, addresses) = cluster(1).await;
    let schema = Schema::new("t", vec![FieldDescriptor { name: "f".to_owned(), kind: FieldKind::Int32 }]);
    let id = members[0].grid().schemas().put(schema.clone()).unwrap();
    members.push(join(&addresses, &GroupSettings::default(), &GridConfig::default()).await);
    until("the schema is there", || members[1].grid().schemas().get(id).as_deref() == Some(&schema)).await;
    stop_all(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cluster_of_one_grows_and_shrinks_in_order() {
    let (mut members, addresses) = cluster(1).await;
    beside(|| members[0].grid().map("m").map(|_| ())).await.unwrap();
    beside(|| (0..500).for_each(|n| assert!(put_somewhere(&[&members[0]], n)))).await;
    for count in 2..=4_usize {
        members.push(join(&addresses, &GroupSettings::default(), &GridConfig::default()).await);
        let all: Vec<&Member> = members.iter().collect();
        let voters = |member: &Member| {
            member.groups().iter().filter(|status| status.leads).all(|status| status.voters.len() == count.min(3))
        };
        until("groups have their voters", || all.iter().all(|member| voters(member))).await;
        assert!(beside(|| (0..500).all(|n| has_somewhere(&all, n))).await);
    }
    // A member that was removed from a group reads its partitions at the leader, although it never
    // received the entry that removed it.
    let sees_all = |member: &Member| {
        let (view, map) = (member.grid().catch_up_blocking().unwrap(), member.grid().existing_map("m").unwrap());
        !view.is_complete() && (0..500).all(|n| map.value_by(&view, &key(n)).unwrap().is_some())
    };
    assert!(beside(|| members.iter().all(sees_all)).await);
    // The founder of the cluster leaves as well.
    while members.len() > 1 {
        let goes = members.remove(0);
        within("the first one leaves", goes.leave()).await.unwrap();
        crate::common::stop(goes).await;
        let all: Vec<&Member> = members.iter().collect();
        until("it is no member", || all.iter().all(|member| member.registry().members().count() == all.len())).await;
        assert!(beside(|| (0..500).all(|n| has_somewhere(&all, n))).await);
        assert!(beside(|| put_somewhere(&all, 7)).await);
    }
    stop_all(members).await;
}

/// Returns the value that a follower reads after it has caught up.
fn look(grid: &Grid, key: &[u8]) -> Option<Vec<u8>> {
    grid.catch_up_blocking().unwrap();
    let map = grid.map("m").unwrap();
    map.entry_view(map.partition_of(key), key, |view| view.map(|view| view.value.to_vec()))
}

/// Increments a counter in an entry at any member, based on the value read there.
fn raise(grid: &Grid, key: &[u8]) {
    let begin = Instant::now();
    loop {
        let old = look(grid, key).unwrap();
        let new = (u32::from_le_bytes(old[..].try_into().unwrap()) + 1).to_le_bytes();
        let map = grid.map("m").unwrap();
        let mut batch = Together::new(&map);
        batch.add(key, Expected::Value(&old), Some(&new)).unwrap();
        let mut claims = map.claims();
        match map.make_together(&batch, &mut claims) {
            Ok(()) => return,
            Err(NotMade::Differ(_) | NotMade::Held(_)) => drop(claims),
            Err(NotMade::Error(error)) => panic!("{error}"),
        }
        assert!(begin.elapsed() < LIMIT, "waited in vain: a counter is raised that others raise as well");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn a_member_that_follows_reads_what_was_acknowledged_anywhere_and_changes_what_others_lead() {
    let (members, _) = cluster(3).await;
    let members = Arc::new(members);
    let all: Vec<&Member> = members.iter().collect();
    until("every group has three voters", || is_whole(&all, 3)).await;
    beside(|| {
        for n in 0..300 {
            let (writes, reads) = (all[n as usize % 3].grid(), all[(n as usize + 1) % 3].grid());
            put(writes, &key(n), &0_u32.to_le_bytes()).unwrap();
            assert_eq!(look(reads, &key(n)), Some(0_u32.to_le_bytes().to_vec()), "key {n}");
        }
    })
    .await;
    // Statements at all members increment the same counters.
    let raising: Vec<_> = (0..3)
        .map(|number| {
            let members = members.clone();
            std::thread::spawn(move || {
                (0..150).for_each(|n| raise(members[number].grid(), &key(n % 10)));
            })
        })
        .collect();
    for thread in raising {
        beside(|| thread.join()).await.unwrap();
    }
    for member in &all {
        let sum = beside(|| {
            (0..10)
                .map(|n| u32::from_le_bytes(look(member.grid(), &key(n)).unwrap()[..].try_into().unwrap()))
                .sum::<u32>()
        });
        assert_eq!(sum.await, 450);
    }
    stop_all(Arc::into_inner(members).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn definitions_are_changed_by_one_of_several_and_followed_by_all() {
    let (mut members, addresses) = cluster(2).await;
    let define = |member: &Member, name: &str, expected, text: &str| {
        let change = Redefinition { name: name.to_owned(), expected, text: Some(text.to_owned()) };
        member.grid().cluster().unwrap().redefine(vec![change]).unwrap()
    };
    let known = |member: &Member, name: &str| {
        let definitions = member.grid().cluster().unwrap().definitions();
        definitions.by_name.get(name).map(|known| (known.version, known.text.to_string()))
    };
    let followed = Arc::new(AtomicU32::new(0));
    let counts = followed.clone();
    members[1].grid().cluster().unwrap().on_definitions(Box::new(move |definitions| {
        counts.store(u32::try_from(definitions.by_name.len()).unwrap(), Ordering::SeqCst);
    }));
    beside(|| {
        assert!(define(&members[0], "a", None, "one"));
        assert!(!define(&members[1], "a", None, "two"));
        members[1].grid().catch_up_blocking().unwrap();
        let (version, text) = known(&members[1], "a").unwrap();
        assert_eq!(text, "one");
        assert!(define(&members[1], "a", Some(version), "two"));
        members[0].grid().catch_up_blocking().unwrap();
        assert_eq!(known(&members[0], "a").unwrap().1, "two");
        assert_eq!(followed.load(Ordering::SeqCst), 1);
        let take = |member: &Member| member.grid().cluster().unwrap().take_numbers("a", 3).unwrap();
        assert_eq!((take(&members[0]), take(&members[1])), (0, 3));
    })
    .await;
    // Indexes and schemas are definitions as well: a member that joins knows them, and builds the
    // index.
    let index = IndexConfig {
        name: Some("by key".to_owned()),
        kind: IndexKind::Sorted,
        attributes: vec!["__key".to_owned()],
        bitmap: None,
    };
    let schema = Schema::new("t", [FieldDescriptor { name: "f".to_owned(), kind: FieldKind::Int32 }]);
    beside(|| {
        let map = members[0].grid().map("m").unwrap();
        assert!(map.add_index(index.clone()).unwrap());
        assert!(!map.add_index(index).unwrap());
        members[1].grid().schemas().announce(schema.clone()).unwrap();
    })
    .await;
    members.push(join(&addresses, &GroupSettings::default(), &GridConfig::default()).await);
    let third = members[2].grid();
    beside(|| third.catch_up_blocking()).await.unwrap();
    assert!(third.schemas().get(schema.fingerprint()).is_some());
    let names = |map: Arc<Map>| map.indexes().into_iter().map(|index| index.name.unwrap()).collect::<Vec<_>>();
    assert_eq!(names(third.existing_map("m").unwrap()), ["by key"]);
    beside(|| {
        assert!(third.map("m").unwrap().drop_index("by key").unwrap());
        members[0].grid().catch_up_blocking().unwrap();
    })
    .await;
    assert!(names(members[0].grid().existing_map("m").unwrap()).is_empty());
    stop_all(members).await;
}

/// Members share the seed of the hashes, so iteration positions are valid at all members.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_iteration_begun_at_one_member_goes_on_at_another() {
    // Few partitions, so that each has many more entries than one batch.
    let grid = GridConfig { partition_count: 24, ..GridConfig::default() };
    let (members, _) = cluster_with(3, &GroupSettings::default(), &grid).await;
    let all: Vec<&Member> = members.iter().collect();
    until("every group has three voters", || is_whole(&all, 3)).await;
    beside(|| members[0].grid().map("m").map(|_| ())).await.unwrap();
    until("the map is known", || all.iter().all(|member| member.grid().existing_map("m").is_some())).await;
    beside(|| (0..3_000).for_each(|n| assert!(put_somewhere(&all, n)))).await;
    same_everywhere(&all).await;
    let maps: Vec<Arc<Map>> = all.iter().map(|member| member.grid().existing_map("m").unwrap()).collect();
    let (mut seen, mut batches) = (Vec::new(), 0);
    for partition in (0..grid.partition_count).map(PartitionId) {
        let mut turns = maps.iter().cycle();
        let mut next = Some(Cursor::START);
        while let Some(cursor) = next {
            let map = turns.next().unwrap();
            next = map.fetch(partition, cursor, 1, &mut |key, _| seen.push(key.to_vec()));
            batches += 1;
        }
    }
    assert!(batches > 2 * grid.partition_count, "several members had their turn: {batches} batches");
    seen.sort_unstable();
    assert!(
        seen.iter().cloned().eq((0..3_000).map(key)),
        "each of 3000 entries is seen once, not {} in all",
        seen.len()
    );
    stop_all(members).await;
}

/// The logs are so short that a member that joins needs snapshots, while changes continue.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_member_is_brought_what_its_logs_do_not_have_any_more() {
    let groups = GroupSettings { log_entries_max: 8, ..GroupSettings::default() };
    let mut grid = GridConfig::default();
    let attributes = vec!["__key".to_owned()];
    let index = IndexConfig { name: None, kind: IndexKind::Sorted, attributes, bitmap: None };
    let eviction = EvictionConfig { policy: EvictionPolicy::Lru, max_size_policy: MaxSizePolicy::PerNode, size: 5_000 };
    grid.maps.insert("m", MapConfig { indexes: vec![index], eviction, ..MapConfig::default() });
    let (mut members, addresses) = cluster_with(1, &groups, &grid).await;
    beside(|| members[0].grid().map("m").map(|_| ())).await.unwrap();
    beside(|| (0..2_000).for_each(|n| assert!(put_somewhere(&[&members[0]], n)))).await;
    for _ in 0..2 {
        let first = Arc::new(members.remove(0));
        let (writer, stop) = (first.clone(), Arc::new(AtomicBool::new(false)));
        let stopped = stop.clone();
        let writes = std::thread::spawn(move || {
            let mut writes = 0;
            while !stopped.load(Ordering::SeqCst) {
                // A change is refused if another member leads the partition by now.
                let _refused = put(writer.grid(), &key(writes % 2_000), b"value");
                writes += 1;
            }
        });
        let joined = join(&addresses, &groups, &grid).await;
        stop.store(true, Ordering::SeqCst);
        beside(|| writes.join()).await.unwrap();
        members.insert(0, Arc::into_inner(first).unwrap());
        members.push(joined);
    }
    let all: Vec<&Member> = members.iter().collect();
    until("every group has three voters", || is_whole(&all, 3)).await;
    assert!(all[0].groups().iter().all(|status| status.purged.is_some()));
    same_everywhere(&all).await;
    assert!(beside(|| (0..2_000).all(|n| has_somewhere(&all, n))).await);
    // Memory accounting and indexes were rebuilt from the snapshots: the sizes are the same, and
    // the limit on entries holds over all members.
    let figures: Vec<_> = all.iter().map(|member| member.grid().map("m").unwrap().statistics()).collect();
    assert!(figures.iter().all(|found| (found.entries, found.index_bytes > 0) == (2_000, true)), "{figures:?}");
    beside(|| (2_000..12_000).for_each(|n| assert!(put_somewhere(&all, n)))).await;
    same_everywhere(&all).await;
    let entries = all[0].grid().map("m").unwrap().statistics().entries;
    assert!((4_900..=5_100).contains(&entries), "{entries}");
    stop_all(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn members_that_do_not_belong_together_say_so() {
    let (members, addresses) = cluster(1).await;
    let refused = async |config: GridConfig| {
        let settings = MemberSettings { addresses: addresses.clone(), ..MemberSettings::default() };
        let starting = listen(settings, config).await.unwrap();
        match within("it is refused", starting.join()).await {
            Err(error @ MemberError::Refused(_)) => error.to_string(),
            Err(error) => panic!("{error}"),
            Ok(_) => panic!("it was let in"),
        }
    };
    let other_name = GridConfig { cluster_name: "other".to_owned(), ..GridConfig::default() };
    let error = refused(other_name).await;
    assert!(error.contains("\"dev\"") && error.contains("\"other\""), "{error}");
    let error = refused(GridConfig { partition_count: 100, ..GridConfig::default() }).await;
    assert!(error.contains("271") && error.contains("100"), "{error}");
    stop_all(members).await;
}
