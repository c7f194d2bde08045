//! A row with a value of every type, and the values' OIDs and texts in PostgreSQL.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray, ListArray, RecordBatch, StringArray,
    Time64NanosecondArray, TimestampMicrosecondArray,
    types::{Int32Type, Int64Type, IntervalMonthDayNano},
};
use filbert_data::FieldType;
use filbert_grid::query::ColumnMeta;
use filbert_test_engine::column;

/// Each type with its OID and the text of its value. 2024-02-29 is day 19,782 from 1970-01-01.
pub const ALL: [(&str, u32, &str); 22] = [
    ("boolean", 16, "t"),
    ("tinyint", 21, "-8"),
    ("smallint", 21, "16"),
    ("integer", 23, "-32"),
    ("bigint", 20, "64"),
    ("decimal", 1700, "123.4500"),
    ("real", 700, "0.1"),
    ("double", 701, "1e+20"),
    ("varchar", 25, "ü"),
    ("date", 1082, "2024-02-29"),
    ("time", 1083, "01:02:03.000004"),
    ("timestamp", 1114, "2024-02-29 00:00:01.5"),
    ("timestamptz", 1184, "2024-02-29 00:00:01.5+00"),
    ("uuid", 2950, "67e55044-10b1-426f-9247-bb680e5fe0c8"),
    ("json", 114, "{\"a\": 1}"),
    ("binary", 17, "\\x00ff"),
    ("interval", 1186, "1 year 2 mons 3 days 00:00:04"),
    ("array", 1007, "{1,NULL,3}"),
    ("oid", 26, "1259"),
    ("name", 19, "pg_class"),
    ("char", 18, "r"),
    ("int2vector", 22, "2 1"),
];

/// The PostgreSQL types that only columns of system relations have.
const OF_CATALOGS: [u32; 4] = [26, 19, 18, 22];

/// The columns and the row, as `select types` returns them.
pub fn all() -> (Arc<[ColumnMeta]>, RecordBatch) {
    let timestamp = 19_782 * 86_400_000_000 + 1_500_000;
    let interval = IntervalMonthDayNano { months: 14, days: 3, nanoseconds: 4_000_000_000 };
    let list = [Some(vec![Some(1), None, Some(3)])];
    let columns: Vec<(FieldType, ArrayRef)> = vec![
        (FieldType::Boolean, Arc::new(BooleanArray::from(vec![true]))),
        (FieldType::TinyInt, Arc::new(Int8Array::from(vec![-8]))),
        (FieldType::SmallInt, Arc::new(Int16Array::from(vec![16]))),
        (FieldType::Integer, Arc::new(Int32Array::from(vec![-32]))),
        (FieldType::BigInt, Arc::new(Int64Array::from(vec![64]))),
        (
            FieldType::Decimal(Some((10, 4))),
            Arc::new(Decimal128Array::from(vec![1_234_500]).with_precision_and_scale(10, 4).unwrap()),
        ),
        (FieldType::Real, Arc::new(Float32Array::from(vec![0.1]))),
        (FieldType::Double, Arc::new(Float64Array::from(vec![1e20]))),
        (FieldType::Varchar, Arc::new(StringArray::from(vec!["ü"]))),
        (FieldType::Date, Arc::new(Date32Array::from(vec![19_782]))),
        (FieldType::Time, Arc::new(Time64NanosecondArray::from(vec![3_723_000_004_000]))),
        (FieldType::Timestamp, Arc::new(TimestampMicrosecondArray::from(vec![timestamp]))),
        (FieldType::TimestampTz, Arc::new(TimestampMicrosecondArray::from(vec![timestamp]).with_timezone("UTC"))),
        (FieldType::Uuid, Arc::new(StringArray::from(vec![ALL[13].2]))),
        (FieldType::Json, Arc::new(StringArray::from(vec![ALL[14].2]))),
        (FieldType::Binary, Arc::new(BinaryArray::from(vec![&[0_u8, 255][..]]))),
        (FieldType::Interval, Arc::new(IntervalMonthDayNanoArray::from(vec![interval]))),
        (
            FieldType::Array(Box::new(FieldType::Integer)),
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(list)),
        ),
        (FieldType::BigInt, Arc::new(Int64Array::from(vec![1259]))),
        (FieldType::Varchar, Arc::new(StringArray::from(vec!["pg_class"]))),
        (FieldType::Varchar, Arc::new(StringArray::from(vec!["r"]))),
        (
            FieldType::Array(Box::new(FieldType::BigInt)),
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>([Some(vec![Some(2), Some(1)])])),
        ),
    ];
    let meta = |((field_type, _), (name, oid, _)): (&(FieldType, ArrayRef), (&str, u32, &str))| {
        let pg_type = OF_CATALOGS.contains(&oid).then_some(oid);
        ColumnMeta { pg_type, ..column(name, field_type.clone()) }
    };
    let metas = columns.iter().zip(ALL).map(meta).collect();
    let named = columns.into_iter().zip(ALL).map(|((_, array), (name, ..))| (name, array));
    (metas, RecordBatch::try_from_iter(named).unwrap())
}
