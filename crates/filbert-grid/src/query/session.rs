//! The session context of a client: its dialect, its user, and the settings that `SET` changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU8, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::advisory::{AdvisoryKey, AdvisoryLocks, AdvisoryWait, LockEnd, SessionLocks};
use super::block::{Block, Notice, SAVEPOINT_BYTES, SETTING_BYTES, Savepoint, Settings, Severity, settings_bytes};
use super::error::{SqlError, SqlErrorCode};
use crate::budget::{MemoryBudget, Reservation, UNCOUNTED_BYTES_MAX};
use crate::errors::ErrorKind;

/// The maximum number of notices that a session stores until its client reads them.
const NOTICES_MAX: usize = 100;

/// The default limit of a session's settings and savepoints, in bytes. Settings need a few hundred
/// bytes, and a few thousand if applications pass their current user in a setting.
pub const SESSION_BYTES_MAX: usize = 1 << 20;

/// The setting that makes transactions read only by default.
const DEFAULT_READ_ONLY: &str = "default_transaction_read_only";

/// The SQL dialect of a statement. The meaning of statements is the same in all dialects; names,
/// types and system relations differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Hazelcast's dialect: names are case-sensitive, parameters are `?`.
    #[default]
    Hazelcast,
    /// CrateDB's dialect: unquoted names are converted to lower case, parameters are `?` or `$1`,
    /// `object['key']` accesses a field of an object.
    Crate,
    /// PostgreSQL's dialect: unquoted names are converted to lower case, parameters are `$1`.
    Postgres,
}

impl Dialect {
    /// The name in settings: `hazelcast`, `crate` or `postgres`.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Hazelcast => "hazelcast",
            Dialect::Crate => "crate",
            Dialect::Postgres => "postgres",
        }
    }

    /// The dialect with this name, case-insensitive.
    pub fn of_name(name: &str) -> Option<Dialect> {
        let all = [Dialect::Hazelcast, Dialect::Crate, Dialect::Postgres];
        all.into_iter().find(|dialect| dialect.name().eq_ignore_ascii_case(name))
    }
}

/// The transaction state of a session.
///
/// Each statement takes effect separately, also within a transaction. The state exists because
/// PostgreSQL's protocol reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum TransactionState {
    /// No transaction is open.
    #[default]
    Idle,
    /// A transaction is open.
    Open,
    /// A statement in the transaction has failed. Further statements are refused until its end.
    Failed,
}

/// The session context of a client. A door stores it with a connection, or creates it for a
/// request.
#[derive(Debug)]
pub struct Session {
    dialect: Dialect,
    user: String,
    transaction: AtomicU8,
    /// The start of the transaction, in microseconds since 1970-01-01.
    began_us: AtomicI64,
    process: AtomicI32,
    /// Shared with savepoints until it changes.
    settings: Mutex<Arc<Settings>>,
    /// The limit of settings and savepoints in bytes. `room` is their reservation.
    bytes_max: usize,
    room: Mutex<Option<Reservation>>,
    /// The values of settings that are not set.
    defaults: Settings,
    /// The state of the open transaction.
    block: Mutex<Block>,
    /// Whether the open transaction, or each statement without one, is read only.
    is_read_only: AtomicBool,
    /// The number of changed rows, plus the number of DDL statements.
    changes: AtomicU64,
    notices: Mutex<Vec<Notice>>,
    has_notices: AtomicBool,
    /// The advisory locks, from the first one on.
    locks: Mutex<Option<SessionLocks>>,
}

impl Session {
    /// Creates a session without settings.
    pub fn new(dialect: Dialect, user: impl Into<String>) -> Session {
        let (transaction, began_us, process, settings, defaults) = Default::default();
        let (block, is_read_only, changes, notices, has_notices, room, locks) = Default::default();
        let user = user.into();
        Session {
            dialect,
            user,
            transaction,
            began_us,
            process,
            settings,
            bytes_max: SESSION_BYTES_MAX,
            room,
            defaults,
            block,
            is_read_only,
            changes,
            notices,
            has_notices,
            locks,
        }
    }

    /// Sets the default values of settings. A reset restores them.
    #[must_use]
    pub fn with_defaults(self, defaults: impl IntoIterator<Item = (String, String)>) -> Session {
        let defaults = defaults.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        let session = Session { defaults, ..self };
        session.settle();
        session
    }

