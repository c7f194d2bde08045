//! Writes values as the bytes of a row.

use super::RowFormat;

/// Appends a value, with a delimiter in front unless it is the row's first value.
pub fn put_field(field: Option<&[u8]>, is_first: bool, format: &RowFormat, out: &mut Vec<u8>) {
    if !is_first {
        out.push(format.delimiter);
    }
    match field {
        None => out.extend_from_slice(format.null.as_bytes()),
        Some(field) if format.is_csv => put_quoted(field, format, out),
        Some(field) => put_escaped(field, format, out),
    }
}

/// Appends the end of a row.
pub fn end_row(out: &mut Vec<u8>) {
    out.push(b'\n');
}

fn put_quoted(field: &[u8], format: &RowFormat, out: &mut Vec<u8>) {
    let is_special = |byte: &u8| *byte == format.delimiter || *byte == format.quote || matches!(byte, b'\n' | b'\r');
    // A value that equals the text of a null, or begins like the end mark, is also quoted.
    if field != format.null.as_bytes() && !field.starts_with(b"\\.") && !field.iter().any(is_special) {
        return out.extend_from_slice(field);
    }
    out.push(format.quote);
    for byte in field {
        if *byte == format.quote || *byte == format.escape {
            out.push(format.escape);
        }
        out.push(*byte);
    }
    out.push(format.quote);
}

fn put_escaped(field: &[u8], format: &RowFormat, out: &mut Vec<u8>) {
    let mut field = field;
    let is_escaped = |byte: &u8| letter_of(*byte, format).is_some();
    if field == format.null.as_bytes()
        && !field.iter().any(is_escaped)
        && let Some((first, rest)) = field.split_first()
    {
        // Without an escape the value would be read as a null. The first byte is written as an
        // octal number, since a backslash before a letter may have another meaning.
        out.extend_from_slice(&[b'\\', b'0' + (first >> 6), b'0' + (first >> 3 & 7), b'0' + (first & 7)]);
        field = rest;
    }
    for byte in field {
        match letter_of(*byte, format) {
            Some(letter) => out.extend_from_slice(&[b'\\', letter]),
            None => out.push(*byte),
        }
    }
}

/// The character that stands for a byte behind a backslash; `None` if the byte needs no escape.
#[inline]
fn letter_of(byte: u8, format: &RowFormat) -> Option<u8> {
    Some(match byte {
        0x08 => b'b',
        0x0c => b'f',
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x0b => b'v',
        b'\\' => b'\\',
        byte if byte == format.delimiter => byte,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::super::{Row, RowError, RowReader};
    use super::*;

    fn written(fields: &[Option<&str>], format: &RowFormat) -> String {
        let mut out = Vec::new();
        for (at, field) in fields.iter().enumerate() {
            put_field(field.map(str::as_bytes), at == 0, format, &mut out);
        }
        end_row(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn rows_are_written_as_postgresql_writes_them() {
        assert_eq!(written(&[Some("\\N"), None], &RowFormat::text()), "\\\\N\t\\N\n");
        let fields = [Some("1"), None, Some(""), Some("a\tb,\"c\"\\\n"), Some("\\."), Some("ü")];
        assert_eq!(written(&fields, &RowFormat::text()), "1\t\\N\t\ta\\tb,\"c\"\\\\\\n\t\\\\.\tü\n");
        assert_eq!(written(&fields, &RowFormat::csv()), "1,,\"\",\"a\tb,\"\"c\"\"\\\n\",\"\\.\",ü\n");
        let format = RowFormat { escape: b'\\', null: "NULL".into(), ..RowFormat::csv() };
        assert_eq!(written(&[Some("NULL"), None, Some("\"\\")], &format), "\"NULL\",NULL,\"\\\"\\\\\"\n");
    }

    #[test]
    fn written_rows_are_read_back() {
        let fields =
            [Some("\\N"), Some("nil"), None, Some("a;b|c"), Some("\r\n"), Some("'\\''\u{8}\u{b}\u{c}"), Some("")];
        for format in [
            RowFormat::text(),
            RowFormat::csv(),
            RowFormat { delimiter: b'|', null: "nil".into(), ..RowFormat::text() },
            RowFormat { delimiter: b';', quote: b'\'', escape: b'\\', null: "nil".into(), ..RowFormat::csv() },
            RowFormat { delimiter: b';', quote: b'\'', escape: b'\'', ..RowFormat::csv() },
        ] {
            let text = written(&fields, &format);
            let mut found = Vec::new();
            let mut on_row = |row: Row<'_>| {
                found = row.fields().map(|field| field.map(str::to_owned)).collect();
                Ok::<(), RowError>(())
            };
            RowReader::new(format.clone(), 1000).feed(text.as_bytes(), &mut on_row).unwrap();
            assert_eq!(found, fields.map(|field| field.map(str::to_owned)), "{format:?}");
        }
    }
}
