//! What all members agree on beside the data: who they are, which maps there are, and who is to hold which group.
//!
//! A pure function of the commands applied: knows neither time, nor who leads, nor a grid.

use std::collections::{BTreeMap, BTreeSet};

use filbert_cluster::{GroupId, MemberId};
use filbert_store::{JournalSettings, MapId, MapSettings};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::placement;

/// What a cluster is made with. It never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterSettings {
    /// Partitions. Default 271.
    pub partitions: u32,
    /// Groups that the partitions are divided into. Default 24.
    pub groups: u32,
    /// Members that hold each group, as far as there are so many. Default 3.
    pub replicas: u32,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        ClusterSettings { partitions: 271, groups: 24, replicas: 3 }
    }
}

/// A member as it describes itself when it joins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberFacts {
    /// By which clients know it, and by which this process is told from others at the same address.
    #[serde(with = "crate::text")]
    pub uuid: Uuid,
    /// Where other members reach it, host and port.
    pub address: String,
    /// Host at which clients reach it.
    pub client_host: String,
    /// The port there.
    pub client_port: u16,
    /// Whether it holds no data.
    pub is_lite: bool,
}

/// A map that all members know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MapFacts {
    /// Its name.
    pub name: String,
    /// Time to live of entries put without one, in milliseconds; 0 = for ever.
    ttl_default_ms: i64,
    /// Max idle time of entries put without one, in milliseconds; 0 = for ever.
    max_idle_default_ms: i64,
    eviction_sample_size: usize,
    unlock_memory_max: usize,
    /// Events per partition, and milliseconds that each is kept.
    journal: Option<(usize, i64)>,
}

impl MapFacts {
    pub(crate) fn new(name: &str, settings: &MapSettings) -> Self {
        MapFacts {
            name: name.to_owned(),
            ttl_default_ms: settings.ttl_default_ms,
            max_idle_default_ms: settings.max_idle_default_ms,
            eviction_sample_size: settings.eviction_sample_size,
            unlock_memory_max: settings.unlock_memory_max,
            journal: settings.journal.map(|journal| (journal.capacity, journal.ttl_ms)),
        }
    }

    /// What partitions make the map with.
    #[must_use]
    pub fn settings(&self) -> MapSettings {
        MapSettings {
            ttl_default_ms: self.ttl_default_ms,
            max_idle_default_ms: self.max_idle_default_ms,
            eviction_sample_size: self.eviction_sample_size,
            journal: self.journal.map(|(capacity, ttl_ms)| JournalSettings { capacity, ttl_ms }),
            unlock_memory_max: self.unlock_memory_max,
        }
    }
}

/// What the registry's log says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Command {
    /// Begins a cluster, once, with its first members.
    Found {
        #[serde(with = "crate::text")]
        cluster: Uuid,
        settings: ClusterSettings,
        members: BTreeMap<u64, MemberFacts>,
    },
    /// Lets a member in; one that is in already keeps its id.
    Join { facts: MemberFacts },
    /// Has a member hold nothing any more, so that it can go.
    Leave { member: u64 },
    /// Takes a member out, for good.
    Remove { member: u64 },
    /// Makes a map; one that is there already is found.
    MakeMap { map: MapFacts, maps_max: usize },
    /// Drops a map.
    DropMap { map: u32 },
}

/// What a command gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// It is done, or was before.
    Done,
    /// The member's id.
    Member(u64),
    /// The map's id, and how it was made.
    Map(u32, MapFacts),
    /// It cannot be done, and this is why.
    Refused(String),
}

/// The registry's contents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryState {
    /// Commands applied.
    pub version: u64,
    /// The cluster's id; nil before it is founded.
    #[serde(with = "crate::text")]
    pub cluster: Uuid,
    /// What it was made with.
    pub settings: ClusterSettings,
    /// Members by id. The least id is there for longest.
    members: BTreeMap<u64, MemberFacts>,
    /// Those of them that are about to go.
    leaving: BTreeSet<u64>,
    next_member: u64,
    /// Grows with each change of the members.
    pub members_version: i32,
    maps: BTreeMap<u32, MapFacts>,
    next_map: u32,
    /// By group, the members that are to hold it; the first of them is to lead it.
    places: Vec<Vec<u64>>,
}

impl RegistryState {
    /// The members, by id.
    pub fn members(&self) -> impl Iterator<Item = (MemberId, &MemberFacts)> {
        self.members.iter().map(|(id, facts)| (MemberId(*id), facts))
    }

    /// A member.
    #[must_use]
    pub fn member(&self, id: MemberId) -> Option<&MemberFacts> {
        self.members.get(&id.0)
    }

    /// The maps, by id.
    pub fn maps(&self) -> impl Iterator<Item = (MapId, &MapFacts)> {
        self.maps.iter().map(|(id, map)| (MapId(*id), map))
    }

    /// Whether a map is known.
    #[must_use]
    pub fn knows_map(&self, id: MapId) -> bool {
        self.maps.contains_key(&id.0)
    }

    /// The members that are to hold a group of partitions; the first of them is to lead it.
    #[must_use]
    pub fn places(&self, group: GroupId) -> Vec<MemberId> {
        let places = usize::try_from(group.0).ok().and_then(|group| self.places.get(group));
        places.map_or_else(Vec::new, |places| places.iter().map(|id| MemberId(*id)).collect())
    }

    /// The members that are to vote in the registry itself: those that are there for longest.
    #[must_use]
    pub fn registry_places(&self) -> Vec<MemberId> {
        let replicas = self.settings.replicas.max(1) as usize;
        self.stays().take(replicas).map(MemberId).collect()
    }

