//! The encoding of fields: the trait [`Field`], the [`Reader`] of fields, and the implementations
//! of the trait by layout.
//!
//! | Rust type | layout |
//! |---|---|
//! | `bool`, `u8`, `i32`, `i64`, `f32`, `f64` | in the first frame, little endian |
//! | `Uuid`, `Option<Uuid>` | in the first frame: is-null flag, then two i64 |
//! | `&str`, `&[u8]` | one frame |
//! | `Option` of any other type | a null frame, or the value's frames |
//! | `Vec` of fixed-size items or of pairs of them | one frame, items packed |
//! | `Vec` of other items or of pairs of them | BEGIN, each item, END |
//! | `Vec<(Uuid, Vec<i32>)>`, `Vec<(i64, &[u8])>` | BEGIN, the values, END, packed list of keys |
//! | a [`structure`](crate::structure) | BEGIN, frame of fixed fields (if any), other fields, END |

mod fixed;
mod variable;

pub use fixed::Fixed;
pub use variable::{Item, Variable};

pub use crate::error::{Fault, Problem};
pub use crate::frame::Writer;
use crate::{
    frame::{Frame, FrameKind, Frames},
    sample::Source,
};

/// The type of a field of a message or a structure.
///
/// A field is stored either in the first frame of its message or structure (`FIXED_BYTES` > 0) or
/// in frames of its own.
pub trait Field<'a>: Sized {
    /// The number of bytes in the first frame; 0 for a field with frames of its own.
    const FIXED_BYTES: usize = 0;
    /// Whether the field may be null.
    const NULLABLE: bool = false;

    /// Appends the bytes in the first frame.
    #[inline]
    fn put_fixed(&self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// Appends the frames of the field.
    #[inline]
    fn put_variable(&self, writer: &mut Writer<'_>) {
        let _ = writer;
    }

    /// The minimum number of bytes that [`Field::put_variable`] appends. Exact for strings and
    /// values.
    #[inline]
    fn size_hint(&self) -> usize {
        0
    }

    /// Reads the field.
    ///
    /// # Errors
    ///
    /// The field is missing, is null although a value is required, or has the wrong layout.
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault>;

    /// Creates a valid value from random bytes, for tests.
    fn sample(source: &mut Source<'a>) -> Self;
}

/// Reads a field. A field with a later version may be missing.
macro_rules! read_field {
    ($reader:ident, $name:expr) => {
        $reader.field($name)
    };
    ($reader:ident, $name:expr, $later:literal) => {
        $reader.field_or_default($name)
    };
}

pub(crate) use read_field;

/// Reads the fields of one message in the order of their declaration.
#[derive(Debug)]
pub struct Reader<'a> {
    /// The unread bytes of the fixed fields of the current message or structure.
    fixed: &'a [u8],
    frames: Frames<'a>,
}

