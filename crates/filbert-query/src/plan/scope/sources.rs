//! The relations of a FROM clause: their columns, the columns of joins, and the expansion of `*`.

use std::collections::HashMap;

use datafusion::sql::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, Query,
    SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableAlias, TableAliasColumnDef, TableFactor, TableWithJoins,
    Value, WildcardAdditionalOptions,
};
use datafusion::sql::sqlparser::parser::Parser;
use filbert_data::FieldType;
use filbert_dialect::calls::MERGED_COLUMN;
use filbert_dialect::{HazelcastDialect, REPEATED, call};
use filbert_functions::error::parsing_error;
use filbert_grid::query::{Dialect, SqlError};

use super::names::Clause;
use super::{Named, Names, Resolver, VIEW_DEPTH_MAX, complete, shown_name};
use crate::tables::ViewQuery;

/// The relations and columns that a query reads.
#[derive(Clone, Default)]
pub(super) struct Scope {
    pub(super) relations: Vec<Relation>,
    /// The columns that may be named without a qualifier, in the order of `*`.
    pub(super) columns: Vec<Column>,
    /// Whether there are further columns that are unknown here.
    pub(super) open: bool,
    /// Whether `*` has to be expanded.
    rewritten: bool,
}

/// A relation of a FROM clause.
#[derive(Clone)]
pub(super) struct Relation {
    /// The qualifier of its columns.
    pub(super) name: Vec<Ident>,
    aliased: bool,
    /// `None` = only DataFusion knows them.
    pub(super) columns: Option<Vec<String>>,
    /// A column that is never null, if the relation has one.
    pub(super) key: Option<String>,
    /// The columns of its primary key, which determine all others; empty if it has none, or they
    /// are unknown.
    pub(super) primary_key: Vec<String>,
    /// Whether an outer join may add rows of nulls for it.
    pub(super) nullable: bool,
}

/// A column that may be named without a qualifier.
#[derive(Clone)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) expression: Expr,
    /// Whether `*` omits it.
    pub(super) hidden: bool,
    /// Whether it merges columns of two relations.
    pub(super) merged: bool,
    /// Its type; `None` if only planning determines it.
    pub(super) of: Option<FieldType>,
}

impl Scope {
    /// The columns that a name may refer to. Hidden columns count only if no other column has the
    /// name.
    pub(super) fn named(&self, name: &str) -> Vec<&Column> {
        let of_name = |hidden: bool| {
            let found = self.columns.iter().filter(move |column| column.name == name && column.hidden == hidden);
            found.collect::<Vec<_>>()
        };
        let shown = of_name(false);
        if shown.is_empty() { of_name(true) } else { shown }
    }

    /// The number of relations that have a column of this name, merged or not.
    pub(super) fn count(&self, name: &str) -> usize {
        let has = |relation: &&Relation| {
            relation.columns.iter().flatten().any(|column| column == name)
                || self.columns.iter().any(|column| {
                    column.hidden && column.name == name && qualifier(&column.expression) == relation.name
                })
        };
        self.relations.iter().filter(has).count()
    }

    /// The number of a relation's columns with this name; `None` = the relation does not exist, or
    /// its columns are unknown.
    pub(super) fn count_of(&self, relation: &Ident, column: &Ident) -> Option<usize> {
        let is_it = |own: &&Relation| own.name.last().is_some_and(|name| name.value == relation.value);
        let columns = self.relations.iter().find(is_it)?.columns.as_ref()?;
        Some(columns.iter().filter(|name| name.split(REPEATED).next() == Some(column.value.as_str())).count())
    }

    fn joined(mut self, other: Scope) -> Result<Scope, SqlError> {
        for relation in &other.relations {
            if self.relations.iter().any(|known| known.conflicts(relation)) {
                let name = relation.name.last().map_or("", |name| name.value.as_str());
                let text = format!("table name \"{name}\" specified more than once");
                return Err(parsing_error(text).with_sqlstate("42712"));
            }
        }
        self.relations.extend(other.relations);
        self.columns.extend(other.columns);
        self.open |= other.open;
        self.rewritten |= other.rewritten;
        Ok(self)
    }

    fn extended_by_nulls(mut self) -> Scope {
        self.relations.iter_mut().for_each(|relation| relation.nullable = true);
        self
    }

