//! Generates smaller statements: removes or simplifies one part of a statement.
//!
//! This module does not know whether a smaller statement still shows the difference. The caller
//! tries the candidates in order.

use super::{Body, Common, Expr, Group, Item, Join, Literal, Query, Select, Source, Statement, Type};

/// Returns the statements that are one step smaller, the largest steps first.
pub(crate) fn smaller(statement: &Statement) -> Vec<Statement> {
    match statement {
        Statement::Query(query) => queries(query).into_iter().map(Statement::Query).collect(),
        Statement::Insert { table, columns, rows, conflict, returning } => {
            let mut all = Vec::new();
            let mut add = |columns: &[String], rows: Query, conflict: &Option<_>, returning: Vec<Item>| {
                let (table, columns, conflict) = (table.clone(), columns.to_vec(), Clone::clone(conflict));
                all.push(Statement::Insert { table, columns, rows, conflict, returning });
            };
            add(columns, rows.clone(), conflict, Vec::new());
            add(columns, rows.clone(), &None, returning.clone());
            for index in (1..columns.len()).rev() {
                if let Some(rows) = without_column(rows, index) {
                    add(&without(columns, index), rows, conflict, returning.clone());
                }
            }
            if let Some(conflict) = conflict {
                let mut fewer = conflict.clone();
                fewer.filter = None;
                add(columns, rows.clone(), &Some(fewer), returning.clone());
                for set in assignments(&conflict.set) {
                    add(columns, rows.clone(), &Some(super::Conflict { set, ..conflict.clone() }), returning.clone());
                }
                for filter in conflict.filter.iter().flat_map(exprs) {
                    let conflict = super::Conflict { filter: Some(filter), ..conflict.clone() };
                    add(columns, rows.clone(), &Some(conflict), returning.clone());
                }
            }
            queries(rows).into_iter().for_each(|rows| add(columns, rows, conflict, returning.clone()));
            items(returning).into_iter().for_each(|returning| add(columns, rows.clone(), conflict, returning));
            all
        }
        Statement::Update { table, alias, set, from, filter, returning } => {
            let (table, alias) = (table.clone(), alias.clone());
            let make = |set: &[(String, Expr)], from: &[Source], filter: &Option<Expr>, returning: &[Item]| {
                Statement::Update {
                    table: table.clone(),
                    alias: alias.clone(),
                    set: set.to_vec(),
                    from: from.to_vec(),
                    filter: filter.clone(),
                    returning: returning.to_vec(),
                }
            };
            let mut all = vec![
                make(set, from, &None, returning),
                make(set, &[], filter, returning),
                make(set, from, filter, &[]),
            ];
            all.extend(assignments(set).iter().map(|set| make(set, from, filter, returning)));
            all.extend(filter.iter().flat_map(exprs).map(|filter| make(set, from, &Some(filter), returning)));
            all.extend(items(returning).iter().map(|returning| make(set, from, filter, returning)));
            all
        }
        Statement::Delete { table, alias, using, filter, returning } => {
            let (table, alias) = (table.clone(), alias.clone());
            let make = |using: &[Source], filter: &Option<Expr>, returning: &[Item]| Statement::Delete {
                table: table.clone(),
                alias: alias.clone(),
                using: using.to_vec(),
                filter: filter.clone(),
                returning: returning.to_vec(),
            };
            let mut all = vec![make(using, &None, returning), make(&[], filter, returning), make(using, filter, &[])];
            all.extend(filter.iter().flat_map(exprs).map(|filter| make(using, &Some(filter), returning)));
            all.extend(items(returning).iter().map(|returning| make(using, filter, returning)));
            all
        }
    }
}

fn without<T: Clone>(list: &[T], index: usize) -> Vec<T> {
    list.iter().enumerate().filter(|(at, _)| *at != index).map(|(_, item)| item.clone()).collect()
}

/// Returns all lists in which one item is replaced with a result of `each`.
fn replaced<T: Clone>(list: &[T], each: impl Fn(&T) -> Vec<T>) -> Vec<Vec<T>> {
    let mut all = Vec::new();
    for (index, item) in list.iter().enumerate() {
        for smaller in each(item) {
            let mut copy = list.to_vec();
            if let Some(place) = copy.get_mut(index) {
                *place = smaller;
            }
            all.push(copy);
        }
    }
    all
}

