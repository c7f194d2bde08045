//! Generates a query with its three parts: the condition is true, false, or unknown.

use super::{Generator, Scope};
use crate::tree::{Body, Expr, Group, Item, Query, Select, Statement, Type};

/// How the parts are combined to the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Combine {
    /// All rows of all parts.
    All,
    /// All rows of all parts, each once.
    Distinct,
    /// The sum of one number of each part.
    Sum,
}

/// A query with its parts.
pub(crate) struct Partition {
    pub(crate) whole: Statement,
    pub(crate) parts: Vec<Statement>,
    pub(crate) combine: Combine,
}

impl Generator<'_> {
    /// Generates a query and its partition by a condition.
    pub(crate) fn a_partition(&mut self) -> Partition {
        self.begin();
        let (from, scope) = self.from(&Scope::default());
        let mut select = Select { from, ..Select::default() };
        let (mut combine, mut is_having) = (Combine::All, false);
        let mut asked = scope.clone();
        match self.random.below(10) {
            0..2 => {
                combine = Combine::Sum;
                let sum = Expr::apply("count(*)", Type::Int8, Vec::new());
                select.items.push(Item { expr: sum, alias: None });
            }
            2..4 => {
                if let Some(key) = self.random.pick(&scope.names).cloned() {
                    is_having = true;
                    let inner = Scope { inner: None, has_windows: false, ..scope.clone() };
                    asked = Scope { names: vec![key.clone()], inner: Some(Box::new(inner)), ..Scope::default() };
                    select.group = Some(Group { pattern: "{}", keys: vec![key] });
                }
            }
            4 => {
                combine = Combine::Distinct;
                select.distinct = "distinct ";
            }
            _ => {}
        }
        if select.items.is_empty() {
            for _ in 0..=self.random.below(2) {
                let kind = self.random.pick(asked.names()).map_or(Type::Int4, Expr::kind);
                let depth = self.random.below(2);
                select.items.push(Item { expr: self.expr(kind, depth, &asked), alias: None });
            }
        }
        let condition = self.condition(&asked);
        let part = |pattern: &str| {
            let condition = Some(Expr::apply(pattern, Type::Bool, vec![condition.clone()]));
            let mut part = select.clone();
            if is_having {
                part.having = condition;
            } else {
                part.filter = condition;
            }
            statement(part)
        };
        let parts = vec![part("{0}"), part("not ({0})"), part("({0}) is null")];
        Partition { whole: statement(select), parts, combine }
    }
}

fn statement(select: Select) -> Statement {
    Statement::Query(Query::of(Body::Select(Box::new(select))))
}
