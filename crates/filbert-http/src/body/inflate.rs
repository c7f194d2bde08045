//! Unpacks what `deflate` packed (RFC 1951).

/// Why packed data cannot be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InflateError {
    /// It ends in the midst.
    #[error("the packed data ends too early")]
    Ends,
    /// A block is of no known kind, or its lengths or codes cannot be.
    #[error("the packed data is broken: {0}")]
    Broken(&'static str),
    /// It unpacks to more than it may.
    #[error("they unpack to more than {limit} bytes, the most that body_bytes_max allows")]
    TooLong {
        /// The most that it may unpack to.
        limit: usize,
    },
}

/// Bits of a code that are looked up at once. Longer codes are rare.
const LOOKUP_BITS: u32 = 10;
/// Bits of the longest code.
const CODE_BITS_MAX: usize = 15;

const LENGTH_BASES: [u16; 29] =
    [3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258];
const LENGTH_EXTRA_BITS: [u8; 29] =
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const DISTANCE_BASES: [u16; 30] = [
    1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073, 4097, 6145,
    8193, 12289, 16385, 24577,
];
const DISTANCE_EXTRA_BITS: [u8; 30] =
    [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13];
/// The order in which the lengths of the codes of lengths stand.
const LENGTHS_ORDER: [u8; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// Unpacks data to the end of `out`, which may have `bytes_max` bytes then. Returns how many bytes the packed data had.
///
/// # Errors
/// It is broken, ends too early, or unpacks to too much.
pub(crate) fn inflate(packed: &[u8], out: &mut Vec<u8>, bytes_max: usize) -> Result<usize, InflateError> {
    let mut bits = Bits { packed, at: 0, buffer: 0, count: 0 };
    let mut out = Out { start: out.len(), bytes: out, bytes_max };
    loop {
        let is_last = bits.take(1)? == 1;
        match bits.take(2)? {
            0 => stored(&mut bits, &mut out)?,
            1 => {
                let (codes, distances) = fixed()?;
                block(&mut bits, &mut out, &codes, &distances)?;
            }
            2 => {
                let (codes, distances) = described(&mut bits)?;
                block(&mut bits, &mut out, &codes, &distances)?;
            }
            _ => return Err(InflateError::Broken("a block of unknown kind")),
        }
        if is_last {
            return Ok(bits.end());
        }
    }
}

/// What was unpacked.
struct Out<'o> {
    bytes: &'o mut Vec<u8>,
    /// Where this data begins: nothing before it is copied.
    start: usize,
    bytes_max: usize,
}

impl Out<'_> {
    fn check_room(&self, more: usize) -> Result<(), InflateError> {
        if more > self.bytes_max.saturating_sub(self.bytes.len()) {
            return Err(InflateError::TooLong { limit: self.bytes_max });
        }
        Ok(())
    }

    /// Repeats `length` bytes that stand `distance` bytes before the end.
    fn repeat(&mut self, distance: usize, length: usize) -> Result<(), InflateError> {
        self.check_room(length)?;
        let from = self.bytes.len().checked_sub(distance).filter(|from| *from >= self.start);
        let from = from.ok_or(InflateError::Broken("a distance beyond the start"))?;
        let mut left = length;
        while left > 0 {
            // What is repeated may be what was just appended.
            let part = left.min(self.bytes.len() - from);
            self.bytes.extend_from_within(from..from + part);
            left -= part;
        }
        Ok(())
    }
}

/// Packed data, bit by bit, the lowest of each byte first.
struct Bits<'p> {
    packed: &'p [u8],
    /// The next byte that is not in the buffer.
    at: usize,
    buffer: u64,
    /// Bits of the buffer.
    count: u32,
}

impl Bits<'_> {
    /// Fills the buffer with at least 56 bits, or all that are left.
    #[inline]
    fn refill(&mut self) {
        if let Some(next) = self.packed.get(self.at..).and_then(<[u8]>::first_chunk::<8>) {
            self.buffer |= u64::from_le_bytes(*next) << self.count;
            let bytes = (63 - self.count) / 8;
            self.at += bytes as usize;
            self.count += bytes * 8;
            return;
        }
        while self.count <= 56
            && let Some(byte) = self.packed.get(self.at)
        {
            self.buffer |= u64::from(*byte) << self.count;
            self.at += 1;
            self.count += 8;
        }
    }

    /// Takes up to 16 bits.
    #[inline]
    fn take(&mut self, count: u32) -> Result<usize, InflateError> {
        if self.count < count {
            self.refill();
        }
        let value = self.buffer & ((1 << count) - 1);
        self.skip(count)?;
        Ok(value as usize)
    }

    #[inline]
    fn skip(&mut self, count: u32) -> Result<(), InflateError> {
        self.count = self.count.checked_sub(count).ok_or(InflateError::Ends)?;
        self.buffer >>= count;
        Ok(())
    }

    /// Drops the rest of the byte that was begun.
    fn align(&mut self) {
        let rest = self.count % 8;
        self.buffer >>= rest;
        self.count -= rest;
    }

    /// How many bytes were begun.
    fn end(&self) -> usize {
        self.at - (self.count / 8) as usize
    }

    /// The next bytes as they are.
    fn bytes(&mut self, count: usize) -> Result<&[u8], InflateError> {
        let start = self.end();
        let bytes = start.checked_add(count).and_then(|end| self.packed.get(start..end)).ok_or(InflateError::Ends)?;
        self.at = start + count;
        (self.buffer, self.count) = (0, 0);
        Ok(bytes)
    }
}

