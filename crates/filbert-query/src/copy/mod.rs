//! `COPY` with files in the directory from the settings: imports and exports rows as text, CSV,
//! JSON or Parquet.
//!
//! ```text
//!  COPY t FROM 'f':   file ─ read ─► values ─► the writer of many rows (row_writer)
//!  COPY .. TO 'f':    query ─► batches ─ write ─► a part ─ at the end ─► f
//! ```

mod folder;
mod read;
mod write;

use std::path::Path;

use datafusion::sql::sqlparser::ast::{Expr, Ident, SelectItem, SetExpr};
use filbert_data::Value;
use filbert_dialect::{Copy, Place};
use filbert_functions::ending::Limits;
use filbert_functions::error::parsing_error;
use filbert_grid::query::{Dialect, SqlError, SqlErrorCode, WriteMode};

use crate::client_context::ClientContext;
use crate::parts::Parts;
use crate::row_writer::copy_writer;
use crate::tables::Tables;
use folder::Folder;
use read::Shape;

/// Runs a COPY from or to a file; returns the number of rows.
pub(crate) async fn run(
    engine: &Parts,
    client: &ClientContext,
    limits: &Limits,
    copy: &Copy,
    parameters: &[Value<'_>],
) -> Result<u64, SqlError> {
    let Place::File(path) = &copy.place else {
        let text = "COPY FROM STDIN takes rows from the client: they come by the protocol, not by a statement";
        return Err(parsing_error(text).with_sqlstate("0A000"));
    };
    let Some(directory) = &engine.config.copy_directory else {
        let text = "COPY of files is refused: no directory is set for them";
        return Err(refused(text));
    };
    let folder = Folder::open(directory)?;
    match (&copy.query, &copy.table) {
        (Some(query), _) => {
            let located = folder.locate(path)?.or_in_it(&format!("rows.{}", write::extension(&copy.format)))?;
            write::write(engine, client, (**query).clone(), parameters, located, &copy.format).await
        }
        (None, Some(table)) => {
            // CrateDB imports the valid rows; the other dialects import all rows or none.
            let mode = if client.dialect() == Dialect::Crate { WriteMode::Each } else { WriteMode::All };
            let files = folder.files(path)?;
            let writer = copy_writer(engine, client, table, &copy.columns, mode, Some(limits.clone()))?;
            let format = copy.format.clone();
            let shape = Shape {
                // PostgreSQL skips the header of a file.
                by_name: client.dialect() != Dialect::Postgres,
                all: copy.columns.is_empty(),
            };
            let reading = tokio::task::spawn_blocking(move || read::read(writer, &files, &format, mode, shape));
            reading.await.map_err(|_| SqlError::new(SqlErrorCode::Generic, "reading the files ended early"))?
        }
        (None, None) => Err(parsing_error("COPY names neither a table nor a query")),
    }
}

/// An export of a table in PostgreSQL's dialect has no generated columns: `COPY FROM` could not
/// read them.
pub(crate) fn leave_out_generated(tables: &Tables, copy: &mut Copy) -> Result<(), SqlError> {
    let (Some(table), Some(query)) = (&copy.exported, &mut copy.query) else { return Ok(()) };
    let Some(mapping) = tables.find(table)?.map(|found| found.mapping.clone()) else { return Ok(()) };
    let Some(facts) = mapping.table.as_ref().filter(|facts| facts.columns.iter().any(|it| it.generated.is_some()))
    else {
        return Ok(());
    };
    let SetExpr::Select(select) = query.body.as_mut() else { return Ok(()) };
    let copied = mapping.columns.iter().zip(&facts.columns);
    let copied = copied.filter(|(column, facts)| !column.hidden && facts.generated.is_none());
    let item = |name: &str| SelectItem::UnnamedExpr(Expr::Identifier(Ident::with_quote('"', name)));
    select.projection = copied.map(|(column, _)| item(&column.name)).collect();
    Ok(())
}

fn refused(text: impl Into<String>) -> SqlError {
    SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("42501")
}

/// The error of a file that cannot be used.
fn of_file(path: &Path, done: &str, error: &std::io::Error) -> SqlError {
    let sqlstate = match error.kind() {
        std::io::ErrorKind::NotFound => "58P01",
        std::io::ErrorKind::PermissionDenied => "42501",
        _ => "58030",
    };
    let text = format!("{:?} cannot be {done}: {error}", path.display().to_string());
    SqlError::new(SqlErrorCode::Generic, text).with_sqlstate(sqlstate)
}
