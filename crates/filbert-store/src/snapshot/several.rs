//! Snapshots of several partitions, one after the other: whoever replicates partitions together has one of all of them.
//!
//! A page is the partition, 4 bytes, little-endian, and a page of [`Partition::export_page`], which has a number and a checksum of its
//! own; partitions come in order. All of them are as they were when the snapshot began.

use filbert_data::PartitionId;

use super::{Import, ImportError};
use crate::{CodecError, LayoutSource, Partition, PartitionSettings, Problem};

/// Where the snapshot of several partitions stands.
#[derive(Clone, Debug)]
pub struct SeveralExport {
    partitions: Vec<PartitionId>,
    at: usize,
}

impl SeveralExport {
    /// Of these partitions, each of which has begun its own.
    #[must_use]
    pub fn new(partitions: Vec<PartitionId>) -> Self {
        SeveralExport { partitions, at: 0 }
    }

    /// The partitions whose snapshots are not at their end.
    #[must_use]
    pub fn left(&self) -> &[PartitionId] {
        self.partitions.get(self.at..).unwrap_or_default()
    }

    /// The next page, of about `bytes_min` bytes; `None` at the end. `export` calls [`Partition::export_page`] of a partition with what it
    /// is given.
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

/// Several partitions that are being taken over.
pub struct SeveralImport {
    partitions: Vec<PartitionId>,
    hash_seed: u64,
    complete: Vec<Partition>,
    import: Option<Import>,
}

impl SeveralImport {
    /// Nothing yet of these partitions, which will have this hash seed.
    #[must_use]
    pub fn new(partitions: Vec<PartitionId>, hash_seed: u64) -> Self {
        SeveralImport { partitions, hash_seed, complete: Vec::new(), import: None }
    }

    /// Takes the next page over.
    ///
    /// # Errors
    /// It cannot be read, or is not the next one. The import is over.
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
        let settings = PartitionSettings { id: *expected, hash_seed: self.hash_seed, reads_before_commands: true };
        let import = self.import.get_or_insert_with(|| Import::new(settings));
        import.page(rest)?;
        if import.is_complete()
            && let Some(import) = self.import.take()
        {
            self.complete.push(import.finish(layouts)?);
        }
        Ok(())
    }

    /// How many partitions have come, and how many there have to be.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        (self.complete.len(), self.partitions.len())
    }

    /// The partitions that have come, in order.
    #[must_use]
    pub fn finish(self) -> Vec<Partition> {
        self.complete
    }
}
