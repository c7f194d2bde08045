//! How a member comes into a cluster: it joins one that is there, or founds one.
//!
//! Members are configured with the addresses of some of them. A cluster is founded once, by the one of them that a majority of those that are
//! configured has accepted (`founding.rs`); all others wait for it and join. So members that start at the same time found one cluster and not
//! several, however long each takes, and no time-out decides anything. A member that restarts finds the others in their cluster and joins it,
//! as a new member.

use std::cmp::Reverse;
use std::time::Duration;

use filbert_cluster::MemberId;
use filbert_links::{Address, Channel, Links};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::errors::MemberError;
use crate::founding::{Accepted, Founder, Number, Promise, founder_of};
use crate::greeting::{Candidate, EntryFound, Found, Greeting, Seen, greet, join_names, look};
use crate::registry::MemberFacts;
use crate::service::{MemberService, Request, Welcome, read};

/// Between two rounds of greetings.
const PAUSE: Duration = Duration::from_millis(200);
/// Rounds between two lines in the log.
const ROUNDS_TOLD: u32 = 25;

/// What becomes of a member that starts.
pub(crate) enum Entry {
    /// It founds a cluster, of which so many members must be there before it serves.
    Founds(u64),
    /// It was let into one.
    Joins(Welcome),
}

/// Comes into a cluster with the members at the addresses that it is configured with, or founds it; goes on until one of them is possible.
///
/// # Errors
/// The configuration of the members contradicts each other, or a cluster refuses this member: waiting does not help.
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
        let entries = look(links, &here, &facts.address).await?;
        if let Some(required) = required.filter(|required| !is_there(&entries, required)) {
            tell(round, &format!("the required member at {required} does not answer"));
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
            // The latest epoch first: others were left behind. Of these those that vote: others may be in a cluster of which nothing comes.
            in_cluster.sort_unstable();
            for (.., address) in in_cluster {
                match join(links, address, facts).await {
                    Ok(welcome) => return Ok(Entry::Joins(welcome)),
                    Err(error) => tell(round, &format!("{address} did not let this member in yet: {error}")),
                }
            }
        } else {
            let seen = Seen::of(&here, &entries)?;
            match may_found(links, service, &here, &facts.address, &seen, &mut attempt).await {
                Ok(members_needed) => return Ok(Entry::Founds(members_needed)),
                Err(why) => tell(round, &why),
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(MemberError::Unreachable("no member was found".to_owned()))
}

/// Whether somebody is at one of the addresses that are configured.
fn is_there(entries: &[EntryFound], configured: &str) -> bool {
    let of = entries.iter().filter(|entry| entry.configured == configured);
    of.flat_map(|entry| &entry.found).any(|(_, found)| !matches!(found, Found::Nobody(_)))
}

fn tell(round: u32, why: &str) {
    if round.is_multiple_of(ROUNDS_TOLD) {
        tracing::info!("in no cluster yet: {why}");
    }
}

/// Whether this member founds a cluster now, and how many members it must have; else what is missing.
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
    let asks = Asks { links, service, here, seen, number: Number { attempt: *attempt, candidate: here.uuid } };
    let (promised, greatest) = asks.promises().await;
    *attempt = greatest.attempt.max(*attempt);
    let too_few = |found: usize| format!("{found} members follow this one, expected at least {needed}");
    if promised.len() < needed {
        return Err(too_few(promised.len()));
    }
    let founder = founder_of(Founder { uuid: here.uuid, address: own }, &promised, needed);
    let accepted = asks.accepted(&founder).await;
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

/// What a candidate asks all members that are there, itself among them.
struct Asks<'a> {
    links: &'a Links,
    service: &'a MemberService,
    here: &'a Candidate,
    seen: &'a Seen,
    number: Number,
}

impl Asks<'_> {
    /// What those had accepted that promise to follow no lesser number, and the greatest number that one of the others follows.
    async fn promises(&self) -> (Vec<Option<Accepted>>, Number) {
        let own = self.service.choice.lock().promise(self.number);
        let others = self.ask(|to| Request::Promise(to, self.number)).await;
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

    /// How many accept this founder.
    async fn accepted(&self, founder: &Founder) -> usize {
        let asked = Accepted { number: self.number, founder: founder.clone() };
        let own = self.service.choice.lock().accept(asked.clone());
        let others: Vec<bool> = self.ask(|to| Request::Accept(to, asked.clone())).await;
        others.into_iter().chain([own]).filter(|accepts| *accepts).count()
    }

    /// Asks the others; the answers of those that do answer.
    async fn ask<T: DeserializeOwned>(&self, request: impl Fn(Uuid) -> Request) -> Vec<T> {
        let others = self.seen.there.iter().filter(|(uuid, _)| **uuid != self.here.uuid);
        let asked = others.map(async |(uuid, address)| {
            let address = Address::from(address.as_str());
            let answer = self.links.call_address(address, Channel::Join, request(*uuid).write()).await.ok()?;
            read::<T>(&answer).ok()
        });
        futures_util::future::join_all(asked).await.into_iter().flatten().collect()
    }
}

/// Whether nothing comes of the cluster that this member has come into, in which it serves nobody yet: the member that founded it has ended
/// before anybody else had a vote, or others have founded another one.
pub(crate) async fn is_in_vain(
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
    let entries = look(links, here, &facts.address).await?;
    let mut found = entries.iter().flat_map(|entry| &entry.found).map(|(_, found)| found);
    let Entry::Joins(welcome) = entry else { return Ok(found.any(is_of_another)) };
    // The first member is the one that founded it.
    let Some(founder) = welcome.members.get(&1) else { return Ok(false) };
    let at_its_address = greet(links, here, &founder.address).await?;
    let has_ended = match &at_its_address {
        Found::Other(Greeting::Alone(alone)) => alone.candidate.uuid != founder.uuid,
        other => is_of_another(other),
    };
    // Nobody has a vote that could keep it.
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
