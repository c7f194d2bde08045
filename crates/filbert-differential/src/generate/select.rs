//! Generates a SELECT: FROM, groups, and columns.

use super::{Generator, Scope};
use crate::tree::{Body, Expr, Group, Item, Join, Literal, Query, Select, Source, Type};

impl Generator<'_> {
    /// Generates a SELECT with these result types.
    pub(super) fn select(&mut self, kinds: &[Type], outer: &Scope) -> Select {
        let (from, mut scope) = if self.random.chance(4) { (Vec::new(), Scope::default()) } else { self.from(outer) };
        scope.names.extend(outer.names.iter().cloned());
        let filter = self.random.chance(55).then(|| self.condition(&scope));
        let is_grouped = self.random.chance(25);
        let mut select = Select { from, filter, ..Select::default() };
        if is_grouped {
            self.group(&mut select, &mut scope);
        } else {
            scope.has_windows = !select.from.is_empty() && self.is_postgres();
            let is_distinct = self.random.chance(10);
            select.distinct = if is_distinct { "distinct " } else { "" };
        }
        for (index, kind) in kinds.iter().enumerate() {
            let depth = self.random.below(4);
            let expr = self.expr(*kind, depth, &scope);
            select.items.push(Item { expr, alias: self.random.chance(60).then(|| format!("c{}", index + 1)) });
        }
        if is_grouped && self.random.chance(30) {
            scope.has_windows = false;
            select.having = Some(self.condition(&scope));
        }
        select
    }

    /// Groups the SELECT. The scope becomes the scope of the groups.
    fn group(&mut self, select: &mut Select, scope: &mut Scope) {
        let mut keys = Vec::new();
        for _ in 0..self.random.below(3) {
            let key = if self.random.chance(75) {
                self.random.pick(&scope.names).cloned()
            } else {
                let kind = self.any_type();
                // No literal: it would be interpreted as a column number, or become a separate
                // parameter.
                let expr = self.expr(kind, 1, scope);
                (!has_parameter(&expr)).then_some(expr)
            };
            keys.extend(key.filter(|key| !matches!(key, Expr::Literal(_) | Expr::Nested { .. })));
        }
        let pattern = match self.random.below(20) {
            0 if self.is_postgres() => "rollup ({})",
            1 if self.is_postgres() => "cube ({})",
            2 if self.is_postgres() => "grouping sets (({}), ())",
            _ => "{}",
        };
        let inner = Scope { has_windows: false, inner: None, ..scope.clone() };
        *scope = Scope { names: keys.clone(), unique: Vec::new(), inner: Some(Box::new(inner)), has_windows: false };
        select.group = (!keys.is_empty()).then_some(Group { pattern, keys });
        if select.group.is_none() {
            // Without keys there is a single group, if there is an aggregate.
            select.having = None;
            select.items.clear();
        }
    }

    /// Generates FROM, and the scope of its columns.
    pub(super) fn from(&mut self, outer: &Scope) -> (Vec<Source>, Scope) {
        let (mut source, mut scope) = self.source(outer, &Scope::default());
        let count = match self.random.below(100) {
            0..55 => 0,
            55..88 => 1,
            _ => 2,
        };
        let mut from = Vec::new();
        for _ in 0..count {
            let (right, right_scope) = self.source(outer, &scope);
            if self.random.chance(12) {
                from.push(std::mem::replace(&mut source, right));
                scope.absorb(right_scope);
            } else {
                let is_lateral =
                    matches!(&right, Source::Query { lateral: true, .. } | Source::Function { lateral: true, .. });
                (source, scope) = self.join(source, scope, right, right_scope, is_lateral || !from.is_empty());
            }
        }
        from.push(source);
        (from, scope)
    }

    /// Generates a table, a query, or a set-returning function. `left` contains the names that
    /// LATERAL may use.
    fn source(&mut self, outer: &Scope, left: &Scope) -> (Source, Scope) {
        let alias = self.name("a");
        match self.random.below(100) {
            0..8 if self.queries_left > 0 => {
                self.queries_left -= 1;
                let lateral = !left.names.is_empty() && self.random.chance(50);
                let mut seen = outer.clone();
                if lateral {
                    seen.names.extend(left.names.iter().cloned());
                }
                let kinds: Vec<Type> = (0..=self.random.below(2)).map(|_| self.any_type()).collect();
                let mut query = self.query_of(&kinds, &seen);
                if query.order.is_empty() && self.random.chance(30) {
                    self.order(&mut query, kinds.len());
                }
                let columns: Vec<String> = (1..=kinds.len()).map(|number| format!("q{number}")).collect();
                let scope = Scope { names: named(&alias, columns.iter().zip(&kinds)), ..Scope::default() };
                (Source::Query { query: Box::new(query), alias, columns, lateral }, scope)
            }
            8..11 if self.is_postgres() => {
                let call = Expr::apply(
                    "generate_series({0}, {1})",
                    Type::Int4,
                    vec![number(0), number(self.random.between(-1, 5))],
                );
                let name = Expr::word(alias.clone(), Type::Int4);
                let scope = Scope { names: vec![name.clone()], unique: vec![name], ..Scope::default() };
                (Source::Function { call, alias, lateral: false }, scope)
            }
            11..12 if self.is_postgres() => {
                let columns = format!("{alias} (v, n)");
                let call = Expr::apply(
                    "generate_series({0}, {1}) with ordinality",
                    Type::Int4,
                    vec![number(self.random.between(-2, 2)), number(self.random.between(-1, 5))],
                );
                let value = Expr::word(format!("{alias}.v"), Type::Int4);
                let ordinal = Expr::word(format!("{alias}.n"), Type::Int8);
                let scope = Scope { names: vec![value, ordinal.clone()], unique: vec![ordinal], ..Scope::default() };
                (Source::Function { call, alias: columns, lateral: false }, scope)
            }
            12..13 if self.is_postgres() => {
                let array = self.expr(Type::Ints, 1, &Scope::default());
                let call = Expr::apply("unnest({0})", Type::Int4, vec![array]);
                let scope = Scope { names: vec![Expr::word(alias.clone(), Type::Int4)], ..Scope::default() };
                (Source::Function { call, alias, lateral: false }, scope)
            }
            13..20 if self.is_postgres() => self.with_constants(alias),
            20..44 if !self.common.is_empty() => {
                let (name, columns) = self.random.pick(&self.common).cloned().unwrap_or_default();
                let scope =
                    Scope { names: named(&alias, columns.iter().map(|(name, kind)| (name, kind))), ..Scope::default() };
                (Source::Table { name, alias }, scope)
            }
            _ => self.table(alias),
        }
    }

    /// Generates a subquery of a table with columns that are constant, or equal to each other, in
    /// all rows. Above outer joins and unions this does not hold any more, although optimizers may
    /// assume it.
    fn with_constants(&mut self, alias: String) -> (Source, Scope) {
        let of_table = self.name("b");
        let (table, scope) = self.table(of_table);
        let mut exprs = scope.unique.clone();
        exprs.extend((0..2).filter_map(|_| self.random.pick(&scope.names).cloned()));
        if self.random.chance(30) {
            exprs.extend(exprs.last().cloned());
        }
        let kind = self.any_type();
        exprs.push(self.leaf(kind, &Scope::default()));
        let wholes: Vec<&Expr> = scope.names.iter().filter(|name| name.kind() == Type::Int4).collect();
        let filter = self.random.pick(&wholes).filter(|_| self.random.chance(40)).map(|name| {
            let value = number(self.random.between(0, 6));
            Expr::apply("{0} = {1}", Type::Bool, vec![(*name).clone(), value])
        });
        let columns: Vec<String> = (1..=exprs.len()).map(|number| format!("q{number}")).collect();
        let kinds: Vec<Type> = exprs.iter().map(Expr::kind).collect();
        let names = named(&alias, columns.iter().zip(&kinds));
        let unique = names.iter().take(scope.unique.len()).cloned().collect();
        let items = exprs.into_iter().map(|expr| Item { expr, alias: None }).collect();
        let select = Select { from: vec![table], items, filter, ..Select::default() };
        let query = Box::new(Query::of(Body::Select(Box::new(select))));
        (Source::Query { query, alias, columns, lateral: false }, Scope { names, unique, ..Scope::default() })
    }

    pub(super) fn table(&mut self, alias: String) -> (Source, Scope) {
        let schema = self.schema;
        let hidden = |name: &str| self.common.iter().any(|(common, _)| common == name);
        let seen: Vec<_> = schema.tables.iter().filter(|table| !hidden(&table.name)).collect();
        let Some(table) = self.random.pick(&seen).copied() else {
            return (Source::Table { name: "tbl_1".to_owned(), alias }, Scope::default());
        };
        let names = named(&alias, table.columns.iter().map(|column| (&column.name, &column.kind)));
        let unique = vec![Expr::word(format!("{alias}.{}", self.functions.dialect.key()), Type::Int4)];
        (Source::Table { name: table.name.clone(), alias }, Scope { names, unique, ..Scope::default() })
    }

    fn join(
        &mut self,
        left: Source,
        mut scope: Scope,
        right: Source,
        right_scope: Scope,
        is_plain: bool,
    ) -> (Source, Scope) {
        let (left, right_source) = (Box::new(left), Box::new(right));
        let kind =
            self.random.word(&["join", "join", "left join", "left join", "right join", "full join", "cross join"]);
        let kind = if is_plain && matches!(kind, "right join" | "full join") { "left join" } else { kind };
        let both_tables = matches!((&*left, &*right_source), (Source::Table { .. }, Source::Table { .. }))
            && self.is_postgres()
            && [&scope, &right_scope].iter().all(|scope| scope.unique.len() == 1);
        if both_tables && kind != "cross join" && self.random.chance(20) {
            let is_natural = self.random.chance(30);
            let columns = match self.random.below(3) {
                _ if is_natural => vec!["id".to_owned(), "k".to_owned()],
                0 => vec!["id".to_owned(), "k".to_owned()],
                _ => vec![self.random.word(&["id", "k"]).to_owned()],
            };
            scope.absorb(right_scope);
            scope.names.extend(columns.iter().map(|column| Expr::word(column.clone(), Type::Int4)));
            let on = if is_natural { Join::None } else { Join::Using(columns) };
            let kind = natural(kind, is_natural);
            return (Source::Join { kind, left, right: right_source, on }, scope);
        }
        let on = if kind == "cross join" {
            Join::None
        } else {
            Join::On(self.on(&scope, &right_scope, kind == "full join"))
        };
        scope.absorb(right_scope);
        (Source::Join { kind: natural(kind, false), left, right: right_source, on }, scope)
    }

    /// Generates a join condition, usually the equality of two columns.
    fn on(&mut self, left: &Scope, right: &Scope, must_be_equal: bool) -> Expr {
        let pairs: Vec<(&Expr, &Expr)> = left
            .names
            .iter()
            .flat_map(|one| {
                right.names.iter().filter(|other| other.kind() == one.kind()).map(move |other| (one, other))
            })
            .collect();
        let equal = self
            .random
            .pick(&pairs)
            .map(|(one, other)| Expr::apply("{0} = {1}", Type::Bool, vec![(*one).clone(), (*other).clone()]));
        let Some(equal) = equal else {
            return Expr::Literal(Literal {
                kind: Type::Bool,
                text: Some("t".to_owned()),
                is_cast: false,
                is_parameter: false,
            });
        };
        if must_be_equal || self.random.chance(65) {
            return equal;
        }
        let mut both = left.clone();
        both.absorb(right.clone());
        let queries_left = std::mem::take(&mut self.queries_left);
        let more = self.condition(&both);
        self.queries_left = queries_left;
        if self.random.chance(30) { more } else { Expr::apply("({0} and {1})", Type::Bool, vec![equal, more]) }
    }
}

