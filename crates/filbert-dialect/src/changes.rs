//! The grammar of statements that change rows: `INSERT`, `SINK`, `UPDATE`, `DELETE`.

use std::ops::ControlFlow;

use filbert_grid::query::Dialect;
use sqlparser::ast::{
    Assignment, AssignmentTarget, CastKind, ConflictTarget as Target, DataType, Expr, FromTable, GroupByExpr, Ident,
    ObjectName, OnConflictAction, OnInsert, Query, SelectItem, SetExpr, Statement, TableFactor, TableObject,
    TableWithJoins, Value, With,
};
use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use super::json::{call, word};
use super::statements::{Refusal, refused, refused_as};
use super::{
    ConflictTarget, Delete, Insert, OnConflict, Parsed, Update, names, places, rewrite, served, server, walk, work,
};

/// Functions with a different result for each call.
const VOLATILE: [&str; 6] = ["clock_timestamp", "gen_random_uuid", "nextval", "rand", "random", "timeofday"];

/// `[WITH ..] INSERT` and `SINK`.
pub(super) fn insert(parser: &mut Parser<'_>, of: Dialect, with: Option<With>) -> Result<Parsed, Refusal> {
    let token = parser.next_token();
    let sink = !matches!(&token.token, Token::Word(word) if word.keyword == Keyword::INSERT);
    if sink && !parser.peek_keyword(Keyword::INTO) {
        return Ok(parser.expected("INTO", parser.peek_token())?);
    }
    let Statement::Insert(insert) = parser.parse_insert(token)? else { return refused("the INSERT is not served") };
    served::check_insert(&insert)?;
    let TableObject::TableName(table) = &insert.table else {
        return refused("rows can be inserted into a table or a mapping only");
    };
    let beyond =
        insert.overwrite || insert.partitioned.is_some() || insert.or.is_some() || !insert.assignments.is_empty();
    if beyond || sink && (insert.on.is_some() || insert.returning.is_some()) {
        return refused(
            "INSERT is served as INSERT INTO name [(columns)] and a query or VALUES [ON CONFLICT ..] [RETURNING ..]",
        );
    }
    let columns = insert.columns.iter().map(column_name).collect::<Result<_, _>>()?;
    let (table, short) = table_name(table)?;
    let alias = insert.table_alias.map(|alias| alias.alias.value).or(short);
    let mut source = insert.source;
    if let Some(source) = &mut source {
        rewrite::rewrite_source(source, of)?;
    }
    if let Some(with) = with {
        let Some(query) = source else {
            return refused_as("0A000", "WITH before INSERT .. DEFAULT VALUES is not served");
        };
        source = Some(Box::new(reading(with, query)));
    }
    let on_conflict = insert.on.map(|on| on_conflict(on, of)).transpose()?;
    let returning = returning(insert.returning, of)?;
    Ok(Parsed::Insert(Insert { sink, table, alias, columns, source, on_conflict, returning }))
}

/// The source of an INSERT with the queries of the `WITH` before the INSERT.
fn reading(with: With, mut source: Box<Query>) -> Query {
    if source.with.is_none() {
        source.with = Some(with);
        return *source;
    }
    // Its own queries hide queries of the same names.
    Query { with: Some(with), ..rewrite::query_of(SetExpr::Query(source)) }
}

fn on_conflict(on: OnInsert, of: Dialect) -> Result<OnConflict, Refusal> {
    let OnInsert::OnConflict(on) = on else { return refused("ON DUPLICATE KEY is not served, expected ON CONFLICT") };
    let target = match on.conflict_target {
        None if of == Dialect::Postgres && matches!(on.action, OnConflictAction::DoUpdate(_)) => {
            return refused_as("42601", "ON CONFLICT DO UPDATE requires inference specification or constraint name");
        }
        None => ConflictTarget::Any,
        Some(Target::Columns(columns)) => {
            ConflictTarget::Columns(columns.into_iter().map(|column| column.value).collect())
        }
        Some(Target::OnConstraint(name)) => ConflictTarget::Constraint(column_name(&name)?),
    };
    let (update, mut selection) = match on.action {
        OnConflictAction::DoNothing => (None, None),
        OnConflictAction::DoUpdate(update) => (Some(assigned(update.assignments, of)?), update.selection),
    };
    if let Some(selection) = &mut selection {
        condition(selection, of)?;
    }
    Ok(OnConflict { target, update, selection })
}

