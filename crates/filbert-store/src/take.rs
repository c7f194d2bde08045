//! Removes entries and locks keys: removal, clearing, expiry, and all changes of locks.

use uuid::Uuid;

use crate::keys::keys;
use crate::locks::Unlock;
use crate::map::{Context, Map};
use crate::record::Record;
use crate::table::RecordPlace;
use crate::{EventKind, Millis, Reply, Value};

impl Map {
    /// The reply to a change of a key that another caller has locked or claimed. Frees a lock whose
    /// lease has ended.
    #[inline]
    pub(crate) fn refuse_locked(&mut self, cx: &mut Context<'_>, key: &[u8]) -> Option<Reply<'static>> {
        if self.locks.is_empty() && self.claims.is_empty() {
            return None;
        }
        self.refuse_held(cx, key)
    }

    fn refuse_held(&mut self, cx: &mut Context<'_>, key: &[u8]) -> Option<Reply<'static>> {
        self.free_if_ended(cx, key);
        if !self.claims.is_empty() && self.claims.has(key, cx.caller) {
            return Some(Reply::Locked { free_at: None });
        }
        let state = self.locks.state(key, cx.now).filter(|state| state.owner != cx.caller)?;
        Some(Reply::Locked { free_at: state.lease_until })
    }

    /// Whether the key is locked or claimed by any caller, so that eviction skips it.
    pub(crate) fn is_held(&self, key: &[u8], now: Millis) -> bool {
        self.locks.is_locked(key, now) || !self.claims.is_empty() && self.claims.has_any(key)
    }

    fn free_if_ended(&mut self, cx: &mut Context<'_>, key: &[u8]) {
        if self.locks.has_ended(key, cx.now) {
            self.free(cx, key);
        }
    }

    fn free(&mut self, cx: &mut Context<'_>, key: &[u8]) {
        if self.locks.free(key) {
            self.log.announce_free(cx, key);
        }
    }

    pub(crate) fn remove(&mut self, cx: &mut Context<'_>, key: &[u8]) -> Reply<'static> {
        match self.remove_where(cx, key, |_| true) {
            Ok(record) => Reply::Previous(record.map(Value::taken)),
            Err(locked) => locked,
        }
    }

    pub(crate) fn delete(&mut self, cx: &mut Context<'_>, key: &[u8]) -> Reply<'static> {
        self.remove_where(cx, key, |_| true).map_or_else(|locked| locked, |record| Reply::Flag(record.is_some()))
    }

    pub(crate) fn remove_if_same(&mut self, cx: &mut Context<'_>, key: &[u8], expected: &[u8]) -> Reply<'static> {
        let removed = self.remove_where(cx, key, |record| record.value() == expected);
        removed.map_or_else(|locked| locked, |record| Reply::Flag(record.is_some()))
    }

    fn remove_where(
        &mut self,
        cx: &mut Context<'_>,
        key: &[u8],
        is_it: impl Fn(&Record) -> bool,
    ) -> Result<Option<Record>, Reply<'static>> {
        self.counters.removes += 1;
        if let Some(locked) = self.refuse_locked(cx, key) {
            return Err(locked);
        }
        let hash = self.table.hash(key);
        let place = self.find_live(cx, hash, key);
        let place = place.filter(|place| self.table.at(*place).is_some_and(is_it));
        Ok(place.and_then(|place| self.take(cx, hash, place, EventKind::Removed)))
    }

    /// Evicts the keys of a list, except locked and claimed ones. Returns the number of removed
    /// entries, including expired ones.
    pub(crate) fn evict_keys(&mut self, cx: &mut Context<'_>, list: &[u8]) -> usize {
        let mut gone = 0;
        for key in keys(list) {
            if self.is_held(key, cx.now) {
                continue;
            }
            let hash = self.table.hash(key);
            let Some(place) = self.table.find(hash, key) else { continue };
            let expired = self.table.at(place).is_some_and(|record| record.is_expired(cx.now));
            let kind = if expired { EventKind::Expired } else { EventKind::Evicted };
            gone += usize::from(self.take(cx, hash, place, kind).is_some());
        }
        gone
    }

    pub(crate) fn evict(&mut self, cx: &mut Context<'_>, key: &[u8]) -> Reply<'static> {
        if self.is_held(key, cx.now) {
            return Reply::Flag(false);
        }
        let hash = self.table.hash(key);
        let place = self.find_live(cx, hash, key);
        Reply::Flag(place.and_then(|place| self.take(cx, hash, place, EventKind::Evicted)).is_some())
    }

    /// Removes all entries except those of locked keys. Expired entries are removed, but not
    /// counted. Claims do not keep an entry: the writes of a claim come before the clearing or
    /// after it.
    ///
    /// Events for single entries (expired entries, and all events in the journal) come in the order
    /// of keys, because the order of the table differs between replicas. If there are no such
    /// events, nothing is sorted.
    pub(crate) fn clear(&mut self, cx: &mut Context<'_>, kind: EventKind) -> Reply<'static> {
        let (mut live, mut expired) = (Vec::new(), Vec::new());
        let all = self.table.take_all();
        self.schedule.clear();
        self.record_bytes = 0;
        if let Some(derived) = &mut self.derived {
            derived.clear();
        }
        let mut live_count = 0;
        let keeps = self.log.journal.is_some() || self.export.is_some();
        for record in all {
            if self.locks.is_locked(record.key(), cx.now) {
                self.put_back(record);
            } else if record.is_expired(cx.now) {
                expired.push(record);
            } else {
                live_count += 1;
                if keeps {
                    live.push(record);
                }
            }
        }
        expired.sort_unstable_by(|a, b| a.key().cmp(b.key()));
        for record in &expired {
            self.counters.expirations += 1;
            self.log.announce(cx, EventKind::Expired, record.key(), None, Some(record.value()));
        }
        if let Some(journal) = &mut self.log.journal {
            let kind = if kind == EventKind::EvictedAll { EventKind::Evicted } else { EventKind::Removed };
            // Events that the journal would drop immediately need no order.
            let skipped = live.len().saturating_sub(journal.capacity());
            if skipped > 0 && skipped < live.len() {
                live.select_nth_unstable_by(skipped, |a, b| a.key().cmp(b.key()));
            }
            journal.skip(skipped, cx.now);
            let kept = live.get_mut(skipped..).unwrap_or_default();
            kept.sort_unstable_by(|a, b| a.key().cmp(b.key()));
            for record in kept {
                journal.append(kind, record.key(), Some(record.value()), None, cx.now);
            }
        }
        self.leave_all_for_export(live.into_iter().chain(expired));
        if kind == EventKind::EvictedAll {
            self.counters.evictions += live_count as u64;
        }
        if live_count > 0 {
            self.counters.last_update_ms = cx.now.0;
            self.log.announce_all(cx, kind, live_count);
        }
        Reply::Count(live_count)
    }

    fn put_back(&mut self, mut record: Record) {
        let hash = self.table.hash(record.key());
        if let Some(lifetime) = record.lifetime() {
            self.schedule.restore(hash, &lifetime);
        }
        if let Some(derived) = &mut self.derived {
            let slot = derived.add(hash, record.key(), record.value());
            record.set_slot(slot);
        }
        self.record_bytes += record.allocated_bytes();
        self.table.insert(hash, record);
    }

    /// Frees expired entries, leases and journal events. Examines at most `budget` entries and
    /// leases, and reduces `budget` by their number. Returns the number of freed entries and
    /// leases.
    pub(crate) fn expire(&mut self, cx: &mut Context<'_>, budget: &mut usize) -> usize {
        let mut freed_count = 0;
        while *budget > 0 {
            let Some(due) = self.schedule.due(cx.now).next() else { break };
            *budget -= 1;
            match self.find_due(due) {
                Some(place) => freed_count += usize::from(self.expire_at(cx, due.hash, place)),
                None => self.schedule.forget(due),
            }
        }
        while *budget > 0 {
            let Some((lease_until, key)) = self.locks.first_lease() else { break };
            if *lease_until > cx.now {
                break;
            }
            let key = std::sync::Arc::clone(key);
            self.free(cx, &key);
            freed_count += 1;
            *budget -= 1;
        }
        if let Some(journal) = &mut self.log.journal {
            journal.trim(cx.now);
        }
        freed_count
    }

    /// Frees an entry that came due in the schedule if it has expired. Otherwise reschedules it.
    fn expire_at(&mut self, cx: &mut Context<'_>, hash: u64, place: RecordPlace) -> bool {
        if self.table.at(place).is_some_and(|record| record.is_expired(cx.now)) {
            return self.take(cx, hash, place, EventKind::Expired).is_some();
        }
        self.keep_for_export(hash, place);
        let Some(record) = self.table.at_mut(place) else { return false };
        if let Some(mut lifetime) = record.lifetime() {
            self.schedule.remove(&lifetime);
            self.schedule.place(hash, None, &mut lifetime);
            record.set_lifetime(&lifetime);
        }
        false
    }

    pub(crate) fn lock(
        &mut self,
        cx: &mut Context<'_>,
        key: &[u8],
        lease_ms: Option<i64>,
        reference: i64,
    ) -> Reply<'static> {
        if let Err(error) = crate::record::check_lengths(key, &[]) {
            return Reply::Refused(error);
        }
        if let Some(locked) = self.refuse_locked(cx, key) {
            return locked;
        }
        let lease_until = lease_ms.map_or(Millis::MAX, |lease_ms| cx.now.deadline(lease_ms));
        self.locks.lock(key, cx.caller, lease_until, reference);
        Reply::Flag(true)
    }

    pub(crate) fn unlock(&mut self, cx: &mut Context<'_>, key: &[u8], reference: i64) -> Reply<'static> {
        self.free_if_ended(cx, key);
        match self.locks.unlock(key, cx.caller, reference, self.settings.unlock_memory_max) {
            Unlock::Freed => {
                self.log.announce_free(cx, key);
                Reply::Done
            }
            Unlock::Done => Reply::Done,
            Unlock::NotOwner(owner) => Reply::NotOwner { owner },
        }
    }

    pub(crate) fn force_unlock(&mut self, cx: &mut Context<'_>, key: &[u8]) -> Reply<'static> {
        self.free(cx, key);
        Reply::Done
    }

    /// Releases all locks and claims of a client. Returns the number of locks.
    pub(crate) fn release_locks(&mut self, cx: &mut Context<'_>, client: Uuid) -> usize {
        let mut count = 0;
        for key in self.locks.keys_of(client) {
            // A lock whose lease has ended is released too, but not counted.
            count += usize::from(self.locks.is_locked(&key, cx.now));
            self.free(cx, &key);
        }
        if self.claims.release_client(client) {
            self.log.announce_unclaimed(cx);
        }
        count
    }
}
