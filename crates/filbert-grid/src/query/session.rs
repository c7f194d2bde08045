//! What a door knows of who asks: the dialect, the user, and the settings that `SET` changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicI64, AtomicU8, AtomicU64, Ordering};

use parking_lot::Mutex;

use super::block::{Block, Notice, SAVEPOINT_BYTES, SETTING_BYTES, Savepoint, Settings, Severity, settings_bytes};
use super::error::{SqlError, SqlErrorCode};
use crate::budget::{MemoryBudget, Reservation, UNCOUNTED_BYTES_MAX};
use crate::errors::ErrorKind;

/// Notices that are kept for a client that does not take them.
const NOTICES_MAX: usize = 100;

/// Bytes of settings and savepoints that a session keeps unless told otherwise: settings have some hundred bytes, and those by which
/// applications pass on who their user is some thousand.
pub const SESSION_BYTES_MAX: usize = 1 << 20;

/// The setting that makes transactions read only.
const DEFAULT_READ_ONLY: &str = "default_transaction_read_only";

/// Whose SQL a statement is. The meaning of statements is the same; names, types and catalogs differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Hazelcast's: names keep their case, parameters are `?`.
    #[default]
    Hazelcast,
    /// CrateDB's: names without quotes are in lower case, parameters are `?` or `$1`, `object['key']` looks into objects.
    Crate,
    /// PostgreSQL's: names without quotes are in lower case, parameters are `$1`.
    Postgres,
}

impl Dialect {
    /// Its name in settings: `hazelcast`, `crate` or `postgres`.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Hazelcast => "hazelcast",
            Dialect::Crate => "crate",
            Dialect::Postgres => "postgres",
        }
    }

    /// The dialect of a name, in whatever case.
    pub fn of_name(name: &str) -> Option<Dialect> {
        let all = [Dialect::Hazelcast, Dialect::Crate, Dialect::Postgres];
        all.into_iter().find(|dialect| dialect.name().eq_ignore_ascii_case(name))
    }
}

/// Where a session stands between `BEGIN` and `COMMIT`.
///
/// Statements take effect one by one, also within a transaction; what there is, is the state that PostgreSQL's protocol reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum TransactionState {
    /// No transaction.
    #[default]
    Idle,
    /// Between `BEGIN` and its end.
    Open,
    /// A statement failed in it; the others until its end are refused.
    Failed,
}

/// One user's way of asking, kept by a door for a connection or made for a request.
#[derive(Debug)]
pub struct Session {
    dialect: Dialect,
    user: String,
    transaction: AtomicU8,
    /// When the transaction began, in microseconds since 1970-01-01.
    began_us: AtomicI64,
    process: AtomicI32,
    /// Shared with savepoints until it is changed.
    settings: Mutex<Arc<Settings>>,
    /// Bytes of settings and savepoints that there may be, and the room that they have.
    bytes_max: usize,
    room: Mutex<Option<Reservation>>,
    /// What settings are where nothing is set.
    defaults: Settings,
    /// What the open transaction keeps.
    block: Mutex<Block>,
    /// Whether the open transaction, or each statement without one, may change nothing.
    is_read_only: AtomicBool,
    /// Rows that were changed, and statements that changed the catalog.
    changes: AtomicU64,
    notices: Mutex<Vec<Notice>>,
    has_notices: AtomicBool,
}

