//! The handling of requests that other members answer as well, and of changes of the cluster.

use std::sync::Arc;

use filbert_grid::{EventKind, ListenerId};
use filbert_wire::{
    Message,
    table::map::{add_index, clear, evict_all, remove_entry_listener},
};

use crate::deferred::NO_QUERIES;
use crate::failure::{Failure, Outcome};
use crate::handlers::{map_bulk, scoped};
use crate::relay::{self, Emptied, Gather, RepeatableRequest};
use crate::routing::Route;
use crate::row::Row;
use crate::rows;
use crate::session::Session;

impl Session {
    /// Answers a request that is not for this member alone. `bytes` are the whole message. Returns
    /// `false` if the connection must be closed afterwards.
    #[cold]
    pub(crate) fn handle_routed(&mut self, message: &Message<'_>, bytes: &[u8], route: Route) -> bool {
        let start = self.out.mark();
        let outcome = match route {
            Route::Here(_) => return self.handle(message),
            Route::Member(member, partition) => match &mut self.relays {
                Some(relays) => relays.forward(message, bytes, member, partition),
                None => Ok(()),
            },
            Route::All => self.gather(message, bytes),
            Route::Members => self.ask_all(message, bytes),
            Route::AnyMember => self.ask_any(message, bytes),
            Route::AddListener => match relay::listener_scope(message) {
                Some((map, false)) => self.register_everywhere(message, bytes, map),
                _ => return self.handle(message),
            },
            Route::RemoveListener => {
                self.unregister_elsewhere(message);
                return self.handle(message);
            }
            Route::Held(partition) => {
                if let Some(relays) = &self.relays {
                    relays.hold_behind(message, partition);
                }
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

    /// Sends the request to each member, for the partitions that it leads.
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
        let repeatable = self.relays.as_ref().map(|relays| relays.repeatable(message, None, None));
        let gather = self.gathering(message, by_leader.len(), emptied, repeatable)?;
        let (id, correlation) = (message.id(), message.correlation_id());
        for (member, led) in by_leader {
            let gather = gather.clone();
            let Some(relays) = &mut self.relays else { return Ok(()) };
            if member == relays.itself() {
                scoped::answer(self, message, &led, Box::new(move |part| gather.take(part)));
                continue;
            }
            let request = scoped::encode(correlation, &led, relays.partition_count(), bytes);
            relays.ask(member, id, correlation, &request, &gather);
        }
        Ok(())
    }

    fn gathering(
        &self,
        message: &Message<'_>,
        parts: usize,
        emptied: Emptied,
        repeatable: Option<RepeatableRequest>,
    ) -> Result<Arc<Gather>, Box<Failure>> {
        Ok(Gather::new(message, parts, self.take_slot()?, self.config.reply_bytes_max, emptied, repeatable))
    }

    /// Sends the same request to every member.
    fn ask_all(&mut self, message: &Message<'_>, bytes: &[u8]) -> Outcome {
        let Some(relays) = &self.relays else { return Ok(()) };
        let others = relays.others();
        let gather = self.gathering(message, others.len() + 1, None, None)?;
        if message.id() == add_index::ID {
            let gather = gather.clone();
            let send_reply = Box::new(move |answer| gather.take(answer));
            map_bulk::add_index(self, message, send_reply)?;
        } else {
            gather.take(Ok(self.answer_here(message)?));
        }
        let Some(relays) = &mut self.relays else { return Ok(()) };
        for member in others {
            relays.ask(member, message.id(), message.correlation_id(), bytes, &gather);
        }
        Ok(())
    }

    /// Sends the same request to every member. One of them knows the object. Members that cannot be
    /// reached are ignored.
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

    /// The reply of this member alone, immediately.
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
        let local = Message::parse(&reply).ok().and_then(|reply| relay::registration_in(&reply));
        let others = self.relays.as_ref().map(|relays| relays.others()).unwrap_or_default();
        let (Some(local), Some(_)) = (local, &self.relays) else {
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
        if let Some(relays) = &mut self.relays {
            relays.register_everywhere(local, message, bytes, map, &gather, reply);
        }
        Ok(())
    }

    fn unregister_elsewhere(&mut self, message: &Message<'_>) {
        let Some(relays) = &mut self.relays else { return };
        let Ok(request) = message.decode::<remove_entry_listener::Request<'_>>() else { return };
        relays.unregister_everywhere(request.registration_id);
    }

    /// Adapts to a change of the cluster, or to the loss of a connection to a member: requests to
    /// members that have left end, and missing listeners are registered.
    #[cold]
    pub(crate) fn update_relays(&mut self) {
        let change_count = self.views.change_count();
        if self.relays.is_some() && self.caches.any_unannounced() {
            for cache in self.caches.unannounced_of(self.client) {
                self.have_others_stand_by(&cache, Box::new(|| ()));
            }
        }
        let Some(relays) = &mut self.relays else { return };
        relays.follow(change_count, &self.caches, &self.grid);
    }
}
