//! Behavior that only exists with a log: changes of leadership, followers, refusals, and the
//! contents of entries.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::loopback::{Loopback, Whims, is_refusal};
use crate::common::*;
use filbert_grid::replication::{
    GroupId, InFlight, NewMap, Part, RejectedSubmission, Replicator, Role, SubmitError, Term, WhenLocked,
};
use filbert_grid::{
    Change, EntryEvent, EntrySink, Environment, ErrorKind, EventKind, EventKinds, Expected, Expiry, Grid, GridConfig,
    GridError, ListenerSpec, Map, MapConfig, MapId, MapSettings, MemberMemory, Millis, NotMade, PartitionId, PutMode,
    Refused, Reply, Together,
};

fn replicated(config: GridConfig, whims: Whims) -> (Member, Arc<Loopback>) {
    let clock = Arc::new(ManualClock::default());
    let environment = Environment { clock: clock.clone(), random_seed: 42 };
    let (grid, loopback) = Loopback::start(config, environment, whims);
    (Member { grid, clock }, loopback)
}

fn started() -> (Member, Arc<Loopback>) {
    replicated(GridConfig::default(), Whims::default())
}

fn group_of(map: &Map, n: u32) -> GroupId {
    GroupId(map.partition_of(&key(n)).0 % Whims::default().groups)
}

fn kind(said: &Said) -> Option<ErrorKind> {
    match said {
        Said::Error(error) => Some(error.kind()),
        _ => None,
    }
}

#[test]
fn a_former_leader_changes_and_answers_nothing_and_notifies_waiters() {
    let (member, loopback) = started();
    let map = member.grid.map("m").unwrap();
    let given = Answers::default();
    let group = group_of(&map, 7);
    put(&map, caller(1, 1), 7, b"v");
    lock(&map, caller(1, 1), 7);
    park(&map, caller(2, 1), owned_lock(7), None, &given, 1);
    loopback.settle();
    assert_eq!(answers(&given), []);
    loopback.depose(&member.grid, group);
    assert_eq!(answers(&given).iter().map(|(_, said)| kind(said)).collect::<Vec<_>>(), [Some(ErrorKind::NotLeader)]);
    assert_eq!(kind(&put(&map, caller(1, 1), 7, b"w")), Some(ErrorKind::NotLeader));
    let partition = map.partition_of(&key(7));
    assert_eq!(map.answering(partition, || ()).unwrap_err().kind(), ErrorKind::NotLeader);
    assert_eq!(map.answering_all(|| ()).unwrap_err().kind(), ErrorKind::NotLeader);
    assert!(map.clear(caller(1, 1)).is_err());
    assert_eq!(member.grid.statistics().parked_changes, 0);

    loopback.elect(&member.grid, group);
    assert_eq!(map.answering(partition, || get(&map, 7)), Ok(Some(b"v".to_vec())));
    assert_eq!(lock(&map, caller(2, 1), 7), Said::Locked, "locks stay");
    assert_eq!(put(&map, caller(1, 1), 7, b"w"), Said::Previous(Some(b"v".to_vec())));
}

#[test]
fn a_read_that_spans_two_terms_is_not_answered() {
    let (member, loopback) = started();
    let map = member.grid.map("m").unwrap();
    let (partition, group) = (map.partition_of(&key(7)), group_of(&map, 7));
    let read = map.answering(partition, || {
        loopback.depose(&member.grid, group);
        loopback.elect(&member.grid, group);
    });
    assert_eq!(read.unwrap_err().kind(), ErrorKind::NotLeader);
}

#[test]
fn what_was_in_flight_when_leadership_was_lost_is_unknown() {
    let (member, loopback) = started();
    let map = member.grid.map("m").unwrap();
    loopback.settle();
    loopback.pause();
    let given = Answers::default();
    park(&map, caller(1, 1), owned_put(7, b"v"), None, &given, 1);
    loopback.depose(&member.grid, group_of(&map, 7));
    assert_eq!(kind(&answers(&given)[0].1), Some(ErrorKind::Indeterminate));
    assert_eq!(member.grid.statistics().memory_bytes, map.statistics().bytes_owned);
}

