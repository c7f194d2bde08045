//! Making a snapshot, page by page, and the state of a partition in one piece, for comparing replicas.

use crate::map::Map;
use crate::record::Record;
use crate::share::Share;
use crate::{MapId, Partition};

use super::items::{self, Head};
use super::{MapExport, page};

/// A snapshot that is being made.
pub(crate) struct Export {
    /// The maps that are still to be written, the next one last.
    maps: Vec<MapId>,
    /// Those among them that were destroyed.
    left: Vec<(MapId, Box<Map>)>,
    first: Vec<u8>,
    next_page: u64,
}

impl Partition {
    /// Begins a snapshot of the partition as it is now, after the commands that were applied; `false` if one is being made
    /// already. Takes time for locks and claims, and none for entries.
    pub fn begin_export(&mut self) -> bool {
        if self.export.is_some() {
            return false;
        }
        let mut first = Vec::new();
        items::append_partition(&mut first, self.settings.id.0, self.time, self.maps.len());
        for share in &mut self.maps {
            // Maps that are declared alone begin theirs when they are made, if that is before they are written.
            let Share::Held { id, map } = share else { continue };
            let before = map.bytes();
            map.begin_export(*id);
            self.bytes = self.bytes + map.bytes() - before;
        }
        let maps = self.maps.iter().rev().map(Share::id).collect();
        self.export = Some(Box::new(Export { maps, left: Vec::new(), first, next_page: 0 }));
        true
    }

    /// Whether a snapshot is being made.
    #[must_use]
    pub fn is_exporting(&self) -> bool {
        self.export.is_some()
    }

    /// Writes the next page of the snapshot that is being made over what `page` has: it ends with the item that takes it to
    /// `bytes_min`. `true` if there are more pages; the last one ends the snapshot. Without one, the page is empty.
    pub fn export_page(&mut self, page: &mut Vec<u8>, bytes_min: usize) -> bool {
        page.clear();
        let Some(mut export) = self.export.take() else { return false };
        page::begin(page);
        page.append(&mut export.first);
        while page.len() < bytes_min
            && let Some(id) = export.maps.last().copied()
        {
            if self.export_map(&mut export, id, page, bytes_min) {
                export.maps.pop();
            }
        }
        let is_last = export.maps.is_empty();
        if is_last {
            page.push(items::END);
        }
        page::finish(page, export.next_page, is_last);
        export.next_page += 1;
        if !is_last {
            self.export = Some(export);
        }
        !is_last
    }

    /// Gives up the snapshot that is being made, if one is, and what is kept for it.
    pub fn end_export(&mut self) {
        let Some(export) = self.export.take() else { return };
        for (_, map) in &export.left {
            self.bytes -= map.bytes();
        }
        for map in self.maps.iter_mut().filter_map(Share::map_mut) {
            let before = map.bytes();
            map.end_export();
            self.bytes = self.bytes + map.bytes() - before;
        }
    }

    /// Writes what fits of a map; whether that was all.
    fn export_map(&mut self, export: &mut Export, id: MapId, page: &mut Vec<u8>, bytes_min: usize) -> bool {
        let left = export.left.iter().position(|(left, _)| *left == id);
        let map = match left {
            Some(at) => export.left.get_mut(at).map(|(_, map)| &mut **map),
            None => match self.position(id).ok().and_then(|index| self.maps.get_mut(index)) {
                Some(Share::Declared { declaration, .. }) => {
                    items::append_head(page, &Head::of_declaration(id, declaration));
                    items::append_end_of_map(page, 0);
                    return true;
                }
                share => share.and_then(Share::map_mut),
            },
        };
        let Some(map) = map else { return true };
        let before = map.bytes();
        let done = map.export_items(page, bytes_min);
        self.bytes = self.bytes + map.bytes() - before;
        if let Some(at) = left.filter(|_| done) {
            let (_, map) = export.left.swap_remove(at);
            self.bytes -= map.bytes();
        }
        done
    }

