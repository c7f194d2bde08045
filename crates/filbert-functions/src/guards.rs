//! Short circuits of conditions: `b <> 0 AND 1 / b > 2` never divides by zero.
//!
//! DataFusion evaluates both operands of `AND` and `OR` for all rows of a batch. If an operand can
//! fail, a row that the other operand has decided would fail the statement. Therefore an operand
//! that can fail becomes a branch of `CASE`, which is evaluated only for the rows that reach it.
//! The engine adds guards last, after conditions were split and pushed down to tables: no optimizer
//! rule that looks for `AND` sees them.
//!
//! | condition | order of evaluation | NULL |
//! |---|---|---|
//! | of rows: `WHERE`, `ON`, `HAVING` | operands that cannot fail first, then from left to right | counts as false |
//! | within an expression | the same | is a value |
//!
//! PostgreSQL begins the conditions of rows with the cheapest one, and evaluates the others from
//! left to right. Here operands that cannot fail are first everywhere, because the optimizer merges
//! repeated operands: `a = 2 OR (6 / (a - 2) < 0 OR a = 2)` comes as `6 / (a - 2) < 0 OR a = 2`.
//!
//! `AND` and `OR` within a condition, and below its `NOT`, do not have to distinguish NULL from the
//! truth value that it counts as ([`Unknown`]). Elsewhere the operands occur twice: first as
//! conditions that decide, then as values. Repetitions are limited ([`REPEATED_MAX`]).

use std::cell::Cell;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, DataFusionError, Result};
use datafusion::logical_expr::{Between, BinaryExpr, Case, Expr, Operator, binary_expr, lit, not};

use crate::fallible;

/// The number of nodes that repetitions may add to an expression. Nested ones multiply; beyond the
/// limit, operands are evaluated for all rows, as DataFusion does.
const REPEATED_MAX: u32 = 10_000;

/// Guards a condition of rows with this schema; terms that cannot fail are evaluated first.
///
/// # Errors
/// Those of DataFusion's traversal of expressions; none is known.
pub fn condition(condition: Expr, schema: &DFSchema) -> Result<Expr> {
    if !needs_guards(&condition, schema) {
        return Ok(condition);
    }
    let context = Context { unknown: Unknown::False, is_repeated: false };
    let terms = Guard::new(schema).all_within(terms_of(condition, Operator::And), context)?;
    Ok(decided(terms, Operator::And, Unknown::False).expression)
}

/// Guards the conditions within an expression over rows with this schema.
///
/// # Errors
/// As [`condition`].
pub fn value(expression: Expr, schema: &DFSchema) -> Result<Expr> {
    if !needs_guards(&expression, schema) {
        return Ok(expression);
    }
    let context = Context { unknown: Unknown::Value, is_repeated: false };
    Ok(Guard::new(schema).within(expression, context)?.expression)
}

fn needs_guards(expression: &Expr, schema: &DFSchema) -> bool {
    has_connective(expression) && fallible::can_fail(expression, schema)
}

/// The expression with the operands of each chain of `AND` and `OR` in the order in which they are
/// evaluated; `None` if they are in this order.
///
/// # Errors
/// As [`condition`].
pub fn in_order(expression: &Expr, schema: &DFSchema) -> Result<Option<Expr>> {
    if !needs_guards(expression, schema) {
        return Ok(None);
    }
    let ordered = ordered(expression.clone(), schema)?.expression;
    Ok((ordered != *expression).then_some(ordered))
}

#[recursive::recursive]
fn ordered(expression: Expr, schema: &DFSchema) -> Result<Term> {
    if let Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) = expression {
        let terms = terms_of(expression, op).into_iter().map(|term| ordered(term, schema));
        let terms = safe_first(terms.collect::<Result<Vec<_>>>()?, |term| term.can_fail);
        let can_fail = terms.last().is_some_and(|term| term.can_fail);
        return Ok(Term { expression: connected(terms.into_iter().map(|term| term.expression), op), can_fail });
    }
    let mut can_fail = fallible::is_partial(&expression, schema);
    let mapped = expression.map_children(|child| {
        let term = ordered(child, schema)?;
        can_fail |= term.can_fail;
        Ok(Transformed::yes(term.expression))
    })?;
    Ok(Term { expression: mapped.data, can_fail })
}

