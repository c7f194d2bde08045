//! Values as JSON text, for people to look at: objects of any format are shown alike.

use std::fmt::Write;

use crate::parts::broken;
use crate::{DataError, Input, TypeId, Value, type_id};

/// JSON text in the making. It grows no further than the bytes justify that it is made from.
pub(crate) struct JsonText {
    out: String,
    type_id: TypeId,
    /// What may still be written: broken positions could show the same bytes again and again.
    left: usize,
}

impl JsonText {
    /// The text of an object of so many bytes.
    pub(crate) fn new(type_id: TypeId, bytes: usize) -> JsonText {
        // A byte holds eight booleans, and a decimal has less than three digits for each of its bytes.
        JsonText { out: String::new(), type_id, left: bytes.saturating_mul(8).saturating_add(64) }
    }

    /// The text.
    pub(crate) fn finish(self) -> String {
        self.out
    }

    /// Writes a list in these brackets, of so many items, by writing each item.
    ///
    /// # Errors
    ///
    /// As `write` says.
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
    /// More would be written than the bytes justify.
    pub(crate) fn value(&mut self, value: &Value<'_>) -> Result<(), DataError> {
        let before = self.out.len();
        match value {
            Value::Null => self.out.push_str("null"),
            Value::Boolean(value) => self.show(value),
            Value::Int8(value) => self.show(value),
            Value::Int16(value) => self.show(value),
            Value::Int32(value) => self.show(value),
            Value::Int64(value) => self.show(value),
            // JSON has no number for what is not finite.
            Value::Float32(value) if !value.is_finite() => self.quote(value),
            Value::Float64(value) if !value.is_finite() => self.quote(value),
            // As Debug shows them, large numbers have an exponent instead of hundreds of digits.
            Value::Float32(value) => self.show(format_args!("{value:?}")),
            Value::Float64(value) => self.show(format_args!("{value:?}")),
            Value::Decimal(value) => self.show(value),
            Value::Text(text) => self.text(text),
            Value::Json(text) => self.out.push_str(text),
            Value::Date(value) => self.quote(value),
            Value::Time(value) => self.quote(value),
            Value::Timestamp(value) => self.quote(value.format("%Y-%m-%dT%H:%M:%S%.f")),
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
        // What is short is charged as one, and all else with its length.
        let written = (self.out.len() - before).checked_sub(40).map_or(1, |beyond| beyond + 1);
        self.charge(written)
    }

    /// Takes off what may still be written.
    ///
    /// # Errors
    ///
    /// There is not so much left.
    pub(crate) fn charge(&mut self, amount: usize) -> Result<(), DataError> {
        self.left = self.left.checked_sub(amount).ok_or_else(|| {
            broken(&Input::new(self.type_id, &[]), "parts that share bytes", "parts one after the other")
        })?;
        Ok(())
    }

    fn show(&mut self, value: impl std::fmt::Display) {
        // Writing to a text cannot fail.
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
