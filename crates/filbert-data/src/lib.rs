//! The data model: serialized blobs, the types of their values, and the hash that selects a key's
//! partition.
//!
//! A [`Blob`] is a value in the serialized form of Hazelcast's clients. The rest of the system
//! stores, compares and sends blobs as opaque bytes; this crate reads and writes their content. It
//! must not know maps, messages, sockets or clocks.
//!
//! # The layout
//!
//! ```text
//! ┌─────────────────────────┬────────────────┬─────────────┐
//! │ partition hash i32 BE   │ type id i32 BE │ payload     │
//! │ (0: hash of the payload)│ see `TypeId`   │             │
//! └─────────────────────────┴────────────────┴─────────────┘
//! ```
//!
//! All numbers are big-endian. A text is its length in bytes as `i32`, then its UTF-8 bytes. An
//! array is its number of items as `i32`, then the items. A length of -1 means null. A list is its
//! length as `i32`, then a type id and a payload for each item.
//!
//! # Invariants
//!
//! - [`ToBlob`] writes the same bytes as the stock clients, so that all clients find each other's
//!   keys.
//! - Reading never panics. It allocates in proportion to the bytes of the input, whatever lengths
//!   the input claims.
//! - Equal keys have equal bytes: maps compare keys by their bytes alone.
//!
//! # Modules, from bottom to top
//!
//! Each module uses only the modules before it. `path` defines paths to fields. `json`, `portable`
//! and `compact` are formats, each with a reader of fields; `compact` also defines the source of
//! schemas. `plain` reads plain values, arrays and lists. `within` follows a path into a value that
//! was already read, in any format. `ids` reads and writes classes with custom serialization by a
//! declared layout. `fields` selects the reader by the types of an entry's key and value.
//! `value_blobs` writes values, and reads whole blobs.
//!
//! # Where to start
//!
//! [`Blob`], then [`ToBlob`] and [`FromBlob`]:
//!
//! ```
//! use filbert_data::{FromBlob, ToBlob, TypeId, partition_of, type_id};
//!
//! let blob = "hazel".to_blob()?;
//! assert_eq!(type_id(&blob)?, TypeId::STRING);
//! assert_eq!(String::from_blob(&blob)?, "hazel");
//! assert!(partition_of(&blob, 271).0 < 271);
//! # Ok::<(), filbert_data::DataError>(())
//! ```
//!
//! Queries read blobs without their classes: a [`FieldReader`] reads fields of any format as
//! [`Value`]s. Values can be compared, converted to other types, and encoded as keys of ordered
//! indexes.

mod arrays;
mod blob;
mod convert;
pub mod dates;
mod error;
mod field_type;
mod fields;
mod hash;
mod input;
mod items;
mod json;
mod json_text;
mod list;
mod path;
mod plain;
mod scalars;
mod space;
mod text;
mod type_id;
mod value;
mod value_blobs;
mod within;

pub mod compact;
pub mod criteria;
pub mod ids;
pub mod portable;
pub mod rows;

pub use blob::{Blob, type_id};
pub use compact::SchemaSource;
pub use convert::{FromBlob, ToBlob};
pub use error::DataError;
pub use field_type::FieldType;
pub use fields::{FieldReader, Formats};
pub use hash::{PartitionId, partition_hash, partition_of};
pub use ids::IdsLayout;
pub use input::Input;
pub use list::List;
pub use path::{FieldPath, PATH_STEPS_MAX, Path, Side, Step};
pub use space::is_space;
pub use text::Json;
pub use type_id::{BLOB_HEADER_BYTES, TypeId};
pub use value::{Interval, Kinds, NoInterval, Value, uuid_of};

/// The examples of the README. The documentation tests run them.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct ReadmeExamples;
