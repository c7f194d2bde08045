//! Sequences of identity columns.

use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};

use filbert_data::FieldType;
use filbert_dialect::Counting;
use filbert_grid::query::{SqlError, SqlErrorCode};
use filbert_grid::{Cluster, GridError};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A sequence. It counts from its first value in steps to its limit. If it cycles, it continues at
/// the opposite limit.
#[derive(Debug)]
pub(crate) struct Sequence {
    start: i64,
    step: i64,
    least: i64,
    most: i64,
    cycles: bool,
    /// Whether the column is `serial`.
    serial: bool,
    /// The id of the sequence among the members of a cluster.
    id: Uuid,
    numbers: Numbers,
}

/// The source of the numbers of values.
#[derive(Debug)]
enum Numbers {
    /// This member alone counts the numbers taken.
    Here(AtomicU64),
    /// The members of a cluster share one counter, and take numbers in blocks.
    Shared { cluster: Weak<dyn Cluster>, block: Mutex<Block> },
}

/// The numbers that this member has taken: the next one, the end, and the size of the next block.
#[derive(Debug)]
struct Block {
    next: u64,
    end: u64,
    size: u64,
}

/// The maximum number of values that a member takes at a time. The unused ones are lost when it
/// ends.
const BLOCK_MAX: u64 = 256;

/// The definition of a sequence, without its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Written {
    start: i64,
    step: i64,
    least: i64,
    most: i64,
    cycles: bool,
    #[serde(default)]
    serial: bool,
    id: String,
}

/// The definition of a sequence for system relations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SequenceFacts {
    pub(crate) start: i64,
    pub(crate) step: i64,
    pub(crate) least: i64,
    pub(crate) most: i64,
    pub(crate) cycles: bool,
    /// Whether the column is `serial`: it has a default, and no identity.
    pub(crate) serial: bool,
}

impl Sequence {
    /// The sequence of a column, as declared.
    ///
    /// # Errors
    /// The declaration is inconsistent, or does not fit the type.
    pub(crate) fn new(counting: &Counting, field_type: &FieldType) -> Result<Sequence, SqlError> {
        let (least_of_type, most_of_type, type_name) = match field_type {
            FieldType::SmallInt => (i64::from(i16::MIN), i64::from(i16::MAX), "smallint"),
            FieldType::Integer => (i64::from(i32::MIN), i64::from(i32::MAX), "integer"),
            FieldType::BigInt => (i64::MIN, i64::MAX, "bigint"),
            _ => return Err(wrong("identity column type must be smallint, integer, or bigint".to_owned())),
        };
        let step = counting.step;
        if step == 0 {
            return Err(wrong("INCREMENT must not be zero".to_owned()));
        }
        let least = counting.least.unwrap_or(if step > 0 { 1 } else { least_of_type });
        let most = counting.most.unwrap_or(if step > 0 { most_of_type } else { -1 });
        let start = counting.start.unwrap_or(if step > 0 { least } else { most });
        for (name, bound) in [("MINVALUE", least), ("MAXVALUE", most)] {
            if bound < least_of_type || bound > most_of_type {
                return Err(wrong(format!("{name} ({bound}) is out of range for sequence data type {type_name}")));
            }
        }
        if least >= most {
            return Err(wrong(format!("MINVALUE ({least}) must be less than MAXVALUE ({most})")));
        }
        if start < least {
            return Err(wrong(format!("START value ({start}) cannot be less than MINVALUE ({least})")));
        }
        if start > most {
            return Err(wrong(format!("START value ({start}) cannot be greater than MAXVALUE ({most})")));
        }
        let numbers = Numbers::Here(AtomicU64::new(0));
        let (cycles, serial) = (counting.cycles, counting.serial);
        Ok(Sequence { start, step, least, most, cycles, serial, id: Uuid::new_v4(), numbers })
    }

    /// The next value. Values taken by a failed statement are lost.
    ///
    /// # Errors
    /// The sequence has no further value.
    pub(crate) fn next(&self) -> Result<i64, SqlError> {
        let number = match &self.numbers {
            Numbers::Here(taken) => taken.fetch_add(1, Ordering::Relaxed),
            Numbers::Shared { cluster, block } => self.take(cluster, &mut block.lock())?,
        };
        match self.value(number) {
            Some(value) => Ok(value),
            None => {
                if let Numbers::Here(taken) = &self.numbers {
                    // Values beyond the limit do not advance the counter.
                    taken.fetch_sub(1, Ordering::Relaxed);
                }
                let (which, bound) = if self.step > 0 { ("maximum", self.most) } else { ("minimum", self.least) };
                let text = format!("nextval: reached {which} value of sequence ({bound})");
                Err(SqlError::new(SqlErrorCode::DataException, text).with_sqlstate("2200H"))
            }
        }
    }

    /// The next number of the shared counter.
    fn take(&self, cluster: &Weak<dyn Cluster>, block: &mut Block) -> Result<u64, SqlError> {
        if block.next == block.end {
            let cluster = cluster.upgrade().ok_or(GridError::NotActive)?;
            block.next = cluster.take_numbers(&self.shared_name(), block.size)?;
            block.end = block.next.saturating_add(block.size);
            // The block size doubles, for members that need many numbers.
            block.size = (block.size * 2).min(BLOCK_MAX);
        }
        block.next += 1;
        Ok(block.next - 1)
    }

