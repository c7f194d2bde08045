//! Whether a history of one key is linearizable: the search of Wing and Gong (Testing and Verifying Concurrent Objects, 1993) with
//! the memory of Lowe (Testing for linearizability, 2017), key by key as Horn and Kroening do (P-compositionality, 2015). An operation
//! whose outcome is unknown may take effect at any moment after it began, or never.

use std::collections::{BTreeMap, HashSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Get,
    Put(u64),
    PutIfAbsent(u64),
    ReplaceIfSame(u64, u64),
    Remove,
    Lock,
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
    /// When it ended, and how; `None` if nobody knows.
    pub ended: Option<(u64, Outcome)>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Register {
    value: Option<u64>,
    lock: Option<(u32, u32)>,
}

impl Register {
    fn apply(mut self, client: u32, kind: Kind) -> (Register, Outcome) {
        let is_foreign = self.lock.is_some_and(|(owner, _)| owner != client);
        if is_foreign && !matches!(kind, Kind::Get | Kind::Unlock) {
            return (self, Outcome::Locked);
        }
        let before = Outcome::Value(self.value);
        let outcome = match kind {
            Kind::Get => before,
            Kind::Put(value) => {
                self.value = Some(value);
                before
            }
            Kind::PutIfAbsent(value) => {
                self.value = self.value.or(Some(value));
                before
            }
            Kind::ReplaceIfSame(expected, value) => {
                let is_same = self.value == Some(expected);
                if is_same {
                    self.value = Some(value);
                }
                Outcome::Flag(is_same)
            }
            Kind::Remove => {
                self.value = None;
                before
            }
            Kind::Lock => {
                self.lock = Some((client, self.lock.map_or(1, |(_, holds)| holds + 1)));
                Outcome::Flag(true)
            }
            Kind::Unlock => match self.lock {
                Some((owner, holds)) if owner == client => {
                    self.lock = (holds > 1).then_some((owner, holds - 1));
                    Outcome::Done
                }
                _ => Outcome::NotOwner,
            },
        };
        (self, outcome)
    }
}

/// Checks all keys of a history; the operations of the first that is not linearizable.
pub fn check(history: &[Operation]) -> Result<(), Vec<Operation>> {
    let mut keys: BTreeMap<u32, Vec<Operation>> = BTreeMap::new();
    for operation in history {
        // A read that nobody had an answer of says nothing.
        if operation.kind != Kind::Get || operation.ended.is_some() {
            keys.entry(operation.key).or_default().push(operation.clone());
        }
    }
    keys.into_values().try_for_each(|mut operations| {
        operations.sort_by_key(|operation| operation.began);
        if is_linearizable(&operations) { Ok(()) } else { Err(operations) }
    })
}

fn is_linearizable(operations: &[Operation]) -> bool {
    let mut seen = HashSet::new();
    let mut stack = vec![(vec![0u64; operations.len().div_ceil(64)], Register::default())];
    let has = |done: &[u64], at: usize| done[at / 64] >> (at % 64) & 1 == 1;
    while let Some((done, register)) = stack.pop() {
        let open = || operations.iter().enumerate().filter(|(at, _)| !has(&done, *at));
        // The end of the first to end among those that have not taken effect: what began after it cannot be next.
        let Some(end) = open().filter_map(|(_, operation)| operation.ended.map(|(end, _)| end)).min() else {
            return true;
        };
        for (at, operation) in open().take_while(|(_, operation)| operation.began < end) {
            let (after, outcome) = register.apply(operation.client, operation.kind);
            if operation.ended.is_some_and(|(_, told)| told != outcome) {
                continue;
            }
            let mut done = done.clone();
            done[at / 64] |= 1 << (at % 64);
            if seen.insert((done.clone(), after)) {
                stack.push((done, after));
            }
        }
    }
    false
}

#[test]
fn the_checker_knows_good_from_bad() {
    let operation = |client, kind, began, ended| Operation { client, key: 1, kind, began, ended };
    let put = operation(1, Kind::Put(1), 1, Some((4, Outcome::Value(None))));
    let seen = operation(2, Kind::Get, 2, Some((3, Outcome::Value(Some(1)))));
    let unseen = operation(2, Kind::Get, 5, Some((6, Outcome::Value(None))));
    assert!(check(&[put.clone(), seen.clone()]).is_ok());
    assert!(check(&[put.clone(), unseen.clone()]).is_err());
    let lost = Operation { ended: None, ..put };
    assert!(check(&[lost.clone(), unseen.clone()]).is_ok());
    // What was seen once does not go away again.
    assert!(check(&[lost, seen, unseen]).is_err());
    let lock = operation(1, Kind::Lock, 1, Some((2, Outcome::Flag(true))));
    let through = operation(2, Kind::Put(2), 3, Some((4, Outcome::Value(None))));
    assert!(check(&[lock, through]).is_err());
}
