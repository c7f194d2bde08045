//! Replies that are one long list, written entry by entry while a map is visited, so that no second copy is made.

use filbert_grid::ErrorKind;
use filbert_wire::{
    CorrelationId, Data, Message, MessageId,
    codec::Field,
    frame::{FRAME_HEADER_BYTES, Writer, flags},
    structure::AnchorDataListHolder,
};

use crate::failure::{Failure, Outcome};

/// A response under construction: the first frame is there, lists follow.
pub(crate) struct Listing<'o> {
    writer: Writer<'o>,
    message: MessageId,
    bytes: usize,
    bytes_max: usize,
}

impl<'o> Listing<'o> {
    /// Begins the response to `message`, which has no fields of fixed size. It may have `bytes_max` bytes of items.
    pub(crate) fn begin(message: &Message<'_>, bytes_max: usize, out: &'o mut Vec<u8>) -> Self {
        Self::answering(message.id(), message.correlation_id(), bytes_max, out)
    }

    /// The same for a request that is not at hand any more.
    pub(crate) fn answering(
        message: MessageId,
        correlation: CorrelationId,
        bytes_max: usize,
        out: &'o mut Vec<u8>,
    ) -> Self {
        let mut writer = Writer::new(out);
        writer.frame_with(flags::UNFRAGMENTED, |out| {
            out.extend_from_slice(&message.part(1).0.to_le_bytes());
            out.extend_from_slice(&correlation.0.to_le_bytes());
            // No backups to wait for.
            out.push(0);
        });
        Self { writer, message, bytes: 0, bytes_max }
    }

    /// Opens a list.
    pub(crate) fn open(&mut self) {
        self.writer.begin();
    }

    /// Appends a key or a value.
    #[inline]
    pub(crate) fn item(&mut self, data: Data<'_>) {
        self.bytes = self.bytes.saturating_add(FRAME_HEADER_BYTES + data.len());
        if self.bytes <= self.bytes_max {
            self.writer.frame(0, data);
        }
    }

    /// Appends a value, or a null.
    #[inline]
    pub(crate) fn nullable(&mut self, data: Option<Data<'_>>) {
        match data {
            Some(data) => self.item(data),
            None => {
                self.bytes = self.bytes.saturating_add(FRAME_HEADER_BYTES);
                if self.bytes <= self.bytes_max {
                    self.writer.null();
                }
            }
        }
    }

    /// Whether there is more than the response may have, so that it will be refused.
    #[inline]
    pub(crate) fn is_too_long(&self) -> bool {
        self.bytes > self.bytes_max
    }

    /// Appends a key and its value.
    #[inline]
    pub(crate) fn entry(&mut self, key: Data<'_>, value: Data<'_>) {
        self.item(key);
        self.item(value);
    }

    /// Closes the list and the response, or refuses one that became too long.
    pub(crate) fn finish(mut self) -> Outcome {
        self.writer.end();
        self.finish_open()
    }

    /// Closes the list, appends the anchors of pages, and closes the response.
    pub(crate) fn finish_with(mut self, anchors: &AnchorDataListHolder<'_>) -> Outcome {
        self.writer.end();
        for (key, value) in &anchors.anchor_data_list {
            self.bytes = self.bytes.saturating_add(key.len() + value.len());
        }
        if !self.is_too_long() {
            anchors.put_variable(&mut self.writer);
        }
        self.finish_open()
    }

    /// Closes a response that has no list, or refuses one that became too long.
    pub(crate) fn finish_open(self) -> Outcome {
        if self.is_too_long() {
            let text = format!(
                "the reply to {} needs {} bytes, expected at most {} (reply_bytes_max); iterate over the map instead",
                self.message, self.bytes, self.bytes_max
            );
            return Err(Failure::new(ErrorKind::LimitReached, text));
        }
        self.writer.finish();
        Ok(())
    }

    /// A packed list of one pair of numbers, to be filled in by [`fill_pair`] when they are known.
    pub(crate) fn pair(&mut self) {
        self.writer.frame(0, &[0; 8]);
    }
}

/// Where the pair stands in a response that begins with one: behind the first frame's header and content, and the
/// header of the pair's own frame.
const PAIR_AT: usize = 6 + 13 + 6;

/// Fills in the pair of the response that begins at `start`.
pub(crate) fn fill_pair(out: &mut [u8], start: usize, pair: (i32, i32)) {
    if let Some(field) = out.get_mut(start + PAIR_AT..start + PAIR_AT + 8) {
        let (first, second) = field.split_at_mut(4);
        first.copy_from_slice(&pair.0.to_le_bytes());
        second.copy_from_slice(&pair.1.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use filbert_wire::{CorrelationId, Request, table::map::fetch_keys};

    use super::*;

    #[test]
    fn a_listing_decodes_as_the_response_that_it_stands_for() {
        let mut out = b"before".to_vec();
        let start = out.len();
        let mut request = Vec::new();
        fetch_keys::Request::default().encode(CorrelationId(7), -1, &mut request);
        let message = Message::parse(&request).unwrap();
        let mut listing = Listing::begin(&message, 100, &mut out);
        listing.pair();
        listing.open();
        listing.item(b"key 1");
        listing.item(b"");
        listing.finish().unwrap();
        fill_pair(&mut out, start, (5, -6));

        let message = Message::parse(&out[start..]).unwrap();
        assert_eq!(message.correlation_id(), CorrelationId(7));
        let response: fetch_keys::Response<'_> = message.decode().unwrap();
        assert_eq!(response.iteration_pointers, [(5, -6)]);
        assert_eq!(response.keys, [b"key 1".as_slice(), b""]);
    }
}
