//! Snapshots of several partitions in sequence, for groups that replicate several partitions
//! together.
//!
//! A page is the partition, 4 bytes, little-endian, and a page of [`Partition::export_page`], which
//! has its own number and checksum. The partitions come in order. All of them have the state of the
//! beginning of the snapshot.

use filbert_data::PartitionId;

use super::{Import, ImportError};
use crate::{CodecError, LayoutSource, Partition, PartitionSettings, Problem};

/// The progress of a snapshot of several partitions.
#[derive(Clone, Debug)]
pub struct MultiPartitionExport {
    partitions: Vec<PartitionId>,
    at: usize,
}

impl MultiPartitionExport {
    /// A snapshot of these partitions. Each of them has begun its own snapshot.
    #[must_use]
    pub fn new(partitions: Vec<PartitionId>) -> Self {
        MultiPartitionExport { partitions, at: 0 }
    }

    /// The partitions with incomplete snapshots.
    #[must_use]
    pub fn left(&self) -> &[PartitionId] {
        self.partitions.get(self.at..).unwrap_or_default()
    }

    /// The next page, of about `bytes_min` bytes; `None` at the end. `export` must call
    /// [`Partition::export_page`] of the given partition with the given arguments.
    pub fn page(
        &mut self,
        bytes_min: usize,
        export: impl FnOnce(PartitionId, &mut Vec<u8>, usize) -> bool,
    ) -> Option<Vec<u8>> {
        let id = *self.partitions.get(self.at)?;
        let mut page = Vec::new();
        if !export(id, &mut page, bytes_min) {
            self.at += 1;
        }
        let mut framed = Vec::with_capacity(page.len() + 4);
        framed.extend_from_slice(&id.0.to_le_bytes());
        framed.extend_from_slice(&page);
        Some(framed)
    }
}

/// The import of several partitions.
pub struct MultiPartitionImport {
    partitions: Vec<PartitionId>,
    hash_seed: u64,
    complete: Vec<Partition>,
    import: Option<Import>,
}

impl MultiPartitionImport {
    /// Begins the import of these partitions. They will have this hash seed.
    #[must_use]
    pub fn new(partitions: Vec<PartitionId>, hash_seed: u64) -> Self {
        MultiPartitionImport { partitions, hash_seed, complete: Vec::new(), import: None }
    }

    /// Reads the next page.
    ///
    /// # Errors
    /// The page cannot be read, or is not the next one. The import must not be continued.
    pub fn page(&mut self, page: &[u8], layouts: &dyn LayoutSource) -> Result<(), ImportError> {
        let Some((id, rest)) = page.split_first_chunk::<4>() else {
            let problem = Problem::TooShort { left: page.len(), needed: 4 };
            return Err(CodecError { what: "the partition of a page", offset: 0, problem }.into());
        };
        let found = u32::from_le_bytes(*id);
        let Some(expected) = self.partitions.get(self.complete.len()) else { return Err(ImportError::Complete) };
        if found != expected.0 {
            return Err(ImportError::OtherPartition { found, expected: expected.0 });
        }
        let settings = PartitionSettings { id: *expected, hash_seed: self.hash_seed, exact_read_times: true };
        let import = self.import.get_or_insert_with(|| Import::new(settings));
        import.page(rest)?;
        if import.is_complete()
            && let Some(import) = self.import.take()
        {
            self.complete.push(import.finish(layouts)?);
        }
        Ok(())
    }

    /// The number of imported partitions, and the number of all partitions.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        (self.complete.len(), self.partitions.len())
    }

    /// The imported partitions, in order.
    #[must_use]
    pub fn finish(self) -> Vec<Partition> {
        self.complete
    }
}
