//! How a member enters a cluster: it joins an existing one, or founds one.
//!
//! Members are configured with the addresses of some members. A cluster is founded once, by the one
//! member that a majority of the configured members has accepted (`founding.rs`). All other members
//! wait for it and join. So members that start at the same time found one cluster and not several,
//! however long each takes. No timeout decides anything. A member that restarts finds the other
//! members in their cluster, and joins it as a new member.

use std::cmp::Reverse;
use std::time::Duration;

use filbert_cluster::MemberId;
use filbert_links::{Address, Channel, Links};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::errors::MemberError;
use crate::founding::{Accepted, Founder, Number, Promise, founder_of};
use crate::greeting::{EntryFound, Found, Seen, greet, greet_all, join_names};
use crate::messages::{Candidate, Greeting, Request, Welcome, read};
use crate::registry::MemberFacts;
use crate::service::MemberService;

/// The pause between two rounds of greetings.
const PAUSE: Duration = Duration::from_millis(200);
/// The number of rounds between two lines in the log.
const ROUNDS_PER_LOG_LINE: u32 = 25;

/// The way in which a member has entered a cluster.
pub(crate) enum Entry {
    /// The member founds a cluster. With the number of members that must be present before it
    /// serves.
    Founds(u64),
    /// The member has joined a cluster.
    Joins(Welcome),
}