    /// Keeps a map that was destroyed until it is written.
    pub(crate) fn leave_for_export(&mut self, id: MapId, mut map: Box<Map>) {
        if let Some(export) = &mut self.export
            && map.export.is_some()
        {
            map.derived = None;
            self.bytes += map.bytes();
            export.left.push((id, map));
        }
    }

    /// All that the log decides, and nothing else, in one piece and in the order of keys: the items of a snapshot without hits
    /// and accesses. Replicas that have applied the same commands have the same bytes. Takes memory for all entries: for
    /// tests, and for who looks for a defect.
    #[must_use]
    pub fn logged_state(&self) -> Vec<u8> {
        let mut out = Vec::new();
        items::append_partition(&mut out, self.settings.id.0, self.time, self.maps.len());
        for share in &self.maps {
            let (id, map) = match share {
                Share::Held { id, map } => (*id, map),
                Share::Declared { id, declaration, .. } => {
                    items::append_head(&mut out, &Head::of_declaration(*id, declaration));
                    items::append_end_of_map(&mut out, 0);
                    continue;
                }
            };
            items::append_head(&mut out, &Head::of(id, map));
            map.locks.all().for_each(|(key, lock)| items::append_lock(&mut out, key, lock));
            map.locks.unlocked().for_each(|unlocked| items::append_unlocked(&mut out, unlocked));
            map.claims.all().iter().for_each(|claim| items::append_claim(&mut out, claim));
            let mut records: Vec<&Record> = map.table.records().collect();
            records.sort_unstable_by(|a, b| a.key().cmp(b.key()));
            records.iter().for_each(|record| items::append_record(&mut out, record, false));
            map.log
                .journal
                .iter()
                .flat_map(|journal| journal.events())
                .for_each(|event| items::append_event(&mut out, event));
            items::append_end_of_map(&mut out, records.len() as u64);
        }
        out
    }
}

impl Export {
    /// Whether a map that was there when the snapshot began is still to be written as it is now.
    pub(crate) fn has_yet_to_write(&self, id: MapId) -> bool {
        // They stand in descending order.
        let is_to_come = self.maps.binary_search_by(|map| id.cmp(map)).is_ok();
        is_to_come && !self.left.iter().any(|(left, _)| *left == id)
    }
}

impl Map {
    /// Sets a barrier: what the map is now will be written.
    pub(crate) fn begin_export(&mut self, id: MapId) {
        let mut head = Vec::new();
        items::append_head(&mut head, &Head::of(id, self));
        self.export = Some(Box::new(MapExport::begin(self, head)));
    }

    /// Writes what fits of the map into a page; whether that was all.
    fn export_items(&mut self, page: &mut Vec<u8>, bytes_min: usize) -> bool {
        let Some(export) = &mut self.export else { return true };
        page.append(&mut export.head);
        while page.len() < bytes_min {
            if let Some((key, lock)) = export.locks.pop_front() {
                items::append_lock(page, &key, &lock);
            } else if let Some(unlocked) = export.unlocked.pop_front() {
                items::append_unlocked(page, &unlocked);
            } else if let Some(claim) = export.claims.pop_front() {
                items::append_claim(page, &claim);
            } else {
                break;
            }
        }
        if page.len() >= bytes_min {
            return false;
        }
        let written = self.walk_for_export(&mut |record| {
            items::append_record(page, record, true);
            page.len() >= bytes_min
        });
        if !written || page.len() >= bytes_min {
            return false;
        }
        if let Some(journal) = self.journal_for_export() {
            while page.len() < bytes_min
                && let Some(event) = journal.next_for_export()
            {
                items::append_event(page, &event);
            }
            if page.len() >= bytes_min {
                return false;
            }
        }
        items::append_end_of_map(page, self.export.as_ref().map_or(0, |export| export.records));
        self.end_export();
        true
    }

    fn end_export(&mut self) {
        self.export = None;
        if let Some(journal) = &mut self.log.journal {
            journal.end_export();
        }
    }
}
