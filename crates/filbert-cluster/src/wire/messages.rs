//! Requests between members and their answers.
//!
//! A request: 1 byte of version (1); the receiver's member id, 8; the group, 4; the sender's epoch,
//! 8; the sender's time, 8, signed; 1 byte of kind; then, by kind:
//!
//! - 1, append: vote; optional id before the entries; optional committed id; number of entries, 4;
//!   entries
//! - 2, vote, and 3, pre-vote: vote; optional id of the candidate's last entry; 1: whether
//!   leadership is handed over
//! - 4, hand-over: the leader's vote; the next leader's member id, 8; optional id of the leader's
//!   last entry
//! - 5, page of a snapshot: vote; number of the snapshot, 8; number of the page, 8; CRC-32 of the
//!   page, 4; page, *bytes*
//! - 6, whether a member was removed from the group: the member's id, 8
//!
//! An answer: 1 byte of version; the member's time, 8, signed; 1 byte of kind: 1 success; 2 success
//! up to an optional id; 3 conflict; 4 a higher vote; 5 a vote, an optional id, and 1: whether the
//! vote was granted; 6 hand-over: 0 accepted, 1 refused; 7 the number of the expected page, 8; 8
//! the snapshot is installed, a vote; 9 the member was removed: the leader's vote, and the index of
//! the configuration without the member, 8; 10 it was not.
//!
//! A *vote* is a term and a member, 8 each, and 1: whether it is the vote of a leader. An *id* is a
//! term and an index, 8 each. An *optional* value is preceded by 1: whether it is present. An entry
//! is its id and 1 byte: 0 blank; 1 a batch, *bytes*; 2 a membership: number of configurations, 4,
//! each a number of voters, 4, and the voters, 8 each; number of members, 4, and the members, 8
//! each.

use bytes::Bytes;
use filbert_store::{CodecError, Millis};
use openraft::AsyncRuntime;
use openraft::impls::EmptyNode;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, TransferLeaderRequest, VoteRequest, VoteResponse};

use super::{Reader, append_bytes};
use crate::types::{Batch, Committed, Entry, LogId, Membership, Payload, Types, Vote};
use crate::{Epoch, GroupId, MemberId};

/// The header of every request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) to: MemberId,
    pub(crate) group: GroupId,
    pub(crate) epoch: Epoch,
    /// The sender's time, see `clock.rs`.
    pub(crate) time: Millis,
}

/// The leader's confirmation that a member was removed from the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Removal {
    /// The vote of the leader.
    pub(crate) vote: Vote,
    /// The index of the committed configuration without the member.
    pub(crate) index: u64,
}

#[derive(Debug)]
pub(crate) enum Request<R: AsyncRuntime> {
    Append(AppendEntriesRequest<Types<R>>),
    Vote(VoteRequest<Types<R>>),
    PreVote(VoteRequest<Types<R>>),
    Transfer(TransferLeaderRequest<Types<R>>),
    Page { vote: Vote, snapshot: u64, number: u64, page: Bytes },
    Removed { member: MemberId },
}

#[derive(Debug)]
pub(crate) enum Response<R: AsyncRuntime> {
    Append(AppendEntriesResponse<Types<R>>),
    Vote(VoteResponse<Types<R>>),
    Transfer {
        accepted: bool,
    },
    /// The page of a snapshot that is expected. 0 as the answer to page 0: there is no room for the
    /// snapshot yet.
    NextPage(u64),
    Installed(Vote),
    Removed(Option<Removal>),
}

fn u64s(out: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
}

fn append_vote(out: &mut Vec<u8>, vote: &Vote) {
    u64s(out, &[vote.leader_id.term, vote.leader_id.voted_for.0]);
    out.push(u8::from(vote.committed));
}

fn read_vote(reader: &mut Reader<'_>) -> Result<Vote, CodecError> {
    let (term, member) = (reader.u64("a vote")?, MemberId(reader.u64("a vote")?));
    let vote = if reader.flag("a vote")? { Vote::new_committed(term, member) } else { Vote::new(term, member) };
    Ok(vote)
}

pub(crate) fn append_log_id(out: &mut Vec<u8>, id: Option<&LogId>) {
    out.push(u8::from(id.is_some()));
    if let Some(id) = id {
        u64s(out, &[**id.committed_leader_id(), id.index]);
    }
}

pub(crate) fn read_log_id(reader: &mut Reader<'_>) -> Result<Option<LogId>, CodecError> {
    if !reader.flag("an id of the log")? {
        return Ok(None);
    }
    let (term, index) = (reader.u64("an id of the log")?, reader.u64("an id of the log")?);
    Ok(Some(LogId::new(Committed::new(term), index)))
}

