//! Settings of sqlparser for our dialects.

use std::any::TypeId;

use filbert_grid::query;
use sqlparser::ast::Expr;
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::{hooks, work};

/// The sqlparser dialect.
pub fn grammar(of: query::Dialect) -> &'static dyn Dialect {
    match of {
        query::Dialect::Hazelcast => &HazelcastDialect,
        query::Dialect::Crate => &ServerDialect { question_is_parameter: true },
        query::Dialect::Postgres => &ServerDialect { question_is_parameter: false },
    }
}

/// `NOT NULL` is no operator: in `DEFAULT 3 NOT NULL` it is an option of the column. sqlparser
/// reads it as `IS NOT NULL`.
fn precedence_of_not_null(parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
    let is_null = matches!(&parser.peek_nth_token_ref(1).token, Token::Word(word) if word.keyword == Keyword::NULL);
    (parser.peek_keyword(Keyword::NOT) && is_null).then(|| Ok(POSTGRES.prec_unknown()))
}

/// The dialect of standard SQL as in Hazelcast, with DataFusion's extensions.
#[derive(Clone, Copy, Debug)]
pub struct HazelcastDialect;

impl Dialect for HazelcastDialect {
    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        precedence_of_not_null(parser)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '"' || ch == '`'
    }

    fn identifier_quote_style(&self, _identifier: &str) -> Option<char> {
        Some('"')
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        ch.is_alphabetic() || ch == '_'
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        ch.is_alphanumeric() || ch == '_' || ch == '$'
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    fn supports_window_clause_named_window_reference(&self) -> bool {
        true
    }

    fn supports_within_after_array_aggregation(&self) -> bool {
        true
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_in_empty_list(&self) -> bool {
        true
    }

    fn supports_select_wildcard_except(&self) -> bool {
        true
    }

    fn supports_string_literal_concatenation_with_newline(&self) -> bool {
        true
    }

    fn supports_numeric_literal_underscores(&self) -> bool {
        false
    }

    fn supports_named_fn_args_with_rarrow_operator(&self) -> bool {
        true
    }

    fn supports_parens_around_table_factor(&self) -> bool {
        true
    }

    fn supports_values_as_table_factor(&self) -> bool {
        true
    }

    fn supports_array_typedef_with_brackets(&self) -> bool {
        true
    }

    fn supports_insert_table_alias(&self) -> bool {
        true
    }

    fn supports_nested_comments(&self) -> bool {
        true
    }

    fn supports_order_by_all(&self) -> bool {
        false
    }

    fn allow_extract_custom(&self) -> bool {
        true
    }

    fn supports_boolean_literals(&self) -> bool {
        true
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }

    fn supports_left_associative_joins_without_parens(&self) -> bool {
        true
    }

    /// Words that start an expression of their own. If such an expression is invalid, the parser
    /// would otherwise parse the word as a name and start again at every level of nesting, which
    /// doubles the time for each level.
    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        matches!(
            keyword,
            Keyword::ARRAY
                | Keyword::CASE
                | Keyword::CAST
                | Keyword::CEIL
                | Keyword::CONVERT
                | Keyword::EXISTS
                | Keyword::EXTRACT
                | Keyword::FLOOR
                | Keyword::INTERVAL
                | Keyword::NOT
                | Keyword::OVERLAY
                | Keyword::POSITION
                | Keyword::SAFE_CAST
                | Keyword::STRUCT
                | Keyword::SUBSTR
                | Keyword::SUBSTRING
                | Keyword::TRIM
                | Keyword::TRY_CAST
        )
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        work::begin().err().map(Err).or_else(|| hooks::prefix(self, parser))
    }

    fn parse_infix(&self, parser: &mut Parser<'_>, expr: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        hooks::infix(self, parser, expr, precedence)
    }
}

/// The dialect for PostgreSQL's and CrateDB's users: PostgreSQL's grammar with DataFusion's
/// extensions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerDialect {
    /// Whether `?` is a parameter; otherwise it is part of operators.
    question_is_parameter: bool,
}

const POSTGRES: PostgreSqlDialect = PostgreSqlDialect {};

impl Dialect for ServerDialect {
    /// sqlparser treats this dialect as PostgreSQL's where it checks for one.
    fn dialect(&self) -> TypeId {
        TypeId::of::<PostgreSqlDialect>()
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '"'
    }

    fn identifier_quote_style(&self, _identifier: &str) -> Option<char> {
        Some('"')
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        POSTGRES.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        POSTGRES.is_identifier_part(ch)
    }

    fn is_custom_operator_part(&self, ch: char) -> bool {
        POSTGRES.is_custom_operator_part(ch) && !(ch == '?' && self.question_is_parameter)
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        precedence_of_not_null(parser).or_else(|| POSTGRES.get_next_precedence(parser))
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        POSTGRES.prec_value(precedence)
    }

    fn supports_unicode_string_literal(&self) -> bool {
        true
    }

    fn supports_string_escape_constant(&self) -> bool {
        true
    }

    fn supports_string_literal_concatenation_with_newline(&self) -> bool {
        true
    }

    fn supports_numeric_literal_underscores(&self) -> bool {
        true
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    fn supports_within_after_array_aggregation(&self) -> bool {
        true
    }

    fn supports_window_clause_named_window_reference(&self) -> bool {
        true
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_parens_around_table_factor(&self) -> bool {
        true
    }

    fn supports_left_associative_joins_without_parens(&self) -> bool {
        true
    }

    fn supports_array_typedef_with_brackets(&self) -> bool {
        true
    }

    fn supports_nested_comments(&self) -> bool {
        true
    }

    fn supports_boolean_literals(&self) -> bool {
        true
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }

    fn supports_notnull_operator(&self) -> bool {
        true
    }

    fn supports_comma_separated_trim(&self) -> bool {
        true
    }

    fn supports_interval_options(&self) -> bool {
        true
    }

    fn supports_insert_table_alias(&self) -> bool {
        true
    }

    fn supports_alter_column_type_using(&self) -> bool {
        true
    }

    fn supports_create_index_with_clause(&self) -> bool {
        true
    }

    fn supports_create_table_like_parenthesized(&self) -> bool {
        true
    }

    fn supports_comment_on(&self) -> bool {
        true
    }

    fn supports_empty_projections(&self) -> bool {
        true
    }

    fn supports_named_fn_args_with_rarrow_operator(&self) -> bool {
        true
    }

    /// `{a = 1}` is an object.
    fn supports_dictionary_syntax(&self) -> bool {
        false
    }

    fn supports_order_by_all(&self) -> bool {
        false
    }

    fn allow_extract_custom(&self) -> bool {
        true
    }

    fn allow_extract_single_quotes(&self) -> bool {
        true
    }

    /// As in Hazelcast's dialect: otherwise the time for invalid nested expressions doubles with
    /// each level.
    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        keyword != Keyword::INTERVAL && HazelcastDialect.is_reserved_for_identifier(keyword)
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        work::begin()
            .err()
            .map(Err)
            .or_else(|| hooks::rounded_interval(parser).map(Ok))
            .or_else(|| hooks::signed(self, parser))
            .or_else(|| hooks::operator(self, parser))
            .or_else(|| hooks::prefix(self, parser))
    }

    fn parse_infix(&self, parser: &mut Parser<'_>, expr: &Expr, precedence: u8) -> Option<Result<Expr, ParserError>> {
        hooks::infix(self, parser, expr, precedence)
    }
}
