//! Encoding and decoding of the items of a snapshot.

use std::sync::Arc;

use crate::claims::Claim;
use crate::codec::{CodecError, Problem, Reader, TooLong, append_bytes, append_caller, append_settings, read_settings};
use crate::journal::JournalEvent;
use crate::locks::{Lock, Unlocked};
use crate::map::Head;
use crate::record::{Lifetime, NOT_READ, Record, Stamp, Usage};
use crate::share::Declaration;
use crate::{EventKind, MapId, Millis};

pub(super) const PARTITION: u8 = 1;
pub(super) const MAP: u8 = 2;
pub(super) const LOCK: u8 = 3;
pub(super) const UNLOCKED: u8 = 4;
pub(super) const CLAIM: u8 = 5;
pub(super) const RECORD: u8 = 6;
pub(super) const EVENT: u8 = 7;
pub(super) const END_OF_MAP: u8 = 8;
pub(super) const END: u8 = 9;

/// A record, borrowed from a page.
pub(super) struct RecordItem<'p> {
    pub(super) key: &'p [u8],
    pub(super) value: &'p [u8],
    pub(super) usage: Usage,
    pub(super) lifetime: Option<Lifetime>,
}

fn append_u32(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn append_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn append_i64(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(&number.to_le_bytes());
}

/// Lengths always fit: no record, lock or event is longer than 4 bytes of length allow.
fn append_text(out: &mut Vec<u8>, bytes: &[u8]) {
    let written: Result<(), TooLong> = append_bytes(out, bytes);
    debug_assert!(written.is_ok(), "keys and values fit 4 bytes of length");
}

pub(super) fn append_partition(out: &mut Vec<u8>, partition: u32, time: Millis, maps: usize) {
    out.push(PARTITION);
    append_u32(out, partition);
    append_i64(out, time.0);
    // Map ids have 32 bits.
    append_u32(out, maps as u32);
}

impl Head {
    /// The description of a map that is only declared.
    pub(super) fn of_declaration(id: MapId, declaration: &Declaration) -> Head {
        let settings = declaration.settings.clone();
        let journal = settings.journal.map(|_| (0, 0));
        Head { map: id, settings, sequence: 0, next_number: 0, layout: declaration.layout_number, journal }
    }
}

pub(super) fn append_head(out: &mut Vec<u8>, head: &Head) {
    out.push(MAP);
    append_u32(out, head.map.0);
    append_settings(out, &head.settings);
    append_u64(out, head.sequence);
    append_u64(out, head.next_number);
    out.push(u8::from(head.layout.is_some()));
    append_u64(out, head.layout.unwrap_or(0));
    out.push(u8::from(head.journal.is_some()));
    let (next, count) = head.journal.unwrap_or((0, 0));
    append_i64(out, next);
    append_u64(out, count);
}

pub(super) fn read_head(reader: &mut Reader<'_>) -> Result<Head, CodecError> {
    let map = MapId(reader.u32("a map")?);
    let settings = read_settings(reader)?;
    let sequence = reader.u64("a map's sequence")?;
    let next_number = reader.u64("a schedule's next number")?;
    let (has_layout, layout) = (reader.flag("whether there is a layout")?, reader.u64("the number of a layout")?);
    let has_journal = reader.flag("whether there is a journal")?;
    let journal = (reader.i64("a journal's next sequence")?, reader.u64("a journal's number of events")?);
    let (layout, journal) = (has_layout.then_some(layout), has_journal.then_some(journal));
    Ok(Head { map, settings, sequence, next_number, layout, journal })
}

pub(super) fn append_lock(out: &mut Vec<u8>, key: &[u8], lock: &Lock) {
    out.push(LOCK);
    append_caller(out, lock.owner);
    append_u32(out, lock.count);
    append_i64(out, lock.lease_until.0);
    append_i64(out, lock.lock_reference);
    append_i64(out, lock.unlock_reference);
    append_text(out, key);
}

pub(super) fn read_lock<'p>(reader: &mut Reader<'p>) -> Result<(&'p [u8], Lock), CodecError> {
    let owner = reader.caller("a lock's owner")?;
    let count = reader.u32("a lock's holds")?;
    if count == 0 {
        return Err(reader.unexpected("a lock's holds", 0, "at least 1"));
    }
    let lease_until = reader.millis("the end of a lease")?;
    let (lock_reference, unlock_reference) = (reader.i64("a lock's reference")?, reader.i64("an unlock's reference")?);
    let key = reader.bytes("a lock's key")?;
    Ok((key, Lock { owner, count, lease_until, lock_reference, unlock_reference }))
}

