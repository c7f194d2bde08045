//! Encodes rows as `CopyData` messages.

use filbert_data::{
    dates::Zone,
    rows::{RowFormat, end_row, put_field},
};
use filbert_grid::query::{ColumnMeta, ColumnReader, CopyFormat, CopyKind};

use super::{binary::SIGNATURE, row_format};
use crate::{
    columns::write_value,
    error::PgError,
    types::{self, PgType},
    wire::{Format, Out},
};

/// Writes rows, one `CopyData` message for each.
pub(crate) struct CopyWriter {
    /// The text or CSV format. `None` for binary.
    format: Option<RowFormat>,
    types: Vec<PgType>,
    /// A buffer for the text of a value before it is escaped.
    scratch: Vec<u8>,
    /// Whether the header of the binary format is not written yet.
    header_left: bool,
}

impl CopyWriter {
    pub(crate) fn new(format: &CopyFormat, columns: &[ColumnMeta]) -> Result<CopyWriter, Box<PgError>> {
        let format = if format.kind == CopyKind::Binary { None } else { Some(row_format(format)?) };
        let types = columns.iter().map(PgType::of_column).collect();
        Ok(CopyWriter { header_left: format.is_none(), format, types, scratch: Vec::new() })
    }

    /// Writes the names of the columns if the format has a header.
    pub(crate) fn begin(&self, columns: &[ColumnMeta], out: &mut Out) {
        if let Some(format) = self.format.as_ref().filter(|format| format.header) {
            out.message(b'd', |out| {
                for (at, column) in columns.iter().enumerate() {
                    put_field(Some(column.name.as_bytes()), at == 0, format, &mut out.0);
                }
                end_row(&mut out.0);
            });
        }
    }

    /// Writes the header of the binary format. It must be in one message with the first row or the
    /// end marker, as drivers expect.
    fn begin_binary(header_left: &mut bool, out: &mut Out) {
        if std::mem::take(header_left) {
            out.bytes(SIGNATURE);
            out.i32(0);
            out.i32(0);
        }
    }

    /// Writes a row.
    pub(crate) fn write(
        &mut self,
        readers: &[ColumnReader<'_>],
        row: usize,
        zone: &Zone,
        out: &mut Out,
    ) -> Result<(), Box<PgError>> {
        let CopyWriter { format, types, scratch, header_left } = self;
        let columns = readers.iter().zip(types.iter());
        match format {
            None => out.message(b'd', |out| {
                CopyWriter::begin_binary(header_left, out);
                out.count(readers.len());
                let mut columns = columns;
                columns.try_for_each(|(reader, pg_type)| write_value(reader, row, *pg_type, Format::Binary, zone, out))
            }),
            Some(format) => out.message(b'd', |out| {
                for (at, (reader, pg_type)) in columns.enumerate() {
                    scratch.clear();
                    let is_null = reader.is_null(row);
                    if !is_null {
                        types::write_text(&reader.get(row), *pg_type, zone, scratch)?;
                    }
                    put_field((!is_null).then_some(scratch.as_slice()), at == 0, format, &mut out.0);
                }
                end_row(&mut out.0);
                Ok(())
            }),
        }
    }

    /// Writes the end marker of the binary format.
    pub(crate) fn end(&mut self, out: &mut Out) {
        if self.format.is_none() {
            out.message(b'd', |out| {
                CopyWriter::begin_binary(&mut self.header_left, out);
                out.i16(-1);
            });
        }
    }
}
