//! JSON documents as text: values are found in place and validated on the way. No tree is built.

use std::borrow::Cow;

use smallvec::SmallVec;

/// The maximum depth of nested objects and arrays.
const DEPTH_MAX: usize = 500;

/// An error in a document, with its byte position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub(super) at: usize,
    pub(super) expected: &'static str,
}

type Checked<T> = Result<T, Broken>;

/// The kinds of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Members with names.
    Object,
    /// Items.
    Array,
    /// A text.
    Text,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// `null`.
    Null,
}

/// A validated value: its text without surrounding white space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<'t> {
    text: &'t str,
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scan<'t> {
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn broken<T>(&self, expected: &'static str) -> Checked<T> {
        Err(Broken { at: self.at, expected })
    }

    fn expect(&mut self, byte: u8, expected: &'static str) -> Checked<()> {
        if self.peek() != Some(byte) {
            return self.broken(expected);
        }
        self.at += 1;
        Ok(())
    }

    /// Skips a string.
    fn quoted(&mut self) -> Checked<&'t str> {
        self.expect(b'"', "a text in double quotes")?;
        let start = self.at;
        let bytes = self.text.as_bytes();
        loop {
            self.at += plain_length(bytes.get(self.at..).unwrap_or_default());
            match bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    self.at += 1;
                    match bytes.get(self.at) {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 1,
                        Some(b'u') => {
                            let digits = bytes.get(self.at + 1..self.at + 5);
                            if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                                return self.broken("four hexadecimal digits after \\u");
                            }
                            self.at += 5;
                        }
                        _ => return self.broken("a character that a backslash can escape"),
                    }
                }
                Some(0..0x20) => return self.broken("no control character within a text"),
                Some(_) => self.at += 1,
                None => return self.broken("the closing double quote of a text"),
            }
        }
        let quoted = self.text.get(start..self.at).unwrap_or_default();
        self.at += 1;
        Ok(quoted)
    }

    /// Skips the name of a member, up to the start of its value.
    fn name(&mut self) -> Checked<&'t str> {
        let name = self.quoted()?;
        self.expect(b':', "a colon")?;
        self.peek();
        Ok(name)
    }

    fn digits(&mut self) -> Checked<()> {
        let start = self.at;
        while self.text.as_bytes().get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at == start { self.broken("a digit") } else { Ok(()) }
    }

    fn number(&mut self) -> Checked<()> {
        let next = |scan: &Self| scan.text.as_bytes().get(scan.at).copied();
        if next(self) == Some(b'-') {
            self.at += 1;
        }
        match next(self) {
            Some(b'0') => self.at += 1,
            _ => self.digits()?,
        }
        if next(self) == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = next(self) {
            self.at += 1;
            if let Some(b'+' | b'-') = next(self) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn word(&mut self, word: &str) -> Checked<()> {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return self.broken("a value");
        }
        self.at += word.len();
        Ok(())
    }

    /// Skips a value.
    fn value(&mut self) -> Checked<Node<'t>> {
        self.value_with(|_, _| {})
    }

    /// Skips a value. If it is an object, `member` is called with its members and their raw names.
    fn value_with(&mut self, mut member: impl FnMut(&'t str, Node<'t>)) -> Checked<Node<'t>> {
        self.peek();
        let start = self.at;
        // The open brackets.
        let mut open = SmallVec::<[u8; 32]>::new();
        // The current member of the outermost object: its name, and the start of its value.
        let (mut name, mut value_start) = ("", start);
        loop {
            match self.peek() {
                Some(bracket @ (b'{' | b'[')) => {
                    self.at += 1;
                    if open.len() >= DEPTH_MAX {
                        return self.broken("at most 500 objects and arrays within each other");
                    }
                    let close = if bracket == b'{' { b'}' } else { b']' };
                    if self.peek() == Some(close) {
                        self.at += 1;
                    } else {
                        open.push(close);
                        if close == b'}' {
                            let passed = self.name()?;
                            if open.len() == 1 {
                                (name, value_start) = (passed, self.at);
                            }
                        }
                        continue;
                    }
                }
                Some(b'"') => _ = self.quoted()?,
                Some(b'-' | b'0'..=b'9') => self.number()?,
                Some(b't') => self.word("true")?,
                Some(b'f') => self.word("false")?,
                Some(b'n') => self.word("null")?,
                _ => return self.broken("a value"),
            }
            // After a value: another value, or the end of the enclosing one.
            loop {
                let Some(close) = open.last().copied() else {
                    return Ok(Node { text: self.text.get(start..self.at).unwrap_or_default() });
                };
                let is_member = open.len() == 1 && close == b'}';
                if is_member {
                    member(name, Node { text: self.text.get(value_start..self.at).unwrap_or_default() });
                }
                match self.peek() {
                    Some(b',') => {
                        self.at += 1;
                        if close == b'}' {
                            let passed = self.name()?;
                            if is_member {
                                (name, value_start) = (passed, self.at);
                            }
                        }
                        break;
                    }
                    Some(byte) if byte == close => {
                        self.at += 1;
                        open.pop();
                    }
                    _ => return self.broken("a comma or a closing bracket"),
                }
            }
        }
    }
}