/// Whether an expression contains `AND`, `OR` or `BETWEEN`, which stands for one of them.
pub fn has_connective(expression: &Expr) -> bool {
    let is_connective = |inner: &Expr| match inner {
        Expr::BinaryExpr(BinaryExpr { op, .. }) => matches!(op, Operator::And | Operator::Or),
        Expr::Between(_) => true,
        _ => false,
    };
    expression.exists(|inner| Ok(is_connective(inner))).unwrap_or(false)
}

/// The truth value that NULL counts as in the context of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unknown {
    False,
    True,
    /// NULL is a value of its own.
    Value,
}

impl Unknown {
    fn negated(self) -> Unknown {
        match self {
            Unknown::False => Unknown::True,
            Unknown::True => Unknown::False,
            Unknown::Value => Unknown::Value,
        }
    }
}

/// The position of an expression within the guarded one.
#[derive(Clone, Copy, Debug)]
struct Context {
    unknown: Unknown,
    /// Whether the expression is within a repetition.
    is_repeated: bool,
}

/// A guarded expression.
#[derive(Debug)]
struct Term {
    expression: Expr,
    can_fail: bool,
}

struct Guard<'s> {
    schema: &'s DFSchema,
    /// The nodes within repetitions so far.
    repeated: Cell<u32>,
}

impl<'s> Guard<'s> {
    fn new(schema: &'s DFSchema) -> Self {
        Guard { schema, repeated: Cell::new(0) }
    }

    // A sum of thousands of items is an expression of this depth.
    #[recursive::recursive]
    fn within(&self, expression: Expr, context: Context) -> Result<Term> {
        if context.is_repeated {
            self.repeated.set(self.repeated.get().saturating_add(1));
        }
        // The same position, with NULL counting as something else.
        let like = |unknown| Context { unknown, ..context };
        match expression {
            Expr::BinaryExpr(BinaryExpr { op: op @ (Operator::And | Operator::Or), .. }) => {
                let terms = terms_of(expression, op);
                match context.unknown {
                    Unknown::Value => self.value_of(terms, op, context),
                    unknown => Ok(decided(self.all_within(terms, context)?, op, unknown)),
                }
            }
            // The optimizer rewrites it the same way. A volatile operand is computed once.
            Expr::Between(Between { expr, negated, low, high }) if !expr.is_volatile() => {
                let (value, again) = ((*expr).clone(), *expr);
                let comparisons = match negated {
                    false => value.gt_eq(*low).and(again.lt_eq(*high)),
                    true => value.lt(*low).or(again.gt(*high)),
                };
                self.within(comparisons, context)
            }
            Expr::Not(inner) => self.operand(*inner, like(context.unknown.negated()), not),
            Expr::IsTrue(inner) => self.operand(*inner, like(Unknown::False), Expr::is_true),
            Expr::IsNotTrue(inner) => self.operand(*inner, like(Unknown::False), Expr::is_not_true),
            Expr::IsFalse(inner) => self.operand(*inner, like(Unknown::True), Expr::is_false),
            Expr::IsNotFalse(inner) => self.operand(*inner, like(Unknown::True), Expr::is_not_false),
            Expr::Case(Case { expr: None, when_then_expr, else_expr }) => self.case(when_then_expr, else_expr, context),
            Expr::AggregateFunction(mut function) if function.params.filter.is_some() => {
                let filter = function.params.filter.take().map(|filter| self.within(*filter, like(Unknown::False)));
                let mut term = self.within(Expr::AggregateFunction(function), context)?;
                if let (Some(filter), Expr::AggregateFunction(function)) = (filter.transpose()?, &mut term.expression) {
                    term.can_fail |= filter.can_fail;
                    function.params.filter = Some(Box::new(filter.expression));
                }
                Ok(term)
            }
            other => {
                let mut can_fail = fallible::is_partial(&other, self.schema);
                let mapped = other.map_children(|child| {
                    let term = self.within(child, like(Unknown::Value))?;
                    can_fail |= term.can_fail;
                    Ok(Transformed::yes(term.expression))
                })?;
                Ok(Term { expression: mapped.data, can_fail })
            }
        }
    }

