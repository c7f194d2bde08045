//! Values of fixed size: numbers, flags and UUIDs, in the first frame or as items of packed lists.

use uuid::Uuid;

use super::{Fault, Field, Problem, Reader};
use crate::sample::Source;

/// A type with a fixed number of bytes.
pub trait Fixed: Copy + Sized {
    /// The number of bytes.
    const BYTES: usize;

    /// Appends the bytes.
    fn put(&self, out: &mut Vec<u8>);

    /// Removes a value from the front of `bytes` and returns it.
    ///
    /// # Errors
    ///
    /// [`Problem::Missing`] if too few bytes are left.
    fn take(bytes: &mut &[u8]) -> Result<Self, Problem>;

    /// Creates a valid value from random bytes, for tests.
    fn random(source: &mut Source<'_>) -> Self;
}

/// Removes `N` bytes from the front and returns them.
#[inline]
fn split<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], Problem> {
    let (head, rest) = bytes.split_first_chunk::<N>().ok_or(Problem::Missing)?;
    *bytes = rest;
    Ok(*head)
}

macro_rules! number {
    ($($type:ty: $sample:expr),* $(,)?) => {$(
        impl Fixed for $type {
            const BYTES: usize = size_of::<$type>();

            #[inline]
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn take(bytes: &mut &[u8]) -> Result<Self, Problem> {
                Ok(<$type>::from_le_bytes(split(bytes)?))
            }

            #[inline]
            fn random(source: &mut Source<'_>) -> Self {
                let make: fn(&mut Source<'_>) -> $type = $sample;
                make(source)
            }
        }
    )*};
}

// Random floats are derived from integers: a NaN is not equal to itself, and tests compare values.
number! {
    u8: |source| source.byte(),
    i8: |source| source.byte().cast_signed(),
    i16: |source| i16::from_le_bytes(source.array()),
    i32: |source| i32::from_le_bytes(source.array()),
    i64: |source| i64::from_le_bytes(source.array()),
    f32: |source| f32::from(i16::from_le_bytes(source.array())) / 8.0,
    f64: |source| f64::from(i32::from_le_bytes(source.array())) / 8.0,
}

impl Fixed for bool {
    const BYTES: usize = 1;

    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    #[inline]
    fn take(bytes: &mut &[u8]) -> Result<Self, Problem> {
        let [byte] = split(bytes)?;
        Ok(byte == 1)
    }

    #[inline]
    fn random(source: &mut Source<'_>) -> Self {
        source.byte() & 1 == 1
    }
}

impl Fixed for Option<Uuid> {
    const BYTES: usize = 17;

    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        let (high, low) = self.unwrap_or_default().as_u64_pair();
        out.push(u8::from(self.is_none()));
        out.extend_from_slice(&high.to_le_bytes());
        out.extend_from_slice(&low.to_le_bytes());
    }

    #[inline]
    fn take(bytes: &mut &[u8]) -> Result<Self, Problem> {
        if bytes.len() < Self::BYTES {
            return Err(Problem::Missing);
        }
        let is_null = bool::take(bytes)?;
        let (high, low) = (u64::from_le_bytes(split(bytes)?), u64::from_le_bytes(split(bytes)?));
        Ok((!is_null).then(|| Uuid::from_u64_pair(high, low)))
    }

    #[inline]
    fn random(source: &mut Source<'_>) -> Self {
        bool::random(source).then(|| Uuid::random(source))
    }
}

/// A null decodes to the nil UUID, even if a value is required. Hazelcast members send such nulls,
/// for example as the cluster id in the response to a failed authentication.
impl Fixed for Uuid {
    const BYTES: usize = 17;

    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        Some(*self).put(out);
    }

    #[inline]
    fn take(bytes: &mut &[u8]) -> Result<Self, Problem> {
        Ok(<Option<Uuid> as Fixed>::take(bytes)?.unwrap_or_default())
    }

    #[inline]
    fn random(source: &mut Source<'_>) -> Self {
        Uuid::from_bytes(source.array())
    }
}

/// An entry of a packed list: the bytes of the key, then the bytes of the value.
impl<A: Fixed, B: Fixed> Fixed for (A, B) {
    const BYTES: usize = A::BYTES + B::BYTES;

    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    #[inline]
    fn take(bytes: &mut &[u8]) -> Result<Self, Problem> {
        Ok((A::take(bytes)?, B::take(bytes)?))
    }

    #[inline]
    fn random(source: &mut Source<'_>) -> Self {
        (A::random(source), B::random(source))
    }
}

macro_rules! fixed_field {
    ($($type:ty, nullable: $nullable:literal);* $(;)?) => {$(
        impl<'a> Field<'a> for $type {
            const FIXED_BYTES: usize = <$type as Fixed>::BYTES;
            const NULLABLE: bool = $nullable;

            #[inline]
            fn put_fixed(&self, out: &mut Vec<u8>) {
                self.put(out);
            }

            #[inline]
            fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
                reader.fixed()
            }

            #[inline]
            fn sample(source: &mut Source<'a>) -> Self {
                <$type as Fixed>::random(source)
            }
        }
    )*};
}

fixed_field! {
    bool, nullable: false;
    u8, nullable: false;
    i32, nullable: false;
    i64, nullable: false;
    f32, nullable: false;
    f64, nullable: false;
    Uuid, nullable: false;
    Option<Uuid>, nullable: true;
}
