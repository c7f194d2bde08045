//! The common tree of both configuration syntaxes: names, texts, tables and lists, each with its
//! position.
//!
//! A scalar keeps its text from the file. The schema ([`super::setting`]) interprets the text, so
//! the same rule reads `5701` in YAML and `<port>5701</port>` in XML.

use std::fmt;

/// A position in a file.
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

    /// Converts the `usize` line and column of a parser.
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

/// A value of the tree, with its start position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) position: Position,
    pub(crate) value: Value,
}

/// The value of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// An absent value: `name:` in YAML, `<name/>` in XML.
    Empty,
    /// A scalar as written in the file, without quotes and surrounding white space.
    Text(String),
    /// Named values, in file order. XML permits repeated names; the schema decides where they are
    /// an error.
    Table(Vec<Entry>),
    /// Unnamed values.
    List(Vec<Node>),
}

/// A named value of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// The position of the name. Reports about an unknown setting show this position.
    pub(crate) position: Position,
    pub(crate) node: Node,
}

impl Node {
    pub(crate) fn new(position: Position, value: Value) -> Node {
        Node { position, value }
    }

    /// A description of the value for error texts.
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            Value::Empty => "nothing".to_owned(),
            Value::Text(text) => quote(text),
            Value::Table(_) => "a table of settings".to_owned(),
            Value::List(_) => "a list".to_owned(),
        }
    }

    /// Returns the table entry with this name, if present.
    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        match &self.value {
            Value::Table(entries) => entries.iter().find(|entry| entry.name == name),
            _ => None,
        }
    }
}

/// Quotes a text for an error message. A long text is truncated, so that the message stays one
/// readable line.
pub(crate) fn quote(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 60;
    if text.chars().count() > SHOWN_CHARS_MAX {
        let start: String = text.chars().take(SHOWN_CHARS_MAX).collect();
        format!("{start:?}...")
    } else {
        format!("{text:?}")
    }
}
