//! An entry of the log: submissions of commands that one leader has merged.
//!
//! | bytes | contents |
//! |---|---|
//! | 1 | version: 1 |
//! | 8 | the leader's timestamp, in milliseconds since the Unix epoch, signed |
//! | 8 | the requirement, see [`StateMachine::requirement`](crate::StateMachine::requirement) |
//! | .. | submissions, up to the end |
//!
//! A submission: 1 byte of kind (0 plain, 1 of an origin, 2 opens an origin); for kind 1 the
//! origin, the sequence, and the first unanswered sequence, 8 bytes each; then touches and
//! commands, as *bytes* encoded by [`filbert_store::Encoder`] (empty: none).

use bytes::Bytes;
use filbert_store::{CodecError, Millis};

use super::{Reader, append_bytes};
use crate::OriginId;

/// The source of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A caller that cannot retry.
    Plain,
    /// An origin, with the number of the batch and the number of the first batch without a received
    /// answer.
    Origin { origin: OriginId, sequence: u64, unanswered: u64 },
    /// A caller that wants to open an origin.
    Open,
}

/// Commands that are applied together or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Submission {
    pub(crate) source: Source,
    pub(crate) touches: Bytes,
    pub(crate) commands: Bytes,
}

/// The contents of an entry: the submissions that one leader has merged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BatchEntry {
    pub(crate) stamp: Millis,
    pub(crate) requirement: u64,
    pub(crate) submissions: Vec<Submission>,
}

/// The version, the timestamp and the requirement.
const FIXED_BYTES: usize = 17;
/// The size of a submission beside its touches and commands.
const SUBMISSION_BYTES_MAX: usize = 33;

pub(crate) fn write_batch(entry: &BatchEntry) -> Bytes {
    let bytes = |submission: &Submission| SUBMISSION_BYTES_MAX + submission.touches.len() + submission.commands.len();
    // The log keeps the whole buffer.
    let mut out = Vec::with_capacity(FIXED_BYTES + entry.submissions.iter().map(bytes).sum::<usize>());
    out.push(1);
    out.extend_from_slice(&entry.stamp.0.to_le_bytes());
    out.extend_from_slice(&entry.requirement.to_le_bytes());
    for submission in &entry.submissions {
        match submission.source {
            Source::Plain => out.push(0),
            Source::Origin { origin, sequence, unanswered } => {
                out.push(1);
                [origin.0, sequence, unanswered].iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
            }
            Source::Open => out.push(2),
        }
        append_bytes(&mut out, &submission.touches);
        append_bytes(&mut out, &submission.commands);
    }
    out.into()
}

pub(crate) fn read_batch(bytes: Bytes) -> Result<BatchEntry, CodecError> {
    let mut reader = Reader::new(&bytes);
    reader.version("the version of a batch")?;
    let stamp = Millis(reader.i64("the time stamp of a batch")?);
    let requirement = reader.u64("the requirement of a batch")?;
    let mut submissions = Vec::new();
    while !reader.is_at_end() {
        let source = match reader.u8("the kind of a submission")? {
            0 => Source::Plain,
            1 => Source::Origin {
                origin: OriginId(reader.u64("the origin of a submission")?),
                sequence: reader.u64("the sequence of a submission")?,
                unanswered: reader.u64("the first unanswered sequence")?,
            },
            2 => Source::Open,
            found => return Err(reader.unexpected("the kind of a submission", u64::from(found), "0 to 2")),
        };
        let touches = reader.shared("the touches of a submission")?;
        let commands = reader.shared("the commands of a submission")?;
        submissions.push(Submission { source, touches, commands });
    }
    Ok(BatchEntry { stamp, requirement, submissions })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_read_as_it_was_written_and_another_version_is_refused() {
        let origin = Source::Origin { origin: OriginId(7), sequence: 8, unanswered: 5 };
        let submissions: Vec<Submission> = [Source::Plain, origin, Source::Open]
            .map(|source| Submission { source, touches: Bytes::from_static(b"t"), commands: Bytes::from_static(b"cc") })
            .into();
        let entry = BatchEntry { stamp: Millis(-3), requirement: 9, submissions };
        let bytes = write_batch(&entry);
        assert_eq!(read_batch(bytes.clone()).unwrap(), entry);
        for end in 0..bytes.len() {
            // A prefix is an error, or a batch with fewer submissions.
            if let Ok(fewer) = read_batch(bytes.slice(..end)) {
                assert!(fewer.submissions.len() < 3);
            }
        }
        let mut other = bytes.to_vec();
        other[0] = 2;
        assert!(read_batch(other.into()).unwrap_err().to_string().contains("version"));
    }
}
