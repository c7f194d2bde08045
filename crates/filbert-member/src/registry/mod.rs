//! The registry: a consensus group that all members follow and in which some of them vote.
//!
//! Commands and snapshots are a version byte followed by JSON: they are few and small, and members
//! of different versions must read each other's. Must not know a grid beyond the account of its
//! memory: followers of changes wait for [`Registry::watch`].

mod maps;
mod placement;
mod recoveries;
mod state;

use std::sync::Arc;

use bytes::Bytes;
use filbert_cluster::{Applying, EntryAt, GroupId, OwnedReply, StateMachine, StateMachineError, SubmitError};
use filbert_grid::MemberMemory;
use filbert_store::{CodecError, Millis, Problem};
use parking_lot::RwLock;
use tokio::sync::{oneshot, watch};

pub use maps::MapFacts;
pub(crate) use recoveries::Loss;
pub use state::{ClusterSettings, MemberFacts, RegistryState};
pub(crate) use state::{Command, Reply, redefine, replace};

/// The group of the registry. Groups of partitions are numbered from 0.
pub(crate) const REGISTRY: GroupId = GroupId(u32::MAX);

/// The version of the encoding of commands and snapshots.
const VERSION: u8 = 1;

/// The maximum size of a command in bytes: commands contain names that clients choose.
const COMMAND_BYTES_MAX: usize = 1 << 20;

/// The registry's replica on this member.
pub(crate) struct Registry {
    state: RwLock<Arc<RegistryState>>,
    versions: watch::Sender<u64>,
    memory: Arc<MemberMemory>,
}

impl Registry {
    pub(crate) fn new(memory: Arc<MemberMemory>) -> Self {
        Registry { state: RwLock::default(), versions: watch::Sender::new(0), memory }
    }

    /// Returns the current state.
    pub(crate) fn state(&self) -> Arc<RegistryState> {
        self.state.read().clone()
    }

    /// Returns a receiver of the current version and of later versions.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.versions.subscribe()
    }

    /// Waits until the registry has reached a version.
    pub(crate) async fn reached(&self, version: u64) {
        // The sender lives as long as `self`: the wait does not fail.
        let mut versions = self.versions.subscribe();
        let _version = versions.wait_for(|found| *found >= version).await;
    }

    fn publish(&self, state: RegistryState) {
        let version = state.version;
        *self.state.write() = Arc::new(state);
        self.versions.send_replace(version);
    }
}

pub(crate) fn write_command(command: &Command) -> Bytes {
    let mut out = vec![VERSION];
    // Writing into memory does not fail, and all map keys in a command serialize as strings.
    let _written = serde_json::to_writer(&mut out, command);
    out.into()
}

fn read<'b, T: serde::Deserialize<'b>>(what: &'static str, bytes: &'b [u8]) -> Result<T, CodecError> {
    let broken = |offset, problem| CodecError { what, offset, problem };
    let Some((version, json)) = bytes.split_first() else {
        return Err(broken(0, Problem::TooShort { left: 0, needed: 1 }));
    };
    if *version != VERSION {
        return Err(broken(0, Problem::Unexpected { found: u64::from(*version), expected: "version 1" }));
    }
    serde_json::from_slice(json).map_err(|error| {
        broken(error.column(), Problem::Broken { expected: "a command or a snapshot of the registry" })
    })
}

pub(crate) fn read_command(bytes: &[u8]) -> Result<Command, CodecError> {
    read("a command of the registry", bytes)
}

impl StateMachine for Registry {
    type Awaiting = oneshot::Sender<Result<(Reply, u64), SubmitError>>;
    type Export = Option<Bytes>;
    type Import = Vec<u8>;

    fn log_changed(&self, bytes: isize) {
        self.memory.note_logs(bytes);
    }

    fn check(&self, commands: &Bytes) -> Result<(), SubmitError> {
        if commands.len() > COMMAND_BYTES_MAX {
            let problem = Problem::Broken { expected: "at most 1 MiB" };
            return Err(CodecError { what: "a command of the registry", offset: commands.len(), problem }.into());
        }
        Ok(read_command(commands).map(|_| ())?)
    }

