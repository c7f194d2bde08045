//! Reads files into a table.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use filbert_data::rows::{Row, RowError, RowFormat, RowReader};
use filbert_data::{Blob, FieldPath, FieldReader, Formats, Path as Field, SchemaSource, Side, ToBlob, Value, compact};
use filbert_dialect::FileFormat;
use filbert_functions::error::data_error;
use filbert_functions::{Kind, Node};
use filbert_grid::query::{ColumnMeta, CopyFormat, CopyKind, RowWriter, SqlError, WriteMode};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::folder::Located;
use super::of_file;
use crate::dml::Rows;
use crate::row_writer::Writer;

/// The number of bytes of one read.
const CHUNK_BYTES: usize = 256 << 10;
/// The maximum length of one row, in bytes.
const ROW_BYTES_MAX: usize = 64 << 20;

/// The relation between the columns of a file and the columns of the statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Whether the header of a file determines the columns. Otherwise their order does.
    pub(super) by_name: bool,
    /// Whether the statement takes all columns of the table, so that a file has no others.
    pub(super) all: bool,
}

/// The import of rows from files into a table.
struct Load {
    writer: Box<Writer>,
    mode: WriteMode,
    shape: Shape,
    written: u64,
}

impl Load {
    /// Writes a row. A row that cannot be written is an error if all rows must be written,
    /// otherwise it is skipped.
    fn write(&mut self, values: &[Value<'_>]) -> Result<(), SqlError> {
        let mut failure = None;
        let written = &mut self.written;
        self.writer.write(values, &mut |outcome| match outcome {
            Ok(count) => *written += count,
            Err(error) => failure = failure.take().or(Some(error)),
        });
        match failure {
            Some(error) if self.mode == WriteMode::All => Err(error),
            _ => Ok(()),
        }
    }

    /// The positions of the columns among the names of a file or of a row. Columns that are not
    /// among them get their defaults.
    ///
    /// # Errors
    /// A name is no column of the table.
    fn places(&mut self, found: &[&str]) -> Result<Vec<Option<usize>>, SqlError> {
        let columns = self.writer.columns();
        let is_known = |name: &&&str| columns.iter().any(|column| column.name == **name);
        if let Some(unknown) = found.iter().find(|name| !is_known(name)).filter(|_| self.shape.all) {
            let text =
                format!("{unknown:?} is no column of the table: COPY table (columns) reads some columns of a file");
            return Err(data_error(text).with_sqlstate("42703"));
        }
        let place = |column: &ColumnMeta| found.iter().position(|name| *name == column.name);
        let places: Vec<Option<usize>> = columns.iter().map(place).collect();
        let given: Vec<bool> = places.iter().map(Option::is_some).collect();
        self.writer.take_only(&given);
        Ok(places)
    }
}

/// Reads files into a table; returns the number of rows.
pub(super) fn read(
    writer: Box<Writer>,
    files: &[Located],
    format: &FileFormat,
    mode: WriteMode,
    shape: Shape,
) -> Result<u64, SqlError> {
    let mut load = Load { writer, mode, shape, written: 0 };
    for located in files {
        let (path, file) = (located.path(), located.open()?);
        match format {
            FileFormat::Rows(format) => read_rows(&mut load, path, file, format)?,
            FileFormat::Json => read_json(&mut load, path, file)?,
            FileFormat::Parquet => read_parquet(&mut load, path, file)?,
        }
    }
    load.writer.finish()
}

/// The error of a row of a file.
enum Wrong {
    Row(RowError),
    Sql(SqlError),
}

impl From<RowError> for Wrong {
    fn from(error: RowError) -> Self {
        Wrong::Row(error)
    }
}

fn read_rows(load: &mut Load, path: &Path, mut file: File, format: &CopyFormat) -> Result<(), SqlError> {
    let byte = |character: char| u8::try_from(character).unwrap_or(b'"');
    let rows = RowFormat {
        is_csv: format.kind == CopyKind::Csv,
        delimiter: byte(format.delimiter),
        null: format.null.clone(),
        header: false,
        quote: byte(format.quote),
        escape: byte(format.escape),
    };
    // The position of each column in a row of the file.
    let mut places: Vec<Option<usize>> = (0..load.writer.columns().len()).map(Some).collect();
    let mut header_left = format.header;
    let by_name = format.header && load.shape.by_name;
    let mut take = |row: Row<'_>| -> Result<(), Wrong> {
        if std::mem::take(&mut header_left) {
            if by_name {
                let found: Vec<&str> = row.fields().map(Option::unwrap_or_default).collect();
                places = load.places(&found).map_err(|error| Wrong::Sql(at_line(error, path, row.line)))?;
            }
            return Ok(());
        }
        let is_short = places.iter().flatten().any(|place| *place >= row.len());
        if is_short || !by_name && row.len() != places.len() {
            let text =
                format!("{}, line {}: {} values, expected {}", path.display(), row.line, row.len(), places.len());
            return Err(Wrong::Sql(data_error(text).with_sqlstate("22P04")));
        }
        let value = |place: &Option<usize>| place.and_then(|place| row.field(place)).map_or(Value::Null, Value::text);
        let values: Vec<Value<'_>> = places.iter().map(value).collect();
        load.write(&values).map_err(|error| Wrong::Sql(at_line(error, path, row.line)))
    };
    let mut reader = RowReader::new(rows, ROW_BYTES_MAX);
    let mut chunk = vec![0; CHUNK_BYTES];
    let done = loop {
        let read = file.read(&mut chunk).map_err(|error| of_file(path, "read", &error))?;
        if read == 0 {
            break reader.finish(&mut take);
        }
        if let Err(error) = reader.feed(chunk.get(..read).unwrap_or_default(), &mut take) {
            break Err(error);
        }
    };
    done.map_err(|wrong| match wrong {
        Wrong::Sql(error) => error,
        Wrong::Row(error) => data_error(format!("{}: {error}", path.display())).with_sqlstate("22P04"),
    })
}

