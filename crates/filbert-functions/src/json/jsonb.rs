//! `jsonb` documents: parsing, comparison, changes, and the canonical text.
//!
//! A document is stored as PostgreSQL's text: members ordered by the length of their names, then by
//! bytes; only the last member of a name; a blank after colons and commas; numbers as `numeric`
//! writes them.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt::Write;

/// The maximum depth of nested objects and arrays.
const DEPTH_MAX: usize = 500;
/// The maximum number of digits before and after the decimal point.
const DIGITS_MAX: i64 = 16_383;

/// A document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Document {
    /// `null`.
    Null,
    /// A text.
    Text(String),
    /// In the text form of `numeric`: without an exponent, with all written decimal places.
    Number(String),
    /// `true` or `false`.
    Bool(bool),
    /// Items.
    Array(Vec<Document>),
    /// Ordered by the length and the bytes of the names, each name once.
    Object(Vec<(String, Document)>),
}

/// The error of an invalid document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The text is not JSON.
    Syntax,
    /// `\u0000`, which text cannot contain.
    Zero,
    /// A number out of the range of `numeric`.
    Number,
}

/// The order of members.
fn by_name(left: &str, right: &str) -> Ordering {
    left.len().cmp(&right.len()).then_with(|| left.as_bytes().cmp(right.as_bytes()))
}

impl Document {
    /// Parses a document.
    pub fn parse(text: &str) -> Result<Document, Fault> {
        let mut reader = Reader { text, at: 0, depth: 0 };
        let document = reader.value()?;
        match reader.peek() {
            None => Ok(document),
            Some(_) => Err(Fault::Syntax),
        }
    }

    /// An object from members in any order. The last member of a name counts.
    pub fn object(mut members: Vec<(String, Document)>) -> Document {
        members.sort_by(|left, right| by_name(&left.0, &right.0));
        let mut unique: Vec<(String, Document)> = Vec::with_capacity(members.len());
        for member in members {
            match unique.last_mut().filter(|last| last.0 == member.0) {
                Some(last) => *last = member,
                None => unique.push(member),
            }
        }
        Document::Object(unique)
    }

    /// A number from the digits of JSON or `numeric`.
    pub fn number(digits: &str) -> Result<Document, Fault> {
        plain_number(digits).map(Document::Number).ok_or(Fault::Number)
    }

    /// The member of a name.
    pub fn member(&self, name: &str) -> Option<&Document> {
        let Document::Object(members) = self else { return None };
        let at = members.binary_search_by(|(found, _)| by_name(found, name)).ok()?;
        members.get(at).map(|(_, member)| member)
    }

    /// Whether it is an object or an array without members or elements.
    pub fn is_empty(&self) -> bool {
        match self {
            Document::Object(members) => members.is_empty(),
            Document::Array(items) => items.is_empty(),
            _ => false,
        }
    }

    /// Whether it is neither an object nor an array.
    pub fn is_scalar(&self) -> bool {
        !matches!(self, Document::Array(_) | Document::Object(_))
    }

