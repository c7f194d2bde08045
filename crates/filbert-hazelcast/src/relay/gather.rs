//! One reply made of the answers of several members.

use std::sync::Arc;

use filbert_grid::{ErrorKind, EventKind, Map, MemoryBudget};
use filbert_wire::{
    CorrelationId, Message, MessageId, Response,
    table::client::send_schema,
    table::continuous_query::{destroy_cache, made_publishable, set_read_cursor},
    table::map::{clear, contains_value, entry_set, evict_all, is_empty, key_set, size, values},
};
use parking_lot::{Mutex, MutexGuard};

use super::held::Again;
use super::scoped::encoded;
use crate::deferred::Place;
use crate::failure::Failure;
use crate::listing::Listing;
use crate::replies::Replies;

/// What the listeners of a map hear when it is empty everywhere.
pub(super) type Emptied = Option<(Arc<Map>, EventKind)>;

/// A reply in the making. The first part that is an error is the reply, when all have come: until then something may still change.
pub(super) struct Gather {
    id: MessageId,
    correlation: CorrelationId,
    bytes_max: usize,
    emptied: Emptied,
    /// How many entries had gone before this was asked again.
    emptied_before: usize,
    state: Mutex<State>,
}

struct State {
    missing: usize,
    parts: Vec<Vec<u8>>,
    bytes: usize,
    failed: Option<Vec<u8>>,
    /// Where the reply goes; taken by the last part.
    place: Option<Place>,
    /// To ask again, when members do not lead what they were asked about.
    again: Option<Again>,
}

impl Gather {
    /// The reply to `message`, when so many parts have come. It may have `bytes_max` bytes.
    pub(super) fn new(
        message: &Message<'_>,
        missing: usize,
        place: Place,
        bytes_max: usize,
        emptied: Emptied,
        again: Option<Again>,
    ) -> Arc<Self> {
        let emptied_before = again.as_ref().map_or(0, Again::emptied_before);
        let state = State { missing, parts: Vec::new(), bytes: 0, failed: None, place: Some(place), again };
        let (id, correlation) = (message.id(), message.correlation_id());
        Arc::new(Self { id, correlation, bytes_max, emptied, emptied_before, state: Mutex::new(state) })
    }

    /// Takes the message of one member, or why there is none.
    pub(super) fn take(&self, part: Result<Vec<u8>, Box<Failure>>) {
        let mut state = self.state.lock();
        match part {
            Err(failure) => state.fail(encoded(&failure, self.correlation)),
            Ok(part) if is_error(&part) => state.fail(part),
            Ok(part) => {
                state.bytes = state.bytes.saturating_add(part.len());
                if state.bytes > self.bytes_max {
                    state.parts = Vec::new();
                    state.failed.get_or_insert_with(|| encoded(&self.too_long(), self.correlation));
                } else {
                    state.parts.push(part);
                }
            }
        }
        self.count(state);
    }

    /// Does without the part of a member that cannot be asked.
    pub(super) fn take_nothing(&self) {
        self.count(self.state.lock());
    }

    /// One part less is missing; the last one makes the reply.
    fn count(&self, mut state: MutexGuard<'_, State>) {
        state.missing = state.missing.saturating_sub(1);
        if state.missing > 0 {
            return;
        }
        let Some(place) = state.place.take() else { return };
        let (parts, failed, again) = (std::mem::take(&mut state.parts), state.failed.take(), state.again.take());
        drop(state);
        if let (Some(failed), Some(again)) = (&failed, again)
            && Message::parse(failed).is_ok_and(|failed| again.may_follow_answer(&failed))
        {
            drop(place);
            let affected = self.affected(&parts);
            if let (false, Some((map, kind)), 1..) =
                (again.hold_having_emptied(failed.clone(), affected), &self.emptied, affected)
            {
                map.tell_emptied(*kind, affected);
            }
            return;
        }
        if let Some((map, kind)) = &self.emptied {
            let affected = self.affected(&parts);
            // What failed is an event if it has changed something.
            if failed.is_none() || affected > 0 {
                map.tell_emptied(*kind, affected);
            }
        }
        let budget = &place.link().replies;
        let reply = match failed {
            Some(failed) => Ok(Replies::whole(failed, budget)),
            None => self.merge(parts, budget),
        };
        let reply = reply.unwrap_or_else(|failure| Replies::whole(encoded(&failure, self.correlation), budget));
        place.reply(self.correlation, reply, self.bytes_max);
    }

    /// How many entries are gone by now, if they were to go.
    fn affected(&self, parts: &[Vec<u8>]) -> usize {
        match &self.emptied {
            Some(_) => sum(parts).unwrap_or_default().saturating_add(self.emptied_before),
            None => 0,
        }
    }

