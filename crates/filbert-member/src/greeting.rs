//! The members at the addresses that this member is configured with, while it is in no cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use filbert_links::{Address, Channel, LinkError, Links, Refused};
use uuid::Uuid;

use crate::errors::MemberError;
use crate::founding::Founder;
use crate::messages::{Alone, Candidate, Greeting, Request, read};

/// The maximum number of addresses of one host name.
const ADDRESSES_MAX: usize = 64;

/// The result of a greeting at an address.
#[derive(Debug)]
pub(crate) enum Found {
    /// This member itself.
    Itself,
    Other(Greeting),
    Nobody(String),
}

/// The members that were found for one configured address.
pub(crate) struct EntryFound {
    pub(crate) configured: String,
    /// The maximum number of members behind the entry: a host name may stand for several members.
    members_max: usize,
    /// The result for each dialled address.
    pub(crate) found: Vec<(String, Found)>,
}

/// Greets the members at all configured addresses concurrently.
pub(crate) async fn greet_all(
    links: &Links,
    here: &Candidate,
    own_address: &str,
) -> Result<Vec<EntryFound>, MemberError> {
    let greetings = here.wanted.iter().map(|entry| greet_entry(links, here, own_address, entry));
    futures_util::future::join_all(greetings).await.into_iter().collect()
}

async fn greet_entry(
    links: &Links,
    here: &Candidate,
    own_address: &str,
    entry: &str,
) -> Result<EntryFound, MemberError> {
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
    // One member may have both an IPv4 and an IPv6 address.
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
        Err(LinkError::Refused(Refused::Reason(why))) => return Ok(Found::Nobody(why)),
        // Such as another cluster name, secret or number of partitions: waiting would not help.
        Err(LinkError::Refused(refused)) => return Err(MemberError::Refused(format!("{address}: {refused}"))),
        Err(error) => return Ok(Found::Nobody(error.to_string())),
    };
    match read(&bytes) {
        Ok(Greeting::Alone(other)) if other.candidate.uuid == here.uuid => Ok(Found::Itself),
        Ok(greeting) => Ok(Found::Other(greeting)),
        Err(refusal) => Err(MemberError::Refused(format!("{address}: {}", refusal.0))),
    }
}

/// The members that answer and are in no cluster.
pub(crate) struct Seen {
    /// One address of each member, by UUID.
    pub(crate) there: BTreeMap<Uuid, String>,
    /// The founder that each member has accepted, by the member's UUID.
    accepted: BTreeMap<Uuid, Founder>,
    /// The member at each address.
    at: BTreeMap<String, Uuid>,
    /// The maximum number of members.
    pub(crate) members_max: usize,
    /// An address of this member, as other members dial it.
    pub(crate) own: Option<String>,
    /// The reason why the first missing member does not answer.
    missing: Option<String>,
}

impl Seen {
    /// # Errors
    /// A member is configured with other members: each subset could be a majority of the members
    /// that it knows.
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
        // Two addresses may belong to one member.
        members_max -= distinct_sum - there.len();
        Ok(Seen { there, accepted, at, members_max, own, missing })
    }

    /// The size of a majority of the possible members.
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

    /// Whether a founder has restarted before it founded the cluster: another member is at its
    /// address.
    pub(crate) fn is_gone(&self, founder: &Founder) -> bool {
        self.at.get(&founder.address).is_some_and(|found| *found != founder.uuid)
    }

    /// Returns the member that may start an attempt: a member that was accepted as the founder, or
    /// else any member. Of several, the member with the least UUID. So candidates do not overtake
    /// each other for ever. Even if several members start attempts, only one cluster is founded.
    pub(crate) fn candidate(&self) -> Option<(Uuid, &str)> {
        let accepted = self.accepted.values().map(|founder| founder.uuid).filter(|uuid| self.there.contains_key(uuid));
        let uuid = accepted.min().or_else(|| self.there.keys().next().copied())?;
        Some((uuid, self.there.get(&uuid)?))
    }

    /// The addresses of the members that have accepted this founder.
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

    /// Checks entries of the configuration: the maximum number of members of each, and the results.
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
        // One member with an IPv4 and an IPv6 address, which listens on one of them, or on both.
        check(vec![(1, vec![Found::Itself, nobody()])], 1, 1);
        check(vec![(1, vec![Found::Itself, Found::Itself])], 1, 1);
        // Lite members cannot found a cluster.
        check(vec![(1, vec![Found::Itself]), (1, vec![lite(2)]), (1, vec![lite(3)])], 1, 1);
        check(vec![(1, vec![Found::Itself]), (1, vec![lite(2)]), (1, vec![nobody()])], 1, 2);
        // A host name with three members. Some of them do not answer.
        check(vec![(3, vec![Found::Itself, alone(2), nobody()])], 2, 2);
        check(vec![(3, vec![Found::Itself, nobody(), nobody()])], 1, 2);
    }
}
