//! Rejects clauses that the parser accepts but the engine does not support, so none is silently
//! ignored.
//!
//! Every field of the syntax tree is named in the patterns. A new version of the parser with more
//! fields does not compile before each of them is handled.

use std::ops::ControlFlow;

use filbert_grid::query::{SqlError, parsing_error};
use sqlparser::ast::{
    Cte, Delete, Expr, Function, FunctionArgumentClause, FunctionArguments, GroupByExpr, Insert, Join, JoinConstraint,
    JoinOperator, LimitClause, NamedWindowDefinition, NamedWindowExpr, OrderBy, OrderByExpr, Query, Select, SelectItem,
    SetExpr, TableAlias, TableFactor, TableFunctionArgs, TableWithJoins, Visit, Visitor, WildcardAdditionalOptions,
    WindowSpec, WindowType, With,
};

use super::server::takes_columns;
use crate::walk;

/// Fails if a part of a query, an expression or a table uses an unsupported clause.
pub(super) fn check<T: Visit>(tree: &T) -> Result<(), SqlError> {
    match walk::read(tree, &mut Served { windows: Vec::new() }) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// The error for an unsupported clause.
fn not_served(clause: &str) -> SqlError {
    parsing_error(format!("{clause} is not served")).with_sqlstate("0A000")
}

/// Fails with the first clause that is present.
fn refuse(clauses: &[(bool, &str)]) -> Result<(), SqlError> {
    match clauses.iter().find(|(is_there, _)| *is_there) {
        Some((_, clause)) => Err(not_served(clause)),
        None => Ok(()),
    }
}

struct Served {
    /// Whether a call of a window function is around the node, for each query around it.
    windows: Vec<bool>,
}

impl Served {
    /// Enters a call of a window function. Nested calls are an error in every database. DataFusion
    /// finds that late: the time of planning and its memory double with each level.
    fn enter_window(&mut self) -> Result<(), SqlError> {
        if self.windows.is_empty() {
            // An expression without a query around it.
            self.windows.push(false);
        }
        match self.windows.last_mut() {
            Some(is_within @ false) => {
                *is_within = true;
                Ok(())
            }
            _ => Err(parsing_error("window function calls cannot be nested").with_sqlstate("42P20")),
        }
    }

    fn leave_window(&mut self) {
        if let Some(is_within) = self.windows.last_mut() {
            *is_within = false;
        }
    }
}

fn flow(checked: Result<(), SqlError>) -> ControlFlow<SqlError> {
    match checked {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

impl Visitor for Served {
    type Break = SqlError;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<SqlError> {
        self.windows.push(false);
        flow(check_query(query))
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<SqlError> {
        self.windows.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<SqlError> {
        flow(check_select(select))
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<SqlError> {
        flow(check_factor(factor))
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
        match expr {
            Expr::Function(function) => {
                let entered = if function.over.is_some() { self.enter_window() } else { Ok(()) };
                flow(entered.and_then(|()| check_function(function)))
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn post_visit_expr(&mut self, expr: &Expr) -> ControlFlow<SqlError> {
        if let Expr::Function(Function { over: Some(_), .. }) = expr {
            self.leave_window();
        }
        ControlFlow::Continue(())
    }
}

fn check_query(query: &Query) -> Result<(), SqlError> {
    let Query { with, body, order_by, limit_clause, fetch, locks, for_clause, settings, format_clause, pipe_operators } =
        query;
    let (with_ties, percent) = fetch.as_ref().map_or((false, false), |fetch| (fetch.with_ties, fetch.percent));
    let limit_by = match limit_clause {
        Some(LimitClause::LimitOffset { limit: _, offset: _, limit_by }) => !limit_by.is_empty(),
        Some(LimitClause::OffsetCommaLimit { offset: _, limit: _ }) => {
            return Err(parsing_error("LIMIT #,# syntax is not supported, use separate LIMIT and OFFSET clauses"));
        }
        None => false,
    };
    if with_ties && order_by.is_none() {
        return Err(parsing_error("WITH TIES cannot be specified without ORDER BY clause"));
    }
    refuse(&[
        (!locks.is_empty(), "FOR UPDATE and FOR SHARE: rows are not locked by reading them,"),
        (for_clause.is_some(), "FOR XML and FOR JSON"),
        (settings.is_some(), "SETTINGS"),
        (format_clause.is_some(), "FORMAT"),
        (!pipe_operators.is_empty(), "a pipe operator"),
        (with_ties, "FETCH .. WITH TIES"),
        (percent, "FETCH .. PERCENT"),
        (limit_by, "LIMIT .. BY"),
    ])?;
    if let Some(OrderBy { kind: _, interpolate }) = order_by {
        refuse(&[(interpolate.is_some(), "INTERPOLATE")])?;
    }
    with.iter().try_for_each(check_with)?;
    match &**body {
        SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_) => {
            Err(not_served("a statement that changes rows within a query"))
        }
        SetExpr::Select(_)
        | SetExpr::Query(_)
        | SetExpr::SetOperation { .. }
        | SetExpr::Values(_)
        | SetExpr::Table(_) => Ok(()),
    }
}

/// Fails if a `WITH` has parts that are not served; its queries are checked on their own.
pub(super) fn check_with(with: &With) -> Result<(), SqlError> {
    let With { with_token: _, recursive: _, cte_tables } = with;
    for Cte { alias, query: _, from, materialized: _, closing_paren_token: _ } in cte_tables {
        refuse(&[(from.is_some(), "FROM in a WITH query")])?;
        check_alias(Some(alias))?;
    }
    Ok(())
}

fn check_select(select: &Select) -> Result<(), SqlError> {
    let Select {
        select_token: _,
        // Hints are comments.
        optimizer_hints: _,
        distinct: _,
        select_modifiers,
        top,
        top_before_distinct: _,
        projection,
        exclude,
        into,
        from,
        lateral_views,
        prewhere,
        selection: _,
        connect_by,
        group_by,
        cluster_by,
        distribute_by,
        sort_by,
        having: _,
        named_window,
        qualify: _,
        window_before_qualify: _,
        value_table_mode,
        flavor: _,
    } = select;
    let modifiers = match group_by {
        GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers) => !modifiers.is_empty(),
    };
    refuse(&[
        (select_modifiers.is_some(), "a modifier between SELECT and its columns"),
        (top.is_some(), "TOP"),
        (exclude.is_some(), "EXCLUDE"),
        (into.is_some(), "SELECT INTO: CREATE TABLE .. AS makes a table of a query,"),
        (!lateral_views.is_empty(), "LATERAL VIEW"),
        (prewhere.is_some(), "PREWHERE"),
        (!connect_by.is_empty(), "CONNECT BY"),
        (modifiers, "a modifier of GROUP BY"),
        (!cluster_by.is_empty(), "CLUSTER BY"),
        (!distribute_by.is_empty(), "DISTRIBUTE BY"),
        (!sort_by.is_empty(), "SORT BY"),
        (value_table_mode.is_some(), "AS VALUE and AS STRUCT"),
    ])?;
    projection.iter().try_for_each(check_item)?;
    for TableWithJoins { relation: _, joins } in from {
        joins.iter().try_for_each(check_join)?;
    }
    for NamedWindowDefinition(_, definition) in named_window {
        match definition {
            NamedWindowExpr::NamedWindow(_) => {}
            NamedWindowExpr::WindowSpec(spec) => {
                check_window(spec)?;
                check_definition(spec)?;
            }
        }
    }
    Ok(())
}

/// Fails if the definition of a named window calls a window function. Each call that names the
/// window would have it within itself.
fn check_definition(spec: &WindowSpec) -> Result<(), SqlError> {
    // The calls of a query within the definition are its own.
    let calls = walk::own_expressions(spec, |expr| match expr {
        Expr::Function(Function { over: Some(_), .. }) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    match calls {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => {
            Err(parsing_error("window functions are not allowed in window definitions").with_sqlstate("42P20"))
        }
    }
}

fn check_item(item: &SelectItem) -> Result<(), SqlError> {
    match item {
        SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. } => Ok(()),
        SelectItem::ExprWithAliases { .. } => Err(not_served("an expression with several names")),
        SelectItem::QualifiedWildcard(_, options) | SelectItem::Wildcard(options) => {
            let WildcardAdditionalOptions {
                wildcard_token: _,
                opt_ilike,
                opt_exclude: _,
                opt_except: _,
                opt_replace,
                opt_rename,
                opt_alias,
            } = options;
            refuse(&[
                (opt_ilike.is_some(), "* ILIKE"),
                (opt_replace.is_some(), "* REPLACE"),
                (opt_rename.is_some(), "* RENAME"),
                (opt_alias.is_some(), "* AS"),
            ])
        }
    }
}

fn check_join(join: &Join) -> Result<(), SqlError> {
    let Join { relation: _, global, join_operator } = join;
    refuse(&[(*global, "GLOBAL JOIN")])?;
    match join_operator {
        JoinOperator::CrossJoin(JoinConstraint::None)
        | JoinOperator::Join(_)
        | JoinOperator::Inner(_)
        | JoinOperator::Left(_)
        | JoinOperator::LeftOuter(_)
        | JoinOperator::Right(_)
        | JoinOperator::RightOuter(_)
        | JoinOperator::FullOuter(_)
        | JoinOperator::Semi(_)
        | JoinOperator::LeftSemi(_)
        | JoinOperator::RightSemi(_)
        | JoinOperator::Anti(_)
        | JoinOperator::LeftAnti(_)
        | JoinOperator::RightAnti(_) => Ok(()),
        JoinOperator::CrossJoin(_) => Err(parsing_error("CROSS JOIN has no condition")),
        JoinOperator::CrossApply
        | JoinOperator::OuterApply
        | JoinOperator::AsOf { .. }
        | JoinOperator::StraightJoin(_)
        | JoinOperator::ArrayJoin
        | JoinOperator::LeftArrayJoin
        | JoinOperator::InnerArrayJoin => Err(not_served("this kind of join")),
    }
}

fn check_factor(factor: &TableFactor) -> Result<(), SqlError> {
    match factor {
        TableFactor::Table {
            name,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            sample,
            index_hints,
        } => {
            let settings = matches!(args, Some(TableFunctionArgs { args: _, settings: Some(_) }));
            refuse(&[
                // A function's rows can be numbered.
                (*with_ordinality && args.is_none(), "WITH ORDINALITY"),
                (sample.is_some(), "TABLESAMPLE"),
                (!with_hints.is_empty(), "WITH (..) after a table"),
                (version.is_some(), "a version of a table"),
                (!partitions.is_empty(), "PARTITION (..) after a table"),
                (json_path.is_some(), "a path into a table"),
                (!index_hints.is_empty(), "an index hint"),
                (settings, "SETTINGS"),
            ])?;
            match args {
                Some(_) if takes_columns(name) => Ok(()),
                _ => check_alias(alias.as_ref()),
            }
        }
        TableFactor::Derived { lateral: _, subquery: _, alias, sample } => {
            refuse(&[(sample.is_some(), "TABLESAMPLE")])?;
            check_alias(alias.as_ref())
        }
        TableFactor::TableFunction { expr: _, alias } => check_alias(alias.as_ref()),
        TableFactor::NestedJoin { table_with_joins, alias } => {
            table_with_joins.joins.iter().try_for_each(check_join)?;
            check_alias(alias.as_ref())
        }
        TableFactor::Function { lateral: _, name, args: _, with_ordinality: _, alias } => {
            if takes_columns(name) {
                Ok(())
            } else {
                check_alias(alias.as_ref())
            }
        }
        TableFactor::UNNEST { alias, array_exprs: _, with_offset, with_offset_alias: _, with_ordinality: _ } => {
            refuse(&[(*with_offset, "WITH OFFSET")])?;
            check_alias(alias.as_ref())
        }
        TableFactor::JsonTable { .. } | TableFactor::OpenJsonTable { .. } => Err(not_served("JSON_TABLE")),
        TableFactor::Pivot { .. } | TableFactor::Unpivot { .. } => Err(not_served("PIVOT")),
        TableFactor::MatchRecognize { .. } => Err(not_served("MATCH_RECOGNIZE")),
        TableFactor::XmlTable { .. } => Err(not_served("XMLTABLE")),
        TableFactor::SemanticView { .. } => Err(not_served("SEMANTIC_VIEW")),
    }
}

fn check_alias(alias: Option<&TableAlias>) -> Result<(), SqlError> {
    let Some(TableAlias { explicit: _, name: _, columns, at }) = alias else { return Ok(()) };
    refuse(&[
        (at.is_some(), "AT after a table's name"),
        (columns.iter().any(|column| column.data_type.is_some()), "a list of columns with their types after AS"),
    ])
}

fn check_function(function: &Function) -> Result<(), SqlError> {
    let Function { name: _, uses_odbc_syntax: _, parameters, args, filter: _, null_treatment: _, over, within_group } =
        function;
    refuse(&[(*parameters != FunctionArguments::None, "a function with two lists of arguments")])?;
    within_group.iter().try_for_each(check_order)?;
    if let FunctionArguments::List(list) = args {
        for clause in &list.clauses {
            match clause {
                FunctionArgumentClause::OrderBy(order) => order.iter().try_for_each(check_order)?,
                FunctionArgumentClause::IgnoreOrRespectNulls(_)
                | FunctionArgumentClause::JsonNullClause(_)
                | FunctionArgumentClause::JsonReturningClause(_) => {}
                FunctionArgumentClause::Limit(_) => return Err(not_served("LIMIT among a function's arguments")),
                FunctionArgumentClause::OnOverflow(_) => return Err(not_served("ON OVERFLOW")),
                FunctionArgumentClause::Having(_) => return Err(not_served("HAVING among a function's arguments")),
                FunctionArgumentClause::Separator(_) => return Err(not_served("SEPARATOR")),
            }
        }
    }
    match over {
        Some(WindowType::WindowSpec(spec)) => check_window(spec),
        Some(WindowType::NamedWindow(_)) | None => Ok(()),
    }
}

fn check_order(order: &OrderByExpr) -> Result<(), SqlError> {
    let OrderByExpr { expr: _, options: _, with_fill } = order;
    refuse(&[(with_fill.is_some(), "WITH FILL")])
}

fn check_window(spec: &WindowSpec) -> Result<(), SqlError> {
    // References to named windows are resolved by `windows.rs`.
    let WindowSpec { window_name: _, partition_by: _, order_by, window_frame: _ } = spec;
    order_by.iter().try_for_each(check_order)
}

/// Fails if an INSERT has a clause of other databases.
pub(super) fn check_insert(insert: &Insert) -> Result<(), SqlError> {
    let Insert {
        insert_token: _,
        optimizer_hints: _,
        or,
        ignore,
        into: _,
        table: _,
        table_alias: _,
        columns: _,
        overwrite,
        source: _,
        assignments,
        partitioned,
        after_columns,
        has_table_keyword,
        on: _,
        returning: _,
        output,
        replace_into,
        priority,
        insert_alias,
        settings,
        format_clause,
        multi_table_insert_type,
        multi_table_into_clauses,
        multi_table_when_clauses,
        multi_table_else_clause,
    } = insert;
    let several = multi_table_insert_type.is_some()
        || !multi_table_into_clauses.is_empty()
        || !multi_table_when_clauses.is_empty()
        || multi_table_else_clause.is_some();
    refuse(&[
        (or.is_some(), "INSERT OR"),
        (*ignore, "INSERT IGNORE: ON CONFLICT DO NOTHING leaves rows that are there,"),
        (*overwrite, "INSERT OVERWRITE"),
        (!assignments.is_empty(), "INSERT .. SET"),
        (partitioned.is_some() || !after_columns.is_empty(), "INSERT .. PARTITION"),
        (*has_table_keyword, "INSERT INTO TABLE"),
        (output.is_some(), "OUTPUT: RETURNING tells of rows,"),
        (*replace_into, "REPLACE INTO"),
        (priority.is_some(), "a priority of INSERT"),
        (insert_alias.is_some(), "a name for the new row"),
        (settings.is_some(), "SETTINGS"),
        (format_clause.is_some(), "FORMAT"),
        (several, "INSERT into several tables"),
    ])
}

/// Fails if a DELETE has a clause of other databases.
pub(super) fn check_delete(delete: &Delete) -> Result<(), SqlError> {
    let Delete {
        delete_token: _,
        optimizer_hints: _,
        tables,
        from: _,
        using: _,
        selection: _,
        returning: _,
        output,
        order_by,
        limit,
    } = delete;
    refuse(&[
        (!tables.is_empty(), "DELETE of several tables"),
        (output.is_some(), "OUTPUT: RETURNING tells of rows,"),
        (!order_by.is_empty(), "DELETE .. ORDER BY"),
        (limit.is_some(), "DELETE .. LIMIT"),
    ])
}
