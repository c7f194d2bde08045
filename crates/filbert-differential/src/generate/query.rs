//! Generates complete queries: WITH, set operations, values, orders and limits. Also generates
//! subqueries of expressions.

use super::{Generator, Scope};
use crate::tree::{Body, Common, Expr, Item, Query, Select, Source, Type};

/// Sort directions of a key.
const DIRECTIONS: [&str; 6] = ["", "", " desc", " nulls first", " desc nulls last", " asc"];

impl Generator<'_> {
    /// Generates a top-level query.
    pub(super) fn top_query(&mut self) -> Query {
        if self.random.chance(12) {
            return self.report();
        }
        let with = if self.is_postgres() && self.random.chance(15) { self.with() } else { Vec::new() };
        let kinds = self.kinds();
        let mut query = self.query_of(&kinds, &Scope::default());
        query.with = with;
        if self.is_postgres() && self.random.chance(6) {
            self.distinct_on(&mut query, &kinds);
        }
        if query.order.is_empty() && self.random.chance(45) {
            self.order(&mut query, kinds.len());
        }
        self.by_meaning(&mut query);
        query
    }

    /// Keeps one row for each value of the first columns: the first one in a total order. Equal
    /// intervals and floats may be written differently, so that their order is not total.
    fn distinct_on(&mut self, query: &mut Query, kinds: &[Type]) {
        let Body::Select(select) = &mut query.body else { return };
        let is_total = !kinds.iter().any(|kind| kind.is_float() || *kind == Type::Interval);
        if !is_total || !select.distinct.is_empty() || !query.order.is_empty() {
            return;
        }
        let has_two = kinds.len() > 1 && self.random.chance(40);
        select.distinct = if has_two { "distinct on (1, 2) " } else { "distinct on (1) " };
        let mut numbers: Vec<usize> = (1..=kinds.len()).collect();
        if has_two && self.random.chance(50) {
            numbers.swap(0, 1);
        }
        for number in numbers {
            query.order.push((Expr::word(number.to_string(), Type::Int4), self.random.word(&DIRECTIONS)));
        }
    }

    /// Writes some keys of the order as names or expressions of their columns.
    fn by_meaning(&mut self, query: &mut Query) {
        let Query { body: Body::Select(select), order, .. } = query else { return };
        for (key, _) in order {
            let Expr::Word { text, .. } = key else { continue };
            let place = text.parse().ok().and_then(|number: usize| number.checked_sub(1));
            let Some(item) = place.and_then(|place| select.items.get(place)) else { continue };
            // A literal is no sort key, or is a position.
            *key = match &item.alias {
                Some(alias) if self.random.chance(30) => Expr::word(alias.clone(), item.expr.kind()),
                _ if self.random.chance(30) && !matches!(item.expr, Expr::Literal(_)) => item.expr.clone(),
                _ => continue,
            };
        }
    }

    /// Chooses the types of a query's columns.
    fn kinds(&mut self) -> Vec<Type> {
        let schema = self.schema;
        let columns: Vec<Type> =
            schema.tables.iter().flat_map(|table| &table.columns).map(|column| column.kind).collect();
        let count = 1 + self.random.below(3);
        let dialect = self.functions.dialect;
        let mut kind = || {
            let from_column = self.random.chance(65);
            let kinds = if from_column { columns.as_slice() } else { dialect.types() };
            self.random.pick(kinds).copied().unwrap_or(Type::Int4)
        };
        (0..count).map(|_| kind()).collect()
    }

    /// Generates a query with these result types. `outer` contains the names that it may use from
    /// outside.
    pub(super) fn query_of(&mut self, kinds: &[Type], outer: &Scope) -> Query {
        match self.random.below(100) {
            0..9 if self.queries_left > 0 => self.set_operation(kinds, outer),
            9..12 if self.is_postgres() => self.values(kinds),
            _ => Query::of(Body::Select(Box::new(self.select(kinds, outer)))),
        }
    }

    /// Orders the query by all of its columns, so that a limit takes the same rows everywhere.
    pub(super) fn order(&mut self, query: &mut Query, columns: usize) {
        let mut numbers: Vec<usize> = (1..=columns).collect();
        self.random.shuffle(&mut numbers);
        for number in numbers {
            // Parentheses around a position do not matter.
            let key = if self.random.chance(10) { format!("({number})") } else { number.to_string() };
            query.order.push((Expr::word(key, Type::Int4), self.random.word(&DIRECTIONS)));
        }
        if self.random.chance(40) {
            query.limit = Some(self.random.below(6));
        }
        if self.random.chance(15) {
            query.offset = Some(self.random.below(4));
        }
    }

    fn set_operation(&mut self, kinds: &[Type], outer: &Scope) -> Query {
        self.queries_left -= 1;
        let operator = self.random.word(&[
            "union",
            "union all",
            "union all",
            "intersect",
            "except",
            "intersect all",
            "except all",
        ]);
        let left = Box::new(self.query_of(kinds, outer));
        let right = Box::new(self.query_of(kinds, outer));
        Query::of(Body::Set { operator, left, right })
    }

    pub(super) fn values(&mut self, kinds: &[Type]) -> Query {
        let count = 1 + self.random.below(4);
        let scope = Scope::default();
        let mut row = || {
            let cell = |kind: &Type| {
                let depth = usize::from(self.random.chance(20));
                self.expr(*kind, depth, &scope)
            };
            kinds.iter().map(cell).collect()
        };
        Query::of(Body::Values((0..count).map(|_| row()).collect()))
    }

    fn with(&mut self) -> Vec<Common> {
        let count = 1 + self.random.below(2);
        let mut with = Vec::new();
        for _ in 0..count {
            let common = if self.random.chance(25) { self.recursive() } else { self.common_query() };
            with.push(common);
        }
        with
    }

    fn common_query(&mut self) -> Common {
        let kinds = self.kinds();
        let query = self.query_of(&kinds, &Scope::default());
        // Sometimes use the name of a table, which is then hidden.
        let name = if self.random.chance(10) { "tbl_2".to_owned() } else { self.name("w") };
        // The session replaces the prefix `tbl_`, so column names must not contain it.
        let prefix = name.replace("tbl_", "c");
        let columns: Vec<String> = (1..=kinds.len()).map(|number| format!("{prefix}_{number}")).collect();
        let hint = self.random.word(&["", "", "materialized ", "not materialized "]);
        self.common.push((name.clone(), columns.iter().cloned().zip(kinds).collect()));
        Common { name, columns, hint, query, again: None }
    }

    /// Generates a recursive query that counts to a small number and computes a second column.
    fn recursive(&mut self) -> Common {
        let name = self.name("r");
        let kind = self.any_type();
        let columns = vec![(format!("{name}_n"), Type::Int4), (format!("{name}_v"), kind)];
        let (n, v) = (Expr::word(format!("{name}_n"), Type::Int4), Expr::word(format!("{name}_v"), kind));
        let item = |expr: Expr| Item { expr, alias: None };
        let first = self.expr(kind, 1, &Scope::default());
        let scope = Scope { names: vec![n.clone(), v], ..Scope::default() };
        let queries_left = std::mem::take(&mut self.queries_left);
        let next = self.expr(kind, 1, &scope);
        self.queries_left = queries_left;
        // Both parts must have the same types. The casts ensure this.
        let cast = |expr: Expr| {
            Expr::apply(format!("{{0}}::{}", kind.name()), kind, vec![Expr::apply("({0})", kind, vec![expr])])
        };
        let first = Select { items: vec![item(Expr::word("1", Type::Int4)), item(cast(first))], ..Select::default() };
        let again = Select {
            items: vec![item(Expr::apply("{0} + 1", Type::Int4, vec![n.clone()])), item(cast(next))],
            from: vec![Source::Table { name: name.clone(), alias: name.clone() }],
            filter: Some(Expr::apply("{0} < 4", Type::Bool, vec![n])),
            ..Select::default()
        };
        self.common.push((name.clone(), columns.clone()));
        let columns = columns.into_iter().map(|(name, _)| name).collect();
        let query = |select| Query::of(Body::Select(Box::new(select)));
        Common { name, columns, hint: "", query: query(first), again: Some(query(again)) }
    }

    /// Generates a scalar subquery.
    pub(super) fn scalar_query(&mut self, kind: Type, scope: &Scope) -> Expr {
        let query = Box::new(self.row_query(&[kind], scope));
        Expr::Nested { pattern: "({})".to_owned(), kind, operands: Vec::new(), query }
    }

    /// Generates a query of at most one row with these types.
    pub(super) fn row_query(&mut self, kinds: &[Type], scope: &Scope) -> Query {
        self.queries_left -= 1;
        let outer = self.outer(scope);
        let mut query = Query::of(Body::Select(Box::new(self.select(kinds, &outer))));
        if let Body::Select(select) = &mut query.body {
            let is_one_row = select.group.is_none() && select.having.is_none() && select.from.is_empty();
            if !is_one_row {
                let mut key =
                    |number: usize| (Expr::word(number.to_string(), Type::Int4), self.random.word(&DIRECTIONS));
                query.order = (1..=kinds.len()).map(&mut key).collect();
                query.limit = Some(1);
            }
        }
        query
    }

    /// Generates a condition with EXISTS, IN, ANY or ALL.
    pub(super) fn query_condition(&mut self, depth: usize, scope: &Scope) -> Expr {
        self.queries_left -= 1;
        let outer = self.outer(scope);
        let kinds: Vec<Type> = scope.names.iter().map(Expr::kind).collect();
        let kind = self.random.pick(&kinds).copied().unwrap_or(Type::Int4);
        let pattern = self.random.word(&[
            "exists ({})",
            "not exists ({})",
            "({0} in ({}))",
            "({0} in ({}))",
            "({0} not in ({}))",
            "({0} not in ({}))",
            "({0} = any ({}))",
            "({0} <> all ({}))",
            "({0} < any ({}))",
            "({0} >= all ({}))",
            "(({0}, {1}) in ({}))",
            "(({0}, {1}) not in ({}))",
        ]);
        let count = pattern.matches("{0}").count() + pattern.matches("{1}").count();
        let kinds = if count == 2 { vec![kind, Type::Int4] } else { vec![kind] };
        let operands = kinds.iter().take(count).map(|kind| self.expr(*kind, depth.min(1), scope)).collect();
        let query = self.query_of(&kinds, &outer);
        Expr::Nested { pattern: pattern.to_owned(), kind: Type::Bool, operands, query: Box::new(query) }
    }

    /// The names that a subquery may use from outside: all names half of the time, otherwise none.
    fn outer(&mut self, scope: &Scope) -> Scope {
        let is_correlated = self.random.chance(50);
        let names = if is_correlated {
            scope.names.iter().filter(|name| matches!(name, Expr::Word { .. })).cloned().collect()
        } else {
            Vec::new()
        };
        Scope { names, ..Scope::default() }
    }
}
