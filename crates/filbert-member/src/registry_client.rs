//! Commands of the registry, from any member: proposed here if this member leads the registry, else
//! sent to the leader.

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
use crate::messages::{Greeting, Request, read};
use crate::registry::{Command, Registry, Reply, read_command, write_command};

/// The maximum time for finding a leader of the registry: longer than a failover takes, and no
/// longer than a thread may block other callers.
const EXECUTION_MAX: Duration = Duration::from_secs(5);
/// The maximum wait until other members know of a command: longer than a reachable member needs,
/// unless it is busy. A member that cannot be reached, and learns of the command later, leads no
/// group meanwhile.
const KNOWN_MAX: Duration = Duration::from_secs(2);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// The registry's group on this member.
pub(crate) type RegistryGroup = Group<BootRuntime, Registry>;

/// The answer of the registry's leader to another member's command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum CommandOutcome {
    /// The command was applied. With the registry's version after it.
    Applied(Reply, u64),
    /// Another member leads, if the id is known. Nothing was changed.
    NotLeader(Option<u64>),
    /// The command may have been applied, or not.
    Unknown,
}

/// The result of the attempts so far.
struct AttemptStatus {
    /// The last error.
    last_error: String,
    /// Whether the command was sent to a member that may still apply it.
    may_be_applied: bool,
}

/// Sends commands to the registry.
pub(crate) struct RegistryClient {
    group: RegistryGroup,
    links: Arc<Links>,
}

impl RegistryClient {
    pub(crate) fn new(group: RegistryGroup, links: Arc<Links>) -> Self {
        RegistryClient { group, links }
    }

    pub(crate) fn registry(&self) -> &Arc<Registry> {
        self.group.state_machine()
    }

    pub(crate) fn group(&self) -> &RegistryGroup {
        &self.group
    }

    /// Whether the member that answers at an address is the given one, and is in no cluster yet.
    pub(crate) async fn is_new_at(&self, address: &str, uuid: Uuid) -> bool {
        let answer = self.links.call_address(Address::from(address), Channel::Join, Request::Greet.write()).await;
        let greeting = answer.ok().and_then(|bytes| read(&bytes).ok());
        matches!(greeting, Some(Greeting::Alone(alone)) if alone.candidate.uuid == uuid)
    }

    /// Applies a command, and waits until it is applied on this member as well. All commands are
    /// safe to retry.
    ///
    /// # Errors
    /// [`MemberError::Unreachable`] if no leader was found in five seconds,
    /// [`MemberError::Unknown`] if the command may have been applied.
    pub(crate) async fn execute(&self, command: Command) -> Result<Reply, MemberError> {
        self.execute_versioned(command).await.map(|(reply, _)| reply)
    }

