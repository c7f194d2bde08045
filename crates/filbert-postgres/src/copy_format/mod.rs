//! The formats of COPY: encoding and decoding of rows.
//!
//! It must not know sessions, and the source or destination of rows.

mod binary;
mod out;

use filbert_data::rows::RowFormat;
use filbert_grid::query::{CopyFormat, CopyKind};

pub(crate) use self::{binary::BinaryReader, out::CopyWriter};
use crate::{
    error::{PgError, sqlstate},
    wire::Format,
};

/// The format code in `CopyInResponse` and `CopyOutResponse`.
pub(crate) fn format_of(format: &CopyFormat) -> Format {
    if format.kind == CopyKind::Binary { Format::Binary } else { Format::Text }
}

/// The format of text and CSV rows.
pub(crate) fn row_format(format: &CopyFormat) -> Result<RowFormat, Box<PgError>> {
    let single = |char: char, name: &str| {
        let message = || format!("COPY {name} must be a single one-byte character, found {char:?}");
        u8::try_from(char)
            .ok()
            .filter(u8::is_ascii)
            .ok_or_else(|| PgError::new(sqlstate::FEATURE_NOT_SUPPORTED, message()))
    };
    Ok(RowFormat {
        is_csv: format.kind == CopyKind::Csv,
        delimiter: single(format.delimiter, "delimiter")?,
        null: format.null.clone(),
        header: format.header,
        quote: single(format.quote, "quote")?,
        escape: single(format.escape, "escape")?,
    })
}

/// Decodes the bytes as binary rows, whole and in parts. Both must give the same result.
pub(crate) fn fuzz_binary(parts: usize, data: &[u8]) {
    let read = |parts: usize| {
        let mut fields_seen = 0;
        let mut reader = BinaryReader::new(1 << 12);
        let mut on_row = |_: u64, fields: &[Option<&[u8]>]| {
            fields_seen += fields.len() + 1;
            Ok(())
        };
        let result = data.chunks(parts).try_for_each(|part| reader.feed(part, &mut on_row));
        (result.and_then(|()| reader.finish()).is_ok(), fields_seen)
    };
    let (whole, in_parts) = (read(usize::MAX), read(parts + 1));
    assert!(whole == in_parts || !whole.0, "{whole:?} {in_parts:?}");
}
