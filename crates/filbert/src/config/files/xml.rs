//! Parses XML into the tree of [`super::tree`], in the shape of the equivalent YAML configuration.
//!
//! Hazelcast's XML and YAML configurations have the same content in different shapes. The following
//! rules convert XML to the shape of YAML, so that one schema reads both:
//!
//! | XML | tree |
//! |---|---|
//! | `<port auto-increment="true">5701</port>` | `port: {auto-increment: true, port: 5701}`:
//! attributes become entries, the text becomes the entry with the name of the element |
//! | `<map name="orders">` below the root | `map: {orders: ...}` |
//! | `<property name="a">b</property>` in `properties` | `properties: {a: b}` |
//! | `<indexes><index/><index/></indexes>` | `indexes: [..]`, for the elements of [`LISTS`] |
//! | `<simple><user/><user/></simple>` | `simple: {users: [..]}`, for the same elements |

use roxmltree::{Document, ParsingOptions};

use super::error::Problem;
use super::tree::{Entry, Node, Position, Value, quote};

/// Elements that are list items, with the name of the list in YAML.
const LISTS: &[(&str, &str)] = &[
    ("attribute", "attributes"),
    ("column", "columns"),
    ("index", "indexes"),
    ("interface", "interfaces"),
    ("member", "members"),
    ("realm", "realms"),
    ("role", "roles"),
    ("user", "users"),
];
/// The maximum nesting depth of elements. Hazelcast's own deepest setting is at depth 9.
const DEPTH_MAX: usize = 64;
/// The maximum number of elements, attributes and texts in one file. A useful file of 4 MiB cannot
/// contain many more.
const NODES_MAX: u32 = 200_000;

/// Parses an XML document whose root is `<hazelcast>` into `{hazelcast: ...}`.
pub(super) fn parse(file: &str, text: &str) -> Result<Node, Problem> {
    let options = ParsingOptions { nodes_limit: NODES_MAX, ..ParsingOptions::default() };
    let document = Document::parse_with_options(text, options).map_err(|error| {
        let place = error.pos();
        problem(
            file,
            Position::new(place.row as usize, place.col as usize),
            &format!("broken XML ({error})"),
            "well-formed XML",
        )
    })?;
    let reader = Reader { file, lines: Lines::new(text) };
    let root = document.root_element();
    let position = reader.lines.position(root.range().start);
    let node = reader.element(root, 0)?;
    Ok(Node::new(position, Value::Table(vec![Entry { name: root.tag_name().name().to_owned(), position, node }])))
}

struct Reader<'a> {
    file: &'a str,
    lines: Lines<'a>,
}

impl Reader<'_> {
    fn element(&self, element: roxmltree::Node<'_, '_>, depth: usize) -> Result<Node, Problem> {
        let position = self.lines.position(element.range().start);
        if depth > DEPTH_MAX {
            return Err(problem(self.file, position, "deeper nesting", &format!("at most {DEPTH_MAX} levels")));
        }
        let name = element.tag_name().name();
        let mut content = Content { name, position, entries: Vec::new() };
        for attribute in element.attributes().filter(|attribute| attribute.namespace().is_none()) {
            if attribute.name() == "name" && named_by_attribute(element) {
                continue;
            }
            let position = self.lines.position(attribute.range().start);
            let node = Node::new(position, Value::Text(attribute.value().trim().to_owned()));
            content.entries.push(Entry { name: attribute.name().to_owned(), position, node });
        }
        let text = self.children(element, depth, &mut content)?;
        Ok(content.into_node(text))
    }

    /// Adds the elements below `element` to `content` and returns the text between them.
    fn children(
        &self,
        element: roxmltree::Node<'_, '_>,
        depth: usize,
        content: &mut Content<'_>,
    ) -> Result<Option<Node>, Problem> {
        let mut text: Option<Node> = None;
        for child in element.children() {
            let position = self.lines.position(child.range().start);
            if child.is_text() {
                let written = child.text().unwrap_or_default();
                let trimmed = written.trim();
                if trimmed.is_empty() {
                    continue;
                }
                let leading = written.len() - written.trim_start().len();
                let position = self.lines.position(child.range().start + leading);
                match &mut text {
                    // A comment splits a text into two nodes. They are one text for the reader of
                    // the file.
                    Some(Node { value: Value::Text(before), .. }) => before.push_str(trimmed),
                    _ => text = Some(Node::new(position, Value::Text(trimmed.to_owned()))),
                }
            } else if child.is_element() {
                let node = self.element(child, depth + 1)?;
                content.add(self.file, child, position, node)?;
            }
        }
        match text {
            Some(text) if element.children().any(|child| child.is_element()) => {
                Err(problem(self.file, text.position, &text.describe(), "elements only"))
            }
            text => Ok(text),
        }
    }
}

