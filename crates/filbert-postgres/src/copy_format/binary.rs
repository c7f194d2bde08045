//! PostgreSQL's binary format of COPY.
//!
//! ```text
//!  "PGCOPY\n\xff\r\n\0" · i32 flags · i32 length of an extension · extension
//!  · for each row: i16 fields · for each field: i32 length, -1 for null · bytes
//!  · i16 -1
//! ```

use crate::error::{PgError, sqlstate};

/// The signature at the front of the data.
pub(super) const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";
/// The critical flags. A reader must not ignore them.
const CRITICAL_FLAGS: i32 = !0xffff;

/// Decodes rows from bytes that arrive in parts. Holds at most one row.
#[derive(Debug)]
pub(crate) struct BinaryReader {
    pending: Vec<u8>,
    /// The number of bytes that must be available before decoding can continue.
    needed: usize,
    row_bytes_max: usize,
    header_seen: bool,
    is_over: bool,
    rows: u64,
}

/// A decoded part with its length, or the number of bytes that it needs.
enum Found<T> {
    Part(T, usize),
    Needs(usize),
}

fn broken(what: impl Into<String>) -> Box<PgError> {
    PgError::new(sqlstate::BAD_COPY_FORMAT, what)
}

fn int(bytes: &[u8], at: usize) -> Option<i32> {
    bytes.get(at..)?.first_chunk().map(|bytes| i32::from_be_bytes(*bytes))
}

impl BinaryReader {
    pub(crate) fn new(row_bytes_max: usize) -> BinaryReader {
        BinaryReader { pending: Vec::new(), needed: 0, row_bytes_max, header_seen: false, is_over: false, rows: 0 }
    }

    /// Decodes bytes. Passes each complete row to `on_row`, with the number of the row from 1 on.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        on_row: &mut impl FnMut(u64, &[Option<&[u8]>]) -> Result<(), Box<PgError>>,
    ) -> Result<(), Box<PgError>> {
        if self.is_over {
            // As in PostgreSQL, no data may follow the end marker.
            return if bytes.is_empty() { Ok(()) } else { Err(broken("received copy data after EOF marker")) };
        }
        let mut pending = std::mem::take(&mut self.pending);
        pending.extend_from_slice(bytes);
        let mut at = 0;
        let mut fields = Vec::new();
        while pending.len() - at >= self.needed && !self.is_over {
            let rest = pending.get(at..).unwrap_or_default();
            let found = match self.header_seen {
                false => header(rest)?,
                true => row(rest, &mut fields)?,
            };
            match found {
                Found::Needs(needed) if needed > self.row_bytes_max => {
                    let message = format!("row {} has more than {} bytes", self.rows + 1, self.row_bytes_max);
                    return Err(PgError::new(sqlstate::LIMIT_EXCEEDED, message));
                }
                Found::Needs(needed) => self.needed = needed,
                Found::Part(is_row, length) => {
                    (at, self.needed) = (at + length, 0);
                    if !std::mem::replace(&mut self.header_seen, true) {
                        continue;
                    }
                    if !is_row {
                        self.is_over = true;
                        continue;
                    }
                    self.rows += 1;
                    on_row(self.rows, &fields)?;
                }
            }
        }
        if self.is_over && at < pending.len() {
            return Err(broken("received copy data after EOF marker"));
        }
        drop(fields);
        pending.drain(..at);
        self.pending = pending;
        Ok(())
    }

    /// Ends the input. Fails if a row is incomplete, or if the header is missing.
    pub(crate) fn finish(&self) -> Result<(), Box<PgError>> {
        match self.is_over || (self.header_seen && self.pending.is_empty()) {
            true => Ok(()),
            false => Err(broken("unexpected EOF in COPY data")),
        }
    }
}

