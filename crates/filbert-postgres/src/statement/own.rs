//! The statements that the protocol itself owns, as its prepared statements and portals are theirs: `PREPARE`, `EXECUTE`,
//! `DEALLOCATE`, `DECLARE`, `FETCH`, `MOVE`, `CLOSE`, `DISCARD`.

use super::lexer::{Kind, Lexer, Token};
use crate::{
    error::{PgError, sqlstate},
    types::{self, PgType},
};

/// A statement of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Own {
    /// `PREPARE name (types) AS statement`.
    Prepare { name: String, types: Vec<PgType>, statement: Inner },
    /// `EXECUTE name (values)`: the values' text, empty if there are none.
    Execute { name: String, values: Inner },
    /// `DEALLOCATE name`; `None` = all.
    Deallocate(Option<String>),
    /// `DECLARE name CURSOR FOR statement`.
    Declare { name: String, is_binary: bool, hold: bool, statement: Inner },
    /// `FETCH count FROM name`, or `MOVE`, which does not show what it passes.
    Fetch { name: String, count: Count, is_move: bool },
    /// `CLOSE name`; `None` = all.
    Close(Option<String>),
    /// `DISCARD ALL` and its parts.
    Discard { all: bool, plans: bool },
}

/// A part of a statement's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Inner {
    pub(crate) text: String,
    /// Characters of the whole text in front of it.
    pub(crate) before: u32,
}

/// How many rows to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    /// That many of those that come next.
    Next(u64),
    /// Up to the row of this number, from 1 on, of which only the row itself is shown.
    Absolute(u64),
    /// To that many behind the last one, of which only the last is shown.
    Relative(u64),
    /// All that come.
    All,
}

struct Parser<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    next: Option<Token>,
}

