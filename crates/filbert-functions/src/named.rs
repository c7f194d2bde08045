//! Rewrites nodes of plans. Nodes above find a column by its name, so each expression keeps its
//! name.

use arrow_schema::Field;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::logical_plan::Union;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, GroupingSet, LogicalPlan};

/// Maps the expressions of a node, and keeps their names. The items of grouping sets name the
/// columns of these.
///
/// # Errors
/// The errors of `map`.
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

/// The columns that a node's expressions may use: the columns of its inputs.
///
/// # Errors
/// Columns of a table are ambiguous.
pub fn schema_within(plan: &LogicalPlan) -> Result<DFSchema> {
    let mut schema = merge_schema(&plan.inputs());
    if let LogicalPlan::TableScan(scan) = plan {
        schema.merge(&DFSchema::try_from_qualified_schema(scan.table_name.clone(), &scan.source.schema())?);
    }
    Ok(schema)
}

/// A union with the current types of its first query. They are not updated automatically.
///
/// # Errors
/// The queries have different numbers of columns.
pub fn with_types_of_inputs(union: Union) -> Result<Union> {
    let Some(first) = union.inputs.first() else { return Ok(union) };
    let mut columns = first.schema().fields().iter().zip(union.schema.fields());
    let differ = |input: &Field, column: &Field| {
        input.data_type() != column.data_type() || input.metadata() != column.metadata()
    };
    match columns.any(|(input, column)| differ(input, column)) {
        true => Union::try_new_with_loose_types(union.inputs),
        false => Ok(union),
    }
}

/// The number of expressions that one stands for: a grouping set has several.
pub fn number_of(expression: &Expr) -> usize {
    match expression {
        Expr::GroupingSet(GroupingSet::Rollup(items) | GroupingSet::Cube(items)) => items.len(),
        Expr::GroupingSet(GroupingSet::GroupingSets(sets)) => sets.iter().map(Vec::len).sum(),
        _ => 1,
    }
}
