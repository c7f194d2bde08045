//! Prepared statements and portals of a session, by their names.

use std::{collections::HashMap, sync::Arc};

use filbert_data::{FieldType, Value};
use filbert_grid::query::{ColumnMeta, Command, ParameterType};

use crate::{
    error::{PgError, sqlstate},
    kept::Kept,
    rows::Rows,
    statement::own::Own,
    types::PgType,
    wire::Format,
};

/// Bytes that a name and what it stands for take beside what they hold, more or less.
const THING_BYTES: usize = 512;

/// Bytes that a statement keeps of each of its parameters: its OID, its type, and the type that was declared, which may have a box for the
/// type of items.
const PARAMETER_BYTES: usize =
    size_of::<u32>() + size_of::<PgType>() + size_of::<Option<ParameterType>>() + size_of::<FieldType>();

/// What a client can do that keeps too much.
const CLOSE_SOME: &str = "Close prepared statements, cursors and portals that are not needed any more.";

/// Bytes that something of this name needs before anything is known of it.
pub(crate) fn named_bytes(name: &str) -> usize {
    THING_BYTES + name.len()
}

/// Bytes that a statement of this text and so many parameters will keep, as far as that is known before it is understood.
pub(crate) fn statement_bytes(text: &str, parameters: usize) -> usize {
    text.len() + parameters * PARAMETER_BYTES
}

/// What kind of statement one is.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// The engine's.
    Engine(Command),
    /// The protocol's own.
    Own(Own),
}

/// A statement that was understood.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) text: String,
    pub(crate) kind: Kind,
    /// OIDs of its parameters, as they are described.
    pub(crate) oids: Vec<u32>,
    /// The same as types; where an OID is not known, values are read as text.
    pub(crate) parameters: Vec<PgType>,
    /// The types that the client or a cast in the text says of them, by which the engine plans the statement.
    pub(crate) declared: Vec<Option<ParameterType>>,
    pub(crate) columns: Option<Arc<[ColumnMeta]>>,
    /// Its room; none of one that is not kept.
    room: Option<Kept>,
}

impl Prepared {
    /// A statement of which nothing else is known, without parameters and rows.
    pub(crate) fn new(text: &str, kind: Kind) -> Prepared {
        let (oids, parameters, declared, columns, room) = Default::default();
        Prepared { text: text.to_owned(), kind, oids, parameters, declared, columns, room }
    }

    /// The statement, to be kept under a name. Its room is `room`, which was taken before it was understood.
    ///
    /// # Errors
    /// There is no room for what was found out about it.
    pub(crate) fn kept(mut self, name: &str, mut room: Kept) -> Result<Arc<Prepared>, Box<PgError>> {
        room.resize(named_bytes(name) + self.bytes())?;
        self.room = Some(room);
        Ok(Arc::new(self))
    }

    fn bytes(&self) -> usize {
        // The protocol's own statements have parts of the text once more.
        let again = if matches!(self.kind, Kind::Own(_)) { self.text.len() } else { 0 };
        let columns = self.columns.iter().flat_map(|columns| columns.iter());
        let columns: usize = columns.map(|column| size_of::<ColumnMeta>() + column.name.len()).sum();
        let parameters = self.oids.len().max(self.declared.len());
        statement_bytes(&self.text, parameters) + again + columns
    }
}

/// A place of limited size for things with names.
#[derive(Debug)]
struct Named<T> {
    things: HashMap<String, (T, usize)>,
    count_max: usize,
    bytes: usize,
    bytes_max: usize,
}

impl<T> Named<T> {
    fn new(count_max: usize, bytes_max: usize) -> Self {
        Named { things: HashMap::new(), count_max, bytes: 0, bytes_max }
    }

    fn remove(&mut self, name: &str) -> Option<T> {
        let (thing, bytes) = self.things.remove(name)?;
        self.bytes -= bytes;
        Some(thing)
    }

    fn put(&mut self, name: &str, thing: T, bytes: usize, what: &str) -> Result<(), Box<PgError>> {
        self.remove(name);
        let bytes = bytes.saturating_add(named_bytes(name));
        if self.things.len() >= self.count_max {
            let message = format!("this session already has {} {what}, the most that it may have", self.things.len());
            return Err(PgError::new(sqlstate::LIMIT_EXCEEDED, message).with_hint(CLOSE_SOME));
        }
        if !self.things.is_empty() && self.bytes.saturating_add(bytes) > self.bytes_max {
            let message = format!(
                "the {what} of this session keep {} bytes already, kept_bytes_max is {}",
                self.bytes, self.bytes_max
            );
            return Err(PgError::new(sqlstate::LIMIT_EXCEEDED, message).with_hint(CLOSE_SOME));
        }
        self.bytes += bytes;
        self.things.insert(name.to_owned(), (thing, bytes));
        Ok(())
    }

    fn get(&self, name: &str) -> Option<&T> {
        self.things.get(name).map(|(thing, _)| thing)
    }

    fn retain(&mut self, stays: impl Fn(&T) -> bool) {
        let bytes = &mut self.bytes;
        self.things.retain(|_, (thing, kept)| {
            let stays = stays(thing);
            if !stays {
                *bytes -= *kept;
            }
            stays
        });
    }
}

