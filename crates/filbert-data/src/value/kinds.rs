//! Kinds of values: what a set of values has in it, as far as conversions and comparisons tell them apart.
//!
//! An index knows the values as they are stored; a column shows them converted, and a predicate compares across types. Whether
//! a key of the one finds all that the other means depends on which kinds of values there are.

use super::Value;
use crate::FieldType;

/// Whole numbers up to this are the same as doubles.
const EXACT_DOUBLE_MAX: i64 = 1 << 53;
/// Digits behind the point that an undeclared DECIMAL has.
const DECIMAL_SCALE_MAX: i64 = 38;

/// A set of kinds of values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(u32);

impl Kinds {
    /// No kind.
    pub const NONE: Kinds = Kinds(0);
    /// Nulls.
    pub const NULL: Kinds = Kinds(1);
    const BOOLEAN: Kinds = Kinds(1 << 1);
    /// Whole numbers that are doubles, too.
    const WHOLE: Kinds = Kinds(1 << 2);
    /// Greater ones.
    const BIG_WHOLE: Kinds = Kinds(1 << 3);
    const FLOAT: Kinds = Kinds(1 << 4);
    const DOUBLE: Kinds = Kinds(1 << 5);
    const DECIMAL: Kinds = Kinds(1 << 6);
    /// Decimals with more digits behind the point than an undeclared DECIMAL shows.
    const FINE_DECIMAL: Kinds = Kinds(1 << 7);
    const TEXT: Kinds = Kinds(1 << 8);
    const DATE: Kinds = Kinds(1 << 9);
    const TIME: Kinds = Kinds(1 << 10);
    const TIMESTAMP: Kinds = Kinds(1 << 11);
    const TIMESTAMP_TZ: Kinds = Kinds(1 << 12);
    /// Timestamps of both sorts with more digits than microseconds.
    const FINE_TIMESTAMP: Kinds = Kinds(1 << 13);
    const UUID: Kinds = Kinds(1 << 14);
    /// Documents, arrays, objects.
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

    /// The kind of one value.
    pub fn of(value: &Value<'_>) -> Kinds {
        let whole = |number: i64| match (-EXACT_DOUBLE_MAX..=EXACT_DOUBLE_MAX).contains(&number) {
            true => Kinds::WHOLE,
            false => Kinds::BIG_WHOLE,
        };
        let moment = |nanosecond: u32, kind: Kinds| match nanosecond.is_multiple_of(1_000) {
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
            Value::Timestamp(timestamp) => moment(chrono::Timelike::nanosecond(timestamp), Kinds::TIMESTAMP),
            Value::TimestampTz(timestamp) => moment(chrono::Timelike::nanosecond(timestamp), Kinds::TIMESTAMP_TZ),
            Value::Uuid(_) => Kinds::UUID,
            Value::Json(_) | Value::Array(_) | Value::Bytes(_) | Value::Interval(_) | Value::Object(_) => Kinds::OTHER,
        }
    }

    /// The kinds whose values a column of a type shows as they are, or cannot show at all: none is rounded, and none becomes
    /// equal to another.
    pub fn shown_as_they_are(field_type: &FieldType) -> Kinds {
        match field_type {
            FieldType::Boolean => Kinds::BOOLEAN,
            FieldType::TinyInt | FieldType::SmallInt | FieldType::Integer | FieldType::BigInt => Kinds::NUMBERS,
            FieldType::Decimal(None) => Kinds::WHOLE.and(Kinds::BIG_WHOLE).and(Kinds::DECIMAL),
            // Digits behind the declared ones would be rounded.
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

    /// The kinds whose values are compared with this one as they are; others are converted, or it is.
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

    /// The kinds of both.
    #[must_use]
    pub const fn and(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }

    /// Whether all of these are among the others.
    pub const fn are_within(self, others: Kinds) -> bool {
        self.0 & !others.0 == 0
    }

    /// The set as a number.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// The set of a number that [`Kinds::bits`] gave.
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
