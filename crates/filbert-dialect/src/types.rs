//! Type names of Hazelcast and the SQL standard.

use filbert_data::FieldType;
use sqlparser::ast::{ArrayElemTypeDef, DataType, ExactNumberInfo, ObjectName, ObjectNamePart, TimezoneInfo};

/// The precision and scale for DataFusion of a decimal that is declared without them.
const DECIMAL: ExactNumberInfo = ExactNumberInfo::PrecisionAndScale(76, 38);

/// The type with a name; `None` = the type does not exist.
pub fn sql_type(data_type: &DataType) -> Option<FieldType> {
    Some(match data_type {
        DataType::Boolean | DataType::Bool => FieldType::Boolean,
        DataType::TinyInt(_) => FieldType::TinyInt,
        DataType::SmallInt(_) | DataType::Int2(_) => FieldType::SmallInt,
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => FieldType::Integer,
        DataType::BigInt(_) | DataType::Int8(_) => FieldType::BigInt,
        DataType::Decimal(digits) | DataType::Numeric(digits) | DataType::Dec(digits) => decimal(digits)?,
        DataType::Real | DataType::Float4 => FieldType::Real,
        DataType::Double(_) | DataType::DoublePrecision | DataType::Float8 | DataType::Float(_) => FieldType::Double,
        DataType::Varchar(_)
        | DataType::CharacterVarying(_)
        | DataType::CharVarying(_)
        | DataType::Text
        | DataType::String(_) => FieldType::Varchar,
        DataType::Char(_) | DataType::Character(_) => FieldType::Char,
        DataType::Date => FieldType::Date,
        DataType::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => FieldType::Time,
        DataType::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => FieldType::TimestampTz,
        DataType::Timestamp(_, _) => FieldType::Timestamp,
        DataType::Interval { .. } => FieldType::Interval,
        DataType::Uuid => FieldType::Uuid,
        DataType::JSON | DataType::JSONB => FieldType::Json,
        DataType::Array(ArrayElemTypeDef::SquareBracket(item, _) | ArrayElemTypeDef::AngleBracket(item)) => {
            FieldType::Array(Box::new(sql_type(item)?))
        }
        DataType::Custom(name, arguments) if arguments.is_empty() => match plain(name)?.as_str() {
            "OBJECT" | "JAVA_OBJECT" => FieldType::Object,
            "DOUBLE" => FieldType::Double,
            "JSON" | "JSONB" => FieldType::Json,
            "UUID" => FieldType::Uuid,
            _ => return None,
        },
        _ => return None,
    })
}

fn plain(name: &ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [ObjectNamePart::Identifier(identifier)] => Some(identifier.value.to_ascii_uppercase()),
        _ => None,
    }
}

fn decimal(digits: &ExactNumberInfo) -> Option<FieldType> {
    let (precision, scale) = match digits {
        ExactNumberInfo::None => return Some(FieldType::Decimal(None)),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    let (precision, scale) = (u8::try_from(precision).ok()?, i8::try_from(scale).ok()?);
    let fits = (1..=76).contains(&precision) && scale >= 0 && scale.unsigned_abs() <= precision;
    fits.then_some(FieldType::Decimal(Some((precision, scale))))
}

/// The name of a type for the JSON functions.
pub(super) fn sql_type_name(data_type: &DataType) -> Option<String> {
    sql_type(data_type).map(|field_type| field_type.to_string())
}

/// DataFusion's name for a type; `None` if it has none.
pub(super) fn planner_type(field_type: &FieldType) -> Option<DataType> {
    Some(match field_type {
        FieldType::Boolean => DataType::Boolean,
        FieldType::TinyInt => DataType::TinyInt(None),
        FieldType::SmallInt => DataType::SmallInt(None),
        FieldType::Integer => DataType::Int(None),
        FieldType::BigInt => DataType::BigInt(None),
        FieldType::Decimal(None) => DataType::Decimal(DECIMAL),
        FieldType::Decimal(Some((precision, scale))) => {
            DataType::Decimal(ExactNumberInfo::PrecisionAndScale(u64::from(*precision), i64::from(*scale)))
        }
        FieldType::Real => DataType::Real,
        FieldType::Double => DataType::DoublePrecision,
        FieldType::Varchar | FieldType::Char => DataType::Varchar(None),
        FieldType::Date => DataType::Date,
        FieldType::Time => DataType::Time(None, TimezoneInfo::None),
        FieldType::Timestamp => DataType::Timestamp(Some(6), TimezoneInfo::None),
        FieldType::Interval => DataType::Interval { fields: None, precision: None },
        FieldType::TimestampTz => DataType::Timestamp(Some(6), TimezoneInfo::WithTimeZone),
        FieldType::Uuid | FieldType::Json | FieldType::Object | FieldType::Binary => return None,
        FieldType::Array(item) => DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(planner_type(item)?), None)),
    })
}