fn assignments(set: &[(String, Expr)]) -> Vec<Vec<(String, Expr)>> {
    let mut all: Vec<Vec<_>> =
        if set.len() > 1 { (0..set.len()).map(|index| without(set, index)).collect() } else { Vec::new() };
    all.extend(replaced(set, |(name, expr)| exprs(expr).into_iter().map(|expr| (name.clone(), expr)).collect()));
    all
}

fn items(list: &[Item]) -> Vec<Vec<Item>> {
    let mut all: Vec<Vec<_>> =
        if list.len() > 1 { (0..list.len()).map(|index| without(list, index)).collect() } else { Vec::new() };
    all.extend(replaced(list, |item| {
        let smaller = exprs(&item.expr).into_iter().map(|expr| Item { expr, alias: item.alias.clone() });
        let unnamed = item.alias.as_ref().map(|_| Item { expr: item.expr.clone(), alias: None });
        smaller.chain(unnamed).collect()
    }));
    all
}

/// Returns smaller expressions of the same type.
fn exprs(expr: &Expr) -> Vec<Expr> {
    let kind = expr.kind();
    match expr {
        Expr::Word { .. } => vec![plain(kind)],
        Expr::Literal(literal) => literals(literal),
        Expr::Apply { pattern, operands, inexact, .. } => {
            let mut all: Vec<Expr> = operands.iter().filter(|operand| operand.kind() == kind).cloned().collect();
            all.push(plain(kind));
            // A window is unchanged: its order is total, so that its rows are the same on every
            // server.
            let of_call = pattern.split_once(" over (").map_or(operands.len(), |(call, _)| call.matches('{').count());
            let (called, window) = operands.split_at(of_call.min(operands.len()));
            let rebuilt = replaced(called, exprs).into_iter().map(|called| [&called, window].concat());
            all.extend(rebuilt.map(|operands| Expr::Apply {
                pattern: pattern.clone(),
                kind,
                operands,
                inexact: *inexact,
            }));
            // Filters and frames are optional.
            for word in [" filter (", " order by ", " rows ", " range ", " groups "] {
                if let Some((before, after)) = pattern.split_once(word)
                    && (word != " order by " || window.is_empty())
                {
                    let rest = if word.starts_with(" filter") {
                        ""
                    } else if after.ends_with(')') {
                        ")"
                    } else {
                        ""
                    };
                    let pattern = format!("{before}{rest}");
                    all.push(Expr::Apply { pattern, kind, operands: operands.clone(), inexact: *inexact });
                }
            }
            all
        }
        Expr::Nested { pattern, operands, query, .. } => {
            let mut all: Vec<Expr> = operands.iter().filter(|operand| operand.kind() == kind).cloned().collect();
            all.push(plain(kind));
            let make = |operands: Vec<Expr>, query: Query| Expr::Nested {
                pattern: pattern.clone(),
                kind,
                operands,
                query: Box::new(query),
            };
            all.extend(queries(query).into_iter().map(|query| make(operands.clone(), query)));
            all.extend(replaced(operands, exprs).into_iter().map(|operands| make(operands, (**query).clone())));
            all
        }
    }
}

/// The simplest value of a type.
fn plain(kind: Type) -> Expr {
    let text = match kind {
        Type::Int2 | Type::Int4 | Type::Int8 | Type::Numeric | Type::Real | Type::Double => "1",
        Type::Text | Type::Varchar | Type::Char => "a",
        Type::Bool => "t",
        Type::Date => "2024-01-01",
        Type::Timestamp => "2024-01-01 00:00:00",
        Type::Timestamptz => "2024-01-01 00:00:00+00",
        Type::Time => "00:00:00",
        Type::Interval => "1 day",
        Type::Uuid => "00000000-0000-0000-0000-000000000000",
        Type::Bytea => "\\x",
        Type::Jsonb | Type::Ints | Type::Texts => "{}",
    };
    Expr::Literal(Literal { kind, text: Some(text.to_owned()), is_cast: false, is_parameter: false })
}

