//! Writes rows as entries, with keys and values in the mapping's formats.

use std::borrow::Cow;

use filbert_data::{
    Blob, DataError, FieldPath, FieldType, IdsLayout, Side, Step, ToBlob, Value, compact, ids, portable,
};
use filbert_functions::error::data_error;
use filbert_functions::{push_json, push_json_text};
use filbert_grid::Schemas;
use filbert_grid::query::{SqlError, SqlSubject};

use crate::catalog::{EntryFormat, Mapping, MappingColumn};

/// The subject of a conversion error, for dialects with their own message.
fn subject(error: &DataError, translated: &SqlError, field_type: &FieldType) -> Option<SqlSubject> {
    let DataError::NotConvertible { value, .. } = error else { return None };
    match translated.sqlstate {
        Some("22P02") => {
            let text = value.trim_start_matches('"').trim_end_matches('"').to_owned();
            Some(SqlSubject::Text { text, field_type: field_type.clone() })
        }
        Some("22003") => Some(SqlSubject::OutOfRange { field_type: field_type.clone() }),
        _ => None,
    }
}

/// Writes one half of an entry.
enum Part {
    /// One column is the whole half.
    Whole {
        column: usize,
        field_type: FieldType,
    },
    /// The columns are its fields, in this order.
    Json(Vec<(usize, String)>),
    Compact {
        columns: Vec<usize>,
        writer: compact::Writer,
    },
    Portable {
        columns: Vec<usize>,
        writer: portable::Writer,
    },
    Ids {
        columns: Vec<usize>,
        layout: IdsLayout,
    },
    /// The format cannot be written from columns.
    Unwritable(String),
}

/// Writes entries of one mapping. A row has one value for each column of the mapping, including
/// hidden columns.
pub(crate) struct EntryWriter {
    key: Part,
    value: Part,
    /// The hidden columns of the whole key and the whole value.
    whole_key: Option<usize>,
    whole_value: Option<usize>,
    types: Vec<(String, FieldType)>,
}

impl EntryWriter {
    /// Creates the writer of a mapping. Registers the schemas of its Compact classes.
    pub(crate) fn new(mapping: &Mapping, schemas: &Schemas) -> Result<Self, SqlError> {
        let part = |side, format| part_of(&mapping.columns, side, format);
        let writer = EntryWriter {
            key: part(Side::Key, &mapping.key_format)?,
            value: part(Side::Value, &mapping.value_format)?,
            whole_key: mapping.columns.iter().position(|column| column.path == FieldPath::KEY),
            whole_value: mapping.columns.iter().position(|column| column.path == FieldPath::THIS),
            types: mapping.columns.iter().map(|column| (column.name.clone(), column.field_type.clone())).collect(),
        };
        for part in [&writer.key, &writer.value] {
            if let Part::Compact { writer, .. } = part {
                schemas.announce(writer.schema().clone())?;
            }
        }
        Ok(writer)
    }

