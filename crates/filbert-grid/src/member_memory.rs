//! The account of a member's memory. One limit applies to the data of maps, the logs of groups, the
//! buffers of clients, and the memory of statements together.
//!
//! Maps and logs come first: they may take all of it. Buffers and statements share the rest. So
//! that a full member still answers, each of both may always take its guaranteed part, even beyond
//! the limit. A write is refused if the sum would then exceed the limit plus both guaranteed parts.
//! This lasts until statements and buffers have released the memory that they took before maps
//! grew.
//!
//! ```text
//! |<-------------------- limit --------------------->|<------- guaranteed ------->|
//! | maps | logs | buffers | statements |     free     |                            |  most of the time
//! |                 maps                      | logs | buffers |    statements    |  a full member
//! ```
//!
//! Logs have their own settings, which depend on the limit: [`MemberMemory::logs_bytes_max`]. A
//! member applies committed entries even without room for them.
//!
//! Connections to other members hold requests and answers in flight, and have their own limits.
//! Their bytes count in the account, but are never refused for lack of room.
//!
//! During the import of a snapshot, the member holds the group's entries twice. Imports run
//! concurrently while there is room, and one import always runs. Imports do not cause the refusal
//! of writes.
//!
//! The account is compared with the allocator: memory of the process that is in no account, such as
//! the memory of a computation until its statement is measured, leaves buffers and statements less
//! room. This applies to a process that serves one member alone, with an allocator that counts.
//!
//! Cached plans count as well. They have no guaranteed part: their caches shrink with the room of
//! statements.
//!
//! This module must not know its callers, nor the handling of a request without room.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering};

use crate::allocation;

/// The part of the limit that is guaranteed to buffers, and its smallest and largest size.
const BUFFERS_PART: usize = 16;
const BUFFERS_BYTES: RangeInclusive<usize> = 32 << 20..=512 << 20;
/// The part of the limit that is guaranteed to statements, and its smallest and largest size.
const STATEMENTS_PART: usize = 8;
const STATEMENTS_BYTES: RangeInclusive<usize> = 64 << 20..=1 << 30;
/// The part of the limit that the logs of groups take before they are purged.
const LOGS_PART: usize = 8;
/// The part of the limit that one connection between members may hold in each direction, and its
/// smallest size.
const LINK_PART: usize = 32;
const LINK_BYTES_MIN: usize = 4 << 20;

/// The memory of the process, in bytes, that needs no account: the member's own structures, and
/// buffers that are too small to count.
const OWN_BYTES: usize = 16 << 20;

/// The memory that a member uses, in bytes, and its limit.
#[derive(Debug)]
pub struct MemberMemory {
    /// `None` if there is no limit.
    bytes_max: Option<usize>,
    /// The bytes that are guaranteed to statements.
    of_statements: usize,
    /// The bytes that are guaranteed to buffers.
    of_buffers: usize,
    /// Maps, parked changes, and commands in flight.
    pub(crate) maps: AtomicUsize,
    /// Negative at times, as `statements`.
    logs: AtomicIsize,
    /// The connections between members. Negative at times, as `statements`.
    links: AtomicIsize,
    buffers: AtomicUsize,
    /// Temporarily negative if one thread records freed bytes before another thread records their
    /// allocation.
    statements: AtomicIsize,
    plans: AtomicIsize,
    /// At least one byte for each import.
    imports: AtomicUsize,
}

/// The room of an import. Given back when dropped.
#[derive(Debug)]
pub(crate) struct ImportRoom {
    memory: Arc<MemberMemory>,
    bytes: usize,
}

impl Drop for ImportRoom {
    fn drop(&mut self) {
        self.memory.imports.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}

impl MemberMemory {
    /// The account of a member with a limit in bytes.
    pub fn new(bytes_max: Option<usize>) -> MemberMemory {
        let part = |part: usize, range: RangeInclusive<usize>| {
            bytes_max.map_or(usize::MAX, |max| (max / part).clamp(*range.start(), *range.end()))
        };
        let (of_statements, of_buffers) = (part(STATEMENTS_PART, STATEMENTS_BYTES), part(BUFFERS_PART, BUFFERS_BYTES));
        let (maps, logs, links, buffers, statements, plans, imports) = Default::default();
        MemberMemory { bytes_max, of_statements, of_buffers, maps, logs, links, buffers, statements, plans, imports }
    }

