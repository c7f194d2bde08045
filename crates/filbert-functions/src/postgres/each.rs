//! Matches texts with each pattern of an array: `LIKE ANY`, `~ ALL` and similar operators.
//!
//! In three-valued logic, like comparisons with elements: ANY is true if one pattern matches,
//! otherwise unknown if one is unknown, otherwise false. ALL is the same with true and false
//! exchanged.

use datafusion::common::Result;
use filbert_data::Value;
use filbert_dialect::lower;

use super::super::like::Pattern;
use super::matcher;
use crate::ending;
use crate::native::Call;

/// Matches a text with the patterns of an array, by an operator; the last argument says whether one
/// match is enough.
///
/// # Errors
/// A pattern is invalid.
pub(super) fn matches(call: &Call<'_>) -> Result<Value<'static>> {
    let Some(Value::Array(patterns)) = call.values.get(1) else { return Ok(Value::Null) };
    let (sign, decisive) = (call.text(2), call.bool(3));
    let is_null = call.values.first().is_none_or(Value::is_null);
    let mut is_unknown = false;
    for pattern in patterns {
        let Value::Text(pattern) = pattern else {
            is_unknown = true;
            continue;
        };
        if is_null {
            is_unknown = true;
        } else if is_match(call.text(0), pattern, sign)? == decisive {
            return Ok(Value::Boolean(decisive));
        }
    }
    Ok(if is_unknown { Value::Null } else { Value::Boolean(!decisive) })
}

fn is_match(text: &str, pattern: &str, sign: &str) -> Result<bool> {
    let (sign, is_negated) = sign.strip_prefix('!').map_or((sign, false), |sign| (sign, true));
    let is_match = match sign {
        "~" => matcher::with(pattern, "", |matcher| Ok(matcher.is_match(text)))?,
        "~*" => matcher::with(pattern, "i", |matcher| Ok(matcher.is_match(text)))?,
        "~~*" => Pattern::of(&lower(pattern))?.matches(&lower(text), &mut |_| ending::check())?,
        _ => Pattern::of(pattern)?.matches(text, &mut |_| ending::check())?,
    };
    Ok(is_match != is_negated)
}
