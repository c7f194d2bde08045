//! Statement trees. The generator creates them. They are printed with literals or with parameters,
//! and they can be minimized.
//!
//! A tree contains only the required knowledge about SQL. An operator, a function, an aggregate or
//! a window is a pattern with places for its operands, from the table of functions. Queries and
//! changes have removable clauses.

mod print;
pub(crate) mod shrink;
mod types;
pub(crate) mod visit;

pub(crate) use print::{Literals, Printed, print};

pub(crate) use types::Type;

/// The SQL dialect of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Postgres,
    Hazelcast,
}

impl Dialect {
    /// The types of columns and literals.
    pub(crate) fn types(self) -> &'static [Type] {
        match self {
            Dialect::Postgres => &Type::ALL,
            Dialect::Hazelcast => &[
                Type::Int2,
                Type::Int4,
                Type::Int8,
                Type::Numeric,
                Type::Real,
                Type::Double,
                Type::Text,
                Type::Bool,
                Type::Date,
                Type::Timestamp,
                Type::Time,
            ],
        }
    }

    /// The name in files and reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Dialect::Postgres => "postgres",
            Dialect::Hazelcast => "hazelcast",
        }
    }

    /// The name of the key column.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Dialect::Postgres => "id",
            Dialect::Hazelcast => "__key",
        }
    }
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expr {
    Literal(Literal),
    /// A name, a keyword or a column number: anything that is neither computed nor a parameter.
    Word {
        text: String,
        kind: Type,
    },
    /// A pattern. Operands fill its places `{0}`, `{1}` ..
    Apply {
        pattern: String,
        kind: Type,
        operands: Vec<Expr>,
        inexact: bool,
    },
    /// A pattern. A query fills its place `{}`, operands fill the other places.
    Nested {
        pattern: String,
        kind: Type,
        operands: Vec<Expr>,
        query: Box<Query>,
    },
}

/// A literal value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Literal {
    pub(crate) kind: Type,
    /// The value in the type's text form. `None` for NULL.
    pub(crate) text: Option<String>,
    /// Whether a cast specifies the type.
    pub(crate) is_cast: bool,
    /// Whether the literal may become a parameter.
    pub(crate) is_parameter: bool,
}

/// A query: `WITH`, a body, an order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Query {
    pub(crate) with: Vec<Common>,
    pub(crate) body: Body,
    pub(crate) order: Vec<(Expr, &'static str)>,
    pub(crate) limit: Option<usize>,
    pub(crate) offset: Option<usize>,
}

/// A common table expression.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Common {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    /// `materialized`, `not materialized` or nothing.
    pub(crate) hint: &'static str,
    pub(crate) query: Query,
    /// The recursive part, which follows `UNION ALL`. The name is in its scope.
    pub(crate) again: Option<Query>,
}

/// The source of a query's rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Body {
    Select(Box<Select>),
    Values(Vec<Vec<Expr>>),
    Set { operator: &'static str, left: Box<Query>, right: Box<Query> },
}

/// One SELECT.
#[derive(Clone, Debug, PartialEq, Default)]
pub(crate) struct Select {
    /// `distinct`, or nothing.
    pub(crate) distinct: &'static str,
    pub(crate) items: Vec<Item>,
    pub(crate) from: Vec<Source>,
    pub(crate) filter: Option<Expr>,
    pub(crate) group: Option<Group>,
    pub(crate) having: Option<Expr>,
}

/// A column of a SELECT.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item {
    pub(crate) expr: Expr,
    pub(crate) alias: Option<String>,
}

/// `GROUP BY`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    /// The pattern with `{}` for the list of keys: `{}`, `rollup ({})`, `cube ({})`, `grouping sets
    /// (({}), ())`.
    pub(crate) pattern: &'static str,
    pub(crate) keys: Vec<Expr>,
}

/// An item of FROM.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Source {
    Table {
        name: String,
        alias: String,
    },
    Query {
        query: Box<Query>,
        alias: String,
        columns: Vec<String>,
        lateral: bool,
    },
    /// A set-returning function.
    Function {
        call: Expr,
        alias: String,
        lateral: bool,
    },
    Join {
        kind: &'static str,
        left: Box<Source>,
        right: Box<Source>,
        on: Join,
    },
}

/// The condition of a join.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Join {
    None,
    On(Expr),
    Using(Vec<String>),
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Statement {
    Query(Query),
    Insert {
        table: String,
        columns: Vec<String>,
        rows: Query,
        conflict: Option<Conflict>,
        returning: Vec<Item>,
    },
    Update {
        table: String,
        alias: String,
        set: Vec<(String, Expr)>,
        from: Vec<Source>,
        filter: Option<Expr>,
        returning: Vec<Item>,
    },
    Delete {
        table: String,
        alias: String,
        using: Vec<Source>,
        filter: Option<Expr>,
        returning: Vec<Item>,
    },
}

