//! The messages to clients, written into a buffer.

/// The format of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    #[default]
    Text,
    Binary,
}

/// The transaction status in `ReadyForQuery`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TransactionStatus {
    Idle = b'I' as isize,
    Open = b'T' as isize,
    Failed = b'E' as isize,
}

/// A column in a row description.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowField<'a> {
    pub(crate) name: &'a str,
    pub(crate) oid: u32,
    /// The size of a value in bytes, -1 if it varies.
    pub(crate) size: i16,
    pub(crate) modifier: i32,
    pub(crate) format: Format,
}

/// The process ID and the key with which a client can cancel its session's statement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyData<'a> {
    pub(crate) process: i32,
    pub(crate) key: &'a [u8],
}

/// The fields of an error.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ErrorFields<'a> {
    pub(crate) severity: &'a str,
    pub(crate) sqlstate: &'a str,
    pub(crate) message: &'a str,
    pub(crate) detail: Option<&'a str>,
    pub(crate) hint: Option<&'a str>,
    pub(crate) position: Option<u32>,
    pub(crate) context: Option<&'a str>,
    pub(crate) schema: Option<&'a str>,
    pub(crate) table: Option<&'a str>,
    pub(crate) column: Option<&'a str>,
    pub(crate) constraint: Option<&'a str>,
}

/// A buffer of messages.
#[derive(Debug, Default)]
pub(crate) struct Out(pub(crate) Vec<u8>);

/// The part of a text that a message can hold: up to the first zero byte.
fn escape(text: &str) -> &str {
    text.split('\0').next().unwrap_or_default()
}

impl Out {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Writes a message. `body` writes the message's body.
    #[inline]
    pub(crate) fn message<R>(&mut self, tag: u8, body: impl FnOnce(&mut Out) -> R) -> R {
        self.0.push(tag);
        self.sized(true, body)
    }

    /// Writes a length, followed by the bytes that `body` writes. With `counts_itself` the length
    /// includes the length field.
    #[inline]
    pub(crate) fn sized<R>(&mut self, counts_itself: bool, body: impl FnOnce(&mut Out) -> R) -> R {
        let start = self.0.len();
        self.0.extend_from_slice(&[0; 4]);
        let result = body(self);
        let bytes = self.0.len() - start - if counts_itself { 0 } else { 4 };
        // No message exceeds 2 GiB: the size of values is limited by the messages and pages that
        // they came from.
        let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
        if let Some(place) = self.0.get_mut(start..).and_then(<[u8]>::first_chunk_mut::<4>) {
            *place = bytes.to_be_bytes();
        }
        result
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn i16(&mut self, value: i16) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    /// Writes a 16-bit count. A message can have at most 65,535 items.
    pub(crate) fn count(&mut self, count: usize) {
        self.0.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_be_bytes());
    }

    pub(crate) fn i32(&mut self, value: i32) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Writes a text and the zero byte that ends it.
    pub(crate) fn text(&mut self, text: &str) {
        self.bytes(escape(text).as_bytes());
        self.u8(0);
    }

    fn empty(&mut self, tag: u8) {
        self.bytes(&[tag, 0, 0, 0, 4]);
    }

    pub(crate) fn authentication_ok(&mut self) {
        self.message(b'R', |out| out.i32(0));
    }

    pub(crate) fn sasl_mechanisms(&mut self, mechanisms: &[&str]) {
        self.message(b'R', |out| {
            out.i32(10);
            mechanisms.iter().for_each(|mechanism| out.text(mechanism));
            out.u8(0);
        });
    }

    pub(crate) fn sasl_continue(&mut self, data: &str) {
        self.message(b'R', |out| {
            out.i32(11);
            out.bytes(data.as_bytes());
        });
    }

    pub(crate) fn sasl_final(&mut self, data: &str) {
        self.message(b'R', |out| {
            out.i32(12);
            out.bytes(data.as_bytes());
        });
    }

    /// Reports the newest supported minor version, and the unknown options.
    pub(crate) fn negotiate_version(&mut self, minor: u16, unknown: &[&str]) {
        self.message(b'v', |out| {
            out.u32(3 << 16 | u32::from(minor));
            out.i32(i32::try_from(unknown.len()).unwrap_or_default());
            unknown.iter().for_each(|option| out.text(option));
        });
    }

    pub(crate) fn parameter_status(&mut self, name: &str, value: &str) {
        self.message(b'S', |out| {
            out.text(name);
            out.text(value);
        });
    }

    pub(crate) fn key_data(&mut self, key: KeyData<'_>) {
        self.message(b'K', |out| {
            out.i32(key.process);
            out.bytes(key.key);
        });
    }

