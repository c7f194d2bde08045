//! Name resolution: the only place that decides the meaning of a query's names, before anything is
//! planned.
//!
//! | name | refers to |
//! |---|---|
//! | of a relation | a visible `WITH` query, else a view, else a table |
//! | of a column | a column of the query's own relations, else of the enclosing queries |
//! | in `ORDER BY`, alone | a column of the result first |
//!
//! Where DataFusion's planner would resolve a name differently, the query is rewritten, so that
//! nothing is left to decide:
//!
//! - `WITH` queries get names that no view, no table and no other `WITH` query has;
//! - a view is replaced by its query, and the names in it keep the meaning from its creation;
//! - a `WITH` query is evaluated at each place that reads it; a `WITH` query that calls a volatile
//!   function is read once;
//! - joins `USING` columns and `NATURAL` joins become joins `ON`, the merged columns become
//!   expressions, and `*` is expanded in PostgreSQL's order (`sources`);
//! - keys of `GROUP BY` that are lists, and `GROUP BY ()`, are expanded (`keys`);
//! - columns that a primary key determines are added to the groups, if a query groups by the key
//!   (`decided`);
//! - positions as keys are written as their digits alone (`positions`);
//! - columns of set operations without a type become `text` (`unknown`);
//! - a column name of two relations is rejected, also in an enclosing query (`names`).
//!
//! A relation is open if only DataFusion knows its columns: a table function, or a system relation.
//! Names that depend on its columns are left unchanged.

mod decided;
mod keys;
mod names;
mod positions;
mod same;
mod sets;
mod sizes;
mod sources;
mod unknown;
mod whole_rows;

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Distinct, Expr, GroupByExpr, Ident, LimitClause, NamedWindowExpr, ObjectName, OrderBy, OrderByExpr, OrderByKind,
    Query, Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, SetOperator, SetQuantifier,
    TableAliasColumnDef, Value, ValueWithSpan, Values, With,
};
use filbert_dialect::{self as dialect, REPEATED, ROWS, narrow_values, reads_one_behind, walk};
use filbert_functions::error::parsing_error;
use filbert_grid::query::{Dialect, SqlError, SqlSubject};

use self::names::Clause;
use self::sources::Scope;
pub(crate) use self::sources::constraint;
use crate::client_context::{ClientContext, ParameterTypes};
use crate::plan::columns::result_name;
use crate::tables::Tables;

/// The maximum depth of nested views.
const VIEW_DEPTH_MAX: usize = 32;
/// The maximum number of relations that a query reads, after views and `WITH` queries are expanded.
/// Each use of a `WITH` query reads all its relations, so a chain of twenty that each read the
/// previous one twice reads a million. It is not a setting, because planning is too expensive on
/// any member.
const RELATIONS_MAX: usize = 500;
/// The maximum number of queries within each other, after views and `WITH` queries are expanded. A
/// chain of thousands of `WITH` queries, where each query reads the previous one, is a short text.
/// Its plan would be too deep for the stack of a thread.
const LEVELS_MAX: usize = 250;

/// Functions with a different result for each call.
const VOLATILE: [&str; 6] = ["clock_timestamp", "gen_random_uuid", "nextval", "rand", "random", "timeofday"];

/// The names of a result's columns in the plan ([`shown_name`]); `None` = only DataFusion knows
/// them.
type Names = Option<Vec<String>>;

/// Resolves the names of a query.
///
/// # Errors
/// A name is ambiguous, or unknown where all names are known.
pub(crate) fn resolve(tables: &Tables, client: &ClientContext, query: &mut Query) -> Result<(), SqlError> {
    sizes::check(query)?;
    let mut resolver = Resolver {
        tables,
        dialect: client.dialect(),
        types: client.types(),
        visible: Vec::new(),
        used: Vec::new(),
        scopes: Vec::new(),
        number: 0,
        views: 0,
        depth: 0,
        relations: 0,
        levels: 0,
    };
    resolver.query(query).map(|_| ())
}

