//! Divides an encoded message into fragments, for clients and tests. [`Splitter`](crate::Splitter)
//! reassembles them.

use crate::{
    WireError,
    frame::{FRAME_HEADER_BYTES, FrameHeader, Writer, change_flags, flags},
};

/// The size of the first frame of a fragment in bytes: the frame header and the fragmentation id.
const OPENING_BYTES: usize = FRAME_HEADER_BYTES + 8;

/// Appends `message` to `out` as fragments of at most `fragment_bytes_max` bytes each, all with the
/// fragmentation id `id`. A frame is never split. A message that fits into one fragment is appended
/// as it is.
///
/// # Errors
///
/// `message` is not a sequence of complete frames, or one of its frames does not fit into a
/// fragment. `out` is then unchanged.
pub fn encode_fragmented(
    message: &[u8],
    id: i64,
    fragment_bytes_max: usize,
    out: &mut Vec<u8>,
) -> Result<(), WireError> {
    if message.len() <= fragment_bytes_max {
        out.extend_from_slice(message);
        return Ok(());
    }
    let start = out.len();
    let result = append_fragments(message, id, fragment_bytes_max, out);
    if result.is_err() {
        out.truncate(start);
    }
    result
}

fn append_fragments(message: &[u8], id: i64, fragment_bytes_max: usize, out: &mut Vec<u8>) -> Result<(), WireError> {
    let mut rest = message;
    let mut opening_flags = flags::BEGIN_FRAGMENT;
    while !rest.is_empty() {
        let fragment = out.len();
        Writer::new(out).frame(opening_flags, &id.to_le_bytes());
        let mut last_frame = fragment;
        while let Some(header) = FrameHeader::read(rest)? {
            let (frame, after) =
                rest.split_at_checked(header.length).ok_or(WireError::Truncated { bytes: message.len() })?;
            let expected = OPENING_BYTES + frame.len();
            if expected > fragment_bytes_max {
                return Err(WireError::FragmentTooSmall { fragment_bytes: fragment_bytes_max, expected });
            }
            if out.len() - fragment + frame.len() > fragment_bytes_max {
                break;
            }
            last_frame = out.len();
            out.extend_from_slice(frame);
            rest = after;
        }
        if last_frame == fragment {
            return Err(WireError::Truncated { bytes: message.len() });
        }
        if let Some(frame) = out.get_mut(last_frame..) {
            change_flags(frame, |bits| bits | flags::FINAL);
        }
        opening_flags = 0;
        if rest.is_empty()
            && let Some(opening) = out.get_mut(fragment..)
        {
            change_flags(opening, |bits| bits | flags::END_FRAGMENT);
        }
    }
    Ok(())
}
