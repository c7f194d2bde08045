//! Blobs with the same bytes as a stock client writes, and the partitions that the client computes
//! for them.

use std::{collections::BTreeMap, fmt::Debug};

use filbert_data::{
    Blob, DataError, FromBlob, Json, List, PartitionId, ToBlob, TypeId,
    compact::{FieldDescriptor, FieldKind, Schema, SchemaId},
    partition_hash, partition_of,
};
use uuid::Uuid;

struct Golden {
    blob: Blob,
    hash: i32,
    partition: u32,
}

fn golden() -> BTreeMap<&'static str, Golden> {
    let lines = include_str!("../golden.txt").lines().filter(|line| !line.starts_with('#'));
    let parsed = lines.map(|line| {
        let columns: Vec<&str> = line.split(' ').collect();
        let bytes = (0..columns[1].len()).step_by(2).map(|at| u8::from_str_radix(&columns[1][at..at + 2], 16).unwrap());
        let blob = Blob::from(bytes.collect::<Vec<u8>>());
        (columns[0], Golden { blob, hash: columns[2].parse().unwrap(), partition: columns[3].parse().unwrap() })
    });
    parsed.collect()
}

/// Removes `name` from the golden blobs, and checks that `value` is written as this blob and is
/// read from it.
fn same<T: ToBlob + FromBlob + PartialEq + Debug>(golden: &mut BTreeMap<&str, Golden>, name: &str, value: T) {
    let Golden { blob, .. } = golden.remove(name).unwrap_or_else(|| panic!("{name} is not among the golden blobs"));
    assert_eq!(value.to_blob().unwrap(), blob, "{name} as written");
    assert_eq!(T::from_blob(&blob).unwrap(), value, "{name} as read");
}

