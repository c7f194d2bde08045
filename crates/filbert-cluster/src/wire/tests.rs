//! Arbitrary messages: encoded and decoded, cut short, and with a flipped bit.

use std::collections::BTreeSet;

use bytes::Bytes;
use filbert_store::Millis;
use openraft::TokioRuntime;
use openraft::raft::{AppendEntriesRequest, AppendEntriesResponse, TransferLeaderRequest, VoteRequest, VoteResponse};
use proptest::prelude::*;

use super::{Head, Removal, Request, Response, is_bundle, read_answers, read_requests, write_answers, write_requests};
use crate::types::{Batch, Committed, Entry, LogId, Membership, Payload, Vote};
use crate::{Epoch, GroupId, MemberId, fuzz};

type TestRequest = Request<TokioRuntime>;
type Answered = Response<TokioRuntime>;

fn member() -> impl Strategy<Value = MemberId> {
    any::<u64>().prop_map(MemberId)
}

fn vote() -> impl Strategy<Value = Vote> {
    (any::<u64>(), member(), any::<bool>()).prop_map(|(term, member, is_leader)| {
        if is_leader { Vote::new_committed(term, member) } else { Vote::new(term, member) }
    })
}

fn log_id() -> impl Strategy<Value = LogId> {
    any::<(u64, u64)>().prop_map(|(term, index)| LogId::new(Committed::new(term), index))
}

fn optional_id() -> impl Strategy<Value = Option<LogId>> {
    prop::option::of(log_id())
}

fn bytes() -> impl Strategy<Value = Bytes> {
    prop::collection::vec(any::<u8>(), 0..200).prop_map(Bytes::from)
}

/// One set of voters, or two during a change, and learners.
fn membership() -> impl Strategy<Value = Membership> {
    let members = |least| prop::collection::btree_set(member(), least..6);
    let configs = prop::collection::vec(members(1), 1..3);
    (configs, members(0))
        .prop_map(|(configs, learners): (Vec<BTreeSet<MemberId>>, _)| Membership::new_with_defaults(configs, learners))
}

fn entry() -> impl Strategy<Value = Entry> {
    let payload = prop_oneof![
        Just(Payload::Blank),
        bytes().prop_map(|batch| Payload::Normal(Batch::of_others(batch))),
        membership().prop_map(Payload::Membership),
    ];
    (log_id(), payload).prop_map(|(log_id, payload)| Entry { log_id, payload })
}

fn request() -> impl Strategy<Value = TestRequest> {
    let entries = prop::collection::vec(entry(), 0..5);
    let voting = || (vote(), optional_id(), any::<bool>());
    let vote_request =
        |(vote, last_log_id, leadership_transfer)| VoteRequest { vote, last_log_id, leadership_transfer };
    prop_oneof![
        3 => (vote(), optional_id(), optional_id(), entries).prop_map(|(vote, prev_log_id, leader_commit, entries)| {
            Request::Append(AppendEntriesRequest { vote, prev_log_id, entries, leader_commit })
        }),
        1 => voting().prop_map(move |vote| Request::Vote(vote_request(vote))),
        1 => voting().prop_map(move |vote| Request::PreVote(vote_request(vote))),
        1 => (vote(), member(), optional_id())
            .prop_map(|(vote, to, last)| Request::Transfer(TransferLeaderRequest::new(vote, to, last))),
        1 => (vote(), any::<(u64, u64)>(), bytes())
            .prop_map(|(vote, (snapshot, number), page)| Request::Page { vote, snapshot, number, page }),
        1 => member().prop_map(|member| Request::Removed { member }),
    ]
}

fn head() -> impl Strategy<Value = Head> {
    (member(), any::<u32>(), any::<u64>(), any::<i64>()).prop_map(|(to, group, epoch, time)| Head {
        to,
        group: GroupId(group),
        epoch: Epoch(epoch),
        time: Millis(time),
    })
}

