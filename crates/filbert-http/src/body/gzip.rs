//! Decompression of gzip bodies (RFC 1952). CrateDB's Python client compresses bodies of more than
//! some kilobytes. The decompressed size is limited, whatever the data claims, and memory is
//! reserved before it is allocated.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

use super::buffer::Buffer;
use crate::failure::Failure;

/// The number of bytes that are decompressed at a time.
const STEP_BYTES: usize = 64 << 10;

/// The maximum compression ratio of gzip.
const RATIO_MAX: usize = 1_032;

/// The reason why bytes cannot be decompressed.
#[derive(Debug)]
pub(crate) enum GzipError {
    /// The bytes are not gzip data, or they are incomplete.
    Broken(io::Error),
    /// The decompressed data exceeds the limit or the available memory.
    Refused(Failure),
}

/// Decompresses all members of a gzip file.
///
/// # Errors
/// The data is malformed, or the decompressed data exceeds the limit or the available memory.
pub(super) fn unpack(packed: &[u8], out: &mut Buffer) -> Result<(), GzipError> {
    // The last four bytes are the decompressed size, if they are right. A wrong size cannot hold
    // the memory for long.
    if let Some(size) = packed.last_chunk::<4>().map(|size| u32::from_le_bytes(*size) as usize)
        && size <= packed.len().saturating_mul(RATIO_MAX)
    {
        out.prepare(size).map_err(GzipError::Refused)?;
    }
    let mut decoder = MultiGzDecoder::new(packed);
    let mut step = vec![0; STEP_BYTES];
    loop {
        match decoder.read(&mut step) {
            Ok(0) => return Ok(()),
            Ok(read) => out.append(step.get(..read).unwrap_or_default()).map_err(GzipError::Refused)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(GzipError::Broken(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use filbert_grid::MemoryBudget;

    use super::*;

    /// The result of Python's `gzip.compress(b"hello, hello, hello, hello", mtime=0)`.
    const HELLO: &str = "1f8b0800000000000203cb48cdc9c9d751c8c0a40055a382771a000000";

    fn bytes(hex: &str) -> Vec<u8> {
        (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
    }

    fn unpacked(packed: &[u8], bytes_max: usize) -> Result<Vec<u8>, GzipError> {
        let mut out = Buffer::new(MemoryBudget::new(1 << 20, "max").empty(), bytes_max, None);
        unpack(packed, &mut out)?;
        Ok(out.finish().0.to_vec())
    }

    #[test]
    fn what_other_programs_packed_is_unpacked() {
        let packed = bytes(HELLO);
        assert_eq!(unpacked(&packed, 26).unwrap(), b"hello, hello, hello, hello");
        let twice = [packed.clone(), packed.clone()].concat();
        assert_eq!(unpacked(&twice, 52).unwrap().len(), 52);
        assert!(matches!(unpacked(&twice, 51), Err(GzipError::Refused(_))));
    }

    #[test]
    fn what_is_broken_is_refused() {
        let packed = bytes(HELLO);
        for end in 0..packed.len() {
            assert!(unpacked(&packed[..end], 1000).is_err(), "{end}");
        }
        let mut broken = packed.clone();
        broken[packed.len() - 5] ^= 1;
        assert!(matches!(unpacked(&broken, 1000), Err(GzipError::Broken(_))));
        assert!(matches!(unpacked(b"{\"stmt\": \"select 1\"}", 1000), Err(GzipError::Broken(_))));
    }

    #[test]
    fn nothing_is_unpacked_without_memory() {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        for _ in 0..64 {
            io::Write::write_all(&mut packer, &[b' '; 1 << 16]).unwrap();
        }
        let packed = packer.finish().unwrap();
        assert!(matches!(unpacked(&packed, 1 << 30), Err(GzipError::Refused(_))), "4 MiB, where there is 1 MiB");
    }
}
