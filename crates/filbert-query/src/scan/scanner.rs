//! One pass over some partitions of a map: it finds candidates by the access path, checks the
//! filter, and makes batches. The partitions that this member does not hold come last.

use std::future::poll_fn;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use arrow_array::cast::AsArray;
use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::SchemaRef;
use datafusion::arrow::compute::{concat_batches, filter_record_batch};
use datafusion::common::Result;
use datafusion::physical_expr::PhysicalExpr;
use filbert_functions::builder;
use filbert_functions::error::carried;
use filbert_grid::query::{SqlError, SqlErrorCode};
use filbert_grid::{ErrorKind, GridError, PartitionId, ReadView, threads};

use crate::scan::access::Access;
use crate::scan::chunks::ColumnScan;
use crate::scan::leaders::LeaderPages;
use crate::scan::rows::{RowBuffer, RowPlan, RowReader};
use crate::scan::table::MapTable;

/// The approximate number of rows of a batch, at most.
pub(crate) const BATCH_ROWS: usize = 8_192;

/// The definition of a scan.
#[derive(Clone, Debug)]
pub(crate) struct ScanSpec {
    pub(crate) table: Arc<MapTable>,
    /// The table's columns to read, by number: first the columns of the result, then the columns
    /// that only the filter needs.
    pub(crate) columns: Arc<[usize]>,
    /// Their schema.
    pub(crate) schema: SchemaRef,
    /// The number of columns of the result.
    pub(crate) width: usize,
    /// The filter over the columns that are read.
    pub(crate) filter: Option<Arc<dyn PhysicalExpr>>,
    pub(crate) access: Access,
    /// The plan for reading entries into these columns.
    rows: Arc<RowPlan>,
}

impl ScanSpec {
    /// A scan of some of the table's columns, by number. The first `width` belong to the result.
    pub(crate) fn new(table: Arc<MapTable>, columns: Vec<usize>, width: usize) -> Result<Self> {
        let schema = Arc::new(table.arrow_schema().project(&columns)?);
        let read = columns.iter().filter_map(|index| table.columns().get(*index));
        let rows = Arc::new(RowPlan::new(schema.clone(), read, table.formats()));
        Ok(ScanSpec { table, columns: columns.into(), schema, width, filter: None, access: Access::All, rows })
    }
}

/// Counters of one scanner.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScanCounts {
    /// Checked candidates.
    pub(crate) rows_read: usize,
    /// Visited partitions.
    pub(crate) partitions: usize,
}

/// Reads the rows of some partitions in batches.
pub(crate) struct Scanner {
    spec: ScanSpec,
    view: ReadView,
    partitions: Range<u32>,
    leaders: Option<LeaderPages>,
    /// The number of rows without columns that leaders have counted.
    counted: usize,
    reader: RowReader,
    columns: Option<ColumnScan>,
    buffer: RowBuffer,
    next_row: usize,
    keys_done: bool,
    counts: ScanCounts,
    /// The approximate number of rows of a batch.
    batch_rows: usize,
    /// The maximum number of candidates.
    candidates_max: usize,
    stopped: bool,
    /// The partitions in which an index may find entries, the last one first; `None` before the
    /// index was probed.
    found_in: Option<Vec<PartitionId>>,
}

impl Scanner {
    /// A scanner that reads the partitions at the places that `view` says.
    pub(crate) fn new(spec: ScanSpec, partitions: Range<u32>, view: ReadView) -> Self {
        let reader = RowReader::new(spec.rows.clone());
        let is_wanted = |partition: PartitionId| partitions.contains(&partition.0);
        let leaders = LeaderPages::of(spec.table.map(), &view, &spec.access, spec.columns.is_empty(), &is_wanted);
        let columns = matches!(spec.access, Access::All).then(|| ColumnScan::of(&spec)).flatten();
        Scanner {
            spec,
            view,
            partitions,
            leaders,
            counted: 0,
            reader,
            columns,
            buffer: RowBuffer::default(),
            next_row: 0,
            keys_done: false,
            counts: ScanCounts::default(),
            batch_rows: BATCH_ROWS,
            candidates_max: usize::MAX,
            stopped: false,
            found_in: None,
        }
    }

    /// Sets the approximate number of rows of a batch.
    pub(crate) fn in_batches_of(self, batch_rows: usize) -> Self {
        Scanner { batch_rows, ..self }
    }

    /// Sets the maximum number of candidates, beyond which the scanner stops.
    pub(crate) fn stop_after(&mut self, candidates_max: Option<usize>) {
        self.candidates_max = candidates_max.unwrap_or(usize::MAX);
    }

