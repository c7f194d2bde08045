//! The grammar of `COPY` in PostgreSQL and CrateDB: rows from and to clients and files.

use filbert_grid::query::{CopyFormat, CopyKind, Dialect};
use sqlparser::ast::{Query, Statement};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::json::{expect_word, word};
use super::statements::{Refusal, refused, refused_as};
use super::tables::{names_in_brackets, option_value, options};
use super::{HazelcastDialect, Parsed, places, rewrite};

/// `COPY`.
#[derive(Clone, Debug, PartialEq)]
pub struct Copy {
    /// The target table of an import; `None` for an export.
    pub table: Option<String>,
    /// The imported columns; empty = all.
    pub columns: Vec<String>,
    /// The query of an export.
    pub query: Option<Box<Query>>,
    /// The table of an export that names no columns: `query` reads all of them, the generated ones
    /// included.
    pub exported: Option<String>,
    /// The source or target of the rows.
    pub place: Place,
    /// The format of the rows.
    pub format: FileFormat,
}

/// The source or target of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The client.
    Client,
    /// A file.
    File(String),
}

/// The format of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// Lines of values, or PostgreSQL's binary format.
    Rows(CopyFormat),
    /// One JSON object per line.
    Json,
    /// Parquet.
    Parquet,
}

/// Parses the rest after `COPY`.
pub(super) fn copy(parser: &mut Parser<'_>, dialect: Dialect) -> Result<Parsed, Refusal> {
    let mut binary = word(parser, "BINARY");
    let (mut query, mut table, mut columns) = (None, None, Vec::new());
    if parser.consume_token(&Token::LParen) {
        query = Some(parser.parse_query()?);
        parser.expect_token(&Token::RParen)?;
    } else {
        let name = parser.parse_object_name(false)?;
        let catalog_name = places::marked_name(&name)?;
        if parser.peek_token_ref().token == Token::LParen {
            columns = names_in_brackets(parser)?;
        }
        table = Some((name, catalog_name));
    }
    let condition = match parser.parse_keyword(Keyword::WHERE) {
        true => Some(parser.parse_expr()?),
        false => None,
    };
    let inwards = parser.parse_keyword(Keyword::FROM);
    if !inwards {
        expect_word(parser, "TO")?;
    }
    if inwards && (query.is_some() || condition.is_some()) {
        return refused("COPY FROM writes a table, as COPY name [(columns)] FROM ..");
    }
    let place = place(parser, inwards)?;
    let given = given_options(parser)?;
    binary |= given.iter().any(|(name, value)| name == "format" && value.eq_ignore_ascii_case("binary"));
    given.iter().try_for_each(|(name, value)| check_option(name, value, dialect))?;
    let format = format(&given, &place, dialect, binary)?;
    if !inwards && let Some((name, _)) = &table {
        query = Some(query_of(&name.to_string(), &columns, condition.map(|condition| condition.to_string()))?);
    }
    if let Some(query) = &mut query {
        rewrite::rewrite(query, dialect)?;
    }
    let (table, exported) = match table.map(|(_, name)| name) {
        Some(name) if inwards => (Some(name), None),
        exported => (None, exported.filter(|_| columns.is_empty())),
    };
    Ok(Parsed::Copy(Box::new(Copy { table, columns, query, exported, place, format })))
}

/// `SELECT columns FROM table WHERE condition`.
fn query_of(table: &str, columns: &[String], condition: Option<String>) -> Result<Box<Query>, Refusal> {
    let quoted = |name: &String| format!("\"{}\"", name.replace('"', "\"\""));
    let columns = match columns {
        [] => "*".to_owned(),
        columns => columns.iter().map(quoted).collect::<Vec<_>>().join(", "),
    };
    let condition = condition.map(|condition| format!(" WHERE {condition}")).unwrap_or_default();
    let mut statements = Parser::parse_sql(&HazelcastDialect, &format!("SELECT {columns} FROM {table}{condition}"))?;
    match statements.pop() {
        Some(Statement::Query(query)) => Ok(query),
        _ => refused(format!("rows of {table} cannot be read")),
    }
}

fn place(parser: &mut Parser<'_>, inwards: bool) -> Result<Place, Refusal> {
    if word(parser, "PROGRAM") {
        return refused_as("0A000", "programs are not run: COPY reads and writes files, and what clients send");
    }
    if word(parser, if inwards { "STDIN" } else { "STDOUT" }) {
        return Ok(Place::Client);
    }
    let directory = word(parser, "DIRECTORY");
    let path = parser.parse_literal_string()?;
    let path = path.strip_prefix("file://").unwrap_or(&path);
    if path.contains("://") {
        return refused_as("0A000", format!("{path:?} is no local file: only those are read and written"));
    }
    Ok(Place::File(if directory { format!("{}/", path.trim_end_matches('/')) } else { path.to_owned() }))
}

/// Fails if an option requests unsupported behaviour.
fn check_option(name: &str, value: &str, dialect: Dialect) -> Result<(), Refusal> {
    let value = value.to_ascii_lowercase();
    let is_served = match name {
        "format" | "delimiter" | "null" | "quote" | "escape" => true,
        "header" => value != "match",
        // Rows are visible to everyone immediately in any case.
        "freeze" => true,
        "encoding" => matches!(value.as_str(), "utf8" | "utf-8"),
        // The distribution of the work changes no row.
        "bulk_size" | "num_readers" | "node_filters" | "shared" | "max_retries" if dialect == Dialect::Crate => true,
        "wait_for_completion" if dialect == Dialect::Crate => value != "false",
        "overwrite_duplicates" | "fail_fast" if dialect == Dialect::Crate => value == "false",
        "default"
        | "force_quote"
        | "force_not_null"
        | "force_null"
        | "on_error"
        | "log_verbosity"
        | "compression"
        | "skip"
        | "protocol"
        | "validation"
        | "wait_for_completion"
        | "overwrite_duplicates"
        | "fail_fast" => false,
        other => return refused_as("42601", format!("option {other:?} not recognized")),
    };
    match is_served {
        true => Ok(()),
        false => refused_as("0A000", format!("COPY with {name} {value:?} is not served")),
    }
}