#[test]
fn changes_of_one_batch_are_one_submission_for_each_group_and_are_counted_on_their_way() {
    let (member, loopback) = replicated(GridConfig::default(), Whims { keeps_log: true, ..Whims::default() });
    let map = member.grid.map("m").unwrap();
    loopback.settle();
    let entries_before = loopback.log().len();
    loopback.pause();
    let woken = Arc::new(AtomicUsize::new(0));
    let wakes = woken.clone();
    let in_flight = Arc::new(InFlight::new(move || _ = wakes.fetch_add(1, Ordering::SeqCst)));
    let mut to = member.grid.submissions(in_flight.clone());
    let replies = Arc::new(AtomicUsize::new(0));
    for n in 0..500 {
        let (key, replies) = (key(n), replies.clone());
        let change = Change::Put { key: &key, value: b"v", expiry: Expiry::DEFAULT, mode: PutMode::Set };
        let reply = Box::new(move |_: Result<Reply<'_>, GridError>| _ = replies.fetch_add(1, Ordering::SeqCst));
        let partition = map.partition_of(&key);
        map.submit(&mut to, partition, caller(1, 1), change, WhenLocked::Answer, reply).unwrap();
        assert!(in_flight.any_of(partition));
    }
    to.send();
    assert!(in_flight.bytes() > 500 * 20);
    in_flight.wake_at_next();
    loopback.resume();
    loopback.settle();
    assert_eq!((replies.load(Ordering::SeqCst), in_flight.bytes(), woken.load(Ordering::SeqCst)), (500, 0, 1));
    let log = loopback.log();
    let parts: usize = log[entries_before..].iter().map(|(_, parts)| parts.len()).sum();
    assert_eq!(parts, 24);
    assert_eq!(map.size(), 500);
}

/// The log of a member that only follows.
struct Follower(Arc<Loopback>);

impl Replicator for Follower {
    fn groups(&self) -> u32 {
        self.0.groups()
    }

    fn submit(
        &self,
        group: GroupId,
        _: Vec<u8>,
        answers: filbert_grid::replication::Answers,
    ) -> Result<(), Box<RejectedSubmission>> {
        Err(Box::new(RejectedSubmission {
            answers,
            why: SubmitError::NotLeader { group, hint: "it follows".to_owned() },
        }))
    }

    fn lease(&self, group: GroupId) -> Result<Term, SubmitError> {
        Err(SubmitError::NotLeader { group, hint: "it follows".to_owned() })
    }

    fn read_time(&self, group: GroupId) -> Millis {
        self.0.read_time(group)
    }

    fn create_map(&self, _: NewMap<'_>, _: MapSettings) -> Result<(MapId, MapSettings), GridError> {
        Err(SubmitError::NotLeader { group: GroupId(0), hint: "it follows".to_owned() }.into())
    }

    fn knows_map(&self, _: MapId) -> bool {
        true
    }

    fn drop_map(&self, _: MapId) -> Result<(), GridError> {
        Err(SubmitError::NotLeader { group: GroupId(0), hint: "it follows".to_owned() }.into())
    }
}

#[test]
fn a_follower_holds_what_the_leader_holds() {
    let (leader, loopback) = replicated(GridConfig::default(), Whims { keeps_log: true, ..Whims::default() });
    let map = leader.grid.map("m").unwrap();
    let clock = Arc::new(ManualClock::default());
    let environment = Environment { clock: clock.clone(), random_seed: 43 };
    let follower = Arc::new(Follower(loopback.clone()));
    let memory = Arc::new(MemberMemory::new(None));
    let follower = Grid::replicated(GridConfig::default(), environment, memory, follower).unwrap();
    for n in 0..200 {
        put_ttl(&map, n, b"v", 1_000 + i64::from(n));
    }
    leader.clock.advance(1_100);
    leader.grid.run_expiry();
    loopback.settle();
    let bytes = leader.grid.statistics().memory_bytes;
    assert_eq!(map.size(), 99);
    for (stamp, parts) in loopback.log() {
        let mut parts: Vec<_> = parts.iter().map(|commands| Part { commands, answers: None }).collect();
        follower.apply_batch(stamp, Role::FOLLOWER, &mut parts).unwrap();
    }
    // The follower does not know the map's name, so it has no memory for the map outside its
    // partitions.
    let bytes = bytes - (map.statistics().bytes_owned - follower.statistics().memory_bytes);
    assert!(leader.grid.statistics().memory_bytes - bytes < 1_500);
    // A follower proposes nothing.
    clock.advance(10_000);
    follower.run_expiry();
    assert_eq!(follower.statistics().memory_bytes, bytes);
    assert!(follower.map("other").is_err());
    assert!(follower.objects().is_empty());
}

#[test]
fn an_entry_that_cannot_be_read_changes_nothing() {
    let (member, loopback) = replicated(GridConfig::default(), Whims { keeps_log: true, ..Whims::default() });
    let map = member.grid.map("m").unwrap();
    put(&map, caller(1, 1), 7, b"v");
    let (stamp, parts) = loopback.log().pop().unwrap();
    let mut broken = parts[0].clone();
    broken.push(250);
    put(&map, caller(1, 1), 7, b"w");
    let error =
        member.grid.apply_batch(stamp, Role::LEADER, &mut [Part { commands: &broken, answers: None }]).unwrap_err();
    assert!(error.to_string().contains("kind of a command"), "{error}");
    assert_eq!(get(&map, 7), Some(b"w".to_vec()));
}

#[test]
fn reads_keep_entries_alive_through_the_log() {
    let mut config = GridConfig::default();
    config.maps.insert("m", MapConfig { max_idle_seconds: 1, ..MapConfig::default() });
    let (member, loopback) = replicated(config, Whims::default());
    let map = member.grid.map("m").unwrap();
    put(&map, caller(1, 1), 1, b"read");
    put(&map, caller(1, 1), 2, b"not read");
    for _ in 0..10 {
        member.clock.advance(600);
        assert_eq!(get(&map, 1), Some(b"read".to_vec()));
        member.grid.run_expiry();
        loopback.settle();
    }
    assert_eq!((get(&map, 1).is_some(), get(&map, 2).is_some()), (true, false));
    assert_eq!(map.statistics().expirations, 1);
}

#[test]
fn who_leads_again_believes_no_read_that_the_log_does_not_know_of() {
    let mut config = GridConfig::default();
    config.maps.insert("m", MapConfig { max_idle_seconds: 1, ..MapConfig::default() });
    let (member, loopback) = replicated(config, Whims::default());
    let map = member.grid.map("m").unwrap();
    put(&map, caller(1, 1), 1, b"v");
    member.clock.advance(600);
    assert_eq!(get(&map, 1), Some(b"v".to_vec()));
    // For an intermediate leader, the entry has expired.
    loopback.depose(&member.grid, group_of(&map, 1));
    member.clock.advance(600);
    loopback.elect(&member.grid, group_of(&map, 1));
    assert_eq!(get(&map, 1), None);
    assert_eq!(put(&map, caller(1, 1), 1, b"w"), Said::Previous(None));
}

#[test]
fn locks_of_a_client_that_has_gone_are_free_in_the_end_though_the_log_refuses_half_of_what_comes() {
    let (member, loopback) = started();
    let map = member.grid.map("m").unwrap();
    loopback.refuse(30);
    let owner = client(&member, 1);
    for n in 0..50 {
        while lock(&map, caller(1, 1), n) != Said::Flag(true) {}
    }
    drop(owner);
    loopback.settle();
    assert!(map.statistics().locked_keys > 0, "some was refused");
    while map.statistics().locked_keys > 0 {
        member.grid.run_expiry();
        loopback.settle();
    }
}

#[test]
fn a_statement_is_made_as_a_whole_in_the_end_though_the_log_refuses_some_of_it_and_loses_answers() {
    let whims = Whims { refused_percent: 1, unknown_percent: 1, ..Whims::default() };
    let (member, loopback) = replicated(GridConfig { partition_count: 11, ..GridConfig::default() }, whims);
    let map = loop {
        if let Ok(map) = member.grid.map("m") {
            break map;
        }
    };
    let mut not_made = 0;
    let ends = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Releases of earlier attempts arrive while the next attempt has its claims.
        scope.spawn(|| {
            while !ends.load(Ordering::SeqCst) {
                member.grid.run_expiry();
            }
        });
        let _ends = EndsOnDrop(&ends);
        for round in 0..300u32 {
            let mut together = Together::new(&map);
            let value = round.to_be_bytes();
            (0..40).for_each(|n| _ = together.add(&key(n), Expected::Anything, Some(&value)).unwrap());
            let before = get(&map, 0);
            let values = || (0..40).map(|n| get(&map, n)).collect::<Vec<_>>();
            let mut claims = map.claims();
            while let Err(outcome) = map.make_together(&together, &mut claims) {
                match outcome {
                    NotMade::Error(error) => assert!(is_refusal(&error), "{error}"),
                    // The keys of the attempt before are not released yet.
                    NotMade::Held(_) => {}
                    NotMade::Differ(_) => panic!("{outcome:?}"),
                }
                loopback.settle();
                assert!(values().iter().all(|found| *found == before));
                not_made += 1;
            }
            loopback.settle();
            assert!(values().iter().all(|found| found.as_deref() == Some(value.as_slice())));
            // The claims are released in the end, however often the release is refused.
            while (0..40).any(|n| change(&map, caller(1, 1), Change::Await { key: &key(n) }) != Said::Done) {
                loopback.settle();
            }
        }
    });
    assert!(not_made > 0);
}

