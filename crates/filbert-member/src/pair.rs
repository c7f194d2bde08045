//! Of two members with data, the one that is left goes on alone, where its settings say so: without a majority, and without being asked.

use std::sync::Arc;
use std::time::Duration;

use filbert_cluster::MemberId;

use crate::recovery::Recovery;
use crate::registry::RegistryState;
use crate::view::Views;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(500);

/// Looks after a pair.
pub(crate) struct Pair {
    pub(crate) views: Arc<Views>,
    pub(crate) recovery: Arc<Recovery>,
    /// After so long without an answer the other one is taken for dead.
    pub(crate) dead_after: Duration,
}

impl Pair {
    /// Looks until the future is dropped.
    pub(crate) async fn run(self) {
        loop {
            tokio::time::sleep(PAUSE).await;
            let state = self.recovery.asking.registry().state();
            let Some(other) = other_of_two(&state, self.recovery.member) else { continue };
            let silent = self.views.silent_for(other);
            if silent < self.dead_after || self.recovery.is_ending() {
                continue;
            }
            tracing::error!(
                "member {other} has not been heard of for {silent:?}, and this one goes on alone, as filbert.cluster.pair says: should the other one be \
                 alive and cut off, what one of both acknowledges from now on is lost"
            );
            if let Err(error) = self.recovery.go_on_without(other).await {
                tracing::warn!("this member does not go on alone: {error}");
            }
        }
    }
}

/// The other member with data, where there are two, of which this is one.
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
