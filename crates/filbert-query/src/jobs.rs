//! Jobs: the running statements, and the last ones that ended.
//!
//! A statement on the engine's threads is a job. Its id serves to cancel it. A short plan that runs
//! in place ends too soon to be cancelled: it is counted, and one of [`SAMPLE_EVERY`] goes to the
//! log.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use chrono::{DateTime, Utc};
use filbert_dialect::without_literals;
use filbert_functions::ending::Limits;
use filbert_grid::query::{Dialect, Session, SqlError};
use parking_lot::Mutex;
use uuid::Uuid;

/// One of this many statements that run in place goes to the log.
pub(crate) const SAMPLE_EVERY: u32 = 64;
/// The number of characters of a statement that are kept.
const TEXT_CHARACTERS_MAX: usize = 8_192;

thread_local! {
    static UNTIL_SAMPLE: Cell<u32> = const { Cell::new(0) };
}

/// A statement as `sys.jobs` shows it.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) id: Uuid,
    pub(crate) text: Arc<str>,
    pub(crate) user: String,
    /// The process id of the session that clients know; 0 = none.
    pub(crate) process: i32,
    pub(crate) application: String,
    dialect: Dialect,
    pub(crate) started: DateTime<Utc>,
}

/// An ended statement.
#[derive(Clone, Debug)]
pub(crate) struct EndedJob {
    pub(crate) job: Job,
    pub(crate) ended: DateTime<Utc>,
    pub(crate) error: Option<String>,
}

impl EndedJob {
    /// The memory of the entry in bytes.
    fn bytes(&self) -> usize {
        let Job { text, user, application, .. } = &self.job;
        let texts = [text.len(), user.len(), application.len(), self.error.as_ref().map_or(0, String::len)];
        size_of::<EndedJob>() + texts.iter().sum::<usize>()
    }
}

/// The statements that the log of the member shows.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SlowStatements {
    /// The shortest time of such a statement; `None` = no statement.
    pub(crate) after: Option<Duration>,
    /// Whether literals are hidden.
    pub(crate) hides_literals: bool,
}

impl SlowStatements {
    /// Logs a statement if it is slow.
    fn note(&self, ended: &EndedJob) {
        let Some(after) = self.after else { return };
        let Ok(took) = (ended.ended - ended.job.started).to_std() else { return };
        if took < after {
            return;
        }
        let Job { id, text, user, application, dialect, .. } = &ended.job;
        let hidden = self.hides_literals.then(|| without_literals(text, *dialect));
        let statement = hidden.as_deref().unwrap_or(text);
        let failed = ended.error.is_some();
        let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        tracing::warn!(took_ms, %id, user, application, failed, statement, "a slow statement");
    }
}

struct RunningJob {
    job: Job,
    limits: Limits,
}

/// The limits of the log of ended statements.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogLimits {
    /// The number of statements; 0 = no log.
    pub(crate) statements_max: usize,
    /// The size of their texts, names and errors, in bytes.
    pub(crate) bytes_max: usize,
}

/// The statements that ended last.
#[derive(Debug, Default)]
struct Log {
    /// The oldest first.
    ended: VecDeque<EndedJob>,
    bytes: usize,
}

impl Log {
    fn keep(&mut self, ended: EndedJob, limits: LogLimits) {
        self.bytes = self.bytes.saturating_add(ended.bytes());
        self.ended.push_back(ended);
        while self.ended.len() > limits.statements_max || self.bytes > limits.bytes_max {
            let Some(oldest) = self.ended.pop_front() else { return };
            self.bytes = self.bytes.saturating_sub(oldest.bytes());
        }
    }
}

/// The running statements, and the last ones that ended.
pub(crate) struct Jobs {
    /// Ordered by number, which is the order of their start.
    running: Mutex<BTreeMap<u64, RunningJob>>,
    log: Mutex<Log>,
    limits: LogLimits,
    slow: SlowStatements,
    next: AtomicU64,
    /// The upper half of ids, from the start time of the process. Different processes have
    /// different ids.
    epoch: u64,
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Jobs").field("running", &self.running.lock().len()).finish_non_exhaustive()
    }
}

