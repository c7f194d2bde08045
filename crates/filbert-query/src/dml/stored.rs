//! Reads stored rows for statements that change them.

use filbert_data::{FieldReader, Formats, Side, Value};
use filbert_functions::error::data_error;
use filbert_grid::query::SqlError;

use crate::catalog::{Mapping, MappingColumn};
use crate::dml::writer::EntryWriter;
use crate::scan::rows::key_text;

/// Reads entries of a mapping as rows: the columns of the value, and, for tables, of the key.
/// Hidden columns of mappings stay null.
pub(crate) struct StoredRows {
    reader: FieldReader,
    /// The columns that the reader's fields belong to, by their numbers in the mapping.
    read: Vec<usize>,
    width: usize,
}

impl StoredRows {
    pub(crate) fn of(mapping: &Mapping, formats: &Formats) -> StoredRows {
        let is_table = mapping.table.is_some();
        let is_read = |column: &MappingColumn| is_table || column.path.side == Side::Value && !column.hidden;
        let columns = mapping.columns.iter().enumerate().filter(|(_, column)| is_read(column));
        let (read, fields) = columns.map(|(index, column)| (index, column.path.clone())).unzip();
        StoredRows { reader: FieldReader::new(fields, formats.clone()), read, width: mapping.columns.len() }
    }

    /// The row of an entry.
    ///
    /// # Errors
    /// The mapping's formats do not fit the entry.
    pub(crate) fn read(&self, writer: &EntryWriter, key: &[u8], value: &[u8]) -> Result<Vec<Value<'static>>, SqlError> {
        let mut values = vec![Value::Null; self.width];
        let mut failure = None;
        let read = self.reader.read(key, value, &mut |field, found| {
            let Some(&index) = self.read.get(field) else { return };
            match writer.convert(index, found) {
                Ok(found) => {
                    if let Some(place) = values.get_mut(index) {
                        *place = found.into_owned();
                    }
                }
                Err(error) => failure = failure.take().or(Some(error.message)),
            }
        });
        match read.map_err(|error| error.to_string()).err().or(failure) {
            None => Ok(values),
            Some(error) => Err(data_error(format!("entry with the key {}: {error}", key_text(key)))),
        }
    }
}
