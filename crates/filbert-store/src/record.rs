//! The record: key, value and metadata of one entry in one allocation behind a thin pointer.
//!
//! All `unsafe` code of the crate is here. The layout from the start of the allocation (alignment
//! 4, numbers in the machine's byte order, because records never leave the process):
//!
//! | offset | bytes | content |
//! |---|---|---|
//! | 0 | 28 | [`Header`]: key length and flags, value length, and [`Usage`] |
//! | 28 | 0 or 4 | the slot, `u32`, if the map numbers its entries (flag in bit 30) |
//! | then | 0 or 56 | [`Lifetime`], unaligned, if the entry can expire (flag in bit 31) |
//! | then | key length | the key |
//! | then | value length | the value |
//!
//! The lengths and the flags never change during the life of a record. Therefore the allocated
//! layout can always be computed again, for access and for freeing.
#![allow(unsafe_code, reason = "a thin pointer to a header followed by bytes cannot be had otherwise")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::slice;

use crate::{Millis, StoreError};

/// The maximum length of a key: 30 bits, because the header uses the other two for flags.
pub(crate) const KEY_BYTES_MAX: usize = (1 << 30) - 1;
/// The maximum length of a value.
pub(crate) const VALUE_BYTES_MAX: usize = u32::MAX as usize;

const LIFETIME_FLAG: u32 = 1 << 31;
const SLOT_FLAG: u32 = 1 << 30;
const HEADER_BYTES: usize = size_of::<Header>();
const LIFETIME_BYTES: usize = size_of::<Lifetime>();
const SLOT_BYTES: usize = size_of::<u32>();

/// A time in 4 bytes: units of 250 ms since 2018-01-01 UTC, until the year 2052. Saturates at both
/// ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Stamp(u32);

impl Stamp {
    const EPOCH_MS: i64 = 1_514_764_800_000;
    const UNIT_MS: i64 = 250;

    pub(crate) fn at(now: Millis) -> Stamp {
        let units = now.since(Millis(Self::EPOCH_MS)).max(0) / Self::UNIT_MS;
        Stamp(u32::try_from(units).unwrap_or(u32::MAX))
    }

    pub(crate) fn of_units(units: u32) -> Stamp {
        Stamp(units)
    }

    pub(crate) fn to_units(self) -> u32 {
        self.0
    }

    pub(crate) fn to_ms(self) -> i64 {
        Self::EPOCH_MS + i64::from(self.0) * Self::UNIT_MS
    }
}

/// The usage of an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) version: u32,
    pub(crate) created: Stamp,
    pub(crate) updated: Stamp,
    pub(crate) accessed: Stamp,
    pub(crate) hits: u32,
}

#[repr(C)]
struct Header {
    key_len_and_flags: u32,
    value_len: u32,
    usage: Usage,
}

/// The durations and deadlines of an entry. "Never" is `i64::MAX` for durations and [`Millis::MAX`]
/// for times.
///
/// Commands use only the values that commands have written here. Reads write only `read_at`, and
/// see the deadline that it extends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lifetime {
    pub(crate) ttl_ms: i64,
    pub(crate) max_idle_ms: i64,
    pub(crate) ttl_deadline: Millis,
    /// According to the log: set by the latest command that wrote, read or touched the entry.
    pub(crate) idle_deadline: Millis,
    /// The time of the entry in the schedule of the map, not later than the deadline;
    /// [`Millis::MAX`] = not scheduled.
    pub(crate) scheduled: Millis,
    /// The number of the entry in the schedule, which orders entries with the same time.
    pub(crate) number: u64,
    /// The latest read in this replica, which the log does not know; [`NOT_READ`] before the first.
    pub(crate) read_at: Millis,
}

/// The time before all reads.
pub(crate) const NOT_READ: Millis = Millis(i64::MIN);

impl Lifetime {
    /// The deadline according to the log. Commands use it.
    pub(crate) fn deadline(&self) -> Millis {
        self.ttl_deadline.min(self.idle_deadline)
    }

    /// The deadline including the reads of this replica. Reads use it; it is never earlier than
    /// [`Lifetime::deadline`].
    pub(crate) fn deadline_of_reads(&self) -> Millis {
        self.ttl_deadline.min(self.idle_deadline.max(self.idle_deadline_after(self.read_at)))
    }
}

/// The key, the value and the metadata of an entry.
pub(crate) struct Record {
    start: NonNull<u8>,
    owns: PhantomData<Box<[u8]>>,
}

// SAFETY: a record is the only owner of its allocation, which contains only plain numbers and
// bytes.
unsafe impl Send for Record {}
// SAFETY: access through `&Record` only reads; writing requires `&mut Record`.
unsafe impl Sync for Record {}