/// The number of bytes in a string before a special byte: a quote, a backslash or a control
/// character.
///
/// It checks eight bytes at a time, because most of a document is text. In each word, the lowest
/// marked byte is the first special byte. Bytes above it may be marked by a borrow.
fn plain_length(bytes: &[u8]) -> usize {
    const LOW: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let below = |word: u64, limit: u8| word.wrapping_sub(LOW * u64::from(limit)) & !word;
    let is = |word: u64, byte: u8| below(word ^ (LOW * u64::from(byte)), 1);
    let (words, rest) = bytes.as_chunks::<8>();
    for (at, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let marked = (is(word, b'"') | is(word, b'\\') | below(word, 0x20)) & HIGH;
        if marked != 0 {
            return at * 8 + marked.trailing_zeros() as usize / 8;
        }
    }
    let is_plain = |byte: &u8| !matches!(byte, b'"' | b'\\' | 0..0x20);
    words.len() * 8 + rest.iter().position(|byte| !is_plain(byte)).unwrap_or(rest.len())
}

impl<'t> Node<'t> {
    /// Parses a document that is exactly one value.
    pub fn parse(text: &'t str) -> Checked<Node<'t>> {
        Node::parse_with(text, |_, _| {})
    }

    /// Like [`Node::parse`], but also returns the value of a member, if the document is an object
    /// that has it. It is found during validation.
    pub(super) fn parse_with_member(text: &'t str, name: &str) -> Checked<(Node<'t>, Option<Node<'t>>)> {
        let mut found = None;
        let node = Node::parse_with(text, |written, value| {
            if found.is_none() && is_name(written, name) {
                found = Some(value);
            }
        })?;
        Ok((node, found))
    }

    fn parse_with(text: &'t str, member: impl FnMut(&'t str, Node<'t>)) -> Checked<Node<'t>> {
        let mut scan = Scan { text, at: 0 };
        let node = scan.value_with(member)?;
        if scan.peek().is_some() {
            return scan.broken("the end of the document");
        }
        Ok(node)
    }

    /// Its text.
    pub fn text(self) -> &'t str {
        self.text
    }

    /// Appends its text without white space between tokens.
    pub fn push_compact(self, out: &mut String) {
        let mut rest = self.text;
        while let Some(at) = rest.find(['"', ' ', '\t', '\n', '\r']) {
            let (before, after) = rest.split_at(at);
            out.push_str(before);
            if !after.starts_with('"') {
                rest = after.get(1..).unwrap_or_default();
                continue;
            }
            let mut scan = Scan { text: after, at: 0 };
            // The text was validated, so the string ends.
            let _ = scan.quoted();
            let (quoted, behind) = after.split_at_checked(scan.at).unwrap_or((after, ""));
            out.push_str(quoted);
            rest = behind;
        }
        out.push_str(rest);
    }

    /// The kind of the value.
    pub fn kind(self) -> Kind {
        match self.text.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::Text,
            Some(b't' | b'f') => Kind::Boolean,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }

    /// Whether it is neither an object nor an array.
    pub fn is_scalar(self) -> bool {
        !matches!(self.kind(), Kind::Object | Kind::Array)
    }

    /// The value of a member; the first if several members have the name.
    pub fn member(self, name: &str) -> Option<Node<'t>> {
        self.children().find(|(key, _)| key.is_some_and(|key| is_name(key, name))).map(|(_, value)| value)
    }

