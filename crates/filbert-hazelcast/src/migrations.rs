//! Clients that listen to migrations. A migration is a change of a partition's leader.
//!
//! All replicas of a partition have equal rights here, and their placement does not concern
//! clients. For a client, a partition moves when another member answers for it. So changes of
//! leaders are sent as completed migrations of first replicas: the start, each partition with its
//! members before and after, and the end.
//!
//! A change is sent once to each registration: by the member that the client has asked for all
//! events, or, if the client has registered with every member, by the new leader of the partition.
//! The leader before it may have failed.

use std::sync::Arc;

use filbert_grid::{GridError, Millis};
use filbert_wire::{
    CorrelationId, Event, Uuid,
    structure::MigrationState,
    table::client::add_migration_listener::{MigrationEvent, ReplicaMigrationEvent},
};

use crate::client_link::ClientLink;
use crate::registrations::Registrations;
use crate::view::ClusterSnapshot;

/// Kinds of [`MigrationEvent`].
const STARTED: i32 = 0;
const FINISHED: i32 = 1;
/// The partition in the headers of all events. Clients handle the events of one partition in order,
/// and events of different partitions in parallel.
const IN_ORDER: i32 = 0;

/// A registration.
struct OfMigrations {
    /// Whether the client has registered with the other members as well.
    local_only: bool,
    /// The information last sent to it.
    last_sent: Arc<ClusterSnapshot>,
}

/// The registrations of one door.
#[derive(Default)]
pub(crate) struct MigrationListeners(Registrations<OfMigrations>);

/// A partition with another leader than before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Move {
    partition: i32,
    source: Uuid,
    destination: Uuid,
}

fn moves(before: &ClusterSnapshot, now: &ClusterSnapshot) -> Vec<Move> {
    let leaders = (0_i32..).zip(before.leaders.iter().zip(&now.leaders));
    leaders
        .filter_map(|(partition, (source, destination))| {
            let (source, destination) = (source.as_ref()?, destination.as_ref()?);
            (source != destination).then_some(Move { partition, source: *source, destination: *destination })
        })
        .collect()
}

impl MigrationListeners {
    /// Adds a registration. `snapshot` is the information that the client already has.
    ///
    /// # Errors
    /// There are too many registrations.
    pub(crate) fn add(
        &mut self,
        link: &Arc<ClientLink>,
        correlation: CorrelationId,
        local_only: bool,
        snapshot: Arc<ClusterSnapshot>,
        limit: usize,
    ) -> Result<Uuid, GridError> {
        self.0.add(link, correlation, OfMigrations { local_only, last_sent: snapshot }, limit)
    }

    /// Removes a registration. Returns whether it existed.
    pub(crate) fn remove(&mut self, id: Uuid) -> bool {
        self.0.remove(id)
    }

    /// Sends all clients the migrations that they have not received yet, with the time `now`.
    pub(crate) fn send(&mut self, here: Uuid, snapshot: &Arc<ClusterSnapshot>, now: Millis) {
        self.0.notify(|listening, correlation, link| {
            if Arc::ptr_eq(&listening.last_sent, snapshot) {
                return;
            }
            let before = std::mem::replace(&mut listening.last_sent, snapshot.clone());
            let mut moves = moves(&before, snapshot);
            moves.retain(|moved| !listening.local_only || moved.destination == here);
            if !moves.is_empty() {
                events(correlation, &moves, now, link);
            }
        });
    }
}

fn events(correlation: CorrelationId, moves: &[Move], now: Millis, link: &ClientLink) {
    let planned_migrations = i32::try_from(moves.len()).unwrap_or(i32::MAX);
    let state = |completed_migrations| MigrationState {
        start_time: now.0,
        planned_migrations,
        completed_migrations,
        total_elapsed_time: 0,
    };
    let started = MigrationEvent { migration_state: state(0), kind: STARTED };
    link.outbox.append(|out| started.encode(correlation, IN_ORDER, out));
    for (completed, Move { partition, source, destination }) in (1..).zip(moves) {
        let event = ReplicaMigrationEvent {
            migration_state: state(completed),
            partition_id: *partition,
            replica_index: 0,
            source_uuid: Some(*source),
            dest_uuid: Some(*destination),
            success: true,
            elapsed_time: 0,
        };
        link.outbox.append(|out| event.encode(correlation, IN_ORDER, out));
    }
    let finished = MigrationEvent { migration_state: state(planned_migrations), kind: FINISHED };
    link.outbox.append(|out| finished.encode(correlation, IN_ORDER, out));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_had_no_leader_before_is_no_migration() {
        let [a, b] = [1, 2].map(Uuid::from_u128);
        let snapshot =
            |leaders: [Option<Uuid>; 4]| ClusterSnapshot { leaders: leaders.to_vec(), ..ClusterSnapshot::default() };
        let before = snapshot([Some(a), None, Some(a), Some(b)]);
        let now = snapshot([Some(b), Some(a), Some(a), None]);
        assert_eq!(moves(&before, &now), [Move { partition: 0, source: a, destination: b }]);
        assert_eq!(moves(&ClusterSnapshot::default(), &now), []);
    }
}
