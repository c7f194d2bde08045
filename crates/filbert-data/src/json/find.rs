//! Follows one path through a document.

use super::scan::Scan;
use crate::{DataError, Step, Value};

/// The value that a path finds in a document. An empty path finds the document itself, as JSON.
///
/// # Errors
///
/// The text that was read is not valid JSON. The text after the found value is not read.
pub(crate) fn find<'a>(text: &'a str, steps: &[Step]) -> Result<Value<'a>, DataError> {
    if steps.is_empty() {
        return Ok(Value::Json(text.into()));
    }
    in_part(&mut Scan::new(text), steps, false)
}

/// The value that `steps` find in the next JSON value. With `to_end` the scan is positioned after
/// that JSON value afterwards, else at any place after the found value.
pub(super) fn in_part<'a>(scan: &mut Scan<'a>, steps: &[Step], to_end: bool) -> Result<Value<'a>, DataError> {
    let Some((step, rest)) = steps.split_first() else { return scan.value() };
    match (step, scan.peek()) {
        (Step::Field(name), Some(b'{')) => {
            scan.take(b'{');
            let mut found = None;
            if scan.take(b'}') {
                return Ok(Value::Null);
            }
            loop {
                let member = scan.name()?;
                if found.is_none() && member.is(name)? {
                    found = Some(in_part(scan, rest, to_end)?);
                    if !to_end {
                        break;
                    }
                } else {
                    scan.skip()?;
                }
                if !scan.goes_on(b'}')? {
                    break;
                }
            }
            Ok(found.unwrap_or(Value::Null))
        }
        (Step::Index(index), Some(b'[')) => {
            scan.take(b'[');
            let mut found = Value::Null;
            if scan.take(b']') {
                return Ok(found);
            }
            for at in 0usize.. {
                if at == *index {
                    found = in_part(scan, rest, to_end)?;
                    if !to_end {
                        break;
                    }
                } else {
                    scan.skip()?;
                }
                if !scan.goes_on(b']')? {
                    break;
                }
            }
            Ok(found)
        }
        (Step::Any, Some(b'[')) => {
            scan.take(b'[');
            let flat = rest.contains(&Step::Any);
            let mut all = Vec::new();
            if scan.take(b']') {
                return Ok(Value::Array(all));
            }
            loop {
                match in_part(scan, rest, true)? {
                    Value::Array(found) if flat => all.extend(found),
                    found => all.push(found),
                }
                if !scan.goes_on(b']')? {
                    break;
                }
            }
            Ok(Value::Array(all))
        }
        _ => {
            scan.skip()?;
            Ok(Value::Null)
        }
    }
}
