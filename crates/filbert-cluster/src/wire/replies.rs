//! Replies that own their bytes, and their encoding: the caller receives them after the partition
//! has continued, and an origin may ask for them again.
//!
//! | bytes | contents |
//! |---|---|
//! | 1 | version: 1 |
//! | 4 | number of replies |
//! | .. | for each reply, 1 byte of kind, and the contents that `append` below writes |

use bytes::Bytes;
use filbert_store::{BatchPlace, Caller, CodecError, MapId, Millis, Reply, StoreError, Value};

use super::{Reader, append_bytes};

/// The reply to a command, like [`Reply`], with its own bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedReply {
    /// The command is done. It has no result.
    Done,
    /// Whether the command had an effect.
    Flag(bool),
    /// The previous value, or the value that is still there.
    Previous(Option<Bytes>),
    /// A count.
    Count(u64),
    /// Another caller has locked the key. Nothing was changed.
    Locked {
        /// The end of the lease, if it has one.
        free_at: Option<Millis>,
    },
    /// The keys of a batch are claimed. The positions of items that differ from their expected
    /// state.
    Claimed(Vec<BatchPlace>),
    /// Another caller holds the key at this position.
    Held(BatchPlace),
    /// The caller does not hold the lock.
    NotOwner {
        /// The owner of the lock, if there is one.
        owner: Option<Caller>,
    },
    /// The command cannot be applied. Nothing was changed.
    Refused(StoreError),
}

impl OwnedReply {
    /// Copies a reply.
    #[must_use]
    pub fn of(reply: &Reply<'_>) -> Self {
        match reply {
            Reply::Done => OwnedReply::Done,
            Reply::Flag(flag) => OwnedReply::Flag(*flag),
            Reply::Previous(value) => {
                OwnedReply::Previous(value.as_ref().map(|value| Bytes::copy_from_slice(value.as_bytes())))
            }
            Reply::Count(count) => OwnedReply::Count(*count as u64),
            Reply::Locked { free_at } => OwnedReply::Locked { free_at: *free_at },
            Reply::Claimed(places) => OwnedReply::Claimed(places.clone()),
            Reply::Held(place) => OwnedReply::Held(*place),
            Reply::NotOwner { owner } => OwnedReply::NotOwner { owner: *owner },
            Reply::Refused(error) => OwnedReply::Refused(*error),
        }
    }
}

impl From<Reply<'_>> for OwnedReply {
    fn from(reply: Reply<'_>) -> Self {
        OwnedReply::of(&reply)
    }
}

impl From<OwnedReply> for Reply<'static> {
    fn from(reply: OwnedReply) -> Self {
        match reply {
            OwnedReply::Done => Reply::Done,
            OwnedReply::Flag(flag) => Reply::Flag(flag),
            OwnedReply::Previous(value) => Reply::Previous(value.map(|value| Value::copied(value[..].into()))),
            OwnedReply::Count(count) => Reply::Count(usize::try_from(count).unwrap_or(usize::MAX)),
            OwnedReply::Locked { free_at } => Reply::Locked { free_at },
            OwnedReply::Claimed(places) => Reply::Claimed(places),
            OwnedReply::Held(place) => Reply::Held(place),
            OwnedReply::NotOwner { owner } => Reply::NotOwner { owner },
            OwnedReply::Refused(error) => Reply::Refused(error),
        }
    }
}

/// Encodes replies, see the table above.
#[must_use]
pub fn write_replies(replies: &[OwnedReply]) -> Bytes {
    let mut out = vec![1];
    out.extend_from_slice(&(replies.len() as u32).to_le_bytes());
    replies.iter().for_each(|reply| append(&mut out, reply));
    out.into()
}

