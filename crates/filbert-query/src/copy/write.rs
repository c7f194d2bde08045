//! Writes a query's rows to a file.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use datafusion::physical_plan::execute_stream;
use datafusion::sql::sqlparser::ast::Query;
use filbert_data::Value;
use filbert_data::rows::{RowFormat, end_row, put_field};
use filbert_dialect::FileFormat;
use filbert_functions::error::{data_error, of_datafusion};
use filbert_functions::{push_json, push_json_text};
use filbert_grid::query::{CopyFormat, CopyKind, SqlError};
use futures::StreamExt;
use parquet::arrow::ArrowWriter;

use super::folder::Located;
use super::of_file;
use crate::client_context::ClientContext;
use crate::dml::Rows;
use crate::parts::Parts;
use crate::plan::planner::{bind, plan_query, with_parameters};

/// The file extension of a format.
pub(super) fn extension(format: &FileFormat) -> &'static str {
    match format {
        FileFormat::Rows(format) if format.kind == CopyKind::Csv => "csv",
        FileFormat::Rows(_) => "txt",
        FileFormat::Json => "json",
        FileFormat::Parquet => "parquet",
    }
}

/// Writes a query's rows to a file, which appears once it is complete; returns the number of rows.
pub(super) async fn write(
    engine: &Parts,
    client: &ClientContext,
    query: Query,
    parameters: &[Value<'_>],
    located: Located,
    format: &FileFormat,
) -> Result<u64, SqlError> {
    let state = engine.sessions.begin_for(client, None);
    let planned = plan_query(&state, &engine.tables, client, query).await?;
    let values = bind(&planned.parameters, parameters)?;
    let plan = with_parameters(planned.plan, values)?;
    let physical = state.create_physical_plan(&plan).await.map_err(|error| of_datafusion(&error))?;
    let mut stream = execute_stream(physical, state.task_ctx()).map_err(|error| of_datafusion(&error))?;
    let names: Vec<String> = planned.columns.iter().map(|column| column.name.clone()).collect();
    let (part, file) = located.part()?;
    let mut out = Out::new(file, format, &names, &stream.schema(), part.path())?;
    let mut count = 0;
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(|error| of_datafusion(&error))?;
        count += u64::try_from(batch.num_rows()).unwrap_or(0);
        out.write(&batch, part.path())?;
    }
    out.end(part.path())?;
    part.publish()?;
    Ok(count)
}

/// A file that is being written.
enum Out {
    Rows { file: BufWriter<File>, format: RowFormat },
    Json { file: BufWriter<File>, names: Vec<String> },
    Parquet(Box<ArrowWriter<File>>, SchemaRef),
}

impl Out {
    fn new(
        file: File,
        format: &FileFormat,
        names: &[String],
        schema: &SchemaRef,
        path: &Path,
    ) -> Result<Out, SqlError> {
        match format {
            FileFormat::Rows(format) => {
                let mut out = Out::Rows { file: BufWriter::new(file), format: row_format(format) };
                if format.header {
                    out.row(names.iter().map(|name| Value::text(name)), path)?;
                }
                Ok(out)
            }
            FileFormat::Json => Ok(Out::Json { file: BufWriter::new(file), names: names.to_vec() }),
            FileFormat::Parquet => {
                let fields =
                    schema.fields().iter().zip(names).map(|(field, name)| field.as_ref().clone().with_name(name));
                let schema: SchemaRef = Schema::new(fields.collect::<Vec<_>>()).into();
                ArrowWriter::try_new(file, schema.clone(), None)
                    .map(|writer| Out::Parquet(Box::new(writer), schema))
                    .map_err(|error| data_error(format!("the rows cannot be written as Parquet: {error}")))
            }
        }
    }

    fn write(&mut self, batch: &RecordBatch, path: &Path) -> Result<(), SqlError> {
        if let Out::Parquet(writer, schema) = self {
            // The names may differ from those of the plan.
            let batch = RecordBatch::try_new(schema.clone(), batch.columns().to_vec());
            let written = batch.map_err(|error| error.to_string());
            let written = written.and_then(|batch| writer.write(&batch).map_err(|error| error.to_string()));
            return written.map_err(|error| data_error(format!("the rows cannot be written as Parquet: {error}")));
        }
        let rows = Rows::of(batch);
        for at in 0..batch.num_rows() {
            let values = (0..batch.num_columns()).map(|column| rows.get(column, at));
            let values: Vec<Value<'_>> = values.collect::<Result<_, _>>()?;
            self.row(values.into_iter(), path)?;
        }
        Ok(())
    }

    fn row<'v>(&mut self, values: impl Iterator<Item = Value<'v>>, path: &Path) -> Result<(), SqlError> {
        let mut line = Vec::new();
        let file = match self {
            Out::Rows { file, format } => {
                for (at, value) in values.enumerate() {
                    let text = text_of(&value);
                    put_field(text.as_deref().map(str::as_bytes), at == 0, format, &mut line);
                }
                end_row(&mut line);
                file
            }
            Out::Json { file, names } => {
                let mut text = String::from("{");
                for (at, (name, value)) in names.iter().zip(values).enumerate() {
                    if at > 0 {
                        text.push(',');
                    }
                    push_json_text(name, &mut text);
                    text.push(':');
                    push_json(&value, &mut text);
                }
                text.push_str("}\n");
                line.extend_from_slice(text.as_bytes());
                file
            }
            Out::Parquet(..) => return Ok(()),
        };
        file.write_all(&line).map_err(|error| of_file(path, "written", &error))
    }

    fn end(self, path: &Path) -> Result<(), SqlError> {
        match self {
            Out::Rows { mut file, .. } | Out::Json { mut file, .. } => {
                file.flush().map_err(|error| of_file(path, "written", &error))
            }
            Out::Parquet(writer, _) => {
                let closed = writer.close();
                closed
                    .map(|_| ())
                    .map_err(|error| data_error(format!("the rows cannot be written as Parquet: {error}")))
            }
        }
    }
}

fn row_format(format: &CopyFormat) -> RowFormat {
    let byte = |character: char| u8::try_from(character).unwrap_or(b'"');
    RowFormat {
        is_csv: format.kind == CopyKind::Csv,
        delimiter: byte(format.delimiter),
        null: format.null.clone(),
        header: format.header,
        quote: byte(format.quote),
        escape: byte(format.escape),
    }
}

/// A value as text; `None` = null.
fn text_of(value: &Value<'_>) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Boolean(value) => Some(if *value { "t" } else { "f" }.to_owned()),
        Value::Array(_) => {
            let mut text = String::new();
            push_json(value, &mut text);
            Some(text)
        }
        other => Some(other.to_string()),
    }
}
