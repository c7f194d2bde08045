//! Splits the text of a date or a time into tokens.

use crate::is_space;

/// A token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// Digits, with an optional fraction.
    Number(&'t str),
    /// Parts separated by `-`, `/` or `.`. The month may be a name.
    Date(&'t str),
    /// Digits separated by colons, with an optional fraction.
    Time(&'t str),
    /// Letters.
    Word(&'t str),
    /// A sign and digits, with optional colons between the digits.
    Signed(&'t str),
    /// The name of a time zone with other characters besides letters.
    Zone(&'t str),
}

/// The kind of a token, before the token is cut out of the text.
#[derive(Clone, Copy)]
enum Shape {
    Number,
    Date,
    Time,
    Word,
    Zone,
}

impl Shape {
    fn token(self, text: &str) -> Token<'_> {
        match self {
            Shape::Number => Token::Number(text),
            Shape::Date => Token::Date(text),
            Shape::Time => Token::Time(text),
            Shape::Word => Token::Word(text),
            Shape::Zone => Token::Zone(text),
        }
    }
}

/// Splits a text into tokens; `None` if a character cannot begin a token.
pub(super) fn tokens(text: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|char: char| is_space(char) || char == ',');
        let Some(first) = rest.bytes().next() else { return Some(tokens) };
        let (token, after) = match first {
            b'0'..=b'9' => digits(rest)?,
            b'+' | b'-' => {
                let end = end_of(rest, 1, |byte| byte.is_ascii_digit() || byte == b':');
                let (sign, after) = rest.split_at_checked(end)?;
                (Token::Signed(sign), after)
            }
            _ if first.is_ascii_alphabetic() || first == b'<' => letters(rest)?,
            _ => return None,
        };
        tokens.push(token);
        rest = after;
    }
}

fn end_of(text: &str, start: usize, is_in: impl Fn(u8) -> bool) -> usize {
    let within = text.bytes().skip(start).take_while(|byte| is_in(*byte)).count();
    start + within
}

fn digits(text: &str) -> Option<(Token<'_>, &str)> {
    let bytes = text.as_bytes();
    let end = end_of(text, 0, |byte| byte.is_ascii_digit());
    let next = bytes.get(end).copied();
    let (end, token): (usize, Shape) = match next {
        Some(b':') => (end_of(text, end, |byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.')), Shape::Time),
        Some(delimiter @ (b'-' | b'/' | b'.')) => {
            let is_digit = bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
            let is_letter = bytes.get(end + 1).is_some_and(u8::is_ascii_alphabetic);
            let of_digits = end_of(text, end, |byte| byte.is_ascii_digit() || byte == delimiter);
            let parts = text.get(..of_digits)?.bytes().filter(|byte| *byte == delimiter).count();
            match (is_digit, is_letter) {
                (true, _) if delimiter == b'.' && parts == 1 => (of_digits, Shape::Number),
                (true, _) => (of_digits, Shape::Date),
                (_, true) => (end_of(text, end, |byte| byte.is_ascii_alphanumeric() || byte == delimiter), Shape::Date),
                _ => (end, Shape::Number),
            }
        }
        _ => (end, Shape::Number),
    };
    let (field, after) = text.split_at_checked(end)?;
    Some((token.token(field), after))
}

fn letters(text: &str) -> Option<(Token<'_>, &str)> {
    let bytes = text.as_bytes();
    let is_zone = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'+' | b'-' | b'<' | b'>');
    let end = end_of(text, 0, |byte| byte.is_ascii_alphabetic());
    let word = text.get(..end)?;
    let next = bytes.get(end + 1).copied();
    let (end, token): (usize, Shape) = match bytes.get(end) {
        Some(b'-' | b'/' | b'.') if month(word).is_some() && next.is_some_and(|next| next.is_ascii_digit()) => {
            let delimiter = bytes.get(end).copied().unwrap_or(b'-');
            (end_of(text, end, |byte| byte.is_ascii_alphanumeric() || byte == delimiter), Shape::Date)
        }
        Some(b'/' | b'_' | b'<') => (end_of(text, end, is_zone), Shape::Zone),
        // `UTC+3`, `Foo5`, but `T12` and `J2451187`.
        Some(b'+' | b'-') if next.is_some_and(|next| next.is_ascii_digit()) && word.len() >= 3 => {
            (end_of(text, end, |byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b':')), Shape::Zone)
        }
        Some(b'0'..=b'9') if word.len() >= 3 && month(word).is_none() => (end_of(text, end, is_zone), Shape::Zone),
        _ => (end, Shape::Word),
    };
    let (field, after) = text.split_at_checked(end)?;
    Some((token.token(field), after))
}

/// The number of a month, from its name or an abbreviation of the name.
pub(super) fn month(word: &str) -> Option<u32> {
    const NAMES: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let word = word.to_ascii_lowercase();
    if word == "sept" {
        return Some(9);
    }
    let found = NAMES.iter().position(|name| *name == word || name.get(..3) == Some(word.as_str()))?;
    u32::try_from(found + 1).ok()
}

/// Whether a word names a day of the week.
pub(super) fn is_weekday(word: &str) -> bool {
    const NAMES: [&str; 18] = [
        "sun",
        "sunday",
        "mon",
        "monday",
        "tue",
        "tues",
        "tuesday",
        "wed",
        "weds",
        "wednesday",
        "thu",
        "thur",
        "thurs",
        "thursday",
        "fri",
        "friday",
        "sat",
        "saturday",
    ];
    let word = word.to_ascii_lowercase();
    NAMES.contains(&word.as_str())
}
