//! Variances and deviations of exact numbers, with the digits that PostgreSQL gives them; of floating-point numbers, DataFusion's.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, FieldRef};
use bigdecimal::{BigDecimal, ToPrimitive, Zero};
use datafusion::arrow::compute::cast;
use datafusion::common::{Result, ScalarValue};
use datafusion::functions_aggregate::stddev::{stddev_pop_udaf, stddev_udaf};
use datafusion::functions_aggregate::variance::{var_pop_udaf, var_samp_udaf};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};
use filbert_grid::query::QUOTIENT_SCALE;

use super::super::row::{is_text, wrong_arguments};
use super::decimals::{array_of, exact_type, number_at};
use super::digits;

/// What a result's type is until its digits are known.
const RESULT: DataType = DataType::Decimal256(76, QUOTIENT_SCALE);

/// The aggregates.
pub(in super::super) fn aggregates() -> Vec<AggregateUDF> {
    let spread = |name, aliases: &[&str], inner, is_sample, is_root| {
        AggregateUDF::new_from_impl(Spread {
            name,
            aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            inner,
            is_sample,
            is_root,
            signature: Signature::user_defined(Volatility::Immutable),
        })
    };
    vec![
        spread("stddev", &["stddev_samp"], stddev_udaf(), true, true),
        spread("stddev_pop", &[], stddev_pop_udaf(), false, true),
        spread("var", &["var_samp", "var_sample", "variance"], var_samp_udaf(), true, false),
        spread("var_pop", &["var_population"], var_pop_udaf(), false, false),
    ]
}

#[derive(Debug)]
struct Spread {
    name: &'static str,
    aliases: Vec<String>,
    /// What computes it of floating-point numbers.
    inner: Arc<AggregateUDF>,
    is_sample: bool,
    is_root: bool,
    signature: Signature,
}

impl PartialEq for Spread {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Spread {}

impl Hash for Spread {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

fn is_exact(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_decimal()
}

impl AggregateUDFImpl for Spread {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [number] if is_exact(number) => Ok(vec![exact_type(number)]),
            [number] if number.is_floating() || is_text(number) => Ok(vec![DataType::Float64]),
            _ => Err(wrong_arguments(self.name, types)),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(if types.first().is_some_and(is_exact) { RESULT } else { DataType::Float64 })
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if !args.expr_fields.first().is_some_and(|field| is_exact(field.data_type())) {
            return self.inner.accumulator(args);
        }
        Ok(Box::new(Sums {
            count: 0,
            sum: BigDecimal::zero(),
            squares: BigDecimal::zero(),
            is_sample: self.is_sample,
            is_root: self.is_root,
        }))
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        !args.expr_fields.first().is_some_and(|field| is_exact(field.data_type()))
            && self.inner.groups_accumulator_supported(args)
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        self.inner.create_groups_accumulator(args)
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if !args.input_fields.first().is_some_and(|field| is_exact(field.data_type())) {
            return self.inner.state_fields(args);
        }
        let text = |name: &str| Arc::new(Field::new(format!("{}[{name}]", self.name), DataType::Utf8, true));
        Ok(vec![
            Arc::new(Field::new(format!("{}[count]", self.name), DataType::Int64, true)),
            text("sum"),
            text("squares"),
        ])
    }
}

/// The numbers so far, exactly.
#[derive(Debug)]
struct Sums {
    count: i64,
    sum: BigDecimal,
    squares: BigDecimal,
    is_sample: bool,
    is_root: bool,
}

impl Sums {
    fn take(&mut self, values: &[ArrayRef], sign: i64) {
        let Some(numbers) = values.first() else { return };
        for row in 0..numbers.len() {
            let Some(number) = number_at(numbers, row) else { continue };
            self.count += sign;
            let square = number.square();
            if sign > 0 {
                self.sum += number;
                self.squares += square;
            } else {
                self.sum -= number;
                self.squares -= square;
            }
        }
    }

    /// As PostgreSQL computes it: `(n * sum of squares - square of the sum) / (n * (n - 1))`.
    fn result(&self) -> Option<BigDecimal> {
        let less = i64::from(self.is_sample);
        if self.count <= less {
            return None;
        }
        let count = BigDecimal::from(self.count);
        let above = &count * &self.squares - self.sum.square();
        let below = &count * BigDecimal::from(self.count - less);
        if above <= BigDecimal::zero() {
            return Some(BigDecimal::zero());
        }
        let variance = digits::divide(&above, &below, digits::quotient_scale(&above, &below))?;
        match self.is_root {
            true => digits::square_root(&variance),
            false => Some(variance),
        }
    }
}

impl Accumulator for Sums {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.take(values, 1);
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.take(values, -1);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let most = i64::from(QUOTIENT_SCALE);
        let number = self.result().map(|number| match digits::scale(&number) > most {
            true => number.with_scale_round(most, bigdecimal::RoundingMode::HalfUp),
            false => number,
        });
        ScalarValue::try_from_array(&array_of(&[number], &RESULT)?, 0)
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let text = |number: &BigDecimal| ScalarValue::Utf8(Some(number.to_plain_string()));
        Ok(vec![ScalarValue::Int64(Some(self.count)), text(&self.sum), text(&self.squares)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [counts, sums, squares] = states else { return Err(wrong_arguments("a state", &[])) };
        for row in 0..counts.len() {
            let number = |array: &ArrayRef| -> Result<BigDecimal> {
                let text = ScalarValue::try_from_array(&cast(array, &DataType::Utf8)?, row)?;
                Ok(text.try_as_str().flatten().and_then(|text| text.parse().ok()).unwrap_or_default())
            };
            self.count += number(counts)?.to_i64().unwrap_or(0);
            self.sum += number(sums)?;
            self.squares += number(squares)?;
        }
        Ok(())
    }
}
