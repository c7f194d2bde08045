//! Parses the rows of `bulk_args`. The values of all rows go into one list, which is passed on
//! batch by batch.

use std::fmt;

use filbert_data::Value;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::meter::Meter;
use super::request::{self, Key, unreadable};
use super::values::One;
use crate::failure::Failure;

/// The maximum size of a body that is parsed as a whole before its first row is passed on. Larger
/// bodies are parsed twice: the first pass checks the syntax, so that the values need memory for
/// only one batch.
const WHOLE_BYTES_MAX: usize = 1 << 20;

/// The number of rows of a batch of a larger body.
const BATCH_ROWS: usize = 4096;

/// The result of parsing one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// The row has the right number of values. They are in the list.
    Fits,
    /// The row has this wrong number of values. None of them is in the list.
    Length(usize),
    /// The row is not a list.
    NoList,
}

/// Receives a batch: the values of all rows with [`Shape::Fits`], and the shape of every row.
pub(crate) type Take<'t, 'de> = &'t mut dyn FnMut(&mut [Value<'de>], &[Shape]);

/// Receives the number of rows before the first batch.
pub(crate) type Begin<'t> = &'t mut dyn FnMut(usize) -> Result<(), Failure>;

/// Parses the rows of a body. The whole body is checked first, and `begin` receives the number of
/// rows. Then `take` receives the rows in order. A row should have `width` values.
///
/// # Errors
/// The body cannot be parsed, there is not enough memory for its values, or `begin` returns an
/// error. No row is passed on then.
pub(crate) fn parse<'t, 'de>(
    body: &'de [u8],
    width: usize,
    meter: &'t Meter,
    begin: Begin<'_>,
    take: Take<'t, 'de>,
) -> Result<(), Failure> {
    if body.len() <= WHOLE_BYTES_MAX {
        let mut batch = Batch::new(width, usize::MAX, meter, take);
        each_row(body, meter, &mut RowsSeed(&mut batch))?;
        begin(batch.shapes.len())?;
        batch.give();
        return Ok(());
    }
    let mut count = 0;
    parse_batches(body, width, meter, &mut |_, shapes| count += shapes.len())?;
    begin(count)?;
    parse_batches(body, width, meter, take)
}

fn parse_batches<'t, 'de>(body: &'de [u8], width: usize, meter: &'t Meter, take: Take<'t, 'de>) -> Result<(), Failure> {
    let mut batch = Batch::new(width, BATCH_ROWS, meter, take);
    each_row(body, meter, &mut RowsSeed(&mut batch))?;
    batch.give();
    Ok(())
}

/// Returns all rows of a body. A row is `None` if it is not a list.
///
/// # Errors
/// The body cannot be parsed, or there is not enough memory for its values.
pub(crate) fn all<'de>(body: &'de [u8], meter: &Meter) -> Result<Vec<Option<Vec<Value<'de>>>>, Failure> {
    let mut rows = Vec::new();
    each_row(body, meter, &mut AllRows { rows: &mut rows, meter })?;
    Ok(rows)
}

/// The number of values in the first row of a body. 0 if the body cannot be parsed.
pub(crate) fn width(body: &[u8]) -> usize {
    let rows = all(body, &Meter::unlimited()).unwrap_or_default();
    rows.first().and_then(Option::as_ref).map_or(0, Vec::len)
}

fn each_row<'de, R: Rows<'de>>(body: &'de [u8], meter: &Meter, rows: &mut R) -> Result<(), Failure> {
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let mut has_args = false;
    let parsed = deserializer.deserialize_map(BodyVisitor { rows, has_args: &mut has_args });
    parsed
        .and_then(|()| deserializer.end())
        .map_err(|error| meter.refusal().unwrap_or_else(|| unreadable(body, &error)))?;
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
                Key::Args => *self.has_args = map.next_value::<Option<AnyItems>>()?.is_some_and(|args| args.0),
                // A second list would come after the rows of the first list were passed on.
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

/// Whether a list has items.
struct AnyItems(bool);

impl<'de> serde::Deserialize<'de> for AnyItems {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(AnyItems(false))
    }
}

