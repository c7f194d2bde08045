//! Prints trees as text, with literals or with parameters.

use std::fmt::Write;

use super::{
    Body, Common, Conflict, Dialect, Expr, Group, Item, Join, Literal, Query, Select, Source, Statement, Type,
};
use crate::postgres::Parameter;

/// The text of a statement, with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Printed {
    pub(crate) text: String,
    pub(crate) parameters: Vec<Parameter>,
}

/// The form of literals that may be parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Literals {
    /// As literals.
    Written,
    /// As parameters of declared types.
    Declared,
    /// As parameters without declared types. A literal with a cast becomes the cast of a parameter.
    Inferred,
}

/// Prints a statement.
pub(crate) fn print(statement: &Statement, dialect: Dialect, literals: Literals) -> Printed {
    let mut printer = Printer { out: String::new(), parameters: Vec::new(), dialect, literals };
    printer.statement(statement);
    Printed { text: printer.out, parameters: printer.parameters }
}

struct Printer {
    out: String,
    parameters: Vec<Parameter>,
    dialect: Dialect,
    literals: Literals,
}

impl Printer {
    fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn list<T>(&mut self, items: &[T], each: impl Fn(&mut Printer, &T)) {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.put(", ");
            }
            each(self, item);
        }
    }

    /// Prints a clause, unless it is empty.
    fn clause<T>(&mut self, word: &str, items: &[T], each: impl Fn(&mut Printer, &T)) {
        if !items.is_empty() {
            self.put(word);
            self.list(items, each);
        }
    }

    fn condition(&mut self, word: &str, condition: Option<&Expr>) {
        if let Some(condition) = condition {
            self.put(word);
            self.expr(condition);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Query(query) => self.query(query),
            Statement::Insert { table, columns, rows, conflict, returning } => {
                let _ = write!(self.out, "insert into {table} ({}) ", columns.join(", "));
                self.query(rows);
                if let Some(conflict) = conflict {
                    self.conflict(conflict);
                }
                self.clause(" returning ", returning, Printer::item);
            }
            Statement::Update { table, alias, set, from, filter, returning } => {
                let _ = write!(self.out, "update {table} as {alias} set ");
                self.list(set, Printer::assignment);
                self.clause(" from ", from, Printer::source);
                self.condition(" where ", filter.as_ref());
                self.clause(" returning ", returning, Printer::item);
            }
            Statement::Delete { table, alias, using, filter, returning } => {
                let _ = write!(self.out, "delete from {table} as {alias}");
                self.clause(" using ", using, Printer::source);
                self.condition(" where ", filter.as_ref());
                self.clause(" returning ", returning, Printer::item);
            }
        }
    }

    fn conflict(&mut self, conflict: &Conflict) {
        let _ = write!(self.out, " on conflict ({}) do ", conflict.target);
        if conflict.set.is_empty() {
            self.put("nothing");
        } else {
            self.put("update set ");
            self.list(&conflict.set, Printer::assignment);
            self.condition(" where ", conflict.filter.as_ref());
        }
    }

    fn assignment(&mut self, (column, value): &(String, Expr)) {
        let _ = write!(self.out, "{column} = ");
        self.expr(value);
    }

    fn query(&mut self, query: &Query) {
        if !query.with.is_empty() {
            let recursive = query.with.iter().any(|common| common.again.is_some());
            self.put(if recursive { "with recursive " } else { "with " });
            self.list(&query.with, Printer::common);
            self.put(" ");
        }
        match &query.body {
            Body::Select(select) => self.select(select),
            Body::Values(rows) => self.clause("values ", rows, |printer, row| {
                printer.put("(");
                printer.list(row, Printer::expr);
                printer.put(")");
            }),
            Body::Set { operator, left, right } => {
                self.nested(left);
                let _ = write!(self.out, " {operator} ");
                self.nested(right);
            }
        }
        self.clause(" order by ", &query.order, |printer, (expr, direction)| {
            printer.expr(expr);
            printer.put(direction);
        });
        if let Some(limit) = query.limit {
            let _ = write!(self.out, " limit {limit}");
        }
        if let Some(offset) = query.offset {
            let _ = write!(self.out, " offset {offset}");
        }
    }

    fn common(&mut self, common: &Common) {
        let _ = write!(self.out, "{} ({}) as {}(", common.name, common.columns.join(", "), common.hint);
        self.query(&common.query);
        if let Some(again) = &common.again {
            self.put(" union all ");
            self.query(again);
        }
        self.put(")");
    }

    fn nested(&mut self, query: &Query) {
        self.put("(");
        self.query(query);
        self.put(")");
    }

    fn select(&mut self, select: &Select) {
        self.put("select ");
        self.put(select.distinct);
        self.list(&select.items, Printer::item);
        self.clause(" from ", &select.from, Printer::source);
        self.condition(" where ", select.filter.as_ref());
        if let Some(Group { pattern, keys }) = &select.group {
            let (before, after) = pattern.split_once("{}").unwrap_or((pattern, ""));
            self.put(" group by ");
            self.put(before);
            self.list(keys, Printer::expr);
            self.put(after);
        }
        self.condition(" having ", select.having.as_ref());
    }

    fn item(&mut self, item: &Item) {
        self.expr(&item.expr);
        if let Some(alias) = &item.alias {
            let _ = write!(self.out, " as {alias}");
        }
    }

    fn source(&mut self, source: &Source) {
        match source {
            Source::Table { name, alias } => {
                let _ = write!(self.out, "{name} as {alias}");
            }
            Source::Query { query, alias, columns, lateral } => {
                self.put(if *lateral { "lateral " } else { "" });
                self.nested(query);
                let _ = write!(self.out, " as {alias}");
                if !columns.is_empty() {
                    let _ = write!(self.out, " ({})", columns.join(", "));
                }
            }
            Source::Function { call, alias, lateral } => {
                self.put(if *lateral { "lateral " } else { "" });
                self.expr(call);
                let _ = write!(self.out, " as {alias}");
            }
            Source::Join { kind, left, right, on } => {
                self.source(left);
                let _ = write!(self.out, " {kind} ");
                let is_join = matches!(**right, Source::Join { .. });
                self.put(if is_join { "(" } else { "" });
                self.source(right);
                self.put(if is_join { ")" } else { "" });
                match on {
                    Join::None => {}
                    Join::On(condition) => self.condition(" on ", Some(condition)),
                    Join::Using(columns) => {
                        let _ = write!(self.out, " using ({})", columns.join(", "));
                    }
                }
            }
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match expr {
            Expr::Literal(literal) => self.literal(literal),
            Expr::Word { text, .. } => self.put(text),
            Expr::Apply { pattern, operands, .. } => self.pattern(pattern, operands, None),
            Expr::Nested { pattern, operands, query, .. } => self.pattern(pattern, operands, Some(query)),
        }
    }

    /// Prints a pattern with its operands. Braces without a number are printed unchanged.
    fn pattern(&mut self, pattern: &str, operands: &[Expr], query: Option<&Query>) {
        let mut rest = pattern;
        while let Some((before, after)) = rest.split_once('{') {
            self.put(before);
            let place = after.split_once('}');
            match (place, query) {
                (Some(("", after)), Some(query)) => {
                    self.query(query);
                    rest = after;
                }
                (Some((number, after)), _) if number.parse::<usize>().is_ok() => {
                    if let Some(operand) = number.parse().ok().and_then(|index: usize| operands.get(index)) {
                        self.expr(operand);
                    }
                    rest = after;
                }
                _ => {
                    self.put("{");
                    rest = after;
                }
            }
        }
        self.put(rest);
    }

    fn literal(&mut self, literal: &Literal) {
        if self.literals != Literals::Written && literal.is_parameter {
            let is_declared = self.literals == Literals::Declared;
            let oid = if is_declared { literal.kind.oid() } else { 0 };
            self.parameters.push(Parameter { oid, value: literal.text.clone() });
            let _ = match self.dialect {
                Dialect::Postgres => write!(self.out, "${}", self.parameters.len()),
                Dialect::Hazelcast => write!(self.out, "?"),
            };
            if !is_declared && literal.is_cast {
                let _ = write!(self.out, "::{}", literal.kind.name());
            }
            return;
        }
        let text = match self.dialect {
            Dialect::Postgres => written(literal),
            Dialect::Hazelcast => written_for_hazelcast(literal),
        };
        self.put(&text);
    }
}