pub(crate) fn append_membership(out: &mut Vec<u8>, membership: &Membership) {
    let configs = membership.get_joint_config();
    out.extend_from_slice(&(configs.len() as u32).to_le_bytes());
    for config in configs {
        out.extend_from_slice(&(config.len() as u32).to_le_bytes());
        config.iter().for_each(|member| u64s(out, &[member.0]));
    }
    out.extend_from_slice(&(membership.nodes().count() as u32).to_le_bytes());
    membership.nodes().for_each(|(member, _)| u64s(out, &[member.0]));
}

pub(crate) fn read_membership(reader: &mut Reader<'_>) -> Result<Membership, CodecError> {
    const WHAT: &str = "a membership";
    let members = |reader: &mut Reader<'_>| {
        let count = reader.u32(WHAT)?;
        (0..count).map(|_| reader.u64(WHAT).map(MemberId)).collect::<Result<Vec<_>, _>>()
    };
    let mut configs = Vec::new();
    for _ in 0..reader.u32(WHAT)? {
        configs.push(members(reader)?.into_iter().collect());
    }
    let all = members(reader)?;
    let count = all.len() as u64;
    let nodes: std::collections::BTreeMap<MemberId, EmptyNode> =
        all.into_iter().map(|member| (member, EmptyNode::new())).collect();
    if configs.is_empty() && count == 0 {
        return Ok(Membership::default());
    }
    Membership::new(configs, nodes).map_err(|_| reader.unexpected(WHAT, count, "voters that are members"))
}

fn append_entry(out: &mut Vec<u8>, entry: &Entry) {
    append_log_id(out, Some(&entry.log_id));
    match &entry.payload {
        Payload::Blank => out.push(0),
        Payload::Normal(batch) => {
            out.push(1);
            append_bytes(out, &batch.bytes);
        }
        Payload::Membership(membership) => {
            out.push(2);
            append_membership(out, membership);
        }
    }
}

fn read_entry(reader: &mut Reader<'_>) -> Result<Entry, CodecError> {
    let Some(log_id) = read_log_id(reader)? else {
        return Err(reader.unexpected("the id of an entry", 0, "an id"));
    };
    let payload = match reader.u8("the kind of an entry")? {
        0 => Payload::Blank,
        1 => Payload::Normal(Batch::of_others(reader.shared("a batch")?)),
        2 => Payload::Membership(read_membership(reader)?),
        found => return Err(reader.unexpected("the kind of an entry", u64::from(found), "0 to 2")),
    };
    Ok(Entry { log_id, payload })
}

impl<R: AsyncRuntime> Request<R> {
    pub(crate) fn write(&self, head: &Head) -> Bytes {
        let mut out = vec![1];
        u64s(&mut out, &[head.to.0]);
        out.extend_from_slice(&head.group.0.to_le_bytes());
        u64s(&mut out, &[head.epoch.0]);
        out.extend_from_slice(&head.time.0.to_le_bytes());
        match self {
            Request::Append(append) => {
                out.push(1);
                append_vote(&mut out, &append.vote);
                append_log_id(&mut out, append.prev_log_id.as_ref());
                append_log_id(&mut out, append.leader_commit.as_ref());
                out.extend_from_slice(&(append.entries.len() as u32).to_le_bytes());
                append.entries.iter().for_each(|entry| append_entry(&mut out, entry));
            }
            Request::Vote(vote) | Request::PreVote(vote) => {
                out.push(if matches!(self, Request::Vote(_)) { 2 } else { 3 });
                append_vote(&mut out, &vote.vote);
                append_log_id(&mut out, vote.last_log_id.as_ref());
                out.push(u8::from(vote.leadership_transfer));
            }
            Request::Transfer(transfer) => {
                out.push(4);
                append_vote(&mut out, transfer.from_leader());
                u64s(&mut out, &[transfer.to_node_id().0]);
                append_log_id(&mut out, transfer.last_log_id());
            }
            Request::Page { vote, snapshot, number, page } => {
                out.push(5);
                append_vote(&mut out, vote);
                u64s(&mut out, &[*snapshot, *number]);
                out.extend_from_slice(&crc32fast::hash(page).to_le_bytes());
                append_bytes(&mut out, page);
            }
            Request::Removed { member } => {
                out.push(6);
                u64s(&mut out, &[member.0]);
            }
        }
        out.into()
    }