    /// The limit in bytes.
    pub fn bytes_max(&self) -> Option<usize> {
        self.bytes_max
    }

    /// The bytes of maps, logs, connections, buffers, statements and cached plans together.
    pub fn used(&self) -> usize {
        let others = [self.buffers(), self.statements(), self.plans()];
        others.into_iter().fold(self.data(), usize::saturating_add)
    }

    /// The bytes that the process has allocated beyond this account and [`OWN_BYTES`].
    fn unaccounted(&self) -> usize {
        let accounted = self.used().saturating_add(self.imports()).saturating_add(OWN_BYTES);
        allocation::total_of_member().saturating_sub(accounted)
    }

    /// The bytes of maps, of the logs of their groups, and of the connections between members.
    fn data(&self) -> usize {
        self.maps().saturating_add(self.logs()).saturating_add(self.links())
    }

    /// The bytes of maps, of parked changes, and of commands in flight.
    pub fn maps(&self) -> usize {
        self.maps.load(Ordering::Relaxed)
    }

    /// The bytes of the logs of groups.
    pub fn logs(&self) -> usize {
        self.logs.load(Ordering::Relaxed).try_into().unwrap_or(0)
    }

    /// The bytes of requests and answers that connections between members hold.
    pub fn links(&self) -> usize {
        self.links.load(Ordering::Relaxed).try_into().unwrap_or(0)
    }

    /// The limit in bytes of a connection between members, at most `wanted`.
    pub fn link_bytes_max(&self, wanted: usize) -> usize {
        self.bytes_max.map_or(wanted, |max| wanted.min((max / LINK_PART).max(LINK_BYTES_MIN)))
    }

    /// The bytes of all logs together from which they are purged. `usize::MAX` without a limit.
    pub fn logs_bytes_max(&self) -> usize {
        self.bytes_max.map_or(usize::MAX, |max| max / LOGS_PART)
    }

    /// The bytes of imports.
    pub fn imports(&self) -> usize {
        self.imports.load(Ordering::Relaxed)
    }

    /// The bytes of buffers.
    pub fn buffers(&self) -> usize {
        self.buffers.load(Ordering::Relaxed)
    }

    /// The bytes that statements hold.
    pub fn statements(&self) -> usize {
        self.statements.load(Ordering::Relaxed).try_into().unwrap_or(0)
    }

    /// The bytes that cached plans hold.
    pub fn plans(&self) -> usize {
        self.plans.load(Ordering::Relaxed).try_into().unwrap_or(0)
    }

    /// Notes a change of the bytes of logs.
    pub fn note_logs(&self, change: isize) {
        self.logs.fetch_add(change, Ordering::Relaxed);
    }

    /// Notes a change of the bytes that connections between members hold.
    pub fn note_links(&self, change: isize) {
        self.links.fetch_add(change, Ordering::Relaxed);
    }

    /// Notes a change of the bytes that statements hold.
    pub fn note_statements(&self, change: isize) {
        self.statements.fetch_add(change, Ordering::Relaxed);
    }

    /// Notes a change of the bytes that cached plans hold.
    pub fn note_plans(&self, change: isize) {
        self.plans.fetch_add(change, Ordering::Relaxed);
    }

    /// The bytes that all statements together may hold now, including the bytes that they already
    /// hold.
    pub fn room_of_statements(&self) -> usize {
        self.room_beside(self.buffers().saturating_add(self.plans()), self.of_statements)
    }

    /// The bytes that all buffers together may take now, including the bytes that they have already
    /// taken.
    pub fn room_of_buffers(&self) -> usize {
        self.room_beside(self.statements().saturating_add(self.plans()), self.of_buffers)
    }

    /// The maximum excess of maps, logs, statements and buffers together over the limit, in bytes.
    pub fn guaranteed(&self) -> usize {
        self.of_statements.saturating_add(self.of_buffers)
    }

