//! Common helpers of the grid's tests: a member with a manual clock, and short functions for reads
//! and writes.
#![allow(dead_code, reason = "not every test file needs all of it")]
#![allow(clippy::unwrap_used, clippy::panic, unreachable_pub, reason = "a helper of tests fails its test")]

pub mod loopback;

use std::cell::RefCell;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use filbert_grid::{
    Caller, Change, ClientConnection, ClientInfo, Clock, EntryEvent, Environment, Expiry, Grid, GridConfig, GridError,
    Map, MapConfig, Millis, OwnedChange, PutMode, Refused, Reply,
};
use loopback::{Loopback, Whims};
use uuid::Uuid;

/// Whether the members of this test binary send their changes through a log, see
/// the program `over_loopback`.
const REPLICATED: bool = matches!(env!("CARGO_CRATE_NAME").as_bytes(), b"over_loopback");

thread_local! {
    /// The logs of the members that this thread's test has created.
    static LOOPBACKS: RefCell<Vec<Weak<Loopback>>> = const { RefCell::new(Vec::new()) };
}

/// Waits until all changes of this thread are complete. With a log, their consequences (evictions,
/// waiters) are applied a short time later.
pub fn settle() {
    let loopbacks: Vec<_> = LOOPBACKS.with_borrow(|all| all.iter().filter_map(Weak::upgrade).collect());
    loopbacks.iter().for_each(|loopback| loopback.settle());
}

/// A clock that stands still until the test changes it, in either direction.
pub struct ManualClock(AtomicI64);

impl Default for ManualClock {
    fn default() -> Self {
        ManualClock(AtomicI64::new(1_750_000_000_000))
    }
}

impl ManualClock {
    pub fn advance(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Millis {
        Millis(self.0.load(Ordering::SeqCst))
    }
}

pub struct Member {
    pub grid: Arc<Grid>,
    pub clock: Arc<ManualClock>,
}

impl Member {
    /// Runs a sweep, and waits for its consequences.
    pub fn run_expiry(&self) -> Millis {
        let next = self.grid.run_expiry();
        settle();
        next
    }

    pub fn destroy_map(&self, name: &str) -> bool {
        let destroyed = self.grid.destroy_map(name).unwrap();
        settle();
        destroyed
    }
}

pub fn member() -> Member {
    member_with(GridConfig::default())
}

pub fn member_with(config: GridConfig) -> Member {
    let clock = Arc::new(ManualClock::default());
    let environment = Environment { clock: clock.clone(), random_seed: 42 };
    if !REPLICATED {
        return Member { grid: Grid::new(config, environment).unwrap(), clock };
    }
    let (grid, loopback) = Loopback::start(config, environment, Whims::default());
    LOOPBACKS.with_borrow_mut(|all| all.push(Arc::downgrade(&loopback)));
    Member { grid, clock }
}

/// A member with one configured map, named `m`.
pub fn member_with_map(map: MapConfig) -> Member {
    let mut config = GridConfig::default();
    config.maps.insert("m", map);
    member_with(config)
}

pub fn caller(client: u128, thread: i64) -> Caller {
    Caller { client: Uuid::from_u128(client), thread }
}

pub fn client(member: &Member, client: u128) -> ClientConnection {
    member.grid.connect(ClientInfo {
        uuid: Uuid::from_u128(client),
        kind: "TEST".to_owned(),
        version: "1".to_owned(),
        name: format!("client {client}"),
        labels: Vec::new(),
        address: None,
    })
}

/// The bytes of a key in the format of clients: a header, then the payload, which determines the
/// partition.
pub fn key(n: u32) -> Vec<u8> {
    let mut blob = vec![0, 0, 0, 0, 0xff, 0xff, 0xff, 0xf9];
    blob.extend_from_slice(&n.to_be_bytes());
    blob
}

/// A reply, without borrowed data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Done,
    Flag(bool),
    Previous(Option<Vec<u8>>),
    NotOwner,
    Locked,
    Error(GridError),
}

