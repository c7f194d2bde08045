//! Replicas of a partition that follow the same log must give the same replies and events, and have
//! the same state. Reads between the commands, hash seeds, indexes and columns differ between the
//! replicas, and some replicas are restored from a snapshot.
//!
//! `PROPTEST_CASES=10000 cargo test --release -p filbert-store --test suite replicas` runs more
//! cases than usual.

use std::sync::Arc;

use crate::common::changes::{caller, cases, change, policy, settings};
use crate::common::{derived, event_text, text_of};
use filbert_data::PartitionId;
use filbert_store::*;
use proptest::prelude::*;

const ID: PartitionId = PartitionId(7);
const MAPS: u32 = 3;
const START: Millis = Millis(1_700_000_000_000);

/// A step of a test.
#[derive(Clone, Debug)]
enum Step {
    Apply {
        map: u32,
        caller: u8,
        reference: i64,
        change: OwnedChange,
    },
    /// A change at a time when an entry has expired according to the log, but a read has kept it
    /// alive: a read of the leader, or a read of another replica that the leader does not know.
    Idle {
        map: u32,
        key: u8,
        reader: usize,
        change: OwnedChange,
    },
    Fill {
        map: u32,
        from: u32,
        count: u32,
        ttl_ms: i64,
    },
    Evict {
        map: u32,
        policy: EvictionPolicy,
        count: usize,
    },
    Configure {
        map: u32,
        settings: MapSettings,
    },
    Destroy {
        map: u32,
    },
    Layout {
        map: u32,
        layout: Option<u64>,
    },
    /// A read of one replica.
    Read {
        replica: usize,
        map: u32,
        key: u8,
        contains: bool,
    },
    Forward(i64),
    /// Another replica becomes the leader.
    Lead(usize),
    /// A replica begins a snapshot, if none is in progress.
    Export(usize),
    /// Pages of at least `bytes` bytes. At the end of the snapshot, another replica is restored
    /// from it.
    Pages {
        count: usize,
        bytes: usize,
    },
    Check,
}

fn step() -> impl Strategy<Value = Step> {
    let map = || 1..=MAPS;
    prop_oneof![
        30 => (map(), 0u8..4, 0i64..5, change())
            .prop_map(|(map, caller, reference, change)| Step::Apply { map, caller, reference, change }),
        4 => (map(), 0u8..24, 0usize..3, change())
            .prop_map(|(map, key, reader, change)| Step::Idle { map, key, reader, change }),
        1 => (map(), 0u32..40, 1u32..90, prop::sample::select(vec![0, 700, 2_000]))
            .prop_map(|(map, from, count, ttl_ms)| Step::Fill { map, from, count, ttl_ms }),
        2 => (map(), policy(), 1usize..4).prop_map(|(map, policy, count)| Step::Evict { map, policy, count }),
        1 => (map(), settings()).prop_map(|(map, settings)| Step::Configure { map, settings }),
        1 => map().prop_map(|map| Step::Destroy { map }),
        1 => (map(), prop::option::of(0u64..6)).prop_map(|(map, layout)| Step::Layout { map, layout }),
        16 => (0usize..3, map(), 0u8..24, any::<bool>())
            .prop_map(|(replica, map, key, contains)| Step::Read { replica, map, key, contains }),
        6 => (0i64..900).prop_map(Step::Forward),
        2 => (0usize..3).prop_map(Step::Lead),
        2 => (0usize..3).prop_map(Step::Export),
        8 => (1usize..4, 1usize..400).prop_map(|(count, bytes)| Step::Pages { count, bytes }),
        2 => Just(Step::Check),
    ]
}

/// Each replica has different indexes and columns.
struct Layouts(u64);

impl LayoutSource for Layouts {
    fn layout(&self, _map: MapId, number: u64) -> Option<Arc<Layout>> {
        let number = (number + self.0) % 6;
        derived::layout(number as u8).map(Arc::new)
    }
}

struct Replica {
    partition: Partition,
    layouts: Layouts,
}

impl Replica {
    /// Applies commands of the log. Returns all replies and events as text.
    fn apply(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut said = Vec::new();
        for command in Decoder::new(bytes).unwrap() {
            let (partition, command) = command.unwrap();
            assert_eq!(partition, ID);
            let mut events = Vec::new();
            let mut observer = |event: &Event<'_>| {
                events.push(format!("{:?} {:?} {}", event.map, event.caller, event_text(event)));
            };
            said.push(text_of(&self.partition.apply_logged(&command, &self.layouts, &mut observer)));
            said.append(&mut events);
        }
        said
    }
}

/// A snapshot in progress.
struct Snapshot {
    exporter: usize,
    import: Import,
    /// The state of the exporter at the beginning.
    state: Vec<u8>,
    /// The length of the log at the beginning.
    log_len: usize,
}

