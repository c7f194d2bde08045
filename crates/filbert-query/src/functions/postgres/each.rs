//! Texts that are matched with each pattern of an array: `LIKE ANY`, `~ ALL` and their kin.
//!
//! Three-valued, as comparisons with items are: ANY is true if one pattern matches, else unknown if one is unknown; ALL is the same with
//! true and false in each other's places.

use datafusion::common::Result;
use filbert_data::Value;

use super::super::server::native::Call;
use super::letters::lower;
use super::{matcher, refused};

/// Matches a text with the patterns of an array, by the sign of an operator; whether one of them is enough.
///
/// # Errors
/// A pattern is none.
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
        "~~*" => is_like(&lower(text), &lower(pattern))?,
        _ => is_like(text, pattern)?,
    };
    Ok(is_match != is_negated)
}

/// A part of a pattern of `LIKE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// `%`
    Any,
    /// `_`
    One,
    Exactly(char),
}

fn parts(pattern: &str) -> Result<Vec<Part>> {
    let mut parts = Vec::new();
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        parts.push(match char {
            '%' => Part::Any,
            '_' => Part::One,
            '\\' => match chars.next() {
                Some(escaped) => Part::Exactly(escaped),
                None => return Err(refused("22025", "LIKE pattern must not end with escape character")),
            },
            char => Part::Exactly(char),
        });
    }
    Ok(parts)
}

/// Whether a text is like a pattern: `%` takes as little as it can, and one more with each return to it.
fn is_like(text: &str, pattern: &str) -> Result<bool> {
    let (text, parts): (Vec<char>, _) = (text.chars().collect(), parts(pattern)?);
    let (mut at, mut part) = (0, 0);
    let mut last_any: Option<(usize, usize)> = None;
    loop {
        match (parts.get(part), text.get(at)) {
            (Some(Part::Any), _) => {
                last_any = Some((at, part));
                part += 1;
                continue;
            }
            (Some(Part::One), Some(_)) => {
                (at, part) = (at + 1, part + 1);
                continue;
            }
            (Some(Part::Exactly(wanted)), Some(found)) if wanted == found => {
                (at, part) = (at + 1, part + 1);
                continue;
            }
            (None, None) => return Ok(true),
            _ => {}
        }
        let Some((from, any)) = last_any.filter(|(from, _)| *from < text.len()) else { return Ok(false) };
        last_any = Some((from + 1, any));
        (at, part) = (from + 1, any + 1);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it is wrong")]

    use super::*;

    #[test]
    fn patterns_are_matched_as_like_does() {
        for (text, pattern, expected) in [
            ("", "", true),
            ("", "%", true),
            ("a", "", false),
            ("abc", "a%c", true),
            ("abcbc", "a%bc", true),
            ("abcb", "a%bc", false),
            ("ab", "a_", true),
            ("äö", "_ö", true),
            ("a%b", "a\\%b", true),
            ("axb", "a\\%b", false),
            ("aaab", "%a%a%b", true),
            ("abc", "%%", true),
            ("abc", "_", false),
        ] {
            assert_eq!(is_like(text, pattern).unwrap(), expected, "{text:?} like {pattern:?}");
        }
        assert!(is_like("a", "a\\").is_err());
    }
}
