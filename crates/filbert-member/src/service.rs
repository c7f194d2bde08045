//! The answers of this member to other members: consensus, commands of the registry, announcements
//! of leaders, and requests to join.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use filbert_cluster::{BootRuntime, BoxFuture, MemberId, Replicas};
use filbert_grid::MemberMemory;
use filbert_links::{Channel, Peer, Refusal, Service};
use parking_lot::{Mutex, RwLock};
use uuid::Uuid;

use crate::departed::connected_here;
use crate::ending::{Ending, EndingSender, end};
use crate::forwarding::FORWARDED;
use crate::founding::Choice;
use crate::leader_reads::{LeaderReads, READ};
use crate::leading::{Announcement, Standing};
use crate::messages::{Alone, Belonging, Candidate, Greeting, Request, Welcome, read, write};
use crate::reading::Reading;
use crate::recovery::Recovery;
use crate::registry::{Command, MemberFacts, Reply};
use crate::registry_client::RegistryClient;

/// The state of a member after it has joined a cluster.
pub(crate) struct Joined {
    pub(crate) replicas: Arc<Replicas<BootRuntime>>,
    pub(crate) registry_client: Arc<RegistryClient>,
    /// Handles the announcement of another member.
    pub(crate) on_announcement: Arc<dyn Fn(MemberId, Announcement) -> Standing + Send + Sync>,
    pub(crate) ending: Arc<EndingSender>,
    pub(crate) reading: Arc<Reading>,
    pub(crate) leader_reads: Arc<LeaderReads>,
    pub(crate) recovery: Arc<Recovery>,
}

/// Answers the requests of other members.
pub(crate) struct MemberService {
    pub(crate) here: RwLock<Candidate>,
    pub(crate) choice: Mutex<Choice>,
    pub(crate) joined: OnceLock<Joined>,
    pub(crate) memory: Arc<MemberMemory>,
}

impl MemberService {
    async fn answer_message(self: Arc<Self>, from: Peer, channel: Channel, request: Bytes) -> Result<Bytes, Refusal> {
        match (request.first(), channel, self.joined.get()) {
            (Some(&FORWARDED), Channel::Requests, Some(joined)) => return joined.reading.to.answer(request).await,
            (Some(&READ), Channel::Requests, Some(joined)) => return joined.leader_reads.answer(request).await,
            _ => {}
        }
        match (read(&request)?, channel, self.joined.get()) {
            (Request::Greet, _, None) => {
                let candidate = self.here.read().clone();
                let founder = self.choice.lock().founder().cloned();
                Ok(write(&Greeting::Alone(Alone { candidate, founder })))
            }
            (Request::Greet, _, Some(joined)) => {
                let (group, cluster) =
                    (joined.registry_client.group(), joined.registry_client.registry().state().cluster);
                let votes = group.status().voters.contains(&group.member());
                let epoch = joined.replicas.epoch().get().0;
                Ok(write(&Greeting::InCluster(Belonging { cluster, votes, epoch })))
            }
            (Request::Promise(to, number), Channel::Join, None) if self.is(to) => {
                Ok(write(&self.choice.lock().promise(number)))
            }
            (Request::Accept(to, accepted), Channel::Join, None) if self.is(to) => {
                Ok(write(&self.choice.lock().accept(accepted)))
            }
            (Request::Promise(..) | Request::Accept(..), Channel::Join, _) => {
                Err(Refusal("this member is another one, or is in a cluster".to_owned()))
            }
            (Request::Join(facts), Channel::Join, Some(joined)) => self.admit(joined, facts).await,
            (Request::Reminder(reminder), Channel::Join, Some(joined)) if self.is(reminder.to) => {
                Ok(write(&joined.recovery.reminded(&reminder)))
            }
            (Request::Reminder(_), Channel::Join, _) => Err(Refusal("this member is another one".to_owned())),
            (_, _, None) => Err(Refusal("this member is in no cluster yet".to_owned())),
            (Request::Registry(command), Channel::Requests, Some(joined)) => {
                let outcome = joined.registry_client.propose(command.into()).await;
                Ok(write(&outcome))
            }
            (Request::Leading(announcement), Channel::Requests, Some(joined)) => {
                let Some(member) = from.member else {
                    return Err(Refusal("a member without an id leads nothing".to_owned()));
                };
                Ok(write(&(joined.on_announcement)(member, announcement)))
            }
            (Request::Connected(clients), Channel::Requests, Some(joined)) => match joined.reading.to.grid.get() {
                Some(grid) => Ok(write(&connected_here(&grid, &clients))),
                None => Err(Refusal("this member has just begun".to_owned())),
            },
            (Request::Running(threads), Channel::Requests, Some(joined)) => match joined.reading.to.grid.get() {
                Some(grid) => Ok(write(&grid.running_statements(&threads))),
                None => Err(Refusal("this member has just begun".to_owned())),
            },
            (Request::Reached(version), Channel::Requests, Some(joined)) => {
                joined.reading.to.followed.reached(version).await;
                Ok(write(&true))
            }
            (Request::Ping, Channel::Requests, Some(_)) => Ok(write(&true)),
            (Request::Leave, Channel::Requests, Some(joined)) => {
                let member = Self::check_member(joined, from)?;
                tracing::info!("an operator has this member leave, says member {member}");
                end(&joined.ending, Ending::LeaveRequested);
                Ok(write(&true))
            }
            (Request::Survey, Channel::Requests, Some(joined)) => Ok(write(&joined.recovery.survey())),
            (Request::Fence(fence), Channel::Requests, Some(joined)) => {
                Self::check_member(joined, from)?;
                Ok(write(&joined.recovery.fence(&fence).await?))
            }
            (Request::Reform(reform), Channel::Requests, Some(joined)) => {
                Self::check_member(joined, from)?;
                joined.recovery.reform(&reform).await?;
                Ok(write(&true))
            }
            (Request::ReadPoints(groups), Channel::Requests, Some(joined)) => {
                Ok(write(&joined.reading.points(&groups).await))
            }
            _ => Err(Refusal("a message that this kind of connection does not carry".to_owned())),
        }
    }