struct Group {
    replicas: Vec<Replica>,
    /// The commands, with their replies and events.
    log: Vec<(Vec<u8>, Vec<String>)>,
    snapshot: Option<Snapshot>,
    /// Whether reads happen exactly at their time. Otherwise they never happen before the time of
    /// the latest command.
    exact_read_times: bool,
    leader: usize,
    now: Millis,
    seeds: u64,
    random: u64,
}

/// The clock skews of the replicas.
const SKEWS_MS: [i64; 3] = [0, 350, -200];

impl Group {
    fn new(settings: &[MapSettings], exact_read_times: bool) -> Group {
        let replica = |number: u64| Replica {
            partition: Partition::new(PartitionSettings { id: ID, hash_seed: number * 31 + 1, exact_read_times }),
            layouts: Layouts(number),
        };
        let replicas = (0..3).map(replica).collect();
        let (log, snapshot) = (Vec::new(), None);
        let mut group =
            Group { replicas, log, snapshot, exact_read_times, leader: 0, now: START, seeds: 100, random: 1 };
        for (map, settings) in (1..).map(MapId).zip(settings) {
            group.log(&[LogCommand::CreateMap { map, settings: settings.clone() }]);
        }
        group
    }

    fn now(&self) -> Millis {
        self.now.plus(SKEWS_MS[self.leader])
    }

