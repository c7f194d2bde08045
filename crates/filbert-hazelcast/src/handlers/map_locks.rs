//! Locks of keys.

use filbert_grid::Change;
use filbert_wire::{
    Message, MessageId, Response,
    table::map::{force_unlock, lock, try_lock, unlock},
};

use crate::{
    change::{OfKey, Wait, change, done, flag},
    failure::Outcome,
    row::Row,
    session::Session,
};

pub(crate) const ROWS: &[(MessageId, Row)] = &[
    (lock::ID, Row::Served(handle_lock)),
    (try_lock::ID, Row::Served(handle_try_lock)),
    (unlock::ID, Row::Served(handle_unlock)),
    (force_unlock::ID, Row::Served(handle_force_unlock)),
];

/// Decodes a lease. Clients send -1 for a lock without a lease, and some send the largest number.
fn lease(lease_ms: i64) -> Option<i64> {
    (lease_ms > 0 && lease_ms != i64::MAX).then_some(lease_ms)
}

fn handle_lock(session: &mut Session, message: &Message<'_>) -> Outcome {
    let lock::Request { name, key, thread_id, ttl, reference_id } = message.decode()?;
    let take = Change::Lock { key, lease_ms: lease(ttl), reference: reference_id };
    let of = OfKey { map: name, thread: thread_id, wait: Wait::Ever };
    change(session, message, of, take, |reply, correlation, out| {
        done(&reply)?;
        lock::Response {}.encode(correlation, out);
        Ok(())
    })
}

fn handle_try_lock(session: &mut Session, message: &Message<'_>) -> Outcome {
    let try_lock::Request { name, key, thread_id, lease: lease_ms, timeout, reference_id } = message.decode()?;
    let take = Change::Lock { key, lease_ms: lease(lease_ms), reference: reference_id };
    let of = OfKey { map: name, thread: thread_id, wait: Wait::OrFalse(timeout) };
    change(session, message, of, take, |reply, correlation, out| {
        try_lock::Response { response: flag(&reply)? }.encode(correlation, out);
        Ok(())
    })
}

fn handle_unlock(session: &mut Session, message: &Message<'_>) -> Outcome {
    let unlock::Request { name, key, thread_id, reference_id } = message.decode()?;
    let of = OfKey { map: name, thread: thread_id, wait: Wait::Call };
    change(session, message, of, Change::Unlock { key, reference: reference_id }, |reply, correlation, out| {
        done(&reply)?;
        unlock::Response {}.encode(correlation, out);
        Ok(())
    })
}

fn handle_force_unlock(session: &mut Session, message: &Message<'_>) -> Outcome {
    let force_unlock::Request { name, key, reference_id } = message.decode()?;
    let of = OfKey { map: name, thread: 0, wait: Wait::Call };
    change(session, message, of, Change::ForceUnlock { key, reference: reference_id }, |reply, correlation, out| {
        done(&reply)?;
        force_unlock::Response {}.encode(correlation, out);
        Ok(())
    })
}