    /// The text that `->>` returns: a string without its quotes.
    pub fn plain(&self) -> Option<Cow<'_, str>> {
        match self {
            Document::Null => None,
            Document::Text(text) => Some(Cow::Borrowed(text)),
            other => Some(Cow::Owned(other.to_string())),
        }
    }

    /// The position of an element; a negative one counts from the end. `Err` if it is out of range:
    /// before the first element (`false`) or after the last one (`true`).
    pub fn place(length: usize, place: i64) -> Result<usize, bool> {
        match usize::try_from(place) {
            Ok(at) if at < length => Ok(at),
            Ok(_) => Err(true),
            Err(_) => usize::try_from(place.unsigned_abs()).ok().and_then(|back| length.checked_sub(back)).ok_or(false),
        }
    }

    /// Whether this document contains the other one, as `@>` defines it.
    pub fn contains(&self, part: &Document) -> bool {
        match (self, part) {
            (Document::Array(items), part) if part.is_scalar() => items.iter().any(|item| item.same(part)),
            (whole, part) => whole.contains_within(part),
        }
    }

    fn contains_within(&self, part: &Document) -> bool {
        match (self, part) {
            (Document::Object(_), Document::Object(wanted)) => {
                wanted.iter().all(|(name, wanted)| self.member(name).is_some_and(|found| found.contains_within(wanted)))
            }
            (Document::Array(items), Document::Array(wanted)) => {
                wanted.iter().all(|wanted| items.iter().any(|item| item.contains_within(wanted)))
            }
            (left, right) => left.is_scalar() && left.same(right),
        }
    }

    /// Whether a text is the name of a member, an element, or the document itself, as `?` defines
    /// it.
    pub fn has(&self, name: &str) -> bool {
        let is_name = |item: &Document| matches!(item, Document::Text(text) if text == name);
        match self {
            Document::Object(_) => self.member(name).is_some(),
            Document::Array(items) => items.iter().any(is_name),
            scalar => is_name(scalar),
        }
    }

    /// Whether two documents are equal. Numbers are compared by value.
    pub fn same(&self, other: &Document) -> bool {
        self.compare(other) == Ordering::Equal
    }

    /// The order of `jsonb`.
    pub fn compare(&self, other: &Document) -> Ordering {
        let mut keys = [Vec::new(), Vec::new()];
        let [left, right] = &mut keys;
        self.append_key(left);
        other.append_key(right);
        left.cmp(&right)
    }

    /// Appends a key. The keys have the same order as the documents.
    ///
    /// A scalar document counts as an array of one element that sorts before real arrays of one
    /// element.
    pub fn append_key(&self, key: &mut Vec<u8>) {
        match self {
            Document::Array(_) | Document::Object(_) => self.append_item(key),
            scalar => {
                key.push(ARRAY);
                key.extend(1_u32.to_be_bytes());
                key.push(0);
                scalar.append_item(key);
            }
        }
    }

    fn append_item(&self, key: &mut Vec<u8>) {
        let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
        match self {
            Document::Null => key.push(0),
            Document::Text(text) => {
                key.push(1);
                append_text(text, key);
            }
            Document::Number(digits) => {
                key.push(2);
                append_number(digits, key);
            }
            Document::Bool(value) => key.extend([3, u8::from(*value)]),
            Document::Array(items) => {
                key.push(ARRAY);
                key.extend(count(items.len()));
                key.push(1);
                items.iter().for_each(|item| item.append_item(key));
            }
            Document::Object(members) => {
                key.push(OBJECT);
                key.extend(count(members.len()));
                for (name, member) in members {
                    append_text(name, key);
                    member.append_item(key);
                }
            }
        }
    }

    /// The result of `jsonb_typeof`.
    pub fn kind(&self) -> &'static str {
        match self {
            Document::Null => "null",
            Document::Text(_) => "string",
            Document::Number(_) => "number",
            Document::Bool(_) => "boolean",
            Document::Array(_) => "array",
            Document::Object(_) => "object",
        }
    }

    /// Writes the form of `jsonb_pretty`.
    pub fn pretty(&self, indent: usize, out: &mut String) {
        let line = |indent: usize, out: &mut String| {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', indent * 4));
        };
        match self {
            Document::Array(items) => {
                out.push('[');
                for (at, item) in items.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    line(indent + 1, out);
                    item.pretty(indent + 1, out);
                }
                line(indent, out);
                out.push(']');
            }
            Document::Object(members) => {
                out.push('{');
                for (at, (name, member)) in members.iter().enumerate() {
                    out.push_str(if at > 0 { "," } else { "" });
                    line(indent + 1, out);
                    push_text(name, out);
                    out.push_str(": ");
                    member.pretty(indent + 1, out);
                }
                line(indent, out);
                out.push('}');
            }
            // Writing to a String cannot fail.
            scalar => _ = write!(out, "{scalar}"),
        }
    }

    /// The document without null members.
    pub fn without_nulls(self) -> Document {
        match self {
            Document::Array(items) => Document::Array(items.into_iter().map(Document::without_nulls).collect()),
            Document::Object(members) => Document::Object(
                members
                    .into_iter()
                    .filter(|(_, member)| *member != Document::Null)
                    .map(|(name, member)| (name, member.without_nulls()))
                    .collect(),
            ),
            scalar => scalar,
        }
    }
}