    /// The limit minus maps, logs, connections, imports, memory that is in no account, and
    /// `others`, or the guaranteed part if that is more.
    fn room_beside(&self, others: usize, guaranteed: usize) -> usize {
        let Some(max) = self.bytes_max else { return usize::MAX };
        let counted = self.data().saturating_add(self.imports()).saturating_add(others);
        max.saturating_sub(counted.saturating_add(self.unaccounted())).max(guaranteed)
    }

    /// The bytes in use and their limit, if maps have no room for `bytes` more bytes; otherwise
    /// `None`.
    #[inline]
    pub(crate) fn lacks_room_for_maps(&self, bytes: usize) -> Option<(usize, usize)> {
        let max = self.bytes_max?;
        let exceeds = |used: usize, max: usize| (used.saturating_add(bytes) > max).then_some((used, max));
        let all = || self.used().saturating_add(self.unaccounted());
        exceeds(self.data(), max).or_else(|| exceeds(all(), max.saturating_add(self.guaranteed())))
    }

    /// Takes room for an import of `bytes` bytes. `None` if there is no room beside other imports.
    pub(crate) fn take_for_import(self: &Arc<Self>, bytes: usize) -> Option<ImportRoom> {
        let bytes = bytes.max(1);
        let (used, max) = (self.used(), self.bytes_max.unwrap_or(usize::MAX));
        let fits = |imports: usize| {
            let sum = imports.saturating_add(bytes);
            (imports == 0 || used.saturating_add(sum) <= max).then_some(sum)
        };
        let taken = self.imports.fetch_update(Ordering::AcqRel, Ordering::Relaxed, fits);
        taken.is_ok().then(|| ImportRoom { memory: self.clone(), bytes })
    }

    /// Takes room for a buffer. Returns whether there was room.
    pub(crate) fn take_for_buffers(&self, bytes: usize) -> bool {
        let room = self.room_of_buffers();
        let fits = |used: usize| used.checked_add(bytes).filter(|sum| *sum <= room);
        self.buffers.fetch_update(Ordering::AcqRel, Ordering::Relaxed, fits).is_ok()
    }

    /// Counts a buffer that is there already.
    pub(crate) fn count_for_buffers(&self, bytes: usize) {
        self.buffers.fetch_add(bytes, Ordering::AcqRel);
    }

