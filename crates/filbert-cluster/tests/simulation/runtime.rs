//! A simulated runtime: time, randomness and the order of tasks are derived from a seed. Each task
//! belongs to a node. Each node has a clock with its own rate, and can be paused, or killed with
//! all of its tasks.

use std::any::Any;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::Future;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use openraft::{AsyncRuntime, OptionalSend, TokioRuntime};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::oneshot;

type BoxTask = Pin<Box<dyn Future<Output = ()> + Send>>;
pub type NodeId = usize;
/// The node of the test itself. Its clock is exact, and it is never stopped.
pub const TEST: NodeId = 0;
const START_NS: u64 = 86_400_000_000_000;

struct Node {
    /// The nanoseconds that its clock advances per second.
    rate: u64,
    /// The time that its clock has advanced while the machine was suspended.
    ahead_ns: u64,
    paused: bool,
    dead: bool,
    held: Vec<u64>,
}

struct State {
    now: u64,
    tasks: BTreeMap<u64, (NodeId, Option<BoxTask>)>,
    queue: VecDeque<u64>,
    queued: BTreeSet<u64>,
    timers: BTreeMap<(u64, u64), Waker>,
    nodes: Vec<Node>,
    current: NodeId,
    next: u64,
    seed: u64,
    trace: u64,
}

struct World(Mutex<State>);

thread_local! {
    static CURRENT: RefCell<Option<Arc<World>>> = const { RefCell::new(None) };
}

fn world() -> Arc<World> {
    CURRENT.with(|world| world.borrow().clone()).expect("within a simulation")
}

fn with<T>(change: impl FnOnce(&mut State) -> T) -> T {
    change(&mut world().0.lock().unwrap())
}

pub fn mix(value: u64) -> u64 {
    let z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

struct TaskWaker(u64, Weak<World>);

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        if let Some(world) = self.1.upgrade() {
            world.0.lock().unwrap().enqueue(self.0);
        }
    }
}

impl State {
    fn enqueue(&mut self, task: u64) {
        if self.tasks.contains_key(&task) && self.queued.insert(task) {
            self.queue.push_back(task);
        }
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn add(&mut self, node: NodeId, task: BoxTask) {
        if self.nodes[node].dead {
            return;
        }
        let id = self.number();
        self.tasks.insert(id, (node, Some(task)));
        self.enqueue(id);
    }

    fn local(&self, node: NodeId) -> u64 {
        let Node { rate, ahead_ns, .. } = self.nodes[node];
        START_NS + (u128::from(self.now) * u128::from(rate) / 1_000_000_000) as u64 + ahead_ns
    }
}

/// Adds a node. Its clock advances by `rate` nanoseconds per second.
pub fn add_node(rate: u64) -> NodeId {
    with(|state| {
        state.nodes.push(Node { rate, ahead_ns: 0, paused: false, dead: false, held: Vec::new() });
        state.nodes.len() - 1
    })
}

pub fn spawn_on<T: Send + 'static>(node: NodeId, future: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    let (sender, receiver) = oneshot::channel();
    let task = Box::pin(async move {
        let _gone = sender.send(future.await);
    });
    with(|state| state.add(node, task));
    JoinHandle(receiver)
}

/// Suspends a node: only its clock advances by `duration`. Its sleeping tasks continue to sleep.
pub fn suspend(node: NodeId, duration: Duration) {
    with(|state| state.nodes[node].ahead_ns += duration.as_nanos() as u64);
}

/// The greatest lead of a node's clock over true time because of suspensions, in milliseconds.
pub fn ahead_ms() -> u64 {
    with(|state| state.nodes.iter().map(|node| node.ahead_ns).max().unwrap_or_default() / 1_000_000)
}

pub fn pause(node: NodeId) {
    with(|state| state.nodes[node].paused = true);
}

pub fn resume(node: NodeId) {
    with(|state| {
        state.nodes[node].paused = false;
        let held = std::mem::take(&mut state.nodes[node].held);
        held.into_iter().for_each(|task| state.enqueue(task));
    });
}

