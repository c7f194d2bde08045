//! An answer for which a thread waits. Used by the embedded API and the row writer.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use filbert_store::Reply;
use parking_lot::{Condvar, Mutex};

use crate::errors::GridError;
use crate::waiters::ParkedReply;

type Answer = Result<Reply<'static>, GridError>;

/// A pending answer. Dropping it does not cancel the change.
pub struct Pending(Arc<Slot>);

#[derive(Default)]
struct Slot {
    answer: Mutex<Option<Answer>>,
    answered: Condvar,
}

/// The sender of an answer. It sends an error when it is dropped, so that no thread waits for ever.
struct SlotSender(Arc<Slot>);

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("answered", &self.0.answer.lock().is_some()).finish()
    }
}

impl Pending {
    /// Creates a callback for the answer, and the pending answer that waits for it.
    pub fn new() -> (ParkedReply, Pending) {
        let slot = Arc::new(Slot::default());
        let sender = SlotSender(slot.clone());
        (Box::new(move |answer| sender.send(answer.map(Reply::into_owned))), Pending(slot))
    }

    /// Blocks until the answer arrives. Must not be called on a thread that applies commands, nor
    /// on one for which other threads wait.
    ///
    /// # Errors
    /// The change has failed.
    pub fn wait(self) -> Answer {
        let mut answer = self.0.answer.lock();
        loop {
            if let Some(answer) = answer.take() {
                return answer;
            }
            self.0.answered.wait(&mut answer);
        }
    }
}

impl Pending {
    /// As [`Pending::wait`], with a deadline; `None` if there is no answer by then.
    pub(crate) fn wait_until(self, deadline: Instant) -> Option<Answer> {
        let mut answer = self.0.answer.lock();
        while answer.is_none() && !self.0.answered.wait_until(&mut answer, deadline).timed_out() {}
        answer.take()
    }
}

impl SlotSender {
    fn send(&self, answer: Answer) {
        self.0.answer.lock().get_or_insert(answer);
        self.0.answered.notify_one();
    }
}

impl Drop for SlotSender {
    fn drop(&mut self) {
        let lost = || Err(GridError::Internal("a change was left without an answer".to_owned()));
        self.0.answer.lock().get_or_insert_with(lost);
        self.0.answered.notify_one();
    }
}
