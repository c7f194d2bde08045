//! The settings of a group. The same on all of its members.

use std::time::Duration;

use crate::origins::OriginLimits;
use crate::waiting::SUBMISSION_OVERHEAD_BYTES;

/// The settings of a group.
#[derive(Clone, Debug)]
pub struct GroupSettings {
    /// The number of groups that the partitions are divided into. Default 12: each entry of a log
    /// has a fixed cost, so fewer groups with larger entries are cheaper. With 12 groups, leaders
    /// are still spread evenly over 3, 4 and 6 members, and over 5 members within a fourth.
    pub groups: u32,
    /// The number of partitions of the cluster. Default 271, as in Hazelcast.
    pub partitions: u32,
    /// The interval between two heartbeats of a leader, in milliseconds. Default 100.
    pub heartbeat_ms: u64,
    /// The lower bound of the random time before an election, in milliseconds. A follower becomes a
    /// candidate after a lease without a message from the leader, and after a further random time
    /// between this setting and `lease_ms`. Default 350: with the default lease, another member
    /// leads after 1.1 to 1.4 s and a round of votes.
    pub election_ms_min: u64,
    /// The time after the last message of a leader in which no voter elects another leader, in
    /// milliseconds. It is also the upper bound of the random time before an election. Reads are
    /// served for 80 % of it. Default 700: a failover takes less than two seconds.
    pub lease_ms: u64,
    /// The time without an answer after which a request counts as lost, in milliseconds. Default
    /// 300.
    pub request_ms_max: u64,
    /// The maximum time for the installation of a snapshot, which includes building indexes and
    /// columns, in milliseconds. If it is too short, the whole snapshot is sent again and again.
    /// Default 10,000. If the member dies meanwhile, its connection breaks earlier.
    pub install_ms_max: u64,
    /// The time without a result after which the outcome of a submission is reported as unknown, in
    /// milliseconds. Default 5,000: a failover takes far less.
    pub answer_ms_max: u64,
    /// The size of the log in bytes from which it is purged. Default 8 MiB, which is 96 MiB for 12
    /// groups.
    pub log_bytes_kept: usize,
    /// The size of the log in bytes from which submissions are refused: it grows beyond
    /// `log_bytes_kept` while a member does not answer. Default 16 MiB.
    pub log_bytes_max: usize,
    /// The number of entries in the log from which it is purged. Default 8,192.
    pub log_entries_max: usize,
    /// The size of an entry in bytes from which no further submission is merged into it. Default
    /// 256 KiB.
    pub entry_bytes_max: usize,
    /// The maximum number of a leader's entries in flight. Default 2: one is in flight while the
    /// next one is filled.
    pub entries_on_way_max: usize,
    /// The maximum delay of a commit index on its way to followers, in milliseconds. The delay
    /// saves requests. 0 = no delay. Default 10. The commit index is sent earlier with the next
    /// entries, and immediately if a reader at a follower waits for it.
    pub commit_hold_ms: u64,
    /// The maximum size of all waiting submissions in bytes. A single submission is limited to
    /// slightly less. Default 8 MiB: an entry must reach another member well within
    /// `request_ms_max`, or it never does.
    pub waiting_bytes_max: usize,
    /// The size of a page of a snapshot in bytes, exceeded by at most one record. Default 256 KiB.
    pub page_bytes: usize,
    /// The maximum number of bytes of a snapshot of the group that are sent per second. Default 16
    /// MiB: 12 groups at once take 1.6 Gbit/s, and leave the rest to entries and heartbeats.
    pub snapshot_bytes_per_s_max: u64,
    /// The limits of the state that is kept for origins.
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
            log_bytes_kept: 8 << 20,
            log_bytes_max: 16 << 20,
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
    /// The maximum size of one submission in bytes.
    pub(crate) fn submission_bytes_max(&self) -> usize {
        self.waiting_bytes_max.saturating_sub(SUBMISSION_OVERHEAD_BYTES)
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        Duration::from_millis(self.request_ms_max)
    }

    /// The lead of a leader's promise over its wall clock: two heartbeats, so that a heartbeat that
    /// is late by a whole interval delays no read.
    pub(crate) fn clock_reserve_ms(&self) -> i64 {
        i64::try_from(self.heartbeat_ms.saturating_mul(2)).unwrap_or(i64::MAX)
    }

    /// The settings of consensus. `stands_for_election` = from the start.
    pub(crate) fn consensus(&self, stands_for_election: bool) -> openraft::Config {
        openraft::Config {
            cluster_name: "filbert".to_owned(),
            heartbeat_interval: self.heartbeat_ms,
            election_timeout_min: self.election_ms_min,
            election_timeout_max: self.lease_ms,
            enable_pre_vote: Some(true),
            enable_elect: stands_for_election,
            // Purging also depends on bytes, see `upkeep.rs`.
            snapshot_policy: openraft::SnapshotPolicy::Never,
            max_in_snapshot_log_to_keep: u64::MAX / 2,
            replication_lag_threshold: u64::MAX / 2,
            ..openraft::Config::default()
        }
    }
}
