//! Counts the memory of aggregates that keep all values.
//!
//! DataFusion counts only the sixteen bytes of a text's reference.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BooleanArray};
use arrow_schema::DataType;
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use crate::error::{carried, data_error};

/// An accumulator that keeps its values.
#[derive(Debug)]
pub(super) struct Gathered {
    inner: Box<dyn Accumulator>,
    /// The size of the texts among the values, in bytes.
    bytes: usize,
    /// The size of the results returned so far, in bytes: one result for each group, or for each
    /// row of a window.
    given: usize,
}

/// The maximum size of all results of one accumulator, in bytes. It is not a setting, because an
/// accumulator has no access to settings.
const GIVEN_BYTES_MAX: usize = 128 << 20;

impl Gathered {
    pub(super) fn new(inner: Box<dyn Accumulator>) -> Gathered {
        Gathered { inner, bytes: 0, given: 0 }
    }
}

impl Accumulator for Gathered {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.bytes += text_bytes_of(values);
        self.inner.update_batch(values)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let result = self.inner.evaluate()?;
        self.given = self.given.saturating_add(result.size());
        if self.given > GIVEN_BYTES_MAX {
            let text =
                format!("the results of an aggregate for each row of a window take more than {GIVEN_BYTES_MAX} bytes");
            return Err(carried(data_error(text).with_sqlstate("53200")));
        }
        Ok(result)
    }

    fn size(&self) -> usize {
        self.inner.size() + self.bytes
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.inner.state()
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.bytes += text_bytes_of(states);
        self.inner.merge_batch(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.bytes = self.bytes.saturating_sub(text_bytes_of(values));
        self.inner.retract_batch(values)
    }

    fn supports_retract_batch(&self) -> bool {
        self.inner.supports_retract_batch()
    }
}

/// The same for many groups.
pub(super) struct GatheredGroups {
    inner: Box<dyn GroupsAccumulator>,
    bytes: usize,
}

impl GatheredGroups {
    pub(super) fn new(inner: Box<dyn GroupsAccumulator>) -> GatheredGroups {
        GatheredGroups { inner, bytes: 0 }
    }

    /// Records the values that were passed on.
    fn gave(&mut self, emit_to: EmitTo, given: &[ArrayRef]) {
        self.bytes = match emit_to {
            EmitTo::All => 0,
            EmitTo::First(_) => self.bytes.saturating_sub(text_bytes_of(given)),
        };
    }
}

impl GroupsAccumulator for GatheredGroups {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        count: usize,
    ) -> Result<()> {
        self.bytes += text_bytes_of(values);
        self.inner.update_batch(values, groups, filter, count)
    }

    fn evaluate(&mut self, emit_to: EmitTo) -> Result<ArrayRef> {
        let given = self.inner.evaluate(emit_to)?;
        self.gave(emit_to, std::slice::from_ref(&given));
        Ok(given)
    }

    fn state(&mut self, emit_to: EmitTo) -> Result<Vec<ArrayRef>> {
        let given = self.inner.state(emit_to)?;
        self.gave(emit_to, &given);
        Ok(given)
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], count: usize) -> Result<()> {
        self.bytes += text_bytes_of(states);
        self.inner.merge_batch(states, groups, count)
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        self.inner.convert_to_state(values, filter)
    }

    fn size(&self) -> usize {
        self.inner.size() + self.bytes
    }
}

fn text_bytes_of(arrays: &[ArrayRef]) -> usize {
    arrays.iter().map(|array| text_bytes(array.as_ref())).sum()
}

/// The size of the texts that an array refers to, in bytes.
fn text_bytes(array: &dyn Array) -> usize {
    let sum = |lengths: &mut dyn Iterator<Item = u32>| lengths.map(|length| length as usize).sum();
    match array.data_type() {
        DataType::Utf8View => sum(&mut array.as_string_view().lengths()),
        DataType::BinaryView => sum(&mut array.as_binary_view().lengths()),
        DataType::List(_) => (0..array.len())
            .filter(|row| array.is_valid(*row))
            .map(|row| text_bytes(array.as_list::<i32>().value(row).as_ref()))
            .sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::StringViewArray;
    use arrow_array::builder::{ListBuilder, StringViewBuilder};

    use super::*;

    #[test]
    fn texts_count_with_all_their_bytes() {
        let long = "x".repeat(1_000);
        let texts = StringViewArray::from(vec![Some(long.as_str()), None, Some("short")]);
        assert_eq!(text_bytes(&texts), 1_005);
        assert_eq!(text_bytes(&texts.slice(1, 2)), 5);
        let mut lists = ListBuilder::new(StringViewBuilder::new());
        lists.append_value([Some(long.as_str()), Some("a")]);
        lists.append_null();
        assert_eq!(text_bytes_of(&[Arc::new(lists.finish())]), 1_001);
    }
}
