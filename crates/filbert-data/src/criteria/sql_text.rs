//! The SQL-like dialect of predicates: `age > 30 AND (name LIKE 'J%' OR active)`.
//!
//! ```text
//! condition  = conjunct { OR conjunct }
//! conjunct   = term { AND term }
//! term       = NOT term | '(' condition ')' | attribute [ comparison ]
//! comparison = ( '=' | '==' | '!=' | '<>' | '<' | '<=' | '>' | '>=' ) literal
//!            | [ NOT ] ( LIKE | ILIKE | REGEX ) literal
//!            | [ NOT ] BETWEEN literal AND literal
//!            | [ NOT ] IN '(' literal { ',' literal } ')'
//! ```
//!
//! Keywords are case-insensitive. An attribute without a comparison must be true. A text is written
//! in single quotes; a single quote within it is doubled. A word without quotes is a number,
//! `true`, `false`, `null`, or else a text. A `%` before an attribute is ignored; in Hazelcast it
//! prevents the use of the attribute's index. Source: Hazelcast's `SqlPredicate`.

use std::borrow::Cow;
use std::str::FromStr;

use bigdecimal::BigDecimal;

use super::Predicate;
use super::object::DEPTH_MAX;
use crate::{DataError, Value};

impl Predicate {
    /// Reads a condition in the SQL-like dialect of predicates.
    ///
    /// # Errors
    ///
    /// The text is not a condition, or is nested more than 200 deep.
    pub fn parse_sql(text: &str) -> Result<Predicate, DataError> {
        let mut parser = Parser { text, at: 0, depth_left: DEPTH_MAX };
        let predicate = parser.condition()?;
        match parser.peek()? {
            None => Ok(predicate),
            Some(token) => Err(parser.unexpected(token, "AND, OR or the end")),
        }
    }
}

/// One token, and the position of its first byte.
#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    at: usize,
    kind: TokenKind<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TokenKind<'a> {
    /// A word without quotes.
    Word(&'a str),
    /// The text between quotes. Quotes within it are still doubled.
    Quoted(&'a str),
    /// An operator, a parenthesis or a comma, of one or two characters.
    Sign(&'a str),
}

impl TokenKind<'_> {
    fn is(&self, word: &str) -> bool {
        matches!(self, TokenKind::Word(found) if found.eq_ignore_ascii_case(word))
    }
}

const KEYWORDS: [&str; 8] = ["and", "or", "not", "like", "ilike", "regex", "between", "in"];

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth_left: usize,
}

impl<'a> Parser<'a> {
    fn error(&self, at: usize, found: String, expected: &'static str) -> DataError {
        let character = self.text.get(..at).map_or(0, |before| before.chars().count()) + 1;
        DataError::BrokenCondition { character, found, expected }
    }

    fn unexpected(&self, token: Token<'_>, expected: &'static str) -> DataError {
        let found = match token.kind {
            TokenKind::Word(text) | TokenKind::Sign(text) => shortened(text),
            TokenKind::Quoted(text) => format!("'{}'", shortened(text)),
        };
        self.error(token.at, found, expected)
    }

