//! The reason why this member should end. The owner of the member waits for it.

use tokio::sync::watch;

/// The reason why a member should end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// An operator asked the member to leave.
    LeaveRequested,
    /// The other members have removed this member while they could not reach it: its data is not
    /// the cluster's any more.
    TakenOut,
    /// The other members have continued without this member, in a later epoch, while a majority was
    /// missing: its data is not the cluster's any more.
    LeftBehind,
}

/// Sends the reason why this member should end, once.
pub(crate) type EndingSender = watch::Sender<Option<Ending>>;

/// Requests the end of this member. The first reason counts.
pub(crate) fn end(ending: &EndingSender, why: Ending) {
    ending.send_if_modified(|known| match known {
        None => {
            *known = Some(why);
            true
        }
        // An operator's request comes too late then.
        Some(Ending::LeaveRequested) if why != Ending::LeaveRequested => {
            *known = Some(why);
            true
        }
        Some(_) => false,
    });
}