/// A visible `WITH` query.
#[derive(Clone)]
struct Named {
    written: String,
    /// Its name in the plan.
    planned: String,
    columns: Names,
    /// The number of relations that it reads.
    relations: usize,
    /// The number of queries within each other that it consists of.
    levels: usize,
    /// Whether its rows differ each time that it is evaluated.
    is_volatile: bool,
}

/// Whether a relation has a name without a schema.
fn is_called(relation: &ObjectName, name: &str) -> bool {
    matches!(relation.0.as_slice(), [part] if part.as_ident().is_some_and(|ident| ident.value == name))
}

struct Resolver<'t> {
    tables: &'t Tables,
    dialect: Dialect,
    /// The declared types of parameters.
    types: &'t ParameterTypes,
    /// Visible `WITH` queries, the nearest last.
    visible: Vec<Named>,
    /// The names in the plan of the `WITH` queries that are used.
    used: Vec<String>,
    /// The relations of the enclosing queries, the innermost last.
    scopes: Vec<Scope>,
    /// The number of generated names.
    number: usize,
    /// The number of enclosing views.
    views: usize,
    /// The number of enclosing queries.
    depth: usize,
    /// The number of relations read so far.
    relations: usize,
    /// The number of queries within each other below the current query, as far as it is resolved.
    levels: usize,
}

