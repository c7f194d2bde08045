//! The grammar of `ALTER TABLE`, `COMMENT ON`, and statements about schemas.

use filbert_grid::query::Dialect;
use sqlparser::ast::Expr;
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::declared_types::declared_type;
use super::json::{expect_word, word};
use super::statements::{Refusal, if_exists, if_not_exists, parse_name, refused, refused_as};
use super::table_statements::cascade;
use super::tables::{ColumnDefinition, Constraint, check_collation, column, constraint, expression, option_value};
use super::{Parsed, TableStatement, places, rewrite, unserved};
use crate::declared::DeclaredType;
use crate::tables::Expression;

/// `ALTER TABLE`.
#[derive(Clone, Debug, PartialEq)]
pub struct AlterTable {
    /// The table.
    pub name: String,
    /// Whether a missing table is no error.
    pub if_exists: bool,
    /// The actions, in this order.
    pub actions: Vec<AlterAction>,
}

/// One change of a table.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "there are a few for a statement, and each is used once")]
pub enum AlterAction {
    /// Adds a column; the flag says whether an existing column is no error.
    AddColumn(ColumnDefinition, bool),
    /// Drops a column; the flag says whether a missing column is no error.
    DropColumn(String, bool),
    /// Renames a column.
    RenameColumn(String, String),
    /// Renames the table.
    RenameTo(String),
    /// Sets the default of a column, or removes it.
    Default(String, Option<Expression>),
    /// Makes a column never null, or nullable.
    NotNull(String, bool),
    /// Changes the type of a column. The expression computes the new values.
    Type(String, DeclaredType, Option<Expr>),
    /// Adds a constraint.
    AddConstraint(Constraint),
    /// Drops a constraint; the flag says whether a missing constraint is no error.
    DropConstraint(String, bool),
    /// Sets options.
    Set(Vec<(String, String)>),
    /// Resets options.
    Reset(Vec<String>),
    /// Validates a constraint. It was already checked when it was added.
    ValidateConstraint(String),
    /// An action without effect here.
    Nothing,
}

/// `COMMENT ON`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The table.
    pub table: String,
    /// The column, if the comment is about one.
    pub column: Option<String>,
    /// The text; `None` removes the comment.
    pub text: Option<String>,
}

