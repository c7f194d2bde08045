//! Limits the number of wrong guesses of a secret: a password, or the key that cancels a statement.
//!
//! Each address has a number of free wrong guesses for each user, and a larger number for all users
//! together. Afterwards it has one more guess after each pause. Right guesses cost nothing. An IPv6
//! address counts as its 64-bit network, because one machine may use all addresses of that network.
//!
//! A guess in progress counts as wrong until it proves right, so simultaneous guesses have no
//! advantage.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The allowance of an address for all users together, as a multiple of its allowance for one user.
const USERS: u32 = 10;

/// The limits of wrong guesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuessLimits {
    /// Free wrong guesses of one address for one user. Default 10: more than a person needs, and a
    /// pool of connections with an old password gets the error for a wrong password ten times.
    pub free: u32,
    /// The time after which one more guess is allowed. Default 1 s: trying the thousand most common
    /// passwords takes a quarter of an hour, and trying enough passwords to find a good one takes
    /// forever. A rejected client waits no longer than this.
    pub pause: Duration,
    /// The maximum number of remembered sources: addresses, and pairs of address and user. Default
    /// 65,536, which take some megabytes. At the limit, the source with the shortest remaining wait
    /// is forgotten first.
    pub remembered_max: usize,
}

impl Default for GuessLimits {
    fn default() -> Self {
        GuessLimits { free: 10, pause: Duration::from_secs(1), remembered_max: 65_536 }
    }
}

/// Too many guesses were wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many failed attempts from this address, try again in {} s", .wait.as_secs().max(1))]
pub struct TooManyGuesses {
    /// The time until the next guess is allowed.
    pub wait: Duration,
}

/// The source of guesses: an address with one user, or an address with all users together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Guesser {
    address: IpAddr,
    /// The hash of the user's name, because names may be long. `None` = all users together.
    user: Option<u64>,
}

/// Counts wrong guesses.
#[derive(Debug)]
pub struct Guesses {
    limits: GuessLimits,
    hasher: RandomState,
    /// For each source, the time at which all of its wrong guesses are forgotten.
    until: Mutex<HashMap<Guesser, Instant>>,
}

/// A guess in progress. It counts as wrong unless [`Guess::right`] is called.
#[derive(Debug)]
#[must_use = "dropping it says that the guess was wrong"]
pub struct Guess<'g> {
    guesses: &'g Guesses,
    guessers: [Guesser; 2],
}

impl Guesses {
    /// Creates an empty counter.
    pub fn new(limits: GuessLimits) -> Guesses {
        Guesses { limits, hasher: RandomState::new(), until: Mutex::default() }
    }

    /// Begins a guess.
    ///
    /// # Errors
    /// Too many guesses were wrong: the caller must not check this guess.
    pub fn begin(&self, address: IpAddr, user: &str) -> Result<Guess<'_>, TooManyGuesses> {
        self.begin_at(address, user, Instant::now())
    }

    fn begin_at(&self, address: IpAddr, user: &str, now: Instant) -> Result<Guess<'_>, TooManyGuesses> {
        let address = network(address);
        let user = Some(self.hasher.hash_one(user));
        let guessers = [Guesser { address, user }, Guesser { address, user: None }];
        let mut until = self.until.lock();
        let mut wait = Duration::ZERO;
        for guesser in &guessers {
            let Some(end) = until.get(guesser) else { continue };
            let (pause, free) = self.allowance(guesser);
            let debt = end.saturating_duration_since(now);
            wait = wait.max((debt + pause).saturating_sub(pause * free));
        }
        if !wait.is_zero() {
            return Err(TooManyGuesses { wait });
        }
        for guesser in &guessers {
            if !until.contains_key(guesser) && until.len() >= self.limits.remembered_max.max(2) {
                forget(&mut until, now);
            }
            let (pause, _) = self.allowance(guesser);
            let end = until.entry(*guesser).or_insert(now);
            *end = (*end).max(now) + pause;
        }
        Ok(Guess { guesses: self, guessers })
    }

    /// The time that one wrong guess adds, and the number of free guesses.
    fn allowance(&self, guesser: &Guesser) -> (Duration, u32) {
        match guesser.user {
            Some(_) => (self.limits.pause, self.limits.free.max(1)),
            None => (self.limits.pause / USERS, self.limits.free.max(1).saturating_mul(USERS)),
        }
    }
}