fn stored(bits: &mut Bits<'_>, out: &mut Out<'_>) -> Result<(), InflateError> {
    bits.align();
    let length = bits.take(16)?;
    if bits.take(16)? != length ^ 0xffff {
        return Err(InflateError::Broken("the length of a stored block"));
    }
    out.check_room(length)?;
    let bytes = bits.bytes(length)?;
    out.bytes.extend_from_slice(bytes);
    Ok(())
}

/// One code for each symbol, shorter ones for those that come more often.
struct Codes {
    /// By the next bits: a symbol and the length of its code; 0 = the code is longer, or there is none.
    lookup: Box<[u16; 1 << LOOKUP_BITS]>,
    /// How many codes there are of each length.
    counts: [u16; CODE_BITS_MAX + 1],
    /// Symbols in the order of their codes.
    symbols: Vec<u16>,
}

impl Codes {
    fn new(lengths: &[u8]) -> Result<Codes, InflateError> {
        let broken = InflateError::Broken("lengths of codes");
        let mut counts = [0_u16; CODE_BITS_MAX + 1];
        for length in lengths {
            *counts.get_mut(usize::from(*length)).ok_or(broken)? += 1;
        }
        counts[0] = 0;
        let (mut left, mut next_code, mut next_place) =
            (1_i32, [0_u32; CODE_BITS_MAX + 2], [0_usize; CODE_BITS_MAX + 2]);
        let (mut code, mut place) = (0, 0);
        for (length, count) in counts.iter().enumerate().skip(1) {
            left = left * 2 - i32::from(*count);
            if left < 0 {
                return Err(broken);
            }
            code <<= 1;
            *next_code.get_mut(length).ok_or(broken)? = code;
            *next_place.get_mut(length).ok_or(broken)? = place;
            code += u32::from(*count);
            place += usize::from(*count);
        }
        let mut symbols = vec![0; place];
        let mut lookup = Box::new([0; 1 << LOOKUP_BITS]);
        for (symbol, length) in (0_u16..).zip(lengths).filter(|(_, length)| **length > 0) {
            let bits = usize::from(*length);
            let (code, place) = next_code.get_mut(bits).zip(next_place.get_mut(bits)).ok_or(broken)?;
            *symbols.get_mut(*place).ok_or(broken)? = symbol;
            if u32::from(*length) <= LOOKUP_BITS {
                // Codes come with their highest bit first, all else with the lowest.
                let first = (*code).reverse_bits() >> (32 - u32::from(*length));
                for entry in lookup.iter_mut().skip(first as usize).step_by(1 << length) {
                    *entry = symbol << 4 | u16::from(*length);
                }
            }
            *code += 1;
            *place += 1;
        }
        Ok(Codes { lookup, counts, symbols })
    }

    /// The next symbol.
    #[inline]
    fn next(&self, bits: &mut Bits<'_>) -> Result<u16, InflateError> {
        if bits.count < CODE_BITS_MAX as u32 {
            bits.refill();
        }
        let at = bits.buffer as usize & ((1 << LOOKUP_BITS) - 1);
        match self.lookup.get(at) {
            Some(entry) if *entry > 0 => {
                bits.skip(u32::from(entry & 15))?;
                Ok(entry >> 4)
            }
            _ => self.next_long(bits),
        }
    }

