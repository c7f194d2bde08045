//! An answer that a thread waits for: what the embedded API and the row writer use.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use filbert_store::Reply;
use parking_lot::{Condvar, Mutex};

use crate::GridError;
use crate::waiters::ParkedReply;

type Answer = Result<Reply<'static>, GridError>;

/// An answer that comes later. Dropping it does not take the change back.
pub struct Pending(Arc<Slot>);

#[derive(Default)]
struct Slot {
    answer: Mutex<Option<Answer>>,
    answered: Condvar,
}

/// Answers when it is dropped, so that nobody waits for what will never come.
struct Teller(Arc<Slot>);

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("answered", &self.0.answer.lock().is_some()).finish()
    }
}

impl Pending {
    /// What is to be called with the answer, and what waits for it.
    pub fn new() -> (ParkedReply, Pending) {
        let slot = Arc::new(Slot::default());
        let teller = Teller(slot.clone());
        (Box::new(move |answer| teller.tell(answer.map(Reply::into_owned))), Pending(slot))
    }

    /// Waits for the answer. Not for a thread that applies commands, nor for one that others wait for.
    ///
    /// # Errors
    /// What was awaited could not be done.
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
    /// As [`Pending::wait`], until a moment at most; `None` if there is no answer by then.
    pub(crate) fn wait_until(self, moment: Instant) -> Option<Answer> {
        let mut answer = self.0.answer.lock();
        while answer.is_none() && !self.0.answered.wait_until(&mut answer, moment).timed_out() {}
        answer.take()
    }
}

impl Teller {
    fn tell(&self, answer: Answer) {
        self.0.answer.lock().get_or_insert(answer);
        self.0.answered.notify_one();
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        let lost = || Err(GridError::Internal("a change was left without an answer".to_owned()));
        self.0.answer.lock().get_or_insert_with(lost);
        self.0.answered.notify_one();
    }
}
