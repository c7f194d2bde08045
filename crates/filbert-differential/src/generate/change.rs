//! Generates changes of tables: INSERT, UPDATE, DELETE, with their optional clauses.

use super::schema::Table;
use super::{Generator, Scope};
use crate::tree::{Body, Conflict, Expr, Item, Query, Source, Statement, Type};

impl Generator<'_> {
    pub(super) fn change(&mut self) -> Statement {
        let schema = self.schema;
        let Some(table) = self.random.pick(&schema.tables) else { return Statement::Query(self.top_query()) };
        match self.random.below(10) {
            0..4 => self.insert(table),
            4..8 => self.update(table),
            _ => self.delete(table),
        }
    }

    fn insert(&mut self, table: &Table) -> Statement {
        let others: Vec<_> = table.columns.iter().skip(1).filter(|_| self.random.chance(70)).cloned().collect();
        let columns: Vec<String> = std::iter::once(self.functions.dialect.key().to_owned())
            .chain(others.iter().map(|column| column.name.clone()))
            .collect();
        let kinds: Vec<Type> = others.iter().map(|column| column.kind).collect();
        let is_conflicting = self.is_postgres() && self.random.chance(40);
        let rows = if self.random.chance(60) {
            self.rows(&kinds, is_conflicting)
        } else {
            self.rows_of_table(&kinds, is_conflicting)
        };
        let conflict = (is_conflicting && self.random.chance(80)).then(|| self.conflict(table));
        let returning = self.returning(&table.name, &scope_of(table, &table.name));
        Statement::Insert { table: table.name.clone(), columns, rows, conflict, returning }
    }

    /// Generates rows of values. Their keys are new, or some of them exist already to cause
    /// conflicts.
    fn rows(&mut self, kinds: &[Type], is_conflicting: bool) -> Query {
        let mut values = self.values(kinds);
        if let Body::Values(rows) = &mut values.body {
            for (index, row) in rows.iter_mut().enumerate() {
                let key = if is_conflicting { 1 + 5 * index } else { 100 + index };
                row.insert(0, Expr::word(key.to_string(), Type::Int4));
            }
        }
        values
    }

    /// Generates rows from another table or from the same table.
    fn rows_of_table(&mut self, kinds: &[Type], is_conflicting: bool) -> Query {
        let alias = self.name("a");
        let (source, scope) = self.table(alias.clone());
        let offset = if is_conflicting { 3 } else { 200 };
        let key = Expr::apply(
            format!("{{0}} + {offset}"),
            Type::Int4,
            vec![Expr::word(format!("{alias}.{}", self.functions.dialect.key()), Type::Int4)],
        );
        let mut items = vec![Item { expr: key, alias: None }];
        for kind in kinds {
            items.push(Item { expr: self.expr(*kind, 1, &scope), alias: None });
        }
        let filter = self.random.chance(40).then(|| self.condition(&scope));
        let select = crate::tree::Select { items, from: vec![source], filter, ..Default::default() };
        Query::of(Body::Select(Box::new(select)))
    }

    fn conflict(&mut self, table: &Table) -> Conflict {
        let mut scope = scope_of(table, &table.name);
        let own = scope.clone();
        scope.names.extend(scope_of(table, "excluded").names);
        let set = if self.random.chance(30) { Vec::new() } else { self.assignments(table, &scope, false) };
        let filter = self.random.chance(25).then(|| self.condition(&own));
        Conflict { target: "id".to_owned(), set, filter }
    }

    fn assignments(&mut self, table: &Table, scope: &Scope, moves_keys: bool) -> Vec<(String, Expr)> {
        let mut columns: Vec<_> = table.columns.iter().skip(1).collect();
        self.random.shuffle(&mut columns);
        let count = 1 + self.random.below(3);
        let mut set = Vec::new();
        if let [first, second, ..] = columns.as_slice()
            && self.queries_left > 0
            && self.random.chance(12)
        {
            let query = Box::new(self.row_query(&[first.kind, second.kind], scope));
            let row = Expr::Nested { pattern: "({})".to_owned(), kind: Type::Bool, operands: Vec::new(), query };
            set.push((format!("({}, {})", first.name, second.name), row));
            columns.drain(..2);
        }
        for column in columns.into_iter().take(count) {
            let depth = self.random.below(3);
            let value = if self.is_postgres() && self.random.chance(5) {
                Expr::word("default", column.kind)
            } else {
                self.expr(column.kind, depth, scope)
            };
            set.push((column.name.clone(), value));
        }
        if moves_keys {
            let key = scope.names().first().cloned().unwrap_or(Expr::word("id", Type::Int4));
            let pattern = self.random.word(&["{0} + 1000", "- {0}", "{0} + 1000", "{0} * 100", "1000 - {0}"]);
            set.push(("id".to_owned(), Expr::apply(pattern, Type::Int4, vec![key])));
        }
        set
    }

    fn update(&mut self, table: &Table) -> Statement {
        let alias = "u".to_owned();
        let mut scope = scope_of(table, &alias);
        let (from, joined) = self.beside(&mut scope);
        let moves_keys = self.is_postgres() && self.random.chance(15);
        let set = self.assignments(table, &scope, moves_keys);
        let condition = self.random.chance(75).then(|| self.condition(&scope));
        let filter = both(joined, condition);
        let returning = self.returning(&alias, &scope);
        Statement::Update { table: table.name.clone(), alias, set, from, filter, returning }
    }

    fn delete(&mut self, table: &Table) -> Statement {
        let alias = "d".to_owned();
        let mut scope = scope_of(table, &alias);
        let (using, joined) = self.beside(&mut scope);
        let condition = self.random.chance(90).then(|| self.condition(&scope));
        let filter = both(joined, condition);
        let returning = self.returning(&alias, &scope);
        Statement::Delete { table: table.name.clone(), alias, using, filter, returning }
    }

    /// Adds a second table, joined by its key, so that each row matches at most one row.
    fn beside(&mut self, scope: &mut Scope) -> (Vec<Source>, Option<Expr>) {
        if !self.is_postgres() || !self.random.chance(20) {
            return (Vec::new(), None);
        }
        let (source, other) = self.table("o".to_owned());
        let numbers: Vec<Expr> = scope.names.iter().filter(|name| name.kind() == Type::Int4).cloned().collect();
        let own = self.random.pick(&numbers).cloned().unwrap_or(Expr::word("1", Type::Int4));
        let joined = Expr::apply("{0} = {1}", Type::Bool, vec![own, Expr::word("o.id", Type::Int4)]);
        scope.names.extend(other.names);
        (vec![source], Some(joined))
    }

    /// Generates the returned columns: the key of the changed row, and expressions of it and of a
    /// joined one.
    fn returning(&mut self, alias: &str, scope: &Scope) -> Vec<Item> {
        if !self.is_postgres() || !self.random.chance(40) {
            return Vec::new();
        }
        let mut items = vec![Item { expr: Expr::word(format!("{alias}.id"), Type::Int4), alias: None }];
        for _ in 0..self.random.below(3) {
            let kind = self.random.pick(&scope.names).map_or(Type::Int4, Expr::kind);
            let depth = self.random.below(2);
            let queries_left = std::mem::take(&mut self.queries_left);
            items.push(Item { expr: self.expr(kind, depth, scope), alias: None });
            self.queries_left = queries_left;
        }
        items
    }
}

fn scope_of(table: &Table, alias: &str) -> Scope {
    let name = |column: &super::schema::TableColumn| Expr::word(format!("{alias}.{}", column.name), column.kind);
    Scope { names: table.columns.iter().map(name).collect(), ..Scope::default() }
}

fn both(one: Option<Expr>, other: Option<Expr>) -> Option<Expr> {
    match (one, other) {
        (Some(one), Some(other)) => Some(Expr::apply("({0} and {1})", Type::Bool, vec![one, other])),
        (one, other) => one.or(other),
    }
}
