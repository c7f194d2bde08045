//! The state machine of a group: what its log changes on one member. [`Partitions`](crate::Partitions) alone is in this crate;
//! whoever has a grid around its partitions, or other state to agree on, brings its own.
//!
//! A state machine is changed by the group alone, entry by entry, and must become the same on each member whatever is read from it.
//! It must not know consensus: who leads is told to it.

use std::future::Future;

use bytes::Bytes;
use filbert_store::{CodecError, ImportError, Millis};

use crate::{MemberId, OwnedReply, SubmitError};

/// An entry, when it is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryAt {
    /// When all of it happens.
    pub stamp: Millis,
    /// Whether this member leads, in the entry's term: what follows from it is this member's to propose.
    pub leads: bool,
    /// Whether this member tells listeners of what it changes: who has committed it does, whether it still leads or not.
    pub tells: bool,
}

/// One submission of an entry, when it is applied.
#[derive(Debug)]
pub struct Applying<A> {
    /// Commands that the leader put ahead, see [`StateMachine::touches_for`]; nobody awaits a reply to them.
    pub touches: Bytes,
    /// The commands.
    pub commands: Bytes,
    /// Who awaits the replies, where this member made the submission. To be told by the state machine, unless it wants the group to do so.
    pub awaiting: Option<A>,
    /// Whether [`StateMachine::apply`] has to return the replies: the group keeps them for an origin.
    pub wants_replies: bool,
}

/// Why a state machine cannot go on: its member leaves the group.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateMachineError {
    /// Bytes that every member has agreed on cannot be read here: they are of another version, or were damaged.
    #[error("cannot read an entry or a snapshot: {0}")]
    Unreadable(#[from] CodecError),
    /// A page of a snapshot cannot be taken over.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// They do not fit what is here.
    #[error("an entry or a snapshot does not fit: {0}")]
    Unfit(String),
}

/// What the log of a group changes on one member.
pub trait StateMachine: Send + Sync + 'static {
    /// Who awaits the replies to a submission, on the member that makes it. Dropped where the outcome is not known.
    type Awaiting: Send + 'static;
    /// A snapshot that is being made. Dropped, it is given up.
    type Export: Send + 'static;
    /// A snapshot that is being taken over, and has changed nothing yet.
    type Import: Send + 'static;

    /// Whether the group can apply these commands; asked before they are proposed.
    ///
    /// # Errors
    /// They cannot be read, or are of another group.
    fn check(&self, commands: &Bytes) -> Result<(), SubmitError>;

    /// What must be known here before entries of this member's are applied elsewhere: a number that grows, which each entry carries
    /// and [`StateMachine::reached`] waits for. 0 = nothing.
    fn requirement(&self) -> u64 {
        0
    }

    /// Completes when this member knows what an entry requires.
    fn reached(&self, _requirement: u64) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// Commands that go ahead of others, so that no read is forgotten, see [`filbert_store::Partition::touches_for`].
    fn touches_for(&self, _commands: &Bytes, _stamp: Millis) -> Bytes {
        Bytes::new()
    }

    /// Commands that the log needs so that a new leader does not forget reads, see [`filbert_store::Partition::touches_until`].
    fn touches_until(&self, _now: Millis, _until: Millis, _limit: usize) -> Bytes {
        Bytes::new()
    }

    /// Forgets all reads that the log has not been told of: the first entry of a term comes, and members that lead in it know nothing of
    /// them, see [`filbert_store::Partition::forget_reads`].
    fn forget_reads(&self) {}

    /// This member leads from now on, and is about to answer reads.
    fn leadership_gained(&self) {}

    /// This member leads no more.
    fn leadership_lost(&self, _leader: Option<MemberId>) {}

    /// Applies the submissions of an entry, all at one time, and tells those who await replies. Returns the replies to those that want
    /// them, by place, and an empty list for each other one.
    ///
    /// # Errors
    /// Nothing of the entry was applied.
    fn apply(
        &self,
        at: EntryAt,
        submissions: Vec<Applying<Self::Awaiting>>,
    ) -> Result<Vec<Vec<OwnedReply>>, StateMachineError>;

    /// Tells someone who waits what has become of a submission that was not applied, or was applied before; the latter only for
    /// submissions of an origin.
    fn answer(&self, awaiting: Self::Awaiting, answer: Result<Vec<OwnedReply>, SubmitError>);

    /// Begins a snapshot as of now, between two entries; `None` while another one is made.
    fn begin_export(&self) -> Option<Self::Export>;

    /// The next page, of about `bytes_min` bytes and not empty; `None` at the end.
    fn export_page(&self, export: &mut Self::Export, bytes_min: usize) -> Option<Bytes>;

    /// Begins to take a snapshot over.
    fn begin_import(&self) -> Self::Import;

    /// Takes the next page.
    ///
    /// # Errors
    /// It is not the next page, or cannot be read.
    fn import_page(&self, import: &mut Self::Import, page: Bytes) -> Result<(), StateMachineError>;

    /// Looks whether all pages have come.
    ///
    /// # Errors
    /// Pages are missing.
    fn check_import(&self, import: &Self::Import) -> Result<(), StateMachineError>;

    /// Puts a snapshot that was brought, and looked at, in the place of what is here; answers with the latest time in it. A member
    /// that leads takes none.
    fn install(&self, import: Self::Import) -> Millis;

    /// All that the log decided, as bytes that are the same on all members at the same entry. Takes memory for everything: for tests,
    /// and for whoever looks for a defect.
    fn logged_state(&self) -> Vec<u8>;
}