impl Session {
    /// A session without settings of its own.
    pub fn new(dialect: Dialect, user: impl Into<String>) -> Session {
        let (transaction, began_us, process, settings, defaults) = Default::default();
        let (block, is_read_only, changes, notices, has_notices, room) = Default::default();
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
        }
    }

    /// The same with settings that it begins with, and to which they are reset.
    #[must_use]
    pub fn with_defaults(self, defaults: impl IntoIterator<Item = (String, String)>) -> Session {
        let defaults = defaults.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        let session = Session { defaults, ..self };
        session.settle();
        session
    }

    /// The same, whose settings and savepoints have at most `bytes_max` bytes, for which there is room in the budget.
    #[must_use]
    pub fn within(self, bytes_max: usize, budget: &MemoryBudget) -> Session {
        Session { bytes_max, room: Mutex::new(Some(budget.empty())), ..self }
    }

    /// Whose SQL it speaks.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Who it is.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The number by which other sessions may end what this one runs, PostgreSQL's `pid`; 0 = none.
    pub fn process(&self) -> i32 {
        self.process.load(Ordering::Relaxed)
    }

    /// Gives it such a number.
    pub fn set_process(&self, process: i32) {
        self.process.store(process, Ordering::Relaxed);
    }

    /// A setting, if it was set, or if the session began with it. Names have no case.
    pub fn setting(&self, name: &str) -> Option<String> {
        let name = name.to_ascii_lowercase();
        self.settings.lock().get(&name).or_else(|| self.defaults.get(&name)).cloned()
    }

    /// What the plans of statements depend on beside their text: the schemas of names without one, and the time zone; none where both
    /// are as nobody set them.
    pub fn planned_by(&self) -> Option<String> {
        let settings = self.settings.lock();
        let find = |name: &str| settings.get(name).or_else(|| self.defaults.get(name)).map(String::as_str);
        let zone = find("timezone").filter(|zone| *zone != "UTC" && self.dialect == Dialect::Postgres);
        match (find("search_path"), zone) {
            (None, None) => None,
            (path, zone) => Some(format!("{}\0{}\0", path.unwrap_or_default(), zone.unwrap_or_default())),
        }
    }

    /// Takes room for what the session keeps and `more` bytes.
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

    /// Changes a setting; gives back what it was.
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
            // Gives the room of a long value back. Less than before is never too much.
            let _ = self.make_room(&settings, 0);
        }
        Ok(before)
    }

    /// Sets a setting; `None` = back to what it is by default.
    ///
    /// # Errors
    /// The session keeps too much already, or there is no room for more.
    pub fn set(&self, name: &str, value: Option<String>) -> Result<(), SqlError> {
        let name = name.to_ascii_lowercase();
        self.change(&name, value)?;
        // What is set for the session is not local any more.
        if self.transaction() != TransactionState::Idle {
            self.block.lock().local.remove(&name);
        }
        self.settle();
        Ok(())
    }

    /// Sets a setting until the open transaction ends.
    ///
    /// # Errors
    /// As [`Session::set`].
    pub fn set_local(&self, name: &str, value: Option<String>) -> Result<(), SqlError> {
        let name = name.to_ascii_lowercase();
        let before = self.change(&name, value)?;
        self.block.lock().local.entry(name).or_insert(before);
        Ok(())
    }

    /// Sets everything back to what it is by default.
    pub fn reset(&self) {
        let none = Arc::default();
        // An open transaction and its savepoints keep what was.
        let kept = self.block.lock().bytes(&none);
        *self.settings.lock() = none;
        if let Some(room) = &mut *self.room.lock() {
            room.shrink(kept);
        }
        self.settle();
    }

    /// Follows the settings that are looked at with each statement.
    fn settle(&self) {
        if self.transaction() == TransactionState::Idle {
            let is_on = self.setting(DEFAULT_READ_ONLY).is_some_and(|value| value == "on");
            self.is_read_only.store(is_on, Ordering::Release);
        }
    }

    /// Begins a transaction, which may change nothing if `read_only` or the session's default says so.
    pub fn begin(&self, read_only: Option<bool>) {
        let before = self.settings.lock().clone();
        *self.block.lock() = Block { before, changes: self.changes(), ..Block::default() };
        if let Some(read_only) = read_only {
            self.is_read_only.store(read_only, Ordering::Release);
        }
        self.set_transaction(TransactionState::Open);
    }

    /// Ends the transaction: settings that were local are as before, all of them if it is taken back. Whether anything was
    /// changed in it.
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
        if let Some(room) = &mut *self.room.lock() {
            room.shrink(kept);
        }
        self.set_transaction(TransactionState::Idle);
        self.settle();
        self.changes() != block.changes
    }

    /// Makes a savepoint.
    ///
    /// # Errors
    /// As [`Session::set`].
    pub fn save(&self, name: String) -> Result<(), SqlError> {
        let settings = self.settings.lock().clone();
        self.make_room(&settings, SAVEPOINT_BYTES + name.len())?;
        self.block.lock().savepoints.push(Savepoint { name, settings, changes: self.changes() });
        Ok(())
    }

    /// Forgets a savepoint and those after it; `false` if there is none of that name.
    pub fn release(&self, name: &str) -> bool {
        let mut block = self.block.lock();
        let savepoints = &mut block.savepoints;
        let found = savepoints.iter().rposition(|savepoint| savepoint.name == name);
        found.map(|found| savepoints.truncate(found)).is_some()
    }

    /// Goes back to a savepoint, as far as settings are concerned; whether anything was changed since, `None` if there is no such
    /// savepoint.
    pub fn go_back_to(&self, name: &str) -> Option<bool> {
        let mut block = self.block.lock();
        let found = block.savepoints.iter().rposition(|savepoint| savepoint.name == name)?;
        block.savepoints.truncate(found + 1);
        let (settings, changes) = block.savepoints.last().map(|found| (found.settings.clone(), found.changes))?;
        drop(block);
        *self.settings.lock() = settings;
        Some(changes != self.changes())
    }

    /// Whether statements may change nothing now.
    #[inline]
    pub fn is_read_only(&self) -> bool {
        self.is_read_only.load(Ordering::Acquire)
    }

    /// Says whether the rest of the open transaction may change nothing.
    pub fn set_read_only(&self, is_read_only: bool) {
        self.is_read_only.store(is_read_only, Ordering::Release);
    }

    /// Notes that a statement runs which is not about the session.
    #[inline]
    pub fn note_run(&self) {
        if self.transaction() != TransactionState::Idle {
            self.block.lock().has_run = true;
        }
    }

    /// Whether such a statement has run in the open transaction.
    pub fn has_run(&self) -> bool {
        self.block.lock().has_run
    }

    /// Notes so many changes.
    #[inline]
    pub fn note_changes(&self, count: u64) {
        self.changes.fetch_add(count, Ordering::Relaxed);
    }

    /// How much was changed so far.
    #[inline]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Keeps what the client is to be told.
    pub fn tell(&self, severity: Severity, sqlstate: &'static str, message: impl Into<String>) {
        let mut notices = self.notices.lock();
        if notices.len() < NOTICES_MAX {
            notices.push(Notice { severity, sqlstate, message: message.into() });
        }
        self.has_notices.store(true, Ordering::Release);
    }

    /// Has the client told that what would take changes back does not.
    pub fn tell_that_changes_stay(&self) {
        let text = "changes are not taken back: each statement takes effect when it is done, and what it changed stays changed";
        self.tell(Severity::Warning, "01000", text);
    }

    /// What the client is to be told since this was asked last.
    #[inline]
    pub fn take_notices(&self) -> Vec<Notice> {
        match self.has_notices.swap(false, Ordering::AcqRel) {
            true => std::mem::take(&mut *self.notices.lock()),
            false => Vec::new(),
        }
    }

    /// The schema in which names without one are made and looked for first: the first of `search_path`.
    pub fn schema(&self) -> Option<String> {
        let path = self.setting("search_path")?;
        let first =
            path.split(',').map(|name| name.trim().trim_matches('"')).find(|name| !name.is_empty() && *name != "$user");
        first.map(str::to_owned)
    }

    /// Where it stands.
    pub fn transaction(&self) -> TransactionState {
        match self.transaction.load(Ordering::Acquire) {
            1 => TransactionState::Open,
            2 => TransactionState::Failed,
            _ => TransactionState::Idle,
        }
    }

    /// When the transaction began that is open, in microseconds since 1970-01-01, if that was said.
    pub fn transaction_began_us(&self) -> Option<i64> {
        let began_us = self.began_us.load(Ordering::Relaxed);
        (began_us != 0 && self.transaction() != TransactionState::Idle).then_some(began_us)
    }

    /// Says when the transaction began.
    pub fn set_transaction_began_us(&self, began_us: i64) {
        self.began_us.store(began_us, Ordering::Relaxed);
    }

    /// Says where it stands.
    pub fn set_transaction(&self, state: TransactionState) {
        self.transaction.store(state as u8, Ordering::Release);
    }
}