/// Enters a cluster with the members at the configured addresses: joins one, or founds one. Retries
/// until one of both succeeds.
///
/// # Errors
/// The configurations of members contradict each other, or a cluster refuses this member: waiting
/// does not help.
pub(crate) async fn enter(
    links: &Links,
    service: &MemberService,
    facts: &MemberFacts,
    required: Option<&str>,
) -> Result<Entry, MemberError> {
    let here = service.here.read().clone();
    if here.wanted.is_empty() {
        return Err(MemberError::Settings("no address of a member is given".to_owned()));
    }
    let mut attempt = 0;
    for round in 0_u32.. {
        let entries = greet_all(links, &here, &facts.address).await?;
        if let Some(required) = required.filter(|required| !is_there(&entries, required)) {
            log_waiting(round, &format!("the required member at {required} does not answer"));
            tokio::time::sleep(PAUSE).await;
            continue;
        }
        let mut in_cluster: Vec<(Reverse<u64>, bool, &str)> = Vec::new();
        for (address, found) in entries.iter().flat_map(|entry| &entry.found) {
            if let Found::Other(Greeting::InCluster(other)) = found {
                in_cluster.push((Reverse(other.epoch), !other.votes, address));
            }
        }
        if !in_cluster.is_empty() {
            // The latest epoch first: clusters in earlier epochs were left behind. Within an epoch,
            // voters of the registry first: other members may be in a cluster that has failed.
            in_cluster.sort_unstable();
            for (.., address) in in_cluster {
                match join(links, address, facts).await {
                    Ok(welcome) => return Ok(Entry::Joins(welcome)),
                    Err(error) => log_waiting(round, &format!("{address} did not let this member in yet: {error}")),
                }
            }
        } else {
            let seen = Seen::of(&here, &entries)?;
            match may_found(links, service, &here, &facts.address, &seen, &mut attempt).await {
                Ok(members_needed) => return Ok(Entry::Founds(members_needed)),
                Err(why) => log_waiting(round, &why),
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(MemberError::Unreachable("no member was found".to_owned()))
}

/// Whether a member answers at one of the addresses of a configured entry.
fn is_there(entries: &[EntryFound], configured: &str) -> bool {
    let of = entries.iter().filter(|entry| entry.configured == configured);
    of.flat_map(|entry| &entry.found).any(|(_, found)| !matches!(found, Found::Nobody(_)))
}

fn log_waiting(round: u32, why: &str) {
    if round.is_multiple_of(ROUNDS_PER_LOG_LINE) {
        tracing::info!("in no cluster yet: {why}");
    }
}

/// Decides whether this member founds a cluster now. Returns the number of members that it needs,
/// or the reason why not.
async fn may_found(
    links: &Links,
    service: &MemberService,
    here: &Candidate,
    address: &str,
    seen: &Seen,
    attempt: &mut u64,
) -> Result<u64, String> {
    if here.is_lite {
        return Err("no cluster is there, and a member that holds no data founds none".to_owned());
    }
    let Some(own) = seen.own.clone() else {
        let names = join_names(&here.wanted);
        return Err(format!("no cluster is there, and this member at {address} is not one of {names}"));
    };
    let accepted = service.choice.lock().founder().cloned();
    if let Some(gone) = accepted.filter(|founder| seen.is_gone(founder)) {
        service.choice.lock().forget(gone.uuid);
    }
    let needed = seen.needed();
    if seen.there.len() < needed {
        return Err(seen.too_few());
    }
    if let Some((_, candidate)) = seen.candidate().filter(|(uuid, _)| *uuid != here.uuid) {
        return Err(format!("the member at {candidate} is to have it founded"));
    }
    *attempt += 1;
    let requests =
        FoundingRequests { links, service, here, seen, number: Number { attempt: *attempt, candidate: here.uuid } };
    let (promised, greatest) = requests.promises().await;
    *attempt = greatest.attempt.max(*attempt);
    let too_few = |found: usize| format!("{found} members follow this one, expected at least {needed}");
    if promised.len() < needed {
        return Err(too_few(promised.len()));
    }
    let founder = founder_of(Founder { uuid: here.uuid, address: own }, &promised, needed);
    let accepted = requests.accepted(&founder).await;
    if founder.uuid != here.uuid {
        return Err(match seen.there.contains_key(&founder.uuid) {
            true => format!("the member at {} is to found it", founder.address),
            false => format!(
                "the member at {} was to found a cluster, and does not answer: it may have done so. If it is gone for good, restart {}",
                founder.address,
                join_names(&seen.have_accepted(&founder))
            ),
        });
    }
    if accepted < needed {
        return Err(too_few(accepted));
    }
    tracing::info!("a cluster is founded, as {accepted} of {} members have accepted", seen.members_max);
    Ok(needed as u64)
}

/// The requests of a candidate to all members that answer, including itself.
struct FoundingRequests<'a> {
    links: &'a Links,
    service: &'a MemberService,
    here: &'a Candidate,
    seen: &'a Seen,
    number: Number,
}

impl FoundingRequests<'_> {
    /// Returns the acceptances of the members that promise to follow no lower number, and the
    /// highest number that any member follows.
    async fn promises(&self) -> (Vec<Option<Accepted>>, Number) {
        let own = self.service.choice.lock().promise(self.number);
        let others = self.send_to_all(|to| Request::Promise(to, self.number)).await;
        let (mut promised, mut greatest) = (Vec::new(), self.number);
        for promise in others.into_iter().chain([own]) {
            match promise {
                Promise::Given(accepted) => {
                    promised.push(accepted.filter(|accepted| !self.seen.is_gone(&accepted.founder)));
                }
                Promise::Refused(number) => greatest = greatest.max(number),
            }
        }
        (promised, greatest)
    }

    /// Returns the number of members that accept this founder.
    async fn accepted(&self, founder: &Founder) -> usize {
        let proposal = Accepted { number: self.number, founder: founder.clone() };
        let own = self.service.choice.lock().accept(proposal.clone());
        let others: Vec<bool> = self.send_to_all(|to| Request::Accept(to, proposal.clone())).await;
        others.into_iter().chain([own]).filter(|accepts| *accepts).count()
    }

    /// Sends a request to all other members. Returns the answers that arrive.
    async fn send_to_all<T: DeserializeOwned>(&self, request: impl Fn(Uuid) -> Request) -> Vec<T> {
        let others = self.seen.there.iter().filter(|(uuid, _)| **uuid != self.here.uuid);
        let answers = others.map(async |(uuid, address)| {
            let address = Address::from(address.as_str());
            let answer = self.links.call_address(address, Channel::Join, request(*uuid).write()).await.ok()?;
            read::<T>(&answer).ok()
        });
        futures_util::future::join_all(answers).await.into_iter().flatten().collect()
    }
}

/// Whether the cluster that this member has entered, but not served in yet, has failed: its founder
/// has ended before another member got a vote, or other members have founded another cluster.
pub(crate) async fn has_founding_failed(
    links: &Links,
    here: &Candidate,
    facts: &MemberFacts,
    entry: &Entry,
    cluster: Uuid,
) -> Result<bool, MemberError> {
    let voting_in = |found: &Found| match found {
        Found::Other(Greeting::InCluster(other)) if other.votes => Some(other.cluster),
        _ => None,
    };
    let is_of_another = |found: &Found| voting_in(found).is_some_and(|other| other != cluster && !other.is_nil());
    let entries = greet_all(links, here, &facts.address).await?;
    let mut found = entries.iter().flat_map(|entry| &entry.found).map(|(_, found)| found);
    let Entry::Joins(welcome) = entry else { return Ok(found.any(is_of_another)) };
    // Member 1 is the founder.
    let Some(founder) = welcome.members.get(&1) else { return Ok(false) };
    let at_its_address = greet(links, here, &founder.address).await?;
    let has_ended = match &at_its_address {
        Found::Other(Greeting::Alone(alone)) => alone.candidate.uuid != founder.uuid,
        other => is_of_another(other),
    };
    // No member has a vote that could keep the cluster.
    Ok(has_ended && !found.any(|found| voting_in(found).is_some() && !is_of_another(found)))
}

async fn join(links: &Links, address: &str, facts: &MemberFacts) -> Result<Welcome, String> {
    let request = Request::Join(facts.clone()).write();
    let answer = links.call_address(Address::from(address), Channel::Join, request).await;
    let bytes = answer.map_err(|error| error.to_string())?;
    let welcome: Welcome = read(&bytes).map_err(|refusal| refusal.0)?;
    for (id, member) in &welcome.members {
        links.addresses().set(MemberId(*id), member.address.as_str());
    }
    Ok(welcome)
}