    fn operand(&self, operand: Expr, context: Context, within: impl FnOnce(Expr) -> Expr) -> Result<Term> {
        let Term { expression, can_fail } = self.within(operand, context)?;
        Ok(Term { expression: within(expression), can_fail })
    }

    fn case(
        &self,
        branches: Vec<(Box<Expr>, Box<Expr>)>,
        otherwise: Option<Box<Expr>>,
        context: Context,
    ) -> Result<Term> {
        let mut can_fail = false;
        let mut within = |expression: Expr, unknown| {
            let term = self.within(expression, Context { unknown, ..context })?;
            can_fail |= term.can_fail;
            Ok::<_, DataFusionError>(Box::new(term.expression))
        };
        let branches = branches
            .into_iter()
            .map(|(when, then)| Ok((within(*when, Unknown::False)?, within(*then, context.unknown)?)));
        let when_then_expr = branches.collect::<Result<_>>()?;
        let else_expr = otherwise.map(|otherwise| within(*otherwise, context.unknown)).transpose()?;
        Ok(Term { expression: Expr::Case(Case { expr: None, when_then_expr, else_expr }), can_fail })
    }

    fn all_within(&self, expressions: Vec<Expr>, context: Context) -> Result<Vec<Term>> {
        expressions.into_iter().map(|expression| self.within(expression, context)).collect()
    }

    /// Joins terms by `AND` or `OR` where NULL is a value: the terms decide as conditions, and give
    /// the value for the rows that none of them decides.
    fn value_of(&self, terms: Vec<Expr>, op: Operator, context: Context) -> Result<Term> {
        let values = self.all_within(terms.clone(), context)?;
        let can_fail = values.iter().any(|term| term.can_fail);
        let (terms, values) = safe_first(terms.into_iter().zip(values).collect(), |(_, term)| term.can_fail)
            .into_iter()
            .unzip::<_, _, Vec<_>, Vec<_>>();
        let is_guarding = values.iter().skip(1).any(|term| term.can_fail);
        let value = connected(values.into_iter().map(|term| term.expression), op);
        if !is_guarding || self.repeated.get() >= REPEATED_MAX {
            return Ok(Term { expression: value, can_fail });
        }
        let unknown = if op == Operator::And { Unknown::True } else { Unknown::False };
        let deciders = self.all_within(terms, Context { unknown, is_repeated: true })?;
        Ok(Term { expression: guarded(grouped(deciders, op), value, op, unknown), can_fail })
    }
}

/// Joins terms by `AND` or `OR` where NULL counts as true or false: each is evaluated only for rows
/// that no earlier term has decided.
fn decided(terms: Vec<Term>, op: Operator, unknown: Unknown) -> Term {
    let can_fail = terms.iter().any(|term| term.can_fail);
    let terms = safe_first(terms, |term| term.can_fail);
    let is_guarding = terms.iter().skip(1).any(|term| term.can_fail);
    let mut groups = grouped(terms, op);
    let expression = match groups.pop() {
        Some(last) if is_guarding => guarded(groups, last.expression, op, unknown),
        last => connected(groups.into_iter().chain(last).map(|term| term.expression), op),
    };
    Term { expression, can_fail }
}

/// The terms with those first that cannot fail; otherwise in their order.
fn safe_first<T>(terms: Vec<T>, can_fail: impl Fn(&T) -> bool) -> Vec<T> {
    let (safe, fallible): (Vec<T>, Vec<T>) = terms.into_iter().partition(|term| !can_fail(term));
    safe.into_iter().chain(fallible).collect()
}

