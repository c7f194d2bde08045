//! What a Portable field can hold.

use crate::parts::{Part, Year};

macro_rules! field_kinds {
    ($($kind:ident = $number:literal, $shape:expr;)*) => {
        /// What a field of the Portable format holds. The numbers stand in every object.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "the names say it")]
        pub enum FieldKind {
            $($kind = $number,)*
        }

        impl FieldKind {
            /// The kind of this number, if there is one.
            pub fn of(number: u8) -> Option<FieldKind> {
                match number {
                    $($number => Some(FieldKind::$kind),)*
                    _ => None,
                }
            }

            /// How its bytes are laid out.
            pub(super) fn shape(self) -> Shape {
                match self {
                    $(FieldKind::$kind => $shape,)*
                }
            }
        }
    };
}

/// How a field's bytes are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// One item.
    One(Part),
    /// A byte that is not 0 for null, then one item.
    Nullable(Part),
    /// A byte that is not 0 for null, factory, class, then a nested object from its version on.
    Object,
    /// Items one after the other, their number before them.
    Row(Part),
    /// The number of items, their positions, then the items.
    Scattered(Part),
    /// The number of objects, factory, class, their positions, then the objects from their versions on.
    Objects,
}

const DATE: Part = Part::Date(Year::Short);
const TIMESTAMP: Part = Part::Timestamp(Year::Short);
const TIMESTAMP_TZ: Part = Part::TimestampTz(Year::Short);

field_kinds! {
    Portable = 0, Shape::Object;
    Byte = 1, Shape::One(Part::Int8);
    Boolean = 2, Shape::One(Part::Boolean);
    Char = 3, Shape::One(Part::Char);
    Short = 4, Shape::One(Part::Int16);
    Int = 5, Shape::One(Part::Int32);
    Long = 6, Shape::One(Part::Int64);
    Float = 7, Shape::One(Part::Float32);
    Double = 8, Shape::One(Part::Float64);
    String = 9, Shape::One(Part::Text);
    ArrayOfPortable = 10, Shape::Objects;
    ArrayOfByte = 11, Shape::Row(Part::Int8);
    ArrayOfBoolean = 12, Shape::Row(Part::Boolean);
    ArrayOfChar = 13, Shape::Row(Part::Char);
    ArrayOfShort = 14, Shape::Row(Part::Int16);
    ArrayOfInt = 15, Shape::Row(Part::Int32);
    ArrayOfLong = 16, Shape::Row(Part::Int64);
    ArrayOfFloat = 17, Shape::Row(Part::Float32);
    ArrayOfDouble = 18, Shape::Row(Part::Float64);
    ArrayOfString = 19, Shape::Row(Part::Text);
    Decimal = 20, Shape::Nullable(Part::Decimal);
    ArrayOfDecimal = 21, Shape::Scattered(Part::Decimal);
    Time = 22, Shape::Nullable(Part::Time);
    ArrayOfTime = 23, Shape::Scattered(Part::Time);
    Date = 24, Shape::Nullable(DATE);
    ArrayOfDate = 25, Shape::Scattered(DATE);
    Timestamp = 26, Shape::Nullable(TIMESTAMP);
    ArrayOfTimestamp = 27, Shape::Scattered(TIMESTAMP);
    TimestampWithTimezone = 28, Shape::Nullable(TIMESTAMP_TZ);
    ArrayOfTimestampWithTimezone = 29, Shape::Scattered(TIMESTAMP_TZ);
}
