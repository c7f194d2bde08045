//! Compares random changes of several threads through a log with the same changes applied directly,
//! in the order of the log. Replies, events, journals and contents must be equal, and refused
//! changes must not be in the log.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

use crate::common::loopback::{Entry, Loopback, Whims, is_refusal};
use crate::common::{ManualClock, Member, caller, key, member_with, said};
use filbert_grid::replication::{InFlight, SubmitError, WhenLocked};
use filbert_grid::{
    Change, EntryEvent, Environment, EventJournalConfig, EventKinds, Expiry, GridConfig, GridError, ListenerSpec, Map,
    MapConfig, OwnedChange, PartitionId, PutMode, Refused, Reply,
};
use filbert_store::{Decoder, LogCommand};

const THREADS: u64 = 4;
const PARTITIONS: u32 = 7;
const OPERATIONS: usize = 150;

/// A change and its final outcome.
#[derive(Clone, Debug)]
struct Operation {
    change: OwnedChange,
    outcome: Option<Result<crate::common::Said, GridError>>,
}

/// The operations of one thread on one partition, in the order of their submission.
type Operations = BTreeMap<(u64, PartitionId), Vec<Arc<Mutex<Operation>>>>;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

fn config() -> GridConfig {
    let event_journal = Some(EventJournalConfig { capacity: 7 * 1_000, ttl_seconds: 0 });
    let mut config = GridConfig { partition_count: PARTITIONS, ..GridConfig::default() };
    config.maps.insert("m", MapConfig { event_journal, ..MapConfig::default() });
    config
}

/// Creates a random change. It differs from all other changes of the same thread, so that it can be
/// identified in the log.
fn random_change(random: &mut Random, id: u64, keys: u64) -> OwnedChange {
    let key = key(random.below(keys) as u32);
    let key = key.as_slice();
    let value = format!("{id}");
    let value = value.as_bytes();
    let old = format!("{}", random.below(id + 1));
    let expiry = match random.below(3) {
        0 => Expiry::ttl(1 + random.below(300) as i64),
        _ => Expiry::DEFAULT,
    };
    let modes = [PutMode::Put, PutMode::Set, PutMode::IfAbsent, PutMode::Replace, PutMode::Try, PutMode::Transient];
    let (id, lease_ms) = (id as i64, (random.below(2) == 0).then_some(1 + random.below(200) as i64));
    match random.below(12) {
        0..6 => Change::Put { key, value, expiry, mode: modes[random.below(6) as usize] },
        6 => Change::ReplaceIfSame { key, expected: old.as_bytes(), value },
        7 => Change::SetTtl { key, ttl_ms: 100_000 + id },
        8 => Change::Lock { key, lease_ms, reference: id },
        9 | 10 => Change::Unlock { key, reference: id },
        _ => Change::ForceUnlock { key, reference: id },
    }
    .to_owned()
}

fn listen(map: &Map) -> Arc<Mutex<Vec<String>>> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = heard.clone();
    let spec = ListenerSpec { key: None, filter: None, include_value: true, kinds: EventKinds::ALL, connection: None };
    map.add_listener(
        spec,
        Arc::new(move |event: &EntryEvent<'_>| {
            let (kind, partition) = (event.kind, event.partition);
            let event = format!("{partition:?} {kind:?} {:?} {:?} {:?}", event.key, event.old_value, event.value);
            sink.lock().unwrap().push(event);
        }),
    )
    .unwrap();
    heard
}

/// Runs threads that submit changes in batches, with and without waiting, until all changes are
/// answered.
fn run_threads(member: &Member, map: &Map, seed: u64, next_id: &mut u64) -> Operations {
    let operations = Mutex::new(Operations::new());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let first_id = *next_id + thread * 10_000;
            let operations = &operations;
            scope.spawn(move || {
                let mut random = Random(seed * 31 + first_id);
                let in_flight = Arc::new(InFlight::new(|| {}));
                let (mut id, mut mine) = (first_id, Operations::new());
                while id < first_id + OPERATIONS as u64 {
                    let mut to = member.grid.submissions(in_flight.clone());
                    for _ in 0..=random.below(8) {
                        id += 1;
                        let change = random_change(&mut random, id, 30);
                        let partition = map.partition_of(change.key().unwrap());
                        let operation = Arc::new(Mutex::new(Operation { change: change.clone(), outcome: None }));
                        mine.entry((thread, partition)).or_default().push(operation.clone());
                        let submitted = operation.clone();
                        let reply = Box::new(move |answer: Result<Reply<'_>, GridError>| {
                            let outcome = submitted.lock().unwrap().outcome.replace(answer.map(said_all));
                            assert!(outcome.is_none(), "answered twice");
                        });
                        let me = caller(1, thread as i64);
                        let made = map.submit(&mut to, partition, me, change.borrow(), WhenLocked::Answer, reply);
                        if let Err(Refused::Error(error)) = made {
                            operation.lock().unwrap().outcome = Some(Err(error));
                        }
                    }
                    to.send();
                    if random.below(3) == 0 {
                        wait_until(|| in_flight.bytes() == 0);
                    }
                }
                wait_until(|| in_flight.bytes() == 0);
                operations.lock().unwrap().append(&mut mine);
            });
        }
    });
    *next_id += THREADS * 10_000;
    operations.into_inner().unwrap()
}

