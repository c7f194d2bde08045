//! Work that waits for its cancellation.
//!
//! It is kept here, not in the handle of its statement: dropping a [`Running`] has no effect, so
//! that a door that forgets to cancel is noticed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use filbert_grid::query::Running;
use parking_lot::Mutex;

/// The end of waiting work: a call of a statement's or a page's reply.
type Job = Box<dyn FnOnce() + Send>;

/// The statements of an engine that hang.
#[derive(Default)]
pub(crate) struct Hanging {
    statements: Mutex<Statements>,
    /// The number of queries of the map API that hang.
    queries: AtomicUsize,
}

#[derive(Default)]
struct Statements {
    started: usize,
    waiting: BTreeMap<usize, Job>,
    cancelled: BTreeSet<usize>,
}

impl Hanging {
    /// Registers a statement that will hang.
    pub(crate) fn start(self: &Arc<Self>) -> Hang {
        let mut statements = self.statements.lock();
        statements.started += 1;
        Hang { number: statements.started, hanging: self.clone() }
    }

    /// The number of statements, pages and queries that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.statements.lock().waiting.len() + self.queries.load(Ordering::SeqCst)
    }

    /// The number of statements that were cancelled.
    pub(crate) fn cancelled(&self) -> usize {
        self.statements.lock().cancelled.len()
    }

    /// Blocks a query of the map API until it is over.
    pub(crate) fn wait_until(&self, is_over: impl Fn() -> bool) {
        self.queries.fetch_add(1, Ordering::SeqCst);
        while !is_over() {
            thread::yield_now();
        }
        self.queries.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A statement that hangs, or that has rows which hang.
#[derive(Clone)]
pub(crate) struct Hang {
    number: usize,
    hanging: Arc<Hanging>,
}

impl Hang {
    /// The handle of the statement.
    pub(crate) fn running(&self) -> Running {
        let hang = self.clone();
        Running::new(move || hang.cancel())
    }

    /// Runs `job` when the statement is cancelled, on the thread that cancels it; immediately if it
    /// was cancelled before.
    pub(crate) fn wait(&self, job: Job) {
        let mut statements = self.hanging.statements.lock();
        if statements.cancelled.contains(&self.number) {
            drop(statements);
            job();
        } else {
            statements.waiting.insert(self.number, job);
        }
    }

    /// As [`Hang::wait`], on a thread of its own.
    pub(crate) fn wait_on_thread(&self, job: Job) {
        self.wait(Box::new(move || _ = thread::spawn(job)));
    }

    fn cancel(&self) {
        let mut statements = self.hanging.statements.lock();
        statements.cancelled.insert(self.number);
        let job = statements.waiting.remove(&self.number);
        drop(statements);
        if let Some(job) = job {
            job();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn work_ends_when_it_is_cancelled_and_not_when_its_handle_is_dropped() {
        let hanging = Arc::new(Hanging::default());
        let (sender, receiver) = mpsc::channel();
        let hang = hanging.start();
        let running = hang.running();
        hang.wait(Box::new(move || sender.send(()).unwrap()));
        drop(hang);
        assert_eq!((hanging.waiting(), hanging.cancelled()), (1, 0));
        assert!(receiver.try_recv().is_err());
        running.cancel();
        running.cancel();
        receiver.try_recv().unwrap();
        assert_eq!((hanging.waiting(), hanging.cancelled()), (0, 1));
    }

    #[test]
    fn work_that_begins_after_its_cancellation_ends_at_once() {
        let hanging = Arc::new(Hanging::default());
        let (sender, receiver) = mpsc::channel();
        let hang = hanging.start();
        hang.running().cancel();
        hang.wait_on_thread(Box::new(move || sender.send(thread::current().id()).unwrap()));
        assert_ne!(receiver.recv().unwrap(), thread::current().id());
        assert_eq!(hanging.waiting(), 0);
    }
}