    /// Lets the name of a function that returns values stand for its column, as in PostgreSQL.
    fn name_only_column(&mut self) {
        let ([relation], [column]) = (self.relations.as_slice(), self.columns.as_slice()) else { return };
        let Some(name) = relation.name.last().filter(|name| name.value != column.name) else { return };
        let (name, expression) = (name.value.clone(), column.expression.clone());
        self.columns.push(Column { name, expression, hidden: true, merged: true, of: None });
    }

    fn of_relation(relation: Relation, hidden: &[String]) -> Scope {
        let mut scope = Scope { open: relation.columns.is_none(), ..Scope::default() };
        let qualified = |name: &String| {
            let mut parts = relation.name.clone();
            parts.push(Ident::with_quote('"', name));
            Expr::CompoundIdentifier(parts)
        };
        for (names, is_hidden) in [(relation.columns.as_deref().unwrap_or_default(), false), (hidden, true)] {
            for name in names {
                let expression = qualified(name);
                let shown = name.split(REPEATED).next().unwrap_or(name).to_owned();
                scope.columns.push(Column { name: shown, expression, hidden: is_hidden, merged: false, of: None });
            }
        }
        scope.rewritten = !hidden.is_empty();
        scope.relations.push(relation);
        scope
    }
}

impl Relation {
    fn conflicts(&self, other: &Relation) -> bool {
        let last = |relation: &Relation| relation.name.last().map(|name| name.value.clone());
        match self.aliased || other.aliased {
            true => last(self) == last(other),
            false => {
                let parts = |relation: &Relation| -> Vec<String> {
                    relation.name.iter().map(|name| name.value.clone()).collect()
                };
                parts(self) == parts(other)
            }
        }
    }

    pub(super) fn is_called(&self, name: &ObjectName) -> bool {
        let wanted: Vec<&str> =
            name.0.iter().filter_map(|part| part.as_ident()).map(|ident| ident.value.as_str()).collect();
        let own: Vec<&str> = self.name.iter().map(|ident| ident.value.as_str()).collect();
        own.ends_with(&wanted) || wanted.ends_with(&own)
    }
}

