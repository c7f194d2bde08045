//! Splits bytes into rows. The bytes arrive in parts of any size.

use std::ops::Range;

use super::{RowError, RowFormat, decode::Fields};

/// The end mark: a line after the last row.
const END_MARK: &[u8] = b"\\.";

/// A row that was read.
#[derive(Clone, Copy, Debug)]
pub struct Row<'r> {
    /// The line in which the row begins, counted from 1, including the header.
    pub line: u64,
    text: &'r str,
    places: &'r [Option<Range<usize>>],
}

impl<'r> Row<'r> {
    /// The number of values.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether the row has no values. This is never true: an empty line has one empty value or one
    /// null.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// The value at an index, counted from 0; `None` = null, or no such value.
    pub fn field(&self, at: usize) -> Option<&'r str> {
        self.text.get(self.places.get(at)?.clone()?)
    }

    /// All values; `None` = null.
    pub fn fields(&self) -> impl Iterator<Item = Option<&'r str>> {
        let text = self.text;
        self.places.iter().map(move |place| text.get(place.clone()?))
    }
}

/// Reads rows from bytes that arrive in parts. It buffers at most one row.
#[derive(Debug)]
pub struct RowReader {
    format: RowFormat,
    bytes_max: usize,
    /// The bytes of an incomplete row.
    pending: Vec<u8>,
    scan: Scan,
    /// The number of lines that were read.
    lines: u64,
    fields: Fields,
    header_left: bool,
    is_over: bool,
    /// Whether the first line ends with a carriage return and a line feed.
    has_carriage_returns: Option<bool>,
}

/// The state of the search for the end of a row.
#[derive(Clone, Copy, Debug, Default)]
struct Scan {
    in_quotes: bool,
    /// The previous byte is a backslash, or an escape within quotes.
    is_escaped: bool,
}

impl Scan {
    /// The number of bytes up to the end of the row, including the line end. A line end within a
    /// value does not count.
    fn row_end(&mut self, bytes: &[u8], format: &RowFormat) -> Option<usize> {
        let end = bytes.iter().position(|byte| self.ends_at(*byte, format))?;
        *self = Scan::default();
        Some(end + 1)
    }

    fn ends_at(&mut self, byte: u8, format: &RowFormat) -> bool {
        if !format.is_csv {
            let was_escaped = std::mem::take(&mut self.is_escaped);
            self.is_escaped = byte == b'\\' && !was_escaped;
            return byte == b'\n' && !was_escaped;
        }
        if self.in_quotes && format.escape != format.quote {
            if std::mem::take(&mut self.is_escaped) && (byte == format.quote || byte == format.escape) {
                return false;
            }
            if byte == format.escape {
                self.is_escaped = true;
                return false;
            }
        }
        // If the quote is its own escape, two quotes leave the quoted part and enter it again.
        if byte == format.quote {
            self.in_quotes = !self.in_quotes;
        }
        byte == b'\n' && !self.in_quotes
    }
}

impl RowReader {
    /// A reader of rows of at most `bytes_max` bytes each.
    pub fn new(format: RowFormat, bytes_max: usize) -> RowReader {
        RowReader {
            header_left: format.header,
            format,
            bytes_max,
            pending: Vec::new(),
            scan: Scan::default(),
            lines: 0,
            fields: Fields::default(),
            is_over: false,
            has_carriage_returns: None,
        }
    }

