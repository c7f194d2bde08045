//! The Portable format: objects that contain the names and types of their fields, so that they can
//! be read without their class.
//!
//! # The layout
//!
//! ```text
//! ┌────────────┬──────────┬─────────┬──────────────┬─────────────┬─────────────────┬─────────────┐
//! │ factory i32│ class i32│ version │ end position │ field count │ one position per│ fields, then│
//! │            │          │ i32     │ i32          │ i32         │ field, one for  │ raw data,   │
//! │            │          │         │              │             │ raw data, i32   │ if any      │
//! └────────────┴──────────┴─────────┴──────────────┴─────────────┴─────────────────┴─────────────┘
//! field: ┌──────────────────┬──────┬─────────┬───────┐
//!        │ name's length i16│ name │ type u8 │ value │
//!        └──────────────────┴──────┴─────────┴───────┘
//! ```
//!
//! All numbers are big-endian. Positions count from the start of the blob, including its header of
//! 8 bytes; this also holds within nested objects. A nested object is a byte (1 for null), factory
//! and class, then the parts after the class as above. An array of objects is its length, factory
//! and class, a position for each item, then the items from their version on. Decimals, dates and
//! times have a byte in front (1 for null); arrays of them have a position for each item. The
//! source of the format is the stock clients.
//!
//! # Invariants
//!
//! Each part lies within the part that contains it, and the items of an array follow one another,
//! as every client writes them. A violation is an error. So no object is read more often than it
//! occurs, whatever its positions claim.

mod cut;
mod describe;
mod kind;
mod object;
mod read;
mod write;

pub use cut::cut_out;
pub(crate) use cut::put_in;
pub use describe::{class_of, definition_of, fields_of, to_json};
pub use kind::FieldKind;
pub use object::ClassId;
pub use read::{Reader, read_fields};
pub use write::{ClassDefinition, FieldDefinition, Writer};
