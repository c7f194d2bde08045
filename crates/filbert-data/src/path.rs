//! Paths to a field within a key or a value: `address.city`, `tags[0]`, `tags[any]`, `__key#id`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::DataError;

/// Steps of one path, at most: deeper documents are no use to queries, and no recursion here may be without a limit.
pub const PATH_STEPS_MAX: usize = 64;

/// One step into an object or an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Step {
    /// The field of this name.
    Field(Box<str>),
    /// The item at this place, counted from 0.
    Index(usize),
    /// Every item: the path finds an array of all that follows.
    Any,
}

/// A way from a value to what is asked of it. The empty path is the value itself.
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
    /// Where it begins.
    pub side: Side,
    /// Where it goes on.
    pub path: Path,
}

impl Path {
    /// The value itself.
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

    /// Whether it is the value itself.
    #[inline]
    pub fn is_itself(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a step is `[any]`, so that the path finds many values.
    pub fn finds_many(&self) -> bool {
        self.0.contains(&Step::Any)
    }

    /// Reads a path as Hazelcast's clients write it; the empty text and `this` are the value itself.
    ///
    /// # Errors
    ///
    /// A name is empty, a bracket holds neither a number nor `any`, or there are too many steps.
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

/// As [`Path::parse`] reads it; the value itself is `this`.
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

    /// Reads an attribute as predicates and indexes name it: `__key`, `__key.id` or `__key#id` of the key, everything
    /// else of the value.
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

/// As [`FieldPath::parse`] reads it.
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
