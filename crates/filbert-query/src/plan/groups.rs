//! Groups of a query: casts have distinct names, and no group is repeated.
//!
//! `GROUP BY t, t::date` and `GROUP BY t::date, t::time`:
//! DataFusion names a cast after its operand, and rejects two groups with the same name. Such a
//! cast becomes the argument of an identity function with a name that contains the type. The same
//! applies to casts in grouping sets, because DataFusion's rules do not preserve their names.
//!
//! The elements of `unnest` are named after its argument, too: `SELECT unnest(a::int[]),
//! unnest(a::numeric[])` would return the elements of the first array twice.
//!
//! `SELECT x AS a, x AS b .. GROUP BY a, ROLLUP (b)`: the two are different groups, and only one of
//! them is null in some rows. The second group becomes such a call as well.
//!
//! `GROUP BY a, a`: DataFusion keeps both groups and gives them one column. The position of a group
//! is then not the position of its column, so each group is kept once.

use std::ops::ControlFlow;

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::logical_expr::{Aggregate, Expr as LogicalExpr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident, ObjectNamePart, OrderBy,
    OrderByKind, Query, Select, SelectItem, SetExpr, Value, VisitorMut,
};
use filbert_dialect::{call, walk};
use filbert_functions::AS_CAST;

/// Gives unique names to casts in the groups of a query, and to those in arguments of `unnest`, if
/// they would have the same name.
pub(crate) fn tell_casts_apart(query: &mut Query) {
    let _ = walk::change(query, &mut Queries);
}

/// Distinguishes groups that are the same expression under several aliases, if there are grouping
/// sets. Runs while the groups are the aliases.
pub(crate) fn tell_aliases_apart(query: &mut Query) {
    struct Selects;
    impl VisitorMut for Selects {
        type Break = ();

        fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<()> {
            aliases_apart(select);
            ControlFlow::Continue(())
        }
    }
    let _ = walk::change(query, &mut Selects);
}

/// Removes repeated groups from the aggregates of a plan. The position of each group is then the
/// position of its column.
pub(crate) fn each_once(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut is_repeated = false;
    plan.apply_with_subqueries(|node| {
        is_repeated |= matches!(node, LogicalPlan::Aggregate(aggregate) if unique(&aggregate.group_expr).is_some());
        Ok(if is_repeated { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !is_repeated {
        return Ok(plan);
    }
    let plan = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::Aggregate(aggregate) => Ok(match unique(&aggregate.group_expr) {
            None => Transformed::no(LogicalPlan::Aggregate(aggregate)),
            Some(groups) => Transformed::yes(LogicalPlan::Aggregate(Aggregate::try_new_with_schema(
                aggregate.input,
                groups,
                aggregate.aggr_expr,
                aggregate.schema,
            )?)),
        }),
        node => Ok(Transformed::no(node)),
    })?;
    Ok(plan.data)
}

/// The groups without repetitions; `None` if no group is repeated.
fn unique(groups: &[LogicalExpr]) -> Option<Vec<LogicalExpr>> {
    let mut known: Vec<LogicalExpr> = Vec::with_capacity(groups.len());
    for group in groups {
        if !known.contains(group) {
            known.push(group.clone());
        }
    }
    (known.len() < groups.len()).then_some(known)
}

struct Queries;

impl VisitorMut for Queries {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        match query.body.as_mut() {
            SetExpr::Select(select) => of_select(select, query.order_by.as_mut()),
            body => of_body(body),
        }
        ControlFlow::Continue(())
    }
}

/// Queries in parentheses are visited as queries.
fn of_body(body: &mut SetExpr) {
    match body {
        SetExpr::Select(select) => of_select(select, None),
        SetExpr::SetOperation { left, right, .. } => {
            of_body(left);
            of_body(right);
        }
        _ => {}
    }
}

fn of_select(select: &mut Select, order_by: Option<&mut OrderBy>) {
    let mut casts = same_named(select);
    casts.extend(casts_of_unnests(&select.projection));
    if casts.is_empty() {
        return;
    }
    let mut marks = Marks { casts, names: Vec::new(), queries: 0 };
    for item in &mut select.projection {
        let _ = walk::change(item, &mut marks);
    }
    let _ = walk::change(&mut select.group_by, &mut marks);
    let _ = walk::change(&mut select.having, &mut marks);
    if let Some(OrderBy { kind: OrderByKind::Expressions(order), .. }) = order_by {
        let _ = walk::change(order, &mut marks);
    }
}

fn aliases_apart(select: &mut Select) {
    let GroupByExpr::Expressions(written, _) = &select.group_by else { return };
    if !written.iter().any(has_sets) {
        return;
    }
    let named = |alias: &Ident| {
        let is_one = |part: &&Expr| matches!(part, Expr::Identifier(name) if name == alias);
        written.iter().flat_map(parts).any(|part| is_one(&part))
    };
    let mut known: Vec<Expr> = Vec::new();
    for item in &mut select.projection {
        let SelectItem::ExprWithAlias { expr, alias } = item else { continue };
        if !named(alias) {
            continue;
        }
        let meant = unqualified(expr);
        if known.contains(&meant) {
            let name = Expr::value(Value::SingleQuotedString(alias.value.clone()));
            *expr = call(AS_CAST, vec![name, expr.clone()], Vec::new(), None);
        } else {
            known.push(meant);
        }
    }
}

fn has_sets(item: &Expr) -> bool {
    matches!(item, Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_))
}

