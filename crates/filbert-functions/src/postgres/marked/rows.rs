//! Plan nodes with columns that no expression of the node defines: elements of arrays, `VALUES`,
//! and unions. Also removes insignificant blanks from rows.

use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::logical_plan::{Projection, Union, Values};
use datafusion::logical_expr::{Expr, LogicalPlan, Subquery, Unnest};

use super::pass::Pass;
use super::{as_one_of, both, common, mark_of, marked_as, trimmed};
use crate::types::{Length, Mark, VARCHAR};

impl Pass {
    /// Rows from the elements of arrays.
    pub(super) fn items(&mut self, unnest: Unnest) -> Result<Transformed<LogicalPlan>> {
        let of = unnest.input.schema().fields();
        let marks = unnest.schema.fields().iter().enumerate().map(|(at, item)| {
            let array = unnest.dependency_indices.get(at).and_then(|at| of.get(*at));
            let array = array.filter(|array| matches!(array.data_type(), DataType::List(_)));
            let is_item = !matches!(item.data_type(), DataType::List(_));
            array.filter(|_| is_item).map_or(Mark::default(), |array| Mark::of(array).of_item())
        });
        let marks: Vec<Mark> = marks.collect();
        if marks.iter().all(|mark| *mark == Mark::default()) {
            return Ok(Transformed::no(LogicalPlan::Unnest(unnest)));
        }
        self.is_changed = true;
        self.has_blanks |= marks.iter().any(|mark| mark.length == Length::Own);
        let items = unnest.schema.columns().into_iter().zip(marks).map(|(column, mark)| {
            if mark == Mark::default() {
                return Expr::Column(column);
            }
            let (relation, name) = (column.relation.clone(), column.name.clone());
            marked_as(Expr::Column(column), mark).alias_qualified(relation, name)
        });
        let items: Vec<Expr> = items.collect();
        let input = Arc::new(LogicalPlan::Unnest(unnest));
        Ok(Transformed::yes(LogicalPlan::Projection(Projection::try_new(items, input)?)))
    }

    /// Rows of `VALUES`. Casts to `varchar` make the column a `varchar`.
    pub(super) fn values(&mut self, values: Values) -> Result<LogicalPlan> {
        let (none, of_schema) = (DFSchema::empty(), values.schema.metadata().clone());
        let fields = values.schema.iter().enumerate().map(|(at, (relation, field))| {
            let items: Vec<&Expr> = values.values.iter().filter_map(|row| row.get(at)).collect();
            let mark = common(&items, &none).filter(|mark| mark.oid == Some(VARCHAR));
            let field = match mark.filter(|_| Mark::of(field) == Mark::default()) {
                Some(mark) => {
                    self.is_changed = true;
                    let metadata = mark.metadata(field.metadata().clone());
                    Arc::new(field.as_ref().clone().with_metadata(metadata))
                }
                None => Arc::clone(field),
            };
            (relation.cloned(), field)
        });
        let schema = DFSchema::new_with_metadata(fields.collect(), of_schema)?;
        Ok(LogicalPlan::Values(Values { schema: Arc::new(schema), values: values.values }))
    }

    /// Rows of several queries, with columns of their common types.
    pub(super) fn union(&mut self, union: Union) -> Result<LogicalPlan> {
        let known: Vec<Vec<Option<Mark>>> = union.inputs.iter().map(|input| marks_of(input)).collect();
        let of_column = |at: usize| {
            let mut marks = known.iter().map(|marks| marks.get(at).copied().flatten());
            let is_open = marks.clone().any(|mark| mark.is_none());
            let wanted = marks.by_ref().flatten().reduce(both).unwrap_or_default();
            match wanted.length {
                Length::Of(_) if is_open => Mark { length: Length::Own, ..wanted },
                _ => wanted,
            }
        };
        let wanted: Vec<Mark> = (0..union.schema.fields().len()).map(of_column).collect();
        let is_one = |input: &LogicalPlan| {
            input.schema().fields().iter().zip(&wanted).all(|(field, wanted)| Mark::of(field) == *wanted)
        };
        self.has_blanks |= wanted.iter().any(|wanted| wanted.length == Length::Own);
        // Its columns do not follow those of its queries automatically.
        if !self.is_changed && union.inputs.iter().all(|input| is_one(input)) {
            return Ok(LogicalPlan::Union(union));
        }
        self.is_changed = true;
        let mut inputs = Vec::with_capacity(union.inputs.len());
        for (input, known) in union.inputs.iter().zip(&known) {
            if is_one(input) {
                inputs.push(Arc::clone(input));
                continue;
            }
            let columns =
                input.schema().columns().into_iter().zip(input.schema().fields()).zip(known.iter().zip(&wanted));
            let items = columns.map(|((column, field), (known, wanted))| {
                if Mark::of(field) == *wanted {
                    return Expr::Column(column);
                }
                let (relation, name) = (column.relation.clone(), column.name.clone());
                let column = Expr::Column(column);
                let column = match field.data_type().is_null() {
                    true => column,
                    false => as_one_of(column, *known, *wanted).0,
                };
                marked_as(column, *wanted).alias_qualified(relation, name)
            });
            let items: Vec<Expr> = items.collect();
            inputs.push(Arc::new(LogicalPlan::Projection(Projection::try_new(items, Arc::clone(input))?)));
        }
        Ok(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))
    }
}

/// The types of a plan's columns; `None` if any type matches.
fn marks_of(plan: &LogicalPlan) -> Vec<Option<Mark>> {
    match plan {
        LogicalPlan::Projection(projection) => {
            let schema = projection.input.schema();
            projection.expr.iter().map(|item| mark_of(item, schema)).collect()
        }
        _ => plan.schema().fields().iter().map(|field| Some(Mark::of(field))).collect(),
    }
}

/// Whether the compared values have insignificant trailing blanks.
pub(super) fn has_own_blanks(subquery: &Subquery) -> bool {
    subquery.subquery.schema().fields().iter().any(|field| Mark::of(field).length == Length::Own)
}

pub(super) fn rows_without_blanks(subquery: Subquery) -> Result<Subquery> {
    let plan = without_blanks(Arc::clone(&subquery.subquery))?;
    Ok(subquery.with_plan(Arc::new(plan)))
}

/// Rows without insignificant blanks.
pub(super) fn without_blanks(plan: Arc<LogicalPlan>) -> Result<LogicalPlan> {
    let columns = plan.schema().columns().into_iter().zip(plan.schema().fields());
    let items = columns.map(|(column, field)| match Mark::of(field).length {
        Length::Own => {
            let (relation, name) = (column.relation.clone(), column.name.clone());
            trimmed(Expr::Column(column)).alias_qualified(relation, name)
        }
        _ => Expr::Column(column),
    });
    let items: Vec<Expr> = items.collect();
    Ok(LogicalPlan::Projection(Projection::try_new(items, plan)?))
}
