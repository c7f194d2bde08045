//! Recovery by an order: the cluster continues without members that were the majority of voters in
//! groups. This module has the steps of the member that receives the order, the steps of the other
//! surviving members, and the handling of members that come back.
//!
//! 1. All known members are asked for the state of their copies. A member that does not answer in
//!    time is missing (`plan.rs`). Groups with a majority of their voters present are left alone.
//!    If all groups have their majority, nothing is done.
//! 2. All members that answered enter the next epoch, and block their votes in the lost groups.
//!    From then on they ignore consensus messages from members of an earlier epoch. If a member
//!    does not answer any more, the order fails here, and has to be repeated.
//! 3. The registry continues first, if it is one of the lost groups. Then it records the epoch, the
//!    losses, and the members that were left behind.
//! 4. Each other lost group continues with its most advanced copy
//!    (`filbert_cluster::Group::reform`).
//!
//! A missing member is reminded when it comes back, by a member that it asks or by the leader of
//! the registry: it ends, and starts again without its data.

mod plan;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use filbert_cluster::{CurrentEpoch, Epoch, GroupCopy, GroupError, GroupId, MemberId, TransportError};
use filbert_links::{Address, Channel, Links, Refusal};
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout_at};

use crate::ending::{Ending, EndingSender, end};
use crate::errors::MemberError;
use crate::leading::Standing;
use crate::messages::{Fence, Reform, Reminder, Request, read};
use crate::partitions::PartitionGroup;
use crate::registry::{Command, Loss, REGISTRY, RegistryState};
use crate::registry_client::RegistryClient;
use crate::view::standing;
use plan::{CopyReport, Lost, MemberReport, Plan, PlanError};

/// A member that has not answered for this time is missing: longer than the links wait before they
/// dial again.
const ANSWERS_MAX: Duration = Duration::from_secs(4);
/// The maximum time for a step at another member, which waits for a group to have a leader.
const STEP_MAX: Duration = Duration::from_secs(10);
/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);
/// The maximum number of attempts: the term of a group may have advanced since it was planned.
const TRIES_MAX: u32 = 3;
/// The interval between two reminders to members that were left behind.
const REMINDED_EVERY: Duration = Duration::from_secs(1);

