//! Changes of one key.

use filbert_grid::{Change, Expiry, PutMode};
use filbert_wire::{
    Message, MessageId, Response,
    table::map::{
        delete, evict, put, put_if_absent, put_if_absent_with_max_idle, put_transient, put_transient_with_max_idle,
        put_with_max_idle, remove, remove_if_same, replace, replace_if_same, set, set_ttl, set_with_max_idle, try_put,
        try_remove,
    },
};

use crate::{
    change::{OfKey, Wait, change, done, flag, previous},
    failure::Outcome,
    row::Row,
    session::Session,
};

pub(crate) const ROWS: &[(MessageId, Row)] = &[
    (put::ID, Row::Served(handle_put)),
    (set::ID, Row::Served(handle_set)),
    (put_if_absent::ID, Row::Served(handle_put_if_absent)),
    (put_transient::ID, Row::Served(handle_put_transient)),
    (try_put::ID, Row::Served(handle_try_put)),
    (put_with_max_idle::ID, Row::Served(handle_put_with_max_idle)),
    (set_with_max_idle::ID, Row::Served(handle_set_with_max_idle)),
    (put_if_absent_with_max_idle::ID, Row::Served(handle_put_if_absent_with_max_idle)),
    (put_transient_with_max_idle::ID, Row::Served(handle_put_transient_with_max_idle)),
    (replace::ID, Row::Served(handle_replace)),
    (replace_if_same::ID, Row::Served(handle_replace_if_same)),
    (remove::ID, Row::Served(handle_remove)),
    (remove_if_same::ID, Row::Served(handle_remove_if_same)),
    (delete::ID, Row::Served(handle_delete)),
    (try_remove::ID, Row::Served(handle_try_remove)),
    (evict::ID, Row::Served(handle_evict)),
    (set_ttl::ID, Row::Served(handle_set_ttl)),
];

const fn of(map: &str, thread: i64) -> OfKey<'_> {
    OfKey { map, thread, wait: Wait::Call }
}

/// A change that returns the previous value.
macro_rules! answers_previous {
    ($session:ident, $message:ident, $method:ident, $of:expr, $change:expr) => {
        change($session, $message, $of, $change, |reply, correlation, out| {
            $method::Response { response: previous(&reply)? }.encode(correlation, out);
            Ok(())
        })
    };
}

/// A change that returns whether it had an effect.
macro_rules! answers_flag {
    ($session:ident, $message:ident, $method:ident, $of:expr, $change:expr) => {
        change($session, $message, $of, $change, |reply, correlation, out| {
            $method::Response { response: flag(&reply)? }.encode(correlation, out);
            Ok(())
        })
    };
}

/// A change that returns nothing.
macro_rules! answers_done {
    ($session:ident, $message:ident, $response:expr, $of:expr, $change:expr) => {
        change($session, $message, $of, $change, |reply, correlation, out| {
            done(&reply)?;
            $response.encode(correlation, out);
            Ok(())
        })
    };
}

fn handle_put(session: &mut Session, message: &Message<'_>) -> Outcome {
    let put::Request { name, key, value, thread_id, ttl } = message.decode()?;
    let put = Change::Put { key, value, expiry: Expiry::ttl(ttl), mode: PutMode::Put };
    answers_previous!(session, message, put, of(name, thread_id), put)
}

fn handle_set(session: &mut Session, message: &Message<'_>) -> Outcome {
    let set::Request { name, key, value, thread_id, ttl } = message.decode()?;
    let put = Change::Put { key, value, expiry: Expiry::ttl(ttl), mode: PutMode::Set };
    answers_done!(session, message, set::Response {}, of(name, thread_id), put)
}

fn handle_put_if_absent(session: &mut Session, message: &Message<'_>) -> Outcome {
    let put_if_absent::Request { name, key, value, thread_id, ttl } = message.decode()?;
    let put = Change::Put { key, value, expiry: Expiry::ttl(ttl), mode: PutMode::IfAbsent };
    answers_previous!(session, message, put_if_absent, of(name, thread_id), put)
}

fn handle_put_transient(session: &mut Session, message: &Message<'_>) -> Outcome {
    let put_transient::Request { name, key, value, thread_id, ttl } = message.decode()?;
    let put = Change::Put { key, value, expiry: Expiry::ttl(ttl), mode: PutMode::Transient };
    answers_done!(session, message, put_transient::Response {}, of(name, thread_id), put)
}

fn handle_try_put(session: &mut Session, message: &Message<'_>) -> Outcome {
    let try_put::Request { name, key, value, thread_id, timeout } = message.decode()?;
    let put = Change::Put { key, value, expiry: Expiry::DEFAULT, mode: PutMode::Try };
    let of = OfKey { map: name, thread: thread_id, wait: Wait::OrFalse(timeout) };
    answers_flag!(session, message, try_put, of, put)
}