/// Ends a thread, also if the test fails.
struct EndsOnDrop<'e>(&'e AtomicBool);

impl Drop for EndsOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Records notifications of whole partitions, in addition to entry events.
struct Follows {
    entries: Arc<dyn EntrySink>,
    wholes: Arc<Mutex<Vec<String>>>,
}

impl EntrySink for Follows {
    fn deliver(&self, event: &EntryEvent<'_>) {
        self.entries.deliver(event);
    }

    fn partition_emptied(&self, kind: EventKind, _: PartitionId) {
        self.wholes.lock().unwrap().push(format!("{kind:?}"));
    }

    fn partition_replaced(&self, partition: PartitionId) {
        self.wholes.lock().unwrap().push(format!("{partition} replaced"));
    }
}

#[test]
fn a_listener_of_replicas_receives_each_change_once_whichever_member_notifies() {
    let (leader, loopback) = replicated(GridConfig::default(), Whims { keeps_log: true, ..Whims::default() });
    let map = leader.grid.map("m").unwrap();
    let environment = Environment { clock: Arc::new(ManualClock::default()), random_seed: 43 };
    let follower = Arc::new(Follower(loopback.clone()));
    let memory = Arc::new(MemberMemory::new(None));
    let follower = Grid::replicated(GridConfig::default(), environment, memory, follower).unwrap();
    let copy = follower.map_created(MapId(1), "m", MapSettings::default()).unwrap();
    let spec = ListenerSpec { key: None, filter: None, include_value: true, kinds: EventKinds::ALL, connection: None };
    let (notified, follows, wholes) = (Heard::default(), Heard::default(), Arc::new(Mutex::new(Vec::new())));
    copy.add_listener(spec.clone(), notified.sink()).unwrap();
    let sink = Arc::new(Follows { entries: follows.sink(), wholes: wholes.clone() });
    let id = copy.follow_copies(spec, sink).unwrap();
    let replay = |from: usize, role: Role| {
        loopback.settle();
        let log = loopback.log();
        for (stamp, parts) in &log[from..] {
            let mut parts: Vec<_> = parts.iter().map(|commands| Part { commands, answers: None }).collect();
            follower.apply_batch(*stamp, role, &mut parts).unwrap();
        }
        log.len()
    };
    put(&map, caller(1, 1), 7, b"v");
    put(&map, caller(1, 1), 7, b"w");
    let seen = replay(0, Role::FOLLOWER);
    assert_eq!(
        (notified.take(), follows.take()),
        (vec![], vec!["Added 7 ->v 1".to_owned(), "Updated 7 v>w 1".to_owned()])
    );
    map.change(map.partition_of(&key(7)), caller(1, 1), Change::Delete { key: &key(7) }, |_| ()).unwrap();
    // Now this member notifies all listeners.
    let seen = replay(seen, Role { leads: false, notifies: true });
    let removed = vec!["Removed 7 w>- 1".to_owned()];
    assert_eq!((notified.take(), follows.take()), (removed.clone(), removed));
    map.clear(caller(1, 1)).unwrap();
    replay(seen, Role::FOLLOWER);
    let emptied = std::mem::take(&mut *wholes.lock().unwrap());
    assert!(!emptied.is_empty() && emptied.iter().all(|what| what == "Cleared"), "{emptied:?}");

    let group = group_of(&map, 7);
    let (mut export, mut import) = (leader.grid.begin_export(group).unwrap(), follower.begin_import(group).unwrap());
    while let Some(page) = export.page(1 << 16) {
        import.page(&page).unwrap();
    }
    follower.install(import);
    assert!(wholes.lock().unwrap().contains(&format!("{} replaced", map.partition_of(&key(7)))));
    assert_eq!((notified.take(), follows.take()), (vec![], vec![]));
    assert!(copy.remove_listener(id));
}

