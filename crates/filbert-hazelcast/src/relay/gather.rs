//! Replies that are merged from the replies of several members.

use std::sync::Arc;

use filbert_grid::{ErrorKind, EventKind, Map, MemoryBudget};
use filbert_wire::{
    CorrelationId, Message, MessageId, Response,
    table::client::send_schema,
    table::continuous_query::{destroy_cache, made_publishable, set_read_cursor},
    table::map::{clear, contains_value, entry_set, evict_all, is_empty, key_set, size, values},
};
use parking_lot::{Mutex, MutexGuard};

use super::held::RepeatableRequest;
use crate::failure::Failure;
use crate::listing::Listing;
use crate::query_slot::QuerySlot;
use crate::replies::Replies;

/// The event for the listeners of a map after it was emptied on all members.
pub(crate) type Emptied = Option<(Arc<Map>, EventKind)>;

/// A reply that is being collected. If a part is an error, that error is the reply, but only after
/// all parts have arrived: until then something may still change. The first error wins.
pub(crate) struct Gather {
    id: MessageId,
    correlation: CorrelationId,
    bytes_max: usize,
    emptied: Emptied,
    /// The number of entries that earlier attempts have removed.
    emptied_before: usize,
    state: Mutex<State>,
}

struct State {
    missing: usize,
    parts: Vec<Vec<u8>>,
    bytes: usize,
    failed: Option<Vec<u8>>,
    /// The destination of the reply, taken by the last part.
    slot: Option<QuerySlot>,
    /// The request, for a repetition if members do not lead the partitions that they were asked
    /// for.
    repeatable: Option<RepeatableRequest>,
}

impl Gather {
    /// Creates the reply to `message`, for `missing` parts. It may have `bytes_max` bytes.
    pub(crate) fn new(
        message: &Message<'_>,
        missing: usize,
        slot: QuerySlot,
        bytes_max: usize,
        emptied: Emptied,
        repeatable: Option<RepeatableRequest>,
    ) -> Arc<Self> {
        let emptied_before = repeatable.as_ref().map_or(0, RepeatableRequest::emptied_before);
        let state = State { missing, parts: Vec::new(), bytes: 0, failed: None, slot: Some(slot), repeatable };
        let (id, correlation) = (message.id(), message.correlation_id());
        Arc::new(Self { id, correlation, bytes_max, emptied, emptied_before, state: Mutex::new(state) })
    }

    /// Adds the reply of one member, or the failure.
    pub(crate) fn take(&self, part: Result<Vec<u8>, Box<Failure>>) {
        let mut state = self.state.lock();
        match part {
            Err(failure) => state.fail(failure.encoded(self.correlation)),
            Ok(part) if is_error(&part) => state.fail(part),
            Ok(part) => {
                state.bytes = state.bytes.saturating_add(part.len());
                if state.bytes > self.bytes_max {
                    state.parts = Vec::new();
                    state.failed.get_or_insert_with(|| self.too_long().encoded(self.correlation));
                } else {
                    state.parts.push(part);
                }
            }
        }
        self.count(state);
    }

    /// Continues without the part of a member that cannot be reached.
    pub(super) fn take_nothing(&self) {
        self.count(self.state.lock());
    }

    /// Counts a part. The last one completes the reply.
    fn count(&self, mut state: MutexGuard<'_, State>) {
        state.missing = state.missing.saturating_sub(1);
        if state.missing > 0 {
            return;
        }
        let Some(slot) = state.slot.take() else { return };
        let (parts, failed, repeatable) =
            (std::mem::take(&mut state.parts), state.failed.take(), state.repeatable.take());
        drop(state);
        if let (Some(failed), Some(repeatable)) = (&failed, repeatable)
            && Message::parse(failed).is_ok_and(|failed| repeatable.may_repeat_after_reply(&failed))
        {
            drop(slot);
            let affected = self.affected(&parts);
            if let (false, Some((map, kind)), 1..) =
                (repeatable.hold_having_emptied(failed.clone(), affected), &self.emptied, affected)
            {
                map.notify_emptied(*kind, affected);
            }
            return;
        }
        if let Some((map, kind)) = &self.emptied {
            let affected = self.affected(&parts);
            // A failed operation also causes an event if it has changed something.
            if failed.is_none() || affected > 0 {
                map.notify_emptied(*kind, affected);
            }
        }
        let budget = &slot.link().replies;
        let reply = match failed {
            Some(failed) => Ok(Replies::whole(failed, budget)),
            None => self.merge(parts, budget),
        };
        let reply = reply.unwrap_or_else(|failure| Replies::whole(failure.encoded(self.correlation), budget));
        slot.reply(self.correlation, reply, self.bytes_max);
    }

    /// The number of entries removed so far, if the request empties a map.
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
            // The replies have no content, or the first one is complete.
            _ => *out = parts.into_iter().next().unwrap_or_default(),
        }
        Ok(out)
    }

    /// Whether any member answers yes.
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
    /// Keeps the first failure, unless the request may be repeated after it.
    fn fail(&mut self, failure: Vec<u8>) {
        let may_repeat = |repeatable: &RepeatableRequest| {
            let failed = self.failed.as_deref().and_then(|failed| Message::parse(failed).ok());
            failed.is_some_and(|failed| repeatable.may_repeat_after_reply(&failed))
        };
        if self.failed.is_none() || self.repeatable.as_ref().is_some_and(may_repeat) {
            self.failed = Some(failure);
        }
    }
}

fn is_error(part: &[u8]) -> bool {
    Message::parse(part).is_ok_and(|message| message.id() == MessageId::ERROR)
}

/// The sum of parts that are sizes.
fn sum(parts: &[Vec<u8>]) -> Result<usize, Box<Failure>> {
    let mut sum = 0_usize;
    for part in parts {
        let size = Message::parse(part)?.decode::<size::Response>()?.response;
        sum = sum.saturating_add(usize::try_from(size).unwrap_or_default());
    }
    Ok(sum)
}