/// Columns and their new values.
fn assigned(assignments: Vec<Assignment>, of: Dialect) -> Result<Vec<(String, Expr)>, Refusal> {
    let mut assigned = Vec::with_capacity(assignments.len());
    for Assignment { target, value } in assignments {
        match target {
            AssignmentTarget::ColumnName(column) => assigned.push((column_name(&column)?, value)),
            AssignmentTarget::Tuple(columns) => {
                let columns = columns.iter().map(column_name).collect::<Result<Vec<_>, _>>()?;
                assigned.extend(parted(columns, value)?);
            }
        }
    }
    for (_, value) in &mut assigned {
        rewrite::rewrite(value, of)?;
    }
    Ok(assigned)
}

/// A query of one row as a subquery for each of its items. Its row must not depend on the time or
/// on chance: these subqueries would find different ones.
fn each_item(query: &Query, count: usize) -> Result<Vec<Expr>, Refusal> {
    let refusal = "SET (a, b) = (SELECT ..) is served of a SELECT of expressions without DISTINCT, ORDER BY and LIMIT";
    let SetExpr::Select(select) = query.body.as_ref() else { return refused_as("0A000", refusal) };
    let is_place = |key: &Expr| matches!(key, Expr::Value(_));
    let has_places = match &select.group_by {
        GroupByExpr::Expressions(keys, _) => keys.iter().any(is_place),
        GroupByExpr::All(_) => true,
    };
    let is_expression =
        |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    let is_ordered = query.order_by.is_some() || query.limit_clause.is_some() || query.fetch.is_some();
    let is_served =
        !is_ordered && !has_places && select.distinct.is_none() && select.projection.iter().all(is_expression);
    let is_volatile = walk::expressions(query, |expression| match expression {
        Expr::Function(function) if VOLATILE.contains(&function.name.to_string().to_ascii_lowercase().as_str()) => {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    if !is_served || is_volatile.is_break() {
        return refused_as("0A000", refusal);
    }
    if select.projection.len() != count {
        return refused_as("42601", "number of columns does not match number of values");
    }
    let of_item = |item: &SelectItem| -> Result<Expr, Refusal> {
        work::copy(query)?;
        let mut query = query.clone();
        if let SetExpr::Select(select) = query.body.as_mut() {
            select.projection = vec![item.clone()];
        }
        Ok(Expr::Subquery(Box::new(query)))
    };
    select.projection.iter().map(of_item).collect()
}

/// `(a, b) = (x, y)` as `a = x, b = y`.
fn parted(columns: Vec<String>, value: Expr) -> Result<Vec<(String, Expr)>, Refusal> {
    let values = match value {
        Expr::Tuple(values) => values,
        Expr::Nested(value) => vec![*value],
        Expr::Subquery(query) => each_item(&query, columns.len())?,
        _ => return refused("several columns are set at once as (a, b) = (x, y)"),
    };
    if columns.len() != values.len() {
        return refused(format!("{} columns are set to {} values, expected as many", columns.len(), values.len()));
    }
    Ok(columns.into_iter().zip(values).collect())
}

fn returning(items: Option<Vec<SelectItem>>, of: Dialect) -> Result<Option<Vec<SelectItem>>, Refusal> {
    let Some(mut items) = items else { return Ok(None) };
    if of != Dialect::Hazelcast {
        server::name_returned(&mut items, of);
        server::tell_items(&mut items, of);
    }
    for item in &mut items {
        if let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = item {
            rewrite::rewrite(expr, of)?;
        }
    }
    Ok(Some(items))
}

/// `[WITH ..] UPDATE name [[AS] alias] SET .. [FROM ..] [WHERE ..] [RETURNING ..]`.
pub(super) fn update(parser: &mut Parser<'_>, of: Dialect, with: Option<With>) -> Result<Parsed, Refusal> {
    parser.expect_keyword(Keyword::UPDATE)?;
    word(parser, "ONLY");
    let (table, alias) = single_table(&parser.parse_table_and_joins()?)?;
    parser.expect_keyword(Keyword::SET)?;
    let mut assignments = Assignments::default();
    loop {
        assignment(parser, of, &mut assignments)?;
        if !parser.consume_token(&Token::Comma) {
            break;
        }
    }
    let mut assignments = assignments.assigned;
    for (_, value) in &mut assignments {
        rewrite::rewrite(value, of)?;
    }
    let mut from = match parser.parse_keyword(Keyword::FROM) {
        true => parser.parse_comma_separated(Parser::parse_table_and_joins)?,
        false => Vec::new(),
    };
    from.iter_mut().try_for_each(|from| rewrite::rewrite(from, of))?;
    let selection = selection(parser, of)?;
    let returning = returning_clause(parser, of)?;
    Ok(Parsed::Update(Update { with, table, alias, assignments, from, selection, returning }))
}

/// The assignments of `SET`.
#[derive(Default)]
struct Assignments {
    assigned: Vec<(String, Expr)>,
    /// The columns with assigned members.
    of_members: Vec<String>,
}

impl Assignments {
    /// Assigns a member: `object_set(object, value, member, ..)`, nested for several members of one
    /// object.
    fn set_member(&mut self, column: String, path: Vec<Expr>, value: Expr) {
        let known = self.of_members.contains(&column);
        let before = self.assigned.iter_mut().find(|(assigned, _)| known && *assigned == column);
        let object = match &before {
            Some((_, object)) => object.clone(),
            None => Expr::Identifier(Ident::with_quote('"', column.as_str())),
        };
        let arguments = [object, value].into_iter().chain(path).collect();
        let set = call("object_set", arguments, Vec::new(), None);
        match before {
            Some((_, object)) => *object = set,
            None => {
                self.of_members.push(column.clone());
                self.assigned.push((column, set));
            }
        }
    }
}

/// One or several columns of `SET`; `column['member']` assigns a member of an object.
fn assignment(parser: &mut Parser<'_>, of: Dialect, assignments: &mut Assignments) -> Result<(), Refusal> {
    if parser.consume_token(&Token::LParen) {
        let columns = parser.parse_comma_separated(|parser| parser.parse_object_name(false))?;
        parser.expect_token(&Token::RParen)?;
        parser.expect_token(&Token::Eq)?;
        word(parser, "ROW");
        let columns = columns.iter().map(column_name).collect::<Result<Vec<_>, _>>()?;
        assignments.assigned.extend(parted(columns, parser.parse_expr()?)?);
        return Ok(());
    }
    let column = column_name(&parser.parse_object_name(false)?)?;
    let mut path = Vec::new();
    while parser.consume_token(&Token::LBracket) {
        let member = parser.parse_expr()?;
        let is_name = matches!(&member, Expr::Value(value) if matches!(value.value, Value::SingleQuotedString(_)));
        if of == Dialect::Postgres && !is_name {
            return refused_as("0A000", "an assignment to elements of an array is not served: assign the whole array");
        }
        path.push(member);
        parser.expect_token(&Token::RBracket)?;
    }
    parser.expect_token(&Token::Eq)?;
    let mut value = parser.parse_expr()?;
    if of == Dialect::Postgres && !path.is_empty() {
        as_document(&mut value);
    }
    match path.is_empty() {
        true => assignments.assigned.push((column, value)),
        false => assignments.set_member(column, path, value),
    }
    Ok(())
}

/// Parses a string literal or a parameter as a document, which PostgreSQL assigns to a member.
fn as_document(value: &mut Expr) {
    use Value::{DollarQuotedString, EscapedStringLiteral, Placeholder, SingleQuotedString, UnicodeStringLiteral};
    let Expr::Value(given) = &*value else { return };
    let is_of_any_type = matches!(
        given.value,
        SingleQuotedString(_)
            | EscapedStringLiteral(_)
            | UnicodeStringLiteral(_)
            | DollarQuotedString(_)
            | Placeholder(_)
    );
    if is_of_any_type {
        let expr = Box::new(std::mem::replace(value, Expr::value(Value::Null)));
        *value = Expr::Cast { kind: CastKind::Cast, expr, data_type: DataType::JSONB, array: false, format: None };
    }
}

/// Rewrites a condition for planning.
fn condition(condition: &mut Expr, of: Dialect) -> Result<(), Refusal> {
    rewrite::rewrite(condition, of)?;
    if of != Dialect::Hazelcast {
        server::condition(condition);
    }
    Ok(())
}

fn selection(parser: &mut Parser<'_>, of: Dialect) -> Result<Option<Expr>, Refusal> {
    if !parser.parse_keyword(Keyword::WHERE) {
        return Ok(None);
    }
    let mut selection = parser.parse_expr()?;
    condition(&mut selection, of)?;
    Ok(Some(selection))
}

fn returning_clause(parser: &mut Parser<'_>, of: Dialect) -> Result<Option<Vec<SelectItem>>, Refusal> {
    match parser.parse_keyword(Keyword::RETURNING) {
        true => returning(Some(parser.parse_comma_separated(Parser::parse_select_item)?), of),
        false => Ok(None),
    }
}

/// `[WITH ..] DELETE FROM name [[AS] alias] [USING ..] [WHERE ..] [RETURNING ..]`.
pub(super) fn delete(parser: &mut Parser<'_>, of: Dialect, with: Option<With>) -> Result<Parsed, Refusal> {
    let token = parser.next_token();
    let Statement::Delete(delete) = parser.parse_delete(token)? else { return refused("the DELETE is not served") };
    served::check_delete(&delete)?;
    let beyond = delete.limit.is_some() || !delete.order_by.is_empty() || !delete.tables.is_empty();
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
    let [from] = from.as_slice() else { return refused("DELETE is of one table or mapping") };
    if beyond {
        return refused("DELETE is served as DELETE FROM name [USING ..] [WHERE condition] [RETURNING ..]");
    }
    let (table, alias) = single_table(from)?;
    let mut selection = delete.selection;
    if let Some(selection) = &mut selection {
        condition(selection, of)?;
    }
    let mut using = delete.using.unwrap_or_default();
    using.iter_mut().try_for_each(|from| rewrite::rewrite(from, of))?;
    let returning = returning(delete.returning, of)?;
    Ok(Parsed::Delete(Delete { with, table, alias, using, selection, returning }))
}

fn single_table(table: &TableWithJoins) -> Result<(String, Option<String>), Refusal> {
    served::check(table)?;
    match &table.relation {
        TableFactor::Table { name, alias, args: None, .. } if table.joins.is_empty() => {
            let (table, short) = table_name(name)?;
            Ok((table, alias.as_ref().map(|alias| alias.name.value.clone()).or(short)))
        }
        _ => refused("one table or mapping can be changed at a time, without joins"),
    }
}

/// The catalog name, and the name within the statement if it differs. Within the statement, a table
/// has its name without a schema.
fn table_name(name: &ObjectName) -> Result<(String, Option<String>), Refusal> {
    let table = places::marked_name(name)?;
    let short = match names::schema_of(&table) {
        (Some(_), short) => Some(short.to_owned()),
        (None, _) => None,
    };
    Ok((table, short))
}

fn column_name(name: &ObjectName) -> Result<String, Refusal> {
    match name.0.last().and_then(|part| part.as_ident()) {
        Some(identifier) => Ok(identifier.value.clone()),
        None => refused(format!("a column's name is expected instead of {name}")),
    }
}
