//! Accumulators of moments: for all rows, for sliding windows, and for many groups at once.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, Float64Array};
use arrow_schema::{DataType, Field, FieldRef};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use super::super::super::row::wrong_arguments;
use super::{Figure, Moments};

const NAMES: [&str; 6] = ["count", "sum_x", "sum_y", "xx", "yy", "xy"];

/// The state between the parts of an aggregate.
pub(in super::super) fn state_fields(name: &str) -> Vec<FieldRef> {
    NAMES.map(|part| Arc::new(Field::new(format!("{name}[{part}]"), DataType::Float64, true))).to_vec()
}

fn state_of(moments: &Moments) -> [f64; 6] {
    [moments.count, moments.sum_x, moments.sum_y, moments.xx, moments.yy, moments.xy]
}

fn arrays_of(all: &[Moments]) -> Vec<ArrayRef> {
    let part = |at: usize| all.iter().map(move |moments| state_of(moments).get(at).copied());
    (0..NAMES.len()).map(|at| Arc::new(Float64Array::from_iter(part(at))) as ArrayRef).collect()
}

/// The moments from the arrays of a state.
fn moments_in(states: &[ArrayRef]) -> Result<Vec<Moments>> {
    let parts: Option<Vec<&Float64Array>> =
        states.iter().map(|state| state.as_primitive_opt::<Float64Type>()).collect();
    let Some([count, sum_x, sum_y, xx, yy, xy]) = parts.as_deref() else {
        return Err(wrong_arguments("a state", &[]));
    };
    let of_row = |row: usize| Moments {
        count: count.value(row),
        sum_x: sum_x.value(row),
        sum_y: sum_y.value(row),
        xx: xx.value(row),
        yy: yy.value(row),
        xy: xy.value(row),
    };
    Ok((0..count.len()).map(of_row).collect())
}

/// The pairs of a batch, `x` first; `None` if one of them is null.
fn pairs(values: &[ArrayRef]) -> Result<impl Iterator<Item = Option<(f64, f64)>> + '_> {
    let floats = |array: &'_ ArrayRef| array.as_primitive_opt::<Float64Type>().cloned();
    let (y, x) = match values {
        [x] => (None, floats(x)),
        [y, x] => (floats(y).map(Some).ok_or_else(|| wrong_arguments("a pair", &[]))?, floats(x)),
        _ => (None, None),
    };
    let Some(x) = x else { return Err(wrong_arguments("a moment", &[])) };
    Ok((0..x.len()).map(move |row| {
        let y = match &y {
            None => 0.0,
            Some(y) => y.is_valid(row).then(|| y.value(row))?,
        };
        x.is_valid(row).then(|| (x.value(row), y))
    }))
}

/// The moments of all rows.
#[derive(Debug)]
pub(in super::super) struct Whole {
    figure: Figure,
    moments: Moments,
}

impl Whole {
    pub(in super::super) fn of(figure: Figure) -> Whole {
        Whole { figure, moments: Moments::default() }
    }
}

impl Accumulator for Whole {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        pairs(values)?.flatten().try_for_each(|(x, y)| self.moments.add(x, y))
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.figure.of(&self.moments)))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(state_of(&self.moments).map(|part| ScalarValue::Float64(Some(part))).to_vec())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        moments_in(states)?.iter().try_for_each(|other| self.moments.merge(other))
    }
}

/// The pairs of a sliding window. The moments are computed again for each position, because
/// subtracting values would leave rounding errors.
#[derive(Debug)]
pub(in super::super) struct Sliding {
    figure: Figure,
    pairs: VecDeque<Option<(f64, f64)>>,
}

impl Sliding {
    pub(in super::super) fn of(figure: Figure) -> Sliding {
        Sliding { figure, pairs: VecDeque::new() }
    }

    fn moments(&self) -> Result<Moments> {
        let mut moments = Moments::default();
        self.pairs.iter().flatten().try_for_each(|(x, y)| moments.add(*x, *y))?;
        Ok(moments)
    }
}

impl Accumulator for Sliding {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.pairs.extend(pairs(values)?);
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let gone = values.first().map_or(0, |values| values.len());
        self.pairs.drain(..gone.min(self.pairs.len()));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.figure.of(&self.moments()?)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.pairs.capacity() * size_of::<Option<(f64, f64)>>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(state_of(&self.moments()?).map(|part| ScalarValue::Float64(Some(part))).to_vec())
    }

    fn merge_batch(&mut self, _: &[ArrayRef]) -> Result<()> {
        Err(wrong_arguments("a window", &[]))
    }
}

/// The moments of many groups.
#[derive(Debug)]
pub(in super::super) struct Groups {
    figure: Figure,
    moments: Vec<Moments>,
}

impl Groups {
    pub(in super::super) fn of(figure: Figure) -> Groups {
        Groups { figure, moments: Vec::new() }
    }

    /// Makes room for all groups.
    fn grow(&mut self, groups: usize) {
        if self.moments.len() < groups {
            self.moments.resize(groups, Moments::default());
        }
    }
}

/// Whether a filter accepts a row.
fn takes(filter: Option<&BooleanArray>, row: usize) -> bool {
    filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl GroupsAccumulator for Groups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.grow(count);
        for ((row, pair), group) in pairs(values)?.enumerate().zip(groups) {
            if let (Some((x, y)), Some(moments)) = (pair, self.moments.get_mut(*group))
                && takes(filter, row)
            {
                moments.add(x, y)?;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let all = emit_to.take_needed(&mut self.moments);
        Ok(Arc::new(Float64Array::from_iter(all.iter().map(|moments| self.figure.of(moments)))))
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(arrays_of(&emit_to.take_needed(&mut self.moments)))
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.grow(count);
        for (other, group) in moments_in(states)?.iter().zip(groups) {
            if let Some(moments) = self.moments.get_mut(*group) {
                moments.merge(other)?;
            }
        }
        Ok(())
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let mut all = Vec::with_capacity(values.first().map_or(0, |values| values.len()));
        for (row, pair) in pairs(values)?.enumerate() {
            let mut moments = Moments::default();
            if let Some((x, y)) = pair.filter(|_| takes(filter, row)) {
                moments.add(x, y)?;
            }
            all.push(moments);
        }
        Ok(arrays_of(&all))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.moments.capacity() * size_of::<Moments>()
    }
}
