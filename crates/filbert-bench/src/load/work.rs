//! The data that all connections of a run share: the number of each call, its bytes, and its
//! expected reply.

use filbert_wire::Message;
use filbert_wire::table::map;

use super::Limit;
use crate::distribution::{KeyChooser, Mix, Operation};
use crate::error::{BenchError, Result};
use crate::requests::Requests;
use crate::session::{ERROR_ID, server_error};

/// Read-only description of a phase. Connection `lane` makes the calls `first + lane`, `first +
/// lane + lanes`, ... Together the connections make every call exactly once.
#[derive(Debug)]
pub(super) struct Work<'a> {
    pub(super) requests: &'a Requests,
    pub(super) chooser: &'a KeyChooser,
    pub(super) mix: &'a Mix,
    pub(super) target: &'a str,
    pub(super) seed: u64,
    pub(super) check_every: u64,
    pub(super) depth: usize,
    pub(super) iteration: Option<u64>,
    pub(super) lanes: u64,
    pub(super) first: u64,
}

impl Work<'_> {
    /// The number of the `index`-th call of a connection.
    #[inline]
    pub(super) fn number(&self, lane: u64, index: u64) -> u64 {
        self.first + lane + index * self.lanes
    }

    /// The number of calls of a connection.
    pub(super) fn share(&self, lane: u64, limit: Limit) -> u64 {
        match limit {
            Limit::Time(_) => u64::MAX,
            Limit::Operations(total) => total.saturating_sub(lane).div_ceil(self.lanes),
        }
    }

    /// Appends call `number`.
    #[inline]
    pub(super) fn encode(&self, number: u64, correlation: i64, out: &mut Vec<u8>) {
        let operation = self.mix.operation(self.seed, number);
        self.requests.encode(operation, self.chooser.key(number), correlation, out);
    }

    /// Checks the reply to call `number`. An error reply ends the run, and every n-th value is
    /// compared. Returns whether the value was compared.
    #[inline]
    pub(super) fn check(&self, number: u64, message: &Message<'_>) -> Result<bool> {
        if message.id() == ERROR_ID {
            return Err(server_error(self.target, message));
        }
        if self.check_every == 0 || !number.is_multiple_of(self.check_every) {
            return Ok(false);
        }
        let response = match self.mix.operation(self.seed, number) {
            Operation::Set => return Ok(false),
            Operation::Get => {
                message.decode::<map::get::Response<'_>>().map_err(BenchError::wire(self.target))?.response
            }
            Operation::Put => {
                message.decode::<map::put::Response<'_>>().map_err(BenchError::wire(self.target))?.response
            }
        };
        let key = self.chooser.key(number);
        let expected = self.requests.values().of(key);
        match response {
            Some(value) if value == expected => Ok(true),
            other => Err(BenchError::Wrong {
                target: self.target.to_owned(),
                what: match other {
                    None => format!("key {key} has no value, expected {} bytes", expected.len()),
                    Some(value) => {
                        format!(
                            "key {key} has another value of {} bytes, expected {} bytes",
                            value.len(),
                            expected.len()
                        )
                    }
                },
            }),
        }
    }
}
