//! The grammar of statements that only Hazelcast's SQL has, and the selection of sqlparser's
//! statements that are supported.

use std::collections::HashSet;

use filbert_grid::query::{Dialect, SqlError, parsing_error};
use sqlparser::ast::{ArrayElemTypeDef, DataType, Ident, SetExpr, TableFactor, TableWithJoins, With};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{IsOptional, Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Word};

use super::grammar::grammar;
use super::json::{expect_word, word};
use super::types::sql_type;
use super::{
    ColumnDeclaration, CreateIndex, CreateMapping, IndexType, Limits, Parsed, ShowWhat, alter, changes, copy, places,
    rewrite, served, session, table_statements, tables, tokens, unserved, work,
};

/// The reason why a statement was rejected.
pub(super) enum Refusal {
    Parser(ParserError),
    Sql(SqlError),
}

impl From<ParserError> for Refusal {
    fn from(error: ParserError) -> Self {
        Refusal::Parser(error)
    }
}

impl From<SqlError> for Refusal {
    fn from(error: SqlError) -> Self {
        Refusal::Sql(error)
    }
}

pub(super) fn refused<T>(message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Sql(parsing_error(message)))
}

/// The same with an SQLSTATE.
pub(super) fn refused_as<T>(sqlstate: &'static str, message: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal::Sql(parsing_error(message).with_sqlstate(sqlstate)))
}

/// The end of a statement, without trailing white space.
fn end_of(tokens: &[TokenWithSpan]) -> Location {
    tokens.iter().rev().find(|token| token.token != Token::EOF).map_or(Location::empty(), |token| token.span.end)
}

fn error_of(refusal: Refusal, limits: &Limits, end: Location) -> SqlError {
    match refusal {
        Refusal::Sql(error) => error,
        Refusal::Parser(ParserError::RecursionLimitExceeded) if work::is_spent() => work::too_complex(),
        Refusal::Parser(ParserError::RecursionLimitExceeded) => {
            let text = format!("expressions or queries are nested more than {} deep", limits.depth_max);
            parsing_error(text).with_sqlstate("54001")
        }
        Refusal::Parser(ParserError::ParserError(message) | ParserError::TokenizerError(message)) => {
            let message = message.replace(" at Line: ", " at line ").replace(", Column: ", ", column ");
            let message = match message.split_once("No infix parser for token ") {
                // A word that cannot continue an expression.
                Some((_, token)) => {
                    let word = token.split('"').nth(1).unwrap_or("a token");
                    let place =
                        token.rsplit_once(" at line ").map_or(String::new(), |(_, place)| format!(" at line {place}"));
                    format!("expected the end of the expression, found: {word}{place}")
                }
                None => message,
            };
            let message = match message.strip_prefix("Expected: ") {
                Some(rest) => format!("expected {rest}"),
                None => message,
            };
            match message.strip_suffix("found: EOF") {
                Some(before) => tokens::at(&format!("{before}found: EOF"), end),
                None => parsing_error(message),
            }
        }
    }
}

/// Parses a whole statement.
pub(super) fn statement(
    text: &str,
    tokens: Vec<TokenWithSpan>,
    of: Dialect,
    limits: &Limits,
) -> Result<Parsed, SqlError> {
    let last = end_of(&tokens);
    let _limited = work::Limited::to(tokens.len());
    let mut parser = Parser::new(grammar(of)).with_recursion_limit(limits.depth_max).with_tokens_with_locations(tokens);
    let parsed = one_statement(text, &mut parser, of, false).map_err(|refusal| error_of(refusal, limits, last))?;
    while parser.consume_token(&Token::SemiColon) {}
    end(&parser).map_err(|error| error_of(error.into(), limits, last))?;
    Ok(parsed)
}

fn end(parser: &Parser<'_>) -> Result<(), ParserError> {
    match parser.peek_token_ref().token {
        Token::EOF => Ok(()),
        _ => parser.expected("the end of the statement", parser.peek_token()),
    }
}

