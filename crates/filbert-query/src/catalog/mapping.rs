//! Mappings: the columns of a map in SQL, and their paths within entries.

use std::sync::Arc;

use filbert_data::{FieldPath, FieldType, SchemaSource, Side, Step};
use filbert_dialect::{ColumnDeclaration, CreateMapping};
use filbert_functions::error::parsing_error;
use filbert_grid::query::SqlError;
use serde::{Deserialize, Serialize};

use super::format::{EntryFormat, Options, format_of};
use super::infer::{Half, half_of};
use super::table::TableFacts;

/// The column of the whole key.
pub(super) const KEY: &str = "__key";
/// The column of the whole value.
pub(super) const THIS: &str = "this";

/// A map as a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mapping {
    /// Its name in statements.
    pub(crate) name: String,
    /// The map's name.
    pub(crate) external_name: String,
    /// Its columns: first the columns of the key, then those of the value, each in the declared
    /// order.
    pub(crate) columns: Vec<MappingColumn>,
    /// The format of keys.
    pub(crate) key_format: EntryFormat,
    /// The format of values.
    pub(crate) value_format: EntryFormat,
    /// The options, as declared.
    pub(crate) options: Vec<(String, String)>,
    /// Whether the map keeps columns beside the rows.
    pub(crate) columnar: bool,
    /// The declaration of the table, if the mapping is one.
    pub(crate) table: Option<Arc<TableFacts>>,
}

/// A column of a mapping.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct MappingColumn {
    /// Its name.
    pub(crate) name: String,
    /// Its type.
    pub(crate) field_type: FieldType,
    /// Its path within an entry.
    pub(crate) path: FieldPath,
    /// Whether `*` omits it: the whole key or value, if it was not declared.
    pub(crate) hidden: bool,
}

#[cfg(test)]
impl Mapping {
    /// The mapping of a statement that declares all columns.
    ///
    /// # Errors
    /// An option or a column is missing, unknown or inconsistent with the others.
    pub(crate) fn of(statement: &CreateMapping) -> Result<Mapping, SqlError> {
        of(statement, None, None)
    }
}

/// The mapping of a statement. Columns that it omits are inferred from a stored entry.
///
/// # Errors
/// An option or a column is missing, unknown or inconsistent with the others; the entry cannot be
/// read, or does not have the declared format.
pub(crate) fn resolve(
    statement: &CreateMapping,
    sample: Option<(&[u8], &[u8])>,
    schemas: &dyn SchemaSource,
) -> Result<Mapping, SqlError> {
    let key = sample.map(|(key, _)| half_of(key, schemas)).transpose()?;
    let value = sample.map(|(_, value)| half_of(value, schemas)).transpose()?;
    of(statement, key.as_ref(), value.as_ref())
}

fn of(statement: &CreateMapping, key: Option<&Half>, value: Option<&Half>) -> Result<Mapping, SqlError> {
    if !statement.connector.eq_ignore_ascii_case("IMap") {
        return Err(parsing_error(format!(
            "Unknown connector type: {}, only maps can be mapped, TYPE IMap",
            statement.connector
        )));
    }
    let declared = statement.columns.iter().map(declared).collect::<Result<Vec<_>, _>>()?;
    for (at, column) in declared.iter().enumerate() {
        if declared.iter().take(at).any(|other| other.path == column.path) {
            return Err(parsing_error(format!("Duplicate external name: {}", column.path)));
        }
    }
    let options = Options(&statement.options);
    let (key_format, mut columns) = side(&options, Side::Key, &declared, key)?;
    let (value_format, value_columns) = side(&options, Side::Value, &declared, value)?;
    for column in value_columns {
        // A field of the key hides a field of the value with the same name.
        if !columns.iter().any(|other| other.name == column.name) {
            columns.push(column);
        }
    }
    Ok(Mapping {
        name: statement.name.clone(),
        external_name: statement.external_name.clone().unwrap_or_else(|| statement.name.clone()),
        columns,
        key_format,
        value_format,
        options: statement.options.clone(),
        columnar: options.flag("columnar")?,
        table: None,
    })
}

fn declared(column: &ColumnDeclaration) -> Result<MappingColumn, SqlError> {
    let name = column.name.as_str();
    let whole = matches!(name, KEY | THIS);
    let external = match &column.external_name {
        Some(external) => external.clone(),
        None if whole => name.to_owned(),
        None => format!("{THIS}.{name}"),
    };
    if whole && external != name {
        return Err(parsing_error(format!("Cannot rename field: '{name}'")));
    }
    let rest = external.strip_prefix(KEY).or_else(|| external.strip_prefix(THIS));
    if rest.is_some_and(|rest| rest == ".") || external.is_empty() {
        return Err(parsing_error(format!("Invalid external name: {external}")));
    }
    let path = match column.external_name {
        // A column name without an external name is one field, even if it looks like a path.
        None if !whole => FieldPath { side: Side::Value, path: filbert_data::Path::field(name) },
        _ => FieldPath::parse(&external)
            .map_err(|error| parsing_error(format!("Invalid external name: {external}: {error}")))?,
    };
    if path.path.finds_many() {
        return Err(parsing_error(format!("Invalid external name: {external}: a column is one value, not [any]")));
    }
    Ok(MappingColumn { name: name.to_owned(), field_type: column.field_type.clone(), path, hidden: false })
}

