//! Bodies packed by gzip (RFC 1952): CrateDB's Python client packs those of more than some kilobytes. What they unpack to has a limit,
//! whatever they claim.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

/// Why bytes cannot be unpacked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GzipError {
    /// They are not what gzip writes, or not all of it.
    #[error("{0}")]
    Broken(#[from] io::Error),
    /// They unpack to more than the limit.
    #[error("they unpack to more than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
}

/// Unpacks all members of a gzip file to at most `bytes_max` bytes.
///
/// # Errors
/// They are no such file, or unpack to more.
pub(crate) fn unpack(packed: &[u8], bytes_max: usize) -> Result<Vec<u8>, GzipError> {
    let mut out = Vec::new();
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    MultiGzDecoder::new(packed).take(limit).read_to_end(&mut out)?;
    if out.len() > bytes_max {
        return Err(GzipError::TooLong { limit: bytes_max });
    }
    Ok(out)
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
        assert!(matches!(unpack(&twice, 51), Err(GzipError::TooLong { limit: 51 })));
    }

    #[test]
    fn what_is_broken_is_refused() {
        let packed = bytes(HELLO);
        for end in 0..packed.len() {
            assert!(unpack(&packed[..end], 1000).is_err(), "{end}");
        }
        let mut broken = packed.clone();
        broken[packed.len() - 5] ^= 1;
        assert!(matches!(unpack(&broken, 1000), Err(GzipError::Broken(_))));
        assert!(matches!(unpack(b"{\"stmt\": \"select 1\"}", 1000), Err(GzipError::Broken(_))));
    }
}