    /// The next token, and the position of its end.
    fn scan(&self) -> Result<Option<(Token<'a>, usize)>, DataError> {
        let from = self.text.get(self.at..).unwrap_or_default();
        let rest = from.trim_start();
        let at = self.at + from.len() - rest.len();
        let Some(first) = rest.chars().next() else { return Ok(None) };
        let sign_bytes = match first {
            '(' | ')' | ',' => 1,
            '=' | '<' | '>' | '!' => {
                let two = rest.get(..2).is_some_and(|two| ["==", "!=", "<>", "<=", ">="].contains(&two));
                if two { 2 } else { 1 }
            }
            '\'' => return self.scan_quoted(rest, at).map(Some),
            _ => 0,
        };
        let (kind, bytes) = if sign_bytes > 0 {
            (TokenKind::Sign(rest.get(..sign_bytes).unwrap_or_default()), sign_bytes)
        } else {
            let ends = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '=' | '<' | '>' | '!' | '\'');
            let word = rest.split(ends).next().unwrap_or_default();
            (TokenKind::Word(word), word.len())
        };
        Ok(Some((Token { at, kind }, at + bytes)))
    }

    fn scan_quoted(&self, rest: &'a str, at: usize) -> Result<(Token<'a>, usize), DataError> {
        let inner = rest.get(1..).unwrap_or_default();
        let mut quotes = inner.match_indices('\'').map(|(place, _)| place).peekable();
        while let Some(place) = quotes.next() {
            if quotes.next_if_eq(&(place + 1)).is_none() {
                let text = inner.get(..place).unwrap_or_default();
                return Ok((Token { at, kind: TokenKind::Quoted(text) }, at + place + 2));
            }
        }
        Err(self.error(at, "a text without an end".into(), "a closing '"))
    }

    fn peek(&self) -> Result<Option<Token<'a>>, DataError> {
        Ok(self.scan()?.map(|(token, _)| token))
    }

    /// Takes the next token.
    fn next(&mut self, expected: &'static str) -> Result<Token<'a>, DataError> {
        match self.scan()? {
            Some((token, end)) => {
                self.at = end;
                Ok(token)
            }
            None => Err(self.error(self.text.len(), "the end".into(), expected)),
        }
    }

    fn next_is(&mut self, word: &str) -> Result<bool, DataError> {
        match self.scan()? {
            Some((token, end)) if token.kind.is(word) || token.kind == TokenKind::Sign(word) => {
                self.at = end;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    fn expect(&mut self, word: &'static str) -> Result<(), DataError> {
        let token = self.next(word)?;
        if token.kind.is(word) || token.kind == TokenKind::Sign(word) {
            Ok(())
        } else {
            Err(self.unexpected(token, word))
        }
    }

    fn condition(&mut self) -> Result<Predicate, DataError> {
        let first = self.conjuncts()?;
        let mut all = Vec::new();
        while self.next_is("or")? {
            all.push(self.conjuncts()?);
        }
        Ok(joined(first, all, Predicate::Or, |one| match one {
            Predicate::Or(all) => Ok(all),
            other => Err(other),
        }))
    }

    fn conjuncts(&mut self) -> Result<Predicate, DataError> {
        let first = self.term()?;
        let mut all = Vec::new();
        while self.next_is("and")? {
            all.push(self.term()?);
        }
        Ok(joined(first, all, Predicate::And, |one| match one {
            Predicate::And(all) => Ok(all),
            other => Err(other),
        }))
    }

    fn term(&mut self) -> Result<Predicate, DataError> {
        let token = self.next("an attribute, NOT or (")?;
        let Some(left) = self.depth_left.checked_sub(1) else {
            return Err(self.error(token.at, format!("more than {DEPTH_MAX} levels"), "fewer"));
        };
        self.depth_left = left;
        let term = match token.kind {
            kind if kind.is("not") => Predicate::Not(Box::new(self.term()?)),
            TokenKind::Sign("(") => {
                let inner = self.condition()?;
                self.expect(")")?;
                inner
            }
            TokenKind::Word(word) if !is_keyword(word) => {
                self.comparison(word.strip_prefix('%').unwrap_or(word).into())?
            }
            TokenKind::Quoted(text) => self.comparison(unescaped(text).into_owned())?,
            _ => return Err(self.unexpected(token, "an attribute, NOT or (")),
        };
        self.depth_left = left + 1;
        Ok(term)
    }

    /// Reads the optional comparison after an attribute.
    fn comparison(&mut self, attribute: String) -> Result<Predicate, DataError> {
        let Some((token, end)) = self.scan()? else { return Ok(is_true(attribute)) };
        let negated = token.kind.is("not");
        if !negated && (matches!(token.kind, TokenKind::Sign(")")) || token.kind.is("and") || token.kind.is("or")) {
            return Ok(is_true(attribute));
        }
        self.at = end;
        let expected = if negated { "LIKE, ILIKE, REGEX, BETWEEN or IN" } else { "a comparison" };
        let operator = if negated { self.next(expected)? } else { token };
        let compare = |attribute, value, equal, less| Predicate::Compare { attribute, value, equal, less };
        let found = match operator.kind {
            TokenKind::Sign(sign @ ("=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=")) if !negated => {
                let value = self.literal()?;
                match sign {
                    "=" | "==" => Predicate::Equal(attribute, value),
                    "!=" | "<>" => Predicate::NotEqual(attribute, value),
                    "<" => compare(attribute, value, false, true),
                    "<=" => compare(attribute, value, true, true),
                    ">" => compare(attribute, value, false, false),
                    _ => compare(attribute, value, true, false),
                }
            }
            kind if kind.is("like") || kind.is("ilike") => {
                Predicate::Like { attribute, pattern: self.pattern()?, ignore_case: kind.is("ilike") }
            }
            kind if kind.is("regex") => Predicate::Regex { attribute, pattern: self.pattern()? },
            kind if kind.is("between") => {
                let from = self.literal()?;
                self.expect("AND")?;
                Predicate::Between { attribute, from, to: self.literal()? }
            }
            kind if kind.is("in") => Predicate::In(attribute, self.list()?),
            _ => return Err(self.unexpected(operator, expected)),
        };
        Ok(if negated { Predicate::Not(Box::new(found)) } else { found })
    }

    fn list(&mut self) -> Result<Vec<Value<'static>>, DataError> {
        self.expect("(")?;
        let mut values = vec![self.literal()?];
        while self.next_is(",")? {
            values.push(self.literal()?);
        }
        self.expect(")")?;
        Ok(values)
    }

    fn literal(&mut self) -> Result<Value<'static>, DataError> {
        let token = self.next("a value")?;
        match token.kind {
            TokenKind::Quoted(text) => Ok(Value::Text(Cow::Owned(unescaped(text).into_owned()))),
            TokenKind::Word(word) if !is_keyword(word) => Ok(bare(word)),
            _ => Err(self.unexpected(token, "a value")),
        }
    }

    /// Reads a pattern. It is a text even if it looks like a number.
    fn pattern(&mut self) -> Result<Option<String>, DataError> {
        let token = self.next("a pattern")?;
        match token.kind {
            TokenKind::Quoted(text) => Ok(Some(unescaped(text).into_owned())),
            kind if kind.is("null") => Ok(None),
            TokenKind::Word(word) if !is_keyword(word) => Ok(Some(word.to_owned())),
            _ => Err(self.unexpected(token, "a pattern")),
        }
    }
}

fn is_keyword(word: &str) -> bool {
    KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(word))
}

