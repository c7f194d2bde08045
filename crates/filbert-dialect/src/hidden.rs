//! Statements without their literals, for logs: literals may be personal data or secrets.

use filbert_grid::query::Dialect;
use sqlparser::tokenizer::{Token, Tokenizer, Word};

use super::grammar::grammar;

/// The shown text of a statement that has no tokens, such as one with an open quote.
const UNREADABLE: &str = "(a statement that is not SQL)";

/// The text of a statement with `?` in place of each literal, and a blank in place of each run of
/// white space and comments.
pub fn without_literals(text: &str, of: Dialect) -> String {
    let Ok(tokens) = Tokenizer::new(grammar(of), text).tokenize() else { return UNREADABLE.to_owned() };
    let mut shown = String::with_capacity(text.len());
    for token in tokens {
        match token {
            Token::Whitespace(_) if shown.is_empty() || shown.ends_with(' ') => {}
            // Comments may contain anything.
            Token::Whitespace(_) => shown.push(' '),
            Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::TripleSingleQuotedString(_)
            | Token::TripleDoubleQuotedString(_)
            | Token::DollarQuotedString(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::DoubleQuotedByteStringLiteral(_)
            | Token::TripleSingleQuotedByteStringLiteral(_)
            | Token::TripleDoubleQuotedByteStringLiteral(_)
            | Token::SingleQuotedRawStringLiteral(_)
            | Token::DoubleQuotedRawStringLiteral(_)
            | Token::TripleSingleQuotedRawStringLiteral(_)
            | Token::TripleDoubleQuotedRawStringLiteral(_)
            | Token::NationalStringLiteral(_)
            | Token::EscapedStringLiteral(_)
            | Token::UnicodeStringLiteral(_)
            | Token::HexStringLiteral(_) => shown.push('?'),
            Token::Word(Word { value, quote_style: Some(quote), .. }) => {
                shown.push(quote);
                for char in value.chars() {
                    shown.extend(std::iter::repeat_n(char, if char == quote { 2 } else { 1 }));
                }
                shown.push(quote);
            }
            other => shown.push_str(&other.to_string()),
        }
    }
    let end = shown.trim_end().len();
    shown.truncate(end);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(without_literals(text, Dialect::Postgres), expected);
    }

    #[test]
    fn literals_and_comments_are_hidden() {
        check("select * from t where a = 'x''y' and b = 1.5e3", "select * from t where a = ? and b = ?");
        check(
            "INSERT INTO \"T\" VALUES (1, e'\\n', $$secret$$, N'x', X'ff')",
            "INSERT INTO \"T\" VALUES (?, ?, ?, ?, ?)",
        );
        check("select 1 -- password 'x'\n  + /* 2 */ $1", "select ? + $1");
        check("  set a.b = 'secret'  ", "set a.b = ?");
        check("select 'open", UNREADABLE);
        check("select \"a\"\"b\", 'c'", "select \"a\"\"b\", ?");
    }

    #[test]
    fn every_dialect_is_hidden() {
        for dialect in [Dialect::Hazelcast, Dialect::Crate, Dialect::Postgres] {
            assert_eq!(without_literals("select 'a' from t where b = 12", dialect), "select ? from t where b = ?");
        }
    }
}
