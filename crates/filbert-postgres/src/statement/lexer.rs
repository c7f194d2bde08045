//! A lexer for statements. It knows enough of SQL to find the ends of statements, and to recognize
//! the protocol's own statements.

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// A name or a keyword, without quotes.
    Word,
    /// A name within quotes.
    Quoted,
    /// A text within quotes or dollar quotes.
    Text,
    /// A number, or a parameter such as `$1`.
    Number,
    /// A single character.
    Symbol(u8),
}

/// A token of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    /// The offset of its first byte.
    pub(crate) start: usize,
    /// The offset after its last byte.
    pub(crate) end: usize,
}

/// Finds tokens one by one. A quote or comment that is not closed extends to the end of the text.
#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
}

fn is_word_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn is_word_part(byte: u8) -> bool {
    is_word_start(byte) || byte.is_ascii_digit() || byte == b'$'
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text: text.as_bytes(), at: 0 }
    }

    fn peek(&self, offset: usize) -> Option<u8> {
        self.text.get(self.at + offset).copied()
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_while(&mut self, is_in: impl Fn(u8) -> bool) {
        self.at += self.rest().iter().take_while(|byte| is_in(**byte)).count();
    }

    /// Skips to the position after the next `end`, or to the end of the text.
    fn skip_behind(&mut self, end: &[u8]) {
        let found = self.rest().windows(end.len().max(1)).position(|window| window == end);
        self.at = found.map_or(self.text.len(), |found| self.at + found + end.len());
    }

    fn skip_space(&mut self) {
        loop {
            self.skip_while(|byte| byte.is_ascii_whitespace() || byte == 0x0b);
            if self.rest().starts_with(b"--") {
                self.skip_behind(b"\n");
            } else if self.rest().starts_with(b"/*") {
                self.skip_comment();
            } else {
                return;
            }
        }
    }

    /// Comments of this kind can be nested.
    fn skip_comment(&mut self) {
        let mut depth = 0_usize;
        while !self.rest().is_empty() {
            if self.rest().starts_with(b"/*") {
                depth += 1;
                self.at += 2;
            } else if self.rest().starts_with(b"*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    return;
                }
            } else {
                self.at += 1;
            }
        }
    }

    /// Skips to the position after the closing quote. Two quotes within the text stand for one.
    /// With `escapes`, a backslash escapes the next character.
    fn skip_quoted(&mut self, quote: u8, escapes: bool) {
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            self.at += 1;
            if byte == b'\\' && escapes {
                self.at += 1;
            } else if byte == quote {
                if self.peek(0) != Some(quote) {
                    return;
                }
                self.at += 1;
            }
        }
        self.at = self.text.len();
    }

    /// Reads a text such as `$$..$$` or `$tag$..$tag$`, a parameter such as `$1`, or the single
    /// character `$`.
    fn dollar(&mut self) -> TokenKind {
        let tag = self.rest().iter().skip(1).take_while(|byte| is_word_part(**byte) && **byte != b'$').count();
        if self.peek(1).is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
            self.skip_while(|byte| byte.is_ascii_digit());
            return TokenKind::Number;
        }
        if self.peek(tag + 1) != Some(b'$') {
            self.at += 1;
            return TokenKind::Symbol(b'$');
        }
        let opening = self.rest().get(..tag + 2).unwrap_or_default();
        self.at += opening.len();
        self.skip_behind(opening);
        TokenKind::Text
    }

    fn kind(&mut self, first: u8) -> TokenKind {
        match (first, self.peek(1)) {
            (b'\'', _) => {
                self.skip_quoted(b'\'', false);
                TokenKind::Text
            }
            (b'e' | b'E', Some(b'\'')) => {
                self.at += 1;
                self.skip_quoted(b'\'', true);
                TokenKind::Text
            }
            (b'b' | b'B' | b'x' | b'X' | b'n' | b'N', Some(b'\'')) => {
                self.at += 1;
                self.skip_quoted(b'\'', false);
                TokenKind::Text
            }
            (b'"', _) => {
                self.skip_quoted(b'"', false);
                TokenKind::Quoted
            }
            (b'$', _) => self.dollar(),
            (first, _) if is_word_start(first) => {
                self.skip_while(is_word_part);
                TokenKind::Word
            }
            (first, _) if first.is_ascii_digit() => {
                self.skip_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_'));
                TokenKind::Number
            }
            (first, _) => {
                self.at += 1;
                TokenKind::Symbol(first)
            }
        }
    }
}

