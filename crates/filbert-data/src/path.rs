//! Paths to a field within a key or a value: `address.city`, `tags[0]`, `tags[any]`, `__key#id`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::DataError;

/// The maximum number of steps of a path. Recursion over the steps must be limited, and queries
/// need no deeper paths.
pub const PATH_STEPS_MAX: usize = 64;

/// One step into an object or an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Step {
    /// The field of this name.
    Field(Box<str>),
    /// The item at this index, counted from 0.
    Index(usize),
    /// All items: the path finds an array of the results for each item.
    Any,
}

/// A path from a value to a part of it. The empty path is the value itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Path(Vec<Step>);

/// The two halves of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Side {
    /// The key.
    Key,
    /// The value.
    Value,
}

/// A field of an entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FieldPath {
    /// The half of the entry in which the path begins.
    pub side: Side,
    /// The path within the key or the value.
    pub path: Path,
}

impl Path {
    /// The empty path: the value itself.
    pub const ITSELF: Path = Path(Vec::new());

    /// A path of one field.
    pub fn field(name: impl Into<Box<str>>) -> Path {
        Path(vec![Step::Field(name.into())])
    }

    /// A path of these steps.
    pub fn of(steps: Vec<Step>) -> Path {
        Path(steps)
    }

    /// The steps.
    #[inline]
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Whether the path is empty: the value itself.
    #[inline]
    pub fn is_itself(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a step is `[any]`, so that the path finds many values.
    pub fn finds_many(&self) -> bool {
        self.0.contains(&Step::Any)
    }

    /// Reads a path in the syntax of Hazelcast's clients. The empty text and `this` mean the value
    /// itself.
    ///
    /// # Errors
    ///
    /// A name is empty, a bracket is not closed or not opened, a bracket contains neither a number
    /// nor `any`, text follows a bracket, or there are more than [`PATH_STEPS_MAX`] steps.
    pub fn parse(text: &str) -> Result<Path, DataError> {
        let broken = |reason: &str| Err(DataError::BrokenPath { path: text.to_owned(), reason: reason.to_owned() });
        if text.is_empty() || text == "this" {
            return Ok(Path::ITSELF);
        }
        let text_steps = text.strip_prefix("this.").unwrap_or(text);
        let mut steps = Vec::new();
        for (at, part) in text_steps.split('.').enumerate() {
            let (name, mut brackets) = part.split_at(part.find('[').unwrap_or(part.len()));
            match name {
                "" if at == 0 && !brackets.is_empty() => {}
                // `this[any]` begins at the value itself.
                "this" if at == 0 && !brackets.is_empty() => {}
                "" => return broken("a name between dots is empty"),
                name if name.contains(']') => return broken("a bracket closes that was not opened"),
                name => steps.push(Step::Field(name.into())),
            }
            while let Some(rest) = brackets.strip_prefix('[') {
                let Some((inside, rest)) = rest.split_once(']') else { return broken("a bracket does not close") };
                steps.push(match inside.trim() {
                    "any" => Step::Any,
                    number => match number.parse() {
                        Ok(index) => Step::Index(index),
                        Err(_) => return broken("a bracket holds neither a number nor `any`"),
                    },
                });
                brackets = rest;
            }
            if !brackets.is_empty() {
                return broken("text follows a bracket");
            }
        }
        if steps.len() > PATH_STEPS_MAX {
            return broken("it has more than 64 steps");
        }
        Ok(Path(steps))
    }
}

/// The syntax of [`Path::parse`]. The value itself is written as `this`.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("this");
        }
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if at == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Any => f.write_str("[any]")?,
            }
        }
        Ok(())
    }
}

impl FieldPath {
    /// The key as a whole.
    pub const KEY: FieldPath = FieldPath { side: Side::Key, path: Path::ITSELF };
    /// The value as a whole.
    pub const THIS: FieldPath = FieldPath { side: Side::Value, path: Path::ITSELF };

    /// Reads the attribute of a predicate or an index: `__key`, `__key.id` and `__key#id` belong to
    /// the key, all other attributes belong to the value.
    ///
    /// # Errors
    ///
    /// As [`Path::parse`].
    pub fn parse(attribute: &str) -> Result<FieldPath, DataError> {
        let of_key = attribute.strip_prefix("__key").and_then(|rest| match rest.as_bytes().first() {
            None => Some(""),
            Some(b'#' | b'.') => rest.get(1..),
            Some(b'[') => Some(rest),
            Some(_) => None,
        });
        match of_key {
            Some(rest) => Ok(FieldPath { side: Side::Key, path: Path::parse(rest)? }),
            None => Ok(FieldPath { side: Side::Value, path: Path::parse(attribute)? }),
        }
    }
}

/// The syntax of [`FieldPath::parse`].
impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.side, self.path.is_itself()) {
            (Side::Key, true) => f.write_str("__key"),
            (Side::Key, false) => write!(f, "__key.{}", self.path),
            (Side::Value, _) => self.path.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_what_it_displays() {
        for text in ["this", "a", "a.b", "a[0]", "a[any].b", "a.b[3][any]", "[1].x", "__key", "__key.id", "__key.a[0]"]
        {
            let field = FieldPath::parse(text).unwrap();
            assert_eq!(field.to_string(), text);
        }
        assert_eq!(FieldPath::parse("__key#id").unwrap(), FieldPath::parse("__key.id").unwrap());
        assert_eq!(FieldPath::parse("this.name").unwrap(), FieldPath::parse("name").unwrap());
        assert_eq!(FieldPath::parse("__keys").unwrap().side, Side::Value);
    }

    #[test]
    fn a_broken_path_says_why() {
        for (text, reason) in [
            ("a..b", "a name between dots is empty"),
            ("a.", "a name between dots is empty"),
            ("a[", "a bracket does not close"),
            ("a[x]", "a bracket holds neither a number nor `any`"),
            ("a[0]b", "text follows a bracket"),
            ("a]", "a bracket closes that was not opened"),
        ] {
            let error = Path::parse(text).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains(text), "{error}");
        }
    }
}
