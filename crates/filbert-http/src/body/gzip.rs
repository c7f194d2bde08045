//! Bodies packed by gzip (RFC 1952): CrateDB's Python client packs those of more than some kilobytes. What they unpack to has a limit,
//! whatever they claim.

use super::inflate::{self, InflateError};

/// Why bytes cannot be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GzipError {
    /// They do not begin as gzip does.
    #[error("they do not begin with gzip's header")]
    Header,
    /// The packed data is broken, or has too many bytes.
    #[error(transparent)]
    Data(#[from] InflateError),
    /// The sum at the end is of other bytes.
    #[error("their checksum or length is of other bytes")]
    Checksum,
}

const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
const HEADER_BYTES: usize = 10;
const TRAILER_BYTES: usize = 8;

const FLAG_CHECKSUM: u8 = 2;
const FLAG_EXTRA: u8 = 4;
const FLAG_NAME: u8 = 8;
const FLAG_COMMENT: u8 = 16;

/// Unpacks all members of a gzip file to at most `bytes_max` bytes.
///
/// # Errors
/// They are no such file, or unpack to more.
pub(crate) fn unpack(packed: &[u8], bytes_max: usize) -> Result<Vec<u8>, GzipError> {
    let mut out = Vec::new();
    let mut rest = packed;
    loop {
        let start = out.len();
        let data = behind_header(rest).ok_or(GzipError::Header)?;
        let used = inflate::inflate(data, &mut out, bytes_max)?;
        let (trailer, next) =
            data.get(used..).and_then(|rest| rest.split_at_checked(TRAILER_BYTES)).ok_or(InflateError::Ends)?;
        let unpacked = out.get(start..).unwrap_or_default();
        let sums = trailer.first_chunk::<4>().zip(trailer.last_chunk::<4>());
        let (sum, length) =
            sums.map(|(sum, length)| (u32::from_le_bytes(*sum), u32::from_le_bytes(*length))).unwrap_or_default();
        // The length counts modulo 2^32.
        if sum != checksum(unpacked) || length != unpacked.len() as u32 {
            return Err(GzipError::Checksum);
        }
        if next.is_empty() {
            return Ok(out);
        }
        rest = next;
    }
}

/// What follows a member's header.
fn behind_header(member: &[u8]) -> Option<&[u8]> {
    let (header, mut rest) = member.split_at_checked(HEADER_BYTES)?;
    let flags = *header.get(3)?;
    if !header.starts_with(&MAGIC) {
        return None;
    }
    if flags & FLAG_EXTRA != 0 {
        let (length, behind) = rest.split_first_chunk::<2>()?;
        rest = behind.get(u16::from_le_bytes(*length).into()..)?;
    }
    for flag in [FLAG_NAME, FLAG_COMMENT] {
        if flags & flag != 0 {
            let end = rest.iter().position(|byte| *byte == 0)?;
            rest = rest.get(end + 1..)?;
        }
    }
    if flags & FLAG_CHECKSUM != 0 {
        rest = rest.get(2..)?;
    }
    Some(rest)
}

/// CRC-32 as gzip has it.
fn checksum(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut at = 0;
        while at < 256 {
            let mut value = at as u32;
            let mut bit = 0;
            while bit < 8 {
                value = if value & 1 == 1 { 0xedb8_8320 ^ (value >> 1) } else { value >> 1 };
                bit += 1;
            }
            #[allow(clippy::indexing_slicing, reason = "in bounds, which the compiler checks as it runs it")]
            {
                table[at] = value;
            }
            at += 1;
        }
        table
    };
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        let at = usize::from((sum as u8) ^ byte);
        TABLE.get(at).copied().unwrap_or_default() ^ (sum >> 8)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Python's `gzip.compress(b"hello, hello, hello, hello", mtime=0)` gives.
    const HELLO: &str = "1f8b0800000000000203cb48cdc9c9d751c8c0a40055a382771a000000";

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    #[test]
    fn what_other_programs_packed_is_unpacked() {
        let packed = bytes(HELLO);
        assert_eq!(unpack(&packed, 26).unwrap(), b"hello, hello, hello, hello");
        let twice = [packed.clone(), packed.clone()].concat();
        assert_eq!(unpack(&twice, 52).unwrap().len(), 52);
        assert_eq!(unpack(&twice, 51), Err(InflateError::TooLong { limit: 51 }.into()));
    }

    #[test]
    fn what_is_broken_is_refused() {
        let packed = bytes(HELLO);
        for end in 0..packed.len() {
            assert!(unpack(&packed[..end], 1000).is_err(), "{end}");
        }
        for at in 10..packed.len() {
            for bit in 0..8 {
                let mut broken = packed.clone();
                broken[at] ^= 1 << bit;
                assert_ne!(unpack(&broken, 1000).as_deref(), Ok(&b"other"[..]));
            }
        }
        let mut broken = packed.clone();
        broken[packed.len() - 5] ^= 1;
        assert_eq!(unpack(&broken, 1000), Err(GzipError::Checksum));
        assert_eq!(unpack(b"{\"stmt\": \"select 1\"}", 1000), Err(GzipError::Header));
    }

    #[test]
    fn the_checksum_is_gzips() {
        assert_eq!(checksum(b"123456789"), 0xcbf4_3926);
    }
}
