//! The kinds of frames. A separate module, because `error` uses it and `frame` uses `error`.

use std::fmt;

/// The kind of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// A value.
    Value,
    /// The start of a list or a structure.
    Begin,
    /// The end of a list or a structure.
    End,
    /// A null in place of a value.
    Null,
}

impl fmt::Display for FrameKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FrameKind::Value => "a value",
            FrameKind::Begin => "the begin of a structure",
            FrameKind::End => "the end of a structure",
            FrameKind::Null => "a null",
        })
    }
}