fn qualifier(expression: &Expr) -> Vec<Ident> {
    match expression {
        Expr::CompoundIdentifier(parts) => {
            parts.split_last().map(|(_, qualifier)| qualifier.to_vec()).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

impl Resolver<'_> {
    /// Resolves a FROM clause.
    pub(super) fn from(&mut self, from: &mut [TableWithJoins]) -> Result<Scope, SqlError> {
        let mut scope = Scope::default();
        for tree in from {
            let of_tree = self.tree(tree, &scope)?;
            scope = scope.joined(of_tree)?;
        }
        Ok(scope)
    }

    /// Resolves a relation with its joins. `before` has the relations to the left, which LATERAL
    /// may refer to.
    fn tree(&mut self, tree: &mut TableWithJoins, before: &Scope) -> Result<Scope, SqlError> {
        let mut left = self.factor(&mut tree.relation, before)?;
        for join in &mut tree.joins {
            let mut seen = before.clone();
            seen.relations.extend(left.relations.iter().cloned());
            seen.columns.extend(left.columns.iter().cloned());
            seen.open |= left.open;
            let right = self.factor(&mut join.relation, &seen)?;
            left = self.join(join, left, right)?;
        }
        Ok(left)
    }

    fn join(&mut self, join: &mut Join, left: Scope, right: Scope) -> Result<Scope, SqlError> {
        let kind = Kind::of(&join.join_operator);
        let Some(constraint) = constraint(&mut join.join_operator) else { return left.joined(right) };
        let open = left.open || right.open;
        let names: Vec<String> = match constraint {
            JoinConstraint::Using(names) if !open => {
                names.iter().filter_map(|name| Some(name.0.last()?.as_ident()?.value.clone())).collect()
            }
            JoinConstraint::Natural if !open => {
                let shown = left.columns.iter().filter(|column| !column.hidden);
                let mut names: Vec<String> = Vec::new();
                for column in shown {
                    if right.columns.iter().any(|other| !other.hidden && other.name == column.name)
                        && !names.contains(&column.name)
                    {
                        names.push(column.name.clone());
                    }
                }
                names
            }
            JoinConstraint::On(condition) => {
                let joined = left.clone().joined(right.clone())?;
                let mut on = std::mem::replace(condition, Expr::value(Value::Null));
                self.scopes.push(joined);
                let done = self.expression(&mut on, &Clause::Plain);
                self.scopes.pop();
                done?;
                *condition = on;
                return kind.nulls(left, right);
            }
            JoinConstraint::Using(_) | JoinConstraint::Natural if matches!(kind, Kind::Full | Kind::Right) => {
                let text = "FULL and RIGHT JOIN with USING or NATURAL are served over tables, views and subqueries";
                return Err(parsing_error(text).with_sqlstate("0A000"));
            }
            _ => return kind.nulls(left, right),
        };
        let (condition, merged) = merge(&names, &left, &right, kind)?;
        *constraint = JoinConstraint::On(condition);
        let mut joined = kind.nulls(left, right)?;
        let is_merged = |column: &Column| !column.hidden && names.contains(&column.name);
        joined.columns.retain(|column| !is_merged(column));
        joined.columns.splice(0..0, merged);
        joined.rewritten = true;
        Ok(joined)
    }

    fn factor(&mut self, factor: &mut TableFactor, before: &Scope) -> Result<Scope, SqlError> {
        match factor {
            TableFactor::Table { args: None, .. } => self.table(factor),
            TableFactor::Derived { lateral, subquery, alias, .. } => {
                self.reads(1)?;
                if *lateral {
                    self.scopes.push(before.clone());
                }
                let names = self.query(subquery);
                if *lateral {
                    self.scopes.pop();
                }
                derived(alias.as_mut(), names?)
            }
            TableFactor::NestedJoin { table_with_joins, alias } => {
                let inner = self.tree(table_with_joins, &Scope::default())?;
                let Some(alias) = alias.take() else { return Ok(inner) };
                let query = all_of(table_with_joins, &inner)?;
                *factor = TableFactor::Derived {
                    lateral: false,
                    subquery: Box::new(query),
                    alias: Some(alias),
                    sample: None,
                };
                let names: Vec<String> = shown(&inner).map(|column| column.name.clone()).collect();
                let TableFactor::Derived { alias, .. } = factor else { return Ok(inner) };
                derived(alias.as_mut(), (!inner.open).then_some(names))
            }
            TableFactor::Function { args, alias, .. } => {
                self.reads(1)?;
                self.scopes.push(before.clone());
                let done = self.arguments(args);
                self.scopes.pop();
                done?;
                derived(alias.as_mut(), None)
            }
            TableFactor::UNNEST { array_exprs, alias, .. } => {
                self.reads(1)?;
                self.scopes.push(before.clone());
                let done = array_exprs.iter_mut().try_for_each(|array| self.expression(array, &Clause::Plain));
                self.scopes.pop();
                done?;
                let is_single = array_exprs.len() == 1;
                let mut scope = derived(alias.as_mut(), None)?;
                if is_single {
                    scope.name_only_column();
                }
                Ok(scope)
            }
            _ => Ok(Scope { open: true, ..Scope::default() }),
        }
    }

    fn arguments(&mut self, arguments: &mut [FunctionArg]) -> Result<(), SqlError> {
        for argument in arguments {
            if let FunctionArg::Unnamed(FunctionArgExpr::Expr(expression))
            | FunctionArg::Named { arg: FunctionArgExpr::Expr(expression), .. } = argument
            {
                self.expression(expression, &Clause::Plain)?;
            }
        }
        Ok(())
    }

    /// Resolves a relation name: a `WITH` query, a view or a table, in this order.
    fn table(&mut self, factor: &mut TableFactor) -> Result<Scope, SqlError> {
        let TableFactor::Table { name, alias, .. } = factor else { return Ok(Scope::default()) };
        if let [bare] = name.0.as_slice()
            && let Some(bare) = bare.as_ident()
            && let Some(known) = self.visible.iter().rev().find(|known| known.written == bare.value).cloned()
        {
            self.uses(&known)?;
            let Named { written, planned, columns, relations, levels, .. } = known;
            self.reads(relations)?;
            self.levels = self.levels.max(levels);
            *name = ObjectName::from(vec![Ident::with_quote('"', planned)]);
            let alias = alias.get_or_insert_with(|| alias_of(Ident::with_quote('"', written)));
            return derived(Some(alias), columns);
        }
        self.reads(1)?;
        if let Some(ViewQuery { mut query, dialect, columns }) = self.tables.view(name)? {
            let mut names = self.view(&mut query, dialect, name)?;
            // In PostgreSQL, `*` stands for the columns that there were when the view was created.
            // The columns of a `*` that is not written out are not known.
            if dialect == Dialect::Postgres && names.as_ref().is_none_or(|names| has_more(names, &columns)) {
                query = columns_of(query, names, &columns)?;
                names = Some(columns);
            }
            let called = name.0.last().and_then(|part| part.as_ident().cloned());
            let alias = alias.take().or_else(|| called.map(alias_of));
            *factor = TableFactor::Derived { lateral: false, subquery: Box::new(query), alias, sample: None };
            let TableFactor::Derived { alias, .. } = factor else { return Ok(Scope::default()) };
            return derived(alias.as_mut(), names);
        }
        let Some(columns) = self.tables.columns(name) else {
            let name = alias.as_ref().map_or_else(|| idents(name), |alias| vec![alias.name.clone()]);
            let relation = Relation {
                name,
                aliased: alias.is_some(),
                columns: None,
                key: None,
                primary_key: Vec::new(),
                nullable: false,
            };
            return Ok(Scope::of_relation(relation, &[]));
        };
        let types: HashMap<String, FieldType> =
            columns.columns.iter().map(|(name, of, _)| (name.clone(), of.clone())).collect();
        let (shown, hidden): (Vec<_>, Vec<_>) = columns.columns.into_iter().partition(|(.., hidden)| !hidden);
        let shown: Vec<String> = shown.into_iter().map(|(name, ..)| name).collect();
        let hidden: Vec<String> = hidden.into_iter().map(|(name, ..)| name).collect();
        if let Some(given) = alias.as_mut().filter(|alias| !alias.columns.is_empty()) {
            // The new names are for the visible columns.
            let mut own = given.clone();
            let renamed = complete(&mut own.columns, Some(shown.clone()), &given.name.value)?;
            own.columns.clear();
            let inner = name.clone();
            let items =
                shown.iter().zip(renamed.iter().flatten()).map(|(column, renamed)| (column.clone(), renamed.clone()));
            let query = renaming(&inner, items)?;
            *factor =
                TableFactor::Derived { lateral: false, subquery: Box::new(query), alias: Some(own), sample: None };
            let TableFactor::Derived { alias, .. } = factor else { return Ok(Scope::default()) };
            return derived(alias.as_mut(), renamed);
        }
        let relation = Relation {
            name: alias.as_ref().map_or_else(|| idents(name), |alias| vec![alias.name.clone()]),
            aliased: alias.is_some(),
            columns: Some(shown),
            key: columns.key,
            primary_key: columns.primary_key,
            nullable: false,
        };
        let mut scope = Scope::of_relation(relation, &hidden);
        scope.columns.iter_mut().for_each(|column| column.of = types.get(&column.name).cloned());
        Ok(scope)
    }

    /// The query of a view, which sees nothing of the query that reads it.
    fn view(&mut self, query: &mut Query, dialect: Dialect, name: &ObjectName) -> Result<Names, SqlError> {
        if self.views >= VIEW_DEPTH_MAX {
            let text = format!("view {name} is defined by more than {VIEW_DEPTH_MAX} views within views");
            return Err(parsing_error(text));
        }
        let mut within = Resolver {
            tables: self.tables,
            dialect,
            types: self.types,
            visible: Vec::new(),
            used: Vec::new(),
            scopes: Vec::new(),
            number: self.number,
            views: self.views + 1,
            depth: self.depth,
            relations: self.relations,
            levels: 0,
        };
        let names = within.query(query);
        (self.number, self.relations) = (within.number, within.relations);
        self.levels = self.levels.max(within.levels);
        names
    }

    /// Expands `*` where DataFusion would expand it differently, and beside other items, which may
    /// have the names of its columns. `is_needed` = the positions of columns are needed.
    pub(super) fn write_out(&self, items: &mut Vec<SelectItem>, is_needed: bool) {
        let Some(scope) = self.scopes.last() else { return };
        let is_expanded = scope.rewritten || is_needed || items.len() > 1;
        if scope.open || !is_expanded {
            return;
        }
        for item in std::mem::take(items) {
            match &item {
                SelectItem::Wildcard(options) if is_plain(options) => {
                    items.extend(shown(scope).map(item_of));
                }
                SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), options)
                    if is_plain(options) =>
                {
                    match scope.relations.iter().find(|relation| relation.is_called(name)) {
                        Some(Relation { name, columns: Some(columns), .. }) => {
                            items.extend(columns.iter().map(|column| {
                                let mut parts = name.clone();
                                parts.push(Ident::with_quote('"', column));
                                item_of(&Column {
                                    name: column.split(REPEATED).next().unwrap_or(column).to_owned(),
                                    expression: Expr::CompoundIdentifier(parts),
                                    hidden: false,
                                    merged: false,
                                    of: None,
                                })
                            }));
                        }
                        _ => items.push(item),
                    }
                }
                _ => items.push(item),
            }
        }
    }
}

