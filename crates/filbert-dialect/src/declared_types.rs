//! The grammar of column types in PostgreSQL and CrateDB.

use filbert_data::FieldType;
use filbert_grid::query::Dialect;
use sqlparser::ast::{ArrayElemTypeDef, CharacterLength, DataType};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::grammar::grammar;
use super::json::word;
use super::statements::{Refusal, refused_as};
use super::tokens;
use super::types::sql_type;
use crate::declared::{DeclaredType, ObjectPolicy};

/// The stored number of fractional digits of a second.
const DIGITS_MAX: u64 = 6;
/// The maximum depth of nested types.
const DEPTH_MAX: usize = 16;

/// The declaration of an identity column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counting {
    /// Whether statements may not set the column: `ALWAYS`.
    pub always: bool,
    /// `START`.
    pub start: Option<i64>,
    /// `INCREMENT`.
    pub step: i64,
    /// `MINVALUE`.
    pub least: Option<i64>,
    /// `MAXVALUE`.
    pub most: Option<i64>,
    /// `CYCLE`.
    pub cycles: bool,
    /// Whether the type is `serial`: the column has a default and no identity.
    pub serial: bool,
}

impl Counting {
    /// Starts at 1, in steps of 1.
    pub fn plain(always: bool) -> Counting {
        Counting { always, start: None, step: 1, least: None, most: None, cycles: false, serial: false }
    }
}

/// The type of a column, and its identity if it has one.
pub(super) fn column_type(
    parser: &mut Parser<'_>,
    column: &str,
    dialect: Dialect,
) -> Result<(DeclaredType, Option<Counting>), Refusal> {
    let serial = match &parser.peek_token_ref().token {
        Token::Word(word) if word.quote_style.is_none() => match word.value.to_ascii_lowercase().as_str() {
            "smallserial" | "serial2" => Some(FieldType::SmallInt),
            "serial" | "serial4" => Some(FieldType::Integer),
            "bigserial" | "serial8" => Some(FieldType::BigInt),
            _ => None,
        },
        _ => None,
    };
    if let Some(field_type) = serial {
        parser.next_token();
        return Ok((DeclaredType::Plain(field_type), Some(Counting { serial: true, ..Counting::plain(false) })));
    }
    Ok((declared_type(parser, column, dialect, 0)?, None))
}

/// Parses `[(START [WITH] n INCREMENT [BY] n ..)]`, after `AS IDENTITY`.
pub(super) fn identity(parser: &mut Parser<'_>, always: bool) -> Result<Counting, Refusal> {
    let mut counting = Counting::plain(always);
    if !parser.consume_token(&Token::LParen) {
        return Ok(counting);
    }
    sequence_options(parser, &mut counting)?;
    parser.expect_token(&Token::RParen)?;
    Ok(counting)
}

/// The options of a sequence, in any order.
fn sequence_options(parser: &mut Parser<'_>, counting: &mut Counting) -> Result<(), Refusal> {
    loop {
        if word(parser, "START") {
            word(parser, "WITH");
            counting.start = Some(whole(parser)?);
        } else if word(parser, "INCREMENT") {
            word(parser, "BY");
            counting.step = whole(parser)?;
        } else if word(parser, "MINVALUE") {
            counting.least = Some(whole(parser)?);
        } else if word(parser, "MAXVALUE") {
            counting.most = Some(whole(parser)?);
        } else if word(parser, "CACHE") {
            // The option has no effect: values are not cached, and clients cannot observe the
            // difference.
            let cached = whole(parser)?;
            if cached < 1 {
                return refused_as("22023", format!("CACHE ({cached}) must be greater than zero"));
            }
        } else if word(parser, "NO") {
            if word(parser, "MINVALUE") {
                counting.least = None;
            } else if word(parser, "MAXVALUE") {
                counting.most = None;
            } else if word(parser, "CYCLE") {
                counting.cycles = false;
            } else {
                return Ok(parser.expected("MINVALUE, MAXVALUE or CYCLE", parser.peek_token())?);
            }
        } else if word(parser, "CYCLE") {
            counting.cycles = true;
        } else if word(parser, "SEQUENCE") || word(parser, "OWNED") || word(parser, "RESTART") {
            return refused_as(
                "0A000",
                "expected START, INCREMENT, MINVALUE, MAXVALUE, CACHE or CYCLE of an identity column",
            );
        } else {
            return Ok(());
        }
    }
}