/// The casts in groups that have the name of another group.
fn same_named(select: &Select) -> Vec<Expr> {
    let GroupByExpr::Expressions(written, _) = &select.group_by else { return Vec::new() };
    let has_sets = written.iter().any(has_sets);
    let groups: Vec<&Expr> = written.iter().flat_map(parts).map(|group| meant(group, &select.projection)).collect();
    // Most groups are plain columns.
    let mut plain: Vec<Expr> = Vec::with_capacity(groups.len());
    if (groups.len() < 2 && !has_sets) || !groups.iter().any(|group| !matches!(group, Expr::Identifier(_))) {
        return Vec::new();
    }
    for group in &groups {
        let mut group = (*group).clone();
        let mut outermost = Outermost { depth: 0, on_cast: uncast };
        let _ = walk::change(&mut group, &mut outermost);
        plain.push(unqualified(&group));
    }
    let mut casts = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        let same = plain.iter().zip(&groups).enumerate().any(|(other, (name, written))| {
            other != at && plain.get(at) == Some(name) && unnested(written) != unnested(group)
        });
        if same || has_sets {
            let mut group = (*group).clone();
            let mut outermost = Outermost { depth: 0, on_cast: |cast: &mut Expr| casts.push(cast.clone()) };
            let _ = walk::change(&mut group, &mut outermost);
        }
    }
    casts
}

/// The casts that are arguments of `unnest`, if a query calls it several times.
fn casts_of_unnests(items: &[SelectItem]) -> Vec<Expr> {
    let (mut calls, mut casts) = (0_usize, Vec::new());
    for item in items {
        let _ = walk::own_expressions(item, |expr| {
            if let Some(argument) = unnested_by(expr) {
                calls += 1;
                casts.extend(matches!(argument, Expr::Cast { .. }).then(|| argument.clone()));
            }
            ControlFlow::<()>::Continue(())
        });
    }
    if calls > 1 { casts } else { Vec::new() }
}

/// The argument of a call of `unnest`.
fn unnested_by(expr: &Expr) -> Option<&Expr> {
    let Expr::Function(Function { name, args: FunctionArguments::List(list), .. }) = expr else { return None };
    let is_unnest = matches!(name.0.as_slice(), [ObjectNamePart::Identifier(name)] if name.value == "unnest");
    match list.args.as_slice() {
        [FunctionArg::Unnamed(FunctionArgExpr::Expr(argument))] if is_unnest => Some(unnested(argument)),
        _ => None,
    }
}