fn handle_put_with_max_idle(session: &mut Session, message: &Message<'_>) -> Outcome {
    let put_with_max_idle::Request { name, key, value, thread_id, ttl, max_idle } = message.decode()?;
    let expiry = Expiry { ttl_ms: ttl, max_idle_ms: max_idle };
    let put = Change::Put { key, value, expiry, mode: PutMode::Put };
    answers_previous!(session, message, put_with_max_idle, of(name, thread_id), put)
}

fn handle_set_with_max_idle(session: &mut Session, message: &Message<'_>) -> Outcome {
    let set_with_max_idle::Request { name, key, value, thread_id, ttl, max_idle } = message.decode()?;
    let expiry = Expiry { ttl_ms: ttl, max_idle_ms: max_idle };
    let put = Change::Put { key, value, expiry, mode: PutMode::Set };
    answers_done!(session, message, set_with_max_idle::Response { response: None }, of(name, thread_id), put)
}

fn handle_put_if_absent_with_max_idle(session: &mut Session, message: &Message<'_>) -> Outcome {
    let put_if_absent_with_max_idle::Request { name, key, value, thread_id, ttl, max_idle } = message.decode()?;
    let expiry = Expiry { ttl_ms: ttl, max_idle_ms: max_idle };
    let put = Change::Put { key, value, expiry, mode: PutMode::IfAbsent };
    answers_previous!(session, message, put_if_absent_with_max_idle, of(name, thread_id), put)
}

fn handle_put_transient_with_max_idle(session: &mut Session, message: &Message<'_>) -> Outcome {
    let put_transient_with_max_idle::Request { name, key, value, thread_id, ttl, max_idle } = message.decode()?;
    let expiry = Expiry { ttl_ms: ttl, max_idle_ms: max_idle };
    let put = Change::Put { key, value, expiry, mode: PutMode::Transient };
    let of = of(name, thread_id);
    answers_done!(session, message, put_transient_with_max_idle::Response { response: None }, of, put)
}

fn handle_replace(session: &mut Session, message: &Message<'_>) -> Outcome {
    let replace::Request { name, key, value, thread_id } = message.decode()?;
    let put = Change::Put { key, value, expiry: Expiry::DEFAULT, mode: PutMode::Replace };
    answers_previous!(session, message, replace, of(name, thread_id), put)
}

fn handle_replace_if_same(session: &mut Session, message: &Message<'_>) -> Outcome {
    let replace_if_same::Request { name, key, test_value, value, thread_id } = message.decode()?;
    let replace = Change::ReplaceIfSame { key, expected: test_value, value };
    answers_flag!(session, message, replace_if_same, of(name, thread_id), replace)
}

fn handle_remove(session: &mut Session, message: &Message<'_>) -> Outcome {
    let remove::Request { name, key, thread_id } = message.decode()?;
    answers_previous!(session, message, remove, of(name, thread_id), Change::Remove { key })
}

fn handle_remove_if_same(session: &mut Session, message: &Message<'_>) -> Outcome {
    let remove_if_same::Request { name, key, value, thread_id } = message.decode()?;
    let remove = Change::RemoveIfSame { key, expected: value };
    answers_flag!(session, message, remove_if_same, of(name, thread_id), remove)
}

fn handle_delete(session: &mut Session, message: &Message<'_>) -> Outcome {
    let delete::Request { name, key, thread_id } = message.decode()?;
    answers_flag!(session, message, delete, of(name, thread_id), Change::Delete { key })
}

fn handle_try_remove(session: &mut Session, message: &Message<'_>) -> Outcome {
    let try_remove::Request { name, key, thread_id, timeout } = message.decode()?;
    let of = OfKey { map: name, thread: thread_id, wait: Wait::OrFalse(timeout) };
    answers_flag!(session, message, try_remove, of, Change::Delete { key })
}

fn handle_evict(session: &mut Session, message: &Message<'_>) -> Outcome {
    let evict::Request { name, key, thread_id } = message.decode()?;
    answers_flag!(session, message, evict, of(name, thread_id), Change::Evict { key })
}

fn handle_set_ttl(session: &mut Session, message: &Message<'_>) -> Outcome {
    let set_ttl::Request { name, key, ttl } = message.decode()?;
    // The request names no thread. So a lock of the same client counts as the lock of another
    // caller, as in Hazelcast.
    answers_flag!(session, message, set_ttl, of(name, 0), Change::SetTtl { key, ttl_ms: ttl })
}