#[test]
fn listeners_hear_of_a_clear_once() {
    let (member, _loopback) = started();
    let map = member.grid.map("m").unwrap();
    let heard = Heard::default();
    let spec = ListenerSpec { key: None, filter: None, include_value: true, kinds: EventKinds::ALL, connection: None };
    (0..100).for_each(|n| _ = put(&map, caller(1, 1), n, b"v"));
    map.add_listener(spec, heard.sink()).unwrap();
    let given = Arc::new(Mutex::new(None));
    let slot = given.clone();
    let reply = Box::new(move |answer: Result<Reply<'_>, GridError>| {
        *slot.lock().unwrap() = Some(format!("{answer:?}"));
    });
    map.submit_evict_all(caller(1, 1), reply).unwrap();
    while given.lock().unwrap().is_none() {
        std::thread::yield_now();
    }
    assert_eq!(given.lock().unwrap().take().unwrap(), "Ok(Count(100))");
    assert_eq!(heard.take(), ["EvictedAll * ->- 100"]);
}

#[test]
fn a_change_that_is_refused_at_once_is_not_answered_as_well() {
    let (member, loopback) = started();
    let map = member.grid.map("m").unwrap();
    loopback.depose(&member.grid, group_of(&map, 7));
    let mut to = map.submissions();
    let change = owned_put(7, b"v");
    let partition = map.partition_of(&key(7));
    let reply = Box::new(|_: Result<Reply<'_>, GridError>| panic!("it was refused"));
    let refused = map.submit(&mut to, partition, caller(1, 1), change.borrow(), WhenLocked::Answer, reply);
    assert!(matches!(refused, Err(Refused::Error(error)) if is_refusal(&error)));
}

/// The first change of a partition creates the map there. It may come to the log after the map was
/// dropped.
#[test]
fn a_change_under_way_while_its_map_is_dropped_leaves_nothing() {
    let (member, loopback) = started();
    loopback.pause();
    // No log has created the map anywhere when the change is made.
    let map = member.grid.map("m").unwrap();
    let (mut to, given) = (map.submissions(), Answers::default());
    let (change, replies) = (owned_put(7, b"v"), given.clone());
    let callback = Box::new(move |answer: Result<Reply<'_>, GridError>| {
        replies.lock().unwrap().push((1, answer.map_or_else(Said::Error, said)));
    });
    let partition = map.partition_of(&key(7));
    map.submit(&mut to, partition, caller(1, 1), change.borrow(), WhenLocked::Answer, callback).unwrap();
    loopback.resume();
    loopback.settle();
    assert!(member.grid.destroy_map("m").unwrap());
    loopback.settle();
    to.send();
    loopback.settle();
    assert_eq!(answers(&given).iter().map(|(_, said)| kind(said)).collect::<Vec<_>>(), [Some(ErrorKind::Destroyed)]);
    assert_eq!(member.grid.statistics().memory_bytes, 0);
}

