//! Reads commands from a buffer, in place.

use filbert_data::PartitionId;

use super::reader::Reader;
use super::{CodecError, Problem, kind};
use crate::{
    Change, ChangeOf, Command, Expiry, JournalSettings, LogCommand, MapId, MapSettings, Metadata, PutMode, batch, keys,
};

/// The commands of a buffer, in order, each with its partition. Ends with the first error.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    reader: Reader<'a>,
    failed: bool,
}

impl<'a> Decoder<'a> {
    /// Decodes a buffer that an [`Encoder`](super::Encoder) has written.
    ///
    /// # Errors
    /// The buffer is empty, or has a different version.
    pub fn new(bytes: &'a [u8]) -> Result<Self, CodecError> {
        let mut reader = Reader::new(bytes, 0);
        reader.version("the version of commands")?;
        Ok(Decoder { reader, failed: false })
    }
}

impl<'a> Iterator for Decoder<'a> {
    type Item = Result<(PartitionId, LogCommand<'a>), CodecError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed || self.reader.is_at_end() {
            return None;
        }
        let command = command(&mut self.reader);
        self.failed = command.is_err();
        Some(command)
    }
}

fn command<'a>(reader: &mut Reader<'a>) -> Result<(PartitionId, LogCommand<'a>), CodecError> {
    let number = reader.u8("the kind of a command")?;
    if !matches!(number, kind::PUT..=kind::CLAIM_ALL | kind::CREATE_MAP..=kind::SET_LAYOUT) {
        return Err(reader.unexpected("the kind of a command", u64::from(number), "1 to 21 or 32 to 34"));
    }
    let partition = PartitionId(reader.u32("the partition of a command")?);
    let map = MapId(reader.u32("the map of a command")?);
    let command = match number {
        kind::CREATE_MAP => LogCommand::CreateMap { map, settings: settings(reader)? },
        kind::DESTROY_MAP => LogCommand::DestroyMap { map },
        kind::SET_LAYOUT => {
            let (is_there, number) = (reader.flag("whether there is a layout")?, reader.u64("the number of a layout")?);
            LogCommand::SetLayout { map, layout: is_there.then_some(number) }
        }
        number => {
            let now = reader.millis("the time of a command")?;
            let caller = reader.caller("the caller of a command")?;
            LogCommand::Change(Command { map, now, caller, change: change(reader, number)? })
        }
    };
    Ok((partition, command))
}

fn change<'a>(reader: &mut Reader<'a>, number: u8) -> Result<Change<'a>, CodecError> {
    const KEY: &str = "a key";
    Ok(match number {
        kind::PUT => {
            let (expiry, mode) = mode(reader)?;
            ChangeOf::Put { expiry, mode, key: reader.bytes(KEY)?, value: reader.bytes("a value")? }
        }
        kind::REPLACE_IF_SAME => ChangeOf::ReplaceIfSame {
            key: reader.bytes(KEY)?,
            expected: reader.bytes("an expected value")?,
            value: reader.bytes("a value")?,
        },
        kind::REMOVE => ChangeOf::Remove { key: reader.bytes(KEY)? },
        kind::DELETE => ChangeOf::Delete { key: reader.bytes(KEY)? },
        kind::REMOVE_IF_SAME => {
            ChangeOf::RemoveIfSame { key: reader.bytes(KEY)?, expected: reader.bytes("an expected value")? }
        }
        kind::EVICT => ChangeOf::Evict { key: reader.bytes(KEY)? },
        kind::SET_TTL => ChangeOf::SetTtl { ttl_ms: reader.i64("a time to live")?, key: reader.bytes(KEY)? },
        kind::LOCK => {
            let (is_leased, lease_ms) = (reader.flag("whether there is a lease")?, reader.i64("a lease")?);
            let (reference, key) = (reader.i64("a reference")?, reader.bytes(KEY)?);
            ChangeOf::Lock { key, lease_ms: is_leased.then_some(lease_ms), reference }
        }
        kind::UNLOCK => ChangeOf::Unlock { reference: reader.i64("a reference")?, key: reader.bytes(KEY)? },
        kind::FORCE_UNLOCK => ChangeOf::ForceUnlock { reference: reader.i64("a reference")?, key: reader.bytes(KEY)? },
        kind::AWAIT => ChangeOf::Await { key: reader.bytes(KEY)? },
        kind::CLAIM => ChangeOf::Claim { batch: whole(reader, "a batch", batch::broken_at)? },
        kind::WRITE_BATCH => ChangeOf::WriteBatch { batch: whole(reader, "a batch", batch::broken_at)? },
        kind::CLAIM_ALL => ChangeOf::ClaimAll,
        kind::UNCLAIM => ChangeOf::Unclaim,
        kind::CLEAR => ChangeOf::Clear,
        kind::EVICT_ALL => ChangeOf::EvictAll,
        kind::RELEASE_LOCKS => ChangeOf::ReleaseLocks { client: reader.uuid("a client")? },
        kind::EXPIRE => ChangeOf::Expire { limit: reader.size("a limit")? },
        kind::EVICT_KEYS => ChangeOf::EvictKeys { keys: whole(reader, "a list of keys", keys::broken_at)? },
        // All other kinds were rejected above.
        _ => ChangeOf::Touch { read_at: reader.millis("the time of a read")?, key: reader.bytes(KEY)? },
    })
}

