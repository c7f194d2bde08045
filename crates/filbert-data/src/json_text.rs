//! Values as JSON text for display. Objects of all formats are shown in the same way.

use std::fmt::Write;

use crate::items::broken;
use crate::{DataError, Input, TypeId, Value, type_id};

/// A builder of JSON text. The size of the text is limited in proportion to the bytes of the
/// source.
pub(crate) struct JsonText {
    out: String,
    type_id: TypeId,
    /// The remaining budget. Without it, broken positions could write the same bytes again and
    /// again.
    left: usize,
}

impl JsonText {
    /// A builder for an object of `bytes` bytes.
    pub(crate) fn new(type_id: TypeId, bytes: usize) -> JsonText {
        // A byte holds eight booleans, and a decimal has less than three digits for each of its
        // bytes.
        JsonText { out: String::new(), type_id, left: bytes.saturating_mul(8).saturating_add(64) }
    }

    /// Returns the text.
    pub(crate) fn finish(self) -> String {
        self.out
    }

    /// Writes a list of `length` items in these brackets. `write` writes the item with a given
    /// index.
    ///
    /// # Errors
    ///
    /// `write` returns an error.
    pub(crate) fn list(
        &mut self,
        [open, close]: [char; 2],
        length: usize,
        mut write: impl FnMut(&mut JsonText, usize) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        self.out.push(open);
        for number in 0..length {
            if number > 0 {
                self.out.push(',');
            }
            write(self, number)?;
        }
        self.out.push(close);
        Ok(())
    }

    /// Writes a field's name.
    pub(crate) fn name(&mut self, name: &str) {
        self.text(name);
        self.out.push(':');
    }

    /// Writes a value.
    ///
    /// # Errors
    ///
    /// The remaining budget is too small.
    pub(crate) fn value(&mut self, value: &Value<'_>) -> Result<(), DataError> {
        let before = self.out.len();
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Boolean(value) => self.show(value),
            Value::Int8(value) => self.show(value),
            Value::Int16(value) => self.show(value),
            Value::Int32(value) => self.show(value),
            Value::Int64(value) => self.show(value),
            // JSON has no numbers for NaN and infinities.
            Value::Float32(value) if !value.is_finite() => self.quote(value),
            Value::Float64(value) if !value.is_finite() => self.quote(value),
            // `Debug` shows large numbers with an exponent instead of hundreds of digits.
            Value::Float32(value) => self.show(format_args!("{value:?}")),
            Value::Float64(value) => self.show(format_args!("{value:?}")),
            Value::Decimal(value) => self.show(value),
            Value::Text(text) => self.text(text),
            Value::Json(text) => self.out.push_str(text),
            Value::Date(value) => self.quote(value),
            Value::Time(value) => self.quote(value),
            Value::Timestamp(value) => self.quote(value.format("%Y-%m-%dT%H:%M:%S%.f")),
            Value::TimestampTz(value) if value.offset().local_minus_utc() % 60 != 0 => {
                self.quote(value.format("%Y-%m-%dT%H:%M:%S%.f%::z"));
            }
            Value::TimestampTz(value) => self.quote(value.format("%Y-%m-%dT%H:%M:%S%.f%:z")),
            Value::Uuid(value) => self.quote(value),
            Value::Array(items) => {
                return self.list(['[', ']'], items.len(), |json, number| {
                    items.get(number).map_or(Ok(()), |item| json.value(item))
                });
            }
            Value::Bytes(_) => self.quote(value),
            Value::Interval(value) => self.quote(value),
            Value::Object(blob) => self.quote(type_id(blob).unwrap_or(TypeId::NULL)),
        }
        // Up to 40 bytes cost 1, and each further byte costs 1.
        let written = (self.out.len() - before).checked_sub(40).map_or(1, |beyond| beyond + 1);
        self.charge(written)
    }

    /// Subtracts an amount from the remaining budget.
    ///
    /// # Errors
    ///
    /// The remaining budget is too small.
    pub(crate) fn charge(&mut self, amount: usize) -> Result<(), DataError> {
        self.left = self.left.checked_sub(amount).ok_or_else(|| {
            broken(&Input::new(self.type_id, &[]), "parts that share bytes", "parts one after the other")
        })?;
        Ok(())
    }

    fn show(&mut self, value: impl std::fmt::Display) {
        // Writing to a `String` cannot fail.
        let _ = write!(self.out, "{value}");
    }

    fn quote(&mut self, value: impl std::fmt::Display) {
        let _ = write!(self.out, "\"{value}\"");
    }

    fn text(&mut self, text: &str) {
        self.out.push('"');
        for character in text.chars() {
            match character {
                '"' | '\\' => self.out.extend(['\\', character]),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\0'..' ' => {
                    let _ = write!(self.out, "\\u{:04x}", u32::from(character));
                }
                _ => self.out.push(character),
            }
        }
        self.out.push('"');
    }
}
