//! The value of a scalar subquery: an aggregate that fails over more than one row.

use std::sync::{Arc, LazyLock};

use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Expr, Signature, Volatility};
use filbert_functions::error::{carried, too_many_rows};

static SINGLE: LazyLock<Arc<AggregateUDF>> = LazyLock::new(|| {
    Arc::new(AggregateUDF::new_from_impl(Single { signature: Signature::any(1, Volatility::Immutable) }))
});

/// The only value of an expression among the rows of a group.
pub(super) fn of(value: Expr) -> Expr {
    SINGLE.call(vec![value])
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Single {
    signature: Signature,
}

impl AggregateUDFImpl for Single {
    fn name(&self) -> &str {
        "single_value"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(types.first().cloned().unwrap_or(DataType::Null))
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        let field = fields.first().map(|field| field.as_ref().clone().with_nullable(true));
        Ok(field.unwrap_or_else(|| Field::new(self.name(), DataType::Null, true)).into())
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let none = ScalarValue::try_from(args.return_field.data_type())?;
        Ok(Box::new(SingleValue { value: none, is_there: false }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let value = args.return_field.as_ref().clone().with_name(format!("{}[value]", args.name)).with_nullable(true);
        Ok(vec![Arc::new(value), Arc::new(Field::new(format!("{}[is_there]", args.name), DataType::Boolean, false))])
    }
}

#[derive(Debug)]
struct SingleValue {
    value: ScalarValue,
    is_there: bool,
}

impl SingleValue {
    fn add(&mut self, values: &ArrayRef, row: usize) -> Result<(), DataFusionError> {
        if self.is_there {
            return Err(carried(too_many_rows()));
        }
        self.is_there = true;
        self.value = ScalarValue::try_from_array(values, row)?;
        Ok(())
    }
}

impl Accumulator for SingleValue {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(values) = values.first() else { return Ok(()) };
        (0..values.len()).try_for_each(|row| self.add(values, row))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.value.size()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.value.clone(), ScalarValue::Boolean(Some(self.is_there))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [values, there] = states else { return Ok(()) };
        let Some(there) = there.as_any().downcast_ref::<BooleanArray>() else { return Ok(()) };
        (0..values.len()).filter(|row| there.value(*row)).try_for_each(|row| self.add(values, row))
    }
}
