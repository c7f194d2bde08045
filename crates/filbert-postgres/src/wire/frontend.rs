//! The messages of clients.

use super::body::{Body, Violation};

/// The size of a message's type byte and length.
pub(crate) const HEADER_BYTES: usize = 5;

/// The target of `Describe` and `Close`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Statement,
    Portal,
}

/// A list of type OIDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Oids<'a>(&'a [u8]);

impl<'a> Oids<'a> {
    pub(crate) fn len(self) -> usize {
        self.0.len() / 4
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = u32> + 'a {
        self.0.as_chunks().0.iter().map(|chunk: &[u8; 4]| u32::from_be_bytes(*chunk))
    }
}

/// A list of format codes. An empty list means text for all columns. One code applies to all
/// columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Formats<'a>(&'a [u8]);

impl<'a> Formats<'a> {
    pub(crate) fn len(self) -> usize {
        self.0.len() / 2
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = u16> + 'a {
        self.0.as_chunks().0.iter().map(|chunk: &[u8; 2]| u16::from_be_bytes(*chunk))
    }
}

/// Values for a prepared statement's parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bind<'a> {
    pub(crate) portal: &'a str,
    pub(crate) statement: &'a str,
    pub(crate) formats: Formats<'a>,
    /// The number of values.
    pub(crate) count: u16,
    /// The values. Their lengths are already checked.
    values: Body<'a>,
    pub(crate) results: Formats<'a>,
}

impl<'a> Bind<'a> {
    /// The values. `None` is null.
    pub(crate) fn values(&self) -> impl Iterator<Item = Option<&'a [u8]>> + use<'a> {
        let mut body = self.values;
        (0..self.count).map_while(move |_| value(&mut body).ok())
    }
}

