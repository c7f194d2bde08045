//! Patterns of `LIKE` in the engine's form, and lower-case conversion for `ILIKE`.

use std::borrow::Cow;

use filbert_grid::query::{SqlError, data_error};

/// Converts a pattern of `LIKE` to one with the backslash as escape character. Any character may be
/// escaped.
///
/// # Errors
/// 22025: the pattern ends with its escape character.
pub fn escaped_pattern(pattern: &str, escape: Option<char>) -> Result<String, SqlError> {
    let mut out = String::with_capacity(pattern.len());
    let mut chars = pattern.chars();
    let literal = |char: char, out: &mut String| {
        if matches!(char, '%' | '_' | '\\') {
            out.push('\\');
        }
        out.push(char);
    };
    while let Some(char) = chars.next() {
        match char {
            _ if Some(char) == escape => match chars.next() {
                Some(next) => literal(next, &mut out),
                None => {
                    return Err(data_error("LIKE pattern must not end with escape character").with_sqlstate("22025"));
                }
            },
            '%' | '_' => out.push(char),
            other => literal(other, &mut out),
        }
    }
    Ok(out)
}

/// A text in lower case, character by character.
pub fn lower(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Owned(text.to_ascii_lowercase());
    }
    Cow::Owned(text.chars().map(lower_of).collect())
}

/// A character in lower case.
pub fn lower_of(char: char) -> char {
    let mut lower = char.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) => lower,
        // The only letter with a lower case of two characters in Unicode.
        _ if char == 'İ' => 'i',
        _ => char,
    }
}
