//! A state machine of bare `filbert-store` partitions without a grid, for simulations and
//! benchmarks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use filbert_data::PartitionId;
use filbert_store::{
    Caller, Change, Command, Decoder, Encoder, Event, LogCommand, MapId, Millis, MultiPartitionExport,
    MultiPartitionImport, NoLayouts, Observer, Partition, PartitionSettings,
};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::state_machine::{Applying, EntryAt, StateMachine, StateMachineError};
use crate::{GroupId, GroupSettings, OwnedReply, SubmitError};

/// The partitions of one group on one member.
pub struct Partitions {
    group: GroupId,
    groups: u32,
    hash_seed: u64,
    cells: Arc<Cells>,
    listener: Option<Arc<ChangeListener>>,
    room: Option<Arc<RoomForImport>>,
}

/// Whether an import may begin now.
pub type RoomForImport = dyn Fn() -> bool + Send + Sync;

/// A listener that receives each change on every member, and whether this member reports it.
pub type ChangeListener = dyn Fn(&Event<'_>, bool) + Send + Sync;

/// Passes changes to a listener.
struct Passing<'l>(Option<(&'l ChangeListener, bool)>);

impl Observer for Passing<'_> {
    fn observe(&mut self, event: &Event<'_>) {
        if let Some((listener, reports_events)) = self.0 {
            listener(event, reports_events);
        }
    }
}

struct Cells {
    partitions: Vec<Mutex<Partition>>,
    is_exporting: AtomicBool,
}

impl Partitions {
    /// Creates the empty partitions of a group.
    #[must_use]
    pub fn new(group: GroupId, settings: &GroupSettings, hash_seed: u64) -> Self {
        let groups = settings.groups.max(1);
        let ids = (0..settings.partitions).map(PartitionId).filter(|id| GroupId::of(*id, groups) == group);
        let make = |id| Mutex::new(new_partition(id, hash_seed));
        let cells = Cells { partitions: ids.map(make).collect(), is_exporting: AtomicBool::new(false) };
        Partitions { group, groups, hash_seed, cells: Arc::new(cells), listener: None, room: None }
    }

    /// Adds a listener of all changes.
    #[must_use]
    pub fn with_listener(self, listener: Arc<ChangeListener>) -> Self {
        Partitions { listener: Some(listener), ..self }
    }

    /// Asks before each import whether there is room for it.
    #[must_use]
    pub fn with_room_for_imports(self, room: Arc<RoomForImport>) -> Self {
        Partitions { room: Some(room), ..self }
    }

    /// Returns the cell of a partition, if it belongs to this group.
    pub(crate) fn cell(&self, partition: PartitionId) -> Option<&Mutex<Partition>> {
        let place = usize::try_from(partition.0 / self.groups).ok()?;
        self.cells.partitions.get(place).filter(|_| GroupId::of(partition, self.groups) == self.group)
    }

    fn ids(&self) -> impl Iterator<Item = PartitionId> + use<> {
        let (group, groups) = (self.group.0, self.groups);
        (0..self.cells.partitions.len() as u32).map(move |place| PartitionId(place * groups + group))
    }

    fn apply_commands(
        &self,
        commands: &Bytes,
        at: EntryAt,
        mut replied: impl FnMut(OwnedReply),
    ) -> Result<(), StateMachineError> {
        if commands.is_empty() {
            return Ok(());
        }
        for command in Decoder::new(commands)? {
            let (id, command) = command?;
            let command = match command {
                // All commands of a batch happen at the leader's stamp.
                LogCommand::Change(command) => LogCommand::Change(Command { now: at.stamp, ..command }),
                command => command,
            };
            let Some(cell) = self.cell(id) else {
                return Err(StateMachineError::Unfit(format!("{id} is not of group {}", self.group)));
            };
            let mut observer = Passing(self.listener.as_deref().map(|listener| (listener, at.reports_events)));
            replied(cell.lock().apply_logged(&command, &NoLayouts, &mut observer).into());
        }
        Ok(())
    }
}

/// A snapshot of partitions, exported page by page.
pub struct Exported {
    cells: Arc<Cells>,
    export: MultiPartitionExport,
}

impl Drop for Exported {
    fn drop(&mut self) {
        self.cells.partitions.iter().for_each(|cell| cell.lock().end_export());
        self.cells.is_exporting.store(false, Ordering::SeqCst);
    }
}

impl StateMachine for Partitions {
    type Awaiting = oneshot::Sender<Result<Vec<OwnedReply>, SubmitError>>;
    type Export = Exported;
    type Import = MultiPartitionImport;

    fn check(&self, commands: &Bytes) -> Result<(), SubmitError> {
        for command in Decoder::new(commands)? {
            let (partition, _) = command?;
            if self.cell(partition).is_none() {
                return Err(SubmitError::OtherGroup { partition, group: self.group });
            }
        }
        Ok(())
    }

