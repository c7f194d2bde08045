//! Results of aggregators that are not plain values: an entry, a set. The result of a projection of
//! several attributes is a [`List`](crate::List).

use super::class;
use crate::items::broken;
use crate::{DataError, FromBlob, Input, TypeId};

/// An entry, the result of [`Aggregator::MaxBy`](super::Aggregator::MaxBy),
/// [`Aggregator::MinBy`](super::Aggregator::MinBy) and
/// [`Projection::Identity`](super::Projection::Identity).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry<K, V> {
    /// The key.
    pub key: K,
    /// The value.
    pub value: V,
}

/// The distinct values, the result of [`Aggregator::Distinct`](super::Aggregator::Distinct), in no
/// particular order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Distinct<T>(pub Vec<T>);

fn head(input: &mut Input<'_>, (factory, class): (i32, i32), expected: &'static str) -> Result<(), DataError> {
    let found = input.type_id();
    if found != TypeId::IDENTIFIED {
        return Err(DataError::WrongType { expected: TypeId::IDENTIFIED, found });
    }
    input.array::<1>()?;
    let is = (input.i32()?, input.i32()?);
    if is == (factory, class) {
        Ok(())
    } else {
        Err(broken(input, format!("the class {} of the factory {}", is.1, is.0), expected))
    }
}

impl<K: FromBlob, V: FromBlob> FromBlob for Entry<K, V> {
    fn read_payload(input: &mut Input<'_>) -> Result<Self, DataError> {
        head(input, class::ENTRY, "an entry")?;
        Ok(Entry { key: K::read_object(input)?, value: V::read_object(input)? })
    }
}

impl<T: FromBlob> FromBlob for Distinct<T> {
    fn read_payload(input: &mut Input<'_>) -> Result<Self, DataError> {
        head(input, class::DISTINCT_SET, "a set of distinct values")?;
        let length = input.length(4)?.ok_or_else(|| input.null())?;
        // Not `with_capacity`: an item in memory may be far larger than the minimum of 4 bytes of a
        // serialized item.
        let mut items = Vec::new();
        for _ in 0..length {
            items.push(T::read_object(input)?);
        }
        Ok(Distinct(items))
    }
}