fn whole(parser: &mut Parser<'_>) -> Result<i64, Refusal> {
    let negative = parser.consume_token(&Token::Minus);
    let number = i128::from(parser.parse_literal_uint()?);
    match i64::try_from(if negative { -number } else { number }) {
        Ok(number) => Ok(number),
        Err(_) => refused_as("22003", format!("value {number} is out of range for type bigint")),
    }
}

/// A type.
pub(super) fn declared_type(
    parser: &mut Parser<'_>,
    column: &str,
    dialect: Dialect,
    depth: usize,
) -> Result<DeclaredType, Refusal> {
    if depth > DEPTH_MAX {
        return refused_as("54001", format!("the type of column {column:?} is nested more than {DEPTH_MAX} deep"));
    }
    let at = parser.peek_token();
    let mut declared = match own(parser, column, dialect, depth)? {
        Some(declared) => declared,
        None => {
            let data_type = parser.parse_data_type()?;
            check_digits(&data_type, column)?;
            match standard(&data_type, dialect) {
                Some(declared) => declared,
                None => {
                    let text = format!("there is no type {data_type}, of column {column:?},");
                    return Err(Refusal::from(tokens::at(&text, at.span.start).with_sqlstate("42704")));
                }
            }
        }
    };
    while parser.consume_token(&Token::LBracket) {
        if parser.peek_token_ref().token != Token::RBracket {
            parser.parse_literal_uint()?;
        }
        parser.expect_token(&Token::RBracket)?;
        declared = DeclaredType::Array(Box::new(declared));
    }
    if parser.parse_keyword(Keyword::ARRAY) {
        declared = DeclaredType::Array(Box::new(declared));
    }
    if matches!(&declared, DeclaredType::Array(item) if matches!(item.field_type(), FieldType::Array(_))) {
        return refused_as(
            "0A000",
            format!("arrays in arrays are not served, of column {column:?}: keep them as JSON"),
        );
    }
    if matches!(&declared, DeclaredType::Array(item) if item.field_type() == FieldType::Binary) {
        return refused_as("0A000", format!("arrays of bytea are not served, of column {column:?}"));
    }
    Ok(declared)
}

/// Types that the parser does not know or interprets differently.
fn own(parser: &mut Parser<'_>, column: &str, dialect: Dialect, depth: usize) -> Result<Option<DeclaredType>, Refusal> {
    let Token::Word(name) = &parser.peek_token_ref().token else { return Ok(None) };
    if name.quote_style.is_some() {
        if name.value != "char" {
            return Ok(None);
        }
        parser.next_token();
        // One byte: a small number in CrateDB, a character in PostgreSQL.
        return Ok(Some(match dialect {
            Dialect::Postgres => DeclaredType::Varchar(Some(1)),
            _ => DeclaredType::Plain(FieldType::TinyInt),
        }));
    }
    let plain = |field_type| Some(DeclaredType::Plain(field_type));
    let found = match name.value.to_ascii_lowercase().as_str() {
        "byte" => plain(FieldType::TinyInt),
        "short" => plain(FieldType::SmallInt),
        "long" => plain(FieldType::BigInt),
        "string" => plain(FieldType::Varchar),
        "name" if dialect == Dialect::Postgres => Some(DeclaredType::Varchar(Some(63))),
        "timestamptz" if parser.peek_nth_token_ref(1).token != Token::LParen => plain(FieldType::TimestampTz),
        "ip" | "inet" | "cidr" => Some(DeclaredType::Ip),
        "geo_point" => Some(DeclaredType::GeoPoint),
        "geo_shape" => Some(DeclaredType::GeoShape),
        "jsonb" => Some(DeclaredType::Jsonb),
        "object" => {
            parser.next_token();
            return object(parser, dialect, depth).map(Some);
        }
        "array" if parser.peek_nth_token_ref(1).token == Token::LParen => {
            parser.next_token();
            parser.next_token();
            let item = declared_type(parser, column, dialect, depth + 1)?;
            parser.expect_token(&Token::RParen)?;
            return Ok(Some(DeclaredType::Array(Box::new(item))));
        }
        _ => None,
    };
    if found.is_some() {
        parser.next_token();
    }
    Ok(found)
}

