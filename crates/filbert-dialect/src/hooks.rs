//! Expressions that our dialects parse themselves.
//!
//! Chains of `AND` and `OR` become balanced trees: a condition of ten thousand terms is fourteen
//! levels deep instead of ten thousand. `POSITION` has a `FROM`, `IS DISTINCT FROM` ends before
//! `AND`, and `COLLATE` may follow a cast.

use sqlparser::ast::{BinaryOperator, Expr, Interval, UnaryOperator};
use sqlparser::dialect::{Dialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::{json, work};

/// Parses an expression that starts with a keyword of the dialect, if one follows.
pub(super) fn prefix(dialect: &dyn Dialect, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    if parser.peek_keyword(Keyword::POSITION) && parser.peek_nth_token_ref(1).token == Token::LParen {
        return Some(position(dialect, parser));
    }
    json::prefix(parser)
}

/// Parses `INTERVAL(2) '1.2345 seconds'`. sqlparser parses the precision as part of a type, and
/// drops it.
pub(super) fn rounded_interval(parser: &mut Parser<'_>) -> Option<Expr> {
    if !parser.peek_keyword(Keyword::INTERVAL) {
        return None;
    }
    let [_, open, digits, close, text] = parser.peek_tokens();
    let (Token::LParen, Token::Number(digits, _), Token::RParen, Token::SingleQuotedString(_)) =
        (open, digits, close, text)
    else {
        return None;
    };
    let precision = digits.parse().ok()?;
    for _ in 0..4 {
        parser.next_token();
    }
    Some(Expr::Interval(Interval {
        value: Box::new(Expr::Value(parser.parse_value().ok()?)),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: Some(precision),
    }))
}

/// Parses an operand with a sign, which binds tighter than `^` in PostgreSQL: `-2 ^ 2` is 4.
pub(super) fn signed(dialect: &dyn Dialect, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    let op = match parser.peek_token_ref().token {
        Token::Minus => UnaryOperator::Minus,
        Token::Plus => UnaryOperator::Plus,
        _ => return None,
    };
    parser.next_token();
    let operand = parser.parse_subexpr(dialect.prec_value(Precedence::AtTz));
    Some(operand.map(|expr| Expr::UnaryOp { op, expr: Box::new(expr) }))
}

/// Parses an operand behind a prefix operator. In PostgreSQL arithmetic binds tighter than these
/// operators, and they bind like other operators: `~ 1 + 3` is `~ (1 + 3)`, `~ 1 | 2` is
/// `(~ 1) | 2`.
pub(super) fn operator(dialect: &dyn Dialect, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
    let op = match parser.peek_token_ref().token {
        Token::Tilde => UnaryOperator::BitwiseNot,
        Token::AtSign => UnaryOperator::PGAbs,
        Token::PGSquareRoot => UnaryOperator::PGSquareRoot,
        Token::PGCubeRoot => UnaryOperator::PGCubeRoot,
        _ => return None,
    };
    parser.next_token();
    let operand = parser.parse_subexpr(dialect.prec_value(Precedence::PlusMinus) - 1);
    Some(operand.map(|expr| Expr::UnaryOp { op, expr: Box::new(expr) }))
}

/// `POSITION(seek IN text [FROM start])`, or as a call with commas.
fn position(dialect: &dyn Dialect, parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    parser.expect_keyword(Keyword::POSITION)?;
    parser.expect_token(&Token::LParen)?;
    let seek = parser.parse_subexpr(dialect.prec_value(Precedence::Between))?;
    let mut arguments = if parser.consume_token(&Token::Comma) {
        vec![seek, parser.parse_expr()?]
    } else {
        parser.expect_keyword(Keyword::IN)?;
        vec![seek, parser.parse_expr()?]
    };
    if parser.parse_keyword(Keyword::FROM) || parser.consume_token(&Token::Comma) {
        arguments.push(parser.parse_expr()?);
    }
    parser.expect_token(&Token::RParen)?;
    Ok(json::call("position", arguments, Vec::new(), None))
}

/// Parses the rest of a chain of `AND` or `OR`, if one follows.
pub(super) fn infix(
    dialect: &dyn Dialect,
    parser: &mut Parser<'_>,
    first: &Expr,
    precedence: u8,
) -> Option<Result<Expr, ParserError>> {
    let (keyword, operator) = if parser.peek_keyword(Keyword::AND) {
        (Keyword::AND, BinaryOperator::And)
    } else if parser.peek_keyword(Keyword::OR) {
        (Keyword::OR, BinaryOperator::Or)
    } else {
        return distinct_from(dialect, parser, first)
            .or_else(|| symmetric_between(dialect, parser, first))
            .or_else(|| in_list(parser, first))
            .or_else(|| collated(parser, first));
    };
    let mut terms = vec![first.clone()];
    while parser.parse_keyword(keyword) {
        match parser.parse_subexpr(precedence) {
            Ok(term) => terms.push(term),
            Err(error) => return Some(Err(error)),
        }
    }
    balanced(terms, &operator).map(Ok)
}

/// The terms under one operator, in order.
pub(super) fn balanced(mut terms: Vec<Expr>, operator: &BinaryOperator) -> Option<Expr> {
    if terms.len() < 2 {
        return terms.pop();
    }
    // The left half is the larger one, so three terms nest as usual.
    let right = terms.split_off(terms.len().div_ceil(2));
    Some(Expr::BinaryOp {
        left: Box::new(balanced(terms, operator)?),
        op: operator.clone(),
        right: Box::new(balanced(right, operator)?),
    })
}

/// Parses `IS [NOT] DISTINCT FROM value`. sqlparser parses everything that follows as the value,
/// including `AND` and `OR`.
fn distinct_from(dialect: &dyn Dialect, parser: &mut Parser<'_>, first: &Expr) -> Option<Result<Expr, ParserError>> {
    if !parser.peek_keyword(Keyword::IS) {
        return None;
    }
    let is_word = |parser: &Parser<'_>, at: usize, keyword: Keyword| matches!(&parser.peek_nth_token_ref(at).token, Token::Word(word) if word.keyword == keyword);
    let negated = is_word(parser, 1, Keyword::NOT);
    let at = 1 + usize::from(negated);
    if !is_word(parser, at, Keyword::DISTINCT) || !is_word(parser, at + 1, Keyword::FROM) {
        return None;
    }
    for _ in 0..at + 2 {
        parser.next_token();
    }
    let left = Box::new(first.clone());
    Some(parser.parse_subexpr(dialect.prec_value(Precedence::Is)).map(|right| match negated {
        true => Expr::IsNotDistinctFrom(left, Box::new(right)),
        false => Expr::IsDistinctFrom(left, Box::new(right)),
    }))
}

/// Parses `COLLATE` behind a cast, `x::text COLLATE "C"`. sqlparser parses it behind a plain
/// operand only.
fn collated(parser: &mut Parser<'_>, first: &Expr) -> Option<Result<Expr, ParserError>> {
    if !parser.parse_keyword(Keyword::COLLATE) {
        return None;
    }
    let collation = parser.parse_object_name(false);
    Some(collation.map(|collation| Expr::Collate { expr: Box::new(first.clone()), collation }))
}

/// Parses `[NOT] IN ((SELECT ..), ..)`. sqlparser parses the first subquery as the whole list.
fn in_list(parser: &mut Parser<'_>, first: &Expr) -> Option<Result<Expr, ParserError>> {
    let negated = parser.peek_keyword(Keyword::NOT);
    let at = usize::from(negated);
    let is_word = |parser: &Parser<'_>, at: usize, keyword: Keyword| matches!(&parser.peek_nth_token_ref(at).token, Token::Word(word) if word.keyword == keyword);
    let is_open = |at: usize| parser.peek_nth_token_ref(at).token == Token::LParen;
    let begins = is_word(parser, at, Keyword::IN) && is_open(at + 1) && is_open(at + 2);
    let is_query = begins && (is_word(parser, at + 3, Keyword::SELECT) || is_word(parser, at + 3, Keyword::WITH));
    // A single one may also be a query in parentheses.
    if !is_query || !is_followed_by_comma(parser, parser.index() + at + 2) {
        return None;
    }
    for _ in 0..at + 2 {
        parser.next_token();
    }
    let list = parser.parse_comma_separated(Parser::parse_expr).and_then(|list| {
        parser.expect_token(&Token::RParen)?;
        Ok(list)
    });
    Some(list.map(|list| Expr::InList { expr: Box::new(first.clone()), list, negated }))
}

/// Whether a comma follows the parenthesis that closes the one at this index of the tokens. Tokens
/// are counted instead of parsed: parsing twice would double the time for each level of nesting.
fn is_followed_by_comma(parser: &Parser<'_>, open: usize) -> bool {
    let mut depth = 0_usize;
    let mut at = open;
    loop {
        match parser.token_at(at).token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::EOF => return false,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return parser.token_at(at).token == Token::Comma;
        }
    }
}

