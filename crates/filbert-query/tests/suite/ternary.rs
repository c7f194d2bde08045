//! A condition is true, false or unknown for a row: each row is in exactly one of these three
//! parts. The parts are the same for a condition in WHERE and in the SELECT list, with and without
//! an index.

use std::sync::LazyLock;

use crate::common::Member;
use filbert_data::Value;
use filbert_grid::query::Dialect;
use proptest::prelude::*;
use proptest::sample::select;

/// A table with indexes, a table with the same rows and without a key, and the tables of
/// subqueries.
static MEMBER: LazyLock<Member> = LazyLock::new(|| {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE keyed (id INT PRIMARY KEY, a INT, b INT, s TEXT)");
    member.change("CREATE INDEX keyed_a ON keyed (a)");
    member.change("CREATE TABLE plain (id INT, a INT, b INT, s TEXT)");
    let rows = "VALUES (1, 1, 1, 'x'), (2, 1, NULL, 'y'), (3, NULL, 2, NULL), (4, 2, 2, ''), (5, 3, 1, 'x'), (6, NULL, NULL, NULL), \
                (7, 2, 5, 'y'), (8, 5, NULL, 'z')";
    member.change(&format!("INSERT INTO keyed {rows}"));
    member.change(&format!("INSERT INTO plain {rows}"));
    member.change("CREATE TABLE other (k INT PRIMARY KEY, a INT, c INT)");
    member.change("INSERT INTO other VALUES (1, 1, 1), (2, 2, NULL), (3, NULL, 3), (4, 2, 2), (5, 9, 5)");
    member.change("CREATE TABLE nothing (a INT, c INT)");
    member
});

fn operand() -> impl Strategy<Value = String> {
    select(vec!["t.a", "t.b", "t.id", "1", "2", "3", "NULL", "t.a + t.b", "coalesce(t.a, 0)"]).prop_map(str::to_owned)
}

fn comparison() -> impl Strategy<Value = &'static str> {
    select(vec!["=", "<>", "<", "<=", ">", ">="])
}

/// A subquery of one column of whole numbers.
fn rows() -> impl Strategy<Value = String> {
    let columns = select(vec!["o.a", "o.c", "o.k"]);
    let conditions = select(vec![
        "",
        " WHERE o.a IS NOT NULL",
        " WHERE o.a = t.a",
        " WHERE o.a < t.b",
        " WHERE t.b = 2",
        " WHERE o.c = t.id AND t.a > 1",
        " WHERE o.a = t.a OR t.b IS NULL",
    ]);
    let tails = select(vec!["", "", " ORDER BY o.k LIMIT 2", " ORDER BY o.k OFFSET 1"]);
    let plain = (columns, conditions, tails)
        .prop_map(|(column, condition, tail)| format!("SELECT {column} FROM other AS o{condition}{tail}"));
    let others = select(vec![
        "SELECT a FROM nothing",
        "SELECT max(o.a) FROM other AS o WHERE o.a = t.a",
        "SELECT o.a FROM other AS o GROUP BY o.a",
        "SELECT t.b",
        "VALUES (1), (NULL), (2)",
        "SELECT a FROM other UNION SELECT c FROM other",
    ]);
    prop_oneof![4 => plain, 1 => others.prop_map(str::to_owned)]
}

