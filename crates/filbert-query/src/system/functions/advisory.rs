//! Advisory locks that functions try to take, and give back. `waiting` has the functions that wait
//! for a lock.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use filbert_data::Value;
use filbert_functions::error::{carried, data_error};
use filbert_functions::native::{Call, Native, Take, bool, failed, now, of_text, text};
use filbert_grid::query::{AdvisoryKey, AdvisoryLocks, Severity, SqlError, SqlErrorCode};

use crate::server::ServerOfSession;

/// One number of 64 bits, or two of 32 bits.
const NUMBERS: &[Take] = &[Take::Int, Take::Int];

pub(super) const FUNCTIONS: &[Native] = &[
    now("pg_try_advisory_lock", NUMBERS, bool, |call| try_lock(call, false, false)).least(1),
    now("pg_try_advisory_lock_shared", NUMBERS, bool, |call| try_lock(call, true, false)).least(1),
    now("pg_try_advisory_xact_lock", NUMBERS, bool, |call| try_lock(call, false, true)).least(1),
    now("pg_try_advisory_xact_lock_shared", NUMBERS, bool, |call| try_lock(call, true, true)).least(1),
    now("pg_advisory_unlock", NUMBERS, bool, |call| unlock(call, false)).least(1),
    now("pg_advisory_unlock_shared", NUMBERS, bool, |call| unlock(call, true)).least(1),
    now("pg_advisory_unlock_all", &[], text, |call| {
        call.session().into_iter().for_each(|session| session.advisory_unlock_all());
        Ok(of_text(""))
    }),
];

/// The locks of the member.
///
/// # Errors
/// The member belongs to a cluster: sessions at other members would not see the locks.
pub(super) fn locks(options: &ConfigOptions) -> Result<&Arc<AdvisoryLocks>> {
    let server = ServerOfSession::of(options).ok_or_else(|| failed("there is no member to lock anything at"))?;
    if server.tables.is_in_cluster() {
        let text =
            "advisory locks are not served by the members of a cluster: sessions at other members would not see them";
        return Err(carried(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("0A000")));
    }
    Ok(&server.locks)
}

/// The locked number from the arguments of a call.
pub(super) fn key(first: i64, second: Option<i64>) -> Result<AdvisoryKey> {
    let Some(second) = second else { return Ok(AdvisoryKey::One(first)) };
    match (i32::try_from(first), i32::try_from(second)) {
        (Ok(first), Ok(second)) => Ok(AdvisoryKey::Two(first, second)),
        _ => Err(carried(data_error("integer out of range").with_sqlstate("22003"))),
    }
}

fn key_of(call: &Call<'_>) -> Result<AdvisoryKey> {
    key(call.int(0).unwrap_or_default(), call.int(1))
}

fn try_lock(call: &Call<'_>, is_shared: bool, is_of_transaction: bool) -> Result<Value<'static>> {
    let Some(session) = call.session() else { return Err(failed("there is no session to lock anything for")) };
    let taken = session.try_advisory_lock(locks(call.options())?, key_of(call)?, is_shared, is_of_transaction);
    taken.map(Value::Boolean).map_err(carried)
}

fn unlock(call: &Call<'_>, is_shared: bool) -> Result<Value<'static>> {
    let Some(session) = call.session() else { return Ok(Value::Boolean(false)) };
    let is_held = session.advisory_unlock(key_of(call)?, is_shared);
    if !is_held {
        let mode = if is_shared { "ShareLock" } else { "ExclusiveLock" };
        session.tell(Severity::Warning, "01000", format!("you don't own a lock of type {mode}"));
    }
    Ok(Value::Boolean(is_held))
}
