//! Entries as rows: reads the fields of serialized keys and values into Arrow columns.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use filbert_data::{FieldPath, FieldReader, FieldType, Formats, Side, Value};
use filbert_functions::builder::{ColumnBuilder, batch};
use filbert_functions::error::{carried, data_error};
use filbert_grid::query::SqlError;
use filbert_grid::threads;

use crate::scan::table::TableColumn;

/// The maximum number of characters of a key in an error.
const KEY_TEXT_CHARS_MAX: usize = 200;

/// Copies of entries, one after the other.
#[derive(Default)]
pub(crate) struct RowBuffer {
    bytes: Vec<u8>,
    /// The ends of the key and the value of each entry.
    ends: Vec<(usize, usize)>,
}

impl RowBuffer {
    pub(crate) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        let key_end = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((key_end, self.bytes.len()));
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The key and value of an entry.
    pub(crate) fn get(&self, index: usize) -> Option<(&[u8], &[u8])> {
        let (key_end, end) = *self.ends.get(index)?;
        let start = match index.checked_sub(1) {
            Some(before) => self.ends.get(before)?.1,
            None => 0,
        };
        Some((self.bytes.get(start..key_end)?, self.bytes.get(key_end..end)?))
    }
}

/// The source of a batch column.
enum Source {
    /// The reader's field with this number.
    Field,
    /// The whole stored key or value.
    Blob(Side),
}

/// A plan for reading entries into columns. It is made once for a query plan, and shared by its
/// runs.
pub(crate) struct RowPlan {
    schema: SchemaRef,
    /// The fields to read, and the target column of each.
    reader: FieldReader,
    targets: Vec<usize>,
    /// Columns that are whole keys or values.
    blobs: Vec<(usize, Side)>,
    /// The name and type of each column.
    columns: Vec<(String, FieldType)>,
}

impl std::fmt::Debug for RowPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RowPlan").field("columns", &self.columns).finish_non_exhaustive()
    }
}

impl RowPlan {
    /// A plan that reads these columns, for batches of `schema`.
    pub(crate) fn new<'c>(
        schema: SchemaRef,
        columns: impl IntoIterator<Item = &'c TableColumn>,
        formats: &Formats,
    ) -> Self {
        let mut fields = Vec::new();
        let mut targets = Vec::new();
        let mut blobs = Vec::new();
        let mut all = Vec::new();
        for (index, column) in columns.into_iter().enumerate() {
            match source_of(&column.path, &column.field_type) {
                Source::Field => {
                    fields.push(column.path.clone());
                    targets.push(index);
                }
                Source::Blob(side) => blobs.push((index, side)),
            }
            all.push((column.name.clone(), column.field_type.clone()));
        }
        let reader = FieldReader::new(fields, formats.clone());
        RowPlan { schema, reader, targets, blobs, columns: all }
    }
}

/// Reads entries into columns.
pub(crate) struct RowReader {
    plan: Arc<RowPlan>,
    builders: Vec<ColumnBuilder>,
    rows: usize,
}

impl RowReader {
    /// Creates a reader for a plan.
    pub(crate) fn new(plan: Arc<RowPlan>) -> Self {
        let builders = plan.columns.iter().map(|(_, field_type)| ColumnBuilder::new(field_type)).collect();
        RowReader { plan, builders, rows: 0 }
    }

    /// Reads one entry.
    pub(crate) fn append(&mut self, key: &[u8], value: &[u8]) -> Result<(), SqlError> {
        let RowReader { plan, builders, rows } = self;
        let mut failure = None;
        let read = plan.reader.read(key, value, &mut |field, read| {
            let Some(&target) = plan.targets.get(field) else { return };
            let Some(builder) = builders.get_mut(target) else { return };
            if failure.is_none()
                && let Err(error) = builder.append(read)
            {
                failure = Some((target, error));
            }
        });
        if let Err(error) = read {
            return Err(data_error(format!("entry with the key {}: {error}", key_text(key))));
        }
        if let Some((target, error)) = failure {
            let name = plan.columns.get(target).map_or("", |(name, _)| name.as_str());
            return Err(data_error(format!("column {name:?} of the entry with the key {}: {error}", key_text(key))));
        }
        for &(target, side) in &plan.blobs {
            if let Some(ColumnBuilder::Object(builder)) = builders.get_mut(target) {
                builder.append_value(if side == Side::Key { key } else { value });
            }
        }
        *rows += 1;
        threads::give_way_at(*rows);
        Ok(())
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The entries read since the last call.
    pub(crate) fn finish(&mut self) -> datafusion::common::Result<RecordBatch> {
        let rows = std::mem::take(&mut self.rows);
        let columns = self.builders.iter_mut().map(ColumnBuilder::finish).collect();
        batch(&self.plan.schema, columns, rows)
    }

    /// Like [`RowReader::append`], with DataFusion's error type.
    pub(crate) fn append_carried(&mut self, key: &[u8], value: &[u8]) -> datafusion::common::Result<()> {
        self.append(key, value).map_err(carried)
    }
}

fn source_of(path: &FieldPath, field_type: &FieldType) -> Source {
    match field_type {
        FieldType::Object if path.path.is_itself() => Source::Blob(path.side),
        _ => Source::Field,
    }
}

/// A readable form of a key.
pub(crate) fn key_text(key: &[u8]) -> String {
    let value = Value::from_blob(key).unwrap_or(Value::Object(Cow::Borrowed(key)));
    let text = match value {
        Value::Text(text) => format!("{text:?}"),
        Value::Object(bytes) => format!("{:?}", filbert_data::Blob::from(&*bytes)),
        other => other.to_string(),
    };
    match text.char_indices().nth(KEY_TEXT_CHARS_MAX) {
        Some((end, _)) => format!("{}..", text.get(..end).unwrap_or_default()),
        None => text,
    }
}
