//! Generates typed expressions over a scope.

use super::functions::{Family, Function, Place, Special};
use super::{Generator, Scope, values};
use crate::tree::{Expr, Type};

impl Generator<'_> {
    /// Generates an expression of a type, with the given maximum depth.
    pub(super) fn expr(&mut self, kind: Type, depth: usize, scope: &Scope) -> Expr {
        let kind = match kind.taken_for() {
            others if !others.is_empty() && self.random.chance(8) => *self.random.pick(others).unwrap_or(&kind),
            _ => kind,
        };
        if depth == 0 {
            return self.leaf(kind, scope);
        }
        match self.random.below(100) {
            0..15 => self.leaf(kind, scope),
            15..22 if scope.inner.is_some() => self.aggregate(kind, depth, scope),
            22..27 if scope.has_windows => self.window(kind, depth, scope),
            27..31 if self.queries_left > 0 => self.scalar_query(kind, scope),
            31..39 if self.queries_left > 0 && kind == Type::Bool => self.query_condition(depth, scope),
            _ => self.function(kind, depth, scope),
        }
    }

    /// Generates a condition.
    pub(super) fn condition(&mut self, scope: &Scope) -> Expr {
        let depth = 1 + self.random.below(3);
        self.expr(Type::Bool, depth, scope)
    }

    /// Generates a column or a literal.
    pub(super) fn leaf(&mut self, kind: Type, scope: &Scope) -> Expr {
        if let Some(inner) = &scope.inner
            && self.random.chance(50)
        {
            let _ = inner;
            return self.aggregate(kind, 1, scope);
        }
        let named: Vec<&Expr> = scope.names.iter().filter(|name| name.kind() == kind).collect();
        if !named.is_empty() && self.random.chance(75) {
            return self.random.pick(&named).map_or_else(|| Expr::word("null", kind), |name| (*name).clone());
        }
        let odd_percent = self.odd_percent;
        values::literal(&mut self.random, self.functions.dialect, kind, odd_percent)
    }

    /// Generates a function call or an operator with this result type.
    fn function(&mut self, kind: Type, depth: usize, scope: &Scope) -> Expr {
        let functions = self.functions;
        let fitting: Vec<&Function> = functions.scalar.iter().filter(|function| function.gives(kind)).collect();
        let Some(function) = self.random.pick(&fitting).copied() else { return self.leaf(kind, scope) };
        self.call(function, kind, depth - 1, scope, "")
    }

    /// Generates an aggregate over the inner scope, or a leaf if no aggregate has this result type.
    fn aggregate(&mut self, kind: Type, depth: usize, scope: &Scope) -> Expr {
        let Some(inner) = scope.inner.clone() else { return self.leaf(kind, scope) };
        let functions = self.functions;
        let fitting: Vec<&Function> = functions.aggregate.iter().filter(|function| function.gives(kind)).collect();
        let Some(function) = self.random.pick(&fitting).copied() else {
            let grouped = Scope { inner: None, ..scope.clone() };
            return self.leaf(kind, &grouped);
        };
        let filter = if self.random.chance(12) { " filter (where {filter})" } else { "" };
        self.call(function, kind, depth.saturating_sub(1).min(1), &inner, filter)
    }

    /// Generates a window function, or an aggregate over a window. The order of the window is total
    /// if the result depends on it.
    fn window(&mut self, kind: Type, depth: usize, scope: &Scope) -> Expr {
        let functions = self.functions;
        let plain = Scope { has_windows: false, ..scope.clone() };
        let is_usable = |function: &&Function| {
            function.gives(kind) && !function.pattern.contains(" order by ") && !function.pattern.contains("distinct")
        };
        let windows = functions.window.iter().filter(is_usable);
        let fitting: Vec<&Function> = windows.chain(functions.aggregate.iter().filter(is_usable)).collect();
        let Some(function) = self.random.pick(&fitting).copied() else { return self.leaf(kind, &plain) };
        let mut call = self.call(function, kind, depth.min(1), &plain, "");
        let mut over = Vec::new();
        let mut pattern = String::new();
        let Expr::Apply { pattern: called, operands, .. } = &mut call else { return call };
        if self.random.chance(50) {
            let key = self.random.pick(&plain.names).cloned();
            if let Some(key) = key {
                pattern.push_str(&format!("partition by {{{}}}", operands.len() + over.len()));
                over.push(key);
            }
        }
        if plain.unique.is_empty() {
            // Without a total order, only a function of the whole partition has a defined result.
            if functions.window.iter().any(|window| window.pattern == *called) {
                return self.leaf(kind, &plain);
            }
        } else if self.random.chance(85) || functions.window.iter().any(|window| window.pattern == *called) {
            let mut order: Vec<Expr> = self.random.pick(&plain.names).cloned().into_iter().collect();
            order.extend(plain.unique.clone());
            for (index, key) in order.into_iter().enumerate() {
                let word = if index == 0 { " order by " } else { ", " };
                let direction = self.random.word(&["", " desc", " nulls first", " desc nulls last"]);
                pattern.push_str(&format!("{word}{{{}}}{direction}", operands.len() + over.len()));
                over.push(key);
            }
            let mut frame = self.random.word(&FRAMES);
            while let Some((before, after)) = frame.split_once("{n}") {
                pattern.push_str(&format!("{before}{{{}}}", operands.len() + over.len()));
                over.push(values::special(&mut self.random, Special::Count));
                frame = after;
            }
            pattern.push_str(frame);
        }
        *called = format!("{called} over ({pattern})");
        operands.extend(over);
        call
    }

    /// Fills the operands of a pattern. `after` is appended to the pattern; its `{filter}` becomes
    /// a condition.
    fn call(&mut self, function: &Function, kind: Type, depth: usize, scope: &Scope, after: &str) -> Expr {
        let own = match function.result {
            Place::Any(family) => family,
            _ => function
                .places
                .iter()
                .find_map(|place| if let Place::Any(family) = place { Some(*family) } else { None })
                .unwrap_or(Family::Any),
        };
        let any = if matches!(function.result, Place::Any(_)) { kind } else { self.met(own, scope) };
        let mut operands = Vec::new();
        for place in &function.places {
            operands.push(match place {
                Place::Type(kind) => self.expr(*kind, depth, scope),
                Place::Any(_) => self.expr(any, depth, scope),
                Place::Special(special) => values::special(&mut self.random, *special),
                Place::Again(_) => Expr::word("null", kind),
            });
        }
        let mut pattern = function.pattern.clone();
        if after.contains("{filter}") {
            pattern.push_str(&after.replace("{filter}", &format!("{{{}}}", operands.len())));
            operands.push(self.expr(Type::Bool, 1, scope));
        }
        // The order in which floats are summed is not defined.
        Expr::Apply { pattern, kind, operands, inexact: function.inexact }
    }

    /// A type of the family, usually the type of a column.
    fn met(&mut self, family: Family, scope: &Scope) -> Type {
        let kinds: Vec<Type> = scope.names.iter().map(Expr::kind).filter(|kind| family.has(*kind)).collect();
        if !kinds.is_empty() && self.random.chance(70) {
            return self.random.pick(&kinds).copied().unwrap_or(Type::Int4);
        }
        family.pick(&mut self.random, self.functions.dialect)
    }
}

/// Window frames. They depend on a total order. `{n}` is a number of rows.
const FRAMES: [&str; 17] = [
    "",
    "",
    "",
    "",
    " rows between unbounded preceding and current row",
    " rows between 1 preceding and 1 following",
    " rows between current row and unbounded following",
    " rows between 2 preceding and 1 preceding",
    " range between unbounded preceding and unbounded following",
    " range between current row and unbounded following",
    " groups between 1 preceding and 1 following",
    " rows between unbounded preceding and unbounded following exclude current row",
    " rows between 1 preceding and 2 following exclude ties",
    " rows 2 preceding",
    " rows between {n} preceding and {n} following",
    " rows {n} preceding",
    " groups between {n} following and {n} following",
];
