//! A map as a table: its columns, and how keys are written.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};
use filbert_data::{Blob, FieldPath, FieldType, Formats, ToBlob, Value};
use filbert_grid::Map;
use filbert_grid::query::SqlError;

use crate::error::data_error;
use crate::types::field;

/// A column of a table over a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableColumn {
    /// Its name in statements.
    pub(crate) name: String,
    /// Its type in statements.
    pub(crate) field_type: FieldType,
    /// Where its values are in entries.
    pub(crate) path: FieldPath,
    /// Whether `*` leaves it out.
    pub(crate) hidden: bool,
}

/// A map that statements can ask.
pub(crate) struct MapTable {
    name: String,
    map: Arc<Map>,
    columns: Vec<TableColumn>,
    schema: SchemaRef,
    formats: Formats,
}

impl std::fmt::Debug for MapTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MapTable").field("name", &self.name).finish_non_exhaustive()
    }
}

impl MapTable {
    pub(crate) fn new(name: String, map: Arc<Map>, columns: Vec<TableColumn>, formats: Formats) -> Self {
        let fields = columns.iter().map(|column| {
            // A key is never null, what is in it may be.
            let nullable = column.path != FieldPath::KEY;
            field(&column.name, &column.field_type, nullable)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        MapTable { name, map, columns, schema, formats }
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

    /// Whether a value of this type, as a whole, has one serialized form, so that it can be looked up by its bytes.
    pub(crate) fn writes_key_as(&self, field_type: &FieldType) -> bool {
        !matches!(field_type, FieldType::Json | FieldType::Array(_) | FieldType::Decimal(_) | FieldType::Char)
    }

    /// The key as clients write it; `None` if no key can equal the value.
    pub(crate) fn key_blob(&self, value: &Value<'_>) -> Result<Option<Blob>, SqlError> {
        let Some(column) = self.columns.iter().find(|column| column.path == FieldPath::KEY) else { return Ok(None) };
        if let (FieldType::Object, Value::Object(bytes)) = (&column.field_type, value) {
            return Ok(Some(Blob::from(&**bytes)));
        }
        match value.clone().convert(&column.field_type) {
            Ok(key) => key.to_blob().map(Some).map_err(|error| data_error(error.to_string())),
            Err(_) => Ok(None),
        }
    }
}
