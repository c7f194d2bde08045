//! Decodes the bytes of a COPY into rows of values, and passes the rows to a [`RowWriter`].

use std::sync::Arc;

use filbert_data::dates::Zone;
use filbert_data::{
    Value,
    rows::{Row, RowError, RowReader},
};
use filbert_grid::{
    Exhausted, Reservation,
    query::{ColumnMeta, CopyFormat, CopyKind, RowWriter},
};

use super::CHUNK_BYTES;
use crate::{
    copy_format::{BinaryReader, row_format},
    error::{PgError, sqlstate},
    types::{self, PgType},
    wire::Format,
};

/// The number of rows that are passed to the writer at a time.
const BATCH_ROWS: usize = 256;

/// The unit of memory reservations in bytes: enough for most batches of rows.
const RESERVATION_BYTES: usize = 64 << 10;

/// The maximum capacity of the vector of values that is kept from one batch to the next.
const VALUES_KEPT_MAX: usize = RESERVATION_BYTES / size_of::<Value<'static>>();

/// The error of a client when no memory is left for its rows.
pub(super) fn refused(exhausted: &Exhausted) -> Box<PgError> {
    PgError::new(sqlstate::OUT_OF_MEMORY, exhausted.to_string())
}

/// Loads the bytes of a COPY.
pub(super) struct Loader {
    source: Source,
    /// An upper bound of the bytes since the last complete row, and their memory reservation.
    row_bytes: usize,
    reservation: Reservation,
    target: Target,
}

enum Source {
    Text(RowReader),
    Binary(BinaryReader),
}

/// The destination of rows.
struct Target {
    /// `None` after all rows are written.
    writer: Option<Box<dyn RowWriter>>,
    columns: Arc<[ColumnMeta]>,
    types: Vec<PgType>,
    /// The values of rows that are not passed to the writer yet, and the line of each row.
    values: Vec<Value<'static>>,
    lines: Vec<u64>,
    /// The maximum number of bytes that the values take, and their memory reservation.
    value_bytes: usize,
    reservation: Reservation,
    /// The number of rows that were read, and the number of rows that were written.
    rows: u64,
    written: u64,
    /// The time zone of timestamps that have none.
    zone: Zone,
}

impl From<RowError> for Box<PgError> {
    fn from(error: RowError) -> Self {
        let sqlstate = match error {
            RowError::NotUtf8 { .. } | RowError::HasZero { .. } => sqlstate::NOT_IN_REPERTOIRE,
            RowError::TooLong { .. } => sqlstate::LIMIT_EXCEEDED,
            RowError::Unterminated { .. } | RowError::CarriageReturn { .. } => sqlstate::BAD_COPY_FORMAT,
        };
        PgError::new(sqlstate, error.to_string()).within(format!("COPY, line {}", error.line()))
    }
}

impl Loader {
    pub(super) fn new(
        writer: Box<dyn RowWriter>,
        format: &CopyFormat,
        row_bytes_max: usize,
        zone: Zone,
        [reservation, values_reservation]: [Reservation; 2],
    ) -> Result<Loader, Box<PgError>> {
        let columns = writer.columns().clone();
        let source = match format.kind {
            CopyKind::Binary => Source::Binary(BinaryReader::new(row_bytes_max)),
            _ => Source::Text(RowReader::new(row_format(format)?, row_bytes_max)),
        };
        let types = columns.iter().map(PgType::of_column).collect();
        let (values, lines, value_bytes, rows, written) = Default::default();
        let target = Target {
            writer: Some(writer),
            columns,
            types,
            values,
            lines,
            value_bytes,
            reservation: values_reservation,
            rows,
            written,
            zone,
        };
        Ok(Loader { source, row_bytes: 0, reservation, target })
    }

    pub(super) fn columns(&self) -> usize {
        self.target.columns.len()
    }

    /// The number of rows that were written. It is 0 before [`Loader::finish`].
    pub(super) fn written(&self) -> u64 {
        self.target.written
    }

    /// Loads bytes in pieces, so that the rows of each piece are passed to the writer before the
    /// next piece is decoded.
    pub(super) fn load(&mut self, bytes: &[u8]) -> Result<(), Box<PgError>> {
        bytes.chunks(CHUNK_BYTES).try_for_each(|piece| self.load_piece(piece))
    }

    fn load_piece(&mut self, bytes: &[u8]) -> Result<(), Box<PgError>> {
        let Loader { source, target, row_bytes, reservation } = self;
        *row_bytes += bytes.len();
        // A vector that grows by doubling can have twice the capacity that it needs.
        reservation.follow(2 * *row_bytes).map_err(|exhausted| refused(&exhausted))?;
        let rows = target.rows;
        match source {
            Source::Text(reader) => reader.feed(bytes, &mut |row| target.take_text(row))?,
            Source::Binary(reader) => reader.feed(bytes, &mut |row, fields| target.take_binary(row, fields))?,
        }
        if target.rows > rows {
            *row_bytes = bytes.len();
        }
        target.flush()
    }