impl Scope {
    fn absorb(&mut self, other: Scope) {
        // Rows are identified only if the rows of both sides are identified.
        let is_unique = !self.unique.is_empty() && !other.unique.is_empty();
        self.names.extend(other.names);
        self.unique.extend(other.unique);
        if !is_unique {
            self.unique.clear();
        }
    }

    pub(super) fn names(&self) -> &[Expr] {
        &self.names
    }
}

fn natural(kind: &str, is_natural: bool) -> &'static str {
    match (kind, is_natural) {
        ("left join", false) => "left join",
        ("right join", false) => "right join",
        ("full join", false) => "full join",
        ("cross join", _) => "cross join",
        (_, false) => "join",
        ("left join", true) => "natural left join",
        ("right join", true) => "natural right join",
        ("full join", true) => "natural full join",
        (_, true) => "natural join",
    }
}

fn named<'c>(alias: &str, columns: impl Iterator<Item = (&'c String, &'c Type)>) -> Vec<Expr> {
    columns.map(|(column, kind)| Expr::word(format!("{alias}.{column}"), *kind)).collect()
}

fn number(value: i64) -> Expr {
    Expr::Literal(Literal { kind: Type::Int4, text: Some(value.to_string()), is_cast: false, is_parameter: false })
}

fn has_parameter(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(_) | Expr::Nested { .. } => true,
        Expr::Word { .. } => false,
        Expr::Apply { operands, .. } => operands.is_empty() || operands.iter().any(has_parameter),
    }
}