impl Record {
    /// Copies the key and the value into a new allocation.
    pub(crate) fn new(
        key: &[u8],
        value: &[u8],
        usage: Usage,
        lifetime: Option<&Lifetime>,
        slot: Option<u32>,
    ) -> Result<Record, StoreError> {
        check_lengths(key, value)?;
        let lifetime_flag = if lifetime.is_some() { LIFETIME_FLAG } else { 0 };
        let slot_flag = if slot.is_some() { SLOT_FLAG } else { 0 };
        // The casts lose nothing, because both lengths were just checked.
        let key_len_and_flags = key.len() as u32 | lifetime_flag | slot_flag;
        let header = Header { key_len_and_flags, value_len: value.len() as u32, usage };
        let Ok(layout) = Layout::from_size_align(total_bytes(&header), align_of::<Header>()) else {
            return Err(StoreError::ValueTooLarge { bytes: value.len(), bytes_max: isize::MAX as usize });
        };
        let (lifetime_offset, key_offset) = (lifetime_offset(&header), key_offset(&header));
        // SAFETY: the size of the layout is not zero, because it includes the header.
        let allocated = unsafe { alloc(layout) };
        let Some(start) = NonNull::new(allocated) else { handle_alloc_error(layout) };
        // SAFETY: `start` is aligned for a header, and the allocation is as long as header, slot
        // and lifetime (if flagged), key and value together, so each of these writes is within it;
        // it is new, so it overlaps none of the sources. The slot comes right after the header, and
        // the size of the header is a multiple of 4.
        unsafe {
            start.cast::<Header>().write(header);
            if let Some(slot) = slot {
                start.add(HEADER_BYTES).cast::<u32>().write(slot);
            }
            if let Some(lifetime) = lifetime {
                start.add(lifetime_offset).cast::<Lifetime>().write_unaligned(*lifetime);
            }
            ptr::copy_nonoverlapping(key.as_ptr(), start.add(key_offset).as_ptr(), key.len());
            ptr::copy_nonoverlapping(value.as_ptr(), start.add(key_offset + key.len()).as_ptr(), value.len());
        }
        Ok(Record { start, owns: PhantomData })
    }

    #[inline]
    fn header(&self) -> &Header {
        // SAFETY: every record begins with an initialized, aligned header, which is borrowed as
        // long as the record.
        unsafe { self.start.cast::<Header>().as_ref() }
    }

    /// The usage, for reading.
    #[inline]
    pub(crate) fn usage(&self) -> &Usage {
        &self.header().usage
    }

    /// The usage, for changes. The lengths are not accessible.
    #[inline]
    pub(crate) fn usage_mut(&mut self) -> &mut Usage {
        // SAFETY: as in `header`; because of `&mut self` this is the only reference into the
        // record.
        unsafe { &mut self.start.cast::<Header>().as_mut().usage }
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        let header = self.header();
        // SAFETY: `new` wrote this many bytes at this place, and they live as long as the record.
        unsafe { slice::from_raw_parts(self.start.add(key_offset(header)).as_ptr(), key_len(header)) }
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        let header = self.header();
        // SAFETY: `new` wrote this many bytes at this place, and they live as long as the record.
        unsafe { slice::from_raw_parts(self.start.add(value_offset(header)).as_ptr(), header.value_len as usize) }
    }

    /// The bytes of the value, to be overwritten. Their number does not change.
    #[inline]
    pub(crate) fn value_mut(&mut self) -> &mut [u8] {
        let (offset, len) = {
            let header = self.header();
            (value_offset(header), header.value_len as usize)
        };
        // SAFETY: as in `value`; because of `&mut self` this is the only reference into the record.
        unsafe { slice::from_raw_parts_mut(self.start.add(offset).as_ptr(), len) }
    }

    /// Whether the record has a lifetime, so that the entry can expire.
    #[inline]
    pub(crate) fn has_lifetime(&self) -> bool {
        self.header().key_len_and_flags & LIFETIME_FLAG != 0
    }

    #[inline]
    pub(crate) fn lifetime(&self) -> Option<Lifetime> {
        if !self.has_lifetime() {
            return None;
        }
        let offset = lifetime_offset(self.header());
        // SAFETY: the flag means that `new` wrote a lifetime here; `read_unaligned` requires no
        // alignment.
        Some(unsafe { self.start.add(offset).cast::<Lifetime>().read_unaligned() })
    }

    /// Changes the lifetime of a record that has one. Returns whether it has one.
    pub(crate) fn set_lifetime(&mut self, lifetime: &Lifetime) -> bool {
        if !self.has_lifetime() {
            return false;
        }
        let offset = lifetime_offset(self.header());
        // SAFETY: the flag means that the allocation has room for a lifetime here; `&mut self`
        // excludes other access.
        unsafe { self.start.add(offset).cast::<Lifetime>().write_unaligned(*lifetime) };
        true
    }

