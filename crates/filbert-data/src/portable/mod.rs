//! The Portable format: objects that carry names and types of their fields, so that they are read without their class.
//!
//! # The layout
//!
//! ```text
//! ┌────────────┬──────────┬─────────┬──────────────┬─────────────┬───────────────────────────┬────────────────┐
//! │ factory i32│ class i32│ version │ end position │ field count │ a position for each field,│ fields, then   │
//! │            │          │ i32     │ i32          │ i32         │ one for raw data, i32     │ raw data if any│
//! └────────────┴──────────┴─────────┴──────────────┴─────────────┴───────────────────────────┴────────────────┘
//! field: ┌──────────────────┬──────┬─────────┬───────┐
//!        │ name's length i16│ name │ type u8 │ value │
//!        └──────────────────┴──────┴─────────┴───────┘
//! ```
//!
//! All numbers are big-endian; positions count from the start of the blob, its header of 8 bytes included, also within
//! nested objects. A nested object is a byte (1 for null), factory, class, and what follows the class above. An array of
//! objects is its length, factory, class, a position for each item, then the items from their version on. Decimals, dates and
//! times have a byte before them (1 for null), and a position for each item in arrays. The source of the format is the
//! stock clients.
//!
//! # Invariants
//!
//! Parts lie within what holds them, and the items of an array one after the other, as every client writes them. What
//! breaks this is an error; so no object is read more often than it is there, whatever its positions say.

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
