//! The entry point of the fuzz target: all code that decodes a client's bytes. It must survive any
//! input, and must decode everything that it encodes.

use std::cell::Cell;

use filbert_data::dates::Zone;
use filbert_data::{
    Value,
    rows::{Row, RowError, RowFormat, RowReader},
};

use crate::{
    config::{PostgresSecret, PostgresUser},
    copy_format,
    scram::{Exchange, Users},
    statement::{casts, lexer, session_statement::SessionStatement},
    types::{self, PgType},
    wire::{self, Frontend, Startup},
};

/// Decodes the bytes in every way in which a client's bytes are decoded.
///
/// # Panics
/// Encoded data is not decoded again, or the result depends on the parts in which the data arrives.
/// Both are defects.
pub fn read_everything(data: &[u8]) {
    messages(data);
    let Some((first, rest)) = data.split_first() else { return };
    values(*first, rest);
    rows(*first, rest);
    copy_format::fuzz_binary(usize::from(*first), rest);
    if let Ok(text) = std::str::from_utf8(rest) {
        statements(text);
        scram(text);
    }
}

fn messages(data: &[u8]) {
    let mut rest = data;
    while let Ok(Some((tag, length))) = wire::frame(rest, 1 << 16) {
        let Some((message, behind)) = rest.split_at_checked(length) else { break };
        let body = message.get(wire::HEADER_BYTES..).unwrap_or_default();
        match Frontend::decode(tag, body) {
            Ok(Frontend::Bind(bind)) => assert_eq!(bind.values().count(), usize::from(bind.count)),
            Ok(Frontend::Parse { types, .. }) => assert!(types.iter().count() <= data.len()),
            Ok(_) => {}
            Err(violation) => assert!(!violation.to_string().is_empty()),
        }
        rest = behind;
    }
    if let Ok(Startup::Session { parameters, .. }) = Startup::decode(data) {
        assert!(parameters.iter().count() <= data.len());
    }
}

/// A decoded value must be encoded so that it decodes to the same value.
fn values(first: u8, data: &[u8]) {
    for oid in types::all_oids() {
        let Some(pg_type) = PgType::from_oid(oid).filter(|_| oid as u8 % 8 == first % 8) else { continue };
        let from_text =
            std::str::from_utf8(data).ok().and_then(|text| types::read_text(text, pg_type, &Zone::UTC).ok());
        for value in [from_text, types::read_binary(data, pg_type).ok()].into_iter().flatten() {
            let mut text = Vec::new();
            if types::write_text(&value, pg_type, &Zone::UTC, &mut text).is_ok()
                && let Ok(text) = std::str::from_utf8(&text)
            {
                let reread = types::read_text(text, pg_type, &Zone::UTC);
                // Some years can be written as text and not read again.
                if let Ok(reread) = reread {
                    same(&value, &reread);
                }
            }
            let mut binary = Vec::new();
            if types::write_binary(&value, pg_type, &mut binary).is_ok() {
                let _ = types::read_binary(&binary, pg_type);
            }
        }
    }
}

fn same(value: &Value<'_>, reread: &Value<'_>) {
    match (value, reread) {
        (Value::Decimal(value), Value::Decimal(reread)) => assert_eq!(value, reread),
        (Value::Int64(value), Value::Int64(reread)) => assert_eq!(value, reread),
        (Value::Float64(value), Value::Float64(reread)) if !value.is_nan() => assert_eq!(value, reread),
        (Value::Float32(value), Value::Float32(reread)) if !value.is_nan() => assert_eq!(value, reread),
        (Value::Bytes(value), Value::Bytes(reread)) => assert_eq!(value, reread),
        (Value::Date(value), Value::Date(reread)) => assert_eq!(value, reread),
        _ => {}
    }
}

/// Rows must not depend on the parts in which their bytes arrive.
fn rows(first: u8, data: &[u8]) {
    let format = match first % 3 {
        0 => RowFormat::text(),
        1 => RowFormat::csv(),
        _ => RowFormat { escape: b'\\', quote: b'\'', delimiter: b';', header: true, ..RowFormat::csv() },
    };
    let read = |parts: usize| {
        let found = Cell::new(0_usize);
        let mut on_row = |row: Row<'_>| {
            let bytes = row.fields().flatten().map(str::len).sum::<usize>();
            found.set(found.get().wrapping_mul(31).wrapping_add(bytes + row.len()));
            Ok::<(), RowError>(())
        };
        let mut reader = RowReader::new(format.clone(), 1 << 12);
        let result = data.chunks(parts).try_for_each(|part| reader.feed(part, &mut on_row));
        (result.and_then(|()| reader.finish(&mut on_row)), found.get())
    };
    assert_eq!(read(usize::from(first / 3) + 1), read(usize::MAX));
}

fn statements(text: &str) {
    for part in lexer::split(text) {
        assert!(text.get(part.start..).is_some_and(|rest| rest.starts_with(part.text)));
        let _ = SessionStatement::parse(part.text);
        let _ = lexer::first_word(part.text);
        let _ = casts::cast_types(part.text);
    }
}

fn scram(text: &str) {
    let secret = PostgresSecret::Verifier(text.to_owned());
    if let Ok(users) = Users::new(&[PostgresUser { name: "ann".to_owned(), secret }]).or_else(|_| Users::new(&[]))
        && let Ok(exchange) = Exchange::begin(&users, "ann", text)
    {
        let _ = exchange.finish(text);
    }
}
