//! Arrays: Rust's slices and vectors of numbers, booleans, characters and texts. A `Vec<u8>` is a
//! byte array.

use crate::{
    DataError, FromBlob, Input, ToBlob, TypeId,
    convert::{expect_type, write_length},
    scalars::read_char,
    text::write_text,
};

/// Implements both traits for the slice and the vector of an item type. The parameters are the
/// minimum number of bytes of an item, and the functions that write and read one item.
macro_rules! arrays {
    ($($item:ty = $type_id:ident, $item_bytes:expr, write $write:expr, read $read:expr;)*) => {
        $(
            impl ToBlob for [$item] {
                fn type_id(&self) -> TypeId {
                    TypeId::$type_id
                }

                fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
                    write_length(TypeId::$type_id, self.len(), out)?;
                    out.reserve(self.len().saturating_mul($item_bytes));
                    let write: fn(&$item, &mut Vec<u8>) -> Result<(), DataError> = $write;
                    self.iter().try_for_each(|item| write(item, out))
                }

                fn payload_bytes(&self) -> usize {
                    self.len().saturating_mul($item_bytes).saturating_add(4)
                }
            }

            impl ToBlob for Vec<$item> {
                fn type_id(&self) -> TypeId {
                    TypeId::$type_id
                }

                fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
                    self.as_slice().write_payload(out)
                }

                fn payload_bytes(&self) -> usize {
                    self.as_slice().payload_bytes()
                }
            }

            impl FromBlob for Vec<$item> {
                fn read_payload(input: &mut Input<'_>) -> Result<Self, DataError> {
                    expect_type(input, TypeId::$type_id)?;
                    let length = input.length($item_bytes)?.ok_or_else(|| input.null())?;
                    let read: fn(&mut Input<'_>) -> Result<$item, DataError> = $read;
                    // The length was checked against the number of unread bytes.
                    let mut items = Vec::with_capacity(length);
                    for _ in 0..length {
                        items.push(read(input)?);
                    }
                    Ok(items)
                }
            }
        )*
    };
}

macro_rules! number_arrays {
    ($($item:ty = $type_id:ident;)*) => {
        arrays! {
            $($item = $type_id, size_of::<$item>(),
                write |item, out| {
                    out.extend_from_slice(&item.to_be_bytes());
                    Ok(())
                },
                read |input| Ok(<$item>::from_be_bytes(input.array()?));)*
        }
    };
}

number_arrays! {
    i16 = SHORT_ARRAY;
    i32 = INT_ARRAY;
    i64 = LONG_ARRAY;
    f32 = FLOAT_ARRAY;
    f64 = DOUBLE_ARRAY;
}

arrays! {
    bool = BOOLEAN_ARRAY, 1,
        write |item, out| {
            out.push(u8::from(*item));
            Ok(())
        },
        read |input| input.array().map(|[byte]| byte != 0);
    char = CHAR_ARRAY, 2, write |item, out| item.write_payload(out), read read_char;
    String = STRING_ARRAY, 4,
        write |item, out| write_text(TypeId::STRING_ARRAY, item, out),
        read |input| input.text()?.map(str::to_owned).ok_or_else(|| input.null());
    Option<String> = STRING_ARRAY, 4,
        write |item, out| match item {
            Some(text) => write_text(TypeId::STRING_ARRAY, text, out),
            None => {
                out.extend_from_slice(&(-1i32).to_be_bytes());
                Ok(())
            }
        },
        read |input| Ok(input.text()?.map(str::to_owned));
}

impl ToBlob for [&str] {
    fn type_id(&self) -> TypeId {
        TypeId::STRING_ARRAY
    }

    fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        write_length(TypeId::STRING_ARRAY, self.len(), out)?;
        self.iter().try_for_each(|item| write_text(TypeId::STRING_ARRAY, item, out))
    }
}

impl ToBlob for [u8] {
    fn type_id(&self) -> TypeId {
        TypeId::BYTE_ARRAY
    }

    fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        write_length(TypeId::BYTE_ARRAY, self.len(), out)?;
        out.extend_from_slice(self);
        Ok(())
    }

    fn payload_bytes(&self) -> usize {
        4 + self.len()
    }
}

impl ToBlob for Vec<u8> {
    fn type_id(&self) -> TypeId {
        TypeId::BYTE_ARRAY
    }

    fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        self.as_slice().write_payload(out)
    }

    fn payload_bytes(&self) -> usize {
        self.as_slice().payload_bytes()
    }
}

impl FromBlob for Vec<u8> {
    fn read_payload(input: &mut Input<'_>) -> Result<Self, DataError> {
        expect_type(input, TypeId::BYTE_ARRAY)?;
        let length = input.length(1)?.ok_or_else(|| input.null())?;
        input.take(length).map(<[u8]>::to_vec)
    }
}