    /// Whether the scanner stopped.
    pub(crate) fn was_stopped(&self) -> bool {
        self.stopped
    }

    pub(crate) fn counts(&self) -> ScanCounts {
        self.counts
    }

    /// The next rows that satisfy the filter; `None` at the end. A batch may be empty. Waits only
    /// for other members.
    pub(crate) async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        poll_fn(|context| self.poll_next_batch(context)).await
    }

    /// As [`Scanner::next_batch`].
    pub(crate) fn poll_next_batch(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<RecordBatch>>> {
        if let Some(leaders) = &mut self.leaders {
            leaders.request();
        }
        let batch = match &mut self.columns {
            Some(_) => self.next_of_columns()?,
            None => self.next_of_rows()?,
        };
        let batch = match batch {
            None if !self.stopped => ready!(self.poll_leaders(context))?,
            batch => batch,
        };
        Poll::Ready(self.checked_if_there(batch))
    }

    fn checked_if_there(&mut self, batch: Option<RecordBatch>) -> Result<Option<RecordBatch>> {
        if self.spec.table.map().is_destroyed() {
            // If the map was destroyed, the rows may be incomplete.
            return Err(carried(gone(self.spec.table.name())));
        }
        let Some(batch) = batch else { return Ok(None) };
        self.counts.rows_read += batch.num_rows();
        self.checked(batch).map(Some)
    }

    fn next_of_columns(&mut self) -> Result<Option<RecordBatch>> {
        let mut parts: Vec<RecordBatch> = Vec::new();
        let mut rows = 0;
        while let Some(columns) = &mut self.columns {
            if let Some(batch) = columns.next_chunk()? {
                rows += batch.num_rows();
                parts.push(batch);
                // Chunks of some thousand rows are passed on as they are; only small ones are worth
                // concatenating.
                if rows >= self.batch_rows / 4 {
                    break;
                }
                continue;
            }
            let Some(partition) = self.next_partition() else { break };
            threads::give_way();
            self.counts.partitions += 1;
            if !self.columns.as_mut().is_some_and(|columns| columns.begin(partition)) {
                self.spec.table.map().scan_rows(partition, &mut |key, value| self.buffer.push(key, value));
                for index in 0..self.buffer.len() {
                    if let Some((key, value)) = self.buffer.get(index) {
                        self.reader.append_carried(key, value)?;
                    }
                }
                self.buffer.clear();
                let batch = self.reader.finish()?;
                rows += batch.num_rows();
                parts.push(batch);
            }
        }
        match parts.len() {
            0 => Ok(None),
            1 => Ok(parts.pop()),
            _ => Ok(Some(concat_batches(&self.spec.schema, &parts)?)),
        }
    }

    fn next_of_rows(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.read_buffer()? {
                return Ok(Some(batch));
            }
            if self.counts.rows_read + self.reader.rows() > self.candidates_max {
                self.stopped = true;
                return Ok(None);
            }
            if !self.fill_buffer() {
                return self.rest();
            }
        }
    }

    /// The next rows of the partitions that other members hold.
    fn poll_leaders(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<RecordBatch>>> {
        loop {
            if self.counted > 0 {
                let rows = self.counted.min(self.batch_rows);
                self.counted -= rows;
                return Poll::Ready(builder::batch(&self.spec.schema, Vec::new(), rows).map(Some));
            }
            if let Some(batch) = self.read_buffer()? {
                return Poll::Ready(Ok(Some(batch)));
            }
            let Some(leaders) = &mut self.leaders else { return Poll::Ready(self.rest()) };
            if self.counts.rows_read + self.reader.rows() > self.candidates_max {
                self.stopped = true;
                return Poll::Ready(Ok(None));
            }
            let page = match leaders.poll_page(context) {
                Poll::Ready(Some(Ok(page))) => page,
                Poll::Ready(Some(Err(GridError::Destroyed { .. }))) => {
                    return Poll::Ready(Err(carried(gone(self.spec.table.name()))));
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(carried(error.into()))),
                Poll::Ready(None) => {
                    self.leaders = None;
                    continue;
                }
                // The rows that are there need not wait.
                Poll::Pending if self.reader.rows() > 0 => return Poll::Ready(self.rest()),
                Poll::Pending => return Poll::Pending,
            };
            if self.spec.columns.is_empty() && matches!(self.spec.access, Access::All) {
                self.counted = page.count();
                continue;
            }
            // As an index of this member that was dropped: without a filter all entries would
            // become results.
            if matches!(self.spec.access, Access::Index { .. }) && !page.is_by_index() && self.spec.filter.is_none() {
                self.stopped = true;
                return Poll::Ready(Ok(None));
            }
            page.for_each(&mut |key, value| self.buffer.push(key, value));
        }
    }

    /// The rows that were read and not passed on.
    fn rest(&mut self) -> Result<Option<RecordBatch>> {
        if self.reader.rows() > 0 { self.reader.finish().map(Some) } else { Ok(None) }
    }

    /// Reads the rows in the buffer; a batch once it is full.
    fn read_buffer(&mut self) -> Result<Option<RecordBatch>> {
        while let Some((key, value)) = self.buffer.get(self.next_row) {
            self.next_row += 1;
            self.reader.append_carried(key, value)?;
            if self.reader.rows() >= self.batch_rows {
                return self.reader.finish().map(Some);
            }
        }
        self.buffer.clear();
        self.next_row = 0;
        Ok(None)
    }

    /// The next partition that is read here.
    fn next_partition(&mut self) -> Option<PartitionId> {
        let view = &self.view;
        self.partitions.by_ref().map(PartitionId).find(|partition| view.is_here(*partition))
    }

    /// Copies the candidates of the next partition; `false` after the last.
    fn fill_buffer(&mut self) -> bool {
        let all = matches!(self.spec.access, Access::All).then(|| self.next_partition());
        let Scanner { spec, view, buffer, partitions, keys_done, counts, candidates_max, stopped, found_in, .. } = self;
        let map = spec.table.map();
        match &spec.access {
            Access::Nothing => false,
            Access::Keys(keys) => {
                if std::mem::replace(keys_done, true) {
                    return false;
                }
                for key in keys {
                    let partition = map.partition_of(key);
                    if partitions.contains(&partition.0) && view.is_here(partition) {
                        map.entry_view(partition, key, |view| {
                            if let Some(view) = view {
                                buffer.push(view.key, view.value);
                            }
                        });
                        counts.partitions += 1;
                    }
                }
                true
            }
            Access::All => {
                let Some(partition) = all.flatten() else { return false };
                counts.partitions += 1;
                // Rows without columns are only counted.
                let counted = spec.columns.is_empty();
                map.scan_rows(partition, &mut |key, value| match counted {
                    true => buffer.push(&[], &[]),
                    false => buffer.push(key, value),
                });
                true
            }
            Access::Index { id, selection, .. } => {
                let found_in = found_in.get_or_insert_with(|| {
                    let may_have = map.probe_partitions(*id, &selection.probe);
                    let is_here =
                        |partition: &PartitionId| partitions.contains(&partition.0) && view.is_here(*partition);
                    let mut found: Vec<PartitionId> = may_have.iter().filter(is_here).collect();
                    found.reverse();
                    found
                });
                let Some(partition) = found_in.pop() else { return false };
                counts.partitions += 1;
                let by_index = map.probe(partition, *id, &selection.probe, &mut |key, value| {
                    buffer.push(key, value);
                    buffer.len() <= *candidates_max
                });
                // An index that was dropped meanwhile finds all entries. Without a filter they
                // would all become results.
                *stopped |= !by_index && spec.filter.is_none();
                !*stopped
            }
        }
    }

    /// The rows that satisfy the filter, without the columns that only the filter needs.
    fn checked(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let batch = match &self.spec.filter {
            None => batch,
            Some(filter) => {
                let holds = filter.evaluate(&batch)?.into_array(batch.num_rows())?;
                let holds: &BooleanArray = holds.as_boolean();
                if holds.null_count_is_zero_and_all_true() { batch } else { filter_record_batch(&batch, holds)? }
            }
        };
        if batch.num_columns() == self.spec.width {
            return Ok(batch);
        }
        let asked: Vec<usize> = (0..self.spec.width).collect();
        Ok(batch.project(&asked)?)
    }
}

/// The error of a read from a map that was destroyed meanwhile. The engine runs the statement
/// again, unless its reader has rows already.
fn gone(table: &str) -> SqlError {
    let text = format!("{table:?} was dropped or altered while the statement read it: the statement can be run again");
    SqlError { kind: ErrorKind::BeingReplaced, ..SqlError::new(SqlErrorCode::Generic, text) }
}

/// Whether every row passes, which saves copying them.
trait AllTrue {
    fn null_count_is_zero_and_all_true(&self) -> bool;
}

impl AllTrue for BooleanArray {
    fn null_count_is_zero_and_all_true(&self) -> bool {
        use arrow_array::Array;
        self.null_count() == 0 && !self.has_false()
    }
}
