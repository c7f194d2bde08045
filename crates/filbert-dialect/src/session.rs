//! The grammar of statements about the session and its transactions, as in PostgreSQL and CrateDB.

use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::json::{expect_word, word};

/// A statement about the session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `SET name = value`; `None` = back to the default.
    Set {
        /// The setting, in lower case.
        name: String,
        /// Its value.
        value: Option<String>,
        /// Whether it lasts until the end of the transaction: `SET LOCAL`.
        local: bool,
    },
    /// `SET GLOBAL`, `RESET GLOBAL`: CrateDB's settings of the cluster.
    SetGlobal,
    /// `RESET ALL`.
    ResetAll,
    /// `SHOW name`.
    Show(String),
    /// `SHOW ALL`.
    ShowAll,
    /// `SHOW TABLES`, `SHOW SCHEMAS`, `SHOW COLUMNS`, as a query.
    Ask(String),
    /// `BEGIN`, `START TRANSACTION`.
    Begin {
        /// The command tag that PostgreSQL reports.
        tag: &'static str,
        /// The modes of the transaction.
        modes: Modes,
    },
    /// `SET TRANSACTION`.
    SetTransaction(Modes),
    /// `SET SESSION CHARACTERISTICS AS TRANSACTION`.
    SetTransactions(Modes),
    /// `COMMIT`, `END`.
    Commit {
        /// `AND CHAIN`.
        chain: bool,
    },
    /// `ROLLBACK`, `ABORT`.
    Rollback {
        /// `AND CHAIN`.
        chain: bool,
    },
    /// `SAVEPOINT`.
    Savepoint(String),
    /// `RELEASE SAVEPOINT`.
    Release(String),
    /// `ROLLBACK TO SAVEPOINT`.
    RollbackTo(String),
    /// `DISCARD ALL`, `DISCARD PLANS`, ..
    Discard {
        /// Whether settings return to their defaults.
        all: bool,
    },
    /// `KILL`.
    Kill(Job),
    /// A statement without effect here, with the command tag that PostgreSQL reports.
    Accepted(&'static str),
    /// A statement that is rejected when it runs, with the command tag that PostgreSQL reports.
    Unserved(&'static str),
    /// `SET ROLE`, `SET SESSION AUTHORIZATION`.
    SetUser {
        /// The statement's name.
        words: &'static str,
        /// The new user of the session.
        name: String,
    },
}

/// The modes of a transaction; `None` = the session's setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Modes {
    /// `READ ONLY` or `READ WRITE`.
    pub read_only: Option<bool>,
    /// `ISOLATION LEVEL`, as in settings.
    pub isolation: Option<&'static str>,
    /// `[NOT] DEFERRABLE`.
    pub deferrable: Option<bool>,
}

/// The jobs that `KILL` ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Job {
    /// All jobs of the user.
    All,
    /// The job with this id.
    Id(String),
    /// The job with the id in the first parameter.
    Parameter,
}

/// Parses a statement about the session, if `head` starts one.
///
/// # Errors
/// The statement has a syntax error.
pub(super) fn command(parser: &mut Parser<'_>, head: &str) -> Result<Option<Command>, ParserError> {
    let take: fn(&mut Parser<'_>) -> Result<Command, ParserError> = match head {
        "SET" => set,
        "RESET" => reset,
        "SHOW" if is_setting_shown(parser) => show,
        "BEGIN" => |parser| begin(parser, "BEGIN"),
        "START" => |parser| begin(parser, "START TRANSACTION"),
        "COMMIT" | "END" => |parser| Ok(Command::Commit { chain: transaction_end(parser)? }),
        "ROLLBACK" | "ABORT" => rollback,
        "SAVEPOINT" => |parser| parser.parse_identifier().map(|name| Command::Savepoint(name.value)),
        "RELEASE" => |parser| {
            word(parser, "SAVEPOINT");
            parser.parse_identifier().map(|name| Command::Release(name.value))
        },
        "DISCARD" => discard,
        "KILL" => kill,
        "LISTEN" => |parser| {
            skip_rest(parser);
            Ok(Command::Unserved("LISTEN"))
        },
        "NOTIFY" => |parser| {
            skip_rest(parser);
            Ok(Command::Unserved("NOTIFY"))
        },
        // Nobody can listen, so nothing needs to be undone.
        "UNLISTEN" => |parser| {
            if !parser.consume_token(&Token::Mul) {
                parser.parse_identifier()?;
            }
            Ok(Command::Accepted("UNLISTEN"))
        },
        "CHECKPOINT" => |_| Ok(Command::Accepted("CHECKPOINT")),
        _ => return Ok(None),
    };
    parser.next_token();
    take(parser).map(Some)
}