    fn touches_for(&self, commands: &Bytes, stamp: Millis) -> Bytes {
        let mut touches = Encoder::default();
        for (partition, command) in Decoder::new(commands).into_iter().flatten().flatten() {
            let (LogCommand::Change(command), Some(cell)) = (command, self.cell(partition)) else { continue };
            let mut touch = touching(&mut touches, partition, stamp);
            cell.lock().touches_for(&Command { now: stamp, ..command }, &mut touch);
        }
        if touches.is_empty() { Bytes::new() } else { touches.take().into() }
    }

    fn touches_until(&self, now: Millis, until: Millis, limit: usize) -> Bytes {
        let mut touches = Encoder::default();
        for (partition, cell) in self.ids().zip(&self.cells.partitions) {
            let mut touch = touching(&mut touches, partition, now);
            cell.lock().touches_until(now, until, limit, &mut touch);
        }
        if touches.is_empty() { Bytes::new() } else { touches.take().into() }
    }

    fn forget_reads(&self) {
        self.cells.partitions.iter().for_each(|cell| cell.lock().forget_reads());
    }

    fn apply(
        &self,
        at: EntryAt,
        submissions: Vec<Applying<Self::Awaiting>>,
    ) -> Result<Vec<Vec<OwnedReply>>, StateMachineError> {
        let mut all = Vec::with_capacity(submissions.len());
        for Applying { touches, commands, awaiting, wants_replies } in submissions {
            self.apply_commands(&touches, at, |_| {})?;
            let mut replies = Vec::new();
            self.apply_commands(&commands, at, |reply| replies.push(reply))?;
            let kept = if wants_replies { replies.clone() } else { Vec::new() };
            if let Some(awaiting) = awaiting {
                self.answer(awaiting, Ok(replies));
            }
            all.push(kept);
        }
        Ok(all)
    }

    fn answer(&self, awaiting: Self::Awaiting, answer: Result<Vec<OwnedReply>, SubmitError>) {
        // The waiter may have gone.
        let _gone = awaiting.send(answer);
    }

    fn begin_export(&self) -> Option<Exported> {
        if self.cells.is_exporting.swap(true, Ordering::SeqCst) {
            return None;
        }
        for cell in &self.cells.partitions {
            let begun = cell.lock().begin_export();
            debug_assert!(begun, "a group makes one snapshot at a time");
        }
        Some(Exported { cells: Arc::clone(&self.cells), export: MultiPartitionExport::new(self.ids().collect()) })
    }

    fn export_page(&self, exported: &mut Exported, bytes_min: usize) -> Option<Bytes> {
        let export = |id, page: &mut Vec<u8>, bytes_min| {
            self.cell(id).is_some_and(|cell| cell.lock().export_page(page, bytes_min))
        };
        exported.export.page(bytes_min, export).map(Bytes::from)
    }

    fn begin_import(&self) -> Option<MultiPartitionImport> {
        let has_room = self.room.as_ref().is_none_or(|has_room| has_room());
        has_room.then(|| MultiPartitionImport::new(self.ids().collect(), self.hash_seed))
    }

    fn import_page(&self, taken: &mut MultiPartitionImport, page: Bytes) -> Result<(), StateMachineError> {
        Ok(taken.page(&page, &NoLayouts)?)
    }

    fn check_import(&self, taken: &MultiPartitionImport) -> Result<(), StateMachineError> {
        let (found, expected) = taken.progress();
        if found != expected {
            return Err(StateMachineError::Unfit(format!("it has {found} partitions, expected {expected}")));
        }
        Ok(())
    }

    fn install(&self, taken: MultiPartitionImport) -> Millis {
        let mut latest = Millis(i64::MIN);
        for (cell, partition) in self.cells.partitions.iter().zip(taken.finish()) {
            latest = latest.max(partition.time());
            *cell.lock() = partition;
        }
        latest
    }

    fn reset(&self) {
        for (id, cell) in self.ids().zip(&self.cells.partitions) {
            *cell.lock() = new_partition(id, self.hash_seed);
        }
    }

    fn logged_state(&self) -> Vec<u8> {
        self.cells.partitions.iter().flat_map(|cell| cell.lock().logged_state()).collect()
    }
}

fn new_partition(id: PartitionId, hash_seed: u64) -> Partition {
    Partition::new(PartitionSettings { id, hash_seed, exact_read_times: true })
}

fn touching(touches: &mut Encoder, partition: PartitionId, now: Millis) -> impl FnMut(MapId, &[u8], Millis) {
    move |map, key, read_at| {
        let change = Change::Touch { key, read_at };
        // A key in the store is short enough.
        let _fits = touches.push(partition, &Command { map, now, caller: Caller::default(), change }.into());
    }
}