/// The content of an element read so far.
struct Content<'a> {
    name: &'a str,
    position: Position,
    entries: Vec<Entry>,
}

impl Content<'_> {
    fn add(
        &mut self,
        file: &str,
        child: roxmltree::Node<'_, '_>,
        position: Position,
        node: Node,
    ) -> Result<(), Problem> {
        let name = child.tag_name().name();
        if let Some((_, plural)) = LISTS.iter().find(|(singular, _)| *singular == name) {
            match &mut self.group(plural, position, Value::List(Vec::new())).value {
                Value::List(items) => items.push(node),
                _ => return Err(problem(file, position, &quote(name), &format!("{plural} in one place only"))),
            }
            return Ok(());
        }
        let Some(key) = child.attribute("name").filter(|_| named_by_attribute(child)) else {
            self.entries.push(Entry { name: name.to_owned(), position, node });
            return Ok(());
        };
        let entry = Entry { name: key.trim().to_owned(), position, node };
        if name == "property" {
            self.entries.push(entry);
            return Ok(());
        }
        match &mut self.group(name, position, Value::Table(Vec::new())).value {
            Value::Table(entries) => entries.push(entry),
            _ => return Err(problem(file, position, &quote(name), "the element with a name each time, or never")),
        }
        Ok(())
    }

    /// Returns the node that collects repeated elements.
    fn group(&mut self, name: &str, position: Position, empty: Value) -> &mut Node {
        let index = match self.entries.iter().position(|entry| entry.name == name) {
            Some(index) => index,
            None => {
                let node = Node::new(position, empty);
                self.entries.push(Entry { name: name.to_owned(), position, node });
                self.entries.len() - 1
            }
        };
        #[expect(clippy::indexing_slicing, reason = "the index was just found or pushed")]
        &mut self.entries[index].node
    }

    fn into_node(mut self, text: Option<Node>) -> Node {
        match text {
            Some(text) if self.entries.is_empty() => text,
            Some(text) => {
                self.entries.push(Entry { name: self.name.to_owned(), position: text.position, node: text });
                Node::new(self.position, Value::Table(self.entries))
            }
            None => match self.entries.as_mut_slice() {
                [] => Node::new(self.position, Value::Empty),
                // `<indexes><index/></indexes>` is itself the list.
                [only] if only.name == self.name && matches!(only.node.value, Value::List(_)) => {
                    Node::new(self.position, std::mem::replace(&mut only.node.value, Value::Empty))
                }
                _ => Node::new(self.position, Value::Table(self.entries)),
            },
        }
    }
}

/// Whether the attribute `name` is the key of this element in YAML. This is true for a property,
/// and for a structure below the root.
fn named_by_attribute(element: roxmltree::Node<'_, '_>) -> bool {
    let below_root = element.parent().is_some_and(|parent| parent.parent().is_some_and(|above| above.is_root()));
    element.has_attribute("name") && (below_root || element.tag_name().name() == "property")
}

/// Converts byte offsets to positions. The parser's own conversion scans from the start of the text
/// each time.
struct Lines<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    fn new(text: &'a str) -> Lines<'a> {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(offset, _)| offset + 1)).collect();
        Lines { text, starts }
    }

    fn position(&self, offset: usize) -> Position {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        let column = self.text.get(start..offset).map_or(0, |before| before.chars().count()) + 1;
        Position::new(line, column)
    }
}

fn problem(file: &str, position: Position, found: &str, expected: &str) -> Problem {
    Problem {
        file: file.to_owned(),
        position,
        path: String::new(),
        found: found.to_owned(),
        expected: expected.to_owned(),
    }
}
