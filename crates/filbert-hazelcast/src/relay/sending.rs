//! What a session does with requests that are not for its member alone, and how it follows the cluster.

use std::sync::Arc;
use std::time::Instant;

use filbert_grid::{Cluster, EventKind, ListenerId, PartitionId};
use filbert_wire::{
    Message, Uuid,
    table::map::{add_index, clear, evict_all, remove_entry_listener},
};

use super::gather::{Emptied, Gather};
use super::held::Again;
use super::pipe::{Parcel, To};
use super::{ToRegister, Way, listeners, scoped, standing};
use crate::deferred::{NO_QUERIES, Place};
use crate::failure::{Failure, Outcome};
use crate::handlers::map_bulk;
use crate::rows::{self, Row};
use crate::session::Session;

impl Session {
    /// The cluster to whose other members this client's requests may be sent on.
    pub(crate) fn relays_to(&self) -> Option<&Arc<dyn Cluster>> {
        self.grid.cluster().filter(|_| self.is_replicated && !self.is_relay)
    }

    /// Has a request answered that is not for this member alone; `bytes` are the whole message. False when the connection must be
    /// closed after that.
    #[cold]
    pub(crate) fn send_on(&mut self, message: &Message<'_>, bytes: &[u8], way: Way) -> bool {
        let start = self.out.mark();
        let outcome = match way {
            Way::Here(_) => return self.handle(message),
            Way::Member(member, partition) => self.pass_on(message, bytes, member, partition),
            Way::All => self.gather(message, bytes),
            Way::Members => self.ask_all(message, bytes),
            Way::AnyMember => self.ask_any(message, bytes),
            Way::Events => match listeners::wanted(message) {
                Some((map, false)) => self.register_everywhere(message, bytes, map),
                _ => return self.handle(message),
            },
            Way::NoEvents => {
                self.unregister_elsewhere(message);
                return self.handle(message);
            }
            Way::Later(partition) => {
                self.hold_behind(message, partition);
                Ok(())
            }
        };
        match outcome {
            Ok(()) => true,
            Err(failure) => {
                self.out.rollback(start);
                self.fail_or_hold(&failure, message)
            }
        }
    }

    fn pass_on(
        &mut self,
        message: &Message<'_>,
        bytes: &[u8],
        member: Uuid,
        partition: Option<PartitionId>,
    ) -> Outcome {
        let Some(relays) = &mut self.relays else { return Ok(()) };
        let (id, correlation) = (message.id(), message.correlation_id());
        let again = relays.again(message, partition, Some(member));
        let pipe = relays.pipe(member)?;
        if let Some(partition) = partition.filter(|partition| relays.held.has(*partition)) {
            // The way was lost just now, with others of the partition on it.
            self.hold_behind(message, partition);
            return Ok(());
        }
        pipe.push(Parcel { id, correlation, partition, bytes, to: To::Client(again) })
    }

    /// Asks each member about the partitions that it leads.
    fn gather(&mut self, message: &Message<'_>, bytes: &[u8]) -> Outcome {
        let Some(relays) = &self.relays else { return Ok(()) };
        let by_leader = relays.partitions_by_leader()?;
        let emptied: Emptied = match message.id() {
            clear::ID => {
                let name = message.decode::<clear::Request<'_>>()?.name;
                Some((self.map(name)?.clone(), EventKind::Cleared))
            }
            evict_all::ID => {
                let name = message.decode::<evict_all::Request<'_>>()?.name;
                Some((self.map(name)?.clone(), EventKind::EvictedAll))
            }
            _ => None,
        };
        let again = self.relays.as_ref().map(|relays| relays.again(message, None, None));
        let gather = self.gathering(message, by_leader.len(), emptied, again)?;
        let (id, correlation) = (message.id(), message.correlation_id());
        for (member, led) in by_leader {
            let gather = gather.clone();
            let Some(relays) = &mut self.relays else { return Ok(()) };
            if member == relays.itself {
                scoped::answer(self, message, &led, Box::new(move |part| gather.take(part)));
                continue;
            }
            let asked = scoped::encode(correlation, &led, relays.partition_count, bytes);
            relays.ask(member, id, correlation, &asked, &gather);
        }
        Ok(())
    }

    fn gathering(
        &self,
        message: &Message<'_>,
        parts: usize,
        emptied: Emptied,
        again: Option<Again>,
    ) -> Result<Arc<Gather>, Box<Failure>> {
        Ok(Gather::new(message, parts, Place::take(self)?, self.config.reply_bytes_max, emptied, again))
    }

    /// Asks every member the same.
    fn ask_all(&mut self, message: &Message<'_>, bytes: &[u8]) -> Outcome {
        let Some(relays) = &self.relays else { return Ok(()) };
        let others = relays.others();
        let gather = self.gathering(message, others.len() + 1, None, None)?;
        if message.id() == add_index::ID {
            let gather = gather.clone();
            let tell = Box::new(move |answer| gather.take(answer));
            map_bulk::add_index(self, message, tell)?;
        } else {
            gather.take(Ok(self.answer_here(message)?));
        }
        let Some(relays) = &mut self.relays else { return Ok(()) };
        for member in others {
            relays.ask(member, message.id(), message.correlation_id(), bytes, &gather);
        }
        Ok(())
    }

