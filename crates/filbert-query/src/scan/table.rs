//! A map as a table: its columns, and the form of its keys.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use filbert_data::{Blob, FieldPath, FieldType, Formats, Side, Step, ToBlob, Value, compact};
use filbert_functions::error::data_error;
use filbert_functions::types::{PgType, field, with_members};
use filbert_grid::Map;
use filbert_grid::query::SqlError;

/// A column of a table over a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableColumn {
    /// Its name in statements.
    pub(crate) name: String,
    /// Its type in statements.
    pub(crate) field_type: FieldType,
    /// The path of its values within entries.
    pub(crate) path: FieldPath,
    /// Whether `*` omits it.
    pub(crate) hidden: bool,
}

/// A map as a table in statements.
pub(crate) struct MapTable {
    name: String,
    map: Arc<Map>,
    columns: Vec<TableColumn>,
    schema: SchemaRef,
    formats: Formats,
    /// Whether its rows are declared: all of them were written as a table's rows.
    is_declared: bool,
    /// Writes composite keys.
    key_writer: Option<(Vec<TableColumn>, compact::Writer)>,
}

impl std::fmt::Debug for MapTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MapTable").field("name", &self.name).finish_non_exhaustive()
    }
}

impl MapTable {
    pub(crate) fn new(name: String, map: Arc<Map>, columns: Vec<TableColumn>, formats: Formats) -> Self {
        let fields = columns.iter().map(|column| {
            // A key is never null, but its fields may be.
            let nullable = column.path != FieldPath::KEY;
            field(&column.name, &column.field_type, nullable)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        MapTable { name, map, columns, schema, formats, is_declared: false, key_writer: None }
    }

    /// Adds the declared object members of columns to their metadata.
    pub(crate) fn with_members(mut self, members: impl Fn(usize) -> Option<String>) -> Self {
        let fields = self.schema.fields().iter().enumerate().map(|(index, field)| match members(index) {
            Some(members) => with_members(field, members),
            None => field.as_ref().clone(),
        });
        self.schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        self
    }

    /// Adds the declared PostgreSQL types of columns to their metadata, where Arrow has no such
    /// type.
    pub(crate) fn with_pg_types(mut self, pg_type: impl Fn(usize) -> Option<PgType>) -> Self {
        let fields = self.schema.fields().iter().enumerate().map(|(index, field)| match pg_type(index) {
            Some(pg_type) => pg_type.mark(field.as_ref().clone()),
            None => field.as_ref().clone(),
        });
        self.schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        self
    }

    /// Marks the rows as declared.
    pub(crate) fn declared(mut self) -> Self {
        self.is_declared = true;
        self
    }

    /// Makes the keys Compact objects of a type. Their fields are the columns with a path in the
    /// key.
    pub(crate) fn with_composite_key(mut self, type_name: &str) -> Self {
        let of_key = |column: &&TableColumn| column.path.side == Side::Key && !column.path.path.is_itself();
        let columns: Vec<TableColumn> = self.columns.iter().filter(of_key).cloned().collect();
        let fields = columns.iter().filter_map(|column| match column.path.path.steps() {
            [Step::Field(name)] => Some((name.to_string(), column.field_type.clone())),
            _ => None,
        });
        let writer = compact::Writer::new(type_name, fields.collect());
        self.key_writer = Some((columns, writer));
        self
    }

    /// The columns of a composite key; empty if the key is one value.
    pub(crate) fn key_columns(&self) -> &[TableColumn] {
        self.key_writer.as_ref().map(|(columns, _)| columns.as_slice()).unwrap_or_default()
    }

    /// A serialized composite key; `None` if no row can have it.
    pub(crate) fn composite_key(&self, values: &[&Value<'_>]) -> Result<Option<Blob>, SqlError> {
        let Some((columns, writer)) = &self.key_writer else { return Ok(None) };
        let converted = values.iter().zip(columns).map(|(value, column)| self.key_value(value, &column.field_type));
        let Some(values) = converted.collect::<Option<Vec<_>>>() else { return Ok(None) };
        writer.write(&values).map(Some).map_err(|error| data_error(error.to_string()))
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn map(&self) -> &Arc<Map> {
        &self.map
    }

    pub(crate) fn columns(&self) -> &[TableColumn] {
        &self.columns
    }

    pub(crate) fn column(&self, name: &str) -> Option<&TableColumn> {
        self.columns.iter().find(|column| column.name == name)
    }

    pub(crate) fn arrow_schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(crate) fn formats(&self) -> &Formats {
        &self.formats
    }

    /// Whether equal values of this type have the same serialized form, so a lookup by bytes finds
    /// them.
    pub(crate) fn writes_key_as(&self, field_type: &FieldType) -> bool {
        !matches!(field_type, FieldType::Json | FieldType::Array(_) | FieldType::Decimal(_) | FieldType::Char)
    }

    /// The key as clients write it; `None` if no key can equal the value.
    pub(crate) fn key_blob(&self, value: &Value<'_>) -> Result<Option<Blob>, SqlError> {
        let Some(column) = self.columns.iter().find(|column| column.path == FieldPath::KEY) else { return Ok(None) };
        if let (FieldType::Object, Value::Object(bytes)) = (&column.field_type, value) {
            return Ok(Some(Blob::from(&**bytes)));
        }
        match self.key_value(value, &column.field_type) {
            Some(key) => key.to_blob().map(Some).map_err(|error| data_error(error.to_string())),
            None => Ok(None),
        }
    }

    /// A value in the form of a key; `None` if it does not have the type. Tables store timestamps
    /// without their offsets.
    fn key_value<'v>(&self, value: &Value<'v>, field_type: &FieldType) -> Option<Value<'v>> {
        match value.clone().convert(field_type).ok()? {
            Value::TimestampTz(timestamp) if self.is_declared => {
                Some(Value::TimestampTz(timestamp.to_utc().fixed_offset()))
            }
            value if self.is_declared => Some(filbert_functions::canonical_key(value)),
            value => Some(value),
        }
    }
}
