//! One pass of aggregation without groups: DataFusion's accumulators, and a faster sum of whole
//! numbers.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, PrimitiveArray, RecordBatch};
use arrow_buffer::i256;
use arrow_schema::{DataType, SchemaRef};
use datafusion::arrow::compute::filter;
use datafusion::common::{DFSchema, Result, ScalarValue, exec_err};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Accumulator, Expr};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::aggregate::{AggregateFunctionExpr, LoweredAggregateBuilder};

use crate::short::query::plain_column;

/// The computation of one aggregate.
#[derive(Clone)]
enum Kind {
    /// Counts rows.
    Rows,
    /// The exact sum of a column of whole numbers, in this type.
    WholeSum { column: usize, output: DataType },
    /// An accumulator of DataFusion.
    General {
        function: Arc<AggregateFunctionExpr>,
        arguments: Vec<Arc<dyn PhysicalExpr>>,
        filter: Option<Arc<dyn PhysicalExpr>>,
    },
}

/// DataFusion's names of aggregates with a bounded state. The state of other aggregates is not
/// counted against a memory limit here.
const KEEPING_LITTLE: [&str; 25] = [
    "count",
    "sum",
    "avg",
    "min",
    "max",
    "bool_and",
    "bool_or",
    "bit_and",
    "bit_or",
    "bit_xor",
    "var",
    "var_pop",
    "stddev",
    "stddev_pop",
    "corr",
    "covar_samp",
    "covar_pop",
    "regr_slope",
    "regr_intercept",
    "regr_count",
    "regr_r2",
    "regr_avgx",
    "regr_avgy",
    "regr_sxx",
    "regr_syy",
];

/// The state after the rows so far.
enum State {
    Rows(i64),
    WholeSum { sum: i128, any: bool },
    General(Box<dyn Accumulator>),
}

/// The aggregates of one query, as a template or during a run.
pub(crate) struct Aggregates {
    kinds: Arc<[Kind]>,
    states: Vec<State>,
    schema: SchemaRef,
}

impl Aggregates {
    /// Compiles aggregate expressions over the columns of `input`; `None` if a short plan does not
    /// support one of them.
    pub(crate) fn compile(
        session: &SessionState,
        exprs: &[Expr],
        input: &SchemaRef,
        schema: &SchemaRef,
    ) -> Option<Aggregates> {
        let logical = DFSchema::try_from(input.clone()).ok()?;
        let context = PhysicalPlanningContext::default();
        let mut kinds = Vec::with_capacity(exprs.len());
        for (index, expr) in exprs.iter().enumerate() {
            let output = schema.fields().get(index)?.data_type().clone();
            let lowered = LoweredAggregateBuilder::new(expr, &logical, input, session.execution_props(), &context)
                .build()
                .ok()?;
            let function = lowered.aggregate;
            if function.is_distinct()
                || !lowered.order_bys.is_empty()
                || !KEEPING_LITTLE.contains(&function.fun().name())
            {
                return None;
            }
            let general = Kind::General { arguments: function.expressions(), filter: lowered.filter.clone(), function };
            kinds.push(match special(session, expr, &logical, input, output) {
                Some(special) if lowered.filter.is_none() => special,
                _ => general,
            });
        }
        Some(Aggregates { kinds: kinds.into(), states: Vec::new(), schema: schema.clone() })
    }

    /// Copies the aggregates with empty states.
    pub(crate) fn begin(&self) -> Result<Aggregates> {
        let states = self.kinds.iter().map(|kind| {
            Ok(match kind {
                Kind::Rows => State::Rows(0),
                Kind::WholeSum { .. } => State::WholeSum { sum: 0, any: false },
                Kind::General { function, .. } => State::General(function.create_accumulator()?),
            })
        });
        Ok(Aggregates {
            kinds: self.kinds.clone(),
            states: states.collect::<Result<_>>()?,
            schema: self.schema.clone(),
        })
    }

