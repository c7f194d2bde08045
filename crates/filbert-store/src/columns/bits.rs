//! Bits in words of 64, the least significant bit first, as in Arrow.

/// The number of words for a number of bits.
pub(crate) fn words(bits: usize) -> usize {
    bits.div_ceil(64)
}

pub(crate) fn get(words: &[u64], at: usize) -> bool {
    words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
}

/// Sets a bit to a value. Does nothing beyond the end.
pub(crate) fn set(words: &mut [u64], at: usize, value: bool) {
    if let Some(word) = words.get_mut(at / 64) {
        let bit = 1 << (at % 64);
        if value { *word |= bit } else { *word &= !bit }
    }
}
