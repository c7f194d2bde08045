//! Parses the JSON functions of the SQL standard, which have clauses among their arguments, into
//! plain calls.
//!
//! ```text
//! JSON_VALUE(j, p RETURNING t x ON EMPTY y ON ERROR)
//!     json_value(j, p, 't', 'x', 'y' [, default on empty [, default on error]])
//! JSON_QUERY(j, p w WRAPPER x ON EMPTY y ON ERROR)
//!     json_query(j, p, 'w', 'x', 'y')
//! JSON_OBJECT(KEY k VALUE v, k : v NULL ON NULL)
//!     json_object('NULL', k, v, k, v)
//! JSON_ARRAY(v, v ABSENT ON NULL)
//!     json_array('ABSENT', v, v)
//! JSON_ARRAYAGG(v ORDER BY o ABSENT ON NULL)
//!     json_array_from('ABSENT', array_agg(json_text(v) ORDER BY o))
//! JSON_OBJECTAGG(KEY k VALUE v NULL ON NULL)
//!     json_object_from('NULL', array_agg(json_member('NULL', k, v)))
//! ```

use sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArgumentList, FunctionArguments,
    Ident, ObjectName, OrderByExpr, Value,
};
use sqlparser::dialect::{Dialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::types::sql_type_name;

/// Parses a call of a JSON function, if one follows.
pub(super) fn prefix(parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    let Token::Word(word) = &parser.peek_token_ref().token else { return None };
    if word.quote_style.is_some() || parser.peek_nth_token_ref(1).token != Token::LParen {
        return None;
    }
    let take: fn(&mut Parser<'_>) -> Result<Expr, ParserError> = match word.value.to_ascii_uppercase().as_str() {
        "JSON_VALUE" => json_value,
        "JSON_QUERY" => json_query,
        "JSON_OBJECT" => |parser| json_object(parser, false),
        "JSON_ARRAY" => |parser| json_array(parser, false),
        "JSON_OBJECTAGG" => |parser| json_object(parser, true),
        "JSON_ARRAYAGG" => |parser| json_array(parser, true),
        _ => return None,
    };
    parser.next_token();
    parser.next_token();
    Some(take(parser))
}

/// The actions for an empty result and for an error.
struct Otherwise {
    what: String,
    default: Option<Expr>,
}

impl Otherwise {
    fn null() -> Self {
        Otherwise { what: "NULL".to_owned(), default: None }
    }
}

fn json_value(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    let document = parser.parse_expr()?;
    parser.expect_token(&Token::Comma)?;
    let path = parser.parse_expr()?;
    let returning = match parser.parse_keyword(Keyword::RETURNING) {
        true => {
            let at = parser.peek_token();
            let data_type = parser.parse_data_type()?;
            match sql_type_name(&data_type) {
                Some(name) => name,
                None => return parser.expected("a type for RETURNING", at),
            }
        }
        false => "VARCHAR".to_owned(),
    };
    let (on_empty, on_error) = otherwise(parser, |parser| {
        if parser.parse_keyword(Keyword::DEFAULT) {
            return Ok(Some(Otherwise { what: "DEFAULT".to_owned(), default: Some(parser.parse_expr()?) }));
        }
        Ok(null_or_error(parser))
    })?;
    parser.expect_token(&Token::RParen)?;
    let mut arguments = vec![document, path, text(&returning), text(&on_empty.what), text(&on_error.what)];
    if on_empty.default.is_some() || on_error.default.is_some() {
        arguments.push(on_empty.default.unwrap_or_else(null));
        arguments.push(on_error.default.unwrap_or_else(null));
    }
    Ok(call("json_value", arguments, Vec::new(), None))
}

fn json_query(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    let document = parser.parse_expr()?;
    parser.expect_token(&Token::Comma)?;
    let path = parser.parse_expr()?;
    let mut wrapper = "WITHOUT";
    if parser.parse_keyword(Keyword::WITHOUT) {
        word(parser, "ARRAY");
        expect_word(parser, "WRAPPER")?;
    } else if parser.parse_keyword(Keyword::WITH) {
        wrapper = if word(parser, "CONDITIONAL") {
            "CONDITIONAL"
        } else {
            word(parser, "UNCONDITIONAL");
            "UNCONDITIONAL"
        };
        word(parser, "ARRAY");
        expect_word(parser, "WRAPPER")?;
    }
    let (on_empty, on_error) = otherwise(parser, |parser| {
        if word(parser, "EMPTY") {
            let what = match parser.parse_keyword(Keyword::ARRAY) {
                true => "[]",
                false => {
                    expect_word(parser, "OBJECT")?;
                    "{}"
                }
            };
            return Ok(Some(Otherwise { what: what.to_owned(), default: None }));
        }
        Ok(null_or_error(parser))
    })?;
    parser.expect_token(&Token::RParen)?;
    let arguments = vec![document, path, text(wrapper), text(&on_empty.what), text(&on_error.what)];
    Ok(call("json_query", arguments, Vec::new(), None))
}

fn null_or_error(parser: &mut Parser<'_>) -> Option<Otherwise> {
    if parser.parse_keyword(Keyword::NULL) {
        Some(Otherwise::null())
    } else if word(parser, "ERROR") {
        Some(Otherwise { what: "ERROR".to_owned(), default: None })
    } else {
        None
    }
}

/// `.. ON EMPTY .. ON ERROR`, in either order, each at most once.
fn otherwise(
    parser: &mut Parser<'_>,
    mut behaviour: impl FnMut(&mut Parser<'_>) -> Result<Option<Otherwise>, ParserError>,
) -> Result<(Otherwise, Otherwise), ParserError> {
    let (mut on_empty, mut on_error) = (None, None);
    while let Some(what) = behaviour(parser)? {
        parser.expect_keyword(Keyword::ON)?;
        let at = parser.peek_token();
        if on_empty.is_none() && word(parser, "EMPTY") {
            on_empty = Some(what);
        } else if on_error.is_none() && word(parser, "ERROR") {
            on_error = Some(what);
        } else {
            return parser.expected("EMPTY or ERROR, each at most once", at);
        }
    }
    Ok((on_empty.unwrap_or_else(Otherwise::null), on_error.unwrap_or_else(Otherwise::null)))
}

fn json_object(parser: &mut Parser<'_>, aggregate: bool) -> Result<Expr, ParserError> {
    let mut items = Vec::new();
    let mut on_null = None;
    if parser.peek_token_ref().token != Token::RParen {
        on_null = null_clause(parser)?;
    }
    if on_null.is_none() && parser.peek_token_ref().token != Token::RParen {
        loop {
            // `KEY` may also be a column.
            let next = &parser.peek_nth_token_ref(1).token;
            let is_marker = !matches!(next, Token::Colon | Token::Period | Token::Comma)
                && !matches!(next, Token::Word(next) if next.value.eq_ignore_ascii_case("VALUE"));
            let marked = is_marker && word(parser, "KEY");
            items.push(key(parser)?);
            if marked || parser.peek_token_ref().token != Token::Colon {
                expect_word(parser, "VALUE")?;
            } else {
                parser.expect_token(&Token::Colon)?;
            }
            items.push(parser.parse_expr()?);
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        on_null = null_clause(parser)?;
    }
    parser.expect_token(&Token::RParen)?;
    let on_null = on_null.unwrap_or("NULL");
    items.insert(0, text(on_null));
    if !aggregate {
        return Ok(call("json_object", items, Vec::new(), None));
    }
    let members = call("array_agg", vec![call("json_member", items, Vec::new(), None)], Vec::new(), filter(parser)?);
    Ok(call("json_object_from", vec![text(on_null), members], Vec::new(), None))
}

/// A key before a colon: the colon is no operator here.
fn key(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.parse_subexpr(super::HazelcastDialect.prec_value(Precedence::Colon))
}

fn json_array(parser: &mut Parser<'_>, aggregate: bool) -> Result<Expr, ParserError> {
    let mut items = Vec::new();
    let mut on_null = None;
    let mut order = Vec::new();
    if parser.peek_token_ref().token != Token::RParen {
        on_null = null_clause(parser)?;
    }
    if on_null.is_none() && parser.peek_token_ref().token != Token::RParen {
        items = parser.parse_comma_separated(Parser::parse_expr)?;
        if parser.parse_keywords(&[Keyword::ORDER, Keyword::BY]) {
            order = parser.parse_comma_separated(Parser::parse_order_by_expr)?;
        }
        on_null = null_clause(parser)?;
    }
    parser.expect_token(&Token::RParen)?;
    let on_null = text(on_null.unwrap_or("ABSENT"));
    if !aggregate {
        items.insert(0, on_null);
        return Ok(call("json_array", items, Vec::new(), None));
    }
    let items = call("array_agg", vec![call("json_text", items, Vec::new(), None)], order, filter(parser)?);
    Ok(call("json_array_from", vec![on_null, items], Vec::new(), None))
}

/// `NULL ON NULL` or `ABSENT ON NULL`; `NULL` alone is a value.
fn null_clause(parser: &mut Parser<'_>) -> Result<Option<&'static str>, ParserError> {
    if parser.parse_keywords(&[Keyword::NULL, Keyword::ON, Keyword::NULL]) {
        return Ok(Some("NULL"));
    }
    let on = matches!(&parser.peek_nth_token_ref(1).token, Token::Word(next) if next.keyword == Keyword::ON);
    if on && word(parser, "ABSENT") {
        parser.expect_keyword(Keyword::ON)?;
        parser.expect_keyword(Keyword::NULL)?;
        return Ok(Some("ABSENT"));
    }
    Ok(None)
}

fn filter(parser: &mut Parser<'_>) -> Result<Option<Box<Expr>>, ParserError> {
    let opens = parser.peek_nth_token_ref(1).token == Token::LParen;
    if !opens || !parser.parse_keyword(Keyword::FILTER) {
        return Ok(None);
    }
    parser.expect_token(&Token::LParen)?;
    parser.expect_keyword(Keyword::WHERE)?;
    let condition = parser.parse_expr()?;
    parser.expect_token(&Token::RParen)?;
    Ok(Some(Box::new(condition)))
}

/// Consumes a word that is no keyword of the parser.
pub(super) fn word(parser: &mut Parser<'_>, expected: &str) -> bool {
    let is_it = matches!(&parser.peek_token_ref().token,
        Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(expected));
    if is_it {
        parser.next_token();
    }
    is_it
}

pub(super) fn expect_word(parser: &mut Parser<'_>, expected: &str) -> Result<(), ParserError> {
    match word(parser, expected) {
        true => Ok(()),
        false => parser.expected(expected, parser.peek_token()),
    }
}

/// A literal.
pub(super) fn text(text: &str) -> Expr {
    Expr::value(Value::SingleQuotedString(text.to_owned()))
}

fn null() -> Expr {
    Expr::value(Value::Null)
}

/// A call of a function by its name.
pub fn call(name: &str, arguments: Vec<Expr>, order: Vec<OrderByExpr>, filter: Option<Box<Expr>>) -> Expr {
    let clauses = match order.is_empty() {
        true => Vec::new(),
        false => vec![FunctionArgumentClause::OrderBy(order)],
    };
    let args = arguments.into_iter().map(|argument| FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))).collect();
    Expr::Function(Function {
        name: ObjectName::from(Ident::new(name)),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses }),
        filter,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}
