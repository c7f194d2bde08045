//! Reads the event journal of a map: the most recent changes of each partition. Members keep a
//! journal only if it is configured.

use filbert_data::{BLOB_HEADER_BYTES, DataError, FromBlob, Input, PartitionId, ToBlob, TypeId, type_id};
use filbert_wire::{Data, table::map};

use crate::{Call, ClientError, EntryKinds, Map, inner::Target, map::value};

/// The bounds of a partition's journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalBounds {
    /// The sequence number of the oldest event in the journal.
    pub oldest: i64,
    /// The sequence number of the newest event.
    pub newest: i64,
}

/// Events of a partition's journal.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalPage<K, V> {
    /// The events, oldest first.
    pub events: Vec<JournalEvent<K, V>>,
    /// The sequence number at which the next page starts.
    pub next_sequence: i64,
}

/// A change of a map, as recorded in its journal.
#[derive(Clone, Debug, PartialEq)]
pub struct JournalEvent<K, V> {
    /// The sequence number in the partition's journal.
    pub sequence: i64,
    /// The kind of change; exactly one.
    pub kind: EntryKinds,
    /// The key.
    pub key: Option<K>,
    /// The new value; `None` after a removal.
    pub value: Option<V>,
    /// The old value; `None` if there was none.
    pub old_value: Option<V>,
    /// Whether earlier events were overwritten before they were read.
    pub is_after_lost: bool,
}

impl<K: FromBlob, V: FromBlob> JournalEvent<K, V> {
    /// Reads an event as members serialize it: an IdentifiedDataSerializable of
    ///
    /// | bytes | content |
    /// |---|---|
    /// | 1 | 1: identified by factory id and class id |
    /// | 4 + 4 | factory id and class id, not used by the client |
    /// | 4 | the kind of event |
    /// | 4 + n, three times | key, new value, old value: length (-1 is null), serialized value |
    /// | 1 | whether earlier events were lost |
    fn read(sequence: i64, event: Data<'_>) -> Result<Self, ClientError> {
        let found = type_id(event)?;
        if found != TypeId::IDENTIFIED {
            return Err(DataError::WrongType { expected: TypeId::IDENTIFIED, found }.into());
        }
        let mut input = Input::new(found, event.get(BLOB_HEADER_BYTES..).unwrap_or_default());
        let [_identified] = input.array()?;
        let (_factory, _class) = (input.i32()?, input.i32()?);
        let kind = EntryKinds::from_bits(input.i32()?);
        let key = value(nested(&mut input)?)?;
        let new = value(nested(&mut input)?)?;
        let old_value = value(nested(&mut input)?)?;
        // Members before version 5 do not write this byte.
        let is_after_lost = input.remaining() > 0 && input.array()? != [0];
        Ok(Self { sequence, kind, key, value: new, old_value, is_after_lost })
    }
}

fn nested<'a>(input: &mut Input<'a>) -> Result<Option<Data<'a>>, DataError> {
    let length = input.length(1)?;
    length.map(|bytes| input.take(bytes)).transpose()
}

impl<K: ToBlob + FromBlob, V: ToBlob + FromBlob> Map<K, V> {
    /// Returns the bounds of a partition's journal. The member returns an error if the map has no
    /// journal.
    pub fn journal_bounds(&self, partition: PartitionId) -> Call<JournalBounds> {
        let request = map::event_journal_subscribe::Request { name: &self.name };
        Call::send(&self.client.inner, Target::Partition(partition), &request, |answer| {
            let answer = answer.decode::<map::event_journal_subscribe::Response>()?;
            Ok(JournalBounds { oldest: answer.oldest_sequence, newest: answer.newest_sequence })
        })
    }

    /// Returns between `at_least` and `at_most` events of a partition's journal, from sequence
    /// number `start` on. Waits until there are `at_least` events.
    pub fn journal_read(
        &self,
        partition: PartitionId,
        start: i64,
        at_least: usize,
        at_most: usize,
    ) -> Call<JournalPage<K, V>> {
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
            let events = sequences.into_iter().zip(answer.items);
            let events = events.map(|(sequence, event)| JournalEvent::read(sequence, event));
            Ok(JournalPage { events: events.collect::<Result<_, _>>()?, next_sequence: answer.next_seq })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(hex: &str) -> Result<JournalEvent<i32, i32>, ClientError> {
        let bytes: Vec<u8> =
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
        JournalEvent::read(5, &bytes)
    }

    /// Events as written by a Hazelcast 5.7.0 member.
    const UPDATED: &str = "00000000fffffffe01fffffffc00000084000000040000000c00000000fffffff900000001\
                           0000000c00000000fffffff90000000c0000000c00000000fffffff90000000b00";
    const REMOVED: &str = "00000000fffffffe01fffffffc00000084000000020000000c00000000fffffff900000001\
                           ffffffff0000000c00000000fffffff90000000d00";

    #[test]
    fn events_are_read_as_members_write_them() {
        let updated = read(UPDATED).unwrap();
        assert_eq!((updated.sequence, updated.kind), (5, EntryKinds::UPDATED));
        assert_eq!((updated.key, updated.value, updated.old_value), (Some(1), Some(12), Some(11)));
        let removed = read(REMOVED).unwrap();
        assert_eq!((removed.kind, removed.value, removed.old_value), (EntryKinds::REMOVED, None, Some(13)));
        assert!(!removed.is_after_lost);
    }

    #[test]
    fn a_broken_event_is_an_error() {
        for end in (0..UPDATED.len() - 2).step_by(2) {
            assert!(read(&UPDATED[..end]).is_err());
        }
    }
}
