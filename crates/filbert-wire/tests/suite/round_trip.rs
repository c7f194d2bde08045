//! Round trips of every message of the table, complete or fragmented, and between peers of
//! different versions. Invalid bytes never cause a panic.

use filbert_wire::{
    CorrelationId, Direction, FieldSpec, Limits, Message, MessageId, Request as _, Split, Splitter, encode_fragmented,
    frame::{FRAME_HEADER_BYTES, Frames, Writer, flags},
    structure::IndexConfig,
    table::{self, map},
};
use proptest::prelude::*;

/// The frames of a message: flags and content.
type Parts = Vec<(u16, Vec<u8>)>;

fn parts(message: &[u8]) -> Parts {
    Frames::new(message).map(|frame| (frame.flags & !flags::FINAL, frame.content.to_vec())).collect()
}

fn assemble(parts: &Parts) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out);
    for (flags, content) in parts {
        writer.frame(*flags, content);
    }
    writer.finish();
    out
}

/// Creates the message `id` from random bytes.
fn sample(id: MessageId, random: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    assert!(table::sample(id, random, CorrelationId(-3), 17, &mut out), "{id} is in no table");
    out
}

/// Decodes and encodes a message. Every field is encoded, so equal bytes mean equal fields.
fn recode(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    table::recode(&Message::parse(bytes).unwrap(), &mut out).unwrap();
    out
}

fn direction(id: MessageId) -> Direction {
    match id.0 & 0xff {
        _ if id == MessageId::ERROR => Direction::Response,
        0 => Direction::Request,
        1 => Direction::Response,
        _ => Direction::Event,
    }
}

/// The fields of a message; empty for the error, which has no row.
fn fields(id: MessageId) -> &'static [FieldSpec] {
    let Some(spec) = table::find(id) else { return &[] };
    match direction(id) {
        Direction::Request => spec.request,
        Direction::Response => spec.response,
        Direction::Event => spec.events.iter().find(|event| event.id == id).unwrap().fields,
    }
}

/// Passes `stream` to a splitter in pieces of the given sizes. Returns the messages.
fn split_all(stream: &[u8], mut piece_bytes: impl FnMut() -> usize) -> Vec<Vec<u8>> {
    let mut splitter = Splitter::new(Limits::default());
    let (mut buffer, mut messages, mut rest) = (Vec::new(), Vec::new(), stream);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(piece_bytes().clamp(1, rest.len()));
        rest = after;
        buffer.extend_from_slice(piece);
        while let Some(split) = splitter.split(&buffer).unwrap() {
            let consumed = match split {
                Split::Whole(n) => {
                    messages.push(buffer[..n].to_vec());
                    n
                }
                Split::Fragment(n) => n,
                Split::Assembled(n, message) => {
                    messages.push(message);
                    n
                }
            };
            buffer.drain(..consumed);
        }
    }
    assert!(buffer.is_empty(), "{} bytes are left over", buffer.len());
    assert_eq!(splitter.kept_bytes(), 0);
    messages
}

/// The number of bytes of a field in the first frame, by its type in the table.
fn fixed_bytes(kind: &str) -> usize {
    match kind {
        "bool" | "u8" => 1,
        "i32" | "f32" => 4,
        "i64" | "f64" => 8,
        "Uuid" | "Option<Uuid>" => 17,
        _ => 0,
    }
}

fn skip_value(parts: &Parts, at: &mut usize) {
    let mut depth = 0;
    loop {
        let (bits, _) = parts[*at];
        *at += 1;
        depth += i32::from(bits & flags::BEGIN != 0) - i32::from(bits & flags::END != 0);
        if depth == 0 {
            return;
        }
    }
}