    /// Whether all aggregates need the number of rows alone.
    pub(crate) fn needs_only_counts(&self) -> bool {
        self.kinds.iter().all(|kind| matches!(kind, Kind::Rows))
    }

    /// Adds a number of rows to aggregates that need the number alone.
    pub(crate) fn add_rows(&mut self, rows: usize) {
        for state in &mut self.states {
            if let State::Rows(count) = state {
                *count = count.saturating_add(i64::try_from(rows).unwrap_or(i64::MAX));
            }
        }
    }

    /// Adds the rows of a batch.
    pub(crate) fn update(&mut self, batch: &RecordBatch) -> Result<()> {
        let rows = batch.num_rows();
        if rows == 0 {
            return Ok(());
        }
        for (kind, state) in self.kinds.iter().zip(&mut self.states) {
            match (kind, state) {
                (Kind::Rows, State::Rows(count)) => {
                    *count = count.saturating_add(i64::try_from(rows).unwrap_or(i64::MAX));
                }
                (Kind::WholeSum { column, .. }, State::WholeSum { sum, any }) => {
                    let column = batch.column(*column);
                    *any |= column.null_count() < rows;
                    *sum += whole_sum(column)?;
                }
                (Kind::General { arguments, filter: condition, .. }, State::General(accumulator)) => {
                    let mut values: Vec<ArrayRef> = arguments
                        .iter()
                        .map(|argument| argument.evaluate(batch)?.into_array(rows))
                        .collect::<Result<_>>()?;
                    if let Some(condition) = condition {
                        let holds = condition.evaluate(batch)?.into_array(rows)?;
                        values =
                            values.iter().map(|array| Ok(filter(array, holds.as_boolean())?)).collect::<Result<_>>()?;
                    }
                    accumulator.update_batch(&values)?;
                }
                _ => return exec_err!("an aggregate is not in the state it began with"),
            }
        }
        Ok(())
    }

    /// Merges the states of other parts.
    pub(crate) fn merge(&mut self, others: Aggregates) -> Result<()> {
        for (state, other) in self.states.iter_mut().zip(others.states) {
            match (state, other) {
                (State::Rows(count), State::Rows(other)) => *count = count.saturating_add(other),
                (State::WholeSum { sum, any }, State::WholeSum { sum: other, any: other_any }) => {
                    *sum += other;
                    *any |= other_any;
                }
                (State::General(accumulator), State::General(mut other)) => {
                    let states: Vec<ArrayRef> =
                        other.state()?.iter().map(ScalarValue::to_array).collect::<Result<_>>()?;
                    accumulator.merge_batch(&states)?;
                }
                _ => return exec_err!("an aggregate is not in the state it began with"),
            }
        }
        Ok(())
    }

    /// The single row of results.
    pub(crate) fn finish(self) -> Result<RecordBatch> {
        let mut columns = Vec::with_capacity(self.states.len());
        for (kind, state) in self.kinds.iter().zip(self.states) {
            let value = match (kind, state) {
                (_, State::Rows(count)) => ScalarValue::Int64(Some(count)),
                (Kind::WholeSum { output, .. }, State::WholeSum { sum, any }) => whole(any.then_some(sum), output)?,
                (_, State::General(mut accumulator)) => accumulator.evaluate()?,
                _ => return exec_err!("an aggregate is not in the state it began with"),
            };
            columns.push(value.to_array()?);
        }
        filbert_functions::builder::batch(&self.schema, columns, 1)
    }
}

/// A sum as a scalar of its type.
fn whole(sum: Option<i128>, output: &DataType) -> Result<ScalarValue> {
    Ok(match output {
        DataType::Int64 => match sum.map(i64::try_from).transpose() {
            Ok(sum) => ScalarValue::Int64(sum),
            Err(_) => return exec_err!("the sum is beyond the range of BIGINT"),
        },
        DataType::Decimal128(precision, scale) => ScalarValue::Decimal128(sum, *precision, *scale),
        DataType::Decimal256(precision, scale) => ScalarValue::Decimal256(sum.map(i256::from_i128), *precision, *scale),
        other => return exec_err!("a sum of whole numbers as {other}"),
    })
}