    /// Reads bytes, and calls `on_row` for each completed row.
    ///
    /// # Errors
    /// The bytes are not valid rows, or `on_row` returns an error. The reader cannot be used after
    /// an error.
    pub fn feed<E: From<RowError>>(
        &mut self,
        bytes: &[u8],
        on_row: &mut impl FnMut(Row<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = bytes;
        while !self.is_over && !rest.is_empty() {
            let Some(end) = self.scan.row_end(rest, &self.format) else {
                self.check_length(rest.len())?;
                self.pending.extend_from_slice(rest);
                break;
            };
            let (row, behind) = rest.split_at_checked(end).unwrap_or((rest, &[]));
            rest = behind;
            self.check_length(row.len())?;
            if self.pending.is_empty() {
                self.take(row, on_row)?;
            } else {
                let mut whole = std::mem::take(&mut self.pending);
                whole.extend_from_slice(row);
                self.take(&whole, on_row)?;
                whole.clear();
                self.pending = whole;
            }
        }
        Ok(())
    }

    /// Reads the last row after the end of the bytes. The last row may have no line end.
    ///
    /// # Errors
    /// As [`RowReader::feed`], or the last row ends within quotes.
    pub fn finish<E: From<RowError>>(&mut self, on_row: &mut impl FnMut(Row<'_>) -> Result<(), E>) -> Result<(), E> {
        let pending = std::mem::take(&mut self.pending);
        if self.is_over || pending.is_empty() {
            return Ok(());
        }
        if self.scan.in_quotes {
            return Err(RowError::Unterminated { line: self.lines + 1 }.into());
        }
        self.take(&pending, on_row)
    }

    fn check_length(&self, more: usize) -> Result<(), RowError> {
        if self.pending.len().saturating_add(more) > self.bytes_max {
            return Err(RowError::TooLong { line: self.lines + 1, bytes_max: self.bytes_max });
        }
        Ok(())
    }

    /// Rejects lines with other ends than the first one, as PostgreSQL does: a value that ends with
    /// a carriage return would lose it.
    fn check_line_end(&mut self, row: &[u8], end: &[u8], line: u64) -> Result<(), RowError> {
        let mut returns = row.iter().enumerate().filter(|(_, byte)| **byte == b'\r');
        let is_literal = returns.any(|(at, _)| !ends_with_escape(row.get(..at).unwrap_or_default()));
        // The last line may have no end.
        let has_return = end.starts_with(b"\r");
        let differs = !end.is_empty() && *self.has_carriage_returns.get_or_insert(has_return) != has_return;
        if is_literal || differs { Err(RowError::CarriageReturn { line }) } else { Ok(()) }
    }

    fn take<E: From<RowError>>(
        &mut self,
        row: &[u8],
        on_row: &mut impl FnMut(Row<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let line = self.lines + 1;
        let within = row.iter().filter(|byte| **byte == b'\n').count();
        let whole = row;
        let row = without_line_end(row, &self.format);
        if !self.format.is_csv {
            self.check_line_end(row, whole.get(row.len()..).unwrap_or_default(), line)?;
        }
        // The last row may have no line end.
        self.lines += u64::try_from(within.max(1)).unwrap_or(1);
        if row == END_MARK {
            self.is_over = true;
            return Ok(());
        }
        if std::mem::take(&mut self.header_left) {
            return Ok(());
        }
        self.fields.read(row, &self.format);
        let Fields { bytes, places } = &self.fields;
        let column = |at: usize| {
            let ends_before = |place: &&Option<Range<usize>>| place.as_ref().is_none_or(|place| place.end <= at);
            places.iter().take_while(ends_before).count() + 1
        };
        let text = std::str::from_utf8(bytes)
            .map_err(|error| RowError::NotUtf8 { line, column: column(error.valid_up_to()) })?;
        if bytes.contains(&0) {
            let at = text.find('\0').unwrap_or_default();
            return Err(RowError::HasZero { line, column: column(at) }.into());
        }
        on_row(Row { line, text, places })
    }
}

/// Whether the next character belongs to a backslash.
fn ends_with_escape(before: &[u8]) -> bool {
    before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// A row without its line end. A character after a backslash belongs to the value.
fn without_line_end<'r>(row: &'r [u8], format: &RowFormat) -> &'r [u8] {
    let without = |row: &'r [u8], end: u8| match row.split_last() {
        Some((last, before)) if *last == end && (format.is_csv || !ends_with_escape(before)) => Some(before),
        _ => None,
    };
    without(row, b'\n').map_or(row, |row| without(row, b'\r').unwrap_or(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Rows = Vec<(u64, Vec<Option<String>>)>;

    fn read_in(parts: usize, bytes: &[u8], format: RowFormat) -> Result<Rows, RowError> {
        let mut rows = Vec::new();
        let mut on_row = |row: Row<'_>| {
            rows.push((row.line, row.fields().map(|field| field.map(str::to_owned)).collect()));
            Ok::<(), RowError>(())
        };
        let mut reader = RowReader::new(format, 1000);
        for part in bytes.chunks(parts) {
            reader.feed(part, &mut on_row)?;
        }
        reader.finish(&mut on_row)?;
        Ok(rows)
    }

    /// Reads the bytes as a whole and in parts of every size, and checks that the results are
    /// equal.
    fn read(bytes: &[u8], format: &RowFormat) -> Result<Rows, RowError> {
        let whole = read_in(usize::MAX, bytes, format.clone());
        for parts in 1..=bytes.len() {
            assert_eq!(read_in(parts, bytes, format.clone()), whole, "in parts of {parts}");
        }
        whole
    }

    fn check(bytes: &str, format: &RowFormat, expected: &[(u64, &[Option<&str>])]) {
        let owned = |row: &[Option<&str>]| row.iter().map(|field| field.map(str::to_owned)).collect();
        let expected: Rows = expected.iter().map(|(line, row)| (*line, owned(row))).collect();
        assert_eq!(read(bytes.as_bytes(), format), Ok(expected), "{bytes:?}");
    }

    #[test]
    fn text_has_tabs_and_backslashes() {
        let text = RowFormat::text();
        check("", &text, &[]);
        check("1\tAnn\n2\t\\N\n", &text, &[(1, &[Some("1"), Some("Ann")]), (2, &[Some("2"), None])]);
        check("a\r\nb", &text, &[(1, &[Some("a")]), (2, &[Some("b")])]);
        check("\n\t\n", &text, &[(1, &[Some("")]), (2, &[Some(""), Some("")])]);
        check("a\\tb\\nc\\\\\\N\\101\\x42\\q\n", &text, &[(1, &[Some("a\tb\nc\\NABq")])]);
        check("a\\\nb\\\tc\td\nx", &text, &[(1, &[Some("a\nb\tc"), Some("d")]), (3, &[Some("x")])]);
        check("1\n\\.\n2\n", &text, &[(1, &[Some("1")])]);
        check("a\\\\\nb\n", &text, &[(1, &[Some("a\\")]), (2, &[Some("b")])]);
        check("a\\\r\nb\n", &text, &[(1, &[Some("a\r")]), (2, &[Some("b")])]);
        check("a\\\n", &text, &[(1, &[Some("a\n")])]);
        check("a\\", &text, &[(1, &[Some("a")])]);
        let format = RowFormat { delimiter: b'|', null: "nil".into(), header: true, ..RowFormat::text() };
        check("x|y\nnil|\\nil\n", &format, &[(2, &[None, Some("\nil")])]);
    }

    #[test]
    fn csv_has_commas_and_quotes() {
        let csv = RowFormat::csv();
        check(
            "1,Ann\n2,\n3,\"\"\n",
            &csv,
            &[(1, &[Some("1"), Some("Ann")]), (2, &[Some("2"), None]), (3, &[Some("3"), Some("")])],
        );
        check("\"a,\"\"b\"\"\nc\",d\r\ne", &csv, &[(1, &[Some("a,\"b\"\nc"), Some("d")]), (3, &[Some("e")])]);
        check("a\"b,c\"d\n", &csv, &[(1, &[Some("ab,cd")])]);
        check("h\n1\n", &RowFormat { header: true, ..csv.clone() }, &[(2, &[Some("1")])]);
        let format = RowFormat { delimiter: b';', quote: b'\'', escape: b'\\', null: "NULL".into(), ..csv };
        check("'a\\'\\\\;\\n\n';NULL;'NULL'\n", &format, &[(1, &[Some("a'\\;\\n\n"), None, Some("NULL")])]);
    }

    #[test]
    fn lines_of_text_end_like_the_first_one() {
        let text = RowFormat::text();
        check("a\\\r\r\nb\r\n\r\n", &text, &[(1, &[Some("a\r")]), (2, &[Some("b")]), (3, &[Some("")])]);
        check("a\r\nb\\r", &text, &[(1, &[Some("a")]), (2, &[Some("b\r")])]);
        for (rows, line) in [("a\nb\r\n", 2), ("a\r\nb\r\nc\n", 3), ("a\rb\n", 1), ("a\nb\r", 2), ("a\r\nb\rc\r\n", 2)]
        {
            assert_eq!(read(rows.as_bytes(), &text), Err(RowError::CarriageReturn { line }), "{rows:?}");
        }
        check("a\nb\r\n", &RowFormat::csv(), &[(1, &[Some("a")]), (2, &[Some("b")])]);
    }

    #[test]
    fn malformed_rows_are_reported_with_their_line() {
        let csv = RowFormat::csv();
        assert_eq!(read(b"1\n\"2\n", &csv), Err(RowError::Unterminated { line: 2 }));
        assert_eq!(read(b"1,2\n3,\xff,4\n", &csv), Err(RowError::NotUtf8 { line: 2, column: 2 }));
        assert_eq!(read(b"1,2\n3,\0,4\n", &csv), Err(RowError::HasZero { line: 2, column: 2 }));
        for zero in ["\0", "\\0", "\\000", "\\400", "\\x0", "\\x00"] {
            let row = format!("1\ta{zero}\n");
            assert_eq!(
                read(row.as_bytes(), &RowFormat::text()),
                Err(RowError::HasZero { line: 1, column: 2 }),
                "{row:?}"
            );
        }
        let long = [b"1\n".as_slice(), &[b'x'; 2000]].concat();
        assert_eq!(read_in(7, &long, csv), Err(RowError::TooLong { line: 2, bytes_max: 1000 }));
    }
}
