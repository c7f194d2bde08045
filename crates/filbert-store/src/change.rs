//! Dispatches a command to the function of the map that implements it. This module must not know
//! how partitions contain maps.

use crate::EventKind;
use crate::command::{Change, ChangeOf};
use crate::map::{Context, Map};
use crate::put::Outcome;
use crate::reply::Reply;

#[inline]
pub(crate) fn change_map(map: &mut Map, cx: &mut Context<'_>, change: Change<'_>) -> Outcome {
    Outcome::Reply(match change {
        ChangeOf::Put { key, value, expiry, mode } => return map.put(cx, key, value, expiry, mode),
        ChangeOf::ReplaceIfSame { key, expected, value } => map.replace_if_same(cx, key, expected, value),
        ChangeOf::Remove { key } => map.remove(cx, key),
        ChangeOf::Delete { key } => map.delete(cx, key),
        ChangeOf::RemoveIfSame { key, expected } => map.remove_if_same(cx, key, expected),
        ChangeOf::Evict { key } => map.evict(cx, key),
        ChangeOf::SetTtl { key, ttl_ms } => map.set_ttl(cx, key, ttl_ms),
        ChangeOf::Lock { key, lease_ms, reference } => map.lock(cx, key, lease_ms, reference),
        ChangeOf::Unlock { key, reference } => map.unlock(cx, key, reference),
        ChangeOf::ForceUnlock { key, .. } => map.force_unlock(cx, key),
        // The check of the lock finds other owners of the key.
        ChangeOf::Await { key } => map.refuse_locked(cx, key).unwrap_or(Reply::Done),
        ChangeOf::Claim { batch } => map.claim(cx, batch),
        ChangeOf::ClaimAll => map.claim_all(cx),
        ChangeOf::WriteBatch { batch } => map.write_batch(cx, batch),
        ChangeOf::Unclaim => map.unclaim(cx),
        // A claim of all keys would leave nothing to remove.
        ChangeOf::Clear | ChangeOf::EvictAll if map.claims.has_all_of_others(cx.caller) => Reply::Held(0),
        ChangeOf::Clear => map.clear(cx, EventKind::Cleared),
        ChangeOf::EvictAll => map.clear(cx, EventKind::EvictedAll),
        ChangeOf::EvictKeys { keys } => Reply::Count(map.evict_keys(cx, keys)),
        ChangeOf::Touch { key, read_at } => Reply::Flag(map.touch(key, read_at)),
        // These apply to all maps.
        ChangeOf::ReleaseLocks { client } => Reply::Count(map.release_locks(cx, client)),
        ChangeOf::Expire { limit } => {
            let mut budget = limit;
            Reply::Count(map.expire(cx, &mut budget))
        }
    })
}
