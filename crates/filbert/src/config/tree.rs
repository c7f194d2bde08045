//! The tree that both syntaxes of a configuration file become: names, texts, tables and lists, each with its place.
//!
//! A tree keeps a scalar as the text that stands in the file. What the text means is the schema's business
//! ([`super::setting`]), so that YAML's `5701` and XML's `<port>5701</port>` are read by the same rule.

use std::fmt;

/// A place in a file. Line and column count from 1; the column counts characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

impl Position {
    /// The first character of a file.
    pub const START: Position = Position { line: 1, column: 1 };

    /// A position from counts that a parser gives as `usize`.
    pub(crate) fn new(line: usize, column: usize) -> Position {
        let clamp = |count: usize| u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        Position { line: clamp(line), column: clamp(column) }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// One value of the tree and where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) position: Position,
    pub(crate) value: Value,
}

/// What a node holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// Nothing was written: `name:` in YAML, `<name/>` in XML.
    Empty,
    /// A scalar as it was written, without quotes and surrounding white space.
    Text(String),
    /// Names with values, in the order of the file. XML may repeat a name; the schema says where that is wrong.
    Table(Vec<Entry>),
    /// Values without names.
    List(Vec<Node>),
}

/// A named value of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// Where the name stands, which is the place to show for a setting that is not known.
    pub(crate) position: Position,
    pub(crate) node: Node,
}

impl Node {
    pub(crate) fn new(position: Position, value: Value) -> Node {
        Node { position, value }
    }

    /// What was found, in the words of an error text.
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            Value::Empty => "nothing".to_owned(),
            Value::Text(text) => quote(text),
            Value::Table(_) => "a table of settings".to_owned(),
            Value::List(_) => "a list".to_owned(),
        }
    }

    /// The entry of a table with this name, if there is one.
    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|entry| entry.name == name),
            _ => None,
        }
    }
}

/// Quotes a text for an error message; a long one is cut, so that a message stays one readable line.
pub(crate) fn quote(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 60;
    if text.chars().count() > SHOWN_CHARS_MAX {
        let start: String = text.chars().take(SHOWN_CHARS_MAX).collect();
        format!("{start:?}...")
    } else {
        format!("{text:?}")
    }
}