fn at_line(error: SqlError, path: &Path, line: u64) -> SqlError {
    SqlError { message: format!("{}, line {line}: {}", path.display(), error.message), ..error }
}

/// JSON has no Compact schemas.
struct NoSchemas;

impl SchemaSource for NoSchemas {
    fn schema(&self, _: compact::SchemaId) -> Option<Arc<compact::Schema>> {
        None
    }
}

/// One JSON object in each line, with members as columns.
fn read_json(load: &mut Load, path: &Path, file: File) -> Result<(), SqlError> {
    let columns = load.writer.columns().clone();
    let field = |name: &String| FieldPath { side: Side::Value, path: Field::field(name.as_str()) };
    let fields = columns.iter().map(|column| field(&column.name)).collect();
    let formats = Formats { schemas: Arc::new(NoSchemas), key_layout: None, value_layout: None };
    let reader = FieldReader::new(fields, formats);
    let mut lines = BufReader::new(file);
    let (mut line, mut number) = (String::new(), 0);
    loop {
        line.clear();
        number += 1;
        let limit = u64::try_from(ROW_BYTES_MAX).unwrap_or(u64::MAX);
        let read = (&mut lines).take(limit).read_line(&mut line).map_err(|error| of_file(path, "read", &error))?;
        if read == 0 {
            return Ok(());
        }
        let text = line.trim();
        if text.is_empty() {
            continue;
        }
        let wrong = |what: String| at_line(data_error(what).with_sqlstate("22P02"), path, number);
        let object = Node::parse(text).map_err(|_| wrong("the line is no JSON document".to_owned()))?;
        if object.kind() != Kind::Object {
            return Err(wrong("the line is no JSON object".to_owned()));
        }
        let names: Vec<Cow<'_, str>> = object.names().collect();
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        load.places(&names).map_err(|error| at_line(error, path, number))?;
        let blob: Blob = Value::Json(text.into()).to_blob().map_err(|error| wrong(error.to_string()))?;
        let mut values = vec![Value::Null; columns.len()];
        reader
            .read(&[], &blob, &mut |at, value| {
                if let Some(place) = values.get_mut(at) {
                    *place = value;
                }
            })
            .map_err(|error| wrong(error.to_string()))?;
        load.write(&values).map_err(|error| at_line(error, path, number))?;
    }
}

fn read_parquet(load: &mut Load, path: &Path, file: File) -> Result<(), SqlError> {
    let wrong = |error: &dyn std::fmt::Display| {
        data_error(format!("{} cannot be read as Parquet: {error}", path.display())).with_sqlstate("22P04")
    };
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(|error| wrong(&error))?;
    for batch in builder.build().map_err(|error| wrong(&error))? {
        let batch = batch.map_err(|error| wrong(&error))?;
        let schema = batch.schema();
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let places = load.places(&names)?;
        let rows = Rows::of(&batch);
        for row in 0..batch.num_rows() {
            let values = places.iter().map(|place| match place {
                Some(place) => rows.get(*place, row),
                None => Ok(Value::Null),
            });
            load.write(&values.collect::<Result<Vec<_>, _>>()?)?;
        }
    }
    Ok(())
}