/// The treatment of rows without a match.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Inner,
    Left,
    Right,
    Full,
}

impl Kind {
    fn of(operator: &JoinOperator) -> Kind {
        match operator {
            JoinOperator::Left(_) | JoinOperator::LeftOuter(_) => Kind::Left,
            JoinOperator::Right(_) | JoinOperator::RightOuter(_) => Kind::Right,
            JoinOperator::FullOuter(_) => Kind::Full,
            _ => Kind::Inner,
        }
    }

    /// The columns of both sides.
    fn nulls(self, left: Scope, right: Scope) -> Result<Scope, SqlError> {
        let left = if matches!(self, Kind::Right | Kind::Full) { left.extended_by_nulls() } else { left };
        let right = if matches!(self, Kind::Left | Kind::Full) { right.extended_by_nulls() } else { right };
        left.joined(right)
    }
}

/// The constraint of a join; `None` for a join that has none.
pub(crate) fn constraint(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    match operator {
        JoinOperator::Join(constraint)
        | JoinOperator::Inner(constraint)
        | JoinOperator::Left(constraint)
        | JoinOperator::LeftOuter(constraint)
        | JoinOperator::Right(constraint)
        | JoinOperator::RightOuter(constraint)
        | JoinOperator::FullOuter(constraint) => Some(constraint),
        _ => None,
    }
}

