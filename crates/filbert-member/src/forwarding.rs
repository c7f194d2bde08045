//! Changes that are forwarded to the leader of their group, and the answers to them.
//!
//! A change is retried at another member only if it certainly was not applied. Must not know the
//! content of changes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use filbert_cluster::{MemberId, OwnedReply, TransportError, read_replies, write_replies};
use filbert_grid::GridError;
use filbert_grid::replication::{ForwardedAnswer, GroupId, SubmitError};
use filbert_links::{Channel, Links, Refusal};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use crate::following::Followed;
use crate::partitions::{GridSlot, PartitionGroup};
use crate::view::Views;

/// The first byte of a request that forwards changes. Other requests begin with a version.
pub(crate) const FORWARDED: u8 = 0xf0;
/// The version of the header. The header precedes the changes, which have a version of their own.
const VERSION: u8 = 1;
/// The bytes ahead of the changes: the first byte, the version, the group, the wait time in
/// milliseconds, and the version of the registry that the sender knows.
const HEAD_BYTES: usize = 1 + 1 + 4 + 8 + 8;
/// The maximum time for finding a leader: longer than a failover takes.
const SEARCH_MAX: Duration = Duration::from_secs(5);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(30);

/// Forwards changes to the leaders of groups.
pub(crate) struct Forwarding {
    pub(crate) member: MemberId,
    pub(crate) groups: Vec<PartitionGroup>,
    pub(crate) links: Arc<Links>,
    pub(crate) views: Arc<Views>,
    pub(crate) followed: Arc<Followed>,
    pub(crate) grid: GridSlot,
}

/// The result of an attempt.
enum Attempt {
    Answered(Vec<ForwardedAnswer>),
    /// Nothing was applied, for this reason.
    NotMade(String),
}

impl Forwarding {
    /// The leader of a group, as far as this member knows: by its own replica, or by the last
    /// announcement if that is of a later term. A member that was removed from a group may never
    /// learn of a later leader by its replica.
    pub(crate) fn leader(&self, group: GroupId) -> Option<MemberId> {
        let held = usize::try_from(group.0).ok().and_then(|at| self.groups.get(at));
        let own = held.and_then(|held| Some((held.leader()?, held.term())));
        let announced = self.views.leader_and_term(filbert_cluster::GroupId(group.0));
        let latest = match (own, announced) {
            (Some((_, term)), Some(announced)) if announced.1 > term => Some(announced),
            (own, announced) => own.or(announced),
        };
        latest.map(|(leader, _)| leader)
    }