/// `ON CONFLICT`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Conflict {
    pub(crate) target: String,
    /// Empty means `DO NOTHING`.
    pub(crate) set: Vec<(String, Expr)>,
    pub(crate) filter: Option<Expr>,
}

impl Expr {
    pub(crate) fn word(text: impl Into<String>, kind: Type) -> Expr {
        Expr::Word { text: text.into(), kind }
    }

    /// A pattern with operands.
    pub(crate) fn apply(pattern: impl Into<String>, kind: Type, operands: Vec<Expr>) -> Expr {
        Expr::Apply { pattern: pattern.into(), kind, operands, inexact: false }
    }

    pub(crate) fn kind(&self) -> Type {
        match self {
            Expr::Literal(literal) => literal.kind,
            Expr::Word { kind, .. } | Expr::Apply { kind, .. } | Expr::Nested { kind, .. } => *kind,
        }
    }

    /// Whether the last digits of its floats depend on the row order or on a library.
    pub(crate) fn is_inexact(&self) -> bool {
        match self {
            Expr::Literal(_) | Expr::Word { .. } => false,
            Expr::Apply { operands, inexact, .. } => *inexact || operands.iter().any(Expr::is_inexact),
            Expr::Nested { operands, query, .. } => operands.iter().any(Expr::is_inexact) || query.is_inexact(),
        }
    }
}

impl Query {
    pub(crate) fn of(body: Body) -> Query {
        Query { with: Vec::new(), body, order: Vec::new(), limit: None, offset: None }
    }

    /// Whether the last digits of its floats depend on the row order or on a library.
    pub(crate) fn is_inexact(&self) -> bool {
        let common =
            |common: &Common| common.query.is_inexact() || common.again.as_ref().is_some_and(Query::is_inexact);
        self.with.iter().any(common)
            || self.order.iter().any(|(expr, _)| expr.is_inexact())
            || match &self.body {
                Body::Select(select) => select.is_inexact(),
                Body::Values(rows) => rows.iter().flatten().any(Expr::is_inexact),
                Body::Set { left, right, .. } => left.is_inexact() || right.is_inexact(),
            }
    }
}

impl Select {
    fn is_inexact(&self) -> bool {
        self.items.iter().any(|item| item.expr.is_inexact())
            || self.from.iter().any(Source::is_inexact)
            || self.filter.iter().chain(&self.having).any(Expr::is_inexact)
            || self.group.iter().flat_map(|group| &group.keys).any(Expr::is_inexact)
    }
}

impl Source {
    fn is_inexact(&self) -> bool {
        match self {
            Source::Table { .. } => false,
            Source::Query { query, .. } => query.is_inexact(),
            Source::Function { call, .. } => call.is_inexact(),
            Source::Join { left, right, on, .. } => {
                left.is_inexact() || right.is_inexact() || matches!(on, Join::On(expr) if expr.is_inexact())
            }
        }
    }
}

impl Statement {
    /// The table that the statement changes.
    pub(crate) fn changes(&self) -> Option<&str> {
        match self {
            Statement::Query(_) => None,
            Statement::Insert { table, .. } | Statement::Update { table, .. } | Statement::Delete { table, .. } => {
                Some(table)
            }
        }
    }

    /// Whether floats of the result are compared with a tolerance.
    pub(crate) fn is_inexact(&self) -> bool {
        let set = |set: &[(String, Expr)]| set.iter().any(|(_, expr)| expr.is_inexact());
        let told = |items: &[Item]| items.iter().any(|item| item.expr.is_inexact());
        match self {
            Statement::Query(query) => query.is_inexact(),
            Statement::Insert { rows, conflict, returning, .. } => {
                rows.is_inexact() || conflict.as_ref().is_some_and(|conflict| set(&conflict.set)) || told(returning)
            }
            Statement::Update { set: assigned, returning, .. } => set(assigned) || told(returning),
            Statement::Delete { returning, .. } => told(returning),
        }
    }

    /// Whether the statement specifies the order of its rows.
    pub(crate) fn is_ordered(&self) -> bool {
        matches!(self, Statement::Query(query) if !query.order.is_empty())
    }

    /// The name in the summary.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Statement::Query(Query { body: Body::Set { .. }, .. }) => "set operation",
            Statement::Query(Query { body: Body::Values(_), .. }) => "values",
            Statement::Query(Query { body: Body::Select(select), .. }) => match (&select.group, select.from.as_slice())
            {
                (Some(_), _) => "grouped select",
                (None, [Source::Join { .. }, ..] | [_, _, ..]) => "join",
                (None, []) => "select without from",
                (None, _) => "select",
            },
            Statement::Insert { conflict: Some(_), .. } => "insert on conflict",
            Statement::Insert { .. } => "insert",
            Statement::Update { .. } => "update",
            Statement::Delete { .. } => "delete",
        }
    }
}
