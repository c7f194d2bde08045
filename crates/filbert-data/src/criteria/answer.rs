//! Answers of aggregators that are more than a value: an entry, a set. What a projection of several attributes answers
//! is a [`List`](crate::List).

use super::class;
use crate::parts::broken;
use crate::{DataError, FromBlob, Input, TypeId};

/// The entry that [`Aggregator::MaxBy`](super::Aggregator::MaxBy), [`Aggregator::MinBy`](super::Aggregator::MinBy) and
/// [`Projection::Identity`](super::Projection::Identity) answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Entry<K, V> {
    /// Its key.
    pub key: K,
    /// Its value.
    pub value: V,
}

/// The values that [`Aggregator::Distinct`](super::Aggregator::Distinct) answers, in no order.
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
        // Not `with_capacity`: an item in memory may be far larger than the 4 bytes that it has here at least.
        let mut items = Vec::new();
        for _ in 0..length {
            items.push(T::read_object(input)?);
        }
        Ok(Distinct(items))
    }
}
