//! Replies that are one long list. They are written entry by entry while a map is visited, so no
//! second copy is needed.

use filbert_grid::{ErrorKind, Exhausted, GridError};
use filbert_wire::{
    CorrelationId, Data, Message, MessageId,
    codec::Field,
    frame::{FRAME_HEADER_BYTES, Writer, flags, set_flags},
    structure::AnchorDataListHolder,
};

use crate::{
    failure::{Failure, Outcome},
    replies::{Mark, Replies},
};

/// Bytes that remain free in a piece after each item: for the frames that close the list, and a
/// pair.
const CLOSING_BYTES: usize = 64;

/// A response under construction. The first frame is written, lists follow. Memory for the items is
/// reserved in the budget.
pub(crate) struct Listing<'o> {
    out: &'o mut Replies,
    message: MessageId,
    bytes: usize,
    bytes_max: usize,
    /// The error if there was no memory for an item.
    exhausted: Option<Exhausted>,
    /// The offset of the last frame in the tail.
    last_frame: usize,
    /// The position of the pair at the beginning, if there is one.
    pair: Option<Mark>,
}

impl<'o> Listing<'o> {
    /// Begins the response to `message`, without fields of fixed size. Its items may have
    /// `bytes_max` bytes.
    pub(crate) fn begin(message: &Message<'_>, bytes_max: usize, out: &'o mut Replies) -> Self {
        Self::answering(message.id(), message.correlation_id(), bytes_max, out)
    }

    /// As [`Listing::begin`], for a request that is no longer available.
    pub(crate) fn answering(
        message: MessageId,
        correlation: CorrelationId,
        bytes_max: usize,
        out: &'o mut Replies,
    ) -> Self {
        let last_frame = out.len();
        Writer::new(out).frame_with(flags::UNFRAGMENTED, |out| {
            out.extend_from_slice(&message.part(1).0.to_le_bytes());
            out.extend_from_slice(&correlation.0.to_le_bytes());
            // There are no backups to wait for.
            out.push(0);
        });
        Self { out, message, bytes: 0, bytes_max, exhausted: None, last_frame, pair: None }
    }

    /// Opens a list.
    pub(crate) fn open(&mut self) {
        self.last_frame = self.out.len();
        Writer::new(self.out).begin();
    }

    /// Appends a key or a value.
    #[inline]
    pub(crate) fn item(&mut self, data: Data<'_>) {
        if self.takes(FRAME_HEADER_BYTES + data.len()) {
            self.last_frame = self.out.len();
            Writer::new(self.out).frame(0, data);
        }
    }

    /// Appends a value or a null.
    #[inline]
    pub(crate) fn nullable(&mut self, data: Option<Data<'_>>) {
        match data {
            Some(data) => self.item(data),
            None => {
                if self.takes(FRAME_HEADER_BYTES) {
                    self.last_frame = self.out.len();
                    Writer::new(self.out).null();
                }
            }
        }
    }

    /// Whether `needed` more bytes fit into the limit of the response and into memory.
    #[inline]
    fn takes(&mut self, needed: usize) -> bool {
        self.bytes = self.bytes.saturating_add(needed);
        if self.is_over() {
            return false;
        }
        self.out.capacity() - self.out.len() >= needed + CLOSING_BYTES || self.make_room(needed)
    }

    #[cold]
    fn make_room(&mut self, needed: usize) -> bool {
        self.exhausted = self.out.make_room(needed + CLOSING_BYTES, self.bytes).err();
        self.exhausted.is_none()
    }

