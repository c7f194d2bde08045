//! Values of JSON as values of statements: texts borrowed where they have no escapes, objects as documents.

use std::borrow::Cow;
use std::fmt;

use filbert_data::{FieldType, Value};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::request::Text;

/// How deep objects and lists may stand within each other: deeper than any document of a person, and far from what a thread's
/// stack holds.
pub(crate) const DEPTH_MAX: usize = 100;

/// Appends the items of a list.
pub(crate) struct Values<'v, 'de>(pub(crate) &'v mut Vec<Value<'de>>);

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
        while let Some(value) = items.next_element_seed(One)? {
            self.0.push(value);
        }
        Ok(())
    }
}

/// One value.
pub(crate) struct One;

impl<'de> DeserializeSeed<'de> for One {
    type Value = Value<'de>;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value<'de>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for One {
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
        Ok(Value::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value<'de>, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(One)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    /// An object's values stay as they are written, so that their numbers keep all digits.
    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value<'de>, A::Error> {
        let mut text = String::from("{");
        while let Some(key) = fields.next_key_seed(Text)? {
            if text.len() > 1 {
                text.push(',');
            }
            text.push_str(&serde_json::to_string(&key).map_err(A::Error::custom)?);
            text.push(':');
            let value = fields.next_value::<&'de RawValue>()?.get();
            if depth(value) >= DEPTH_MAX {
                return Err(A::Error::custom(format!("an object is nested deeper than {DEPTH_MAX} levels")));
            }
            text.push_str(value);
        }
        text.push('}');
        Ok(Value::Json(Cow::Owned(text)))
    }
}

/// How deep objects and lists of a JSON text stand within each other.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest): (usize, usize) = (0, 0);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                // To the end of the text; what an escape stands before is no end.
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'\\' => _ = bytes.next(),
                        b'"' => break,
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<Value<'_>, String> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let value = One.deserialize(&mut deserializer).map_err(|error| error.to_string())?;
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
    fn objects_keep_their_text() {
        let json = |text: &str| Ok(Value::Json(Cow::Owned(text.to_owned())));
        assert_eq!(value("{}"), json("{}"));
        assert_eq!(
            value(r#"{"a": 1e400, "b": [1, {"c\n": "}\"{"}], "d":null}"#),
            json(r#"{"a":1e400,"b":[1, {"c\n": "}\"{"}],"d":null}"#)
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
        assert!(value(&object(100_000)).unwrap_err().contains("nested deeper than 100 levels"));
        assert_eq!(depth(r#"["[[[", "\"[", {"}": []}]"#), 3);
    }
}
