//! The bytes that a connection holds, which the owner of the links counts.

use std::sync::Arc;

use crate::Service;

/// A number of bytes that the service knows of. Dropping it takes them back.
pub(crate) struct Held {
    service: Arc<dyn Service>,
    bytes: usize,
}

impl Held {
    pub(crate) fn new(service: &Arc<dyn Service>) -> Held {
        Held { service: Arc::clone(service), bytes: 0 }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn set(&mut self, bytes: usize) {
        if bytes != self.bytes {
            // Sizes of memory are at most `isize::MAX`.
            self.service.held_changed(bytes.cast_signed().wrapping_sub(self.bytes.cast_signed()));
            self.bytes = bytes;
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}