/// The text of a literal.
fn written(literal: &Literal) -> String {
    let name = literal.kind.name();
    let Some(text) = &literal.text else {
        return if literal.is_cast { format!("null::{name}") } else { "null".to_owned() };
    };
    let quoted = format!("'{}'", text.replace('\'', "''"));
    let is_plain = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-'));
    match literal.kind {
        Type::Int4 | Type::Int8 | Type::Numeric if !literal.is_cast && is_plain => {
            if text.starts_with('-') {
                format!("({text})")
            } else {
                text.clone()
            }
        }
        Type::Bool if !literal.is_cast => if text == "t" { "true" } else { "false" }.to_owned(),
        Type::Text if !literal.is_cast => quoted,
        Type::Date | Type::Timestamp | Type::Timestamptz | Type::Time | Type::Interval if !literal.is_cast => {
            format!("{name} {quoted}")
        }
        _ => format!("{quoted}::{name}"),
    }
}

/// The text of a literal in Hazelcast's dialect.
fn written_for_hazelcast(literal: &Literal) -> String {
    let name = literal.kind.hazelcast_name();
    let Some(text) = &literal.text else {
        return if literal.is_cast { format!("cast(null as {name})") } else { "null".to_owned() };
    };
    let quoted = format!("'{}'", text.replace('\'', "''"));
    let is_plain = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'-'));
    match literal.kind {
        Type::Int2 | Type::Int4 | Type::Int8 | Type::Numeric if !literal.is_cast && is_plain => {
            if text.starts_with('-') { format!("({text})") } else { text.clone() }
        }
        Type::Bool => if text == "t" { "true" } else { "false" }.to_owned(),
        Type::Text if !literal.is_cast => quoted,
        Type::Timestamp => format!("cast({} as {name})", quoted.replace(' ', "T")),
        _ => format!("cast({quoted} as {name})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(kind: Type, text: &str, is_cast: bool) -> Literal {
        Literal { kind, text: Some(text.to_owned()), is_cast, is_parameter: true }
    }

    #[test]
    fn literals_are_written_as_their_types_ask() {
        assert_eq!(written(&literal(Type::Int4, "-5", false)), "(-5)");
        assert_eq!(written(&literal(Type::Int4, "-5", true)), "'-5'::int4");
        assert_eq!(written(&literal(Type::Text, "it's", false)), "'it''s'");
        assert_eq!(written(&literal(Type::Numeric, "NaN", false)), "'NaN'::numeric");
        assert_eq!(written(&literal(Type::Bool, "t", false)), "true");
        let timestamp = literal(Type::Timestamp, "2024-01-01 00:00:00", false);
        assert_eq!(written_for_hazelcast(&timestamp), "cast('2024-01-01T00:00:00' as timestamp)");
    }

    #[test]
    fn parameters_stand_in_the_places_of_literals() {
        let one = Expr::Literal(literal(Type::Int4, "1", false));
        let sum = Expr::apply("({0} + {0})", Type::Int4, vec![one]);
        let select = Select { items: vec![Item { expr: sum, alias: None }], ..Select::default() };
        let statement = Statement::Query(Query::of(Body::Select(Box::new(select))));
        assert_eq!(print(&statement, Dialect::Postgres, Literals::Written).text, "select (1 + 1)");
        let printed = print(&statement, Dialect::Postgres, Literals::Declared);
        assert_eq!((printed.text.as_str(), printed.parameters.len()), ("select ($1 + $2)", 2));
        let printed = print(&statement, Dialect::Postgres, Literals::Inferred);
        assert!(printed.parameters.iter().all(|parameter| parameter.oid == 0));
    }
}
