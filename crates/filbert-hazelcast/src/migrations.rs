//! Clients that want to hear of migrations: of each partition that another member leads than before.
//!
//! Replicas are copies of equal right here, and which members hold them is no client's concern: what moves for a client is who answers for a partition.
//! So a change of leaders is told as a migration of first replicas that has just been completed: that it started, each partition with the
//! members before and after it, that it is finished.
//!
//! A change is told once to each registration: by the member that is asked for all events, or, where a client registers with all members
//! for the events of each, by the member that leads the partition now: the one before it may be dead.

use std::sync::Arc;

use filbert_grid::{GridError, Millis};
use filbert_wire::{
    CorrelationId, Event, Uuid,
    structure::MigrationState,
    table::client::add_migration_listener::{MigrationEvent, ReplicaMigrationEvent},
};

use crate::link::Link;
use crate::registrations::Registrations;
use crate::views::Told;

/// Kinds of [`MigrationEvent`].
const STARTED: i32 = 0;
const FINISHED: i32 = 1;
/// The partition in the headers of all events: clients handle those of one partition in their order, and others beside each other.
const IN_ORDER: i32 = 0;

/// A registration.
struct OfMigrations {
    /// Whether other members are asked as well.
    local_only: bool,
    /// What it was told last.
    told: Arc<Told>,
}

/// The registrations of one door.
#[derive(Default)]
pub(crate) struct MigrationListeners(Registrations<OfMigrations>);

/// A partition that another member leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Move {
    partition: i32,
    source: Uuid,
    destination: Uuid,
}

fn moves(before: &Told, now: &Told) -> Vec<Move> {
    let leaders = (0_i32..).zip(before.leaders.iter().zip(&now.leaders));
    leaders
        .filter_map(|(partition, (source, destination))| {
            let (source, destination) = (source.as_ref()?, destination.as_ref()?);
            (source != destination).then_some(Move { partition, source: *source, destination: *destination })
        })
        .collect()
}

impl MigrationListeners {
    /// Adds a registration; `told` is what it knows of.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn add(
        &mut self,
        link: &Arc<Link>,
        correlation: CorrelationId,
        local_only: bool,
        told: Arc<Told>,
        limit: usize,
    ) -> Result<Uuid, GridError> {
        self.0.add(link, correlation, OfMigrations { local_only, told }, limit)
    }

    /// Removes a registration; whether there was one.
    pub(crate) fn remove(&mut self, id: Uuid) -> bool {
        self.0.remove(id)
    }

    /// Tells everybody what they have not heard yet, at a time of day.
    pub(crate) fn tell(&mut self, here: Uuid, told: &Arc<Told>, now: Millis) {
        self.0.tell(|listening, correlation, link| {
            if Arc::ptr_eq(&listening.told, told) {
                return;
            }
            let before = std::mem::replace(&mut listening.told, told.clone());
            let mut moves = moves(&before, told);
            moves.retain(|moved| !listening.local_only || moved.destination == here);
            if !moves.is_empty() {
                events(correlation, &moves, now, link);
            }
        });
    }
}

fn events(correlation: CorrelationId, moves: &[Move], now: Millis, link: &Link) {
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
        let told = |leaders: [Option<Uuid>; 4]| Told { leaders: leaders.to_vec(), ..Told::default() };
        let before = told([Some(a), None, Some(a), Some(b)]);
        let now = told([Some(b), Some(a), Some(a), None]);
        assert_eq!(moves(&before, &now), [Move { partition: 0, source: a, destination: b }]);
        assert_eq!(moves(&Told::default(), &now), []);
    }
}
