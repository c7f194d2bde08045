//! Lists. The stock clients read and write them as the ordinary list of their language.

use std::ops::{Deref, DerefMut};

use crate::{DataError, FromBlob, Input, ToBlob, TypeId, convert::write_length};

/// A list in the encoding of Java's `ArrayList`, Python's `list` and JavaScript's arrays: the
/// number of items, then each item with its own type id. Items may be `Option`s and lists.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct List<T>(pub Vec<T>);

impl<T> Deref for List<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T> DerefMut for List<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T> From<Vec<T>> for List<T> {
    fn from(items: Vec<T>) -> Self {
        List(items)
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        List(items.into_iter().collect())
    }
}

impl<T> IntoIterator for List<T> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T: ToBlob> ToBlob for List<T> {
    fn type_id(&self) -> TypeId {
        TypeId::ARRAY_LIST
    }

    fn write_payload(&self, out: &mut Vec<u8>) -> Result<(), DataError> {
        write_length(TypeId::ARRAY_LIST, self.0.len(), out)?;
        self.0.iter().try_for_each(|item| item.write_object(out))
    }

    fn payload_bytes(&self) -> usize {
        self.0.iter().fold(4, |bytes, item| bytes + 4 + item.payload_bytes())
    }
}

/// Also reads linked lists and object arrays, which have the same encoding.
impl<T: FromBlob> FromBlob for List<T> {
    fn read_payload(input: &mut Input<'_>) -> Result<Self, DataError> {
        let found = input.type_id();
        if !matches!(found, TypeId::ARRAY_LIST | TypeId::LINKED_LIST | TypeId::OBJECT_ARRAY) {
            return Err(DataError::WrongType { expected: TypeId::ARRAY_LIST, found });
        }
        let length = input.length(size_of::<i32>())?.ok_or_else(|| input.null())?;
        // Not `with_capacity`: an item in memory may be far larger than the minimum of 4 bytes of a
        // serialized item.
        let mut items = Vec::new();
        for _ in 0..length {
            items.push(T::read_object(input)?);
        }
        Ok(List(items))
    }
}