fn response() -> impl Strategy<Value = Answered> {
    prop_oneof![
        Just(()).prop_map(|()| Response::Append(AppendEntriesResponse::Success)),
        optional_id().prop_map(|id| Response::Append(AppendEntriesResponse::PartialSuccess(id))),
        Just(()).prop_map(|()| Response::Append(AppendEntriesResponse::Conflict)),
        vote().prop_map(|vote| Response::Append(AppendEntriesResponse::HigherVote(vote))),
        (vote(), optional_id(), any::<bool>())
            .prop_map(|(vote, last, granted)| Response::Vote(VoteResponse::new(vote, last, granted))),
        any::<bool>().prop_map(|accepted| Response::Transfer { accepted }),
        any::<u64>().prop_map(Response::NextPage),
        vote().prop_map(Response::Installed),
        prop::option::of((vote(), any::<u64>()).prop_map(|(vote, index)| Removal { vote, index }))
            .prop_map(Response::Removed),
    ]
}

/// A message that is cut short is refused at any length. A message with a flipped bit is refused,
/// or is another message.
fn damage(whole: &Bytes, is_read: impl Fn(Bytes) -> bool, place: prop::sample::Index, bit: u8) {
    for end in 0..whole.len() {
        assert!(!is_read(whole.slice(..end)), "a message of which {end} bytes came");
    }
    let mut flipped = whole.to_vec();
    let place = place.index(flipped.len());
    flipped[place] ^= 1 << bit;
    fuzz::read_message(&flipped);
    // A claimed number of missing elements allocates no memory: this number would need gigabytes.
    for start in 0..whole.len().saturating_sub(4) {
        let mut claiming = whole.to_vec();
        claiming[start..start + 4].copy_from_slice(&u32::MAX.to_le_bytes());
        fuzz::read_message(&claiming);
    }
}

proptest! {
    #[test]
    fn requests_are_read_as_they_were_written(
        head in head(), request in request(), place in any::<prop::sample::Index>(), bit in 0..8u8,
    ) {
        let written = request.write(&head);
        let (found, read) = TestRequest::read(written.clone()).unwrap();
        prop_assert_eq!((found, format!("{read:?}")), (head, format!("{request:?}")));
        damage(&written, |bytes| TestRequest::read(bytes).is_ok(), place, bit);
    }

    #[test]
    fn answers_are_read_as_they_were_written(
        time in any::<i64>(), response in response(), place in any::<prop::sample::Index>(), bit in 0..8u8,
    ) {
        let written = response.write(Millis(time));
        let (found, read) = Answered::read(written.clone()).unwrap();
        prop_assert_eq!((found, format!("{read:?}")), (Millis(time), format!("{response:?}")));
        damage(&written, |bytes| Answered::read(bytes).is_ok(), place, bit);
    }

    #[test]
    fn several_messages_are_read_as_they_were_written(
        requests in prop::collection::vec(bytes(), 0..5),
        answers in prop::collection::vec(prop::option::of(bytes()), 0..5),
    ) {
        let written = write_requests(&requests);
        prop_assert!(is_bundle(&written));
        prop_assert_eq!(read_requests(&written), Ok(requests));
        prop_assert_eq!(read_answers(&write_answers(&answers)), Ok(answers));
    }

    #[test]
    fn any_bytes_are_refused_or_read(data in prop::collection::vec(any::<u8>(), 0..300)) {
        fuzz::read_message(&data);
        fuzz::read_entry(&data);
        fuzz::read_snapshot(data.chunks(40));
    }
}

#[test]
fn a_page_that_was_damaged_on_its_way_is_refused() {
    let page = Bytes::from_static(b"a page of a snapshot");
    let head = Head { to: MemberId(1), group: GroupId(2), epoch: Epoch(4), time: Millis(3) };
    let written = TestRequest::Page { vote: Vote::new(1, MemberId(1)), snapshot: 4, number: 5, page }.write(&head);
    let mut damaged = written.to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    let error = TestRequest::read(damaged.into()).unwrap_err();
    assert!(error.to_string().contains("the checksum of a page"), "{error}");
}
