//! Column scans: chunks of a map's columns as Arrow arrays over the same memory.
//!
//! A chunk is shared, never copied. An array's buffers keep the chunk alive, and a concurrent
//! writer writes to a copy of its own.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array, Int16Array,
    Int32Array, Int64Array, RecordBatch, StringViewArray, Time64NanosecondArray, TimestampMicrosecondArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, ScalarBuffer};
use arrow_schema::SchemaRef;
use bytes::Bytes;
use datafusion::arrow::compute::filter_record_batch;
use datafusion::common::Result;
use filbert_data::FieldType;
use filbert_functions::builder::batch;
use filbert_grid::{Chunk, ColumnId, ColumnView, Columns, Map, PartitionId};

use crate::scan::scanner::ScanSpec;
use crate::scan::table::MapTable;

/// Whether a full scan needs nothing but columns that the map keeps.
pub(crate) fn reads_columns(spec: &ScanSpec) -> bool {
    columns_of(&spec.table, &spec.columns).is_some()
}

/// The map's columns for some of the table's columns, by number; `None` if one of them is missing.
fn columns_of(table: &MapTable, columns: &[usize]) -> Option<Vec<ColumnId>> {
    let layout = table.map().layout();
    if layout.columns.is_empty() || columns.is_empty() {
        return None;
    }
    let find = |index: &usize| {
        let wanted = table.columns().get(*index)?;
        let is_it = |kept: &&filbert_grid::ColumnInfo| {
            kept.ready && kept.field == wanted.path && kept.field_type == wanted.field_type
        };
        layout.columns.iter().find(is_it).map(|kept| kept.id)
    };
    columns.iter().map(find).collect()
}

/// Reads the chunks of one partition after the other.
pub(crate) struct ColumnScan {
    map: Arc<Map>,
    schema: SchemaRef,
    ids: Vec<ColumnId>,
    types: Vec<FieldType>,
    snapshot: Option<Columns>,
    positions: Vec<usize>,
    next: usize,
}

impl ColumnScan {
    /// A column scan, if the map keeps all columns of the scan.
    pub(crate) fn of(spec: &ScanSpec) -> Option<ColumnScan> {
        let ids = columns_of(&spec.table, &spec.columns)?;
        let types = spec.columns.iter().filter_map(|index| spec.table.columns().get(*index));
        Some(ColumnScan {
            map: spec.table.map().clone(),
            schema: spec.schema.clone(),
            ids,
            types: types.map(|column| column.field_type.clone()).collect(),
            snapshot: None,
            positions: Vec::new(),
            next: 0,
        })
    }

    /// Takes a snapshot of a partition. `false` if its entries must be read instead, because the
    /// columns were removed, or contain values that could not be read as their types. Reading the
    /// entries reports such values.
    pub(crate) fn begin(&mut self, partition: PartitionId) -> bool {
        self.next = 0;
        self.snapshot = None;
        let Some(columns) = self.map.scan_columns(partition) else { return false };
        let positions: Option<Vec<usize>> = self.ids.iter().map(|id| columns.position(*id)).collect();
        let Some(positions) = positions else { return false };
        let broken = |chunk: &Arc<Chunk>| positions.iter().any(|position| chunk.broken_count(*position) > 0);
        if columns.chunks().iter().any(broken) {
            return false;
        }
        self.positions = positions;
        self.snapshot = Some(columns);
        true
    }

    /// The next chunk's rows; `None` at the end of the partition.
    pub(crate) fn next_chunk(&mut self) -> Result<Option<RecordBatch>> {
        let Some(columns) = &self.snapshot else { return Ok(None) };
        while let Some(chunk) = columns.chunks().get(self.next) {
            self.next += 1;
            if chunk.live_count() == 0 {
                continue;
            }
            let mut arrays = Vec::with_capacity(self.positions.len());
            for (position, field_type) in self.positions.iter().zip(&self.types) {
                arrays.push(array(chunk, *position, field_type)?);
            }
            let rows = batch(&self.schema, arrays, chunk.slots())?;
            if chunk.live_count() == chunk.slots() {
                return Ok(Some(rows));
            }
            let live = BooleanArray::new(bits(chunk, Part::Live, chunk.slots()), None);
            return Ok(Some(filter_record_batch(&rows, &live)?));
        }
        self.snapshot = None;
        Ok(None)
    }
}

