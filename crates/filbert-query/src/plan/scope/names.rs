//! Resolves column names within expressions.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectName, Query, SetExpr, Values,
    VisitorMut,
};
use filbert_dialect::{query_of, walk};
use filbert_functions::error::parsing_error;
use filbert_grid::query::{Dialect, SqlError};

use super::sources::Relation;
use super::{Output, Resolver, ambiguous, missing};

/// The clause of an expression, which decides whether a name may refer to a column of the result.
pub(super) enum Clause<'o> {
    /// A clause where it may not.
    Plain,
    /// `GROUP BY`: a plain name may, if no relation has a column of the name.
    Group(&'o [Output]),
    /// `HAVING`: not in PostgreSQL's dialect.
    Having(&'o [Output]),
    /// `ORDER BY`, within an expression: not in PostgreSQL's dialect.
    Order(&'o [Output]),
}

/// The meaning of a name without a qualifier.
#[allow(clippy::large_enum_variant, reason = "one at a time, on the stack")]
enum Found {
    /// DataFusion resolves the same name correctly.
    AsWritten,
    /// The name is replaced by this expression.
    As(Expr),
    /// The name is unknown.
    Nothing,
}

impl Resolver<'_> {
    /// Resolves the names within an expression, and the queries within it.
    pub(super) fn expression(&mut self, expression: &mut Expr, clause: &Clause<'_>) -> Result<(), SqlError> {
        let is_bare = matches!(expression, Expr::Identifier(_));
        let mut within = Within { resolver: self, clause, is_bare, taken: Vec::new() };
        match walk::change(expression, &mut within) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(error) => Err(*error),
        }
    }

    /// Whether no relation has a column of this name.
    pub(super) fn is_unknown(&self, name: &Ident) -> Result<bool, SqlError> {
        Ok(matches!(self.found(name)?, Found::Nothing))
    }

    fn found(&self, name: &Ident) -> Result<Found, SqlError> {
        for scope in self.scopes.iter().rev() {
            match scope.named(&name.value).as_slice() {
                [] if scope.open || scope.relations.iter().any(|relation| relation.is_relation(&name.value)) => {
                    return Ok(Found::AsWritten);
                }
                [] => {}
                [column] if column.merged || scope.count(&name.value) > 1 => {
                    return Ok(Found::As(column.expression.clone()));
                }
                [_] => return Ok(Found::AsWritten),
                _ => return Err(ambiguous(name)),
            }
        }
        Ok(Found::Nothing)
    }

    /// The full name of a column of an outer query's relation, if a nearer relation has a column
    /// with the name of that relation. DataFusion would look for a field of that column.
    fn of_outer_relation(&self, name: &[Ident]) -> Option<Vec<Ident>> {
        let [relation, column] = name else { return None };
        let mut is_column = false;
        for scope in self.scopes.iter().rev() {
            if let Some(found) = scope.relations.iter().find(|found| found.is_relation(&relation.value)) {
                let mut full = match found.name.as_slice() {
                    // No relation is in a schema of this name, and a relation without a schema may
                    // be in any.
                    [alone] => vec![Ident::with_quote('"', ANY_SCHEMA), alone.clone()],
                    full => full.to_vec(),
                };
                full.push(column.clone());
                return is_column.then_some(full);
            }
            is_column |= scope.open || !scope.named(&relation.value).is_empty();
        }
        None
    }
}

/// Stands for the schema of a relation without one.
const ANY_SCHEMA: &str = "$any";

impl Relation {
    pub(super) fn is_relation(&self, name: &str) -> bool {
        self.name.last().is_some_and(|own| own.value == name)
    }
}

struct Within<'w, 'r, 't> {
    resolver: &'w mut Resolver<'r>,
    clause: &'w Clause<'t>,
    /// Whether the expression is a plain name.
    is_bare: bool,
    /// Queries within the expression, which are resolved separately.
    taken: Vec<Query>,
}

