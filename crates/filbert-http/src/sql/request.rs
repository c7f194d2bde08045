//! The body of `POST /_sql`: a statement and the values of its parameters, borrowed from the body's
//! bytes.

use std::borrow::Cow;
use std::fmt;

use filbert_data::Value;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use super::meter::Meter;
use super::values::Values;
use crate::failure::Failure;

/// The maximum number of bytes of a body in an error text.
const SHOWN_MAX: usize = 200;

/// The statement of a body.
#[derive(Debug)]
pub(crate) enum Request<'a> {
    /// A statement that runs once.
    Single {
        /// Its text.
        text: Cow<'a, str>,
        /// The values of its parameters.
        args: Vec<Value<'a>>,
    },
    /// A statement with many rows of values, which are not parsed yet.
    Bulk {
        /// Its text.
        text: Cow<'a, str>,
    },
}

/// Parses a body. The rows of `bulk_args` are parsed later, in [`super::bulk`].
///
/// # Errors
/// It is not JSON, or not an object with `stmt` and at most one of `args` and `bulk_args`.
pub(crate) fn parse<'b>(body: &'b [u8], meter: &Meter) -> Result<Request<'b>, Failure> {
    if body.is_empty() {
        return Err(Failure::parse("the body is missing, expected {\"stmt\": \"..\"}"));
    }
    let mut parts = Parts { stops_at_bulk: true, ..Parts::new(meter) };
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let parsed = parts.by_ref().deserialize(&mut deserializer).and_then(|()| deserializer.end());
    if parts.stopped {
        // The statement came first, as clients write it. The parser of the rows reads the rest of
        // the body.
        return match parts.text {
            Some(text) => Ok(Request::Bulk { text }),
            None => parse_behind_rows(body, meter),
        };
    }
    parsed.map_err(|error| meter.refusal().unwrap_or_else(|| unreadable(body, &error)))?;
    request(parts)
}

/// Parses a body with `bulk_args` before the statement.
fn parse_behind_rows<'b>(body: &'b [u8], meter: &Meter) -> Result<Request<'b>, Failure> {
    let mut parts = Parts::new(meter);
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let parsed = parts.by_ref().deserialize(&mut deserializer).and_then(|()| deserializer.end());
    parsed.map_err(|error| meter.refusal().unwrap_or_else(|| unreadable(body, &error)))?;
    request(parts)
}

fn request<'b>(parts: Parts<'b, '_>) -> Result<Request<'b>, Failure> {
    let Some(text) = parts.text else {
        return Err(Failure::parse("the field \"stmt\" is missing, expected {\"stmt\": \"..\"}"));
    };
    match (parts.args, parts.has_rows) {
        (Some(args), true) if !args.is_empty() => Err(both()),
        (_, true) => Ok(Request::Bulk { text }),
        (args, false) => Ok(Request::Single { text, args: args.unwrap_or_default() }),
    }
}

/// The error of a body with both kinds of values.
pub(crate) fn both() -> Failure {
    Failure::parse("the body has args and bulk_args, expected one of them")
}

/// The error of a body that cannot be parsed.
pub(crate) fn unreadable(body: &[u8], error: &serde_json::Error) -> Failure {
    let shown = String::from_utf8_lossy(body.get(..SHOWN_MAX).unwrap_or(body));
    let more = if body.len() > SHOWN_MAX { ".." } else { "" };
    Failure::parse(format!(
        "the body cannot be read: {error}; expected a text \"stmt\" and a list \"args\" or \"bulk_args\", found {shown:?}{more}"
    ))
}

/// The fields of a body.
struct Parts<'a, 'm> {
    meter: &'m Meter,
    text: Option<Cow<'a, str>>,
    args: Option<Vec<Value<'a>>>,
    has_rows: bool,
    /// Whether to stop parsing where the rows begin.
    stops_at_bulk: bool,
    stopped: bool,
}

impl<'a, 'm> Parts<'a, 'm> {
    fn new(meter: &'m Meter) -> Self {
        Parts { meter, text: None, args: None, has_rows: false, stops_at_bulk: false, stopped: false }
    }

    fn by_ref(&mut self) -> PartsSeed<'_, 'a, 'm> {
        PartsSeed(self)
    }
}

