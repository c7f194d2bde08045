//! The events that tests check.

use std::sync::atomic::{AtomicUsize, Ordering};

use filbert_data::Value;
use parking_lot::Mutex;

/// A row that was taken.
pub(crate) type Row = Vec<Value<'static>>;

/// Counts of events, and the rows that were taken.
#[derive(Default)]
pub(crate) struct Seen {
    cursors_opened: AtomicUsize,
    cursors_dropped: AtomicUsize,
    pages: AtomicUsize,
    written: Mutex<Vec<Row>>,
}

impl Seen {
    /// The number of cursors that were not dropped.
    pub(crate) fn cursors(&self) -> usize {
        // In this order, so that no cursor is dropped before it is opened.
        let dropped = self.cursors_dropped();
        self.cursors_opened.load(Ordering::SeqCst) - dropped
    }

    pub(crate) fn cursors_dropped(&self) -> usize {
        self.cursors_dropped.load(Ordering::SeqCst)
    }

    pub(crate) fn pages(&self) -> usize {
        self.pages.load(Ordering::SeqCst)
    }

    pub(crate) fn open_cursor(&self) {
        self.cursors_opened.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn drop_cursor(&self) {
        self.cursors_dropped.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn make_page(&self) {
        self.pages.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn write(&self, rows: impl IntoIterator<Item = Row>) {
        self.written.lock().extend(rows);
    }

    pub(crate) fn take_written(&self) -> Vec<Row> {
        std::mem::take(&mut *self.written.lock())
    }
}
