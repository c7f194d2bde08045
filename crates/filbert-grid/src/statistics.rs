//! Statistics of the whole member.

/// Statistics of the whole member. Each value is read separately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GridStatistics {
    /// Bytes of all maps (records, tables, expiry, locks, journals), of parked changes, and of
    /// commands in flight.
    pub memory_bytes: usize,
    /// The limit of the member's memory, if one is set.
    pub memory_bytes_max: Option<usize>,
    /// Bytes that statements and cached plans hold, as the allocator counts them.
    pub statement_bytes: usize,
    /// Bytes of buffers that grow with client requests and responses.
    pub buffer_bytes: usize,
    /// The limit of `buffer_bytes`.
    pub buffer_bytes_max: usize,
    /// The number of buffer reservations that were refused.
    pub buffers_refused: u64,
    /// Number of maps.
    pub maps: usize,
    /// Number of distributed objects.
    pub objects: usize,
    /// Number of connected clients.
    pub clients: usize,
    /// Number of connections of all clients.
    pub connections: usize,
    /// Number of changes that wait for locked keys.
    pub parked_changes: usize,
    /// Number of listeners of any kind.
    pub listeners: usize,
    /// Number of Compact schemas.
    pub schemas: usize,
}