/// Whether `SHOW` shows a setting rather than the catalog.
fn is_setting_shown(parser: &Parser<'_>) -> bool {
    let second = match &parser.peek_nth_token_ref(1).token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
        _ => String::new(),
    };
    // `SHOW CREATE TABLE` shows the catalog, and so do Hazelcast's statements.
    !matches!(second.as_str(), "CREATE" | "MAPPINGS" | "VIEWS" | "JOBS" | "RESOURCES" | "INDEXES" | "DATA" | "EXTERNAL")
}

fn skip_rest(parser: &mut Parser<'_>) {
    while !matches!(parser.peek_token_ref().token, Token::EOF | Token::SemiColon) {
        parser.next_token();
    }
}

/// A dotted name, such as `plpgsql.check`, in lower case.
fn setting_name(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    let name = parser.parse_object_name(false)?;
    let parts: Vec<&str> = name.0.iter().filter_map(|part| Some(part.as_ident()?.value.as_str())).collect();
    Ok(parts.join(".").to_ascii_lowercase())
}

fn set(parser: &mut Parser<'_>) -> Result<Command, ParserError> {
    if word(parser, "GLOBAL") {
        skip_rest(parser);
        return Ok(Command::SetGlobal);
    }
    let is_session = word(parser, "SESSION");
    if is_session && word(parser, "CHARACTERISTICS") {
        expect_word(parser, "AS")?;
        expect_word(parser, "TRANSACTION")?;
        return transaction_modes(parser).map(Command::SetTransactions);
    }
    if is_session && word(parser, "AUTHORIZATION") {
        return nobody_else(parser, "DEFAULT", "SET SESSION AUTHORIZATION");
    }
    let local = !is_session && word(parser, "LOCAL");
    if word(parser, "ROLE") {
        return nobody_else(parser, "NONE", "SET ROLE");
    }
    if word(parser, "CONSTRAINTS") {
        // No constraint can be deferred.
        expect_word(parser, "ALL")?;
        if !word(parser, "DEFERRED") {
            expect_word(parser, "IMMEDIATE")?;
        }
        return Ok(Command::Accepted("SET CONSTRAINTS"));
    }
    if word(parser, "LICENSE") {
        skip_rest(parser);
        return Ok(Command::Accepted("SET"));
    }
    if word(parser, "TRANSACTION") {
        return transaction_modes(parser).map(Command::SetTransaction);
    }
    if word(parser, "NAMES") {
        return Ok(Command::Set { name: "client_encoding".to_owned(), value: value(parser)?, local });
    }
    if word(parser, "TIME") {
        expect_word(parser, "ZONE")?;
        let value = if word(parser, "LOCAL") { None } else { value(parser)? };
        return Ok(Command::Set { name: "timezone".to_owned(), value, local });
    }
    let name = setting_name(parser)?;
    if !parser.consume_token(&Token::Eq) && !parser.parse_keyword(Keyword::TO) {
        return parser.expected("= or TO", parser.peek_token());
    }
    Ok(Command::Set { name, value: value(parser)?, local })
}

/// A session keeps its user. Only that user, or a keyword for it, can be set.
fn nobody_else(parser: &mut Parser<'_>, own: &str, words: &'static str) -> Result<Command, ParserError> {
    if word(parser, own) {
        return Ok(Command::Accepted("SET"));
    }
    Ok(Command::SetUser { words, name: one_value(parser)? })
}

