//! The Compact format: objects whose names and types are announced once, as a [`Schema`], so that each value carries
//! the schema's id alone.
//!
//! # The layout
//!
//! ```text
//! ┌──────────────────┬─────────────┬─────────────────────┬──────────────────────┬───────────────────────────┐
//! │ schema id i64 BE │ data length │ fields of fixed size│ fields of variable   │ positions of the fields of│
//! │                  │ i32 BE (*)  │ then booleans' bits │ size, as written (*) │ variable size (*)         │
//! └──────────────────┴─────────────┴─────────────────────┴──────────────────────┴───────────────────────────┘
//!                                   0 of the positions
//! ```
//!
//! Parts with (*) are there only if the schema has a field of variable size. Fields of fixed size stand by size, the
//! widest first, and by name; booleans are bits, the lowest first. Positions are in the order of the names; each has
//! one byte if the data has fewer than 255 bytes, two if it has fewer than 65,535, else four. -1 is null. Arrays of items of
//! variable size repeat this: data length, count, items, positions. The source of the format is the stock clients.

mod describe;
mod object;
mod read;
mod schema;
mod write;

pub use describe::{fields_of, object_bytes, schema_of, to_json};
pub use read::{Reader, read_fields};
pub use schema::{FieldDescriptor, FieldKind, Schema, SchemaId};
pub use write::Writer;
