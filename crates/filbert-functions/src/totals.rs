//! `SUM` and `AVG` with Hazelcast's result types: a sum of `BIGINT` is a `DECIMAL` and cannot
//! overflow, an average of whole numbers is a `DECIMAL`. DataFusion's aggregates compute them over
//! wider arguments.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt64Type;
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_schema::{DataType, Field, FieldRef};
use bigdecimal::BigDecimal;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature, Volatility,
};
use filbert_grid::query::{Dialect, QUOTIENT_SCALE};

use super::fields::Summed;
use super::float_totals::{Overflow, SlidingFloats};
use super::numbers::decimals::{FREE, array_of, is_free, number_at, quotients, scale_of, shortest};
use super::numbers::digits::{divide, quotient_scale};
use super::numbers::with_one_nan_each;
use super::row::{failed, is_text, wrong_arguments};
use crate::types::{is_untyped, untyped_field};

/// The aggregates, by DataFusion's names.
pub(super) fn aggregates(dialect: Dialect) -> Vec<AggregateUDF> {
    let total = |name, inner, widen, is_quotient| {
        AggregateUDF::new_from_impl(Total {
            name,
            inner,
            widen,
            is_quotient,
            overflows: dialect == Dialect::Postgres,
            signature: Signature::user_defined(Volatility::Immutable),
        })
    };
    let average: (fn(&DataType) -> _, bool) = match dialect {
        Dialect::Postgres => (numeric_avg_type, true),
        Dialect::Hazelcast | Dialect::Crate => (avg_type, false),
    };
    vec![
        total("sum", sum_udaf(), sum_type as fn(&DataType) -> _, false),
        total("avg", avg_udaf(), average.0, average.1),
    ]
}

/// An aggregate of DataFusion with other argument types.
#[derive(Debug)]
struct Total {
    name: &'static str,
    inner: Arc<AggregateUDF>,
    /// The type that the inner aggregate computes with.
    widen: fn(&DataType) -> Option<DataType>,
    /// Whether an exact result is a quotient with PostgreSQL's number of digits.
    is_quotient: bool,
    /// Whether a floating-point result out of range is an error.
    overflows: bool,
    signature: Signature,
}

impl PartialEq for Total {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Total {}

impl Hash for Total {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// The argument type for a sum.
fn sum_type(argument: &DataType) -> Option<DataType> {
    Some(match argument {
        // The number of values that fit into memory cannot overflow 64 bits.
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 => DataType::Int64,
        DataType::UInt32 | DataType::Int64 => DataType::Decimal128(19, 0),
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Float16 | DataType::Float32 | DataType::Float64 => DataType::Float64,
        decimal if decimal.is_decimal() => decimal.clone(),
        DataType::Duration(_) | DataType::Interval(_) => argument.clone(),
        _ => return None,
    })
}

/// The argument type for an average. The scale of decimals leaves room for the sum of 10^9 values,
/// and for the four digits that an average adds.
fn avg_type(argument: &DataType) -> Option<DataType> {
    match argument {
        DataType::Int64 | DataType::UInt64 => Some(LONG),
        whole if whole.is_integer() => Some(SHORT),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale) => {
            let whole = i8::try_from(*precision).ok()?.saturating_sub(*scale).max(0);
            let scale = (25 - whole).min(16).max(*scale);
            let precision = u8::try_from(whole.saturating_add(scale)).ok()?.clamp(1, 38);
            Some(DataType::Decimal128(precision, scale))
        }
        _ => sum_type(argument),
    }
}

/// The type in which small whole numbers are summed for PostgreSQL's averages. Any sum of values
/// that fit into memory leaves room for 16 decimal places.
const SHORT: DataType = DataType::Decimal128(38, 16);
/// The type in which other exact numbers are summed. With the four decimal places that an average
/// adds it has the scale of a quotient.
const LONG: DataType = DataType::Decimal256(76, QUOTIENT_SCALE - 4);

/// The type that PostgreSQL's averages are computed with.
fn numeric_avg_type(argument: &DataType) -> Option<DataType> {
    match argument {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::UInt8 | DataType::UInt16 => Some(SHORT),
        exact if exact.is_integer() || exact.is_decimal() => Some(LONG),
        _ => sum_type(argument),
    }
}

impl Total {
    /// The inner aggregate's argument and result types, and the final result type, for an argument.
    fn types(&self, argument: &DataType) -> Result<(DataType, DataType, DataType)> {
        let types = std::slice::from_ref(argument);
        // Intervals get an aggregate of their own, once all types are known.
        if let DataType::Interval(_) = argument {
            return Ok((argument.clone(), argument.clone(), argument.clone()));
        }
        let inner = (self.widen)(argument).ok_or_else(|| wrong_arguments(self.name, types))?;
        let inner_result = self.inner.return_type(std::slice::from_ref(&inner))?;
        let result = match argument {
            DataType::Float32 if self.name == "sum" => DataType::Float32,
            _ if self.is_quotient && inner_result.is_decimal() => DataType::Decimal256(76, QUOTIENT_SCALE),
            // An average has as many digits as it needs.
            _ if self.name == "avg" && inner_result.is_decimal() => FREE,
            _ => inner_result.clone(),
        };
        Ok((inner, inner_result, result))
    }

