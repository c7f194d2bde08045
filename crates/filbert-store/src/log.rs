//! What a log carries for a partition: changes, and the life of its maps.
//!
//! A partition under a log is a function of these commands alone. What a command cannot say, because it holds code or memory
//! of the member that applies it, the member brings along: a layout is named by a number, and a [`LayoutSource`] has it. What
//! it brings may differ from member to member, as indexes and columns decide nothing. Summaries over the partitions of a
//! member ([`Partition::set_signature`]) are the member's own altogether, and no command.

use std::sync::Arc;

use crate::{Command, Layout, MapId, MapSettings, Observer, Partition, Reply, StoreError};

/// A command as a log carries it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogCommand<'a> {
    /// A change of entries, locks or claims; replies and refusals as [`Partition::apply`].
    Change(Command<'a>),
    /// Makes a map, or gives an existing one other settings; `Done`.
    CreateMap {
        /// The map.
        map: MapId,
        /// Its settings.
        settings: MapSettings,
    },
    /// Drops a map with its locks and its journal, without events; `Count` of its entries.
    DestroyMap {
        /// The map.
        map: MapId,
    },
    /// Says what the map keeps beside its records; `Done`. Takes time for every entry.
    SetLayout {
        /// The map.
        map: MapId,
        /// By which the member knows the layout; `None` = nothing is kept.
        layout: Option<u64>,
    },
}

impl<'a> From<Command<'a>> for LogCommand<'a> {
    fn from(command: Command<'a>) -> Self {
        LogCommand::Change(command)
    }
}

/// Where a member has the layouts that its log names.
pub trait LayoutSource {
    /// The layout of a map with this number; `None` if this member keeps nothing beside the map's records.
    fn layout(&self, map: MapId, number: u64) -> Option<Arc<Layout>>;
}

/// Keeps nothing beside records.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLayouts;

impl LayoutSource for NoLayouts {
    fn layout(&self, _map: MapId, _number: u64) -> Option<Arc<Layout>> {
        None
    }
}

impl Partition {
    /// Applies a command of the log. All replicas that apply the same ones give the same replies and events.
    pub fn apply_logged<'p>(
        &'p mut self,
        command: &LogCommand<'_>,
        layouts: &dyn LayoutSource,
        observer: &mut dyn Observer,
    ) -> Reply<'p> {
        match command {
            LogCommand::Change(command) => self.apply(command, observer),
            LogCommand::CreateMap { map, settings } => {
                self.create_map(*map, settings.clone());
                Reply::Done
            }
            LogCommand::DestroyMap { map } => Reply::Count(self.destroy_map(*map)),
            LogCommand::SetLayout { map, layout } => {
                if !self.has_map(*map) {
                    return Reply::Refused(StoreError::NoSuchMap(*map));
                }
                self.follow_layout(*map, *layout, layouts);
                Reply::Done
            }
        }
    }

    /// Gives a map the layout that the log names, as this member has it.
    pub(crate) fn follow_layout(&mut self, map: MapId, number: Option<u64>, layouts: &dyn LayoutSource) {
        self.change_layout(map, Some(number), number.and_then(|number| layouts.layout(map, number)));
    }
}
