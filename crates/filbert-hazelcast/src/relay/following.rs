//! The connections to other members adapt to changes of the cluster.

use std::time::Instant;

use filbert_grid::{Grid, ListenerId};

use super::registering::ToRegister;
use super::{Relays, announcing};
use crate::query_cache::QueryCaches;

impl Relays {
    /// Adapts to a change of the cluster, or to the loss of a connection to a member: requests to
    /// members that have left end, and missing listeners are registered.
    pub(crate) fn follow(&mut self, change_count: u64, caches: &QueryCaches, grid: &Grid) {
        // Sends requests that were queued just now.
        self.flush();
        self.drained();
        let broken = self.traffic.take_broken();
        if self.changes_seen == change_count && !broken {
            return;
        }
        self.changes_seen = change_count;
        self.refresh();
        let view = self.view.clone();
        self.pipes.retain(|member, pipe| {
            let is_member = view.member(*member).is_some();
            if !is_member {
                pipe.fail("it has left the cluster");
            }
            is_member && !pipe.is_broken()
        });
        let now = Instant::now();
        for (member, pipe) in &self.pipes {
            let has_moved = |partition| view.leader(partition).is_some_and(|leader| leader.uuid != *member);
            pipe.follow(has_moved, now);
        }
        if self.listeners.is_empty() {
            return;
        }
        for (local, registered) in self.listeners.take_failed() {
            grid.remove_map_listener(&registered.map, ListenerId(local));
            self.unregister(&registered);
        }
        let pipes = &self.pipes;
        self.listeners.forget(|member| pipes.contains_key(&member));
        self.listeners.retain(|local, id| id != announcing::ID || caches.registered(local).is_some());
        for member in self.others() {
            for missing in self.listeners.missing_at(member) {
                let (local, id, correlation, request, map) = &missing;
                let announcement = (*id == announcing::ID).then(|| caches.registered(*local)).flatten();
                let announcement = announcement.map(|cache| announcing::Announcement::new(cache, 1, Box::new(|| ())));
                let (local, id, correlation) = (*local, *id, *correlation);
                self.register_at(member, None, ToRegister { local, id, correlation, request, map, announcement });
            }
        }
        self.flush();
    }
}
