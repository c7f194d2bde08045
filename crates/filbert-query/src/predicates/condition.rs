//! Compiled predicates, which are checked on entry after entry.

use std::cmp::Ordering;

use filbert_data::criteria::Predicate;
use filbert_data::{BLOB_HEADER_BYTES, DataError, FieldPath, FieldReader, Formats, TypeId, Value, type_id};
use filbert_grid::GridError;
use regex::{Regex, RegexBuilder};

use super::compare::{compare, equals};
use super::members::Members;

/// The maximum nesting of predicates: each level uses stack.
const DEPTH_MAX: usize = 200;
/// The maximum size of one compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// A condition.
enum Node {
    Constant(bool),
    All(Vec<Node>),
    Any(Vec<Node>),
    Not(Box<Node>),
    Test { field: usize, test: Test },
    InstanceOf(String),
}

/// The condition on one field.
enum Test {
    Equal(Value<'static>),
    Compare { value: Value<'static>, equal: bool, less: bool },
    Between { from: Value<'static>, to: Value<'static> },
    In(Members),
    Matches(Option<Regex>),
}

/// A predicate over entries.
pub(crate) struct Condition {
    node: Node,
    reader: FieldReader,
    formats: Formats,
}

impl Condition {
    /// Compiles a predicate. The partition of a `Predicate::Partition` is handled elsewhere; here
    /// only its inner predicate counts.
    pub(crate) fn compile(predicate: &Predicate, formats: &Formats) -> Result<Condition, GridError> {
        let mut fields = Vec::new();
        let node = compile(predicate, &mut fields, 0)?;
        let reader = FieldReader::new(fields, formats.clone());
        Ok(Condition { node, reader, formats: formats.clone() })
    }

    /// Whether it holds for every entry, so none needs to be read.
    pub(crate) fn is_always_true(&self) -> bool {
        matches!(self.node, Node::Constant(true))
    }

    /// Whether it holds for an entry.
    pub(crate) fn holds(&self, key: &[u8], value: &[u8]) -> Result<bool, DataError> {
        if let Node::Test { field: 0, test } = &self.node {
            return Ok(test.holds(&self.reader.read_one(key, value)?));
        }
        let mut values = vec![Value::Null; self.reader.fields().len()];
        if !values.is_empty() {
            self.reader.read(key, value, &mut |field, read| {
                if let Some(place) = values.get_mut(field) {
                    *place = read;
                }
            })?;
        }
        Ok(self.node_holds(&self.node, &values, value))
    }

    fn node_holds(&self, node: &Node, values: &[Value<'_>], entry_value: &[u8]) -> bool {
        match node {
            Node::Constant(holds) => *holds,
            Node::All(nodes) => nodes.iter().all(|node| self.node_holds(node, values, entry_value)),
            Node::Any(nodes) => nodes.iter().any(|node| self.node_holds(node, values, entry_value)),
            Node::Not(node) => !self.node_holds(node, values, entry_value),
            Node::Test { field, test } => values.get(*field).is_some_and(|value| test.holds(value)),
            Node::InstanceOf(class) => is_instance(entry_value, class, &self.formats),
        }
    }
}

fn compile(predicate: &Predicate, fields: &mut Vec<FieldPath>, depth: usize) -> Result<Node, GridError> {
    if depth > DEPTH_MAX {
        return Err(GridError::IllegalArgument(format!("a predicate nested more than {DEPTH_MAX} levels deep")));
    }
    let mut test = |attribute: &str, test: Test| -> Result<Node, GridError> {
        let path = FieldPath::parse(attribute).map_err(|error| GridError::IllegalArgument(error.to_string()))?;
        let field = fields.iter().position(|known| *known == path).unwrap_or_else(|| {
            fields.push(path);
            fields.len() - 1
        });
        Ok(Node::Test { field, test })
    };
    Ok(match predicate {
        Predicate::True => Node::Constant(true),
        Predicate::False => Node::Constant(false),
        Predicate::Sql(text) => {
            let parsed = Predicate::parse_sql(text).map_err(|error| GridError::IllegalArgument(error.to_string()))?;
            compile(&parsed, fields, depth + 1)?
        }
        Predicate::And(all) => Node::All(compile_all(all, fields, depth)?),
        Predicate::Or(any) => Node::Any(compile_all(any, fields, depth)?),
        // As in Hazelcast, the negation of a comparison is the opposite comparison, which nulls do
        // not satisfy either.
        Predicate::Not(inner) if matches!(**inner, Predicate::Compare { .. }) => match &**inner {
            Predicate::Compare { attribute, value, equal, less } => {
                test(attribute, Test::Compare { value: value.clone(), equal: !*equal, less: !*less })?
            }
            other => compile(other, fields, depth + 1)?,
        },
        Predicate::Not(inner) => Node::Not(Box::new(compile(inner, fields, depth + 1)?)),
        Predicate::Equal(attribute, value) => test(attribute, Test::Equal(value.clone()))?,
        Predicate::NotEqual(attribute, value) => Node::Not(Box::new(test(attribute, Test::Equal(value.clone()))?)),
        Predicate::Compare { attribute, value, equal, less } => {
            test(attribute, Test::Compare { value: value.clone(), equal: *equal, less: *less })?
        }
        Predicate::Between { attribute, from, to } => {
            test(attribute, Test::Between { from: from.clone(), to: to.clone() })?
        }
        Predicate::In(attribute, values) => test(attribute, Test::In(Members::new(values.clone())))?,
        Predicate::Like { attribute, pattern, ignore_case } => {
            let regex = pattern.as_deref().map(|pattern| like_pattern(pattern, *ignore_case)).transpose()?;
            test(attribute, Test::Matches(regex))?
        }
        Predicate::Regex { attribute, pattern } => {
            let regex = pattern.as_deref().map(regex_pattern).transpose()?;
            test(attribute, Test::Matches(regex))?
        }
        Predicate::InstanceOf(class) => Node::InstanceOf(class.clone()),
        Predicate::Partition { predicate, .. } | Predicate::Partitions { predicate, .. } => {
            compile(predicate, fields, depth + 1)?
        }
    })
}

fn compile_all(nodes: &[Predicate], fields: &mut Vec<FieldPath>, depth: usize) -> Result<Vec<Node>, GridError> {
    nodes.iter().map(|node| compile(node, fields, depth + 1)).collect()
}

impl Test {
    fn holds(&self, found: &Value<'_>) -> bool {
        match found {
            // The values of a path with `[any]`: one match is enough.
            Value::Array(items) => items.iter().any(|item| self.holds_for_one(item)),
            one => self.holds_for_one(one),
        }
    }

    fn holds_for_one(&self, found: &Value<'_>) -> bool {
        match self {
            Test::Equal(wanted) => equals(found, wanted),
            Test::Compare { value, equal, less } => match compare(found, value) {
                Some(Ordering::Equal) => *equal,
                Some(Ordering::Less) => *less,
                Some(Ordering::Greater) => !*less,
                None => false,
            },
            Test::Between { from, to } => {
                compare(found, from).is_some_and(Ordering::is_ge) && compare(found, to).is_some_and(Ordering::is_le)
            }
            Test::In(members) => members.contain(found),
            Test::Matches(None) => found.is_null(),
            Test::Matches(Some(regex)) => match found {
                Value::Null => false,
                Value::Text(text) => regex.is_match(text),
                other => regex.is_match(&other.to_string()),
            },
        }
    }
}

/// A pattern of `%` and `_` as a regular expression; `\` escapes the next character.
fn like_pattern(pattern: &str, ignore_case: bool) -> Result<Regex, GridError> {
    let mut text = String::with_capacity(pattern.len() + 8);
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        match char {
            '%' => text.push_str(".*"),
            '_' => text.push('.'),
            '\\' => text.push_str(&regex::escape(&chars.next().unwrap_or('\\').to_string())),
            other => text.push_str(&regex::escape(other.encode_utf8(&mut [0; 4]))),
        }
    }
    build(&text, pattern, ignore_case)
}

fn regex_pattern(pattern: &str) -> Result<Regex, GridError> {
    build(pattern, pattern, false)
}

fn build(text: &str, pattern: &str, ignore_case: bool) -> Result<Regex, GridError> {
    RegexBuilder::new(&format!("^(?:{text})$"))
        .case_insensitive(ignore_case)
        .dot_matches_new_line(true)
        .size_limit(PATTERN_BYTES_MAX)
        .build()
        .map_err(|error| {
            GridError::IllegalArgument(format!(
                "the pattern {pattern:?} cannot be used (neither look-around nor back references are supported): {error}"
            ))
        })
}

/// Whether a value would be an instance of a Java class, as far as its format shows.
fn is_instance(value: &[u8], class: &str, formats: &Formats) -> bool {
    let Ok(id) = type_id(value) else { return false };
    let simple = match id {
        TypeId::BOOLEAN => "java.lang.Boolean",
        TypeId::BYTE => "java.lang.Byte",
        TypeId::CHAR => "java.lang.Character",
        TypeId::SHORT => "java.lang.Short",
        TypeId::INT => "java.lang.Integer",
        TypeId::LONG => "java.lang.Long",
        TypeId::FLOAT => "java.lang.Float",
        TypeId::DOUBLE => "java.lang.Double",
        TypeId::STRING => "java.lang.String",
        TypeId::UUID => "java.util.UUID",
        TypeId::BIG_INTEGER => "java.math.BigInteger",
        TypeId::BIG_DECIMAL => "java.math.BigDecimal",
        TypeId::LOCAL_DATE => "java.time.LocalDate",
        TypeId::LOCAL_TIME => "java.time.LocalTime",
        TypeId::LOCAL_DATE_TIME => "java.time.LocalDateTime",
        TypeId::OFFSET_DATE_TIME => "java.time.OffsetDateTime",
        TypeId::ARRAY_LIST => "java.util.ArrayList",
        TypeId::LINKED_LIST => "java.util.LinkedList",
        TypeId::JSON => "com.hazelcast.core.HazelcastJsonValue",
        TypeId::COMPACT => return is_compact_of(value, class, formats),
        _ => return false,
    };
    let is_number = matches!(
        id,
        TypeId::BYTE
            | TypeId::SHORT
            | TypeId::INT
            | TypeId::LONG
            | TypeId::FLOAT
            | TypeId::DOUBLE
            | TypeId::BIG_INTEGER
            | TypeId::BIG_DECIMAL
    );
    class == simple
        || class == "java.lang.Object"
        || (is_number && class == "java.lang.Number")
        || (class == "java.util.List" && matches!(id, TypeId::ARRAY_LIST | TypeId::LINKED_LIST))
}

fn is_compact_of(value: &[u8], class: &str, formats: &Formats) -> bool {
    let Some(id) = value.get(BLOB_HEADER_BYTES..).and_then(|payload| payload.first_chunk::<8>()) else { return false };
    let id = filbert_data::compact::SchemaId(i64::from_be_bytes(*id));
    formats.schemas.schema(id).is_some_and(|schema| schema.type_name() == class)
}