fn leaf() -> impl Strategy<Value = String> {
    let scalars = select(vec![
        "(SELECT count(*) FROM other AS o WHERE o.a = t.a)",
        "(SELECT max(o.c) FROM other AS o WHERE o.a = t.a)",
        "(SELECT sum(o.c) FROM other AS o WHERE o.a < t.b)",
        "(SELECT o.c FROM other AS o WHERE o.k = t.id)",
        "(SELECT min(a) FROM nothing)",
    ]);
    let lists = select(vec!["1, 2", "1, NULL", "NULL", "3", "t.b, 2"]);
    let arrays = select(vec!["ARRAY[1, NULL, 2]", "ARRAY[1, 2]", "'{}'::int[]", "'{1,NULL}'::int[]", "ARRAY[t.b, 3]"]);
    let quantifier = || select(vec!["ANY", "ALL"]);
    prop_oneof![
        (operand(), comparison(), operand()).prop_map(|(left, op, right)| format!("{left} {op} {right}")),
        (operand(), select(vec!["IS NULL", "IS NOT NULL"])).prop_map(|(value, is)| format!("{value} {is}")),
        (operand(), select(vec!["", "NOT "]), lists).prop_map(|(value, not, list)| format!("{value} {not}IN ({list})")),
        (operand(), select(vec!["", "NOT "]), operand(), operand())
            .prop_map(|(value, not, low, high)| format!("{value} {not}BETWEEN {low} AND {high}")),
        (operand(), select(vec!["", "NOT "]), operand())
            .prop_map(|(left, not, right)| format!("{left} IS {not}DISTINCT FROM {right}")),
        (operand(), select(vec!["", "NOT "]), rows())
            .prop_map(|(value, not, rows)| format!("{value} {not}IN ({rows})")),
        (select(vec!["", "NOT "]), rows()).prop_map(|(not, rows)| format!("{not}EXISTS ({rows})")),
        (operand(), comparison(), quantifier(), rows())
            .prop_map(|(value, op, quantifier, rows)| format!("{value} {op} {quantifier} ({rows})")),
        (operand(), comparison(), quantifier(), arrays)
            .prop_map(|(value, op, quantifier, array)| format!("{value} {op} {quantifier} ({array})")),
        (operand(), comparison(), scalars).prop_map(|(value, op, scalar)| format!("{value} {op} {scalar}")),
        (operand(), operand(), comparison(), operand(), operand())
            .prop_map(|(a, b, op, c, d)| format!("({a}, {b}) {op} ({c}, {d})")),
    ]
}

fn condition() -> impl Strategy<Value = String> {
    leaf().prop_recursive(3, 8, 3, |inner| {
        prop_oneof![
            (inner.clone(), select(vec!["AND", "OR"]), inner.clone())
                .prop_map(|(left, op, right)| format!("({left} {op} {right})")),
            inner.clone().prop_map(|inner| format!("(NOT ({inner}))")),
            (inner.clone(), select(vec!["TRUE", "NOT TRUE", "FALSE", "NOT FALSE", "UNKNOWN", "NOT UNKNOWN"]))
                .prop_map(|(inner, is)| format!("(({inner}) IS {is})")),
            (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(when, then, other)| format!("(CASE WHEN {when} THEN {then} ELSE {other} END)")),
            (inner.clone(), inner).prop_map(|(left, right)| format!("(({left}) = ({right}))")),
        ]
    })
}

/// The ids of the rows of a table for which a condition is true, false and unknown; `None` if the
/// condition is rejected.
fn parts(table: &str, condition: &str) -> Option<[Vec<String>; 3]> {
    let rows = |condition: String| {
        let text = format!("SELECT t.id FROM {table} AS t WHERE {condition} ORDER BY t.id");
        match MEMBER.try_rows(&text, &[]) {
            Ok(rows) => Some(rows),
            Err(error) if error.sqlstate() == "0A000" => None,
            Err(error) => panic!("{error}: {text}"),
        }
    };
    Some([
        rows(format!("({condition})"))?,
        rows(format!("NOT ({condition})"))?,
        rows(format!("({condition}) IS NULL"))?,
    ])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_condition_is_true_false_or_unknown(condition in condition()) {
        let Some(found) = parts("plain", &condition) else { return Ok(()) };
        let mut all: Vec<String> = found.iter().flatten().cloned().collect();
        all.sort();
        prop_assert_eq!(&all, &["1", "2", "3", "4", "5", "6", "7", "8"], "{}", condition);
        let of_keys = parts("keyed", &condition);
        prop_assert_eq!(of_keys.as_ref(), Some(&found), "{}", condition);
        let text = format!("SELECT t.id, ({condition}) FROM plain AS t ORDER BY t.id");
        let told = match MEMBER.try_rows(&text, &[]) {
            Ok(told) => told,
            Err(error) if error.sqlstate() == "0A000" => return Ok(()),
            Err(error) => panic!("{error}: {text}"),
        };
        for (part, value) in found.iter().zip(["true", "false", "NULL"]) {
            let suffix = format!("|{value}");
            let of_value: Vec<String> =
                told.iter().filter_map(|row| row.strip_suffix(suffix.as_str())).map(str::to_owned).collect();
            prop_assert_eq!(part, &of_value, "{} is {}", condition, value);
        }
    }
}

