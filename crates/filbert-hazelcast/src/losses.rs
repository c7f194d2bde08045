//! Clients that want to hear when a partition has lost something: those of all maps, and those of one.
//!
//! A loss is told once to each registration, by the member that is asked for all events, or by the one that kept the copy with which the
//! partition went on. What was lost before a registration is not told.

use std::sync::Arc;

use filbert_grid::{GridError, PartitionLoss};
use filbert_wire::{
    CorrelationId, Event, Uuid,
    table::{client, map},
};

use crate::link::Link;
use crate::registrations::Registrations;

/// Which message a registration was made by, and its events come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    AllMaps,
    OneMap,
}

/// A registration.
struct OfLosses {
    about: About,
    /// Whether it is for what this member has kept alone.
    local_only: bool,
    /// By partition, the epoch of the loss that was told last.
    told: Vec<u64>,
}

/// The registrations of one door.
#[derive(Default)]
pub(crate) struct LossListeners(Registrations<OfLosses>);

fn epoch(losses: &[Option<PartitionLoss>], partition: usize) -> u64 {
    losses.get(partition).copied().flatten().map_or(0, |loss| loss.epoch)
}

impl LossListeners {
    /// Adds a registration; `losses` are those that it is not told of.
    ///
    /// # Errors
    /// There are too many.
    pub(crate) fn add(
        &mut self,
        link: &Arc<Link>,
        correlation: CorrelationId,
        about: About,
        local_only: bool,
        losses: &[Option<PartitionLoss>],
        limit: usize,
    ) -> Result<Uuid, GridError> {
        let told = (0..losses.len()).map(|partition| epoch(losses, partition)).collect();
        self.0.add(link, correlation, OfLosses { about, local_only, told }, limit)
    }

    /// Removes a registration; whether there was one.
    pub(crate) fn remove(&mut self, id: Uuid) -> bool {
        self.0.remove(id)
    }

    /// Tells everybody what they have not heard yet.
    pub(crate) fn tell(&mut self, here: Uuid, losses: &[Option<PartitionLoss>]) {
        self.0.tell(|OfLosses { about, local_only, told }, correlation, link| {
            told.resize(losses.len().max(told.len()), 0);
            for (partition, (told, loss)) in (0_i32..).zip(told.iter_mut().zip(losses)) {
                let Some(loss) = loss.filter(|loss| loss.epoch > *told) else { continue };
                *told = loss.epoch;
                if *local_only && loss.kept_by != here {
                    continue;
                }
                link.outbox.append(|out| event(*about, correlation, partition, &loss, out));
            }
        });
    }
}

fn event(about: About, correlation: CorrelationId, partition: i32, loss: &PartitionLoss, out: &mut Vec<u8>) {
    match about {
        About::AllMaps => {
            let lost_backup_count = i32::try_from(loss.copies_lost).unwrap_or(i32::MAX);
            let source = Some(loss.kept_by);
            client::add_partition_lost_listener::PartitionLostEvent {
                partition_id: partition,
                lost_backup_count,
                source,
            }
            .encode(correlation, partition, out)
        }
        About::OneMap => {
            let uuid = loss.kept_by;
            map::add_partition_lost_listener::MapPartitionLostEvent { partition_id: partition, uuid }.encode(
                correlation,
                partition,
                out,
            )
        }
    }
}
