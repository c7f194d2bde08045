//! The handlers of messages, one file for each group. A handler decodes its request, calls the
//! grid, and encodes the reply.

pub(crate) mod client;
pub(crate) mod continuous_query;
pub(crate) mod map_bulk;
pub(crate) mod map_iterate;
pub(crate) mod map_journal;
pub(crate) mod map_listeners;
pub(crate) mod map_locks;
pub(crate) mod map_query;
pub(crate) mod map_read;
pub(crate) mod map_write;
pub(crate) mod near_cache;
pub(crate) mod refused;
pub(crate) mod schemas;
pub(crate) mod scoped;
pub(crate) mod sql;
pub(crate) mod standby_announcement;