    /// Bit by bit: codes of a length follow each other, behind those that are shorter.
    #[cold]
    fn next_long(&self, bits: &mut Bits<'_>) -> Result<u16, InflateError> {
        let (mut code, mut first, mut place) = (0_usize, 0_usize, 0_usize);
        for count in self.counts.iter().skip(1).map(|count| usize::from(*count)) {
            code |= bits.take(1)?;
            if let Some(within) = code.checked_sub(first).filter(|within| *within < count) {
                return self
                    .symbols
                    .get(place + within)
                    .copied()
                    .ok_or(InflateError::Broken("a code without a symbol"));
            }
            place += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        Err(InflateError::Broken("a code without a symbol"))
    }
}

/// The codes of blocks that describe none.
fn fixed() -> Result<(Codes, Codes), InflateError> {
    let mut lengths = [8; 288];
    lengths.iter_mut().skip(144).take(112).for_each(|length| *length = 9);
    lengths.iter_mut().skip(256).take(24).for_each(|length| *length = 7);
    Ok((Codes::new(&lengths)?, Codes::new(&[5; 30])?))
}

/// The codes that a block describes.
fn described(bits: &mut Bits<'_>) -> Result<(Codes, Codes), InflateError> {
    let broken = InflateError::Broken("the description of a block");
    let literals = bits.take(5)? + 257;
    let distances = bits.take(5)? + 1;
    let described = bits.take(4)? + 4;
    let mut lengths = [0; 19];
    for place in LENGTHS_ORDER.iter().take(described) {
        *lengths.get_mut(usize::from(*place)).ok_or(broken)? = bits.take(3)? as u8;
    }
    let codes = Codes::new(&lengths)?;
    let total = literals + distances;
    let mut lengths: Vec<u8> = Vec::with_capacity(total);
    while lengths.len() < total {
        let (length, count) = match codes.next(bits)? {
            16 => (lengths.last().copied().ok_or(broken)?, 3 + bits.take(2)?),
            17 => (0, 3 + bits.take(3)?),
            18 => (0, 11 + bits.take(7)?),
            length => (length as u8, 1),
        };
        if lengths.len() + count > total {
            return Err(broken);
        }
        lengths.resize(lengths.len() + count, length);
    }
    let (literals, distances) = lengths.split_at_checked(literals).ok_or(broken)?;
    Ok((Codes::new(literals)?, Codes::new(distances)?))
}

/// Bytes, and repetitions of what was unpacked before.
fn block(bits: &mut Bits<'_>, out: &mut Out<'_>, codes: &Codes, distances: &Codes) -> Result<(), InflateError> {
    loop {
        let symbol = codes.next(bits)?;
        if let Ok(byte) = u8::try_from(symbol) {
            out.check_room(1)?;
            out.bytes.push(byte);
            continue;
        }
        let Some(kind) = usize::from(symbol).checked_sub(257) else { return Ok(()) };
        let length = number(bits, kind, &LENGTH_BASES, &LENGTH_EXTRA_BITS)?;
        let kind = usize::from(distances.next(bits)?);
        let distance = number(bits, kind, &DISTANCE_BASES, &DISTANCE_EXTRA_BITS)?;
        out.repeat(distance, length)?;
    }
}

fn number(bits: &mut Bits<'_>, kind: usize, bases: &[u16], extra: &[u8]) -> Result<usize, InflateError> {
    let (base, extra) = bases.get(kind).zip(extra.get(kind)).ok_or(InflateError::Broken("a length or distance"))?;
    Ok(usize::from(*base) + bits.take((*extra).into())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 40 lines as [`text`] makes them, packed by zlib at its highest level, in one block with codes of its own.
    const DESCRIBED: &[&str] = &[
        "45d24b6ec3300c04d0abf4005c88a4be98d324a8372e52a3dea4c8e94b456374569616d2d3d049be6f8fed2309868ef5ad7247f7be1626db",
        "8656da5ab9ecfb8edaea5a66f989a08cb2d6455e33289ad74695af7790ddd74e93df1578b1b5d5e5c1c09aaebd21d091e849f284a64ba772",
        "9e30f2d4e4380e8c4ca0c63511f44a62488e19b44ea4963860062d91a9559e2ba846a836f9645032a9da05b9d2187dc52b3a9596e2adb041",
        "a6e9ec02a6578fb6ba52a7d4de5d469b8552cb51f50c4623d58adc57d007ad56e5c6a02bb1d604cd898c6e36d442a50d999734323d4d0772",
        "a7d3dfce177222344e592373bb86ee9c192cd3eaf99a19b412ebe5bfb04eac570189f1ee13c3688cdf2b66d233913ee6d8f007",
    ];

    fn text() -> String {
        let line = |at: usize| {
            let letter = char::from(b'a' + u8::try_from(at * at % 26).unwrap());
            format!("{},name {at},{};", at * 7919 % 1000, letter.to_string().repeat(at % 9))
        };
        (0..40).map(line).collect()
    }

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    fn unpacked(packed: &[u8]) -> Result<Vec<u8>, InflateError> {
        let mut out = Vec::new();
        let used = inflate(packed, &mut out, 10_000)?;
        assert_eq!(used, packed.len());
        Ok(out)
    }

    #[test]
    fn blocks_of_every_kind_are_unpacked() {
        assert_eq!(unpacked(&bytes(&DESCRIBED.concat())).unwrap(), text().as_bytes());
        assert_eq!(unpacked(&bytes("010600f9ff73746f726564")).unwrap(), b"stored");
        assert_eq!(unpacked(&bytes("4b4c4a4e494d4bcfc8cc0200")).unwrap(), b"abcdefghij");
    }

    #[test]
    fn what_is_broken_is_an_error_and_nothing_else() {
        let whole = bytes(&DESCRIBED.concat());
        for end in 0..whole.len() {
            assert_eq!(unpacked(&whole[..end]), Err(InflateError::Ends), "{end}");
        }
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut broken = whole.clone();
                broken[at] ^= 1 << bit;
                let mut out = Vec::new();
                let _ = inflate(&broken, &mut out, 10_000);
                assert!(out.len() <= 10_000);
            }
        }
        assert_eq!(unpacked(&[7]), Err(InflateError::Broken("a block of unknown kind")));
        assert_eq!(
            unpacked(&bytes("010600f8ff73746f726564")),
            Err(InflateError::Broken("the length of a stored block"))
        );
        // A repetition of what stands before the start.
        assert_eq!(unpacked(&bytes("4b046200")), Err(InflateError::Broken("a distance beyond the start")));
    }
}
