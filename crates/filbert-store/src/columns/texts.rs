//! A column of texts as Arrow's string views: 16 bytes for each text, and one buffer for texts
//! longer than 12 bytes.
//!
//! | offset | short text | long text |
//! |---|---|---|
//! | 0 | length, `u32` | length, `u32` |
//! | 4 | the text, then zeros | its first 4 bytes |
//! | 8 | | the number of the buffer, 0 |
//! | 12 | | its offset in the buffer, `u32` |
//!
//! All numbers are little-endian
//! (<https://arrow.apache.org/docs/format/Columnar.html#variable-size-binary-view-layout>).

/// The maximum length of a text in the view itself.
const INLINE_BYTES_MAX: usize = 12;
/// The maximum size of a buffer, because of Arrow's offsets.
const HEAP_BYTES_MAX: usize = i32::MAX as usize;
/// The size up to which a buffer is not compacted.
const GARBAGE_BYTES_FREE: usize = 4_096;

#[derive(Clone, Default)]
pub(crate) struct Texts {
    pub(super) views: Vec<u128>,
    pub(super) heap: Vec<u8>,
    /// The bytes of the buffer that no view uses any more.
    garbage_bytes: usize,
}

impl Texts {
    pub(super) fn grow(&mut self, capacity: usize) {
        self.views.reserve_exact(capacity.saturating_sub(self.views.len()));
        self.views.resize(capacity, 0);
    }

    /// Sets a text. Returns `false` if the buffer has no room. The old text is removed in both
    /// cases.
    pub(super) fn set(&mut self, at: usize, text: &str) -> bool {
        self.clear(at);
        let bytes = text.as_bytes();
        let view = if bytes.len() <= INLINE_BYTES_MAX {
            inline(bytes)
        } else {
            if self.heap.len() + bytes.len() > HEAP_BYTES_MAX {
                self.compact();
            }
            if self.heap.len() + bytes.len() > HEAP_BYTES_MAX {
                return false;
            }
            let offset = self.heap.len();
            self.heap.extend_from_slice(bytes);
            outline(bytes, offset)
        };
        if let Some(place) = self.views.get_mut(at) {
            *place = view;
        }
        true
    }

    /// Removes a text. An empty text remains.
    pub(super) fn clear(&mut self, at: usize) {
        let Some(place) = self.views.get_mut(at) else { return };
        let length = length(*place);
        *place = 0;
        if length > INLINE_BYTES_MAX {
            self.garbage_bytes += length;
            if self.heap.len() > GARBAGE_BYTES_FREE && self.garbage_bytes * 2 > self.heap.len() {
                self.compact();
            }
        }
    }

    /// Rewrites the buffer with only the bytes that views use.
    fn compact(&mut self) {
        let mut heap = Vec::with_capacity(self.heap.len() - self.garbage_bytes);
        for view in &mut self.views {
            let length = length(*view);
            if length > INLINE_BYTES_MAX {
                let start = (*view >> 96) as usize;
                let text = self.heap.get(start..start + length).unwrap_or_default();
                *view = outline(text, heap.len());
                heap.extend_from_slice(text);
            }
        }
        self.heap = heap;
        self.garbage_bytes = 0;
    }

    pub(super) fn bytes(&self) -> usize {
        self.views.capacity() * size_of::<u128>() + self.heap.capacity()
    }
}

/// The text of a view.
pub(crate) fn text_of<'t>(view: &'t u128, heap: &'t [u8]) -> &'t [u8] {
    let length = length(*view);
    if length > INLINE_BYTES_MAX {
        let start = (*view >> 96) as usize;
        return heap.get(start..start + length).unwrap_or_default();
    }
    bytemuck::bytes_of(view).get(4..4 + length).unwrap_or_default()
}

fn length(view: u128) -> usize {
    (view as u32) as usize
}

fn inline(bytes: &[u8]) -> u128 {
    let mut view = [0; 16];
    for (place, byte) in view.iter_mut().skip(4).zip(bytes) {
        *place = *byte;
    }
    u128::from_le_bytes(view) | bytes.len() as u128
}

/// The view of a long text. Its length and offset are below 2^31.
fn outline(bytes: &[u8], offset: usize) -> u128 {
    let prefix = bytes.first_chunk::<4>().map_or(0, |prefix| u32::from_le_bytes(*prefix));
    bytes.len() as u128 | u128::from(prefix) << 32 | (offset as u128) << 96
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_whatever_their_length_and_garbage_goes() {
        let mut texts = Texts::default();
        texts.grow(64);
        let of = |round: usize, at: usize| format!("{round}:{at}").repeat((round * 7 + at) % 60);
        for round in 0..50 {
            for at in 0..64 {
                assert!(texts.set(at, &of(round, at)));
            }
            for at in 0..64 {
                assert_eq!(text_of(&texts.views[at], &texts.heap), of(round, at).as_bytes());
            }
            let named: usize = (0..64).map(|at| of(round, at).len()).filter(|length| *length > 12).sum();
            assert_eq!(texts.heap.len() - texts.garbage_bytes, named);
            assert!(texts.heap.len() <= (2 * named).max(GARBAGE_BYTES_FREE) + 1_000);
        }
        for at in 0..64 {
            texts.clear(at);
        }
        assert!(texts.heap.len() <= GARBAGE_BYTES_FREE);
    }

    #[test]
    fn views_are_as_arrow_has_them() {
        assert_eq!(inline(b"abc").to_le_bytes(), *b"\x03\0\0\0abc\0\0\0\0\0\0\0\0\0");
        assert_eq!(outline(b"abcdefghijklm", 258).to_le_bytes(), *b"\x0d\0\0\0abcd\0\0\0\0\x02\x01\0\0");
    }
}
