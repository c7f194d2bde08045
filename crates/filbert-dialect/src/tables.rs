//! `CREATE TABLE`: the combined grammar of PostgreSQL and CrateDB.

use filbert_grid::query::Dialect;
use sqlparser::ast::{Expr, Query};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::declared_types::{self, Counting};
use super::json::{expect_word, word};
use super::statements::{Refusal, if_not_exists, parse_name, refused, refused_as};
use super::{Parsed, names, rewrite};
use crate::declared::DeclaredType;

/// An expression of a declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    /// As written.
    pub text: String,
    /// As planned.
    pub expr: Expr,
}

/// The maximum number of columns of a table.
const COLUMNS_MAX: usize = 1_600;

/// `CREATE TABLE`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CreateTable {
    /// The table.
    pub name: String,
    /// Whether an existing table is no error.
    pub if_not_exists: bool,
    /// Its columns.
    pub columns: Vec<ColumnDefinition>,
    /// Column names for `AS`; empty = the names of the query.
    pub names: Vec<String>,
    /// Table constraints.
    pub constraints: Vec<Constraint>,
    /// The tables of `LIKE`. Their columns come before the table's own columns.
    pub like: Vec<Like>,
    /// `CLUSTERED BY`.
    pub clustered_by: Option<String>,
    /// `CLUSTERED INTO .. SHARDS`.
    pub shards: Option<u32>,
    /// `PARTITIONED BY`.
    pub partitioned_by: Vec<String>,
    /// `WITH (..)`.
    pub options: Vec<(String, String)>,
    /// The query of its rows: `AS`.
    pub source: Option<Box<Query>>,
    /// Whether the rows of `AS` are omitted.
    pub without_data: bool,
}

/// `LIKE table INCLUDING ..`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Like {
    /// The table.
    pub table: String,
    /// `INCLUDING COMMENTS`.
    pub comments: bool,
    /// `INCLUDING CONSTRAINTS`: checks.
    pub constraints: bool,
    /// `INCLUDING DEFAULTS`.
    pub defaults: bool,
    /// `INCLUDING GENERATED`.
    pub generated: bool,
    /// `INCLUDING IDENTITY`.
    pub identity: bool,
    /// `INCLUDING INDEXES`: the primary key, and indexes.
    pub indexes: bool,
}

/// A column of `CREATE TABLE`.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnDefinition {
    /// Its name.
    pub name: String,
    /// Its type; `None` = the type of its generation expression.
    pub declared: Option<DeclaredType>,
    /// Whether it is never null.
    pub not_null: bool,
    /// Its default.
    pub default: Option<Expression>,
    /// Its generation expression.
    pub generated: Option<Expression>,
    /// Its identity, if it has one.
    pub counting: Option<Counting>,
    /// Column constraints.
    pub constraints: Vec<Constraint>,
}

impl ColumnDefinition {
    /// A column with nothing but a type.
    pub fn plain(name: String, declared: DeclaredType) -> ColumnDefinition {
        let (not_null, default, generated, counting) = Default::default();
        let declared = Some(declared);
        ColumnDefinition { name, declared, not_null, default, generated, counting, constraints: Vec::new() }
    }
}

/// A constraint of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraint {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its kind.
    pub kind: ConstraintKind,
}

/// The kinds of constraints.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "there are a few for a table, and each is used once")]
pub enum ConstraintKind {
    /// The table's key.
    PrimaryKey(Vec<String>),
    /// A condition that is not false for any row.
    Check(Expression),
}

