//! White space in the texts of values.

/// Whether a character is white space for PostgreSQL's parsers of values, which ask C's `isspace`:
/// ASCII alone, and a vertical tab is white space too.
#[inline]
pub fn is_space(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}')
}
