//! The Compact format: the names and types of an object's fields are announced once, as a
//! [`Schema`], so that each value contains only the id of the schema.
//!
//! # The layout
//!
//! ```text
//! ┌─────────────────┬────────────┬───────────────────┬─────────────────────┬─────────────────────┐
//! │ schema id i64 BE│ data length│ fields of fixed   │ fields of variable  │ positions of fields │
//! │                 │ i32 BE (*) │ size, then bits of│ size, as written (*)│ of variable size (*)│
//! │                 │            │ booleans          │                     │                     │
//! └─────────────────┴────────────┴───────────────────┴─────────────────────┴─────────────────────┘
//!                                 position 0
//! ```
//!
//! Parts with (*) exist only if the schema has a field of variable size. Fields of fixed size are
//! ordered by size, the widest first, then by name. Booleans are bits, the lowest bit first.
//! Positions are in the order of the names. Each position has one byte if the data has fewer than
//! 255 bytes, two bytes if it has fewer than 65,535, else four bytes. -1 is null. Arrays of items
//! of variable size have the same structure: data length, count, items, positions. The source of
//! the format is the stock clients.

mod describe;
mod object;
mod read;
mod schema;
mod write;

pub use crate::type_id::SchemaId;
pub use describe::{fields_of, object_bytes, schema_of, to_json};
pub use read::{Reader, read_fields};
pub use schema::{FieldDescriptor, FieldKind, Schema, SchemaSource};
pub use write::Writer;