    /// The slot of the entry, if the map numbers its entries.
    #[inline]
    pub(crate) fn slot(&self) -> Option<u32> {
        if self.header().key_len_and_flags & SLOT_FLAG == 0 {
            return None;
        }
        // SAFETY: the flag means that `new` wrote a slot right after the header, where it is
        // aligned.
        Some(unsafe { self.start.add(HEADER_BYTES).cast::<u32>().read() })
    }

    /// Changes the slot of a record that has one. Returns whether it has one.
    #[inline]
    pub(crate) fn set_slot(&mut self, slot: u32) -> bool {
        if self.header().key_len_and_flags & SLOT_FLAG == 0 {
            return false;
        }
        // SAFETY: the flag means that there is room for a slot right after the header; `&mut self`
        // excludes other access.
        unsafe { self.start.add(HEADER_BYTES).cast::<u32>().write(slot) };
        true
    }

    /// A copy of the record with another slot, or without a slot.
    pub(crate) fn with_slot(&self, slot: Option<u32>) -> Result<Record, StoreError> {
        Record::new(self.key(), self.value(), *self.usage(), self.lifetime().as_ref(), slot)
    }

    /// Whether the entry has expired according to the log. For commands.
    #[inline]
    pub(crate) fn is_expired(&self, now: Millis) -> bool {
        self.lifetime().is_some_and(|lifetime| now >= lifetime.deadline())
    }

    /// Whether the entry has expired, taking reads into account. For reads.
    #[inline]
    pub(crate) fn is_expired_for_reads(&self, now: Millis) -> bool {
        self.lifetime().is_some_and(|lifetime| now >= lifetime.deadline_of_reads())
    }

    /// The bytes of the allocation, including the overhead of a common allocator: one word, and
    /// rounding up to 16.
    pub(crate) fn allocated_bytes(&self) -> usize {
        (total_bytes(self.header()) + 8).next_multiple_of(16)
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let bytes = total_bytes(self.header());
        // SAFETY: lengths and flags are unchanged since `new`, so this is the valid layout of the
        // allocation, which is freed once.
        unsafe {
            dealloc(self.start.as_ptr(), Layout::from_size_align_unchecked(bytes, align_of::<Header>()));
        }
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Record({} + {} bytes, {:?})", self.key().len(), self.value().len(), self.usage())
    }
}

/// Checks that a record can contain a key and a value of these lengths.
pub(crate) fn check_lengths(key: &[u8], value: &[u8]) -> Result<(), StoreError> {
    if key.len() > KEY_BYTES_MAX {
        return Err(StoreError::KeyTooLarge { bytes: key.len(), bytes_max: KEY_BYTES_MAX });
    }
    if value.len() > VALUE_BYTES_MAX {
        return Err(StoreError::ValueTooLarge { bytes: value.len(), bytes_max: VALUE_BYTES_MAX });
    }
    Ok(())
}

#[inline]
fn key_len(header: &Header) -> usize {
    (header.key_len_and_flags & !(LIFETIME_FLAG | SLOT_FLAG)) as usize
}

#[inline]
fn lifetime_offset(header: &Header) -> usize {
    if header.key_len_and_flags & SLOT_FLAG != 0 { HEADER_BYTES + SLOT_BYTES } else { HEADER_BYTES }
}

#[inline]
fn key_offset(header: &Header) -> usize {
    let lifetime_bytes = if header.key_len_and_flags & LIFETIME_FLAG != 0 { LIFETIME_BYTES } else { 0 };
    lifetime_offset(header) + lifetime_bytes
}

#[inline]
fn value_offset(header: &Header) -> usize {
    key_offset(header) + key_len(header)
}

