//! The frame of a page: its format, its number, and its checksum.

use crc32fast::Hasher;

use super::import::ImportError;
use crate::codec::{CodecError, Problem, Reader};

const MAGIC: u32 = u32::from_le_bytes(*b"FbSn");
const VERSION: u16 = 1;
const HEAD_BYTES: usize = 16;
/// The number of bytes before the items.
pub(super) const FRAME_BYTES: usize = HEAD_BYTES + size_of::<u32>();

/// A page with a valid checksum.
pub(super) struct Page<'p> {
    pub(super) number: u64,
    pub(super) is_last: bool,
    pub(super) items: &'p [u8],
}

/// Begins a page: reserves space for the frame. The items follow.
pub(super) fn begin(page: &mut Vec<u8>) {
    page.clear();
    page.resize(FRAME_BYTES, 0);
}

/// Writes the frame of a page that contains its items.
pub(super) fn finish(page: &mut [u8], number: u64, is_last: bool) {
    let Some((frame, items)) = page.split_first_chunk_mut::<FRAME_BYTES>() else { return };
    let last = u64::from(is_last);
    let head = u64::from(MAGIC) | u64::from(VERSION) << 32 | last << 48;
    let (head, number) = (head.to_le_bytes(), number.to_le_bytes());
    let crc = checksum(&head, &number, items).to_le_bytes();
    let written = head.into_iter().chain(number).chain(crc);
    frame.iter_mut().zip(written).for_each(|(place, byte)| *place = byte);
}

/// Reads the frame of a page, and checks that the page is unchanged since it was written.
pub(super) fn read(page: &[u8]) -> Result<Page<'_>, ImportError> {
    let mut reader = Reader::new(page, 0);
    let magic = reader.u32("the beginning of a page")?;
    if magic != MAGIC {
        return Err(reader.unexpected("the beginning of a page", u64::from(magic), "FbSn").into());
    }
    let version_and_last = reader.u32("the version of a page")?;
    let (version, last) = (version_and_last & 0xffff, version_and_last >> 16);
    if version != u32::from(VERSION) {
        return Err(reader.unexpected("the version of a page", u64::from(version), "1").into());
    }
    let number = reader.u64("the number of a page")?;
    let expected = reader.u32("the checksum of a page")?;
    let (Some((frame, items)), true) = (page.split_first_chunk::<FRAME_BYTES>(), last <= 1) else {
        let problem = Problem::Unexpected { found: u64::from(last), expected: "0 or 1" };
        return Err(CodecError { what: "whether a page is the last", offset: 6, problem }.into());
    };
    let (head, _) = frame.split_at(HEAD_BYTES);
    let found = checksum(head, &[], items);
    if found != expected {
        return Err(ImportError::Checksum { page: number, found, expected });
    }
    Ok(Page { number, is_last: last == 1, items })
}

fn checksum(head: &[u8], number: &[u8], items: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    [head, number, items].into_iter().for_each(|bytes| hasher.update(bytes));
    hasher.finalize()
}