impl Guess<'_> {
    /// Declares that the guess was right: it no longer counts.
    pub fn right(self) {
        let now = Instant::now();
        let mut until = self.guesses.until.lock();
        for guesser in &self.guessers {
            let (pause, _) = self.guesses.allowance(guesser);
            if let Some(end) = until.get_mut(guesser) {
                match end.checked_sub(pause) {
                    Some(earlier) if earlier > now => *end = earlier,
                    _ => _ = until.remove(guesser),
                }
            }
        }
    }
}

/// Forgets the sources with no remaining wrong guesses. If there are none, forgets the source with
/// the earliest end.
#[cold]
fn forget(until: &mut HashMap<Guesser, Instant>, now: Instant) {
    let before = until.len();
    until.retain(|_, end| *end > now);
    if until.len() == before
        && let Some(first) = until.iter().min_by_key(|(_, end)| **end).map(|(guesser, _)| *guesser)
    {
        until.remove(&first);
    }
}

/// The network that counts as one address.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn guesses() -> Guesses {
        Guesses::new(GuessLimits { free: 3, pause: SECOND, remembered_max: 100 })
    }

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn wrong_guesses_are_slowed_and_right_ones_cost_nothing() {
        let guesses = guesses();
        let now = Instant::now();
        for _ in 0..1_000 {
            guesses.begin_at(address(1), "ann", now).unwrap().right();
        }
        for _ in 0..3 {
            let _wrong = guesses.begin_at(address(1), "ann", now).unwrap();
        }
        assert_eq!(guesses.begin_at(address(1), "ann", now).unwrap_err(), TooManyGuesses { wait: SECOND });
        // Other addresses are not delayed, nor is this address for another user.
        guesses.begin_at(address(2), "ann", now).unwrap().right();
        guesses.begin_at(address(1), "bob", now).unwrap().right();
        // One more guess after each pause.
        let mut made = 0;
        for tenth in 0..200 {
            made += u32::from(guesses.begin_at(address(1), "ann", now + tenth * SECOND / 10).is_ok());
        }
        assert_eq!(made, 19);
    }

    #[test]
    fn guesses_that_are_made_at_once_gain_nothing() {
        let guesses = guesses();
        let going_on: Vec<_> = (0..10).map(|_| guesses.begin(address(1), "ann")).collect();
        assert_eq!(going_on.iter().filter(|guess| guess.is_ok()).count(), 3);
    }

    #[test]
    fn an_address_that_tries_all_names_is_slowed_too() {
        let guesses = guesses();
        let now = Instant::now();
        let made = (0..100).filter(|user| guesses.begin_at(address(1), &user.to_string(), now).is_ok()).count();
        assert_eq!(made, 30);
    }

    #[test]
    fn a_machine_has_no_more_guesses_for_having_many_addresses() {
        let guesses = guesses();
        let now = Instant::now();
        let made = (0..100u128).filter(|low| {
            let address = Ipv6Addr::from_bits(0x2001_0db8 << 96 | low).into();
            guesses.begin_at(address, "ann", now).is_ok()
        });
        assert_eq!(made.count(), 3);
        assert_eq!(network("::ffff:192.0.2.1".parse().unwrap()), address(1));
    }

    #[test]
    fn what_is_remembered_has_a_limit() {
        let guesses = guesses();
        let now = Instant::now();
        for number in 0..1_000u32 {
            let _wrong = guesses.begin_at(IpAddr::from(number.to_be_bytes()), "ann", now);
        }
        assert!(guesses.until.lock().len() <= 100);
    }
}