    pub(crate) fn ready(&mut self, status: TransactionStatus) {
        self.message(b'Z', |out| out.u8(status as u8));
    }

    pub(crate) fn parse_complete(&mut self) {
        self.empty(b'1');
    }

    pub(crate) fn bind_complete(&mut self) {
        self.empty(b'2');
    }

    pub(crate) fn close_complete(&mut self) {
        self.empty(b'3');
    }

    pub(crate) fn no_data(&mut self) {
        self.empty(b'n');
    }

    pub(crate) fn portal_suspended(&mut self) {
        self.empty(b's');
    }

    pub(crate) fn empty_query(&mut self) {
        self.empty(b'I');
    }

    pub(crate) fn copy_done(&mut self) {
        self.empty(b'c');
    }

    pub(crate) fn command_complete(&mut self, tag: &str) {
        self.message(b'C', |out| out.text(tag));
    }

    pub(crate) fn parameter_description(&mut self, oids: &[u32]) {
        self.message(b't', |out| {
            out.count(oids.len());
            oids.iter().for_each(|oid| out.u32(*oid));
        });
    }

    pub(crate) fn row_description<'a>(&mut self, fields: impl ExactSizeIterator<Item = RowField<'a>>) {
        self.message(b'T', |out| {
            out.count(fields.len());
            for field in fields {
                out.text(field.name);
                // Without a table's OID and a column's number: rows come from queries, not from
                // tables.
                out.i32(0);
                out.i16(0);
                out.u32(field.oid);
                out.i16(field.size);
                out.i32(field.modifier);
                out.i16(field.format as i16);
            }
        });
    }

    /// Begins a COPY: from the client with `is_in`, otherwise to the client.
    pub(crate) fn copy_response(&mut self, is_in: bool, format: Format, columns: usize) {
        self.message(if is_in { b'G' } else { b'H' }, |out| {
            out.u8(format as u8);
            out.count(columns);
            (0..columns).for_each(|_| out.i16(format as i16));
        });
    }

    pub(crate) fn error(&mut self, error: ErrorFields<'_>) {
        self.error_or_notice(b'E', error);
    }

    pub(crate) fn notice(&mut self, notice: ErrorFields<'_>) {
        self.error_or_notice(b'N', notice);
    }

    fn error_or_notice(&mut self, tag: u8, error: ErrorFields<'_>) {
        self.message(tag, |out| {
            let position = error.position.map(|position| position.to_string());
            let fields = [
                (b'S', Some(error.severity)),
                (b'V', Some(error.severity)),
                (b'C', Some(error.sqlstate)),
                (b'M', Some(error.message)),
                (b'D', error.detail),
                (b'H', error.hint),
                (b'P', position.as_deref()),
                (b'W', error.context),
                (b's', error.schema),
                (b't', error.table),
                (b'c', error.column),
                (b'n', error.constraint),
            ];
            for (name, value) in fields {
                if let Some(value) = value {
                    out.u8(name);
                    out.text(value);
                }
            }
            out.u8(0);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Out)) -> Vec<u8> {
        let mut out = Out::default();
        write(&mut out);
        out.0
    }

    #[test]
    fn messages_are_written_as_postgresql_writes_them() {
        assert_eq!(written(|out| out.ready(TransactionStatus::Open)), b"Z\0\0\0\x05T");
        assert_eq!(written(|out| out.command_complete("SELECT 1")), b"C\0\0\0\x0dSELECT 1\0");
        assert_eq!(written(|out| out.parse_complete()), b"1\0\0\0\x04");
        assert_eq!(written(|out| out.sasl_mechanisms(&["A"])), b"R\0\0\0\x0b\0\0\0\x0aA\0\0");
        let field = RowField { name: "n", oid: 23, size: 4, modifier: -1, format: Format::Binary };
        assert_eq!(
            written(|out| out.row_description([field].into_iter())),
            b"T\0\0\0\x1a\0\x01n\0\0\0\0\0\0\0\0\0\0\x17\0\x04\xff\xff\xff\xff\0\x01"
        );
        assert_eq!(written(|out| out.copy_response(true, Format::Text, 1)), b"G\0\0\0\x09\0\0\x01\0\0");
        let error = ErrorFields {
            severity: "ERROR",
            sqlstate: "42601",
            message: "no",
            position: Some(3),
            ..ErrorFields::default()
        };
        assert_eq!(written(|out| out.error(error)), b"E\0\0\0\x21SERROR\0VERROR\0C42601\0Mno\0P3\0\0");
    }

    #[test]
    fn a_zero_byte_in_a_text_does_not_break_the_message() {
        assert_eq!(written(|out| out.command_complete("a\0b")), b"C\0\0\0\x06a\0");
    }
}
