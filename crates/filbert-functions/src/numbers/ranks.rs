//! Ordered-set aggregates: `MODE`, `PERCENTILE_DISC` and `PERCENTILE_CONT` with
//! `WITHIN GROUP (ORDER BY ..)`.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field, FieldRef, SortOptions};
use datafusion::arrow::compute::{sort_to_indices, take};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

use super::super::row::{is_text, wrong_arguments};
use super::one_nan;
use crate::error::{carried, data_error};

/// The aggregates.
pub(in super::super) fn aggregates() -> Vec<AggregateUDF> {
    let rank = |name, kind| {
        AggregateUDF::new_from_impl(Rank { name, kind, signature: Signature::user_defined(Volatility::Immutable) })
    };
    vec![rank("mode", Kind::Mode), rank("percentile_disc", Kind::Discrete), rank("percentile_cont", Kind::Continuous)]
}

/// The value that is selected in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The most frequent value.
    Mode,
    /// The first value that has at least this fraction of the values up to it.
    Discrete,
    /// The same, interpolated between two values.
    Continuous,
}

#[derive(Debug)]
struct Rank {
    name: &'static str,
    kind: Kind,
    signature: Signature,
}

impl PartialEq for Rank {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Rank {}

impl Hash for Rank {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl Rank {
    /// The type in which values are ordered; `None` if Arrow's order differs from PostgreSQL's.
    fn ordered(&self, values: &DataType) -> Option<DataType> {
        let is_number = values.is_numeric() || values.is_null() || is_text(values);
        match (self.kind, values) {
            (_, DataType::Interval(_) | DataType::Duration(_)) => None,
            (Kind::Continuous, _) => is_number.then_some(DataType::Float64),
            (_, DataType::Null) => Some(DataType::Utf8View),
            (_, nested) if nested.is_nested() => None,
            (_, other) => Some(other.clone()),
        }
    }
}

fn is_list(data_type: &DataType) -> bool {
    matches!(data_type, DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..))
}

fn floats() -> DataType {
    DataType::new_list(DataType::Float64, true)
}

impl AggregateUDFImpl for Rank {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let wrong = || wrong_arguments(self.name, types);
        match (self.kind, types) {
            (Kind::Mode, [values]) => Ok(vec![self.ordered(values).ok_or_else(wrong)?]),
            (Kind::Mode, _) => Err(wrong()),
            (_, [values, parts]) if is_list(parts) => Ok(vec![self.ordered(values).ok_or_else(wrong)?, floats()]),
            (_, [values, part]) if part.is_numeric() || part.is_null() || is_text(part) => {
                Ok(vec![self.ordered(values).ok_or_else(wrong)?, DataType::Float64])
            }
            _ => Err(wrong()),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        let [values, rest @ ..] = types else { return Err(wrong_arguments(self.name, types)) };
        Ok(match rest.first().is_some_and(is_list) {
            true => DataType::new_list(values.clone(), true),
            false => values.clone(),
        })
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        let types: Vec<DataType> = fields.iter().map(|field| field.data_type().clone()).collect();
        let result = Field::new(self.name, self.return_type(&types)?, true);
        // The mark of a PostgreSQL type is preserved.
        Ok(Arc::new(match fields {
            [values, rest @ ..] if !rest.first().is_some_and(|parts| is_list(parts.data_type())) => {
                result.with_metadata(values.metadata().clone())
            }
            _ => result,
        }))
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        let type_at = |at: usize| args.expr_fields.get(at).map_or(DataType::Null, |field| field.data_type().clone());
        Ok(Box::new(Ordered {
            kind: self.kind,
            of: type_at(0),
            part: ScalarValue::try_from(&type_at(1))?,
            is_descending: args.order_bys.first().is_some_and(|order| order.options.descending),
            values: Vec::new(),
        }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let type_at = |at: usize| args.input_fields.get(at).map_or(DataType::Null, |field| field.data_type().clone());
        Ok(vec![
            Arc::new(Field::new(format!("{}[values]", self.name), DataType::new_list(type_at(0), true), true)),
            Arc::new(Field::new(format!("{}[part]", self.name), type_at(1), true)),
        ])
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        // They are sorted once all are collected.
        AggregateOrderSensitivity::Insensitive
    }
}

/// The values so far, and the requested fraction.
#[derive(Debug)]
struct Ordered {
    kind: Kind,
    of: DataType,
    part: ScalarValue,
    is_descending: bool,
    values: Vec<ArrayRef>,
}

impl Ordered {
    fn keep(&mut self, values: &ArrayRef) -> Result<()> {
        let nulls = datafusion::arrow::compute::is_not_null(values)?;
        let kept = datafusion::arrow::compute::filter(values, &nulls)?;
        if !kept.is_empty() {
            self.values.push(kept);
        }
        Ok(())
    }

    fn sorted(&self) -> Result<ArrayRef> {
        let parts: Vec<&dyn Array> = self.values.iter().map(AsRef::as_ref).collect();
        if parts.is_empty() {
            return Ok(arrow_array::new_empty_array(&self.of));
        }
        let whole = datafusion::arrow::compute::concat(&parts)?;
        let options = SortOptions { descending: self.is_descending, nulls_first: false };
        Ok(take(&whole, &sort_to_indices(&whole, Some(options), None)?, None)?)
    }

    /// The most frequent value; the first of several.
    fn mode(&self, sorted: &ArrayRef) -> Result<ScalarValue> {
        let runs = datafusion::arrow::compute::partition(&[Arc::clone(sorted)])?.ranges();
        let longest = runs.into_iter().reduce(|most, run| if run.len() > most.len() { run } else { most });
        match longest {
            Some(run) => ScalarValue::try_from_array(sorted, run.start),
            None => ScalarValue::try_from(&self.of),
        }
    }

    /// The value at a fraction of the sorted values.
    fn at(&self, sorted: &ArrayRef, part: Option<f64>) -> Result<ScalarValue> {
        let Some(part) = part else { return ScalarValue::try_from(&self.of) };
        if !(0.0..=1.0).contains(&part) {
            let text = format!("percentile value {part} is not between 0 and 1");
            return Err(carried(data_error(text).with_sqlstate("22003")));
        }
        if sorted.is_empty() {
            return ScalarValue::try_from(&self.of);
        }
        let last = sorted.len() - 1;
        // The fraction is within 0 and 1, so these are valid positions.
        if self.kind == Kind::Discrete {
            let place = (part * sorted.len() as f64).ceil() as usize;
            return ScalarValue::try_from_array(sorted, place.saturating_sub(1).min(last));
        }
        let way = part * last as f64;
        let below = (way.floor() as usize).min(last);
        let number = |place: usize| match ScalarValue::try_from_array(sorted, place)? {
            ScalarValue::Float64(Some(number)) => Ok(number),
            _ => Err(wrong_arguments("percentile_cont", &[])),
        };
        let (low, high) = (number(below)?, number((way.ceil() as usize).min(last))?);
        let between = way - below as f64;
        Ok(ScalarValue::Float64(Some(match low.partial_cmp(&high) {
            Some(Ordering::Equal) => low,
            _ => one_nan(low + between * (high - low)),
        })))
    }
}

impl Accumulator for Ordered {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(found) = values.first() else { return Ok(()) };
        // The fraction is the same for all rows of a group.
        if let Some(parts) = values.get(1).filter(|parts| self.part.is_null() && !parts.is_empty()) {
            self.part = ScalarValue::try_from_array(parts, 0)?;
        }
        self.keep(found)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let sorted = self.sorted()?;
        match &self.part {
            _ if self.kind == Kind::Mode => self.mode(&sorted),
            ScalarValue::Float64(part) => self.at(&sorted, *part),
            // Without values, an array of fractions has no result either.
            ScalarValue::List(parts) if !parts.is_null(0) && !sorted.is_empty() => {
                let parts = parts.value(0);
                let parts = parts.as_primitive_opt::<arrow_array::types::Float64Type>();
                let found =
                    parts.into_iter().flatten().map(|part| self.at(&sorted, part)).collect::<Result<Vec<_>>>()?;
                Ok(ScalarValue::List(ScalarValue::new_list(&found, &self.of, true)))
            }
            _ => ScalarValue::try_from(&DataType::new_list(self.of.clone(), true)),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.iter().map(|values| values.get_array_memory_size()).sum::<usize>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut all = Vec::new();
        for values in &self.values {
            for row in 0..values.len() {
                all.push(ScalarValue::try_from_array(values, row)?);
            }
        }
        Ok(vec![ScalarValue::List(ScalarValue::new_list(&all, &self.of, true)), self.part.clone()])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [lists, parts] = states else { return Err(wrong_arguments("a state", &[])) };
        let Some(lists) = lists.as_list_opt::<i32>() else { return Err(wrong_arguments("a state", &[])) };
        for row in (0..lists.len()).filter(|row| lists.is_valid(*row)) {
            self.keep(&lists.value(row))?;
        }
        for row in (0..parts.len()).filter(|row| parts.is_valid(*row)) {
            self.part = ScalarValue::try_from_array(parts, row)?;
        }
        Ok(())
    }
}
