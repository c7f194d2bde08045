//! Changes of several keys together: first claim the keys and check the entries, then write.

use crate::batch::{Expected, items};
use crate::hash::stable_hash;
use crate::map::{Context, Map};
use crate::record::check_lengths;
use crate::{EventKind, Expiry, PutMode, Reply};

impl Map {
    /// Claims the keys of a batch for the caller, in addition to its earlier claims, and reports
    /// the places of the items that are not as expected. Claims nothing if another caller holds a
    /// key.
    pub(crate) fn claim(&mut self, cx: &mut Context<'_>, batch: &[u8]) -> Reply<'static> {
        let (mut hashes, mut differing) = (Vec::new(), Vec::new());
        for (place, item) in items(batch) {
            if let Err(error) = check_lengths(item.key, item.value.unwrap_or_default()) {
                return Reply::Refused(error);
            }
            if self.refuse_locked(cx, item.key).is_some() {
                return Reply::Held(place);
            }
            let hash = self.table.hash(item.key);
            let found = self.find_live(cx, hash, item.key).and_then(|place| self.table.at(place));
            let is_as_expected = match (item.expected, found) {
                (Expected::Anything, _) | (Expected::Nothing, None) => true,
                (Expected::Value(expected), Some(record)) => record.value() == expected,
                _ => false,
            };
            if !is_as_expected {
                differing.push(place);
            }
            hashes.push(stable_hash(item.key));
        }
        if !hashes.is_empty() {
            self.claims.claim(cx.caller, hashes);
        }
        Reply::Claimed(differing)
    }

    /// Claims all keys for the caller, existing and new ones. Claims nothing if another caller
    /// holds a key.
    pub(crate) fn claim_all(&mut self, cx: &Context<'_>) -> Reply<'static> {
        if self.claims.has_of_others(cx.caller) || self.locks.any_of_others(cx.caller, cx.now) {
            return Reply::Held(0);
        }
        self.claims.claim_all(cx.caller);
        Reply::Claimed(Vec::new())
    }

    /// Applies the changes of a batch. The caller must have claimed its keys. If an expected entry
    /// has expired or was cleared in the meantime, it stays absent, as if that had happened after
    /// the change. Without a claim of the caller nothing is applied, and the reply is
    /// `Flag(false)`: the batch came late, or again.
    pub(crate) fn write_batch(&mut self, cx: &mut Context<'_>, batch: &[u8]) -> Reply<'static> {
        let mut count = 0;
        if !self.claims.has_of(cx.caller) {
            return Reply::Flag(false);
        }
        for (_, item) in items(batch) {
            let hash = self.table.hash(item.key);
            let place = self.find_live(cx, hash, item.key);
            let Some(value) = item.value else {
                self.counters.removes += 1;
                let gone = place.and_then(|place| self.take(cx, hash, place, EventKind::Removed));
                count += usize::from(gone.is_some());
                continue;
            };
            self.counters.puts += 1;
            let written = match (place, item.expected) {
                (Some(place), Expected::Value(_)) => {
                    self.update(cx, hash, place, value, Expiry::DEFAULT, PutMode::Replace).map(|_| ())
                }
                (Some(place), _) => self.update(cx, hash, place, value, Expiry::DEFAULT, PutMode::Set).map(|_| ()),
                (None, Expected::Value(_)) => continue,
                (None, _) => self.add(cx, hash, item.key, value, Expiry::DEFAULT, PutMode::Set),
            };
            // Lengths were checked when the keys were claimed.
            count += usize::from(written.is_ok());
        }
        Reply::Count(count)
    }

    /// Releases the claims of the caller.
    pub(crate) fn unclaim(&mut self, cx: &mut Context<'_>) -> Reply<'static> {
        if self.claims.release(cx.caller) {
            self.log.announce_unclaimed(cx);
        }
        Reply::Done
    }
}
