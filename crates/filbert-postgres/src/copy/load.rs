//! Bytes of a COPY as rows of values, and these into a [`RowWriter`].

use std::sync::Arc;

use filbert_data::dates::Zone;
use filbert_data::{
    Value,
    rows::{Row, RowError, RowReader},
};
use filbert_grid::{
    Reservation,
    query::{ColumnMeta, CopyFormat, CopyKind, RowWriter},
};

use super::{binary::BinaryReader, row_format};
use crate::{
    error::{PgError, sqlstate},
    types::{self, PgType},
};

/// Rows that are written at a time.
const BATCH_ROWS: usize = 256;

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
        room: Reservation,
    ) -> Result<Loader, Box<PgError>> {
        let columns = writer.columns().clone();
        let source = match format.kind {
            CopyKind::Binary => Source::Binary(BinaryReader::new(row_bytes_max)),
            _ => Source::Text(RowReader::new(row_format(format)?, row_bytes_max)),
        };
        let types = columns.iter().map(|column| PgType::of(&column.field_type)).collect();
        let (values, lines) = (Vec::new(), Vec::new());
        let target = Target { writer: Some(writer), columns, types, values, lines, rows: 0, written: 0, zone };
        Ok(Loader { source, row_bytes: 0, room, target })
    }

    pub(super) fn columns(&self) -> usize {
        self.target.columns.len()
    }

    /// Rows that were written, when all are.
    pub(super) fn written(&self) -> u64 {
        self.target.written
    }

    /// Takes bytes.
    pub(super) fn load(&mut self, bytes: &[u8]) -> Result<(), Box<PgError>> {
        let Loader { source, target, row_bytes, room } = self;
        *row_bytes += bytes.len();
        // A list that grows by doubling takes as much again.
        room.follow(2 * *row_bytes)
            .map_err(|exhausted| PgError::new(sqlstate::OUT_OF_MEMORY, exhausted.to_string()))?;
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
        failed.map_or(Ok(()), Err)
    }
}
