//! Who is at the addresses that a member is configured with, while it is in no cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use filbert_links::{Address, Channel, LinkError, Links, Refused};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::errors::MemberError;
use crate::founding::Founder;
use crate::service::{Request, read};

/// Addresses of one name.
const ADDRESSES_MAX: usize = 64;

/// A member that is in no cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Candidate {
    #[serde(with = "crate::text")]
    pub(crate) uuid: Uuid,
    /// The addresses that it is configured with.
    pub(crate) wanted: BTreeSet<String>,
    /// Whether it holds no data: then it founds nothing, and is not counted.
    #[serde(default)]
    pub(crate) is_lite: bool,
}

/// A member that is in no cluster, as it answers whoever greets it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Alone {
    pub(crate) candidate: Candidate,
    /// The member that it has accepted as the founder.
    pub(crate) founder: Option<Founder>,
}

/// The answer to whoever asks who is there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Greeting {
    Alone(Alone),
    InCluster(Belonging),
}

/// A member of a cluster, as it answers whoever greets it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Belonging {
    #[serde(with = "crate::text")]
    pub(crate) cluster: Uuid,
    /// Whether it votes in the registry.
    pub(crate) votes: bool,
    /// The epoch that it is in.
    #[serde(default)]
    pub(crate) epoch: u64,
}

/// Whoever is at an address.
#[derive(Debug)]
pub(crate) enum Found {
    /// This member itself.
    Itself,
    Other(Greeting),
    Nobody(String),
}

/// What was found at one of the addresses that are configured.
pub(crate) struct EntryFound {
    pub(crate) configured: String,
    /// Members that there can be: a name may stand for several.
    members_max: usize,
    /// By the address that was dialled.
    pub(crate) found: Vec<(String, Found)>,
}

/// Greets whoever is at the addresses, all at once.
pub(crate) async fn look(links: &Links, here: &Candidate, own_address: &str) -> Result<Vec<EntryFound>, MemberError> {
    let looks = here.wanted.iter().map(|entry| look_at(links, here, own_address, entry));
    futures_util::future::join_all(looks).await.into_iter().collect()
}

async fn look_at(links: &Links, here: &Candidate, own_address: &str, entry: &str) -> Result<EntryFound, MemberError> {
    let one =
        |found| EntryFound { configured: entry.to_owned(), members_max: 1, found: vec![(entry.to_owned(), found)] };
    if entry == own_address {
        return Ok(one(Found::Itself));
    }
    if entry.parse::<SocketAddr>().is_ok() {
        return Ok(one(greet(links, here, entry).await?));
    }
    let addresses: Vec<SocketAddr> = match tokio::net::lookup_host(entry).await {
        Ok(addresses) => addresses.take(ADDRESSES_MAX).collect::<BTreeSet<_>>().into_iter().collect(),
        Err(error) => return Ok(one(Found::Nobody(format!("its name is not known: {error}")))),
    };
    // One member may have an address of each kind.
    let of_4 = addresses.iter().filter(|address| address.is_ipv4()).count();
    let members_max = of_4.max(addresses.len() - of_4).max(1);
    let greets = addresses.iter().map(async |address| {
        let address = address.to_string();
        let found = if address == own_address { Found::Itself } else { greet(links, here, &address).await? };
        Ok::<_, MemberError>((address, found))
    });
    let found: Result<Vec<_>, _> = futures_util::future::join_all(greets).await.into_iter().collect();
    Ok(EntryFound { configured: entry.to_owned(), members_max, found: found? })
}

pub(crate) async fn greet(links: &Links, here: &Candidate, address: &str) -> Result<Found, MemberError> {
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
        Ok(Greeting::Alone(other)) if other.candidate.uuid == here.uuid => Ok(Found::Itself),
        Ok(greeting) => Ok(Found::Other(greeting)),
        Err(refusal) => Err(MemberError::Refused(format!("{address}: {}", refusal.0))),
    }
}

/// Members that are there and in no cluster.
pub(crate) struct Seen {
    /// By UUID, one of the addresses.
    pub(crate) there: BTreeMap<Uuid, String>,
    /// Founders that were accepted, by those that have accepted them.
    accepted: BTreeMap<Uuid, Founder>,
    /// Who is at an address.
    at: BTreeMap<String, Uuid>,
    /// Members that there can be.
    pub(crate) members_max: usize,
    /// An address of this member's own, as others dial it.
    pub(crate) own: Option<String>,
    /// Why somebody is not there.
    missing: Option<String>,
}

