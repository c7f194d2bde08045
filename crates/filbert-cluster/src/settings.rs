//! What can be set of a group. The same on all of its members.

use std::time::Duration;

use crate::origins::OriginLimits;
use crate::proposer::SUBMISSION_OVERHEAD_BYTES;

/// Settings of a group.
#[derive(Clone, Debug)]
pub struct GroupSettings {
    /// Groups that the partitions are divided into. Default 12: each entry of a log costs the same whatever is in it, so that few groups write
    /// more together, and leaders are still spread evenly over 3, 4 and 6 members, and over 5 within a fourth.
    pub groups: u32,
    /// Partitions of the cluster. Default 271, as Hazelcast's.
    pub partitions: u32,
    /// Between two heartbeats of a leader, in milliseconds. Default 100.
    pub heartbeat_ms: u64,
    /// A follower that has heard nothing for a lease, and for a random time between this and `lease_ms` after it, wants to lead. Default
    /// 350: with the default lease, another member leads after 1.1 to 1.4 s and a round of votes.
    pub election_ms_min: u64,
    /// So long after it was heard of, no voter elects another leader, in milliseconds; and the greatest random time before an
    /// election. Reads are served for 80 % of it. Default 700: a failover takes less than two seconds.
    pub lease_ms: u64,
    /// After so long without an answer, a request counts as lost, in milliseconds. Default 300.
    pub request_ms_max: u64,
    /// How long a member may take to install a snapshot, whose indexes and columns it builds, in milliseconds; a shorter time than that would have
    /// it brought the whole again and again. Default 10,000. If the member dies meanwhile, its connection breaks.
    pub install_ms_max: u64,
    /// After so long without a result, whoever submitted is told that the outcome is unknown, in milliseconds. Default 5,000: a failover is
    /// over long before.
    pub answer_ms_max: u64,
    /// Bytes of the log from which on it is purged. Default 8 MiB, 96 MiB for 12 groups; at twice as many, submissions are refused.
    pub log_bytes_max: usize,
    /// Entries of the log from which on it is purged. Default 8,192.
    pub log_entries_max: usize,
    /// Bytes of one entry from which on nothing more is merged into it. Default 256 KiB.
    pub entry_bytes_max: usize,
    /// Entries of one leader on their way at once. Default 2: one travels while the next one is filled.
    pub entries_on_way_max: usize,
    /// How long followers may hear of a commit later, for the sake of fewer requests, in milliseconds; 0 = at once. Default 10. It is
    /// told with the next entries if these are earlier, and at once where somebody wants to read at a follower.
    pub commit_hold_ms: u64,
    /// Bytes of submissions that wait; one alone has hardly more. Default 8 MiB: an entry must be with another member well within
    /// `request_ms_max`, or it never comes there.
    pub waiting_bytes_max: usize,
    /// Bytes of a page of a snapshot, and one record more at most. Default 256 KiB.
    pub page_bytes: usize,
    /// Bytes of a snapshot of the group sent in a second. Default 16 MiB: 12 groups at once take 1.6 Gbit/s, and leave the rest to
    /// entries and heartbeats.
    pub snapshot_bytes_per_s_max: u64,
    /// What is kept for origins.
    pub origins: OriginLimits,
}

impl Default for GroupSettings {
    fn default() -> Self {
        GroupSettings {
            groups: 12,
            partitions: 271,
            heartbeat_ms: 100,
            election_ms_min: 350,
            lease_ms: 700,
            request_ms_max: 300,
            install_ms_max: 10_000,
            answer_ms_max: 5_000,
            log_bytes_max: 8 << 20,
            log_entries_max: 8_192,
            entry_bytes_max: 256 << 10,
            entries_on_way_max: 2,
            commit_hold_ms: 10,
            waiting_bytes_max: 8 << 20,
            page_bytes: 256 << 10,
            snapshot_bytes_per_s_max: 16 << 20,
            origins: OriginLimits::default(),
        }
    }
}

impl GroupSettings {
    /// Bytes of one submission.
    pub(crate) fn submission_bytes_max(&self) -> usize {
        self.waiting_bytes_max.saturating_sub(SUBMISSION_OVERHEAD_BYTES)
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        Duration::from_millis(self.request_ms_max)
    }

    /// How far ahead of the time of day a leader promises to read: two heartbeats, so that one that is late by a whole interval holds no
    /// read up.
    pub(crate) fn clock_reserve_ms(&self) -> i64 {
        i64::try_from(self.heartbeat_ms.saturating_mul(2)).unwrap_or(i64::MAX)
    }

    pub(crate) fn consensus(&self) -> openraft::Config {
        openraft::Config {
            cluster_name: "filbert".to_owned(),
            heartbeat_interval: self.heartbeat_ms,
            election_timeout_min: self.election_ms_min,
            election_timeout_max: self.lease_ms,
            enable_pre_vote: Some(true),
            // Purging is decided by bytes as well, see `upkeep.rs`.
            snapshot_policy: openraft::SnapshotPolicy::Never,
            max_in_snapshot_log_to_keep: u64::MAX / 2,
            replication_lag_threshold: u64::MAX / 2,
            ..openraft::Config::default()
        }
    }
}
