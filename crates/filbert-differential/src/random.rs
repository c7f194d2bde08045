//! The only source of randomness: SplitMix64. A seed generates the same statements on every
//! machine.

/// A seeded generator of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Creates an independent generator for one part of a run.
    ///
    /// The state advances by a constant. States of two parts that differ by a multiple of it would
    /// generate the same numbers, some positions apart, so the part's state is a mixed number.
    pub(crate) fn new(seed: u64, part: u64) -> Random {
        let mut of_seed = Random(seed);
        let mut of_part = Random(of_seed.next() ^ part);
        Random(of_part.next())
    }

    /// Returns the next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, or 0 if `end` is 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        let end = end.max(1) as u64;
        usize::try_from(self.next() % end).unwrap_or_default()
    }

    /// Returns a number from `first` to `last`, both included.
    pub(crate) fn between(&mut self, first: i64, last: i64) -> i64 {
        let span = last.wrapping_sub(first).unsigned_abs().saturating_add(1);
        first.wrapping_add((self.next() % span).cast_signed())
    }

    /// Returns true with a probability of `percent`.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Chooses one of several items.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }

    /// Chooses one of several texts. Returns an empty text if there are none.
    pub(crate) fn word<'a>(&mut self, items: &[&'a str]) -> &'a str {
        self.pick(items).copied().unwrap_or_default()
    }

    /// Shuffles the items.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_again() {
        let (mut one, mut other) = (Random::new(7, 1), Random::new(7, 1));
        assert!((0..100).all(|_| one.next() == other.next()));
        assert_ne!(Random::new(7, 1).next(), Random::new(7, 2).next());
    }

    #[test]
    fn parts_and_seeds_share_no_numbers() {
        let mut seen = std::collections::HashSet::new();
        for (seed, part) in (0..8).flat_map(|seed| (0..8).map(move |part| (seed, part))) {
            let mut random = Random::new(seed, part);
            assert!((0..1_000).all(|_| seen.insert(random.next())), "seed {seed} part {part}");
        }
    }

    #[test]
    fn numbers_stay_within_their_bounds() {
        let mut random = Random::new(1, 0);
        assert!((0..1000).all(|_| random.below(3) < 3));
        assert!((0..1000).all(|_| (-2..=2).contains(&random.between(-2, 2))));
        assert_eq!(random.below(0), 0);
        let _ = random.between(i64::MIN, i64::MAX);
    }
}
