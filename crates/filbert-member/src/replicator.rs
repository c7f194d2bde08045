//! The logs of this member's groups, as the grid asks for them.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use filbert_cluster::{BootRuntime, Group, SubmitError};
use filbert_grid::GridError;
use filbert_grid::replication::{self, Answers, ForwardedReply, GroupId, NotTaken, Replicator, Term};
use filbert_store::{MapId, MapSettings, Millis};
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::asking::Asking;
use crate::errors::{MemberError, told};
use crate::forwarding::Forwarding;
use crate::partitions::GridPartitions;
use crate::registry::{Command, MapFacts, Reply};

/// A group of partitions on this member.
pub(crate) type PartitionGroup = Group<BootRuntime, GridPartitions>;

/// The grid's way to the logs.
pub(crate) struct MemberReplicator {
    forwarding: Arc<Forwarding>,
    asking: Arc<Asking>,
    maps_max: usize,
    /// Where commands of the registry run: not on the caller's thread, which waits.
    runtime: Handle,
}

impl MemberReplicator {
    pub(crate) fn new(forwarding: Arc<Forwarding>, asking: Arc<Asking>, maps_max: usize, runtime: Handle) -> Self {
        MemberReplicator { forwarding, asking, maps_max, runtime }
    }

    fn group(&self, group: GroupId) -> Result<&PartitionGroup, replication::SubmitError> {
        let found = usize::try_from(group.0).ok().and_then(|at| self.forwarding.groups.get(at));
        found.ok_or_else(|| replication::SubmitError::NotLeader { group, hint: "there is no such group".to_owned() })
    }

    /// Has a command of the registry applied, here as well, and waits for it; or, `everywhere`, on all members.
    fn ask(&self, command: Command, everywhere: bool) -> Result<Reply, MemberError> {
        let (sender, answer) = mpsc::sync_channel(1);
        let asking = self.asking.clone();
        self.runtime.spawn(async move {
            let asked = match everywhere {
                true => asking.ask_everywhere(command).await,
                false => asking.ask(command).await,
            };
            // Whoever asked waits for this alone.
            let _gone = sender.send(asked);
        });
        answer.recv().unwrap_or(Err(MemberError::Unknown)).map_err(|error| match error {
            // Maps that are made or dropped twice are made or dropped once, and the change that needs the map was not made.
            MemberError::Unknown => MemberError::Unreachable(error.to_string()),
            error => error,
        })
    }
}

impl Replicator for MemberReplicator {
    fn groups(&self) -> u32 {
        u32::try_from(self.forwarding.groups.len()).unwrap_or(u32::MAX)
    }

    fn submit(&self, group: GroupId, commands: Vec<u8>, answers: Answers) -> Result<(), Box<NotTaken>> {
        let found = match self.group(group) {
            Ok(found) => found,
            Err(why) => return Err(Box::new(NotTaken { answers, why })),
        };
        let proposed = found.propose(Bytes::from(commands), answers);
        proposed.map_err(|(error, answers)| Box::new(NotTaken { answers, why: told(group, &error) }))
    }

    fn forwards(&self) -> bool {
        true
    }

    fn forward(&self, group: GroupId, changes: Vec<u8>, wait: Option<Duration>, done: ForwardedReply) {
        let forwarding = self.forwarding.clone();
        self.runtime.spawn(async move { done(forwarding.forward(group, changes.into(), wait).await) });
    }

    fn is_gone(&self, member: Uuid) -> bool {
        self.asking.registry().state().is_gone(member)
    }

    fn lease(&self, group: GroupId) -> Result<Term, replication::SubmitError> {
        let found = self.group(group)?;
        found.has_lease().map(Term).ok_or_else(|| {
            let (member, id) = (found.member(), filbert_cluster::GroupId(group.0));
            let leader = found.leader().filter(|leader| *leader != member);
            told(group, &SubmitError::NotLeader { member, group: id, leader })
        })
    }

    fn read_time(&self, group: GroupId) -> Millis {
        self.group(group).map_or(Millis(i64::MIN), Group::read_time)
    }

    fn make_map(&self, name: Option<&str>, settings: MapSettings) -> Result<(MapId, MapSettings), GridError> {
        let Some(name) = name else {
            let text = "a map cannot take another map's place in a cluster yet: the key of a table cannot be changed";
            return Err(GridError::UnsupportedOperation(text.to_owned()));
        };
        let map = MapFacts::new(name, &settings);
        match self.ask(Command::MakeMap { map, maps_max: self.maps_max }, false)? {
            Reply::Map(id, facts) => Ok((MapId(id), facts.settings())),
            Reply::Refused(why) => Err(GridError::IllegalState(why)),
            reply => Err(GridError::Internal(format!("making a map was answered by {reply:?}"))),
        }
    }

    fn knows_map(&self, map: MapId) -> bool {
        // A map that this member has not heard of yet may have come with a snapshot: that is no reason to drop it.
        !self.asking.registry().state().was_dropped(map)
    }

    fn drop_map(&self, map: MapId) -> Result<(), GridError> {
        self.ask(Command::DropMap { map: map.0 }, true)?;
        Ok(())
    }
}