/// A client that lost a connection sends its request again while the first request is about to get
/// the lock.
#[test]
fn a_retried_request_for_a_lock_is_answered_as_the_first_one_in_flight() {
    let (member, loopback) = started();
    let map = member.grid.map("m").unwrap();
    let (given, partition) = (Answers::default(), map.partition_of(&key(7)));
    let again = || Change::Lock { key: &key(7), lease_ms: None, reference: 5 }.to_owned();
    change(&map, caller(1, 1), Change::Lock { key: &key(7), lease_ms: Some(100), reference: 0 });
    let now = member.grid.now();
    park(&map, caller(2, 1), again(), Some(now.plus(1_000)), &given, 1);
    park(&map, caller(2, 1), again(), Some(now.plus(150)), &given, 2);
    park(&map, caller(3, 1), owned_lock(7), Some(now.plus(150)), &given, 3);
    loopback.settle();
    // The lease has ended before a sweep. A new caller detects that, and the first waiter is
    // proposed.
    member.clock.advance(100);
    loopback.pause();
    assert_eq!(lock(&map, caller(4, 1), 7), Said::Locked);
    assert_eq!(loopback.queued(), 1);
    let (mut to, replies) = (map.submissions(), given.clone());
    let callback = Box::new(move |answer: Result<Reply<'_>, GridError>| {
        replies.lock().unwrap().push((4, answer.map_or_else(Said::Error, said)));
    });
    let third = again();
    let submitted = map.submit(&mut to, partition, caller(2, 1), third.borrow(), WhenLocked::Answer, callback);
    assert!(submitted.is_ok(), "refused, and has the lock in a moment: {submitted:?}");
    to.send();
    // The deadline of the second waiter has passed while the first one is about to get the lock.
    member.clock.advance(100);
    member.grid.run_expiry();
    let timeout = Said::Error(GridError::LockTimeout { map: "m".to_owned() });
    assert_eq!(answers(&given), [(3, timeout)]);
    loopback.resume();
    loopback.settle();
    let mut others = answers(&given).split_off(1);
    others.sort_by_key(|(name, _)| *name);
    assert_eq!(others, [1, 2, 4].map(|name| (name, Said::Flag(true))));
    assert_eq!(unlock(&map, caller(2, 1), 7), Said::Done);
    assert!(!map.is_locked(partition, &key(7)), "it was taken once");
    assert_eq!(member.grid.statistics().parked_changes, 0);
}

