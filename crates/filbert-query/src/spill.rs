//! Files for the rows of sorts and groups that do not fit into memory.
//!
//! The files are temporary files of DataFusion. This module limits the size of all of them
//! together, and ends the writing of a statement that was cancelled: an operator writes all rows
//! that it holds in one step.

use std::io::{self, Write};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use datafusion::common::{DataFusionError, Result};
use datafusion::execution::disk_manager::{DiskManager, DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::{SpillFile, SpillWriter, TempFileFactory};
use filbert_functions::ending;
use filbert_functions::error::carried;
use filbert_grid::GridError;
use filbert_grid::query::{SqlError, SqlErrorCode};
use futures::{Stream, TryStreamExt};

/// Creates the spill files of a member.
pub(crate) struct SpillFiles {
    files: Arc<DiskManager>,
    bytes: Arc<SpillBytes>,
}

impl SpillFiles {
    /// Spill files in this directory, or in the directory of the system for temporary files. All
    /// of them together take up to `bytes_max` bytes.
    ///
    /// # Errors
    /// [`GridError::InvalidConfiguration`]: the directory cannot be created or written.
    pub(crate) fn new(directory: Option<&Path>, bytes_max: u64) -> std::result::Result<SpillFiles, GridError> {
        let mode = match directory {
            Some(directory) => DiskManagerMode::Directories(vec![directory.to_owned()]),
            None => DiskManagerMode::OsTmpDirectory,
        };
        // The bytes are counted here: the library's error for a full directory has no SQLSTATE.
        let files = DiskManagerBuilder::default().with_mode(mode).with_max_temp_directory_size(u64::MAX).build();
        let files = files.map_err(|error| {
            let directory = directory.unwrap_or(Path::new("")).display();
            GridError::InvalidConfiguration(format!(
                "no files can be created in spill_directory '{directory}', whose parent must exist: {}",
                error.strip_backtrace()
            ))
        })?;
        Ok(SpillFiles {
            files: Arc::new(files),
            bytes: Arc::new(SpillBytes { used: AtomicU64::new(0), max: bytes_max }),
        })
    }
}

impl TempFileFactory for SpillFiles {
    fn create_temp_file(&self, description: &str) -> Result<Arc<dyn SpillFile>> {
        ending::check_batch()?;
        let file = self.files.create_tmp_file(description).map_err(told)?;
        let bytes = Counted { all: Arc::clone(&self.bytes), own: AtomicU64::new(0) };
        Ok(Arc::new(CountedFile { file, bytes: Arc::new(bytes) }))
    }
}

/// The bytes of all spill files.
struct SpillBytes {
    used: AtomicU64,
    max: u64,
}

/// The bytes of one file. They are given back when it is deleted.
struct Counted {
    all: Arc<SpillBytes>,
    own: AtomicU64,
}

impl Counted {
    fn add(&self, bytes: u64) -> std::result::Result<(), SqlError> {
        let max = self.all.max;
        let taken = self.all.used.fetch_update(Ordering::AcqRel, Ordering::Acquire, |used| {
            used.checked_add(bytes).filter(|used| *used <= max)
        });
        let Ok(_) = taken else {
            let text = format!(
                "not enough room for the rows that queries keep on disk: all of them may take {max} bytes; see \
                 queries_spill_bytes_max"
            );
            return Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("53400"));
        };
        self.own.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.all.used.fetch_sub(*self.own.get_mut(), Ordering::AcqRel);
    }
}

struct CountedFile {
    file: Arc<dyn SpillFile>,
    bytes: Arc<Counted>,
}

impl SpillFile for CountedFile {
    fn path(&self) -> Option<&Path> {
        self.file.path()
    }

    fn size(&self) -> Option<u64> {
        self.file.size()
    }

    fn read_stream(&self) -> Result<Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>> {
        Ok(Box::pin(self.file.read_stream()?.map_err(told)))
    }

    fn open_writer(&self) -> Result<Box<dyn SpillWriter>> {
        let writer = self.file.open_writer().map_err(told)?;
        Ok(Box::new(CountedWriter { writer, bytes: Arc::clone(&self.bytes) }))
    }
}

struct CountedWriter {
    writer: Box<dyn SpillWriter>,
    bytes: Arc<Counted>,
}

impl Write for CountedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        ending::check_batch().map_err(io::Error::other)?;
        self.bytes.add(bytes.len() as u64).map_err(|error| io::Error::other(carried(error)))?;
        self.writer.write_all(bytes).map_err(|error| io::Error::other(carried(failed(&error))))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl SpillWriter for CountedWriter {
    fn finish(&mut self) -> Result<()> {
        self.writer.finish()
    }
}

/// The same error with a text for clients, if it is one of the system.
fn told(error: DataFusionError) -> DataFusionError {
    match error {
        DataFusionError::IoError(error) => carried(failed(&error)),
        error => error,
    }
}

/// The error of a file that cannot be written or read. Its text names no path: clients read it.
fn failed(error: &io::Error) -> SqlError {
    tracing::warn!(%error, "rows of a query cannot be kept on disk");
    // DataFusion wraps the error of the system.
    let wrapped = error.get_ref().and_then(|inner| inner.downcast_ref::<DataFusionError>());
    let kind = match wrapped {
        Some(DataFusionError::IoError(inner)) => inner.kind(),
        _ => error.kind(),
    };
    let (text, sqlstate) = match kind {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ("the disk for the rows that queries keep there is full", "53100")
        }
        _ => ("the rows of a query cannot be kept on disk; see the log of the member", "58030"),
    };
    SqlError::new(SqlErrorCode::Generic, text).with_sqlstate(sqlstate)
}