/// A condition that can fail, and its evaluation from left to right.
#[derive(Clone, Debug)]
enum Guarded {
    Leaf(usize),
    Not(Box<Guarded>),
    And(Box<Guarded>, Box<Guarded>),
    Or(Box<Guarded>, Box<Guarded>),
    IsTrue(Box<Guarded>),
    Same(Box<Guarded>, Box<Guarded>),
    Case(Box<Guarded>, Box<Guarded>, Box<Guarded>),
}

/// The evaluation of a condition met a division by zero.
#[derive(Debug)]
struct DivisionByZero;

type Truth = Result<Option<bool>, DivisionByZero>;

/// Conditions of `a` and `b`; whether they can fail, and whether they are subqueries.
const LEAVES: [(&str, bool, bool); 9] = [
    ("t.b <> 2", false, false),
    ("t.b IS NULL", false, false),
    ("t.a = 2", false, false),
    ("t.a > 2", false, false),
    ("6 / (t.b - 2) > 1", true, false),
    ("6 / (t.a - 2) < 0", true, false),
    ("1 IN (6 / (t.a - 2), 3)", true, false),
    ("(SELECT 6 / (t.b - 2) FROM other AS o WHERE o.k = 1) > 1", true, true),
    ("EXISTS (SELECT 1 FROM other AS o WHERE o.k = 1 AND 6 / (t.a - 2) < 0)", true, true),
];

fn leaf_of(at: usize, a: Option<i32>, b: Option<i32>) -> Truth {
    let quotient = |value: Option<i32>| match value {
        Some(2) => Err(DivisionByZero),
        value => Ok(value.map(|value| 6 / (value - 2))),
    };
    Ok(match at {
        0 => b.map(|b| b != 2),
        1 => Some(b.is_none()),
        2 => a.map(|a| a == 2),
        3 => a.map(|a| a > 2),
        4 | 7 => quotient(b)?.map(|value| value > 1),
        5 => quotient(a)?.map(|value| value < 0),
        6 => quotient(a)?.map(|value| value == 1),
        _ => Some(quotient(a)?.is_some_and(|value| value < 0)),
    })
}

impl Guarded {
    fn text(&self) -> String {
        match self {
            Guarded::Leaf(at) => LEAVES.get(*at).unwrap().0.to_owned(),
            Guarded::Not(inner) => format!("NOT ({})", inner.text()),
            Guarded::And(left, right) => format!("({}) AND ({})", left.text(), right.text()),
            Guarded::Or(left, right) => format!("({}) OR ({})", left.text(), right.text()),
            Guarded::IsTrue(inner) => format!("({}) IS TRUE", inner.text()),
            Guarded::Same(left, right) => format!("({}) = ({})", left.text(), right.text()),
            Guarded::Case(when, then, other) => {
                format!("CASE WHEN {} THEN {} ELSE {} END", when.text(), then.text(), other.text())
            }
        }
    }

    fn leaves(&self) -> Vec<usize> {
        match self {
            Guarded::Leaf(at) => vec![*at],
            Guarded::Not(inner) | Guarded::IsTrue(inner) => inner.leaves(),
            Guarded::And(left, right) | Guarded::Or(left, right) | Guarded::Same(left, right) => {
                [left.leaves(), right.leaves()].concat()
            }
            Guarded::Case(when, then, other) => [when.leaves(), then.leaves(), other.leaves()].concat(),
        }
    }

    fn has_subquery(&self) -> bool {
        self.leaves().iter().any(|at| LEAVES.get(*at).unwrap().2)
    }

