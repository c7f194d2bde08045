//! The state machine of a group: the state that its log changes on one member. This crate contains
//! only [`Partitions`](crate::Partitions). A caller with a grid around its partitions, or with
//! other replicated state, provides its own.
//!
//! Only the group changes a state machine, entry by entry. It must reach the same state on each
//! member, whatever is read from it. It must not know consensus: the group notifies it of
//! leadership.

use std::future::Future;

use bytes::Bytes;
use filbert_store::{CodecError, ImportError, Millis};

use crate::{MemberId, OwnedReply, SubmitError};

/// An entry, when it is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryAt {
    /// The time at which all commands of the entry happen.
    pub stamp: Millis,
    /// Whether this member leads in the entry's term: then it has to propose commands that follow
    /// from the entry.
    pub leads: bool,
    /// Whether this member reports the changes to listeners. The member that has committed the
    /// entry does, whether it still leads or not.
    pub reports_events: bool,
}

/// One submission of an entry, when it is applied.
#[derive(Debug)]
pub struct Applying<A> {
    /// The commands that the leader put ahead, see [`StateMachine::touches_for`]. Their replies are
    /// not needed.
    pub touches: Bytes,
    /// The commands.
    pub commands: Bytes,
    /// The waiter for the replies, if this member made the submission. The state machine answers
    /// it, unless the submission is answered by the group.
    pub awaiting: Option<A>,
    /// Whether [`StateMachine::apply`] must return the replies: the group keeps them for an origin.
    pub wants_replies: bool,
}

/// Why a state machine cannot continue: its member leaves the group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateMachineError {
    /// Bytes that all members have agreed on cannot be read here: they have another version, or
    /// were damaged.
    #[error("cannot read an entry or a snapshot: {0}")]
    Unreadable(#[from] CodecError),
    /// A page of a snapshot cannot be taken over.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The bytes do not fit the state of this member.
    #[error("an entry or a snapshot does not fit: {0}")]
    Unfit(String),
}

/// The state that the log of a group changes on one member.
pub trait StateMachine: Send + Sync + 'static {
    /// The waiter for the replies to a submission, on the member that makes the submission. Dropped
    /// if the outcome is unknown.
    type Awaiting: Send + 'static;
    /// A snapshot that is being exported. Dropping it cancels the export.
    type Export: Send + 'static;
    /// A snapshot that is being imported, and has changed nothing yet.
    type Import: Send + 'static;

    /// Checks whether the group can apply these commands. Called before they are proposed.
    ///
    /// # Errors
    /// The commands cannot be read, or belong to another group.
    fn check(&self, commands: &Bytes) -> Result<(), SubmitError>;

    /// The requirement of entries that this member proposes: the knowledge that another member must
    /// have before it applies them. A number that grows. Each entry carries it, and
    /// [`StateMachine::reached`] waits for it. 0 = no requirement.
    fn requirement(&self) -> u64 {
        0
    }

    /// Completes once this member meets the requirement of an entry.
    fn reached(&self, _requirement: u64) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Returns the commands to put ahead of others, so that no read is forgotten, see
    /// [`filbert_store::Partition::touches_for`].
    fn touches_for(&self, _commands: &Bytes, _stamp: Millis) -> Bytes {
        Bytes::new()
    }

    /// Returns the commands that the log needs so that a new leader does not forget reads, see
    /// [`filbert_store::Partition::touches_until`].
    fn touches_until(&self, _now: Millis, _until: Millis, _limit: usize) -> Bytes {
        Bytes::new()
    }

    /// Forgets all reads that are not recorded in the log. Called at the first entry of a term: the
    /// leader of that term knows nothing of these reads, see
    /// [`filbert_store::Partition::forget_reads`].
    fn forget_reads(&self) {}

    /// Called when the size of the group's log on this member changes by a number of bytes,
    /// positive or negative.
    fn log_changed(&self, _bytes: isize) {}

    /// Called when this member becomes the leader, before it serves reads.
    fn leadership_gained(&self) {}

    /// Called when this member has the lease of the group for the first time in its term, and
    /// whenever the lease returns after its end.
    fn lease_gained(&self) {}

    /// Called when this member is not the leader any more.
    fn leadership_lost(&self, _leader: Option<MemberId>) {}

    /// Applies the submissions of an entry, all at the same time, and answers their waiters.
    /// Returns the replies to each submission that wants them, by position, and an empty list for
    /// each other one.
    ///
    /// # Errors
    /// The entry cannot be applied: the group stops on this member.
    fn apply(
        &self,
        at: EntryAt,
        submissions: Vec<Applying<Self::Awaiting>>,
    ) -> Result<Vec<Vec<OwnedReply>>, StateMachineError>;

    /// Answers the waiter of a submission that was not applied. Also answers with the replies of a
    /// submission of an origin that was applied before.
    fn answer(&self, awaiting: Self::Awaiting, answer: Result<Vec<OwnedReply>, SubmitError>);

    /// Begins a snapshot of the current state, between two entries. `None` while another export
    /// runs.
    fn begin_export(&self) -> Option<Self::Export>;

    /// Returns the next page, of about `bytes_min` bytes and not empty. `None` at the end.
    fn export_page(&self, export: &mut Self::Export, bytes_min: usize) -> Option<Bytes>;

    /// Begins the import of a snapshot. `None` while this member has no room for it: the sender
    /// tries again.
    fn begin_import(&self) -> Option<Self::Import>;

    /// Imports the next page.
    ///
    /// # Errors
    /// The page is not the next one, or cannot be read.
    fn import_page(&self, import: &mut Self::Import, page: Bytes) -> Result<(), StateMachineError>;

    /// Checks whether all pages have arrived.
    ///
    /// # Errors
    /// Pages are missing.
    fn check_import(&self, import: &Self::Import) -> Result<(), StateMachineError>;

    /// Replaces the state with a complete and checked snapshot. Returns the latest time in it.
    /// Never called on a leader.
    fn install(&self, import: Self::Import) -> Millis;

    /// Forgets all state, as at the start of the member. Never called on a leader.
    fn reset(&self);

    /// The logged state as bytes, which are the same on all members at the same entry. Needs memory
    /// for the whole state. For tests and for debugging.
    fn logged_state(&self) -> Vec<u8>;
}
