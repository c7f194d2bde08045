//! The protocol's own statements. The session executes them without the engine, because they manage
//! the protocol's prepared statements and portals: `PREPARE`, `EXECUTE`, `DEALLOCATE`, `DECLARE`,
//! `FETCH`, `MOVE`, `CLOSE`, `DISCARD`.

use super::lexer::{Lexer, Token, TokenKind};
use crate::{
    error::{PgError, sqlstate},
    types::{self, PgType},
};

/// A statement of the protocol itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SessionStatement {
    /// `PREPARE name (types) AS statement`.
    Prepare { name: String, types: Vec<PgType>, statement: Inner },
    /// `EXECUTE name (values)`. The text of the values is empty if there are none.
    Execute { name: String, values: Inner },
    /// `DEALLOCATE name`. `None` is `ALL`.
    Deallocate(Option<String>),
    /// `DECLARE name CURSOR FOR statement`.
    Declare { name: String, is_binary: bool, hold: bool, statement: Inner },
    /// `FETCH count FROM name`, or `MOVE`, which skips rows without returning them.
    Fetch { name: String, count: Count, is_move: bool },
    /// `CLOSE name`. `None` is `ALL`.
    Close(Option<String>),
    /// `DISCARD ALL`, `DISCARD PLANS` and the other variants.
    Discard { all: bool, plans: bool },
}

/// A part of a statement's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inner {
    pub(crate) text: String,
    /// The number of characters of the whole text before it.
    pub(crate) before: u32,
}

/// The rows to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    /// The next rows, at most this number.
    Next(u64),
    /// The row with this number, from 1 on. Rows before it are skipped.
    Absolute(u64),
    /// The row at this distance after the last one. Rows before it are skipped.
    Relative(u64),
    /// All remaining rows.
    All,
}

struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    next: Option<Token>,
}

impl SessionStatement {
    /// Parses a statement. Returns `None` if it is not a statement of the protocol itself.
    ///
    /// # Errors
    /// It is a statement of the protocol itself, with a syntax error.
    pub(crate) fn parse(text: &str) -> Result<Option<SessionStatement>, Box<PgError>> {
        let mut lexer = Lexer::new(text);
        let next = lexer.next();
        let mut parser = Parser { text, lexer, next };
        let word = parser.word();
        let statement = match word.as_deref() {
            Some("prepare") if !parser.is_word("transaction") => parser.prepare()?,
            Some("execute") => parser.execute()?,
            Some("deallocate") => {
                parser.skip_word("prepare");
                SessionStatement::Deallocate(parser.name_or_all("a prepared statement")?)
            }
            Some("declare") => parser.declare()?,
            Some("fetch") => parser.fetch(false)?,
            Some("move") => parser.fetch(true)?,
            Some("close") => SessionStatement::Close(parser.name_or_all("a cursor")?),
            Some("discard") => {
                let (all, plans) = (parser.skip_word("all"), parser.skip_word("plans"));
                let known =
                    all || plans || ["sequences", "temp", "temporary"].iter().any(|word| parser.skip_word(word));
                if !known {
                    return Err(parser.expected("ALL, PLANS, SEQUENCES or TEMP"));
                }
                SessionStatement::Discard { all, plans }
            }
            _ => return Ok(None),
        };
        match parser.next {
            None => Ok(Some(statement)),
            Some(_) => Err(parser.expected("the end of the statement")),
        }
    }
}

