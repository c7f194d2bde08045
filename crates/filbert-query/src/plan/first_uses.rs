//! The types of parameters with which a statement is planned again.
//!
//! If a parameter is used several times, PostgreSQL takes the type of the first use that determines
//! one, and converts the values at the others. If the type of an operand became known only after
//! the operators around it were planned, they are planned again with this type.

use std::collections::{HashMap, HashSet};

use arrow_schema::{Field, FieldRef};
use datafusion::common::Result;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Distinct, Expr, LogicalPlan};
use filbert_data::FieldType;
use filbert_functions::types::{ARRAY_OF_NUMERIC, BPCHAR, NUMERIC, VARCHAR, field_type_of, pg_type_of};
use filbert_grid::query::ParameterType;

use crate::client_context::ParameterTypes;
use crate::plan::context::Planned;

/// Whether the client has declared the types of these parameters.
pub(crate) fn are_declared(parameters: &HashSet<String>, declared: &ParameterTypes) -> bool {
    parameters.iter().all(|id| place_of(id).is_some_and(|at| declared.get(at).is_some_and(Option::is_some)))
}

/// The position of a parameter, from 0.
fn place_of(id: &str) -> Option<usize> {
    id.strip_prefix('$')?.parse::<usize>().ok()?.checked_sub(1)
}

/// The types of parameters with which a statement is planned again; `None` if its plan is the final
/// one.
pub(crate) fn determined(planned: &Planned, declared: &ParameterTypes) -> Result<Option<Vec<Option<ParameterType>>>> {
    let mut uses = Uses::default();
    uses.visit(&planned.plan)?;
    if uses.conflicting.is_empty() && !planned.is_inferred {
        return Ok(None);
    }
    let mut types = declared.to_vec();
    // A text beside others gets its type again.
    let is_wanted = |id: &String, field: &Field| {
        uses.conflicting.contains(id) || planned.is_inferred && !matches!(pg_type_of(field), Some(VARCHAR | BPCHAR))
    };
    for (id, field) in uses.first.iter().filter(|(id, field)| is_wanted(id, field)) {
        let Some(at) = place_of(id) else { continue };
        types.resize(types.len().max(at + 1), None);
        if let Some(place @ None) = types.get_mut(at) {
            *place = Some(type_of(field));
        }
    }
    Ok(Some(types))
}

/// The type of a parameter with a field. As in PostgreSQL, it is `text` beside `varchar`.
fn type_of(field: &Field) -> ParameterType {
    let pg_type = pg_type_of(field).filter(|oid| !matches!(*oid, VARCHAR | NUMERIC | ARRAY_OF_NUMERIC));
    ParameterType { field_type: without_digits(field_type_of(field)), pg_type }
}

/// A type in which the values of a parameter keep all their digits.
fn without_digits(field_type: FieldType) -> FieldType {
    match field_type {
        FieldType::Decimal(_) => FieldType::Decimal(None),
        FieldType::Array(item) => FieldType::Array(Box::new(without_digits(*item))),
        other => other,
    }
}

#[derive(Default)]
struct Uses {
    /// The field of each parameter in its first use.
    first: HashMap<String, FieldRef>,
    /// The parameters with uses of different types.
    conflicting: Vec<String>,
}

impl Uses {
    /// Visits the parts of a query in the order in which PostgreSQL analyzes them: FROM, the
    /// results, the conditions, the order and the limit.
    fn visit(&mut self, plan: &LogicalPlan) -> Result<()> {
        let (mut nodes, mut source) = (Vec::new(), plan);
        loop {
            let input = match source {
                LogicalPlan::Projection(projection) => &projection.input,
                LogicalPlan::Aggregate(aggregate) => &aggregate.input,
                LogicalPlan::Window(window) => &window.input,
                LogicalPlan::Filter(filter) => &filter.input,
                LogicalPlan::Sort(sort) => &sort.input,
                LogicalPlan::Limit(limit) => &limit.input,
                LogicalPlan::Distinct(Distinct::All(input)) => input,
                _ => break,
            };
            nodes.push(source);
            source = input;
        }
        for input in source.inputs() {
            self.visit(input)?;
        }
        self.visit_expressions(source)?;
        let is_result = |node: &LogicalPlan| {
            matches!(node, LogicalPlan::Projection(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Window(_))
        };
        let (results, others): (Vec<_>, Vec<_>) = nodes.into_iter().rev().partition(|node| is_result(node));
        results.into_iter().chain(others).try_for_each(|node| self.visit_expressions(node))
    }

    fn visit_expressions(&mut self, node: &LogicalPlan) -> Result<()> {
        node.apply_expressions(|expression| {
            expression.apply(|inner| {
                match inner {
                    Expr::Placeholder(parameter) => {
                        if let Some(field) = &parameter.field {
                            self.used(&parameter.id, field);
                        }
                    }
                    Expr::Exists(exists) => self.visit(&exists.subquery.subquery)?,
                    Expr::InSubquery(within) => self.visit(&within.subquery.subquery)?,
                    Expr::SetComparison(compared) => self.visit(&compared.subquery.subquery)?,
                    Expr::ScalarSubquery(subquery) => self.visit(&subquery.subquery)?,
                    _ => {}
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })?;
        Ok(())
    }

    fn used(&mut self, id: &str, field: &FieldRef) {
        match self.first.get(id) {
            None => drop(self.first.insert(id.to_owned(), FieldRef::clone(field))),
            Some(first) if first.data_type() == field.data_type() && first.metadata() == field.metadata() => {}
            Some(_) => self.conflicting.push(id.to_owned()),
        }
    }
}