    /// Applies commands to all replicas.
    fn log(&mut self, commands: &[LogCommand<'_>]) {
        let mut encoder = Encoder::default();
        commands.iter().for_each(|command| encoder.push(ID, command).unwrap());
        let bytes = encoder.take();
        let said: Vec<_> = self.replicas.iter_mut().map(|replica| replica.apply(&bytes)).collect();
        assert_eq!(said[0], said[1], "{commands:?}");
        assert_eq!(said[0], said[2], "{commands:?}");
        self.log.push((bytes, said.into_iter().next().unwrap()));
    }

    /// Proposes a change as the leader: first touches the entries that it knows to be alive.
    fn lead(&mut self, map: MapId, caller: Caller, change: Change<'_>) {
        let command = Command { map, now: self.now(), caller, change };
        let partition = &self.replicas[self.leader].partition;
        let mut touches = Vec::new();
        partition.touches_for(&command, &mut |map, key, read_at| touches.push((map, key.to_vec(), read_at)));
        // A command happens at the time of the latest command, if that is later. The read must use
        // the same time.
        let read_time = command.now.max(partition.time());
        let seen = change.key().and_then(|key| partition.entry_view(map, key, read_time));
        let seen = seen.map(|view| crate::common::text(view.value));
        let mut commands: Vec<LogCommand<'_>> = Vec::new();
        for (map, key, read_at) in &touches {
            commands.push(Command { map: *map, change: Change::Touch { key, read_at: *read_at }, ..command }.into());
        }
        commands.push(command.into());
        self.log(&commands);
        if let Change::Remove { .. } = change {
            // The replies to the touches come first. Touches cause no events.
            let (_, said) = self.log.last().unwrap();
            let reply = &said[touches.len()];
            let wanted = format!("previous {}", seen.unwrap_or("none".into()));
            assert!(*reply == wanted || !reply.starts_with("previous"), "read {wanted}, then removed {reply}");
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Apply { map, caller: number, reference, change } => {
                let change = match change.borrow() {
                    Change::Lock { key, lease_ms, .. } => Change::Lock { key, lease_ms, reference: *reference },
                    Change::Unlock { key, .. } => Change::Unlock { key, reference: *reference },
                    change => change,
                };
                self.lead(MapId(*map), caller(*number), change);
            }
            Step::Idle { map, key, reader, change } => {
                let (map, key) = (MapId(*map), [b'k', b'a' + key]);
                let expiry = Expiry { ttl_ms: 0, max_idle_ms: 2_000 };
                self.lead(map, caller(0), Change::Put { key: &key, value: b"d", expiry, mode: PutMode::Set });
                self.now = self.now.plus(1_800);
                let now = self.now();
                self.replicas[*reader].partition.get(map, &key, now);
                self.now = self.now.plus(1_000);
                if key[1] % 4 == 0 {
                    self.begin_snapshot(*reader);
                }
                self.lead(map, caller(0), change.borrow());
                self.lead(map, caller(0), Change::Remove { key: &key });
            }
            Step::Fill { map, from, count, ttl_ms } => {
                for number in *from..from + count {
                    let (key, expiry) = (format!("f{number}"), Expiry::ttl(*ttl_ms));
                    let put = Change::Put { key: key.as_bytes(), value: b"c", expiry, mode: PutMode::Set };
                    self.lead(MapId(*map), caller(0), put);
                }
            }
            Step::Evict { map, policy, count } => self.evict(MapId(*map), *policy, *count),
            Step::Configure { map, settings } => {
                self.log(&[LogCommand::CreateMap { map: MapId(*map), settings: settings.clone() }]);
            }
            Step::Destroy { map } => self.log(&[LogCommand::DestroyMap { map: MapId(*map) }]),
            Step::Layout { map, layout } => {
                self.log(&[LogCommand::SetLayout { map: MapId(*map), layout: *layout }]);
            }
            Step::Read { replica, map, key, contains } => {
                let (now, key) = (self.now.plus(SKEWS_MS[*replica]), [b'k', b'a' + key]);
                let partition = &mut self.replicas[*replica].partition;
                if *contains {
                    partition.contains_key(MapId(*map), &key, now);
                } else {
                    partition.get(MapId(*map), &key, now);
                }
            }
            Step::Forward(ms) => self.now = self.now.plus(*ms),
            Step::Lead(replica) => self.leader = *replica,
            Step::Export(replica) => self.begin_snapshot(*replica),
            Step::Pages { count, bytes } => {
                for _ in 0..*count {
                    self.page(*bytes);
                }
            }
            Step::Check => self.check(),
        }
    }

    fn evict(&mut self, map: MapId, policy: EvictionPolicy, count: usize) {
        let mut keys = KeyList::default();
        for _ in 0..count {
            let (now, random) = (self.now(), &mut self.random);
            let mut next = || {
                *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                *random
            };
            let partition = &self.replicas[self.leader].partition;
            let spares = |key: &[u8]| keys.iter().any(|picked| picked == key);
            let Some(picked) = partition.pick_eviction(map, policy, now, &mut next, &spares).map(<[u8]>::to_vec) else {
                break;
            };
            assert!(keys.push(&picked));
        }
        self.lead(map, caller(0), Change::EvictKeys { keys: keys.as_bytes() });
    }

    fn begin_snapshot(&mut self, exporter: usize) {
        if self.snapshot.is_some() {
            return;
        }
        let partition = &mut self.replicas[exporter].partition;
        let state = partition.logged_state();
        assert!(partition.begin_export());
        self.seeds += 1;
        let exact_read_times = self.exact_read_times;
        let import = Import::new(PartitionSettings { id: ID, hash_seed: self.seeds, exact_read_times });
        self.snapshot = Some(Snapshot { exporter, import, state, log_len: self.log.len() });
    }

    /// Imports the next page. After the last page, replaces a replica.
    fn page(&mut self, bytes: usize) {
        let Some(snapshot) = &mut self.snapshot else { return };
        let mut page = Vec::new();
        let more = self.replicas[snapshot.exporter].partition.export_page(&mut page, bytes);
        snapshot.import.page(&page).unwrap();
        assert_eq!(snapshot.import.is_complete(), !more);
        if more {
            return;
        }
        let Snapshot { exporter, import, state, log_len } = self.snapshot.take().unwrap();
        let layouts = Layouts(self.seeds % 6);
        let partition = import.finish(&layouts).unwrap();
        assert_eq!(text_state(&partition.logged_state()), text_state(&state), "restored, and as it was");
        let mut restored = Replica { partition, layouts };
        for (bytes, said) in &self.log[log_len..] {
            assert_eq!(restored.apply(bytes), *said);
        }
        // Another replica, or the exporter itself.
        let replaced = (exporter + self.seeds as usize) % 3;
        self.replicas[replaced] = restored;
        self.check();
    }

    fn check(&self) {
        let state = self.replicas[0].partition.logged_state();
        for replica in &self.replicas {
            let partition = &replica.partition;
            assert_eq!(text_state(&partition.logged_state()), text_state(&state));
            assert_eq!(partition.next_expiry(), self.replicas[0].partition.next_expiry());
            if !partition.is_exporting() {
                let of_maps = (1..=MAPS).map(|map| partition.statistics(MapId(map)).bytes_owned);
                assert_eq!(partition.bytes(), of_maps.sum::<usize>());
            }
        }
    }
}

/// A state as text, so that differences are readable.
fn text_state(state: &[u8]) -> String {
    state.escape_ascii().to_string()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(200), ..ProptestConfig::default() })]

    #[test]
    fn replicas_of_one_log_say_and_hold_the_same(
        settings in prop::collection::vec(settings(), MAPS as usize),
        exact_read_times in any::<bool>(),
        steps in prop::collection::vec(step(), 0..250),
    ) {
        let mut group = Group::new(&settings, exact_read_times);
        for step in &steps {
            group.step(step);
        }
        group.begin_snapshot(1);
        while group.snapshot.is_some() {
            group.page(300);
        }
        group.check();
        // All entries that can expire do so, in the same order.
        group.now = group.now.plus(20_000);
        for limit in [3, usize::MAX, usize::MAX] {
            group.lead(MapId(1), caller(0), Change::Expire { limit });
        }
        group.check();
    }
}
