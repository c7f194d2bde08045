//! `max` and `min` of floating-point numbers for each group. NaN is the greatest of all numbers.
//!
//! DataFusion compares with IEEE operators, where NaN is neither less nor greater, so its result
//! depends on the order of the rows.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::types::{ArrowPrimitiveType, Float32Type, Float64Type};
use arrow_schema::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature,
    StatisticsArgs,
};
use datafusion_functions_aggregate_common::aggregate::groups_accumulator::prim_op::PrimitiveGroupsAccumulator;

/// DataFusion's aggregate of floating-point numbers with a total order; `None` unless it is `max`
/// or `min`.
pub(crate) fn extreme(inner: &Arc<AggregateUDF>) -> Option<Arc<AggregateUDF>> {
    let wanted = match inner.name() {
        "max" => Ordering::Greater,
        "min" => Ordering::Less,
        _ => return None,
    };
    Some(Arc::new(AggregateUDF::new_from_impl(Extreme { inner: Arc::clone(inner), wanted })))
}

#[derive(Debug)]
struct Extreme {
    inner: Arc<AggregateUDF>,
    /// The order of a value relative to the current one that makes it the new one.
    wanted: Ordering,
}

impl PartialEq for Extreme {
    fn eq(&self, other: &Self) -> bool {
        self.wanted == other.wanted
    }
}

impl Eq for Extreme {}

impl Hash for Extreme {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.wanted.hash(state);
    }
}

/// The total order of numbers.
fn compared(left: f64, right: f64) -> Ordering {
    left.partial_cmp(&right).unwrap_or_else(|| left.is_nan().cmp(&right.is_nan()))
}

fn groups<T>(data_type: &DataType, wanted: Ordering) -> Box<dyn GroupsAccumulator>
where
    T: ArrowPrimitiveType + Send,
    T::Native: Into<f64> + From<f32>,
{
    // The initial value: no number is less than it, or none is greater.
    let first = if wanted == Ordering::Greater { f32::NEG_INFINITY } else { f32::NAN };
    let take = move |found: &mut T::Native, value: T::Native| {
        if compared(value.into(), (*found).into()) == wanted {
            *found = value;
        }
    };
    Box::new(PrimitiveGroupsAccumulator::<T, _>::new(data_type, take).with_starting_value(first.into()))
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        self.inner.coerce_types(types)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.return_type(types)
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        self.inner.return_field(fields)
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.inner.accumulator(args)
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.inner.create_sliding_accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        match args.return_field.data_type() {
            data_type @ DataType::Float32 => Ok(groups::<Float32Type>(data_type, self.wanted)),
            data_type @ DataType::Float64 => Ok(groups::<Float64Type>(data_type, self.wanted)),
            _ => self.inner.create_groups_accumulator(args),
        }
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner.is_descending()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.inner.order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.inner.reverse_udf()
    }

    fn value_from_stats(&self, arguments: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.inner.value_from_stats(arguments)
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(data_type)
    }
}
