//! Listeners at all members, as clients register them: the events that they receive while
//! leadership is handed over, and when a leader dies.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::JoinHandle;

use crate::common::data::{Made, key, make};
use crate::common::{join_all, listen, listen_all, stop, stop_all, until, within};
use filbert_grid::{EntryEvent, EntrySink, EventKinds, GridConfig, ListenerSpec};
use filbert_member::{Member, MemberSettings};
use parking_lot::Mutex;

/// The number of events of each key that listeners at any member have received.
#[derive(Default)]
struct Heard(Mutex<BTreeMap<Vec<u8>, u32>>);

impl EntrySink for Heard {
    fn deliver(&self, event: &EntryEvent<'_>) {
        let key = event.key.unwrap_or_default().to_vec();
        *self.0.lock().entry(key).or_default() += 1;
    }
}

impl Heard {
    fn of(&self, n: u32) -> u32 {
        self.0.lock().get(&key(n)).copied().unwrap_or_default()
    }

    async fn listen_at(self: &Arc<Self>, member: &Member) {
        until("the map is known", || member.grid().existing_map("m").is_some()).await;
        let map = member.grid().existing_map("m").unwrap();
        let kinds = EventKinds::ALL;
        let spec = ListenerSpec { key: None, filter: None, include_value: false, kinds, connection: None };
        map.add_listener(spec, self.clone()).unwrap();
    }
}

const THREADS: u32 = 4;

/// Threads that put keys through the members that stay, each key once, until they are stopped.
struct Writers {
    stop: Arc<AtomicBool>,
    made: Arc<Mutex<Vec<(u32, Made)>>>,
    next: Arc<AtomicU32>,
    threads: Vec<JoinHandle<()>>,
}

impl Writers {
    fn start(members: &Arc<Vec<Member>>) -> Self {
        let (stop, made, next) =
            (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<_>>>::default(), Arc::<AtomicU32>::default());
        let thread = |_| {
            let (members, stop, made, next) = (members.clone(), stop.clone(), made.clone(), next.clone());
            std::thread::spawn(move || {
                let all: Vec<&Member> = members.iter().collect();
                while !stop.load(Ordering::SeqCst) {
                    let n = next.fetch_add(1, Ordering::SeqCst);
                    let became = make(&all, n);
                    made.lock().push((n, became));
                }
            })
        };
        let threads = (0..THREADS).map(thread).collect();
        Writers { stop, made, next, threads }
    }

    /// A lower bound of the keys that are not complete at this time.
    fn first_left(&self) -> u32 {
        self.next.load(Ordering::SeqCst).saturating_sub(THREADS)
    }

    fn count(&self) -> usize {
        self.made.lock().len()
    }

    /// Stops the threads. Returns the outcome of each key.
    async fn end(self) -> Vec<(u32, Made)> {
        self.stop.store(true, Ordering::SeqCst);
        for thread in self.threads {
            tokio::task::block_in_place(|| thread.join()).unwrap();
        }
        std::mem::take(&mut *self.made.lock())
    }
}

async fn start(members: usize) -> (Vec<Member>, Vec<String>) {
    let (starting, addresses) = listen_all(members, &MemberSettings::default(), &GridConfig::default()).await;
    let members = join_all(starting, &addresses).await;
    until("each group has its voters and is applied", || {
        crate::common::data::is_whole(&members[0], members.len().min(3))
    })
    .await;
    tokio::task::block_in_place(|| members[0].grid().map("m").map(|_| ())).unwrap();
    // Leadership is handed only to members that accept clients.
    members.iter().for_each(Member::serve);
    (members, addresses)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn members_that_come_and_go_in_order_lose_no_event_and_tell_none_twice() {
    let (members, addresses) = start(3).await;
    let members = Arc::new(members);
    let heard = Arc::<Heard>::default();
    for member in members.iter() {
        heard.listen_at(member).await;
    }
    let writers = Writers::start(&members);
    let mut unheard = Vec::new();
    for _ in 0..2 {
        let from = writers.first_left();
        let starting = listen(MemberSettings::default(), GridConfig::default()).await.unwrap();
        let other = crate::common::join(starting, &addresses).await;
        heard.listen_at(&other).await;
        // The member may have led before the listener was registered there.
        unheard.push(from..writers.first_left() + THREADS);
        other.serve();
        until("it leads", || other.groups().iter().any(|status| status.serves.is_some())).await;
        let count = writers.count();
        until("changes are made under it", || writers.count() > count + 500).await;
        within("it leaves", other.leave()).await.unwrap();
        stop(other).await;
    }
    let made = writers.end().await;
    println!("{} changes", made.len());
    let is_wrong = |(n, became, times): &(u32, Made, u32)| {
        let may_be_missed = *became == Made::Unknown || unheard.iter().any(|keys| keys.contains(n));
        *times != 1 && (*times > 1 || !may_be_missed)
    };
    let all = made.iter().map(|(n, became)| (*n, *became, heard.of(*n)));
    let wrong: Vec<_> = all.filter(is_wrong).collect();
    assert_eq!(wrong, [], "keys, what became of them, and how often listeners heard of them");
    stop_all(Arc::into_inner(members).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn changes_in_flight_to_a_leader_that_dies_are_reported_if_they_are_applied() {
    let (mut members, _) = start(3).await;
    let heard = Arc::<Heard>::default();
    for member in &members {
        heard.listen_at(member).await;
    }
    let dies = members.remove(0);
    let members = Arc::new(members);
    let writers = Writers::start(&members);
    until("changes are made", || writers.count() > 500).await;
    stop(dies).await;
    let count = writers.count();
    until("changes go on", || writers.count() > count + 2_000).await;
    let made = writers.end().await;
    let all: Vec<&Member> = members.iter().collect();
    let last = made.iter().map(|(n, _)| *n).max().unwrap();
    let there = crate::common::data::found(&all, 0..last + 1).await;
    let unknown = made.iter().filter(|(_, became)| *became == Made::Unknown).count();
    println!("{} changes, the outcome of {unknown} was not known", made.len());
    let wrong: Vec<_> = made
        .iter()
        .map(|(n, became)| (*n, *became, there.contains(n), heard.of(*n)))
        .filter(|(_, _, is_there, times)| if *is_there { !(1..=2).contains(times) } else { *times > 0 })
        .collect();
    assert_eq!(wrong, [], "keys, what became of them, whether they are there, and how often listeners heard of them");
    stop_all(Arc::into_inner(members).unwrap()).await;
}
