//! Columns: fields of a map's entries, stored apart from the records, so that a scan reads nothing
//! else.
//!
//! ```text
//! slot / 4,096 --> chunk (shared with scans, copied when written while shared)
//! slot % 4,096 --> live bit; in each column: value, validity bit, broken bit
//! ```
//!
//! A value that cannot be converted to the type of its column never causes a write to fail: it is
//! marked as broken, and readers of the column must read the record instead.

mod bits;
mod chunk;
mod data;
mod texts;

use std::sync::Arc;

use filbert_data::Value;

use crate::layout::{ColumnId, ColumnLayout};

use chunk::CHUNK_SLOTS;
pub use chunk::{Chunk, ColumnRange, ColumnView};
pub use data::ColumnType;

/// A snapshot of the columns of one map in one partition. Later writes do not change it.
#[derive(Clone)]
pub struct Columns {
    ids: Arc<[ColumnId]>,
    chunks: Vec<Arc<Chunk>>,
}

impl Columns {
    /// The columns of a partition without entries; `None` if there are no columns.
    pub(crate) fn without_rows(columns: &[ColumnLayout]) -> Option<Columns> {
        let ids = columns.iter().map(|column| column.id).collect();
        (!columns.is_empty()).then_some(Columns { ids, chunks: Vec::new() })
    }

    /// The chunks, in the order of slots. Chunks without entries are possible.
    #[must_use]
    pub fn chunks(&self) -> &[Arc<Chunk>] {
        &self.chunks
    }

    /// The number of entries.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.live_count()).sum()
    }

    /// The position of a column in the chunks.
    #[must_use]
    pub fn position(&self, id: ColumnId) -> Option<usize> {
        self.ids.iter().position(|known| *known == id)
    }
}

/// The columns of one map in one partition.
pub(crate) struct ColumnSet {
    layouts: Vec<ColumnLayout>,
    ids: Arc<[ColumnId]>,
    chunks: Vec<Arc<Chunk>>,
    bytes: usize,
    /// For each column, whether the current row has a value.
    is_set: Vec<bool>,
}

impl ColumnSet {
    pub(crate) fn new(columns: &[ColumnLayout]) -> Self {
        let ids = columns.iter().map(|column| column.id).collect();
        ColumnSet { layouts: columns.to_vec(), ids, chunks: Vec::new(), bytes: 0, is_set: Vec::new() }
    }

    /// Whether these are the columns of this set.
    pub(crate) fn are(&self, columns: &[ColumnLayout]) -> bool {
        columns.iter().map(|column| column.id).eq(self.ids.iter().copied())
    }

    /// Begins to write the row of a slot; `None` if there are no columns.
    #[inline]
    pub(crate) fn begin(&mut self, slot: u32) -> Option<Row<'_>> {
        if self.layouts.is_empty() {
            return None;
        }
        let (number, at) = place_of(slot);
        while self.chunks.len() <= number {
            let chunk = Chunk::new(&self.layouts);
            self.bytes += chunk.bytes();
            self.chunks.push(Arc::new(chunk));
        }
        let ColumnSet { chunks, bytes, is_set, layouts, .. } = self;
        let shared = chunks.get_mut(number)?;
        is_set.clear();
        is_set.resize(layouts.len(), false);
        let bytes_before = shared.bytes();
        let chunk = Arc::make_mut(shared);
        chunk.begin(at);
        Some(Row { chunk, at, is_set, bytes, bytes_before })
    }

    pub(crate) fn remove(&mut self, slot: u32) {
        let (number, at) = place_of(slot);
        let Some(shared) = self.chunks.get_mut(number).filter(|chunk| chunk.has_room(at)) else { return };
        let before = shared.bytes();
        if shared.live_count() == 1 && shared.is_live(at) {
            // The last entry of the chunk: its memory is freed.
            *shared = Arc::new(Chunk::new(&self.layouts));
        } else {
            Arc::make_mut(shared).remove(at);
        }
        self.bytes = self.bytes + shared.bytes() - before;
        while self.chunks.last().is_some_and(|chunk| chunk.live_count() == 0) {
            self.bytes -= self.chunks.pop().map_or(0, |chunk| chunk.bytes());
        }
    }

    pub(crate) fn clear(&mut self) {
        self.chunks = Vec::new();
        self.bytes = 0;
    }

    pub(crate) fn snapshot(&self) -> Option<Columns> {
        (!self.layouts.is_empty()).then(|| Columns { ids: self.ids.clone(), chunks: self.chunks.clone() })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

fn place_of(slot: u32) -> (usize, usize) {
    (slot as usize / CHUNK_SLOTS, slot as usize % CHUNK_SLOTS)
}

/// The row of one entry while it is written.
pub(crate) struct Row<'c> {
    chunk: &'c mut Chunk,
    at: usize,
    is_set: &'c mut Vec<bool>,
    bytes: &'c mut usize,
    bytes_before: usize,
}

impl Row<'_> {
    #[inline]
    pub(crate) fn set(&mut self, column: usize, value: Value<'_>) {
        self.chunk.set(column, self.at, Some(value));
        if let Some(is_set) = self.is_set.get_mut(column) {
            *is_set = true;
        }
    }

    /// Completes the row: columns without a value are marked as broken.
    #[inline]
    pub(crate) fn finish(self) {
        let Row { chunk, at, is_set, bytes, bytes_before } = self;
        for (column, _) in is_set.iter().enumerate().filter(|(_, is_set)| !**is_set) {
            chunk.set(column, at, None);
        }
        *bytes = *bytes + chunk.bytes() - bytes_before;
    }
}

#[cfg(test)]
mod tests;
