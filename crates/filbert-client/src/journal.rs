//! Reading a map's event journal: the last changes of each partition, kept by the members where it is configured.

use filbert_data::{Blob, FromBlob, PartitionId, ToBlob};
use filbert_wire::table::map;

use crate::{Call, Map, inner::Target};

/// Where a partition's journal begins and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalBounds {
    /// The sequence of the oldest event that is kept.
    pub oldest: i64,
    /// The sequence of the newest event.
    pub newest: i64,
}

/// Events of a partition's journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalPage {
    /// Events with their sequences, oldest first, each serialized as the member wrote it.
    pub events: Vec<(i64, Blob)>,
    /// Where the next page begins.
    pub next_sequence: i64,
}

impl<K: ToBlob + FromBlob, V: ToBlob + FromBlob> Map<K, V> {
    /// The bounds of a partition's journal. A member's error where the map has none.
    pub fn journal_bounds(&self, partition: PartitionId) -> Call<JournalBounds> {
        let request = map::event_journal_subscribe::Request { name: &self.name };
        Call::send(&self.client.inner, Target::Partition(partition), &request, |answer| {
            let answer = answer.decode::<map::event_journal_subscribe::Response>()?;
            Ok(JournalBounds { oldest: answer.oldest_sequence, newest: answer.newest_sequence })
        })
    }

    /// Between `at_least` and `at_most` events of a partition's journal from sequence `start` on; waits until there are
    /// so many.
    pub fn journal_read(
        &self,
        partition: PartitionId,
        start: i64,
        at_least: usize,
        at_most: usize,
    ) -> Call<JournalPage> {
        let request = map::event_journal_read::Request {
            name: &self.name,
            start_sequence: start,
            min_size: i32::try_from(at_least).unwrap_or(i32::MAX),
            max_size: i32::try_from(at_most).unwrap_or(i32::MAX),
            predicate: None,
            projection: None,
        };
        Call::send(&self.client.inner, Target::Partition(partition), &request, |answer| {
            let answer = answer.decode::<map::event_journal_read::Response<'_>>()?;
            let sequences = answer.item_seqs.unwrap_or_default();
            let events = sequences.into_iter().zip(answer.items.iter().map(|item| Blob::from(*item)));
            Ok(JournalPage { events: events.collect(), next_sequence: answer.next_seq })
        })
    }
}
