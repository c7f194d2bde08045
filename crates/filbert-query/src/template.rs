//! Templates: statements that differ in their literals alone, as one statement with parameters.
//!
//! Many drivers and programs write values into the text of a statement. Each text is then new, and
//! planning it takes a hundred times as long as a lookup. A template replaces literals by
//! parameters where they are compared, listed or assigned. One [short plan](crate::short) of the
//! template serves all its texts.
//!
//! The reader covers a part of SQL, byte by byte. A statement with anything unusual (comments,
//! prefixed or escaped string literals, parameters) has no template. Before a plan is cached for a
//! template, the tokens and the plan of the original statement are compared with it to make sure
//! that both mean the same.

use std::borrow::Cow;

use filbert_data::Value;

/// Longer texts have no template.
const TEXT_BYTES_MAX: usize = 16 << 10;
/// A text with more literals has no template.
const LITERALS_MAX: usize = 256;
/// The maximum depth of nested parentheses.
const DEPTH_MAX: usize = 32;

/// A text with parameters in place of its literals.
#[derive(Debug, PartialEq)]
pub(crate) struct Template<'t> {
    /// The statement with `$1`, `$2`, .., followed by a zero byte and the kind of each parameter:
    /// `n` for whole numbers, `t` for texts.
    key: String,
    /// The length of the statement within the key, in bytes.
    statement_len: usize,
    values: Vec<Value<'t>>,
}

impl<'t> Template<'t> {
    /// The template of a statement that reads or changes rows, if the reader finds literals that it
    /// may replace.
    pub(crate) fn of(text: &'t str) -> Option<Template<'t>> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        let mut reader = Reader::new(text);
        reader.read()?;
        let Reader { copied, mut key, values, .. } = reader;
        if values.is_empty() {
            return None;
        }
        key.push_str(text.get(copied..)?);
        let statement_len = key.len();
        key.push('\0');
        key.extend(values.iter().map(|value| if matches!(value, Value::Int64(_)) { 'n' } else { 't' }));
        Some(Template { key, statement_len, values })
    }

    /// The key of the template in the plan cache.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// The statement with parameters.
    pub(crate) fn statement(&self) -> &str {
        self.key.get(..self.statement_len).unwrap_or_default()
    }

    /// The literals: `Int64` and `Text`.
    pub(crate) fn values(&self) -> &[Value<'t>] {
        &self.values
    }
}

