//! Batches in sequence: an origin that retries a batch receives the first answer, and no batch is
//! applied twice.
//!
//! Only the log changes the table, and the table is part of every snapshot. Its limits decide
//! whether a batch is applied, so all members have the same limits. The id of an origin is its
//! position in the log: a forgotten origin is never mistaken for a new one.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use filbert_store::CodecError;

use crate::wire::{Reader, append_bytes};
use crate::{OriginId, OriginRefusal};

/// The limits of the state that is kept for origins. The same on all members of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginLimits {
    /// The maximum number of origins. Beyond it, the origin that has been unused for longest is
    /// forgotten. Default 1,024: members and their connections.
    pub origins_max: usize,
    /// The maximum number of answers kept for each origin. Default 64: the batches that a member
    /// has in flight.
    pub answers_max: usize,
    /// The maximum size in bytes of the answers kept for each origin, without the latest answer.
    /// Default 256 KiB.
    pub answer_bytes_max: usize,
}

impl Default for OriginLimits {
    fn default() -> Self {
        OriginLimits { origins_max: 1_024, answers_max: 64, answer_bytes_max: 256 * 1_024 }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Origin {
    /// The number of the latest batch. Numbers begin at 1.
    last: u64,
    /// The index of the entry that used the origin last.
    used: u64,
    answers: VecDeque<(u64, Bytes)>,
    bytes: usize,
}

/// The decision about a batch.
pub(crate) enum SequenceCheck {
    /// It is the next batch: apply it.
    Next,
    /// It was applied before, with this answer.
    Repeated(Bytes),
    /// It is refused: do not apply it.
    Refused(OriginRefusal),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Origins {
    known: BTreeMap<OriginId, Origin>,
}

impl Origins {
    pub(crate) fn open(&mut self, id: OriginId, index: u64, limits: &OriginLimits) {
        while self.known.len() >= limits.origins_max.max(1) {
            let oldest = self.known.iter().min_by_key(|(id, origin)| (origin.used, **id)).map(|(id, _)| *id);
            let Some(oldest) = oldest else { break };
            self.known.remove(&oldest);
        }
        self.known.insert(id, Origin { used: index, ..Origin::default() });
    }

    pub(crate) fn check_sequence(&mut self, id: OriginId, sequence: u64, unanswered: u64, index: u64) -> SequenceCheck {
        let Some(origin) = self.known.get_mut(&id) else {
            return SequenceCheck::Refused(OriginRefusal::NotKnown { origin: id.0 });
        };
        origin.used = index;
        while let Some((first, answer)) = origin.answers.front().filter(|(first, _)| *first < unanswered) {
            debug_assert!(*first < unanswered);
            origin.bytes -= answer.len();
            origin.answers.pop_front();
        }
        if sequence > origin.last + 1 {
            return SequenceCheck::Refused(OriginRefusal::Gap { found: sequence, expected: origin.last + 1 });
        }
        if sequence == origin.last + 1 {
            origin.last = sequence;
            return SequenceCheck::Next;
        }
        match origin.answers.iter().find(|(kept, _)| *kept == sequence) {
            Some((_, answer)) => SequenceCheck::Repeated(answer.clone()),
            None => SequenceCheck::Refused(OriginRefusal::Forgotten { sequence }),
        }
    }

    /// Keeps the answer to a batch that was applied.
    pub(crate) fn answered(&mut self, id: OriginId, sequence: u64, answer: Bytes, limits: &OriginLimits) {
        let Some(origin) = self.known.get_mut(&id) else { return };
        origin.bytes += answer.len();
        origin.answers.push_back((sequence, answer));
        while origin.answers.len() > 1
            && (origin.answers.len() > limits.answers_max || origin.bytes > limits.answer_bytes_max)
            && let Some((_, oldest)) = origin.answers.pop_front()
        {
            origin.bytes -= oldest.len();
        }
    }

    /// Encodes the number of origins, 4 bytes. For each origin: id, latest batch, latest use, 8
    /// bytes each; the number of answers, 4 bytes. For each answer: the sequence, 8 bytes, and the
    /// bytes with their length.
    pub(crate) fn append(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.known.len() as u32).to_le_bytes());
        for (id, origin) in &self.known {
            [id.0, origin.last, origin.used].iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
            out.extend_from_slice(&(origin.answers.len() as u32).to_le_bytes());
            for (sequence, answer) in &origin.answers {
                out.extend_from_slice(&sequence.to_le_bytes());
                append_bytes(out, answer);
            }
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Origins, CodecError> {
        const WHAT: &str = "an origin";
        let mut known = BTreeMap::new();
        for _ in 0..reader.u32("the number of origins")? {
            let id = OriginId(reader.u64(WHAT)?);
            let mut origin = Origin { last: reader.u64(WHAT)?, used: reader.u64(WHAT)?, ..Origin::default() };
            for _ in 0..reader.u32(WHAT)? {
                let sequence = reader.u64(WHAT)?;
                let answer = reader.shared(WHAT)?;
                origin.bytes += answer.len();
                origin.answers.push_back((sequence, answer));
            }
            known.insert(id, origin);
        }
        Ok(Origins { known })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: OriginLimits = OriginLimits { origins_max: 2, answers_max: 2, answer_bytes_max: 100 };

    #[test]
    fn a_batch_is_applied_in_its_turn_and_answered_again_within_limits() {
        let mut origins = Origins::default();
        let id = OriginId(1);
        assert!(matches!(
            origins.check_sequence(id, 1, 1, 1),
            SequenceCheck::Refused(OriginRefusal::NotKnown { origin: 1 })
        ));
        origins.open(id, 1, &LIMITS);
        assert!(matches!(
            origins.check_sequence(id, 2, 1, 2),
            SequenceCheck::Refused(OriginRefusal::Gap { found: 2, expected: 1 })
        ));
        for sequence in 1..=3 {
            assert!(matches!(origins.check_sequence(id, sequence, 1, 3), SequenceCheck::Next));
            origins.answered(id, sequence, Bytes::from(vec![sequence as u8]), &LIMITS);
        }
        assert!(matches!(origins.check_sequence(id, 3, 1, 4), SequenceCheck::Repeated(answer) if answer[..] == [3]));
        assert!(matches!(
            origins.check_sequence(id, 1, 1, 4),
            SequenceCheck::Refused(OriginRefusal::Forgotten { sequence: 1 })
        ));
        let mut bytes = Vec::new();
        origins.append(&mut bytes);
        assert_eq!(Origins::read(&mut Reader::new(&bytes.into())).unwrap(), origins);
        // Answers that the origin has received are not kept.
        assert!(matches!(
            origins.check_sequence(id, 2, 3, 5),
            SequenceCheck::Refused(OriginRefusal::Forgotten { sequence: 2 })
        ));
        origins.open(OriginId(8), 8, &LIMITS);
        origins.open(OriginId(9), 9, &LIMITS);
        assert!(matches!(origins.check_sequence(id, 4, 4, 10), SequenceCheck::Refused(OriginRefusal::NotKnown { .. })));
    }
}