fn wait_until(condition: impl Fn() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

fn said_all(reply: Reply<'_>) -> crate::common::Said {
    match reply {
        Reply::Locked { .. } => crate::common::Said::Locked,
        reply => said(reply),
    }
}

/// Applies the changes of the log's entries in their order. The replies must equal the answers of
/// the threads.
fn replay(reference: &Member, map: &Map, entries: &[Entry], operations: Operations) {
    let mut expected: BTreeMap<_, VecDeque<Operation>> = operations
        .into_iter()
        .map(|(of, all)| (of, all.iter().map(|operation| operation.lock().unwrap().clone()).collect()))
        .collect();
    let mut made = 0;
    for commands in entries.iter().flat_map(|(_, parts)| parts) {
        for command in Decoder::new(commands).unwrap() {
            let (partition, LogCommand::Change(command)) = command.unwrap() else { continue };
            if command.caller.client == reference.grid.member_uuid() || command.change.key().is_none() {
                continue;
            }
            let queue = expected.get_mut(&(command.caller.thread as u64, partition)).unwrap();
            let operation = loop {
                let operation = queue.pop_front().unwrap_or_else(|| panic!("{command:?} was never submitted"));
                if operation.change.borrow() == command.change {
                    break operation;
                }
                assert_not_made(&operation);
            };
            made += 1;
            let reply = match map.change(partition, command.caller, command.change, said_all) {
                Ok(said) => said,
                Err(Refused::Locked { .. }) => crate::common::Said::Locked,
                Err(Refused::Error(error)) => panic!("{error}"),
            };
            match operation.outcome {
                Some(Ok(answer)) => assert_eq!(answer, reply, "{command:?}"),
                Some(Err(GridError::Submit(SubmitError::Unknown { .. }))) => {}
                other => panic!("{command:?} was made, and answered {other:?}"),
            }
        }
    }
    expected.values().flatten().for_each(assert_not_made);
    assert!(made > OPERATIONS, "most of them are made");
}

fn assert_not_made(operation: &Operation) {
    let Some(Err(error)) = &operation.outcome else { panic!("{operation:?} is not in the log") };
    let is_unknown = matches!(error, GridError::Submit(SubmitError::Unknown { .. }));
    assert!(is_refusal(error) || is_unknown, "{operation:?}");
}

/// All entries, locks and journal events of a map.
fn contents(map: &Map) -> Vec<String> {
    let mut all = Vec::new();
    for partition in (0..PARTITIONS).map(PartitionId) {
        let mut entries = Vec::new();
        map.scan_rows(partition, &mut |key, _| entries.push(key.to_vec()));
        entries.sort();
        for key in entries {
            map.entry_view(partition, &key, |view| {
                let view = view.unwrap();
                let times = (view.created_ms, view.updated_ms, view.expires_ms, view.version);
                all.push(format!("{partition} {key:?} {:?} {times:?}", view.value));
            });
        }
        for n in 0..30 {
            let key = key(n);
            if map.partition_of(&key) == partition {
                all.push(format!("{n} {:?}", map.lock_state(partition, &key)));
            }
        }
        let (oldest, _) = map.journal_subscribe(partition).unwrap();
        map.journal_read(partition, oldest, usize::MAX, &mut |event| all.push(format!("{partition} {event:?}")))
            .unwrap();
    }
    all
}

fn by_partition(events: &Mutex<Vec<String>>) -> Vec<String> {
    let mut events = std::mem::take(&mut *events.lock().unwrap());
    // The sort is stable, so events of a partition stay in their order.
    events.sort_by_key(|event| event.split(' ').next().unwrap_or_default().to_owned());
    events
}

fn run(whims: Whims) {
    let clock = Arc::new(ManualClock::default());
    let environment = Environment { clock: clock.clone(), random_seed: 1 };
    let (grid, loopback) = Loopback::start(config(), environment, Whims { keeps_log: true, ..whims });
    let member = Member { grid, clock };
    let reference = member_with(config());
    let map = loop {
        match member.grid.map("m") {
            Ok(map) => break map,
            Err(error) => assert!(matches!(error, GridError::Submit(_)), "{error}"),
        }
    };
    let direct = reference.grid.map("m").unwrap();
    let (events, direct_events) = (listen(&map), listen(&direct));
    let (mut next_id, mut replayed) = (0, loopback.log().len());
    for phase in 0..4 {
        let operations = run_threads(&member, &map, whims.seed * 7 + phase, &mut next_id);
        loopback.settle();
        let log = loopback.log();
        replay(&reference, &direct, &log[replayed..], operations);
        member.clock.advance(100);
        reference.clock.advance(100);
        reference.grid.run_expiry();
        if whims.refused_percent == 0 {
            member.grid.run_expiry();
            loopback.settle();
            assert_eq!(by_partition(&events), by_partition(&direct_events));
            assert_eq!(contents(&map), contents(&direct), "seed {} phase {phase}", whims.seed);
        } else {
            // The sweep may be refused as well. Reads do not return expired entries in any case.
            let live =
                |map: &Map| contents(map).into_iter().filter(|line| !line.contains("Journal")).collect::<Vec<_>>();
            assert_eq!(live(&map), live(&direct), "seed {} phase {phase}", whims.seed);
        }
        replayed = loopback.log().len();
    }
}

#[test]
fn changes_through_a_log_have_the_effect_of_direct_changes() {
    for seed in 0..12 {
        run(Whims { seed, groups: 3, ..Whims::default() });
    }
}

#[test]
fn refused_changes_are_not_applied_and_applied_changes_are_answered_or_unknown() {
    for seed in 100..112 {
        run(Whims { seed, groups: 3, refused_percent: 4, unknown_percent: 6, ..Whims::default() });
    }
}