/// The format and the columns of one side.
fn side(
    options: &Options<'_>,
    side: Side,
    declared: &[MappingColumn],
    sample: Option<&Half>,
) -> Result<(EntryFormat, Vec<MappingColumn>), SqlError> {
    let whole_name = if side == Side::Key { KEY } else { THIS };
    let mut columns: Vec<MappingColumn> = declared.iter().filter(|column| column.path.side == side).cloned().collect();
    let fields: Vec<(String, FieldType)> = columns
        .iter()
        .filter_map(|column| match column.path.path.steps() {
            [Step::Field(name)] => Some((name.to_string(), column.field_type.clone())),
            _ => None,
        })
        .collect();
    let format = format_of(options, side, &fields)?;
    let whole_path = FieldPath { side, path: filbert_data::Path::ITSELF };
    let whole_type = format.whole_type();
    if !format.has_fields() {
        check_whole(&format, whole_name, &whole_path, &columns)?;
        if columns.is_empty() {
            columns.push(MappingColumn {
                name: whole_name.to_owned(),
                field_type: whole_type.clone(),
                path: whole_path.clone(),
                hidden: false,
            });
        }
    } else {
        check_fields(&format, &columns, &whole_path)?;
        if columns.is_empty() {
            columns = left_out(&format, side, sample, declared)?;
        }
    }
    if !columns.iter().any(|column| column.name == whole_name) {
        // A document without columns for its members is hidden as well.
        let hidden = format == EntryFormat::JsonFlat || columns.iter().any(|column| column.path.side == side);
        columns.push(MappingColumn { name: whole_name.to_owned(), field_type: whole_type, path: whole_path, hidden });
    }
    Ok((format, columns))
}

/// A scalar must be one column of its type.
fn check_whole(format: &EntryFormat, name: &str, path: &FieldPath, columns: &[MappingColumn]) -> Result<(), SqlError> {
    let whole_type = format.whole_type();
    for column in columns {
        // A JSON document may also have paths into it.
        if column.path != *path && *format != EntryFormat::Json {
            let message =
                format!("The field '{}' cannot be in the '{name}' field, which is of type {whole_type}", column.name);
            return Err(parsing_error(message));
        }
        if column.path == *path
            && column.field_type != whole_type
            && !matches!(column.field_type, FieldType::Decimal(_))
        {
            let message = format!(
                "Mismatch between declared and resolved type for field '{}': {} and {whole_type}",
                column.name, column.field_type
            );
            return Err(parsing_error(message));
        }
    }
    Ok(())
}

fn check_fields(format: &EntryFormat, columns: &[MappingColumn], whole: &FieldPath) -> Result<(), SqlError> {
    if *format == EntryFormat::JsonFlat
        && let Some(column) = columns.iter().find(|column| column.path == *whole)
    {
        return Err(parsing_error(format!("Cannot use the '{}' field with JSON serialization", column.name)));
    }
    let nested = columns.iter().find(|column| column.path.path.steps().len() > 1);
    if let (EntryFormat::Ids(_), Some(column)) = (format, nested) {
        return Err(parsing_error(format!("Invalid external name: {}: a layout has no fields in fields", column.path)));
    }
    Ok(())
}

/// The columns that a statement omitted.
fn left_out(
    format: &EntryFormat,
    side: Side,
    sample: Option<&Half>,
    declared: &[MappingColumn],
) -> Result<Vec<MappingColumn>, SqlError> {
    let required = |name: &str| Err(parsing_error(format!("Column list is required for {name} format")));
    let same = sample.filter(|half| half.format == *format);
    match (format, same) {
        (_, Some(half)) => Ok(half.columns(side)),
        (EntryFormat::Object, None) => Ok(Vec::new()),
        // If all declared columns belong to the other side, this side has none.
        (EntryFormat::JsonFlat, None) if !declared.is_empty() => Ok(Vec::new()),
        (EntryFormat::Compact { .. }, None) => required("Compact"),
        (EntryFormat::Portable { .. }, None) => required("Portable"),
        (EntryFormat::Ids(_), None) => required("ids"),
        (EntryFormat::JsonFlat | EntryFormat::Json | EntryFormat::Primitive(_), None) => required("JSON"),
    }
}