#[test]
fn snapshots_of_groups_are_imported_one_after_the_other_where_memory_is_scarce() {
    const MIB: usize = 1 << 20;
    let config = GridConfig { memory_bytes_max: Some(4 * MIB), ..GridConfig::default() };
    let (member, _loopback) = replicated(config, Whims { groups: 3, ..Whims::default() });
    let (map, mut keys) = (member.grid.map("m").unwrap(), 0..);
    let mut fill = |bytes: usize| {
        while member.grid.memory().maps() < bytes {
            put(&map, caller(1, 1), keys.next().unwrap(), &[7; 4_000]);
        }
    };
    let begin = |group: u32| member.grid.begin_import(GroupId(group));
    fill(3 * MIB / 2);
    let all: Vec<_> = (0..3).map(begin).collect();
    assert!(all.iter().all(Option::is_some), "{all:?}");
    drop(all);
    fill(7 * MIB / 2);
    let first = begin(0).unwrap();
    assert!(begin(1).is_none() && begin(2).is_none());
    // Writes do not wait for imports.
    fill(15 * MIB / 4);
    drop(first);
    assert!(begin(1).is_some());
    assert_eq!(member.grid.memory().imports(), 0);
}

#[test]
fn a_statement_claims_all_keys_once_nobody_else_holds_one() {
    let (member, loopback) = started();
    let map = member.grid.map("m").unwrap();
    put(&map, caller(1, 1), 1, b"v");
    lock(&map, caller(1, 1), 7);
    let mut claim = map.whole_claim();
    assert_eq!(claim.attempt(), Ok(false), "a client holds a key");
    let mut other = map.whole_claim();
    assert_eq!(other.attempt(), Ok(false), "another statement has come first");
    unlock(&map, caller(1, 1), 7);
    assert_eq!(claim.attempt(), Ok(true));
    assert_eq!(other.attempt(), Ok(false));
    // Changes wait, of new keys as well. Reads do not.
    assert_eq!(put(&map, caller(1, 1), 1, b"w"), Said::Locked);
    assert_eq!(put(&map, caller(1, 1), 1_000, b"w"), Said::Locked);
    assert_eq!(map.clear(caller(1, 1)).unwrap_err().kind(), ErrorKind::BeingReplaced);
    assert_eq!(get(&map, 1), Some(b"v".to_vec()));
    let mut together = Together::new(&map);
    together.add(&key(2), Expected::Anything, Some(b"x")).unwrap();
    assert!(matches!(map.make_together(&together, &mut map.claims()), Err(NotMade::Held(_))));
    let said = Answers::default();
    park(&map, caller(2, 1), owned_put(2, b"parked"), None, &said, 1);
    assert!(answers(&said).is_empty());
    drop(claim);
    loopback.settle();
    assert_eq!(answers(&said), [(1, Said::Previous(None))]);
    assert_eq!(other.attempt(), Ok(true));
    // A statement of a member that is gone holds nothing.
    let uuid = member.grid.member_uuid();
    member.grid.member_gone(uuid);
    loopback.settle();
    assert_eq!(put(&map, caller(1, 1), 1, b"w"), Said::Previous(Some(b"v".to_vec())));
    drop(other);
    assert_eq!(map.size(), 2);
}

