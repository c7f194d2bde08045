//! Results as front doors read them: batches of a running plan, cut into pages.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringViewArray};
use arrow_schema::{DataType, Field, Schema};
use datafusion::arrow::compute::cast;
use datafusion::common::DataFusionError;
use datafusion::physical_plan::SendableRecordBatchStream;
use filbert_data::FieldType;
use filbert_functions::ending::{self, Limits};
use filbert_functions::error::of_datafusion;
use filbert_grid::ErrorKind;
use filbert_grid::query::{ColumnMeta, Cursor, Dialect, Page, PageReply, SqlError, SqlErrorCode, arrow_type};
use futures::StreamExt;

use crate::error_dialects::translated;
use crate::jobs::JobGuard;
use crate::threads::{Threads, caught, ended_early};
use crate::turns::{self, Share};

/// The columns in the Arrow types that front doors know. Some functions return unsigned integers.
pub(crate) fn as_promised(batch: RecordBatch, columns: &[ColumnMeta]) -> Result<RecordBatch, SqlError> {
    let is_known = |(array, column): (&ArrayRef, &ColumnMeta)| match (array.data_type(), &column.field_type) {
        (DataType::Utf8 | DataType::LargeUtf8, FieldType::Varchar | FieldType::Char | FieldType::Json) => true,
        (DataType::Binary | DataType::LargeBinary, FieldType::Object) => true,
        (DataType::Decimal128(..) | DataType::Decimal256(..), FieldType::Decimal(_)) => true,
        // NULL without a type.
        (DataType::Null, FieldType::Object) => true,
        (found, field_type) => *found == arrow_type(field_type),
    };
    if batch.columns().iter().zip(columns).all(is_known) {
        return Ok(batch);
    }
    let mut arrays = Vec::with_capacity(batch.num_columns());
    let mut fields = Vec::with_capacity(batch.num_columns());
    for ((array, column), field) in batch.columns().iter().zip(columns).zip(batch.schema().fields()) {
        let array = if is_known((array, column)) {
            array.clone()
        } else {
            cast(array, &arrow_type(&column.field_type)).map_err(|error| of_datafusion(&error.into()))?
        };
        fields.push(Field::new(field.name(), array.data_type().clone(), true));
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(|error| of_datafusion(&error.into()))
}

/// Rows that are all available.
pub(crate) struct ReadyRows {
    columns: Arc<[ColumnMeta]>,
    rows: RecordBatch,
    next: usize,
}

impl ReadyRows {
    pub(crate) fn new(columns: Arc<[ColumnMeta]>, rows: RecordBatch) -> Self {
        ReadyRows { columns, rows, next: 0 }
    }

    fn cut(&mut self, rows_max: usize) -> Page {
        let count = (self.rows.num_rows() - self.next).min(rows_max.max(1));
        let rows = self.rows.slice(self.next, count);
        self.next += count;
        Page { rows, last: self.next >= self.rows.num_rows() }
    }
}

impl Cursor for ReadyRows {
    fn columns(&self) -> &Arc<[ColumnMeta]> {
        &self.columns
    }

    fn page_now(&mut self, rows_max: usize) -> Option<Result<Page, SqlError>> {
        Some(Ok(self.cut(rows_max)))
    }

    fn page(mut self: Box<Self>, rows_max: usize, reply: PageReply) {
        let page = self.cut(rows_max);
        reply(self, Ok(page));
    }
}

/// Rows that a plan produces while they are read.
pub(crate) struct RunningRows {
    columns: Arc<[ColumnMeta]>,
    stream: SendableRecordBatchStream,
    /// Rows that were produced and not yet read; never empty.
    ready: Option<RecordBatch>,
    /// The size of the rows that the statement still holds: no page of them was handed over.
    kept_bytes: usize,
    ended: bool,
    infinite: bool,
    limits: Limits,
    share: Share,
    threads: Threads,
    job: Arc<JobGuard>,
    /// The error dialect.
    dialect: Dialect,
}

impl RunningRows {
    pub(crate) fn new(
        columns: Arc<[ColumnMeta]>,
        stream: SendableRecordBatchStream,
        infinite: bool,
        limits: Limits,
        threads: Threads,
        job: Arc<JobGuard>,
        dialect: Dialect,
    ) -> Self {
        // The statement that the rows are of, or a new one.
        let share = turns::current().unwrap_or_else(|| threads.turns().share());
        let (ready, kept_bytes, ended) = Default::default();
        RunningRows { columns, stream, ready, kept_bytes, ended, infinite, limits, share, threads, job, dialect }
    }

    /// Cuts a page from the ready rows. `None` if no rows are ready and more may come.
    fn cut(&mut self, rows_max: usize) -> Option<Page> {
        let Some(ready) = self.ready.take() else {
            return self.ended.then(|| Page { rows: RecordBatch::new_empty(self.stream.schema()), last: true });
        };
        let count = ready.num_rows().min(rows_max.max(1));
        let rows = ready.slice(0, count);
        if count < ready.num_rows() {
            self.ready = Some(ready.slice(count, ready.num_rows() - count));
        }
        Some(Page { rows, last: self.ended && self.ready.is_none() })
    }

    /// Waits for the next batch that is not empty.
    async fn fill(&mut self) -> Result<(), SqlError> {
        while self.ready.is_none() && !self.ended {
            match self.stream.next().await {
                Some(Ok(batch)) if batch.num_rows() > 0 => {
                    // The batch was made in one step, as those of other statements meanwhile.
                    ending::check_batch().map_err(|error| self.failed(&error))?;
                    let ready = as_promised(batch, &self.columns)?;
                    self.kept_bytes = self.kept_bytes.saturating_add(ready.get_array_memory_size());
                    self.ready = Some(ready);
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(self.failed(&error)),
                None => self.ended = true,
            }
        }
        Ok(())
    }

    /// Ends the rows with an error, in the client's dialect.
    fn failed(&mut self, error: &DataFusionError) -> SqlError {
        self.ended = true;
        let error = match of_datafusion(error) {
            // The reader has to run the statement again.
            error if error.kind == ErrorKind::BeingReplaced => error.with_sqlstate("40001"),
            error => error,
        };
        let error = translated(error, "", self.dialect);
        self.job.fail(&error);
        error
    }

    /// The reader of a page frees its rows. The statement holds them until then: it may have to
    /// wait for its turn to learn whether the page is the last one.
    fn hand_over(&mut self) {
        let bytes = std::mem::take(&mut self.kept_bytes);
        if let Some(memory) = self.limits.memory() {
            memory.hand_over(bytes);
        }
    }

    async fn next_page(&mut self, rows_max: usize) -> Result<Page, SqlError> {
        self.fill().await?;
        let mut page = self.cut(rows_max);
        // Whether a page is the last one shows only when the next one was requested. An endless
        // result does not hold back rows for that.
        if self.ready.is_none() && !self.ended && !self.infinite {
            self.fill().await?;
            if let Some(page) = &mut page {
                page.last = self.ended && self.ready.is_none();
            }
        }
        Ok(page.unwrap_or_else(|| Page { rows: RecordBatch::new_empty(self.stream.schema()), last: true }))
    }
}

/// A plan must stop when nobody will read its rows.
impl Drop for RunningRows {
    fn drop(&mut self) {
        self.limits.cancel();
    }
}

impl Cursor for RunningRows {
    fn columns(&self) -> &Arc<[ColumnMeta]> {
        &self.columns
    }

    fn is_infinite(&self) -> bool {
        self.infinite
    }

    fn page_now(&mut self, rows_max: usize) -> Option<Result<Page, SqlError>> {
        // The last ready rows wait for the next batch, which shows whether they are the last of
        // all.
        let plenty = self.ready.as_ref().is_some_and(|ready| ready.num_rows() > rows_max);
        let page = if plenty || self.ended { self.cut(rows_max) } else { None };
        if page.as_ref().is_some_and(|page| page.last) {
            self.job.done();
        }
        if page.is_some() {
            self.hand_over();
        }
        page.map(Ok)
    }

    fn page(self: Box<Self>, rows_max: usize, reply: PageReply) {
        let (threads, limits, job) = (self.threads.clone(), self.limits.clone(), self.job.clone());
        let (columns, schema, share) = (self.columns.clone(), self.stream.schema(), self.share.clone());
        // Operators may compute for long without yielding. A reader that waits for the page must
        // not wait for them.
        threads.spawn(async move {
            let running = tokio::spawn(turns::run(limits.clone(), share, async move {
                let mut this = self;
                // A panic that destroyed the cursor would look like a client that disconnected.
                let page = caught(this.next_page(rows_max)).await;
                if let Err(error) = &page {
                    this.ended = true;
                    this.job.fail(error);
                }
                (this, page)
            }));
            let abort = running.abort_handle();
            let done = limits.run(async { running.await.map_err(ended_early) }).await;
            abort.abort();
            match done {
                Ok((mut this, page)) => {
                    if page.as_ref().is_ok_and(|page| page.last) {
                        job.done();
                    }
                    this.hand_over();
                    reply(this, page);
                }
                Err(error) => {
                    job.fail(&error);
                    reply(Box::new(ReadyRows::new(columns, RecordBatch::new_empty(schema))), Err(error));
                }
            }
        });
    }
}

/// Rows of one text column.
pub(crate) fn text_rows<'t>(name: &str, texts: impl Iterator<Item = &'t str>) -> Result<RecordBatch, SqlError> {
    let array = StringViewArray::from_iter_values(texts);
    let schema = Schema::new(vec![Field::new(name, DataType::Utf8View, false)]);
    RecordBatch::try_new(Arc::new(schema), vec![Arc::new(array)])
        .map_err(|error| SqlError::new(SqlErrorCode::Generic, error.to_string()))
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;
    use tokio::task::yield_now;

    use super::*;

    /// Starts a statement that runs until `end` is used. Returns it with its limits, which expire
    /// while the statement changes rows.
    async fn over_while_changing(
        limits: &Limits,
    ) -> (oneshot::Sender<()>, tokio::task::JoinHandle<Result<(), SqlError>>) {
        let (end, ended) = oneshot::channel::<()>();
        let running = limits.clone();
        let run = tokio::spawn(async move {
            running
                .run(async {
                    let _ = ended.await;
                    Ok(())
                })
                .await
        });
        limits.cancel();
        // The test polls the statement on this thread alone.
        for _ in 0..16 {
            yield_now().await;
        }
        assert!(!run.is_finished(), "rows are being changed: the statement is not ended");
        (end, run)
    }

    #[tokio::test]
    async fn a_statement_that_turns_out_to_wait_is_ended_though_its_time_was_over_before() {
        let limits = Limits::new(None);
        let changing = limits.begin_changes().unwrap();
        let (_end, run) = over_while_changing(&limits).await;
        drop(changing);
        let error = run.await.unwrap().unwrap_err();
        assert_eq!(error.sqlstate(), "57014");
        assert!(limits.begin_changes().is_err(), "an ended statement changes nothing");
    }

    #[tokio::test]
    async fn a_statement_that_has_changed_rows_tells_of_them() {
        let limits = Limits::new(None);
        let changing = limits.begin_changes().unwrap();
        let (end, run) = over_while_changing(&limits).await;
        changing.done();
        end.send(()).unwrap();
        run.await.unwrap().unwrap();
    }
}
