//! The encoded requests of a workload, and the values of its keys.
//!
//! filbert-wire encodes a request once. After that a call costs a copy of this template and three
//! patches (correlation id, partition id, key). So the generator uses as little as possible of the
//! machine that it shares with the server.

use std::io::Write as _;

use filbert_wire::table::map;
use filbert_wire::{CorrelationId, Request as _};

use crate::distribution::{Mix, Operation, random};
use crate::error::{BenchError, Result};

/// The offset of the correlation id in a request: after length and flags of the frame, and the
/// message type.
const CORRELATION_AT: usize = 6 + 4;
/// The offset of the partition id in a request.
const PARTITION_AT: usize = CORRELATION_AT + 8;
/// A serialized `int`: partition hash 0, type id -7, the number. All parts are big-endian.
const INT_KEY: [u8; 12] = [0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xF9, 0, 0, 0, 0];
/// The header of a serialized text: partition hash 0, type id -11.
const TEXT_HEADER: [u8; 8] = [0, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xF5];
/// The overhead of a serialized text: header and length.
pub const TEXT_OVERHEAD_BYTES: usize = 12;
/// The size of a serialized key.
pub const KEY_BYTES: usize = INT_KEY.len();

/// The shape of the value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueShape {
    /// The key as decimal text.
    KeyText,
    /// A text with this number of characters: the decimal key, then characters that depend on the
    /// key.
    Text(usize),
}

/// Generates the value of a key. The value of a key never changes.
#[derive(Debug)]
pub struct Values {
    shape: ValueShape,
    filler: Vec<u8>,
}

impl Values {
    /// The number of different start offsets in the filler. They make the values of neighbouring
    /// keys differ.
    const OFFSETS: usize = 1024;

    /// Creates the generator for a shape. The filler depends on the seed.
    pub fn new(shape: ValueShape, seed: u64) -> Self {
        let length = match shape {
            ValueShape::KeyText => 0,
            ValueShape::Text(characters) => characters + Self::OFFSETS,
        };
        let filler = (0..length as u64).map(|n| b'a' + (random(seed, n) % 26) as u8).collect();
        Self { shape, filler }
    }

    /// Appends the serialized value of `key`.
    pub fn write(&self, key: i32, out: &mut Vec<u8>) {
        out.extend_from_slice(&TEXT_HEADER);
        let length_at = out.len();
        out.extend_from_slice(&[0; 4]);
        let text_at = out.len();
        match self.shape {
            ValueShape::KeyText => append_decimal(key, out),
            ValueShape::Text(characters) => {
                append_decimal(key, out);
                out.truncate(text_at + characters);
                let digits = out.len() - text_at;
                let from = (random(0, key as u64) % Self::OFFSETS as u64) as usize;
                out.extend_from_slice(self.filler.get(from..from + characters - digits).unwrap_or_default());
            }
        }
        let length = (out.len() - text_at) as u32;
        patch(out, length_at, &length.to_be_bytes());
    }

    /// Returns the serialized value of `key`.
    pub fn of(&self, key: i32) -> Vec<u8> {
        let mut value = Vec::new();
        self.write(key, &mut value);
        value
    }
}

/// Appends a decimal number. Writing to a vector cannot fail.
fn append_decimal(number: i32, out: &mut Vec<u8>) {
    let _ = write!(out, "{number}");
}

/// Overwrites existing bytes.
fn patch(bytes: &mut [u8], at: usize, with: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + with.len()) {
        place.copy_from_slice(with);
    }
}

/// Returns the serialized form of an integer key.
#[inline]
pub fn int_key(key: i32) -> [u8; KEY_BYTES] {
    let mut blob = INT_KEY;
    let [.., a, b, c, d] = &mut blob;
    [*a, *b, *c, *d] = key.to_be_bytes();
    blob
}

/// An encoded request, with the offsets of its variable parts.
#[derive(Debug)]
struct Template {
    /// The complete request, or all frames before the frame of the value.
    bytes: Vec<u8>,
    /// The offset of the key blob.
    key_at: usize,
    /// The flags of the value frame.
    value_flags: Option<[u8; 2]>,
}

