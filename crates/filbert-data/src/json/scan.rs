//! Scans the text of a document, value by value.

use std::borrow::Cow;

use bigdecimal::BigDecimal;

use crate::{DataError, Value};

/// The maximum nesting depth of objects and arrays in a value that is skipped or returned as text.
const DEPTH_MAX: usize = 1024;

/// The text of a document, and the position of the next byte.
#[derive(Clone, Copy)]
pub(super) struct Scan<'a> {
    text: &'a str,
    at: usize,
}

/// A text between quotes, with its escapes.
#[derive(Clone, Copy)]
pub(super) struct Quoted<'a> {
    raw: &'a str,
    escaped: bool,
    /// The position of the text in the document, after the opening quote.
    at: usize,
}

impl<'a> Quoted<'a> {
    /// Whether the unescaped text equals `text`.
    #[inline]
    pub(super) fn is(&self, text: &str) -> Result<bool, DataError> {
        if self.escaped { Ok(self.unescape()? == text) } else { Ok(self.raw == text) }
    }

    /// The unescaped text.
    ///
    /// # Errors
    ///
    /// An escape is broken.
    #[inline]
    pub(super) fn unescape(&self) -> Result<Cow<'a, str>, DataError> {
        if !self.escaped {
            return Ok(Cow::Borrowed(self.raw));
        }
        let mut out = String::with_capacity(self.raw.len());
        let mut rest = self.raw;
        while let Some((before, after)) = rest.split_once('\\') {
            out.push_str(before);
            let at = self.at + self.raw.len() - after.len();
            let mut chars = after.chars();
            let escape = chars.next();
            rest = chars.as_str();
            out.push(match escape {
                Some(same @ ('"' | '\\' | '/')) => same,
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('u') => {
                    let (character, left) = unicode(rest).ok_or_else(|| broken(at, "four hexadecimal digits"))?;
                    rest = left;
                    character
                }
                _ => return Err(broken(at, "an escape of JSON")),
            });
        }
        out.push_str(rest);
        Ok(Cow::Owned(out))
    }
}

/// The character of a `\u` escape, or of two such escapes for a surrogate pair, and the rest of the
/// text after them. `text` begins after the first `\u`. A lone surrogate, which Java may write,
/// becomes the replacement character, because UTF-8 cannot represent it.
fn unicode(text: &str) -> Option<(char, &str)> {
    let unit = |text: &str| -> Option<u32> {
        let digits = text.get(..4)?;
        // `from_str_radix` would accept a sign.
        if digits.bytes().all(|byte| byte.is_ascii_hexdigit()) { u32::from_str_radix(digits, 16).ok() } else { None }
    };
    let (first, rest) = (unit(text)?, text.get(4..)?);
    if let Some(second) = rest.strip_prefix("\\u").and_then(unit)
        && let Some(Ok(character)) = char::decode_utf16([first as u16, second as u16]).next()
        && (0xd800..0xdc00).contains(&first)
    {
        return Some((character, rest.get(6..)?));
    }
    Some((char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER), rest))
}

#[cold]
pub(super) fn broken(at: usize, expected: &'static str) -> DataError {
    DataError::BrokenJson { at, expected }
}

/// Up to this number of characters, a double always holds all digits of a number: 15 digits, a sign
/// and a point.
const DOUBLE_DIGITS_MIN: usize = 17;

impl<'a> Scan<'a> {
    #[inline]
    pub(super) fn new(text: &'a str) -> Scan<'a> {
        Scan { text, at: 0 }
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips white space, and returns the next byte without taking it.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.byte() {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other,
            }
        }
    }