/// `[(STRICT | DYNAMIC | IGNORED)] [AS (name type, ..)]`.
fn object(parser: &mut Parser<'_>, dialect: Dialect, depth: usize) -> Result<DeclaredType, Refusal> {
    let mut policy = ObjectPolicy::default();
    if parser.consume_token(&Token::LParen) {
        policy = if word(parser, "STRICT") {
            ObjectPolicy::Strict
        } else if word(parser, "IGNORED") {
            ObjectPolicy::Ignored
        } else if word(parser, "DYNAMIC") {
            ObjectPolicy::Dynamic
        } else {
            return Ok(parser.expected("STRICT, DYNAMIC or IGNORED", parser.peek_token())?);
        };
        parser.expect_token(&Token::RParen)?;
    }
    let mut members = Vec::new();
    let has_members = parser.peek_keyword(Keyword::AS) && parser.peek_nth_token_ref(1).token == Token::LParen;
    if has_members {
        parser.next_token();
        parser.next_token();
        loop {
            let name = parser.parse_identifier()?.value;
            let declared = declared_type(parser, &name, dialect, depth + 1)?;
            // Constraints of members are accepted, but not checked.
            while parser.parse_keyword(Keyword::NOT) || parser.parse_keyword(Keyword::NULL) {}
            members.push((name, declared));
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.expect_token(&Token::RParen)?;
    }
    Ok(DeclaredType::Object(policy, members))
}

/// Parses a type in CrateDB's notation.
pub fn parse_declared_type(text: &str) -> Option<DeclaredType> {
    let mut parser = Parser::new(grammar(Dialect::Crate)).try_with_sql(text).ok()?;
    declared_type(&mut parser, "member", Dialect::Crate, 0).ok()
}

fn length(length: Option<&CharacterLength>) -> Option<u32> {
    match length? {
        CharacterLength::IntegerLength { length, .. } => u32::try_from(*length).ok(),
        CharacterLength::Max => None,
    }
}

/// Fails if a type has more digits than its stored values, or fields that they cannot represent.
fn check_digits(data_type: &DataType, column: &str) -> Result<(), Refusal> {
    match data_type {
        DataType::Timestamp(Some(digits), _) | DataType::Time(Some(digits), _) if *digits > DIGITS_MAX => refused_as(
            "22023",
            format!("{data_type} of column {column:?} has more than {DIGITS_MAX} digits of a second"),
        ),
        DataType::Interval { fields, precision } if fields.is_some() || precision.is_some() => {
            refused_as("0A000", format!("{data_type} of column {column:?} is not served, expected INTERVAL"))
        }
        _ => Ok(()),
    }
}

fn standard(data_type: &DataType, dialect: Dialect) -> Option<DeclaredType> {
    Some(match data_type {
        DataType::Varchar(given) | DataType::CharacterVarying(given) | DataType::CharVarying(given) => {
            match length(given.as_ref()) {
                Some(length) => DeclaredType::Varchar(Some(length)),
                None if dialect == Dialect::Postgres => DeclaredType::Varchar(None),
                None => DeclaredType::Plain(FieldType::Varchar),
            }
        }
        DataType::Char(given) | DataType::Character(given) => {
            DeclaredType::Character(length(given.as_ref()).unwrap_or(1))
        }
        DataType::JSONB => DeclaredType::Jsonb,
        DataType::Bytea | DataType::Bytes(_) => DeclaredType::Plain(FieldType::Binary),
        DataType::Interval { .. } => DeclaredType::Plain(FieldType::Interval),
        DataType::Float(digits) => match digits {
            sqlparser::ast::ExactNumberInfo::Precision(..=24) => DeclaredType::Plain(FieldType::Real),
            sqlparser::ast::ExactNumberInfo::None => DeclaredType::Plain(FieldType::Double),
            _ => DeclaredType::Plain(FieldType::Double),
        },
        DataType::Timestamp(Some(digits), _) | DataType::Time(Some(digits), _) if *digits < DIGITS_MAX => {
            DeclaredType::Rounded(sql_type(data_type)?, u8::try_from(*digits).ok()?)
        }
        DataType::Array(ArrayElemTypeDef::SquareBracket(item, _)) => {
            DeclaredType::Array(Box::new(standard(item, dialect)?))
        }
        other => match sql_type(other)? {
            FieldType::Object => DeclaredType::Object(ObjectPolicy::default(), Vec::new()),
            field_type => DeclaredType::Plain(field_type),
        },
    })
}

/// The type of the member along keys, from the result of [`DeclaredType::members`]; `None` if it is
/// not declared.
pub fn member_of(object: &str, keys: &[&str]) -> Option<DeclaredType> {
    let mut declared = parse_declared_type(object)?;
    for key in keys {
        let DeclaredType::Object(_, members) = declared else { return None };
        declared = members.into_iter().find(|(name, _)| name == key)?.1;
    }
    Some(declared)
}
