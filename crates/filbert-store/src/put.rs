//! Writes entries and their lifetimes: all modes of put and replace, in place if the record has the
//! right size.

use crate::map::{Context, Map};
use crate::record::{Lifetime, Record, Stamp, Usage, check_lengths};
use crate::table::RecordPlace;
use crate::{EventKind, Expiry, Metadata, Millis, PutMode, Reply, StoreError, Value};

/// The result of a put. A value that stays in the store is named by its place, so that the sizes of
/// the map can be read before the reply borrows the value.
pub(crate) enum Outcome {
    Reply(Reply<'static>),
    Existing(RecordPlace),
}

/// The new state of an entry, except for its bytes.
struct Write {
    kind: EventKind,
    usage: Usage,
    lifetime: Lifetime,
}

impl Map {
    #[inline]
    pub(crate) fn put(
        &mut self,
        cx: &mut Context<'_>,
        key: &[u8],
        value: &[u8],
        expiry: Expiry,
        mode: PutMode,
    ) -> Outcome {
        self.counters.puts += 1;
        if let Err(error) = check_lengths(key, value) {
            return Outcome::Reply(Reply::Refused(error));
        }
        if let Some(locked) = self.refuse_locked(cx, key) {
            return Outcome::Reply(locked);
        }
        let hash = self.table.hash(key);
        let place = self.find_live(cx, hash, key);
        let written = match (place, mode) {
            (Some(place), PutMode::IfAbsent) => return self.find_existing(cx, hash, place),
            (None, PutMode::Replace) => return Outcome::Reply(Reply::Previous(None)),
            (Some(place), _) => self.update(cx, hash, place, value, expiry, mode),
            (None, _) => self.add(cx, hash, key, value, expiry, mode).map(|()| None),
        };
        Outcome::Reply(match written {
            Err(error) => Reply::Refused(error),
            Ok(old) => match mode {
                PutMode::Put | PutMode::IfAbsent | PutMode::Replace => Reply::Previous(old.map(Value::taken)),
                PutMode::Set | PutMode::Transient | PutMode::Metadata(_) => Reply::Done,
                PutMode::Try => Reply::Flag(true),
            },
        })
    }

    /// A putIfAbsent that finds an entry counts as a read.
    fn find_existing(&mut self, cx: &Context<'_>, hash: u64, place: RecordPlace) -> Outcome {
        self.keep_for_export(hash, place);
        if let Some(record) = self.table.at_mut(place) {
            let usage = record.usage_mut();
            usage.hits = usage.hits.saturating_add(1);
            usage.accessed = usage.accessed.max(Stamp::at(cx.now));
            if let Some(lifetime) = record.lifetime() {
                record.set_lifetime(&lifetime.touched(cx.now));
            }
        }
        Outcome::Existing(place)
    }

    pub(crate) fn replace_if_same(
        &mut self,
        cx: &mut Context<'_>,
        key: &[u8],
        expected: &[u8],
        value: &[u8],
    ) -> Reply<'static> {
        self.counters.puts += 1;
        if let Err(error) = check_lengths(key, value) {
            return Reply::Refused(error);
        }
        if let Some(locked) = self.refuse_locked(cx, key) {
            return locked;
        }
        let hash = self.table.hash(key);
        let place = self.find_live(cx, hash, key);
        let Some(place) = place.filter(|place| self.table.at(*place).is_some_and(|found| found.value() == expected))
        else {
            return Reply::Flag(false);
        };
        match self.update(cx, hash, place, value, Expiry::DEFAULT, PutMode::Replace) {
            Ok(_) => Reply::Flag(true),
            Err(error) => Reply::Refused(error),
        }
    }