/// Parses the rest after `ALTER`.
pub(super) fn alter(parser: &mut Parser<'_>, dialect: Dialect) -> Result<Parsed, Refusal> {
    if !parser.parse_keyword(Keyword::TABLE) {
        unserved::check_altered(parser)?;
        return Ok(parser.expected("TABLE", parser.peek_token())?);
    }
    let if_exists = if_exists(parser);
    word(parser, "ONLY");
    let name = parse_name(parser)?;
    let mut actions = Vec::new();
    loop {
        action(parser, dialect, &mut actions)?;
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    Ok(Parsed::Table(TableStatement::Alter(AlterTable { name, if_exists, actions })))
}

fn action(parser: &mut Parser<'_>, dialect: Dialect, actions: &mut Vec<AlterAction>) -> Result<(), Refusal> {
    if parser.parse_keyword(Keyword::ADD) {
        if let Some(constraint) = constraint(parser, dialect, None)? {
            if parser.parse_keyword(Keyword::NOT) {
                return refused_as("0A000", "a constraint holds for every row: NOT VALID is not served");
            }
            actions.push(AlterAction::AddConstraint(constraint));
            return Ok(());
        }
        word(parser, "COLUMN");
        let if_not_exists = if_not_exists(parser);
        let mut column = column(parser, dialect)?;
        let constraints = std::mem::take(&mut column.constraints);
        actions.push(AlterAction::AddColumn(column, if_not_exists));
        actions.extend(constraints.into_iter().map(AlterAction::AddConstraint));
    } else if parser.parse_keyword(Keyword::DROP) {
        actions.push(drop_part(parser)?);
    } else if parser.parse_keyword(Keyword::RENAME) {
        actions.push(rename(parser)?);
    } else if parser.parse_keyword(Keyword::ALTER) {
        actions.push(alter_column(parser, dialect)?);
    } else if parser.parse_keyword(Keyword::SET) {
        actions.push(set(parser)?);
    } else if parser.parse_keyword(Keyword::RESET) {
        parser.expect_token(&Token::LParen)?;
        let names = parser.parse_comma_separated(|parser| parser.parse_object_name(false))?;
        parser.expect_token(&Token::RParen)?;
        let plain = |name: &sqlparser::ast::ObjectName| {
            let parts: Vec<&str> = name.0.iter().filter_map(|part| Some(part.as_ident()?.value.as_str())).collect();
            parts.join(".")
        };
        actions.push(AlterAction::Reset(names.iter().map(plain).collect()));
    } else if word(parser, "OWNER") {
        expect_word(parser, "TO")?;
        parser.parse_identifier()?;
        actions.push(AlterAction::Nothing);
    } else if word(parser, "VALIDATE") {
        parser.expect_keyword(Keyword::CONSTRAINT)?;
        actions.push(AlterAction::ValidateConstraint(parser.parse_identifier()?.value));
    } else if let Some(what) = UNSERVED.into_iter().find(|what| word(parser, what)) {
        return refused_as("0A000", format!("ALTER TABLE .. {what} is not served"));
    } else {
        let expected = "ADD, DROP, RENAME, ALTER, SET, RESET, VALIDATE or OWNER TO";
        return Ok(parser.expected(expected, parser.peek_token())?);
    }
    Ok(())
}

/// Clauses of PostgreSQL that are not supported here.
const UNSERVED: [&str; 11] =
    ["CLUSTER", "REPLICA", "INHERIT", "NO", "OF", "NOT", "ATTACH", "DETACH", "ENABLE", "DISABLE", "FORCE"];

fn drop_part(parser: &mut Parser<'_>) -> Result<AlterAction, Refusal> {
    let is_constraint = parser.parse_keyword(Keyword::CONSTRAINT);
    if !is_constraint {
        word(parser, "COLUMN");
    }
    let if_exists = if_exists(parser);
    let name = parser.parse_identifier()?.value;
    cascade(parser);
    Ok(if is_constraint {
        AlterAction::DropConstraint(name, if_exists)
    } else {
        AlterAction::DropColumn(name, if_exists)
    })
}

fn rename(parser: &mut Parser<'_>) -> Result<AlterAction, Refusal> {
    if word(parser, "TO") {
        let name = parser.parse_object_name(false)?;
        return Ok(AlterAction::RenameTo(places::marked_name(&name)?));
    }
    word(parser, "COLUMN");
    let from = parser.parse_identifier()?.value;
    expect_word(parser, "TO")?;
    Ok(AlterAction::RenameColumn(from, parser.parse_identifier()?.value))
}

fn alter_column(parser: &mut Parser<'_>, dialect: Dialect) -> Result<AlterAction, Refusal> {
    word(parser, "COLUMN");
    let name = parser.parse_identifier()?.value;
    let set = word(parser, "SET");
    if set && parser.parse_keyword(Keyword::DEFAULT) {
        return Ok(AlterAction::Default(name, Some(expression(parser, dialect)?)));
    }
    if set && parser.parse_keywords(&[Keyword::NOT, Keyword::NULL]) {
        return Ok(AlterAction::NotNull(name, true));
    }
    if !set && parser.parse_keyword(Keyword::DROP) {
        if parser.parse_keyword(Keyword::DEFAULT) {
            return Ok(AlterAction::Default(name, None));
        }
        parser.expect_keywords(&[Keyword::NOT, Keyword::NULL])?;
        return Ok(AlterAction::NotNull(name, false));
    }
    if set && (word(parser, "STATISTICS") || word(parser, "STORAGE")) {
        parser.next_token();
        return Ok(AlterAction::Nothing);
    }
    let of_identity =
        ["GENERATED", "START", "INCREMENT", "MINVALUE", "MAXVALUE", "CACHE", "CYCLE", "NO", "RESTART", "ADD"];
    if of_identity.into_iter().any(|option| word(parser, option)) {
        return refused_as("0A000", format!("the counter of column {name:?} stays as it was declared"));
    }
    if set {
        expect_word(parser, "DATA")?;
    }
    expect_word(parser, "TYPE")?;
    let declared = declared_type(parser, &name, dialect, 0)?;
    if parser.parse_keyword(Keyword::COLLATE) {
        check_collation(parser)?;
    }
    let using = match word(parser, "USING") {
        true => {
            let mut expr = parser.parse_expr()?;
            rewrite::rewrite(&mut expr, dialect)?;
            Some(expr)
        }
        false => None,
    };
    Ok(AlterAction::Type(name, declared, using))
}

fn set(parser: &mut Parser<'_>) -> Result<AlterAction, Refusal> {
    if word(parser, "SCHEMA") {
        return refused_as("0A000", "a table stays in its schema: SET SCHEMA is not served, RENAME TO schema.name is");
    }
    if word(parser, "LOGGED") || word(parser, "UNLOGGED") {
        return Ok(AlterAction::Nothing);
    }
    parser.expect_token(&Token::LParen)?;
    let mut options = Vec::new();
    loop {
        let name = parser.parse_object_name(false)?;
        let parts: Vec<&str> = name.0.iter().filter_map(|part| Some(part.as_ident()?.value.as_str())).collect();
        parser.expect_token(&Token::Eq)?;
        options.push((parts.join("."), option_value(parser)?));
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    parser.expect_token(&Token::RParen)?;
    Ok(AlterAction::Set(options))
}

/// Parses the rest after `COMMENT`.
pub(super) fn comment(parser: &mut Parser<'_>) -> Result<Parsed, Refusal> {
    parser.expect_keyword(Keyword::ON)?;
    let (table, column) = if word(parser, "COLUMN") {
        let mut name = parser.parse_object_name(false)?;
        let Some(column) = name.0.pop().and_then(|part| part.as_ident().map(|column| column.value.clone())) else {
            return refused("a column is expected after COMMENT ON COLUMN, as table.column");
        };
        (places::marked_name(&name)?, Some(column))
    } else if parser.parse_keyword(Keyword::TABLE) {
        (parse_name(parser)?, None)
    } else {
        return refused_as("0A000", "comments are kept of tables and of columns");
    };
    parser.expect_keyword(Keyword::IS)?;
    let text = match parser.parse_keyword(Keyword::NULL) {
        true => None,
        false => Some(parser.parse_literal_string()?),
    };
    Ok(Parsed::Table(TableStatement::Comment(Comment { table, column, text })))
}

/// Parses the rest after `CREATE SCHEMA`.
pub(super) fn create_schema(parser: &mut Parser<'_>) -> Result<Parsed, Refusal> {
    let if_not_exists = if_not_exists(parser);
    let name = parser.parse_identifier()?.value;
    if word(parser, "AUTHORIZATION") {
        parser.parse_identifier()?;
    }
    Ok(Parsed::Table(TableStatement::CreateSchema { name, if_not_exists }))
}

/// Parses the rest after `DROP SCHEMA`.
pub(super) fn drop_schema(parser: &mut Parser<'_>) -> Result<Parsed, Refusal> {
    let if_exists = if_exists(parser);
    let names = parser.parse_comma_separated(Parser::parse_identifier)?;
    let cascade = cascade(parser);
    let names = names.into_iter().map(|name| name.value).collect();
    Ok(Parsed::Table(TableStatement::DropSchema { names, if_exists, cascade }))
}
