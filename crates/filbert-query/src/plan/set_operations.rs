//! Column types of `UNION`, `EXCEPT` and `INTERSECT`: the common types of all sides.
//!
//! DataFusion gives a `UNION` the types of its first part until type coercion. Numbers, dates and
//! timestamps get their common types here, so the nodes above see them. DataFusion turns `EXCEPT`
//! and `INTERSECT` into joins, and their columns have the types of the left side. Each side with
//! different types becomes a union with no rows of the other side. The union then determines the
//! types.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_schema::{DataType, Field};
use datafusion::common::metadata::FieldMetadata;
use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{Column, JoinType, NullEquality, Result};
use datafusion::logical_expr::logical_plan::{Projection, Union};
use datafusion::logical_expr::{Cast, Distinct, Expr, Join, LogicalPlan, LogicalPlanBuilder, lit};
use filbert_functions::error::{carried, parsing_error};
use filbert_functions::named::with_types_of_inputs;
use filbert_functions::numbers::written::common_with_literals;
use filbert_functions::types::{Mark, field_type_of, is_untyped, pg_type_of};
use filbert_functions::{common_type_of_dates, field_of, literal_like, numbers, pg_types};
use filbert_grid::query::Dialect;

use crate::plan::planner::unaliased;
use crate::plan::values;

/// The maximum size of a plan, in nodes, for which both sides get common types. Each operation of a
/// chain doubles the plan below it.
const NODES_MAX: usize = 1_000;