/// The expressions of one item of `GROUP BY`.
fn parts(item: &Expr) -> Vec<&Expr> {
    match item {
        Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) => sets.iter().flatten().collect(),
        Expr::Tuple(items) => items.iter().collect(),
        other => vec![other],
    }
}

/// The item of the SELECT list that a group refers to by position or name; otherwise the group
/// itself.
fn meant<'e>(group: &'e Expr, items: &'e [SelectItem]) -> &'e Expr {
    let named = match group {
        Expr::Value(value) => match &value.value {
            Value::Number(place, _) => {
                let place = place.parse::<usize>().ok().and_then(|place| place.checked_sub(1));
                place.and_then(|place| items.get(place))
            }
            _ => None,
        },
        Expr::Identifier(name) => {
            items.iter().find(|item| matches!(item, SelectItem::ExprWithAlias { alias, .. } if alias == name))
        }
        _ => None,
    };
    match named {
        Some(SelectItem::ExprWithAlias { expr, .. } | SelectItem::UnnamedExpr(expr)) => expr,
        _ => group,
    }
}

fn unnested(expr: &Expr) -> &Expr {
    match expr {
        Expr::Nested(inner) => unnested(inner),
        other => other,
    }
}

/// A plain column without its qualifier and without quotes.
fn unqualified(expr: &Expr) -> Expr {
    let name = match unnested(expr) {
        Expr::CompoundIdentifier(names) => names.last(),
        Expr::Identifier(name) => Some(name),
        other => return other.clone(),
    };
    name.map_or_else(|| expr.clone(), |name| Expr::Identifier(Ident::new(&name.value)))
}

/// Removes all casts around an expression.
fn uncast(expr: &mut Expr) {
    let mut inner = &*expr;
    while let Expr::Cast { expr, .. } | Expr::Nested(expr) = inner {
        inner = expr;
    }
    *expr = inner.clone();
}

/// Casts have several notations.
fn is_same(one: &Expr, other: &Expr) -> bool {
    match (one, other) {
        (Expr::Cast { expr: one, data_type, .. }, Expr::Cast { expr: other, data_type: other_type, .. }) => {
            data_type == other_type && unqualified(one) == unqualified(other)
        }
        _ => false,
    }
}

/// Visits the casts that are not within other casts.
struct Outermost<F> {
    depth: usize,
    on_cast: F,
}

impl<F: FnMut(&mut Expr)> VisitorMut for Outermost<F> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        self.depth += usize::from(matches!(expr, Expr::Cast { .. }));
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if matches!(expr, Expr::Cast { .. }) {
            self.depth = self.depth.saturating_sub(1);
            if self.depth == 0 {
                (self.on_cast)(expr);
            }
        }
        ControlFlow::Continue(())
    }
}

/// Wraps casts in the function, everywhere in a query.
struct Marks {
    casts: Vec<Expr>,
    /// For each visited cast, its name if it has to be wrapped.
    names: Vec<Option<String>>,
    /// The number of enclosing subqueries. Their groups are handled separately.
    queries: usize,
}

impl VisitorMut for Marks {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries = self.queries.saturating_sub(1);
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if matches!(expr, Expr::Cast { .. }) {
            // Among columns of the same name, an exact match comes first.
            let found = self.casts.iter().find(|cast| *cast == expr);
            let found = found.or_else(|| self.casts.iter().find(|cast| is_same(cast, expr)));
            self.names.push(found.filter(|_| self.queries == 0).map(ToString::to_string));
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if matches!(expr, Expr::Cast { .. })
            && let Some(Some(name)) = self.names.pop()
        {
            let name = Expr::value(Value::SingleQuotedString(name));
            *expr = call(AS_CAST, vec![name, expr.clone()], Vec::new(), None);
        }
        ControlFlow::Continue(())
    }
}