/// Comma-separated values as one text; `None` = `DEFAULT`.
fn value(parser: &mut Parser<'_>) -> Result<Option<String>, ParserError> {
    if word(parser, "DEFAULT") {
        return Ok(None);
    }
    let mut parts = Vec::new();
    loop {
        parts.push(one_value(parser)?);
        if !parser.consume_token(&Token::Comma) {
            return Ok(Some(parts.join(", ")));
        }
    }
}

fn one_value(parser: &mut Parser<'_>) -> Result<String, ParserError> {
    if word(parser, "INTERVAL") {
        return one_value(parser);
    }
    let token = parser.next_token();
    Ok(match token.token {
        Token::Word(word) => word.value,
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => text,
        Token::Number(digits, _) => digits,
        Token::Minus | Token::Plus => {
            let sign = if token.token == Token::Minus { "-" } else { "" };
            match parser.next_token().token {
                Token::Number(digits, _) => format!("{sign}{digits}"),
                _ => return parser.expected("a number", parser.peek_token()),
            }
        }
        _ => return parser.expected("a value or DEFAULT", token),
    })
}

fn reset(parser: &mut Parser<'_>) -> Result<Command, ParserError> {
    if word(parser, "GLOBAL") {
        skip_rest(parser);
        return Ok(Command::SetGlobal);
    }
    if word(parser, "ALL") {
        return Ok(Command::ResetAll);
    }
    if word(parser, "ROLE") {
        return Ok(Command::Accepted("RESET"));
    }
    if word(parser, "SESSION") {
        expect_word(parser, "AUTHORIZATION")?;
        return Ok(Command::Accepted("RESET"));
    }
    if word(parser, "TIME") {
        expect_word(parser, "ZONE")?;
        return Ok(Command::Set { name: "timezone".to_owned(), value: None, local: false });
    }
    Ok(Command::Set { name: setting_name(parser)?, value: None, local: false })
}

fn show(parser: &mut Parser<'_>) -> Result<Command, ParserError> {
    if word(parser, "ALL") {
        return Ok(Command::ShowAll);
    }
    if word(parser, "TIME") {
        expect_word(parser, "ZONE")?;
        return Ok(Command::Show("timezone".to_owned()));
    }
    if word(parser, "TRANSACTION") {
        let name = match word(parser, "ISOLATION") {
            true => {
                expect_word(parser, "LEVEL")?;
                "transaction_isolation"
            }
            false => {
                expect_word(parser, "READ")?;
                expect_word(parser, "ONLY")?;
                "transaction_read_only"
            }
        };
        return Ok(Command::Show(name.to_owned()));
    }
    if word(parser, "SESSION") {
        expect_word(parser, "AUTHORIZATION")?;
        return Ok(Command::Show("session_authorization".to_owned()));
    }
    if word(parser, "TABLES") {
        return tables(parser);
    }
    if word(parser, "SCHEMAS") {
        let like = like(parser, "schema_name")?.map(|like| format!(" WHERE {like}")).unwrap_or_default();
        return Ok(Command::Ask(format!("SELECT schema_name FROM information_schema.schemata{like} ORDER BY 1")));
    }
    if word(parser, "COLUMNS") {
        return columns(parser);
    }
    Ok(Command::Show(setting_name(parser)?))
}

