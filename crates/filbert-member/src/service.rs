//! What this member answers others: consensus, commands of the registry, what others lead, and whoever wants to join.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use filbert_cluster::{BootRuntime, BoxFuture, MemberId, Replicas};
use filbert_links::{Channel, Peer, Refusal, Service};
use parking_lot::{Mutex, RwLock};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::administration::{Ending, EndingSender, end};
use crate::asking::Asking;
use crate::departed::{Halves, connected_here};
use crate::forwarding::FORWARDED;
use crate::founding::{Accepted, Choice, Number};
use crate::greeting::{Alone, Belonging, Candidate, Greeting};
use crate::leading::{Said, Standing};
use crate::reading::Reading;
use crate::recovery::{Fence, Recovery, Reform, Reminder};
use crate::registry::{ClusterSettings, Command, MemberFacts, Reply};

/// Version of what is sent here.
const VERSION: u8 = 1;

/// What members ask each other beside consensus.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Who is at an address?
    Greet,
    /// A candidate asks the member with this UUID for its promise to follow no lesser number; answered by a
    /// [`Promise`](crate::founding::Promise).
    Promise(#[serde(with = "crate::text")] Uuid, Number),
    /// It asks that member to accept a founder; answered by yes or no.
    Accept(#[serde(with = "crate::text")] Uuid, Accepted),
    /// A member wants to join.
    Join(MemberFacts),
    /// A command of the registry.
    Registry(Vec<u8>),
    /// What the sender leads; answered by its [`Standing`].
    Leading(Said),
    /// How far the logs of these groups are, of which the registry is one.
    ReadPoints(Vec<u32>),
    /// Which of these clients have a connection to the member that is asked?
    Connected(Vec<Halves>),
    /// Answered once this version of the registry is known to the member that is asked, and to all who follow it there.
    Reached(u64),
    /// Is somebody there?
    Ping,
    /// This member is to leave the cluster, as an operator has ordered.
    Leave,
    /// How do its copies of all groups stand?
    Survey,
    /// The cluster goes on without members: it is to enter an epoch, and to give its votes in groups to nobody.
    Fence(Fence),
    /// Its copies of groups are those that they go on with.
    Reform(Reform),
    /// The cluster has gone on without the member that is asked; answered by the sender's [`Standing`] there.
    Reminder(Reminder),
}

/// What a member that joined is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Welcome {
    pub(crate) id: u64,
    #[serde(with = "crate::text")]
    pub(crate) cluster: Uuid,
    pub(crate) settings: ClusterSettings,
    pub(crate) members: BTreeMap<u64, MemberFacts>,
    /// The epoch that the cluster is in.
    #[serde(default)]
    pub(crate) epoch: u64,
}

impl Request {
    pub(crate) fn write(&self) -> Bytes {
        write(self)
    }
}

pub(crate) fn write<T: Serialize>(what: &T) -> Bytes {
    let mut out = vec![VERSION];
    // Writing into memory does not fail, and nothing here has keys that are not texts.
    let _written = serde_json::to_writer(&mut out, what);
    out.into()
}

pub(crate) fn read<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Result<T, Refusal> {
    match bytes.split_first() {
        Some((&VERSION, json)) => {
            serde_json::from_slice(json).map_err(|error| Refusal(format!("cannot read a message: {error}")))
        }
        Some((version, _)) => Err(Refusal(format!("a message of version {version}, expected version {VERSION}"))),
        None => Err(Refusal("a message without bytes".to_owned())),
    }
}

/// What there is once this member is in a cluster.
pub(crate) struct Joined {
    pub(crate) replicas: Arc<Replicas<BootRuntime>>,
    pub(crate) asking: Arc<Asking>,
    /// What others say that they lead.
    pub(crate) heard: Arc<dyn Fn(MemberId, Said) -> Standing + Send + Sync>,
    pub(crate) ending: Arc<EndingSender>,
    pub(crate) reading: Arc<Reading>,
    pub(crate) recovery: Arc<Recovery>,
}

/// Answers other members.
pub(crate) struct MemberService {
    pub(crate) here: RwLock<Candidate>,
    pub(crate) choice: Mutex<Choice>,
    pub(crate) joined: OnceLock<Joined>,
}

