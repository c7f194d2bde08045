//! `COPY` of files under the one directory that the settings name: rows come from them and go to them as text, CSV, JSON or Parquet.
//!
//! ```text
//!  COPY t FROM 'f':   file ─ read ─► values ─► the writer of many rows (row_writer)
//!  COPY .. TO 'f':    query ─► batches ─ write ─► f.part ─ at the end ─► f
//! ```

mod read;
mod write;

use std::path::{Component, Path, PathBuf};

use filbert_data::Value;
use filbert_grid::query::{Dialect, SqlError, SqlErrorCode, WriteMode};

use crate::asker::Asker;
use crate::cursor::Limits;
use crate::dialect::{Copy, Place};
use crate::engine::Inner;
use crate::error::parsing_error;
use crate::row_writer::copy_writer;

/// Files that one statement reads.
const FILES_MAX: usize = 10_000;

/// Runs a COPY from or to a file; returns the number of rows.
pub(crate) async fn run(
    engine: &Inner,
    asker: &Asker,
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
    let directory = directory.canonicalize().map_err(|error| of_file(directory, "found", &error))?;
    match (&copy.query, &copy.table) {
        (Some(query), _) => {
            let mut path = within(&directory, path)?;
            if path.is_dir() {
                path.push(format!("rows.{}", write::extension(&copy.format)));
            }
            write::write(engine, asker, (**query).clone(), parameters, &path, &copy.format).await
        }
        (None, Some(table)) => {
            // CrateDB takes the rows that can be taken, the others all or none.
            let mode = if asker.dialect() == Dialect::Crate { WriteMode::Each } else { WriteMode::All };
            let files = files(&directory, path)?;
            let writer = copy_writer(engine, asker, table, &copy.columns, mode, Some(limits.clone()))?;
            let (format, by_name) = (copy.format.clone(), copy.columns.is_empty());
            let reading = tokio::task::spawn_blocking(move || read::read(writer, &files, &format, mode, by_name));
            reading.await.map_err(|_| SqlError::new(SqlErrorCode::Generic, "reading the files ended early"))?
        }
        (None, None) => Err(parsing_error("COPY names neither a table nor a query")),
    }
}

fn refused(text: impl Into<String>) -> SqlError {
    SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("42501")
}

/// A path within the directory; relative ones are of it.
fn within(directory: &Path, path: &str) -> Result<PathBuf, SqlError> {
    let given = Path::new(path);
    let outside = || refused(format!("{path:?} is not within the directory for COPY, {}", directory.display()));
    if given.components().any(|part| part == Component::ParentDir) {
        return Err(outside());
    }
    let whole = if given.is_absolute() { given.to_path_buf() } else { directory.join(given) };
    // A link within the directory may lead out of it.
    let existing = whole.ancestors().find_map(|ancestor| ancestor.canonicalize().ok()).ok_or_else(outside)?;
    if existing.starts_with(directory) { Ok(whole) } else { Err(outside()) }
}

/// The files of a path, whose last part may have `*`.
fn files(directory: &Path, path: &str) -> Result<Vec<PathBuf>, SqlError> {
    let whole = within(directory, path)?;
    let pattern = whole.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (Some((before, after)), Some(parent)) = (pattern.split_once('*'), whole.parent()) else {
        return Ok(vec![whole]);
    };
    let entries = std::fs::read_dir(parent).map_err(|error| of_file(parent, "read", &error))?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| of_file(parent, "read", &error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(before) && name.ends_with(after) && name.len() >= before.len() + after.len() {
            found.push(within(directory, &entry.path().to_string_lossy())?);
        }
        if found.len() > FILES_MAX {
            return Err(refused(format!("{path:?} stands for more than {FILES_MAX} files")));
        }
    }
    found.sort();
    Ok(found)
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