impl Seen {
    /// # Errors
    /// A member that is there knows of other members: each part of them could be most of those that it knows.
    pub(crate) fn of(here: &Candidate, entries: &[EntryFound]) -> Result<Seen, MemberError> {
        let (mut there, mut accepted, mut at) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (mut own, mut missing) = (None, None);
        let (mut members_max, mut distinct_sum) = (0, 0);
        for entry in entries {
            let (mut distinct, mut lite) = (BTreeSet::new(), BTreeSet::new());
            for (address, found) in &entry.found {
                let (uuid, founder) = match found {
                    Found::Itself => {
                        own.get_or_insert_with(|| address.clone());
                        if here.is_lite {
                            lite.insert(here.uuid);
                            continue;
                        }
                        (here.uuid, None)
                    }
                    Found::Other(Greeting::Alone(Alone { candidate, founder })) => {
                        if candidate.wanted != here.wanted {
                            let (found, expected) = (join_names(&candidate.wanted), join_names(&here.wanted));
                            let text = format!("{address} is configured with the members {found}, expected {expected}");
                            return Err(MemberError::Settings(text));
                        }
                        if candidate.is_lite {
                            lite.insert(candidate.uuid);
                            continue;
                        }
                        (candidate.uuid, founder.clone())
                    }
                    Found::Other(Greeting::InCluster(_)) => continue,
                    Found::Nobody(why) => {
                        missing.get_or_insert_with(|| format!("{address}: {why}"));
                        continue;
                    }
                };
                distinct.insert(uuid);
                at.insert(address.clone(), uuid);
                accepted.extend(founder.map(|founder| (uuid, founder)));
                there.entry(uuid).or_insert_with(|| address.clone());
            }
            members_max += entry.members_max.saturating_sub(lite.len()).max(distinct.len());
            distinct_sum += distinct.len();
        }
        // Two addresses may be one member's.
        members_max -= distinct_sum - there.len();
        Ok(Seen { there, accepted, at, members_max, own, missing })
    }

    /// Members that are most of those that there can be.
    pub(crate) fn needed(&self) -> usize {
        self.members_max / 2 + 1
    }

    pub(crate) fn too_few(&self) -> String {
        let missing = self.missing.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        format!(
            "{} of {} members answer, expected at least {}{missing}",
            self.there.len(),
            self.members_max,
            self.needed()
        )
    }

    /// Whether a member that was to found the cluster has ended: another one is at its address.
    pub(crate) fn is_gone(&self, founder: &Founder) -> bool {
        self.at.get(&founder.address).is_some_and(|found| *found != founder.uuid)
    }

    /// The member that asks the others: one that was accepted as the founder, or else any; the one with the least UUID of several. So that they
    /// do not overtake each other for ever: however many ask, one founds.
    pub(crate) fn candidate(&self) -> Option<(Uuid, &str)> {
        let accepted = self.accepted.values().map(|founder| founder.uuid).filter(|uuid| self.there.contains_key(uuid));
        let uuid = accepted.min().or_else(|| self.there.keys().next().copied())?;
        Some((uuid, self.there.get(&uuid)?))
    }

    /// The addresses of those that have accepted this founder.
    pub(crate) fn have_accepted(&self, founder: &Founder) -> BTreeSet<String> {
        let have = self.accepted.iter().filter(|(_, accepted)| accepted.uuid == founder.uuid);
        have.filter_map(|(uuid, _)| self.there.get(uuid).cloned()).collect()
    }
}

pub(crate) fn join_names(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Candidate {
        Candidate { uuid: Uuid::from_u128(1), wanted: ["a:1".to_owned()].into(), is_lite: false }
    }

    fn alone(n: u128) -> Found {
        let candidate = Candidate { uuid: Uuid::from_u128(n), ..here() };
        Found::Other(Greeting::Alone(Alone { candidate, founder: None }))
    }

    fn lite(n: u128) -> Found {
        let candidate = Candidate { uuid: Uuid::from_u128(n), is_lite: true, ..here() };
        Found::Other(Greeting::Alone(Alone { candidate, founder: None }))
    }

    fn nobody() -> Found {
        Found::Nobody("nobody".to_owned())
    }

    /// Entries of the configuration: members that each may stand for, and who is found there.
    fn check(entries: Vec<(usize, Vec<Found>)>, there: usize, needed: usize) {
        let mut at = 0;
        let mut named = |found| {
            at += 1;
            (format!("10.0.0.{at}:1"), found)
        };
        let entry = |(members_max, found): (usize, Vec<Found>)| EntryFound {
            configured: String::new(),
            members_max,
            found: found.into_iter().map(&mut named).collect(),
        };
        let entries: Vec<EntryFound> = entries.into_iter().map(entry).collect();
        let seen = Seen::of(&here(), &entries).unwrap();
        assert_eq!((seen.there.len(), seen.needed()), (there, needed));
    }

    #[test]
    fn most_of_the_members_are_needed_however_many_addresses_each_has() {
        check(vec![(1, vec![Found::Itself])], 1, 1);
        check(vec![(1, vec![Found::Itself]), (1, vec![nobody()])], 1, 2);
        check(vec![(1, vec![Found::Itself]), (1, vec![alone(2)]), (1, vec![nobody()])], 2, 2);
        // One member at two of the addresses.
        check(vec![(1, vec![Found::Itself]), (1, vec![Found::Itself])], 1, 1);
        check(vec![(1, vec![Found::Itself]), (1, vec![alone(2)]), (1, vec![alone(2)]), (1, vec![alone(3)])], 3, 2);
        // One with an address of each kind, of which it listens at one, or at both.
        check(vec![(1, vec![Found::Itself, nobody()])], 1, 1);
        check(vec![(1, vec![Found::Itself, Found::Itself])], 1, 1);
        // Lite members found nothing.
        check(vec![(1, vec![Found::Itself]), (1, vec![lite(2)]), (1, vec![lite(3)])], 1, 1);
        check(vec![(1, vec![Found::Itself]), (1, vec![lite(2)]), (1, vec![nobody()])], 1, 2);
        // A name that stands for three, of which one does not answer.
        check(vec![(3, vec![Found::Itself, alone(2), nobody()])], 2, 2);
        check(vec![(3, vec![Found::Itself, nobody(), nobody()])], 1, 2);
    }
}
