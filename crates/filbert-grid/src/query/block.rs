//! What a session keeps between `BEGIN` and the end of its transaction, and the notices that go to its client.
//!
//! Statements take effect one by one: what a transaction keeps is what can be given back (settings), what is forbidden (changes, if it is
//! read only) and what has to be told (that changes stay).

use std::collections::BTreeMap;
use std::sync::Arc;

/// Settings by name in lower case.
pub(super) type Settings = BTreeMap<String, String>;

/// Bytes of a savepoint beside its name and settings.
pub(super) const SAVEPOINT_BYTES: usize = 128;

/// Bytes that a setting takes beside its name and its value, more or less: its place in a list, and what the allocator adds.
pub const SETTING_BYTES: usize = 96;

/// Bytes of settings.
pub(super) fn settings_bytes(settings: &Settings) -> usize {
    settings.iter().map(|(name, value)| SETTING_BYTES + name.len() + value.len()).sum()
}

/// How much a notice asks for attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something was left undone, as the statement allows.
    Notice,
    /// Something is not as the client may believe.
    Warning,
}

impl Severity {
    /// Its name in PostgreSQL's protocol.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Notice => "NOTICE",
            Severity::Warning => "WARNING",
        }
    }
}

/// What a session tells its client beside a statement's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// How much it asks for attention.
    pub severity: Severity,
    /// SQLSTATE.
    pub sqlstate: &'static str,
    /// The text.
    pub message: String,
}

/// The state of an open transaction.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// The settings when it began.
    pub(super) before: Arc<Settings>,
    /// What settings were before `SET LOCAL`.
    pub(super) local: BTreeMap<String, Option<String>>,
    /// The session's count of changes when it began.
    pub(super) changes: u64,
    /// Whether a statement has run in it that is not about the session.
    pub(super) has_run: bool,
    pub(super) savepoints: Vec<Savepoint>,
}

/// A savepoint.
#[derive(Debug)]
pub(super) struct Savepoint {
    pub(super) name: String,
    pub(super) settings: Arc<Settings>,
    pub(super) changes: u64,
}

impl Block {
    /// Bytes of the settings and savepoints that it keeps beside the settings that count now.
    pub(super) fn bytes(&self, now: &Arc<Settings>) -> usize {
        let local = self.local.iter();
        let local = local.map(|(name, before)| SETTING_BYTES + name.len() + before.as_ref().map_or(0, String::len));
        let mut bytes = local.sum();
        let mut last = &self.before;
        if !Arc::ptr_eq(last, now) {
            bytes += settings_bytes(last);
        }
        for savepoint in &self.savepoints {
            bytes += SAVEPOINT_BYTES + savepoint.name.len();
            // Those that follow each other have the same settings, unless some were set between them.
            if !Arc::ptr_eq(&savepoint.settings, last) && !Arc::ptr_eq(&savepoint.settings, now) {
                bytes += settings_bytes(&savepoint.settings);
            }
            last = &savepoint.settings;
        }
        bytes
    }
}