    /// Skips white space, and takes the next byte if it equals `byte`.
    #[inline]
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }

    /// Skips white space, and takes the next byte, which must equal `byte`.
    #[inline]
    pub(super) fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), DataError> {
        if self.take(byte) { Ok(()) } else { Err(self.broken(expected)) }
    }

    #[cold]
    pub(super) fn broken(&self, expected: &'static str) -> DataError {
        broken(self.at, expected)
    }

    /// Takes a text between quotes. Its escapes are checked when it is unescaped or skipped.
    #[inline]
    pub(super) fn quoted(&mut self) -> Result<Quoted<'a>, DataError> {
        self.expect(b'"', "a text between quotes")?;
        let from = self.at;
        let mut escaped = false;
        loop {
            self.at += plain_bytes(self.text.as_bytes().get(self.at..).unwrap_or_default());
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    // Skips the escaped byte, since it may be a quote. If it begins a longer
                    // character, the other bytes of that character have the highest bit set and are
                    // no quote.
                    self.at += 2;
                }
                Some(_) => return Err(self.broken("a character above U+001F, or an escape")),
                None => return Err(broken(self.text.len(), "a quote at the end of the text")),
            }
        }
        let raw = self.text.get(from..self.at).unwrap_or_default();
        self.at += 1;
        Ok(Quoted { raw, escaped, at: from })
    }

    /// Takes the name of a member and the colon after it.
    #[inline]
    pub(super) fn name(&mut self) -> Result<Quoted<'a>, DataError> {
        let name = self.quoted()?;
        self.expect(b':', "a colon")?;
        Ok(name)
    }

    /// Takes the next JSON value and converts it.
    pub(super) fn value(&mut self) -> Result<Value<'a>, DataError> {
        match self.peek() {
            Some(b'"') => self.quoted()?.unescape().map(Value::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'{' | b'[') => {
                let from = self.at;
                self.skip()?;
                Ok(Value::Json(Cow::Borrowed(self.text.get(from..self.at).unwrap_or_default())))
            }
            Some(b't') => self.literal("true").map(|()| Value::Boolean(true)),
            Some(b'f') => self.literal("false").map(|()| Value::Boolean(false)),
            Some(b'n') => self.literal("null").map(|()| Value::Null),
            _ => Err(self.broken("a value of JSON")),
        }
    }

    /// Skips the next JSON value of any type, and checks its syntax.
    pub(super) fn skip(&mut self) -> Result<(), DataError> {
        // One bit for each open object or array: 1 for an object, 0 for an array.
        let mut open = [0u64; DEPTH_MAX / 64];
        let mut depth = 0usize;
        loop {
            match self.peek() {
                Some(first @ (b'{' | b'[')) => {
                    self.at += 1;
                    let Some(word) = open.get_mut(depth / 64) else {
                        return Err(self.broken("at most 1,024 objects and arrays within each other"));
                    };
                    let bit = 1u64 << (depth % 64);
                    *word = if first == b'{' { *word | bit } else { *word & !bit };
                    depth += 1;
                    match self.peek() {
                        Some(b'}') if first == b'{' => {}
                        Some(b']') if first == b'[' => {}
                        _ => {
                            if first == b'{' {
                                self.skip_name()?;
                            }
                            continue;
                        }
                    }
                }
                Some(b'"') => self.skip_text()?,
                Some(b'-' | b'0'..=b'9') => {
                    self.digits()?;
                }
                Some(b't') => self.literal("true")?,
                Some(b'f') => self.literal("false")?,
                Some(b'n') => self.literal("null")?,
                _ => return Err(self.broken("a value of JSON")),
            }
            // After a value, or before the end of an empty object or array.
            loop {
                let Some(top) = depth.checked_sub(1) else { return Ok(()) };
                let in_object = open.get(top / 64).is_some_and(|word| word >> (top % 64) & 1 == 1);
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        if in_object {
                            self.skip_name()?;
                        }
                        break;
                    }
                    Some(b'}') if in_object => {}
                    Some(b']') if !in_object => {}
                    _ if in_object => return Err(self.broken("a comma or the end of the object")),
                    _ => return Err(self.broken("a comma or the end of the array")),
                }
                self.at += 1;
                depth = top;
            }
        }
    }

    fn skip_text(&mut self) -> Result<(), DataError> {
        let text = self.quoted()?;
        if text.escaped { text.unescape().map(drop) } else { Ok(()) }
    }

    fn skip_name(&mut self) -> Result<(), DataError> {
        self.skip_text()?;
        self.expect(b':', "a colon")
    }

    fn literal(&mut self, literal: &'static str) -> Result<(), DataError> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if !rest.starts_with(literal.as_bytes()) {
            return Err(self.broken("true, false or null"));
        }
        self.at += literal.len();
        Ok(())
    }

    /// Takes the text of a number. Also returns whether the number is whole: without fraction and
    /// exponent.
    fn digits(&mut self) -> Result<(&'a str, bool), DataError> {
        let from = self.at;
        self.at += usize::from(self.byte() == Some(b'-'));
        match self.byte() {
            Some(b'0') => self.at += 1,
            _ => self.run_of_digits()?,
        }
        let mut whole = true;
        if self.byte() == Some(b'.') {
            whole = false;
            self.at += 1;
            self.run_of_digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            whole = false;
            self.at += 1;
            self.at += usize::from(matches!(self.byte(), Some(b'+' | b'-')));
            self.run_of_digits()?;
        }
        Ok((self.text.get(from..self.at).unwrap_or_default(), whole))
    }

    fn run_of_digits(&mut self) -> Result<(), DataError> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        match rest.iter().take_while(|byte| byte.is_ascii_digit()).count() {
            0 => Err(self.broken("a digit")),
            count => {
                self.at += count;
                Ok(())
            }
        }
    }

    fn number(&mut self) -> Result<Value<'a>, DataError> {
        let from = self.at;
        let (digits, whole) = self.digits()?;
        if whole && let Ok(number) = digits.parse::<i64>() {
            return Ok(Value::Int64(number));
        }
        if !whole && let Some(number) = digits.parse::<f64>().ok().filter(|number| number.is_finite()) {
            // A fraction with more digits than a double holds is a decimal, unless it is the
            // shortest text of the double.
            if digits.len() <= DOUBLE_DIGITS_MIN || digits.contains(['e', 'E']) || number.to_string() == digits {
                return Ok(Value::Float64(number));
            }
        }
        let decimal = digits.parse::<BigDecimal>();
        decimal.map(Value::Decimal).map_err(|_| broken(from, "a number with an exponent of 64 bits"))
    }

    /// Takes the comma before a further member or item, and returns true. If there is no comma,
    /// takes `end`, the end of the object or array, and returns false.
    #[inline]
    pub(super) fn goes_on(&mut self, end: u8) -> Result<bool, DataError> {
        if self.take(b',') {
            return Ok(true);
        }
        self.expect(end, "a comma or the end of the object or array")?;
        Ok(false)
    }
}

/// The number of bytes at the front without a special byte: no quote, no backslash, no control
/// character.
#[inline]
fn plain_bytes(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = ONES << 7;
    let mut rest = bytes;
    while let Some((chunk, after)) = rest.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*chunk);
        // The highest bit of a byte is set if the byte is 0 after the xor, or below 0x20. Borrows
        // can set wrong bits in later bytes, but the lowest set bit is always right.
        let zero = |word: u64| word.wrapping_sub(ONES) & !word;
        let quotes = zero(word ^ (ONES * 0x22));
        let escapes = zero(word ^ (ONES * 0x5c));
        let controls = word.wrapping_sub(ONES * 0x20) & !word;
        let found = (quotes | escapes | controls) & HIGHS;
        if found != 0 {
            return bytes.len() - rest.len() + (found.trailing_zeros() / 8) as usize;
        }
        rest = after;
    }
    let front = rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..0x20)).count();
    bytes.len() - rest.len() + front
}
