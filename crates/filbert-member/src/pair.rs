//! The survivor of two members with data continues alone, if its settings say so: without a
//! majority, and without an order.

use std::sync::Arc;
use std::time::Duration;

use filbert_cluster::MemberId;

use crate::recovery::Recovery;
use crate::registry::RegistryState;
use crate::view::Views;

/// The interval between two checks.
const PAUSE: Duration = Duration::from_millis(500);

/// Watches the other member of a pair.
pub(crate) struct Pair {
    pub(crate) views: Arc<Views>,
    pub(crate) recovery: Arc<Recovery>,
    /// The other member is considered dead after this time without an announcement.
    pub(crate) dead_after: Duration,
}

impl Pair {
    /// Runs until the future is dropped.
    pub(crate) async fn run(self) {
        loop {
            tokio::time::sleep(PAUSE).await;
            let state = self.recovery.registry_client.registry().state();
            let Some(other) = other_of_two(&state, self.recovery.member) else { continue };
            let silent = self.views.silent_for(other);
            if silent < self.dead_after || self.recovery.is_ending() {
                continue;
            }
            tracing::error!(
                "member {other} has not been heard of for {silent:?}, and this one goes on alone, as filbert.cluster.pair says: should the other one be \
                 alive and cut off, what one of both acknowledges from now on is lost"
            );
            if let Err(error) = self.recovery.continue_without(other).await {
                tracing::warn!("this member does not go on alone: {error}");
            }
        }
    }
}

/// Returns the other member with data, if there are exactly two and this member is one of them.
fn other_of_two(state: &RegistryState, here: MemberId) -> Option<MemberId> {
    if !state.is_complete() {
        return None;
    }
    let with_data: Vec<MemberId> = state.members().filter(|(_, facts)| !facts.is_lite).map(|(id, _)| id).collect();
    match *with_data.as_slice() {
        [one, other] if one == here => Some(other),
        [other, one] if one == here => Some(other),
        _ => None,
    }
}
