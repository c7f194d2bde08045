//! The commands of a log for a partition: changes, and the creation, destruction and layouts of
//! maps.
//!
//! A partition that follows a log depends only on these commands. A command cannot contain code or
//! memory of a member, such as a layout: it names the layout by a number, and the member's
//! [`LayoutSource`] provides it. Layouts may differ between members, because indexes and columns
//! have no influence on the results of commands. The summaries over all partitions of a member
//! ([`Partition::set_signature`]) belong to the member alone, and are not set by commands.

use std::sync::Arc;

use crate::{Command, Layout, MapId, MapSettings, Observer, Partition, Reply, StoreError};

/// A command in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogCommand<'a> {
    /// A change of entries, locks or claims. Replies and errors are those of [`Partition::apply`].
    Change(Command<'a>),
    /// Creates a map, or changes the settings of an existing one. Replies `Done`.
    CreateMap {
        /// The map.
        map: MapId,
        /// The settings of the map.
        settings: MapSettings,
    },
    /// Destroys a map with its locks and its journal, without events. Replies `Count` of its
    /// entries.
    DestroyMap {
        /// The map.
        map: MapId,
    },
    /// Sets the indexes and columns of a map. Replies `Done`. Takes time for every entry.
    SetLayout {
        /// The map.
        map: MapId,
        /// The number of the layout; `None` = no indexes and columns.
        layout: Option<u64>,
    },
}

impl<'a> From<Command<'a>> for LogCommand<'a> {
    fn from(command: Command<'a>) -> Self {
        LogCommand::Change(command)
    }
}

/// The layouts of a member, by the numbers in its log.
pub trait LayoutSource {
    /// The layout of a map with this number; `None` if this member has no indexes and columns for
    /// the map.
    fn layout(&self, map: MapId, number: u64) -> Option<Arc<Layout>>;
}

/// A source without layouts.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoLayouts;

impl LayoutSource for NoLayouts {
    fn layout(&self, _map: MapId, _number: u64) -> Option<Arc<Layout>> {
        None
    }
}

impl Partition {
    /// Applies a command of the log. All replicas that apply the same commands give the same
    /// replies and events.
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

    /// Sets the layout of a map to this member's layout with the number in the log.
    pub(crate) fn follow_layout(&mut self, map: MapId, number: Option<u64>, layouts: &dyn LayoutSource) {
        self.change_layout(map, Some(number), number.and_then(|number| layouts.layout(map, number)));
    }
}
