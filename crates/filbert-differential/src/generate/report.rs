//! Plain reports: keys and common aggregates of columns, as programs ask for them.
//!
//! Random expressions seldom have these simple forms, and rules of planners look for exactly these:
//! one `DISTINCT` beside a sum, keys of a join, a total without keys.

use super::{Generator, Scope};
use crate::tree::{Body, Expr, Group, Item, Query, Select, Type};

/// Aggregates over any column.
const OF_ANY: [&str; 3] = ["count({0})", "count(distinct {0})", "count(distinct {0})"];
/// Aggregates over a column whose values have an order.
const OF_ORDERED: [&str; 3] = ["min({0})", "max({0})", "max(distinct {0})"];
/// Aggregates over a column of numbers.
const OF_NUMBERS: [&str; 5] = ["sum({0})", "sum({0})", "avg({0})", "sum(distinct {0})", "avg(distinct {0})"];

impl Generator<'_> {
    /// A report over one table or a join.
    pub(super) fn report(&mut self) -> Query {
        let (from, scope) = self.from(&Scope::default());
        let filter = self.random.chance(40).then(|| self.expr(Type::Bool, 1, &scope));
        let columns: Vec<Expr> = scope.names.iter().filter(|name| matches!(name, Expr::Word { .. })).cloned().collect();
        let mut keys: Vec<Expr> =
            (0..self.random.below(3)).filter_map(|_| self.random.pick(&columns).cloned()).collect();
        keys.dedup();
        let mut items = keys.clone();
        for _ in 0..=self.random.below(4) {
            items.push(self.common_aggregate(&columns));
        }
        if self.random.chance(30) {
            self.random.shuffle(&mut items);
        }
        let having = self.random.chance(15).then(|| {
            let aggregate = Expr::word("count(*)".to_owned(), Type::Int8);
            Expr::apply("({0} > 1)", Type::Bool, vec![aggregate])
        });
        let count = items.len();
        let items = items.into_iter().map(|expr| Item { expr, alias: None }).collect();
        let group = (!keys.is_empty()).then_some(Group { pattern: "{}", keys });
        let select = Select { from, filter, items, group, having, ..Select::default() };
        let mut query = Query::of(Body::Select(Box::new(select)));
        if self.random.chance(40) {
            self.order(&mut query, count);
        }
        query
    }

    /// A common aggregate of a column.
    fn common_aggregate(&mut self, columns: &[Expr]) -> Expr {
        let Some(column) = self.random.pick(columns).cloned().filter(|_| self.random.chance(85)) else {
            return Expr::word("count(*)".to_owned(), Type::Int8);
        };
        let kind = column.kind();
        let patterns: &[&str] = match self.random.below(10) {
            0..6 if kind.is_number() => &OF_NUMBERS,
            0..8 if kind.is_number() || matches!(kind, Type::Text | Type::Date | Type::Timestamp) => &OF_ORDERED,
            _ => &OF_ANY,
        };
        let pattern = self.random.word(patterns).to_owned();
        Expr::Apply { pattern, kind, operands: vec![column], inexact: kind.is_float() }
    }
}