/// `LIKE 'pattern'` as a condition.
fn like(parser: &mut Parser<'_>, column: &str) -> Result<Option<String>, ParserError> {
    if !parser.parse_keyword(Keyword::LIKE) {
        return Ok(None);
    }
    let pattern = parser.parse_literal_string()?;
    Ok(Some(format!("{column} LIKE {}", quoted(&pattern))))
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// `FROM schema` or `IN schema` as a condition.
fn schema(parser: &mut Parser<'_>) -> Result<Option<String>, ParserError> {
    if !parser.parse_keyword(Keyword::FROM) && !parser.parse_keyword(Keyword::IN) {
        return Ok(None);
    }
    let schema = parser.parse_identifier()?.value;
    Ok(Some(format!("table_schema = {}", quoted(&schema))))
}

/// `SHOW TABLES [FROM schema] [LIKE pattern | WHERE condition]`
fn tables(parser: &mut Parser<'_>) -> Result<Command, ParserError> {
    let of_schema = schema(parser)?
        .unwrap_or_else(|| "table_schema NOT IN ('sys', 'information_schema', 'pg_catalog', 'blob')".to_owned());
    let like = like(parser, "table_name")?;
    let like = like.map(|like| format!(" AND {like}")).unwrap_or_default();
    Ok(Command::Ask(format!(
        "SELECT DISTINCT table_name FROM information_schema.tables \
         WHERE table_type = 'BASE TABLE' AND {of_schema}{like} ORDER BY 1"
    )))
}

/// `SHOW COLUMNS FROM table [FROM schema] [LIKE pattern]`
fn columns(parser: &mut Parser<'_>) -> Result<Command, ParserError> {
    if !parser.parse_keyword(Keyword::FROM) {
        parser.expect_keyword(Keyword::IN)?;
    }
    let table = parser.parse_object_name(false)?;
    let parts: Vec<&str> = table.0.iter().filter_map(|part| Some(part.as_ident()?.value.as_str())).collect();
    let mut conditions = Vec::new();
    match parts.as_slice() {
        [.., schema, table] => {
            conditions.push(format!("table_schema = {}", quoted(schema)));
            conditions.push(format!("table_name = {}", quoted(table)));
        }
        [table] => conditions.push(format!("table_name = {}", quoted(table))),
        [] => {}
    }
    conditions.extend(schema(parser)?);
    conditions.extend(like(parser, "column_name")?);
    Ok(Command::Ask(format!(
        "SELECT column_name, data_type FROM information_schema.columns WHERE {} ORDER BY ordinal_position",
        conditions.join(" AND ")
    )))
}

fn begin(parser: &mut Parser<'_>, tag: &'static str) -> Result<Command, ParserError> {
    if !word(parser, "TRANSACTION") {
        word(parser, "WORK");
    }
    let modes = transaction_modes(parser)?;
    Ok(Command::Begin { tag, modes })
}

/// `ISOLATION LEVEL ..`, `READ ONLY`, `DEFERRABLE`.
fn transaction_modes(parser: &mut Parser<'_>) -> Result<Modes, ParserError> {
    let mut modes = Modes::default();
    loop {
        if word(parser, "ISOLATION") {
            expect_word(parser, "LEVEL")?;
            modes.isolation = Some(isolation_level(parser)?);
        } else if word(parser, "READ") {
            let read_only = word(parser, "ONLY");
            if !read_only {
                expect_word(parser, "WRITE")?;
            }
            modes.read_only = Some(read_only);
        } else if word(parser, "NOT") {
            expect_word(parser, "DEFERRABLE")?;
            modes.deferrable = Some(false);
        } else if word(parser, "DEFERRABLE") {
            modes.deferrable = Some(true);
        } else if !parser.consume_token(&Token::Comma) {
            return Ok(modes);
        }
    }
}

fn isolation_level(parser: &mut Parser<'_>) -> Result<&'static str, ParserError> {
    if word(parser, "READ") {
        if word(parser, "COMMITTED") {
            return Ok("read committed");
        }
        return expect_word(parser, "UNCOMMITTED").map(|()| "read uncommitted");
    }
    if word(parser, "REPEATABLE") {
        return expect_word(parser, "READ").map(|()| "repeatable read");
    }
    expect_word(parser, "SERIALIZABLE").map(|()| "serializable")
}

/// `[WORK | TRANSACTION] [AND [NO] CHAIN]`
fn transaction_end(parser: &mut Parser<'_>) -> Result<bool, ParserError> {
    if !word(parser, "WORK") {
        word(parser, "TRANSACTION");
    }
    if !parser.parse_keyword(Keyword::AND) {
        return Ok(false);
    }
    let chains = !word(parser, "NO");
    expect_word(parser, "CHAIN")?;
    Ok(chains)
}

fn rollback(parser: &mut Parser<'_>) -> Result<Command, ParserError> {
    let chain = transaction_end(parser)?;
    if !parser.parse_keyword(Keyword::TO) {
        return Ok(Command::Rollback { chain });
    }
    word(parser, "SAVEPOINT");
    parser.parse_identifier().map(|name| Command::RollbackTo(name.value))
}

fn discard(parser: &mut Parser<'_>) -> Result<Command, ParserError> {
    for (what, all) in [("ALL", true), ("PLANS", false), ("SEQUENCES", false), ("TEMPORARY", false), ("TEMP", false)] {
        if word(parser, what) {
            return Ok(Command::Discard { all });
        }
    }
    parser.expected("ALL, PLANS, SEQUENCES or TEMP", parser.peek_token())
}

fn kill(parser: &mut Parser<'_>) -> Result<Command, ParserError> {
    if word(parser, "ALL") {
        return Ok(Command::Kill(Job::All));
    }
    let token = parser.next_token();
    match token.token {
        Token::SingleQuotedString(id) => Ok(Command::Kill(Job::Id(id))),
        Token::Placeholder(_) => Ok(Command::Kill(Job::Parameter)),
        _ => parser.expected("ALL or the id of a job", token),
    }
}

#[cfg(test)]
mod tests {
    use filbert_grid::query::Dialect;

    use super::*;
    use crate::{DefaultPlace, Limits, Parsed, parse};

    fn command(text: &str) -> Command {
        match parse(text, Dialect::Postgres, &Limits::default(), &DefaultPlace).map(|statement| statement.parsed) {
            Ok(Parsed::Session(command)) => command,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn settings_are_set_and_shown() {
        let set = |name: &str, value: Option<&str>| Command::Set {
            name: name.into(),
            value: value.map(str::to_owned),
            local: false,
        };
        let local = Command::Set { name: "x.y".into(), value: Some("-1".into()), local: true };
        let read_only = Modes { read_only: Some(true), ..Modes::default() };
        for (text, expected) in [
            ("SET DateStyle = 'ISO'", set("datestyle", Some("ISO"))),
            ("set session search_path to a, \"B\" , 'c'", set("search_path", Some("a, B, c"))),
            ("SET LOCAL x.y = -1", local),
            ("SET extra_float_digits = DEFAULT", set("extra_float_digits", None)),
            ("SET TIME ZONE 'UTC'", set("timezone", Some("UTC"))),
            ("SET TIME ZONE LOCAL", set("timezone", None)),
            ("SET NAMES 'utf8'", set("client_encoding", Some("utf8"))),
            ("RESET statement_timeout", set("statement_timeout", None)),
            ("RESET ALL", Command::ResetAll),
            ("SHOW standard_conforming_strings", Command::Show("standard_conforming_strings".into())),
            ("show transaction isolation level", Command::Show("transaction_isolation".into())),
            ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", Command::SetTransactions(read_only)),
            ("SET TRANSACTION READ ONLY", Command::SetTransaction(read_only)),
        ] {
            assert_eq!(command(text), expected, "{text}");
        }
    }

    #[test]
    fn transactions_begin_and_end() {
        let (isolation, deferrable) = (Some("serializable"), Some(false));
        let modes = Modes { read_only: Some(true), isolation, deferrable };
        let read_write = Modes { read_only: Some(false), ..Modes::default() };
        for (text, expected) in [
            ("BEGIN", Command::Begin { tag: "BEGIN", modes: Modes::default() }),
            ("begin isolation level serializable, read only not deferrable", Command::Begin { tag: "BEGIN", modes }),
            ("START TRANSACTION READ WRITE", Command::Begin { tag: "START TRANSACTION", modes: read_write }),
            ("COMMIT WORK AND CHAIN", Command::Commit { chain: true }),
            ("END;", Command::Commit { chain: false }),
            ("ROLLBACK TO SAVEPOINT a", Command::RollbackTo("a".into())),
            ("ABORT TRANSACTION", Command::Rollback { chain: false }),
            ("RELEASE a", Command::Release("a".into())),
            ("KILL 'x'", Command::Kill(Job::Id("x".into()))),
            ("KILL ALL", Command::Kill(Job::All)),
        ] {
            assert_eq!(command(text), expected, "{text}");
        }
        let error = parse("SET a", Dialect::Postgres, &Limits::default(), &DefaultPlace).unwrap_err();
        assert_eq!((error.sqlstate(), error.position), ("42601", Some(6)));
    }
}