    /// Asks every member the same; one of them knows what is meant. Who cannot be reached does not count.
    fn ask_any(&mut self, message: &Message<'_>, bytes: &[u8]) -> Outcome {
        let Some(relays) = &self.relays else { return Ok(()) };
        let others = relays.others();
        let gather = self.gathering(message, others.len() + 1, None, None)?;
        gather.take(Ok(self.answer_here(message)?));
        let Some(relays) = &mut self.relays else { return Ok(()) };
        for member in others {
            relays.ask_leniently(member, message.id(), message.correlation_id(), bytes, &gather);
        }
        Ok(())
    }

    /// What this member answers by itself, at once.
    fn answer_here(&mut self, message: &Message<'_>) -> Result<Vec<u8>, Box<Failure>> {
        let start = self.out.mark();
        match rows::find(message.id()) {
            Row::Served(handler) => handler(self, message)?,
            Row::Queries(handler) if self.grid.queries().is_some() => handler(self, message)?,
            _ => return Err(Failure::unsupported(message.id(), NO_QUERIES)),
        }
        Ok(self.out.split_off_all(start))
    }

    fn register_everywhere(&mut self, message: &Message<'_>, bytes: &[u8], map: &str) -> Outcome {
        let reply = self.answer_here(message)?;
        let local = Message::parse(&reply).ok().and_then(|reply| listeners::registration_in(&reply));
        let others = self.relays.as_ref().map(|relays| relays.others()).unwrap_or_default();
        let (Some(local), Some(relays)) = (local, &self.relays) else {
            self.out.extend_from_slice(&reply);
            return Ok(());
        };
        let gather = match self.gathering(message, others.len() + 1, None, None) {
            Ok(gather) => gather,
            Err(failure) => {
                self.grid.remove_map_listener(map, ListenerId(local));
                return Err(failure);
            }
        };
        let (id, correlation) = (message.id(), message.correlation_id());
        relays.listeners.add(local, id, correlation, bytes, map);
        gather.take(Ok(reply));
        for member in others {
            let Some(relays) = &mut self.relays else { return Ok(()) };
            relays.listeners.ask_for(local, member);
            let of = ToRegister { local, id, correlation, request: bytes, map, standing: None };
            relays.register_at(member, Some(&gather), of);
        }
        Ok(())
    }

    fn unregister_elsewhere(&mut self, message: &Message<'_>) {
        let Some(relays) = &mut self.relays else { return };
        let Ok(request) = message.decode::<remove_entry_listener::Request<'_>>() else { return };
        if let Some(registered) = relays.listeners.remove(request.registration_id) {
            relays.unregister(&registered);
        }
    }

    /// Follows a change of the cluster, or the loss of a way: those who left are not waited for, and listeners are where they should
    /// be.
    #[cold]
    pub(crate) fn look_after_relays(&mut self) {
        let change_count = self.views.change_count();
        if self.relays.is_some() && self.caches.any_unannounced() {
            for cache in self.caches.unannounced_of(self.client) {
                self.have_others_stand_by(&cache, Box::new(|| ()));
            }
        }
        let Some(relays) = &mut self.relays else { return };
        // What was pushed just now is sent.
        relays.flush();
        relays.drained();
        let broken = relays.traffic.take_broken();
        if relays.changes_seen == change_count && !broken {
            return;
        }
        relays.changes_seen = change_count;
        relays.refresh();
        let view = relays.view.clone();
        relays.pipes.retain(|member, pipe| {
            let is_member = view.member(*member).is_some();
            if !is_member {
                pipe.fail("it has left the cluster");
            }
            is_member && !pipe.is_broken()
        });
        let now = Instant::now();
        for (member, pipe) in &relays.pipes {
            let has_moved = |partition| view.leader(partition).is_some_and(|leader| leader.uuid != *member);
            pipe.follow(has_moved, now);
        }
        if relays.listeners.is_empty() {
            return;
        }
        for (local, registered) in relays.listeners.take_failed() {
            self.grid.remove_map_listener(&registered.map, ListenerId(local));
            relays.unregister(&registered);
        }
        let pipes = &relays.pipes;
        relays.listeners.forget(|member| pipes.contains_key(&member));
        let caches = &self.caches;
        relays.listeners.retain(|local, id| id != standing::ID || caches.registered(local).is_some());
        for member in relays.others() {
            for missing in relays.listeners.missing_at(member) {
                let (local, id, correlation, request, map) = &missing;
                let standing = (*id == standing::ID).then(|| self.caches.registered(*local)).flatten();
                let standing = standing.map(|cache| standing::Asked::new(cache, 1, Box::new(|| ())));
                let (local, id, correlation) = (*local, *id, *correlation);
                relays.register_at(member, None, ToRegister { local, id, correlation, request, map, standing });
            }
        }
        relays.flush();
    }
}
