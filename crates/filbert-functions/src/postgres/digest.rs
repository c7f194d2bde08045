//! The MD5 digest (RFC 1321), a function of texts and bytes in PostgreSQL. It is not used for
//! security.

/// The rotation of each step, in each round.
const ROTATIONS: [[u32; 4]; 4] = [[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]];

/// The digest of bytes, in hexadecimal digits.
pub(super) fn md5(bytes: &[u8]) -> String {
    let mut state = [0x6745_2301_u32, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let mut message = bytes.to_vec();
    message.push(0x80);
    message.resize((message.len() + 8).next_multiple_of(64) - 8, 0);
    let bits = u64::try_from(bytes.len()).unwrap_or(u64::MAX).wrapping_mul(8);
    message.extend(bits.to_le_bytes());
    for block in message.as_chunks::<64>().0 {
        let mut words = [0_u32; 16];
        for (word, bytes) in words.iter_mut().zip(block.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        let [mut a, mut b, mut c, mut d] = state;
        for step in 0..64_usize {
            let (mixed, at) = match step / 16 {
                0 => (b & c | !b & d, step),
                1 => (d & b | !d & c, 5 * step + 1),
                2 => (b ^ c ^ d, 3 * step + 5),
                _ => (c ^ (b | !d), 7 * step),
            };
            let word = words.get(at % 16).copied().unwrap_or(0);
            let rotation = ROTATIONS.get(step / 16).and_then(|round| round.get(step % 4)).copied().unwrap_or(0);
            let sum = a.wrapping_add(mixed).wrapping_add(constant(step)).wrapping_add(word);
            (a, d, c, b) = (d, c, b, b.wrapping_add(sum.rotate_left(rotation)));
        }
        for (part, added) in state.iter_mut().zip([a, b, c, d]) {
            *part = part.wrapping_add(added);
        }
    }
    state.iter().flat_map(|part| part.to_le_bytes()).map(|byte| format!("{byte:02x}")).collect()
}

/// The constant of a step: the first 32 bits of the fraction of its sine.
fn constant(step: usize) -> u32 {
    let step = f64::from(u32::try_from(step).unwrap_or(0) + 1);
    // The product is between 0 and 2^32.
    (step.sin().abs() * 4_294_967_296.0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standard() {
        for (text, expected) in [
            ("", "d41d8cd98f00b204e9800998ecf8427e"),
            ("abc", "900150983cd24fb0d6963f7d28e17f72"),
            (
                "12345678901234567890123456789012345678901234567890123456789012345678901234567890",
                "57edf4a22be3c955ac49da2e2107b67a",
            ),
        ] {
            assert_eq!(md5(text.as_bytes()), expected, "{text}");
        }
    }
}