    /// Gives back the room of buffers.
    pub(crate) fn give_back_buffers(&self, bytes: usize) {
        self.buffers.fetch_sub(bytes, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    #[test]
    fn buffers_and_statements_share_what_maps_leave() {
        let memory = MemberMemory::new(Some(512 * MIB));
        memory.maps.store(100 * MIB, Ordering::Relaxed);
        assert_eq!(memory.room_of_statements(), 412 * MIB);
        assert!(memory.take_for_buffers(150 * MIB));
        assert_eq!((memory.room_of_statements(), memory.room_of_buffers()), (262 * MIB, 412 * MIB));
        memory.note_statements(200 << 20);
        assert_eq!(memory.room_of_buffers(), 212 * MIB);
        assert!(!memory.take_for_buffers(63 * MIB));
        assert!(memory.take_for_buffers(62 * MIB));
        memory.note_statements(-200 << 20);
        memory.give_back_buffers(212 * MIB);
        assert_eq!(memory.used(), 100 * MIB);
    }

    #[test]
    fn a_full_member_has_the_guaranteed_parts() {
        let memory = MemberMemory::new(Some(512 * MIB));
        memory.maps.store(600 * MIB, Ordering::Relaxed);
        assert_eq!((memory.room_of_statements(), memory.room_of_buffers()), (64 * MIB, 32 * MIB));
        let large = MemberMemory::new(Some(16 << 30));
        large.maps.store(16 << 30, Ordering::Relaxed);
        assert_eq!((large.room_of_statements(), large.room_of_buffers()), (1 << 30, 512 * MIB));
    }

    #[test]
    fn maps_may_take_the_limit_and_the_sum_no_more_than_the_guaranteed_parts_beyond_it() {
        let memory = MemberMemory::new(Some(512 * MIB));
        memory.note_statements(300 << 20);
        assert!(memory.take_for_buffers(150 * MIB));
        memory.maps.store(100 * MIB, Ordering::Relaxed);
        assert_eq!(memory.lacks_room_for_maps(58 * MIB), None);
        assert_eq!(memory.lacks_room_for_maps(59 * MIB), Some((550 * MIB, 608 * MIB)));
        memory.note_statements(-300 << 20);
        memory.give_back_buffers(150 * MIB);
        assert_eq!(memory.lacks_room_for_maps(412 * MIB), None);
        assert_eq!(memory.lacks_room_for_maps(413 * MIB), Some((100 * MIB, 512 * MIB)));
    }

    #[test]
    fn logs_take_room_as_maps_do() {
        let memory = MemberMemory::new(Some(512 * MIB));
        assert_eq!(memory.logs_bytes_max(), 64 * MIB);
        memory.note_logs(64 << 20);
        assert_eq!((memory.room_of_statements(), memory.room_of_buffers()), (448 * MIB, 448 * MIB));
        memory.maps.store(440 * MIB, Ordering::Relaxed);
        assert_eq!(memory.lacks_room_for_maps(8 * MIB), None);
        assert_eq!(memory.lacks_room_for_maps(9 * MIB), Some((504 * MIB, 512 * MIB)));
        memory.note_logs(-(64 << 20));
        assert_eq!(memory.used(), 440 * MIB);
    }

    #[test]
    fn connections_between_members_take_room_and_are_small_on_small_members() {
        let memory = MemberMemory::new(Some(512 * MIB));
        memory.note_links(100 << 20);
        assert_eq!((memory.room_of_statements(), memory.used()), (412 * MIB, 100 * MIB));
        assert_eq!(memory.lacks_room_for_maps(413 * MIB), Some((100 * MIB, 512 * MIB)));
        memory.note_links(-(100 << 20));
        assert_eq!((memory.used(), memory.link_bytes_max(32 * MIB)), (0, 16 * MIB));
        assert_eq!(memory.link_bytes_max(1_000), 1_000);
        assert_eq!(MemberMemory::new(Some(64 * MIB)).link_bytes_max(32 * MIB), 4 * MIB);
        assert_eq!(MemberMemory::new(None).link_bytes_max(32 * MIB), 32 * MIB);
    }

    #[test]
    fn imports_run_together_while_there_is_room_and_one_in_any_case() {
        let memory = Arc::new(MemberMemory::new(Some(512 * MIB)));
        memory.maps.store(400 * MIB, Ordering::Relaxed);
        let first = memory.take_for_import(60 * MIB).unwrap();
        let second = memory.take_for_import(50 * MIB).unwrap();
        assert!(memory.take_for_import(3 * MIB).is_none());
        assert_eq!((memory.imports(), memory.room_of_statements()), (110 * MIB, 64 * MIB));
        assert_eq!(memory.lacks_room_for_maps(112 * MIB), None);
        drop((first, second));
        memory.maps.store(600 * MIB, Ordering::Relaxed);
        let first = memory.take_for_import(0).unwrap();
        assert!(memory.take_for_import(0).is_none());
        drop(first);
        assert!(memory.take_for_import(200 * MIB).is_some());
        assert_eq!(memory.imports(), 0);
    }

    #[test]
    fn plans_take_nothing_from_the_guaranteed_part_of_statements() {
        let memory = MemberMemory::new(Some(512 * MIB));
        memory.note_plans(100 << 20);
        assert_eq!((memory.room_of_statements(), memory.room_of_buffers()), (412 * MIB, 412 * MIB));
        memory.maps.store(500 * MIB, Ordering::Relaxed);
        assert_eq!((memory.room_of_statements(), memory.room_of_buffers()), (64 * MIB, 32 * MIB));
        memory.note_statements(-1);
        assert_eq!((memory.statements(), memory.used()), (0, 600 * MIB));
    }

    #[test]
    fn a_member_without_a_limit_has_all_room() {
        let memory = MemberMemory::new(None);
        memory.maps.store(usize::MAX / 2, Ordering::Relaxed);
        assert!(memory.take_for_buffers(1 << 40));
        assert_eq!(memory.room_of_statements(), usize::MAX);
        assert_eq!(memory.lacks_room_for_maps(usize::MAX), None);
    }
}