    /// The same for distinct arguments. Their sum and count are not available separately, but small
    /// whole numbers need them for the division.
    fn types_of(&self, argument: &DataType, is_distinct: bool) -> Result<(DataType, DataType, DataType)> {
        let (to, inner_result, result) = self.types(argument)?;
        if !is_distinct || to != SHORT {
            return Ok((to, inner_result, result));
        }
        Ok((LONG, self.inner.return_type(&[LONG])?, result))
    }

    /// Calls the inner aggregate with the inner types.
    fn inner<T>(
        &self,
        args: AccumulatorArgs<'_>,
        make: impl FnOnce(AccumulatorArgs<'_>) -> Result<T>,
    ) -> Result<Inner<T>> {
        let argument = args.expr_fields.first().map_or(DataType::Null, |field| field.data_type().clone());
        let (to, inner_result, result) = self.types_of(&argument, args.is_distinct)?;
        let division = match &to {
            exact if !self.is_quotient || !exact.is_decimal() => Division::Inner,
            _ if args.is_distinct => Division::OfDistinct,
            _ => Division::OfSum,
        };
        let fields = [Arc::new(Field::new("argument", to.clone(), true))];
        let args = AccumulatorArgs {
            return_field: Arc::new(Field::new(self.name, inner_result, true)),
            expr_fields: &fields,
            ..args
        };
        // The scale of a free type says nothing about the digits of its values.
        let scale_least = scale_of(&argument).filter(|_| !is_free(&argument)).unwrap_or(0);
        let overflow = Overflow::new(self.overflows && to.is_floating());
        Ok(Inner { accumulator: make(args)?, to, result, scale_least, division, overflow })
    }
}

impl AggregateUDFImpl for Total {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [DataType::Null] => Ok(vec![DataType::Float64]),
            // Untyped fields. Other texts are rejected where metadata distinguishes them.
            [argument] if is_text(argument) => Ok(types.to_vec()),
            // No cast here: types are coerced several times, and a widened argument would be
            // widened again.
            [argument] => self.types(argument).map(|_| types.to_vec()),
            _ => Err(wrong_arguments(self.name, types)),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [argument] => self.types(argument).map(|(_, _, result)| result),
            _ => Err(wrong_arguments(self.name, types)),
        }
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        match fields {
            [field] if is_untyped(field) => Ok(untyped_field(self.name).into()),
            [field] => {
                let (_, _, result) = self.types(field.data_type())?;
                Ok(Arc::new(Field::new(self.name, result, true)))
            }
            _ => Err(wrong_arguments(self.name, &[])),
        }
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if of_fields(&args) {
            return Ok(Box::new(Summed::new(self.name == "avg")));
        }
        Ok(Box::new(self.inner(args, |args| self.inner.accumulator(args))?))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let argument = args.input_fields.first().map_or(DataType::Null, |field| field.data_type().clone());
        if is_text(&argument) && !argument.is_null() {
            return Ok(Summed::state_fields());
        }
        let (to, inner_result, _) = self.types_of(&argument, args.is_distinct)?;
        let fields = [Arc::new(Field::new("argument", to, true))];
        self.inner.state_fields(StateFieldsArgs {
            input_fields: &fields,
            return_field: Arc::new(Field::new(self.name, inner_result, true)),
            ..args
        })
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !of_fields(&args)
            && self
                .inner(args, |args| Ok(self.inner.groups_accumulator_supported(args)))
                .is_ok_and(|inner| inner.accumulator)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(self.inner(args, |args| self.inner.create_groups_accumulator(args))?))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if of_fields(&args) {
            return Err(wrong_arguments(self.name, &[DataType::Utf8View]));
        }
        let is_average = self.name == "avg";
        Ok(Box::new(self.inner(args, |args| match args.expr_fields.first().map(|field| field.data_type()) {
            Some(DataType::Float64) => Ok(Box::new(SlidingFloats::new(is_average)) as Box<_>),
            _ => self.inner.create_sliding_accumulator(args),
        })?))
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// Whether the arguments are untyped fields: other texts are rejected earlier.
fn of_fields(args: &AccumulatorArgs<'_>) -> bool {
    args.expr_fields.first().is_some_and(|field| is_text(field.data_type()) && !field.data_type().is_null())
}

/// An accumulator that casts its arguments first, and its result last.
#[derive(Debug)]
struct Inner<T> {
    accumulator: T,
    to: DataType,
    result: DataType,
    /// The minimum scale of a quotient.
    scale_least: i8,
    division: Division,
    overflow: Overflow,
}

/// The division of a sum by its count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Division {
    /// The inner aggregate divides, or there is no division.
    Inner,
    /// Of a sum by a count, which say how many digits a quotient has.
    OfSum,
    /// The same for the distinct numbers that the inner aggregate keeps.
    OfDistinct,
}

