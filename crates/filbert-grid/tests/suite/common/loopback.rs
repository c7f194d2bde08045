//! A log within one process. Commands are queued as bytes and applied by other threads. A seed
//! decides the events that a network and an election would cause. Only the agreement of other
//! members is simulated.
#![allow(dead_code, reason = "not every test needs all of it")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "a helper of tests fails its test"
)]

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::thread;
use std::time::Duration;

use filbert_grid::replication::{
    Answers, GroupId, NewMap, Part, RejectedSubmission, Replicator, Role, SubmitError, Term,
};
use filbert_grid::{Clock, Environment, Grid, GridConfig, GridError, MapId, MapSettings, MemberMemory, Millis};

/// The configuration of a loopback log: the seed, and the failures of submissions.
#[derive(Clone, Copy, Debug)]
pub struct Whims {
    pub seed: u64,
    pub groups: u32,
    /// The number of threads that apply entries, each of a different group.
    pub threads: usize,
    /// The maximum number of submissions per entry.
    pub entry_max: u64,
    /// The percentage of submissions that are refused immediately, and the percentage that are
    /// refused later.
    pub refused_percent: u64,
    /// The percentage of submissions with an unknown outcome. Half of them are applied.
    pub unknown_percent: u64,
    /// Whether all entries are stored, see [`Loopback::log`].
    pub keeps_log: bool,
}

impl Default for Whims {
    fn default() -> Self {
        Whims {
            seed: 7,
            groups: 24,
            threads: 2,
            entry_max: 5,
            refused_percent: 0,
            unknown_percent: 0,
            keeps_log: false,
        }
    }
}

/// An applied entry: its stamp, and the commands of its parts.
pub type Entry = (Millis, Vec<Vec<u8>>);

/// The commands of a submission, and their pending answers.
type Submitted = (Vec<u8>, Answers);

#[derive(Default)]
struct State {
    queues: Vec<VecDeque<Submitted>>,
    applying: Vec<bool>,
    terms: Vec<Option<u64>>,
    last_term: u64,
    random: u64,
    paused: bool,
    log: Vec<Entry>,
    last_map: u32,
    dropped: Vec<MapId>,
}

pub struct Loopback {
    state: Mutex<State>,
    changed: Condvar,
    whims: Whims,
    clock: Arc<dyn Clock>,
    /// Initially [`Whims::refused_percent`]. A test may change it.
    refused_percent: AtomicU64,
    /// Members that apply the same entries as followers.
    copies: Mutex<Vec<Weak<Grid>>>,
}

impl State {
    fn draw(&mut self, below: u64) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % below.max(1)
    }

    fn ready(&self) -> Vec<usize> {
        (0..self.queues.len()).filter(|group| !self.applying[*group] && !self.queues[*group].is_empty()).collect()
    }
}