    /// The name of the shared counter in the cluster.
    pub(super) fn shared_name(&self) -> String {
        format!("sequence/{}", self.id)
    }

    /// The id of the sequence among the members of a cluster.
    pub(crate) fn id(&self) -> Uuid {
        self.id
    }

    pub(super) fn written(&self) -> Written {
        let Sequence { start, step, least, most, cycles, serial, id, .. } = self;
        let (start, step, least, most) = (*start, *step, *least, *most);
        Written { start, step, least, most, cycles: *cycles, serial: *serial, id: id.to_string() }
    }

    /// Creates a sequence that the members of a cluster share.
    pub(super) fn shared(written: &Written, cluster: &Weak<dyn Cluster>) -> Option<Sequence> {
        let Written { start, step, least, most, cycles, serial, id } = written;
        let (start, step, least, most, cycles, serial) = (*start, *step, *least, *most, *cycles, *serial);
        let block = Mutex::new(Block { next: 0, end: 0, size: 1 });
        let numbers = Numbers::Shared { cluster: cluster.clone(), block };
        Some(Sequence { start, step, least, most, cycles, serial, id: id.parse().ok()?, numbers })
    }

    /// A new sequence with the same definition, from its first value.
    pub(crate) fn anew(&self) -> Sequence {
        let Sequence { start, step, least, most, cycles, serial, .. } = *self;
        let (id, numbers) = (Uuid::new_v4(), Numbers::Here(AtomicU64::new(0)));
        Sequence { start, step, least, most, cycles, serial, id, numbers }
    }

    /// Its definition.
    pub(crate) fn facts(&self) -> SequenceFacts {
        let Sequence { start, step, least, most, cycles, serial, .. } = *self;
        SequenceFacts { start, step, least, most, cycles, serial }
    }

    /// Restarts the sequence. Requires [`Sequence::check_restart`].
    pub(crate) fn restart(&self) {
        if let Numbers::Here(taken) = &self.numbers {
            taken.store(0, Ordering::Relaxed);
        }
    }

    /// Checks whether the sequence can restart.
    ///
    /// # Errors
    /// Other members have taken numbers of it already.
    pub(crate) fn check_restart(&self) -> Result<(), SqlError> {
        match &self.numbers {
            Numbers::Here(_) => Ok(()),
            Numbers::Shared { .. } => {
                let text = "RESTART IDENTITY is not served by members of a cluster yet: each of them has taken numbers";
                Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("0A000"))
            }
        }
    }

    /// The value with this number, from 0.
    fn value(&self, number: u64) -> Option<i64> {
        let (start, step, least, most) =
            (i128::from(self.start), i128::from(self.step), i128::from(self.least), i128::from(self.most));
        let number = i128::from(number);
        let fitting = |from: i128| if step > 0 { (most - from) / step + 1 } else { (from - least) / -step + 1 };
        let first = fitting(start);
        let value = if number < first {
            start + number * step
        } else if self.cycles {
            let begin = if step > 0 { least } else { most };
            begin + (number - first) % fitting(begin) * step
        } else {
            return None;
        };
        i64::try_from(value).ok()
    }
}

fn wrong(text: String) -> SqlError {
    SqlError::new(SqlErrorCode::Parsing, text).with_sqlstate("22023")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Counting =
        Counting { always: true, start: None, step: 1, least: None, most: None, cycles: false, serial: false };

    fn values(counting: &Counting, count: usize) -> Vec<Result<i64, &'static str>> {
        let sequence = Sequence::new(counting, &FieldType::SmallInt).unwrap();
        (0..count).map(|_| sequence.next().map_err(|error| error.sqlstate())).collect()
    }

    #[test]
    fn values_come_by_steps_to_the_end_and_from_the_beginning_in_a_cycle() {
        assert_eq!(values(&PLAIN, 2), [Ok(1), Ok(2)]);
        let bounded = Counting { start: Some(5), step: 3, least: Some(2), most: Some(9), ..PLAIN };
        assert_eq!(values(&bounded, 4), [Ok(5), Ok(8), Err("2200H"), Err("2200H")]);
        let cycle = Counting { cycles: true, ..bounded };
        assert_eq!(values(&cycle, 7), [5, 8, 2, 5, 8, 2, 5].map(Ok));
        let down = Counting { step: -2, least: Some(-4), cycles: true, ..PLAIN };
        assert_eq!(values(&down, 5), [-1, -3, -1, -3, -1].map(Ok));
        let last = Counting { start: Some(i64::from(i16::MAX)), ..PLAIN };
        assert_eq!(values(&last, 2), [Ok(i64::from(i16::MAX)), Err("2200H")]);
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        for counting in [
            Counting { step: 0, ..PLAIN },
            Counting { most: Some(40_000), ..PLAIN },
            Counting { least: Some(5), most: Some(5), ..PLAIN },
            Counting { start: Some(0), ..PLAIN },
            Counting { start: Some(10), most: Some(9), ..PLAIN },
        ] {
            let error = Sequence::new(&counting, &FieldType::SmallInt).unwrap_err();
            assert_eq!(error.sqlstate(), "22023", "{counting:?}");
        }
        assert!(Sequence::new(&PLAIN, &FieldType::Varchar).is_err());
    }
}
