//! The grammar of statements about existing tables.

use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::json::word;
use super::statements::{Refusal, if_exists, parse_name};
use super::tables::{CreateTable, options};
use super::{AlterTable, Comment, Parsed};

/// A statement about tables.
#[derive(Clone, Debug, PartialEq)]
pub enum TableStatement {
    /// `CREATE TABLE`.
    Create(Box<CreateTable>),
    /// `DROP TABLE`.
    Drop {
        /// The tables.
        names: Vec<String>,
        /// Whether a missing table is no error.
        if_exists: bool,
        /// Whether dependent views are dropped too.
        cascade: bool,
    },
    /// `TRUNCATE`.
    Truncate {
        /// The tables.
        names: Vec<String>,
        /// Whether their sequences restart.
        restart: bool,
    },
    /// `ALTER TABLE`.
    Alter(AlterTable),
    /// `COMMENT ON`.
    Comment(Comment),
    /// `CREATE SCHEMA`.
    CreateSchema {
        /// The schema.
        name: String,
        /// Whether an existing schema is no error.
        if_not_exists: bool,
    },
    /// `DROP SCHEMA`.
    DropSchema {
        /// The schemas.
        names: Vec<String>,
        /// Whether a missing schema is no error.
        if_exists: bool,
        /// Whether its tables are dropped too.
        cascade: bool,
    },
    /// A maintenance statement, which has nothing to do here: `REFRESH TABLE`, `OPTIMIZE TABLE`,
    /// `ANALYZE`, `VACUUM`.
    KeepUp {
        /// The command tag that PostgreSQL reports.
        command: &'static str,
        /// The tables, which must exist.
        names: Vec<String>,
    },
}

impl TableStatement {
    /// The command tag that PostgreSQL reports.
    pub fn command(&self) -> &'static str {
        match self {
            TableStatement::Create(table) if table.source.is_some() => "CREATE TABLE AS",
            TableStatement::Create(_) => "CREATE TABLE",
            TableStatement::Drop { .. } => "DROP TABLE",
            TableStatement::Truncate { .. } => "TRUNCATE TABLE",
            TableStatement::Alter(_) => "ALTER TABLE",
            TableStatement::Comment(_) => "COMMENT",
            TableStatement::CreateSchema { .. } => "CREATE SCHEMA",
            TableStatement::DropSchema { .. } => "DROP SCHEMA",
            TableStatement::KeepUp { command, .. } => command,
        }
    }
}

/// Parses the rest after `DROP TABLE`.
pub(super) fn drop_table(parser: &mut Parser<'_>) -> Result<Parsed, Refusal> {
    let if_exists = if_exists(parser);
    let names = names(parser)?;
    let cascade = cascade(parser);
    Ok(Parsed::Table(TableStatement::Drop { names, if_exists, cascade }))
}

/// Parses `CASCADE` or `RESTRICT`, the default; returns whether it was `CASCADE`.
pub(super) fn cascade(parser: &mut Parser<'_>) -> bool {
    let cascade = word(parser, "CASCADE");
    if !cascade {
        word(parser, "RESTRICT");
    }
    cascade
}

/// Parses a list of names.
pub(super) fn names(parser: &mut Parser<'_>) -> Result<Vec<String>, Refusal> {
    let mut names = vec![parse_name(parser)?];
    while parser.consume_token(&Token::Comma) {
        names.push(parse_name(parser)?);
    }
    Ok(names)
}

/// Parses the rest after the first word, which is `head`.
pub(super) fn keep_up(parser: &mut Parser<'_>, head: &str) -> Result<Parsed, Refusal> {
    if head == "TRUNCATE" {
        word(parser, "TABLE");
        word(parser, "ONLY");
        let names = names(parser)?;
        let restart = word(parser, "RESTART");
        if restart || word(parser, "CONTINUE") {
            word(parser, "IDENTITY");
        }
        cascade(parser);
        return Ok(Parsed::Table(TableStatement::Truncate { names, restart }));
    }
    let command = match head {
        "REFRESH" => "REFRESH",
        "OPTIMIZE" => "OPTIMIZE",
        "ANALYZE" => "ANALYZE",
        _ => "VACUUM",
    };
    if parser.consume_token(&Token::LParen) {
        while !matches!(parser.next_token().token, Token::RParen | Token::EOF) {}
    }
    for flag in ["FULL", "FREEZE", "VERBOSE", "ANALYZE", "TABLE"] {
        word(parser, flag);
    }
    let mut named = Vec::new();
    while let Token::Word(_) = &parser.peek_token_ref().token {
        if parser.peek_keyword(Keyword::WITH) {
            options(parser)?;
            break;
        }
        if parser.peek_keyword(Keyword::PARTITION) {
            parser.next_token();
        } else {
            named.push(parse_name(parser)?);
        }
        if parser.consume_token(&Token::LParen) {
            while !matches!(parser.next_token().token, Token::RParen | Token::EOF) {}
        }
        let _ = parser.consume_token(&Token::Comma);
    }
    Ok(Parsed::Table(TableStatement::KeepUp { command, names: named }))
}
