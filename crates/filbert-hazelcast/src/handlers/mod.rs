//! One file per group of messages: each decodes its requests, asks the grid, and encodes the replies.

pub(crate) mod client;
pub(crate) mod continuous_query;
pub(crate) mod journal;
pub(crate) mod map_bulk;
pub(crate) mod map_iterate;
pub(crate) mod map_listeners;
pub(crate) mod map_locks;
pub(crate) mod map_query;
pub(crate) mod map_read;
pub(crate) mod map_write;
pub(crate) mod near_cache;
pub(crate) mod refused;
pub(crate) mod schemas;
pub(crate) mod sql;
