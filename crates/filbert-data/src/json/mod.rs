//! JSON documents: finds fields by path in the text, without building a tree of the document.
//!
//! # The values of a document
//!
//! | JSON | value |
//! |---|---|
//! | whole number of 64 bits | `Int64` |
//! | larger whole number, or number beyond the range of doubles | `Decimal` |
//! | fraction with more digits than a double holds, without exponent | `Decimal` |
//! | other number | `Float64`, the nearest double |
//! | text | `Text`, borrowed unless it has escapes |
//! | `true`, `false` | `Boolean` |
//! | `null` | `Null` |
//! | object, array | `Json`, the text of it |
//! | result of `[any]` | `Array` |
//!
//! # Invariants
//!
//! - A document is read from its beginning up to the last requested field, and its syntax is
//!   checked up to there: invalid JSON is an error that names the byte. The text after the last
//!   requested field is not read.
//! - If several members have the same name, the first member is used.
//! - No function recurses over the depth of the document. Functions recurse over the steps of the
//!   path, and the number of steps is limited.

mod find;
mod reader;
mod scan;

pub(crate) use find::find;
pub(crate) use reader::Reader;