fn total_bytes(header: &Header) -> usize {
    // Cannot overflow if usize has 64 bits. If it has 32 bits, the sum saturates, and no layout of
    // this size exists.
    value_offset(header).saturating_add(header.value_len as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(version: u32) -> Usage {
        let stamp = Stamp::at(Millis(1_700_000_000_000));
        Usage { version, created: stamp, updated: stamp, accessed: stamp, hits: 3 }
    }

    const LIFETIME: Lifetime = Lifetime {
        ttl_ms: 1,
        max_idle_ms: 2,
        ttl_deadline: Millis(30),
        idle_deadline: Millis(20),
        scheduled: Millis(10),
        number: 5,
        read_at: NOT_READ,
    };

    const EXTRAS: [(Option<&Lifetime>, Option<u32>); 4] =
        [(None, None), (Some(&LIFETIME), None), (None, Some(7)), (Some(&LIFETIME), Some(u32::MAX))];

    #[test]
    fn a_record_gives_back_what_it_was_made_of() {
        for (key, value) in [("", ""), ("k", ""), ("", "v"), ("key", "value"), ("four", "more than a few bytes")] {
            for (lifetime, slot) in EXTRAS {
                let record = Record::new(key.as_bytes(), value.as_bytes(), usage(7), lifetime, slot).unwrap();
                assert_eq!(record.key(), key.as_bytes());
                assert_eq!(record.value(), value.as_bytes());
                assert_eq!(*record.usage(), usage(7));
                assert_eq!(record.lifetime(), lifetime.copied());
                assert_eq!(record.has_lifetime(), lifetime.is_some());
                assert_eq!(record.slot(), slot);
            }
        }
    }

    #[test]
    fn a_value_is_overwritten_in_place_and_nothing_beside_it() {
        for (lifetime, slot) in EXTRAS {
            let mut record = Record::new(b"key", b"old", usage(1), lifetime, slot).unwrap();
            record.value_mut().copy_from_slice(b"new");
            record.usage_mut().hits = 9;
            assert_eq!((record.key(), record.value()), (b"key".as_slice(), b"new".as_slice()));
            assert_eq!((record.lifetime(), record.slot()), (lifetime.copied(), slot));
            assert_eq!(*record.usage(), Usage { hits: 9, ..usage(1) });
        }
    }

    #[test]
    fn a_lifetime_is_changed_only_where_there_is_one() {
        let other = Lifetime { ttl_ms: 99, ..LIFETIME };
        let mut without = Record::new(b"odd", b"v", usage(1), None, None).unwrap();
        assert!(!without.set_lifetime(&other));
        assert_eq!(without.lifetime(), None);
        let mut with = Record::new(b"odd", b"v", usage(1), Some(&LIFETIME), None).unwrap();
        assert!(with.set_lifetime(&other));
        assert_eq!(with.lifetime(), Some(other));
        assert_eq!((with.key(), with.value()), (b"odd".as_slice(), b"v".as_slice()));
    }

    #[test]
    fn a_slot_is_changed_only_where_there_is_one() {
        for lifetime in [None, Some(&LIFETIME)] {
            let mut without = Record::new(b"odd", b"v", usage(1), lifetime, None).unwrap();
            assert!(!without.set_slot(3));
            let mut with = without.with_slot(Some(1)).unwrap();
            assert!(with.set_slot(3));
            let other = Lifetime { ttl_ms: 99, ..LIFETIME };
            assert_eq!(with.set_lifetime(&other), lifetime.is_some());
            assert_eq!((with.slot(), with.lifetime()), (Some(3), lifetime.map(|_| other)));
            assert_eq!((with.key(), with.value()), (b"odd".as_slice(), b"v".as_slice()));
            assert_eq!(with.with_slot(None).unwrap().slot(), None);
        }
    }

    #[test]
    fn a_record_expires_at_its_earlier_deadline_and_not_before() {
        let record = Record::new(b"k", b"v", usage(1), Some(&LIFETIME), None).unwrap();
        assert!(!record.is_expired(Millis(19)));
        assert!(record.is_expired(Millis(20)));
        assert!(!Record::new(b"k", b"v", usage(1), None, None).unwrap().is_expired(Millis::MAX));
    }

    #[test]
    fn a_read_puts_the_end_off_for_reads_and_not_for_commands() {
        let read = Lifetime { read_at: Millis(25), ..LIFETIME };
        let record = Record::new(b"k", b"v", usage(1), Some(&read), None).unwrap();
        assert!(record.is_expired(Millis(20)));
        assert!(!record.is_expired_for_reads(Millis(26)) && record.is_expired_for_reads(Millis(27)));
        let ttl = Lifetime { read_at: Millis(29), ..LIFETIME };
        let record = Record::new(b"k", b"v", usage(1), Some(&ttl), None).unwrap();
        assert!(record.is_expired_for_reads(Millis(30)), "a read does not put off the end of the time to live");
    }

    #[test]
    fn records_move_between_threads() {
        let record = Record::new(b"k", b"v", usage(1), None, None).unwrap();
        let back = std::thread::spawn(move || record).join().unwrap();
        assert_eq!(back.value(), b"v");
    }

    #[test]
    fn stamps_keep_quarters_of_a_second_and_saturate() {
        assert_eq!(Stamp::at(Millis(1_700_000_000_499)).to_ms(), 1_700_000_000_250);
        assert_eq!(Stamp::at(Millis(i64::MIN)).to_ms(), Stamp::EPOCH_MS);
        assert_eq!(Stamp::at(Millis::MAX).0, u32::MAX);
    }

    #[test]
    fn the_header_is_as_small_as_documented() {
        assert_eq!(HEADER_BYTES, 28);
        assert_eq!(LIFETIME_BYTES, 56);
        assert_eq!(size_of::<Option<Record>>(), size_of::<usize>());
    }
}
