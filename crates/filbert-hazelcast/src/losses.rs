//! Clients that listen to data losses of partitions: for all maps, or for one map.
//!
//! A loss is sent once to each registration: by the member that the client has asked for all
//! events, or, if the client has registered with every member, by the member that held the replica
//! from which the partition continued. Losses before the registration are not sent.

use std::sync::Arc;

use filbert_grid::{GridError, PartitionLoss};
use filbert_wire::{
    CorrelationId, Event, Uuid,
    table::{client, map},
};

use crate::client_link::ClientLink;
use crate::registrations::Registrations;

/// The maps of a registration. They determine the kind of its events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LossScope {
    AllMaps,
    OneMap,
}

/// A registration.
struct OfLosses {
    scope: LossScope,
    /// Whether it is only for losses where this member held the remaining replica.
    local_only: bool,
    /// By partition, the epoch of the loss that was sent last.
    last_sent: Vec<u64>,
}

/// The registrations of one door.
#[derive(Default)]
pub(crate) struct LossListeners(Registrations<OfLosses>);

fn epoch(losses: &[Option<PartitionLoss>], partition: usize) -> u64 {
    losses.get(partition).copied().flatten().map_or(0, |loss| loss.epoch)
}

impl LossListeners {
    /// Adds a registration. It is not notified of `losses`.
    ///
    /// # Errors
    /// There are too many registrations.
    pub(crate) fn add(
        &mut self,
        link: &Arc<ClientLink>,
        correlation: CorrelationId,
        scope: LossScope,
        local_only: bool,
        losses: &[Option<PartitionLoss>],
        limit: usize,
    ) -> Result<Uuid, GridError> {
        let last_sent = (0..losses.len()).map(|partition| epoch(losses, partition)).collect();
        self.0.add(link, correlation, OfLosses { scope, local_only, last_sent }, limit)
    }

    /// Removes a registration. Returns whether it existed.
    pub(crate) fn remove(&mut self, id: Uuid) -> bool {
        self.0.remove(id)
    }

    /// Sends all clients the losses that they have not received yet.
    pub(crate) fn send(&mut self, here: Uuid, losses: &[Option<PartitionLoss>]) {
        self.0.notify(|OfLosses { scope, local_only, last_sent }, correlation, link| {
            last_sent.resize(losses.len().max(last_sent.len()), 0);
            for (partition, (sent_epoch, loss)) in (0_i32..).zip(last_sent.iter_mut().zip(losses)) {
                let Some(loss) = loss.filter(|loss| loss.epoch > *sent_epoch) else { continue };
                *sent_epoch = loss.epoch;
                if *local_only && loss.kept_by != here {
                    continue;
                }
                link.outbox.append(|out| event(*scope, correlation, partition, &loss, out));
            }
        });
    }
}

fn event(scope: LossScope, correlation: CorrelationId, partition: i32, loss: &PartitionLoss, out: &mut Vec<u8>) {
    match scope {
        LossScope::AllMaps => {
            let lost_backup_count = i32::try_from(loss.copies_lost).unwrap_or(i32::MAX);
            let source = Some(loss.kept_by);
            client::add_partition_lost_listener::PartitionLostEvent {
                partition_id: partition,
                lost_backup_count,
                source,
            }
            .encode(correlation, partition, out)
        }
        LossScope::OneMap => {
            let uuid = loss.kept_by;
            map::add_partition_lost_listener::MapPartitionLostEvent { partition_id: partition, uuid }.encode(
                correlation,
                partition,
                out,
            )
        }
    }
}