pub(super) fn append_unlocked(out: &mut Vec<u8>, unlocked: &Unlocked) {
    out.push(UNLOCKED);
    append_u64(out, unlocked.hash);
    append_caller(out, unlocked.caller);
    append_i64(out, unlocked.reference);
}

pub(super) fn read_unlocked(reader: &mut Reader<'_>) -> Result<Unlocked, CodecError> {
    let hash = reader.u64("the hash of an unlocked key")?;
    let caller = reader.caller("who unlocked a key")?;
    Ok(Unlocked { hash, caller, reference: reader.i64("an unlock's reference")? })
}

/// The maximum number of hashes in one item of a claim. A larger claim is written as several items.
const CLAIM_HASHES_MAX: usize = 4_096;

pub(super) fn append_claim(out: &mut Vec<u8>, claim: &Claim) {
    let mut append = |hashes: &[u64]| {
        out.push(CLAIM);
        append_caller(out, claim.owner);
        append_u32(out, hashes.len() as u32);
        hashes.iter().for_each(|hash| append_u64(out, *hash));
    };
    if claim.is_of_all() {
        return append(&[]);
    }
    claim.hashes.chunks(CLAIM_HASHES_MAX).for_each(append);
}

pub(super) fn read_claim(reader: &mut Reader<'_>) -> Result<Claim, CodecError> {
    let owner = reader.caller("who claims keys")?;
    let offset = reader.offset();
    let count = reader.u32("a claim's number of hashes")?;
    let bytes = reader.slice("a claim's hashes", (count as usize).saturating_mul(size_of::<u64>()))?;
    let (hashes, _) = bytes.as_chunks::<8>();
    let hashes: Arc<[u64]> = hashes.iter().map(|hash| u64::from_le_bytes(*hash)).collect();
    if !hashes.is_sorted() {
        let problem = Problem::Broken { expected: "hashes in order" };
        return Err(CodecError { what: "a claim's hashes", offset, problem });
    }
    Ok(Claim { owner, hashes })
}

/// Writes a record. `usage` determines whether hits and the last access are included, which the log
/// does not determine.
pub(super) fn append_record(out: &mut Vec<u8>, record: &Record, usage: bool) {
    let known = record.usage();
    out.push(RECORD);
    append_u32(out, known.version);
    append_u32(out, known.created.to_units());
    append_u32(out, known.updated.to_units());
    append_u32(out, if usage { known.accessed.to_units() } else { 0 });
    append_u32(out, if usage { known.hits } else { 0 });
    // Replicas may differ in whether a record has room for a lifetime that never ends.
    let lifetime = record.lifetime().filter(|lifetime| !lifetime.is_endless());
    out.push(u8::from(lifetime.is_some()));
    if let Some(lifetime) = lifetime {
        append_i64(out, lifetime.ttl_ms);
        append_i64(out, lifetime.max_idle_ms);
        append_i64(out, lifetime.ttl_deadline.0);
        append_i64(out, lifetime.idle_deadline.0);
        append_i64(out, lifetime.scheduled.0);
        append_u64(out, lifetime.number);
    }
    append_text(out, record.key());
    append_text(out, record.value());
}

