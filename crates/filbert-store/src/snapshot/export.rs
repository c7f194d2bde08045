//! Creates snapshots, page by page. Also the whole state of a partition as bytes, for comparing
//! replicas.

use super::{items, page};
use crate::map::{Head, Map};
use crate::partition::Export;
use crate::record::Record;
use crate::share::Share;
use crate::{MapId, Partition};

impl Partition {
    /// Begins a snapshot of the current state, after the commands applied so far. Returns `false`
    /// if another one is in progress. Takes time for locks and claims, but not for entries.
    pub fn begin_export(&mut self) -> bool {
        if self.export.is_some() {
            return false;
        }
        let mut first = Vec::new();
        items::append_partition(&mut first, self.settings.id.0, self.time, self.maps.len());
        for share in &mut self.maps {
            // Maps that are only declared begin their export when they are created, if they are not
            // written before.
            let Share::Held { id, map } = share else { continue };
            let before = map.bytes();
            map.begin_export(*id);
            self.bytes = self.bytes + map.bytes() - before;
        }
        let maps = self.maps.iter().rev().map(Share::id).collect();
        self.export = Some(Box::new(Export { maps, left: Vec::new(), first, next_page: 0 }));
        true
    }

    /// Whether a snapshot is in progress.
    #[must_use]
    pub fn is_exporting(&self) -> bool {
        self.export.is_some()
    }

    /// Replaces the content of `page` by the next page of the snapshot in progress. A page ends
    /// with the item that reaches `bytes_min`. Returns whether there are more pages; the last page
    /// ends the snapshot. Without a snapshot in progress, the page is empty.
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

    /// Cancels the snapshot in progress, if there is one, and frees the state that is kept for it.
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

    /// Writes items of a map until the page is full. Returns whether the map is complete.
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

    /// Everything that the log determines, and nothing else, as one piece of bytes sorted by key:
    /// the items of a snapshot without hits and times of access. Replicas that have applied the
    /// same commands return the same bytes. Takes memory for all entries: for tests and for the
    /// diagnosis of defects.
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

impl Map {
    /// Writes items of the map into a page until it is full. Returns whether the map is complete.
    fn export_items(&mut self, page: &mut Vec<u8>, bytes_min: usize) -> bool {
        let Some(export) = &mut self.export else { return true };
        if let Some(head) = export.head.take() {
            items::append_head(page, &head);
        }
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
