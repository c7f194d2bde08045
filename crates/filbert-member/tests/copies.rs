//! Statements read all partitions where they are asked: at members that follow, that hold votes in a part of the groups, that have just joined, and
//! that are about to leave.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use common::data::{is_whole, key};
use common::{LIMIT, join_all, listen, listen_all, stop, stop_all, until, within};
use filbert_grid::{
    Caller, Change, Expected, Expiry, Grid, GridConfig, GridError, NotMade, PutMode, Refused, Together,
};
use filbert_member::{Member, MemberSettings};
use uuid::Uuid;

const CALLER: Caller = Caller { client: Uuid::nil(), thread: 1 };

async fn cluster_with(members: usize, grid: &GridConfig) -> (Vec<Member>, Vec<String>) {
    let (starting, addresses) = listen_all(members, &MemberSettings::default(), grid).await;
    let members = join_all(starting, &addresses).await;
    until("every group has three voters", || members.iter().all(|member| is_whole(member, 3))).await;
    (members, addresses)
}

async fn join(addresses: &[String], grid: &GridConfig) -> Member {
    common::join(listen(MemberSettings::default(), grid.clone()).await.unwrap(), addresses).await
}

/// Runs what waits for changes beside the runtime that makes them.
async fn beside<T: Send>(wait: impl FnOnce() -> T + Send) -> T {
    tokio::task::block_in_place(wait)
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

/// What a member reads without leading, once it has caught up.
fn look(grid: &Grid, key: &[u8]) -> Option<Vec<u8>> {
    grid.catch_up_blocking().unwrap();
    let map = grid.map("m").unwrap();
    map.entry_view(map.partition_of(key), key, |view| view.map(|view| view.value.to_vec()))
}

/// A counter in an entry, raised at whichever member by what it has read there.
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
    let (members, _) = cluster_with(3, &GridConfig::default()).await;
    let members = Arc::new(members);
    let all: Vec<&Member> = members.iter().collect();
    beside(|| {
        for n in 0..300 {
            let (writes, reads) = (all[n as usize % 3].grid(), all[(n as usize + 1) % 3].grid());
            put(writes, &key(n), &0_u32.to_le_bytes()).unwrap();
            assert_eq!(look(reads, &key(n)), Some(0_u32.to_le_bytes().to_vec()), "key {n}");
        }
    })
    .await;
    // Statements at all members raise the same counters.
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

/// Keys that statements count with.
const COUNTERS: u32 = 10;

/// Statements at one member, one after the other; none of them may fail.
struct Asking {
    thread: JoinHandle<u32>,
    ends: Arc<AtomicBool>,
    made: Arc<AtomicU32>,
}

impl Asking {
    fn begin(member: &Member) -> Asking {
        let (ends, made): (Arc<AtomicBool>, Arc<AtomicU32>) = Default::default();
        let (grid, end, count) = (member.grid().clone(), ends.clone(), made.clone());
        let thread = std::thread::spawn(move || {
            while !end.load(Ordering::SeqCst) {
                raise(&grid, &key(count.load(Ordering::SeqCst) % COUNTERS));
                count.fetch_add(1, Ordering::SeqCst);
            }
            count.load(Ordering::SeqCst)
        });
        Asking { thread, ends, made }
    }

    /// Waits until so many more were answered.
    async fn answers(&self, more: u32) {
        let before = self.made.load(Ordering::SeqCst);
        let is_there = || self.made.load(Ordering::SeqCst) >= before + more || self.thread.is_finished();
        until("statements are answered", is_there).await;
        assert!(!self.thread.is_finished(), "a statement failed");
    }

    async fn end(self) -> u32 {
        self.ends.store(true, Ordering::SeqCst);
        beside(|| self.thread.join().unwrap()).await
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn statements_are_answered_at_all_members_while_one_joins_and_one_leaves() {
    let (mut members, addresses) = cluster_with(3, &GridConfig::default()).await;
    beside(|| (0..COUNTERS).for_each(|n| put(members[0].grid(), &key(n), &0_u32.to_le_bytes()).unwrap())).await;
    let mut asking: Vec<Asking> = members.iter().map(Asking::begin).collect();
    for of_member in &asking {
        of_member.answers(20).await;
    }
    // There are more members than votes in a group: none of them has a vote in all.
    members.push(join(&addresses, &GridConfig::default()).await);
    asking.push(Asking::begin(&members[3]));
    until("every group has three voters of the four", || {
        let of_fourth = members[3].groups().iter().filter(|group| group.voters.contains(&members[3].id())).count();
        of_fourth > 0 && of_fourth < members[3].groups().len() && members.iter().all(|member| is_whole(member, 3))
    })
    .await;
    for of_member in &asking {
        of_member.answers(20).await;
    }
    // The first one leads nothing and votes nowhere, and answers as before.
    let leaves = members.remove(0);
    within("the first one hands over", leaves.hand_over()).await.unwrap();
    assert!(leaves.groups().iter().all(|group| !group.leads));
    for of_member in &asking {
        of_member.answers(20).await;
    }
    // Clients ask others statements, since it is told to hold no data.
    let told_of =
        |member: &Member| member.grid().cluster().unwrap().view().member(leaves.grid().member_uuid()).cloned();
    until("all are told", || members.iter().all(|member| told_of(member).is_some_and(|told| told.is_lite))).await;
    let mut sum = asking.remove(0).end().await;
    within("it goes", leaves.go()).await.unwrap();
    stop(leaves).await;
    for of_member in &asking {
        of_member.answers(20).await;
    }
    for of_member in asking {
        sum += of_member.end().await;
    }
    let count = |n| u32::from_le_bytes(look(members[0].grid(), &key(n)).unwrap()[..].try_into().unwrap());
    assert_eq!(beside(|| (0..COUNTERS).map(count).sum::<u32>()).await, sum);
    stop_all(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_member_without_room_for_all_data_refuses_statements() {
    let limit_bytes = 8 << 20;
    let grid = GridConfig { memory_bytes_max: Some(limit_bytes), ..GridConfig::default() };
    let (mut members, addresses) = cluster_with(3, &grid).await;
    let used = |member: &Member| member.grid().statistics().memory_bytes;
    beside(|| {
        for n in 0.. {
            if used(&members[0]) > limit_bytes / 100 * 94 {
                break;
            }
            put(members[0].grid(), &key(n), &[1; 16 << 10]).unwrap();
        }
    })
    .await;
    // Whoever has a vote in all groups holds all data as it is.
    beside(|| members[0].grid().catch_up_blocking()).await.unwrap();
    members.push(join(&addresses, &grid).await);
    // As the leaders say: the entry by which a member is taken out does not come to it.
    let lacks = |member: &Member| {
        let status = member.grid().cluster().unwrap().status().unwrap();
        status.groups.iter().any(|group| group.number.is_some() && !group.voters.contains_key(&member.id().0))
    };
    until("every group has three voters of the four", || {
        members.iter().all(|member| lacks(member) && is_whole(member, 3))
    })
    .await;
    for member in &members {
        let refused = beside(|| member.grid().catch_up_blocking()).await;
        assert!(matches!(refused, Err(GridError::UnsupportedOperation(_))), "{refused:?}");
    }
    stop_all(members).await;
}
