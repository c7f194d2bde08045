//! The prepared statements and portals of a session, by name.

use std::{collections::HashMap, sync::Arc};

use filbert_data::{FieldType, Value};
use filbert_grid::query::{ColumnMeta, Command, ParameterType};

use crate::{
    error::{PgError, sqlstate},
    memory::MemoryLease,
    rows::Rows,
    statement::session_statement::SessionStatement,
    types::PgType,
    wire::Format,
};

/// The approximate overhead of a named object in bytes.
const ENTRY_BYTES: usize = 512;

/// The bytes that a statement keeps for each of its parameters: its OID, its type, and its declared
/// type, which may have a box for the item type of an array.
const PARAMETER_BYTES: usize =
    size_of::<u32>() + size_of::<PgType>() + size_of::<Option<ParameterType>>() + size_of::<FieldType>();

/// The hint for a client that keeps too much.
const CLOSE_SOME: &str = "Close prepared statements, cursors and portals that are not needed any more.";

/// The bytes of an object with this name, before anything else is known about it.
pub(crate) fn named_bytes(name: &str) -> usize {
    ENTRY_BYTES + name.len()
}

/// The bytes that a statement with this text and number of parameters will keep, as far as they are
/// known before the statement is analyzed.
pub(crate) fn statement_bytes(text: &str, parameters: usize) -> usize {
    text.len() + parameters * PARAMETER_BYTES
}

/// The kind of a statement.
#[derive(Clone, Debug)]
pub(crate) enum PreparedKind {
    /// A statement of the engine.
    Engine(Command),
    /// A statement of the protocol itself.
    Session(SessionStatement),
}

/// A statement that was analyzed.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) text: String,
    pub(crate) kind: PreparedKind,
    /// The OIDs of its parameters, as they are described to the client.
    pub(crate) oids: Vec<u32>,
    /// The types of its parameters. Values of an unknown OID are read as text.
    pub(crate) parameters: Vec<PgType>,
    /// The types of its parameters that the client declared or that a cast in the text gives. The
    /// engine plans the statement with them.
    pub(crate) declared: Vec<Option<ParameterType>>,
    pub(crate) columns: Option<Arc<[ColumnMeta]>>,
    /// Its memory reservation. `None` if the statement is not kept.
    lease: Option<MemoryLease>,
}

impl Prepared {
    /// A statement without parameters and columns.
    pub(crate) fn new(text: &str, kind: PreparedKind) -> Prepared {
        let (oids, parameters, declared, columns, lease) = Default::default();
        Prepared { text: text.to_owned(), kind, oids, parameters, declared, columns, lease }
    }

    /// Completes the statement for keeping it under a name. `lease` is the memory reservation that
    /// was made before the statement was analyzed.
    ///
    /// # Errors
    /// There is not enough memory for the parameters and columns that the analysis found.
    pub(crate) fn into_named(mut self, name: &str, mut lease: MemoryLease) -> Result<Arc<Prepared>, Box<PgError>> {
        lease.resize(named_bytes(name) + self.bytes())?;
        self.lease = Some(lease);
        Ok(Arc::new(self))
    }

    fn bytes(&self) -> usize {
        // Statements of the protocol itself hold parts of the text a second time.
        let copied_text = if matches!(self.kind, PreparedKind::Session(_)) { self.text.len() } else { 0 };
        let columns = self.columns.iter().flat_map(|columns| columns.iter());
        let columns: usize = columns.map(|column| size_of::<ColumnMeta>() + column.name.len()).sum();
        let parameters = self.oids.len().max(self.declared.len());
        statement_bytes(&self.text, parameters) + copied_text + columns
    }
}

/// A collection of named objects with limits on their number and size.
#[derive(Debug)]
struct Named<T> {
    entries: HashMap<String, (T, usize)>,
    count_max: usize,
    bytes: usize,
    bytes_max: usize,
}

impl<T> Named<T> {
    fn new(count_max: usize, bytes_max: usize) -> Self {
        Named { entries: HashMap::new(), count_max, bytes: 0, bytes_max }
    }

    fn remove(&mut self, name: &str) -> Option<T> {
        let (entry, bytes) = self.entries.remove(name)?;
        self.bytes -= bytes;
        Some(entry)
    }

    fn put(&mut self, name: &str, entry: T, bytes: usize, what: &str) -> Result<(), Box<PgError>> {
        self.remove(name);
        let bytes = bytes.saturating_add(named_bytes(name));
        if self.entries.len() >= self.count_max {
            let message = format!("this session already has {} {what}, the most that it may have", self.entries.len());
            return Err(PgError::new(sqlstate::LIMIT_EXCEEDED, message).with_hint(CLOSE_SOME));
        }
        if !self.entries.is_empty() && self.bytes.saturating_add(bytes) > self.bytes_max {
            let message = format!(
                "the {what} of this session keep {} bytes already, kept_bytes_max is {}",
                self.bytes, self.bytes_max
            );
            return Err(PgError::new(sqlstate::LIMIT_EXCEEDED, message).with_hint(CLOSE_SOME));
        }
        self.bytes += bytes;
        self.entries.insert(name.to_owned(), (entry, bytes));
        Ok(())
    }

    fn get(&self, name: &str) -> Option<&T> {
        self.entries.get(name).map(|(entry, _)| entry)
    }

    fn retain(&mut self, is_kept: impl Fn(&T) -> bool) {
        let bytes = &mut self.bytes;
        self.entries.retain(|_, (entry, kept)| {
            let is_kept = is_kept(entry);
            if !is_kept {
                *bytes -= *kept;
            }
            is_kept
        });
    }
}

