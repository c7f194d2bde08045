//! Rows of `bulk_args`: parsed in one pass, value by value into one list, batch by batch for whoever takes them.

use std::fmt;

use filbert_data::Value;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::request::{self, Key, unreadable};
use super::values::One;
use crate::failure::Failure;

/// Bodies of up to this many bytes are parsed whole before their first row is taken. Larger ones are parsed twice, first to see
/// whether they can be, so that their values need no memory but for a batch.
const WHOLE_BYTES_MAX: usize = 1 << 20;

/// Rows that are taken at a time of larger bodies.
const BATCH_ROWS: usize = 4096;

/// What became of one row in parsing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Its values are in the list.
    Fits,
    /// It has this many values, and none of them is in the list.
    Length(usize),
    /// It is no list.
    NoList,
}

/// Takes rows: the values of those that fit, one after the other, and the shape of each.
pub(crate) type Take<'t, 'de> = &'t mut dyn FnMut(&mut [Value<'de>], &[Shape]);

/// Parses the rows of a body of `width` values each, and has them taken in order, once all of the body can be parsed.
///
/// # Errors
/// The body cannot be parsed. No row was taken then.
pub(crate) fn parse<'de>(body: &'de [u8], width: usize, take: Take<'_, 'de>) -> Result<(), Failure> {
    if body.len() <= WHOLE_BYTES_MAX {
        return parse_batches(body, width, usize::MAX, take);
    }
    parse_batches(body, width, BATCH_ROWS, &mut |_, _| {})?;
    parse_batches(body, width, BATCH_ROWS, take)
}

fn parse_batches<'de>(body: &'de [u8], width: usize, batch_rows: usize, take: Take<'_, 'de>) -> Result<(), Failure> {
    let mut batch = Batch { width, batch_rows, values: Vec::new(), shapes: Vec::new(), take };
    each_row(body, &mut RowsSeed(&mut batch))?;
    batch.give();
    Ok(())
}

/// The rows of a body, all of them at once; `None` for those that are no lists.
///
/// # Errors
/// The body cannot be parsed.
pub(crate) fn all(body: &[u8]) -> Result<Vec<Option<Vec<Value<'_>>>>, Failure> {
    let mut rows = Vec::new();
    each_row(body, &mut AllRows(&mut rows))?;
    Ok(rows)
}

/// How many values the first row of a body has; 0 if the body cannot be parsed.
pub(crate) fn width(body: &[u8]) -> usize {
    let rows = all(body).unwrap_or_default();
    rows.first().and_then(Option::as_ref).map_or(0, Vec::len)
}

fn each_row<'de, R: Rows<'de>>(body: &'de [u8], rows: &mut R) -> Result<(), Failure> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let mut has_args = false;
    let parsed = deserializer.deserialize_map(BodyVisitor { rows, has_args: &mut has_args });
    parsed.and_then(|()| deserializer.end()).map_err(|error| unreadable(body, &error))?;
    if has_args { Err(request::both()) } else { Ok(()) }
}

/// Parses the list of rows.
trait Rows<'de> {
    fn rows<A: SeqAccess<'de>>(&mut self, list: A) -> Result<(), A::Error>;
}

struct BodyVisitor<'r, R> {
    rows: &'r mut R,
    has_args: &'r mut bool,
}

impl<'de, R: Rows<'de>> Visitor<'de> for BodyVisitor<'_, R> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with \"stmt\"")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = false;
        while let Some(key) = map.next_key::<Key>()? {
            match key {
                Key::Text => _ = map.next_value::<IgnoredAny>()?,
                Key::Args => {
                    *self.has_args = map.next_value::<Option<Vec<IgnoredAny>>>()?.is_some_and(|args| !args.is_empty())
                }
                // A second list would come after the first one's rows were taken.
                Key::Rows if seen => return Err(A::Error::custom("\"bulk_args\" stands there twice")),
                Key::Rows => {
                    seen = true;
                    map.next_value_seed(RowList(&mut *self.rows))?;
                }
            }
        }
        Ok(())
    }
}

/// The list of rows, or null.
struct RowList<'r, R>(&'r mut R);

impl<'de, R: Rows<'de>> DeserializeSeed<'de> for RowList<'_, R> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, R: Rows<'de>> Visitor<'de> for RowList<'_, R> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of rows")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<(), A::Error> {
        self.0.rows(list)
    }
}

struct AllRows<'r, 'de>(&'r mut Vec<Option<Vec<Value<'de>>>>);

impl<'de> Rows<'de> for AllRows<'_, 'de> {
    fn rows<A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        let mut values = Vec::new();
        while let Some(shape) = list.next_element_seed(Row { values: &mut values, width: None })? {
            let row = std::mem::take(&mut values);
            self.0.push((shape == Shape::Fits).then_some(row));
        }
        Ok(())
    }
}

