//! Figures of the whole member.

/// Figures of the whole member at one moment, each taken by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GridStatistics {
    /// Bytes that all maps own (records, tables, expiry, locks, journals), and those of parked changes.
    pub memory_bytes: usize,
    /// The limit of them, if one is set.
    pub memory_bytes_max: Option<usize>,
    /// Bytes of buffers that follow what clients send and ask for.
    pub buffer_bytes: usize,
    /// The limit of them.
    pub buffer_bytes_max: usize,
    /// How often there was no room for one more.
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