/// Kills a node: drops all of its tasks.
pub fn kill(node: NodeId) {
    let ended: Vec<_> = with(|state| {
        state.nodes[node].dead = true;
        let ids: Vec<u64> = state.tasks.iter().filter(|(_, task)| task.0 == node).map(|(id, _)| *id).collect();
        ids.iter().filter_map(|id| state.tasks.remove(id)).collect()
    });
    drop(ended);
}

/// True time, in nanoseconds since the start of the simulation.
pub fn now_ns() -> u64 {
    with(|state| state.now)
}

/// The time of the current node, in milliseconds.
pub fn local_ms() -> i64 {
    with(|state| (state.local(state.current) / 1_000_000) as i64)
}

/// Runs a simulation. Returns the result, and a hash of all steps.
pub fn run<T: Send + 'static>(seed: u64, main: impl Future<Output = T> + Send + 'static) -> (T, u64) {
    let node = Node { rate: 1_000_000_000, ahead_ns: 0, paused: false, dead: false, held: Vec::new() };
    let state = State {
        now: 0,
        tasks: BTreeMap::new(),
        queue: VecDeque::new(),
        queued: BTreeSet::new(),
        timers: BTreeMap::new(),
        nodes: vec![node],
        current: TEST,
        next: 0,
        seed,
        trace: seed,
    };
    let world = Arc::new(World(Mutex::new(state)));
    CURRENT.with(|current| *current.borrow_mut() = Some(Arc::clone(&world)));
    let mut main = spawn_on(TEST, main);
    let result = loop {
        if let Ok(result) = main.0.try_recv() {
            break result;
        }
        step(&world);
    };
    let trace = world.0.lock().unwrap().trace;
    loop {
        let tasks = std::mem::take(&mut world.0.lock().unwrap().tasks);
        if tasks.is_empty() {
            break;
        }
        drop(tasks);
    }
    CURRENT.with(|current| current.borrow_mut().take());
    (result, trace)
}

fn step(world: &Arc<World>) {
    let mut state = world.0.lock().unwrap();
    let Some(id) = state.queue.pop_front() else {
        let ((due, _), waker) = state.timers.pop_first().expect("nothing runs, and nothing is waited for");
        state.now = state.now.max(due);
        drop(state);
        return waker.wake();
    };
    state.queued.remove(&id);
    let Some(node) = state.tasks.get(&id).map(|task| task.0) else { return };
    if state.nodes[node].paused {
        return state.nodes[node].held.push(id);
    }
    let Some(mut task) = state.tasks.get_mut(&id).and_then(|task| task.1.take()) else { return };
    state.current = node;
    state.trace = mix(state.trace ^ mix(id) ^ state.now.rotate_left(17));
    drop(state);
    let waker = Waker::from(Arc::new(TaskWaker(id, Arc::downgrade(world))));
    let polled = task.as_mut().poll(&mut Context::from_waker(&waker));
    let mut state = world.0.lock().unwrap();
    state.current = TEST;
    let gone = if polled.is_ready() {
        state.tasks.remove(&id);
        Some(task)
    } else if let Some(slot) = state.tasks.get_mut(&id) {
        slot.1 = Some(task);
        None
    } else {
        Some(task)
    };
    drop(state);
    drop(gone);
}

#[derive(Debug)]
pub struct Sim;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SimInstant(u64);

impl Add<Duration> for SimInstant {
    type Output = Self;
    fn add(self, duration: Duration) -> Self {
        SimInstant(self.0 + duration.as_nanos() as u64)
    }
}

impl AddAssign<Duration> for SimInstant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for SimInstant {
    type Output = Self;
    fn sub(self, duration: Duration) -> Self {
        SimInstant(self.0.saturating_sub(duration.as_nanos() as u64))
    }
}

