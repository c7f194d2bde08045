//! A simulated network between members that delays, reorders, drops and repeats messages, and has
//! cuts in one direction or in both.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use filbert_cluster::{BoxFuture, Lane, MemberId, Replicas, Transport, TransportError};
use openraft::AsyncRuntime;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::oneshot;

use crate::runtime::{NodeId, Sim, TEST, now_ns, spawn_on};

pub struct State {
    pub members: BTreeMap<MemberId, (NodeId, Arc<Replicas<Sim>>)>,
    /// The directions in which all messages are lost.
    pub cuts: BTreeSet<(MemberId, MemberId)>,
    /// The directions in which all messages of a lane are lost.
    pub lane_cuts: BTreeSet<(MemberId, MemberId, Lane)>,
    /// The length and the interval of bursts in which all messages are lost, in milliseconds.
    pub bursts_ms: Option<(u64, u64)>,
    /// A member, a lane, and the additional delay of the member's messages of the lane, in
    /// microseconds.
    pub slow: Option<(MemberId, Lane, u64)>,
    /// Planted defect: members acknowledge the times in requests, and do not keep them.
    pub forgets_times: bool,
    pub delay_us: (u64, u64),
    /// In thousandths. Also for `repeats`.
    pub drops: u32,
    pub repeats: u32,
    pub reorders: bool,
    /// The number of requests of each lane so far.
    pub requests: BTreeMap<Lane, u64>,
    last: BTreeMap<(MemberId, MemberId, Lane), u64>,
    random: StdRng,
}

#[derive(Clone)]
pub struct Network(pub Arc<Mutex<State>>);

impl Network {
    pub fn new(seed: u64) -> Self {
        Network(Arc::new(Mutex::new(State {
            members: BTreeMap::new(),
            cuts: BTreeSet::new(),
            lane_cuts: BTreeSet::new(),
            bursts_ms: None,
            slow: None,
            forgets_times: false,
            delay_us: (100, 2_000),
            drops: 0,
            repeats: 0,
            reorders: false,
            requests: BTreeMap::new(),
            last: BTreeMap::new(),
            random: StdRng::seed_from_u64(seed),
        })))
    }

    pub fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.lock().unwrap());
    }

    /// Cuts both directions between two sides.
    pub fn cut(&self, one: &[MemberId], other: &[MemberId]) {
        self.set(|state| {
            for a in one {
                for b in other {
                    state.cuts.extend([(*a, *b), (*b, *a)]);
                }
            }
        });
    }

    /// Removes all cuts and faults.
    pub fn heal(&self) {
        self.set(|state| {
            state.cuts.clear();
            state.lane_cuts.clear();
            (state.bursts_ms, state.slow) = (None, None);
            (state.drops, state.repeats, state.reorders, state.delay_us) = (0, 0, false, (100, 2_000));
        });
    }

    /// The delay of a message. `None` if it is lost.
    fn delay(&self, from: MemberId, to: MemberId, lane: Lane) -> Option<Duration> {
        let mut state = self.0.lock().unwrap();
        let (least, most) = state.delay_us;
        let mut delay = state.random.random_range(least..=most) * 1_000;
        if let Some((_, _, more_us)) = state.slow.filter(|slow| (slow.0 == from || slow.0 == to) && slow.1 == lane) {
            delay += more_us * 1_000;
        }
        let now = now_ns();
        let is_lost = state.random.random_range(0..1_000) < state.drops
            || state.cuts.contains(&(from, to))
            || state.lane_cuts.contains(&(from, to, lane))
            || state.bursts_ms.is_some_and(|(lasts, every)| now / 1_000_000 % every < lasts);
        let mut at = now + delay;
        if !state.reorders {
            let last = state.last.entry((from, to, lane)).or_default();
            at = at.max(*last);
            *last = at;
        }
        (!is_lost).then(|| Duration::from_nanos(at - now))
    }
}

/// The network endpoint of a member.
pub struct End {
    pub network: Network,
    pub from: MemberId,
}

impl Transport for End {
    fn call(&self, to: MemberId, lane: Lane, request: Bytes) -> BoxFuture<Result<Bytes, TransportError>> {
        let (network, from) = (self.network.clone(), self.from);
        let repeats = {
            let mut state = network.0.lock().unwrap();
            *state.requests.entry(lane).or_default() += 1;
            let often = state.repeats;
            1 + u32::from(state.random.random_range(0..1_000) < often)
        };
        let forgets = network.0.lock().unwrap().forgets_times;
        let (request, time) = if forgets { without_time(&request) } else { (request, None) };
        let (sender, receiver) = oneshot::channel();
        let sender = Arc::new(Mutex::new(Some(sender)));
        for _ in 0..repeats {
            let Some(delay) = network.delay(from, to, lane) else { continue };
            let (network, request, sender) = (network.clone(), request.clone(), Arc::clone(&sender));
            drop(spawn_on(TEST, async move {
                Sim::sleep(delay).await;
                let member = network.0.lock().unwrap().members.get(&to).cloned();
                let Some((node, replicas)) = member else { return };
                let answer = spawn_on(node, async move { replicas.answer(request).await }).await;
                let Some(back) = network.delay(to, from, lane) else { return };
                Sim::sleep(back).await;
                let Some(sender) = sender.lock().unwrap().take() else { return };
                let _gone = match answer {
                    Ok(Ok(answer)) => sender.send(Ok(with_time(answer, time))),
                    Ok(Err(_)) => sender.send(Err(TransportError::Broken(to))),
                    Err(_) => return,
                };
            }));
        }
        Box::pin(async move {
            match receiver.await {
                Ok(answer) => answer,
                Err(_) => std::future::pending().await,
            }
        })
    }
}

/// The offset of the sender's time in a request, after version, member, group and epoch. The kind
/// follows. See `wire/messages.rs`.
const REQUEST_TIME: usize = 21;
const APPEND: u8 = 1;

/// Removes the time from a request. Returns the time if the request is an append.
fn without_time(request: &Bytes) -> (Bytes, Option<[u8; 8]>) {
    let mut bytes = request.to_vec();
    let field = &mut bytes[REQUEST_TIME..REQUEST_TIME + 8];
    let time = field.try_into().unwrap();
    field.copy_from_slice(&i64::MIN.to_le_bytes());
    let is_append = bytes[REQUEST_TIME + 8] == APPEND;
    (bytes.into(), is_append.then_some(time))
}

/// An answer that claims to know a time.
fn with_time(answer: Bytes, time: Option<[u8; 8]>) -> Bytes {
    let Some(time) = time else { return answer };
    let mut bytes = answer.to_vec();
    bytes[1..9].copy_from_slice(&time);
    bytes.into()
}
