//! Expressions that mean the same: `a + 1`, `t.a + 1` and `(a + 1)`.
//!
//! PostgreSQL compares keys of a sort with columns of the result by their meaning. DataFusion
//! compares them as they are written, or not at all.

use std::collections::HashSet;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{CastKind, Distinct, Expr, Ident, OrderByExpr, Query, Value, VisitorMut};
use filbert_dialect::walk;
use filbert_functions::error::parsing_error;
use filbert_grid::query::{Dialect, SqlError};

use super::positions::{self, at_place, place};
use super::sources::Scope;
use super::{Output, Resolver};

impl Resolver<'_> {
    /// Whether two resolved expressions of the current query mean the same.
    pub(super) fn are_same(&self, left: &Expr, right: &Expr) -> bool {
        left == right || self.in_full(left.clone()) == self.in_full(right.clone())
    }

    /// An expression with the full names of its columns, and without parentheses. The queries
    /// within it stay as they are.
    fn in_full(&self, mut expression: Expr) -> Expr {
        if let Some(scope) = self.scopes.last() {
            let _ = walk::change(&mut expression, &mut InFull { scope, queries: 0 });
        }
        expression
    }

    /// The position of the column of the result that is this expression. It is unknown after a
    /// `*`, which may be any number of columns.
    pub(super) fn place_of(&self, key: &Expr, outputs: &[Output]) -> Option<usize> {
        let key = self.in_full(key.clone());
        let known = outputs.iter().map_while(|output| output.expression.as_ref());
        let mut places = known.zip(1..).filter(|(known, _)| self.in_full((*known).clone()) == key);
        places.next().map(|(_, place)| place)
    }

    /// A key of `DISTINCT ON`: a number is the position of a column of the result.
    pub(super) fn distinct_key(&mut self, key: &mut Expr, outputs: &[Output]) -> Result<(), SqlError> {
        positions::written_out(key, "DISTINCT ON", self.dialect)?;
        let Some(digits) = place(key).filter(|_| self.dialect == Dialect::Postgres) else {
            return self.sort_key(key, outputs, false);
        };
        match at_place(digits, outputs) {
            Some(expression) => *key = self.in_full(expression.clone()),
            None if outputs.iter().all(|output| output.expression.is_some()) => {
                let text = format!("DISTINCT ON position {digits} is not in select list");
                return Err(parsing_error(text).with_sqlstate("42P10"));
            }
            None => {}
        }
        Ok(())
    }

    /// Puts the keys of `DISTINCT ON` into the order of the sort, and removes repeated keys.
    /// DataFusion requires this order and no repetition; for PostgreSQL the keys are a set.
    pub(super) fn in_order(&self, distinct: &mut Option<Distinct>, order: &mut Vec<OrderByExpr>, outputs: &[Output]) {
        let Some(Distinct::On(keys)) = distinct else { return };
        let meant = |key: &Expr| {
            let output = match key {
                Expr::Identifier(name) => {
                    let is_it = |output: &&Output| {
                        output.planned.as_ref().or(output.name.as_ref()).is_some_and(|own| *own == name.value)
                    };
                    outputs.iter().find(is_it).and_then(|output| output.expression.as_ref())
                }
                key => place(key).and_then(|digits| at_place(digits, outputs)),
            };
            self.in_full(output.unwrap_or(key).clone())
        };
        let mut sorted: HashSet<Expr> = HashSet::with_capacity(order.len());
        order.retain(|item| sorted.insert(meant(&item.expr)));
        let mut known: HashSet<Expr> = HashSet::with_capacity(keys.len());
        let mut rest: Vec<(Expr, Expr)> = std::mem::take(keys).into_iter().map(|key| (meant(&key), key)).collect();
        rest.retain(|(meant, _)| known.insert(meant.clone()));
        for item in order {
            let wanted = meant(&item.expr);
            let Some(at) = rest.iter().position(|(meant, _)| *meant == wanted) else { break };
            keys.push(rest.remove(at).1);
        }
        keys.extend(rest.into_iter().map(|(_, key)| key));
    }
}

struct InFull<'s> {
    scope: &'s Scope,
    /// The number of enclosing queries within the expression.
    queries: usize,
}

impl VisitorMut for InFull<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries = self.queries.saturating_add(1);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut Query) -> ControlFlow<()> {
        self.queries = self.queries.saturating_sub(1);
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if self.queries > 0 {
            return ControlFlow::Continue(());
        }
        match expression {
            Expr::Nested(inner) => *expression = std::mem::replace(inner.as_mut(), Expr::value(Value::Null)),
            Expr::Cast { kind: kind @ CastKind::DoubleColon, .. } => *kind = CastKind::Cast,
            Expr::Identifier(name) => {
                if let [column] = self.scope.named(&name.value).as_slice() {
                    *expression = column.expression.clone();
                }
            }
            Expr::CompoundIdentifier(parts) => {
                if let [.., relation, column] = parts.as_slice()
                    && let Some(found) = self.scope.relations.iter().find(|known| known.is_relation(&relation.value))
                {
                    *parts = found.name.iter().cloned().chain([column.clone()]).collect();
                }
            }
            _ => {}
        }
        if let Expr::CompoundIdentifier(parts) = expression {
            for part in parts {
                *part = Ident::with_quote('"', std::mem::take(&mut part.value));
            }
        }
        ControlFlow::Continue(())
    }
}