fn header(bytes: &[u8]) -> Result<Found<bool>, Box<PgError>> {
    let begin = bytes.get(..SIGNATURE.len().min(bytes.len())).unwrap_or_default();
    if !SIGNATURE.starts_with(begin) {
        return Err(broken("COPY file signature not recognized"));
    }
    let (Some(flags), Some(extension)) = (int(bytes, 11), int(bytes, 15)) else { return Ok(Found::Needs(19)) };
    if flags & CRITICAL_FLAGS != 0 {
        return Err(broken("unrecognized critical flags in COPY file header"));
    }
    let extension = usize::try_from(extension).map_err(|_| broken("invalid COPY file header (wrong length)"))?;
    let length = extension.saturating_add(19);
    Ok(if bytes.len() < length { Found::Needs(length) } else { Found::Part(false, length) })
}

/// Decodes a row. Returns `false` for the end marker.
fn row<'b>(bytes: &'b [u8], fields: &mut Vec<Option<&'b [u8]>>) -> Result<Found<bool>, Box<PgError>> {
    fields.clear();
    let Some(count) = bytes.first_chunk() else { return Ok(Found::Needs(2)) };
    let count = i16::from_be_bytes(*count);
    if count == -1 {
        return Ok(Found::Part(false, 2));
    }
    if count < 0 {
        return Err(broken(format!("a row claims {count} fields")));
    }
    let mut at = 2;
    for _ in 0..count {
        let Some(length) = int(bytes, at) else { return Ok(Found::Needs(at + 4)) };
        at += 4;
        if length == -1 {
            fields.push(None);
            continue;
        }
        let length = usize::try_from(length).map_err(|_| broken("unexpected field size in COPY data"))?;
        let end = at.saturating_add(length);
        let Some(field) = bytes.get(at..end) else { return Ok(Found::Needs(end)) };
        fields.push(Some(field));
        at = end;
    }
    Ok(Found::Part(true, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], parts: usize) -> Result<Vec<Vec<Option<Vec<u8>>>>, String> {
        let mut rows = Vec::new();
        let mut reader = BinaryReader::new(100);
        let mut on_row = |number, fields: &[Option<&[u8]>]| {
            rows.push(fields.iter().map(|field| field.map(<[u8]>::to_vec)).collect());
            assert_eq!(number, rows.len() as u64);
            Ok(())
        };
        for part in bytes.chunks(parts) {
            reader.feed(part, &mut on_row).map_err(|error| error.message)?;
        }
        reader.finish().map_err(|error| error.message)?;
        Ok(rows)
    }

    fn whole(body: &[u8]) -> Vec<u8> {
        [SIGNATURE, &[0; 8][..], body].concat()
    }

    #[test]
    fn rows_are_read_from_parts_of_any_size() {
        let bytes = whole(b"\0\x02\0\0\0\x01a\xff\xff\xff\xff\0\0\0\x01\0\0\0\0\xff\xff");
        let expected = vec![vec![Some(b"a".to_vec()), None], vec![], vec![Some(vec![])]];
        for parts in 1..=bytes.len() {
            assert_eq!(read(&bytes, parts), Ok(expected.clone()), "{parts}");
        }
    }

    #[test]
    fn malformed_bytes_are_reported() {
        for (bytes, expected) in [
            (b"PGCOPX".to_vec(), "COPY file signature not recognized"),
            (b"PGCOPY".to_vec(), "unexpected EOF in COPY data"),
            (whole(b"\0\x01\0\0\0\x02a"), "unexpected EOF in COPY data"),
            (whole(b"\0\x01\xff\xff\xff\xfe"), "unexpected field size in COPY data"),
            (whole(b"\0\x01\x7f\xff\xff\xff"), "row 1 has more than 100 bytes"),
            (whole(b"\xff\xfe"), "a row claims -2 fields"),
            (whole(b"\xff\xff\0"), "received copy data after EOF marker"),
        ] {
            assert_eq!(read(&bytes, usize::MAX), Err(expected.into()));
        }
    }
}