impl Resolver<'_> {
    /// Resolves a query; returns the names of its result.
    fn query(&mut self, query: &mut Query) -> Result<Names, SqlError> {
        self.depth += 1;
        let beside = std::mem::take(&mut self.levels);
        let names = self.query_within(query);
        self.depth -= 1;
        self.levels += 1;
        if names.is_ok() && self.levels > LEVELS_MAX {
            let text = format!(
                "the statement has more than {LEVELS_MAX} queries within each other, once its views and WITH queries \
                 stand in their places"
            );
            return Err(parsing_error(text).with_sqlstate("54001"));
        }
        self.levels = self.levels.max(beside);
        names
    }

    fn query_within(&mut self, query: &mut Query) -> Result<Names, SqlError> {
        let outside = self.visible.len();
        if let Some(with) = &mut query.with {
            self.with(with)?;
        }
        let names = match query.body.as_mut() {
            SetExpr::Select(select) => self.select(select, query.order_by.as_mut()),
            body => {
                if self.dialect == Dialect::Postgres && matches!(body, SetExpr::SetOperation { .. }) {
                    unknown::settled(body, self.types);
                }
                self.body(body).and_then(|names| {
                    self.order_of_set(query.order_by.as_mut(), names.as_deref())?;
                    Ok(names)
                })
            }
        };
        if let Some(LimitClause::LimitOffset { limit, offset, .. }) = &mut query.limit_clause {
            let numbers = limit.iter_mut().chain(offset.iter_mut().map(|offset| &mut offset.value));
            for number in numbers {
                self.expression(number, &Clause::Plain)?;
            }
        }
        self.visible.truncate(outside);
        names
    }

    fn with(&mut self, with: &mut With) -> Result<(), SqlError> {
        let mut written: Vec<String> = Vec::new();
        if with.recursive && reads_one_behind(with) {
            let text = "mutual recursion between WITH items is not implemented";
            return Err(parsing_error(text).with_sqlstate("0A000"));
        }
        for cte in &mut with.cte_tables {
            let name = cte.alias.name.value.clone();
            if written.contains(&name) {
                let text = format!("WITH query name \"{name}\" specified more than once");
                return Err(parsing_error(text).with_sqlstate("42712"));
            }
            written.push(name.clone());
            self.number += 1;
            let planned = format!("$with{}", self.number);
            let declared: Vec<String> = cte.alias.columns.iter().map(|column| column.name.value.clone()).collect();
            let known = Named {
                written: name,
                planned: planned.clone(),
                columns: None,
                relations: 1,
                levels: 1,
                is_volatile: false,
            };
            let (outside, beside) = (self.relations, std::mem::take(&mut self.levels));
            let names = if with.recursive {
                // A recursive query sees itself.
                let itself = Named { columns: (!declared.is_empty()).then(|| declared.clone()), ..known.clone() };
                self.visible.push(itself);
                let names = self.query(&mut cte.query);
                self.visible.pop();
                if self.used.iter().filter(|used| **used == planned).count() > 1 {
                    let text =
                        format!("recursive reference to query \"{}\" must not appear more than once", known.written);
                    return Err(parsing_error(text).with_sqlstate("42P19"));
                }
                if self.used.contains(&planned) && has_aggregates_in_recursion(&cte.query) {
                    let text = "aggregate functions are not allowed in a recursive query's recursive term";
                    return Err(parsing_error(text).with_sqlstate("42P19"));
                }
                names?
            } else {
                self.query(&mut cte.query)?
            };
            // Its relations count where the query is used.
            let relations = (self.relations - outside).max(1);
            self.relations = outside;
            let levels = std::mem::replace(&mut self.levels, beside);
            cte.alias.name = Ident::with_quote('"', &planned);
            let columns = if with.recursive && !declared.is_empty() {
                Some(declared)
            } else {
                complete(&mut cte.alias.columns, names, &known.written)?
            };
            let is_volatile = self.dialect == Dialect::Postgres && self.is_volatile(&cte.query);
            self.visible.push(Named { columns, relations, levels, is_volatile, ..known });
        }
        Ok(())
    }

    /// Whether a resolved query calls a volatile function, also in a `WITH` query that it reads.
    fn is_volatile(&self, query: &Query) -> bool {
        let calls = walk::expressions(query, |expression| match expression {
            Expr::Function(function) if VOLATILE.contains(&function.name.to_string().to_ascii_lowercase().as_str()) => {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        });
        let reads = walk::relations(query, |relation| {
            let is_one = |known: &Named| known.is_volatile && is_called(relation, &known.planned);
            if self.visible.iter().any(is_one) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        calls.is_break() || reads.is_break()
    }

    /// Counts a use of a `WITH` query. Each use evaluates it.
    ///
    /// # Errors
    /// The query was used before, and its rows would differ.
    fn uses(&mut self, known: &Named) -> Result<(), SqlError> {
        if !known.is_volatile || !self.used.contains(&known.planned) {
            self.used.push(known.planned.clone());
            return Ok(());
        }
        let text = format!(
            "WITH query \"{}\" is read more than once and calls a volatile function, which is not served: its rows \
             would differ",
            known.written
        );
        Err(parsing_error(text).with_sqlstate("0A000"))
    }

    /// Counts further relations.
    fn reads(&mut self, relations: usize) -> Result<(), SqlError> {
        self.relations = self.relations.saturating_add(relations);
        match self.relations <= RELATIONS_MAX {
            true => Ok(()),
            false => {
                let text = format!(
                    "the statement reads more than {RELATIONS_MAX} relations, once its views and WITH queries stand in their places"
                );
                Err(parsing_error(text).with_sqlstate("54001"))
            }
        }
    }

    fn body(&mut self, body: &mut SetExpr) -> Result<Names, SqlError> {
        match body {
            SetExpr::Select(select) => self.select(select, None),
            SetExpr::Query(query) => self.query(query),
            SetExpr::SetOperation { left, right, op, set_quantifier } => {
                for side in [&mut *left, &mut *right] {
                    if let SetExpr::Values(values) = side.as_mut() {
                        narrow_values(values, self.dialect);
                    }
                }
                let names = self.body(left)?;
                let others = self.body(right)?;
                if *op == SetOperator::Union || !matches!(set_quantifier, SetQuantifier::All) {
                    return Ok(names);
                }
                let (Some(names), Some(others)) = (names, others) else {
                    let text = format!("{op} ALL is served over columns that are named");
                    return Err(parsing_error(text).with_sqlstate("0A000"));
                };
                if names.len() != others.len() {
                    let text = format!("each {op} query must have the same number of columns");
                    return Err(parsing_error(text).with_sqlstate("42601"));
                }
                *body = sets::counted(left, right, *op, &names)?;
                Ok(Some(names))
            }
            SetExpr::Values(values) => {
                // Values that a statement contains get the types of their columns.
                if self.depth > 1 {
                    narrow_values(values, self.dialect);
                }
                let Values { rows, .. } = values;
                for value in rows.iter_mut().flat_map(|row| row.content.iter_mut()) {
                    self.expression(value, &Clause::Plain)?;
                }
                let width = rows.first().map_or(0, |row| row.content.len());
                Ok(Some((1..=width).map(|number| format!("column{number}")).collect()))
            }
            _ => Ok(None),
        }
    }

    /// `ORDER BY` over the rows of `UNION` and similar operations, which has only the columns of
    /// the result.
    fn order_of_set(&mut self, order: Option<&mut OrderBy>, names: Option<&[String]>) -> Result<(), SqlError> {
        let Some(OrderBy { kind: OrderByKind::Expressions(items), .. }) = order else { return Ok(()) };
        for item in items {
            positions::written_out(&mut item.expr, "ORDER BY", self.dialect)?;
            match &mut item.expr {
                Expr::Identifier(name) => {
                    let is_it = |planned: &&String| shown_name(planned) == name.value;
                    let planned = names.into_iter().flatten().find(is_it).filter(|planned| **planned != name.value);
                    if let Some(planned) = planned {
                        *name = Ident::with_quote('"', planned);
                    }
                }
                Expr::Value(_) => {}
                _ if self.dialect == Dialect::Postgres && names.is_some() => {
                    let text = "invalid UNION/INTERSECT/EXCEPT ORDER BY clause: expected a column of the result";
                    return Err(parsing_error(text).with_sqlstate("0A000"));
                }
                expr => self.expression(expr, &Clause::Plain)?,
            }
        }
        Ok(())
    }

    fn select(&mut self, select: &mut Select, order: Option<&mut OrderBy>) -> Result<Names, SqlError> {
        let scope = self.from(&mut select.from)?;
        self.scopes.push(scope);
        let done = self.select_within(select, order);
        self.scopes.pop();
        done
    }

    /// The rest of the resolution, once the relations are known.
    fn select_within(&mut self, select: &mut Select, mut order: Option<&mut OrderBy>) -> Result<Names, SqlError> {
        self.qualified(&select.projection)?;
        let is_distinct_on = matches!(select.distinct, Some(Distinct::On(_)));
        self.write_out(&mut select.projection, is_distinct_on);
        for item in &mut select.projection {
            self.item(item)?;
        }
        part(&mut select.projection, self.depth > 1);
        if let Some(OrderBy { kind: OrderByKind::Expressions(items), .. }) = order.as_deref() {
            self.part_from_columns(&mut select.projection, items);
        }
        // Only keys refer to the expressions of the result, which may be long.
        let is_grouped = !matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
        let has_keys = is_grouped || is_distinct_on || order.is_some();
        let outputs: Vec<Output> = select.projection.iter().map(|item| Output::of(item, has_keys)).collect();
        for condition in select.selection.iter_mut().chain(&mut select.qualify) {
            self.expression(condition, &Clause::Plain)?;
        }
        keys::write_out(select);
        if let GroupByExpr::Expressions(keys, _) = &mut select.group_by {
            for key in keys {
                self.group_key(key, &outputs)?;
            }
        }
        if let Some(condition) = &mut select.having {
            self.expression(condition, &Clause::Having(&outputs))?;
        }
        for window in &mut select.named_window {
            if let NamedWindowExpr::WindowSpec(window) = &mut window.1 {
                let order = window.order_by.iter_mut().map(|item| &mut item.expr);
                for expression in window.partition_by.iter_mut().chain(order) {
                    self.expression(expression, &Clause::Plain)?;
                }
            }
        }
        if let Some(Distinct::On(keys)) = &mut select.distinct {
            for key in keys {
                self.distinct_key(key, &outputs)?;
            }
        }
        let is_distinct = matches!(select.distinct, Some(Distinct::Distinct)) && self.dialect == Dialect::Postgres;
        if let Some(OrderBy { kind: OrderByKind::Expressions(items), .. }) = &mut order {
            self.rows_in_order(items, &outputs)?;
            for item in items.iter_mut() {
                self.sort_key(&mut item.expr, &outputs, is_distinct)?;
            }
            self.in_order(&mut select.distinct, items, &outputs);
        }
        self.group_by_decided(select, order.as_deref(), &outputs);
        Ok(outputs.into_iter().map(|output| output.planned.or(output.name)).collect())
    }

    /// Gives another name in the plan to a column of the result that has the name of a relation's
    /// column, if a key of the sort refers to the latter: `SELECT lower(s) AS s .. ORDER BY t.s`.
    fn part_from_columns(&self, items: &mut [SelectItem], keys: &[OrderByExpr]) {
        let Some(scope) = self.scopes.last().filter(|_| self.dialect == Dialect::Postgres) else { return };
        let is_named = |key: &Expr, alias: &Ident| {
            let inner = |expr: &Expr| match Output::of_expression(expr) {
                Some(name) if name == alias.value => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            };
            !matches!(key, Expr::Identifier(_) | Expr::Value(_)) && walk::expressions(key, inner).is_break()
        };
        for (at, item) in items.iter_mut().enumerate() {
            let SelectItem::ExprWithAlias { alias, .. } = item else { continue };
            let is_column = |alias: &Ident| scope.count(&alias.value) > 0 || !scope.named(&alias.value).is_empty();
            if keys.iter().any(|key| is_named(&key.expr, alias)) && is_column(alias) {
                *alias = Ident::with_quote('"', format!("{}{REPEATED}{at}", alias.value));
            }
        }
    }

    /// An item of a SELECT list; keeps its name.
    fn item(&mut self, item: &mut SelectItem) -> Result<(), SqlError> {
        match item {
            SelectItem::ExprWithAlias { expr, .. } => self.expression(expr, &Clause::Plain),
            SelectItem::UnnamedExpr(expr) => {
                let name = Output::of_expression(expr);
                let before = matches!(expr, Expr::Identifier(_)).then(|| expr.clone());
                self.expression(expr, &Clause::Plain)?;
                let is_changed = before.is_some_and(|before| before != *expr);
                let keeps_name = |name: &String| match &*expr {
                    Expr::CompoundIdentifier(parts) => parts.last().is_some_and(|last| last.value == *name),
                    _ => false,
                };
                if let Some(name) = name.filter(|name| is_changed && !keeps_name(name)) {
                    let expr = std::mem::replace(expr, Expr::value(Value::Null));
                    *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', name) };
                }
                Ok(())
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::Expr(expr), _) => {
                self.expression(expr, &Clause::Plain)
            }
            _ => Ok(()),
        }
    }

    /// A key of `GROUP BY`. Within ROLLUP and similar items, columns of the result are replaced by
    /// their expressions.
    fn group_key(&mut self, key: &mut Expr, outputs: &[Output]) -> Result<(), SqlError> {
        match key {
            Expr::Rollup(sets) | Expr::Cube(sets) | Expr::GroupingSets(sets) => {
                for key in sets.iter_mut().flatten() {
                    positions::written_out(key, "GROUP BY", self.dialect)?;
                    let output = match &*key {
                        Expr::Identifier(name) if self.is_unknown(name)? => {
                            outputs.iter().find(|output| output.name.as_deref() == Some(name.value.as_str()))
                        }
                        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => {
                            digits.parse().ok().and_then(|place: usize| outputs.get(place.checked_sub(1)?))
                        }
                        _ => None,
                    };
                    match output.and_then(|output| output.expression.clone()) {
                        Some(expression) => *key = expression,
                        None => self.expression(key, &Clause::Group(outputs))?,
                    }
                }
                Ok(())
            }
            key => {
                positions::written_out(key, "GROUP BY", self.dialect)?;
                self.expression(key, &Clause::Group(outputs))
            }
        }
    }

    /// Rejects items `t.c` of relations with several columns `c`.
    fn qualified(&self, items: &[SelectItem]) -> Result<(), SqlError> {
        for item in items {
            let (SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts))
            | SelectItem::ExprWithAlias { expr: Expr::CompoundIdentifier(parts), .. }) = item
            else {
                continue;
            };
            let [.., relation, column] = parts.as_slice() else { continue };
            if self
                .scopes
                .iter()
                .rev()
                .find_map(|scope| scope.count_of(relation, column))
                .is_some_and(|count| count > 1)
            {
                return Err(ambiguous(column));
            }
        }
        Ok(())
    }

    /// A key of `ORDER BY` or `DISTINCT ON`. A plain name refers to a column of the result if one
    /// has it. Of distinct rows only the columns are left, so a key that is the expression of a
    /// column becomes its position.
    fn sort_key(&mut self, key: &mut Expr, outputs: &[Output], is_distinct: bool) -> Result<(), SqlError> {
        if let Expr::Identifier(name) = key {
            let mut named = outputs.iter().filter(|output| output.name.as_deref() == Some(name.value.as_str()));
            if let Some(first) = named.next() {
                let differs = |other: &Output| match (&first.expression, &other.expression) {
                    (Some(first), Some(other)) => !self.are_same(first, other),
                    (first, other) => first != other,
                };
                if self.dialect == Dialect::Postgres && named.any(differs) {
                    return Err(ambiguous(name));
                }
                if let Some(planned) = &first.planned {
                    *key = Expr::Identifier(Ident::with_quote('"', planned));
                }
                return Ok(());
            }
        }
        positions::written_out(key, "ORDER BY", self.dialect)?;
        self.expression(key, &Clause::Order(outputs))?;
        if is_distinct
            && !matches!(key, Expr::Value(_))
            && let Some(place) = self.place_of(key, outputs)
        {
            *key = Expr::value(Value::Number(place.to_string(), false));
        }
        Ok(())
    }
}

