//! Bytes of a COPY as rows of values, and these into a [`RowWriter`].

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

use super::{CHUNK_BYTES, binary::BinaryReader, row_format};
use crate::{
    error::{PgError, sqlstate},
    types::{self, PgType},
    wire::Format,
};

/// Rows that are written at a time.
const BATCH_ROWS: usize = 256;

/// Room that is taken at a time: that of most batches of rows.
const ROOM_BYTES: usize = 64 << 10;

/// Places for values that are kept from one batch to the next.
const VALUES_KEPT_MAX: usize = ROOM_BYTES / size_of::<Value<'static>>();

/// What a client is told whose rows have no room.
pub(super) fn refused(exhausted: &Exhausted) -> Box<PgError> {
    PgError::new(sqlstate::OUT_OF_MEMORY, exhausted.to_string())
}

/// Takes the bytes of a COPY.
pub(super) struct Loader {
    source: Source,
    /// Bytes since the last row that is whole, and their room.
    row_bytes: usize,
    room: Reservation,
    target: Target,
}

enum Source {
    Text(RowReader),
    Binary(BinaryReader),
}

/// Where rows go.
struct Target {
    /// `None` when all is written.
    writer: Option<Box<dyn RowWriter>>,
    columns: Arc<[ColumnMeta]>,
    types: Vec<PgType>,
    /// Values of rows that are still to be written, and the line of each row.
    values: Vec<Value<'static>>,
    lines: Vec<u64>,
    /// Bytes that the values take at most, and their room.
    value_bytes: usize,
    room: Reservation,
    /// Rows that were read, and those that were written.
    rows: u64,
    written: u64,
    /// The time zone of timestamps without one.
    zone: Zone,
}

impl From<RowError> for Box<PgError> {
    fn from(error: RowError) -> Self {
        let sqlstate = match error {
            RowError::NotUtf8 { .. } => sqlstate::NOT_IN_REPERTOIRE,
            RowError::TooLong { .. } => sqlstate::LIMIT_EXCEEDED,
            RowError::Unterminated { .. } => sqlstate::BAD_COPY_FORMAT,
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
        [room, values_room]: [Reservation; 2],
    ) -> Result<Loader, Box<PgError>> {
        let columns = writer.columns().clone();
        let source = match format.kind {
            CopyKind::Binary => Source::Binary(BinaryReader::new(row_bytes_max)),
            _ => Source::Text(RowReader::new(row_format(format)?, row_bytes_max)),
        };
        let types = columns.iter().map(|column| PgType::of(&column.field_type)).collect();
        let (values, lines, value_bytes, rows, written) = Default::default();
        let target = Target {
            writer: Some(writer),
            columns,
            types,
            values,
            lines,
            value_bytes,
            room: values_room,
            rows,
            written,
            zone,
        };
        Ok(Loader { source, row_bytes: 0, room, target })
    }

    pub(super) fn columns(&self) -> usize {
        self.target.columns.len()
    }

    /// Rows that were written, when all are.
    pub(super) fn written(&self) -> u64 {
        self.target.written
    }

    /// Takes bytes, so many at a time that what comes of them does not wait for all.
    pub(super) fn load(&mut self, bytes: &[u8]) -> Result<(), Box<PgError>> {
        bytes.chunks(CHUNK_BYTES).try_for_each(|piece| self.load_piece(piece))
    }

    fn load_piece(&mut self, bytes: &[u8]) -> Result<(), Box<PgError>> {
        let Loader { source, target, row_bytes, room } = self;
        *row_bytes += bytes.len();
        // A list that grows by doubling takes as much again.
        room.follow(2 * *row_bytes).map_err(|exhausted| refused(&exhausted))?;
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

    /// Ends the bytes, and writes all rows.
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
        self.make_room(row.fields().map(|field| field.map(str::as_bytes)), Format::Text)?;
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
        self.make_room(fields.iter().copied(), Format::Binary)?;
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

    /// Takes room for the values of a row, before they are read.
    fn make_room<'f>(
        &mut self,
        fields: impl Iterator<Item = Option<&'f [u8]>>,
        format: Format,
    ) -> Result<(), Box<PgError>> {
        let bytes = |(field, pg_type): (Option<&[u8]>, &PgType)| {
            size_of::<Value<'_>>() + field.map_or(0, |field| types::value_bytes(field, *pg_type, format))
        };
        self.value_bytes += fields.zip(&self.types).map(bytes).sum::<usize>();
        if self.value_bytes > self.room.bytes() {
            // More than the row needs, so that it is not asked for again with each one.
            self.room.follow(self.value_bytes.next_multiple_of(ROOM_BYTES)).map_err(|exhausted| refused(&exhausted))?;
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

    /// Gives the writer the rows at hand.
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
        self.room.shrink(ROOM_BYTES);
        failed.map_or(Ok(()), Err)
    }
}