    /// Converts a value of a row to its column's type.
    pub(crate) fn convert<'v>(&self, column: usize, value: Value<'v>) -> Result<Value<'v>, SqlError> {
        let Some((name, field_type)) = self.types.get(column) else { return Ok(value) };
        if value.is_null() || matches!(field_type, FieldType::Object | FieldType::Array(_)) {
            return Ok(value);
        }
        value.convert(field_type).map_err(|error| {
            let of_type = filbert_functions::error::conversion(&error);
            let subject = subject(&error, &of_type, field_type).map(Box::new);
            SqlError { message: format!("column {name:?}: {}", of_type.message), subject, ..of_type }
        })
    }

    /// The key of a row.
    pub(crate) fn key(&self, row: &[Value<'_>]) -> Result<Blob, SqlError> {
        self.write(&self.key, self.whole_key, row, "__key")
    }

    /// The value of a row.
    pub(crate) fn value(&self, row: &[Value<'_>]) -> Result<Blob, SqlError> {
        self.write(&self.value, self.whole_value, row, "this")
    }

    /// Writes the key and value of a row into buffers, and replaces their content.
    pub(crate) fn entry_into(&self, row: &[Value<'_>], key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<(), SqlError> {
        self.write_into(&self.key, self.whole_key, row, "__key", key)?;
        self.write_into(&self.value, self.whole_value, row, "this", value)
    }

    fn write_into(
        &self,
        part: &Part,
        whole: Option<usize>,
        row: &[Value<'_>],
        name: &str,
        out: &mut Vec<u8>,
    ) -> Result<(), SqlError> {
        let at = |column: usize| row.get(column).unwrap_or(&Value::Null);
        let failed = |error: DataError| data_error(format!("the {name:?} field: {error}"));
        match part {
            Part::Whole { column, field_type } if *field_type != FieldType::Char && !at(*column).is_null() => {
                out.clear();
                at(*column).write_blob(out).map_err(failed)
            }
            Part::Compact { columns, writer } if whole.is_none_or(|whole| at(whole).is_null()) => writer
                .write_into(|field| columns.get(field).map_or(&Value::Null, |column| at(*column)), out)
                .map_err(failed),
            _ => {
                out.clear();
                out.extend_from_slice(&self.write(part, whole, row, name)?);
                Ok(())
            }
        }
    }

    fn write(&self, part: &Part, whole: Option<usize>, row: &[Value<'_>], name: &str) -> Result<Blob, SqlError> {
        let at = |column: usize| row.get(column).unwrap_or(&Value::Null);
        let given = whole.map(at).filter(|value| !value.is_null());
        let written = match (part, given) {
            (Part::Whole { column, field_type }, _) => {
                let value = at(*column);
                if value.is_null() {
                    return Err(data_error(format!("cannot write NULL to the {name:?} field")));
                }
                whole_blob(value, field_type)
            }
            // A value that is given as a whole need not be composed.
            (_, Some(value)) => value.to_blob(),
            (Part::Json(columns), None) => json_blob(columns, row),
            (Part::Compact { columns, writer }, None) => writer.write(&picked(columns, row)),
            (Part::Portable { columns, writer }, None) => writer.write(&picked(columns, row)),
            (Part::Ids { columns, layout }, None) => {
                let mut out = Vec::new();
                ids::write(layout, &picked(columns, row), &mut out).map(|()| Blob::from(out))
            }
            (Part::Unwritable(reason), None) => return Err(data_error(reason.clone())),
        };
        written.map_err(|error| data_error(format!("the {name:?} field: {error}")))
    }
}

fn picked<'v>(columns: &[usize], row: &'v [Value<'v>]) -> Vec<Value<'v>> {
    columns.iter().map(|column| row.get(*column).cloned().unwrap_or(Value::Null)).collect()
}

fn whole_blob(value: &Value<'_>, field_type: &FieldType) -> Result<Blob, DataError> {
    match (field_type, value) {
        (FieldType::Char, Value::Text(text)) => match text.chars().next() {
            Some(char) => char.to_blob(),
            None => value.to_blob(),
        },
        _ => value.to_blob(),
    }
}

fn part_of(columns: &[MappingColumn], side: Side, format: &EntryFormat) -> Result<Part, SqlError> {
    let name = if side == Side::Key { "__key" } else { "this" };
    let fields: Vec<(usize, &str, &FieldType)> = columns
        .iter()
        .enumerate()
        .filter(|(_, column)| column.path.side == side)
        .filter_map(|(index, column)| match column.path.path.steps() {
            [Step::Field(field)] => Some((index, &**field, &column.field_type)),
            _ => None,
        })
        .collect();
    let whole = columns.iter().position(|column| column.path.side == side && column.path.path.is_itself());
    let whole_part = || match whole.and_then(|index| Some((index, columns.get(index)?))) {
        Some((column, declared)) => Part::Whole { column, field_type: declared.field_type.clone() },
        None => Part::Unwritable(format!("there is no column for the {name:?} field, expected one")),
    };
    let indexes = || fields.iter().map(|(index, ..)| *index).collect::<Vec<_>>();
    let named = || fields.iter().map(|(_, field, field_type)| ((*field).to_owned(), (*field_type).clone())).collect();
    // A table may have key columns only. Its values are then objects without fields.
    let is_bare = whole.is_none() && matches!(format, EntryFormat::Compact { .. });
    if fields.is_empty() && !is_bare && !matches!(format, EntryFormat::Ids(_)) {
        return Ok(whole_part());
    }
    Ok(match format {
        EntryFormat::Primitive(_) | EntryFormat::Json | EntryFormat::Object => whole_part(),
        EntryFormat::JsonFlat => {
            Part::Json(fields.iter().map(|(index, field, _)| (*index, (*field).to_owned())).collect())
        }
        EntryFormat::Compact { type_name } => {
            Part::Compact { columns: indexes(), writer: compact::Writer::new(type_name.clone(), named()) }
        }
        EntryFormat::Portable { factory_id, class_id, version } => {
            let class = portable::ClassId { factory_id: *factory_id, class_id: *class_id, version: *version };
            let class = portable::ClassDefinition::of_types(class, named());
            let writer = portable::Writer::new(class).map_err(|error| data_error(error.to_string()))?;
            Part::Portable { columns: indexes(), writer }
        }
        EntryFormat::Ids(layout) => {
            let find = |field: &String| fields.iter().find(|(_, name, _)| name == field).map(|(index, ..)| *index);
            let columns: Option<Vec<usize>> = layout.fields.iter().map(|(field, _)| find(field)).collect();
            match columns {
                Some(columns) => Part::Ids { columns, layout: layout.clone() },
                None => Part::Unwritable(format!("not every field of the {name:?} layout has a column")),
            }
        }
    })
}

/// A JSON object of the columns; includes nulls.
fn json_blob(columns: &[(usize, String)], row: &[Value<'_>]) -> Result<Blob, DataError> {
    let mut text = String::from("{");
    for (index, (column, name)) in columns.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        push_json_text(name, &mut text);
        text.push(':');
        push_json(row.get(*column).unwrap_or(&Value::Null), &mut text);
    }
    text.push('}');
    Value::Json(Cow::Owned(text)).to_blob()
}
