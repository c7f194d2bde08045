//! The session's part in holding requests until the leader is known: repeats held requests when
//! there is a reason.

use std::collections::HashSet;
use std::time::Instant;

use filbert_grid::PartitionId;
use filbert_wire::Message;

use crate::change;
use crate::relay::{Relays, RepeatableRequest};
use crate::routing::{Route, route_of};
use crate::session::Session;

/// The requests that remain held after a check of all held requests.
#[derive(Default)]
pub(crate) struct RemainingRequests {
    requests: Vec<RepeatableRequest>,
    partitions: HashSet<PartitionId>,
}

impl RemainingRequests {
    pub(crate) fn push(&mut self, repeatable: RepeatableRequest) {
        self.partitions.extend(repeatable.partition);
        self.requests.push(repeatable);
    }

    /// Whether a request must wait behind one of these.
    pub(crate) fn is_behind(&self, repeatable: &RepeatableRequest) -> bool {
        repeatable.partition.is_some_and(|partition| self.partitions.contains(&partition))
    }
}

/// Whether there is a reason to repeat a request: another member leads, or a periodic check is due.
fn is_due(relays: &Relays, repeatable: &RepeatableRequest, route: Route) -> bool {
    let target = match route {
        Route::Here(Some(_)) => Some(relays.itself()),
        Route::Member(member, _) => Some(member),
        _ => None,
    };
    relays.is_tick()
        || target != repeatable.tried
        || target.is_none() && repeatable.version != relays.view().leaders_version
}

impl Session {
    /// Takes out the held requests, if there are any. Refreshes the view first. The next change of
    /// the view wakes this connection.
    pub(crate) fn take_held(&mut self) -> Option<Vec<RepeatableRequest>> {
        let relays = self.relays.as_mut().filter(|relays| relays.held_bytes() > 0)?;
        if relays.is_to_be_woken_after(self.views.change_count()) {
            self.views.wake_at_change(&self.link);
        }
        Some(relays.take_held())
    }

    /// Repeats a request if there is a reason. Otherwise returns it.
    pub(crate) fn repeat(&mut self, repeatable: RepeatableRequest) -> Option<RepeatableRequest> {
        let (relays, now) = (self.relays.as_mut()?, Instant::now());
        if repeatable.is_late(now) {
            repeatable.answer_failure();
            return None;
        }
        // Cannot fail: the bytes come from such a message.
        let message = Message::parse(&repeatable.bytes).ok()?;
        let route = route_of(relays, &message);
        let is_due = is_due(relays, &repeatable, route);
        if !is_due || self.must_wait_for_relays(route) || self.must_wait(&message, route) {
            return Some(repeatable);
        }
        let (waited, turn) = repeatable.restarted(now);
        if let Some(relays) = &mut self.relays {
            relays.set_turn(Some(turn));
        }
        match change::having_waited(&message, waited) {
            // Cannot fail: the bytes were encoded just now.
            Some(bytes) => _ = self.handle_routed(&Message::parse(&bytes).ok()?, &bytes, route),
            None => _ = self.handle_routed(&message, &repeatable.bytes, route),
        }
        if let Some(relays) = &mut self.relays {
            relays.set_turn(None);
        }
        None
    }

    /// Holds the remaining requests.
    pub(crate) fn put_back_held(&mut self, left: RemainingRequests) {
        if let Some(relays) = &mut self.relays {
            relays.put_back_held(left.requests);
        }
    }
}
