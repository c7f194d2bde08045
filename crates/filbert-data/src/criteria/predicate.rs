//! Predicates: the conditions that select entries.

use crate::{Blob, Value};

/// A predicate of the map API. Attributes are paths in the syntax of
/// [`FieldPath::parse`](crate::FieldPath::parse).
///
/// Unlike in SQL, every predicate is either true or false: a null equals a null, and is neither
/// less nor greater than any value.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// Every entry.
    True,
    /// No entry.
    False,
    /// The text of a condition, in the predicates' own SQL-like dialect.
    Sql(String),
    /// All predicates are true.
    And(Vec<Predicate>),
    /// At least one predicate is true.
    Or(Vec<Predicate>),
    /// The predicate is false.
    Not(Box<Predicate>),
    /// The attribute equals the value.
    Equal(String, Value<'static>),
    /// The attribute does not equal the value.
    NotEqual(String, Value<'static>),
    /// The attribute is greater (or less) than the value, or equal to it if `equal`.
    Compare {
        /// The attribute.
        attribute: String,
        /// The value to compare.
        value: Value<'static>,
        /// Whether the predicate is also true if both are equal.
        equal: bool,
        /// True for less, false for greater.
        less: bool,
    },
    /// The attribute is between the bounds, both inclusive.
    Between {
        /// The attribute.
        attribute: String,
        /// The lower bound.
        from: Value<'static>,
        /// The upper bound.
        to: Value<'static>,
    },
    /// The attribute equals one of the values.
    In(String, Vec<Value<'static>>),
    /// The attribute matches a pattern of `%` and `_`, escaped by `\`.
    Like {
        /// The attribute.
        attribute: String,
        /// The pattern.
        pattern: Option<String>,
        /// Whether upper and lower case are equal.
        ignore_case: bool,
    },
    /// The attribute as a whole matches a regular expression.
    Regex {
        /// The attribute.
        attribute: String,
        /// The expression, in Java's syntax.
        pattern: Option<String>,
    },
    /// The value is an instance of a Java class.
    InstanceOf(String),
    /// The entries in the partition of a key for which another predicate is true.
    Partition {
        /// The key, as the client serialized it.
        key: Blob,
        /// The predicate on the entries of the partition.
        predicate: Box<Predicate>,
    },
    /// The entries in the partitions of several keys for which another predicate is true.
    Partitions {
        /// The keys, as the client serialized them.
        keys: Vec<Blob>,
        /// The predicate on the entries of the partitions.
        predicate: Box<Predicate>,
    },
}

/// The content of a page: the part of each entry that is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IterationType {
    /// Keys.
    Key,
    /// Values.
    Value,
    /// Both.
    Entry,
}

/// A predicate with a paged result. The pages are in the order of keys or values.
#[derive(Clone, Debug, PartialEq)]
pub struct PagingPredicate {
    /// The predicate on the entries; `None` = all entries.
    pub predicate: Option<Predicate>,
    /// The number of entries of a page.
    pub page_size: usize,
    /// The requested page, counted from 0.
    pub page: usize,
    /// The content of a page, which also determines the order: values are ordered by value; keys
    /// and entries are ordered by key.
    pub iteration: IterationType,
}
