//! The choice of the one member that founds the cluster: Paxos, with the founder as the value that is chosen.
//!
//! A candidate asks all members to promise that they follow none with a lesser number from now on, and for the founder that they have
//! accepted. If most promise, it asks them to accept a founder: itself, unless so many of them have accepted another one that it could be the
//! choice of most. The one that most accept founds the cluster. Two majorities have a member in common, so that there is one founder, however
//! many candidates there are and whichever messages are late. A candidate that dies is in nobody's way, for the next one has a greater number.
//!
//! What is promised and accepted is in memory: a member that restarts holds no state.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The number of a candidate's attempt. The greater one counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Number {
    pub(crate) attempt: u64,
    #[serde(with = "crate::text")]
    pub(crate) candidate: Uuid,
}

/// A member that is to found the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Founder {
    #[serde(with = "crate::text")]
    pub(crate) uuid: Uuid,
    pub(crate) address: String,
}

/// A founder, and the number under which it was accepted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Accepted {
    pub(crate) number: Number,
    pub(crate) founder: Founder,
}

/// What a member says to a candidate that asks for its promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Promise {
    /// It is given; and what was accepted before.
    Given(Option<Accepted>),
    /// A candidate with this number has it.
    Refused(Number),
}

/// What a member has promised and accepted.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    promised: Number,
    accepted: Option<Accepted>,
}

impl Choice {
    /// The founder that was accepted last.
    pub(crate) fn founder(&self) -> Option<&Founder> {
        self.accepted.as_ref().map(|accepted| &accepted.founder)
    }

    /// Asks for the promise to follow no lesser number.
    pub(crate) fn promise(&mut self, number: Number) -> Promise {
        if number < self.promised {
            return Promise::Refused(self.promised);
        }
        self.promised = number;
        Promise::Given(self.accepted.clone())
    }

    /// Asks for this founder to be accepted; whether it is.
    pub(crate) fn accept(&mut self, asked: Accepted) -> bool {
        let keeps_promise = asked.number >= self.promised;
        if keeps_promise {
            self.promised = asked.number;
            self.accepted = Some(asked);
        }
        keeps_promise
    }

    /// A founder that was accepted is gone for good: it founds nothing any more.
    pub(crate) fn forget(&mut self, founder: Uuid) {
        self.accepted.take_if(|accepted| accepted.founder.uuid == founder);
    }
}

/// The founder that a candidate may ask for, by what those that have promised had accepted; `needed` are most of all members.
pub(crate) fn founder_of(own: Founder, promised: &[Option<Accepted>], needed: usize) -> Founder {
    let is_free = |accepted: &&Option<Accepted>| accepted.as_ref().is_none_or(|it| it.founder.uuid == own.uuid);
    if promised.iter().filter(is_free).count() >= needed {
        // No other one can have been accepted by most, or be from now on with a lesser number.
        return own;
    }
    promised.iter().flatten().max().map_or(own, |accepted| accepted.founder.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(attempt: u64, candidate: u128) -> Number {
        Number { attempt, candidate: Uuid::from_u128(candidate) }
    }

    fn founder(n: u128) -> Founder {
        Founder { uuid: Uuid::from_u128(n), address: format!("10.0.0.{n}:5701") }
    }

    fn accepted(attempt: u64, n: u128) -> Accepted {
        Accepted { number: number(attempt, n), founder: founder(n) }
    }

    #[test]
    fn a_promise_is_kept_against_lesser_numbers() {
        let mut choice = Choice::default();
        assert_eq!(choice.promise(number(1, 2)), Promise::Given(None));
        assert_eq!(choice.promise(number(1, 1)), Promise::Refused(number(1, 2)));
        assert!(!choice.accept(accepted(1, 1)));
        assert!(choice.accept(accepted(1, 2)));
        assert_eq!(choice.promise(number(2, 1)), Promise::Given(Some(accepted(1, 2))));
        assert!(!choice.accept(accepted(1, 2)), "it is late");
        assert_eq!(choice.founder(), Some(&founder(2)));
        choice.forget(founder(1).uuid);
        assert_eq!(choice.founder(), Some(&founder(2)));
        choice.forget(founder(2).uuid);
        assert_eq!(choice.founder(), None);
    }

    #[test]
    fn whom_most_may_have_accepted_is_asked_for() {
        let check = |promised: &[Option<Accepted>], needed, expected| {
            assert_eq!(founder_of(founder(1), promised, needed), founder(expected));
        };
        check(&[None, None], 2, 1);
        check(&[None, Some(accepted(1, 1))], 2, 1);
        check(&[None, Some(accepted(1, 2))], 2, 2);
        // Three of five have not accepted the second, and will not.
        check(&[None, None, None, Some(accepted(1, 2))], 3, 1);
        check(&[None, Some(accepted(1, 3)), Some(accepted(2, 2))], 2, 2);
    }

    /// Candidates whose messages arrive in any order, or never: whatever happens, there is one founder.
    #[test]
    fn there_is_one_founder_whichever_messages_are_late_or_lost() {
        for seed in 1..=20_000_u64 {
            let mut chosen = run(seed, 3 + (seed % 3) as usize);
            chosen.dedup();
            assert!(chosen.len() <= 1, "seed {seed}: {chosen:?}");
        }
    }

    enum Message {
        Promise(usize, Number),
        Accept(usize, Accepted),
    }

    /// The founders that candidates have seen accepted by most.
    fn run(seed: u64, members: usize) -> Vec<Founder> {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut next = |below: usize| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (random >> 33) as usize % below
        };
        let needed = members / 2 + 1;
        let mut choices: Vec<Choice> = (0..members).map(|_| Choice::default()).collect();
        // Attempt, promises, promises that are awaited, and members that have accepted.
        let mut candidates = vec![(0_u64, Vec::new(), 0_usize, 0_usize); members];
        let (mut messages, mut chosen) = (Vec::new(), Vec::new());
        for _ in 0..60 {
            if messages.is_empty() || next(8) == 0 {
                let candidate = next(members);
                let attempt = candidates[candidate].0 + 1 + next(3) as u64;
                candidates[candidate] = (attempt, Vec::new(), needed + next(members - needed + 1), 0);
                let number = number(attempt, candidate as u128 + 1);
                messages.extend((0..members).map(|to| Message::Promise(to, number)));
                continue;
            }
            let message = messages.swap_remove(next(messages.len()));
            if next(10) == 0 {
                continue;
            }
            match message {
                Message::Promise(to, asked) => {
                    let candidate = asked.candidate.as_u128() as usize - 1;
                    let Promise::Given(accepted) = choices[to].promise(asked) else { continue };
                    let (attempt, promised, awaited, _) = &mut candidates[candidate];
                    if *attempt != asked.attempt {
                        continue;
                    }
                    promised.push(accepted);
                    if promised.len() == *awaited {
                        let founder = founder_of(founder(candidate as u128 + 1), promised, needed);
                        let asks = Accepted { number: asked, founder };
                        messages.extend((0..members).map(|to| Message::Accept(to, asks.clone())));
                    }
                }
                Message::Accept(to, asked) => {
                    let candidate = asked.number.candidate.as_u128() as usize - 1;
                    if choices[to].accept(asked.clone()) && candidates[candidate].0 == asked.number.attempt {
                        candidates[candidate].3 += 1;
                        if candidates[candidate].3 == needed {
                            chosen.push(asked.founder);
                        }
                    }
                }
            }
        }
        chosen.sort();
        chosen
    }
}