/// The condition of a join by equally named columns, and the merged columns.
fn merge(names: &[String], left: &Scope, right: &Scope, kind: Kind) -> Result<(Expr, Vec<Column>), SqlError> {
    let mut condition: Option<Expr> = None;
    let mut merged = Vec::with_capacity(names.len());
    for name in names {
        let (left, right) = (one_of(left, name, "left")?, one_of(right, name, "right")?);
        let of = left.of.clone().filter(|of| right.of.as_ref() == Some(of));
        let (left, right) = (left.expression.clone(), right.expression.clone());
        let equal =
            Expr::BinaryOp { left: Box::new(left.clone()), op: BinaryOperator::Eq, right: Box::new(right.clone()) };
        condition = Some(match condition {
            None => equal,
            Some(condition) => {
                Expr::BinaryOp { left: Box::new(condition), op: BinaryOperator::And, right: Box::new(equal) }
            }
        });
        let kept = |kept: Expr, other: Expr| match of {
            Some(_) => kept,
            None => call(MERGED_COLUMN, vec![kept, other], Vec::new(), None),
        };
        let expression = match kind {
            Kind::Inner | Kind::Left => kept(left, right),
            Kind::Right => kept(right, left),
            Kind::Full => call("coalesce", vec![left, right], Vec::new(), None),
        };
        merged.push(Column { name: name.clone(), expression, hidden: false, merged: true, of });
    }
    Ok((condition.unwrap_or_else(|| Expr::value(Value::Boolean(true))), merged))
}

/// The only column with this name on one side of a join.
fn one_of<'s>(side: &'s Scope, name: &str, which: &str) -> Result<&'s Column, SqlError> {
    match side.named(name).as_slice() {
        [column] => Ok(column),
        [] => {
            let text = format!("column \"{name}\" specified in USING clause does not exist in {which} table");
            Err(parsing_error(text).with_sqlstate("42703"))
        }
        _ => {
            let text = format!("common column name \"{name}\" appears more than once in {which} table");
            Err(parsing_error(text).with_sqlstate("42702"))
        }
    }
}