/// Gives both sides of `EXCEPT` and `INTERSECT` their common types.
///
/// # Errors
/// In PostgreSQL's dialect: the columns of a `UNION` have no common type.
pub(crate) fn with_common_types(plan: LogicalPlan, dialect: Dialect) -> Result<LogicalPlan> {
    let mut is_concerned = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Union(union) = node
            && dialect == Dialect::Postgres
        {
            check(union, if is_of_rows(union) { "VALUES" } else { "UNION" })?;
        }
        is_concerned |= match node {
            LogicalPlan::Join(join) => is_set_operation(join) && types_differ(join),
            LogicalPlan::Union(union) => !wanted(&of_rows(union)).iter().all(Option::is_none),
            _ => false,
        };
        Ok(if is_concerned { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !is_concerned {
        return Ok(plan);
    }
    let typed = plan.transform_up_with_subqueries(|node| {
        let node = node.recompute_schema()?;
        match node {
            LogicalPlan::Join(join) if is_set_operation(&join) && types_differ(&join) => typed(join, dialect),
            LogicalPlan::Union(union) => united(of_rows(&union).into_owned()).map(Transformed::yes),
            other => Ok(Transformed::yes(other)),
        }
    })?;
    Ok(typed.data)
}

/// The plan with one union for all rows of each `VALUES`.
pub(super) fn with_rows_together(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut is_concerned = false;
    plan.apply_with_subqueries(|node| {
        is_concerned |= matches!(node, LogicalPlan::Union(union) if is_of_rows(union));
        Ok(if is_concerned { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    if !is_concerned {
        return Ok(plan);
    }
    let together = plan.transform_down_with_subqueries(|node| {
        Ok(match node {
            LogicalPlan::Union(union) if is_of_rows(&union) => {
                Transformed::yes(LogicalPlan::Union(of_rows(&union).into_owned()))
            }
            node => Transformed::no(node),
        })
    })?;
    Ok(together.data)
}

/// The union of the rows of a `VALUES`, which nests unions of some of them: all rows together
/// determine the types. Any other union stays as it is.
fn of_rows(union: &Union) -> Cow<'_, Union> {
    if !is_of_rows(union) {
        return Cow::Borrowed(union);
    }
    let mut inputs = Vec::with_capacity(union.inputs.len());
    for input in &union.inputs {
        match input.as_ref() {
            LogicalPlan::Union(inner) if is_of_rows(inner) => inputs.extend(of_rows(inner).inputs.iter().cloned()),
            _ => inputs.push(Arc::clone(input)),
        }
    }
    Cow::Owned(Union { inputs, schema: Arc::clone(&union.schema) })
}

fn is_of_rows(union: &Union) -> bool {
    union.schema.fields().first().is_some_and(|field| field.name() == values::PLACE)
}

/// Rejects columns with types of different categories, such as texts beside numbers.
fn check(union: &Union, name: &str) -> Result<()> {
    for at in 0..union.schema.fields().len() {
        let typed = union.inputs.iter().filter(|input| !is_quoted(input, at));
        let mut fields: Vec<Field> = typed.filter_map(|input| field_at(input, at)).collect();
        fields.retain(|field| !field.data_type().is_null() && !is_untyped(field));
        let mut categories = fields.iter().filter_map(|field| Some((category_of(field)?, field)));
        let Some((first, one)) = categories.next() else { continue };
        if let Some((_, other)) = categories.find(|(category, _)| *category != first) {
            let message = format!("{name} types {} and {} cannot be matched", type_name(one), type_name(other));
            return Err(carried(parsing_error(message).with_sqlstate("42804")));
        }
    }
    Ok(())
}

fn oid_of(field: &Field) -> i64 {
    pg_type_of(field).map_or_else(|| pg_types::of_field_type(&field_type_of(field)).0, i64::from)
}

fn type_name(field: &Field) -> String {
    pg_types::format(oid_of(field), None)
}

/// PostgreSQL's category of a type, and of a type that has no common type with others its OID.
/// `None` = such types are not told apart here.
fn category_of(field: &Field) -> Option<(&'static str, i64)> {
    match pg_types::by_oid(oid_of(field))? {
        (found, false) => match found.category {
            category @ ("B" | "D" | "N" | "S" | "T") => Some((category, 0)),
            category @ "U" => Some((category, found.oid)),
            _ => None,
        },
        (_, true) => None,
    }
}

/// The types of a union's columns, if its parts have different numeric, date or timestamp types, or
/// string literals and NULLs beside values of one type.
fn wanted(union: &Union) -> Vec<Option<Field>> {
    let of_column = |at: usize| {
        let (quoted, typed): (Vec<_>, Vec<_>) = union.inputs.iter().partition(|input| is_quoted(input, at));
        let fields = typed.into_iter().filter_map(|input| field_at(input, at));
        let (nulls, fields): (Vec<Field>, Vec<Field>) = fields.partition(|field| field.data_type().is_null());
        let types: Vec<&DataType> = fields.iter().map(Field::data_type).collect();
        let (first, rest) = types.split_first()?;
        let has_nulls = !nulls.is_empty();
        let differ = rest.iter().any(|other| other != first) || has_nulls || !quoted.is_empty();
        let has_literals = !quoted.is_empty();
        let common = common_with_literals(&types, quoted.into_iter().filter_map(|input| quoted_at(input, at)))
            .or_else(|| numbers::common_type(&types))
            .or_else(|| common_type_of_dates(&types));
        if let Some(common) = common {
            return differ.then(|| Field::new("", common, true));
        }
        let one = fields.first()?;
        let are_alike = fields.iter().all(|field| field.data_type() == *first && Mark::of(field) == Mark::of(one));
        let is_of_one = are_alike && (has_nulls || has_literals && !is_text(one));
        is_of_one.then(|| one.clone())
    };
    (0..union.schema.fields().len()).map(of_column).collect()
}

/// Whether a field has texts of type `text`, which a string literal is as well.
fn is_text(field: &Field) -> bool {
    field.data_type().is_string() && Mark::of(field).is_of_text()
}

/// The field of a column, with the type that Arrow lacks: the items of a projection may not be
/// marked yet.
pub(super) fn field_at(query: &LogicalPlan, at: usize) -> Option<Field> {
    let field = query.schema().fields().get(at)?;
    if !field.metadata().is_empty() {
        return Some(field.as_ref().clone());
    }
    match query {
        LogicalPlan::Projection(projection) => field_of(projection.expr.get(at)?, projection.input.schema()),
        LogicalPlan::SubqueryAlias(alias) => field_at(&alias.input, at),
        LogicalPlan::Distinct(Distinct::All(input)) => field_at(input, at),
        _ => Some(field.as_ref().clone()),
    }
}

/// The mark of a field, for the alias of a column.
fn metadata_of(field: Option<&Field>) -> Option<FieldMetadata> {
    field.filter(|field| !field.metadata().is_empty()).map(FieldMetadata::new_from_field)
}

/// Whether an item of a projection is a string literal, which takes the type of the others.
fn is_quoted(query: &LogicalPlan, at: usize) -> bool {
    quoted_at(query, at).is_some()
}

/// The string literal that is an item of a projection.
fn quoted_at(query: &LogicalPlan, at: usize) -> Option<&Expr> {
    let projection = match query {
        LogicalPlan::Projection(projection) => projection,
        LogicalPlan::SubqueryAlias(alias) => return quoted_at(&alias.input, at),
        LogicalPlan::Distinct(Distinct::All(input)) => return quoted_at(input, at),
        _ => return None,
    };
    let item = projection.expr.get(at).map(unaliased)?;
    let is_quoted = matches!(item, Expr::Literal(scalar, _) if scalar.try_as_str().flatten().is_some());
    // A literal of another type, such as `'{}'::jsonb`, has its own.
    let takes_others = || field_of(item, projection.input.schema()).is_none_or(|field| is_text(&field));
    (is_quoted && takes_others()).then_some(item)
}

/// A union with all columns in their common types.
fn united(union: Union) -> Result<LogicalPlan> {
    let union = with_types_of_inputs(union)?;
    let wanted = wanted(&union);
    if wanted.iter().all(Option::is_none) {
        return Ok(LogicalPlan::Union(union));
    }
    let mut inputs = Vec::with_capacity(union.inputs.len());
    for input in &union.inputs {
        let columns = input.schema().columns().into_iter().zip(input.schema().fields()).zip(&wanted);
        let items = columns.map(|((column, field), wanted)| {
            let name = column.name.clone();
            let column = Expr::Column(column);
            let Some(wanted) = wanted else { return column.alias(name) };
            let literal = is_text(field).then(|| literal_like(column.clone(), wanted)).flatten();
            let value = match literal {
                Some(literal) => literal,
                None if wanted.data_type() != field.data_type() => {
                    Expr::Cast(Cast { expr: Box::new(column), field: Arc::new(wanted.clone()) })
                }
                None => column,
            };
            value.alias_with_metadata(name, metadata_of(Some(wanted)))
        });
        inputs.push(Arc::new(LogicalPlanBuilder::from(Arc::clone(input)).project(items)?.build()?));
    }
    Union::try_new_with_loose_types(inputs).map(LogicalPlan::Union)
}

/// Whether a join comes from a set operation: equality of all columns, with equal nulls.
fn is_set_operation(join: &Join) -> bool {
    matches!(join.join_type, JoinType::LeftSemi | JoinType::LeftAnti)
        && join.null_equality == NullEquality::NullEqualsNull
        && join.on.len() == join.left.schema().fields().len()
        && join.on.len() == join.right.schema().fields().len()
}

fn types_differ(join: &Join) -> bool {
    let type_at =
        |side: &LogicalPlan, at| field_at(side, at).map(|field| (field.data_type().clone(), Mark::of(&field)));
    (0..join.on.len()).any(|at| type_at(&join.left, at) != type_at(&join.right, at))
}

fn typed(join: Join, dialect: Dialect) -> Result<Transformed<LogicalPlan>> {
    if dialect == Dialect::Postgres {
        let sides = Union::try_new_with_loose_types(vec![Arc::clone(&join.left), Arc::clone(&join.right)])?;
        check(&sides, if join.join_type == JoinType::LeftSemi { "INTERSECT" } else { "EXCEPT" })?;
    }
    if nodes_of(&join.left)? + nodes_of(&join.right)? > NODES_MAX {
        return Ok(Transformed::no(LogicalPlan::Join(join)));
    }
    let (left, is_distinct) = match join.left.as_ref() {
        LogicalPlan::Distinct(Distinct::All(input)) => (input, true),
        _ => (&join.left, false),
    };
    let right = Arc::new(as_one_type(&join.right, left)?);
    let left = as_one_type(left, &join.right)?;
    let left = if is_distinct { LogicalPlan::Distinct(Distinct::All(Arc::new(left))) } else { left };
    let join = Join { left: Arc::new(left), right, ..join };
    LogicalPlan::Join(join).recompute_schema().map(Transformed::yes)
}

/// The rows of a plan in the common types with another plan, under their own names.
fn as_one_type(plan: &Arc<LogicalPlan>, other: &Arc<LogicalPlan>) -> Result<LogicalPlan> {
    let nothing = LogicalPlanBuilder::from(other.as_ref().clone()).filter(lit(false))?.build()?;
    let sides = vec![numbered(plan, Arc::clone(plan))?, numbered(other, Arc::new(nothing))?];
    let union = united(Union::try_new_with_loose_types(sides)?)?;
    let columns = union.schema().columns().into_iter().zip(plan.schema().columns());
    let items =
        columns.map(|(column, Column { relation, name, .. })| Expr::Column(column).alias_qualified(relation, name));
    let items: Vec<Expr> = items.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(items, Arc::new(union))?))
}

/// The rows of a plan with columns named by position, because the rules that determine the types do
/// not keep qualifiers. String literals are put back, because they take the type of the other side,
/// and columns get their marks, which an item of the plan itself may lack.
fn numbered(plan: &LogicalPlan, rows: Arc<LogicalPlan>) -> Result<Arc<LogicalPlan>> {
    let columns = plan.schema().columns().into_iter().enumerate();
    let items = columns.map(|(at, column)| {
        let item = quoted_at(plan, at).map_or_else(|| Expr::Column(column), Expr::clone);
        item.alias_with_metadata(format!("${at}"), metadata_of(field_at(plan, at).as_ref()))
    });
    let items: Vec<Expr> = items.collect();
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(items, rows)?)))
}

fn nodes_of(plan: &LogicalPlan) -> Result<usize> {
    let mut nodes = 0;
    plan.apply_with_subqueries(|_| {
        nodes += 1;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(nodes)
}