/// Meaningless frames after the header of message `id`.
fn garbage(id: MessageId, random: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes);
    let (first, mut rest) = random.split_at(usize::from(random.first().copied().unwrap_or(0)).min(random.len()));
    writer.frame(flags::UNFRAGMENTED, &[&id.0.to_le_bytes()[..], &[0; 12], first].concat());
    while let Some((kind, after)) = rest.split_first() {
        let content = &after[..usize::from(kind >> 4).min(after.len())];
        writer.frame([0, 0, flags::BEGIN, flags::END, flags::NULL][usize::from(kind % 5)], content);
        rest = &after[content.len()..];
    }
    writer.finish();
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_message_survives_the_wire(random in prop::collection::vec(any::<u8>(), 0..600)) {
        for id in table::ids() {
            let bytes = sample(id, &random);
            let message = Message::parse(&bytes).unwrap();
            prop_assert_eq!((message.id(), message.correlation_id()), (id, CorrelationId(-3)));
            prop_assert_eq!(message.is_event(), direction(id) == Direction::Event);
            if direction(id) == Direction::Response {
                prop_assert_eq!(message.backup_acks(), 0);
            } else {
                prop_assert_eq!(message.partition_id(), 17);
            }
            prop_assert_eq!(recode(&bytes), bytes, "{}", id);
        }
    }

    #[test]
    fn every_message_of_a_newer_peer_is_read(random in prop::collection::vec(any::<u8>(), 0..400)) {
        for id in table::ids() {
            let bytes = sample(id, &random);
            let mut newer = parts(&bytes);
            newer[0].1.extend_from_slice(&[0xab; 5]);
            newer.push((0, vec![1, 2, 3]));
            newer.extend([(flags::BEGIN, vec![]), (flags::NULL, vec![]), (flags::END, vec![])]);
            prop_assert_eq!(recode(&assemble(&newer)), bytes, "{}", id);
        }
    }

    #[test]
    fn every_message_of_an_older_peer_is_read(random in prop::collection::vec(any::<u8>(), 0..600)) {
        let mut with_later_fields = 0;
        for id in table::ids() {
            let Some(older) = as_of_first_version(id, &random) else { continue };
            with_later_fields += 1;
            // The fields that were sent are kept. The other fields have the bytes of their
            // defaults; cutting them off again removes these bytes.
            let read = recode(&older);
            prop_assert!(read.len() > older.len(), "{}: no field was added", id);
            prop_assert_eq!(cut_to_first_version(id, &read), older, "{}", id);
        }
        prop_assert_eq!(with_later_fields, 37);
    }

    #[test]
    fn messages_are_found_however_the_stream_is_cut(
        random in prop::collection::vec(any::<u8>(), 0..200),
        pieces in prop::collection::vec(1_usize..400, 1..50),
        fragment_bytes in 40_usize..300,
    ) {
        let (mut stream, mut expected) = (Vec::new(), Vec::new());
        for id in table::ids() {
            let message = sample(id, &random);
            let number = expected.len() as i64;
            if number % 2 == 0 || encode_fragmented(&message, number, fragment_bytes, &mut stream).is_err() {
                stream.extend_from_slice(&message);
            }
            expected.push(message);
        }
        let mut sizes = pieces.iter().copied().cycle();
        prop_assert_eq!(split_all(&stream, || sizes.next().unwrap()), expected);
    }

    #[test]
    fn garbage_never_panics_a_decoder(random in prop::collection::vec(any::<u8>(), 0..300)) {
        for id in table::ids() {
            let bytes = garbage(id, &random);
            let _ = table::recode(&Message::parse(&bytes).unwrap(), &mut Vec::new());
        }
    }

    #[test]
    fn random_bytes_never_panic(random in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = Splitter::new(Limits::default()).split(&random);
        let _ = Message::parse(&random);
    }

    #[test]
    fn changed_bytes_never_panic(
        random in prop::collection::vec(any::<u8>(), 0..300),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        for id in table::ids() {
            let mut bytes = sample(id, &random);
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            let _ = Splitter::new(Limits::default()).split(&bytes);
            if let Ok(message) = Message::parse(&bytes) {
                let _ = table::recode(&message, &mut Vec::new());
            }
        }
    }
}

/// The message as a peer of its first version sends it; `None` if no field was added later.
fn as_of_first_version(id: MessageId, random: &[u8]) -> Option<Vec<u8>> {
    let since = since(id)?;
    fields(id).iter().any(|field| field.since > since).then(|| cut_to_first_version(id, &sample(id, random)))
}

/// The first version of the message or event.
fn since(id: MessageId) -> Option<filbert_wire::ProtocolVersion> {
    let spec = table::find(id)?;
    Some(spec.events.iter().find(|event| event.id == id).map_or(spec.since, |event| event.since))
}

fn cut_to_first_version(id: MessageId, bytes: &[u8]) -> Vec<u8> {
    let since = since(id).unwrap();
    let mut parts = parts(bytes);
    let late_fixed: usize =
        fields(id).iter().filter(|field| field.since > since).map(|field| fixed_bytes(field.kind)).sum();
    let kept_fixed = parts[0].1.len() - late_fixed;
    parts[0].1.truncate(kept_fixed);
    let first = fields(id).iter().filter(|field| field.since <= since);
    keep_values(&mut parts, first);
    assemble(&parts)
}

/// Removes the frames after the fields `first`, which are the fields of the first version.
fn keep_values(parts: &mut Parts, first: impl Iterator<Item = &'static FieldSpec>) {
    let mut at = 1;
    for field in first.filter(|field| fixed_bytes(field.kind) == 0) {
        skip_value(parts, &mut at);
        assert!(!field.kind.contains("(Uuid, Vec<i32>)"), "the keys of such a list are a frame of their own");
    }
    parts.truncate(at);
}

#[test]
fn a_message_whose_only_field_came_later_is_read() {
    let mut out = Vec::new();
    Writer::new(&mut out)
        .frame(flags::UNFRAGMENTED | flags::FINAL, &[&map::delete::RESPONSE_ID.0.to_le_bytes()[..], &[0; 9]].concat());
    let message = Message::parse(&out).unwrap();
    assert_eq!(message.decode::<map::delete::Response>(), Ok(map::delete::Response { response: false }));
}

#[test]
fn a_structure_of_a_newer_or_older_peer_is_read() {
    let index_config = IndexConfig { name: Some("i"), kind: 1, attributes: vec!["a"], ..Default::default() };
    let request = map::add_index::Request { name: "m", index_config };
    let mut bytes = Vec::new();
    request.encode(CorrelationId(1), -1, &mut bytes);
    let newest = parts(&bytes);

    let mut newer = newest.clone();
    let end = newer.len() - 1;
    let more =
        [(0, vec![1]), (flags::BEGIN, vec![]), (flags::BEGIN, vec![]), (flags::END, vec![]), (flags::END, vec![])];
    newer.splice(end..end, more);
    // The frame of fixed fields follows the BEGIN frame of the structure: first frame, name, BEGIN,
    // fixed fields.
    newer[3].1.extend_from_slice(&[9, 9]);

    let mut older = newest;
    let end = older.len() - 1;
    older.remove(end - 1);

    for parts in [newer, older] {
        let bytes = assemble(&parts);
        let message = Message::parse(&bytes).unwrap();
        assert_eq!(message.decode::<map::add_index::Request<'_>>().as_ref(), Ok(&request));
    }
}

#[test]
fn a_frame_costs_its_header_only() {
    let mut out = Vec::new();
    Writer::new(&mut out).frame(0, b"abc");
    assert_eq!(out.len(), FRAME_HEADER_BYTES + 3);
}