    fn apply(
        &self,
        _: EntryAt,
        submissions: Vec<Applying<Self::Awaiting>>,
    ) -> Result<Vec<Vec<OwnedReply>>, StateMachineError> {
        let mut state = RegistryState::clone(&self.state());
        let mut answered = Vec::new();
        for Applying { commands, awaiting, .. } in submissions {
            let reply = state.apply(read_command(&commands)?);
            answered.extend(awaiting.map(|awaiting| (awaiting, reply, state.version)));
        }
        self.publish(state);
        for (awaiting, reply, version) in answered {
            // The waiter may have gone.
            let _gone = awaiting.send(Ok((reply, version)));
        }
        Ok(Vec::new())
    }

    fn answer(&self, awaiting: Self::Awaiting, answer: Result<Vec<OwnedReply>, SubmitError>) {
        if let Err(error) = answer {
            // The waiter may have gone.
            let _gone = awaiting.send(Err(error));
        }
    }

    fn begin_export(&self) -> Option<Self::Export> {
        let mut out = vec![VERSION];
        serde_json::to_writer(&mut out, &*self.state()).ok()?;
        Some(Some(out.into()))
    }

    fn export_page(&self, export: &mut Self::Export, bytes_min: usize) -> Option<Bytes> {
        let left = export.as_mut()?;
        let page = left.split_to(left.len().min(bytes_min.max(1)));
        if left.is_empty() {
            *export = None;
        }
        Some(page)
    }

    fn begin_import(&self) -> Option<Vec<u8>> {
        Some(Vec::new())
    }

    fn import_page(&self, import: &mut Vec<u8>, page: Bytes) -> Result<(), StateMachineError> {
        import.extend_from_slice(&page);
        Ok(())
    }

    fn check_import(&self, import: &Vec<u8>) -> Result<(), StateMachineError> {
        read::<RegistryState>("a snapshot of the registry", import)?;
        Ok(())
    }

    fn install(&self, import: Vec<u8>) -> Millis {
        if let Ok(state) = read("a snapshot of the registry", &import) {
            self.publish(state);
        }
        Millis(i64::MIN)
    }

    fn reset(&self) {
        self.publish(RegistryState::default());
    }

    fn logged_state(&self) -> Vec<u8> {
        serde_json::to_vec(&*self.state()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use uuid::Uuid;

    use super::*;

    fn apply(registry: &Registry, command: &Command) -> Reply {
        let (awaiting, mut answer) = oneshot::channel();
        let commands = write_command(command);
        let applying = Applying { touches: Bytes::new(), commands, awaiting: Some(awaiting), wants_replies: false };
        let at = EntryAt { stamp: Millis(1), leads: true, reports_events: true };
        registry.apply(at, vec![applying]).unwrap();
        answer.try_recv().unwrap().unwrap().0
    }

    #[test]
    fn a_snapshot_brings_all_of_it() {
        let memory = Arc::new(MemberMemory::new(None));
        let registry = Registry::new(memory.clone());
        let settings = ClusterSettings::default();
        apply(
            &registry,
            &Command::Found { cluster: Uuid::from_u128(1), settings, members: BTreeMap::new(), members_needed: 0 },
        );
        for n in 0..50 {
            let map = MapFacts::new(&format!("map {n}"), &filbert_store::MapSettings::default());
            assert!(matches!(apply(&registry, &Command::MakeMap { map, maps_max: 100 }), Reply::Map(..)));
        }
        let (other, mut export) = (Registry::new(memory), registry.begin_export().unwrap());
        let mut import = other.begin_import().unwrap();
        while let Some(page) = registry.export_page(&mut export, 100) {
            assert!(other.check_import(&import).is_err());
            other.import_page(&mut import, page).unwrap();
        }
        other.check_import(&import).unwrap();
        other.install(import);
        assert_eq!(other.logged_state(), registry.logged_state());
        assert_eq!(*other.watch().borrow(), registry.state().version);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_command_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _command = read_command(&bytes);
            let mut versioned = vec![VERSION];
            versioned.extend_from_slice(&bytes);
            let _command = read_command(&versioned);
        }
    }
}