/// The faster computation of an aggregate, if it has one.
fn special(
    session: &SessionState,
    expr: &Expr,
    logical: &DFSchema,
    input: &SchemaRef,
    output: DataType,
) -> Option<Kind> {
    let Expr::AggregateFunction(AggregateFunction { func, params }) = without_alias(expr) else { return None };
    let [argument] = params.args.as_slice() else { return None };
    match func.name() {
        "count" => match argument {
            Expr::Literal(value, _) if !value.is_null() => Some(Kind::Rows),
            Expr::Column(column) => {
                let field = input.field_with_name(&column.name).ok()?;
                (!field.is_nullable()).then_some(Kind::Rows)
            }
            _ => None,
        },
        "sum" => {
            // A cast to a type that holds every sum does not change the sum.
            let argument = match argument {
                Expr::Cast(cast) => &*cast.expr,
                other => other,
            };
            let physical = session.create_physical_expr(argument.clone(), logical).ok()?;
            let column = plain_column(&physical)?;
            let is_whole = matches!(
                input.fields().get(column)?.data_type(),
                DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64
            );
            let fits = matches!(output, DataType::Int64 | DataType::Decimal128(_, 0) | DataType::Decimal256(_, 0));
            (is_whole && fits).then_some(Kind::WholeSum { column, output })
        }
        _ => None,
    }
}

fn without_alias(expr: &Expr) -> &Expr {
    match expr {
        Expr::Alias(alias) => without_alias(&alias.expr),
        other => other,
    }
}

/// The exact sum of a column of whole numbers; nulls are ignored.
fn whole_sum(column: &ArrayRef) -> Result<i128> {
    Ok(match column.data_type() {
        DataType::Int8 => narrow_sum::<Int8Type>(column.as_primitive()),
        DataType::Int16 => narrow_sum::<Int16Type>(column.as_primitive()),
        DataType::Int32 => narrow_sum::<Int32Type>(column.as_primitive()),
        DataType::Int64 => wide_sum(column.as_primitive()),
        other => return exec_err!("a sum of whole numbers over {other}"),
    })
}

/// A batch has too few rows for the sum to exceed 64 bits.
fn narrow_sum<T>(column: &PrimitiveArray<T>) -> i128
where
    T: ArrowPrimitiveType,
    i64: From<T::Native>,
{
    if column.null_count() == 0 {
        return i128::from(column.values().iter().map(|value| i64::from(*value)).sum::<i64>());
    }
    i128::from(column.iter().flatten().map(i64::from).sum::<i64>())
}

/// Sums the halves of the numbers separately. Each sum stays within 64 bits, which the processor
/// adds in vectors, unlike 128 bits.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the low half is what is meant")]
fn wide_sum(column: &PrimitiveArray<Int64Type>) -> i128 {
    let add = |(high, low): (i64, u64), value: i64| (high + (value >> 32), low + u64::from(value as u32));
    let (high, low) = if column.null_count() == 0 {
        column.values().iter().fold((0, 0), |sums, value| add(sums, *value))
    } else {
        column.iter().flatten().fold((0, 0), add)
    };
    (i128::from(high) << 32) + i128::from(low)
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;

    use super::*;

    #[test]
    fn a_sum_of_whole_numbers_is_exact() {
        let numbers = [i64::MAX, i64::MAX, i64::MIN, -1, 0, 1, 1 << 40, -(1 << 40), 0xffff_ffff];
        let expected: i128 = numbers.iter().map(|number| i128::from(*number)).sum();
        assert_eq!(wide_sum(&Int64Array::from(numbers.to_vec())), expected);
        let with_nulls: Int64Array = numbers.iter().flat_map(|number| [Some(*number), None]).collect();
        assert_eq!(wide_sum(&with_nulls), expected);
    }
}
