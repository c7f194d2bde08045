//! Serialization of UUIDs and shared strings as JSON strings.

use serde::{Deserialize, Deserializer, Serializer, de};
use uuid::Uuid;

pub(crate) fn serialize<S: Serializer>(uuid: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(uuid)
}

pub(crate) fn deserialize<'d, D: Deserializer<'d>>(deserializer: D) -> Result<Uuid, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
}

/// Strings behind an [`Arc`](std::sync::Arc).
pub(crate) mod shared {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(text: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text)
    }

    pub(crate) fn deserialize<'d, D: Deserializer<'d>>(deserializer: D) -> Result<Arc<str>, D::Error> {
        String::deserialize(deserializer).map(Arc::from)
    }
}