/// A column of a result.
struct Output {
    /// `None` = only DataFusion knows it.
    name: Option<String>,
    /// Its name in the plan, if different.
    planned: Option<String>,
    /// Its expression, if keys may refer to it.
    expression: Option<Expr>,
}

impl Output {
    fn of(item: &SelectItem, has_keys: bool) -> Output {
        let expression_of = |expr: &Expr| has_keys.then(|| expr.clone());
        match item {
            SelectItem::ExprWithAlias { expr, alias } => {
                let name = result_name(&alias.value).to_owned();
                let planned = (name != alias.value).then(|| alias.value.clone());
                Output { name: Some(name), planned, expression: expression_of(expr) }
            }
            SelectItem::UnnamedExpr(expr) => {
                // A column without a name gets one that no statement contains.
                let name = Output::of_expression(expr).unwrap_or_else(|| format!("{REPEATED}{expr}"));
                Output { name: Some(name), planned: None, expression: expression_of(expr) }
            }
            _ => Output { name: None, planned: None, expression: None },
        }
    }

    fn of_expression(expression: &Expr) -> Option<String> {
        match expression {
            Expr::Identifier(name) => Some(name.value.clone()),
            Expr::CompoundIdentifier(parts) => parts.last().map(|name| name.value.clone()),
            _ => None,
        }
    }
}

