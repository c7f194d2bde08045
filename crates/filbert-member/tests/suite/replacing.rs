//! A map that replaces another map on all members, and replacements that are abandoned.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};

use filbert_data::Blob;
use filbert_grid::replication::SharedReplacement;
use filbert_grid::{
    Caller, Change, EntryEvent, EntrySink, ErrorKind, EventKinds, Expiry, Grid, GridConfig, GridError, ListenerSpec,
    PutMode,
};
use filbert_member::{Member, MemberSettings};
use tokio::task::block_in_place;
use uuid::Uuid;

use crate::common::data::{found, have_all, is_whole, key, put};
use crate::common::{LIMIT, join_all, listen_all, stop_all, until};

const ENTRIES: u32 = 300;

/// Three members that have all entries.
async fn filled() -> Vec<Member> {
    let (starting, addresses) = listen_all(3, &MemberSettings::default(), &GridConfig::default()).await;
    let members = join_all(starting, &addresses).await;
    until("all is well", || members.iter().all(|member| is_whole(member, 3))).await;
    put(&members.iter().collect::<Vec<_>>(), 0..ENTRIES).await;
    until("all have all", || have_all(&members.iter().collect::<Vec<_>>())).await;
    members
}

/// Copies all entries with other values.
fn copy(replacement: &SharedReplacement<'_>) {
    for read in replacement.reads() {
        let mut rewrite = |key: &[u8], _: &[u8]| Ok((Blob::from(key), Blob::from(b"rewritten".as_slice())));
        assert_eq!(replacement.copy::<GridError>(read, &|| Ok(()), &mut rewrite), Ok(None));
    }
}

/// The value of an entry, according to its leader.
fn value(grid: &Grid, n: u32) -> Option<Blob> {
    let (map, nothing_here) = (grid.existing_map("m").unwrap(), filbert_grid::ReadView::of_groups(&[false]));
    map.value_by(&nothing_here, &key(n)).unwrap()
}

/// Counts events.
struct Heard(Arc<AtomicU32>);

impl EntrySink for Heard {
    fn deliver(&self, _: &EntryEvent<'_>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_map_that_is_not_put_in_place_leaves_nothing() {
    let members = filled().await;
    let all: Vec<&Member> = members.iter().collect();
    let grid = members[0].grid();
    let map = grid.map("m").unwrap();
    block_in_place(|| {
        let mut claim = map.whole_claim();
        assert_eq!(claim.attempt(), Ok(true));
        let replacement = grid.replace_on_all(&map, claim, "m").unwrap();
        copy(&replacement);
        // Two entries with one new key are found, also in different pages.
        let mut rewrite = |_: &[u8], value: &[u8]| Ok((Blob::from(key(ENTRIES + 1).as_slice()), Blob::from(value)));
        let duplicates = replacement
            .reads()
            .into_iter()
            .filter_map(|read| replacement.copy::<GridError>(read, &|| Ok(()), &mut rewrite).unwrap());
        assert!(duplicates.count() > 0);
    });
    until("the hidden map is gone", || all.iter().all(|member| member.registry().maps().count() == 1)).await;
    // All memory is the first map's.
    until("its entries are gone", || {
        all.iter().all(|member| {
            let map = member.grid().existing_map("m").unwrap();
            map.statistics().bytes_owned == member.grid().statistics().memory_bytes
        })
    })
    .await;
    assert_eq!(found(&all, 0..ENTRIES).await, (0..ENTRIES).collect());
    put(&all, 0..ENTRIES + 1).await;
    stop_all(members).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_map_that_replaces_another_one_has_its_place_on_all_members() {
    let members = filled().await;
    let all: Vec<&Member> = members.iter().collect();
    let heard = Arc::new(AtomicU32::new(0));
    for member in &all {
        let kinds = EventKinds::UPDATED;
        let spec = ListenerSpec { key: None, filter: None, include_value: false, kinds, connection: None };
        member.grid().map("m").unwrap().add_listener(spec, Arc::new(Heard(heard.clone()))).unwrap();
    }
    let (grid, other) = (members[0].grid(), members[1].grid());
    let (map, of_other) = (grid.map("m").unwrap(), other.map("m").unwrap());
    let (sender, waited) = mpsc::channel();
    block_in_place(|| {
        let mut claim = map.whole_claim();
        assert_eq!(claim.attempt(), Ok(true));
        let mut replacement = grid.replace_on_all(&map, claim, "m").unwrap();
        copy(&replacement);
        // A change of another member waits.
        let change = Change::Put { key: &key(1), value: b"late", expiry: Expiry::NEVER, mode: PutMode::Set };
        let client = Caller { client: Uuid::from_u128(1), thread: 1 };
        let reply = Box::new(move |answer: Result<filbert_grid::Reply<'_>, GridError>| {
            sender.send(answer.map(|_| ()).map_err(|error| error.kind())).unwrap();
        });
        of_other.change_when_free(of_other.partition_of(&key(1)), client, change.to_owned(), None, reply);
        assert!(waited.try_recv().is_err());
        assert_eq!(replacement.put_in_place(Vec::new(), &[]), Ok(true));
    });
    // It is to be sent again, and so is a change of the former map that comes late.
    assert_eq!(block_in_place(|| waited.recv_timeout(LIMIT)), Ok(Err(ErrorKind::BeingReplaced)));
    let late = Change::Delete { key: &key(2) };
    let refused = block_in_place(|| of_other.change(of_other.partition_of(&key(2)), Caller::default(), late, |_| ()));
    assert!(refused.unwrap_err().to_string().contains("rewritten"));
    until("all have one map", || all.iter().all(|member| member.registry().maps().count() == 1)).await;
    for member in &all {
        let map = member.grid().existing_map("m").unwrap();
        assert!(map.replacement().is_some());
        assert!(block_in_place(|| (0..ENTRIES).all(|n| value(member.grid(), n).as_deref() == Some(b"rewritten"))));
    }
    assert_eq!(heard.load(Ordering::SeqCst), 0, "a copy is no change");
    put(&all, 5..6).await;
    until("the listeners are there", || heard.load(Ordering::SeqCst) == 1).await;
    stop_all(members).await;
}