    /// Limits the settings and savepoints to `bytes_max` bytes, which are reserved from the budget.
    #[must_use]
    pub fn within(self, bytes_max: usize, budget: &MemoryBudget) -> Session {
        Session { bytes_max, room: Mutex::new(Some(budget.empty())), ..self }
    }

    /// The SQL dialect.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// The name of the user.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The process id of the session, PostgreSQL's `pid`: other sessions can cancel its statements
    /// by this number. 0 = none.
    pub fn process(&self) -> i32 {
        self.process.load(Ordering::Relaxed)
    }

    /// Sets the number for [`Session::process`].
    pub fn set_process(&self, process: i32) {
        self.process.store(process, Ordering::Relaxed);
    }

    /// The value of a setting, or its default. Names are case-insensitive.
    pub fn setting(&self, name: &str) -> Option<String> {
        let name = name.to_ascii_lowercase();
        self.settings.lock().get(&name).or_else(|| self.defaults.get(&name)).cloned()
    }

    /// The settings on which query plans depend beside the statement's text: the search path and
    /// the time zone. `None` if neither is set.
    pub fn planned_by(&self) -> Option<String> {
        let settings = self.settings.lock();
        let find = |name: &str| settings.get(name).or_else(|| self.defaults.get(name)).map(String::as_str);
        let zone = find("timezone").filter(|zone| *zone != "UTC" && self.dialect == Dialect::Postgres);
        match (find("search_path"), zone) {
            (None, None) => None,
            (path, zone) => Some(format!("{}\0{}\0", path.unwrap_or_default(), zone.unwrap_or_default())),
        }
    }

    /// Reserves memory for the session's settings and savepoints plus `more` bytes.
    fn make_room(&self, settings: &Arc<Settings>, more: usize) -> Result<(), SqlError> {
        let kept = settings_bytes(settings) + self.block.lock().bytes(settings) + more;
        let refused = |message: String| SqlError {
            kind: ErrorKind::OutOfMemory,
            ..SqlError::new(SqlErrorCode::Generic, message).with_sqlstate("53200")
        };
        if kept > self.bytes_max {
            let max = self.bytes_max;
            return Err(refused(format!(
                "the settings and savepoints of this session would keep {kept} bytes, expected at most {max}, see session_bytes_max"
            )));
        }
        match &mut *self.room.lock() {
            Some(room) => room.follow(kept).map_err(|exhausted| refused(exhausted.to_string())),
            None => Ok(()),
        }
    }

    /// Changes a setting. Returns the previous value.
    fn change(&self, name: &str, value: Option<String>) -> Result<Option<String>, SqlError> {
        let mut settings = self.settings.lock();
        let before = match value {
            Some(value) => {
                let more = SETTING_BYTES + name.len() + value.len();
                let before = settings.get(name).map_or(0, |before| SETTING_BYTES + name.len() + before.len());
                if more > before {
                    self.make_room(&settings, more - before)?;
                }
                Arc::make_mut(&mut settings).insert(name.to_owned(), value)
            }
            None => Arc::make_mut(&mut settings).remove(name),
        };
        if before.as_ref().is_some_and(|before| before.len() > UNCOUNTED_BYTES_MAX) {
            // Releases the memory of a long value. This cannot fail, because less memory is needed
            // than before.
            let _ = self.make_room(&settings, 0);
        }
        Ok(before)
    }

    /// Sets a setting; `None` resets it to its default.
    ///
    /// # Errors
    /// The session exceeds its limit, or the budget has no room.
    pub fn set(&self, name: &str, value: Option<String>) -> Result<(), SqlError> {
        let name = name.to_ascii_lowercase();
        self.change(&name, value)?;
        // A setting of the session is no longer local to the transaction.
        if self.transaction() != TransactionState::Idle {
            self.block.lock().local.remove(&name);
        }
        self.settle();
        Ok(())
    }

    /// Sets a setting until the end of the open transaction.
    ///
    /// # Errors
    /// As [`Session::set`].
    pub fn set_local(&self, name: &str, value: Option<String>) -> Result<(), SqlError> {
        let name = name.to_ascii_lowercase();
        let before = self.change(&name, value)?;
        self.block.lock().local.entry(name).or_insert(before);
        Ok(())
    }

