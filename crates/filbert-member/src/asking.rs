//! Commands of the registry, from any member: proposed here if this member leads it, else asked of the member that does.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use filbert_cluster::{BootRuntime, Group, MemberId, SubmitError, TransportError};
use filbert_links::{Address, Channel, Links};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::errors::MemberError;
use crate::greeting::Greeting;
use crate::registry::{Command, Registry, Reply, read_command, write_command};
use crate::service::{Request, read};

/// How long a leader of the registry is looked for: longer than a failover takes, and no longer than a thread may wait that others wait for.
const ASKING_MAX: Duration = Duration::from_secs(5);
/// How long other members are waited for until they know of a command: longer than they need, if they are there and not busy. One that knows
/// later leads nothing meanwhile, if it cannot be reached.
const KNOWN_MAX: Duration = Duration::from_secs(2);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(100);

/// The registry's group on this member.
pub(crate) type RegistryGroup = Group<BootRuntime, Registry>;

/// What the leader of the registry says to another member's command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Asked {
    /// It was applied, up to this version.
    Applied(Reply, u64),
    /// Another member leads, if one does; nothing was changed.
    NotLeader(Option<u64>),
    /// It may have been applied, or not.
    Unknown,
}

/// What has come of the tries so far.
struct Tried {
    /// What went wrong last.
    last: String,
    /// Whether the command was given to a member that may have it applied.
    may_be_made: bool,
}

/// The way to the registry.
pub(crate) struct Asking {
    group: RegistryGroup,
    links: Arc<Links>,
}

impl Asking {
    pub(crate) fn new(group: RegistryGroup, links: Arc<Links>) -> Self {
        Asking { group, links }
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        self.group.state_machine()
    }

    pub(crate) fn group(&self) -> &RegistryGroup {
        &self.group
    }

    /// Whether the member that answers at an address is this one, in no cluster yet.
    pub(crate) async fn is_new_at(&self, address: &str, uuid: Uuid) -> bool {
        let answer = self.links.call_address(Address::from(address), Channel::Join, Request::Greet.write()).await;
        let greeting = answer.ok().and_then(|bytes| read(&bytes).ok());
        matches!(greeting, Some(Greeting::Alone(alone)) if alone.candidate.uuid == uuid)
    }

    /// Has a command applied, and waits until it is applied here as well. All commands may be given twice.
    ///
    /// # Errors
    /// [`MemberError::Unreachable`] if no leader was found in five seconds, [`MemberError::Unknown`] if the command may be applied all the
    /// same.
    pub(crate) async fn ask(&self, command: Command) -> Result<Reply, MemberError> {
        self.ask_for(command).await.map(|(reply, _)| reply)
    }