impl Within<'_, '_, '_> {
    fn identifier(&self, name: &Ident) -> Result<Option<Expr>, SqlError> {
        let resolver = &*self.resolver;
        let is_postgres = resolver.dialect == Dialect::Postgres;
        let outputs = match self.clause {
            Clause::Plain => None,
            Clause::Group(outputs) | Clause::Having(outputs) | Clause::Order(outputs) => Some(*outputs),
        };
        let of_result =
            || outputs.into_iter().flatten().any(|output| output.name.as_deref() == Some(name.value.as_str()));
        match resolver.found(name)? {
            Found::As(expression) => Ok(Some(expression)),
            // The result column of this name would take precedence.
            Found::AsWritten if is_postgres && matches!(self.clause, Clause::Order(_)) && of_result() => {
                let scope = resolver.scopes.last();
                let column =
                    scope.and_then(|scope| scope.named(&name.value).first().map(|column| column.expression.clone()));
                Ok(column)
            }
            Found::AsWritten => Ok(None),
            Found::Nothing
                if is_postgres && of_result() && !(self.is_bare && matches!(self.clause, Clause::Group(_))) =>
            {
                Err(missing(name))
            }
            Found::Nothing => {
                let named = |output: &&Output| output.name.as_deref() == Some(name.value.as_str());
                let planned = outputs.into_iter().flatten().find(named).and_then(|output| output.planned.as_ref());
                Ok(planned.map(|planned| Expr::Identifier(Ident::with_quote('"', planned))))
            }
        }
    }

    /// `count(t.*)`: counts the rows that an outer join did not add.
    fn count_of_rows(&self, function: &mut Function) -> Result<(), SqlError> {
        let FunctionArguments::List(list) = &mut function.args else { return Ok(()) };
        for argument in &mut list.args {
            let FunctionArg::Unnamed(argument) = argument else { continue };
            let FunctionArgExpr::QualifiedWildcard(name) = argument else { continue };
            let is_count = function.name.to_string().eq_ignore_ascii_case("count");
            if !is_count || list.duplicate_treatment.is_some() {
                return Err(whole_row(name));
            }
            let scope = self.resolver.scopes.last();
            let relation = scope.and_then(|scope| scope.relations.iter().find(|relation| relation.is_called(name)));
            *argument = match relation {
                Some(Relation { nullable: false, .. }) => FunctionArgExpr::Wildcard,
                Some(Relation { name, key: Some(key), .. }) => {
                    let mut parts = name.clone();
                    parts.push(Ident::with_quote('"', key));
                    FunctionArgExpr::Expr(Expr::CompoundIdentifier(parts))
                }
                _ => return Err(whole_row(name)),
            };
        }
        Ok(())
    }
}

pub(super) fn whole_row(name: &ObjectName) -> SqlError {
    parsing_error(format!("{name}.* is not served as one value; name a column of {name}")).with_sqlstate("0A000")
}

impl VisitorMut for Within<'_, '_, '_> {
    type Break = Box<SqlError>;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        let mut taken = std::mem::replace(query, nothing());
        let done = self.resolver.query(&mut taken);
        self.taken.push(taken);
        match done {
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Self::Break> {
        if let Some(taken) = self.taken.pop() {
            *query = taken;
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Self::Break> {
        let done = match expression {
            Expr::Identifier(name) => self.identifier(name).map(|found| {
                if let Some(found) = found {
                    *expression = found;
                }
            }),
            Expr::CompoundIdentifier(name) => {
                if let Some(full) = self.resolver.of_outer_relation(name) {
                    *name = full;
                }
                Ok(())
            }
            Expr::Function(function) => match self.resolver.rows_as_documents(function) {
                Ok(Some(document)) => {
                    *expression = document;
                    Ok(())
                }
                Ok(None) => self.count_of_rows(function),
                Err(error) => Err(error),
            },
            _ => Ok(()),
        };
        match done {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(Box::new(error)),
        }
    }
}

/// Placeholder rows.
pub(super) fn nothing_set() -> SetExpr {
    SetExpr::Values(Values { explicit_row: false, value_keyword: false, rows: Vec::new() })
}

/// A placeholder query.
fn nothing() -> Query {
    query_of(nothing_set())
}
