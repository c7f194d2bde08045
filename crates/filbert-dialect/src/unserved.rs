//! Statements that a dialect has and that are not served: the error names them, instead of a word
//! that is not expected.

use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::statements::{Refusal, refused_as};

/// The objects of `CREATE`, `ALTER` and `DROP` in PostgreSQL, CrateDB and Hazelcast that do not
/// exist here. Of two that begin with the same words, the longer one comes first.
const OBJECTS: &[&str] = &[
    "ACCESS METHOD",
    "AGGREGATE",
    "ANALYZER",
    "BLOB TABLE",
    "CAST",
    "COLLATION",
    "CONVERSION",
    "DATABASE",
    "DATA CONNECTION",
    "DEFAULT PRIVILEGES",
    "DOMAIN",
    "EVENT TRIGGER",
    "EXTENSION",
    "FOREIGN DATA WRAPPER",
    "FOREIGN TABLE",
    "FUNCTION",
    "GROUP",
    "JOB",
    "LANGUAGE",
    "LARGE OBJECT",
    "MATERIALIZED VIEW",
    "OPERATOR",
    "OWNED",
    "POLICY",
    "PROCEDURAL LANGUAGE",
    "PROCEDURE",
    "PUBLICATION",
    "REPOSITORY",
    "ROLE",
    "ROUTINE",
    "RULE",
    "SEQUENCE",
    "SERVER",
    "SNAPSHOT",
    "STATISTICS",
    "SUBSCRIPTION",
    "SYSTEM",
    "TABLESPACE",
    "TEXT SEARCH",
    "TRANSFORM",
    "TRIGGER",
    "TRUSTED LANGUAGE",
    "TYPE",
    "USER MAPPING",
    "USER",
];

/// The further objects that exist here, and that `ALTER` does not change.
const UNALTERED: &[&str] = &["INDEX", "SCHEMA", "VIEW"];

/// The first words of statements that are not served.
const STATEMENTS: &[&str] = &[
    "CALL",
    "CLUSTER",
    "DO",
    "GRANT",
    "IMPORT FOREIGN SCHEMA",
    "LOAD",
    "LOCK",
    "MERGE",
    "REASSIGN OWNED",
    "REINDEX",
    "REVOKE",
    "SECURITY LABEL",
];

/// Refuses the rest of a statement after `CREATE`, `ALTER` or `DROP`, if it is about an object that
/// does not exist here. `verb` is the word before.
///
/// # Errors
/// The statement is not served. The error names it.
pub(crate) fn check_object(verb: &str, parser: &Parser<'_>) -> Result<(), Refusal> {
    match first_of(OBJECTS, parser) {
        Some(object) => refused_as("0A000", format!("the statement {verb} {object} is not served")),
        None => Ok(()),
    }
}

/// Refuses the rest of a statement after `ALTER`, if it is not about a table.
///
/// # Errors
/// The statement is not served. The error names it.
pub(crate) fn check_altered(parser: &Parser<'_>) -> Result<(), Refusal> {
    check_object("ALTER", parser)?;
    match first_of(UNALTERED, parser) {
        Some(object) => refused_as("0A000", format!("the statement ALTER {object} is not served")),
        None => Ok(()),
    }
}

/// Refuses a statement by its first words.
///
/// # Errors
/// The statement is not served. The error names it.
pub(crate) fn check_statement(parser: &Parser<'_>) -> Result<(), Refusal> {
    match first_of(STATEMENTS, parser) {
        Some(statement) => refused_as("0A000", format!("the statement {statement} is not served")),
        None => Ok(()),
    }
}

/// The first of the texts that matches the next words.
fn first_of(texts: &'static [&'static str], parser: &Parser<'_>) -> Option<&'static str> {
    let comes = |text: &&&str| text.split(' ').enumerate().all(|(at, word)| is_word(parser, at, word));
    texts.iter().find(comes).copied()
}

fn is_word(parser: &Parser<'_>, at: usize, expected: &str) -> bool {
    match &parser.peek_nth_token_ref(at).token {
        Token::Word(word) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected),
        _ => false,
    }
}