    /// Has the leader of a group apply changes. Each change waits for a locked key for `wait` in
    /// total, however many members are asked. After that, the caller learns that the change was not
    /// applied, and must not get a lock later.
    pub(crate) async fn forward(
        &self,
        group: GroupId,
        changes: Bytes,
        wait: Option<Duration>,
    ) -> Result<Vec<ForwardedAnswer>, SubmitError> {
        let mut searching_since = Instant::now();
        let until = wait.and_then(|wait| searching_since.checked_add(wait));
        loop {
            let attempted_at = Instant::now();
            let wait = until.map_or(wait, |until| Some(until.saturating_duration_since(attempted_at)));
            let outcome = match self.leader(group) {
                Some(leader) if leader == self.member => self.make_here(group, &changes, wait).await?,
                Some(leader) => self.make_at(leader, group, &changes, wait).await?,
                None => Attempt::NotMade("no leader of it is known".to_owned()),
            };
            let may_have_waited = wait.is_some() && matches!(outcome, Attempt::Answered(_));
            let hint = match outcome {
                Attempt::Answered(answers) if !nothing_made(&answers) => return Ok(answers),
                Attempt::Answered(answers) => match answers.into_iter().next() {
                    Some(Err(error)) => error.to_string(),
                    _ => "it led until a moment ago".to_owned(),
                },
                Attempt::NotMade(why) => why,
            };
            if may_have_waited && attempted_at.elapsed() > SEARCH_MAX {
                // The attempt has waited for a lock: the search for a leader starts again.
                searching_since = Instant::now();
            }
            if searching_since.elapsed() > SEARCH_MAX {
                return Err(SubmitError::NotLeader { group, hint });
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn make_here(&self, group: GroupId, changes: &Bytes, wait: Option<Duration>) -> Result<Attempt, SubmitError> {
        match self.make(changes, wait).await {
            Ok(answers) => answers.map(Attempt::Answered).ok_or(SubmitError::Unknown { group }),
            Err(why) => Ok(Attempt::NotMade(why)),
        }
    }

    /// Applies changes on this member. Returns `None` if the answers were lost.
    async fn make(&self, changes: &[u8], wait: Option<Duration>) -> Result<Option<Vec<ForwardedAnswer>>, String> {
        let Some(grid) = self.grid.get() else { return Err("the member is shutting down".to_owned()) };
        let (sender, answers) = oneshot::channel();
        // The waiter may have gone.
        let done = Box::new(move |answers| _ = sender.send(answers));
        grid.apply_forwarded(changes, wait, done).map_err(|error| error.to_string())?;
        Ok(answers.await.ok())
    }

    async fn make_at(
        &self,
        leader: MemberId,
        group: GroupId,
        changes: &Bytes,
        wait: Option<Duration>,
    ) -> Result<Attempt, SubmitError> {
        match self.links.call(leader, Channel::Requests, self.write_request(group, changes, wait)).await {
            // The changes were applied, but their answers cannot be read.
            Ok(answers) => read_answers(answers).map(Attempt::Answered).ok_or(SubmitError::Unknown { group }),
            Err(TransportError::TooLong { bytes, bytes_max, .. }) => {
                Err(SubmitError::TooLong { group, bytes, bytes_max })
            }
            Err(
                error @ (TransportError::Unreachable(_)
                | TransportError::Overloaded(_)
                | TransportError::Refused { .. }),
            ) => Ok(Attempt::NotMade(error.to_string())),
            Err(_) => Err(SubmitError::Unknown { group }),
        }
    }

    fn write_request(&self, group: GroupId, changes: &[u8], wait: Option<Duration>) -> Bytes {
        let wait_ms = wait.map_or(u64::MAX, |wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX - 1));
        let mut out = BytesMut::with_capacity(HEAD_BYTES + changes.len());
        out.put_u8(FORWARDED);
        out.put_u8(VERSION);
        out.put_u32_le(group.0);
        out.put_u64_le(wait_ms);
        out.put_u64_le(self.views.registry_version());
        out.put_slice(changes);
        out.freeze()
    }

    /// Applies the changes that another member has forwarded.
    pub(crate) async fn answer(&self, request: Bytes) -> Result<Bytes, Refusal> {
        let broken = || Refusal("cannot read changes that were forwarded".to_owned());
        let version = request.get(1).copied().ok_or_else(broken)?;
        if version != VERSION {
            return Err(Refusal(format!("changes were forwarded in version {version}, expected version {VERSION}")));
        }
        let mut head = request.get(2..HEAD_BYTES).ok_or_else(broken)?;
        let (_group, wait) = (bytes::Buf::get_u32_le(&mut head), bytes::Buf::get_u64_le(&mut head));
        // The changes may be for a map that was created recently.
        let known = self.followed.reached_maps(bytes::Buf::get_u64_le(&mut head));
        if tokio::time::timeout(SEARCH_MAX, known).await.is_err() {
            return Err(Refusal("the registry that the changes were made under is not known here yet".to_owned()));
        }
        let wait = (wait != u64::MAX).then(|| Duration::from_millis(wait));
        let answers = self.make(request.get(HEAD_BYTES..).unwrap_or_default(), wait).await.map_err(Refusal)?;
        // A refusal would mean that nothing was applied. An empty answer means that the outcome is
        // unknown.
        Ok(answers.map_or_else(Bytes::new, |answers| write_answers(&answers)))
    }
}

/// Whether all answers say that nothing was applied, so that a retry at another member is safe.
fn nothing_made(answers: &[ForwardedAnswer]) -> bool {
    let is_refusal = |answer: &ForwardedAnswer| {
        matches!(answer, Err(GridError::Submit(SubmitError::NotLeader { .. } | SubmitError::Overloaded { .. })))
    };
    !answers.is_empty() && answers.iter().all(is_refusal)
}

/// An error of the grid, as sent to another member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum ForwardedError {
    NotLeader { group: u32, hint: String },
    Overloaded { group: u32, limit_bytes: usize },
    TooLong { group: u32, bytes: usize, bytes_max: usize },
    Unknown { group: u32 },
    IllegalArgument(String),
    UnsupportedOperation(String),
    IllegalState(String),
    Destroyed { service: String, name: String },
    BeingReplaced { map: String },
    LockTimeout { map: String },
    OutOfMemory { needed: usize, used: usize, max: usize },
    Other(String),
}

impl ForwardedError {
    fn of(error: GridError) -> ForwardedError {
        match error {
            GridError::Submit(SubmitError::NotLeader { group, hint }) => {
                ForwardedError::NotLeader { group: group.0, hint }
            }
            GridError::Submit(SubmitError::Overloaded { group, limit_bytes }) => {
                ForwardedError::Overloaded { group: group.0, limit_bytes }
            }
            GridError::Submit(SubmitError::TooLong { group, bytes, bytes_max }) => {
                ForwardedError::TooLong { group: group.0, bytes, bytes_max }
            }
            GridError::Submit(SubmitError::Unknown { group }) => ForwardedError::Unknown { group: group.0 },
            // This member takes no changes any more. The next leader does.
            GridError::NotActive => {
                ForwardedError::NotLeader { group: 0, hint: "the member is shutting down".to_owned() }
            }
            GridError::IllegalArgument(text) => ForwardedError::IllegalArgument(text),
            GridError::UnsupportedOperation(text) => ForwardedError::UnsupportedOperation(text),
            GridError::IllegalState(text) => ForwardedError::IllegalState(text),
            GridError::Destroyed { service, name } => ForwardedError::Destroyed { service, name },
            GridError::BeingReplaced { map } => ForwardedError::BeingReplaced { map },
            GridError::LockTimeout { map } => ForwardedError::LockTimeout { map },
            GridError::OutOfMemory { needed, used, max } => ForwardedError::OutOfMemory { needed, used, max },
            error => ForwardedError::Other(error.to_string()),
        }
    }