impl<T> Inner<T> {
    fn result(&self, computed: &ArrayRef) -> Result<ArrayRef> {
        let converted = as_type(computed, &self.result)?;
        self.overflow.check(&converted)?;
        match self.result {
            DataType::Decimal256(_, QUOTIENT_SCALE) => quotients(&converted, self.scale_least),
            _ => Ok(with_one_nan_each(converted)),
        }
    }

    /// The averages, from the state of the inner accumulator: the counts and the sums.
    fn averages(&self, state: &[ArrayRef]) -> Result<ArrayRef> {
        let [counts, sums] = state else { return Err(failed("an average has a count and a sum")) };
        // DataFusion sums with a higher precision than declared.
        let sums = match sums.data_type() {
            DataType::Decimal128(_, scale) => as_type(sums, &DataType::Decimal256(76, *scale))?,
            _ => Arc::clone(sums),
        };
        let Some(counts) = counts.as_primitive_opt::<UInt64Type>() else {
            return Err(failed("an average has a count and a sum of numbers"));
        };
        let averages = counts.iter().enumerate().map(|(row, count)| self.average(&number_at(&sums, row)?, count?));
        array_of(&averages.collect::<Vec<_>>(), &self.result)
    }

    /// The average of the distinct numbers in the state of the inner accumulator.
    fn average_of_distinct(&self, state: &[ScalarValue]) -> Result<ScalarValue> {
        let [ScalarValue::List(lists)] = state else { return Err(failed("distinct numbers are kept in a list")) };
        let numbers = lists.values();
        let sum: BigDecimal = (0..numbers.len()).filter_map(|row| number_at(numbers, row)).sum();
        let count = u64::try_from(numbers.len()).unwrap_or(u64::MAX);
        ScalarValue::try_from_array(&array_of(&[self.average(&sum, count)], &self.result)?, 0)
    }

    /// A sum divided by a count, with PostgreSQL's number of digits.
    fn average(&self, sum: &BigDecimal, count: u64) -> Option<BigDecimal> {
        let (sum, count) = (shortest(sum), BigDecimal::from(count));
        let scale = quotient_scale(&sum, &count).max(self.scale_least.into());
        divide(&sum, &count, scale.min(QUOTIENT_SCALE.into()))
    }

    fn cast(&self, values: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        values.iter().map(|values| as_type(values, &self.to)).collect()
    }
}

fn as_type(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if values.data_type() == to { Ok(values.clone()) } else { Ok(datafusion::arrow::compute::cast(values, to)?) }
}

impl Accumulator for Inner<Box<dyn Accumulator>> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = self.cast(values)?;
        self.overflow.note(&values);
        self.accumulator.update_batch(&values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        match self.division {
            Division::Inner => {}
            Division::OfSum => {
                let state = self.accumulator.state()?.iter().map(ScalarValue::to_array).collect::<Result<Vec<_>>>()?;
                return ScalarValue::try_from_array(&self.averages(&state)?, 0);
            }
            Division::OfDistinct => {
                let state = self.accumulator.state()?;
                return self.average_of_distinct(&state);
            }
        }
        let computed = self.accumulator.evaluate()?.to_array()?;
        ScalarValue::try_from_array(&self.result(&computed)?, 0)
    }

    fn size(&self) -> usize {
        self.accumulator.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let state = self.accumulator.state()?;
        state.iter().try_for_each(|part| self.overflow.check(&part.to_array()?))?;
        Ok(state)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.overflow.note(states);
        self.accumulator.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = self.cast(values)?;
        self.accumulator.retract_batch(&values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.accumulator.supports_retract_batch()
    }
}

impl GroupsAccumulator for Inner<Box<dyn GroupsAccumulator>> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        group_indices: &[usize],
        filter: Option<&BooleanArray>,
        groups: usize,
    ) -> Result<()> {
        let values = self.cast(values)?;
        self.overflow.note(&values);
        self.accumulator.update_batch(&values, group_indices, filter, groups)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        if self.division == Division::OfSum {
            let state = self.accumulator.state(emit_to)?;
            return self.averages(&state);
        }
        let computed = self.accumulator.evaluate(emit_to)?;
        self.result(&computed)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let state = self.accumulator.state(emit_to)?;
        state.iter().try_for_each(|part| self.overflow.check(part))?;
        Ok(state)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], group_indices: &[usize], groups: usize) -> Result<()> {
        self.overflow.note(values);
        self.accumulator.merge_batch(values, group_indices, groups)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.accumulator.convert_to_state(&self.cast(values)?, filter)
    }

    fn size(&self) -> usize {
        self.accumulator.size()
    }
}
