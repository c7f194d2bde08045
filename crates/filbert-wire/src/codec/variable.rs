//! Fields with frames of their own: strings, values, nullable fields, lists and entry lists.

use uuid::Uuid;

use super::{Fault, Field, Fixed, Problem, Reader, Writer};
use crate::{frame::FRAME_HEADER_BYTES, sample::Source};

/// A field with at least one frame of its own, so that a null frame can replace it.
pub trait Variable<'a>: Field<'a> {}

/// The type of a list item. It determines the layout of the list.
pub trait Item<'a>: Sized {
    /// Appends the frames of the whole list.
    fn put_list(items: &[Self], writer: &mut Writer<'_>);

    /// Reads the frames of the whole list.
    ///
    /// # Errors
    ///
    /// The frames are missing, are null, or have the wrong layout.
    fn read_list(reader: &mut Reader<'a>) -> Result<Vec<Self>, Fault>;

    /// Creates an item from random bytes, for tests.
    fn sample_item(source: &mut Source<'a>) -> Self;
}

impl<'a> Field<'a> for &'a [u8] {
    #[inline]
    fn put_variable(&self, writer: &mut Writer<'_>) {
        writer.frame(0, self);
    }

    #[inline]
    fn size_hint(&self) -> usize {
        FRAME_HEADER_BYTES + self.len()
    }

    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        reader.value()
    }

    #[inline]
    fn sample(source: &mut Source<'a>) -> Self {
        source.bytes()
    }
}

impl<'a> Variable<'a> for &'a [u8] {}

impl<'a> Field<'a> for &'a str {
    #[inline]
    fn put_variable(&self, writer: &mut Writer<'_>) {
        writer.frame(0, self.as_bytes());
    }

    #[inline]
    fn size_hint(&self) -> usize {
        FRAME_HEADER_BYTES + self.len()
    }

    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        std::str::from_utf8(reader.value()?).map_err(|error| Problem::NotUtf8 { at: error.valid_up_to() }.into())
    }

    #[inline]
    fn sample(source: &mut Source<'a>) -> Self {
        source.text()
    }
}

impl<'a> Variable<'a> for &'a str {}

impl<'a, T: Variable<'a>> Field<'a> for Option<T> {
    const NULLABLE: bool = true;

    #[inline]
    fn put_variable(&self, writer: &mut Writer<'_>) {
        match self {
            Some(value) => value.put_variable(writer),
            None => writer.null(),
        }
    }

    #[inline]
    fn size_hint(&self) -> usize {
        self.as_ref().map_or(FRAME_HEADER_BYTES, T::size_hint)
    }

    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        if reader.take_null() { Ok(None) } else { T::read(reader).map(Some) }
    }

    #[inline]
    fn sample(source: &mut Source<'a>) -> Self {
        (source.byte() & 1 == 1).then(|| T::sample(source))
    }
}

impl<'a, T: Variable<'a>> Variable<'a> for Option<T> {}

/// An entry of a list between BEGIN and END: the frames of the key, then the frames of the value.
impl<'a, A: Variable<'a>, B: Variable<'a>> Field<'a> for (A, B) {
    #[inline]
    fn put_variable(&self, writer: &mut Writer<'_>) {
        self.0.put_variable(writer);
        self.1.put_variable(writer);
    }

    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        let key = A::read(reader).map_err(|fault| fault.within("key"))?;
        let value = B::read(reader).map_err(|fault| fault.within("value"))?;
        Ok((key, value))
    }

    #[inline]
    fn sample(source: &mut Source<'a>) -> Self {
        (A::sample(source), B::sample(source))
    }
}

impl<'a, A: Variable<'a>, B: Variable<'a>> Variable<'a> for (A, B) {}

impl<'a, T: Item<'a>> Field<'a> for Vec<T> {
    #[inline]
    fn put_variable(&self, writer: &mut Writer<'_>) {
        T::put_list(self, writer);
    }

    #[inline]
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault> {
        T::read_list(reader)
    }

    #[inline]
    fn sample(source: &mut Source<'a>) -> Self {
        let count = source.count();
        (0..count).map(|_| T::sample_item(source)).collect()
    }
}