    /// Resets all settings to their defaults.
    pub fn reset(&self) {
        let none = Arc::default();
        // An open transaction and its savepoints still have the old settings.
        let kept = self.block.lock().bytes(&none);
        *self.settings.lock() = none;
        if let Some(room) = &mut *self.room.lock() {
            room.shrink(kept);
        }
        self.settle();
    }

    /// Updates the cached settings, which each statement reads.
    fn settle(&self) {
        if self.transaction() == TransactionState::Idle {
            let is_on = self.setting(DEFAULT_READ_ONLY).is_some_and(|value| value == "on");
            self.is_read_only.store(is_on, Ordering::Release);
        }
    }

    /// Starts a transaction. It is read only if `read_only` or, without it, the session's default
    /// says so.
    pub fn begin(&self, read_only: Option<bool>) {
        let before = self.settings.lock().clone();
        *self.block.lock() = Block { before, changes: self.changes(), ..Block::default() };
        if let Some(read_only) = read_only {
            self.is_read_only.store(read_only, Ordering::Release);
        }
        self.set_transaction(TransactionState::Open);
    }

    /// Ends the transaction: restores the settings that were local to it, or all settings if it is
    /// rolled back. Returns whether anything was changed in it.
    pub fn end(&self, is_taken_back: bool) -> bool {
        let block = std::mem::take(&mut *self.block.lock());
        let mut settings = self.settings.lock();
        if is_taken_back {
            *settings = block.before;
        } else {
            for (name, before) in block.local {
                match before {
                    Some(before) => Arc::make_mut(&mut settings).insert(name, before),
                    None => Arc::make_mut(&mut settings).remove(&name),
                };
            }
        }
        let kept = settings_bytes(&settings);
        drop(settings);
        self.end_locks(LockEnd::Transaction);
        if let Some(room) = &mut *self.room.lock() {
            room.shrink(kept);
        }
        self.set_transaction(TransactionState::Idle);
        self.settle();
        self.changes() != block.changes
    }

    /// Takes an advisory lock if no other session has it; `false` otherwise. It ends with the
    /// session or with the transaction; outside of one, with the statement.
    ///
    /// # Errors
    /// There are too many locks.
    pub fn try_advisory_lock(
        &self,
        locks: &Arc<AdvisoryLocks>,
        key: AdvisoryKey,
        is_shared: bool,
        is_of_transaction: bool,
    ) -> Result<bool, SqlError> {
        let mut own = self.locks.lock();
        let own = own.get_or_insert_with(|| SessionLocks::of(locks));
        own.try_lock(key, is_shared, self.end_of_lock(is_of_transaction))
    }

    /// Takes an advisory lock as [`Session::try_advisory_lock`], or a place among its waiters:
    /// `wake` is called when the lock is granted.
    ///
    /// # Errors
    /// There are too many locks, or the wait would not end because sessions wait for each other.
    pub fn advisory_lock(
        &self,
        locks: &Arc<AdvisoryLocks>,
        key: AdvisoryKey,
        is_shared: bool,
        is_of_transaction: bool,
        wake: Box<dyn FnOnce() + Send>,
    ) -> Result<Option<AdvisoryWait>, SqlError> {
        let mut own = self.locks.lock();
        let own = own.get_or_insert_with(|| SessionLocks::of(locks));
        own.lock(key, is_shared, self.end_of_lock(is_of_transaction), wake)
    }

    /// Gives back an advisory lock of the session once; `false` if the session does not have it.
    pub fn advisory_unlock(&self, key: AdvisoryKey, is_shared: bool) -> bool {
        self.locks.lock().as_ref().is_some_and(|own| own.unlock(key, is_shared))
    }

    /// Gives back all advisory locks of the session, except those of its transaction.
    pub fn advisory_unlock_all(&self) {
        self.end_locks(LockEnd::Session);
    }

    /// Ends a statement: gives back the advisory locks that it took outside of a transaction.
    pub fn end_statement(&self) {
        self.end_locks(LockEnd::Statement);
    }

    fn end_of_lock(&self, is_of_transaction: bool) -> LockEnd {
        match (is_of_transaction, self.transaction()) {
            (false, _) => LockEnd::Session,
            (true, TransactionState::Idle) => LockEnd::Statement,
            (true, _) => LockEnd::Transaction,
        }
    }

    fn end_locks(&self, end: LockEnd) {
        if let Some(own) = &*self.locks.lock() {
            own.end(end);
        }
    }

