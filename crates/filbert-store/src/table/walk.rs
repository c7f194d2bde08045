//! Iteration over the table in the order of hashes, one segment's range at a time.

use std::hash::BuildHasher;

use crate::record::Record;

use super::Table;

/// An inclusive range of hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Range {
    pub(super) fn of_prefix(prefix: u32, depth: u32) -> Range {
        let width = 64 - depth;
        let first = u64::from(prefix).checked_shl(width).unwrap_or(0);
        Range { first, last: first | u64::MAX.checked_shr(depth).unwrap_or(0) }
    }

    /// The first hash after this range.
    pub(crate) fn next(self) -> Option<u64> {
        self.last.checked_add(1)
    }
}

impl<S: BuildHasher> Table<S> {
    /// The range of the segment of a hash; in an empty table, all hashes.
    pub(crate) fn range_at(&self, hash: u64) -> Range {
        let segment = self.segment_index(hash).and_then(|index| self.segments.get(index));
        segment.map_or(Range { first: 0, last: u64::MAX }, |segment| segment.range())
    }

    /// All records of the segment of a hash, including those with smaller hashes.
    pub(crate) fn records_at(&self, hash: u64) -> impl Iterator<Item = &Record> {
        let segment = self.segment_index(hash).and_then(|index| self.segments.get(index));
        let in_slots = segment.into_iter().flat_map(|segment| segment.records.iter());
        let in_overflow = segment
            .filter(|segment| segment.overflowed)
            .map(|segment| self.overflow.range(segment.range().first..=segment.range().last))
            .into_iter()
            .flatten()
            .flat_map(|(_, records)| records);
        in_slots.chain(in_overflow)
    }

    /// All records, in the order of segments.
    pub(crate) fn records(&self) -> impl Iterator<Item = &Record> {
        let mut position = Some(0);
        std::iter::from_fn(move || {
            let start = position?;
            position = self.range_at(start).next();
            Some(self.records_at(start))
        })
        .flatten()
    }

    /// Visits the records from `position` on, one range at a time, until `enough` returns `true` at
    /// the end of a range. Returns the position at which to continue; `None` at the end of the
    /// table.
    pub(crate) fn walk(
        &self,
        mut position: u64,
        mut visit: impl FnMut(&Record),
        mut enough: impl FnMut() -> bool,
    ) -> Option<u64> {
        loop {
            let range = self.range_at(position);
            // The position may be inside a range, if segments have merged since it was returned.
            let all = range.first == position;
            for record in self.records_at(position) {
                if all || self.hash(record.key()) >= position {
                    visit(record);
                }
            }
            position = range.next()?;
            if enough() {
                return Some(position);
            }
        }
    }
}