impl Iterator for Lexer<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        self.skip_space();
        let first = self.peek(0)?;
        let start = self.at;
        let kind = self.kind(first);
        self.at = self.at.min(self.text.len());
        Some(Token { kind, start, end: self.at })
    }
}

/// One of the statements of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StatementText<'a> {
    /// The statement, from its first token to its last one.
    pub(crate) text: &'a str,
    /// The offset of its first byte in the whole text.
    pub(crate) start: usize,
}

/// Splits a text into statements at semicolons. Empty statements are left out.
pub(crate) fn split(text: &str) -> impl Iterator<Item = StatementText<'_>> {
    let mut lexer = Lexer::new(text);
    std::iter::from_fn(move || {
        let mut range: Option<(usize, usize)> = None;
        for token in lexer.by_ref() {
            match (token.kind, range) {
                (TokenKind::Symbol(b';'), None) => {}
                (TokenKind::Symbol(b';'), Some(_)) => break,
                (_, Some((start, _))) => range = Some((start, token.end)),
                (_, None) => range = Some((token.start, token.end)),
            }
        }
        let (start, end) = range?;
        Some(StatementText { text: text.get(start..end)?, start })
    })
}

/// The length of the text in bytes up to the end of the first semicolon that ends a statement.
/// `None` if there is no such semicolon yet.
pub fn statement_bytes(text: &str) -> Option<usize> {
    Lexer::new(text).find(|token| token.kind == TokenKind::Symbol(b';')).map(|token| token.end)
}

/// The first word of a statement, in lower case. Opening parentheses before it are skipped. Empty
/// if the statement begins with another token.
pub(crate) fn first_word(text: &str) -> String {
    match Lexer::new(text).find(|token| token.kind != TokenKind::Symbol(b'(')) {
        Some(Token { kind: TokenKind::Word, start, end }) => {
            text.get(start..end).unwrap_or_default().to_ascii_lowercase()
        }
        _ => String::new(),
    }
}

/// The number of characters before a byte offset.
pub(crate) fn characters(text: &str, bytes: usize) -> u32 {
    u32::try_from(text.get(..bytes).unwrap_or_default().chars().count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<&str> {
        split(text).map(|part| part.text).collect()
    }

    #[test]
    fn statements_end_at_semicolons_that_are_no_part_of_them() {
        for (text, expected) in [
            ("", &[][..]),
            (" ;; -- x\n /* ; */ ; ", &[]),
            ("SELECT 1; SELECT 2 ;", &["SELECT 1", "SELECT 2"]),
            ("SELECT ';''; '; x", &["SELECT ';''; '", "x"]),
            (r"SELECT E'\'; ' ; x", &[r"SELECT E'\'; '", "x"]),
            (r"SELECT '\'; x", &[r"SELECT '\'", "x"]),
            ("SELECT \"a;\"\"b\"; x", &["SELECT \"a;\"\"b\"", "x"]),
            ("SELECT $$;$$, $a$;$$;$a$; x", &["SELECT $$;$$, $a$;$$;$a$", "x"]),
            ("SELECT $1;x", &["SELECT $1", "x"]),
            ("SELECT a$b;x", &["SELECT a$b", "x"]),
            ("/* a /* ; */ b; */ x -- ; y", &["x"]),
            ("SELECT 'open; x", &["SELECT 'open; x"]),
            ("SELECT /* open; x", &["SELECT"]),
            ("SELECT 'ü;' ; ü", &["SELECT 'ü;'", "ü"]),
            ("SELECT E'\\", &["SELECT E'\\"]),
        ] {
            assert_eq!(parts(text), expected, "{text}");
        }
    }

    #[test]
    fn statements_know_where_they_begin() {
        let starts: Vec<_> = split(" a; b").map(|part| part.start).collect();
        assert_eq!(starts, [1, 4]);
    }

    #[test]
    fn the_first_word_is_found_behind_comments_and_brackets() {
        for (text, expected) in [("/* x */ Select 1", "select"), ("((values (1)))", "values"), ("'x'", ""), ("", "")] {
            assert_eq!(first_word(text), expected);
        }
    }
}
