//! Groups by casts: `GROUP BY t, t::date` and `GROUP BY t::date, t::time`.
//!
//! DataFusion calls a cast by what is cast, and takes no two groups of the same name. Such casts become arguments of a function that
//! gives them as they are, and is called by what they say. So do those in grouping sets, whose names DataFusion's rules do not keep.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, Ident, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr, Value, VisitorMut,
};
use filbert_dialect::{call, walk};
use filbert_functions::AS_CAST;

/// Gives the casts that a query groups by names of their own, where they would have the same.
pub(crate) fn tell_casts_apart(query: &mut Query) {
    let _ = walk::change(query, &mut Queries);
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

/// Queries in brackets are visited as queries.
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
    let casts = same_named(select);
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

/// The casts in groups that have the name of another group.
fn same_named(select: &Select) -> Vec<Expr> {
    let GroupByExpr::Expressions(written, _) = &select.group_by else { return Vec::new() };
    let has_sets = |item: &Expr| matches!(item, Expr::GroupingSets(_) | Expr::Cube(_) | Expr::Rollup(_));
    let has_sets = written.iter().any(has_sets);
    let groups: Vec<&Expr> = written.iter().flat_map(parts).map(|group| meant(group, &select.projection)).collect();
    // Most groups are columns alone.
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

/// The expressions of one item of `GROUP BY`.
fn parts(item: &Expr) -> Vec<&Expr> {
    match item {
        Expr::GroupingSets(sets) | Expr::Cube(sets) | Expr::Rollup(sets) => sets.iter().flatten().collect(),
        Expr::Tuple(items) => items.iter().collect(),
        other => vec![other],
    }
}

/// The item of a list of columns that a group names by its place or its name; else the group.
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

/// A column alone without its table's name, and without quotes.
fn unqualified(expr: &Expr) -> Expr {
    let name = match unnested(expr) {
        Expr::CompoundIdentifier(names) => names.last(),
        Expr::Identifier(name) => Some(name),
        other => return other.clone(),
    };
    name.map_or_else(|| expr.clone(), |name| Expr::Identifier(Ident::new(&name.value)))
}

/// What is cast in the end.
fn uncast(expr: &mut Expr) {
    let mut inner = &*expr;
    while let Expr::Cast { expr, .. } | Expr::Nested(expr) = inner {
        inner = expr;
    }
    *expr = inner.clone();
}

/// Casts are written in several ways.
fn is_same(one: &Expr, other: &Expr) -> bool {
    match (one, other) {
        (Expr::Cast { expr: one, data_type, .. }, Expr::Cast { expr: other, data_type: other_type, .. }) => {
            data_type == other_type && unqualified(one) == unqualified(other)
        }
        _ => false,
    }
}

/// Visits the casts that are in no other cast.
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

/// Puts casts into the function, wherever they are in a query.
struct Marks {
    casts: Vec<Expr>,
    /// For each cast that is visited now, its name if it is one of them.
    names: Vec<Option<String>>,
    /// How many queries within there are around; what they group is their own affair.
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
            // Of columns of the same name, each is itself first.
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
