//! The columns of a result in messages: their description, and the values of a row.

use arrow_array::RecordBatch;
use filbert_data::dates::Zone;
use filbert_grid::query::{ColumnMeta, ColumnReader};

use crate::{
    error::{PgError, sqlstate},
    types::{self, PgType},
    wire::{Format, Out, RowField},
};

/// The format of a column. An empty list means text. One format applies to all columns.
pub(crate) fn format_of(formats: &[Format], column: usize) -> Format {
    match formats {
        [] => Format::Text,
        [one] => *one,
        several => several.get(column).copied().unwrap_or_default(),
    }
}

/// Writes a value, preceded by its length.
#[inline]
pub(crate) fn write_value(
    reader: &ColumnReader<'_>,
    row: usize,
    pg_type: PgType,
    format: Format,
    zone: &Zone,
    out: &mut Out,
) -> Result<(), Box<PgError>> {
    if reader.is_null(row) {
        out.i32(-1);
        return Ok(());
    }
    let value = reader.get(row);
    out.sized(false, |out| match format {
        Format::Text => types::write_text(&value, pg_type, zone, &mut out.0),
        Format::Binary => types::write_binary(&value, pg_type, &mut out.0),
    })
}

/// Writes a row description.
pub(crate) fn describe_columns(columns: &[ColumnMeta], formats: &[Format], out: &mut Out) {
    out.row_description(columns.iter().enumerate().map(|(at, column)| {
        let pg_type = PgType::of_column(column);
        RowField {
            name: &column.name,
            oid: pg_type.oid(),
            size: pg_type.size(),
            modifier: types::modifier_of(column),
            format: format_of(formats, at),
        }
    }));
}

/// Creates readers for the columns of a page.
pub(crate) fn readers<'a>(
    page: &'a RecordBatch,
    columns: &[ColumnMeta],
) -> Result<Vec<ColumnReader<'a>>, Box<PgError>> {
    let unreadable = |column: &ColumnMeta| {
        let message = format!("column {:?} does not come as {}", column.name, column.field_type);
        PgError::new(sqlstate::INTERNAL, message)
    };
    let pairs = columns.iter().zip(page.columns());
    pairs
        .map(|(column, array)| ColumnReader::new(array.as_ref(), &column.field_type).ok_or_else(|| unreadable(column)))
        .collect()
}
