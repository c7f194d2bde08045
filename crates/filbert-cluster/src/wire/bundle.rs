//! Several requests in one message, and their answers in one message.
//!
//! | bytes | contents |
//! |---|---|
//! | 1 | version: 129, which no single request begins with |
//! | .. | requests, *bytes* each; or answers, 1: whether present, and *bytes* each; up to the end |

use bytes::Bytes;
use filbert_store::CodecError;

use super::{Reader, append_bytes};

/// The first byte of bundled requests.
const BUNDLE: u8 = 129;

/// Whether the message is a bundle of requests.
pub(crate) fn is_bundle(request: &Bytes) -> bool {
    request.first() == Some(&BUNDLE)
}

pub(crate) fn write_requests(requests: &[Bytes]) -> Bytes {
    let mut out = vec![BUNDLE];
    requests.iter().for_each(|request| append_bytes(&mut out, request));
    out.into()
}

pub(crate) fn read_requests(bytes: &Bytes) -> Result<Vec<Bytes>, CodecError> {
    read(bytes, |reader| reader.shared("a request among others"))
}

pub(crate) fn write_answers(answers: &[Option<Bytes>]) -> Bytes {
    let mut out = vec![BUNDLE];
    for answer in answers {
        out.push(u8::from(answer.is_some()));
        append_bytes(&mut out, answer.as_deref().unwrap_or_default());
    }
    out.into()
}

pub(crate) fn read_answers(bytes: &Bytes) -> Result<Vec<Option<Bytes>>, CodecError> {
    const WHAT: &str = "an answer among others";
    read(bytes, |reader| {
        let is_there = reader.flag(WHAT)?;
        reader.shared(WHAT).map(|answer| is_there.then_some(answer))
    })
}

fn read<T>(bytes: &Bytes, one: impl Fn(&mut Reader<'_>) -> Result<T, CodecError>) -> Result<Vec<T>, CodecError> {
    const WHAT: &str = "the version of messages";
    let mut reader = Reader::new(bytes);
    match reader.u8(WHAT)? {
        BUNDLE => {}
        found => return Err(reader.unexpected(WHAT, u64::from(found), "129")),
    }
    let mut all = Vec::new();
    while !reader.is_at_end() {
        all.push(one(&mut reader)?);
    }
    Ok(all)
}