    fn too_long(&self) -> Box<Failure> {
        let text = format!(
            "the reply to {} needs more than {} bytes (reply_bytes_max); iterate over the map instead",
            self.id, self.bytes_max
        );
        Failure::new(ErrorKind::LimitReached, text)
    }

    fn merge(&self, parts: Vec<Vec<u8>>, budget: &MemoryBudget) -> Result<Replies, Box<Failure>> {
        let (correlation, mut out) = (self.correlation, Replies::new(budget));
        match self.id {
            size::ID => {
                let response = i32::try_from(sum(&parts)?).unwrap_or(i32::MAX);
                size::Response { response }.encode(correlation, &mut out);
            }
            is_empty::ID => {
                let mut response = true;
                for part in &parts {
                    response &= Message::parse(part)?.decode::<is_empty::Response>()?.response;
                }
                is_empty::Response { response }.encode(correlation, &mut out);
            }
            contains_value::ID => {
                let mut response = false;
                for part in &parts {
                    response |= Message::parse(part)?.decode::<contains_value::Response>()?.response;
                }
                contains_value::Response { response }.encode(correlation, &mut out);
            }
            clear::ID => clear::Response {}.encode(correlation, &mut out),
            evict_all::ID => evict_all::Response {}.encode(correlation, &mut out),
            key_set::ID | values::ID | entry_set::ID => self.list(&parts, &mut out)?,
            send_schema::ID => {
                let mut replicated_members = Vec::new();
                for part in &parts {
                    replicated_members
                        .extend(Message::parse(part)?.decode::<send_schema::Response>()?.replicated_members);
                }
                send_schema::Response { replicated_members }.encode(correlation, &mut out);
            }
            made_publishable::ID => {
                let response = self.any(&parts, |part| Ok(part.decode::<made_publishable::Response>()?.response))?;
                made_publishable::Response { response }.encode(correlation, &mut out);
            }
            set_read_cursor::ID => {
                let response = self.any(&parts, |part| Ok(part.decode::<set_read_cursor::Response>()?.response))?;
                set_read_cursor::Response { response }.encode(correlation, &mut out);
            }
            destroy_cache::ID => {
                let response = self.any(&parts, |part| Ok(part.decode::<destroy_cache::Response>()?.response))?;
                destroy_cache::Response { response }.encode(correlation, &mut out);
            }
            // They say nothing but that it is done, or the first one says it all.
            _ => *out = parts.into_iter().next().unwrap_or_default(),
        }
        Ok(out)
    }

    /// Whether any member says yes.
    fn any(
        &self,
        parts: &[Vec<u8>],
        says: impl Fn(&Message<'_>) -> Result<bool, Box<Failure>>,
    ) -> Result<bool, Box<Failure>> {
        let mut any = false;
        for part in parts {
            any |= says(&Message::parse(part)?)?;
        }
        Ok(any)
    }

    fn list(&self, parts: &[Vec<u8>], out: &mut Replies) -> Result<(), Box<Failure>> {
        let mut listing = Listing::answering(self.id, self.correlation, self.bytes_max, out);
        listing.open();
        for part in parts {
            let part = Message::parse(part)?;
            match self.id {
                key_set::ID => {
                    part.decode::<key_set::Response<'_>>()?.response.into_iter().for_each(|key| listing.item(key));
                }
                values::ID => {
                    part.decode::<values::Response<'_>>()?.response.into_iter().for_each(|value| listing.item(value));
                }
                _ => {
                    for (key, value) in part.decode::<entry_set::Response<'_>>()?.response {
                        listing.entry(key, value);
                    }
                }
            }
        }
        listing.finish()
    }
}

impl State {
    /// The first failure stays, unless it is one after which the request may be made again.
    fn fail(&mut self, failure: Vec<u8>) {
        let may_follow = |again: &Again| {
            let failed = self.failed.as_deref().and_then(|failed| Message::parse(failed).ok());
            failed.is_some_and(|failed| again.may_follow_answer(&failed))
        };
        if self.failed.is_none() || self.again.as_ref().is_some_and(may_follow) {
            self.failed = Some(failure);
        }
    }
}

fn is_error(part: &[u8]) -> bool {
    Message::parse(part).is_ok_and(|message| message.id() == MessageId::ERROR)
}

/// Of the parts that are sizes.
fn sum(parts: &[Vec<u8>]) -> Result<usize, Box<Failure>> {
    let mut sum = 0_usize;
    for part in parts {
        let size = Message::parse(part)?.decode::<size::Response>()?.response;
        sum = sum.saturating_add(usize::try_from(size).unwrap_or_default());
    }
    Ok(sum)
}
