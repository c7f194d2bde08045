//! Serialized values of a hostile client, in every format: random bytes after the header of each
//! format, and objects of random classes, valid and damaged.
//!
//! The first byte selects the format. Each value that was read is written and read again without a
//! change. Values are also found by paths, compared, converted, and encoded as index keys.
#![no_main]

#[path = "blobs/drawing.rs"]
mod drawing;
#[path = "blobs/reading.rs"]
mod reading;
#[path = "blobs/values.rs"]
mod values;

use drawing::{Draw, Schemas};
use filbert_data::criteria::{Aggregator, PagingPredicate, Predicate, Projection};
use filbert_data::portable::{self, ClassDefinition};
use filbert_data::{FieldType, IdsLayout, ToBlob, TypeId, Value, compact, dates, ids};
use libfuzzer_sys::arbitrary::{Result, Unstructured};
use libfuzzer_sys::fuzz_target;
use reading::Reading;

/// The maximum number of damaged blobs of an input.
const DAMAGED_MAX: usize = 4;

fuzz_target!(|data: &[u8]| {
    if let Some((first, rest)) = data.split_first() {
        // The only possible error is an input with too few bytes, which is no finding.
        let _drawn = read(*first, &mut Unstructured::new(rest));
    }
});

fn read(format: u8, input: &mut Draw<'_>) -> Result<()> {
    match format % 12 {
        0 => plain(input),
        1 => compact(input, true),
        2 => compact(input, false),
        3 => portable(input, true),
        4 => portable(input, false),
        5 => identified(input, true),
        6 => identified(input, false),
        7 => criteria(input),
        8 => document(input),
        9 => list(input),
        10 => condition(input),
        _ => text(input),
    }
}

/// A payload of a drawn type.
fn plain(input: &mut Draw<'_>) -> Result<()> {
    let type_id = drawing::type_id(input)?;
    let reading = Reading::new(Schemas::default(), None, vec![]);
    reading.check(&drawing::blob(type_id, drawing::rest(input)));
    Ok(())
}

/// An object of a drawn schema: any bytes, or drawn values.
fn compact(input: &mut Draw<'_>, is_raw: bool) -> Result<()> {
    let schemas = Schemas::default();
    let kinds = drawing::compact_kinds(input)?;
    let writer = compact::Writer::of_kinds("type", kinds.clone());
    schemas.announce(writer.schema());
    let mut blob = drawing::blob(TypeId::COMPACT, &writer.schema().fingerprint().0.to_be_bytes());
    if is_raw {
        blob.extend_from_slice(drawing::rest(input));
        return damaged(input, blob, &Reading::new(schemas, None, names(&kinds)));
    }
    let types = kinds.iter().map(|(_, kind)| kind.field_type());
    let values = drawing::values(input, types, &schemas)?;
    let reading = Reading::new(schemas, None, names(&kinds));
    match writer.write(&values) {
        Ok(blob) => {
            reading.check_fields(&blob, &values);
            assert_eq!(compact::object_bytes(&blob[8..], &*reading.schemas), Ok(blob.len() - 8));
            damaged(input, blob.into_vec(), &reading)
        }
        Err(error) => reading::check_error(&error),
    }
}

/// An object of a drawn class: any bytes, or drawn values.
fn portable(input: &mut Draw<'_>, is_raw: bool) -> Result<()> {
    let schemas = Schemas::default();
    if is_raw {
        let blob = drawing::blob(TypeId::PORTABLE, drawing::rest(input));
        return damaged(input, blob, &Reading::new(schemas, None, vec![]));
    }
    let class: ClassDefinition = drawing::portable_class(input)?;
    let types = class.fields.iter().map(|field| field.kind.field_type());
    let values = drawing::values(input, types, &schemas)?;
    let reading = Reading::new(schemas, None, class.fields.iter().map(|field| field.name.clone()).collect());
    let written = portable::Writer::new(class.clone()).and_then(|writer| writer.write(&values));
    match written {
        Ok(blob) => {
            reading.check_fields(&blob, &values);
            reading::check_class(&blob, &class);
            damaged(input, blob.into_vec(), &reading)
        }
        Err(error) => reading::check_error(&error),
    }
}

/// An object of a drawn layout: any bytes, or drawn values.
fn identified(input: &mut Draw<'_>, is_raw: bool) -> Result<()> {
    let schemas = Schemas::default();
    let fields = drawing::fields(input)?;
    let names = names(&fields);
    let layout = IdsLayout { factory_id: 1, class_id: 1, fields };
    let mut blob = drawing::blob(TypeId::IDENTIFIED, &[1, 0, 0, 0, 1, 0, 0, 0, 1]);
    if is_raw {
        blob.extend_from_slice(drawing::rest(input));
        return damaged(input, blob, &Reading::new(schemas, Some(layout), names));
    }
    let types = layout.fields.iter().map(|(_, field_type)| field_type.clone());
    let values = drawing::values(input, types, &schemas)?;
    let mut blob = Vec::new();
    match ids::write(&layout, &values, &mut blob) {
        Ok(()) => damaged(input, blob, &Reading::new(schemas, Some(layout), names)),
        Err(error) => reading::check_error(&error),
    }
}