#[test]
fn values_are_written_and_read_as_stock_clients_do() {
    let mut golden = golden();
    let g = &mut golden;
    same(g, "bool_true", true);
    same(g, "bool_false", false);
    same(g, "byte_max", i8::MAX);
    same(g, "byte_min", i8::MIN);
    same(g, "short_min", i16::MIN);
    same(g, "short_max", i16::MAX);
    for int in [0, 1, -1, 7, 271, 1000, 65_536, 99_999, i32::MIN, i32::MAX] {
        same(g, &format!("int_{int}"), int);
    }
    for long in [0, -1, 1_234_567_890_123, i64::MIN, i64::MAX] {
        same(g, &format!("long_{long}"), long);
    }
    same(g, "float_pi", std::f32::consts::PI);
    same(g, "float_neg_zero", -0.0f32);
    same(g, "double_e", std::f64::consts::E);
    same(g, "double_inf", f64::INFINITY);
    same(g, "char_a", 'a');
    same(g, "char_euro", '€');
    let long_text = "x".repeat(300);
    for (name, text) in [
        ("empty", ""),
        ("a", "a"),
        ("ab", "ab"),
        ("abc", "abc"),
        ("abcd", "abcd"),
        ("key", "key-12345"),
        ("german", "Grüße"),
        ("greek", "Ελλάδα"),
        ("cjk", "東京"),
        ("emoji", "🌰 nut"),
        ("zero", "\0"),
        ("long", &long_text),
    ] {
        same(g, &format!("text_{name}"), text.to_owned());
    }
    same(g, "text_null", NullText);
    same(g, "bytes", vec![0u8, 1, 127, 128, 255]);
    same(g, "bytes_empty", Vec::<u8>::new());
    same(g, "booleans", vec![true, false, true]);
    same(g, "chars", vec!['a', 'ñ', '€']);
    same(g, "shorts", vec![1i16, -2, i16::MAX]);
    same(g, "ints", vec![1, -2, i32::MAX]);
    same(g, "ints_empty", Vec::<i32>::new());
    same(g, "longs", vec![1, -2, i64::MAX]);
    same(g, "floats", vec![1.5f32, -0.25]);
    same(g, "doubles", vec![1.1, -2e300]);
    same(g, "texts", vec!["a".to_owned(), String::new(), "ü".to_owned()]);
    same(g, "texts_with_null", vec![Some("a".to_owned()), None]);
    same(g, "uuid", Uuid::from_u128(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210));
    same(g, "uuid_nil", Uuid::nil());
    same(g, "json", Json::new(r#"{"name":"Zoë","age":3}"#));
    same(g, "list_ints", List(vec![1, 2, 3]));
    same(g, "list_empty", List::<i32>::default());
    same(g, "list_texts_with_null", List(vec![Some("a".to_owned()), None, Some("b".to_owned())]));
    same(g, "list_of_lists", List(vec![List(vec![1]), List(vec![2, 3]), List(vec![])]));

    let null_array = g.remove("ints_null").unwrap().blob;
    assert_eq!(Option::<Vec<i32>>::from_blob(&null_array), Ok(None));
    assert_eq!(Vec::<i32>::from_blob(&null_array), Err(DataError::Null { type_id: TypeId::INT_ARRAY }));
    assert_eq!(i32::from_blob(&g.remove("hash_in_header").unwrap().blob), Ok(5));
    assert_eq!(g.keys().collect::<Vec<_>>(), Vec::<&&str>::new(), "golden blobs that no value was compared with");
}

/// The text that Java writes for a null reference inside a typed field.
#[derive(Debug, PartialEq)]
struct NullText;

impl ToBlob for NullText {
    fn type_id(&self) -> TypeId {
        TypeId::STRING
    }

    fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        out.extend_from_slice(&(-1i32).to_be_bytes());
        Ok(())
    }
}

impl FromBlob for NullText {
    fn read_payload(input: &mut filbert_data::Input<'_>) -> Result<Self, DataError> {
        match Option::<String>::read_payload(input)? {
            None => Ok(NullText),
            Some(_) => Err(input.null()),
        }
    }
}

#[test]
fn keys_go_to_the_partitions_where_stock_clients_look_for_them() {
    for (name, Golden { blob, hash, partition }) in golden() {
        assert_eq!(partition_hash(&blob), hash, "{name}");
        assert_eq!(partition_of(&blob, 271), PartitionId(partition), "{name}");
    }
}

#[test]
fn schemas_have_the_fingerprints_that_stock_clients_compute() {
    let field = |name: &str, kind| FieldDescriptor { name: name.to_owned(), kind };
    assert_eq!(Schema::new("empty", []).fingerprint(), SchemaId(7_118_292_658_705_342_496));
    let employee = [field("name", FieldKind::String), field("age", FieldKind::Int32), field("id", FieldKind::Int64)];
    assert_eq!(Schema::new("Employee", employee).fingerprint(), SchemaId(-1_077_589_203_072_716_398));
    let unicode = [
        field("wert", FieldKind::NullableFloat64),
        field("bool", FieldKind::Boolean),
        field("zähler", FieldKind::ArrayOfCompact),
        field("a", FieldKind::TimestampWithTimezone),
    ];
    assert_eq!(Schema::new("org.example.Größe", unicode).fingerprint(), SchemaId(-2_946_635_148_997_350_457));
}

#[test]
fn the_order_of_fields_does_not_change_a_schema_and_of_equal_names_the_last_counts() {
    let field = |name: &str, kind| FieldDescriptor { name: name.to_owned(), kind };
    let (a, b) = (field("a", FieldKind::Int8), field("b", FieldKind::Int16));
    let there = Schema::new("t", [a.clone(), b.clone()]);
    assert_eq!(there, Schema::new("t", [b.clone(), a.clone()]));
    assert_eq!(there, Schema::new("t", [field("b", FieldKind::String), a, b]));
    assert_eq!(FieldKind::try_from(46), Ok(FieldKind::ArrayOfNullableFloat64));
    assert_eq!(FieldKind::try_from(47), Err(DataError::UnknownFieldKind(47)));
}