    fn of(&self, a: Option<i32>, b: Option<i32>) -> Truth {
        let of = |inner: &Guarded| inner.of(a, b);
        Ok(match self {
            Guarded::Leaf(at) => leaf_of(*at, a, b)?,
            Guarded::Not(inner) => of(inner)?.map(|value| !value),
            Guarded::And(left, right) => match of(left)? {
                Some(false) => Some(false),
                left => both(left, of(right)?, false),
            },
            Guarded::Or(left, right) => match of(left)? {
                Some(true) => Some(true),
                left => both(left, of(right)?, true),
            },
            Guarded::IsTrue(inner) => Some(of(inner)? == Some(true)),
            Guarded::Same(left, right) => {
                let (left, right) = (of(left)?, of(right)?);
                left.zip(right).map(|(left, right)| left == right)
            }
            Guarded::Case(when, then, other) => match of(when)? {
                Some(true) => of(then)?,
                _ => of(other)?,
            },
        })
    }
}

/// The terms of a condition of rows that a planner may evaluate on their own.
fn terms(condition: &Guarded, negated: bool) -> Vec<(&Guarded, bool)> {
    match (condition, negated) {
        (Guarded::Not(inner), negated) => terms(inner, !negated),
        (Guarded::IsTrue(inner), false) => terms(inner, false),
        (Guarded::And(left, right), false) | (Guarded::Or(left, right), true) => {
            [terms(left, negated), terms(right, negated)].concat()
        }
        (term, negated) => vec![(term, negated)],
    }
}

/// Whether the terms of one side of a join, from left to right, fail for a row of that side. They
/// are evaluated below the join, here as in PostgreSQL, so terms of both sides do not guard them.
fn fails_on_one_side(condition: &Guarded) -> bool {
    let is_of_left = |at: &usize| LEAVES.get(*at).unwrap().0.contains("t.a");
    let terms = terms(condition, false);
    [true, false].into_iter().any(|of_left| {
        let own = |(term, _): &&(&Guarded, bool)| term.leaves().iter().all(|at| is_of_left(at) == of_left);
        fail_in_order(&terms.iter().filter(own).copied().collect::<Vec<_>>())
    })
}

/// Whether the terms of a condition of rows fail when those with subqueries are evaluated last, as
/// here and in PostgreSQL: they do not guard the others.
fn fails_without_guards_of_subqueries(condition: &Guarded) -> bool {
    let mut terms = terms(condition, false);
    terms.sort_by_key(|(term, _)| term.has_subquery());
    fail_in_order(&terms)
}

/// Whether terms that are evaluated in this order, up to the first that is not true, fail for some
/// row.
fn fail_in_order(terms: &[(&Guarded, bool)]) -> bool {
    PAIRS.iter().any(|(_, a, b)| {
        terms
            .iter()
            .map(|(term, negated)| term.of(*a, *b).map(|value| value.map(|value| value != *negated)))
            .find(|value| !matches!(value, Ok(Some(true))))
            .is_some_and(|value| value.is_err())
    })
}

fn guarded() -> impl Strategy<Value = Guarded> {
    let leaf = (0..LEAVES.len()).prop_map(Guarded::Leaf);
    leaf.prop_recursive(4, 10, 3, |inner| {
        let two = || (inner.clone().prop_map(Box::new), inner.clone().prop_map(Box::new));
        prop_oneof![
            3 => two().prop_map(|(left, right)| Guarded::And(left, right)),
            3 => two().prop_map(|(left, right)| Guarded::Or(left, right)),
            1 => inner.clone().prop_map(|inner| Guarded::Not(Box::new(inner))),
            1 => inner.clone().prop_map(|inner| Guarded::IsTrue(Box::new(inner))),
            1 => two().prop_map(|(left, right)| Guarded::Same(left, right)),
            1 => (two(), inner.clone()).prop_map(|((when, then), other)| Guarded::Case(when, then, Box::new(other))),
        ]
    })
}