pub fn said(reply: Reply<'_>) -> Said {
    match reply {
        Reply::Done => Said::Done,
        Reply::Flag(flag) => Said::Flag(flag),
        Reply::Previous(value) => Said::Previous(value.map(|value| value.to_vec())),
        Reply::NotOwner { .. } => Said::NotOwner,
        other => panic!("unexpected reply {other:?}"),
    }
}

pub fn change(map: &Map, caller: Caller, change: Change<'_>) -> Said {
    let partition = map.partition_of(change.key().unwrap());
    let made = map.change(partition, caller, change, said);
    settle();
    match made {
        Ok(said) => said,
        Err(Refused::Locked { .. }) => Said::Locked,
        Err(Refused::Error(error)) => Said::Error(error),
    }
}

pub fn put(map: &Map, caller: Caller, n: u32, value: &[u8]) -> Said {
    change(map, caller, Change::Put { key: &key(n), value, expiry: Expiry::DEFAULT, mode: PutMode::Put })
}

pub fn put_ttl(map: &Map, n: u32, value: &[u8], ttl_ms: i64) -> Said {
    change(map, caller(1, 1), Change::Put { key: &key(n), value, expiry: Expiry::ttl(ttl_ms), mode: PutMode::Put })
}

pub fn get(map: &Map, n: u32) -> Option<Vec<u8>> {
    let key = key(n);
    map.get(map.partition_of(&key), &key, |value| value.map(<[u8]>::to_vec))
}

pub fn lock(map: &Map, caller: Caller, n: u32) -> Said {
    change(map, caller, Change::Lock { key: &key(n), lease_ms: None, reference: 0 })
}

pub fn unlock(map: &Map, caller: Caller, n: u32) -> Said {
    change(map, caller, Change::Unlock { key: &key(n), reference: 0 })
}

/// The answers of parked changes, in order of arrival.
pub type Answers = Arc<Mutex<Vec<(u32, Said)>>>;

pub fn answers(answers: &Answers) -> Vec<(u32, Said)> {
    settle();
    answers.lock().unwrap().clone()
}

/// Parks a change. `name` identifies its answer.
pub fn park(map: &Map, caller: Caller, change: OwnedChange, deadline: Option<Millis>, to: &Answers, name: u32) {
    let to = to.clone();
    let partition = map.partition_of(change.key().unwrap());
    map.change_when_free(
        partition,
        caller,
        change,
        deadline,
        Box::new(move |answer| {
            let answer = answer.map_or_else(Said::Error, said);
            to.lock().unwrap().push((name, answer));
        }),
    );
    settle();
}

pub fn owned_put(n: u32, value: &[u8]) -> OwnedChange {
    Change::Put { key: &key(n), value, expiry: Expiry::DEFAULT, mode: PutMode::Put }.to_owned()
}

pub fn owned_lock(n: u32) -> OwnedChange {
    Change::Lock { key: &key(n), lease_ms: None, reference: 0 }.to_owned()
}

/// Events as text, in the order of their delivery.
#[derive(Clone, Default)]
pub struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    pub fn sink(&self) -> Arc<dyn filbert_grid::EntrySink> {
        let heard = self.0.clone();
        Arc::new(move |event: &EntryEvent<'_>| {
            let text = |bytes: Option<&[u8]>| bytes.map_or("-".to_owned(), |b| String::from_utf8_lossy(b).into_owned());
            let key = event.key.map_or("*".to_owned(), |key| {
                key.last_chunk::<4>().map_or("?".to_owned(), |n| u32::from_be_bytes(*n).to_string())
            });
            let line =
                format!("{:?} {key} {}>{} {}", event.kind, text(event.old_value), text(event.value), event.affected);
            heard.lock().unwrap().push(line);
        })
    }

    pub fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}