impl Jobs {
    /// Creates an empty list that keeps ended statements within the limits.
    pub(crate) fn new(limits: LogLimits, slow: SlowStatements) -> Arc<Jobs> {
        let epoch = Utc::now().timestamp_micros().unsigned_abs();
        let (running, log, next) = (Mutex::default(), Mutex::default(), AtomicU64::new(1));
        Arc::new(Jobs { running, log, limits, slow, next, epoch })
    }

    /// The number of running statements.
    pub(crate) fn running_count(&self) -> usize {
        self.running.lock().len()
    }

    /// The maximum number of ended statements that are kept.
    pub(crate) fn log_max(&self) -> usize {
        self.limits.statements_max
    }

    fn job(&self, text: &str, session: Option<&Session>) -> (u64, Job) {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let kept =
            text.char_indices().nth(TEXT_CHARACTERS_MAX).map_or(text, |(end, _)| text.get(..end).unwrap_or(text));
        let job = Job {
            id: Uuid::from_u64_pair(self.epoch, number),
            text: Arc::from(kept),
            user: session.map_or("", Session::user).to_owned(),
            process: session.map_or(0, Session::process),
            application: session.and_then(|session| session.setting("application_name")).unwrap_or_default(),
            dialect: session.map_or_else(Dialect::default, Session::dialect),
            started: Utc::now(),
        };
        (number, job)
    }

    /// Registers a statement that begins.
    pub(crate) fn begin(self: &Arc<Self>, text: &str, session: Option<&Arc<Session>>, limits: Limits) -> Arc<JobGuard> {
        let (number, job) = self.job(text, session.map(Arc::as_ref));
        let session = session.map(Arc::downgrade).unwrap_or_default();
        self.running.lock().insert(number, RunningJob { job, limits });
        Arc::new(JobGuard { jobs: self.clone(), number, session, is_over: AtomicBool::new(false) })
    }

    fn end(&self, number: u64, error: Option<&SqlError>) {
        let Some(ended) = self.running.lock().remove(&number) else { return };
        let error = error.map(|error| error.message.clone());
        let ended = EndedJob { job: ended.job, ended: Utc::now(), error };
        self.slow.note(&ended);
        self.keep(ended);
    }

    fn keep(&self, ended: EndedJob) {
        if self.limits.statements_max > 0 {
            self.log.lock().keep(ended, self.limits);
        }
    }

    /// Whether the next statement that runs in place goes to the log.
    pub(crate) fn samples(&self) -> bool {
        UNTIL_SAMPLE.with(|left| {
            let is_due = left.get() == 0;
            left.set(if is_due { SAMPLE_EVERY - 1 } else { left.get() - 1 });
            is_due
        }) && self.limits.statements_max > 0
    }

    /// Logs a statement that ran in place.
    pub(crate) fn answered(
        &self,
        text: &str,
        session: Option<&Session>,
        started: DateTime<Utc>,
        error: Option<&SqlError>,
    ) {
        let (_, job) = self.job(text, session);
        let error = error.map(|error| error.message.clone());
        self.keep(EndedJob { job: Job { started, ..job }, ended: Utc::now(), error });
    }

    /// The running statements, in the order of their start.
    pub(crate) fn running(&self) -> Vec<Job> {
        self.running.lock().values().map(|running| running.job.clone()).collect()
    }

    /// The ended statements, the oldest first.
    pub(crate) fn ended(&self) -> Vec<EndedJob> {
        self.log.lock().ended.iter().cloned().collect()
    }

    /// Cancels the statements that satisfy `is_meant`; returns their number.
    fn cancel(&self, is_meant: impl Fn(u64, &Job) -> bool) -> u64 {
        let meant: Vec<Limits> = {
            let running = self.running.lock();
            let meant = running.iter().filter(|(number, running)| is_meant(**number, &running.job));
            meant.map(|(_, running)| running.limits.clone()).collect()
        };
        // Outside of the lock, because the end of a statement locks it again.
        meant.iter().for_each(Limits::cancel);
        u64::try_from(meant.len()).unwrap_or(u64::MAX)
    }

    /// Cancels the statements of a session; returns whether there were any.
    pub(crate) fn cancel_process(&self, process: i32) -> bool {
        process != 0 && self.cancel(|_, job| job.process == process) > 0
    }