    pub(crate) fn set_ttl(&mut self, cx: &mut Context<'_>, key: &[u8], ttl_ms: i64) -> Reply<'static> {
        if let Some(locked) = self.refuse_locked(cx, key) {
            return locked;
        }
        let hash = self.table.hash(key);
        let Some(place) = self.find_live(cx, hash, key) else { return Reply::Flag(false) };
        self.keep_for_export(hash, place);
        let Some(record) = self.table.at_mut(place) else { return Reply::Flag(false) };
        let old = record.lifetime();
        let from = old.unwrap_or_else(|| Lifetime::starting(i64::MAX, i64::MAX, cx.now));
        let mut lifetime = from.with_ttl(ttl_ms, &self.settings, cx.now);
        if old.is_none() && lifetime.is_endless() {
            return Reply::Flag(true);
        }
        if old.is_some() {
            self.schedule.place(hash, old.as_ref(), &mut lifetime);
            record.set_lifetime(&lifetime);
            return Reply::Flag(true);
        }
        // The record has no room for a lifetime, so a larger record replaces it.
        self.schedule.place(hash, None, &mut lifetime);
        match Record::new(record.key(), record.value(), *record.usage(), Some(&lifetime), record.slot()) {
            Err(error) => Reply::Refused(error),
            Ok(larger) => {
                self.record_bytes += larger.allocated_bytes();
                self.record_bytes -= record.allocated_bytes();
                *record = larger;
                Reply::Flag(true)
            }
        }
    }

    /// Restarts the idle time of an entry, expired or not, at the time of a read. Returns whether
    /// there is an entry.
    pub(crate) fn touch(&mut self, key: &[u8], read_at: Millis) -> bool {
        let hash = self.table.hash(key);
        let Some(place) = self.table.find(hash, key) else { return false };
        self.keep_for_export(hash, place);
        if let Some(record) = self.table.at_mut(place)
            && let Some(lifetime) = record.lifetime()
        {
            // The item in the schedule is not later than the old deadline. It is moved to the new
            // deadline when it comes due.
            record.set_lifetime(&lifetime.touched(read_at));
        }
        true
    }

    pub(crate) fn add(
        &mut self,
        cx: &mut Context<'_>,
        hash: u64,
        key: &[u8],
        value: &[u8],
        expiry: Expiry,
        mode: PutMode,
    ) -> Result<(), StoreError> {
        // Checked before any other change: a log may write keys that no caller has claimed, so
        // their lengths were not checked.
        check_lengths(key, value)?;
        let now = Stamp::at(cx.now);
        let usage = Usage { version: 0, created: now, updated: now, accessed: now, hits: 0 };
        let write = Write { kind: EventKind::Added, usage, lifetime: Lifetime::of_put(expiry, &self.settings, cx.now) };
        let Write { kind, usage, mut lifetime } = self.with_metadata(write, mode, cx.now);
        // If entries have slots, the slot is set after the record has been created.
        let slot = self.derived.is_some().then_some(0);
        self.note_absence_for_export(hash, key);
        let mut record = if lifetime.is_endless() {
            Record::new(key, value, usage, None, slot)?
        } else {
            self.schedule.place(hash, None, &mut lifetime);
            Record::new(key, value, usage, Some(&lifetime), slot)?
        };
        if let Some(derived) = &mut self.derived {
            record.set_slot(derived.add(hash, key, value));
        }
        self.record_bytes += record.allocated_bytes();
        self.table.insert(hash, record);
        self.counters.last_access_ms = cx.now.0;
        self.counters.last_update_ms = cx.now.0;
        self.log.announce(cx, kind, key, Some(value), None);
        Ok(())
    }

    /// Overwrites an entry. Returns the old record if the mode replies with the old value.
    #[inline]
    pub(crate) fn update(
        &mut self,
        cx: &mut Context<'_>,
        hash: u64,
        place: RecordPlace,
        value: &[u8],
        expiry: Expiry,
        mode: PutMode,
    ) -> Result<Option<Record>, StoreError> {
        self.keep_for_export(hash, place);
        let Some(record) = self.table.at(place) else { return Ok(None) };
        let old_lifetime = record.lifetime();
        let expiry = if mode == PutMode::Replace { Expiry::DEFAULT } else { expiry };
        let lifetime = Lifetime::of_put(expiry, &self.settings, cx.now);
        let now = Stamp::at(cx.now);
        let old_usage = record.usage();
        let usage = Usage { version: old_usage.version.saturating_add(1), updated: now, accessed: now, ..*old_usage };
        let write = Write { kind: EventKind::Updated, usage, lifetime };
        let Write { kind, usage, mut lifetime } = self.with_metadata(write, mode, cx.now);
        let fits = record.value().len() == value.len() && (old_lifetime.is_some() || lifetime.is_endless());
        let wants_old = matches!(mode, PutMode::Put | PutMode::Replace);
        let Some(record) = self.table.at_mut(place) else { return Ok(None) };
        if fits && !wants_old {
            if let (Some(derived), Some(slot)) = (&mut self.derived, record.slot()) {
                derived.replace(slot, record.key(), record.value(), value);
            }
            self.log.announce(cx, kind, record.key(), Some(value), Some(record.value()));
            record.value_mut().copy_from_slice(value);
            *record.usage_mut() = usage;
            if old_lifetime.is_some() {
                self.schedule.place(hash, old_lifetime.as_ref(), &mut lifetime);
                record.set_lifetime(&lifetime);
            }
            self.counters.last_access_ms = cx.now.0;
            self.counters.last_update_ms = cx.now.0;
            return Ok(None);
        }
        let new_lifetime = (!lifetime.is_endless()).then_some(&lifetime);
        let mut new = Record::new(record.key(), value, usage, new_lifetime, record.slot())?;
        if let (Some(derived), Some(slot)) = (&mut self.derived, record.slot()) {
            derived.replace(slot, record.key(), record.value(), value);
        }
        self.schedule.place(hash, old_lifetime.as_ref(), &mut lifetime);
        new.set_lifetime(&lifetime);
        self.record_bytes += new.allocated_bytes();
        let old = std::mem::replace(record, new);
        self.record_bytes -= old.allocated_bytes();
        self.log.announce(cx, kind, old.key(), Some(value), Some(old.value()));
        self.counters.last_access_ms = cx.now.0;
        self.counters.last_update_ms = cx.now.0;
        Ok(wants_old.then_some(old))
    }

    /// For a put with metadata, replaces the state by that of the metadata. Otherwise returns it
    /// unchanged.
    #[inline]
    fn with_metadata(&self, write: Write, mode: PutMode, now: Millis) -> Write {
        let PutMode::Metadata(metadata) = mode else { return write };
        let Metadata { created_ms, updated_ms, accessed_ms, expires_ms, hits, version, expiry } = metadata;
        let mut lifetime = Lifetime::of_put(expiry, &self.settings, now);
        if expires_ms != i64::MAX {
            lifetime.ttl_deadline = Millis(expires_ms);
        }
        let usage = Usage {
            version: u32::try_from(version).unwrap_or(u32::MAX),
            created: Stamp::at(Millis(created_ms)),
            updated: Stamp::at(Millis(updated_ms)),
            accessed: Stamp::at(Millis(accessed_ms)),
            hits: u32::try_from(hits).unwrap_or(u32::MAX),
        };
        Write { kind: EventKind::Loaded, usage, lifetime }
    }
}