impl Template {
    fn new(operation: Operation, map: &str) -> Result<Self> {
        // A unique key and a unique value mark the offsets in the message.
        let key = int_key(0x5A17_C3E9);
        let value = *b"\0\0\0\0\xFF\xFF\xFF\xF5\0\0\0\x08valuevalue";
        let (id, partition) = (CorrelationId(0), -1);
        let mut bytes = Vec::new();
        match operation {
            Operation::Get => {
                map::get::Request { name: map, key: &key, thread_id: 1 }.encode(id, partition, &mut bytes);
            }
            Operation::Set => {
                map::set::Request { name: map, key: &key, value: &value, thread_id: 1, ttl: -1 }
                    .encode(id, partition, &mut bytes);
            }
            Operation::Put => {
                map::put::Request { name: map, key: &key, value: &value, thread_id: 1, ttl: -1 }
                    .encode(id, partition, &mut bytes);
            }
        }
        let place = |mark: &[u8]| bytes.windows(mark.len()).position(|window| window == mark);
        let missing = || BenchError::Setting(format!("the codec of Map.{} has moved its fields", operation.name()));
        let key_at = place(&key).ok_or_else(missing)?;
        let value_at = match operation {
            Operation::Get => None,
            Operation::Set | Operation::Put => Some(place(&value).ok_or_else(missing)?),
        };
        let value_flags = match value_at {
            None => None,
            Some(at) => {
                let flags = bytes.get(at - 2..at).and_then(|flags| flags.try_into().ok()).ok_or_else(missing)?;
                if at + value.len() != bytes.len() {
                    return Err(missing());
                }
                bytes.truncate(at - 6);
                Some(flags)
            }
        };
        Ok(Self { bytes, key_at, value_flags })
    }
}

/// The encoder for the calls of a workload.
#[derive(Debug)]
pub struct Requests {
    templates: [Option<Template>; 3],
    values: Values,
    partition_count: u32,
}

impl Requests {
    /// Creates the encoder for the operations of `mix` on `map`. The server sends `partition_count`
    /// during authentication.
    pub fn new(mix: &Mix, map: &str, values: Values, partition_count: u32) -> Result<Self> {
        if partition_count == 0 {
            return Err(BenchError::Setting("the server names 0 partitions, expected at least 1".to_owned()));
        }
        let mut templates = [None, None, None];
        for operation in mix.operations() {
            if let Some(place) = templates.get_mut(operation as usize) {
                *place = Some(Template::new(operation, map)?);
            }
        }
        Ok(Self { templates, values, partition_count })
    }

    /// Appends an encoded call.
    #[inline]
    pub fn encode(&self, operation: Operation, key: i32, correlation: i64, out: &mut Vec<u8>) {
        let Some(Some(template)) = self.templates.get(operation as usize) else { return };
        let blob = int_key(key);
        let partition = filbert_data::partition_of(&blob, self.partition_count).0;
        let start = out.len();
        out.extend_from_slice(&template.bytes);
        patch(out, start + CORRELATION_AT, &correlation.to_le_bytes());
        patch(out, start + PARTITION_AT, &partition.to_le_bytes());
        patch(out, start + template.key_at, &blob);
        if let Some(flags) = template.value_flags {
            let frame_at = out.len();
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&flags);
            self.values.write(key, out);
            let length = (out.len() - frame_at) as u32;
            patch(out, frame_at, &length.to_le_bytes());
        }
    }

    /// The values of the keys.
    pub fn values(&self) -> &Values {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use filbert_wire::Message;

    fn requests(shape: ValueShape) -> Requests {
        Requests::new(&"get=1,set=1,put=1".parse().unwrap(), "m", Values::new(shape, 1), 271).unwrap()
    }

    #[test]
    fn a_template_decodes_to_what_was_asked() {
        let requests = requests(ValueShape::Text(100));
        for key in [0, 1, -1, 99_999, i32::MAX] {
            let mut out = Vec::new();
            requests.encode(Operation::Set, key, 0x1234_5678_9ABC, &mut out);
            let message = Message::parse(&out).unwrap();
            assert_eq!(message.correlation_id(), CorrelationId(0x1234_5678_9ABC));
            assert_eq!(message.partition_id(), filbert_data::partition_of(&int_key(key), 271).0 as i32);
            let request: map::set::Request<'_> = message.decode().unwrap();
            assert_eq!((request.name, request.key), ("m", &int_key(key)[..]));
            assert_eq!(request.value, requests.values().of(key));
            assert_eq!(request.value.len(), 100 + TEXT_OVERHEAD_BYTES);
        }
    }

    #[test]
    fn a_get_carries_no_value() {
        let mut out = Vec::new();
        requests(ValueShape::KeyText).encode(Operation::Get, 42, 7, &mut out);
        let request: map::get::Request<'_> = Message::parse(&out).unwrap().decode().unwrap();
        assert_eq!(request.key, int_key(42));
    }

    #[test]
    fn a_key_as_text_is_its_digits() {
        assert_eq!(Values::new(ValueShape::KeyText, 1).of(4711)[TEXT_OVERHEAD_BYTES..], *b"4711");
    }

    #[test]
    fn values_of_short_texts_are_cut() {
        for length in 0..20 {
            let value = Values::new(ValueShape::Text(length), 1).of(123_456_789);
            assert_eq!(value.len(), length + TEXT_OVERHEAD_BYTES);
        }
    }

    #[test]
    fn neighbouring_keys_have_different_values() {
        let values = Values::new(ValueShape::Text(50), 1);
        assert_ne!(values.of(1)[20..], values.of(2)[20..]);
    }
}