impl MemberService {
    async fn answer_message(self: Arc<Self>, from: Peer, channel: Channel, request: Bytes) -> Result<Bytes, Refusal> {
        if let (Some(&FORWARDED), Channel::Requests, Some(joined)) = (request.first(), channel, self.joined.get()) {
            return joined.reading.to.answer(request).await;
        }
        match (read(&request)?, channel, self.joined.get()) {
            (Request::Greet, _, None) => {
                let candidate = self.here.read().clone();
                let founder = self.choice.lock().founder().cloned();
                Ok(write(&Greeting::Alone(Alone { candidate, founder })))
            }
            (Request::Greet, _, Some(joined)) => {
                let (group, cluster) = (joined.asking.group(), joined.asking.registry().state().cluster);
                let votes = group.status().voters.contains(&group.member());
                let epoch = joined.replicas.epoch().get().0;
                Ok(write(&Greeting::InCluster(Belonging { cluster, votes, epoch })))
            }
            (Request::Promise(to, number), Channel::Join, None) if self.is(to) => {
                Ok(write(&self.choice.lock().promise(number)))
            }
            (Request::Accept(to, asked), Channel::Join, None) if self.is(to) => {
                Ok(write(&self.choice.lock().accept(asked)))
            }
            (Request::Promise(..) | Request::Accept(..), Channel::Join, _) => {
                Err(Refusal("this member is another one, or is in a cluster".to_owned()))
            }
            (Request::Join(facts), Channel::Join, Some(joined)) => self.let_in(joined, facts).await,
            (Request::Reminder(reminder), Channel::Join, Some(joined)) if self.is(reminder.to) => {
                Ok(write(&joined.recovery.reminded(&reminder)))
            }
            (Request::Reminder(_), Channel::Join, _) => Err(Refusal("this member is another one".to_owned())),
            (_, _, None) => Err(Refusal("this member is in no cluster yet".to_owned())),
            (Request::Registry(command), Channel::Requests, Some(joined)) => {
                let asked = joined.asking.propose(command.into()).await;
                Ok(write(&asked))
            }
            (Request::Leading(said), Channel::Requests, Some(joined)) => {
                let Some(member) = from.member else {
                    return Err(Refusal("a member without an id leads nothing".to_owned()));
                };
                Ok(write(&(joined.heard)(member, said)))
            }
            (Request::Connected(clients), Channel::Requests, Some(joined)) => match joined.reading.to.grid.get() {
                Some(grid) => Ok(write(&connected_here(&grid, &clients))),
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
                end(&joined.ending, Ending::Asked);
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

    /// The member that passes an order on.
    fn check_member(joined: &Joined, from: Peer) -> Result<MemberId, Refusal> {
        let state = joined.asking.registry().state();
        let member = from.member.filter(|member| state.member(*member).is_some());
        member.ok_or_else(|| Refusal("only members pass an order on".to_owned()))
    }

    fn is(&self, uuid: Uuid) -> bool {
        self.here.read().uuid == uuid
    }

    /// A member that starts again is another member. Where it answers, the one before it answers no more: it need not be waited for.
    async fn take_out_before(joined: &Joined, facts: &MemberFacts) -> Result<(), Refusal> {
        let state = joined.asking.registry().state();
        let is_before = |known: &MemberFacts| known.address == facts.address && known.uuid != facts.uuid;
        for (before, _) in state.members().filter(|(_, known)| is_before(known)) {
            if !joined.asking.is_new_at(&facts.address, facts.uuid).await {
                return Ok(());
            }
            tracing::info!("member {before} is taken out: another one has started at {}", facts.address);
            let command = Command::Remove { member: before.0 };
            joined.asking.ask(command).await.map_err(|error| Refusal(error.to_string()))?;
        }
        Ok(())
    }

    async fn let_in(&self, joined: &Joined, facts: MemberFacts) -> Result<Bytes, Refusal> {
        Self::take_out_before(joined, &facts).await?;
        let reply = joined
            .asking
            .ask(Command::Join { facts: facts.clone() })
            .await
            .map_err(|error| Refusal(error.to_string()))?;
        let Reply::Member(id) = reply else { return Err(Refusal(format!("not let in: {reply:?}"))) };
        // This member may have joined a moment ago, and learned only by now of those before it.
        Self::take_out_before(joined, &facts).await?;
        let state = joined.asking.registry().state();
        let members = state.members().map(|(id, facts)| (id.0, facts.clone())).collect();
        let epoch = joined.replicas.epoch().get().0;
        Ok(write(&Welcome { id, cluster: state.cluster, settings: state.settings, members, epoch }))
    }
}

/// A service that is shared with whoever starts the member.
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
}