/// Gives different names in the plan to columns of a SELECT list with the same name. `nested` = an
/// enclosing query refers to them.
fn part(items: &mut [SelectItem], nested: bool) {
    let name_of = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
        SelectItem::UnnamedExpr(expr) => Output::of_expression(expr),
        _ => None,
    };
    // Columns of relations keep their qualifiers, also if none is written.
    let qualified: Vec<String> =
        items.iter().filter(|item| matches!(item, SelectItem::UnnamedExpr(_))).filter_map(name_of).collect();
    let mut names: Vec<String> = Vec::new();
    let mut columns: Vec<Vec<Ident>> = Vec::new();
    for (at, item) in items.iter_mut().enumerate() {
        let Some(name) = name_of(&*item) else { continue };
        let column = match &*item {
            SelectItem::UnnamedExpr(Expr::Identifier(name)) => std::slice::from_ref(name),
            SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) => parts.as_slice(),
            _ => &[],
        };
        let is_one = |known: &Vec<Ident>| !column.is_empty() && (ends_with(known, column) || ends_with(column, known));
        let repeats = if nested { names.contains(&name) } else { columns.iter().any(is_one) };
        if !nested && !column.is_empty() {
            columns.push(column.to_vec());
        }
        let marked = Ident::with_quote('"', format!("{name}{REPEATED}{at}"));
        match item {
            // Beside a column `t.c`, an alias `c` alone would be ambiguous.
            SelectItem::ExprWithAlias { alias, .. } if repeats || qualified.contains(&name) => *alias = marked,
            SelectItem::UnnamedExpr(expr) if repeats => {
                *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: marked };
            }
            _ => {}
        }
        names.push(name);
    }
}