/// Rows that are parsed and not taken yet.
struct Batch<'t, 'de> {
    width: usize,
    batch_rows: usize,
    values: Vec<Value<'de>>,
    shapes: Vec<Shape>,
    take: Take<'t, 'de>,
}

impl<'de> Batch<'_, 'de> {
    fn give(&mut self) {
        if !self.shapes.is_empty() {
            (self.take)(&mut self.values, &self.shapes);
            self.values.clear();
            self.shapes.clear();
        }
    }
}

struct RowsSeed<'b, 't, 'de>(&'b mut Batch<'t, 'de>);

impl<'de> Rows<'de> for RowsSeed<'_, '_, 'de> {
    fn rows<A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        let batch = &mut *self.0;
        while let Some(shape) = list.next_element_seed(Row { values: &mut batch.values, width: Some(batch.width) })? {
            batch.shapes.push(shape);
            if batch.shapes.len() >= batch.batch_rows {
                batch.give();
            }
        }
        Ok(())
    }
}

/// One row, whose values go to the end of the list.
struct Row<'r, 'de> {
    values: &'r mut Vec<Value<'de>>,
    /// How many values it should have; `None` = any number.
    width: Option<usize>,
}

impl<'de> DeserializeSeed<'de> for Row<'_, 'de> {
    type Value = Shape;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Shape, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Whatever is no list is no row, which its result tells; the others go in.
impl<'de> Visitor<'de> for Row<'_, 'de> {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Shape, A::Error> {
        let start = self.values.len();
        let mut found = 0;
        while let Some(value) = items.next_element_seed(One)? {
            found += 1;
            if self.width.is_none_or(|width| found <= width) {
                self.values.push(value);
            }
        }
        if self.width.is_none_or(|width| found == width) {
            return Ok(Shape::Fits);
        }
        self.values.truncate(start);
        Ok(Shape::Length(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Shape::NoList)
    }

    fn visit_unit<E: Error>(self) -> Result<Shape, E> {
        Ok(Shape::NoList)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Shape, E> {
        Ok(Shape::NoList)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Shape, E> {
        Ok(Shape::NoList)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Shape, E> {
        Ok(Shape::NoList)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Shape, E> {
        Ok(Shape::NoList)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Shape, E> {
        Ok(Shape::NoList)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(body: &[u8], width: usize) -> Result<(Vec<String>, Vec<Shape>), String> {
        let (mut values, mut shapes) = (Vec::new(), Vec::new());
        let mut take = |batch: &mut [Value<'_>], rows: &[Shape]| {
            values.extend(batch.iter().map(Value::to_string));
            shapes.extend_from_slice(rows);
        };
        parse(body, width, &mut take).map_err(|failure| failure.message())?;
        Ok((values, shapes))
    }

    #[test]
    fn rows_that_do_not_fit_leave_no_values() {
        let body = br#"{"stmt": "s", "bulk_args": [[1, "a"], [2], [3, "c", 4], 5, {"a": [6]}, null, "x", [7, [8]]]}"#;
        let (values, shapes) = parsed(body, 2).unwrap();
        assert_eq!(values, ["1", "a", "7", "[8]"]);
        let no_list = Shape::NoList;
        assert_eq!(
            shapes,
            [Shape::Fits, Shape::Length(1), Shape::Length(3), no_list, no_list, no_list, no_list, Shape::Fits]
        );
    }

    #[test]
    fn nothing_is_taken_of_a_body_that_breaks_off() {
        let mut rows = b"{\"bulk_args\": [[1]".to_vec();
        for _ in 0..BATCH_ROWS * 100 {
            rows.extend_from_slice(b",[1]");
        }
        assert!(rows.len() > WHOLE_BYTES_MAX);
        for end in ["", "]", "], \"args\": [1]}", ",[1e999]]}", "]} x", "], \"bulk_args\": [[1]]}"] {
            let mut body = rows.clone();
            body.extend_from_slice(end.as_bytes());
            let mut taken = 0;
            assert!(parse(&body, 1, &mut |_, shapes| taken += shapes.len()).is_err(), "{end}");
            // What is found to be wrong after the rows were parsed is found in the first pass.
            assert_eq!(taken, 0, "{end}");
        }
        rows.extend_from_slice(b"]}");
        assert_eq!(parsed(&rows, 1).unwrap().1.len(), BATCH_ROWS * 100 + 1);
    }

    #[test]
    fn rows_of_any_length_are_kept_apart() {
        let rows = all(br#"{"bulk_args": [[1, "a"], 2, []], "stmt": "s"}"#).unwrap();
        assert_eq!(rows, [Some(vec![Value::Int64(1), Value::text("a")]), None, Some(vec![])]);
        assert_eq!(all(br#"{"bulk_args": null, "stmt": "s"}"#).unwrap().len(), 0);
    }
}
