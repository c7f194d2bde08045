//! DataFusion's aggregates that return one or all of their values, with types that Arrow does not
//! have.

use std::sync::Arc;

use arrow_schema::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::array_agg::array_agg_udaf;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::functions_aggregate::string_agg::string_agg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature,
    StatisticsArgs,
};

use super::array_shapes::{OfArrays, is_nested};
use super::gathered::{Gathered, GatheredGroups};
use crate::types::{BPCHAR, Mark};

/// All of them.
pub(crate) fn aggregates() -> Vec<AggregateUDF> {
    [min_udaf(), max_udaf(), array_agg_udaf(), string_agg_udaf()]
        .into_iter()
        .map(|inner| Marked { inner }.udaf())
        .collect()
}

/// An aggregate that reports the type of its result.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Marked {
    inner: Arc<AggregateUDF>,
}

impl Marked {
    fn udaf(self) -> AggregateUDF {
        AggregateUDF::new_from_impl(self)
    }

    fn keeps_all(&self) -> bool {
        self.inner.name() == "array_agg"
    }
}

impl AggregateUDFImpl for Marked {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
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
        let field = self.inner.return_field(fields)?;
        let mark = fields.first().map(|field| Mark::of(field)).unwrap_or_default();
        let mark = match field.data_type() {
            DataType::List(_) => mark.of_array(),
            // A joined text is longer than the texts that it consists of.
            _ if self.inner.name() == "string_agg" => Mark::default(),
            // The other types have no extremes of their own: they use those of text.
            _ if mark.oid == Some(BPCHAR) => mark,
            _ => Mark::default(),
        };
        if mark == Mark::default() {
            return Ok(field);
        }
        let metadata = mark.metadata(field.metadata().clone());
        Ok(Arc::new(field.as_ref().clone().with_metadata(metadata)))
    }

    fn is_nullable(&self) -> bool {
        self.inner.is_nullable()
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let is_of_arrays = self.keeps_all() && is_nested(args.return_type());
        let inner = self.inner.accumulator(args)?;
        Ok(match self.inner.name() {
            "array_agg" if is_of_arrays => Box::new(Gathered::new(Box::new(OfArrays(inner)))),
            "array_agg" | "string_agg" => Box::new(Gathered::new(inner)),
            _ => inner,
        })
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        self.inner.state_fields(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        let inner = self.inner.create_groups_accumulator(args)?;
        Ok(if self.keeps_all() { Box::new(GatheredGroups::new(inner)) } else { inner })
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        self.inner.create_sliding_accumulator(args)
    }

    fn with_beneficial_ordering(self: Arc<Self>, ordered: bool) -> Result<Option<Arc<dyn AggregateUDFImpl>>> {
        if self.inner.name() == "string_agg" {
            return Ok(Some(self));
        }
        let inner = self.inner.as_ref().clone().with_beneficial_ordering(ordered)?;
        Ok(inner.map(|inner| Arc::new(Marked { inner: Arc::new(inner) }) as Arc<dyn AggregateUDFImpl>))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        match self.inner.name() {
            // Its accumulator sorts the rows itself. A SELECT may have several orders then.
            "string_agg" => AggregateOrderSensitivity::SoftRequirement,
            _ => self.inner.order_sensitivity(),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        match self.inner.reverse_udf() {
            ReversedUDAF::Reversed(inner) => ReversedUDAF::Reversed(Arc::new(Marked { inner }.udaf())),
            other => other,
        }
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner.is_descending()
    }

    fn value_from_stats(&self, args: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.inner.value_from_stats(args)
    }

    fn default_value(&self, data_type: &DataType) -> Result<ScalarValue> {
        self.inner.default_value(data_type)
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.inner.supports_null_handling_clause()
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(data_type)
    }
}