impl Own {
    /// Reads a statement, if it is one of the protocol's.
    ///
    /// # Errors
    /// It is one, and is not written as it should be.
    pub(crate) fn parse(text: &str) -> Result<Option<Own>, Box<PgError>> {
        let mut lexer = Lexer::new(text);
        let next = lexer.next();
        let mut parser = Parser { text, lexer, next };
        let word = parser.word();
        let own = match word.as_deref() {
            Some("prepare") if !parser.is_word("transaction") => parser.prepare()?,
            Some("execute") => parser.execute()?,
            Some("deallocate") => {
                parser.skip_word("prepare");
                Own::Deallocate(parser.name_or_all("a prepared statement")?)
            }
            Some("declare") => parser.declare()?,
            Some("fetch") => parser.fetch(false)?,
            Some("move") => parser.fetch(true)?,
            Some("close") => Own::Close(parser.name_or_all("a cursor")?),
            Some("discard") => {
                let (all, plans) = (parser.skip_word("all"), parser.skip_word("plans"));
                let known =
                    all || plans || ["sequences", "temp", "temporary"].iter().any(|word| parser.skip_word(word));
                if !known {
                    return Err(parser.expected("ALL, PLANS, SEQUENCES or TEMP"));
                }
                Own::Discard { all, plans }
            }
            _ => return Ok(None),
        };
        match parser.next {
            None => Ok(Some(own)),
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

    /// Characters in front of a byte.
    fn characters(&self, bytes: usize) -> u32 {
        u32::try_from(self.text.get(..bytes).unwrap_or_default().chars().count()).unwrap_or(u32::MAX - 1)
    }

    /// The next token as a keyword, in lower case, and passes it.
    fn word(&mut self) -> Option<String> {
        let token = self.next.filter(|token| token.kind == Kind::Word)?;
        let word = self.slice(token).to_ascii_lowercase();
        self.advance();
        Some(word)
    }

    fn is_word(&self, word: &str) -> bool {
        self.next.is_some_and(|token| token.kind == Kind::Word && self.slice(token).eq_ignore_ascii_case(word))
    }

    fn skip_word(&mut self, word: &str) -> bool {
        let is_next = self.is_word(word);
        if is_next {
            self.advance();
        }
        is_next
    }

    fn skip_symbol(&mut self, symbol: u8) -> bool {
        let is_next = self.next.is_some_and(|token| token.kind == Kind::Symbol(symbol));
        if is_next {
            self.advance();
        }
        is_next
    }

    fn name(&mut self, of: &str) -> Result<String, Box<PgError>> {
        let name = match self.next {
            Some(token @ Token { kind: Kind::Word, .. }) => self.slice(token).to_lowercase(),
            Some(token @ Token { kind: Kind::Quoted, .. }) => {
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

    /// All from the next token on.
    fn inner(&mut self, what: &str) -> Result<Inner, Box<PgError>> {
        let Some(first) = self.next else { return Err(self.expected(what)) };
        let text = self.text.get(first.start..).unwrap_or_default().trim_end().to_owned();
        self.next = None;
        Ok(Inner { text, before: self.characters(first.start) })
    }

    fn prepare(&mut self) -> Result<Own, Box<PgError>> {
        let name = self.name("a prepared statement")?;
        let types = if self.skip_symbol(b'(') { self.types()? } else { Vec::new() };
        if !self.skip_word("as") {
            return Err(self.expected("AS"));
        }
        Ok(Own::Prepare { name, types, statement: self.inner("a statement")? })
    }

    fn types(&mut self) -> Result<Vec<PgType>, Box<PgError>> {
        let mut types = Vec::new();
        let (mut start, mut depth) = (self.next.map(|token| token.start), 0_u32);
        while let Some(token) = self.next {
            let is_end = depth == 0 && matches!(token.kind, Kind::Symbol(b')' | b','));
            if is_end {
                let name = start.and_then(|start| self.text.get(start..token.start)).unwrap_or_default();
                let found = types::type_by_name(name);
                let unknown = || PgError::new("42704", format!("type \"{}\" does not exist", name.trim()));
                types.push(found.ok_or_else(unknown)?);
            }
            match token.kind {
                Kind::Symbol(b'(') => depth += 1,
                Kind::Symbol(b')') if depth > 0 => depth -= 1,
                _ => {}
            }
            self.advance();
            if is_end {
                if token.kind == Kind::Symbol(b')') {
                    return Ok(types);
                }
                start = self.next.map(|token| token.start);
            }
        }
        Err(self.expected("\")\""))
    }

    fn execute(&mut self) -> Result<Own, Box<PgError>> {
        let name = self.name("a prepared statement")?;
        let Some(open) = self.next else {
            return Ok(Own::Execute { name, values: Inner { text: String::new(), before: 0 } });
        };
        if !self.skip_symbol(b'(') {
            return Err(self.expected("\"(\" or the end of the statement"));
        }
        let mut close = None;
        while let Some(token) = self.advance() {
            close = Some(token);
        }
        match close {
            Some(Token { kind: Kind::Symbol(b')'), start, .. }) => {
                let text = self.text.get(open.end..start).unwrap_or_default().to_owned();
                Ok(Own::Execute { name, values: Inner { text, before: self.characters(open.end) } })
            }
            _ => Err(self.expected("\")\"")),
        }
    }

    fn declare(&mut self) -> Result<Own, Box<PgError>> {
        let name = self.name("a cursor")?;
        let mut is_binary = false;
        while !self.skip_word("cursor") {
            let start = self.next;
            if self.skip_word("binary") {
                is_binary = true;
            } else if self.skip_word("insensitive") || self.skip_word("asensitive") {
                // All cursors see what was there when they were opened, or later.
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
        Ok(Own::Declare { name, is_binary, hold, statement: self.inner("a query")? })
    }

    fn number(&mut self) -> Result<Option<i64>, Box<PgError>> {
        let is_negative = self.skip_symbol(b'-');
        if !is_negative {
            self.skip_symbol(b'+');
        }
        let Some(token) = self.next.filter(|token| token.kind == Kind::Number) else {
            return if is_negative { Err(self.expected("a number")) } else { Ok(None) };
        };
        let number: i64 = self.slice(token).parse().map_err(|_| self.expected("a number"))?;
        self.advance();
        Ok(Some(if is_negative { -number } else { number }))
    }

    fn fetch(&mut self, is_move: bool) -> Result<Own, Box<PgError>> {
        let backwards = || {
            let error = PgError::new(sqlstate::NOT_IN_STATE, "cursor can only scan forward");
            error.with_hint("Rows that were read are not kept; run the query again.")
        };
        let natural = |number: Option<i64>, default: u64| match number {
            None => Ok(default),
            Some(number) => u64::try_from(number).map_err(|_| backwards()),
        };
        let is_name = |parser: &Self| {
            // A cursor may be named as one of the directions.
            let mut lexer = parser.lexer.clone();
            let followed = lexer.next().is_some();
            !followed
        };
        let is_named_at_once =
            self.next.is_some_and(|token| matches!(token.kind, Kind::Word | Kind::Quoted)) && is_name(self);
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
        Ok(Own::Fetch { name: self.name("a cursor")?, count, is_move })
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
                Own::Prepare { name: "p".into(), types: vec![int, numeric], statement: inner("SELECT $1", 37) },
            ),
            ("prepare \"A\"\"b\" as x", Own::Prepare { name: "A\"b".into(), types: vec![], statement: inner("x", 18) }),
            ("EXECUTE p", Own::Execute { name: "p".into(), values: inner("", 0) }),
            ("EXECUTE p (1, f(2))", Own::Execute { name: "p".into(), values: inner("1, f(2)", 11) }),
            ("DEALLOCATE PREPARE ALL", Own::Deallocate(None)),
            ("DEALLOCATE p", Own::Deallocate(Some("p".into()))),
            (
                "DECLARE c BINARY NO SCROLL CURSOR WITH HOLD FOR SELECT 1",
                Own::Declare { name: "c".into(), is_binary: true, hold: true, statement: inner("SELECT 1", 48) },
            ),
            ("FETCH c", Own::Fetch { name: "c".into(), count: Count::Next(1), is_move: false }),
            ("FETCH next", Own::Fetch { name: "next".into(), count: Count::Next(1), is_move: false }),
            ("FETCH NEXT FROM c", Own::Fetch { name: "c".into(), count: Count::Next(1), is_move: false }),
            ("FETCH 10 IN \"C\"", Own::Fetch { name: "C".into(), count: Count::Next(10), is_move: false }),
            ("FETCH FORWARD ALL FROM c", Own::Fetch { name: "c".into(), count: Count::All, is_move: false }),
            ("FETCH ALL c", Own::Fetch { name: "c".into(), count: Count::All, is_move: false }),
            ("MOVE FORWARD 5 c", Own::Fetch { name: "c".into(), count: Count::Next(5), is_move: true }),
            ("MOVE ABSOLUTE 5 FROM c", Own::Fetch { name: "c".into(), count: Count::Absolute(5), is_move: true }),
            ("CLOSE ALL", Own::Close(None)),
            ("DISCARD ALL", Own::Discard { all: true, plans: false }),
        ] {
            assert_eq!(Own::parse(text).unwrap(), Some(expected), "{text}");
        }
        for text in ["SELECT 1", "PREPARE TRANSACTION 'x'", "", "'x'", "COMMIT"] {
            assert_eq!(Own::parse(text).unwrap(), None, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_with_them_is_told() {
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
            let error = Own::parse(text).unwrap_err();
            assert_eq!((error.sqlstate, error.position), (sqlstate, position), "{text}: {error:?}");
        }
    }
}