/// The rows of [`MEMBER`]: id, `a` and `b`.
const PAIRS: [(i32, Option<i32>, Option<i32>); 8] = [
    (1, Some(1), Some(1)),
    (2, Some(1), None),
    (3, None, Some(2)),
    (4, Some(2), Some(2)),
    (5, Some(3), Some(1)),
    (6, None, None),
    (7, Some(2), Some(5)),
    (8, Some(5), None),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// A condition that never fails when it is evaluated from left to right, up to the operand that
    /// decides, does not fail here, and has the same value.
    #[test]
    fn operands_that_are_not_reached_do_not_fail(condition in guarded()) {
        let leaves = condition.leaves();
        // Conditions with subqueries do not guard other subqueries; see the open differences.
        prop_assume!(leaves.iter().filter(|at| LEAVES.get(**at).unwrap().2).count() < 2);
        let values: Result<Vec<_>, _> = PAIRS.iter().map(|(id, a, b)| Ok::<_, DivisionByZero>((id, condition.of(*a, *b)?))).collect();
        let Ok(values) = values else { return Ok(()) };
        let text = condition.text();
        let is_true = values.iter().filter(|(_, value)| *value == Some(true));
        let true_for: Vec<String> = is_true.map(|(id, _)| id.to_string()).collect();
        for table in ["plain", "keyed"] {
            if !fails_without_guards_of_subqueries(&condition) {
                let where_it_is = format!("SELECT t.id FROM {table} AS t WHERE {text} ORDER BY t.id");
                prop_assert_eq!(&MEMBER.try_rows(&where_it_is, &[]).unwrap(), &true_for, "{}", where_it_is);
            }
            let counted = format!("SELECT count(*) FILTER (WHERE {text}) FROM {table} AS t");
            prop_assert_eq!(MEMBER.try_rows(&counted, &[]).unwrap(), [true_for.len().to_string()], "{}", counted);
        }
        let told = format!("SELECT t.id, ({text}) FROM plain AS t ORDER BY t.id");
        let expected = values.iter().map(|(id, value)| match value {
            Some(value) => format!("{id}|{value}"),
            None => format!("{id}|NULL"),
        });
        prop_assert_eq!(MEMBER.try_rows(&told, &[]).unwrap(), expected.collect::<Vec<_>>(), "{}", told);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// The same for joins: `a` is a column of one row and `b` of another.
    #[test]
    fn joins_do_not_fail_for_pairs_that_are_not_reached(condition in guarded()) {
        if condition.has_subquery() {
            return Ok(());
        }
        let pairs = PAIRS.iter().flat_map(|(left, a, _)| PAIRS.iter().map(move |(right, _, b)| (left, right, a, b)));
        let values: Result<Vec<_>, _> =
            pairs.map(|(left, right, a, b)| Ok::<_, DivisionByZero>((left, right, condition.of(*a, *b)?))).collect();
        let Ok(values) = values else { return Ok(()) };
        if fails_on_one_side(&condition) {
            return Ok(());
        }
        let text = condition.text().replace("t.a", "x.a").replace("t.b", "y.b");
        let true_for: Vec<(i32, i32)> =
            values.iter().filter(|(_, _, value)| *value == Some(true)).map(|(left, right, _)| (**left, **right)).collect();
        let joined = format!("SELECT x.id, y.id FROM plain AS x JOIN plain AS y ON {text} ORDER BY x.id, y.id");
        let expected: Vec<String> = true_for.iter().map(|(left, right)| format!("{left}|{right}")).collect();
        prop_assert_eq!(MEMBER.try_rows(&joined, &[]).unwrap(), expected, "{}", joined);
        let expected: Vec<String> = PAIRS
            .iter()
            .filter(|(id, _, _)| true_for.iter().any(|(left, _)| left == id))
            .map(|(id, _, _)| id.to_string())
            .collect();
        for found in [
            format!("SELECT x.id FROM plain AS x WHERE EXISTS (SELECT 1 FROM plain AS y WHERE {text}) ORDER BY x.id"),
            format!("SELECT x.id FROM plain AS x WHERE true IN (SELECT ({text}) FROM plain AS y) ORDER BY x.id"),
            format!("SELECT x.id FROM plain AS x LEFT JOIN plain AS y ON {text} WHERE y.id > 0 GROUP BY x.id ORDER BY x.id"),
        ] {
            prop_assert_eq!(&MEMBER.try_rows(&found, &[]).unwrap(), &expected, "{}", found);
        }
    }
}

/// The rows of [`MEMBER`]: id and column `a`.
const ROWS: [(i32, Option<i32>); 8] =
    [(1, Some(1)), (2, Some(1)), (3, None), (4, Some(2)), (5, Some(3)), (6, None), (7, Some(2)), (8, Some(5))];

/// `value IN (items)`, and its negation.
fn is_in(value: Option<i32>, items: &[Option<i32>], negated: bool) -> Option<bool> {
    let found = match value {
        Some(value) if items.contains(&Some(value)) => Some(true),
        None => None,
        Some(_) if items.contains(&None) => None,
        Some(_) => Some(false),
    };
    found.map(|found| found != negated)
}

/// `t.a IN (items)`, with the items as literals (`known`), or as further parameters.
fn list(items: &[Option<i32>], negated: bool, known: bool, parameters: &mut Vec<Value<'static>>) -> String {
    let mut text_of = |item: &Option<i32>| {
        if known {
            return item.map_or_else(|| "NULL".to_owned(), |item| item.to_string());
        }
        parameters.push(item.map_or(Value::Null, Value::Int32));
        format!("${}", parameters.len())
    };
    let items: Vec<String> = items.iter().map(&mut text_of).collect();
    format!("t.a {}IN ({})", if negated { "NOT " } else { "" }, items.join(", "))
}

fn both(left: Option<bool>, right: Option<bool>, is_or: bool) -> Option<bool> {
    match (left, right) {
        (Some(decides), _) | (_, Some(decides)) if decides == is_or => Some(is_or),
        (Some(_), Some(_)) => Some(!is_or),
        _ => None,
    }
}

/// Items of lists. DataFusion evaluates lists over no rows; the last two items have one value then,
/// although they are not constant.
const ITEMS: [&str; 7] = ["t.b", "t.id", "1", "2", "t.a", "CASE WHEN t.b > 2 THEN 1 ELSE t.id END", "coalesce(t.b, 1)"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Items are literals or parameters, and may be equal to each other. The second list may be in
    /// an outer query over the query with the first list.
    #[test]
    fn lists_of_items_that_are_not_known_are_lists_of_values(
        first in proptest::collection::vec(proptest::option::weighted(0.9, 1..5), 1..6),
        second in proptest::collection::vec(proptest::option::weighted(0.9, 1..5), 1..6),
        negated in any::<[bool; 2]>(),
        way in 0..3,
        known in any::<[bool; 2]>(),
    ) {
        for table in ["plain", "keyed"] {
            let mut parameters = Vec::new();
            let one = list(&first, negated[0], known[0], &mut parameters);
            let other = list(&second, negated[1], known[1], &mut parameters);
            let text = match way {
                0 => format!("SELECT t.id FROM {table} AS t WHERE {one} AND {other} ORDER BY t.id"),
                1 => format!("SELECT t.id FROM {table} AS t WHERE {one} OR {other} ORDER BY t.id"),
                _ => format!("SELECT t.id FROM (SELECT t.id, t.a FROM {table} AS t WHERE {one}) AS t WHERE {other} ORDER BY t.id"),
            };
            let told = |value| both(is_in(value, &first, negated[0]), is_in(value, &second, negated[1]), way == 1);
            let expected: Vec<String> =
                ROWS.iter().filter(|(_, a)| told(*a) == Some(true)).map(|(id, _)| id.to_string()).collect();
            // The second time the plan comes from the cache, and may be a short plan.
            for time in ["first", "second"] {
                prop_assert_eq!(&MEMBER.rows_with(&text, &parameters), &expected, "{} {:?}, the {} time", text, parameters, time);
            }
        }
    }

    #[test]
    fn lists_of_columns_are_lists_of_values(
        first in proptest::collection::vec(select(ITEMS.to_vec()), 1..6),
        second in proptest::collection::vec(select(ITEMS.to_vec()), 1..6),
        // The optimizer treats each occurrence of the second expression as a different value.
        of in select(vec!["t.a", "(t.a + CAST(rand() * 0 AS INT))"]),
        negated in any::<[bool; 2]>(),
        op in select(vec!["AND", "OR"]),
    ) {
        let compared = |items: &[&str], negated: bool| {
            let (sign, word) = if negated { ("<>", " AND ") } else { ("=", " OR ") };
            let terms: Vec<String> = items.iter().map(|item| format!("{of} {sign} {item}")).collect();
            format!("({})", terms.join(word))
        };
        let listed = |items: &[&str], negated: bool| {
            format!("({of} {}IN ({}))", if negated { "NOT " } else { "" }, items.join(", "))
        };
        let query = |table: &str, of: &dyn Fn(&[&str], bool) -> String| {
            let condition = format!("{} {op} {}", of(&first, negated[0]), of(&second, negated[1]));
            MEMBER.rows(&format!("SELECT t.id, {condition} FROM {table} AS t WHERE {condition} ORDER BY t.id"))
        };
        for table in ["plain", "keyed"] {
            prop_assert_eq!(query(table, &listed), query(table, &compared), "{:?} {:?} {:?} {}", first, second, negated, op);
        }
    }
}

/// Zeros of both signs are equal, in every kind of comparison.
#[test]
fn zeros_of_both_signs_are_one_value() {
    let member = Member::of(Dialect::Postgres);
    member.change("CREATE TABLE z (id INT PRIMARY KEY, d FLOAT8, r REAL)");
    member.change("INSERT INTO z VALUES (1, 0, 0), (2, '-0', '-0'), (3, 1.5, 1.5), (4, NULL, NULL)");
    for index in ["", "CREATE INDEX z_d ON z (d)"] {
        if !index.is_empty() {
            member.change(index);
        }
        for (column, of_type) in [("d", "float8"), ("r", "real")] {
            let (plus, minus) = (format!("'0'::{of_type}"), format!("'-0'::{of_type}"));
            for zero in [&plus, &minus] {
                let other = if *zero == plus { &minus } else { &plus };
                let is_zero = [
                    format!("{column} = {zero}"),
                    format!("{column} = {zero} AND {column} = {other}"),
                    format!("{column} IN ({zero}, 5, 6, 7)"),
                    format!("{column} IN ({zero}, 5, 6, 7) AND {column} IN ({other}, 8, 9, 10)"),
                    format!("{column} = ANY ('{{{}, 5, 6, 7}}')", if *zero == plus { "0" } else { "-0" }),
                    format!("{column} IS NOT DISTINCT FROM {zero}"),
                    format!("{column} BETWEEN {zero} AND {other}"),
                ];
                for condition in is_zero {
                    let text = format!("SELECT id FROM z WHERE {condition} ORDER BY id");
                    assert_eq!(member.rows(&text), ["1", "2"], "{text}");
                    let text = format!("SELECT id FROM z WHERE NOT ({condition}) AND {column} IS NOT NULL ORDER BY id");
                    assert_eq!(member.rows(&text), ["3"], "{text}");
                }
                let text = format!("SELECT id FROM z WHERE {column} = {zero} AND {column} <> {other}");
                assert_eq!(member.rows(&text), [""; 0], "{text}");
            }
            for zero in [0.0, -0.0] {
                let text = format!("SELECT id FROM z WHERE {column} IN ($1, $2, $3, $4) ORDER BY id");
                let parameters = [zero, 5.0, 6.0, 7.0].map(Value::Float64);
                let parameters = if of_type == "real" { parameters.map(as_real) } else { parameters };
                assert_eq!(member.rows_with(&text, &parameters), ["1", "2"], "{text} {zero}");
            }
        }
    }
}

fn as_real(value: Value<'static>) -> Value<'static> {
    match value {
        Value::Float64(double) => Value::Float32(double as f32),
        other => other,
    }
}