/// Whether a name ends with these parts.
fn ends_with(name: &[Ident], parts: &[Ident]) -> bool {
    let values = |name: &[Ident]| name.iter().rev().map(|part| part.value.clone()).collect::<Vec<_>>();
    values(name).starts_with(&values(parts))
}

/// The name of a column for the queries around, without the mark that makes it unique in the plan.
fn shown_name(planned: &str) -> &str {
    match planned.split_once(REPEATED) {
        // A column without a name.
        None | Some(("", _)) => planned,
        Some((shown, _)) => shown,
    }
}

/// The names of a relation's columns under an alias that may rename the first of them. If the alias
/// renames one column, or if two have the same name, it then names all columns.
fn complete(columns: &mut Vec<TableAliasColumnDef>, names: Names, relation: &str) -> Result<Names, SqlError> {
    let Some(names) = names else {
        let declared: Vec<String> = columns.iter().map(|column| column.name.value.clone()).collect();
        // Without an alias for each column, only DataFusion knows the rest.
        return Ok((!declared.is_empty()).then_some(declared));
    };
    if relation == ROWS && columns.len() != names.len() {
        let than = if columns.len() > names.len() { "few" } else { "many" };
        return Err(parsing_error(format!("subquery has too {than} columns")).with_sqlstate("42601"));
    }
    if columns.len() > names.len() {
        let text = format!(
            "table \"{relation}\" has {} columns available but {} columns specified",
            names.len(),
            columns.len()
        );
        return Err(parsing_error(text).with_sqlstate("42P10"));
    }
    let given = columns.iter().map(|column| column.name.value.clone());
    let is_marked = names.iter().skip(columns.len()).any(|name| shown_name(name) != name);
    let shown = names.iter().skip(columns.len()).map(|name| shown_name(name).to_owned());
    let all: Vec<String> = given.chain(shown).collect();
    let repeats = all.iter().enumerate().any(|(at, name)| all.iter().take(at).any(|earlier| earlier == name));
    if !columns.is_empty() || repeats || is_marked {
        let unique = all.iter().enumerate().map(|(at, name)| {
            let repeated = all.iter().take(at).any(|earlier| earlier == name);
            let name = if repeated { format!("{name}{REPEATED}{at}") } else { name.clone() };
            TableAliasColumnDef { name: Ident::with_quote('"', name), data_type: None }
        });
        *columns = unique.collect();
    }
    Ok(Some(all))
}

fn ambiguous(name: &Ident) -> SqlError {
    let text = format!("column reference \"{}\" is ambiguous", name.value);
    let subject = SqlSubject::AmbiguousColumn { name: name.value.clone() };
    dialect::at(&text, name.span.start).with_sqlstate("42702").about(subject)
}

fn missing(name: &Ident) -> SqlError {
    let subject = SqlSubject::Column { relation: None, name: name.value.clone(), nearest: None };
    let text = format!("column \"{}\" does not exist", name.value);
    dialect::at(&text, name.span.start).with_sqlstate("42703").about(subject)
}

/// Whether the recursive term of a query has an aggregate: its rows would never end.
fn has_aggregates_in_recursion(query: &Query) -> bool {
    let SetExpr::SetOperation { right, .. } = query.body.as_ref() else { return false };
    let mut term = right.as_ref();
    while let SetExpr::Query(inner) = term {
        term = inner.body.as_ref();
    }
    matches!(term, SetExpr::Select(select) if keys::aggregates(select))
}