/// The prepared statements. A new unnamed statement replaces the previous one.
#[derive(Debug)]
pub(crate) struct Statements(Named<Arc<Prepared>>);

impl Statements {
    pub(crate) fn new(count_max: usize, bytes_max: usize) -> Self {
        Statements(Named::new(count_max, bytes_max))
    }

    /// Keeps a statement.
    ///
    /// # Errors
    /// There is a statement with this name, or there are too many.
    pub(crate) fn put(&mut self, name: &str, statement: Arc<Prepared>) -> Result<(), Box<PgError>> {
        self.check_free(name)?;
        let bytes = statement.bytes();
        self.0.put(name, statement, bytes, "prepared statements")
    }

    /// Checks that no statement with this name exists. The unnamed statement can always be
    /// replaced.
    ///
    /// # Errors
    /// There is a statement with this name.
    pub(crate) fn check_free(&self, name: &str) -> Result<(), Box<PgError>> {
        if !name.is_empty() && self.0.get(name).is_some() {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(PgError::new(sqlstate::DUPLICATE_STATEMENT, message));
        }
        Ok(())
    }

    /// Returns the statement with this name.
    ///
    /// # Errors
    /// There is no such statement.
    pub(crate) fn get(&self, name: &str) -> Result<&Arc<Prepared>, Box<PgError>> {
        self.0.get(name).ok_or_else(|| {
            let message = match name {
                "" => "unnamed prepared statement does not exist".to_owned(),
                name => format!("prepared statement \"{name}\" does not exist"),
            };
            PgError::new(sqlstate::INVALID_STATEMENT_NAME, message)
        })
    }

    pub(crate) fn remove(&mut self, name: &str) -> bool {
        self.0.remove(name).is_some()
    }

    pub(crate) fn clear(&mut self) {
        self.0.retain(|_| false);
    }
}

/// The progress of a portal.
pub(crate) enum Progress {
    /// It has not run yet.
    New,
    /// It runs, and rows are left.
    Rows(Rows),
    /// It has ended.
    Done,
}

/// A statement with values for its parameters, or a cursor.
pub(crate) struct Portal {
    pub(crate) statement: Arc<Prepared>,
    pub(crate) values: Vec<Value<'static>>,
    /// The format of each column. An empty list means text for all. One format applies to all
    /// columns.
    pub(crate) formats: Vec<Format>,
    pub(crate) progress: Progress,
    /// Whether the portal outlives the transaction.
    pub(crate) hold: bool,
    /// The memory reservation of the values, and of rows that were produced and not read. The
    /// statement has its own reservation.
    pub(crate) lease: MemoryLease,
}

impl Portal {
    fn bytes(&self) -> usize {
        // Values have about the size of the texts that they came from. Rows that were produced and
        // not read are one page.
        let rows = match &self.progress {
            Progress::Rows(rows) => rows.bytes(),
            Progress::New | Progress::Done => 0,
        };
        self.values.iter().map(kept_bytes).sum::<usize>() + self.formats.len() + rows
    }
}

/// The number of bytes that a value keeps.
pub(crate) fn kept_bytes(value: &Value<'_>) -> usize {
    size_of::<Value<'_>>()
        + match value {
            Value::Text(text) | Value::Json(text) => text.len(),
            Value::Bytes(bytes) | Value::Object(bytes) => bytes.len(),
            Value::Array(items) => items.iter().map(kept_bytes).sum(),
            _ => 0,
        }
}

/// The portals and cursors. A new unnamed portal replaces the previous one.
pub(crate) struct Portals(Named<Portal>);

impl Portals {
    pub(crate) fn new(count_max: usize, bytes_max: usize) -> Self {
        Portals(Named::new(count_max, bytes_max))
    }

    /// Keeps a portal.
    ///
    /// # Errors
    /// There is a portal with this name, or there are too many.
    pub(crate) fn put(&mut self, name: &str, mut portal: Portal) -> Result<(), Box<PgError>> {
        if !name.is_empty() && self.0.get(name).is_some() {
            let message = format!("cursor \"{name}\" already exists");
            return Err(PgError::new(sqlstate::DUPLICATE_CURSOR, message));
        }
        let bytes = portal.bytes();
        portal.lease.resize(named_bytes(name) + bytes)?;
        // A statement without another owner counts for the portal: the statement of a cursor, or
        // one that was closed.
        let unshared_bytes = if Arc::strong_count(&portal.statement) == 1 { portal.statement.bytes() } else { 0 };
        self.0.put(name, portal, bytes + unshared_bytes, "portals")
    }

    /// Returns the portal with this name.
    ///
    /// # Errors
    /// There is no such portal.
    pub(crate) fn get(&self, name: &str) -> Result<&Portal, Box<PgError>> {
        self.0.get(name).ok_or_else(|| none(name))
    }

    /// Removes and returns a portal, to run it.
    ///
    /// # Errors
    /// There is no such portal.
    pub(crate) fn take(&mut self, name: &str) -> Result<Portal, Box<PgError>> {
        self.0.remove(name).ok_or_else(|| none(name))
    }

    pub(crate) fn remove(&mut self, name: &str) -> bool {
        self.0.remove(name).is_some()
    }

    pub(crate) fn clear(&mut self) {
        self.0.retain(|_| false);
    }

    /// Closes all portals that do not outlive the transaction.
    pub(crate) fn end_transaction(&mut self) {
        if !self.0.entries.is_empty() {
            self.0.retain(|portal| portal.hold);
        }
    }
}

fn none(name: &str) -> Box<PgError> {
    let what = if name.is_empty() { "unnamed portal".to_owned() } else { format!("cursor \"{name}\"") };
    PgError::new(sqlstate::INVALID_CURSOR_NAME, format!("{what} does not exist"))
}