    /// Like [`RegistryClient::execute`]. Also waits until the command is known to the other members
    /// and to their followers of the registry, as far as they can be reached: later requests to any
    /// of these members see the effect of the command.
    ///
    /// # Errors
    /// As [`RegistryClient::execute`].
    pub(crate) async fn execute_everywhere(&self, command: Command) -> Result<Reply, MemberError> {
        let (reply, version) = self.execute_versioned(command).await?;
        let request = Request::Reached(version).write();
        let state = self.registry().state();
        let others = state.members().map(|(id, _)| id).filter(|id| *id != self.group.member());
        // All requests are sent before the first answer is awaited.
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

    /// Returns the reply, and the registry's version after the command.
    async fn execute_versioned(&self, command: Command) -> Result<(Reply, u64), MemberError> {
        self.retry_in_time(async |status| {
            let (reply, version) = self.retry_until_applied(&command, status).await;
            self.registry().reached(version).await;
            (reply, version)
        })
        .await
    }

    /// Removes this member from the cluster. Afterwards it receives no changes of the registry any
    /// more, so this does not wait until the command is applied here.
    ///
    /// # Errors
    /// As [`RegistryClient::execute`].
    pub(crate) async fn remove_self(&self) -> Result<(), MemberError> {
        let command = Command::Remove { member: self.group.member().0 };
        self.retry_in_time(async |status| _ = self.retry_until_applied(&command, status).await).await
    }

    async fn retry_in_time<T>(&self, attempt: impl AsyncFnOnce(&mut AttemptStatus) -> T) -> Result<T, MemberError> {
        let mut status = AttemptStatus { last_error: "nobody leads it".to_owned(), may_be_applied: false };
        let answer = tokio::time::timeout(EXECUTION_MAX, attempt(&mut status)).await;
        answer.map_err(|_| match status.may_be_applied {
            true => MemberError::Unknown,
            false => MemberError::Unreachable(status.last_error),
        })
    }

    /// Retries until the command is applied. Returns the reply, and the registry's version after
    /// it.
    async fn retry_until_applied(&self, command: &Command, status: &mut AttemptStatus) -> (Reply, u64) {
        let (mut hinted, mut others) = (None, 0..);
        loop {
            // A leaving member is not informed of the leader any more. It asks one member after the
            // other.
            let leader = hinted.take().or_else(|| self.group.leader()).or_else(|| self.other(others.next()?));
            let before = status.may_be_applied;
            // Set before the wait: the timeout may expire while the answer is awaited.
            status.may_be_applied = true;
            let outcome = match leader {
                Some(leader) if leader == self.group.member() => self.propose(write_command(command)).await,
                Some(leader) => match self.send_to_member(leader, command).await {
                    Ok(outcome) => outcome,
                    Err(error) => {
                        status.last_error = error.to_string();
                        match error {
                            TransportError::Unreachable(_)
                            | TransportError::Overloaded(_)
                            | TransportError::TooLong { .. } => CommandOutcome::NotLeader(None),
                            TransportError::Broken(_) | TransportError::Refused { .. } => CommandOutcome::Unknown,
                        }
                    }
                },
                None => CommandOutcome::NotLeader(None),
            };
            match outcome {
                CommandOutcome::Applied(reply, version) => return (reply, version),
                // A retry of a command has no further effect.
                CommandOutcome::NotLeader(leader) => {
                    status.may_be_applied = before;
                    hinted = leader.map(MemberId);
                    tokio::time::sleep(PAUSE).await;
                }
                CommandOutcome::Unknown => tokio::time::sleep(PAUSE).await,
            }
        }
    }

    /// Returns one of the other members, round robin.
    fn other(&self, turn: usize) -> Option<MemberId> {
        let state = self.registry().state();
        let others: Vec<MemberId> = state.members().map(|(id, _)| id).filter(|id| *id != self.group.member()).collect();
        others.get(turn.checked_rem(others.len())?).copied()
    }

    async fn send_to_member(&self, leader: MemberId, command: &Command) -> Result<CommandOutcome, TransportError> {
        let request = Request::Registry(write_command(command).to_vec()).write();
        let answer = self.links.call(leader, Channel::Requests, request).await?;
        read(&answer).map_err(|refusal| TransportError::Refused { member: leader, why: refusal.0 })
    }

    /// Proposes a command on this member, if it leads.
    pub(crate) async fn propose(&self, command: Bytes) -> CommandOutcome {
        if let Err(error) = read_command(&command) {
            return CommandOutcome::Applied(Reply::Refused(error.to_string()), 0);
        }
        let (sender, answer) = oneshot::channel();
        let not_leader = |error: SubmitError| match error {
            SubmitError::NotLeader { leader, .. } => CommandOutcome::NotLeader(leader.map(|leader| leader.0)),
            SubmitError::Overloaded { .. } => CommandOutcome::NotLeader(None),
            SubmitError::Unknown { .. } => CommandOutcome::Unknown,
            error => CommandOutcome::Applied(Reply::Refused(error.to_string()), 0),
        };
        if let Err((error, _)) = self.group.propose(command, sender) {
            return not_leader(error);
        }
        match answer.await {
            Ok(Ok((reply, version))) => CommandOutcome::Applied(reply, version),
            Ok(Err(error)) => not_leader(error),
            Err(_) => CommandOutcome::Unknown,
        }
    }
}