const ARRAY: u8 = 0x10;
const OBJECT: u8 = 0x11;

impl std::fmt::Display for Document {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Document::Null => f.write_str("null"),
            Document::Bool(value) => write!(f, "{value}"),
            Document::Number(digits) => f.write_str(digits),
            Document::Text(text) => {
                let mut quoted = String::with_capacity(text.len() + 2);
                push_text(text, &mut quoted);
                f.write_str(&quoted)
            }
            Document::Array(items) => {
                f.write_char('[')?;
                for (at, item) in items.iter().enumerate() {
                    f.write_str(if at > 0 { ", " } else { "" })?;
                    item.fmt(f)?;
                }
                f.write_char(']')
            }
            Document::Object(members) => {
                f.write_char('{')?;
                for (at, (name, member)) in members.iter().enumerate() {
                    f.write_str(if at > 0 { ", " } else { "" })?;
                    let mut quoted = String::with_capacity(name.len() + 2);
                    push_text(name, &mut quoted);
                    write!(f, "{quoted}: {member}")?;
                }
                f.write_char('}')
            }
        }
    }
}

/// Writes a string in quotes, as PostgreSQL's `escape_json` does.
pub(crate) fn push_text(text: &str, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\u{1f}' => _ = write!(out, "\\u{:04x}", u32::from(char)),
            other => out.push(other),
        }
    }
    out.push('"');
}

fn append_text(text: &str, key: &mut Vec<u8>) {
    for byte in text.bytes() {
        // The terminator of a text is less than all its bytes.
        if byte == 0 {
            key.extend([0, 1]);
        } else {
            key.push(byte);
        }
    }
    key.extend([0, 0]);
}

/// The sign, the position of the first digit, and the digits; inverted for negative numbers.
fn append_number(digits: &str, key: &mut Vec<u8>) {
    let (is_negative, digits) = match digits.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, digits),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let significant = format!("{whole}{fraction}");
    let leading = significant.len() - significant.trim_start_matches('0').len();
    let trimmed = significant.trim_matches('0');
    if trimmed.is_empty() {
        key.push(1);
        return;
    }
    let exponent = i32::try_from(whole.len()).unwrap_or(i32::MAX) - i32::try_from(leading).unwrap_or(0);
    let start = key.len();
    key.push(if is_negative { 0 } else { 2 });
    key.extend((exponent.cast_unsigned() ^ 0x8000_0000).to_be_bytes());
    key.extend(trimmed.bytes());
    key.push(0);
    if is_negative {
        key.iter_mut().skip(start + 1).for_each(|byte| *byte = !*byte);
    }
}

