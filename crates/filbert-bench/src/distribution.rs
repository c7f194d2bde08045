//! The key and the operation of the n-th call of a workload.
//!
//! Both are pure functions of the seed and the call number. No state is kept per call: the receiver
//! of a reply computes the request again, and two runs with the same seed send the same requests in
//! the same order.

use std::fmt;
use std::str::FromStr;

use crate::error::{BenchError, Result};

/// The exponent of [`Distribution::Zipf`], as in the YCSB benchmark.
pub const ZIPF_EXPONENT: f64 = 0.99;

/// The distribution of keys over `0..keys`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// All keys have the same probability.
    Uniform,
    /// Key k has a probability proportional to `1 / (k + 1)^0.99`.
    Zipf,
    /// Call n uses key `n mod keys`, so a load phase uses every key once.
    Sequential,
}

impl FromStr for Distribution {
    type Err = BenchError;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "uniform" => Ok(Self::Uniform),
            "zipf" => Ok(Self::Zipf),
            "sequential" => Ok(Self::Sequential),
            other => Err(BenchError::Setting(format!(
                "distribution {other:?} is unknown, expected uniform, zipf or sequential"
            ))),
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Uniform => "uniform",
            Self::Zipf => "zipf",
            Self::Sequential => "sequential",
        })
    }
}

/// A 64-bit hash of a call number: the finalizer of SplitMix64 (Steele, Lea and Flood, 2014). For
/// consecutive inputs its output passes the usual tests of randomness.
#[inline]
pub fn random(seed: u64, number: u64) -> u64 {
    let mut x = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Chooses the key of a call.
#[derive(Debug, Clone)]
pub struct KeyChooser {
    distribution: Distribution,
    keys: u64,
    seed: u64,
    zipf: Zipf,
}

impl KeyChooser {
    /// Creates a chooser for `0..keys`. For a Zipf distribution this takes time proportional to
    /// `keys`.
    pub fn new(distribution: Distribution, keys: u64, seed: u64) -> Result<Self> {
        if keys == 0 || keys > i32::MAX as u64 {
            return Err(BenchError::Setting(format!("{keys} keys asked for, expected 1 to {}", i32::MAX)));
        }
        let zipf = if distribution == Distribution::Zipf { Zipf::new(keys) } else { Zipf::NONE };
        Ok(Self { distribution, keys, seed, zipf })
    }

    /// The key of call `number`.
    #[inline]
    pub fn key(&self, number: u64) -> i32 {
        let key = match self.distribution {
            Distribution::Sequential => number % self.keys,
            Distribution::Uniform => scale(random(self.seed, number), self.keys),
            Distribution::Zipf => self.zipf.rank(random(self.seed, number), self.keys),
        };
        key as i32
    }

    /// The number of keys.
    pub fn keys(&self) -> u64 {
        self.keys
    }
}

/// Maps 64 random bits to `0..limit` by multiplication. The bias is below `limit / 2^64`.
#[inline]
fn scale(bits: u64, limit: u64) -> u64 {
    ((u128::from(bits) * u128::from(limit)) >> 64) as u64
}

/// The constant-time approximation of a Zipf distribution by Gray et al., "Quickly generating
/// billion-record synthetic databases", SIGMOD 1994.
#[derive(Debug, Clone, Copy)]
struct Zipf {
    zeta: f64,
    alpha: f64,
    eta: f64,
    second: f64,
}

impl Zipf {
    const NONE: Zipf = Zipf { zeta: 0.0, alpha: 0.0, eta: 0.0, second: 0.0 };

    fn new(keys: u64) -> Self {
        let zeta: f64 = (1..=keys).map(|rank| (rank as f64).powf(-ZIPF_EXPONENT)).sum();
        let second = 0.5_f64.powf(ZIPF_EXPONENT);
        let eta =
            (1.0 - (2.0 / keys as f64).powf(1.0 - ZIPF_EXPONENT)) / (1.0 - (1.0 + second).min(zeta) / zeta.max(1.0));
        Self { zeta, alpha: 1.0 / (1.0 - ZIPF_EXPONENT), eta: if eta.is_finite() { eta } else { 0.0 }, second }
    }

    #[inline]
    fn rank(&self, bits: u64, keys: u64) -> u64 {
        let u = (bits >> 11) as f64 / (1_u64 << 53) as f64;
        let scaled = u * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + self.second {
            return 1.min(keys - 1);
        }
        let rank = keys as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha);
        (rank as u64).min(keys - 1)
    }
}

/// The kind of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `Map.get`: returns the value.
    Get,
    /// `Map.set`: returns nothing.
    Set,
    /// `Map.put`: returns the old value.
    Put,
}

impl Operation {
    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Set => "set",
            Self::Put => "put",
        }
    }
}

/// The shares of operations in a workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mix {
    /// Each operation, with the sum of the weights up to and including it.
    cumulative: Vec<(Operation, u64)>,
    total: u64,
}

impl Mix {
    /// Creates a mix with a single operation.
    pub fn only(operation: Operation) -> Self {
        Self { cumulative: vec![(operation, 1)], total: 1 }
    }

