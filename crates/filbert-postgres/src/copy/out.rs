//! Rows as `CopyData`.

use filbert_grid::query::ColumnReader;

use crate::{error::PgError, wire::Out};

pub(crate) struct CopyWriter;

impl CopyWriter {
    pub(crate) fn write(&mut self, _readers: &[ColumnReader<'_>], _row: usize, _out: &mut Out) -> Result<(), Box<PgError>> {
        Ok(())
    }
}