fn one_statement(text: &str, parser: &mut Parser<'_>, of: Dialect, explained: bool) -> Result<Parsed, Refusal> {
    let first = parser.peek_token();
    let head = match &first.token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
        Token::LParen => "SELECT".to_owned(),
        Token::EOF => return refused("the statement is empty"),
        _ => String::new(),
    };
    if of != Dialect::Hazelcast
        && !explained
        && let Some(command) = session::command(parser, &head)?
    {
        return Ok(Parsed::Session(command));
    }
    match head.as_str() {
        "SELECT" | "VALUES" | "TABLE" | "FROM" => query(parser, of, None),
        "WITH" => {
            let with = with(parser)?;
            match &parser.peek_token_ref().token {
                Token::Word(word) if CHANGES.contains(&word.keyword) => change(parser, of, Some(with)),
                _ => query(parser, of, Some(with)),
            }
        }
        "INSERT" | "SINK" | "UPDATE" | "DELETE" => change(parser, of, None),
        "EXPLAIN" if explained => refused("EXPLAIN cannot be explained"),
        "EXPLAIN" => {
            parser.next_token();
            let analyze = explain_options(parser)?;
            Ok(Parsed::Explain { analyze, statement: Box::new(one_statement(text, parser, of, true)?) })
        }
        "CREATE" | "DROP" | "SHOW" if explained => refused(format!("{head} cannot be explained")),
        "CREATE" => {
            parser.next_token();
            create(text, parser, of)
        }
        "DROP" => {
            parser.next_token();
            drop_statement(parser, of)
        }
        "SHOW" => {
            parser.next_token();
            show(parser)
        }
        "REFRESH" | "OPTIMIZE" | "ANALYZE" | "VACUUM" | "TRUNCATE" if !explained => {
            parser.next_token();
            table_statements::keep_up(parser, &head)
        }
        "ALTER" if !explained => {
            parser.next_token();
            alter::alter(parser, of)
        }
        "COPY" if !explained => {
            parser.next_token();
            copy::copy(parser, of)
        }
        "COMMENT" if !explained => {
            parser.next_token();
            alter::comment(parser)
        }
        "ALTER" | "TRUNCATE" | "COPY" | "COMMENT" | "SET" | "START" | "BEGIN" | "COMMIT" | "ROLLBACK" | "ANALYZE"
        | "REFRESH" | "OPTIMIZE" | "VACUUM" => refused(format!("the statement {head} is not served")),
        _ => {
            unserved::check_statement(parser)?;
            const EXPECTED: &str = "a statement (SELECT, INSERT, SINK, UPDATE, DELETE, CREATE, DROP, SHOW, EXPLAIN)";
            Ok(parser.expected(EXPECTED, first)?)
        }
    }
}

/// Parses the options of `EXPLAIN`: words, or a list in parentheses as in PostgreSQL. Returns
/// whether the statement is run and measured. The other options change nothing: all that is known
/// is shown.
fn explain_options(parser: &mut Parser<'_>) -> Result<bool, Refusal> {
    let is_query = |parser: &Parser<'_>| match &parser.peek_nth_token_ref(1).token {
        Token::Word(word) => matches!(word.keyword, Keyword::SELECT | Keyword::VALUES | Keyword::WITH | Keyword::TABLE),
        _ => true,
    };
    if parser.peek_token_ref().token != Token::LParen || is_query(parser) {
        let analyze = word(parser, "ANALYZE");
        if !analyze && word(parser, "PLAN") {
            parser.expect_keyword(Keyword::FOR)?;
        }
        word(parser, "VERBOSE");
        return Ok(analyze);
    }
    parser.expect_token(&Token::LParen)?;
    let mut analyze = false;
    loop {
        let name = parser.parse_identifier()?.value.to_ascii_lowercase();
        let value = match &parser.peek_token_ref().token {
            Token::Comma | Token::RParen => "on".to_owned(),
            _ => parser.next_token().to_string().to_ascii_lowercase(),
        };
        if name == "format" {
            if value != "text" {
                return refused_as("0A000", format!("EXPLAIN in the format {value} is not served"));
            }
        } else {
            let is_on = is_on(&name, &value)?;
            match name.as_str() {
                "analyze" => analyze = is_on,
                "verbose" | "costs" | "settings" | "buffers" | "wal" | "timing" | "summary" => {}
                _ => return refused_as("42601", format!("unrecognized EXPLAIN option \"{name}\"")),
            }
        }
        if !parser.consume_token(&Token::Comma) {
            parser.expect_token(&Token::RParen)?;
            return Ok(analyze);
        }
    }
}

