//! What a door knows of who asks: the dialect, the user, and the settings that `SET` changes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU8, Ordering};

use parking_lot::Mutex;

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
    /// By name in lower case.
    settings: Mutex<BTreeMap<String, String>>,
    /// What settings are where nothing is set, by name in lower case.
    defaults: BTreeMap<String, String>,
}

impl Session {
    /// A session without settings of its own.
    pub fn new(dialect: Dialect, user: impl Into<String>) -> Session {
        let (transaction, began_us, process, settings, defaults) = Default::default();
        Session { dialect, user: user.into(), transaction, began_us, process, settings, defaults }
    }

    /// The same with settings that it begins with, and to which they are reset.
    #[must_use]
    pub fn with_defaults(self, defaults: impl IntoIterator<Item = (String, String)>) -> Session {
        let defaults = defaults.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect();
        Session { defaults, ..self }
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

    /// Sets a setting; `None` = back to what it is by default.
    pub fn set(&self, name: &str, value: Option<String>) {
        let name = name.to_ascii_lowercase();
        let mut settings = self.settings.lock();
        match value {
            Some(value) => settings.insert(name, value),
            None => settings.remove(&name),
        };
    }

    /// Sets everything back to what it is by default.
    pub fn reset(&self) {
        self.settings.lock().clear();
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
