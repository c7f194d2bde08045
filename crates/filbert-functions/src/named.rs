//! Rewriting a plan's node: a column above is found by its name, so that each expression keeps the name that it had.

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::Union;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, GroupingSet, LogicalPlan};

/// Maps the expressions of a node, which keep their names. The columns of grouping sets are named by the items of these.
///
/// # Errors
/// As `map`.
pub fn map_named(
    plan: LogicalPlan,
    mut map: impl FnMut(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&plan);
    let mut mapped = |expression: Expr| {
        let name = names.save(&expression);
        Ok(map(expression)?.update_data(|expression| name.restore(expression)))
    };
    plan.map_expressions(|expression| match expression {
        sets @ Expr::GroupingSet(_) => sets.map_children(&mut mapped),
        other => mapped(other),
    })
}

/// The columns that a node's expressions name: those of what it reads from.
///
/// # Errors
/// The columns of a table cannot be told apart.
pub fn schema_within(plan: &LogicalPlan) -> Result<DFSchema> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = plan {
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
    }
    Ok(schema)
}

/// A union whose columns have the types that those of its first query have by now: they do not follow by themselves.
///
/// # Errors
/// The queries have different numbers of columns.
pub fn with_types_of_inputs(union: Union) -> Result<Union> {
    let Some(first) = union.inputs.first() else { return Ok(union) };
    let mut columns = first.schema().fields().iter().zip(union.schema.fields());
    match columns.any(|(input, column)| input.data_type() != column.data_type()) {
        true => Union::try_new_with_loose_types(union.inputs),
        false => Ok(union),
    }
}

/// How many expressions are mapped for one: a grouping set has several.
pub fn number_of(expression: &Expr) -> usize {
    match expression {
        Expr::GroupingSet(GroupingSet::Rollup(items) | GroupingSet::Cube(items)) => items.len(),
        Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => sets.iter().map(Vec::len).sum(),
        _ => 1,
    }
}