/// A message of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Frontend<'a> {
    Query(&'a str),
    Parse {
        name: &'a str,
        text: &'a str,
        types: Oids<'a>,
    },
    Bind(Bind<'a>),
    Describe(Target, &'a str),
    Execute {
        portal: &'a str,
        rows_max: u32,
    },
    Close(Target, &'a str),
    Flush,
    Sync,
    CopyData(&'a [u8]),
    CopyDone,
    CopyFail(&'a str),
    /// A reply in an authentication. Its body depends on the request.
    Password,
    Terminate,
}

/// The type byte and the total length of the message at the front of `bytes`. `None` until the
/// header has arrived.
///
/// # Errors
/// The length is invalid, or beyond `bytes_max`.
pub(crate) fn frame(bytes: &[u8], bytes_max: usize) -> Result<Option<(u8, usize)>, Violation> {
    let Some((header, _)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return Ok(None) };
    let [tag, length @ ..] = *header;
    let length = i32::from_be_bytes(length);
    match usize::try_from(length) {
        Ok(length) if (4..=bytes_max).contains(&length) => Ok(Some((tag, length + 1))),
        _ => Err(Violation::Length { tag: char::from(tag), length: length.into(), max: bytes_max }),
    }
}

/// The total length of the message at the front of `bytes`. `None` until the header has arrived.
pub(crate) fn length_of(bytes: &[u8]) -> Option<usize> {
    let (_, length) = bytes.get(..HEADER_BYTES)?.split_first_chunk::<1>()?;
    usize::try_from(i32::from_be_bytes(*length.first_chunk()?)).ok()?.checked_add(1)
}

impl<'a> Frontend<'a> {
    /// Decodes a message's body.
    ///
    /// # Errors
    /// The body does not have the format of this type.
    pub(crate) fn decode(tag: u8, bytes: &'a [u8]) -> Result<Frontend<'a>, Violation> {
        let mut body = Body::new(tag, bytes);
        let message = match tag {
            b'Q' => Frontend::Query(body.text("text")?),
            b'P' => {
                let (name, text) = (body.text("name")?, body.text("text")?);
                let count = body.u16("number of types")?;
                Frontend::Parse { name, text, types: Oids(body.take(usize::from(count) * 4, "types")?) }
            }
            b'B' => Frontend::Bind(bind(&mut body)?),
            b'D' => Frontend::Describe(target(&mut body)?, body.text("name")?),
            b'E' => {
                let portal = body.text("portal")?;
                // As in PostgreSQL, zero and negative numbers mean all rows.
                let rows_max = u32::try_from(body.i32("number of rows")?).unwrap_or_default();
                Frontend::Execute { portal, rows_max }
            }
            b'C' => Frontend::Close(target(&mut body)?, body.text("name")?),
            b'H' => Frontend::Flush,
            b'S' => Frontend::Sync,
            b'd' => Frontend::CopyData(body.rest()),
            b'c' => Frontend::CopyDone,
            b'f' => Frontend::CopyFail(body.text("reason")?),
            b'p' => return Ok(Frontend::Password),
            b'X' => Frontend::Terminate,
            _ => return Err(Violation::Unknown(char::from(tag))),
        };
        body.end()?;
        Ok(message)
    }
}

fn target(body: &mut Body<'_>) -> Result<Target, Violation> {
    match body.u8("kind")? {
        b'S' => Ok(Target::Statement),
        b'P' => Ok(Target::Portal),
        other => Err(body.is_false("kind", char::from(other))),
    }
}

fn formats<'a>(body: &mut Body<'a>, field: &'static str) -> Result<Formats<'a>, Violation> {
    let count = body.u16(field)?;
    let formats = Formats(body.take(usize::from(count) * 2, field)?);
    match formats.iter().find(|format| *format > 1) {
        Some(other) => Err(body.is_false(field, other)),
        None => Ok(formats),
    }
}

fn value<'a>(body: &mut Body<'a>) -> Result<Option<&'a [u8]>, Violation> {
    match body.i32("length of a value")? {
        -1 => Ok(None),
        length => match usize::try_from(length) {
            Ok(length) => body.take(length, "value").map(Some),
            Err(_) => Err(body.is_false("length of a value", length)),
        },
    }
}

fn bind<'a>(body: &mut Body<'a>) -> Result<Bind<'a>, Violation> {
    let (portal, statement) = (body.text("portal")?, body.text("statement")?);
    let formats = self::formats(body, "parameter formats")?;
    let count = body.u16("number of values")?;
    let values = *body;
    for _ in 0..count {
        value(body)?;
    }
    if formats.len() > 1 && formats.len() != usize::from(count) {
        let found = format!("{} for {count} parameters", formats.len());
        return Err(body.is_false("number of parameter formats", found));
    }
    Ok(Bind { portal, statement, formats, count, values, results: self::formats(body, "result formats")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(tag: u8, body: &[u8]) -> Result<String, String> {
        Frontend::decode(tag, body).map(|message| format!("{message:?}")).map_err(|error| error.to_string())
    }

    #[test]
    fn messages_are_read() {
        assert!(matches!(Frontend::decode(b'Q', b"SELECT 1\0"), Ok(Frontend::Query("SELECT 1"))));
        let parse = Frontend::decode(b'P', b"s\0SELECT $1\0\0\x01\0\0\0\x17").unwrap();
        let Frontend::Parse { name: "s", text: "SELECT $1", types } = parse else { panic!("{parse:?}") };
        assert_eq!(types.iter().collect::<Vec<_>>(), [23]);
        let body = b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x01A\xff\xff\xff\xff\0\x01\0\0";
        let Ok(Frontend::Bind(bind)) = Frontend::decode(b'B', body) else { panic!() };
        assert_eq!((bind.portal, bind.statement, bind.count), ("p", "s", 2));
        assert_eq!(bind.values().collect::<Vec<_>>(), [Some(&b"A"[..]), None]);
        assert_eq!((bind.formats.iter().collect::<Vec<_>>(), bind.results.len()), (vec![1], 1));
        assert!(matches!(Frontend::decode(b'E', b"p\0\0\0\0\x05"), Ok(Frontend::Execute { portal: "p", rows_max: 5 })));
        assert!(matches!(Frontend::decode(b'D', b"Sx\0"), Ok(Frontend::Describe(Target::Statement, "x"))));
        assert!(matches!(Frontend::decode(b'd', b""), Ok(Frontend::CopyData(b""))));
    }

    #[test]
    fn a_malformed_message_is_reported() {
        for (tag, body, expected) in [
            (b'Q', &b"SELECT 1"[..], "message 'Q' ends before its text"),
            (b'Q', b"\xff\0", "the text of message 'Q' is not UTF-8"),
            (b'Q', b"x\0y", "message 'Q' has 1 bytes behind its last field"),
            (b'P', b"s\0x\0\0\x02\0\0\0\x01", "message 'P' ends before its types"),
            (b'B', b"\0\0\0\0\xff\xff", "message 'B' ends before its length of a value"),
            (b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xfe", "message 'B' has a false length of a value: -2"),
            (b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff", "message 'B' ends before its value"),
            (b'B', b"\0\0\0\x01\0\x02\0\0\0\0", "message 'B' has a false parameter formats: 2"),
            (
                b'B',
                b"\0\0\0\x02\0\x01\0\x01\0\0\0\0",
                "message 'B' has a false number of parameter formats: 2 for 0 parameters",
            ),
            (b'D', b"Xx\0", "message 'D' has a false kind: X"),
            (b'S', b"\0", "message 'S' has 1 bytes behind its last field"),
            (b'?', b"", "unknown message '?'"),
        ] {
            assert_eq!(decode(tag, body), Err(expected.into()));
        }
    }

    #[test]
    fn lengths_are_checked_before_anything_is_kept() {
        assert_eq!(frame(b"Q\0\0\0", 100), Ok(None));
        assert_eq!(frame(b"Q\0\0\0\x04", 100), Ok(Some((b'Q', 5))));
        for bytes in [b"Q\0\0\0\x03", b"Q\xff\xff\xff\xff", b"Q\0\0\0\x65"] {
            assert!(frame(bytes, 100).is_err(), "{bytes:?}");
        }
    }
}
