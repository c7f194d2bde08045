//! Tests of pages of SQL results, with every Arrow type of a column.

use std::sync::Arc;

use arrow_array::{
    BinaryViewArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array, Float64Array, Int32Array, ListArray,
    NullArray, StringArray, StringViewArray, Time64NanosecondArray, TimestampMicrosecondArray,
    TimestampNanosecondArray,
};
use arrow_buffer::i256;
use arrow_schema::{Field as ArrowField, Schema};
use filbert_wire::{
    codec::{Field, Reader},
    frame::Frames,
    sql_page::{SqlDate, SqlPage},
};

use super::*;

fn batch(array: ArrayRef) -> RecordBatch {
    let schema = Schema::new(vec![ArrowField::new("column", array.data_type().clone(), true)]);
    RecordBatch::try_new(Arc::new(schema), vec![array]).unwrap()
}

fn check(field_type: FieldType, array: impl Array + 'static, expected: SqlColumn<'_>) {
    let rows = batch(Arc::new(array));
    let columns = [ColumnMeta { name: "column".to_owned(), field_type, nullable: true, pg_type: None, length: None }];
    let mut out = Vec::new();
    put_page(&mut Writer::new(&mut out), &columns, &rows, true).unwrap();
    let page = SqlPage::read(&mut Reader::new(&[], Frames::new(&out))).unwrap();
    assert_eq!(page.columns, [expected]);
}

#[test]
fn columns_of_every_type_read_as_the_protocol_has_them() {
    use FieldType as T;
    check(T::Boolean, BooleanArray::from(vec![Some(true), None]), SqlColumn::Boolean(vec![Some(true), None]));
    check(T::Integer, Int32Array::from(vec![3, -4]), SqlColumn::Integer(vec![Some(3), Some(-4)]));
    check(T::Double, Float64Array::from(vec![None, Some(0.5)]), SqlColumn::Double(vec![None, Some(0.5)]));
    let texts = SqlColumn::Varchar(vec![Some("a"), None]);
    check(T::Varchar, StringArray::from(vec![Some("a"), None]), texts.clone());
    check(T::Char, StringViewArray::from(vec![Some("a"), None]), texts);
    let json = HazelcastJsonValue { value: "{}" };
    check(T::Json, StringViewArray::from(vec![Some("{}"), None]), SqlColumn::Json(vec![Some(json), None]));
    let objects = BinaryViewArray::from(vec![Some(b"blob".as_slice()), None]);
    check(T::Object, objects, SqlColumn::Object(vec![Some(b"blob"), None]));
    let uuid = uuid::Uuid::from_u128(7);
    let blob = filbert_data::Value::Uuid(uuid).to_blob().unwrap();
    let uuids = StringViewArray::from(vec![Some(uuid.to_string()), None]);
    check(T::Uuid, uuids, SqlColumn::Object(vec![Some(blob.as_bytes()), None]));
    let bytes = BinaryViewArray::from(vec![Some([1, 2].as_slice()), None]);
    let blob = filbert_data::Value::Bytes(vec![1, 2].into()).to_blob().unwrap();
    check(T::Binary, bytes, SqlColumn::Object(vec![Some(blob.as_bytes()), None]));
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>(vec![Some(vec![Some(5)]), None]);
    let blob = filbert_data::Value::Array(vec![filbert_data::Value::Int32(5)]).to_blob().unwrap();
    check(T::Array(Box::new(T::Integer)), lists, SqlColumn::Object(vec![Some(blob.as_bytes()), None]));
    let nulls = |column_type| SqlColumn::Nulls { column_type, rows: 2 };
    check(T::Time, NullArray::new(2), nulls(SqlColumn::NULL));
    check(T::Object, NullArray::new(2), nulls(SqlColumn::NULL));
}

#[test]
fn dates_and_timestamps_keep_their_digits() {
    let date = SqlDate { year: 2024, month: 2, day: 29 };
    check(FieldType::Date, Date32Array::from(vec![19_782]), SqlColumn::Date(vec![Some(date)]));
    let time = SqlTime { hour: 23, minute: 59, second: 58, nanosecond: 1 };
    let nanoseconds = 86_398_000_000_001;
    check(FieldType::Time, Time64NanosecondArray::from(vec![nanoseconds]), SqlColumn::Time(vec![Some(time)]));
    let time = SqlTime { nanosecond: 1000, ..time };
    let local = SqlTimestamp { date, time };
    let microseconds = (19_782 * 86_400 + 86_398) * 1_000_000 + 1;
    let array = TimestampMicrosecondArray::from(vec![Some(microseconds), None]);
    check(FieldType::Timestamp, array.clone(), SqlColumn::Timestamp(vec![Some(local), None]));
    let zoned = SqlTimestampWithTimeZone { local, offset_seconds: 0 };
    let array = array.with_timezone("UTC");
    check(FieldType::TimestampTz, array, SqlColumn::TimestampWithTimeZone(vec![Some(zoned), None]));
    let array = TimestampNanosecondArray::from(vec![microseconds * 1000]);
    check(FieldType::Timestamp, array, SqlColumn::Timestamp(vec![Some(local)]));
}

#[test]
fn decimals_have_as_few_bytes_and_digits_as_they_need() {
    let decimal = |unscaled: &'static [u8], scale| Some(SqlDecimal { unscaled, scale });
    let free = |values: Vec<i128>| {
        Decimal256Array::from_iter_values(values.into_iter().map(i256::from_i128)).with_precision_and_scale(76, 20)
    };
    let unit = 10_i128.pow(20);
    let array = free(vec![0, unit, -unit, unit / 2, 128 * unit, -128 * unit, 1]).unwrap();
    let expected = vec![
        decimal(&[0], 0),
        decimal(&[1], 0),
        decimal(&[0xff], 0),
        decimal(&[5], 1),
        decimal(&[0, 0x80], 0),
        decimal(&[0x80], 0),
        decimal(&[1], 20),
    ];
    check(FieldType::Decimal(None), array, SqlColumn::Decimal(expected));
    let array = Decimal128Array::from(vec![Some(1500), None]).with_precision_and_scale(10, 2).unwrap();
    let expected = vec![decimal(&[5, 0xdc], 2), None];
    check(FieldType::Decimal(Some((10, 2))), array, SqlColumn::Decimal(expected));
    let large = i256::from_i128(i128::MAX).checked_mul(i256::from_i128(100)).unwrap();
    let array = Decimal256Array::from_iter_values([large]).with_precision_and_scale(76, 20).unwrap();
    let bytes = i128::MAX.to_be_bytes();
    let unscaled: &[u8] = &bytes;
    check(FieldType::Decimal(None), array, SqlColumn::Decimal(vec![Some(SqlDecimal { unscaled, scale: 18 })]));
}

#[test]
fn a_page_is_cut_by_the_bytes_of_its_texts() {
    let long = "x".repeat(1000);
    let texts = batch(Arc::new(StringViewArray::from(vec![Some(long.as_str()); 100])));
    assert_eq!(rows_within(&texts, usize::MAX), 100);
    assert_eq!(rows_within(&texts, 10_500), 10);
    assert_eq!(rows_within(&texts, 10), 1);
    let numbers = batch(Arc::new(Int32Array::from(vec![7; 100])));
    assert_eq!(rows_within(&numbers, 10), 100);
    let empty = batch(Arc::new(StringArray::from(Vec::<&str>::new())));
    assert_eq!(rows_within(&empty, 0), 0);
}