/// The scope of a subquery, by its alias.
fn derived(alias: Option<&mut TableAlias>, names: Names) -> Result<Scope, SqlError> {
    let Some(alias) = alias else { return Ok(Scope { open: true, ..Scope::default() }) };
    let names = complete(&mut alias.columns, names, &alias.name.value)?;
    // An alias with column names determines the names in the plan.
    let planned = match (&names, alias.columns.is_empty()) {
        (Some(_), false) => Some(alias.columns.iter().map(|column| column.name.value.clone()).collect()),
        _ => names,
    };
    let relation = Relation {
        name: vec![alias.name.clone()],
        aliased: true,
        columns: planned,
        key: None,
        primary_key: Vec::new(),
        nullable: false,
    };
    Ok(Scope::of_relation(relation, &[]))
}

/// The columns that `*` stands for.
fn shown(scope: &Scope) -> impl Iterator<Item = &Column> {
    scope.columns.iter().filter(|column| !column.hidden)
}

/// A column as an item of a SELECT list.
fn item_of(column: &Column) -> SelectItem {
    let expr = column.expression.clone();
    match &expr {
        Expr::CompoundIdentifier(parts) if parts.last().is_some_and(|part| part.value == column.name) => {
            SelectItem::UnnamedExpr(expr)
        }
        _ => SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', &column.name) },
    }
}

fn is_plain(options: &WildcardAdditionalOptions) -> bool {
    *options == WildcardAdditionalOptions { wildcard_token: options.wildcard_token.clone(), ..Default::default() }
}

fn idents(name: &ObjectName) -> Vec<Ident> {
    name.0.iter().filter_map(|part| part.as_ident().cloned()).collect()
}

fn alias_of(name: Ident) -> TableAlias {
    TableAlias { explicit: true, name, columns: Vec::<TableAliasColumnDef>::new(), at: None }
}

/// `SELECT <items> FROM <tree>`. The many other fields come from parsing a minimal query.
fn query_of(items: Vec<SelectItem>, tree: TableWithJoins) -> Result<Query, SqlError> {
    let parsed = Parser::new(&HazelcastDialect).try_with_sql("SELECT 1").and_then(|mut parser| parser.parse_query());
    let mut query = *parsed.map_err(|error| parsing_error(error.to_string()))?;
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection = items;
        select.from = vec![tree];
    }
    Ok(query)
}

/// A join as a query of all columns that `*` stands for.
fn all_of(tree: &TableWithJoins, scope: &Scope) -> Result<Query, SqlError> {
    let items = match scope.open {
        true => vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())],
        false => shown(scope).map(item_of).collect(),
    };
    query_of(items, tree.clone())
}

/// Whether there are other columns beside all of these.
fn has_more(names: &[String], columns: &[String]) -> bool {
    names.len() > columns.len() && columns.iter().all(|column| names.iter().any(|name| shown_name(name) == column))
}

/// Some columns of a query with these names.
fn columns_of(query: Query, names: Names, columns: &[String]) -> Result<Query, SqlError> {
    let mut alias = alias_of(Ident::with_quote('"', "view"));
    complete(&mut alias.columns, names, "view")?;
    let items = columns.iter().map(|column| SelectItem::UnnamedExpr(Expr::Identifier(Ident::with_quote('"', column))));
    let relation = TableFactor::Derived { lateral: false, subquery: Box::new(query), alias: Some(alias), sample: None };
    query_of(items.collect(), TableWithJoins { relation, joins: Vec::new() })
}

/// Some columns of a table under other names.
fn renaming(table: &ObjectName, columns: impl Iterator<Item = (String, String)>) -> Result<Query, SqlError> {
    let items = columns.map(|(column, renamed)| SelectItem::ExprWithAlias {
        expr: Expr::Identifier(Ident::with_quote('"', column)),
        alias: Ident::with_quote('"', renamed),
    });
    let relation = TableFactor::Table {
        name: table.clone(),
        alias: None,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    };
    query_of(items.collect(), TableWithJoins { relation, joins: Vec::new() })
}
