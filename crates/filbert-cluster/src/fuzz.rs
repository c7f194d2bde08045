//! All decoders of bytes from other members, for the fuzz targets: they must survive any bytes, and
//! decode their own encodings.

use bytes::Bytes;
use openraft::TokioRuntime;

use crate::snapshot::Taking;
use crate::types::Vote;
use crate::wire::{
    Request, Response, read_answers, read_batch, read_replies, read_requests, write_answers, write_batch,
    write_replies, write_requests,
};
use crate::{GroupId, GroupSettings, MemberId, Partitions};

/// Decodes the bytes as a request, as an answer and as replies.
///
/// # Panics
/// A message does not survive encoding and decoding: a defect.
pub fn read_message(data: &[u8]) {
    let data = Bytes::copy_from_slice(data);
    if let Ok((head, request)) = Request::<TokioRuntime>::read(data.clone()) {
        let written = request.write(&head);
        let reread = Request::<TokioRuntime>::read(written).map(|(reread, request)| (reread, request.write(&reread)));
        assert_eq!(reread, Ok((head, request.write(&head))));
    }
    if let Ok((time, answer)) = Response::<TokioRuntime>::read(data.clone()) {
        let written = answer.write(time);
        let reread = Response::<TokioRuntime>::read(written).map(|(reread, answer)| answer.write(reread));
        assert_eq!(reread, Ok(answer.write(time)));
    }
    if let Ok(requests) = read_requests(&data) {
        assert_eq!(write_requests(&requests), data, "there is one way to write several requests");
    }
    if let Ok(answers) = read_answers(&data) {
        assert_eq!(read_answers(&write_answers(&answers)), Ok(answers));
    }
    if let Ok(replies) = read_replies(data) {
        assert_eq!(read_replies(write_replies(&replies)), Ok(replies));
    }
}

/// Decodes the bytes as an entry of the log.
///
/// # Panics
/// An entry does not survive decoding and encoding: a defect.
pub fn read_entry(data: &[u8]) {
    if let Ok(entry) = read_batch(Bytes::copy_from_slice(data)) {
        let written = write_batch(&entry);
        assert_eq!(written[..], *data, "there is one way to write an entry");
    }
}

/// Imports the pages as a snapshot of a group with one partition, up to the first page that is
/// refused.
pub fn read_snapshot<'p>(pages: impl IntoIterator<Item = &'p [u8]>) {
    let settings = GroupSettings { groups: 1, partitions: 1, ..GroupSettings::default() };
    let state = Partitions::new(GroupId(0), &settings, 1);
    let mut taking = Taking::new(Vote::new(1, MemberId(1)), 1);
    for page in pages {
        if taking.page(&state, Bytes::copy_from_slice(page)).is_err() {
            return;
        }
    }
}