    /// Ends the input, and writes all rows.
    pub(super) fn finish(&mut self) -> Result<(), Box<PgError>> {
        let Loader { source, target, .. } = self;
        match source {
            Source::Text(reader) => reader.finish(&mut |row| target.take_text(row))?,
            Source::Binary(reader) => reader.finish()?,
        }
        target.flush()?;
        if let Some(writer) = target.writer.take() {
            target.written = writer.finish()?;
        }
        Ok(())
    }
}

impl Target {
    fn take_text(&mut self, row: Row<'_>) -> Result<(), Box<PgError>> {
        if row.len() != self.columns.len() {
            return Err(self.wrong_count(row.len(), row.line));
        }
        self.reserve_values(row.fields().map(|field| field.map(str::as_bytes)), Format::Text)?;
        for (at, (field, pg_type)) in row.fields().zip(&self.types).enumerate() {
            let value = match field {
                None => Ok(Value::Null),
                Some(field) => types::read_text(field, *pg_type, &self.zone).map(Value::into_owned),
            };
            match value {
                Ok(value) => self.values.push(value),
                Err(error) => return Err(error.within(self.place(row.line, at))),
            }
        }
        self.end_row(row.line)
    }

    fn take_binary(&mut self, row: u64, fields: &[Option<&[u8]>]) -> Result<(), Box<PgError>> {
        if fields.len() != self.columns.len() {
            let message = format!("row field count is {}, expected {}", fields.len(), self.columns.len());
            return Err(PgError::new(sqlstate::BAD_COPY_FORMAT, message).within(format!("COPY, line {row}")));
        }
        self.reserve_values(fields.iter().copied(), Format::Binary)?;
        for (at, (field, pg_type)) in fields.iter().zip(&self.types).enumerate() {
            let value = match field {
                None => Ok(Value::Null),
                Some(field) => types::read_binary(field, *pg_type).map(Value::into_owned),
            };
            match value {
                Ok(value) => self.values.push(value),
                Err(error) => return Err(error.within(self.place(row, at))),
            }
        }
        self.end_row(row)
    }

    /// Reserves memory for the values of a row, before they are decoded.
    fn reserve_values<'f>(
        &mut self,
        fields: impl Iterator<Item = Option<&'f [u8]>>,
        format: Format,
    ) -> Result<(), Box<PgError>> {
        let bytes = |(field, pg_type): (Option<&[u8]>, &PgType)| {
            size_of::<Value<'_>>() + field.map_or(0, |field| types::value_bytes(field, *pg_type, format))
        };
        self.value_bytes += fields.zip(&self.types).map(bytes).sum::<usize>();
        if self.value_bytes > self.reservation.bytes() {
            // More than the row needs, so that not every row makes a reservation.
            self.reservation
                .follow(self.value_bytes.next_multiple_of(RESERVATION_BYTES))
                .map_err(|exhausted| refused(&exhausted))?;
        }
        Ok(())
    }

    fn place(&self, line: u64, column: usize) -> String {
        let name = self.columns.get(column).map_or("", |column| column.name.as_str());
        format!("COPY, line {line}, column {name}")
    }

    #[cold]
    fn wrong_count(&self, count: usize, line: u64) -> Box<PgError> {
        let error = match self.columns.get(count) {
            Some(missing) => {
                PgError::new(sqlstate::BAD_COPY_FORMAT, format!("missing data for column \"{}\"", missing.name))
            }
            None => PgError::new(sqlstate::BAD_COPY_FORMAT, "extra data after last expected column"),
        };
        error.within(format!("COPY, line {line}"))
    }

    fn end_row(&mut self, line: u64) -> Result<(), Box<PgError>> {
        self.rows += 1;
        self.lines.push(line);
        if self.lines.len() >= BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    /// Passes the collected rows to the writer.
    fn flush(&mut self) -> Result<(), Box<PgError>> {
        let Some(writer) = self.writer.as_mut().filter(|_| !self.lines.is_empty()) else { return Ok(()) };
        let mut failed = None;
        let mut lines = self.lines.iter();
        writer.write(&self.values, &mut |result| {
            let line = lines.next().copied().unwrap_or_default();
            if let Err(error) = result
                && failed.is_none()
            {
                failed = Some(Box::<PgError>::from(error).within(format!("COPY, line {line}")));
            }
        });
        self.values.clear();
        self.lines.clear();
        self.value_bytes = 0;
        if self.values.capacity() > VALUES_KEPT_MAX {
            self.values = Vec::new();
        }
        self.reservation.shrink(RESERVATION_BYTES);
        failed.map_or(Ok(()), Err)
    }
}
