//! Columns of every type, and snapshots during writes.

use filbert_data::FieldType;

use super::*;

fn columns(types: &[FieldType]) -> ColumnSet {
    let layout = |(number, field_type): (usize, &FieldType)| ColumnLayout {
        id: ColumnId(number as u32),
        field: number,
        field_type: field_type.clone(),
    };
    ColumnSet::new(&types.iter().enumerate().map(layout).collect::<Vec<_>>())
}

fn put(set: &mut ColumnSet, slot: u32, values: Vec<Option<Value<'_>>>) {
    let mut row = set.begin(slot).unwrap();
    for (column, value) in values.into_iter().enumerate() {
        if let Some(value) = value {
            row.set(column, value);
        }
    }
    row.finish();
    assert_eq!(set.bytes(), set.chunks.iter().map(|chunk| chunk.bytes()).sum::<usize>());
}

fn text(value: &str) -> Value<'_> {
    Value::text(value)
}

#[test]
fn every_type_of_column_holds_its_values() {
    use FieldType::*;
    let types = [
        Boolean,
        TinyInt,
        SmallInt,
        Integer,
        BigInt,
        Real,
        Double,
        Decimal(Some((10, 2))),
        Date,
        Time,
        Timestamp,
        TimestampTz,
        Varchar,
        Json,
    ];
    let mut set = columns(&types);
    let from_text = |texts: [&'static str; 14]| texts.into_iter().map(|value| Some(text(value))).collect();
    put(
        &mut set,
        0,
        from_text([
            "true",
            "-8",
            "16",
            "32",
            "64",
            "1.5",
            "2.5",
            "12.345",
            "1970-01-03",
            "00:00:01.000000002",
            "1970-01-01T00:00:01",
            "1970-01-01T01:00:00+01:00",
            "a text of more than 12",
            "{}",
        ]),
    );
    put(&mut set, 1, types.iter().map(|_| Some(Value::Null)).collect());
    let snapshot = set.snapshot().unwrap();
    let chunk = &snapshot.chunks()[0];
    assert_eq!((chunk.slots(), chunk.live_count(), snapshot.rows()), (2, 2, 2));
    let shown: Vec<String> = (0..13).map(|at| format!("{:?}", chunk.column(at).unwrap())).collect();
    assert_eq!(
        shown,
        [
            "Boolean([1])",
            "Int8([-8, 0])",
            "Int16([16, 0])",
            "Int32([32, 0])",
            "Int64([64, 0])",
            "Float32([1.5, 0.0])",
            "Float64([2.5, 0.0])",
            "Decimal([1235, 0])",
            "Date([2, 0])",
            "Time([1000000002, 0])",
            "Timestamp([1000000, 0])",
            "TimestampTz([0, 0])",
            &format!(
                "{:?}",
                ColumnView::Text(&[22 | u128::from(u32::from_le_bytes(*b"a te")) << 32, 0], b"a text of more than 12",)
            ),
        ]
    );
    assert_eq!((chunk.text(12, 0), chunk.text(13, 0)), (Some(&b"a text of more than 12"[..]), Some(&b"{}"[..])));
    for column in 0..14 {
        assert_eq!(chunk.validity(column), Some(&[1][..]));
        assert_eq!((chunk.null_count(column), chunk.broken_count(column)), (1, 0));
    }
    assert_eq!(chunk.range(3), Some(ColumnRange::Whole(32, 32)));
    assert_eq!(chunk.range(6), Some(ColumnRange::Float(2.5, 2.5)));
    assert_eq!(chunk.range(7), Some(ColumnRange::Decimal(1_235, 1_235)));
    assert_eq!(chunk.bytes_of(2), bytemuck::cast_slice::<i16, u8>(&[16, 0]));
    assert_eq!(snapshot.position(ColumnId(5)), Some(5));
    assert_eq!(snapshot.position(ColumnId(50)), None);
}

#[test]
fn what_cannot_be_read_is_broken_until_it_is_replaced() {
    let mut set = columns(&[FieldType::TinyInt, FieldType::Varchar]);
    put(&mut set, 0, vec![Some(Value::Int32(300)), Some(text("a"))]);
    put(&mut set, 1, vec![Some(Value::Int32(3)), None]);
    let chunk = set.snapshot().unwrap().chunks()[0].clone();
    assert_eq!((chunk.broken(0), chunk.broken(1)), (&[1][..], &[2][..]));
    assert_eq!((chunk.null_count(0), chunk.broken_count(0)), (1, 1));
    put(&mut set, 0, vec![Some(Value::Int32(30)), Some(text("b"))]);
    set.remove(1);
    let chunk = set.snapshot().unwrap().chunks()[0].clone();
    assert_eq!((chunk.broken(0), chunk.broken(1)), (&[][..], &[][..]));
    assert_eq!((chunk.live(), chunk.live_count(), chunk.slots()), (&[1][..], 1, 2));
    assert_eq!((chunk.validity(0), chunk.null_count(1)), (None, 0));
}

#[test]
fn a_snapshot_stays_as_it_was_and_shares_what_was_not_written() {
    let mut set = columns(&[FieldType::BigInt]);
    for slot in 0..10_000 {
        put(&mut set, slot, vec![Some(Value::Int64(i64::from(slot)))]);
    }
    let snapshot = set.snapshot().unwrap();
    put(&mut set, 5_000, vec![Some(Value::Null)]);
    set.remove(9_999);
    let shared: Vec<bool> =
        snapshot.chunks().iter().zip(&set.chunks).map(|(before, now)| Arc::ptr_eq(before, now)).collect();
    assert_eq!(shared, [true, false, false]);
    assert_eq!(snapshot.rows(), 10_000);
    assert_eq!(set.snapshot().unwrap().rows(), 9_999);
    let Some(ColumnView::Int64(values)) = snapshot.chunks()[1].column(0) else { panic!() };
    assert_eq!((values.len(), values[904]), (4_096, 5_000));
    assert_eq!(snapshot.chunks()[1].range(0), Some(ColumnRange::Whole(4_096, 8_191)));
    for slot in 0..9_999 {
        set.remove(slot);
    }
    assert_eq!(set.bytes(), 0);
    assert_eq!(snapshot.rows(), 10_000);
}

#[test]
fn a_column_with_a_nan_has_no_wrong_bounds() {
    let mut set = columns(&[FieldType::Double]);
    for (slot, value) in [1.0, f64::NAN, -2.0, 5.0].into_iter().enumerate() {
        put(&mut set, slot as u32, vec![Some(Value::Float64(value))]);
    }
    assert_eq!(set.snapshot().unwrap().chunks()[0].range(0), None);
}
