//! Numbers, booleans, characters and UUIDs.

use uuid::Uuid;

use crate::{DataError, FromBlob, Input, ToBlob, TypeId, convert::expect_type};

macro_rules! numbers {
    ($($rust:ty = $type_id:ident;)*) => {
        $(
            #[doc = concat!("Big-endian, ", stringify!($type_id), ".")]
            impl ToBlob for $rust {
                #[inline]
                fn type_id(&self) -> TypeId {
                    TypeId::$type_id
                }

                #[inline]
                fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
                    out.extend_from_slice(&self.to_be_bytes());
                    Ok(())
                }

                #[inline]
                fn payload_bytes(&self) -> usize {
                    size_of::<$rust>()
                }
            }

            impl FromBlob for $rust {
                #[inline]
                fn read_payload(input: &mut Input<'_>) -> Result<Self, DataError> {
                    expect_type(input, TypeId::$type_id)?;
                    Ok(<$rust>::from_be_bytes(input.array()?))
                }
            }
        )*
    };
}

numbers! {
    i8 = BYTE;
    i16 = SHORT;
    i32 = INT;
    i64 = LONG;
    f32 = FLOAT;
    f64 = DOUBLE;
}

impl ToBlob for bool {
    fn type_id(&self) -> TypeId {
        TypeId::BOOLEAN
    }

    fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        out.push(u8::from(*self));
        Ok(())
    }

    fn payload_bytes(&self) -> usize {
        1
    }
}

/// Any byte but 0 is true.
impl FromBlob for bool {
    fn read_payload(input: &mut Input<'_>) -> Result<Self, DataError> {
        expect_type(input, TypeId::BOOLEAN)?;
        let [byte] = input.array()?;
        Ok(byte != 0)
    }
}

/// One UTF-16 unit, so only characters of the basic multilingual plane.
impl ToBlob for char {
    fn type_id(&self) -> TypeId {
        TypeId::CHAR
    }

    fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        let code = u32::from(*self);
        let unit = u16::try_from(code).map_err(|_| DataError::NotOneUnit { code })?;
        out.extend_from_slice(&unit.to_be_bytes());
        Ok(())
    }

    fn payload_bytes(&self) -> usize {
        2
    }
}

/// A lone surrogate is an error: Java's `char` can represent it, Rust's cannot.
impl FromBlob for char {
    fn read_payload(input: &mut Input<'_>) -> Result<Self, DataError> {
        expect_type(input, TypeId::CHAR)?;
        read_char(input)
    }
}

pub(crate) fn read_char(input: &mut Input<'_>) -> Result<char, DataError> {
    let code = u32::from(u16::from_be_bytes(input.array()?));
    char::from_u32(code).ok_or(DataError::NotOneUnit { code })
}

/// The upper 64 bits, then the lower 64 bits.
impl ToBlob for Uuid {
    fn type_id(&self) -> TypeId {
        TypeId::UUID
    }

    fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        out.extend_from_slice(self.as_bytes());
        Ok(())
    }

    fn payload_bytes(&self) -> usize {
        16
    }
}

impl FromBlob for Uuid {
    fn read_payload(input: &mut Input<'_>) -> Result<Self, DataError> {
        expect_type(input, TypeId::UUID)?;
        Ok(Uuid::from_bytes(input.array()?))
    }
}
