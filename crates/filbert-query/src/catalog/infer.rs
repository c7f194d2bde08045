//! Infers a mapping from a stored entry, for maps without a mapping.

use filbert_data::{
    BLOB_HEADER_BYTES, FieldPath, FieldType, Path, SchemaSource, Side, TypeId, compact, portable, type_id,
};
use filbert_functions::error::data_error;
use filbert_grid::query::SqlError;

use super::format::{EntryFormat, options_of};
use super::mapping::{KEY, Mapping, MappingColumn, THIS};

/// The structure of one half of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Half {
    pub(super) format: EntryFormat,
    /// The names and types of its fields.
    pub(super) fields: Vec<(String, FieldType)>,
}

impl Half {
    /// Its fields as columns.
    pub(super) fn columns(&self, side: Side) -> Vec<MappingColumn> {
        let named = self.fields.iter().filter(|(name, _)| name != KEY && name != THIS);
        named
            .map(|(name, field_type)| MappingColumn {
                name: name.clone(),
                field_type: field_type.clone(),
                path: FieldPath { side, path: Path::field(name.as_str()) },
                hidden: false,
            })
            .collect()
    }
}

/// The structure of a stored key or value.
pub(super) fn half_of(blob: &[u8], schemas: &dyn SchemaSource) -> Result<Half, SqlError> {
    let unreadable = |error: filbert_data::DataError| data_error(error.to_string());
    let payload = blob.get(BLOB_HEADER_BYTES..).unwrap_or_default();
    let whole = |format| Ok(Half { format, fields: Vec::new() });
    match type_id(blob).map_err(unreadable)? {
        TypeId::JSON => whole(EntryFormat::Json),
        TypeId::COMPACT => {
            let fields = compact::fields_of(payload, schemas).map_err(unreadable)?;
            let schema = compact::schema_of(payload, schemas).map_err(unreadable)?;
            Ok(Half { format: EntryFormat::Compact { type_name: schema.type_name().to_owned() }, fields })
        }
        TypeId::PORTABLE => {
            let fields = portable::fields_of(payload).map_err(unreadable)?;
            let portable::ClassId { factory_id, class_id, version } =
                portable::class_of(payload).map_err(unreadable)?;
            Ok(Half { format: EntryFormat::Portable { factory_id, class_id, version }, fields })
        }
        id => whole(match scalar_of(id) {
            Some(field_type) => EntryFormat::Primitive(field_type),
            None => EntryFormat::Object,
        }),
    }
}

fn scalar_of(id: TypeId) -> Option<FieldType> {
    Some(match id {
        TypeId::BYTE => FieldType::TinyInt,
        TypeId::BOOLEAN => FieldType::Boolean,
        TypeId::CHAR => FieldType::Char,
        TypeId::SHORT => FieldType::SmallInt,
        TypeId::INT => FieldType::Integer,
        TypeId::LONG => FieldType::BigInt,
        TypeId::FLOAT => FieldType::Real,
        TypeId::DOUBLE => FieldType::Double,
        TypeId::STRING => FieldType::Varchar,
        TypeId::UUID => FieldType::Uuid,
        TypeId::BIG_INTEGER | TypeId::BIG_DECIMAL => FieldType::Decimal(None),
        TypeId::LOCAL_DATE => FieldType::Date,
        TypeId::LOCAL_TIME => FieldType::Time,
        TypeId::LOCAL_DATE_TIME => FieldType::Timestamp,
        TypeId::OFFSET_DATE_TIME => FieldType::TimestampTz,
        _ => return None,
    })
}

/// The mapping of a map, inferred from one of its entries.
///
/// # Errors
/// The entry cannot be read.
pub(crate) fn infer(map: &str, key: &[u8], value: &[u8], schemas: &dyn SchemaSource) -> Result<Mapping, SqlError> {
    let (key, value) = (half_of(key, schemas)?, half_of(value, schemas)?);
    let mut columns: Vec<MappingColumn> = Vec::new();
    for (half, side, name) in [(&key, Side::Key, KEY), (&value, Side::Value, THIS)] {
        let fields = half.columns(side);
        let hidden = !fields.is_empty();
        let whole = MappingColumn {
            name: name.to_owned(),
            field_type: half.format.whole_type(),
            path: FieldPath { side, path: Path::ITSELF },
            hidden,
        };
        for column in fields.into_iter().chain([whole]) {
            if !columns.iter().any(|other| other.name == column.name) {
                columns.push(column);
            }
        }
    }
    let mut options = options_of(&key.format, Side::Key);
    options.extend(options_of(&value.format, Side::Value));
    Ok(Mapping {
        name: map.to_owned(),
        external_name: map.to_owned(),
        columns,
        key_format: key.format,
        value_format: value.format,
        options,
        columnar: false,
        table: None,
    })
}