/// The options in all their notations, by lower-case name.
fn given_options(parser: &mut Parser<'_>) -> Result<Vec<(String, String)>, Refusal> {
    let mut given = Vec::new();
    if parser.peek_keyword(Keyword::WITH) && parser.peek_nth_token_ref(1).token == Token::LParen && has_equals(parser) {
        given = options(parser)?;
    } else {
        word(parser, "WITH");
        if parser.consume_token(&Token::LParen) {
            while parser.peek_token_ref().token != Token::RParen {
                let name = parser.parse_identifier()?.value;
                let value = match parser.peek_token_ref().token {
                    Token::Comma | Token::RParen => "true".to_owned(),
                    _ => option_value(parser)?,
                };
                given.push((name, value));
                if !parser.consume_token(&Token::Comma) {
                    break;
                }
            }
            parser.expect_token(&Token::RParen)?;
        } else {
            old_options(parser, &mut given)?;
        }
    }
    if word(parser, "RETURN") {
        expect_word(parser, "SUMMARY")?;
    }
    Ok(given.into_iter().map(|(name, value)| (name.to_ascii_lowercase(), value)).collect())
}

/// Whether options have CrateDB's notation: `WITH (name = value)`.
fn has_equals(parser: &Parser<'_>) -> bool {
    parser.peek_nth_token_ref(3).token == Token::Eq
}

/// `CSV HEADER DELIMITER 'x' ..`, the notation before PostgreSQL 9.
fn old_options(parser: &mut Parser<'_>, given: &mut Vec<(String, String)>) -> Result<(), Refusal> {
    let mut push = |name: &str, value: String| given.push((name.to_owned(), value));
    loop {
        if word(parser, "CSV") {
            push("format", "csv".to_owned());
        } else if word(parser, "BINARY") {
            push("format", "binary".to_owned());
        } else if word(parser, "HEADER") {
            push("header", "true".to_owned());
        } else if word(parser, "DELIMITER") {
            word(parser, "AS");
            push("delimiter", parser.parse_literal_string()?);
        } else if parser.parse_keyword(Keyword::NULL) {
            word(parser, "AS");
            push("null", parser.parse_literal_string()?);
        } else if word(parser, "QUOTE") {
            word(parser, "AS");
            push("quote", parser.parse_literal_string()?);
        } else if word(parser, "ESCAPE") {
            word(parser, "AS");
            push("escape", parser.parse_literal_string()?);
        } else {
            return Ok(());
        }
    }
}

fn format(given: &[(String, String)], place: &Place, dialect: Dialect, binary: bool) -> Result<FileFormat, Refusal> {
    let option = |wanted: &str| given.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let by_name = match place {
        Place::File(path) => path.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase()),
        Place::Client => None,
    };
    let by_name = by_name.filter(|name| matches!(name.as_str(), "csv" | "json" | "jsonl" | "ndjson" | "parquet"));
    let default = match (place, dialect) {
        (Place::File(_), Dialect::Crate) => "json",
        _ => "text",
    };
    let name = option("format").map(str::to_ascii_lowercase).or(by_name).unwrap_or_else(|| default.to_owned());
    let kind = match name.as_str() {
        _ if binary => CopyKind::Binary,
        "text" => CopyKind::Text,
        "csv" => CopyKind::Csv,
        "json" | "jsonl" | "ndjson" | "json_row" => return for_files(place, FileFormat::Json),
        "parquet" => return for_files(place, FileFormat::Parquet),
        other => {
            return refused_as("22023", format!("COPY knows no format {other:?}, expected text, csv, json or parquet"));
        }
    };
    if kind == CopyKind::Binary && *place != Place::Client {
        return refused_as("0A000", "the binary format is for clients: files are text, csv, json or parquet");
    }
    let mut format = CopyFormat::of(kind);
    let one = |name: &str, value: &str| -> Result<char, Refusal> {
        let mut characters = value.chars();
        match (characters.next(), characters.next()) {
            (Some(character), None) if character.is_ascii() => Ok(character),
            _ => refused_as("22023", format!("COPY {name} is {value:?}, expected one character of one byte")),
        }
    };
    for (name, value) in given {
        match name.as_str() {
            "delimiter" => format.delimiter = one(name, value)?,
            "quote" => format.quote = one(name, value)?,
            "escape" => format.escape = one(name, value)?,
            "null" => format.null.clone_from(value),
            "header" => format.header = !matches!(value.to_ascii_lowercase().as_str(), "false" | "off" | "0"),
            _ => {}
        }
    }
    // By default, a doubled quote escapes itself.
    if option("escape").is_none() {
        format.escape = format.quote;
    }
    // By default, files of CrateDB start with the column names.
    if dialect == Dialect::Crate && kind == CopyKind::Csv && option("header").is_none() && *place != Place::Client {
        format.header = true;
    }
    Ok(FileFormat::Rows(format))
}

fn for_files(place: &Place, format: FileFormat) -> Result<FileFormat, Refusal> {
    match place {
        Place::File(_) => Ok(format),
        Place::Client => refused_as("0A000", "clients send and get rows as text, csv or binary"),
    }
}