/// The reason why the recovery failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecoveryError {
    #[error(transparent)]
    Impossible(#[from] PlanError),
    #[error("another such order is being carried out")]
    Running,
    #[error("member {0} answers, and does not take part: {1}")]
    Refused(MemberId, String),
    #[error("members {0} were expected not to answer alone, and {1} do not")]
    OthersMissing(String, String),
    #[error("member {0} has stopped to answer while the order was carried out: give it again")]
    Lost(MemberId),
    #[error("{0}: give the order again")]
    Group(#[from] GroupError),
    #[error("the registry was not told: {0}; give the order again")]
    Registry(#[from] MemberError),
    #[error("these groups have not gone on: {0}; give the order again")]
    Unfinished(String),
}

/// Recovers the cluster, on this member.
pub(crate) struct Recovery {
    pub(crate) member: MemberId,
    pub(crate) registry_client: Arc<RegistryClient>,
    pub(crate) groups: Vec<PartitionGroup>,
    pub(crate) links: Arc<Links>,
    pub(crate) epoch: Arc<CurrentEpoch>,
    pub(crate) ending: Arc<EndingSender>,
    /// Held while an order is carried out. Serializes orders.
    pub(crate) running: Mutex<()>,
}

fn joined(ids: impl IntoIterator<Item = MemberId>) -> String {
    ids.into_iter().map(|id| id.to_string()).collect::<Vec<_>>().join(", ")
}

impl Recovery {
    fn state(&self) -> Arc<RegistryState> {
        self.registry_client.registry().state()
    }

    fn copy(&self, group: GroupId) -> Option<GroupCopy> {
        match usize::try_from(group.0).ok().and_then(|at| self.groups.get(at)) {
            Some(held) => Some(held.copy()),
            None => (group == REGISTRY).then(|| self.registry_client.group().copy()),
        }
    }

    /// Returns the state of this member's copies.
    pub(crate) fn survey(&self) -> MemberReport {
        let groups = (0..).map(GroupId).take(self.groups.len()).chain([REGISTRY]);
        let copies = groups.filter_map(|group| Some(CopyReport::of(group, &self.copy(group)?)));
        let state = self.state();
        MemberReport {
            cluster: state.cluster,
            epoch: self.epoch.get().0,
            decided: state.recoveries().epoch().0,
            copies: copies.collect(),
        }
    }

    /// Enters an epoch, and blocks this member's votes in the lost groups. Returns the state of its
    /// copies after that.
    pub(crate) async fn fence(&self, fence: &Fence) -> Result<MemberReport, Refusal> {
        let known = self.epoch.get();
        if Epoch(fence.epoch) <= known {
            return Err(Refusal(format!(
                "it is in epoch {known}, expected an earlier one than {}",
                Epoch(fence.epoch)
            )));
        }
        let leads = |group: &u32| self.copy(GroupId(*group)).is_some_and(|copy| copy.leads);
        if let Some(group) = fence.groups.keys().find(|group| leads(group)) {
            return Err(Refusal(format!("it leads group {} with a majority", GroupId(*group))));
        }
        tracing::warn!(
            "this member enters epoch {}: the cluster is about to go on with the members {}",
            Epoch(fence.epoch),
            joined(fence.there.iter().map(|id| MemberId(*id)))
        );
        self.epoch.enter(Epoch(fence.epoch));
        let there: BTreeSet<MemberId> = fence.there.iter().map(|id| MemberId(*id)).collect();
        for (group, term) in &fence.groups {
            let fenced = match usize::try_from(*group).ok().and_then(|at| self.groups.get(at)) {
                Some(held) => held.fence(*term, &there).await,
                None if *group == REGISTRY.0 => self.registry_client.group().fence(*term, &there).await,
                None => continue,
            };
            fenced.map_err(|error| Refusal(error.to_string()))?;
        }
        Ok(self.survey())
    }

    /// Re-forms groups from this member's copies. Returns the reason if one of them fails.
    pub(crate) async fn reform(&self, reform: &Reform) -> Result<(), Refusal> {
        if Epoch(reform.epoch) != self.epoch.get() {
            return Err(Refusal(format!("it is in epoch {}, expected {}", self.epoch.get(), Epoch(reform.epoch))));
        }
        let reforms = reform.groups.iter().map(async |(group, term)| {
            match usize::try_from(*group).ok().and_then(|at| self.groups.get(at)) {
                Some(held) => held.reform(*term).await,
                None if *group == REGISTRY.0 => self.registry_client.group().reform(*term).await,
                None => Ok(()),
            }
        });
        let reformed = futures_util::future::join_all(reforms).await;
        reformed.into_iter().collect::<Result<(), GroupError>>().map_err(|error| Refusal(error.to_string()))
    }

    /// Has the cluster continue without the missing members. Without `accepts_data_loss`: only
    /// describes the possible losses. Returns a text for an operator.
    pub(crate) async fn recover(&self, accepts_data_loss: bool) -> Result<String, RecoveryError> {
        let Ok(_running) = self.running.try_lock() else { return Err(RecoveryError::Running) };
        let mut tries = 0;
        loop {
            let plan = self.plan().await?;
            if !accepts_data_loss {
                return Ok(plan.text());
            }
            tries += 1;
            match self.carry_out(plan).await {
                Err(error @ (RecoveryError::Group(_) | RecoveryError::Lost(_))) if tries < TRIES_MAX => {
                    tracing::warn!("the cluster does not go on yet: {error}");
                }
                done => return done,
            }
        }
    }

    /// Has this member continue alone, if `missing` is the only missing member.
    pub(crate) async fn continue_without(&self, missing: MemberId) -> Result<String, RecoveryError> {
        let Ok(_running) = self.running.try_lock() else { return Err(RecoveryError::Running) };
        let plan = self.plan().await?;
        if plan.missing.keys().ne([&missing]) {
            let found = joined(plan.missing.keys().copied());
            return Err(RecoveryError::OthersMissing(missing.to_string(), found));
        }
        self.carry_out(plan).await
    }

    async fn plan(&self) -> Result<Plan, RecoveryError> {
        let state = self.state();
        let own = self.survey();
        let voters = own.copies.iter().flat_map(|copy| &copy.voters).flatten().map(|id| MemberId(*id));
        let known: BTreeSet<MemberId> = state.members().map(|(id, _)| id).chain(voters).collect();
        let until = Instant::now() + ANSWERS_MAX;
        let others = known.into_iter().filter(|id| *id != self.member);
        let requests = others.map(async |id| {
            Ok(self.request::<MemberReport>(id, &Request::Survey, until).await?.map(|report| (id, report)))
        });
        let answers: Result<Vec<_>, RecoveryError> =
            futures_util::future::join_all(requests).await.into_iter().collect();
        let reports = answers?.into_iter().flatten().chain([(self.member, own)]).collect();
        Ok(Plan::of(self.member, &state, &reports)?)
    }

    /// Retries a request to another member until it answers or the time is over.
    async fn request<T: DeserializeOwned>(
        &self,
        id: MemberId,
        request: &Request,
        until: Instant,
    ) -> Result<Option<T>, RecoveryError> {
        while Instant::now() < until {
            match timeout_at(until, self.links.call(id, Channel::Requests, request.write())).await {
                Ok(Ok(answer)) => {
                    return read(&answer).map(Some).map_err(|refusal| RecoveryError::Refused(id, refusal.0));
                }
                Ok(Err(TransportError::Refused { why, .. })) => return Err(RecoveryError::Refused(id, why)),
                // The links do not dial again immediately after a failure.
                Ok(Err(_)) => sleep(PAUSE).await,
                Err(_) => break,
            }
        }
        Ok(None)
    }

    async fn carry_out(&self, plan: Plan) -> Result<String, RecoveryError> {
        let text = plan.text();
        tracing::error!(
            "the cluster goes on in epoch {} with the members {}. {text}",
            plan.epoch,
            joined(plan.there.iter().copied())
        );
        let (epoch, registry_too) = (plan.epoch, plan.registry().is_some());
        let reports = self.fence_all(&plan).await?;
        // Sees the entries that copies received since the plan was made. No more entries arrive
        // now.
        let lost = match Plan::of(self.member, &self.state(), &reports) {
            Ok(now) => now.lost.into_iter().filter(|lost| plan.lost.iter().any(|it| it.group == lost.group)),
            Err(error) => return Err(error.into()),
        };
        let terms: BTreeMap<GroupId, u64> = plan.lost.iter().map(|lost| (lost.group, lost.term)).collect();
        let lost: Vec<Lost> =
            lost.map(|lost| Lost { term: terms.get(&lost.group).copied().unwrap_or(lost.term), ..lost }).collect();
        let (of_registry, of_partitions): (Vec<&Lost>, Vec<&Lost>) =
            lost.iter().partition(|lost| lost.group == REGISTRY);
        self.reform_all(epoch, &of_registry).await?;
        let state = self.state();
        let loss = |lost: &&Lost| {
            let kept_by = state.member(lost.kept_by)?.uuid;
            let copies_lost = u32::try_from(lost.voters.len() - lost.there.len()).unwrap_or(u32::MAX);
            Some((lost.group.0, Loss { epoch: epoch.0, kept_by, copies_lost }))
        };
        let losses = of_partitions.iter().filter_map(loss).collect();
        let without = plan.missing.keys().map(|id| id.0).collect();
        self.registry_client.execute(Command::Recover { epoch: epoch.0, without, losses, registry_too }).await?;
        self.reform_all(epoch, &of_partitions).await?;
        let done = format!(
            "The cluster goes on in epoch {epoch}, with {} members: {}.\n",
            plan.there.len(),
            joined(plan.there.iter().copied())
        );
        tracing::warn!("{}", done.trim_end());
        Ok(text + &done)
    }

    async fn fence_all(&self, plan: &Plan) -> Result<BTreeMap<MemberId, MemberReport>, RecoveryError> {
        let fence = Fence {
            epoch: plan.epoch.0,
            there: plan.there.iter().map(|id| id.0).collect(),
            groups: plan.lost.iter().map(|lost| (lost.group.0, lost.term)).collect(),
        };
        let until = Instant::now() + ANSWERS_MAX;
        let requests = plan.there.iter().map(async |id| {
            if *id == self.member {
                let report = self.fence(&fence).await;
                return report.map(|report| (*id, report)).map_err(|refusal| RecoveryError::Refused(*id, refusal.0));
            }
            let report = self.request(*id, &Request::Fence(fence.clone()), until).await?;
            report.map(|report| (*id, report)).ok_or(RecoveryError::Lost(*id))
        });
        futures_util::future::join_all(requests).await.into_iter().collect()
    }

    /// Re-forms groups at the members with the best copies.
    async fn reform_all(&self, epoch: Epoch, lost: &[&Lost]) -> Result<(), RecoveryError> {
        let mut by_member: BTreeMap<MemberId, BTreeMap<u32, u64>> = BTreeMap::new();
        for lost in lost {
            by_member.entry(lost.kept_by).or_default().insert(lost.group.0, lost.term);
        }
        let until = Instant::now() + STEP_MAX;
        let requests = by_member.into_iter().map(async |(id, groups)| {
            let reform = Reform { epoch: epoch.0, groups };
            let done = if id == self.member {
                self.reform(&reform).await.map_err(|refusal| refusal.0)
            } else {
                match self.request::<bool>(id, &Request::Reform(reform.clone()), until).await {
                    Ok(Some(_)) => Ok(()),
                    Ok(None) => Err("it does not answer".to_owned()),
                    Err(error) => Err(error.to_string()),
                }
            };
            let groups = || reform.groups.keys().map(|id| GroupId(*id).to_string()).collect::<Vec<_>>().join(", ");
            done.err().map(|why| format!("{} at member {id} ({why})", groups()))
        });
        let failed: Vec<String> = futures_util::future::join_all(requests).await.into_iter().flatten().collect();
        if failed.is_empty() { Ok(()) } else { Err(RecoveryError::Unfinished(failed.join("; "))) }
    }

    /// Sends reminders to members that were left behind, if this member leads the registry, until
    /// the future is dropped.
    pub(crate) async fn remind(&self) {
        loop {
            sleep(REMINDED_EVERY).await;
            let state = self.state();
            if self.registry_client.group().has_lease().is_none() {
                continue;
            }
            let is_taken = |address: &str| state.members().any(|(_, facts)| facts.address == address);
            let behind = state.recoveries().left_behind().filter(|(_, facts)| !is_taken(&facts.address));
            let reminded = behind.map(async |(_, facts)| {
                let reminder =
                    Reminder { to: facts.uuid, cluster: state.cluster, epoch: self.epoch.get().0, from: self.member.0 };
                let call = Request::Reminder(reminder).write();
                let answer = self.links.call_address(Address::from(facts.address.as_str()), Channel::Join, call);
                let answer = tokio::time::timeout(ANSWERS_MAX, answer).await.ok()?.ok()?;
                read::<Standing>(&answer).ok()
            });
            for standing in futures_util::future::join_all(reminded).await.into_iter().flatten() {
                self.apply_standing(standing);
            }
        }
    }

    /// Handles a reminder of a member that considers this member left behind. Returns the standing
    /// of that member in the view of this member.
    pub(crate) fn reminded(&self, reminder: &Reminder) -> Standing {
        let state = self.state();
        if reminder.cluster == state.cluster && Epoch(reminder.epoch) > self.epoch.get() {
            self.apply_standing(Standing::LeftBehind(reminder.epoch));
            return Standing::Member;
        }
        standing(&state, self.epoch.get(), reminder.cluster, MemberId(reminder.from), Epoch(reminder.epoch))
    }

    /// Whether there is a reason for this member to end.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.borrow().is_some()
    }

    /// Handles the standing of this member in the view of another member.
    pub(crate) fn apply_standing(&self, standing: Standing) {
        match standing {
            Standing::TakenOut => end(&self.ending, Ending::TakenOut),
            Standing::LeftBehind(epoch) if Epoch(epoch) > self.epoch.get() => {
                if self.ending.borrow().is_none() {
                    tracing::error!(
                        "the others have gone on in epoch {} without this member, which is in epoch {}",
                        Epoch(epoch),
                        self.epoch.get()
                    );
                }
                end(&self.ending, Ending::LeftBehind);
            }
            Standing::Behind(epoch) => self.epoch.enter(Epoch(epoch)),
            Standing::Member | Standing::Stranger | Standing::LeftBehind(_) => {}
        }
    }
}