    /// Whether a member is about to go.
    #[must_use]
    pub fn is_leaving(&self, id: MemberId) -> bool {
        self.leaving.contains(&id.0)
    }

    /// The members that hold data and go on to do so.
    fn stays(&self) -> impl Iterator<Item = u64> {
        let stays = |(id, facts): &(&u64, &MemberFacts)| !facts.is_lite && !self.leaving.contains(id);
        self.members.iter().filter(stays).map(|(id, _)| *id)
    }

    pub(crate) fn apply(&mut self, command: Command) -> Reply {
        self.version += 1;
        match command {
            Command::Found { cluster, settings, members } => self.found(cluster, settings, members),
            Command::Join { facts } => self.join(facts),
            Command::Leave { member } => {
                if self.members.contains_key(&member) && self.leaving.insert(member) {
                    self.members_changed();
                }
                Reply::Done
            }
            Command::Remove { member } => {
                self.leaving.remove(&member);
                if self.members.remove(&member).is_some() {
                    self.members_changed();
                }
                Reply::Done
            }
            Command::MakeMap { map, maps_max } => self.make_map(map, maps_max),
            Command::DropMap { map } => {
                self.maps.remove(&map);
                Reply::Done
            }
        }
    }

    fn found(&mut self, cluster: Uuid, settings: ClusterSettings, members: BTreeMap<u64, MemberFacts>) -> Reply {
        if !self.cluster.is_nil() {
            return Reply::Refused(format!("the cluster {} is founded already", self.cluster));
        }
        self.cluster = cluster;
        self.settings = settings;
        self.next_member = members.keys().next_back().map_or(1, |last| last.saturating_add(1));
        self.members = members;
        self.next_map = 1;
        self.members_changed();
        Reply::Done
    }

    fn join(&mut self, facts: MemberFacts) -> Reply {
        if self.cluster.is_nil() {
            return Reply::Refused("the cluster is not founded yet".to_owned());
        }
        if let Some((id, _)) = self.members.iter().find(|(_, known)| known.uuid == facts.uuid) {
            return Reply::Member(*id);
        }
        let id = self.next_member;
        self.next_member += 1;
        self.members.insert(id, facts);
        self.members_changed();
        Reply::Member(id)
    }

    fn make_map(&mut self, map: MapFacts, maps_max: usize) -> Reply {
        if let Some((id, known)) = self.maps.iter().find(|(_, known)| known.name == map.name) {
            return Reply::Map(*id, known.clone());
        }
        if self.maps.len() >= maps_max {
            let found = self.maps.len();
            return Reply::Refused(format!("the cluster has {found} maps, expected at most {maps_max}"));
        }
        let id = self.next_map;
        self.next_map += 1;
        self.maps.insert(id, map.clone());
        Reply::Map(id, map)
    }

    fn members_changed(&mut self) {
        self.members_version = self.members_version.saturating_add(1);
        let with_data: Vec<u64> = self.stays().collect();
        placement::place(&mut self.places, self.settings.groups, self.settings.replicas, &with_data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(n: u128) -> MemberFacts {
        let address = format!("127.0.0.1:{}", 6_000 + n);
        let client_host = "127.0.0.1".to_owned();
        MemberFacts { uuid: Uuid::from_u128(n), address, client_host, client_port: 5_701, is_lite: false }
    }

    fn founded(members: u64) -> RegistryState {
        let mut state = RegistryState::default();
        let members = (1..=members).map(|id| (id, facts(u128::from(id)))).collect();
        let cluster = Uuid::from_u128(99);
        assert_eq!(state.apply(Command::Found { cluster, settings: ClusterSettings::default(), members }), Reply::Done);
        state
    }

    #[test]
    fn a_cluster_is_founded_once() {
        let mut state = founded(2);
        let again =
            Command::Found { cluster: Uuid::from_u128(7), settings: ClusterSettings::default(), members: [].into() };
        assert!(matches!(state.apply(again), Reply::Refused(why) if why.contains("founded already")));
        assert_eq!(state.members().count(), 2);
    }

    #[test]
    fn ids_of_members_are_not_used_again_and_who_asks_twice_has_one() {
        let mut state = founded(1);
        assert_eq!(state.apply(Command::Join { facts: facts(5) }), Reply::Member(2));
        assert_eq!(state.apply(Command::Join { facts: facts(5) }), Reply::Member(2));
        let version = state.members_version;
        assert_eq!(state.apply(Command::Remove { member: 2 }), Reply::Done);
        assert_eq!(state.members_version, version + 1);
        assert_eq!(state.apply(Command::Join { facts: facts(6) }), Reply::Member(3));
    }

    #[test]
    fn a_map_has_one_id_however_often_it_is_made_and_another_after_its_end() {
        let mut state = founded(1);
        let make = |maps_max| Command::MakeMap { map: MapFacts::new("m", &MapSettings::default()), maps_max };
        let Reply::Map(id, _) = state.apply(make(1)) else { panic!("it is not made") };
        assert!(matches!(state.apply(make(1)), Reply::Map(again, _) if again == id));
        let other = MapFacts::new("n", &MapSettings::default());
        assert!(matches!(state.apply(Command::MakeMap { map: other, maps_max: 1 }), Reply::Refused(_)));
        state.apply(Command::DropMap { map: id });
        assert!(matches!(state.apply(make(1)), Reply::Map(again, _) if again != id));
    }
}
