//! JSON documents: finding fields by path in the text, without building what is not asked for.
//!
//! # What a document's parts are
//!
//! | part | value |
//! |---|---|
//! | whole number of 64 bits | `Int64` |
//! | larger whole number, or one beyond the doubles | `Decimal` |
//! | other number | `Float64`, the nearest |
//! | text | `Text`, borrowed unless it has escapes |
//! | `true`, `false` | `Boolean` |
//! | `null` | `Null` |
//! | object, array | `Json`, its text |
//! | what `[any]` finds | `Array` |
//!
//! # Invariants
//!
//! - A document is read from its beginning up to the last field that is asked for, and everything on this way is checked: text
//!   that is no JSON is an error that names the byte. What follows is not looked at.
//! - Of several members of one name the first counts.
//! - Nothing here is recursive in the document; in the path it is, and paths have a limit.

mod find;
mod reader;
mod scan;

pub(crate) use find::find;
pub(crate) use reader::Reader;