#[test]
fn a_leader_finds_due_work_again_when_its_lease_returns() {
    let (member, loopback) = started();
    let map = member.grid.map("m").unwrap();
    let (said, group) = (Answers::default(), group_of(&map, 7));
    assert_eq!(
        change(&map, caller(1, 1), Change::Lock { key: &key(7), lease_ms: Some(1_000), reference: 0 }),
        Said::Flag(true)
    );
    park(&map, caller(2, 1), owned_lock(7), None, &said, 1);
    assert_eq!(put_ttl(&map, 7, b"v", 1_000), Said::Previous(None));
    loopback.end_lease(group);
    member.clock.advance(2_000);
    member.run_expiry();
    assert_eq!(answers(&said), [], "without a lease nothing is proposed");
    loopback.renew_lease(&member.grid, group);
    member.run_expiry();
    loopback.settle();
    assert_eq!(answers(&said), [(1, Said::Flag(true))], "the lease of the lock has ended");
    assert_eq!(map.statistics().entries, 0, "the entry has expired");
}

#[test]
fn changes_wait_only_at_leaders() {
    let (member, loopback) = started();
    let map = member.grid.map("m").unwrap();
    let (said, group) = (Answers::default(), group_of(&map, 7));
    lock(&map, caller(1, 1), 7);
    loopback.pause();
    park(&map, caller(2, 1), owned_lock(7), None, &said, 1);
    // The change is in the log. It is applied by a member that has lost its leadership, but was the
    // leader when it began to apply the entry.
    member.grid.leadership_lost(group, "a test says so");
    loopback.resume();
    loopback.settle();
    assert_eq!(answers(&said).iter().map(|(_, said)| kind(said)).collect::<Vec<_>>(), [Some(ErrorKind::NotLeader)]);
    assert_eq!(member.grid.statistics().parked_changes, 0);
    member.grid.leadership_gained(group);
    park(&map, caller(2, 1), owned_lock(7), None, &said, 2);
    loopback.settle();
    assert_eq!(member.grid.statistics().parked_changes, 1);
}

