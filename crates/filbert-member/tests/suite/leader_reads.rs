//! Reads of partitions that a member does not hold, at their leaders: in a cluster with more
//! members than replicas.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

use filbert_cluster::GroupSettings;
use filbert_data::{Blob, FieldPath, Kinds, ToBlob, Value};
use filbert_grid::replication::{EntryPage, EntrySelection, IndexSelection, LeaderRead};
use filbert_grid::{
    Caller, Change, ErrorKind, Expiry, Grid, GridConfig, GridError, IndexConfig, IndexKind, Map, MapConfig,
    PartitionId, Probe, PutMode, ReadView, Refused,
};
use filbert_member::{Member, MemberSettings};

use crate::common::data::{is_whole, key};
use crate::common::{LIMIT, join_all, listen_all, listen_behind_proxies, stop_all, until};

const ENTRIES: u32 = 500;
/// The bytes of a value: a group has several pages.
const VALUE_BYTES: usize = 40 << 10;

type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

fn settings() -> MemberSettings {
    MemberSettings { groups: GroupSettings::default(), ..MemberSettings::default() }
}

/// Four members with three replicas of each group, and a map with a sorted index of its keys.
async fn cluster() -> Vec<Member> {
    let mut grid = GridConfig::default();
    let attributes = vec!["__key".to_owned()];
    let index = IndexConfig { name: None, kind: IndexKind::Sorted, attributes, bitmap: None };
    grid.maps.insert("m", MapConfig { indexes: vec![index], ..MapConfig::default() });
    let (starting, addresses) = listen_all(4, &settings(), &grid).await;
    let members = join_all(starting, &addresses).await;
    let is_placed = || {
        let groups = members.iter().flat_map(|member| member.groups()).filter(|status| status.leads);
        let voters: Vec<_> = groups.filter(|status| !status.is_joint).flat_map(|status| status.voters).collect();
        let held = members[0].groups().len() * 3 / 4;
        members.iter().all(|member| voters.iter().filter(|voter| **voter == member.id()).count() == held)
    };
    until("every member holds three quarters of the groups", is_placed).await;
    members
}

/// Removes an entry by any member, if there is a leader.
fn delete(grid: &Grid, n: u32) {
    let (map, key) = (grid.map("m").unwrap(), key(n));
    let _gone = map.change(map.partition_of(&key), Caller::default(), Change::Delete { key: &key }, |_| ());
}

