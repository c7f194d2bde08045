//! How often somebody may guess a secret: a password, or the key by which a statement is cancelled.
//!
//! Each address may be wrong some times about one user, and some more about all users together; after that once in a while. Whoever is
//! right costs nothing. An address of IPv6 stands for its network of 64 bits, which one machine may use all of.
//!
//! Tries that are going on count as wrong until they turn out right, so that many at once gain nothing.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How often an address may be wrong about all users together, in times of what it may be about one.
const USERS: u32 = 10;

/// How many may guess how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GuessLimits {
    /// Wrong guesses of one address about one user that are free. Default 10: more than a person needs, and a pool of connections with an
    /// old password is told so ten times.
    pub free: u32,
    /// After which time there is one more. Default 1 s: a list of the thousand commonest passwords takes a quarter of an hour, and one
    /// that is any good for ever; whoever has been wrong too often waits no longer.
    pub pause: Duration,
    /// Addresses and users that are remembered. Default 65,536, some megabytes; whoever was wrong longest ago is forgotten first.
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
    /// When the next one may be made.
    pub wait: Duration,
}

/// Who guesses what: an address and, unless it is about all of them, a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Guesser {
    address: IpAddr,
    /// The hash of the name, which may be long.
    user: Option<u64>,
}

/// Remembers who guessed wrong.
#[derive(Debug)]
pub struct Guesses {
    limits: GuessLimits,
    hasher: RandomState,
    /// When everything that somebody did wrong will be forgotten.
    until: Mutex<HashMap<Guesser, Instant>>,
}

/// A guess that is being made. It was wrong, unless [`Guess::right`] says so.
#[derive(Debug)]
#[must_use = "dropping it says that the guess was wrong"]
pub struct Guess<'g> {
    guesses: &'g Guesses,
    guessers: [Guesser; 2],
}

impl Guesses {
    /// Nobody has guessed yet.
    pub fn new(limits: GuessLimits) -> Guesses {
        Guesses { limits, hasher: RandomState::new(), until: Mutex::default() }
    }

    /// Begins a guess.
    ///
    /// # Errors
    /// Too many were wrong: this one must not be looked at.
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

    /// By how much a wrong guess adds to the time, and how many may be made at once.
    fn allowance(&self, guesser: &Guesser) -> (Duration, u32) {
        match guesser.user {
            Some(_) => (self.limits.pause, self.limits.free.max(1)),
            None => (self.limits.pause / USERS, self.limits.free.max(1).saturating_mul(USERS)),
        }
    }
}

impl Guess<'_> {
    /// The guess was right, and is as if it was not made.
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

/// Forgets those whose time is over; if there is nobody, who would be forgotten first.
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

/// The network whose addresses count as one.
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
        // Others are not held up, nor is the address about somebody else.
        guesses.begin_at(address(2), "ann", now).unwrap().right();
        guesses.begin_at(address(1), "bob", now).unwrap().right();
        // One more after each pause.
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
