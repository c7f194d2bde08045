//! What a session does with requests that wait until it is known who leads.

use std::collections::HashSet;
use std::time::Instant;

use filbert_grid::{ErrorKind, PartitionId};
use filbert_wire::{Message, Uuid};

use super::held::Again;
use super::{Relays, Way};
use crate::change;
use crate::failure::Failure;
use crate::handlers::map_read::Get;
use crate::session::Session;

/// What goes on waiting after a look at all that waits.
#[derive(Default)]
pub(crate) struct Waiting {
    requests: Vec<Again>,
    partitions: HashSet<PartitionId>,
}

impl Waiting {
    pub(crate) fn push(&mut self, again: Again) {
        self.partitions.extend(again.partition);
        self.requests.push(again);
    }

    /// Whether a request has to wait behind one of these.
    pub(crate) fn is_behind(&self, again: &Again) -> bool {
        again.partition.is_some_and(|partition| self.partitions.contains(&partition))
    }
}

impl Relays {
    /// To make a request again that is about to be made by a member.
    pub(super) fn again(&self, message: &Message<'_>, partition: Option<PartitionId>, tried: Option<Uuid>) -> Again {
        let turn = self.turn.unwrap_or_else(|| self.held.next_turn());
        self.held.again(message, partition, tried, self.view.leaders_version, turn)
    }

    /// Has a get wait that this member may not answer.
    #[cold]
    pub(crate) fn hold_get(&self, get: &Get<'_>, failure: &Failure) {
        let bytes = get.encode();
        // Sound: it was read from such a message.
        let Ok(message) = Message::parse(&bytes) else { return };
        self.again(&message, Some(get.partition), Some(self.itself)).fail(failure);
    }

    /// Whether there is a reason to make a request again: another member leads, or it is time to look.
    fn is_due(&self, again: &Again, way: Way, ticked: bool) -> bool {
        let target = match way {
            Way::Here(Some(_)) => Some(self.itself),
            Way::Member(member, _) => Some(member),
            _ => None,
        };
        ticked || target != again.tried || target.is_none() && again.version != self.view.leaders_version
    }
}

impl Session {
    /// To make a request again that this member is about to make; nothing without a cluster.
    #[inline]
    pub(crate) fn again(&self, message: &Message<'_>, partition: Option<PartitionId>) -> Option<Again> {
        self.relays.as_ref().map(|relays| relays.again(message, partition, Some(relays.itself)))
    }

    /// Where a request goes that waits for others of its partition, if there are such.
    #[inline]
    pub(crate) fn put_off(&self, way: Way) -> Way {
        match (&self.relays, way) {
            (Some(relays), Way::Here(Some(partition)) | Way::Member(_, Some(partition)))
                if relays.bytes() > 0 || self.in_flight.bytes() > 0 =>
            {
                match relays.held.has(partition) || self.must_wait_for_relays(way) {
                    true => Way::Later(partition),
                    false => way,
                }
            }
            _ => way,
        }
    }

    /// Whether a request has to wait until others of its partition, which went elsewhere, are answered.
    #[cold]
    fn must_wait_for_relays(&self, way: Way) -> bool {
        let Some(relays) = &self.relays else { return false };
        match way {
            Way::Here(Some(partition)) => relays.traffic.busy_at(partition).is_some(),
            Way::Member(member, Some(partition)) => {
                self.in_flight.wake_at_next();
                relays.traffic.busy_at(partition).is_some_and(|at| at != member) || self.in_flight.any_of(partition)
            }
            _ => false,
        }
    }

    /// Answers with an error, or has the request wait if nobody has made it.
    #[cold]
    pub(crate) fn fail_or_hold(&mut self, failure: &Failure, message: &Message<'_>) -> bool {
        if failure.kind == ErrorKind::NotLeader
            && let Some(relays) = &self.relays
        {
            let (partition, tried) = match relays.way(message) {
                Way::Here(partition) => (partition, Some(relays.itself)),
                Way::Member(member, partition) => (partition, Some(member)),
                _ => (None, None),
            };
            relays.again(message, partition, tried).fail(failure);
            return true;
        }
        self.fail(failure, message.correlation_id(), Some(message.id()))
    }

    /// Has a request wait behind others of its partition.
    #[cold]
    pub(crate) fn hold_behind(&self, message: &Message<'_>, partition: PartitionId) {
        let Some(relays) = &self.relays else { return };
        let text = format!("{} waits for others of its partition, it can be sent again", message.id());
        relays.again(message, Some(partition), None).fail(&Failure::new(ErrorKind::NotLeader, text));
    }

    /// Takes out what waits, if something does. The view is as new as can be, and its next change wakes this connection.
    pub(crate) fn take_held(&mut self) -> Option<Vec<Again>> {
        let relays = self.relays.as_mut().filter(|relays| relays.held.bytes() > 0)?;
        let change_count = self.views.change_count();
        if relays.woken_after != Some(change_count) {
            relays.woken_after = Some(change_count);
            self.views.wake_at_change(&self.link);
        }
        relays.refresh();
        relays.is_tick = relays.held.take_tick();
        Some(relays.held.take())
    }

    /// Makes a request again, if there is a reason to; else it is given back.
    pub(crate) fn make_again(&mut self, again: Again) -> Option<Again> {
        let (relays, now) = (self.relays.as_mut()?, Instant::now());
        if again.is_late(now) {
            again.give_up();
            return None;
        }
        // Sound: it was read from such a message.
        let message = Message::parse(&again.bytes).ok()?;
        let way = relays.way(&message);
        let is_due = relays.is_due(&again, way, relays.is_tick);
        if !is_due || self.must_wait_for_relays(way) || self.must_wait(&message, way) {
            return Some(again);
        }
        let (waited, turn) = again.turn.renewed(now);
        if let Some(relays) = &mut self.relays {
            relays.turn = Some(turn);
        }
        match change::having_waited(&message, waited) {
            // Sound: it was made just now.
            Some(bytes) => _ = self.send_on(&Message::parse(&bytes).ok()?, &bytes, way),
            None => _ = self.send_on(&message, &again.bytes, way),
        }
        if let Some(relays) = &mut self.relays {
            relays.turn = None;
        }
        None
    }

    /// Has the rest wait on.
    pub(crate) fn hold_on(&mut self, left: Waiting) {
        let Some(relays) = &self.relays else { return };
        relays.held.put_back(left.requests);
        relays.held.tick();
        relays.flush();
    }
}