/// The value of an option that is on or off.
fn is_on(name: &str, value: &str) -> Result<bool, Refusal> {
    match value {
        "on" | "true" | "1" => Ok(true),
        "off" | "false" | "0" => Ok(false),
        _ => refused_as("22023", format!("{name} requires a Boolean value, not {value}")),
    }
}

/// The first words of changes that may follow `WITH`.
const CHANGES: [Keyword; 3] = [Keyword::INSERT, Keyword::UPDATE, Keyword::DELETE];

/// The queries of a `WITH` before a statement.
fn with(parser: &mut Parser<'_>) -> Result<With, ParserError> {
    parser.expect_keyword(Keyword::WITH)?;
    let with_token = parser.get_current_token().clone().into();
    let recursive = parser.parse_keyword(Keyword::RECURSIVE);
    Ok(With { with_token, recursive, cte_tables: parser.parse_comma_separated(Parser::parse_cte)? })
}

fn query(parser: &mut Parser<'_>, of: Dialect, with: Option<With>) -> Result<Parsed, Refusal> {
    if with.is_some() && parser.peek_keyword(Keyword::WITH) {
        return Ok(parser.expected("a query or a change", parser.peek_token())?);
    }
    let mut query = parser.parse_query()?;
    query.with = with.or(query.with);
    rewrite::rewrite(&mut query, of)?;
    Ok(Parsed::Query(query))
}

/// A statement that changes rows, and may read the queries of a `WITH` before it.
fn change(parser: &mut Parser<'_>, of: Dialect, mut with: Option<With>) -> Result<Parsed, Refusal> {
    if let Some(with) = &mut with {
        served::check_with(with)?;
        rewrite::rewrite(with, of)?;
    }
    match parser.peek_token_ref().token {
        Token::Word(Word { keyword: Keyword::UPDATE, .. }) => changes::update(parser, of, with),
        Token::Word(Word { keyword: Keyword::DELETE, .. }) => changes::delete(parser, of, with),
        _ => changes::insert(parser, of, with),
    }
}

pub(super) fn parse_name(parser: &mut Parser<'_>) -> Result<String, Refusal> {
    Ok(places::marked_name(&parser.parse_object_name(false)?)?)
}

pub(super) fn if_exists(parser: &mut Parser<'_>) -> bool {
    parser.parse_keywords(&[Keyword::IF, Keyword::EXISTS])
}

pub(super) fn if_not_exists(parser: &mut Parser<'_>) -> bool {
    parser.parse_keywords(&[Keyword::IF, Keyword::NOT, Keyword::EXISTS])
}

fn create(text: &str, parser: &mut Parser<'_>, of: Dialect) -> Result<Parsed, Refusal> {
    let or_replace = parser.parse_keywords(&[Keyword::OR, Keyword::REPLACE]);
    let external = word(parser, "EXTERNAL");
    if word(parser, "MAPPING") {
        return create_mapping(parser, or_replace);
    }
    if !external && parser.parse_keyword(Keyword::VIEW) {
        return create_view(text, parser, of, or_replace);
    }
    let unique = !external && !or_replace && parser.parse_keyword(Keyword::UNIQUE);
    if !external && !or_replace && parser.parse_keyword(Keyword::INDEX) {
        word(parser, "CONCURRENTLY");
        return create_index(parser, unique);
    }
    if word(parser, "TEMPORARY") || word(parser, "TEMP") {
        return refused_as("0A000", "temporary tables are not served");
    }
    // Every table is in memory.
    if !external && !or_replace && (word(parser, "UNLOGGED"), parser.parse_keyword(Keyword::TABLE)).1 {
        return tables::create_table(parser, of);
    }
    if !external && !or_replace && parser.parse_keyword(Keyword::SCHEMA) {
        return alter::create_schema(parser);
    }
    unserved::check_object("CREATE", parser)?;
    Ok(parser.expected("TABLE, MAPPING, VIEW or INDEX", parser.peek_token())?)
}

