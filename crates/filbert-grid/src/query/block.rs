//! The state of a session's open transaction, and the notices for its client.
//!
//! Each statement takes effect separately. So the state of a transaction consists of the settings
//! to restore, whether it is read only, and whether a warning about changes that cannot be rolled
//! back is necessary.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Settings by name. Names are in lower case.
pub(super) type Settings = BTreeMap<String, String>;

/// The memory of a savepoint beside its name and settings, in bytes.
pub(super) const SAVEPOINT_BYTES: usize = 128;

/// The approximate memory of a setting beside its name and value, in bytes: its place in a map, and
/// the overhead of the allocator.
pub const SETTING_BYTES: usize = 96;

/// The memory of settings, in bytes.
pub(super) fn settings_bytes(settings: &Settings) -> usize {
    settings.iter().map(|(name, value)| SETTING_BYTES + name.len() + value.len()).sum()
}

/// The severity of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The statement allows that a part of it was skipped.
    Notice,
    /// The client may have a wrong assumption.
    Warning,
}

impl Severity {
    /// The name in PostgreSQL's protocol.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Notice => "NOTICE",
            Severity::Warning => "WARNING",
        }
    }
}

/// A message for the client beside a statement's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The severity.
    pub severity: Severity,
    /// The SQLSTATE.
    pub sqlstate: &'static str,
    /// The text.
    pub message: String,
}

/// The state of an open transaction.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// The settings at the start of the transaction.
    pub(super) before: Arc<Settings>,
    /// The settings before `SET LOCAL`.
    pub(super) local: BTreeMap<String, Option<String>>,
    /// The session's change count at the start of the transaction.
    pub(super) changes: u64,
    /// Whether a statement has run in the transaction, except for session statements.
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
    /// The memory of its stored settings and savepoints, in bytes, except for the current settings
    /// `now`.
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
            // Consecutive savepoints share their settings, unless a setting was changed between
            // them.
            if !Arc::ptr_eq(&savepoint.settings, last) && !Arc::ptr_eq(&savepoint.settings, now) {
                bytes += settings_bytes(&savepoint.settings);
            }
            last = &savepoint.settings;
        }
        bytes
    }
}