fn append(out: &mut Vec<u8>, reply: &OwnedReply) {
    let mut kind_and = |kind: u8, numbers: &[u64]| {
        out.push(kind);
        numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    };
    match reply {
        OwnedReply::Done => kind_and(0, &[]),
        OwnedReply::Flag(flag) => kind_and(if *flag { 2 } else { 1 }, &[]),
        OwnedReply::Previous(None) => kind_and(3, &[]),
        OwnedReply::Previous(Some(value)) => {
            kind_and(4, &[]);
            append_bytes(out, value);
        }
        OwnedReply::Count(count) => kind_and(5, &[*count]),
        OwnedReply::Locked { free_at: None } => kind_and(6, &[]),
        OwnedReply::Locked { free_at: Some(at) } => kind_and(7, &[at.0 as u64]),
        OwnedReply::Claimed(places) => {
            kind_and(8, &[places.len() as u64]);
            places.iter().for_each(|place| out.extend_from_slice(&place.to_le_bytes()));
        }
        OwnedReply::Held(place) => kind_and(9, &[u64::from(*place)]),
        OwnedReply::NotOwner { owner: None } => kind_and(10, &[]),
        OwnedReply::NotOwner { owner: Some(owner) } => {
            kind_and(11, &[]);
            out.extend_from_slice(owner.client.as_bytes());
            out.extend_from_slice(&owner.thread.to_le_bytes());
        }
        OwnedReply::Refused(StoreError::KeyTooLarge { bytes, bytes_max }) => {
            kind_and(12, &[*bytes as u64, *bytes_max as u64]);
        }
        OwnedReply::Refused(StoreError::ValueTooLarge { bytes, bytes_max }) => {
            kind_and(13, &[*bytes as u64, *bytes_max as u64]);
        }
        OwnedReply::Refused(StoreError::NoSuchMap(map)) => kind_and(14, &[u64::from(map.0)]),
    }
}

/// Decodes replies of [`write_replies`]. Values are slices of `bytes`.
///
/// # Errors
/// The bytes are not replies, or have another version.
pub fn read_replies(bytes: Bytes) -> Result<Vec<OwnedReply>, CodecError> {
    let mut reader = Reader::new(&bytes);
    reader.version("the version of replies")?;
    let count = reader.u32("the number of replies")?;
    let mut replies = Vec::new();
    for _ in 0..count {
        replies.push(read(&mut reader)?);
    }
    reader.end("replies")?;
    Ok(replies)
}

fn read(reader: &mut Reader<'_>) -> Result<OwnedReply, CodecError> {
    const WHAT: &str = "a reply";
    Ok(match reader.u8(WHAT)? {
        0 => OwnedReply::Done,
        1 => OwnedReply::Flag(false),
        2 => OwnedReply::Flag(true),
        3 => OwnedReply::Previous(None),
        4 => OwnedReply::Previous(Some(reader.shared(WHAT)?)),
        5 => OwnedReply::Count(reader.u64(WHAT)?),
        6 => OwnedReply::Locked { free_at: None },
        7 => OwnedReply::Locked { free_at: Some(reader.millis(WHAT)?) },
        8 => {
            let count = reader.u64(WHAT)?;
            let mut places = Vec::new();
            for _ in 0..count {
                places.push(reader.u32(WHAT)?);
            }
            OwnedReply::Claimed(places)
        }
        9 => OwnedReply::Held(reader.u64(WHAT)? as u32),
        10 => OwnedReply::NotOwner { owner: None },
        11 => OwnedReply::NotOwner { owner: Some(reader.caller(WHAT)?) },
        12 => OwnedReply::Refused(StoreError::KeyTooLarge { bytes: reader.size(WHAT)?, bytes_max: reader.size(WHAT)? }),
        13 => {
            OwnedReply::Refused(StoreError::ValueTooLarge { bytes: reader.size(WHAT)?, bytes_max: reader.size(WHAT)? })
        }
        14 => OwnedReply::Refused(StoreError::NoSuchMap(MapId(reader.u64(WHAT)? as u32))),
        found => return Err(reader.unexpected(WHAT, u64::from(found), "0 to 14")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_as_they_were_written() {
        let replies = vec![
            OwnedReply::Done,
            OwnedReply::Flag(true),
            OwnedReply::Flag(false),
            OwnedReply::Previous(None),
            OwnedReply::Previous(Some(Bytes::from_static(b"v"))),
            OwnedReply::Count(9),
            OwnedReply::Locked { free_at: None },
            OwnedReply::Locked { free_at: Some(Millis(-1)) },
            OwnedReply::Claimed(vec![1, 2]),
            OwnedReply::Held(3),
            OwnedReply::NotOwner { owner: None },
            OwnedReply::NotOwner { owner: Some(Caller { client: uuid::Uuid::from_u128(5), thread: -6 }) },
            OwnedReply::Refused(StoreError::KeyTooLarge { bytes: 1, bytes_max: 2 }),
            OwnedReply::Refused(StoreError::ValueTooLarge { bytes: 1, bytes_max: 2 }),
            OwnedReply::Refused(StoreError::NoSuchMap(MapId(4))),
        ];
        let bytes = write_replies(&replies);
        assert_eq!(read_replies(bytes.clone()).unwrap(), replies);
        for end in 0..bytes.len() {
            assert!(read_replies(bytes.slice(..end)).is_err());
        }
    }
}