fn create_mapping(parser: &mut Parser<'_>, or_replace: bool) -> Result<Parsed, Refusal> {
    let if_not_exists = if_not_exists(parser);
    if or_replace && if_not_exists {
        return refused("OR REPLACE and IF NOT EXISTS exclude each other");
    }
    let name = parse_name(parser)?;
    let external_name = external_name(parser)?;
    let mut columns = Vec::<ColumnDeclaration>::new();
    if parser.consume_token(&Token::LParen) {
        let mut names = HashSet::new();
        loop {
            let column = column(parser)?;
            if !names.insert(column.name.clone()) {
                return refused(format!("Column '{}' specified more than once", column.name));
            }
            columns.push(column);
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.expect_token(&Token::RParen)?;
    }
    if word(parser, "DATA") {
        return refused("data connections are not served: a mapping is of a map, TYPE IMap");
    }
    expect_word(parser, "TYPE")?;
    let connector = parser.parse_identifier()?.value;
    if word(parser, "OBJECT") {
        word(parser, "TYPE");
        return refused("OBJECT TYPE belongs to connectors that are not served");
    }
    let options = options(parser)?;
    Ok(Parsed::CreateMapping(CreateMapping {
        name,
        or_replace,
        if_not_exists,
        external_name,
        columns,
        connector,
        options,
    }))
}

fn column(parser: &mut Parser<'_>) -> Result<ColumnDeclaration, Refusal> {
    let name = parser.parse_identifier()?.value;
    let at = parser.peek_token();
    let mut data_type = parser.parse_data_type()?;
    if parser.parse_keyword(Keyword::ARRAY) {
        data_type = DataType::Array(ArrayElemTypeDef::SquareBracket(Box::new(data_type), None));
    }
    let Some(field_type) = sql_type(&data_type) else {
        return Err(tokens::at(&format!("there is no type {data_type}, of column '{name}',"), at.span.start).into());
    };
    Ok(ColumnDeclaration { name, field_type, external_name: external_name(parser)? })
}

fn external_name(parser: &mut Parser<'_>) -> Result<Option<String>, Refusal> {
    if !word(parser, "EXTERNAL") {
        return Ok(None);
    }
    expect_word(parser, "NAME")?;
    let name = parser.parse_object_name(false)?;
    let parts: Vec<&str> = name.0.iter().filter_map(|part| Some(part.as_ident()?.value.as_str())).collect();
    Ok(Some(parts.join(".")))
}

fn options(parser: &mut Parser<'_>) -> Result<Vec<(String, String)>, Refusal> {
    let mut options = Vec::<(String, String)>::new();
    if !word(parser, "OPTIONS") {
        return Ok(options);
    }
    parser.expect_token(&Token::LParen)?;
    while parser.peek_token_ref().token != Token::RParen {
        let key = parser.parse_literal_string()?;
        parser.expect_token(&Token::Eq)?;
        let value = parser.parse_literal_string()?;
        if options.iter().any(|(other, _)| *other == key) {
            return refused(format!("Option '{key}' specified more than once"));
        }
        options.push((key, value));
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen)?;
    Ok(options)
}

fn create_view(text: &str, parser: &mut Parser<'_>, of: Dialect, or_replace: bool) -> Result<Parsed, Refusal> {
    let if_not_exists = if_not_exists(parser);
    let name = parse_name(parser)?;
    let columns = match parser.peek_token_ref().token {
        Token::LParen => parser.parse_parenthesized_column_list(IsOptional::Mandatory, false)?,
        _ => Vec::new(),
    };
    parser.expect_keyword(Keyword::AS)?;
    let start = tokens::offset(text, parser.peek_token_ref().span.start);
    let mut query = parser.parse_query()?;
    let next = parser.peek_token_ref();
    let end = match next.token {
        Token::EOF => text.len(),
        _ => tokens::offset(text, next.span.start),
    };
    let mut query_text = text.get(start..end).unwrap_or_default().trim().to_owned();
    if !columns.is_empty() {
        let columns: Vec<String> = columns.iter().map(|name| Ident::with_quote('"', &name.value).to_string()).collect();
        let renamed = |inner: &str| format!("SELECT * FROM ({inner}\n) AS renamed ({})", columns.join(", "));
        query_text = renamed(&query_text);
        let outer = Parser::new(grammar(of)).try_with_sql(&renamed("SELECT 1"))?.parse_query()?;
        let inner = std::mem::replace(&mut query, outer);
        if let SetExpr::Select(select) = query.body.as_mut()
            && let [TableWithJoins { relation: TableFactor::Derived { subquery, .. }, .. }] = select.from.as_mut_slice()
        {
            *subquery = inner;
        }
    }
    rewrite::rewrite(&mut query, of)?;
    if rewrite::has_parameters(&query) {
        return refused("a view cannot have parameters");
    }
    Ok(Parsed::CreateView { name, or_replace, if_not_exists, query_text, query })
}

/// The types with an operator class of patterns.
const OF_PATTERNS: [&str; 3] = ["bpchar", "text", "varchar"];
/// The other types with an operator class of the order that an index has.
const OF_CLASSES: [&str; 15] = [
    "bool",
    "bytea",
    "date",
    "float4",
    "float8",
    "int2",
    "int4",
    "int8",
    "interval",
    "numeric",
    "time",
    "timestamp",
    "timestamptz",
    "timetz",
    "uuid",
];

fn create_index(parser: &mut Parser<'_>, unique: bool) -> Result<Parsed, Refusal> {
    let if_not_exists = if_not_exists(parser);
    let name = match parser.peek_keyword(Keyword::ON) {
        true => None,
        false => Some(parse_name(parser)?),
    };
    parser.expect_keyword(Keyword::ON)?;
    word(parser, "ONLY");
    let map = parse_name(parser)?;
    let mut kind = match word(parser, "USING") {
        true => method(parser)?,
        false => IndexType::Sorted,
    };
    parser.expect_token(&Token::LParen)?;
    let mut attributes = Vec::<String>::new();
    loop {
        let attribute = parser.parse_object_name(false)?;
        let parts: Vec<&str> = attribute.0.iter().filter_map(|part| Some(part.as_ident()?.value.as_str())).collect();
        let attribute = parts.join(".");
        if attributes.contains(&attribute) {
            return refused(format!("Index attribute '{attribute}' specified more than once"));
        }
        attributes.push(attribute);
        if parser.parse_keyword(Keyword::COLLATE) {
            tables::check_collation(parser)?;
        }
        operator_class(parser)?;
        // Every index can be read in both directions.
        while ["ASC", "DESC", "NULLS", "FIRST", "LAST"].into_iter().any(|order| word(parser, order)) {}
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen)?;
    if word(parser, "TYPE") {
        kind = if word(parser, "SORTED") {
            IndexType::Sorted
        } else if word(parser, "HASH") {
            IndexType::Hash
        } else if word(parser, "BITMAP") {
            IndexType::Bitmap
        } else {
            return Ok(parser.expected("SORTED, HASH or BITMAP", parser.peek_token())?);
        };
    }
    let options = options(parser)?;
    if parser.peek_keyword(Keyword::WITH) {
        tables::options(parser)?;
    }
    if parser.peek_keyword(Keyword::WHERE) {
        return refused_as("0A000", "an index is of all rows: WHERE is not served");
    }
    Ok(Parsed::CreateIndex(CreateIndex { name, map, kind, attributes, unique, if_not_exists, options }))
}

/// Parses the operator class of an indexed column. Texts are ordered by their code points, as those
/// of patterns require.
fn operator_class(parser: &mut Parser<'_>) -> Result<(), Refusal> {
    let Token::Word(word) = &parser.peek_token_ref().token else { return Ok(()) };
    let name = word.value.to_ascii_lowercase();
    let Some(of) = name.strip_suffix("_ops") else { return Ok(()) };
    let of = of.strip_suffix("_pattern").filter(|of| OF_PATTERNS.contains(of)).unwrap_or(of);
    if !OF_PATTERNS.contains(&of) && !OF_CLASSES.contains(&of) {
        return refused_as("0A000", format!("the operator class {name} is not served"));
    }
    parser.next_token();
    Ok(())
}

/// PostgreSQL's index methods: a method for equality only is a hash index, any other is sorted.
fn method(parser: &mut Parser<'_>) -> Result<IndexType, Refusal> {
    let method = parser.parse_identifier()?.value.to_ascii_lowercase();
    match method.as_str() {
        "btree" | "brin" => Ok(IndexType::Sorted),
        "hash" => Ok(IndexType::Hash),
        "bitmap" => Ok(IndexType::Bitmap),
        other => refused_as("42704", format!("there is no index method {other:?}, expected btree, hash or bitmap")),
    }
}

fn drop_statement(parser: &mut Parser<'_>, of: Dialect) -> Result<Parsed, Refusal> {
    word(parser, "EXTERNAL");
    if word(parser, "MAPPING") {
        let if_exists = if_exists(parser);
        return Ok(Parsed::DropMapping { name: parse_name(parser)?, if_exists });
    }
    if parser.parse_keyword(Keyword::VIEW) {
        let if_exists = if_exists(parser);
        let names = table_statements::names(parser)?;
        let cascade = table_statements::cascade(parser);
        return Ok(Parsed::DropView { names, if_exists, cascade });
    }
    if parser.parse_keyword(Keyword::INDEX) {
        word(parser, "CONCURRENTLY");
        let if_exists = if_exists(parser);
        let name = parse_name(parser)?;
        // In PostgreSQL, index names need no table.
        let map = match parser.parse_keyword(Keyword::ON) {
            true => Some(parse_name(parser)?),
            false if of == Dialect::Hazelcast => return Ok(parser.expected("ON", parser.peek_token())?),
            false => None,
        };
        table_statements::cascade(parser);
        return Ok(Parsed::DropIndex { name, map, if_exists });
    }
    if parser.parse_keyword(Keyword::TABLE) {
        return table_statements::drop_table(parser);
    }
    if parser.parse_keyword(Keyword::SCHEMA) {
        return alter::drop_schema(parser);
    }
    unserved::check_object("DROP", parser)?;
    Ok(parser.expected("TABLE, MAPPING, VIEW or INDEX", parser.peek_token())?)
}

fn show(parser: &mut Parser<'_>) -> Result<Parsed, Refusal> {
    word(parser, "EXTERNAL");
    let what = if word(parser, "MAPPINGS") {
        ShowWhat::Mappings
    } else if word(parser, "VIEWS") {
        ShowWhat::Views
    } else if word(parser, "JOBS") {
        ShowWhat::Jobs
    } else if word(parser, "DATA") {
        expect_word(parser, "CONNECTIONS")?;
        ShowWhat::DataConnections
    } else if word(parser, "RESOURCES") {
        parser.expect_keyword(Keyword::FOR)?;
        ShowWhat::Resources(parse_name(parser)?)
    } else if word(parser, "INDEXES") {
        ShowWhat::Indexes(match parser.parse_keyword(Keyword::ON) {
            true => Some(parse_name(parser)?),
            false => None,
        })
    } else {
        let expected = "MAPPINGS, VIEWS, JOBS, INDEXES, DATA CONNECTIONS or RESOURCES";
        return Ok(parser.expected(expected, parser.peek_token())?);
    };
    Ok(Parsed::Show(what))
}
