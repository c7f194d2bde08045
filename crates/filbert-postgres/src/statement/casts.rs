//! The parameter types that casts in a statement give: `$1::int`, `CAST($2 AS text[])`.
//!
//! As in PostgreSQL, a parameter with a direct cast has the type of the cast. Drivers that encode
//! values by the reported types rely on it.

use super::lexer::{Lexer, Token, TokenKind};
use crate::types::{PgType, type_by_name};

/// The limit on parameter numbers. Casts of parameters beyond it are ignored.
const PARAMETERS_MAX: usize = 65_535;

/// The tokens of a statement, with access by index.
struct Tokens<'a> {
    text: &'a str,
    tokens: Vec<Token>,
}

impl<'a> Tokens<'a> {
    fn slice(&self, at: usize) -> &'a str {
        self.tokens.get(at).and_then(|token| self.text.get(token.start..token.end)).unwrap_or_default()
    }

    fn is_symbol(&self, at: usize, symbol: u8) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == TokenKind::Symbol(symbol))
    }

    fn is_word(&self, at: usize, word: &str) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == TokenKind::Word)
            && self.slice(at).eq_ignore_ascii_case(word)
    }

    /// The number of the parameter at a token, from 0 on.
    fn parameter(&self, at: usize) -> Option<usize> {
        self.slice(at).strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
    }

    /// The type with a name that begins at a token.
    fn type_at(&self, at: usize) -> Option<PgType> {
        let mut at = at;
        if self.is_word(at, "pg_catalog") && self.is_symbol(at + 1, b'.') {
            at += 2;
        }
        let mut name = self.slice(at).trim_matches('"').to_ascii_lowercase();
        at += 1;
        if (name == "double" && self.is_word(at, "precision")) || (name == "character" && self.is_word(at, "varying")) {
            name = format!("{name} {}", self.slice(at).to_ascii_lowercase());
            at += 1;
        }
        if self.is_symbol(at, b'(') {
            at = (at..self.tokens.len()).find(|at| self.is_symbol(*at, b')'))? + 1;
        }
        let is_zoned = self.is_word(at, "with") || self.is_word(at, "without");
        if is_zoned && self.is_word(at + 1, "time") && self.is_word(at + 2, "zone") {
            name = format!("{name} {} time zone", self.slice(at).to_ascii_lowercase());
            at += 3;
        }
        let is_array = self.is_symbol(at, b'[') || self.is_word(at, "array");
        type_by_name(&name).map(|found| PgType { is_array: found.is_array || is_array, ..found })
    }
}

/// The types of a statement's parameters, as far as casts give them.
pub(crate) fn cast_types(text: &str) -> Vec<Option<PgType>> {
    // Most statements have no parameter with a cast.
    if !text.contains('$') || !(text.contains("::") || text.to_ascii_lowercase().contains("cast")) {
        return Vec::new();
    }
    let tokens = Tokens { text, tokens: Lexer::new(text).collect() };
    let mut types: Vec<Option<PgType>> = Vec::new();
    for at in 0..tokens.tokens.len() {
        let Some(parameter) = tokens.parameter(at).filter(|parameter| *parameter < PARAMETERS_MAX) else { continue };
        let found = if tokens.is_symbol(at + 1, b':') && tokens.is_symbol(at + 2, b':') {
            tokens.type_at(at + 3)
        } else if at >= 2
            && tokens.is_word(at - 2, "cast")
            && tokens.is_symbol(at - 1, b'(')
            && tokens.is_word(at + 1, "as")
        {
            tokens.type_at(at + 2)
        } else {
            None
        };
        if found.is_some() {
            if types.len() <= parameter {
                types.resize(parameter + 1, None);
            }
            if let Some(place) = types.get_mut(parameter).filter(|place| place.is_none()) {
                *place = found;
            }
        }
    }
    types
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_the_types_that_they_are_cast_to() {
        for (text, expected) in [
            ("SELECT $1", &[][..]),
            ("SELECT $1::int + $2, CAST($3 AS text[])", &["integer", "", "text[]"]),
            ("SELECT $2 :: double precision, $1::varchar(10)::text", &["character varying", "double precision"]),
            ("SELECT cast ($1 as timestamp(3) with time zone)", &["timestamp with time zone"]),
            ("SELECT $1::timestamp, $2::pg_catalog.oid[]", &["timestamp without time zone", "oid[]"]),
            ("SELECT $1::int, $1::text", &["integer"]),
            ("SELECT $1::nothing, '$1::int', $1 /* ::int */", &[]),
            ("SELECT $0::int, $99999999::int, a::int, $1:2", &[]),
            ("SELECT $1::", &[]),
        ] {
            let found: Vec<String> =
                cast_types(text).iter().map(|found| found.map_or(String::new(), |found| found.to_string())).collect();
            assert_eq!(found, expected, "{text}");
        }
    }
}
