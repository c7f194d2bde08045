//! Variances and deviations: of exact numbers with PostgreSQL's number of digits, of floating-point
//! numbers by their moments.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, FieldRef};
use bigdecimal::{BigDecimal, ToPrimitive, Zero};
use datafusion::arrow::compute::cast;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, Signature, Volatility};
use filbert_grid::query::QUOTIENT_SCALE;

use super::super::row::{is_text, wrong_arguments};
use super::decimals::{array_of, exact_type, number_at};
use super::digits;
use super::moments::{self, Figure};

/// The result type before the number of digits is known.
const RESULT: DataType = DataType::Decimal256(76, QUOTIENT_SCALE);

/// The aggregates.
pub(in super::super) fn aggregates() -> Vec<AggregateUDF> {
    let spread = |name, aliases: &[&str], is_sample, is_root| {
        AggregateUDF::new_from_impl(Spread {
            name,
            aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            is_sample,
            is_root,
            signature: Signature::user_defined(Volatility::Immutable),
        })
    };
    vec![
        spread("stddev", &["stddev_samp"], true, true),
        spread("stddev_pop", &[], false, true),
        spread("var", &["var_samp", "var_sample", "variance"], true, false),
        spread("var_pop", &["var_population"], false, false),
    ]
}

#[derive(Debug)]
struct Spread {
    name: &'static str,
    aliases: Vec<String>,
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

/// Whether an aggregate collects moments of floating-point numbers.
fn is_of_floats(args: &AccumulatorArgs<'_>) -> bool {
    !args.is_distinct && !args.expr_fields.first().is_some_and(|field| is_exact(field.data_type()))
}

impl Spread {
    fn figure(&self) -> Figure {
        Figure::Variance { is_sample: self.is_sample, is_root: self.is_root }
    }
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
        let is_exact = args.expr_fields.first().is_some_and(|field| is_exact(field.data_type()));
        if args.is_distinct {
            let (is_sample, is_root) = (self.is_sample, self.is_root);
            return Ok(Box::new(Distinct { is_exact, is_sample, is_root, numbers: BTreeSet::new() }));
        }
        if !is_exact {
            return Ok(Box::new(moments::Whole::of(self.figure())));
        }
        Ok(Box::new(Sums {
            count: 0,
            sum: BigDecimal::zero(),
            squares: BigDecimal::zero(),
            is_sample: self.is_sample,
            is_root: self.is_root,
        }))
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        match is_of_floats(&args) {
            true => Ok(Box::new(moments::Sliding::of(self.figure()))),
            false => self.accumulator(args),
        }
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs<'_>) -> bool {
        is_of_floats(&args)
    }

    fn create_groups_accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(moments::Groups::of(self.figure())))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        if args.is_distinct {
            let texts = DataType::new_list(DataType::Utf8, true);
            return Ok(vec![Arc::new(Field::new(format!("{}[numbers]", self.name), texts, true))]);
        }
        if !args.input_fields.first().is_some_and(|field| is_exact(field.data_type())) {
            return Ok(moments::state_fields(self.name));
        }
        let text = |name: &str| Arc::new(Field::new(format!("{}[{name}]", self.name), DataType::Utf8, true));
        Ok(vec![
            Arc::new(Field::new(format!("{}[count]", self.name), DataType::Int64, true)),
            text("sum"),
            text("squares"),
        ])
    }
}

/// The exact sums so far.
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

    /// As in PostgreSQL: `(n * sum of squares - square of the sum) / (n * (n - 1))`.
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
        let scale = digits::quotient_scale(&above, &below);
        let variance = digits::divide(&above, &below, scale)?;
        Some(if self.is_root { digits::root_to(&variance, scale) } else { variance })
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

/// A number of a distinct aggregate; floating-point numbers in their total order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Number {
    Exact(BigDecimal),
    /// The bits, in an order that equals the order of the numbers.
    Float(i64),
}

impl Number {
    fn of_float(number: f64) -> Number {
        // Zero has no sign.
        let bits = (number + 0.0).to_bits().cast_signed();
        Number::Float(if bits < 0 { bits ^ i64::MAX } else { bits })
    }

    fn float(bits: i64) -> f64 {
        f64::from_bits((if bits < 0 { bits ^ i64::MAX } else { bits }).cast_unsigned())
    }
}

/// The distinct numbers so far.
#[derive(Debug)]
struct Distinct {
    is_exact: bool,
    is_sample: bool,
    is_root: bool,
    numbers: BTreeSet<Number>,
}

impl Distinct {
    fn exact(&self) -> Result<ScalarValue> {
        let mut sums = Sums {
            count: 0,
            sum: BigDecimal::zero(),
            squares: BigDecimal::zero(),
            is_sample: self.is_sample,
            is_root: self.is_root,
        };
        for number in &self.numbers {
            if let Number::Exact(number) = number {
                sums.count += 1;
                sums.squares += number.square();
                sums.sum += number;
            }
        }
        sums.evaluate()
    }

    /// Summed in order, as in PostgreSQL.
    fn float(&self) -> Option<f64> {
        let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for number in &self.numbers {
            let Number::Float(bits) = number else { continue };
            let number = Number::float(*bits);
            count += 1.0;
            sum += number;
            if count > 1.0 {
                let distance = number * count - sum;
                squares += distance * distance / (count * (count - 1.0));
            }
        }
        let below = if self.is_sample { count - 1.0 } else { count };
        let variance = (below > 0.0).then(|| squares / below)?;
        Some(if self.is_root { variance.sqrt() } else { variance })
    }
}

impl Accumulator for Distinct {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(numbers) = values.first() else { return Ok(()) };
        if self.is_exact {
            let found = (0..numbers.len()).filter_map(|row| number_at(numbers, row));
            self.numbers.extend(found.map(|number| Number::Exact(number.normalized())));
        } else if let Some(floats) = numbers.as_primitive_opt::<arrow_array::types::Float64Type>() {
            self.numbers.extend(floats.iter().flatten().map(Number::of_float));
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.is_exact { self.exact() } else { Ok(ScalarValue::Float64(self.float())) }
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.numbers.len() * 2 * size_of::<Number>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let text = |number: &Number| {
            ScalarValue::Utf8(Some(match number {
                Number::Exact(number) => number.to_string(),
                Number::Float(bits) => bits.to_string(),
            }))
        };
        let texts: Vec<ScalarValue> = self.numbers.iter().map(text).collect();
        Ok(vec![ScalarValue::List(ScalarValue::new_list(&texts, &DataType::Utf8, true))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(lists) = states.first().and_then(|state| state.as_list_opt::<i32>()) else {
            return Err(wrong_arguments("a state", &[]));
        };
        for row in (0..lists.len()).filter(|row| lists.is_valid(*row)) {
            let texts = lists.value(row);
            let texts = texts.as_string_opt::<i32>().into_iter().flat_map(|texts| texts.iter().flatten());
            for text in texts {
                let number = match self.is_exact {
                    true => text.parse().ok().map(|number: BigDecimal| Number::Exact(number.normalized())),
                    false => text.parse().ok().map(Number::Float),
                };
                self.numbers.extend(number);
            }
        }
        Ok(())
    }
}