    /// Its members or elements; members with their raw names.
    pub fn children(self) -> impl Iterator<Item = (Option<&'t str>, Node<'t>)> {
        let kind = self.kind();
        let mut scan = Scan { text: self.text, at: 1 };
        let mut more = !self.is_scalar() && !matches!(scan.peek(), Some(b']' | b'}'));
        std::iter::from_fn(move || {
            if !more {
                return None;
            }
            let name = match kind {
                Kind::Object => {
                    let name = scan.quoted().ok()?;
                    scan.expect(b':', "a colon").ok()?;
                    Some(name)
                }
                _ => None,
            };
            let value = scan.value().ok()?;
            more = scan.peek() == Some(b',');
            scan.at += 1;
            Some((name, value))
        })
    }

    /// The names of its members.
    pub fn names(self) -> impl Iterator<Item = Cow<'t, str>> {
        self.children().filter_map(|(name, _)| name.map(unescaped))
    }

    /// The unescaped content of a string; other scalars as written.
    pub fn plain(self) -> Cow<'t, str> {
        match self.kind() {
            Kind::Text => unescaped(self.text.get(1..self.text.len().saturating_sub(1)).unwrap_or_default()),
            _ => Cow::Borrowed(self.text),
        }
    }
}

/// Whether a raw name equals this name. Escapes only make it longer.
fn is_name(written: &str, name: &str) -> bool {
    match written.len() == name.len() {
        true => written == name && !written.contains('\\'),
        false => written.len() > name.len() && written.contains('\\') && unescaped(written) == name,
    }
}

/// The unescaped content of a quoted string.
fn unescaped(quoted: &str) -> Cow<'_, str> {
    if !quoted.contains('\\') {
        return Cow::Borrowed(quoted);
    }
    let mut plain = String::with_capacity(quoted.len());
    let mut characters = quoted.chars();
    // The first half of a surrogate pair.
    let mut high = None;
    while let Some(character) = characters.next() {
        let character = match character {
            '\\' => match characters.next() {
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('u') => {
                    let digits: String = characters.by_ref().take(4).collect();
                    let unit = u32::from_str_radix(&digits, 16).unwrap_or(0xfffd);
                    if (0xd800..0xdc00).contains(&unit) {
                        high = Some(unit);
                        continue;
                    }
                    match (high.take(), unit) {
                        (Some(high), 0xdc00..0xe000) => {
                            char::from_u32(0x10000 + ((high - 0xd800) << 10) + (unit - 0xdc00)).unwrap_or('\u{fffd}')
                        }
                        _ => char::from_u32(unit).unwrap_or('\u{fffd}'),
                    }
                }
                Some(other) => other,
                None => break,
            },
            other => other,
        };
        if high.take().is_some() {
            plain.push('\u{fffd}');
        }
        plain.push(character);
    }
    if high.is_some() {
        plain.push('\u{fffd}');
    }
    Cow::Owned(plain)
}

/// Writes a text as a JSON string.
pub fn push_text(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if u32::from(control) < 0x20 => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it is wrong")]

    use super::*;

    #[test]
    fn texts_end_where_their_bytes_say_so_at_any_place() {
        for length in 0..40 {
            for special in ["\"", "\\", "\u{1f}", "\0"] {
                let text =
                    format!("{}{special}é\u{7f}\" \\", "aé\u{80}~ !".chars().cycle().take(length).collect::<String>());
                let expected = text.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)).unwrap();
                assert_eq!(plain_length(text.as_bytes()), expected, "{text:?}");
            }
            assert_eq!(plain_length("é".repeat(length).as_bytes()), length * 2);
        }
    }

    #[test]
    fn a_member_is_found_while_the_document_is_checked() {
        let document =
            r#" { "a" : {"b": 1, "a": 2}, "b" :[{"c": 3}, 4] , "c":"x", "\u0064": null, "a": 5, "e\\": 6 } "#;
        for (name, expected) in [
            ("a", Some(r#"{"b": 1, "a": 2}"#)),
            ("b", Some(r#"[{"c": 3}, 4]"#)),
            ("c", Some("\"x\"")),
            ("d", Some("null")),
            ("e\\", Some("6")),
            ("e\\\\", None),
            ("f", None),
        ] {
            let (node, found) = Node::parse_with_member(document, name).unwrap();
            assert_eq!(found.map(Node::text), expected, "{name}");
            assert_eq!(found, node.member(name), "both ways find the same");
        }
        for scalar in ["1", "[{\"a\": 1}]", "{}", "\"a\""] {
            assert_eq!(Node::parse_with_member(scalar, "a").unwrap().1, None, "{scalar}");
        }
        assert!(Node::parse_with_member(r#"{"a": 1, "b" 2}"#, "a").is_err(), "what follows is checked too");
    }
}
