//! Reads the values from the bytes of one row.

use std::ops::Range;

use super::RowFormat;

/// The values of a row, one after the other. The struct is reused for all rows, so that its memory
/// is kept.
#[derive(Debug, Default)]
pub(super) struct Fields {
    pub(super) bytes: Vec<u8>,
    /// The range of each value in `bytes`; `None` = null.
    pub(super) places: Vec<Option<Range<usize>>>,
}

impl Fields {
    /// Reads a row. `row` does not contain the end of the line.
    pub(super) fn read(&mut self, row: &[u8], format: &RowFormat) {
        self.bytes.clear();
        self.places.clear();
        let mut rest = Some(row);
        while let Some(row) = rest {
            rest = if format.is_csv { self.quoted(row, format) } else { self.escaped(row, format) };
        }
    }

    fn end_field(&mut self, start: usize, is_null: bool) {
        if is_null {
            self.bytes.truncate(start);
        }
        self.places.push((!is_null).then_some(start..self.bytes.len()));
    }

    /// Reads a value with backslash escapes. Returns the bytes after its delimiter; `None` if there
    /// is no delimiter.
    fn escaped<'r>(&mut self, row: &'r [u8], format: &RowFormat) -> Option<&'r [u8]> {
        let start = self.bytes.len();
        let mut rest = row;
        let mut after = None;
        while let Some((first, behind)) = rest.split_first() {
            if *first == format.delimiter {
                after = Some(behind);
                break;
            }
            rest = behind;
            match (*first, rest.split_first()) {
                (b'\\', Some((escaped, behind))) => {
                    rest = behind;
                    self.unescape(*escaped, &mut rest);
                }
                // A backslash that escapes nothing.
                (b'\\', None) => {}
                (byte, _) => self.bytes.push(byte),
            }
        }
        // A null is recognized by its raw text, including backslashes.
        let raw = row.get(..row.len() - rest.len()).unwrap_or_default();
        self.end_field(start, raw == format.null.as_bytes());
        after
    }

    /// Appends the byte of an escape. `escaped` is the byte after the backslash, `rest` are the
    /// bytes after it.
    fn unescape(&mut self, escaped: u8, rest: &mut &[u8]) {
        let byte = match escaped {
            b'b' => 0x08,
            b'f' => 0x0c,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'v' => 0x0b,
            b'0'..=b'7' => number(rest, u32::from(escaped - b'0'), 8),
            b'x' if rest.first().is_some_and(u8::is_ascii_hexdigit) => number(rest, 0, 16),
            other => other,
        };
        self.bytes.push(byte);
    }

    /// Reads a value with quotes. Returns the bytes after its delimiter; `None` if there is no
    /// delimiter.
    fn quoted<'r>(&mut self, row: &'r [u8], format: &RowFormat) -> Option<&'r [u8]> {
        let start = self.bytes.len();
        let (mut in_quotes, mut had_quotes) = (false, false);
        let mut rest = row;
        let mut after = None;
        while let Some((first, behind)) = rest.split_first() {
            if in_quotes {
                let next = behind.first().copied();
                if *first == format.escape && next.is_some_and(|next| next == format.quote || next == format.escape) {
                    self.bytes.extend(next);
                    rest = behind.get(1..).unwrap_or_default();
                    continue;
                }
                if *first == format.quote {
                    in_quotes = false;
                } else {
                    self.bytes.push(*first);
                }
            } else if *first == format.delimiter {
                after = Some(behind);
                break;
            } else if *first == format.quote {
                (in_quotes, had_quotes) = (true, true);
            } else {
                self.bytes.push(*first);
            }
            rest = behind;
        }
        let is_null = !had_quotes && self.bytes.get(start..) == Some(format.null.as_bytes());
        self.end_field(start, is_null);
        after
    }
}

/// Reads up to two more digits of a number. `value` is the value of the digits before them.
fn number(rest: &mut &[u8], value: u32, radix: u32) -> u8 {
    let mut value = value;
    for _ in 0..2 {
        let digit = rest.first().and_then(|byte| char::from(*byte).to_digit(radix));
        let (Some(digit), Some((_, behind))) = (digit, rest.split_first()) else { break };
        value = value * radix + digit;
        *rest = behind;
    }
    // Octal numbers above 377 lose their highest bit, as in PostgreSQL.
    (value & 0xff) as u8
}