impl SubAssign<Duration> for SimInstant {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

impl Sub<SimInstant> for SimInstant {
    type Output = Duration;
    fn sub(self, earlier: SimInstant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl openraft::Instant for SimInstant {
    fn now() -> Self {
        with(|state| SimInstant(state.local(state.current)))
    }
}

pub struct Sleep {
    due: u64,
    seq: u64,
    world: Weak<World>,
}

/// Sleeps until an instant of the current node's clock.
fn sleep_until(deadline: SimInstant) -> Sleep {
    let world = world();
    let mut state = world.0.lock().unwrap();
    let Node { rate, ahead_ns, .. } = state.nodes[state.current];
    let since = u128::from(deadline.0.saturating_sub(START_NS + ahead_ns));
    let due = (since * 1_000_000_000).div_ceil(u128::from(rate)) as u64;
    let seq = state.number();
    drop(state);
    Sleep { due, seq, world: Arc::downgrade(&world) }
}

impl Future for Sleep {
    type Output = ();
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        with(|state| {
            if state.now >= self.due {
                return Poll::Ready(());
            }
            state.timers.insert((self.due, self.seq), cx.waker().clone());
            Poll::Pending
        })
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(world) = self.world.upgrade() {
            world.0.lock().unwrap().timers.remove(&(self.due, self.seq));
        }
    }
}

pub struct Timeout<T>(Pin<Box<T>>, Sleep);

impl<T: Future> Future for Timeout<T> {
    type Output = Result<T::Output, Elapsed>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Poll::Ready(output) = self.0.as_mut().poll(cx) {
            return Poll::Ready(Ok(output));
        }
        Pin::new(&mut self.1).poll(cx).map(|()| Err(Elapsed))
    }
}

#[derive(Debug)]
pub struct Elapsed;

impl std::fmt::Display for Elapsed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("time is over")
    }
}

pub struct JoinHandle<T>(oneshot::Receiver<T>);

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, Elapsed>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|result| result.map_err(|_| Elapsed))
    }
}

impl AsyncRuntime for Sim {
    type JoinError = Elapsed;
    type JoinHandle<T: OptionalSend + 'static> = JoinHandle<T>;
    type Sleep = Sleep;
    type Instant = SimInstant;
    type TimeoutError = Elapsed;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = Timeout<T>;
    type ThreadLocalRng = StdRng;
    type Mpsc = <TokioRuntime as AsyncRuntime>::Mpsc;
    type Watch = openraft_rt_sim::SimWatch;
    type Oneshot = <TokioRuntime as AsyncRuntime>::Oneshot;
    type Mutex<T: OptionalSend + 'static> = <TokioRuntime as AsyncRuntime>::Mutex<T>;

    fn spawn<T>(future: T) -> JoinHandle<T::Output>
    where
        T: Future + OptionalSend + 'static,
        T::Output: OptionalSend + 'static,
    {
        spawn_on(with(|state| state.current), future)
    }

    fn sleep(duration: Duration) -> Sleep {
        sleep_until(<SimInstant as openraft::Instant>::now() + duration)
    }

    fn sleep_until(deadline: SimInstant) -> Sleep {
        sleep_until(deadline)
    }

    fn timeout<R, F: Future<Output = R> + OptionalSend>(duration: Duration, future: F) -> Timeout<F> {
        Timeout(Box::pin(future), Self::sleep(duration))
    }

    fn timeout_at<R, F: Future<Output = R> + OptionalSend>(deadline: SimInstant, future: F) -> Timeout<F> {
        Timeout(Box::pin(future), sleep_until(deadline))
    }

    fn is_panic(_: &Elapsed) -> bool {
        false
    }

    fn thread_rng() -> StdRng {
        let seed = with(|state| mix(state.seed ^ mix(state.number())));
        StdRng::seed_from_u64(seed)
    }

    fn new(_: usize) -> Self {
        Sim
    }

    fn block_on<F: Future<Output = T>, T>(&mut self, _: F) -> T {
        let _: &dyn Any = self;
        unreachable!("simulations run by `run`")
    }
}

/// Runs a function with a node's clock.
pub fn on<T>(node: NodeId, look: impl FnOnce() -> T) -> T {
    let before = with(|state| std::mem::replace(&mut state.current, node));
    let seen = look();
    with(|state| state.current = before);
    seen
}