pub(super) fn read_record<'p>(reader: &mut Reader<'p>) -> Result<RecordItem<'p>, CodecError> {
    let mut stamp = |what| reader.u32(what);
    let version = stamp("a record's version")?;
    let created = Stamp::of_units(stamp("a record's time of creation")?);
    let updated = Stamp::of_units(stamp("a record's time of update")?);
    let accessed = Stamp::of_units(stamp("a record's time of access")?);
    let hits = stamp("a record's hits")?;
    let usage = Usage { version, created, updated, accessed, hits };
    let lifetime = if reader.flag("whether a record can expire")? { Some(read_lifetime(reader)?) } else { None };
    let (key, value) = (reader.bytes("a record's key")?, reader.bytes("a record's value")?);
    Ok(RecordItem { key, value, usage, lifetime })
}

fn read_lifetime(reader: &mut Reader<'_>) -> Result<Lifetime, CodecError> {
    let offset = reader.offset();
    let lifetime = Lifetime {
        ttl_ms: reader.i64("a time to live")?,
        max_idle_ms: reader.i64("a max idle time")?,
        ttl_deadline: reader.millis("the end of a time to live")?,
        idle_deadline: reader.millis("the end of a max idle time")?,
        scheduled: reader.millis("a moment in the schedule")?,
        number: reader.u64("a number in the schedule")?,
        read_at: NOT_READ,
    };
    if lifetime.scheduled > lifetime.deadline() || lifetime.scheduled == Millis::MAX && lifetime.number != 0 {
        let problem = Problem::Broken { expected: "a place in the schedule before its end" };
        return Err(CodecError { what: "a lifetime", offset, problem });
    }
    if lifetime.scheduled == Millis::MAX && lifetime.deadline() != Millis::MAX {
        let problem = Problem::Broken { expected: "a place in the schedule" };
        return Err(CodecError { what: "a lifetime", offset, problem });
    }
    Ok(lifetime)
}

pub(super) fn append_event(out: &mut Vec<u8>, event: &JournalEvent) {
    out.push(EVENT);
    append_i64(out, event.sequence);
    append_i64(out, event.at().0);
    out.push(match event.kind {
        EventKind::Added => 1,
        EventKind::Updated => 2,
        EventKind::Removed => 3,
        EventKind::Evicted => 4,
        EventKind::Expired => 5,
        // A journal contains no other kinds.
        _ => 6,
    });
    out.push(u8::from(event.old_value.is_some()) | u8::from(event.new_value.is_some()) << 1);
    append_text(out, &event.key);
    for value in event.old_value.iter().chain(&event.new_value) {
        append_text(out, value);
    }
}

pub(super) fn read_event(reader: &mut Reader<'_>) -> Result<JournalEvent, CodecError> {
    let sequence = reader.i64("an event's sequence")?;
    let at = reader.millis("an event's time")?;
    let kind = match reader.u8("an event's kind")? {
        1 => EventKind::Added,
        2 => EventKind::Updated,
        3 => EventKind::Removed,
        4 => EventKind::Evicted,
        5 => EventKind::Expired,
        6 => EventKind::Loaded,
        found => return Err(reader.unexpected("an event's kind", u64::from(found), "1 to 6")),
    };
    let values = reader.u8("which values an event has")?;
    if values > 3 {
        return Err(reader.unexpected("which values an event has", u64::from(values), "0 to 3"));
    }
    let key = reader.bytes("an event's key")?.into();
    let old_value = if values & 1 != 0 { Some(reader.bytes("an event's old value")?.into()) } else { None };
    let new_value = if values & 2 != 0 { Some(reader.bytes("an event's new value")?.into()) } else { None };
    Ok(JournalEvent::restored(sequence, kind, key, old_value, new_value, at))
}

pub(super) fn append_end_of_map(out: &mut Vec<u8>, records: u64) {
    out.push(END_OF_MAP);
    append_u64(out, records);
}