fn literals(literal: &Literal) -> Vec<Expr> {
    let mut all = Vec::new();
    let simple = plain(literal.kind);
    // Try a literal instead of a parameter.
    if literal.is_parameter {
        all.push(Expr::Literal(Literal { is_parameter: false, ..literal.clone() }));
    }
    if literal.is_cast && literal.text.is_some() {
        all.push(Expr::Literal(Literal { is_cast: false, ..literal.clone() }));
    }
    if let Expr::Literal(plain) = &simple
        && plain.text != literal.text
        && literal.text.is_some()
    {
        all.push(Expr::Literal(Literal { text: plain.text.clone(), ..literal.clone() }));
    }
    all
}

fn queries(query: &Query) -> Vec<Query> {
    let mut all = Vec::new();
    if let Body::Set { left, right, .. } = &query.body {
        for part in [left, right] {
            all.push(Query { with: query.with.clone(), ..(**part).clone() });
        }
    }
    all.extend((0..query.with.len()).map(|index| Query { with: without(&query.with, index), ..query.clone() }));
    // The order decides which row a `DISTINCT ON` keeps.
    let takes_first = matches!(&query.body, Body::Select(select) if select.distinct.contains(" on "));
    if !query.order.is_empty() && !takes_first {
        all.push(Query { order: Vec::new(), limit: None, offset: None, ..query.clone() });
    }
    if query.limit.is_some() {
        all.push(Query { limit: None, ..query.clone() });
    }
    if query.offset.is_some() {
        all.push(Query { offset: None, ..query.clone() });
    }
    let with_body = |body: Body| Query { body, ..query.clone() };
    match &query.body {
        Body::Select(select) => {
            all.extend(selects(select).into_iter().map(|select| with_body(Body::Select(Box::new(select)))))
        }
        Body::Values(rows) => {
            if rows.len() > 1 {
                all.extend((0..rows.len()).map(|index| with_body(Body::Values(without(rows, index)))));
            }
            all.extend(
                replaced(rows, |row| replaced(row, exprs)).into_iter().map(|rows| with_body(Body::Values(rows))),
            );
        }
        Body::Set { operator, left, right } => {
            for smaller in queries(left) {
                all.push(with_body(Body::Set { operator, left: Box::new(smaller), right: right.clone() }));
            }
            for smaller in queries(right) {
                all.push(with_body(Body::Set { operator, left: left.clone(), right: Box::new(smaller) }));
            }
        }
    }
    let common = |common: &Common| {
        let first = queries(&common.query).into_iter().map(|query| Common { query, ..common.clone() });
        // A recursion without its condition would not end.
        let again = common
            .again
            .iter()
            .flat_map(|again| queries(again).into_iter().filter(move |smaller| condition(smaller) == condition(again)));
        let again = again.map(|again| Common { again: Some(again), ..common.clone() });
        first.chain(again).collect()
    };
    all.extend(replaced(&query.with, common).into_iter().map(|with| Query { with, ..query.clone() }));
    all
}

/// The condition of a query with a single SELECT.
fn condition(query: &Query) -> Option<&Expr> {
    match &query.body {
        Body::Select(select) => select.filter.as_ref(),
        Body::Values(_) | Body::Set { .. } => None,
    }
}

fn selects(select: &Select) -> Vec<Select> {
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Select)| {
        let mut smaller = select.clone();
        change(&mut smaller);
        if smaller != *select {
            all.push(smaller);
        }
    };
    add(&|select| select.filter = None);
    add(&|select| select.having = None);
    add(&|select| select.group = None);
    add(&|select| select.distinct = "");
    for index in 0..select.from.len() {
        add(&|select| select.from = without(&select.from, index));
    }
    for from in replaced(&select.from, sources) {
        add(&|select| select.from.clone_from(&from));
    }
    for smaller in items(&select.items) {
        add(&|select| select.items.clone_from(&smaller));
    }
    for smaller in select.filter.iter().flat_map(exprs) {
        add(&|select| select.filter = Some(smaller.clone()));
    }
    for smaller in select.having.iter().flat_map(exprs) {
        add(&|select| select.having = Some(smaller.clone()));
    }
    if let Some(Group { pattern, keys }) = &select.group {
        let mut fewer: Vec<Vec<Expr>> =
            if keys.len() > 1 { (0..keys.len()).map(|index| without(keys, index)).collect() } else { Vec::new() };
        fewer.extend(replaced(keys, exprs));
        for keys in fewer {
            add(&|select| select.group = Some(Group { pattern, keys: keys.clone() }));
        }
        add(&|select| select.group = Some(Group { pattern: "{}", keys: keys.clone() }));
    }
    all
}