impl Loopback {
    /// Starts a member with a loopback log.
    pub fn start(config: GridConfig, environment: Environment, whims: Whims) -> (Arc<Grid>, Arc<Loopback>) {
        let groups = whims.groups as usize;
        let state = State {
            queues: (0..groups).map(|_| VecDeque::new()).collect(),
            applying: vec![false; groups],
            terms: vec![Some(1); groups],
            last_term: 1,
            random: whims.seed,
            ..State::default()
        };
        let refused_percent = AtomicU64::new(whims.refused_percent);
        let (state, changed) = (Mutex::new(state), Condvar::new());
        let loopback = Arc::new(Loopback {
            state,
            changed,
            whims,
            clock: environment.clock.clone(),
            refused_percent,
            copies: Mutex::default(),
        });
        let memory = Arc::new(MemberMemory::new(config.memory_bytes_max));
        let grid = Grid::replicated(config, environment, memory, loopback.clone()).unwrap();
        for _ in 0..whims.threads {
            let (loopback, grid) = (loopback.clone(), Arc::downgrade(&grid));
            thread::spawn(move || loopback.run(&grid));
        }
        (grid, loopback)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Waits until no submission is in flight.
    pub fn settle(&self) {
        let mut state = self.lock();
        while state.applying.contains(&true) || state.queues.iter().any(|queue| !queue.is_empty()) {
            state = self.changed.wait(state).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }

    /// Sets the percentage of submissions that are refused from now on.
    pub fn refuse(&self, percent: u64) {
        self.refused_percent.store(percent, Ordering::SeqCst);
    }

    /// Adds a follower, which applies all entries from now on. Both members must have created the
    /// same maps in the same order.
    pub fn copy_to(&self, grid: &Arc<Grid>) {
        self.copies.lock().unwrap().push(Arc::downgrade(grid));
    }

    /// Pauses the application of entries until [`Loopback::resume`].
    pub fn pause(&self) {
        self.lock().paused = true;
    }

    pub fn resume(&self) {
        self.lock().paused = false;
        self.changed.notify_all();
    }

    /// Ends the leadership of the member in a group. Queued submissions have an unknown outcome,
    /// and are not applied.
    pub fn depose(&self, grid: &Grid, group: GroupId) {
        let lost = {
            let mut state = self.lock();
            state.terms[group.0 as usize] = None;
            std::mem::take(&mut state.queues[group.0 as usize])
        };
        self.changed.notify_all();
        drop(lost);
        grid.leadership_lost(group, "a test has deposed it");
    }

    /// Ends the lease of a group. The member stays its leader.
    pub fn end_lease(&self, group: GroupId) {
        self.lock().terms[group.0 as usize] = None;
    }

    /// Gives the lease of a group back, in the same term.
    pub fn renew_lease(&self, grid: &Grid, group: GroupId) {
        let mut state = self.lock();
        state.terms[group.0 as usize] = Some(state.last_term);
        drop(state);
        grid.lease_gained(group);
    }

    /// Makes the member the leader of a group again.
    pub fn elect(&self, grid: &Grid, group: GroupId) {
        grid.forget_reads(group);
        grid.leadership_gained(group);
        let mut state = self.lock();
        state.last_term += 1;
        state.terms[group.0 as usize] = Some(state.last_term);
        drop(state);
        grid.lease_gained(group);
    }

    /// The number of queued submissions.
    pub fn queued(&self) -> usize {
        self.lock().queues.iter().map(VecDeque::len).sum()
    }

    /// All applied entries, in an order that is consistent with the order of each group.
    pub fn log(&self) -> Vec<Entry> {
        self.lock().log.clone()
    }

    fn run(&self, grid: &Weak<Grid>) {
        while let Some((group, entry)) = self.next(grid) {
            self.apply(grid, entry);
            self.lock().applying[group] = false;
            self.changed.notify_all();
        }
        // No thread applies entries any more: answers the remaining callers.
        let left: Vec<_> = self.lock().queues.iter_mut().flat_map(std::mem::take).collect();
        drop(left);
        self.changed.notify_all();
    }

    fn next(&self, grid: &Weak<Grid>) -> Option<(usize, Vec<Submitted>)> {
        let mut state = self.lock();
        loop {
            if grid.strong_count() == 0 {
                return None;
            }
            let ready = state.ready();
            if ready.is_empty() || state.paused {
                // Dropping the grid does not notify the condition variable.
                let waited = self.changed.wait_timeout(state, Duration::from_millis(20));
                state = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
                continue;
            }
            let group = ready[state.draw(ready.len() as u64) as usize];
            let count = 1 + state.draw(self.whims.entry_max) as usize;
            let count = count.min(state.queues[group].len());
            let entry = state.queues[group].drain(..count).collect();
            state.applying[group] = true;
            return Some((group, entry));
        }
    }

    fn apply(&self, grid: &Weak<Grid>, submissions: Vec<Submitted>) {
        let Some(grid) = grid.upgrade() else { return };
        let stamp = grid.now();
        let mut taken = Vec::new();
        for (commands, answers) in submissions {
            let (refused, unknown, made) = {
                let mut state = self.lock();
                (state.draw(100), state.draw(100), state.draw(2) == 0)
            };
            if refused < self.refused_percent.load(Ordering::SeqCst) {
                answers.refuse(overloaded(GroupId(0)));
                continue;
            }
            let is_unknown = unknown < self.whims.unknown_percent;
            if is_unknown && !made {
                continue;
            }
            let touches = grid.touches_for(&commands, stamp).unwrap();
            taken.push((touches, commands, (!is_unknown).then_some(answers)));
        }
        let copies = self.copies.lock().unwrap().clone();
        for copy in copies.iter().filter_map(Weak::upgrade) {
            let bytes = taken.iter().flat_map(|(touches, commands, _)| touches.iter().chain([commands]));
            let mut parts: Vec<_> = bytes.map(|commands| Part { commands, answers: None }).collect();
            copy.apply_batch(stamp, Role::FOLLOWER, &mut parts).unwrap();
        }
        let mut parts = Vec::new();
        for (touches, commands, answers) in &mut taken {
            if let Some(touches) = touches {
                parts.push(Part { commands: touches, answers: None });
            }
            parts.push(Part { commands, answers: answers.take() });
        }
        if self.whims.keeps_log {
            let commands = parts.iter().map(|part| part.commands.to_vec()).collect();
            self.lock().log.push((stamp, commands));
        }
        grid.apply_batch(stamp, Role::LEADER, &mut parts).unwrap();
    }
}

fn overloaded(group: GroupId) -> SubmitError {
    SubmitError::Overloaded { group, limit_bytes: 0 }
}

impl Replicator for Loopback {
    fn groups(&self) -> u32 {
        self.whims.groups
    }

    fn submit(&self, group: GroupId, commands: Vec<u8>, answers: Answers) -> Result<(), Box<RejectedSubmission>> {
        let mut state = self.lock();
        if state.terms[group.0 as usize].is_none() {
            return Err(Box::new(RejectedSubmission { answers, why: not_leader(group) }));
        }
        if state.draw(100) < self.refused_percent.load(Ordering::SeqCst) {
            return Err(Box::new(RejectedSubmission { answers, why: overloaded(group) }));
        }
        state.queues[group.0 as usize].push_back((commands, answers));
        drop(state);
        self.changed.notify_all();
        Ok(())
    }

    fn lease(&self, group: GroupId) -> Result<Term, SubmitError> {
        self.lock().terms[group.0 as usize].map(Term).ok_or_else(|| not_leader(group))
    }

    fn read_time(&self, _: GroupId) -> Millis {
        self.clock.now()
    }

    fn create_map(&self, _: NewMap<'_>, settings: MapSettings) -> Result<(MapId, MapSettings), GridError> {
        let mut state = self.lock();
        if state.draw(100) < self.refused_percent.load(Ordering::SeqCst) {
            return Err(overloaded(GroupId(0)).into());
        }
        state.last_map += 1;
        Ok((MapId(state.last_map), settings))
    }

    fn knows_map(&self, map: MapId) -> bool {
        !self.lock().dropped.contains(&map)
    }

    fn drop_map(&self, map: MapId) -> Result<(), GridError> {
        self.lock().dropped.push(map);
        Ok(())
    }
}

fn not_leader(group: GroupId) -> SubmitError {
    SubmitError::NotLeader { group, hint: "nobody leads".to_owned() }
}

/// Whether the error says that nothing was changed and that the request may be sent again.
pub fn is_refusal(error: &GridError) -> bool {
    matches!(error, GridError::Submit(SubmitError::NotLeader { .. } | SubmitError::Overloaded { .. }))
}