    /// Creates a savepoint.
    ///
    /// # Errors
    /// As [`Session::set`].
    pub fn save(&self, name: String) -> Result<(), SqlError> {
        let settings = self.settings.lock().clone();
        self.make_room(&settings, SAVEPOINT_BYTES + name.len())?;
        self.block.lock().savepoints.push(Savepoint { name, settings, changes: self.changes() });
        Ok(())
    }

    /// Removes a savepoint and all later ones. `false` if there is none with this name.
    pub fn release(&self, name: &str) -> bool {
        let mut block = self.block.lock();
        let savepoints = &mut block.savepoints;
        let found = savepoints.iter().rposition(|savepoint| savepoint.name == name);
        found.map(|found| savepoints.truncate(found)).is_some()
    }

    /// Rolls the settings back to a savepoint. Returns whether anything was changed since; `None`
    /// if there is no such savepoint.
    pub fn go_back_to(&self, name: &str) -> Option<bool> {
        let mut block = self.block.lock();
        let found = block.savepoints.iter().rposition(|savepoint| savepoint.name == name)?;
        block.savepoints.truncate(found + 1);
        let (settings, changes) = block.savepoints.last().map(|found| (found.settings.clone(), found.changes))?;
        drop(block);
        *self.settings.lock() = settings;
        Some(changes != self.changes())
    }

    /// Whether statements are read only now.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.is_read_only.load(Ordering::Acquire)
    }

    /// Sets whether the rest of the open transaction is read only.
    pub fn set_read_only(&self, is_read_only: bool) {
        self.is_read_only.store(is_read_only, Ordering::Release);
    }

    /// Records that a statement runs, except for session statements.
    #[inline]
    pub fn note_run(&self) {
        if self.transaction() != TransactionState::Idle {
            self.block.lock().has_run = true;
        }
    }

    /// Whether a statement, except for session statements, has run in the open transaction.
    pub fn has_run(&self) -> bool {
        self.block.lock().has_run
    }

    /// Adds to the number of changes.
    #[inline]
    pub fn note_changes(&self, count: u64) {
        self.changes.fetch_add(count, Ordering::Relaxed);
    }

    /// The number of changes so far.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Stores a notice for the client.
    pub fn tell(&self, severity: Severity, sqlstate: &'static str, message: impl Into<String>) {
        let mut notices = self.notices.lock();
        if notices.len() < NOTICES_MAX {
            notices.push(Notice { severity, sqlstate, message: message.into() });
        }
        self.has_notices.store(true, Ordering::Release);
    }

    /// Stores a warning for the client that a rollback does not undo changes.
    pub fn tell_that_changes_stay(&self) {
        let text = "changes are not taken back: each statement takes effect when it is done, and what it changed stays changed";
        self.tell(Severity::Warning, "01000", text);
    }

    /// Takes the stored notices.
    #[inline]
    pub fn take_notices(&self) -> Vec<Notice> {
        match self.has_notices.swap(false, Ordering::AcqRel) {
            true => std::mem::take(&mut *self.notices.lock()),
            false => Vec::new(),
        }
    }

    /// The schema in which unqualified names are created and looked up first: the first one of
    /// `search_path`.
    pub fn schema(&self) -> Option<String> {
        let path = self.setting("search_path")?;
        let first =
            path.split(',').map(|name| name.trim().trim_matches('"')).find(|name| !name.is_empty() && *name != "$user");
        first.map(str::to_owned)
    }

    /// The transaction state.
    pub fn transaction(&self) -> TransactionState {
        match self.transaction.load(Ordering::Acquire) {
            1 => TransactionState::Open,
            2 => TransactionState::Failed,
            _ => TransactionState::Idle,
        }
    }

    /// The start of the open transaction, in microseconds since 1970-01-01, if it was set.
    pub fn transaction_began_us(&self) -> Option<i64> {
        let began_us = self.began_us.load(Ordering::Relaxed);
        (began_us != 0 && self.transaction() != TransactionState::Idle).then_some(began_us)
    }

    /// Sets the start of the transaction.
    pub fn set_transaction_began_us(&self, began_us: i64) {
        self.began_us.store(began_us, Ordering::Relaxed);
    }

    /// Sets the transaction state.
    pub fn set_transaction(&self, state: TransactionState) {
        self.transaction.store(state as u8, Ordering::Release);
    }
}