    /// Checks that the sender of an order is a member, and returns its id.
    fn check_member(joined: &Joined, from: Peer) -> Result<MemberId, Refusal> {
        let state = joined.registry_client.registry().state();
        let member = from.member.filter(|member| state.member(*member).is_some());
        member.ok_or_else(|| Refusal("only members pass an order on".to_owned()))
    }

    fn is(&self, uuid: Uuid) -> bool {
        self.here.read().uuid == uuid
    }

    /// Removes the previous member at this address. A member that restarts gets a new identity:
    /// once the new one answers at the address, the previous one is gone, and there is no need to
    /// wait for it.
    async fn remove_previous(joined: &Joined, facts: &MemberFacts) -> Result<(), Refusal> {
        let state = joined.registry_client.registry().state();
        let is_before = |known: &MemberFacts| known.address == facts.address && known.uuid != facts.uuid;
        for (before, _) in state.members().filter(|(_, known)| is_before(known)) {
            if !joined.registry_client.is_new_at(&facts.address, facts.uuid).await {
                return Ok(());
            }
            tracing::info!("member {before} is taken out: another one has started at {}", facts.address);
            let command = Command::Remove { member: before.0 };
            joined.registry_client.execute(command).await.map_err(|error| Refusal(error.to_string()))?;
        }
        Ok(())
    }

    async fn admit(&self, joined: &Joined, facts: MemberFacts) -> Result<Bytes, Refusal> {
        Self::remove_previous(joined, &facts).await?;
        let reply = joined
            .registry_client
            .execute(Command::Join { facts: facts.clone() })
            .await
            .map_err(|error| Refusal(error.to_string()))?;
        let Reply::Member(id) = reply else { return Err(Refusal(format!("not let in: {reply:?}"))) };
        // This member may have joined only recently, and may have learned of previous members only
        // by now.
        Self::remove_previous(joined, &facts).await?;
        let state = joined.registry_client.registry().state();
        let members = state.members().map(|(id, facts)| (id.0, facts.clone())).collect();
        let epoch = joined.replicas.epoch().get().0;
        Ok(write(&Welcome { id, cluster: state.cluster, settings: state.settings, members, epoch }))
    }
}

/// A [`MemberService`] that is shared with the code that starts the member.
pub(crate) struct Answering(pub(crate) Arc<MemberService>);

impl Service for Answering {
    fn answer(&self, from: Peer, channel: Channel, request: Bytes) -> BoxFuture<Result<Bytes, Refusal>> {
        let service = self.0.clone();
        match (channel, service.joined.get()) {
            (Channel::Consensus(_), Some(joined)) => {
                let replicas = joined.replicas.clone();
                Box::pin(async move { replicas.answer(request).await.map_err(|error| Refusal(error.to_string())) })
            }
            (Channel::Consensus(_), None) => {
                Box::pin(std::future::ready(Err(Refusal("this member is in no cluster yet".to_owned()))))
            }
            _ => Box::pin(service.answer_message(from, channel, request)),
        }
    }

    fn held_changed(&self, bytes: isize) {
        self.0.memory.note_links(bytes);
    }
}