/// Joins adjacent terms that cannot fail: they need no guard between them.
fn grouped(terms: Vec<Term>, op: Operator) -> Vec<Term> {
    let mut groups: Vec<Term> = Vec::new();
    for term in terms {
        match groups.last_mut() {
            Some(last) if !last.can_fail && !term.can_fail => {
                let before = std::mem::replace(&mut last.expression, lit(true));
                last.expression = connected([before, term.expression], op);
            }
            _ => groups.push(term),
        }
    }
    groups
}

/// `otherwise`, for the rows that no term decides.
fn guarded(terms: Vec<Term>, otherwise: Expr, op: Operator, unknown: Unknown) -> Expr {
    let decides = |term: Expr| match (op, unknown) {
        (Operator::And, Unknown::False) => term.is_not_true(),
        (Operator::And, _) => term.is_false(),
        (_, Unknown::True) => term.is_not_false(),
        (_, _) => term.is_true(),
    };
    let decision = || Box::new(lit(op == Operator::Or));
    let branches = terms.into_iter().map(|term| (Box::new(decides(term.expression)), decision())).collect();
    Expr::Case(Case { expr: None, when_then_expr: branches, else_expr: Some(Box::new(otherwise)) })
}

/// The terms of a chain of `AND` or of `OR`, from left to right.
fn terms_of(chain: Expr, of: Operator) -> Vec<Expr> {
    let (mut terms, mut rest) = (Vec::new(), vec![chain]);
    while let Some(expression) = rest.pop() {
        match expression {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if op == of => {
                rest.push(*right);
                rest.push(*left);
            }
            term => terms.push(term),
        }
    }
    terms
}

fn connected(terms: impl IntoIterator<Item = Expr>, op: Operator) -> Expr {
    chain(terms.into_iter().collect(), op).unwrap_or_else(|| lit(op == Operator::And))
}

/// A condition that is true where all terms are; `None` without terms.
pub fn all_of(terms: impl IntoIterator<Item = Expr>) -> Option<Expr> {
    chain(terms.into_iter().collect(), Operator::And)
}

/// Longer chains of terms become balanced trees. The type of an expression is found by a walk over
/// it, and some of DataFusion's rules do that for each operand: a chain of 5,000 terms takes half a
/// minute.
const CHAIN_MAX: usize = 16;

/// The terms under one operator, in order.
fn chain(mut terms: Vec<Expr>, op: Operator) -> Option<Expr> {
    if terms.len() <= CHAIN_MAX {
        return terms.into_iter().reduce(|left, right| binary_expr(left, op, right));
    }
    let right = terms.split_off(terms.len().div_ceil(2));
    Some(binary_expr(chain(terms, op)?, op, chain(right, op)?))
}

