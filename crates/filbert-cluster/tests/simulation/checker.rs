//! Checks whether the history of a key is linearizable: the search of Wing and Gong (Testing and
//! Verifying Concurrent Objects, 1993) with the memoization of Lowe (Testing for linearizability,
//! 2017), key by key as in Horn and Kroening (P-compositionality, 2015). An operation with an
//! unknown outcome may take effect at any time after it began, or never.
//!
//! An expiry happens once, at its own time: an entry or a lock that was found expired does not come
//! back. The possible time of an expiry is bounded by the duration of the operations, and by the
//! differences between clocks ([`Slack`]).

use std::collections::{BTreeMap, HashSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Get,
    /// A read that keeps no entry alive.
    Look,
    Put(u64),
    /// A put with a time to live.
    PutFor(u64, u64),
    /// A put with a maximum idle time.
    PutIdle(u64, u64),
    PutIfAbsent(u64),
    ReplaceIfSame(u64, u64),
    Remove,
    Lock,
    /// A lock with a lease.
    LockFor(u64),
    Unlock,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    Value(Option<u64>),
    Flag(bool),
    Done,
    Locked,
    NotOwner,
}

#[derive(Clone, Debug)]
pub struct Operation {
    pub client: u32,
    pub key: u32,
    pub kind: Kind,
    pub began: u64,
    /// The end of the operation and its outcome. `None` if the outcome is unknown.
    pub ended: Option<(u64, Outcome)>,
    /// The bounds of the true time at which the operation took effect, in milliseconds.
    pub within_ms: (u64, u64),
}

/// The maximum difference between the time of a group and true time.
#[derive(Clone, Copy, Debug)]
pub struct Slack {
    /// `None`: clocks have jumped, and an expiry may happen at any time.
    pub ms: Option<u64>,
    /// The maximum additional delay of an expiry, in milliseconds.
    pub late_ms: u64,
}

/// The bounds of an end: not before the first time, and before the second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct End(u64, u64);

const NEVER: End = End(u64::MAX, u64::MAX);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Life {
    Endless,
    Ttl(End),
    /// A read with a lost answer may have kept the entry alive as well: there is no upper bound.
    Idle(u64, u64),
}

impl Life {
    fn end(self) -> End {
        match self {
            Life::Endless => NEVER,
            Life::Ttl(end) => end,
            Life::Idle(_, earliest) => End(earliest, u64::MAX),
        }
    }
}

/// An operation, as applied to the register.
#[derive(Clone, Copy)]
struct Moment {
    client: u32,
    within_ms: (u64, u64),
    slack: Slack,
}

impl Moment {
    /// The end of a duration that begins at this operation.
    fn end_after(&self, ms: u64) -> End {
        let Some(slack) = self.slack.ms else { return End(0, u64::MAX) };
        let (from, to) = self.within_ms;
        End((from + ms).saturating_sub(slack), to.saturating_add(ms + slack + self.slack.late_ms))
    }

