//! Converts JSON values to values of statements. Texts without escapes are borrowed, objects become
//! documents.

use std::borrow::Cow;
use std::fmt::{self, Write};

use filbert_data::{FieldType, Value};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::meter::Meter;
use super::request::Text;

/// The maximum depth of nested objects and lists: deeper than any practical document, and far less
/// than a thread's stack can hold.
pub(crate) const DEPTH_MAX: usize = 100;

/// Appends the items of a list: the values of one statement.
pub(crate) struct Values<'v, 'de>(pub(crate) &'v mut Vec<Value<'de>>, pub(crate) &'v Meter);

impl<'de> DeserializeSeed<'de> for Values<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Values<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Values(list, meter) = self;
        while let Some(value) = items.next_element_seed(One(meter))? {
            meter.check_count(list.len())?;
            meter.push(list, value)?;
        }
        Ok(())
    }
}

/// Parses one value.
#[derive(Clone, Copy)]
pub(crate) struct One<'m>(pub(crate) &'m Meter);

impl<'de> DeserializeSeed<'de> for One<'_> {
    type Value = Value<'de>;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for One<'_> {
    type Value = Value<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value<'de>, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value<'de>, E> {
        Ok(Value::Boolean(value))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value<'de>, E> {
        Ok(Value::Int64(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value<'de>, E> {
        match i64::try_from(number) {
            Ok(number) => Ok(Value::Int64(number)),
            Err(_) => Value::Text(Cow::Owned(number.to_string())).convert(&FieldType::Decimal(None)).map_err(E::custom),
        }
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value<'de>, E> {
        Ok(Value::Float64(number))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Value<'de>, E> {
        Ok(Value::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value<'de>, E> {
        self.0.take(text.len())?;
        Ok(Value::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value<'de>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(self)? {
            self.0.push(&mut values, value)?;
        }
        Ok(Value::Array(values))
    }

    /// An object becomes the text of a JSON document.
    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Value<'de>, A::Error> {
        let mut text = String::new();
        Document { out: &mut text, meter: self.0, depth: 0 }.visit_map(fields)?;
        Ok(Value::Json(Cow::Owned(text)))
    }
}

/// Writes a parsed value as JSON, without white space and with its fields in their original order.
struct Document<'o> {
    out: &'o mut String,
    meter: &'o Meter,
    /// The number of objects and lists around it.
    depth: usize,
}

impl Document<'_> {
    fn show<E: Error>(self, value: impl fmt::Display) -> Result<(), E> {
        let before = self.out.capacity();
        write!(self.out, "{value}").map_err(E::custom)?;
        self.follow(before)
    }

    /// Counts the new capacity of the text if it has grown. Old and new memory exist at the same
    /// time while the text is copied.
    fn follow<E: Error>(&self, before: usize) -> Result<(), E> {
        let capacity = self.out.capacity();
        if capacity > before { self.meter.take(capacity) } else { Ok(()) }
    }

    fn inner<E: Error>(&mut self) -> Result<Document<'_>, E> {
        if self.depth >= DEPTH_MAX {
            return Err(E::custom(format!("an object is nested deeper than {DEPTH_MAX} levels")));
        }
        Ok(Document { out: &mut *self.out, meter: self.meter, depth: self.depth + 1 })
    }
}

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.show("null")
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.show(value)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.show(number)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.show(number)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        // The `Debug` format writes large numbers with an exponent instead of hundreds of digits.
        self.show(format_args!("{number:?}"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        let quoted = serde_json::to_string(text).map_err(E::custom)?;
        self.show(quoted)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        self.out.push('[');
        let mut is_first = true;
        loop {
            let length = self.out.len();
            if !std::mem::take(&mut is_first) {
                self.out.push(',');
            }
            if items.next_element_seed(self.inner()?)?.is_none() {
                self.out.truncate(length);
                break;
            }
        }
        self.out.push(']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<(), A::Error> {
        self.out.push('{');
        let mut is_first = true;
        while let Some(key) = fields.next_key_seed(Text)? {
            if !std::mem::take(&mut is_first) {
                self.out.push(',');
            }
            let before = self.out.capacity();
            self.out.push_str(&serde_json::to_string(&key).map_err(A::Error::custom)?);
            self.out.push(':');
            self.follow(before)?;
            fields.next_value_seed(self.inner()?)?;
        }
        self.out.push('}');
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<Value<'_>, String> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let value = One(&Meter::unlimited()).deserialize(&mut deserializer).map_err(|error| error.to_string())?;
        deserializer.end().map_err(|error| error.to_string())?;
        Ok(value)
    }

    #[test]
    fn values_are_what_json_says() {
        assert_eq!(value("null"), Ok(Value::Null));
        assert_eq!(value("-5"), Ok(Value::Int64(-5)));
        assert_eq!(value("1.5"), Ok(Value::Float64(1.5)));
        assert_eq!(value("18446744073709551615").unwrap().to_string(), "18446744073709551615");
        assert_eq!(
            value(r#"["a", [1]]"#),
            Ok(Value::Array(vec![Value::text("a"), Value::Array(vec![Value::Int64(1)])]))
        );
        assert_eq!(value(r#""a\nb""#), Ok(Value::text("a\nb")));
        assert!(matches!(value("\"ab\""), Ok(Value::Text(Cow::Borrowed("ab")))));
    }

    #[test]
    fn objects_keep_their_fields_in_order() {
        let json = |text: &str| Ok(Value::Json(Cow::Owned(text.to_owned())));
        assert_eq!(value("{}"), json("{}"));
        assert_eq!(
            value(r#"{"z": 1.5e300, "b": [1, {"c\n": "}\"{"}, []], "a":null}"#),
            json(r#"{"z":1.5e300,"b":[1,{"c\n":"}\"{"},[]],"a":null}"#)
        );
        assert_eq!(value(r#"[{"a":1}]"#), Ok(Value::Array(vec![json(r#"{"a":1}"#).unwrap()])));
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |count: usize| format!("{}1{}", "[".repeat(count), "]".repeat(count));
        assert!(value(&nested(90)).is_ok());
        assert!(value(&nested(100_000)).unwrap_err().contains("recursion limit"));
        let object = |count: usize| format!("{{\"a\": {}}}", nested(count));
        assert!(value(&object(90)).is_ok());
        assert!(value(&object(110)).unwrap_err().contains("nested deeper than 100 levels"));
        assert!(value(&object(100_000)).is_err());
    }
}
