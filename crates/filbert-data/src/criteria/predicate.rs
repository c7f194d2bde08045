//! Predicates: which entries are asked for.

use crate::{Blob, Value};

/// A predicate of the map API. Attributes are paths as [`FieldPath::parse`](crate::FieldPath::parse) reads them.
///
/// Unlike in SQL every predicate is true or false: a null equals a null, and is neither less nor greater than anything.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// Every entry.
    True,
    /// No entry.
    False,
    /// The text of a condition, in the predicates' own SQL-like dialect.
    Sql(String),
    /// All of them hold.
    And(Vec<Predicate>),
    /// One of them holds.
    Or(Vec<Predicate>),
    /// It does not hold.
    Not(Box<Predicate>),
    /// The attribute equals the value.
    Equal(String, Value<'static>),
    /// The attribute does not equal the value.
    NotEqual(String, Value<'static>),
    /// The attribute is greater (or less) than the value, or equal to it if `equal`.
    Compare {
        /// The attribute.
        attribute: String,
        /// What to compare with.
        value: Value<'static>,
        /// Whether equal is enough.
        equal: bool,
        /// Whether less is asked for, else greater.
        less: bool,
    },
    /// The attribute is within both bounds, which belong to the range.
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
        /// Whether upper and lower case are the same.
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
    /// The entries of the partition of a key, among them those of another predicate.
    Partition {
        /// The key, as the client serialized it.
        key: Blob,
        /// Which entries of the partition.
        predicate: Box<Predicate>,
    },
    /// The same for the partitions of several keys.
    Partitions {
        /// The keys, as the client serialized them.
        keys: Vec<Blob>,
        /// Which entries of the partitions.
        predicate: Box<Predicate>,
    },
}

/// What a page holds of each entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IterationType {
    /// Keys.
    Key,
    /// Values.
    Value,
    /// Both.
    Entry,
}

/// A predicate whose result is read page by page, in the order of keys or values.
#[derive(Clone, Debug, PartialEq)]
pub struct PagingPredicate {
    /// Which entries; `None` = all.
    pub predicate: Option<Predicate>,
    /// Entries of one page.
    pub page_size: usize,
    /// The page asked for, counted from 0.
    pub page: usize,
    /// What a page holds, and by what it is ordered: keys by keys, values and entries by values... by key for entries.
    pub iteration: IterationType,
}
