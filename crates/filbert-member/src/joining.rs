//! How a member comes into a cluster: it joins one that is there, or founds one.
//!
//! Members are configured with the addresses of some of them. Only the member at the first of these addresses founds a cluster, alone, and only
//! while a majority of them, itself counted, is there and is in no cluster; the others wait for it and join. So members that start at
//! the same time found one cluster and not several, however long each takes. A member that restarts finds the others in their
//! cluster and joins it, as a new member.

use std::collections::BTreeSet;
use std::time::Duration;

use filbert_cluster::MemberId;
use filbert_links::{Address, Channel, LinkError, Links, Refused};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::errors::MemberError;
use crate::registry::MemberFacts;
use crate::service::{Request, Welcome, read};

/// Between two rounds of greetings.
const PAUSE: Duration = Duration::from_millis(200);
/// Rounds between two lines in the log.
const ROUNDS_TOLD: u32 = 25;

/// A member that is in no cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Candidate {
    #[serde(with = "crate::text")]
    pub(crate) uuid: Uuid,
    /// The addresses that it is configured with.
    pub(crate) wanted: BTreeSet<String>,
}

/// The answer to whoever asks who is there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Greeting {
    Alone(Candidate),
    InCluster(#[serde(with = "crate::text")] Uuid),
}

/// Whoever is at an address.
#[derive(Debug)]
enum Found {
    /// This member itself.
    Itself,
    Other(Greeting),
    Nobody(String),
}

/// What becomes of a member that starts.
pub(crate) enum Entry {
    /// It founds a cluster.
    Founds,
    /// It was let into one.
    Joins(Welcome),
}

/// Comes into a cluster with the members at `addresses`, or founds it; goes on until one of them is possible.
///
/// # Errors
/// The configuration of the members contradicts each other, or a cluster refuses this member: waiting does not help.
pub(crate) async fn enter(
    links: &Links,
    here: &Candidate,
    addresses: &[String],
    facts: &MemberFacts,
) -> Result<Entry, MemberError> {
    for round in 0_u32.. {
        let mut found = Vec::with_capacity(addresses.len());
        for address in addresses {
            let is_own = *address == facts.address;
            found.push((address, if is_own { Found::Itself } else { greet(links, here, address).await? }));
        }
        if let Some((address, _)) =
            found.iter().find(|(_, found)| matches!(found, Found::Other(Greeting::InCluster(_))))
        {
            match join(links, address, facts).await {
                Ok(welcome) => return Ok(Entry::Joins(welcome)),
                Err(error) => tell(round, &format!("{address} did not let this member in yet: {error}")),
            }
        } else {
            let missing = may_found(here, &found)?;
            match missing {
                None => return Ok(Entry::Founds),
                Some(why) => tell(round, &why),
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    Err(MemberError::Unreachable("no member was found".to_owned()))
}

fn tell(round: u32, why: &str) {
    if round.is_multiple_of(ROUNDS_TOLD) {
        tracing::info!("in no cluster yet: {why}");
    }
}

async fn greet(links: &Links, here: &Candidate, address: &str) -> Result<Found, MemberError> {
    let answer = links.call_address(Address::from(address), Channel::Join, Request::Greet.write()).await;
    let bytes = match answer {
        Ok(bytes) => bytes,
        Err(LinkError::Refused(Refused::Itself)) => return Ok(Found::Itself),
        // Another cluster's name, secret or number of partitions: nothing that waiting would change.
        Err(LinkError::Refused(Refused::Told(why))) => return Ok(Found::Nobody(why)),
        Err(LinkError::Refused(refused)) => return Err(MemberError::Refused(format!("{address}: {refused}"))),
        Err(error) => return Ok(Found::Nobody(error.to_string())),
    };
    match read(&bytes) {
        Ok(Greeting::Alone(other)) if other.uuid == here.uuid => Ok(Found::Itself),
        Ok(greeting) => Ok(Found::Other(greeting)),
        Err(refusal) => Err(MemberError::Refused(format!("{address}: {}", refusal.0))),
    }
}

/// Whether this member founds a cluster now; what is missing, if not.
fn may_found(here: &Candidate, found: &[(&String, Found)]) -> Result<Option<String>, MemberError> {
    let Some((first, who)) = found.first() else {
        return Err(MemberError::Settings("no address of a member is given".to_owned()));
    };
    for (address, found) in found {
        if let Found::Other(Greeting::Alone(other)) = found
            && other.wanted != here.wanted
        {
            let (found, expected) = (join_names(&other.wanted), join_names(&here.wanted));
            let text = format!("{address} is configured with the members {found}, expected {expected}");
            return Err(MemberError::Settings(text));
        }
    }
    if !matches!(who, Found::Itself) {
        let why = match who {
            Found::Nobody(error) => format!(", which does not answer ({error})"),
            _ => String::new(),
        };
        return Ok(Some(format!(
            "it is founded by the member at {first}, the first of those that are configured{why}"
        )));
    }
    let mut there = BTreeSet::new();
    for (_, found) in found {
        match found {
            Found::Itself => _ = there.insert(here.uuid),
            Found::Other(Greeting::Alone(other)) => _ = there.insert(other.uuid),
            Found::Other(Greeting::InCluster(_)) | Found::Nobody(_) => {}
        }
    }
    let needed = here.wanted.len() / 2 + 1;
    // Two addresses may be one member's.
    let addresses = found.iter().filter(|(_, found)| !matches!(found, Found::Nobody(_))).count();
    if addresses < needed {
        let text = format!("{} of {} addresses answer, expected at least {needed}", addresses, here.wanted.len());
        return Ok(Some(text));
    }
    tracing::info!("a cluster is founded, {} members are there", there.len());
    Ok(None)
}

fn join_names(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
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
