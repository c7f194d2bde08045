//! The grid's access to the logs of this member's groups.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use filbert_cluster::{Group, SubmitError};
use filbert_grid::replication::{
    self, Answers, ForwardedReply, GroupId, NewMap, ReadReply, RejectedSubmission, Replicator, Term,
};
use filbert_grid::{GridError, Redefinition};
use filbert_store::{MapId, MapSettings, Millis};
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::errors::{MemberError, grid_submit_error};
use crate::forwarding::Forwarding;
use crate::leader_reads::LeaderReads;
use crate::partitions::PartitionGroup;
use crate::registry::{Command, MapFacts, Reply, replace};
use crate::registry_client::RegistryClient;

/// The grid's access to the logs.
pub(crate) struct MemberReplicator {
    forwarding: Arc<Forwarding>,
    leader_reads: Arc<LeaderReads>,
    registry_client: Arc<RegistryClient>,
    maps_max: usize,
    /// The runtime of registry commands: they must not run on the caller's thread, which waits.
    runtime: Handle,
}

impl MemberReplicator {
    pub(crate) fn new(
        leader_reads: Arc<LeaderReads>,
        registry_client: Arc<RegistryClient>,
        maps_max: usize,
        runtime: Handle,
    ) -> Self {
        let forwarding = leader_reads.to.clone();
        MemberReplicator { forwarding, leader_reads, registry_client, maps_max, runtime }
    }

    fn group(&self, group: GroupId) -> Result<&PartitionGroup, replication::SubmitError> {
        let found = usize::try_from(group.0).ok().and_then(|at| self.forwarding.groups.get(at));
        found.ok_or_else(|| replication::SubmitError::NotLeader { group, hint: "there is no such group".to_owned() })
    }

    /// Applies a command of the registry, and waits until it is known here. With `everywhere`:
    /// until it is known to all members.
    fn execute(&self, command: Command, everywhere: bool) -> Result<Reply, MemberError> {
        let (sender, answer) = mpsc::sync_channel(1);
        let registry_client = self.registry_client.clone();
        self.runtime.spawn(async move {
            let result = match everywhere {
                true => registry_client.execute_everywhere(command).await,
                false => registry_client.execute(command).await,
            };
            // The caller waits only for this message.
            let _gone = sender.send(result);
        });
        answer.recv().unwrap_or(Err(MemberError::Unknown))
    }

    /// As [`MemberReplicator::execute`], for commands that create or destroy a map: twice they have
    /// the effect of once, and the change that needs the map has not been applied.
    fn execute_again(&self, command: Command, everywhere: bool) -> Result<Reply, MemberError> {
        self.execute(command, everywhere).map_err(|error| match error {
            MemberError::Unknown => MemberError::Unreachable(error.to_string()),
            error => error,
        })
    }
}

impl Replicator for MemberReplicator {
    fn groups(&self) -> u32 {
        u32::try_from(self.forwarding.groups.len()).unwrap_or(u32::MAX)
    }

    fn submit(&self, group: GroupId, commands: Vec<u8>, answers: Answers) -> Result<(), Box<RejectedSubmission>> {
        let found = match self.group(group) {
            Ok(found) => found,
            Err(why) => return Err(Box::new(RejectedSubmission { answers, why })),
        };
        let proposed = found.propose(Bytes::from(commands), answers);
        proposed
            .map_err(|(error, answers)| Box::new(RejectedSubmission { answers, why: grid_submit_error(group, &error) }))
    }

    fn forwards(&self) -> bool {
        true
    }

    fn forward(&self, group: GroupId, changes: Vec<u8>, wait: Option<Duration>, done: ForwardedReply) {
        let forwarding = self.forwarding.clone();
        self.runtime.spawn(async move { done(forwarding.forward(group, changes.into(), wait).await) });
    }

    fn read(&self, group: GroupId, request: Vec<u8>, done: ReadReply) {
        let reads = self.leader_reads.clone();
        self.runtime.spawn(async move { done(reads.read(group, &request).await) });
    }

    fn is_gone(&self, member: Uuid) -> bool {
        self.registry_client.registry().state().is_gone(member)
    }

    fn lease(&self, group: GroupId) -> Result<Term, replication::SubmitError> {
        let found = self.group(group)?;
        found.has_lease().map(Term).ok_or_else(|| {
            let (member, id) = (found.member(), filbert_cluster::GroupId(group.0));
            let leader = found.leader().filter(|leader| *leader != member);
            grid_submit_error(group, &SubmitError::NotLeader { member, group: id, leader })
        })
    }

    fn read_time(&self, group: GroupId) -> Millis {
        self.group(group).map_or(Millis(i64::MIN), Group::read_time)
    }

    fn create_map(&self, map: NewMap<'_>, settings: MapSettings) -> Result<(MapId, MapSettings), GridError> {
        let (map, everywhere) = match map {
            NewMap::Named(name) => (MapFacts::new(name, &settings), false),
            NewMap::Replacing { old, name } => {
                (MapFacts::new(name, &settings).replacing(old, self.registry_client.group().member()), true)
            }
        };
        match self.execute_again(Command::MakeMap { map, maps_max: self.maps_max }, everywhere)? {
            Reply::Map(id, facts) => Ok((MapId(id), facts.settings())),
            Reply::Refused(why) => Err(GridError::IllegalState(why)),
            reply => Err(GridError::Internal(format!("making a map was answered by {reply:?}"))),
        }
    }

    fn knows_map(&self, map: MapId) -> bool {
        // This member may not know the map yet: it may have come with a snapshot. That is no reason
        // to drop the map.
        !self.registry_client.registry().state().was_dropped(map)
    }

    fn drop_map(&self, map: MapId) -> Result<(), GridError> {
        self.execute_again(Command::DropMap { map: map.0 }, true)?;
        Ok(())
    }

    fn abandon_map(&self, new: MapId) -> Result<(), GridError> {
        self.execute_again(Command::AbandonMap { map: new.0 }, true)?;
        Ok(())
    }

    fn replace_map(&self, new: MapId, redefinitions: Vec<Redefinition>) -> Result<bool, GridError> {
        match self.execute(replace(new, redefinitions), true)? {
            Reply::Done => Ok(true),
            Reply::Stale => Ok(false),
            Reply::Refused(why) => Err(GridError::IllegalState(why)),
            reply => Err(GridError::Internal(format!("the replacement of a map was answered by {reply:?}"))),
        }
    }
}