fn names<T>(fields: &[(String, T)]) -> Vec<String> {
    fields.iter().map(|(name, _)| name.clone()).collect()
}

/// Reads a blob, and again with drawn changes of its bytes.
fn damaged(input: &mut Draw<'_>, mut blob: Vec<u8>, reading: &Reading) -> Result<()> {
    reading.check(&blob);
    for _ in 0..DAMAGED_MAX {
        if input.is_empty() {
            break;
        }
        for _ in 0..=input.int_in_range(0..=3)? {
            let at = input.choose_index(blob.len().max(1))?;
            let number = drawing::number(input)?.to_be_bytes();
            let width = *input.choose(&[1, 2, 4])?;
            for (place, byte) in blob.iter_mut().skip(at).zip(&number[4 - width..]) {
                *place = *byte;
            }
        }
        if input.ratio(1, 8)? {
            blob.truncate(input.choose_index(blob.len() + 1)?);
        }
        reading.check(&blob);
    }
    Ok(())
}

/// A predicate, an aggregator or a projection.
fn criteria(input: &mut Draw<'_>) -> Result<()> {
    let factory = *input.choose(&[-20i32, -29, -30, -4])?;
    let class = match factory {
        -4 => 120,
        _ => i32::from(input.int_in_range(0u8..=22)?),
    };
    let head = [&[1][..], &factory.to_be_bytes(), &class.to_be_bytes()].concat();
    let blob = drawing::blob(TypeId::IDENTIFIED, &[&head, drawing::rest(input)].concat());
    reading::check_again(&blob, Predicate::from_blob);
    reading::check_again(&blob, Aggregator::from_blob);
    reading::check_again(&blob, Projection::from_blob);
    if let Err(error) = PagingPredicate::from_blob(&blob) {
        reading::check_error(&error)?;
    }
    reading::check_answers(&blob);
    Ok(())
}

/// A JSON document.
fn document(input: &mut Draw<'_>) -> Result<()> {
    let paths = drawing::paths(input)?;
    let text = drawing::text(input);
    let reading = Reading::new(Schemas::default(), None, vec![]).with(paths);
    reading.check(&Value::Json(text.into()).to_blob().expect("a short text can be written"));
    Ok(())
}

/// A list of drawn values.
fn list(input: &mut Draw<'_>) -> Result<()> {
    let schemas = Schemas::default();
    let types: Vec<FieldType> = drawing::fields(input)?.into_iter().map(|(_, field_type)| field_type).collect();
    let values = Value::Array(drawing::values(input, types.into_iter(), &schemas)?);
    let reading = Reading::new(schemas, None, vec![]);
    match values.to_blob() {
        Ok(blob) => damaged(input, blob.into_vec(), &reading),
        Err(error) => reading::check_error(&error),
    }
}

/// The text of a condition.
fn condition(input: &mut Draw<'_>) -> Result<()> {
    match Predicate::parse_sql(&drawing::text(input)) {
        Ok(predicate) => {
            let blob = predicate.to_blob().expect("a condition consists of plain values");
            let again = Predicate::from_blob(&blob).map(|again| format!("{again:?}"));
            assert_eq!(again, Ok(format!("{predicate:?}")));
            Ok(())
        }
        Err(error) => reading::check_error(&error),
    }
}

/// A text as the value of every type, as a path, and as a date.
fn text(input: &mut Draw<'_>) -> Result<()> {
    let text = drawing::text(input);
    values::check(&[Value::Text(text.as_str().into())]);
    reading::check_path(&text);
    let zone = dates::Zone::of_word("Europe/Berlin").expect("the zone is known");
    if let Ok(days) = dates::read_date(&text) {
        let mut again = String::new();
        dates::write_date(days.into(), &mut again);
        assert_eq!(dates::read_date(&again).ok(), Some(days), "{text:?} is written as {again:?}");
    }
    if let Ok(micros) = dates::read_time(&text) {
        let mut again = String::new();
        dates::write_time(micros, &mut again);
        assert_eq!(dates::read_time(&again).ok(), Some(micros), "{text:?} is written as {again:?}");
    }
    if let Ok(micros) = dates::read_timestamp(&text) {
        let mut again = String::new();
        dates::write_timestamp(micros, &mut again);
        assert_eq!(dates::read_timestamp(&again).ok(), Some(micros), "{text:?} is written as {again:?}");
    }
    if let Ok(micros) = dates::read_timestamptz(&text, &zone) {
        let mut again = String::new();
        dates::write_timestamptz(micros, &zone, &mut again);
        assert_eq!(dates::read_timestamptz(&again, &zone).ok(), Some(micros), "{text:?} is written as {again:?}");
    }
    if let Ok(interval) = dates::read_interval(&text) {
        let mut again = String::new();
        dates::write_interval(&interval, &mut again);
        assert_eq!(dates::read_interval(&again).ok(), Some(interval), "{text:?} is written as {again:?}");
    }
    Ok(())
}