/// The token before the reading position.
#[derive(Clone, Copy, PartialEq)]
enum Before {
    /// `=`, `<`, `>`, `<=`, `>=`: a literal may follow.
    Comparison,
    /// `+`, `-`, `*`: a literal may follow in the `SET` clause of an `UPDATE`.
    Arithmetic,
    /// The parenthesis or a comma of a list of values.
    Item,
    /// The keyword `VALUES` or `IN`, or a comma between rows: a list may follow.
    List,
    Other,
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    /// The position up to which the text was copied into the key.
    copied: usize,
    before: Before,
    is_update: bool,
    /// Whether the reader is within `RETURNING`. The rows are changed by then, so errors in it must
    /// be known before.
    is_returning: bool,
    key: String,
    values: Vec<Value<'t>>,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str) -> Self {
        Reader {
            text,
            at: 0,
            copied: 0,
            before: Before::Other,
            is_update: false,
            is_returning: false,
            key: String::new(),
            values: Vec::new(),
        }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// Reads the statement to its end; `None` if it has no template.
    fn read(&mut self) -> Option<()> {
        self.at = self.text.len() - self.text.trim_start().len();
        let first = self.word();
        let is = |word: &str| first.eq_ignore_ascii_case(word);
        if !(is("select") || is("insert") || is("update") || is("delete") || is("sink")) {
            return None;
        }
        self.is_update = is("update");
        // For each open parenthesis, whether it opens a list of values.
        let mut lists = [false; DEPTH_MAX];
        let mut depth = 0_usize;
        let mut closed_list = false;
        while let Some(byte) = self.byte(self.at) {
            let was_closed = std::mem::take(&mut closed_list);
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => {
                    self.at += 1;
                    closed_list = was_closed;
                }
                b'\'' => self.quoted()?,
                b'0'..=b'9' => self.number(self.at)?,
                b'(' => {
                    let is_list = self.before == Before::List;
                    *lists.get_mut(depth)? = is_list;
                    depth += 1;
                    self.step(if is_list { Before::Item } else { Before::Other });
                }
                b')' => {
                    depth = depth.checked_sub(1)?;
                    closed_list = lists.get(depth).copied().unwrap_or(false);
                    self.step(Before::Other);
                }
                b',' => {
                    let is_in_list = depth > 0 && lists.get(depth - 1).copied().unwrap_or(false);
                    self.step(match (is_in_list, was_closed) {
                        (true, _) => Before::Item,
                        (false, true) => Before::List,
                        (false, false) => Before::Other,
                    });
                }
                b'"' => self.name()?,
                b'=' | b'<' | b'>' | b'!' | b'+' | b'-' | b'*' | b'/' | b'%' | b'|' | b'&' | b'#' | b'~' | b'@'
                | b'^' => {
                    self.operator()?;
                }
                b'A'..=b'Z' | b'a'..=b'z' | b'_' | 0x80.. => {
                    let word = self.word();
                    let is_list = word.eq_ignore_ascii_case("values") || word.eq_ignore_ascii_case("in");
                    self.before = if is_list { Before::List } else { Before::Other };
                    self.is_returning |= word.eq_ignore_ascii_case("returning");
                    // Prefixed literals such as E'..' and DATE '..' have no template.
                    if self.byte(self.at) == Some(b'\'') {
                        return None;
                    }
                }
                b';' if self.text.get(self.at + 1..)?.trim().is_empty() => break,
                b'.' | b'[' | b']' | b':' => self.step(Before::Other),
                _ => return None,
            }
        }
        (depth == 0).then_some(())
    }

    fn step(&mut self, before: Before) {
        self.at += 1;
        self.before = before;
    }

    /// The word at the reading position; may be empty.
    fn word(&mut self) -> &'t str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let is_of_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
        let len = rest.bytes().take_while(is_of_word).count();
        self.at += len;
        rest.get(..len).unwrap_or_default()
    }

    /// Reads a quoted name.
    fn name(&mut self) -> Option<()> {
        let len = self.text.get(self.at + 1..)?.find('"')?;
        self.at += len + 2;
        self.before = Before::Other;
        Some(())
    }

    fn operator(&mut self) -> Option<()> {
        let rest = self.text.get(self.at..)?;
        let len = rest.bytes().take_while(|byte| b"=<>!+-*/%|&#~@^".contains(byte)).count();
        let operator = rest.get(..len)?;
        if operator.contains("--") || operator.contains("/*") {
            return None;
        }
        let start = self.at;
        self.at += len;
        let followed_by_digit = self.byte(self.at).is_some_and(|byte| byte.is_ascii_digit());
        let (operator, is_signed) = match operator.strip_suffix('-') {
            Some(operator) if followed_by_digit && (!operator.is_empty() || self.takes_literal()) => (operator, true),
            _ => (operator, false),
        };
        self.before = match operator {
            "" => self.before,
            "=" | "<" | ">" | "<=" | ">=" => Before::Comparison,
            "+" | "-" | "*" => Before::Arithmetic,
            _ => Before::Other,
        };
        if is_signed { self.number(start + len - 1) } else { Some(()) }
    }

    fn takes_literal(&self) -> bool {
        match self.before {
            _ if self.is_returning => false,
            Before::Comparison | Before::Item => true,
            Before::Arithmetic => self.is_update,
            Before::List | Before::Other => false,
        }
    }

    /// Reads a number, or any token that begins with digits. `start` is the position of its sign or
    /// first digit.
    fn number(&mut self, start: usize) -> Option<()> {
        let digits = self.word();
        let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit()) && self.byte(self.at) != Some(b'.');
        if is_whole && self.takes_literal() && self.ends_here() {
            let number: i64 = digits.parse().ok()?;
            let is_signed = self.byte(start) == Some(b'-');
            return self.literal(start, Value::Int64(if is_signed { -number } else { number }));
        }
        if self.byte(self.at) == Some(b'.') {
            self.at += 1;
            self.word();
        }
        self.before = Before::Other;
        Some(())
    }

    /// Reads a string literal.
    fn quoted(&mut self) -> Option<()> {
        let start = self.at;
        let mut end = start + 1;
        let mut has_quotes = false;
        loop {
            match self.byte(end)? {
                b'\'' if self.byte(end + 1) == Some(b'\'') => {
                    has_quotes = true;
                    end += 2;
                }
                b'\'' => break,
                b'\\' | 0 => return None,
                _ => end += 1,
            }
        }
        let inside = self.text.get(start + 1..end)?;
        self.at = end + 1;
        // An operand of arithmetic that is a string is not a number.
        if self.before != Before::Arithmetic && self.takes_literal() && self.ends_here() {
            let text = if has_quotes { Cow::Owned(inside.replace("''", "'")) } else { Cow::Borrowed(inside) };
            return self.literal(start, Value::Text(text));
        }
        self.before = Before::Other;
        Some(())
    }

    /// Whether the literal ends here and is not part of a longer token.
    fn ends_here(&self) -> bool {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let next = rest.trim_start_matches([' ', '\t', '\n', '\r']);
        match next.bytes().next() {
            None | Some(b')' | b',' | b';') => true,
            Some(byte) => byte.is_ascii_alphabetic() && next.len() < rest.len(),
        }
    }

    /// Replaces the literal from `start` to the reading position by a parameter.
    fn literal(&mut self, start: usize, value: Value<'t>) -> Option<()> {
        if self.values.len() == LITERALS_MAX {
            return None;
        }
        self.values.push(value);
        self.key.push_str(self.text.get(self.copied..start)?);
        self.key.push('$');
        self.key.push_str(&self.values.len().to_string());
        self.copied = self.at;
        self.before = Before::Other;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it is wrong")]

    use super::*;

    fn of(text: &str) -> Option<(String, Vec<String>)> {
        let template = Template::of(text)?;
        Some((template.statement().to_owned(), template.values().iter().map(ToString::to_string).collect()))
    }

    #[track_caller]
    fn check(text: &str, template: &str, values: &[&str]) {
        let (found, literals) = of(text).unwrap();
        assert_eq!(
            (found.as_str(), literals.iter().map(String::as_str).collect::<Vec<_>>()),
            (template, values.to_vec())
        );
    }

    #[test]
    fn what_is_compared_listed_or_set_is_a_parameter() {
        check("SELECT a FROM t WHERE id = 7", "SELECT a FROM t WHERE id = $1", &["7"]);
        check("select a from t where id=-7 and b >= 'x';", "select a from t where id=$1 and b >= $2;", &["-7", "x"]);
        check("DELETE FROM t WHERE k IN (1, 2,'it''s')", "DELETE FROM t WHERE k IN ($1, $2,$3)", &["1", "2", "it's"]);
        check(
            "INSERT INTO t (a, b) VALUES (1, 'x'), (-2, NULL) ON CONFLICT (a) DO NOTHING",
            "INSERT INTO t (a, b) VALUES ($1, $2), ($3, NULL) ON CONFLICT (a) DO NOTHING",
            &["1", "x", "-2"],
        );
        check(
            "UPDATE t SET n = n + -5, m = 3 WHERE \"id\" = 9",
            "UPDATE t SET n = n + $1, m = $2 WHERE \"id\" = $3",
            &["-5", "3", "9"],
        );
    }

    #[test]
    fn what_may_mean_something_else_stays() {
        check("SELECT a, 5 FROM t WHERE id = 7 LIMIT 10", "SELECT a, 5 FROM t WHERE id = $1 LIMIT 10", &["7"]);
        check("SELECT f(a, 5) FROM t WHERE id = 7", "SELECT f(a, 5) FROM t WHERE id = $1", &["7"]);
        check("SELECT a FROM t WHERE b = 1.5 AND id = 7", "SELECT a FROM t WHERE b = 1.5 AND id = $1", &["7"]);
        check("SELECT a FROM t WHERE b = 5 + c AND id = 7", "SELECT a FROM t WHERE b = 5 + c AND id = $1", &["7"]);
        check("SELECT a FROM t WHERE b + 5 = 7", "SELECT a FROM t WHERE b + 5 = $1", &["7"]);
        check("SELECT o['x'] FROM t WHERE id = 7", "SELECT o['x'] FROM t WHERE id = $1", &["7"]);
        check("DELETE FROM t WHERE id = 7 RETURNING id = 7", "DELETE FROM t WHERE id = $1 RETURNING id = 7", &["7"]);
        check("SELECT o->'x' FROM t WHERE id = 7", "SELECT o->'x' FROM t WHERE id = $1", &["7"]);
        for text in [
            "SELECT a FROM t WHERE b = '2020-01-01'::date",
            "SELECT a FROM t WHERE b <> 5",
            "SELECT a FROM t WHERE b BETWEEN 1 AND 5 ORDER BY 1, 2",
            "SELECT a FROM t WHERE b = 1e5 AND c = 0x10 AND d = 1_000",
            "SELECT 5, 'x'",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_out_of_the_ordinary_has_no_template() {
        for text in [
            "SELECT a FROM t WHERE b = 5 -- and c = 6",
            "SELECT a FROM t WHERE b = /* six */ 5",
            "SELECT a FROM t WHERE b = E'x' AND c = 5",
            r"SELECT a FROM t WHERE b = 'a\' AND c = 5",
            "SELECT a FROM t WHERE b = $1 AND c = 5",
            "SELECT a FROM t WHERE b = ? AND c = 5",
            "SELECT a FROM t WHERE b = 5; DROP TABLE t",
            "SELECT a FROM t WHERE b = 'x",
            "SELECT a FROM t WHERE (b = 5",
            "SELECT a FROM t WHERE b = 5)",
            "SELECT a FROM t WHERE b = 99999999999999999999",
            "CREATE TABLE t (a INT DEFAULT 5, CHECK (a = 5))",
            "",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
        assert_eq!(of(&format!("SELECT a FROM t WHERE b = {} 5", " ".repeat(TEXT_BYTES_MAX))), None);
        assert_eq!(of(&format!("SELECT a FROM t WHERE b IN ({}1)", "1, ".repeat(LITERALS_MAX))), None);
        assert_eq!(of(&format!("SELECT a FROM t WHERE {} b = 5", "(".repeat(DEPTH_MAX + 1))), None);
    }

    #[test]
    fn kinds_of_literals_tell_templates_apart() {
        let number = Template::of("SELECT a FROM t WHERE b = 5").unwrap();
        let text = Template::of("SELECT a FROM t WHERE b = '5'").unwrap();
        assert_eq!(number.statement(), text.statement());
        assert_ne!(number.key(), text.key());
    }
}