impl Parser<'_> {
    fn advance(&mut self) -> Option<Token> {
        std::mem::replace(&mut self.next, self.lexer.next())
    }

    fn slice(&self, token: Token) -> &str {
        self.text.get(token.start..token.end).unwrap_or_default()
    }

    #[cold]
    fn expected(&self, what: &str) -> Box<PgError> {
        let found = match self.next {
            Some(token) => format!("at or near \"{}\"", self.slice(token)),
            None => "at end of input".to_owned(),
        };
        let start = self.next.map_or(self.text.len(), |token| token.start);
        let mut error = PgError::new(sqlstate::SYNTAX_ERROR, format!("syntax error {found}, expected {what}"));
        error.position = Some(self.characters(start) + 1);
        error
    }

    /// The number of characters before a byte offset.
    fn characters(&self, bytes: usize) -> u32 {
        u32::try_from(self.text.get(..bytes).unwrap_or_default().chars().count()).unwrap_or(u32::MAX - 1)
    }

    /// Consumes the next token if it is a word, and returns it in lower case.
    fn word(&mut self) -> Option<String> {
        let token = self.next.filter(|token| token.kind == TokenKind::Word)?;
        let word = self.slice(token).to_ascii_lowercase();
        self.advance();
        Some(word)
    }

    fn is_word(&self, word: &str) -> bool {
        self.next.is_some_and(|token| token.kind == TokenKind::Word && self.slice(token).eq_ignore_ascii_case(word))
    }

    fn skip_word(&mut self, word: &str) -> bool {
        let is_next = self.is_word(word);
        if is_next {
            self.advance();
        }
        is_next
    }

    fn skip_symbol(&mut self, symbol: u8) -> bool {
        let is_next = self.next.is_some_and(|token| token.kind == TokenKind::Symbol(symbol));
        if is_next {
            self.advance();
        }
        is_next
    }

    fn name(&mut self, of: &str) -> Result<String, Box<PgError>> {
        let name = match self.next {
            Some(token @ Token { kind: TokenKind::Word, .. }) => self.slice(token).to_lowercase(),
            Some(token @ Token { kind: TokenKind::Quoted, .. }) => {
                let quoted = self.slice(token);
                let name = quoted.strip_prefix('"').unwrap_or(quoted);
                name.strip_suffix('"').unwrap_or(name).replace("\"\"", "\"")
            }
            _ => return Err(self.expected(&format!("the name of {of}"))),
        };
        self.advance();
        Ok(name)
    }

    fn name_or_all(&mut self, of: &str) -> Result<Option<String>, Box<PgError>> {
        if self.skip_word("all") { Ok(None) } else { self.name(of).map(Some) }
    }

    /// Returns the text from the next token to the end.
    fn inner(&mut self, what: &str) -> Result<Inner, Box<PgError>> {
        let Some(first) = self.next else { return Err(self.expected(what)) };
        let text = self.text.get(first.start..).unwrap_or_default().trim_end().to_owned();
        self.next = None;
        Ok(Inner { text, before: self.characters(first.start) })
    }

    fn prepare(&mut self) -> Result<SessionStatement, Box<PgError>> {
        let name = self.name("a prepared statement")?;
        let types = if self.skip_symbol(b'(') { self.types()? } else { Vec::new() };
        if !self.skip_word("as") {
            return Err(self.expected("AS"));
        }
        Ok(SessionStatement::Prepare { name, types, statement: self.inner("a statement")? })
    }

    fn types(&mut self) -> Result<Vec<PgType>, Box<PgError>> {
        let mut types = Vec::new();
        let (mut start, mut depth) = (self.next.map(|token| token.start), 0_u32);
        while let Some(token) = self.next {
            let is_end = depth == 0 && matches!(token.kind, TokenKind::Symbol(b')' | b','));
            if is_end {
                let name = start.and_then(|start| self.text.get(start..token.start)).unwrap_or_default();
                let found = types::type_by_name(name);
                let unknown = || PgError::new("42704", format!("type \"{}\" does not exist", name.trim()));
                types.push(found.ok_or_else(unknown)?);
            }
            match token.kind {
                TokenKind::Symbol(b'(') => depth += 1,
                TokenKind::Symbol(b')') if depth > 0 => depth -= 1,
                _ => {}
            }
            self.advance();
            if is_end {
                if token.kind == TokenKind::Symbol(b')') {
                    return Ok(types);
                }
                start = self.next.map(|token| token.start);
            }
        }
        Err(self.expected("\")\""))
    }

    fn execute(&mut self) -> Result<SessionStatement, Box<PgError>> {
        let name = self.name("a prepared statement")?;
        let Some(open) = self.next else {
            return Ok(SessionStatement::Execute { name, values: Inner { text: String::new(), before: 0 } });
        };
        if !self.skip_symbol(b'(') {
            return Err(self.expected("\"(\" or the end of the statement"));
        }
        let mut close = None;
        while let Some(token) = self.advance() {
            close = Some(token);
        }
        match close {
            Some(Token { kind: TokenKind::Symbol(b')'), start, .. }) => {
                let text = self.text.get(open.end..start).unwrap_or_default().to_owned();
                Ok(SessionStatement::Execute { name, values: Inner { text, before: self.characters(open.end) } })
            }
            _ => Err(self.expected("\")\"")),
        }
    }

    fn declare(&mut self) -> Result<SessionStatement, Box<PgError>> {
        let name = self.name("a cursor")?;
        let mut is_binary = false;
        while !self.skip_word("cursor") {
            let start = self.next;
            if self.skip_word("binary") {
                is_binary = true;
            } else if self.skip_word("insensitive") || self.skip_word("asensitive") {
                // Accepted without effect: a cursor sees the data of the time when it was opened,
                // or later data.
            } else if self.skip_word("no") {
                if !self.skip_word("scroll") {
                    return Err(self.expected("SCROLL"));
                }
            } else if self.is_word("scroll") {
                let mut error = self.expected("NO SCROLL");
                error.sqlstate = sqlstate::FEATURE_NOT_SUPPORTED;
                error.message = "cursors that scroll are not supported, expected NO SCROLL".to_owned();
                return Err(error);
            } else {
                self.next = start;
                return Err(self.expected("CURSOR"));
            }
        }
        let mut hold = false;
        for (word, value) in [("with", true), ("without", false)] {
            if self.skip_word(word) {
                hold = value;
                if !self.skip_word("hold") {
                    return Err(self.expected("HOLD"));
                }
            }
        }
        if !self.skip_word("for") {
            return Err(self.expected("FOR"));
        }
        Ok(SessionStatement::Declare { name, is_binary, hold, statement: self.inner("a query")? })
    }

    fn number(&mut self) -> Result<Option<i64>, Box<PgError>> {
        let is_negative = self.skip_symbol(b'-');
        if !is_negative {
            self.skip_symbol(b'+');
        }
        let Some(token) = self.next.filter(|token| token.kind == TokenKind::Number) else {
            return if is_negative { Err(self.expected("a number")) } else { Ok(None) };
        };
        let number: i64 = self.slice(token).parse().map_err(|_| self.expected("a number"))?;
        self.advance();
        Ok(Some(if is_negative { -number } else { number }))
    }

    fn fetch(&mut self, is_move: bool) -> Result<SessionStatement, Box<PgError>> {
        let backwards = || {
            let error = PgError::new(sqlstate::NOT_IN_STATE, "cursor can only scan forward");
            error.with_hint("Rows that were read are not kept; run the query again.")
        };
        let natural = |number: Option<i64>, default: u64| match number {
            None => Ok(default),
            Some(number) => u64::try_from(number).map_err(|_| backwards()),
        };
        let is_name = |parser: &Self| {
            // A cursor may have the name of a direction.
            let mut lexer = parser.lexer.clone();
            let followed = lexer.next().is_some();
            !followed
        };
        let is_named_at_once =
            self.next.is_some_and(|token| matches!(token.kind, TokenKind::Word | TokenKind::Quoted)) && is_name(self);
        let count = if is_named_at_once || self.skip_word("next") {
            Count::Next(1)
        } else if self.skip_word("forward") {
            if self.skip_word("all") { Count::All } else { Count::Next(natural(self.number()?, 1)?) }
        } else if self.skip_word("all") {
            Count::All
        } else if self.skip_word("first") {
            Count::Absolute(1)
        } else if self.skip_word("absolute") {
            Count::Absolute(natural(self.number()?, 1)?)
        } else if self.skip_word("relative") {
            Count::Relative(natural(self.number()?, 1)?)
        } else if self.is_word("prior") || self.is_word("last") || self.is_word("backward") {
            return Err(backwards());
        } else {
            Count::Next(natural(self.number()?, 1)?)
        };
        let _ = self.skip_word("from") || self.skip_word("in");
        Ok(SessionStatement::Fetch { name: self.name("a cursor")?, count, is_move })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Base;

    fn inner(text: &str, before: u32) -> Inner {
        Inner { text: text.into(), before }
    }

    #[test]
    fn statements_of_the_protocol_are_read() {
        let int = PgType { base: Base::Int4, is_array: false };
        let numeric = PgType { base: Base::Numeric, is_array: true };
        for (text, expected) in [
            (
                "PREPARE P (int, numeric(10, 2)[]) AS SELECT $1 ",
                SessionStatement::Prepare {
                    name: "p".into(),
                    types: vec![int, numeric],
                    statement: inner("SELECT $1", 37),
                },
            ),
            (
                "prepare \"A\"\"b\" as x",
                SessionStatement::Prepare { name: "A\"b".into(), types: vec![], statement: inner("x", 18) },
            ),
            ("EXECUTE p", SessionStatement::Execute { name: "p".into(), values: inner("", 0) }),
            ("EXECUTE p (1, f(2))", SessionStatement::Execute { name: "p".into(), values: inner("1, f(2)", 11) }),
            ("DEALLOCATE PREPARE ALL", SessionStatement::Deallocate(None)),
            ("DEALLOCATE p", SessionStatement::Deallocate(Some("p".into()))),
            (
                "DECLARE c BINARY NO SCROLL CURSOR WITH HOLD FOR SELECT 1",
                SessionStatement::Declare {
                    name: "c".into(),
                    is_binary: true,
                    hold: true,
                    statement: inner("SELECT 1", 48),
                },
            ),
            ("FETCH c", SessionStatement::Fetch { name: "c".into(), count: Count::Next(1), is_move: false }),
            ("FETCH next", SessionStatement::Fetch { name: "next".into(), count: Count::Next(1), is_move: false }),
            ("FETCH NEXT FROM c", SessionStatement::Fetch { name: "c".into(), count: Count::Next(1), is_move: false }),
            ("FETCH 10 IN \"C\"", SessionStatement::Fetch { name: "C".into(), count: Count::Next(10), is_move: false }),
            (
                "FETCH FORWARD ALL FROM c",
                SessionStatement::Fetch { name: "c".into(), count: Count::All, is_move: false },
            ),
            ("FETCH ALL c", SessionStatement::Fetch { name: "c".into(), count: Count::All, is_move: false }),
            ("MOVE FORWARD 5 c", SessionStatement::Fetch { name: "c".into(), count: Count::Next(5), is_move: true }),
            (
                "MOVE ABSOLUTE 5 FROM c",
                SessionStatement::Fetch { name: "c".into(), count: Count::Absolute(5), is_move: true },
            ),
            ("CLOSE ALL", SessionStatement::Close(None)),
            ("DISCARD ALL", SessionStatement::Discard { all: true, plans: false }),
        ] {
            assert_eq!(SessionStatement::parse(text).unwrap(), Some(expected), "{text}");
        }
        for text in ["SELECT 1", "PREPARE TRANSACTION 'x'", "", "'x'", "COMMIT"] {
            assert_eq!(SessionStatement::parse(text).unwrap(), None, "{text}");
        }
    }

    #[test]
    fn syntax_errors_are_reported() {
        for (text, sqlstate, position) in [
            ("PREPARE", "42601", Some(8)),
            ("PREPARE p SELECT 1", "42601", Some(11)),
            ("PREPARE p (point) AS SELECT 1", "42704", None),
            ("PREPARE p (int", "42601", Some(15)),
            ("EXECUTE p 1", "42601", Some(11)),
            ("EXECUTE p (1", "42601", Some(13)),
            ("DECLARE c SCROLL CURSOR FOR x", "0A000", Some(11)),
            ("DECLARE c CURSOR x", "42601", Some(18)),
            ("FETCH BACKWARD 1 FROM c", "55000", None),
            ("FETCH -1 FROM c", "55000", None),
            ("CLOSE a b", "42601", Some(9)),
            ("DISCARD x", "42601", Some(9)),
        ] {
            let error = SessionStatement::parse(text).unwrap_err();
            assert_eq!((error.sqlstate, error.position), (sqlstate, position), "{text}: {error:?}");
        }
    }
}