fn sources(source: &Source) -> Vec<Source> {
    match source {
        Source::Table { .. } => Vec::new(),
        Source::Query { query, alias, columns, lateral } => {
            let (alias, columns) = (alias.clone(), columns.clone());
            let make = |query, lateral| Source::Query {
                query: Box::new(query),
                alias: alias.clone(),
                columns: columns.clone(),
                lateral,
            };
            let mut all: Vec<Source> = queries(query).into_iter().map(|query| make(query, *lateral)).collect();
            if *lateral {
                all.push(make((**query).clone(), false));
            }
            all
        }
        Source::Function { call, alias, lateral } => exprs(call)
            .into_iter()
            .map(|call| Source::Function { call, alias: alias.clone(), lateral: *lateral })
            .collect(),
        Source::Join { kind, left, right, on } => {
            let mut all = vec![(**left).clone(), (**right).clone()];
            let make = |left: &Source, right: &Source, on: Join| Source::Join {
                kind,
                left: Box::new(left.clone()),
                right: Box::new(right.clone()),
                on,
            };
            all.extend(sources(left).iter().map(|left| make(left, right, on.clone())));
            all.extend(sources(right).iter().map(|right| make(left, right, on.clone())));
            if let Join::On(condition) = on {
                all.extend(exprs(condition).into_iter().map(|condition| make(left, right, Join::On(condition))));
            }
            if *kind != "cross join" && !matches!(on, Join::None) {
                all.push(Source::Join { kind: "join", left: left.clone(), right: right.clone(), on: on.clone() });
            }
            all.retain(|smaller| smaller != source);
            all
        }
    }
}

/// The query without one of its columns.
fn without_column(query: &Query, index: usize) -> Option<Query> {
    let body = match &query.body {
        Body::Select(select) => {
            Body::Select(Box::new(Select { items: without(&select.items, index), ..(**select).clone() }))
        }
        Body::Values(rows) => Body::Values(rows.iter().map(|row| without(row, index)).collect()),
        Body::Set { .. } => return None,
    };
    Some(Query { body, ..query.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Dialect, Literals, print};

    fn shrunk(statement: Statement, keeps: &str) -> String {
        let written = |statement: &Statement| print(statement, Dialect::Postgres, Literals::Written).text;
        let mut current = statement;
        while let Some(next) = smaller(&current).into_iter().find(|next| written(next).contains(keeps)) {
            current = next;
        }
        written(&current)
    }

    #[test]
    fn only_what_is_needed_is_left() {
        let sum = Expr::apply("({0} + {1})", Type::Int4, vec![plain(Type::Int4), Expr::word("a.k", Type::Int4)]);
        let filter = Expr::apply("({0} = {1})", Type::Bool, vec![sum.clone(), plain(Type::Int4)]);
        let table = |alias: &str| Source::Table { name: "t".to_owned(), alias: alias.to_owned() };
        let join = Source::Join {
            kind: "left join",
            left: Box::new(table("a")),
            right: Box::new(table("b")),
            on: Join::On(filter.clone()),
        };
        let select = Select {
            items: vec![Item { expr: sum, alias: None }],
            from: vec![join],
            filter: Some(filter),
            ..Select::default()
        };
        let statement = Statement::Query(Query::of(Body::Select(Box::new(select))));
        assert_eq!(shrunk(statement.clone(), "t as b"), "select 1 from t as b");
        assert_eq!(shrunk(statement, "left join"), "select 1 from t as a left join t as b on true");
    }
}