fn is_true(attribute: String) -> Predicate {
    Predicate::Equal(attribute, Value::Boolean(true))
}

fn unescaped(text: &str) -> Cow<'_, str> {
    if text.contains('\'') { Cow::Owned(text.replace("''", "'")) } else { Cow::Borrowed(text) }
}

fn shortened(text: &str) -> String {
    let short: String = text.chars().take(32).collect();
    if short.len() < text.len() { format!("{short}...") } else { short }
}

/// Joins predicates by AND or OR. `apart` returns the operands of a predicate with the same
/// operator, so that these are joined directly.
fn joined(
    first: Predicate,
    others: Vec<Predicate>,
    join: fn(Vec<Predicate>) -> Predicate,
    apart: fn(Predicate) -> Result<Vec<Predicate>, Predicate>,
) -> Predicate {
    if others.is_empty() {
        return first;
    }
    let mut all = Vec::with_capacity(others.len() + 1);
    for one in std::iter::once(first).chain(others) {
        match apart(one) {
            Ok(several) => all.extend(several),
            Err(one) => all.push(one),
        }
    }
    join(all)
}

/// The value of a word without quotes. A number with leading zeros, such as 007, is a text.
fn bare(word: &str) -> Value<'static> {
    let text = || Value::Text(Cow::Owned(word.to_owned()));
    if word.eq_ignore_ascii_case("null") {
        return Value::Null;
    }
    if word.eq_ignore_ascii_case("true") || word.eq_ignore_ascii_case("false") {
        return Value::Boolean(word.eq_ignore_ascii_case("true"));
    }
    let digits = word.strip_prefix('-').unwrap_or(word);
    let mut first = digits.bytes();
    match (first.next(), first.next()) {
        (Some(b'0'), Some(b'0'..=b'9')) => return text(),
        (Some(b'0'..=b'9'), _) | (Some(b'.'), Some(b'0'..=b'9')) => {}
        _ => return text(),
    }
    if digits.bytes().all(|digit| digit.is_ascii_digit()) {
        // Parsing a decimal of thousands of digits is slow, and no real value is so large.
        return match word.parse() {
            Ok(number) => Value::Int64(number),
            Err(_) if digits.len() > 1_000 => text(),
            Err(_) => BigDecimal::from_str(word).map_or_else(|_| text(), Value::Decimal),
        };
    }
    if digits.bytes().any(|byte| !matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-')) {
        return text();
    }
    match word.parse::<f64>() {
        Ok(number) if number.is_finite() => Value::Float64(number),
        _ => text(),
    }
}
