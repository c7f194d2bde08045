//! The kinds of Portable fields and their layouts.

use crate::items::{ItemType, Year};

macro_rules! field_kinds {
    ($($kind:ident = $number:literal, $shape:expr;)*) => {
        /// The kind of a Portable field. Each field of an object contains the number of its kind.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[allow(missing_docs, reason = "the names say it")]
        pub enum FieldKind {
            $($kind = $number,)*
        }

        impl FieldKind {
            /// The kind with this number; `None` if there is no such kind.
            pub fn of(number: u8) -> Option<FieldKind> {
                match number {
                    $($number => Some(FieldKind::$kind),)*
                    _ => None,
                }
            }

            /// The layout of the field's bytes.
            pub(super) fn shape(self) -> Shape {
                match self {
                    $(FieldKind::$kind => $shape,)*
                }
            }
        }
    };
}

/// The layout of a field's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// One item.
    One(ItemType),
    /// A byte (0 = not null), then one item unless it is null.
    Nullable(ItemType),
    /// A byte (0 = not null), factory and class, then the nested object from its version on unless
    /// it is null.
    Object,
    /// The number of items, then the items one after the other.
    Row(ItemType),
    /// The number of items, their positions, then the items.
    Scattered(ItemType),
    /// The number of objects, factory, class, their positions, then the objects from their versions
    /// on.
    Objects,
}

const DATE: ItemType = ItemType::Date(Year::Short);
const TIMESTAMP: ItemType = ItemType::Timestamp(Year::Short);
const TIMESTAMP_TZ: ItemType = ItemType::TimestampTz(Year::Short);

field_kinds! {
    Portable = 0, Shape::Object;
    Byte = 1, Shape::One(ItemType::Int8);
    Boolean = 2, Shape::One(ItemType::Boolean);
    Char = 3, Shape::One(ItemType::Char);
    Short = 4, Shape::One(ItemType::Int16);
    Int = 5, Shape::One(ItemType::Int32);
    Long = 6, Shape::One(ItemType::Int64);
    Float = 7, Shape::One(ItemType::Float32);
    Double = 8, Shape::One(ItemType::Float64);
    String = 9, Shape::One(ItemType::Text);
    ArrayOfPortable = 10, Shape::Objects;
    ArrayOfByte = 11, Shape::Row(ItemType::Int8);
    ArrayOfBoolean = 12, Shape::Row(ItemType::Boolean);
    ArrayOfChar = 13, Shape::Row(ItemType::Char);
    ArrayOfShort = 14, Shape::Row(ItemType::Int16);
    ArrayOfInt = 15, Shape::Row(ItemType::Int32);
    ArrayOfLong = 16, Shape::Row(ItemType::Int64);
    ArrayOfFloat = 17, Shape::Row(ItemType::Float32);
    ArrayOfDouble = 18, Shape::Row(ItemType::Float64);
    ArrayOfString = 19, Shape::Row(ItemType::Text);
    Decimal = 20, Shape::Nullable(ItemType::Decimal);
    ArrayOfDecimal = 21, Shape::Scattered(ItemType::Decimal);
    Time = 22, Shape::Nullable(ItemType::Time);
    ArrayOfTime = 23, Shape::Scattered(ItemType::Time);
    Date = 24, Shape::Nullable(DATE);
    ArrayOfDate = 25, Shape::Scattered(DATE);
    Timestamp = 26, Shape::Nullable(TIMESTAMP);
    ArrayOfTimestamp = 27, Shape::Scattered(TIMESTAMP);
    TimestampWithTimezone = 28, Shape::Nullable(TIMESTAMP_TZ);
    ArrayOfTimestampWithTimezone = 29, Shape::Scattered(TIMESTAMP_TZ);
}
