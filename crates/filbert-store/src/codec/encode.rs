//! Writes commands into a buffer.

use filbert_data::PartitionId;

use super::{COMMANDS_VERSION, kind};
use crate::{Caller, Change, ChangeOf, Command, Expiry, LogCommand, MapSettings, Metadata, PutMode};

/// A buffer of commands for a log.
#[derive(Clone, Debug)]
pub struct Encoder {
    bytes: Vec<u8>,
    len: usize,
}

/// A command that cannot be encoded: its key or one of its values is longer than a length of 4
/// bytes allows. The encoder is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes in one field of a command, expected at most {}", u32::MAX)]
pub struct TooLong {
    /// The length of the field.
    pub bytes: usize,
}

impl Default for Encoder {
    fn default() -> Self {
        Encoder { bytes: vec![COMMANDS_VERSION], len: 0 }
    }
}

impl Encoder {
    /// Adds a command of a partition.
    ///
    /// # Errors
    /// A field is too long.
    pub fn push(&mut self, partition: PartitionId, command: &LogCommand<'_>) -> Result<(), TooLong> {
        let before = self.bytes.len();
        let pushed = append_command(&mut self.bytes, partition, command);
        match pushed {
            Ok(()) => self.len += 1,
            Err(_) => self.bytes.truncate(before),
        }
        pushed
    }

    /// Number of commands.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no commands.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The encoded commands, for [`Decoder`](super::Decoder).
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the encoded commands, for [`Decoder`](super::Decoder), and removes them from the
    /// encoder.
    #[must_use]
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(self).bytes
    }
}

fn append_command(out: &mut Vec<u8>, partition: PartitionId, command: &LogCommand<'_>) -> Result<(), TooLong> {
    let (number, map) = match command {
        LogCommand::Change(command) => (kind_of(&command.change), command.map),
        LogCommand::CreateMap { map, .. } => (kind::CREATE_MAP, *map),
        LogCommand::DestroyMap { map } => (kind::DESTROY_MAP, *map),
        LogCommand::SetLayout { map, .. } => (kind::SET_LAYOUT, *map),
    };
    out.push(number);
    out.extend_from_slice(&partition.0.to_le_bytes());
    out.extend_from_slice(&map.0.to_le_bytes());
    match command {
        LogCommand::Change(command) => append_change(out, command)?,
        LogCommand::CreateMap { settings, .. } => append_settings(out, settings),
        LogCommand::DestroyMap { .. } => {}
        LogCommand::SetLayout { layout, .. } => {
            out.push(u8::from(layout.is_some()));
            out.extend_from_slice(&layout.unwrap_or(0).to_le_bytes());
        }
    }
    Ok(())
}

fn kind_of(change: &Change<'_>) -> u8 {
    match change {
        ChangeOf::Put { .. } => kind::PUT,
        ChangeOf::ReplaceIfSame { .. } => kind::REPLACE_IF_SAME,
        ChangeOf::Remove { .. } => kind::REMOVE,
        ChangeOf::Delete { .. } => kind::DELETE,
        ChangeOf::RemoveIfSame { .. } => kind::REMOVE_IF_SAME,
        ChangeOf::Evict { .. } => kind::EVICT,
        ChangeOf::SetTtl { .. } => kind::SET_TTL,
        ChangeOf::Lock { .. } => kind::LOCK,
        ChangeOf::Unlock { .. } => kind::UNLOCK,
        ChangeOf::ForceUnlock { .. } => kind::FORCE_UNLOCK,
        ChangeOf::Await { .. } => kind::AWAIT,
        ChangeOf::Claim { .. } => kind::CLAIM,
        ChangeOf::ClaimAll => kind::CLAIM_ALL,
        ChangeOf::WriteBatch { .. } => kind::WRITE_BATCH,
        ChangeOf::Unclaim => kind::UNCLAIM,
        ChangeOf::Clear => kind::CLEAR,
        ChangeOf::EvictAll => kind::EVICT_ALL,
        ChangeOf::ReleaseLocks { .. } => kind::RELEASE_LOCKS,
        ChangeOf::Expire { .. } => kind::EXPIRE,
        ChangeOf::EvictKeys { .. } => kind::EVICT_KEYS,
        ChangeOf::Touch { .. } => kind::TOUCH,
    }
}