/// The unread fixed fields of an outer structure. They are restored at the end of the inner
/// structure.
#[derive(Debug)]
pub struct Outer<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads fixed fields from `fixed` and the others from `frames`.
    #[inline]
    pub fn new(fixed: &'a [u8], frames: Frames<'a>) -> Self {
        Self { fixed, frames }
    }

    /// Reads the next value of fixed size.
    ///
    /// # Errors
    ///
    /// [`Problem::Missing`] if too few bytes are left.
    #[inline]
    pub fn fixed<T: Fixed>(&mut self) -> Result<T, Fault> {
        Ok(T::take(&mut self.fixed)?)
    }

    /// Whether there is data for a field of type `T`. False if the peer is older than the field.
    #[inline]
    pub fn has<T: Field<'a>>(&self) -> bool {
        if T::FIXED_BYTES > 0 { self.fixed.len() >= T::FIXED_BYTES } else { !self.at_end() }
    }

    /// Reads a field that exists since the first version of the message.
    ///
    /// # Errors
    ///
    /// As [`Field::read`].
    #[inline]
    pub fn field<T: Field<'a>>(&mut self, name: &'static str) -> Result<T, Fault> {
        T::read(self).map_err(|fault| fault.within(name))
    }

    /// Reads a field that a later version added. Returns the default if the peer did not send the
    /// field.
    ///
    /// # Errors
    ///
    /// As [`Field::read`].
    #[inline]
    pub fn field_or_default<T: Field<'a> + Default>(&mut self, name: &'static str) -> Result<T, Fault> {
        if self.has::<T>() { self.field(name) } else { Ok(T::default()) }
    }

    /// Whether no frame is left in the current message, list or structure.
    #[inline]
    pub fn at_end(&self) -> bool {
        self.frames.peek().is_none_or(|frame| frame.kind() == FrameKind::End)
    }

    /// Reads the next frame, which must be a value, and returns its content.
    ///
    /// # Errors
    ///
    /// There is no next frame, or it is a null, BEGIN or END frame.
    #[inline]
    pub fn value(&mut self) -> Result<&'a [u8], Fault> {
        Ok(self.expect(FrameKind::Value)?.content)
    }

    /// Reads the next frame if it is a null frame. Returns true if it is.
    #[inline]
    pub fn take_null(&mut self) -> bool {
        let mut ahead = self.frames;
        let is_null = ahead.next().is_some_and(|frame| frame.kind() == FrameKind::Null);
        if is_null {
            self.frames = ahead;
        }
        is_null
    }

    /// Reads the BEGIN frame of a list.
    ///
    /// # Errors
    ///
    /// The next frame is not a BEGIN frame.
    #[inline]
    pub fn begin(&mut self) -> Result<(), Fault> {
        self.expect(FrameKind::Begin)?;
        Ok(())
    }

    /// Whether the list has another item. If not, reads the END frame of the list.
    ///
    /// # Errors
    ///
    /// [`Problem::Unterminated`] if the message ends.
    #[inline]
    pub fn more(&mut self) -> Result<bool, Fault> {
        let mut ahead = self.frames;
        match ahead.next() {
            None => Err(Problem::Unterminated.into()),
            Some(frame) if frame.kind() == FrameKind::End => {
                self.frames = ahead;
                Ok(false)
            }
            Some(_) => Ok(true),
        }
    }

    /// Enters a structure: reads its BEGIN frame and the frame of its fixed fields, if it has one.
    ///
    /// # Errors
    ///
    /// One of these frames is missing.
    #[inline]
    pub fn enter(&mut self, has_fixed: bool) -> Result<Outer<'a>, Fault> {
        self.begin()?;
        let fixed = if has_fixed { self.value()? } else { &[] };
        Ok(Outer(std::mem::replace(&mut self.fixed, fixed)))
    }

    /// Leaves a structure. Skips fields that this version does not know.
    ///
    /// # Errors
    ///
    /// [`Problem::Unterminated`] if the message ends before the structure.
    #[inline]
    pub fn leave(&mut self, outer: Outer<'a>) -> Result<(), Fault> {
        self.fixed = outer.0;
        let mut depth = 0_usize;
        for frame in self.frames.by_ref() {
            match frame.kind() {
                FrameKind::Begin => depth += 1,
                FrameKind::End if depth == 0 => return Ok(()),
                FrameKind::End => depth -= 1,
                FrameKind::Value | FrameKind::Null => {}
            }
        }
        Err(Problem::Unterminated.into())
    }

    #[inline]
    fn expect(&mut self, expected: FrameKind) -> Result<Frame<'a>, Fault> {
        match self.frames.next() {
            Some(frame) if frame.kind() == expected => Ok(frame),
            other => Err(Self::unexpected(other, expected)),
        }
    }

    #[cold]
    fn unexpected(found: Option<Frame<'a>>, expected: FrameKind) -> Fault {
        match found.map(|frame| frame.kind()) {
            None => Problem::Missing.into(),
            Some(FrameKind::Null) => Problem::Null.into(),
            Some(found) => Problem::UnexpectedFrame { found, expected }.into(),
        }
    }
}