impl<'de> Visitor<'de> for AnyItems {
    type Value = AnyItems;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<AnyItems, A::Error> {
        let mut has_items = false;
        while items.next_element::<IgnoredAny>()?.is_some() {
            has_items = true;
        }
        Ok(AnyItems(has_items))
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

struct AllRows<'r, 'de> {
    rows: &'r mut Vec<Option<Vec<Value<'de>>>>,
    meter: &'r Meter,
}

impl<'de> Rows<'de> for AllRows<'_, 'de> {
    fn rows<A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        let meter = self.meter;
        let mut values = Vec::new();
        while let Some(shape) = list.next_element_seed(Row { values: &mut values, width: None, meter })? {
            let row = std::mem::take(&mut values);
            meter.push(self.rows, (shape == Shape::Fits).then_some(row))?;
        }
        Ok(())
    }
}

/// Rows that are parsed and not passed on yet.
struct Batch<'t, 'de> {
    width: usize,
    batch_rows: usize,
    values: Vec<Value<'de>>,
    shapes: Vec<Shape>,
    meter: &'t Meter,
    take: Take<'t, 'de>,
}

impl<'t, 'de> Batch<'t, 'de> {
    fn new(width: usize, batch_rows: usize, meter: &'t Meter, take: Take<'t, 'de>) -> Self {
        Batch { width, batch_rows, values: Vec::new(), shapes: Vec::new(), meter, take }
    }

    fn give(&mut self) {
        if !self.shapes.is_empty() {
            (self.take)(&mut self.values, &self.shapes);
            self.values.clear();
            self.shapes.clear();
            self.meter.reset(&self.values);
        }
    }
}

struct RowsSeed<'b, 't, 'de>(&'b mut Batch<'t, 'de>);

impl<'de> Rows<'de> for RowsSeed<'_, '_, 'de> {
    fn rows<A: SeqAccess<'de>>(&mut self, mut list: A) -> Result<(), A::Error> {
        let batch = &mut *self.0;
        let (meter, width) = (batch.meter, Some(batch.width));
        while let Some(shape) = list.next_element_seed(Row { values: &mut batch.values, width, meter })? {
            meter.push(&mut batch.shapes, shape)?;
            if batch.shapes.len() >= batch.batch_rows {
                batch.give();
            }
        }
        Ok(())
    }
}

/// Parses one row. Its values are appended to the list.
struct Row<'r, 'de> {
    values: &'r mut Vec<Value<'de>>,
    /// The expected number of values. `None`: any number.
    width: Option<usize>,
    meter: &'r Meter,
}

impl<'de> DeserializeSeed<'de> for Row<'_, 'de> {
    type Value = Shape;

    #[inline]
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Shape, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// A JSON value that is not a list becomes [`Shape::NoList`]. It is an error of this row alone.
impl<'de> Visitor<'de> for Row<'_, 'de> {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Shape, A::Error> {
        let (start, meter) = (self.values.len(), self.meter);
        let mut found = 0;
        while let Some(value) = items.next_element_seed(One(meter))? {
            if self.width.is_none() {
                meter.check_count(found)?;
            }
            found += 1;
            if self.width.is_none_or(|width| found <= width) {
                meter.push(self.values, value)?;
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
        parse(body, width, &Meter::unlimited(), &mut |_| Ok(()), &mut take).map_err(|failure| failure.message())?;
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
            let mut take = |_: &mut [Value<'_>], shapes: &[Shape]| taken += shapes.len();
            assert!(parse(&body, 1, &Meter::unlimited(), &mut |_| Ok(()), &mut take).is_err(), "{end}");
            // Errors after the rows are found in the first pass.
            assert_eq!(taken, 0, "{end}");
        }
        rows.extend_from_slice(b"]}");
        assert_eq!(parsed(&rows, 1).unwrap().1.len(), BATCH_ROWS * 100 + 1);
    }

    #[test]
    fn rows_of_any_length_are_kept_apart() {
        let meter = Meter::unlimited();
        let rows = all(br#"{"bulk_args": [[1, "a"], 2, []], "stmt": "s"}"#, &meter).unwrap();
        assert_eq!(rows, [Some(vec![Value::Int64(1), Value::text("a")]), None, Some(vec![])]);
        assert_eq!(all(br#"{"bulk_args": null, "stmt": "s"}"#, &meter).unwrap().len(), 0);
    }
}
