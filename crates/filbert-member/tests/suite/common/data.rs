//! Entries of one map, written to and read from the leaders.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use filbert_grid::{Caller, Change, ErrorKind, Expiry, Grid, GridError, PutMode, Refused};
use filbert_member::Member;
use uuid::Uuid;

use super::LIMIT;

const CALLER: Caller = Caller { client: Uuid::nil(), thread: 1 };

/// A serialized integer. The four bytes of the partition hash are zero, so that the payload
/// determines the partition: the keys are spread over all groups.
pub(crate) fn key(n: u32) -> Vec<u8> {
    [b"\0\0\0\0\xff\xff\xff\xf9".as_slice(), &n.to_be_bytes()].concat()
}

/// The grid of the member that leads the partition of a key, according to the members.
fn leader_of<'m>(members: &[&'m Member], n: u32) -> Option<&'m Grid> {
    let partition = members[0].grid().map("m").ok()?.partition_of(&key(n));
    members.iter().map(|member| &**member.grid()).find(|grid| {
        let view = grid.cluster().unwrap().view();
        view.leaders[partition.0 as usize] == Some(grid.member_uuid())
    })
}

/// Retries until a leader has answered.
fn somewhere<T>(members: &[&Member], n: u32, ask: impl Fn(&Grid) -> Result<T, GridError>) -> T {
    let begin = Instant::now();
    loop {
        match leader_of(members, n).map(&ask) {
            Some(Ok(answer)) => return answer,
            Some(Err(error)) if error.kind() != ErrorKind::NotLeader => panic!("{error}"),
            _ => {}
        }
        assert!(begin.elapsed() < LIMIT, "waited in vain for a leader of key {n}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The outcome of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Made {
    Yes,
    /// The change was applied, or was not.
    Unknown,
}

/// Puts a key through one of the members, which forwards it to the leader. Retries if it was not
/// applied.
pub(crate) fn make(members: &[&Member], n: u32) -> Made {
    let begin = Instant::now();
    for member in members.iter().cycle().skip(n as usize % members.len()) {
        match put_at(member.grid(), n, Expiry::NEVER) {
            Ok(()) => return Made::Yes,
            Err(error) if error.kind() == ErrorKind::Indeterminate => return Made::Unknown,
            Err(error) if error.kind() != ErrorKind::NotLeader => panic!("{error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
        assert!(begin.elapsed() < LIMIT, "waited in vain for a leader of key {n}");
    }
    unreachable!("members come again and again")
}

fn put_at(grid: &Grid, n: u32, expiry: Expiry) -> Result<(), GridError> {
    let map = grid.map("m")?;
    let change = Change::Put { key: &key(n), value: b"v", expiry, mode: PutMode::Set };
    match map.change(map.partition_of(&key(n)), CALLER, change, |_| ()) {
        Ok(()) => Ok(()),
        Err(Refused::Error(error)) => Err(error),
        Err(Refused::Locked { .. }) => panic!("nobody locks"),
    }
}

pub(crate) async fn put(members: &[&Member], numbers: std::ops::Range<u32>) {
    put_for(members, numbers, Expiry::NEVER).await;
}

pub(crate) async fn put_for(members: &[&Member], numbers: std::ops::Range<u32>, expiry: Expiry) {
    tokio::task::block_in_place(|| {
        for n in numbers {
            somewhere(members, n, |grid| put_at(grid, n, expiry));
        }
    });
}

/// Returns the keys that exist.
pub(crate) async fn found(members: &[&Member], numbers: std::ops::Range<u32>) -> BTreeSet<u32> {
    tokio::task::block_in_place(|| {
        let is_there = |n: &u32| {
            somewhere(members, *n, |grid| {
                let map = grid.map("m")?;
                let partition = map.partition_of(&key(*n));
                map.answering(partition, || map.get(partition, &key(*n), |value| value.is_some()))
            })
        };
        numbers.filter(is_there).collect()
    })
}

/// Whether all voters of each group have applied all entries that the leader has committed.
pub(crate) fn have_all(members: &[&Member]) -> bool {
    let groups: Vec<_> = members.iter().map(|member| member.groups()).collect();
    (0..groups[0].len()).all(|group| {
        let Some(leader) = groups.iter().map(|of| &of[group]).find(|status| status.leads) else { return false };
        let votes = |member: &&Member| leader.voters.contains(&member.id());
        let mut of_voters = members.iter().zip(&groups).filter(|(member, _)| votes(member)).map(|(_, of)| &of[group]);
        of_voters.all(|status| status.applied == leader.committed)
    })
}

/// Whether each group has a leader and `voters` voters that have caught up.
pub(crate) fn is_whole(member: &Member, voters: usize) -> bool {
    let status = member.grid().cluster().unwrap().status().unwrap();
    status.groups.iter().all(|group| {
        group.leader.is_some() && group.voters.len() == voters && group.voters.values().all(|lag| *lag == Some(0))
    })
}
