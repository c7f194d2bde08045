//! The writer that takes rows.

use std::sync::Arc;

use filbert_data::{FieldType, Value};
use filbert_grid::query::{ColumnMeta, RowWriter, SqlError, WriteMode};

use crate::{
    failures,
    rows::{column, numbers},
    script::Script,
    seen::{Row, Seen},
};

/// Takes rows. Refuses rows whose id is -1.
pub(crate) struct Writer {
    columns: Arc<[ColumnMeta]>,
    mode: WriteMode,
    /// Rows that are not yet written, with [`WriteMode::All`].
    rows: Vec<Row>,
    seen: Arc<Seen>,
}

impl Writer {
    /// A writer for a statement; `None` if it takes no rows.
    pub(crate) fn of(script: &Script<'_>, mode: WriteMode, seen: &Arc<Seen>) -> Option<Writer> {
        let id = column("id", FieldType::BigInt);
        let (expected, columns) = match script {
            Script::InsertRows => (WriteMode::Each, Arc::from([id, column("at", FieldType::Timestamp)])),
            Script::CopyIn { arrays: false, .. } => (WriteMode::All, numbers()),
            Script::CopyIn { arrays: true, .. } => {
                (WriteMode::All, Arc::from([id, column("a", FieldType::Array(Box::new(FieldType::Integer)))]))
            }
            _ => return None,
        };
        assert_eq!(mode, expected);
        Some(Writer { columns, mode, rows: Vec::new(), seen: seen.clone() })
    }

    fn take(&mut self, row: &[Value<'_>]) -> Result<u64, SqlError> {
        match row.first() {
            Some(Value::Int64(-1)) => return Err(failures::duplicate()),
            Some(Value::Int64(_)) => {}
            _ => return Err(failures::data(format!("cannot take {row:?}"))),
        }
        let row = row.iter().map(|value| value.clone().into_owned()).collect();
        match self.mode {
            WriteMode::Each => self.seen.write([row]),
            WriteMode::All => self.rows.push(row),
        }
        Ok(1)
    }
}

impl RowWriter for Writer {
    fn columns(&self) -> &Arc<[ColumnMeta]> {
        &self.columns
    }

    fn write(&mut self, values: &[Value<'_>], on_row: &mut dyn FnMut(Result<u64, SqlError>)) {
        for row in values.chunks(self.columns.len()) {
            on_row(self.take(row));
        }
    }

    fn finish(self: Box<Self>) -> Result<u64, SqlError> {
        let count = self.rows.len() as u64;
        self.seen.write(self.rows);
        Ok(count)
    }
}