/// Prepared statements. The one without a name is replaced by each new one.
#[derive(Debug)]
pub(crate) struct Statements(Named<Arc<Prepared>>);

impl Statements {
    pub(crate) fn new(count_max: usize, bytes_max: usize) -> Self {
        Statements(Named::new(count_max, bytes_max))
    }

    /// Keeps a statement.
    ///
    /// # Errors
    /// There is one of the name, or there are too many.
    pub(crate) fn put(&mut self, name: &str, statement: Arc<Prepared>) -> Result<(), Box<PgError>> {
        self.check_free(name)?;
        let bytes = statement.bytes();
        self.0.put(name, statement, bytes, "prepared statements")
    }

    /// Whether a statement of the name could be kept.
    ///
    /// # Errors
    /// There is one of the name.
    pub(crate) fn check_free(&self, name: &str) -> Result<(), Box<PgError>> {
        if !name.is_empty() && self.0.get(name).is_some() {
            let message = format!("prepared statement \"{name}\" already exists");
            return Err(PgError::new(sqlstate::DUPLICATE_STATEMENT, message));
        }
        Ok(())
    }

    /// The statement of a name.
    ///
    /// # Errors
    /// There is none.
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

/// How far a portal is.
pub(crate) enum Progress {
    /// It has not run.
    New,
    /// It runs; rows are left.
    Rows(Rows),
    /// It is over.
    Done,
}

/// A statement with values for its parameters; a cursor.
pub(crate) struct Portal {
    pub(crate) statement: Arc<Prepared>,
    pub(crate) values: Vec<Value<'static>>,
    /// How each column is written; one or none is for all.
    pub(crate) formats: Vec<Format>,
    pub(crate) progress: Progress,
    /// Whether it outlives the transaction.
    pub(crate) hold: bool,
    /// Room for the values, and for rows that were made and not read. The statement has its own.
    pub(crate) room: Kept,
}

impl Portal {
    fn bytes(&self) -> usize {
        // Values are of the size of the texts they came in, more or less. Rows that were made and not read are a page.
        let rows = match &self.progress {
            Progress::Rows(rows) => rows.bytes(),
            Progress::New | Progress::Done => 0,
        };
        self.values.iter().map(kept_bytes).sum::<usize>() + self.formats.len() + rows
    }
}

/// How a column is written: one format, or none, is for all columns.
pub(crate) fn format_of(formats: &[Format], column: usize) -> Format {
    match formats {
        [] => Format::Text,
        [one] => *one,
        several => several.get(column).copied().unwrap_or_default(),
    }
}

/// Bytes that a value keeps.
pub(crate) fn kept_bytes(value: &Value<'_>) -> usize {
    size_of::<Value<'_>>()
        + match value {
            Value::Text(text) | Value::Json(text) => text.len(),
            Value::Bytes(bytes) | Value::Object(bytes) => bytes.len(),
            Value::Array(items) => items.iter().map(kept_bytes).sum(),
            _ => 0,
        }
}

/// Portals, cursors among them. The one without a name is replaced by each new one.
pub(crate) struct Portals(Named<Portal>);

impl Portals {
    pub(crate) fn new(count_max: usize, bytes_max: usize) -> Self {
        Portals(Named::new(count_max, bytes_max))
    }

    /// Keeps a portal.
    ///
    /// # Errors
    /// There is one of the name, or there are too many.
    pub(crate) fn put(&mut self, name: &str, mut portal: Portal) -> Result<(), Box<PgError>> {
        if !name.is_empty() && self.0.get(name).is_some() {
            let message = format!("cursor \"{name}\" already exists");
            return Err(PgError::new(sqlstate::DUPLICATE_CURSOR, message));
        }
        let bytes = portal.bytes();
        portal.room.resize(named_bytes(name) + bytes)?;
        // A statement that nobody else has is the portal's: that of a cursor, and one that was closed.
        let own = if Arc::strong_count(&portal.statement) == 1 { portal.statement.bytes() } else { 0 };
        self.0.put(name, portal, bytes + own, "portals")
    }

    /// The portal of a name.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn get(&self, name: &str) -> Result<&Portal, Box<PgError>> {
        self.0.get(name).ok_or_else(|| none(name))
    }

    /// Takes a portal out, to run it.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn take(&mut self, name: &str) -> Result<Portal, Box<PgError>> {
        self.0.remove(name).ok_or_else(|| none(name))
    }

    pub(crate) fn remove(&mut self, name: &str) -> bool {
        self.0.remove(name).is_some()
    }

    pub(crate) fn clear(&mut self) {
        self.0.retain(|_| false);
    }

    /// Closes what does not outlive the transaction.
    pub(crate) fn end_transaction(&mut self) {
        if !self.0.things.is_empty() {
            self.0.retain(|portal| portal.hold);
        }
    }
}

fn none(name: &str) -> Box<PgError> {
    let what = if name.is_empty() { "unnamed portal".to_owned() } else { format!("cursor \"{name}\"") };
    PgError::new(sqlstate::INVALID_CURSOR_NAME, format!("{what} does not exist"))
}