impl<'a, T: Item<'a>> Variable<'a> for Vec<T> {}

impl<'a, T: Variable<'a>> Item<'a> for T {
    #[inline]
    fn put_list(items: &[Self], writer: &mut Writer<'_>) {
        writer.begin();
        for item in items {
            item.put_variable(writer);
        }
        writer.end();
    }

    #[inline]
    fn read_list(reader: &mut Reader<'a>) -> Result<Vec<Self>, Fault> {
        reader.begin()?;
        let mut items = Vec::new();
        while reader.more()? {
            items.push(T::read(reader)?);
        }
        Ok(items)
    }

    #[inline]
    fn sample_item(source: &mut Source<'a>) -> Self {
        T::sample(source)
    }
}

/// Appends one frame with all items in sequence.
#[inline]
fn put_packed<T: Fixed>(items: &[T], writer: &mut Writer<'_>) {
    writer.reserve(FRAME_HEADER_BYTES + items.len() * T::BYTES);
    writer.frame_with(0, |out| items.iter().for_each(|item| item.put(out)));
}

/// Reads one frame of items in sequence. The allocated memory is proportional to the size of the
/// frame.
#[inline]
fn read_packed<T: Fixed>(reader: &mut Reader<'_>) -> Result<Vec<T>, Fault> {
    let mut bytes = reader.value()?;
    if !bytes.len().is_multiple_of(T::BYTES) {
        return Err(Problem::BrokenList { bytes: bytes.len(), item_bytes: T::BYTES }.into());
    }
    let mut items = Vec::with_capacity(bytes.len() / T::BYTES);
    while !bytes.is_empty() {
        items.push(T::take(&mut bytes)?);
    }
    Ok(items)
}

macro_rules! packed {
    ($($type:ty),* $(,)?) => {$(
        impl<'a> Item<'a> for $type {
            #[inline]
            fn put_list(items: &[Self], writer: &mut Writer<'_>) {
                put_packed(items, writer);
            }

            #[inline]
            fn read_list(reader: &mut Reader<'a>) -> Result<Vec<Self>, Fault> {
                read_packed(reader)
            }

            #[inline]
            fn sample_item(source: &mut Source<'a>) -> Self {
                <$type as Fixed>::random(source)
            }
        }
    )*};
}

packed!(i32, i64, f32, Uuid, (i32, i32), (i32, i64), (i32, Uuid), (Uuid, i64), (Uuid, Uuid));

/// Appends entries with the keys last: the values between BEGIN and END, then the keys as a packed
/// list.
#[inline]
fn put_keys_last<'a, K: Fixed, V: Variable<'a>>(entries: &[(K, V)], writer: &mut Writer<'_>) {
    writer.begin();
    for (_, value) in entries {
        value.put_variable(writer);
    }
    writer.end();
    writer.frame_with(0, |out| entries.iter().for_each(|(key, _)| key.put(out)));
}

#[inline]
fn read_keys_last<'a, K: Fixed, V: Variable<'a> + Item<'a>>(reader: &mut Reader<'a>) -> Result<Vec<(K, V)>, Fault> {
    let values = V::read_list(reader).map_err(|fault| fault.within("value"))?;
    let keys = read_packed::<K>(reader).map_err(|fault| fault.within("key"))?;
    if keys.len() != values.len() {
        return Err(Problem::UnequalEntries { keys: keys.len(), values: values.len() }.into());
    }
    Ok(keys.into_iter().zip(values).collect())
}

macro_rules! keys_last {
    ($($key:ty => $value:ty),* $(,)?) => {$(
        impl<'a> Item<'a> for ($key, $value) {
            #[inline]
            fn put_list(items: &[Self], writer: &mut Writer<'_>) {
                put_keys_last(items, writer);
            }

            #[inline]
            fn read_list(reader: &mut Reader<'a>) -> Result<Vec<Self>, Fault> {
                read_keys_last(reader)
            }

            #[inline]
            fn sample_item(source: &mut Source<'a>) -> Self {
                (<$key as Fixed>::random(source), <$value as Field<'a>>::sample(source))
            }
        }
    )*};
}

keys_last!(Uuid => Vec<i32>, i64 => &'a [u8]);