    fn error(self) -> GridError {
        match self {
            ForwardedError::NotLeader { group, hint } => SubmitError::NotLeader { group: GroupId(group), hint }.into(),
            ForwardedError::Overloaded { group, limit_bytes } => {
                SubmitError::Overloaded { group: GroupId(group), limit_bytes }.into()
            }
            ForwardedError::TooLong { group, bytes, bytes_max } => {
                SubmitError::TooLong { group: GroupId(group), bytes, bytes_max }.into()
            }
            ForwardedError::Unknown { group } => SubmitError::Unknown { group: GroupId(group) }.into(),
            ForwardedError::IllegalArgument(text) => GridError::IllegalArgument(text),
            ForwardedError::UnsupportedOperation(text) => GridError::UnsupportedOperation(text),
            ForwardedError::IllegalState(text) => GridError::IllegalState(text),
            ForwardedError::Destroyed { service, name } => GridError::Destroyed { service, name },
            ForwardedError::BeingReplaced { map } => GridError::BeingReplaced { map },
            ForwardedError::LockTimeout { map } => GridError::LockTimeout { map },
            ForwardedError::OutOfMemory { needed, used, max } => GridError::OutOfMemory { needed, used, max },
            ForwardedError::Other(text) => GridError::Internal(text),
        }
    }
}

/// Encodes answers: 4 bytes of length and the errors with their positions as JSON, then the
/// replies, with [`OwnedReply::Done`] as a placeholder for each error.
fn write_answers(answers: &[ForwardedAnswer]) -> Bytes {
    let mut errors: Vec<(usize, ForwardedError)> = Vec::new();
    let mut replies = Vec::with_capacity(answers.len());
    for (place, answer) in answers.iter().enumerate() {
        replies.push(match answer {
            Ok(reply) => OwnedReply::of(reply),
            Err(error) => {
                errors.push((place, ForwardedError::of(error.clone())));
                OwnedReply::Done
            }
        });
    }
    // Serialization does not fail: the errors contain only numbers and strings.
    let errors = serde_json::to_vec(&errors).unwrap_or_default();
    let replies = write_replies(&replies);
    let mut out = BytesMut::with_capacity(4 + errors.len() + replies.len());
    out.put_u32_le(u32::try_from(errors.len()).unwrap_or(u32::MAX));
    out.put_slice(&errors);
    out.put_slice(&replies);
    out.freeze()
}

fn read_answers(mut bytes: Bytes) -> Option<Vec<ForwardedAnswer>> {
    let length = usize::try_from(bytes.get(..4).map(|mut head| bytes::Buf::get_u32_le(&mut head))?).ok()?;
    let _head = bytes.split_to(4);
    let errors: Vec<(usize, ForwardedError)> = serde_json::from_slice(bytes.get(..length)?).ok()?;
    let _errors = bytes.split_to(length);
    let replies = read_replies(bytes).ok()?;
    let mut answers: Vec<ForwardedAnswer> = replies.into_iter().map(|reply| Ok(reply.into())).collect();
    for (place, error) in errors {
        *answers.get_mut(place)? = Err(error.error());
    }
    Some(answers)
}

#[cfg(test)]
mod tests {
    use filbert_store::{Millis, Reply, Value};

    use super::*;

    #[test]
    fn answers_are_read_as_they_were_written() {
        let group = GroupId(7);
        let answers = || -> Vec<ForwardedAnswer> {
            vec![
                Ok(Reply::Previous(Some(Value::copied(b"v".as_slice().into())))),
                Err(SubmitError::NotLeader { group, hint: "h".to_owned() }.into()),
                Ok(Reply::Claimed(vec![3])),
                Err(GridError::OutOfMemory { needed: 1, used: 2, max: 3 }),
                Ok(Reply::Locked { free_at: Some(Millis(4)) }),
                Err(SubmitError::Unknown { group }.into()),
            ]
        };
        let bytes = write_answers(&answers());
        assert_eq!(read_answers(bytes.clone()), Some(answers()));
        for end in 0..bytes.len() {
            assert_eq!(read_answers(bytes.slice(..end)), None);
        }
    }

    #[test]
    fn only_answers_that_all_say_so_mean_that_nothing_was_made() {
        let refused = || Err(SubmitError::NotLeader { group: GroupId(1), hint: String::new() }.into());
        assert!(nothing_made(&[refused(), refused()]));
        assert!(!nothing_made(&[refused(), Ok(Reply::Done)]));
        assert!(!nothing_made(&[Err(SubmitError::Unknown { group: GroupId(1) }.into())]));
        assert!(!nothing_made(&[]));
    }
}