    /// The operation of call `number`.
    #[inline]
    pub fn operation(&self, seed: u64, number: u64) -> Operation {
        let draw = if self.total <= 1 { 0 } else { scale(random(!seed, number), self.total) };
        self.cumulative.iter().find(|(_, up_to)| draw < *up_to).map_or(Operation::Get, |(operation, _)| *operation)
    }

    /// The operations of the mix.
    pub fn operations(&self) -> impl Iterator<Item = Operation> + '_ {
        self.cumulative.iter().map(|(operation, _)| *operation)
    }
}

impl FromStr for Mix {
    type Err = BenchError;

    /// Parses a text such as `get=80,set=20`. The weights are relative.
    fn from_str(text: &str) -> Result<Self> {
        let wrong = |part: &str| {
            BenchError::Setting(format!("mix part {part:?}: expected get=N, set=N or put=N with N above 0"))
        };
        let mut cumulative = Vec::new();
        let mut total = 0_u64;
        for part in text.split(',') {
            let (name, weight) = part.trim().split_once('=').ok_or_else(|| wrong(part))?;
            let operation = match name {
                "get" => Operation::Get,
                "set" => Operation::Set,
                "put" => Operation::Put,
                _ => return Err(wrong(part)),
            };
            let weight: u32 = weight.parse().map_err(|_| wrong(part))?;
            if weight == 0 || cumulative.iter().any(|(known, _)| *known == operation) {
                return Err(wrong(part));
            }
            total += u64::from(weight);
            cumulative.push((operation, total));
        }
        Ok(Self { cumulative, total })
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut before = 0;
        for (index, (operation, up_to)) in self.cumulative.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{}={}", operation.name(), up_to - before)?;
            before = *up_to;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(distribution: Distribution, keys: u64, draws: u64) -> Vec<u64> {
        let chooser = KeyChooser::new(distribution, keys, 7).unwrap();
        let mut counts = vec![0; keys as usize];
        for number in 0..draws {
            counts[chooser.key(number) as usize] += 1;
        }
        counts
    }

    #[test]
    fn sequential_keys_cover_every_key_once_per_round() {
        assert_eq!(counts(Distribution::Sequential, 10, 30), vec![3; 10]);
    }

    #[test]
    fn uniform_keys_are_evenly_spread() {
        let counts = counts(Distribution::Uniform, 100, 1_000_000);
        // The expectation is 10,000 each with a standard deviation of 100. The bounds are six
        // deviations.
        assert!(counts.iter().all(|count| (9_400..=10_600).contains(count)), "{counts:?}");
    }

    #[test]
    fn zipf_keys_follow_the_power_law() {
        let counts = counts(Distribution::Zipf, 1_000, 1_000_000);
        let zeta: f64 = (1..=1_000).map(|rank| f64::from(rank).powf(-ZIPF_EXPONENT)).sum();
        for rank in [1_usize, 2] {
            let expected = 1e6 * (rank as f64).powf(-ZIPF_EXPONENT) / zeta;
            let ratio = counts[rank - 1] as f64 / expected;
            assert!((0.95..1.05).contains(&ratio), "rank {rank}: {ratio}");
        }
        // The approximation is coarse for single ranks of the tail, but the total probability of
        // the tail is right.
        let tail: u64 = counts[500..].iter().sum();
        let expected: f64 = (501..=1_000).map(|rank| 1e6 * f64::from(rank).powf(-ZIPF_EXPONENT) / zeta).sum();
        let ratio = tail as f64 / expected;
        assert!((0.9..1.1).contains(&ratio), "tail: {ratio}");
    }

    #[test]
    fn zipf_works_with_very_few_keys() {
        for keys in 1..5 {
            assert_eq!(counts(Distribution::Zipf, keys, 10_000).iter().sum::<u64>(), 10_000);
        }
    }

    #[test]
    fn the_same_seed_asks_the_same_questions() {
        let first = KeyChooser::new(Distribution::Uniform, 1_000, 42).unwrap();
        let second = KeyChooser::new(Distribution::Uniform, 1_000, 42).unwrap();
        let other = KeyChooser::new(Distribution::Uniform, 1_000, 43).unwrap();
        let keys = |chooser: &KeyChooser| (0..100).map(|number| chooser.key(number)).collect::<Vec<_>>();
        assert_eq!(keys(&first), keys(&second));
        assert_ne!(keys(&first), keys(&other));
    }

    #[test]
    fn a_mix_is_drawn_by_its_weights() {
        let mix: Mix = "get=80,set=15,put=5".parse().unwrap();
        let sets = (0..100_000).filter(|number| mix.operation(1, *number) == Operation::Set).count();
        assert!((14_000..16_000).contains(&sets), "{sets}");
        assert_eq!(mix.to_string(), "get=80,set=15,put=5");
    }

    #[test]
    fn a_wrong_mix_is_refused() {
        for text in ["", "get", "get=0", "get=1,get=2", "take=1", "get=x"] {
            assert!(text.parse::<Mix>().is_err(), "{text:?}");
        }
    }
}
