//! The parts of a response around its rows: names and types of columns, counts, the duration.

use std::time::Instant;

use filbert_grid::query::ColumnMeta;

use super::{write_text, write_type};
use crate::failure::Failure;

/// The milliseconds since a time.
fn duration_ms(since: Instant) -> f32 {
    (since.elapsed().as_secs_f64() * 1_000.0) as f32
}

/// Writes the part before the first row.
pub(crate) fn rows_start(out: &mut Vec<u8>, columns: &[ColumnMeta], with_types: bool) {
    out.extend_from_slice(b"{\"cols\":[");
    for (at, column) in columns.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_text(out, &column.name);
    }
    out.push(b']');
    if with_types {
        out.extend_from_slice(b",\"col_types\":[");
        for (at, column) in columns.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            write_type(out, &column.field_type);
        }
        out.push(b']');
    }
    out.extend_from_slice(b",\"rows\":[");
}

/// Writes the part after the last row.
pub(crate) fn rows_end(out: &mut Vec<u8>, count: u64, started: Instant) {
    out.extend_from_slice(format!("],\"rowcount\":{count},\"duration\":{}}}", duration_ms(started)).as_bytes());
}

/// The response to a statement without rows. It has one empty row, as CrateDB's tools expect.
pub(crate) fn count(count: u64, with_types: bool, started: Instant) -> Vec<u8> {
    let mut out = Vec::with_capacity(96);
    rows_start(&mut out, &[], with_types);
    out.extend_from_slice(b"[]");
    rows_end(&mut out, count, started);
    out
}

/// The response to a bulk request. A row that was not written has an error, or only `-2` if there
/// are too many errors.
pub(crate) fn bulk_results(results: &[Result<u64, Option<Box<Failure>>>], started: Instant) -> Vec<u8> {
    let mut out = Vec::with_capacity(32 + results.len() * 16);
    out.extend_from_slice(format!("{{\"cols\":[],\"duration\":{},\"results\":[", duration_ms(started)).as_bytes());
    for (at, result) in results.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        match result {
            Ok(1) => out.extend_from_slice(b"{\"rowcount\":1}"),
            Ok(count) => out.extend_from_slice(format!("{{\"rowcount\":{count}}}").as_bytes()),
            Err(None) => out.extend_from_slice(b"{\"rowcount\":-2}"),
            Err(Some(failure)) => {
                out.extend_from_slice(
                    format!("{{\"rowcount\":-2,\"error\":{{\"code\":{},\"message\":", failure.code()).as_bytes(),
                );
                write_text(&mut out, &failure.message());
                out.extend_from_slice(b"}}");
            }
        }
    }
    out.extend_from_slice(b"]}");
    out
}