/// The condition with its chains of `AND` balanced, if one is long; `None` otherwise.
pub fn balanced(condition: &Expr) -> Option<Expr> {
    let (mut length, mut rest) = (0, condition);
    while let Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, .. }) = rest {
        (length, rest) = (length + 1, left.as_ref());
    }
    // A balanced tree of 2^60 terms has fewer levels.
    const LEVELS_MAX: usize = CHAIN_MAX + 60;
    (length > LEVELS_MAX).then(|| connected(terms_of(condition.clone(), Operator::And), Operator::And))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails where it is wrong")]

    use arrow_schema::{DataType, Field, Schema};
    use datafusion::logical_expr::col;

    use super::*;

    /// The number of levels of a tree of `AND`.
    fn levels(condition: &Expr) -> usize {
        match condition {
            Expr::BinaryExpr(BinaryExpr { left, op: Operator::And, right }) => 1 + levels(left).max(levels(right)),
            _ => 1,
        }
    }

    #[test]
    fn long_conditions_are_balanced_trees() {
        let terms: Vec<Expr> = (0..5_000).map(|number| col("a").not_eq(lit(number))).collect();
        let of_all = all_of(terms.clone()).unwrap();
        assert!(levels(&of_all) < 40, "{} levels", levels(&of_all));
        assert_eq!(terms_of(of_all.clone(), Operator::And), terms);
        assert_eq!(balanced(&of_all), None);

        let chained = terms.iter().take(1_000).cloned().reduce(Expr::and).unwrap();
        let balanced = balanced(&chained).unwrap();
        assert!(levels(&balanced) < 40, "{} levels", levels(&balanced));
        assert_eq!(terms_of(balanced, Operator::And), terms[..1_000]);
    }

    #[test]
    fn short_conditions_are_chains() {
        let terms = ["a", "b", "c", "d"].map(|name| col(name).is_null());
        let [a, b, c, d] = terms.clone();
        let chained = a.and(b).and(c).and(d);
        assert_eq!(all_of(terms), Some(chained.clone()));
        assert_eq!(balanced(&chained), None);
        assert_eq!(all_of([]), None);
    }

    fn schema() -> DFSchema {
        let field = |name: &str| Field::new(name, DataType::Int32, true);
        DFSchema::try_from(Schema::new(vec![field("a"), field("b")])).unwrap()
    }

    /// A term that can fail.
    fn fails(column: &str) -> Expr {
        (lit(1) / col(column)).gt(lit(2))
    }

    fn safe(column: &str) -> Expr {
        col(column).gt(lit(0))
    }

    #[test]
    fn conditions_begin_with_what_cannot_fail() {
        let check = |input: Expr, expect: &str| assert_eq!(condition(input, &schema()).unwrap().to_string(), expect);
        check(safe("a").and(safe("b")), "a > Int32(0) AND b > Int32(0)");
        check(fails("a"), "Int32(1) / a > Int32(2)");
        check(
            fails("b").and(safe("a")),
            "CASE WHEN a > Int32(0) IS NOT TRUE THEN Boolean(false) ELSE Int32(1) / b > Int32(2) END",
        );
        check(
            safe("a").and(fails("a")).and(safe("b")).and(fails("b")),
            "CASE WHEN a > Int32(0) AND b > Int32(0) IS NOT TRUE THEN Boolean(false) \
             WHEN Int32(1) / a > Int32(2) IS NOT TRUE THEN Boolean(false) ELSE Int32(1) / b > Int32(2) END",
        );
        check(
            safe("a").or(fails("a")),
            "CASE WHEN a > Int32(0) IS TRUE THEN Boolean(true) ELSE Int32(1) / a > Int32(2) END",
        );
        check(
            not(safe("a").or(fails("a"))),
            "NOT CASE WHEN a > Int32(0) IS NOT FALSE THEN Boolean(true) ELSE Int32(1) / a > Int32(2) END",
        );
    }

    #[test]
    fn values_tell_unknown_from_false() {
        let check = |input: Expr, expect: &str| assert_eq!(value(input, &schema()).unwrap().to_string(), expect);
        check(
            safe("a").and(fails("a")),
            "CASE WHEN a > Int32(0) IS FALSE THEN Boolean(false) WHEN Int32(1) / a > Int32(2) IS FALSE THEN Boolean(false) \
             ELSE a > Int32(0) AND Int32(1) / a > Int32(2) END",
        );
        check(
            fails("a").and(safe("a")),
            "CASE WHEN a > Int32(0) IS FALSE THEN Boolean(false) WHEN Int32(1) / a > Int32(2) IS FALSE THEN Boolean(false) \
             ELSE a > Int32(0) AND Int32(1) / a > Int32(2) END",
        );
        check(
            safe("a").or(fails("a")).is_not_false(),
            "CASE WHEN a > Int32(0) IS NOT FALSE THEN Boolean(true) ELSE Int32(1) / a > Int32(2) END IS NOT FALSE",
        );
    }

    #[test]
    fn repetitions_are_limited() {
        let mut nested = fails("a");
        for at in 0..60 {
            nested = if at % 2 == 0 { safe("a").and(nested).eq(lit(true)) } else { safe("b").or(nested) };
        }
        let text = value(nested, &schema()).unwrap().to_string();
        assert!(text.len() < 1_000_000, "{} bytes", text.len());
    }
}
