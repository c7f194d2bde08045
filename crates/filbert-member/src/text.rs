//! UUIDs as texts within JSON.

use serde::{Deserialize, Deserializer, Serializer, de};
use uuid::Uuid;

pub(crate) fn serialize<S: Serializer>(uuid: &Uuid, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(uuid)
}

pub(crate) fn deserialize<'d, D: Deserializer<'d>>(deserializer: D) -> Result<Uuid, D::Error> {
    String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
}
