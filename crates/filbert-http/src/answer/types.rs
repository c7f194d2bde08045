//! CrateDB's numbers of column types, for requests with `?types`.

use filbert_data::FieldType;

const ARRAY: u8 = 100;

/// Appends the number of a type. An array is a list of 100 and the type of its items.
pub(crate) fn write_type(out: &mut Vec<u8>, field_type: &FieldType) {
    match field_type {
        FieldType::Array(item) => {
            out.extend_from_slice(format!("[{ARRAY},").as_bytes());
            write_type(out, item);
            out.push(b']');
        }
        scalar => out.extend_from_slice(number(scalar).to_string().as_bytes()),
    }
}

/// The number of a scalar type. CrateDB 5 has no types for UUIDs, bytes and objects of other
/// systems. They are texts in CrateDB and in these responses.
fn number(field_type: &FieldType) -> u8 {
    match field_type {
        FieldType::TinyInt => 2,
        FieldType::Boolean => 3,
        FieldType::Varchar | FieldType::Char | FieldType::Uuid | FieldType::Binary | FieldType::Object => 4,
        FieldType::Double => 6,
        FieldType::Real => 7,
        FieldType::SmallInt => 8,
        FieldType::Integer => 9,
        FieldType::BigInt => 10,
        FieldType::TimestampTz => 11,
        FieldType::Json => 12,
        FieldType::Timestamp => 15,
        FieldType::Interval => 17,
        FieldType::Time => 20,
        FieldType::Decimal(_) => 22,
        FieldType::Date => 24,
        FieldType::Array(_) => ARRAY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_crate_dbs_numbers() {
        for (field_type, number) in [
            (FieldType::Varchar, "4"),
            (FieldType::TimestampTz, "11"),
            (FieldType::Array(Box::new(FieldType::Integer)), "[100,9]"),
            (FieldType::Array(Box::new(FieldType::Array(Box::new(FieldType::Double)))), "[100,[100,6]]"),
        ] {
            let mut out = Vec::new();
            write_type(&mut out, &field_type);
            assert_eq!(String::from_utf8(out).unwrap(), number);
        }
    }
}
