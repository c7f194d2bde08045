//! The election of the one member that founds the cluster: Paxos, with the founder as the chosen
//! value.
//!
//! A candidate asks all members to promise that they follow no lower number from now on, and to
//! return the founder that they have accepted. If a majority promises, the candidate asks the
//! members to accept a founder: itself, unless so many of them have accepted another founder that a
//! majority may have chosen it. The founder that a majority accepts founds the cluster. Two
//! majorities have a member in common, so there is one founder, however many candidates there are
//! and whichever messages are late. A candidate that dies blocks no other one, because the next
//! candidate has a higher number.
//!
//! Promises and acceptances are kept in memory only: a member that restarts has no state.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The number of a candidate's attempt. A higher number takes precedence.
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

/// A founder, and the number with which it was accepted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Accepted {
    pub(crate) number: Number,
    pub(crate) founder: Founder,
}

/// The answer of a member to a request for its promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Promise {
    /// The promise is given. Carries the founder that was accepted before.
    Given(Option<Accepted>),
    /// The promise is refused: a candidate with this number has it.
    Refused(Number),
}

/// The promise and the acceptance of a member.
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

    /// Handles a request to promise that no lower number is followed.
    pub(crate) fn promise(&mut self, number: Number) -> Promise {
        if number < self.promised {
            return Promise::Refused(self.promised);
        }
        self.promised = number;
        Promise::Given(self.accepted.clone())
    }

    /// Handles a request to accept a founder. Returns whether it is accepted.
    pub(crate) fn accept(&mut self, proposal: Accepted) -> bool {
        let keeps_promise = proposal.number >= self.promised;
        if keeps_promise {
            self.promised = proposal.number;
            self.accepted = Some(proposal);
        }
        keeps_promise
    }

    /// Forgets an accepted founder that is gone for good: it will found no cluster.
    pub(crate) fn forget(&mut self, founder: Uuid) {
        self.accepted.take_if(|accepted| accepted.founder.uuid == founder);
    }
}

/// Returns the founder that a candidate may propose, from the acceptances of the members that have
/// promised. `needed` is the size of a majority of all members.
pub(crate) fn founder_of(own: Founder, promised: &[Option<Accepted>], needed: usize) -> Founder {
    let is_free = |accepted: &&Option<Accepted>| accepted.as_ref().is_none_or(|it| it.founder.uuid == own.uuid);
    if promised.iter().filter(is_free).count() >= needed {
        // A majority can neither have accepted another founder, nor accept one later with a lower
        // number.
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
    fn the_founder_that_a_majority_may_have_accepted_is_proposed() {
        let check = |promised: &[Option<Accepted>], needed, expected| {
            assert_eq!(founder_of(founder(1), promised, needed), founder(expected));
        };
        check(&[None, None], 2, 1);
        check(&[None, Some(accepted(1, 1))], 2, 1);
        check(&[None, Some(accepted(1, 2))], 2, 2);
        // Three of five members have not accepted founder 2, and will not.
        check(&[None, None, None, Some(accepted(1, 2))], 3, 1);
        check(&[None, Some(accepted(1, 3)), Some(accepted(2, 2))], 2, 2);
    }

    /// Candidates with messages that arrive in any order, or never: there is at most one founder.
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

    /// Returns the founders that candidates have seen accepted by a majority.
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
        // The attempt, the promises, the number of awaited promises, and the number of acceptances.
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
                Message::Promise(to, number) => {
                    let candidate = number.candidate.as_u128() as usize - 1;
                    let Promise::Given(accepted) = choices[to].promise(number) else { continue };
                    let (attempt, promised, awaited, _) = &mut candidates[candidate];
                    if *attempt != number.attempt {
                        continue;
                    }
                    promised.push(accepted);
                    if promised.len() == *awaited {
                        let founder = founder_of(founder(candidate as u128 + 1), promised, needed);
                        let acceptance = Accepted { number, founder };
                        messages.extend((0..members).map(|to| Message::Accept(to, acceptance.clone())));
                    }
                }
                Message::Accept(to, proposal) => {
                    let candidate = proposal.number.candidate.as_u128() as usize - 1;
                    if choices[to].accept(proposal.clone()) && candidates[candidate].0 == proposal.number.attempt {
                        candidates[candidate].3 += 1;
                        if candidates[candidate].3 == needed {
                            chosen.push(proposal.founder);
                        }
                    }
                }
            }
        }
        chosen.sort();
        chosen
    }
}
