//! Properties of all values and all bytes.

use std::fmt::Debug;

use filbert_data::{Blob, DataError, FromBlob, Interval, Json, List, ToBlob, TypeId, partition_of, type_id};
use proptest::prelude::*;
use uuid::Uuid;

fn round_trip<T: ToBlob + FromBlob + PartialEq + Debug>(value: &T) {
    let blob = value.to_blob().unwrap();
    assert_eq!(&T::from_blob(&blob).unwrap(), value);
    assert_eq!(type_id(&blob).unwrap(), value.type_id());
    for end in 0..blob.len() {
        assert!(T::from_blob(&blob[..end]).is_err(), "{value:?} read from its first {end} bytes");
    }
}

/// Reads `bytes` as every type. The results do not matter; the test checks that reading returns.
fn read_as_everything(bytes: &[u8]) {
    macro_rules! read {
        ($($rust:ty),* $(,)?) => { $( let _ = <$rust>::from_blob(bytes); )* };
    }
    read!(bool, i8, i16, i32, i64, f32, f64, char, String, Uuid, Json, Option<String>);
    read!(Vec<u8>, Vec<bool>, Vec<i16>, Vec<i32>, Vec<i64>, Vec<f32>, Vec<f64>, Vec<char>, Vec<String>);
    read!(List<i32>, List<Option<String>>, List<List<List<Json>>>, Option<Vec<Option<String>>>);
    let _ = format!("{:?}", Blob::from(bytes));
}

proptest! {
    #[test]
    fn numbers_round_trip(byte: i8, short: i16, int: i32, long: i64, boolean: bool) {
        round_trip(&byte);
        round_trip(&short);
        round_trip(&int);
        round_trip(&long);
        round_trip(&boolean);
        round_trip(&Uuid::from_u64_pair(long as u64, int as u64));
    }

    #[test]
    fn floats_round_trip_bit_for_bit(float: u32, double: u64) {
        let (float, double) = (f32::from_bits(float), f64::from_bits(double));
        let read = f32::from_blob(&float.to_blob().unwrap()).unwrap();
        prop_assert_eq!(read.to_bits(), float.to_bits());
        let read = f64::from_blob(&double.to_blob().unwrap()).unwrap();
        prop_assert_eq!(read.to_bits(), double.to_bits());
    }

    #[test]
    fn texts_round_trip(text: String, texts: Vec<Option<String>>, character: char) {
        round_trip(&text);
        round_trip(&Json::new(text));
        round_trip(&texts);
        match u16::try_from(u32::from(character)) {
            Ok(_) => round_trip(&character),
            Err(_) => prop_assert_eq!(
                character.to_blob(),
                Err(DataError::NotOneUnit { code: u32::from(character) })
            ),
        }
    }

    #[test]
    fn arrays_and_lists_round_trip(bytes: Vec<u8>, ints: Vec<i32>, longs: Vec<i64>, booleans: Vec<bool>) {
        round_trip(&bytes);
        round_trip(&ints);
        round_trip(&longs);
        round_trip(&booleans);
        round_trip(&List(vec![Some(List(longs)), None]));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>) {
        read_as_everything(&bytes);
        prop_assert!(partition_of(&bytes, 271).0 < 271);
    }

    #[test]
    fn any_payload_of_a_known_type_is_read_without_a_panic(id in -130i32..=1, payload: Vec<u8>) {
        let bytes = [&[0; 4], &id.to_be_bytes()[..], &payload].concat();
        read_as_everything(&bytes);
    }
}

#[test]
fn errors_say_what_was_found_and_what_was_expected() {
    let wrong = i64::from_blob(&7i32.to_blob().unwrap()).unwrap_err();
    assert_eq!(wrong.to_string(), "a serialized int (-7) where long (-8) is expected");
    let own_type = Blob::from(vec![0, 0, 0, 0, 0, 0, 0, 9]);
    let wrong = String::from_blob(&own_type).unwrap_err();
    assert_eq!(wrong.to_string(), "a serialized type 9 where text (-11) is expected");
    let short = String::from_blob(&[1, 2, 3]).unwrap_err();
    assert_eq!(short.to_string(), "a serialized value of 3 bytes; its header alone has 8");
    let not_utf8 = Blob::from(vec![0, 0, 0, 0, 0xff, 0xff, 0xff, 0xf5, 0, 0, 0, 2, b'a', 0xff]);
    assert_eq!(String::from_blob(&not_utf8), Err(DataError::NotUtf8 { type_id: TypeId::STRING, at: 1 }));
}

#[test]
fn a_claimed_length_allocates_nothing_before_the_bytes_are_there() {
    for id in [TypeId::LONG_ARRAY, TypeId::STRING_ARRAY, TypeId::ARRAY_LIST, TypeId::BYTE_ARRAY, TypeId::STRING] {
        let mut bytes = vec![0; 4];
        bytes.extend_from_slice(&id.0.to_be_bytes());
        bytes.extend_from_slice(&i32::MAX.to_be_bytes());
        read_as_everything(&bytes);
        let truncated = match id {
            TypeId::LONG_ARRAY => Vec::<i64>::from_blob(&bytes).unwrap_err(),
            TypeId::STRING_ARRAY => Vec::<String>::from_blob(&bytes).unwrap_err(),
            TypeId::ARRAY_LIST => List::<i32>::from_blob(&bytes).unwrap_err(),
            TypeId::BYTE_ARRAY => Vec::<u8>::from_blob(&bytes).unwrap_err(),
            _ => String::from_blob(&bytes).unwrap_err(),
        };
        assert!(matches!(truncated, DataError::Truncated { .. }), "{truncated}");
    }
}

#[test]
fn a_blob_passes_through_as_it_is() {
    let with_hash = Blob::from(vec![0, 0, 0, 9, 0, 0, 0, 77, 1, 2]);
    assert_eq!(with_hash.to_blob().unwrap(), with_hash);
    assert_eq!(Blob::from_blob(&with_hash).unwrap(), with_hash);
    let list = List(vec![7i32.to_blob().unwrap()]).to_blob().unwrap();
    assert_eq!(List::<i32>::from_blob(&list).unwrap(), List(vec![7]));
    assert_eq!(List::<Blob>::from_blob(&list).unwrap(), List(vec![7i32.to_blob().unwrap()]));
}

proptest! {
    #[test]
    fn intervals_read_what_they_write(months: i32, days: i32, nanoseconds: i64) {
        for (months, days, nanoseconds) in
            [(months, days, nanoseconds), (i32::MIN, i32::MAX, i64::MIN), (i32::MAX, i32::MIN, i64::MAX)]
        {
            let interval = Interval { months, days, nanoseconds };
            prop_assert_eq!(interval.to_string().parse(), Ok(interval));
        }
    }
}
