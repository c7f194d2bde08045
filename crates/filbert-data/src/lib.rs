//! What a value is: serialized blobs, the types they hold, and the hash that tells a key's partition.
//!
//! A [`Blob`] is a value as Hazelcast's clients serialize it. The rest of the system stores, compares and sends blobs
//! without looking inside; this crate knows what they mean. It must not know maps, messages, sockets or time.
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
//! All numbers are big-endian. Text is its length in bytes as `i32`, then UTF-8; an array is its number of items as
//! `i32`, then the items; -1 as length means null. A list is an `i32` length, then each item as type id and payload.
//!
//! # Invariants
//!
//! - What [`ToBlob`] writes is byte for byte what the stock clients write, so that they find each other's keys.
//! - Reading never panics and never allocates more than the bytes that are there justify, whatever lengths they claim.
//! - Equal keys have equal bytes: maps compare keys by their bytes alone.
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
//! Queries look into blobs without their classes: a [`FieldReader`] reads fields of any format as [`Value`]s, which compare,
//! convert to each other's types and have keys for ordered indexes.

mod arrays;
mod blob;
mod convert;
pub mod dates;
mod error;
mod field_type;
mod fields;
mod hash;
mod input;
mod json;
mod json_text;
mod list;
mod parts;
mod path;
mod plain;
mod scalars;
mod text;
mod type_id;
mod value;

pub mod compact;
pub mod criteria;
pub mod ids;
pub mod portable;
pub mod rows;

pub use blob::{BLOB_HEADER_BYTES, Blob, type_id};
pub use convert::{FromBlob, ToBlob};
pub use error::DataError;
pub use field_type::FieldType;
pub use fields::{FieldReader, Formats, IdsLayout, SchemaSource};
pub use hash::{PartitionId, partition_hash, partition_of};
pub use input::Input;
pub use list::List;
pub use path::{FieldPath, PATH_STEPS_MAX, Path, Side, Step};
pub use text::Json;
pub use type_id::TypeId;
pub use value::{Interval, Kinds, NoInterval, Value, uuid_of};
