//! Kinds of values: a summary of the values in a set, as detailed as conversions and comparisons
//! require.
//!
//! An index contains the stored values. A column shows converted values, and a predicate compares
//! values of different types. The kinds of the stored values decide whether an index lookup finds
//! all values that the column or the predicate means.

use super::Value;
use crate::FieldType;

/// Whole numbers up to this absolute value are exact as doubles.
const EXACT_DOUBLE_MAX: i64 = 1 << 53;
/// The maximum number of digits after the point of a DECIMAL without a declared scale.
const DECIMAL_SCALE_MAX: i64 = 38;

/// A set of kinds of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(u32);

impl Kinds {
    /// No kind.
    pub const NONE: Kinds = Kinds(0);
    /// All kinds.
    pub const ALL: Kinds = Kinds(u32::MAX);
    /// Nulls.
    pub const NULL: Kinds = Kinds(1);
    const BOOLEAN: Kinds = Kinds(1 << 1);
    /// Whole numbers that are exact as doubles.
    const WHOLE: Kinds = Kinds(1 << 2);
    /// Whole numbers beyond this range.
    const BIG_WHOLE: Kinds = Kinds(1 << 3);
    const FLOAT: Kinds = Kinds(1 << 4);
    const DOUBLE: Kinds = Kinds(1 << 5);
    const DECIMAL: Kinds = Kinds(1 << 6);
    /// Decimals with more digits after the point than a DECIMAL without a declared scale shows.
    const FINE_DECIMAL: Kinds = Kinds(1 << 7);
    const TEXT: Kinds = Kinds(1 << 8);
    const DATE: Kinds = Kinds(1 << 9);
    const TIME: Kinds = Kinds(1 << 10);
    const TIMESTAMP: Kinds = Kinds(1 << 11);
    const TIMESTAMP_TZ: Kinds = Kinds(1 << 12);
    /// Timestamps with or without time zone that are finer than microseconds.
    const FINE_TIMESTAMP: Kinds = Kinds(1 << 13);
    const UUID: Kinds = Kinds(1 << 14);
    /// JSON documents, arrays, bytes, intervals, objects.
    const OTHER: Kinds = Kinds(1 << 15);
    /// Numbers of any type.
    pub const NUMBERS: Kinds = Kinds(
        Kinds::WHOLE.0
            | Kinds::BIG_WHOLE.0
            | Kinds::FLOAT.0
            | Kinds::DOUBLE.0
            | Kinds::DECIMAL.0
            | Kinds::FINE_DECIMAL.0,
    );

    /// The kinds of one value.
    pub fn of(value: &Value<'_>) -> Kinds {
        let whole = |number: i64| match (-EXACT_DOUBLE_MAX..=EXACT_DOUBLE_MAX).contains(&number) {
            true => Kinds::WHOLE,
            false => Kinds::BIG_WHOLE,
        };
        let with_precision = |nanosecond: u32, kind: Kinds| match nanosecond.is_multiple_of(1_000) {
            true => kind,
            false => Kinds(kind.0 | Kinds::FINE_TIMESTAMP.0),
        };
        match value {
            Value::Null => Kinds::NULL,
            Value::Boolean(_) => Kinds::BOOLEAN,
            Value::Int8(_) | Value::Int16(_) | Value::Int32(_) => Kinds::WHOLE,
            Value::Int64(number) => whole(*number),
            Value::Float32(_) => Kinds::FLOAT,
            Value::Float64(_) => Kinds::DOUBLE,
            Value::Decimal(number) => match number.as_bigint_and_exponent().1 <= DECIMAL_SCALE_MAX {
                true => Kinds::DECIMAL,
                false => Kinds::FINE_DECIMAL,
            },
            Value::Text(_) => Kinds::TEXT,
            Value::Date(_) => Kinds::DATE,
            Value::Time(_) => Kinds::TIME,
            Value::Timestamp(timestamp) => with_precision(chrono::Timelike::nanosecond(timestamp), Kinds::TIMESTAMP),
            Value::TimestampTz(timestamp) => {
                with_precision(chrono::Timelike::nanosecond(timestamp), Kinds::TIMESTAMP_TZ)
            }
            Value::Uuid(_) => Kinds::UUID,
            Value::Json(_) | Value::Array(_) | Value::Bytes(_) | Value::Interval(_) | Value::Object(_) => Kinds::OTHER,
        }
    }