/// A part of a chunk's memory.
#[derive(Clone, Copy)]
enum Part {
    Values(usize),
    Heap(usize),
    Validity(usize),
    Live,
}

/// A part of a chunk's memory. It keeps the chunk alive.
struct Shared {
    chunk: Arc<Chunk>,
    part: Part,
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        match self.part {
            Part::Values(position) => self.chunk.bytes_of(position),
            Part::Heap(position) => self.chunk.heap_of(position),
            Part::Validity(position) => self.chunk.validity_bytes(position).unwrap_or_default(),
            Part::Live => self.chunk.live_bytes(),
        }
    }
}

fn buffer(chunk: &Arc<Chunk>, part: Part) -> Buffer {
    Buffer::from(Bytes::from_owner(Shared { chunk: chunk.clone(), part }))
}

fn bits(chunk: &Arc<Chunk>, part: Part, len: usize) -> BooleanBuffer {
    BooleanBuffer::new(buffer(chunk, part), 0, len)
}

/// One column of a chunk, including free slots.
fn array(chunk: &Arc<Chunk>, position: usize, field_type: &FieldType) -> Result<ArrayRef> {
    let slots = chunk.slots();
    let nulls = chunk.validity(position).map(|_| NullBuffer::new(bits(chunk, Part::Validity(position), slots)));
    let values = || buffer(chunk, Part::Values(position));
    macro_rules! numbers {
        ($array:ty) => {
            Arc::new(<$array>::new(ScalarBuffer::new(values(), 0, slots), nulls))
        };
    }
    Ok(match chunk.column(position) {
        Some(ColumnView::Boolean(_)) => Arc::new(BooleanArray::new(BooleanBuffer::new(values(), 0, slots), nulls)),
        Some(ColumnView::Int8(_)) => numbers!(Int8Array),
        Some(ColumnView::Int16(_)) => numbers!(Int16Array),
        Some(ColumnView::Int32(_)) => numbers!(Int32Array),
        Some(ColumnView::Int64(_)) => numbers!(Int64Array),
        Some(ColumnView::Float32(_)) => numbers!(Float32Array),
        Some(ColumnView::Float64(_)) => numbers!(Float64Array),
        Some(ColumnView::Date(_)) => numbers!(Date32Array),
        Some(ColumnView::Time(_)) => numbers!(Time64NanosecondArray),
        Some(ColumnView::Timestamp(_)) => numbers!(TimestampMicrosecondArray),
        Some(ColumnView::TimestampTz(_)) => {
            let timestamps = TimestampMicrosecondArray::new(ScalarBuffer::new(values(), 0, slots), nulls);
            Arc::new(timestamps.with_timezone("UTC"))
        }
        Some(ColumnView::Decimal(_)) => {
            let (precision, scale) = match field_type {
                FieldType::Decimal(Some((precision, scale))) => (*precision, *scale),
                _ => (38, 0),
            };
            let decimals = Decimal128Array::new(ScalarBuffer::new(values(), 0, slots), nulls);
            Arc::new(decimals.with_precision_and_scale(precision, scale)?)
        }
        Some(ColumnView::Text(..)) => {
            let views = ScalarBuffer::new(values(), 0, slots);
            Arc::new(StringViewArray::try_new(views, vec![buffer(chunk, Part::Heap(position))], nulls)?)
        }
        None => arrow_array::new_null_array(&filbert_grid::query::arrow_type(field_type), slots),
    })
}
