//! Storage formats of a mapping's keys and values, from the options `keyFormat`, `valueFormat` and
//! the options that belong to them.

use filbert_data::{FieldType, IdsLayout, Side};
use filbert_functions::error::parsing_error;
use filbert_grid::query::SqlError;
use serde::{Deserialize, Serialize};

/// The format of one half of a mapping's entries.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EntryFormat {
    /// One scalar.
    Primitive(FieldType),
    /// One JSON document.
    Json,
    /// A JSON document with members as columns.
    JsonFlat,
    /// Opaque objects.
    Object,
    /// Compact.
    Compact {
        /// The type's name.
        type_name: String,
    },
    /// Portable.
    Portable {
        /// The factory's id.
        factory_id: i32,
        /// The class's id within the factory.
        class_id: i32,
        /// The class's version.
        version: i32,
    },
    /// IdentifiedDataSerializable of a declared layout.
    Ids(IdsLayout),
}

impl EntryFormat {
    /// The type of the whole key or value.
    pub(crate) fn whole_type(&self) -> FieldType {
        match self {
            EntryFormat::Primitive(field_type) => field_type.clone(),
            EntryFormat::Json | EntryFormat::JsonFlat => FieldType::Json,
            _ => FieldType::Object,
        }
    }

    /// Whether the whole key or value consists of fields.
    pub(super) fn has_fields(&self) -> bool {
        !matches!(self, EntryFormat::Primitive(_) | EntryFormat::Json)
    }
}

/// The options of a mapping.
pub(super) struct Options<'o>(pub(super) &'o [(String, String)]);

impl<'o> Options<'o> {
    pub(super) fn get(&self, name: &str) -> Option<&'o str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &str) -> Result<Option<i32>, SqlError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        let number = text.trim().parse();
        number.map(Some).map_err(|_| parsing_error(format!("option '{name}' is '{text}', expected a whole number")))
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool, SqlError> {
        match self.get(name) {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(other) => Err(parsing_error(format!("option '{name}' is '{other}', expected 'true' or 'false'"))),
        }
    }
}

/// The prefix of a side's options.
fn prefix(side: Side) -> &'static str {
    match side {
        Side::Key => "key",
        Side::Value => "value",
    }
}

/// The format of a side. `fields` are the columns of that side that are fields, in the order of the
/// statement.
pub(super) fn format_of(
    options: &Options<'_>,
    side: Side,
    fields: &[(String, FieldType)],
) -> Result<EntryFormat, SqlError> {
    let prefix = prefix(side);
    let option = |name: &str| format!("{prefix}{name}");
    let missing = |what: &str| parsing_error(format!("Unable to resolve table metadata. Missing {what}"));
    let Some(format) = options.get(&option("Format")) else {
        return Err(parsing_error(format!("Missing '{prefix}Format' option")));
    };
    if let Some(field_type) = scalar_of_format(format) {
        return Ok(EntryFormat::Primitive(field_type));
    }
    Ok(match format {
        "json" => EntryFormat::Json,
        "json-flat" => EntryFormat::JsonFlat,
        "java" => {
            let class = options.get(&option("JavaClass"));
            let class = class.ok_or_else(|| missing(&format!("'{prefix}JavaClass' option")))?;
            match scalar_of_class(class) {
                Some(FieldType::Json) => EntryFormat::Json,
                Some(field_type) => EntryFormat::Primitive(field_type),
                None => EntryFormat::Object,
            }
        }
        "compact" => {
            let name = options.get(&option("CompactTypeName")).filter(|name| !name.is_empty());
            let name = name.ok_or_else(|| missing(&format!("'{prefix}CompactTypeName' option")))?;
            EntryFormat::Compact { type_name: name.to_owned() }
        }
        "portable" => {
            let (factory, class) = (option("PortableFactoryId"), option("PortableClassId"));
            let (Some(factory_id), Some(class_id)) = (options.number(&factory)?, options.number(&class)?) else {
                return Err(missing(&format!("'{factory}' or '{class}' option")));
            };
            let version = options.number(&option("PortableClassVersion"))?.unwrap_or(0);
            EntryFormat::Portable { factory_id, class_id, version }
        }
        "ids" => {
            let (factory, class) = (option("FactoryId"), option("ClassId"));
            let (Some(factory_id), Some(class_id)) = (options.number(&factory)?, options.number(&class)?) else {
                return Err(missing(&format!("'{factory}' or '{class}' option")));
            };
            EntryFormat::Ids(IdsLayout { factory_id, class_id, fields: fields.to_vec() })
        }
        "avro" => return Err(parsing_error("the serialization format avro is not served for maps")),
        other => return Err(parsing_error(format!("Unsupported serialization format: {other}"))),
    })
}