    /// Whether the response will be refused, because it exceeds its limit or there is no memory.
    /// Then more items are not needed.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.bytes > self.bytes_max || self.exhausted.is_some()
    }

    /// Appends a key and its value.
    #[inline]
    pub(crate) fn entry(&mut self, key: Data<'_>, value: Data<'_>) {
        self.item(key);
        self.item(value);
    }

    /// Closes the list and the response. Fails if the response is too long.
    pub(crate) fn finish(mut self) -> Outcome {
        self.last_frame = self.out.len();
        Writer::new(self.out).end();
        self.finish_open()
    }

    /// Closes the list, appends the anchors of pages, and closes the response.
    pub(crate) fn finish_with(mut self, anchors: &AnchorDataListHolder<'_>) -> Outcome {
        let data = |(key, value): &(&[u8], &[u8])| key.len() + value.len() + 4 * FRAME_HEADER_BYTES + size_of::<i32>();
        let bytes: usize = anchors.anchor_data_list.iter().map(data).sum();
        let takes = self.takes(bytes);
        let mut writer = Writer::new(self.out);
        writer.end();
        if takes {
            anchors.put_variable(&mut writer);
        }
        writer.finish();
        self.check()
    }

    /// Closes the list, appends a packed list of one pair, and closes the response.
    pub(crate) fn finish_with_pair(self, pair: (i32, i32)) -> Outcome {
        let mut writer = Writer::new(self.out);
        writer.end();
        writer.frame(0, &packed(pair));
        writer.finish();
        self.check()
    }

    /// Closes a response that has no list. Fails if the response is too long.
    pub(crate) fn finish_open(self) -> Outcome {
        set_flags(self.out.get_mut(self.last_frame..).unwrap_or_default(), flags::FINAL);
        self.check()
    }

    fn check(&self) -> Outcome {
        if let Some(exhausted) = &self.exhausted {
            return Err(GridError::from(exhausted.clone()).into());
        }
        if self.bytes > self.bytes_max {
            let text = format!(
                "the reply to {} needs {} bytes, expected at most {} (reply_bytes_max); iterate over the map instead",
                self.message, self.bytes, self.bytes_max
            );
            return Err(Failure::new(ErrorKind::LimitReached, text));
        }
        Ok(())
    }

    /// Writes a packed list of one pair of numbers. [`Listing::fill_pair`] sets the numbers when
    /// they are known.
    pub(crate) fn pair(&mut self) {
        self.pair = Some(self.out.mark());
        Writer::new(self.out).frame(0, &[0; 8]);
    }

    /// Sets the numbers of the pair at the beginning of the response.
    pub(crate) fn fill_pair(&mut self, pair: (i32, i32)) {
        if let Some(at) = self.pair {
            self.out.patch(at, FRAME_HEADER_BYTES, &packed(pair));
        }
    }
}

fn packed((first, second): (i32, i32)) -> [u8; 8] {
    let [a, b, c, d] = first.to_le_bytes();
    let [e, f, g, h] = second.to_le_bytes();
    [a, b, c, d, e, f, g, h]
}

#[cfg(test)]
mod tests {
    use filbert_grid::MemoryBudget;
    use filbert_wire::{CorrelationId, Request, Response, table::map::fetch_keys};

    use super::*;

    #[test]
    fn a_listing_decodes_as_the_response_that_it_stands_for() {
        let mut out = Replies::whole(b"before".to_vec(), &MemoryBudget::new(4 << 20, "max"));
        let start = out.mark();
        let mut request = Vec::new();
        fetch_keys::Request::default().encode(CorrelationId(7), -1, &mut request);
        let message = Message::parse(&request).unwrap();
        let mut listing = Listing::begin(&message, usize::MAX, &mut out);
        listing.pair();
        listing.open();
        listing.item(b"key 1");
        listing.item(b"");
        let long = [vec![7; 100_000], vec![8; 2_000_000], vec![9; 300_000]];
        long.iter().for_each(|item| listing.item(item));
        listing.fill_pair((5, -6));
        listing.finish().unwrap();

        let bytes = out.split_off_all(start);
        let message = Message::parse(&bytes).unwrap();
        assert_eq!(message.correlation_id(), CorrelationId(7));
        let response: fetch_keys::Response<'_> = message.decode().unwrap();
        assert_eq!(response.iteration_pointers, [(5, -6)]);
        assert!(response.keys == [b"key 1".as_slice(), b"", &long[0], &long[1], &long[2]]);
        let mut same = Vec::new();
        response.encode(CorrelationId(7), &mut same);
        assert!(bytes == same);
        assert_eq!(&out[..], b"before");
    }

    #[test]
    fn a_listing_without_room_is_refused() {
        let budget = MemoryBudget::new(1 << 20, "max");
        let mut out = Replies::new(&budget);
        let mut listing = Listing::answering(fetch_keys::ID, CorrelationId(7), usize::MAX, &mut out);
        listing.open();
        while !listing.is_over() {
            listing.item(&[7; 10_000]);
        }
        let refused = listing.finish().unwrap_err();
        assert_eq!(refused.kind, ErrorKind::OutOfMemory);
        assert!(out.bytes() <= 1 << 20);
    }
}
