//! How a field becomes bytes: the trait [`Field`], what reads it, and its implementations by kind of layout.
//!
//! | Rust type | layout |
//! |---|---|
//! | `bool`, `u8`, `i32`, `i64`, `f32`, `f64` | in the first frame, little endian |
//! | `Uuid`, `Option<Uuid>` | in the first frame: is-null flag, then two i64 |
//! | `&str`, `&[u8]` | one frame |
//! | `Option` of anything but a `Uuid` | a null frame, or the value's frames |
//! | `Vec` of fixed-size items or of pairs of them | one frame, items packed |
//! | `Vec` of other items or of pairs of them | BEGIN, each item, END |
//! | `Vec<(Uuid, Vec<i32>)>`, `Vec<(i64, &[u8])>` | BEGIN, the values, END, then the keys as a packed list |
//! | a structure of [`structure`](crate::structure) | BEGIN, a frame of fixed fields if it has any, other fields, END |

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

/// A type that a field of a message or of a structure can have.
///
/// A field lies either in the first frame of its message or structure (`FIXED_BYTES` > 0) or in frames of its own.
pub trait Field<'a>: Sized {
    /// Bytes in the first frame; 0 for a field with frames of its own.
    const FIXED_BYTES: usize = 0;
    /// Whether a null stands for an absent value.
    const NULLABLE: bool = false;

    /// Appends the part in the first frame.
    #[inline]
    fn put_fixed(&self, out: &mut Vec<u8>) {
        let _ = out;
    }

    /// Appends the frames.
    #[inline]
    fn put_variable(&self, writer: &mut Writer<'_>) {
        let _ = writer;
    }

    /// Bytes that [`Field::put_variable`] appends at least; exact for text and values.
    #[inline]
    fn size_hint(&self) -> usize {
        0
    }

    /// Reads the field.
    ///
    /// # Errors
    ///
    /// It is missing, null and may not be, or not laid out as its type.
    fn read(reader: &mut Reader<'a>) -> Result<Self, Fault>;

    /// A valid value made of random bytes, for tests.
    fn sample(source: &mut Source<'a>) -> Self;
}

/// Reads the fields of one message in the order of their declaration.
#[derive(Debug)]
pub struct Reader<'a> {
    /// What is left of the fixed fields of the message or structure at hand.
    fixed: &'a [u8],
    frames: Frames<'a>,
}

/// The fixed fields of the surrounding structure, to return to at the end of an inner one.
#[derive(Debug)]
pub struct Outer<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads fixed fields from `fixed` and the others from `frames`.
    #[inline]
    pub fn new(fixed: &'a [u8], frames: Frames<'a>) -> Self {
        Self { fixed, frames }
    }

    /// The next bytes of the first frame as a number or the like.
    ///
    /// # Errors
    ///
    /// [`Problem::Missing`] when too few are left.
    #[inline]
    pub fn fixed<T: Fixed>(&mut self) -> Result<T, Fault> {
        Ok(T::take(&mut self.fixed)?)
    }

    /// Whether there is something left to read a `T` from: false when the peer is older than the field.
    #[inline]
    pub fn has<T: Field<'a>>(&self) -> bool {
        if T::FIXED_BYTES > 0 { self.fixed.len() >= T::FIXED_BYTES } else { !self.at_end() }
    }

    /// A field that the protocol had from the message's first version on.
    ///
    /// # Errors
    ///
    /// As [`Field::read`].
    #[inline]
    pub fn field<T: Field<'a>>(&mut self, name: &'static str) -> Result<T, Fault> {
        T::read(self).map_err(|fault| fault.within(name))
    }

    /// A field that a later version added: its default where the peer did not send it.
    ///
    /// # Errors
    ///
    /// As [`Field::read`].
    #[inline]
    pub fn field_or_default<T: Field<'a> + Default>(&mut self, name: &'static str) -> Result<T, Fault> {
        if self.has::<T>() { self.field(name) } else { Ok(T::default()) }
    }

    /// Whether no frame is left in the message, list or structure at hand.
    #[inline]
    pub fn at_end(&self) -> bool {
        self.frames.peek().is_none_or(|frame| frame.kind() == FrameKind::End)
    }

    /// The content of the next frame, which must be a value.
    ///
    /// # Errors
    ///
    /// There is none, or it is a null, a begin or an end.
    #[inline]
    pub fn value(&mut self) -> Result<&'a [u8], Fault> {
        Ok(self.expect(FrameKind::Value)?.content)
    }

    /// Moves past a null frame if one is next.
    #[inline]
    pub fn take_null(&mut self) -> bool {
        let mut ahead = self.frames;
        let is_null = ahead.next().is_some_and(|frame| frame.kind() == FrameKind::Null);
        if is_null {
            self.frames = ahead;
        }
        is_null
    }

    /// Moves past the begin frame of a list.
    ///
    /// # Errors
    ///
    /// The next frame is another one.
    #[inline]
    pub fn begin(&mut self) -> Result<(), Fault> {
        self.expect(FrameKind::Begin)?;
        Ok(())
    }

    /// Whether a list goes on. Moves past its end frame if not.
    ///
    /// # Errors
    ///
    /// [`Problem::Unterminated`] when the message ends.
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

    /// Moves into a structure, and past the frame of its fixed fields if it has one.
    ///
    /// # Errors
    ///
    /// The frames are not there.
    #[inline]
    pub fn enter(&mut self, has_fixed: bool) -> Result<Outer<'a>, Fault> {
        self.begin()?;
        let fixed = if has_fixed { self.value()? } else { &[] };
        Ok(Outer(std::mem::replace(&mut self.fixed, fixed)))
    }

    /// Moves out of a structure, past fields that this version does not know.
    ///
    /// # Errors
    ///
    /// [`Problem::Unterminated`] when the message ends before the structure does.
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