struct PartsSeed<'p, 'a, 'm>(&'p mut Parts<'a, 'm>);

impl<'de> DeserializeSeed<'de> for PartsSeed<'_, 'de, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for PartsSeed<'_, 'de, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with \"stmt\"")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let parts = self.0;
        while let Some(key) = map.next_key::<Key>()? {
            match key {
                Key::Text => parts.text = Some(map.next_value_seed(Text)?),
                Key::Args => parts.args = map.next_value_seed(Args(parts.meter))?,
                Key::Rows if parts.stops_at_bulk && parts.args.as_ref().is_none_or(Vec::is_empty) => {
                    parts.stopped = true;
                    return Err(A::Error::custom("rows follow"));
                }
                Key::Rows => parts.has_rows = map.next_value::<Option<IgnoredAny>>()?.is_some(),
            }
        }
        Ok(())
    }
}

/// The names of the fields.
#[derive(Clone, Copy, serde::Deserialize)]
pub(crate) enum Key {
    #[serde(rename = "stmt")]
    Text,
    #[serde(rename = "args")]
    Args,
    #[serde(rename = "bulk_args")]
    Rows,
}

/// Parses a text. It is borrowed if it has no escapes.
pub(crate) struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cow<'de, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Cow<'de, str>, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// Parses a list of values, or null.
struct Args<'m>(&'m Meter);

impl<'de> DeserializeSeed<'de> for Args<'_> {
    type Value = Option<Vec<Value<'de>>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_option(self)
    }
}

impl<'de> Visitor<'de> for Args<'_> {
    type Value = Option<Vec<Value<'de>>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of values")
    }

    fn visit_none<E: Error>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        let mut values = Vec::new();
        deserializer.deserialize_seq(Values(&mut values, self.0))?;
        Ok(Some(values))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn single(body: &str) -> Result<(String, Vec<Value<'_>>), String> {
        match parse(body.as_bytes(), &Meter::unlimited()) {
            Ok(Request::Single { text, args }) => Ok((text.into_owned(), args)),
            Ok(Request::Bulk { text }) => Err(format!("bulk {text}")),
            Err(failure) => Err(failure.message()),
        }
    }

    #[test]
    fn a_statement_and_its_values_are_read() {
        assert_eq!(single(r#"{"stmt": "select 1"}"#), Ok(("select 1".into(), vec![])));
        let (text, args) = single(r#" {"args": [1, "a", null], "stmt": "select \"x\""} "#).unwrap();
        assert_eq!((text.as_str(), args.len()), ("select \"x\"", 3));
        assert_eq!(args[1], Value::text("a"));
        assert_eq!(single(r#"{"stmt": "s", "args": null, "bulk_args": null}"#), Err("bulk s".into()));
    }

    #[test]
    fn rows_are_left_for_later() {
        assert_eq!(single(r#"{"stmt": "s", "bulk_args": [[1"#), Err("bulk s".into()));
        assert_eq!(single(r#"{"bulk_args": [[1], [2]], "stmt": "s"}"#), Err("bulk s".into()));
        assert_eq!(single(r#"{"stmt": "s", "args": [], "bulk_args": [[1], [2]]}"#), Err("bulk s".into()));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for (body, part) in [
            ("", "the body is missing"),
            ("{", "EOF while parsing an object"),
            ("[]", "expected an object with \"stmt\""),
            ("{}", "the field \"stmt\" is missing"),
            (r#"{"stmt": 1}"#, "expected a text"),
            (r#"{"stmt": "s"} x"#, "trailing characters"),
            (r#"{"stmt": "s", "more": 1}"#, "unknown variant `more`, expected one of `stmt`"),
            (r#"{"stmt": "s", "args": 1}"#, "expected a list of values"),
            (r#"{"stmt": "s", "args": [1], "bulk_args": [[1]]}"#, "expected one of them"),
            (r#"{"bulk_args": [[1]], "args": [1], "stmt": "s"}"#, "expected one of them"),
        ] {
            let message = single(body).unwrap_err();
            assert!(message.contains(part), "{body}: {message}");
        }
        assert!(parse(&[b'{', 0xff], &Meter::unlimited()).is_err());
    }
}