    /// Whether the operation may be before the end, and whether it may be after the end.
    fn sides(&self, end: End) -> [bool; 2] {
        [self.within_ms.0 < end.1, self.within_ms.1 >= end.0 && end != NEVER]
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Register {
    value: Option<(u64, Life)>,
    lock: Option<(u32, u32, End)>,
}

impl Register {
    /// The possible states at the time of an operation: the value and the lock may have expired or
    /// not.
    fn aged(self, moment: &Moment) -> impl Iterator<Item = Register> {
        let value = self.value.map_or([true, false], |(_, life)| moment.sides(life.end()));
        let lock = self.lock.map_or([true, false], |(_, _, end)| moment.sides(end));
        [(0, 0), (0, 1), (1, 0), (1, 1)]
            .into_iter()
            .filter(move |(v, l)| value[*v] && lock[*l])
            .map(move |(v, l)| Register { value: self.value.filter(|_| v == 0), lock: self.lock.filter(|_| l == 0) })
    }

    fn apply(mut self, moment: &Moment, kind: Kind) -> (Register, Outcome) {
        let client = moment.client;
        let is_foreign = self.lock.is_some_and(|(owner, ..)| owner != client);
        if is_foreign && !matches!(kind, Kind::Get | Kind::Look | Kind::Unlock) {
            return (self, Outcome::Locked);
        }
        let before = Outcome::Value(self.value.map(|(value, _)| value));
        let outcome = match kind {
            Kind::Get => {
                self.touch(moment);
                before
            }
            Kind::Look => before,
            Kind::Put(value) => {
                self.value = Some((value, Life::Endless));
                before
            }
            Kind::PutFor(value, ms) => {
                self.value = Some((value, Life::Ttl(moment.end_after(ms))));
                before
            }
            Kind::PutIdle(value, ms) => {
                self.value = Some((value, Life::Idle(ms, moment.end_after(ms).0)));
                before
            }
            Kind::PutIfAbsent(value) => {
                self.touch(moment);
                self.value = self.value.or(Some((value, Life::Endless)));
                before
            }
            Kind::ReplaceIfSame(expected, value) => {
                let is_same = self.value.is_some_and(|(value, _)| value == expected);
                if is_same {
                    // The durations of the map begin, and this map has none.
                    self.value = Some((value, Life::Endless));
                }
                Outcome::Flag(is_same)
            }
            Kind::Remove => {
                self.value = None;
                before
            }
            Kind::Lock => self.hold(client, NEVER),
            Kind::LockFor(ms) => self.hold(client, moment.end_after(ms)),
            Kind::Unlock => match self.lock {
                Some((owner, holds, end)) if owner == client => {
                    self.lock = (holds > 1).then_some((owner, holds - 1, end));
                    Outcome::Done
                }
                _ => Outcome::NotOwner,
            },
        };
        (self, outcome)
    }

    fn hold(&mut self, client: u32, end: End) -> Outcome {
        self.lock = Some((client, self.lock.map_or(1, |(_, holds, _)| holds + 1), end));
        Outcome::Flag(true)
    }

    fn touch(&mut self, moment: &Moment) {
        if let Some((_, Life::Idle(ms, earliest))) = &mut self.value {
            *earliest = moment.end_after(*ms).0.max(*earliest);
        }
    }
}

/// Checks all keys of a history. Returns the operations of the first key that is not linearizable.
pub fn check(history: &[Operation], slack: Slack) -> Result<(), Vec<Operation>> {
    let mut keys: BTreeMap<u32, Vec<Operation>> = BTreeMap::new();
    for operation in history {
        // A read with a lost answer carries no information.
        if !matches!(operation.kind, Kind::Get | Kind::Look) || operation.ended.is_some() {
            keys.entry(operation.key).or_default().push(operation.clone());
        }
    }
    keys.into_values().try_for_each(|mut operations| {
        operations.sort_by_key(|operation| operation.began);
        if is_linearizable(&operations, slack) { Ok(()) } else { Err(operations) }
    })
}

fn is_linearizable(operations: &[Operation], slack: Slack) -> bool {
    let mut seen = HashSet::new();
    let mut stack = vec![(vec![0u64; operations.len().div_ceil(64)], Register::default())];
    let has = |done: &[u64], at: usize| done[at / 64] >> (at % 64) & 1 == 1;
    while let Some((done, register)) = stack.pop() {
        let open = || operations.iter().enumerate().filter(|(at, _)| !has(&done, *at));
        // The earliest end of the operations that have not taken effect: an operation that began
        // after it cannot be the next one.
        let Some(end) = open().filter_map(|(_, operation)| operation.ended.map(|(end, _)| end)).min() else {
            return true;
        };
        for (at, operation) in open().take_while(|(_, operation)| operation.began < end) {
            let moment = Moment { client: operation.client, within_ms: operation.within_ms, slack };
            for aged in register.aged(&moment) {
                let (after, outcome) = aged.apply(&moment, operation.kind);
                if operation.ended.is_some_and(|(_, reported)| reported != outcome) {
                    continue;
                }
                let mut done = done.clone();
                done[at / 64] |= 1 << (at % 64);
                if seen.insert((done.clone(), after)) {
                    stack.push((done, after));
                }
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXACT: Slack = Slack { ms: Some(0), late_ms: 0 };
    const JUMPED: Slack = Slack { ms: None, late_ms: 0 };

    /// An operation of a client, between two event numbers, which are also the milliseconds.
    fn operation(client: u32, kind: Kind, began: u64, ended: Option<(u64, Outcome)>) -> Operation {
        let within_ms = (began, ended.map_or(u64::MAX, |(end, _)| end));
        Operation { client, key: 1, kind, began, ended, within_ms }
    }

    #[test]
    fn the_checker_knows_good_from_bad() {
        let put = operation(1, Kind::Put(1), 1, Some((4, Outcome::Value(None))));
        let seen = operation(2, Kind::Get, 2, Some((3, Outcome::Value(Some(1)))));
        let unseen = operation(2, Kind::Get, 5, Some((6, Outcome::Value(None))));
        assert!(check(&[put.clone(), seen.clone()], EXACT).is_ok());
        assert!(check(&[put.clone(), unseen.clone()], EXACT).is_err());
        let lost = Operation { ended: None, ..put };
        assert!(check(&[lost.clone(), unseen.clone()], EXACT).is_ok());
        // A value that was seen once does not disappear.
        assert!(check(&[lost, seen, unseen], EXACT).is_err());
        let lock = operation(1, Kind::Lock, 1, Some((2, Outcome::Flag(true))));
        let through = operation(2, Kind::Put(2), 3, Some((4, Outcome::Value(None))));
        assert!(check(&[lock, through], EXACT).is_err());
    }

    #[test]
    fn what_has_expired_does_not_come_back() {
        let put = operation(1, Kind::PutFor(1, 10), 1, Some((2, Outcome::Value(None))));
        let get = |began, value| operation(2, Kind::Get, began, Some((began + 1, Outcome::Value(value))));
        let history = |seen: &[(u64, Option<u64>)]| {
            let gets = seen.iter().map(|(began, value)| get(*began, *value));
            [put.clone()].into_iter().chain(gets).collect::<Vec<_>>()
        };
        let comes_back = history(&[(3, Some(1)), (20, None), (30, Some(1))]);
        assert!(check(&comes_back, EXACT).is_err() && check(&comes_back, JUMPED).is_err());
        let goes = history(&[(3, Some(1)), (20, None), (30, None)]);
        assert!(check(&goes, EXACT).is_ok() && check(&goes, JUMPED).is_ok());
        let (early, late) = (history(&[(3, None)]), history(&[(20, Some(1))]));
        assert!(check(&early, EXACT).is_err() && check(&late, EXACT).is_err());
        assert!(
            check(&early, Slack { ms: Some(8), late_ms: 0 }).is_ok()
                && check(&late, Slack { ms: Some(9), late_ms: 0 }).is_ok()
        );
        // An entry in flight makes an expiry late, and not early.
        let in_flight = Slack { ms: Some(0), late_ms: 9 };
        assert!(check(&early, in_flight).is_err() && check(&late, in_flight).is_ok());
        assert!(check(&early, JUMPED).is_ok() && check(&late, JUMPED).is_ok());
    }

    #[test]
    fn reads_keep_an_entry_alive_and_a_lease_that_ended_frees_a_key() {
        let put = operation(1, Kind::PutIdle(1, 10), 1, Some((2, Outcome::Value(None))));
        let read = operation(2, Kind::Get, 8, Some((9, Outcome::Value(Some(1)))));
        let gone = operation(2, Kind::Get, 13, Some((14, Outcome::Value(None))));
        assert!(check(&[put.clone(), gone.clone()], EXACT).is_ok());
        assert!(check(&[put, read, gone], EXACT).is_err());
        let lock = operation(1, Kind::LockFor(10), 1, Some((2, Outcome::Flag(true))));
        let early = operation(2, Kind::Lock, 5, Some((6, Outcome::Flag(true))));
        let late = operation(2, Kind::Lock, 15, Some((16, Outcome::Flag(true))));
        assert!(check(&[lock.clone(), early], EXACT).is_err());
        assert!(check(&[lock, late], EXACT).is_ok());
    }
}