    /// The kinds of values that a column of a type shows unchanged, or cannot show at all. No such
    /// value is rounded, and no two different values become equal.
    pub fn shown_as_they_are(field_type: &FieldType) -> Kinds {
        match field_type {
            FieldType::Boolean => Kinds::BOOLEAN,
            FieldType::TinyInt | FieldType::SmallInt | FieldType::Integer | FieldType::BigInt => Kinds::NUMBERS,
            FieldType::Decimal(None) => Kinds::WHOLE.and(Kinds::BIG_WHOLE).and(Kinds::DECIMAL),
            // Digits beyond the declared scale would be rounded.
            FieldType::Decimal(Some(_)) => Kinds::WHOLE.and(Kinds::BIG_WHOLE),
            FieldType::Real => Kinds::FLOAT,
            FieldType::Double => Kinds::WHOLE.and(Kinds::FLOAT).and(Kinds::DOUBLE),
            FieldType::Varchar | FieldType::Char => Kinds::TEXT,
            FieldType::Date => Kinds::DATE,
            FieldType::Time => Kinds::TIME,
            FieldType::Timestamp => Kinds::TIMESTAMP,
            FieldType::TimestampTz => Kinds::TIMESTAMP_TZ,
            FieldType::Uuid => Kinds::UUID,
            FieldType::Json | FieldType::Object | FieldType::Binary | FieldType::Interval | FieldType::Array(_) => {
                Kinds::NONE
            }
        }
        .and(Kinds::NULL)
    }

    /// The kinds of values that are compared with this value without a conversion. With all other
    /// kinds, one of the two values is converted.
    pub fn compared_with(value: &Value<'_>) -> Kinds {
        match value {
            Value::Text(_) => Kinds::TEXT,
            Value::Boolean(_) => Kinds::BOOLEAN,
            Value::Date(_) => Kinds::DATE,
            Value::Time(_) => Kinds::TIME,
            Value::Timestamp(_) => Kinds::TIMESTAMP.and(Kinds::FINE_TIMESTAMP),
            Value::TimestampTz(_) => Kinds::TIMESTAMP_TZ.and(Kinds::FINE_TIMESTAMP),
            Value::Uuid(_) => Kinds::UUID,
            Value::Null
            | Value::Json(_)
            | Value::Array(_)
            | Value::Bytes(_)
            | Value::Interval(_)
            | Value::Object(_) => Kinds::NONE,
            _ => Kinds::NUMBERS,
        }
        .and(Kinds::NULL)
    }

    /// The union of both sets.
    #[must_use]
    pub const fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    /// The intersection of both sets.
    #[must_use]
    pub const fn common(self, other: Kinds) -> Kinds {
        Kinds(self.0 & other.0)
    }

    /// Whether this set is a subset of `others`.
    pub const fn are_within(self, others: Kinds) -> bool {
        self.0 & !others.0 == 0
    }

    /// The set as a bit mask.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The set of a bit mask from [`Kinds::bits`].
    pub const fn from_bits(bits: u32) -> Kinds {
        Kinds(bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_shows_as_they_are_only_values_that_it_does_not_round() {
        let double = Kinds::shown_as_they_are(&FieldType::Double);
        for (value, exact) in [
            (Value::Int32(5), true),
            (Value::Int64(EXACT_DOUBLE_MAX), true),
            (Value::Int64(EXACT_DOUBLE_MAX + 1), false),
            (Value::Float32(0.1), true),
            (Value::text("5"), false),
            (Value::Null, true),
        ] {
            assert_eq!(Kinds::of(&value).are_within(double), exact, "{value:?}");
        }
        assert!(!Kinds::of(&Value::text("2020-01-01")).are_within(Kinds::shown_as_they_are(&FieldType::Date)));
    }

    #[test]
    fn a_timestamp_finer_than_microseconds_is_a_kind_of_its_own() {
        let day = chrono::NaiveDate::from_ymd_opt(2024, 2, 29).unwrap();
        let shown = Kinds::shown_as_they_are(&FieldType::Timestamp);
        for (nanosecond, exact) in [(1_000, true), (1_001, false)] {
            let value = Value::Timestamp(day.and_hms_nano_opt(1, 2, 3, nanosecond).unwrap());
            assert_eq!(Kinds::of(&value).are_within(shown), exact);
            assert!(Kinds::of(&value).are_within(Kinds::compared_with(&value)));
        }
    }
}