fn append_change(out: &mut Vec<u8>, command: &Command<'_>) -> Result<(), TooLong> {
    append_i64(out, command.now.0);
    append_caller(out, command.caller);
    match command.change {
        ChangeOf::Put { key, value, expiry, mode } => {
            append_mode(out, expiry, mode);
            append_bytes(out, key)?;
            append_bytes(out, value)
        }
        ChangeOf::ReplaceIfSame { key, expected, value } => {
            append_bytes(out, key)?;
            append_bytes(out, expected)?;
            append_bytes(out, value)
        }
        ChangeOf::RemoveIfSame { key, expected } => {
            append_bytes(out, key)?;
            append_bytes(out, expected)
        }
        ChangeOf::Remove { key } | ChangeOf::Delete { key } | ChangeOf::Evict { key } | ChangeOf::Await { key } => {
            append_bytes(out, key)
        }
        ChangeOf::SetTtl { key, ttl_ms: number }
        | ChangeOf::Unlock { key, reference: number }
        | ChangeOf::ForceUnlock { key, reference: number }
        | ChangeOf::Touch { key, read_at: crate::Millis(number) } => {
            append_i64(out, number);
            append_bytes(out, key)
        }
        ChangeOf::Lock { key, lease_ms, reference } => {
            out.push(u8::from(lease_ms.is_some()));
            append_i64(out, lease_ms.unwrap_or(0));
            append_i64(out, reference);
            append_bytes(out, key)
        }
        ChangeOf::Claim { batch: bytes }
        | ChangeOf::WriteBatch { batch: bytes }
        | ChangeOf::EvictKeys { keys: bytes } => append_bytes(out, bytes),
        ChangeOf::ClaimAll | ChangeOf::Unclaim | ChangeOf::Clear | ChangeOf::EvictAll => Ok(()),
        ChangeOf::ReleaseLocks { client } => {
            out.extend_from_slice(client.as_bytes());
            Ok(())
        }
        ChangeOf::Expire { limit } => {
            append_size(out, limit);
            Ok(())
        }
    }
}

fn append_mode(out: &mut Vec<u8>, expiry: Expiry, mode: PutMode) {
    out.push(match mode {
        PutMode::Put => 1,
        PutMode::Set => 2,
        PutMode::IfAbsent => 3,
        PutMode::Transient => 4,
        PutMode::Try => 5,
        PutMode::Replace => 6,
        PutMode::Metadata(_) => 7,
    });
    append_i64(out, expiry.ttl_ms);
    append_i64(out, expiry.max_idle_ms);
    if let PutMode::Metadata(metadata) = mode {
        append_metadata(out, &metadata);
    }
}

/// Writes metadata as in a command, see [`Encoder`].
pub fn append_metadata(out: &mut Vec<u8>, metadata: &Metadata) {
    for time in [metadata.created_ms, metadata.updated_ms, metadata.accessed_ms, metadata.expires_ms] {
        append_i64(out, time);
    }
    out.extend_from_slice(&metadata.hits.to_le_bytes());
    out.extend_from_slice(&metadata.version.to_le_bytes());
    append_i64(out, metadata.expiry.ttl_ms);
    append_i64(out, metadata.expiry.max_idle_ms);
}

fn append_i64(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn append_size(out: &mut Vec<u8>, size: usize) {
    out.extend_from_slice(&(size as u64).to_le_bytes());
}

pub(crate) fn append_settings(out: &mut Vec<u8>, settings: &MapSettings) {
    append_i64(out, settings.ttl_default_ms);
    append_i64(out, settings.max_idle_default_ms);
    append_size(out, settings.eviction_sample_size);
    append_size(out, settings.unlock_memory_max);
    out.push(u8::from(settings.journal.is_some()));
    append_size(out, settings.journal.map_or(0, |journal| journal.capacity));
    append_i64(out, settings.journal.map_or(0, |journal| journal.ttl_ms));
}

pub(crate) fn append_caller(out: &mut Vec<u8>, caller: Caller) {
    out.extend_from_slice(caller.client.as_bytes());
    append_i64(out, caller.thread);
}

pub(crate) fn append_bytes(out: &mut Vec<u8>, bytes: &[u8]) -> Result<(), TooLong> {
    let length = u32::try_from(bytes.len()).map_err(|_| TooLong { bytes: bytes.len() })?;
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(bytes);
    Ok(())
}