/// Parses a statement after `CREATE TABLE`.
pub(super) fn create_table(parser: &mut Parser<'_>, dialect: Dialect) -> Result<Parsed, Refusal> {
    let mut table = CreateTable { if_not_exists: if_not_exists(parser), ..CreateTable::default() };
    table.name = parse_name(parser)?;
    let mut names = Vec::new();
    if names_alone(parser) {
        table.names = names_in_brackets(parser)?;
    } else if parser.consume_token(&Token::LParen) {
        while parser.peek_token_ref().token != Token::RParen {
            element(parser, dialect, &mut table, &mut names)?;
            if !parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.expect_token(&Token::RParen)?;
    }
    check_width(&table)?;
    tail(parser, &mut table)?;
    if parser.parse_keyword(Keyword::AS) {
        if !table.columns.is_empty() {
            return refused("a table made of a query is given names of columns, not their types");
        }
        let mut query = parser.parse_query()?;
        rewrite::rewrite(&mut query, dialect)?;
        if parser.parse_keyword(Keyword::WITH) {
            table.without_data = parser.parse_keyword(Keyword::NO);
            expect_word(parser, "DATA")?;
        }
        table.source = Some(query);
    } else if !table.names.is_empty() {
        return Ok(parser.expected("AS and a query, or columns with types", parser.peek_token())?);
    }
    Ok(Parsed::Table(super::TableStatement::Create(Box::new(table))))
}

/// Whether a list of column names without types follows: `(a, b) AS SELECT ..`.
fn names_alone(parser: &Parser<'_>) -> bool {
    parser.peek_token_ref().token == Token::LParen
        && matches!(parser.peek_nth_token_ref(1).token, Token::Word(_))
        && matches!(parser.peek_nth_token_ref(2).token, Token::Comma | Token::RParen)
}

fn check_width(table: &CreateTable) -> Result<(), Refusal> {
    if table.columns.len() > COLUMNS_MAX {
        return refused_as(
            "54011",
            format!("table {:?} has {} columns, at most {COLUMNS_MAX} are allowed", table.name, table.columns.len()),
        );
    }
    Ok(())
}

/// A column, a constraint, `LIKE`, or an index that CrateDB declares within the table.
fn element(
    parser: &mut Parser<'_>,
    dialect: Dialect,
    table: &mut CreateTable,
    names: &mut Vec<String>,
) -> Result<(), Refusal> {
    if let Some(constraint) = constraint(parser, dialect, None)? {
        table.constraints.push(constraint);
        return Ok(());
    }
    if parser.parse_keyword(Keyword::LIKE) {
        table.like.push(like(parser)?);
        return Ok(());
    }
    if dialect == Dialect::Crate && parser.peek_keyword(Keyword::INDEX) && is_index(parser) {
        return refused_as("0A000", "full-text indexes are not served: INDEX within CREATE TABLE");
    }
    let column = column(parser, dialect)?;
    if names.contains(&column.name) {
        return refused_as("42701", format!("column {:?} specified more than once", column.name));
    }
    names.push(column.name.clone());
    table.columns.push(column);
    Ok(())
}

/// Parses the rest after `LIKE`: a table, and the properties to copy beyond names, types and
/// `NOT NULL`.
fn like(parser: &mut Parser<'_>) -> Result<Like, Refusal> {
    let mut like = Like { table: parse_name(parser)?, ..Like::default() };
    loop {
        let includes = parser.parse_keyword(Keyword::INCLUDING);
        if !includes && !parser.parse_keyword(Keyword::EXCLUDING) {
            return Ok(like);
        }
        let what = parser.parse_identifier()?.value.to_ascii_lowercase();
        let all = what == "all";
        let mut known = all || ["compression", "statistics", "storage"].contains(&what.as_str());
        for (name, flag) in [
            ("comments", &mut like.comments),
            ("constraints", &mut like.constraints),
            ("defaults", &mut like.defaults),
            ("generated", &mut like.generated),
            ("identity", &mut like.identity),
            ("indexes", &mut like.indexes),
        ] {
            if all || what == name {
                (*flag, known) = (includes, true);
            }
        }
        if !known {
            return Ok(parser.expected("what to take over, such as DEFAULTS or ALL", parser.peek_token())?);
        }
    }
}

/// `INDEX name USING`, and not a column named index.
fn is_index(parser: &Parser<'_>) -> bool {
    matches!(&parser.peek_nth_token_ref(2).token, Token::Word(word) if word.value.eq_ignore_ascii_case("using"))
}

/// A column of `CREATE TABLE` and `ALTER TABLE`.
pub(super) fn column(parser: &mut Parser<'_>, dialect: Dialect) -> Result<ColumnDefinition, Refusal> {
    let name = parser.parse_identifier()?.value;
    let (declared, counting) = match dialect == Dialect::Crate && is_generated(parser) {
        true => (None, None),
        false => {
            let (declared, counting) = declared_types::column_type(parser, &name, dialect)?;
            (Some(declared), counting)
        }
    };
    let (default, generated, constraints) = Default::default();
    let not_null = counting.is_some();
    let mut column = ColumnDefinition { name, declared, not_null, default, generated, counting, constraints };
    while column_option(parser, dialect, &mut column)? {}
    if column.declared.is_none() && column.generated.is_none() {
        return Ok(parser.expected("a column's type", parser.peek_token())?);
    }
    Ok(column)
}

/// Whether a generation expression follows directly, without a type.
fn is_generated(parser: &Parser<'_>) -> bool {
    parser.peek_keyword(Keyword::AS) || parser.peek_keyword(Keyword::GENERATED)
}

/// One option of a column; `false` if none follows.
fn column_option(parser: &mut Parser<'_>, dialect: Dialect, column: &mut ColumnDefinition) -> Result<bool, Refusal> {
    if parser.parse_keywords(&[Keyword::NOT, Keyword::NULL]) {
        column.not_null = true;
    } else if parser.parse_keyword(Keyword::NULL) {
        column.not_null = false;
    } else if parser.parse_keyword(Keyword::DEFAULT) {
        column.default = Some(expression(parser, dialect)?);
    } else if parser.parse_keyword(Keyword::GENERATED) {
        generated(parser, dialect, column)?;
    } else if column.generated.is_none() && parser.parse_keyword(Keyword::AS) {
        // In CrateDB the parentheses are optional.
        if dialect != Dialect::Crate && parser.peek_token_ref().token != Token::LParen {
            parser.expect_token(&Token::LParen)?;
        }
        column.generated = Some(expression(parser, dialect)?);
    } else if parser.parse_keyword(Keyword::COLLATE) {
        check_collation(parser)?;
    } else if parser.parse_keyword(Keyword::INDEX) {
        // Hints for CrateDB's own indexes. Here all columns are stored as columns.
        if !word(parser, "OFF") {
            expect_word(parser, "USING")?;
            parser.parse_identifier()?;
            options(parser)?;
        }
    } else if word(parser, "STORAGE") {
        if parser.peek_keyword(Keyword::WITH) {
            options(parser)?;
        } else {
            parser.parse_identifier()?;
        }
    } else if word(parser, "COMPRESSION") {
        parser.parse_identifier()?;
    } else if let Some(constraint) = constraint(parser, dialect, Some(&column.name))? {
        column.constraints.push(constraint);
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// Parses the rest after `COLLATE`.
pub(super) fn check_collation(parser: &mut Parser<'_>) -> Result<(), Refusal> {
    let name = parser.parse_object_name(false)?;
    Ok(names::check_collation(&name)?)
}

/// Parses the rest after `GENERATED`.
fn generated(parser: &mut Parser<'_>, dialect: Dialect, column: &mut ColumnDefinition) -> Result<(), Refusal> {
    let always = parser.parse_keyword(Keyword::ALWAYS);
    if !always {
        parser.expect_keywords(&[Keyword::BY, Keyword::DEFAULT])?;
    }
    parser.expect_keyword(Keyword::AS)?;
    if parser.parse_keyword(Keyword::IDENTITY) {
        column.counting = Some(declared_types::identity(parser, always)?);
        column.not_null = true;
        return Ok(());
    }
    if !always {
        return refused("GENERATED BY DEFAULT is for identity columns, expected GENERATED ALWAYS AS (expression)");
    }
    // In CrateDB the parentheses are optional.
    let expr = expression(parser, dialect)?;
    word(parser, "STORED");
    if word(parser, "VIRTUAL") {
        return refused_as("0A000", "generated columns are stored: VIRTUAL is not served");
    }
    column.generated = Some(expr);
    Ok(())
}

/// A constraint, if one follows. `column` is the column that it belongs to.
pub(super) fn constraint(
    parser: &mut Parser<'_>,
    dialect: Dialect,
    column: Option<&str>,
) -> Result<Option<Constraint>, Refusal> {
    let name = match parser.parse_keyword(Keyword::CONSTRAINT) {
        true => Some(parser.parse_identifier()?.value),
        false => None,
    };
    let of_key = |parser: &mut Parser<'_>| match column {
        Some(column) => Ok(vec![column.to_owned()]),
        None => names_in_brackets(parser),
    };
    let kind = if parser.parse_keywords(&[Keyword::PRIMARY, Keyword::KEY]) {
        let key = of_key(parser)?;
        if parser.peek_keyword(Keyword::WITH) {
            options(parser)?;
        }
        ConstraintKind::PrimaryKey(key)
    } else if parser.peek_keyword(Keyword::CHECK) && parser.peek_nth_token_ref(1).token == Token::LParen {
        parser.next_token();
        parser.expect_token(&Token::LParen)?;
        let condition = expression(parser, dialect)?;
        parser.expect_token(&Token::RParen)?;
        if parser.parse_keywords(&[Keyword::NO, Keyword::INHERIT]) {
            return Ok(Some(Constraint { name, kind: ConstraintKind::Check(condition) }));
        }
        ConstraintKind::Check(condition)
    } else if parser.peek_keyword(Keyword::UNIQUE) && (column.is_some() || opens_list(parser)) {
        let of = column.map(|column| format!(", of column {column:?},")).unwrap_or_default();
        return refused_as("0A000", format!("UNIQUE{of} is not served: only the primary key is unique"));
    } else if parser.peek_keyword(Keyword::REFERENCES) && column.is_some()
        || parser.peek_keyword(Keyword::FOREIGN) && column.is_none() && opens_list_after(parser, 2)
    {
        return refused_as("0A000", "foreign keys are not served");
    } else if name.is_some() {
        return Ok(parser.expected("PRIMARY KEY or CHECK", parser.peek_token())?);
    } else {
        return Ok(None);
    };
    Ok(Some(Constraint { name, kind }))
}

fn opens_list(parser: &Parser<'_>) -> bool {
    opens_list_after(parser, 1)
}

fn opens_list_after(parser: &Parser<'_>, tokens: usize) -> bool {
    parser.peek_nth_token_ref(tokens).token == Token::LParen
}

/// An expression with its text.
pub(super) fn expression(parser: &mut Parser<'_>, dialect: Dialect) -> Result<Expression, Refusal> {
    let mut expr: Expr = parser.parse_expr()?;
    let text = match &expr {
        Expr::Nested(inner) => inner.to_string(),
        expr => expr.to_string(),
    };
    rewrite::rewrite(&mut expr, dialect)?;
    Ok(Expression { text, expr })
}

/// `(name, ..)`.
pub(super) fn names_in_brackets(parser: &mut Parser<'_>) -> Result<Vec<String>, Refusal> {
    parser.expect_token(&Token::LParen)?;
    let mut names = vec![parser.parse_identifier()?.value];
    while parser.consume_token(&Token::Comma) {
        names.push(parser.parse_identifier()?.value);
    }
    parser.expect_token(&Token::RParen)?;
    Ok(names)
}

/// The clauses after the columns, in any order.
fn tail(parser: &mut Parser<'_>, table: &mut CreateTable) -> Result<(), Refusal> {
    loop {
        if word(parser, "CLUSTERED") {
            if parser.parse_keyword(Keyword::BY) {
                table.clustered_by = names_in_brackets(parser)?.pop();
            }
            if parser.parse_keyword(Keyword::INTO) {
                let number = parser.parse_literal_uint()?;
                table.shards = Some(u32::try_from(number).unwrap_or(u32::MAX));
                expect_word(parser, "SHARDS")?;
            }
        } else if word(parser, "PARTITIONED") {
            parser.expect_keyword(Keyword::BY)?;
            table.partitioned_by = names_in_brackets(parser)?;
        } else if parser.peek_keyword(Keyword::WITH) {
            table.options = options(parser)?;
        } else if word(parser, "WITHOUT") {
            expect_word(parser, "OIDS")?;
        } else if parser.parse_keyword(Keyword::USING) || parser.parse_keyword(Keyword::TABLESPACE) {
            parser.parse_identifier()?;
        } else if word(parser, "INHERITS") || parser.parse_keyword(Keyword::PARTITION) {
            return refused_as("0A000", "a table is one map: INHERITS and PARTITION BY are not served");
        } else {
            return Ok(());
        }
    }
}

/// `WITH (name = value, ..)`; string literals without their quotes.
pub(super) fn options(parser: &mut Parser<'_>) -> Result<Vec<(String, String)>, Refusal> {
    parser.expect_keyword(Keyword::WITH)?;
    let mut options = Vec::new();
    parser.expect_token(&Token::LParen)?;
    while parser.peek_token_ref().token != Token::RParen {
        let name = parser.parse_object_name(false)?;
        let name: Vec<&str> = name.0.iter().filter_map(|part| Some(part.as_ident()?.value.as_str())).collect();
        let name = name.join(".");
        let value = match parser.consume_token(&Token::Eq) {
            true => option_value(parser)?,
            false => "true".to_owned(),
        };
        options.push((name, value));
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen)?;
    Ok(options)
}

/// The value of an option as text.
pub(super) fn option_value(parser: &mut Parser<'_>) -> Result<String, Refusal> {
    let value = parser.parse_expr()?;
    Ok(match &value {
        Expr::Value(value) => match value.value.clone().into_string() {
            Some(text) => text,
            None => value.to_string(),
        },
        Expr::Identifier(name) => name.value.clone(),
        other => other.to_string(),
    })
}
