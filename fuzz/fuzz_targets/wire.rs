//! Bytes of a hostile peer: the splitter, the frames, and the decoder of every message.
//!
//! The input is a stream. Each message from the splitter is decoded by its id. Each decoded message
//! must be the same after it was encoded and decoded again. The same bytes are also used as the
//! frames of a message with a valid header, because random bytes seldom contain one: the first two
//! bytes select the message.
#![no_main]

use filbert_wire::{
    CorrelationId, Limits, Message, MessageId, Split, Splitter,
    frame::{Writer, flags},
    table,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    stream(data);
    let Some(([low, high], rest)) = data.split_first_chunk::<2>() else { return };
    let Some(id) = table::ids().nth(usize::from(u16::from_le_bytes([*low, *high]) % 986)) else { return };
    decode(&frames(id, rest));
    let mut sampled = Vec::new();
    table::sample(id, rest, CorrelationId(1), -1, &mut sampled);
    assert_eq!(decode(&sampled), Some(sampled.clone()), "{id} changes on its way");
    stream(&sampled);
});

fn stream(mut data: &[u8]) {
    let limits = Limits { message_bytes_max: 1 << 16, fragmented_messages_max: 4 };
    let mut splitter = Splitter::new(limits);
    while let Ok(Some(split)) = splitter.split(data) {
        let consumed = match split {
            Split::Whole(length) => {
                decode(&data[..length]);
                length
            }
            Split::Fragment(length) => length,
            Split::Assembled(length, message) => {
                decode(&message);
                length
            }
        };
        assert!(consumed > 0 && splitter.kept_bytes() <= limits.message_bytes_max);
        data = &data[consumed..];
    }
}

/// Decodes any message and encodes it again, twice. Returns the message as this version writes it.
fn decode(bytes: &[u8]) -> Option<Vec<u8>> {
    let message = Message::parse(bytes).ok()?;
    let mut once = Vec::new();
    if let Err(error) = table::recode(&message, &mut once) {
        assert!(!error.to_string().is_empty());
        return None;
    }
    let mut twice = Vec::new();
    let again = Message::parse(&once).and_then(|message| table::recode(&message, &mut twice));
    assert_eq!((again, &twice), (Ok(()), &once));
    Some(once)
}

/// A message with a valid header, and with frames that `data` defines.
fn frames(id: MessageId, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    let (first, mut rest) = data.split_at(data.len().min(64));
    writer.frame(flags::UNFRAGMENTED, &[&id.0.to_le_bytes()[..], &[0; 9], first].concat());
    while let Some((kind, after)) = rest.split_first() {
        let content = &after[..usize::from(kind >> 3).min(after.len())];
        let bits = [0, 0, 0, 0, 0, flags::BEGIN, flags::END, flags::NULL][usize::from(kind & 7)];
        writer.frame(bits, content);
        rest = &after[content.len()..];
    }
    writer.finish();
    bytes
}
