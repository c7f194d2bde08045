//! Aggregators and projections of the entries that were found.

use crate::Blob;

/// An aggregator of the map API. It aggregates an attribute; `None` = the entry itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Aggregator {
    /// The number of values that are not null.
    Count(Option<String>),
    /// The distinct values.
    Distinct(Option<String>),
    /// The greatest value.
    Max(Option<String>),
    /// The least value.
    Min(Option<String>),
    /// The entry with the greatest value.
    MaxBy(Option<String>),
    /// The entry with the least value.
    MinBy(Option<String>),
    /// The sum of ints, a long.
    IntegerSum(Option<String>),
    /// The sum of longs, a long.
    LongSum(Option<String>),
    /// The sum of doubles, a double.
    DoubleSum(Option<String>),
    /// The sum of big integers.
    BigIntegerSum(Option<String>),
    /// The sum of big decimals.
    BigDecimalSum(Option<String>),
    /// The sum of any numbers as whole numbers, a long.
    FixedSum(Option<String>),
    /// The sum of any numbers, a double.
    FloatingSum(Option<String>),
    /// The mean of ints, a double.
    IntegerAvg(Option<String>),
    /// The mean of longs, a double.
    LongAvg(Option<String>),
    /// The mean of doubles, a double.
    DoubleAvg(Option<String>),
    /// The mean of any numbers, a double.
    NumberAvg(Option<String>),
    /// The mean of big integers, a big decimal.
    BigIntegerAvg(Option<String>),
    /// The mean of big decimals, a big decimal.
    BigDecimalAvg(Option<String>),
}

/// A projection of the map API: the part of each entry that is returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Projection {
    /// One attribute.
    Single(String),
    /// Several attributes, as a list.
    Multi(Vec<String>),
    /// The entry itself, as stored.
    Identity,
    /// An unknown projection with its bytes, for the error.
    Unknown(Blob),
}
