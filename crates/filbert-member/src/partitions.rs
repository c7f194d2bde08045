//! The state machine of a group of the grid's partitions.

use std::sync::{Arc, OnceLock, Weak};

use bytes::Bytes;
use filbert_cluster::{
    Applying, BootRuntime, EntryAt, Group, GroupId, MemberId, OwnedReply, StateMachine, StateMachineError, SubmitError,
};
use filbert_grid::replication::{self, Answers, GroupExport, GroupImport, Part, Role};
use filbert_grid::{Grid, MemberMemory};
use filbert_store::{Decoder, Millis};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::errors::grid_submit_error;
use crate::registry::Registry;

/// The slot of a member's grid. The grid is created after the groups, and dropped before them.
#[derive(Clone, Default)]
pub(crate) struct GridSlot(Arc<OnceLock<Weak<Grid>>>);

impl GridSlot {
    pub(crate) fn set(&self, grid: &Arc<Grid>) {
        // The slot is empty: there is one grid for each member.
        let _first = self.0.set(Arc::downgrade(grid));
    }

    pub(crate) fn get(&self) -> Option<Arc<Grid>> {
        self.0.get()?.upgrade()
    }
}

/// A group of partitions on this member, with its log.
pub(crate) type PartitionGroup = Group<BootRuntime, GridPartitions>;

/// The partitions of one group on this member.
pub(crate) struct GridPartitions {
    group: GroupId,
    groups: u32,
    partitions: u32,
    grid: GridSlot,
    registry: Arc<Registry>,
    memory: Arc<MemberMemory>,
}

impl GridPartitions {
    pub(crate) fn new(
        group: GroupId,
        (groups, partitions): (u32, u32),
        grid: GridSlot,
        registry: Arc<Registry>,
        memory: Arc<MemberMemory>,
    ) -> Self {
        GridPartitions { group, groups, partitions, grid, registry, memory }
    }

    fn of_grid(&self) -> replication::GroupId {
        replication::GroupId(self.group.0)
    }

    fn grid(&self) -> Result<Arc<Grid>, StateMachineError> {
        self.grid.get().ok_or_else(|| StateMachineError::Unfit("this member's grid is gone".to_owned()))
    }
}

fn unfit(error: &impl ToString) -> StateMachineError {
    StateMachineError::Unfit(error.to_string())
}

/// Runs long work, such as building indexes, without blocking the tasks of other groups on the same
/// thread.
fn beside_other_tasks<T>(work: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(work),
        _ => work(),
    }
}

impl StateMachine for GridPartitions {
    type Awaiting = Answers;
    type Export = GroupExport;
    type Import = GroupImport;

    fn check(&self, commands: &Bytes) -> Result<(), SubmitError> {
        for command in Decoder::new(commands)? {
            let (partition, _) = command?;
            if partition.0 >= self.partitions || GroupId::of(partition, self.groups) != self.group {
                return Err(SubmitError::OtherGroup { partition, group: self.group });
            }
        }
        Ok(())
    }

    fn requirement(&self) -> u64 {
        self.registry.state().version
    }

    async fn reached(&self, requirement: u64) {
        self.registry.reached(requirement).await;
    }

    fn touches_for(&self, commands: &Bytes, stamp: Millis) -> Bytes {
        let touches = self.grid.get().and_then(|grid| grid.touches_for(commands, stamp).ok().flatten());
        touches.map(Bytes::from).unwrap_or_default()
    }

    fn touches_until(&self, now: Millis, until: Millis, limit: usize) -> Bytes {
        let touches = self.grid.get().and_then(|grid| grid.touches_until(self.of_grid(), now, until, limit));
        touches.map(Bytes::from).unwrap_or_default()
    }

    fn forget_reads(&self) {
        if let Some(grid) = self.grid.get() {
            grid.forget_reads(self.of_grid());
        }
    }

    fn log_changed(&self, bytes: isize) {
        self.memory.note_logs(bytes);
    }

    fn leadership_gained(&self) {
        if let Some(grid) = self.grid.get() {
            grid.leadership_gained(self.of_grid());
        }
    }

    fn lease_gained(&self) {
        if let Some(grid) = self.grid.get() {
            grid.lease_gained(self.of_grid());
        }
    }

    fn leadership_lost(&self, leader: Option<MemberId>) {
        let hint =
            leader.map_or_else(|| "nobody leads it now".to_owned(), |leader| format!("member {leader} leads it"));
        if let Some(grid) = self.grid.get() {
            grid.leadership_lost(self.of_grid(), &hint);
        }
    }

    /// The grid delivers the replies, under the locks of the partitions. The list of kept replies
    /// is empty, as no submission here has an origin.
    fn apply(
        &self,
        at: EntryAt,
        submissions: Vec<Applying<Answers>>,
    ) -> Result<Vec<Vec<OwnedReply>>, StateMachineError> {
        let grid = self.grid()?;
        let (mut parts, mut bytes) = (Vec::with_capacity(submissions.len()), Vec::with_capacity(submissions.len()));
        for Applying { touches, commands, awaiting, .. } in submissions {
            if !touches.is_empty() {
                bytes.push((touches, None));
            }
            if !commands.is_empty() {
                bytes.push((commands, awaiting));
            }
        }
        for (commands, answers) in &mut bytes {
            parts.push(Part { commands, answers: answers.take() });
        }
        let role = Role { leads: at.leads, notifies: at.reports_events };
        grid.apply_batch(at.stamp, role, &mut parts).map_err(|error| unfit(&error))?;
        Ok(Vec::new())
    }

    fn answer(&self, awaiting: Answers, answer: Result<Vec<OwnedReply>, SubmitError>) {
        if let Err(error) = answer {
            awaiting.refuse(grid_submit_error(self.of_grid(), &error));
        }
    }

    fn begin_export(&self) -> Option<GroupExport> {
        self.grid.get()?.begin_export(self.of_grid())
    }

    fn export_page(&self, export: &mut GroupExport, bytes_min: usize) -> Option<Bytes> {
        export.page(bytes_min).map(Bytes::from)
    }

    fn begin_import(&self) -> Option<GroupImport> {
        self.grid.get()?.begin_import(self.of_grid())
    }

    fn import_page(&self, import: &mut GroupImport, page: Bytes) -> Result<(), StateMachineError> {
        Ok(import.page(&page)?)
    }

    fn check_import(&self, import: &GroupImport) -> Result<(), StateMachineError> {
        let (found, expected) = import.progress();
        if found != expected {
            return Err(StateMachineError::Unfit(format!("it has {found} partitions, expected {expected}")));
        }
        Ok(())
    }

    fn install(&self, import: GroupImport) -> Millis {
        match self.grid.get() {
            Some(grid) => beside_other_tasks(|| grid.install(import)),
            None => Millis(i64::MIN),
        }
    }

    fn reset(&self) {
        if let Some(grid) = self.grid.get() {
            beside_other_tasks(|| grid.give_up(self.of_grid()));
        }
    }

    fn logged_state(&self) -> Vec<u8> {
        self.grid.get().map_or_else(Vec::new, |grid| grid.logged_state(self.of_grid()))
    }
}