/// A number without an exponent, in the text form of `numeric`; `None` if it has too many digits.
fn plain_number(written: &str) -> Option<String> {
    let (is_negative, digits) = match written.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, written),
    };
    let (mantissa, exponent) = match digits.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (digits, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if exponent.abs() > DIGITS_MAX || whole.len() > 131_072 {
        return None;
    }
    let digits: String = [whole, fraction].concat();
    let is_zero = digits.bytes().all(|byte| byte == b'0');
    let point = i64::try_from(whole.len()).ok()? + exponent;
    let scale = usize::try_from(i64::try_from(fraction.len()).ok()? - exponent).unwrap_or(0);
    let mut out = String::with_capacity(digits.len() + 3);
    if is_negative && !is_zero {
        out.push('-');
    }
    let digit = |at: i64| usize::try_from(at).ok().and_then(|at| digits.as_bytes().get(at)).copied().unwrap_or(b'0');
    let before: String = (0..point.max(0)).map(|at| char::from(digit(at))).collect();
    let before = before.trim_start_matches('0');
    out.push_str(if before.is_empty() { "0" } else { before });
    if scale > 0 {
        out.push('.');
        out.extend((point..).take(scale).map(|at| char::from(digit(at))));
    }
    Some(out)
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = bytes.get(self.at) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_it = self.peek() == Some(byte);
        self.at += usize::from(is_it);
        is_it
    }

    fn value(&mut self) -> Result<Document, Fault> {
        match self.peek() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => self.quoted().map(Document::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                for (word, document) in
                    [("true", Document::Bool(true)), ("false", Document::Bool(false)), ("null", Document::Null)]
                {
                    let rest = self.text.get(self.at..).and_then(|rest| rest.strip_prefix(word));
                    if rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_')) {
                        self.at += word.len();
                        return Ok(document);
                    }
                }
                Err(Fault::Syntax)
            }
        }
    }

    fn enter(&mut self) -> Result<(), Fault> {
        self.at += 1;
        self.depth += 1;
        if self.depth > DEPTH_MAX { Err(Fault::Syntax) } else { Ok(()) }
    }

    fn array(&mut self) -> Result<Document, Fault> {
        self.enter()?;
        let mut items = Vec::new();
        if !self.take(b']') {
            loop {
                items.push(self.value()?);
                if self.take(b']') {
                    break;
                }
                if !self.take(b',') {
                    return Err(Fault::Syntax);
                }
            }
        }
        self.depth -= 1;
        Ok(Document::Array(items))
    }

    fn object(&mut self) -> Result<Document, Fault> {
        self.enter()?;
        let mut members = Vec::new();
        if !self.take(b'}') {
            loop {
                if self.peek() != Some(b'"') {
                    return Err(Fault::Syntax);
                }
                let name = self.quoted()?;
                if !self.take(b':') {
                    return Err(Fault::Syntax);
                }
                members.push((name, self.value()?));
                if self.take(b'}') {
                    break;
                }
                if !self.take(b',') {
                    return Err(Fault::Syntax);
                }
            }
        }
        self.depth -= 1;
        Ok(Document::object(members))
    }

    fn number(&mut self) -> Result<Document, Fault> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let digits = |at: &mut usize| {
            let first = *at;
            while bytes.get(*at).is_some_and(u8::is_ascii_digit) {
                *at += 1;
            }
            *at > first
        };
        let mut at = start + usize::from(bytes.get(start) == Some(&b'-'));
        let whole = at;
        let mut is_number = digits(&mut at) && (bytes.get(whole) != Some(&b'0') || at == whole + 1);
        if bytes.get(at) == Some(&b'.') {
            at += 1;
            is_number &= digits(&mut at);
        }
        if let Some(b'e' | b'E') = bytes.get(at) {
            at += 1;
            at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
            is_number &= digits(&mut at);
        }
        let ends = !bytes.get(at).is_some_and(|next| next.is_ascii_alphanumeric() || *next == b'_');
        if !is_number || !ends {
            return Err(Fault::Syntax);
        }
        self.at = at;
        Document::number(&self.text.get(start..at).unwrap_or_default().replace('+', ""))
    }

    fn quoted(&mut self) -> Result<String, Fault> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.text.get(self.at..).unwrap_or_default();
            let plain = rest.find(|char| matches!(char, '"' | '\\' | '\0'..='\u{1f}')).ok_or(Fault::Syntax)?;
            out.push_str(rest.get(..plain).unwrap_or_default());
            self.at += plain + 1;
            match rest.as_bytes().get(plain) {
                Some(b'"') => return Ok(out),
                Some(b'\\') => {}
                _ => return Err(Fault::Syntax),
            }
            let escaped = self.text.as_bytes().get(self.at).copied();
            self.at += 1;
            out.push(match escaped {
                Some(char @ (b'"' | b'\\' | b'/')) => char::from(char),
                Some(b'b') => '\u{8}',
                Some(b'f') => '\u{c}',
                Some(b'n') => '\n',
                Some(b'r') => '\r',
                Some(b't') => '\t',
                Some(b'u') => self.code()?,
                _ => return Err(Fault::Syntax),
            });
        }
    }

    /// The character of a `\u` escape, or of a surrogate pair of two escapes.
    fn code(&mut self) -> Result<char, Fault> {
        let first = self.unit()?;
        if first == 0 {
            return Err(Fault::Zero);
        }
        let code = match first {
            0xd800..0xdc00 => {
                if self.text.get(self.at..self.at + 2) != Some("\\u") {
                    return Err(Fault::Syntax);
                }
                self.at += 2;
                match self.unit()? {
                    second @ 0xdc00..0xe000 => 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                    _ => return Err(Fault::Syntax),
                }
            }
            other => other,
        };
        char::from_u32(code).ok_or(Fault::Syntax)
    }

    fn unit(&mut self) -> Result<u32, Fault> {
        let digits = self.text.get(self.at..self.at + 4).ok_or(Fault::Syntax)?;
        self.at += 4;
        match digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            true => u32::from_str_radix(digits, 16).map_err(|_| Fault::Syntax),
            false => Err(Fault::Syntax),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_written_as_postgresql_writes_them() {
        for (text, expected) in [
            (r#"{"bb":1,"a":2,"a":3}"#, r#"{"a": 3, "bb": 1}"#),
            (" [1 ,2,\t{} ,[]] ", "[1, 2, {}, []]"),
            ("1e2", "100"),
            ("1.10", "1.10"),
            ("1.5e-3", "0.0015"),
            ("1.50e1", "15.0"),
            ("-0.0", "0.0"),
            ("-12E+1", "-120"),
            (r#""\u00e9\ud83d\ude00\n\/""#, "\"é😀\\n/\""),
            ("\"\\u0001\"", "\"\\u0001\""),
        ] {
            assert_eq!(Document::parse(text).map(|found| found.to_string()).as_deref(), Ok(expected), "{text}");
        }
        for broken in
            ["", "{", "[1,]", "01", "1.", "nul", "truex", "'a'", "\"a", "{\"a\"}", "1 2", "\"\\ud800\"", "{a:1}"]
        {
            assert_eq!(Document::parse(broken), Err(Fault::Syntax), "{broken}");
        }
        assert_eq!(Document::parse("\"\\u0000\""), Err(Fault::Zero));
        assert_eq!(Document::parse("1e99999"), Err(Fault::Number));
    }

    #[test]
    fn documents_have_an_order() {
        let sorted = [
            "[]",
            "null",
            r#""""#,
            r#""a""#,
            r#""b""#,
            "-10",
            "-9.5",
            "-9",
            "0",
            "0.001",
            "0.01",
            "1",
            "9",
            "10",
            "100.5",
            "false",
            "true",
            "[null]",
            r#"["a"]"#,
            "[1]",
            "[[]]",
            "[1, 2]",
            "{}",
            r#"{"aa": 1}"#,
            r#"{"b": 1}"#,
            r#"{"b": 2}"#,
            r#"{"a": 1, "b": 1}"#,
        ];
        let documents: Vec<Document> = sorted.iter().map(|text| Document::parse(text).unwrap()).collect();
        for (at, left) in documents.iter().enumerate() {
            for (other, right) in documents.iter().enumerate() {
                assert_eq!(left.compare(right), at.cmp(&other), "{left} {right}");
            }
        }
        let parse = |text| Document::parse(text).unwrap();
        assert!(parse("[1.0, {\"a\": 10}]").same(&parse("[1, {\"a\": 1e1}]")));
    }

    #[test]
    fn documents_contain_others() {
        for (whole, part, expected) in [
            (r#"{"a": 1, "b": {"c": [1, 2]}}"#, r#"{"b": {"c": [2]}}"#, true),
            ("[1, 2]", "2", true),
            ("[[1, 2]]", "1", false),
            ("[1, [2, 3]]", "[[3]]", true),
            ("1", "1.0", true),
            ("1", "[1]", false),
            (r#"{"a": [1]}"#, r#"{"a": 1}"#, false),
            (r#"{"a": {"b": 1}}"#, r#"{"a": {}}"#, true),
            (r#"{"a": 1}"#, "[]", false),
        ] {
            let found = Document::parse(whole).unwrap().contains(&Document::parse(part).unwrap());
            assert_eq!(found, expected, "{whole} {part}");
        }
    }
}