#[test]
fn claims_of_a_dropped_map_leave_no_commands() {
    let (member, loopback) = replicated(GridConfig::default(), Whims { keeps_log: true, ..Whims::default() });
    let map = member.grid.map("m").unwrap();
    let mut claim = map.whole_claim();
    assert_eq!(claim.attempt(), Ok(true));
    assert!(member.destroy_map("m"));
    loopback.settle();
    drop(claim);
    loopback.settle();
    let entries = loopback.log().len();
    member.run_expiry();
    loopback.settle();
    assert_eq!(loopback.log().len(), entries, "the releases are not proposed again");
}

#[test]
fn claims_of_statements_that_have_ended_are_released() {
    let (member, loopback) = started();
    let map = member.grid.map("m").unwrap();
    let mut claim = map.whole_claim();
    assert_eq!(claim.attempt(), Ok(true));
    let owner = claim.owner();
    assert_eq!(member.grid.claim_owners(), BTreeSet::from([owner]));
    assert_eq!(member.grid.running_statements(&[owner.thread, owner.thread + 1_000]), [owner.thread]);
    // The release of the claims is lost.
    loopback.refuse(100);
    drop(claim);
    loopback.settle();
    assert_eq!(member.grid.running_statements(&[owner.thread]), [0; 0]);
    assert_eq!(member.grid.claim_owners(), BTreeSet::from([owner]));
    loopback.refuse(0);
    member.grid.release_claims(&BTreeSet::from([owner]));
    loopback.settle();
    assert_eq!(member.grid.claim_owners(), BTreeSet::new());
    assert_eq!(put(&map, caller(1, 1), 1, b"w"), Said::Previous(None));
}

#[test]
fn listeners_stay_when_a_member_learns_of_two_replacements_at_once() {
    let (member, loopback) = started();
    let map = member.grid.map("m").unwrap();
    let heard = Arc::new(AtomicUsize::new(0));
    let count = heard.clone();
    let spec = ListenerSpec { key: None, filter: None, include_value: true, kinds: EventKinds::ALL, connection: None };
    let sink = move |event: &EntryEvent<'_>| _ = count.fetch_add(event.affected, Ordering::Relaxed);
    map.add_listener(spec, Arc::new(sink)).unwrap();
    // The member knew the first replacement while it was filled. The second one has replaced it.
    member.grid.hidden_map(MapId(2), "m", MapSettings::default()).unwrap();
    member.grid.map_replaced(MapId(2), (MapId(3), "m", MapSettings::default())).unwrap();
    member.grid.map_dropped(MapId(1));
    member.grid.map_dropped(MapId(2));
    loopback.settle();
    assert!(map.is_destroyed());
    let map = member.grid.map("m").unwrap();
    assert_eq!(map.replacement(), Some(3));
    assert_eq!(put(&map, caller(1, 1), 1, b"v"), Said::Previous(None));
    loopback.settle();
    assert_eq!(heard.load(Ordering::Relaxed), 1);
    assert_eq!(member.grid.statistics().listeners, 1);
}