    /// Cancels the job with this id, or all jobs of the user except the caller's own; returns the
    /// number.
    pub(crate) fn kill(&self, id: Option<&str>, session: Option<&Session>, own: Option<&JobGuard>) -> u64 {
        let user = session.map_or("", Session::user);
        let own = own.map_or(0, |own| own.number);
        match id {
            Some(id) => self.cancel(|_, job| job.id.to_string() == id),
            None => self.cancel(|number, job| job.user == user && number != own),
        }
    }
}

/// A running statement. It ends when it is reported as ended, or when the last clone is dropped.
pub(crate) struct JobGuard {
    jobs: Arc<Jobs>,
    number: u64,
    session: Weak<Session>,
    is_over: AtomicBool,
}

impl JobGuard {
    /// Ends the statement with an error.
    pub(crate) fn fail(&self, error: &SqlError) {
        self.end(Some(error));
    }

    /// Ends the statement with success. A client that learns of the end does not find the job among
    /// the running ones.
    pub(crate) fn done(&self) {
        self.end(None);
    }

    fn end(&self, error: Option<&SqlError>) {
        if !self.is_over.swap(true, Ordering::Relaxed) {
            self.jobs.end(self.number, error);
            if let Some(session) = self.session.upgrade() {
                session.end_statement();
            }
        }
    }
}

impl Drop for JobGuard {
    fn drop(&mut self) {
        self.end(None);
    }
}

#[cfg(test)]
mod tests {
    use filbert_grid::query::{Dialect, SqlErrorCode};

    use super::*;

    fn list(statements_max: usize, bytes_max: usize) -> Arc<Jobs> {
        Jobs::new(LogLimits { statements_max, bytes_max }, SlowStatements::default())
    }

    #[test]
    fn long_statements_leave_room_for_fewer() {
        let jobs = list(1_000, 20_000);
        for number in 0..100 {
            drop(jobs.begin(&format!("SELECT '{number}{}'", "x".repeat(8_000)), None, Limits::new(None)));
        }
        let texts: Vec<Arc<str>> = jobs.ended().into_iter().map(|ended| ended.job.text).collect();
        assert!(matches!(texts.as_slice(), [one, other] if one.contains("'98x") && other.contains("'99x")));
        for _ in 0..100 {
            drop(jobs.begin("SELECT 1", None, Limits::new(None)));
        }
        let log = jobs.log.lock();
        assert!(log.ended.len() > 50 && log.bytes <= 20_000);
        assert_eq!(log.bytes, log.ended.iter().map(EndedJob::bytes).sum::<usize>());
    }

    #[test]
    fn jobs_are_seen_while_they_run_and_afterwards() {
        let jobs = list(2, usize::MAX);
        let session = Arc::new(Session::new(Dialect::Crate, "ann"));
        session.set_process(7);
        let first = jobs.begin("SELECT 1", Some(&session), Limits::new(None));
        let second = jobs.begin("SELECT 2", None, Limits::new(None));
        let texts = |jobs: &Jobs| jobs.running().iter().map(|job| job.text.to_string()).collect::<Vec<_>>();
        assert_eq!(texts(&jobs), ["SELECT 1", "SELECT 2"]);
        assert!(jobs.cancel_process(7) && !jobs.cancel_process(8) && !jobs.cancel_process(0));
        let id = jobs.running().last().map(|job| job.id.to_string());
        assert_eq!(jobs.kill(id.as_deref(), Some(&session), None), 1);
        assert_eq!(jobs.kill(None, Some(&session), Some(&second)), 1);
        first.fail(&SqlError::new(SqlErrorCode::Cancelled, "no"));
        drop(first);
        drop(second);
        drop(jobs.begin("SELECT 3", None, Limits::new(None)));
        let ended: Vec<_> =
            jobs.ended().iter().map(|ended| (ended.job.text.to_string(), ended.error.clone())).collect();
        assert_eq!(ended, [("SELECT 2".to_owned(), None), ("SELECT 3".to_owned(), None)]);
        assert!(texts(&jobs).is_empty());
    }

    #[test]
    fn some_of_what_is_answered_in_place_is_logged() {
        let jobs = list(10, usize::MAX);
        let sampled = (0..SAMPLE_EVERY * 3).filter(|_| jobs.samples()).count();
        assert_eq!(sampled, 3);
        assert!(!list(0, usize::MAX).samples());
    }
}