/// Parses `[NOT] BETWEEN SYMMETRIC low AND high`, with bounds in either order. `ASYMMETRIC` is the
/// default.
fn symmetric_between(
    dialect: &dyn Dialect,
    parser: &mut Parser<'_>,
    first: &Expr,
) -> Option<Result<Expr, ParserError>> {
    let negated = parser.peek_keyword(Keyword::NOT);
    let word = |parser: &Parser<'_>, at: usize| match &parser.peek_nth_token_ref(at + usize::from(negated)).token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_ascii_uppercase(),
        _ => String::new(),
    };
    let symmetry = word(parser, 1);
    if word(parser, 0) != "BETWEEN" || !matches!(symmetry.as_str(), "SYMMETRIC" | "ASYMMETRIC") {
        return None;
    }
    for _ in 0..2 + usize::from(negated) {
        parser.next_token();
    }
    let precedence = dialect.prec_value(Precedence::Between);
    let bounds = parser.parse_subexpr(precedence).and_then(|low| {
        parser.expect_keyword(Keyword::AND)?;
        Ok((low, parser.parse_subexpr(precedence)?))
    });
    let (low, high) = match bounds {
        Ok(bounds) => bounds,
        Err(error) => return Some(Err(error)),
    };
    if symmetry == "ASYMMETRIC" {
        let (expr, low, high) = (Box::new(first.clone()), Box::new(low), Box::new(high));
        return Some(Ok(Expr::Between { expr, negated, low, high }));
    }
    // Both forms have all operands.
    if [first, &low, &high].into_iter().any(|operand| work::copy(operand).is_err()) {
        return Some(Err(ParserError::RecursionLimitExceeded));
    }
    let between = |low: &Expr, high: &Expr| Expr::Between {
        expr: Box::new(first.clone()),
        negated,
        low: Box::new(low.clone()),
        high: Box::new(high.clone()),
    };
    let op = if negated { BinaryOperator::And } else { BinaryOperator::Or };
    let (left, right) = (Box::new(between(&low, &high)), Box::new(between(&high, &low)));
    Some(Ok(Expr::Nested(Box::new(Expr::BinaryOp { left, op, right }))))
}