    pub(crate) fn read(bytes: Bytes) -> Result<(Head, Request<R>), CodecError> {
        let mut reader = Reader::new(&bytes);
        reader.version("the version of a request")?;
        let to = MemberId(reader.u64("the member that a request is for")?);
        let group = GroupId(reader.u32("the group of a request")?);
        let epoch = Epoch(reader.u64("the epoch of a request")?);
        let head = Head { to, group, epoch, time: reader.millis("the time of a request")? };
        let kind = reader.u8("the kind of a request")?;
        let request = match kind {
            1 => {
                let vote = read_vote(&mut reader)?;
                let (prev_log_id, leader_commit) = (read_log_id(&mut reader)?, read_log_id(&mut reader)?);
                let count = reader.u32("the number of entries")?;
                let entries = (0..count).map(|_| read_entry(&mut reader)).collect::<Result<_, _>>()?;
                Request::Append(AppendEntriesRequest { vote, prev_log_id, entries, leader_commit })
            }
            2 | 3 => {
                let (vote, last_log_id) = (read_vote(&mut reader)?, read_log_id(&mut reader)?);
                let leadership_transfer = reader.flag("whether leadership is handed over")?;
                let request = VoteRequest { vote, last_log_id, leadership_transfer };
                if kind == 2 { Request::Vote(request) } else { Request::PreVote(request) }
            }
            4 => {
                let (vote, to) = (read_vote(&mut reader)?, MemberId(reader.u64("who is to lead")?));
                Request::Transfer(TransferLeaderRequest::new(vote, to, read_log_id(&mut reader)?))
            }
            5 => {
                let vote = read_vote(&mut reader)?;
                let (snapshot, number) = (reader.u64("a snapshot")?, reader.u64("a page")?);
                let crc = reader.u32("the checksum of a page")?;
                let page = reader.shared("a page")?;
                if crc32fast::hash(&page) != crc {
                    return Err(reader.unexpected("the checksum of a page", u64::from(crc), "that of its bytes"));
                }
                Request::Page { vote, snapshot, number, page }
            }
            6 => Request::Removed { member: MemberId(reader.u64("a member")?) },
            found => return Err(reader.unexpected("the kind of a request", u64::from(found), "1 to 6")),
        };
        reader.end("a request")?;
        Ok((head, request))
    }
}

impl<R: AsyncRuntime> Response<R> {
    pub(crate) fn write(&self, time: Millis) -> Bytes {
        let mut out = vec![1];
        out.extend_from_slice(&time.0.to_le_bytes());
        match self {
            Response::Append(AppendEntriesResponse::Success) => out.push(1),
            Response::Append(AppendEntriesResponse::PartialSuccess(id)) => {
                out.push(2);
                append_log_id(&mut out, id.as_ref());
            }
            Response::Append(AppendEntriesResponse::Conflict) => out.push(3),
            Response::Append(AppendEntriesResponse::HigherVote(vote)) => {
                out.push(4);
                append_vote(&mut out, vote);
            }
            Response::Vote(answer) => {
                out.push(5);
                append_vote(&mut out, &answer.vote);
                append_log_id(&mut out, answer.last_log_id.as_ref());
                out.push(u8::from(answer.vote_granted));
            }
            Response::Transfer { accepted } => out.extend([6, u8::from(!accepted)]),
            Response::NextPage(number) => {
                out.push(7);
                u64s(&mut out, &[*number]);
            }
            Response::Installed(vote) => {
                out.push(8);
                append_vote(&mut out, vote);
            }
            Response::Removed(Some(Removal { vote, index })) => {
                out.push(9);
                append_vote(&mut out, vote);
                u64s(&mut out, &[*index]);
            }
            Response::Removed(None) => out.push(10),
        }
        out.into()
    }

    pub(crate) fn read(bytes: Bytes) -> Result<(Millis, Response<R>), CodecError> {
        let mut reader = Reader::new(&bytes);
        reader.version("the version of an answer")?;
        let time = reader.millis("the time of an answer")?;
        let response = match reader.u8("the kind of an answer")? {
            1 => Response::Append(AppendEntriesResponse::Success),
            2 => Response::Append(AppendEntriesResponse::PartialSuccess(read_log_id(&mut reader)?)),
            3 => Response::Append(AppendEntriesResponse::Conflict),
            4 => Response::Append(AppendEntriesResponse::HigherVote(read_vote(&mut reader)?)),
            5 => {
                let (vote, last) = (read_vote(&mut reader)?, read_log_id(&mut reader)?);
                Response::Vote(VoteResponse::new(vote, last, reader.flag("whether a vote was granted")?))
            }
            6 => Response::Transfer { accepted: !reader.flag("whether handing over was refused")? },
            7 => Response::NextPage(reader.u64("a page")?),
            8 => Response::Installed(read_vote(&mut reader)?),
            9 => {
                let vote = read_vote(&mut reader)?;
                Response::Removed(Some(Removal { vote, index: reader.u64("the index of a configuration")? }))
            }
            10 => Response::Removed(None),
            found => return Err(reader.unexpected("the kind of an answer", u64::from(found), "1 to 10")),
        };
        reader.end("an answer")?;
        Ok((time, response))
    }
}
