//! Aggregates of pairs of numbers: correlation, covariances and linear regression.

use arrow_schema::{DataType, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};

use super::super::row::{is_text, wrong_arguments};
use super::moments::{Figure, Groups, Sliding, Whole, state_fields};

/// The aggregates, each of `y` and `x`.
pub(super) fn aggregates() -> Vec<AggregateUDF> {
    let all = [
        ("corr", Figure::Correlation),
        ("covar_pop", Figure::Covariance { is_sample: false }),
        ("covar_samp", Figure::Covariance { is_sample: true }),
        ("regr_slope", Figure::Slope),
        ("regr_intercept", Figure::Intercept),
        ("regr_r2", Figure::Determination),
        ("regr_sxx", Figure::SumOfSquaresX),
        ("regr_syy", Figure::SumOfSquaresY),
        ("regr_sxy", Figure::SumOfProducts),
        ("regr_avgx", Figure::AverageX),
        ("regr_avgy", Figure::AverageY),
    ];
    let signature = Signature::user_defined(Volatility::Immutable);
    all.map(|(name, figure)| AggregateUDF::new_from_impl(OfPairs { name, figure, signature: signature.clone() }))
        .to_vec()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfPairs {
    name: &'static str,
    figure: Figure,
    signature: Signature,
}

impl AggregateUDFImpl for OfPairs {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let is_number = |found: &DataType| found.is_numeric() || is_text(found) || found.is_null();
        match types {
            [y, x] if is_number(y) && is_number(x) => Ok(vec![DataType::Float64; 2]),
            _ => Err(wrong_arguments(self.name, types)),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Whole::of(self.figure)))
    }

    fn create_sliding_accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Sliding::of(self.figure)))
    }

    fn groups_accumulator_supported(&self, _: AccumulatorArgs<'_>) -> bool {
        true
    }

    fn create_groups_accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(Groups::of(self.figure)))
    }

    fn state_fields(&self, _: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        Ok(state_fields(self.name))
    }
}