/// Puts an entry by any member, which forwards it. Retries while there is no leader.
fn put(grid: &Grid, n: u32, value: &[u8]) {
    let (map, key, begin) = (grid.map("m").unwrap(), key(n), std::time::Instant::now());
    loop {
        let change = Change::Put { key: &key, value, expiry: Expiry::NEVER, mode: PutMode::Set };
        match map.change(map.partition_of(&key), Caller::default(), change, |_| ()) {
            Ok(()) => return,
            Err(Refused::Error(error)) if error.kind() == ErrorKind::NotLeader && begin.elapsed() < LIMIT => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Puts all entries, by all members in turn.
fn fill(members: &[Member]) {
    let value = vec![7; VALUE_BYTES];
    (0..ENTRIES).for_each(|n| put(members[n as usize % members.len()].grid(), n, &value));
}

/// The entries of a selection that a view does not have here. Each one is read once.
fn elsewhere(map: &Map, view: &ReadView, selection: EntrySelection) -> (Entries, Vec<EntryPage>) {
    let reads = LeaderRead::beside(map, view, &Arc::new(selection), &|_| true);
    let (mut found, mut pages) = (Entries::new(), Vec::new());
    map.visit_at_leaders(reads, &|| Ok(()), &mut |page| {
        page.for_each(&mut |key, value| {
            assert!(found.insert(key.to_vec(), value.to_vec()).is_none(), "an entry was read twice");
        });
        pages.push(page.clone());
        Ok(true)
    })
    .unwrap();
    (found, pages)
}

/// All entries, at the places that a view says.
fn everything(map: &Map, view: &ReadView) -> Entries {
    let (mut found, _) = elsewhere(map, view, EntrySelection::All);
    for partition in (0..map.partition_count()).map(PartitionId).filter(|partition| view.is_here(*partition)) {
        map.scan_rows(partition, &mut |key, value| {
            assert!(found.insert(key.to_vec(), value.to_vec()).is_none(), "an entry was read twice");
        });
    }
    found
}

/// The next page of a read, or its error.
fn next_page(map: &Map, read: &mut LeaderRead) -> Result<(EntryPage, bool), GridError> {
    let (sender, page) = mpsc::sync_channel(1);
    map.read_at_leader(read, Box::new(move |page| _ = sender.send(page)));
    let page = page.recv().unwrap()?;
    let goes_on = read.advance(map, &page)?;
    Ok((page, goes_on))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_member_reads_all_entries_wherever_they_are() {
    let members = cluster().await;
    tokio::task::block_in_place(|| {
        let value = vec![7; VALUE_BYTES];
        fill(&members);
        let nothing_here = ReadView::of_groups(&[false]);
        for (at, member) in members.iter().enumerate() {
            let view = member.grid().catch_up_blocking().unwrap();
            let map = member.grid().existing_map("m").unwrap();
            assert!(!view.is_complete(), "three of four members hold a group");
            assert_eq!(everything(&map, &view).len(), ENTRIES as usize);
            let (all, pages) = elsewhere(&map, &nothing_here, EntrySelection::All);
            assert_eq!(all.len(), ENTRIES as usize);
            assert!(pages.len() > member.groups().len(), "a group has several pages: {}", pages.len());
            let (none, pages) = elsewhere(&map, &nothing_here, EntrySelection::Count);
            assert!(none.is_empty());
            assert_eq!(pages.iter().map(EntryPage::count).sum::<usize>(), ENTRIES as usize);
            // A change at any member is seen by the next read of every other one.
            put(members[(at + 1) % 4].grid(), 7, b"new");
            assert_eq!(map.value_by(&nothing_here, &key(7)).unwrap().as_deref(), Some(b"new".as_slice()));
            let view = member.grid().catch_up_blocking().unwrap();
            assert_eq!(map.value_by(&view, &key(7)).unwrap().as_deref(), Some(b"new".as_slice()));
            put(members[at].grid(), 7, &value);
        }
    });
    stop_all(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn entries_that_changed_are_read_again_at_their_leaders_where_a_replica_lags() {
    let (starting, proxies, addresses) = listen_behind_proxies(3, &settings(), &GridConfig::default()).await;
    let members = join_all(starting, &addresses).await;
    until("all is well", || members.iter().all(|member| is_whole(member, 3))).await;
    tokio::task::block_in_place(|| {
        put(members[0].grid(), 1, b"old");
    });
    let map = members[0].grid().map("m").unwrap();
    let leader = members[0].grid().cluster().unwrap().view().leaders[map.partition_of(&key(1)).0 as usize].unwrap();
    let behind = (0..3).find(|at| members[*at].grid().member_uuid() != leader).unwrap();
    let grid = members[behind].grid();
    let map = grid.existing_map("m").unwrap();
    let view = tokio::task::block_in_place(|| grid.catch_up_blocking()).unwrap();
    // Nothing comes to the member any more; its own requests are answered.
    proxies[behind].cut(true);
    tokio::task::block_in_place(|| {
        put(members[(behind + 1) % 3].grid(), 1, b"new");
        assert_eq!(map.value_by(&view, &key(1)).unwrap().as_deref(), Some(b"old".as_slice()));
        let key = key(1);
        let again = map.view_at_leaders(&view, [key.as_slice()]);
        assert!(!again.is_here(map.partition_of(&key)));
        assert_eq!(map.value_by(&again, &key).unwrap().as_deref(), Some(b"new".as_slice()));
        // Other groups are read here.
        assert!((2..100).any(|n| again.is_here(map.partition_of(&crate::common::data::key(n)))));
    });
    proxies[behind].cut(false);
    stop_all(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn leaders_find_entries_by_key_and_by_index() {
    let members = cluster().await;
    tokio::task::block_in_place(|| {
        fill(&members);
        let nothing_here = ReadView::of_groups(&[false]);
        let map = members[3].grid().existing_map("m").unwrap();
        let wanted = |range: std::ops::Range<u32>| range.map(key).collect::<Vec<_>>();
        let keys_of = |found: &Entries| {
            let mut keys: Vec<Vec<u8>> = found.keys().cloned().collect();
            keys.sort_by_key(|key| u32::from_be_bytes(key[8..].try_into().unwrap()));
            keys
        };
        // Keys: also more than a page has, and keys that do not exist.
        let keys = (100..ENTRIES + 100).map(|n| Blob::from(key(n).as_slice())).collect();
        let (found, _) = elsewhere(&map, &nothing_here, EntrySelection::Keys(keys));
        assert_eq!(keys_of(&found), wanted(100..ENTRIES));
        // The index, for the kinds of values that its fields have.
        let bound = |n: u32| {
            let mut bytes = Vec::new();
            Value::Int32(n.try_into().unwrap()).append_index_key(&mut bytes);
            bytes
        };
        let by_index = |kinds, probe| {
            let fields = [(FieldPath::KEY, kinds)].into();
            EntrySelection::Index(IndexSelection { kind: IndexKind::Sorted, fields, probe })
        };
        let range =
            Probe::Range { from: Bound::Included(bound(20)), to: Bound::Excluded(bound(40)), descending: false };
        let (found, pages) = elsewhere(&map, &nothing_here, by_index(Kinds::NUMBERS, range.clone()));
        assert_eq!(keys_of(&found), wanted(20..40));
        assert!(pages.iter().all(EntryPage::is_by_index));
        // With other kinds of values the index may miss entries: all are read.
        let (found, pages) = elsewhere(&map, &nothing_here, by_index(Kinds::NONE, range));
        assert_eq!(found.len(), ENTRIES as usize);
        assert!(!pages.iter().any(|page| page.count() > 0 && page.is_by_index()));
        let few = Probe::In(vec![bound(3), bound(4), bound(1_000)]);
        assert_eq!(keys_of(&elsewhere(&map, &nothing_here, by_index(Kinds::NUMBERS, few)).0), wanted(3..5));
        assert_eq!(3.to_blob().unwrap().as_ref()[8..], key(3)[8..], "keys are whole numbers");
    });
    stop_all(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_partition_that_was_read_in_part_is_read_on_at_the_next_leader() {
    let mut members = cluster().await;
    let nothing_here = ReadView::of_groups(&[false]);
    // Entries of one partition, on several pages.
    let map = tokio::task::block_in_place(|| members[0].grid().map("m").unwrap());
    let of_partition: Vec<u32> = (0..).filter(|n| map.partition_of(&key(*n)) == PartitionId(3)).take(100).collect();
    tokio::task::block_in_place(|| {
        let value = vec![7; VALUE_BYTES];
        of_partition.iter().for_each(|n| put(members[0].grid(), *n, &value));
    });
    let leads = |member: &Member| {
        let grid = member.grid();
        grid.cluster().unwrap().view().leaders[3] == Some(grid.member_uuid())
    };
    let leader = members.iter().position(leads).unwrap();
    let left = members.remove(leader);
    let map = members[0].grid().existing_map("m").unwrap();
    let all = Arc::new(EntrySelection::All);
    let reads = LeaderRead::beside(&map, &nothing_here, &all, &|partition| partition == PartitionId(3));
    let mut begun = reads.into_iter().next().unwrap();
    let mut found = Vec::new();
    tokio::task::block_in_place(|| {
        let (page, goes_on) = next_page(&map, &mut begun).unwrap();
        assert!(goes_on && page.count() > 0 && page.count() < of_partition.len(), "{page:?}");
        page.for_each(&mut |key, _| found.push(key.to_vec()));
    });
    crate::common::stop(left).await;
    tokio::task::block_in_place(|| {
        let mut goes_on = true;
        while goes_on {
            let page;
            (page, goes_on) = next_page(&map, &mut begun).unwrap();
            page.for_each(&mut |key, _| found.push(key.to_vec()));
        }
        let mut expected: Vec<Vec<u8>> = of_partition.iter().map(|n| key(*n).to_vec()).collect();
        expected.sort_unstable();
        found.sort_unstable();
        assert_eq!(found, expected, "each entry is read once");
        // Members that have given up their replicas of a group know its next leader.
        for member in &members {
            let map = member.grid().existing_map("m").unwrap();
            assert!(everything(&map, &nothing_here).len() >= of_partition.len());
            (0..100).for_each(|n| put(member.grid(), n, b"new"));
            assert!((0..100).all(|n| map.value_by(&nothing_here, &key(n)).unwrap().as_deref() == Some(b"new")));
            of_partition.iter().for_each(|n| put(member.grid(), *n, &[7; 100]));
        }
    });
    stop_all(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn entries_that_are_too_large_for_one_page_come_by_key() {
    let members = cluster().await;
    tokio::task::block_in_place(|| {
        let map = members[0].grid().map("m").unwrap();
        // Neighbours in one partition, and small entries beside them.
        let of_partition = (0..).filter(|n| map.partition_of(&key(*n)) == PartitionId(3)).take(12);
        for n in of_partition {
            put(members[0].grid(), n, &vec![7; 1 << 20]);
        }
        (0..ENTRIES)
            .filter(|n| map.partition_of(&key(*n)) != PartitionId(3))
            .for_each(|n| put(members[0].grid(), n, b"v"));
        let expected = everything(&map, &members[0].grid().catch_up_blocking().unwrap());
        let (found, pages) = elsewhere(&map, &ReadView::of_groups(&[false]), EntrySelection::All);
        assert!(found == expected, "{} entries, expected {}", found.len(), expected.len());
        assert_eq!(pages.iter().map(EntryPage::count).sum::<usize>(), found.len());
        assert!(pages.iter().all(|page| page.bytes() < 5 << 20), "{pages:?}");
    });
    stop_all(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn entries_that_exist_throughout_are_read_once_beside_writers() {
    let members = cluster().await;
    tokio::task::block_in_place(|| {
        fill(&members);
        let (stop, nothing_here) = (AtomicBool::new(false), ReadView::of_groups(&[false]));
        std::thread::scope(|scope| {
            // Entries that come and go make tables grow and shrink.
            scope.spawn(|| {
                for n in (ENTRIES..ENTRIES + 3_000).cycle() {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    put(members[1].grid(), n, &[7; 100]);
                    delete(members[2].grid(), ENTRIES + n % 1_000);
                }
            });
            for _ in 0..10 {
                for member in &members {
                    let map = member.grid().existing_map("m").unwrap();
                    let found = everything(&map, &member.grid().catch_up_blocking().unwrap());
                    assert!((0..ENTRIES).all(|n| found.contains_key(&key(n))));
                    let (found, _) = elsewhere(&map, &nothing_here, EntrySelection::All);
                    assert!((0..ENTRIES).all(|n| found.contains_key(&key(n))));
                }
            }
            stop.store(true, Ordering::SeqCst);
        });
    });
    stop_all(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_read_of_a_map_that_is_dropped_fails() {
    let members = cluster().await;
    tokio::task::block_in_place(|| {
        fill(&members);
        let map = members[3].grid().existing_map("m").unwrap();
        members[0].grid().destroy_map("m").unwrap();
        let reads = LeaderRead::beside(&map, &ReadView::of_groups(&[false]), &Arc::new(EntrySelection::All), &|_| true);
        let read = map.visit_at_leaders(reads, &|| Ok(()), &mut |_| Ok(true));
        assert_eq!(read.unwrap_err().kind(), ErrorKind::Destroyed);
    });
    stop_all(members).await;
}

/// The bytes of the entries on a member.
fn bytes(member: &Member) -> usize {
    member.grid().statistics().memory_bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replicas_that_are_given_up_free_their_memory_after_the_reads_that_use_them() {
    let (starting, addresses) = listen_all(3, &settings(), &GridConfig::default()).await;
    let mut members = join_all(starting, &addresses).await;
    let has_all = |member: &Member| {
        let held = member.groups().into_iter().filter(|status| status.voters.len() == 3);
        held.count() == member.groups().len()
    };
    until("every group has three voters", || members.iter().all(has_all)).await;
    tokio::task::block_in_place(|| fill(&members));
    let whole: usize = members.iter().map(bytes).min().unwrap();
    let view = tokio::task::block_in_place(|| members[0].grid().catch_up_blocking().unwrap());
    assert!(view.is_complete() && view.is_pinned());

    let settings = MemberSettings { addresses: addresses.clone(), ..settings() };
    let fourth = crate::common::listen(settings, GridConfig::default()).await.unwrap();
    members.push(crate::common::join(fourth, &addresses).await);
    // An eighth less, at least: a quarter of the groups moves.
    let has_less = |member: &Member| bytes(member) < whole / 8 * 7;
    until("two members give up replicas", || has_less(&members[1]) && has_less(&members[2])).await;
    let map = members[0].grid().existing_map("m").unwrap();
    tokio::task::block_in_place(|| {
        let is_placed = |member: &Member| !member.grid().catch_up_blocking().unwrap().is_complete();
        let begin = std::time::Instant::now();
        while !is_placed(&members[0]) {
            assert!(begin.elapsed() < LIMIT, "the first member holds all groups");
        }
        // The view was made before the groups moved, and everything is read here.
        assert_eq!(everything(&map, &view).len(), ENTRIES as usize);
    });
    drop(view);
    until("the first member gives up replicas", || has_less(&members[0])).await;
    tokio::task::block_in_place(|| {
        for member in &members {
            let (view, map) = (member.grid().catch_up_blocking().unwrap(), member.grid().existing_map("m").unwrap());
            assert_eq!(everything(&map, &view).len(), ENTRIES as usize);
        }
    });

    // The others receive the groups of a member that leaves, with all entries.
    let leaves = members.pop().unwrap();
    crate::common::within("the fourth one leaves", leaves.leave()).await.unwrap();
    crate::common::stop(leaves).await;
    until("three members hold all groups", || members.iter().all(has_all)).await;
    tokio::task::block_in_place(|| {
        for member in &members {
            let (grid, begin) = (member.grid(), std::time::Instant::now());
            let view = loop {
                let view = grid.catch_up_blocking().unwrap();
                if view.is_complete() {
                    break view;
                }
                assert!(begin.elapsed() < LIMIT, "the member does not hold all groups");
            };
            assert_eq!(everything(&grid.existing_map("m").unwrap(), &view).len(), ENTRIES as usize);
        }
    });
    stop_all(members).await;
}
