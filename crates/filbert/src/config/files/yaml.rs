//! Parses YAML into the tree of [`super::tree`].
//!
//! It uses the parser's events instead of a loaded document. So a scalar keeps its text (the schema
//! interprets `0x10`, `off` and `1.0`), every name keeps its position, and a repeated name is an
//! error that shows both positions.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput};

use super::error::Problem;
use super::tree::{Entry, Node, Position, Value, quote};

/// The maximum nesting depth of tables and lists. Hazelcast's own deepest setting is at depth 9.
const DEPTH_MAX: usize = 64;
/// The maximum number of nodes that aliases (`*name`) may add to a document. It prevents a few
/// lines from expanding to gigabytes.
const ALIAS_NODES_MAX: usize = 10_000;

/// Parses one YAML document. An empty document is [`Value::Empty`].
pub(super) fn parse(file: &str, text: &str) -> Result<Node, Problem> {
    let mut reader = Reader { file, parser: Parser::new_from_str(text), anchors: HashMap::new(), alias_nodes: 0 };
    reader.document()
}

struct Reader<'a> {
    file: &'a str,
    parser: Parser<'a, StrInput<'a>>,
    anchors: HashMap<usize, Node>,
    alias_nodes: usize,
}

impl<'a> Reader<'a> {
    fn document(&mut self) -> Result<Node, Problem> {
        let mut document = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => break,
                Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
                _ if document.is_some() => {
                    return Err(self.problem(at(span.start), "a second document", "one document in the file"));
                }
                event => document = Some(self.node(event, span, 0)?),
            }
        }
        Ok(document.unwrap_or(Node::new(Position::START, Value::Empty)))
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<Node, Problem> {
        let position = at(span.start);
        if depth > DEPTH_MAX {
            return Err(self.problem(position, "deeper nesting", &format!("at most {DEPTH_MAX} levels")));
        }
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, _) => (scalar(&text, style), anchor),
            Event::MappingStart(anchor, _) => (Value::Table(self.table(depth)?), anchor),
            Event::SequenceStart(anchor, _) => (Value::List(self.list(depth)?), anchor),
            Event::Alias(anchor) => (self.alias(anchor, position)?, 0),
            _ => return Err(self.problem(position, "the end of the document", "a value")),
        };
        let node = Node::new(position, value);
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        Ok(node)
    }

    fn table(&mut self, depth: usize) -> Result<Vec<Entry>, Problem> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let (event, span) = self.next()?;
            let position = at(span.start);
            let name = match event {
                Event::MappingEnd => return Ok(entries),
                Event::Scalar(name, _, _, _) => name.into_owned(),
                _ => return Err(self.problem(position, "a table or a list as a name", "a text as the name")),
            };
            if let Some(first) = entries.iter().find(|entry| entry.name == name) {
                let expected = format!("the name once (it stands on line {} too)", first.position.line);
                return Err(self.problem(position, &format!("{} again", quote(&name)), &expected));
            }
            let (event, span) = self.next()?;
            let mut node = self.node(event, span, depth + 1)?;
            if node.value == Value::Empty {
                // An absent value has no position of its own.
                node.position = position;
            }
            entries.push(Entry { name, position, node });
        }
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, Problem> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok(items);
            }
            items.push(self.node(event, span, depth + 1)?);
        }
    }

    fn alias(&mut self, anchor: usize, position: Position) -> Result<Value, Problem> {
        let Some(node) = self.anchors.get(&anchor) else {
            return Err(self.problem(
                position,
                "an alias inside of what it stands for",
                "an anchor that ends before it",
            ));
        };
        let value = node.value.clone();
        self.alias_nodes += nodes(&value);
        if self.alias_nodes > ALIAS_NODES_MAX {
            let expected = format!("at most {ALIAS_NODES_MAX} values through aliases");
            return Err(self.problem(position, "more values through aliases", &expected));
        }
        Ok(value)
    }

    fn next(&mut self) -> Result<(Event<'a>, Span), Problem> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(self.scan_problem(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn scan_problem(&self, error: &ScanError) -> Problem {
        self.problem(at(*error.marker()), &format!("broken YAML ({})", error.info()), "well-formed YAML")
    }

    fn problem(&self, position: Position, found: &str, expected: &str) -> Problem {
        Problem {
            file: self.file.to_owned(),
            position,
            path: String::new(),
            found: found.to_owned(),
            expected: expected.to_owned(),
        }
    }
}

/// A plain scalar that YAML reads as null is an absent value. A quoted scalar is always a text.
fn scalar(text: &str, style: ScalarStyle) -> Value {
    match (style, text) {
        (ScalarStyle::Plain, "" | "~" | "null" | "Null" | "NULL") => Value::Empty,
        (ScalarStyle::Plain, _) => Value::Text(text.trim().to_owned()),
        _ => Value::Text(text.to_owned()),
    }
}

fn nodes(value: &Value) -> usize {
    match value {
        Value::Empty | Value::Text(_) => 1,
        Value::Table(entries) => 1 + entries.iter().map(|entry| nodes(&entry.node.value)).sum::<usize>(),
        Value::List(items) => 1 + items.iter().map(|item| nodes(&item.value)).sum::<usize>(),
    }
}

fn at(marker: Marker) -> Position {
    Position::new(marker.line(), marker.col() + 1)
}