/// Reads bytes with an inner format, and checks that all of them have it: applying the command
/// would ignore everything after a broken item.
fn whole<'a>(
    reader: &mut Reader<'a>,
    what: &'static str,
    broken_at: impl Fn(&[u8]) -> Option<usize>,
) -> Result<&'a [u8], CodecError> {
    let bytes = reader.bytes(what)?;
    match broken_at(bytes) {
        None => Ok(bytes),
        Some(at) => {
            let offset = reader.offset() - bytes.len() + at;
            Err(CodecError { what, offset, problem: Problem::Broken { expected: "whole items up to its end" } })
        }
    }
}

fn mode(reader: &mut Reader<'_>) -> Result<(Expiry, PutMode), CodecError> {
    let number = reader.u8("the mode of a put")?;
    if !(1..=7).contains(&number) {
        return Err(reader.unexpected("the mode of a put", u64::from(number), "1 to 7"));
    }
    let expiry = expiry(reader)?;
    let mode = match number {
        1 => PutMode::Put,
        2 => PutMode::Set,
        3 => PutMode::IfAbsent,
        4 => PutMode::Transient,
        5 => PutMode::Try,
        6 => PutMode::Replace,
        // All other modes were rejected above.
        _ => PutMode::Metadata(read_metadata(reader)?),
    };
    Ok((expiry, mode))
}

/// Reads metadata that [`append_metadata`](super::append_metadata) has written.
///
/// # Errors
/// The bytes are too short.
pub fn read_metadata(reader: &mut Reader<'_>) -> Result<Metadata, CodecError> {
    Ok(Metadata {
        created_ms: reader.i64("a time of creation")?,
        updated_ms: reader.i64("a time of update")?,
        accessed_ms: reader.i64("a time of access")?,
        expires_ms: reader.i64("a time of expiry")?,
        hits: reader.u64("a number of hits")?,
        version: reader.u64("a version")?,
        expiry: expiry(reader)?,
    })
}

fn expiry(reader: &mut Reader<'_>) -> Result<Expiry, CodecError> {
    Ok(Expiry { ttl_ms: reader.i64("a time to live")?, max_idle_ms: reader.i64("a max idle time")? })
}

pub(crate) fn settings(reader: &mut Reader<'_>) -> Result<MapSettings, CodecError> {
    let ttl_default_ms = reader.i64("a map's time to live")?;
    let max_idle_default_ms = reader.i64("a map's max idle time")?;
    let eviction_sample_size = reader.size("a map's sample size")?;
    let unlock_memory_max = reader.size("a map's number of unlocks")?;
    let has_journal = reader.flag("whether a map has a journal")?;
    let journal = JournalSettings {
        capacity: reader.size("a journal's capacity")?,
        ttl_ms: reader.i64("a journal's time to live")?,
    };
    let journal = has_journal.then_some(journal);
    Ok(MapSettings { ttl_default_ms, max_idle_default_ms, eviction_sample_size, journal, unlock_memory_max })
}