    /// As [`Asking::ask`], and waits until it is known to the other members and those who follow the registry there, as far as they can be
    /// reached: whatever is asked of any of them later is answered with it.
    ///
    /// # Errors
    /// As [`Asking::ask`].
    pub(crate) async fn ask_everywhere(&self, command: Command) -> Result<Reply, MemberError> {
        let (reply, version) = self.ask_for(command).await?;
        let request = Request::Reached(version).write();
        let state = self.registry().state();
        let others = state.members().map(|(id, _)| id).filter(|id| *id != self.group.member());
        // All are on their way before one is waited for.
        let calls: Vec<_> =
            others.map(|other| (other, self.links.call(other, Channel::Requests, request.clone()))).collect();
        let deadline = Instant::now() + KNOWN_MAX;
        for (other, call) in calls {
            match timeout_at(deadline, call).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::debug!("member {other} has not said whether it knows of a change: {error}"),
                Err(_) => tracing::warn!("member {other} has not said within {KNOWN_MAX:?} that it knows of a change"),
            }
        }
        Ok(reply)
    }

    /// The reply, and the registry's version with it.
    async fn ask_for(&self, command: Command) -> Result<(Reply, u64), MemberError> {
        self.ask_in_time(async |tried| {
            let (reply, version) = self.ask_until_applied(&command, tried).await;
            self.registry().reached(version).await;
            (reply, version)
        })
        .await
    }

    /// Has this member taken out. It learns nothing of the registry any more, so that nothing is waited for here.
    ///
    /// # Errors
    /// As [`Asking::ask`].
    pub(crate) async fn ask_to_go(&self) -> Result<(), MemberError> {
        let command = Command::Remove { member: self.group.member().0 };
        self.ask_in_time(async |tried| _ = self.ask_until_applied(&command, tried).await).await
    }

    async fn ask_in_time<T>(&self, asking: impl AsyncFnOnce(&mut Tried) -> T) -> Result<T, MemberError> {
        let mut tried = Tried { last: "nobody leads it".to_owned(), may_be_made: false };
        let answer = tokio::time::timeout(ASKING_MAX, asking(&mut tried)).await;
        answer.map_err(|_| match tried.may_be_made {
            true => MemberError::Unknown,
            false => MemberError::Unreachable(tried.last),
        })
    }

    /// Asks again and again. The reply, and the registry's version with it.
    async fn ask_until_applied(&self, command: &Command, tried: &mut Tried) -> (Reply, u64) {
        let (mut told, mut others) = (None, 0..);
        loop {
            // Who leaves is not told any more who leads, and asks one after the other.
            let leader = told.take().or_else(|| self.group.leader()).or_else(|| self.other(others.next()?));
            let before = tried.may_be_made;
            // Also should the time be over while the answer is awaited.
            tried.may_be_made = true;
            let asked = match leader {
                Some(leader) if leader == self.group.member() => self.propose(write_command(command)).await,
                Some(leader) => match self.ask_member(leader, command).await {
                    Ok(asked) => asked,
                    Err(error) => {
                        tried.last = error.to_string();
                        match error {
                            TransportError::Unreachable(_)
                            | TransportError::Overloaded(_)
                            | TransportError::TooLong { .. } => Asked::NotLeader(None),
                            TransportError::Broken(_) | TransportError::Refused { .. } => Asked::Unknown,
                        }
                    }
                },
                None => Asked::NotLeader(None),
            };
            match asked {
                Asked::Applied(reply, version) => return (reply, version),
                // A command that is given twice does what it does once.
                Asked::NotLeader(leader) => {
                    tried.may_be_made = before;
                    told = leader.map(MemberId);
                    tokio::time::sleep(PAUSE).await;
                }
                Asked::Unknown => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// One of the other members, by turns.
    fn other(&self, turn: usize) -> Option<MemberId> {
        let state = self.registry().state();
        let others: Vec<MemberId> = state.members().map(|(id, _)| id).filter(|id| *id != self.group.member()).collect();
        others.get(turn.checked_rem(others.len())?).copied()
    }

    async fn ask_member(&self, leader: MemberId, command: &Command) -> Result<Asked, TransportError> {
        let request = Request::Registry(write_command(command).to_vec()).write();
        let answer = self.links.call(leader, Channel::Requests, request).await?;
        read(&answer).map_err(|refusal| TransportError::Refused { member: leader, why: refusal.0 })
    }

    /// Has a command applied by this member, if it leads.
    pub(crate) async fn propose(&self, command: Bytes) -> Asked {
        if let Err(error) = read_command(&command) {
            return Asked::Applied(Reply::Refused(error.to_string()), 0);
        }
        let (sender, answer) = oneshot::channel();
        let not_leader = |error: SubmitError| match error {
            SubmitError::NotLeader { leader, .. } => Asked::NotLeader(leader.map(|leader| leader.0)),
            SubmitError::Overloaded { .. } => Asked::NotLeader(None),
            SubmitError::Unknown { .. } => Asked::Unknown,
            error => Asked::Applied(Reply::Refused(error.to_string()), 0),
        };
        if let Err((error, _)) = self.group.propose(command, sender) {
            return not_leader(error);
        }
        match answer.await {
            Ok(Ok((reply, version))) => Asked::Applied(reply, version),
            Ok(Err(error)) => not_leader(error),
            Err(_) => Asked::Unknown,
        }
    }
}