/// The scalar formats, which are names of SQL types.
fn scalar_of_format(format: &str) -> Option<FieldType> {
    Some(match format.to_ascii_lowercase().as_str() {
        "varchar" | "character varying" | "char varying" => FieldType::Varchar,
        "boolean" => FieldType::Boolean,
        "tinyint" => FieldType::TinyInt,
        "smallint" => FieldType::SmallInt,
        "integer" | "int" => FieldType::Integer,
        "bigint" => FieldType::BigInt,
        "decimal" | "dec" | "numeric" => FieldType::Decimal(None),
        "real" => FieldType::Real,
        "double" | "double precision" => FieldType::Double,
        "time" => FieldType::Time,
        "date" => FieldType::Date,
        "timestamp" => FieldType::Timestamp,
        "timestamp with time zone" => FieldType::TimestampTz,
        "uuid" => FieldType::Uuid,
        _ => return None,
    })
}

/// The types of Java classes.
fn scalar_of_class(class: &str) -> Option<FieldType> {
    Some(match class {
        "java.lang.String" => FieldType::Varchar,
        "java.lang.Character" | "char" => FieldType::Char,
        "java.lang.Boolean" | "boolean" => FieldType::Boolean,
        "java.lang.Byte" | "byte" => FieldType::TinyInt,
        "java.lang.Short" | "short" => FieldType::SmallInt,
        "java.lang.Integer" | "int" => FieldType::Integer,
        "java.lang.Long" | "long" => FieldType::BigInt,
        "java.math.BigDecimal" | "java.math.BigInteger" => FieldType::Decimal(None),
        "java.lang.Float" | "float" => FieldType::Real,
        "java.lang.Double" | "double" => FieldType::Double,
        "java.time.LocalTime" => FieldType::Time,
        "java.time.LocalDate" => FieldType::Date,
        "java.time.LocalDateTime" => FieldType::Timestamp,
        "java.time.OffsetDateTime" | "java.time.ZonedDateTime" | "java.time.Instant" => FieldType::TimestampTz,
        "java.util.UUID" => FieldType::Uuid,
        "com.hazelcast.core.HazelcastJsonValue" => FieldType::Json,
        _ => return None,
    })
}

/// The options that declare a format.
pub(super) fn options_of(format: &EntryFormat, side: Side) -> Vec<(String, String)> {
    let prefix = prefix(side);
    let of = |name: &str, value: &str| (format!("{prefix}{name}"), value.to_owned());
    match format {
        EntryFormat::Primitive(field_type) => {
            let name = match field_type {
                FieldType::Varchar => "varchar",
                FieldType::Boolean => "boolean",
                FieldType::TinyInt => "tinyint",
                FieldType::SmallInt => "smallint",
                FieldType::Integer => "int",
                FieldType::BigInt => "bigint",
                FieldType::Decimal(_) => "decimal",
                FieldType::Real => "real",
                FieldType::Double => "double",
                FieldType::Time => "time",
                FieldType::Date => "date",
                FieldType::Timestamp => "timestamp",
                FieldType::TimestampTz => "timestamp with time zone",
                FieldType::Uuid => return vec![of("Format", "java"), of("JavaClass", "java.util.UUID")],
                FieldType::Char => return vec![of("Format", "java"), of("JavaClass", "java.lang.Character")],
                FieldType::Json => "json",
                FieldType::Object | FieldType::Binary | FieldType::Interval | FieldType::Array(_) => {
                    return vec![of("Format", "java"), of("JavaClass", "java.lang.Object")];
                }
            };
            vec![of("Format", name)]
        }
        EntryFormat::Json => vec![of("Format", "json")],
        EntryFormat::JsonFlat => vec![of("Format", "json-flat")],
        EntryFormat::Object => vec![of("Format", "java"), of("JavaClass", "java.lang.Object")],
        EntryFormat::Compact { type_name } => vec![of("Format", "compact"), of("CompactTypeName", type_name)],
        EntryFormat::Portable { factory_id, class_id, version } => vec![
            of("Format", "portable"),
            of("PortableFactoryId", &factory_id.to_string()),
            of("PortableClassId", &class_id.to_string()),
            of("PortableClassVersion", &version.to_string()),
        ],
        EntryFormat::Ids(layout) => vec![
            of("Format", "ids"),
            of("FactoryId", &layout.factory_id.to_string()),
            of("ClassId", &layout.class_id.to_string()),
        ],
    }
}
