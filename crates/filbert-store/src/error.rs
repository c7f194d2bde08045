//! Errors of commands.

use crate::MapId;

/// The reason why a command cannot be applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The key is longer than a record can hold.
    #[error("key of {bytes} bytes is too large, at most {bytes_max} are possible")]
    KeyTooLarge {
        /// The length of the key.
        bytes: usize,
        /// The maximum length.
        bytes_max: usize,
    },
    /// The value is longer than a record can hold.
    #[error("value of {bytes} bytes is too large, at most {bytes_max} are possible")]
    ValueTooLarge {
        /// The length of the value.
        bytes: usize,
        /// The maximum length.
        bytes_max: usize,
    },
    /// The map was never created in this partition, or it was destroyed.
    #[error("map {} does not exist in this partition", .0.0)]
    NoSuchMap(MapId),
}
