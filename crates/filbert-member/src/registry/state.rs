//! What all members agree on beside the data: who they are, which maps there are, and who is to hold which group.
//!
//! A pure function of the commands applied: knows neither time, nor who leads, nor a grid.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use filbert_cluster::{GroupId, MemberId};
use filbert_grid::{Definition, Definitions, Redefinition};
use filbert_store::{JournalSettings, MapId, MapSettings};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::placement;
use super::recoveries::{IDS_SKIPPED, Loss, NUMBERS_SKIPPED, Recoveries, VERSIONS_SKIPPED};

/// What a cluster is made with. It never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterSettings {
    /// Partitions. Default 271.
    pub partitions: u32,
    /// Groups that the partitions are divided into. Default 24.
    pub groups: u32,
    /// Members that hold each group, as far as there are so many. Default 3.
    pub replicas: u32,
    /// Seed of the hashes by which partitions order their entries: a position in a map that one member gave is good at each. 0, the
    /// default, has the founder draw one.
    pub hash_seed: u64,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        ClusterSettings { partitions: 271, groups: 12, replicas: 3, hash_seed: 0 }
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
    /// When it asked to be let in, by its own clock: Unix milliseconds.
    #[serde(default)]
    pub joined_ms: i64,
    /// The latest version of what members send each other that it speaks.
    #[serde(default = "first_version")]
    pub version: u16,
}

fn first_version() -> u16 {
    1
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
        /// So many members with data must be there before any of them serves.
        #[serde(default)]
        members_needed: u64,
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
    /// Changes definitions together, if all are as expected. Given twice with the same id, it is made once.
    Redefine {
        #[serde(with = "crate::text")]
        id: Uuid,
        changes: Vec<Change>,
        definitions_max: usize,
    },
    /// Takes numbers of a name. Given twice, numbers are left out.
    TakeNumbers { name: String, count: u64 },
    /// The cluster goes on without members, in a later epoch; given again, it changes nothing.
    Recover {
        epoch: u64,
        /// The members that it goes on without.
        without: BTreeSet<u64>,
        /// Groups that may have lost something.
        losses: BTreeMap<u32, Loss>,
        /// Whether the registry may have.
        registry_too: bool,
    },
}

/// A change of a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    pub(crate) name: String,
    /// The version that must be there; `None` = nothing must be.
    pub(crate) expected: Option<u64>,
    /// What is to be there; `None` = nothing.
    pub(crate) text: Option<String>,
}

/// Definitions of a cluster, at most.
const DEFINITIONS_MAX: usize = 100_000;

/// The command that changes definitions together. Given again as it is, it changes nothing more.
pub(crate) fn redefine(changes: Vec<Redefinition>) -> Command {
    let change = |Redefinition { name, expected, text }| Change { name, expected, text };
    let changes = changes.into_iter().map(change).collect();
    Command::Redefine { id: Uuid::new_v4(), changes, definitions_max: DEFINITIONS_MAX }
}

/// What is known under a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Defined {
    version: u64,
    #[serde(with = "crate::text::shared")]
    text: Arc<str>,
    /// Numbers that were taken.
    #[serde(default, skip_serializing_if = "is_zero")]
    taken: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
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
    /// A definition was not as expected: nothing was changed.
    Stale,
    /// The first of the numbers that were taken.
    Numbers(u64),
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
    /// Members with data that must have been there at once before any of them serves.
    #[serde(default)]
    members_needed: u64,
    /// Whether they were not yet.
    #[serde(default)]
    is_incomplete: bool,
    /// Grows with each change of the members.
    pub members_version: i32,
    maps: BTreeMap<u32, MapFacts>,
    next_map: u32,
    /// By group, the members that are to hold it; the first of them is to lead it.
    places: Vec<Vec<u64>>,
    /// Members that were here, the latest last.
    #[serde(default)]
    gone: Vec<Id>,
    /// What is known under names beside maps.
    #[serde(default)]
    definitions: BTreeMap<String, Defined>,
    /// Grows with each change of them.
    #[serde(default)]
    definitions_version: u64,
    /// The latest changes of definitions, the last one last.
    #[serde(default)]
    redefined: Vec<Id>,
    #[serde(default)]
    recoveries: Recoveries,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Id(#[serde(with = "crate::text")] Uuid);

/// As many members that were here, and changes that were made, are remembered: whoever asks about one does so long before.
const REMEMBERED_MAX: usize = 256;

fn remember(ids: &mut Vec<Id>, id: Uuid) {
    ids.push(Id(id));
    let forgotten = ids.len().saturating_sub(REMEMBERED_MAX);
    ids.drain(..forgotten);
}

impl RegistryState {
    /// The members, by id.
    pub fn members(&self) -> impl Iterator<Item = (MemberId, &MemberFacts)> {
        self.members.iter().map(|(id, facts)| (MemberId(*id), facts))
    }

    /// The latest version that all members speak: what one writes that others read must be of no later one.
    #[must_use]
    pub fn version_of_all(&self) -> u16 {
        self.members.values().map(|facts| facts.version).min().unwrap_or_else(first_version)
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

    /// Maps that were made so far, those that were dropped among them.
    #[must_use]
    pub fn maps_made(&self) -> u32 {
        self.next_map
    }

    /// Whether a map was dropped: not, if it is not made yet as far as this member knows. Ids are never given again.
    #[must_use]
    pub fn was_dropped(&self, id: MapId) -> bool {
        id.0 < self.next_map && !self.knows_map(id)
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

    /// Whether a member was here and is not any more; remembered of the latest ones.
    #[must_use]
    pub fn is_gone(&self, member: Uuid) -> bool {
        self.gone.contains(&Id(member))
    }

    /// What is known under names beside maps.
    #[must_use]
    pub fn definitions(&self) -> Definitions {
        let known = |defined: &Defined| Definition { version: defined.version, text: defined.text.clone() };
        let by_name = self.definitions.iter().map(|(name, defined)| (name.clone(), known(defined)));
        Definitions { version: self.definitions_version, by_name: by_name.collect() }
    }

    /// Grows with each change of definitions.
    #[must_use]
    pub fn definitions_version(&self) -> u64 {
        self.definitions_version
    }

    /// Whether as many members have been there as were to found the cluster.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.cluster.is_nil() && !self.is_incomplete
    }

    /// Members with data that must have been there at once before any of them serves: most of those that are configured.
    #[must_use]
    pub fn members_needed(&self) -> u64 {
        self.members_needed
    }

    /// Whether a member was one, and is none any more: its id is never given again.
    #[must_use]
    pub fn was_taken_out(&self, id: MemberId) -> bool {
        id.0 < self.next_member && !self.members.contains_key(&id.0)
    }

    /// Orders to go on without a majority.
    pub(crate) fn recoveries(&self) -> &Recoveries {
        &self.recoveries
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
            Command::Found { cluster, settings, members, members_needed } => {
                self.found(cluster, settings, members, members_needed)
            }
            Command::Join { facts } => self.join(facts),
            Command::Leave { member } => {
                if self.members.contains_key(&member) && self.leaving.insert(member) {
                    self.members_changed();
                }
                Reply::Done
            }
            Command::Remove { member } => {
                self.leaving.remove(&member);
                if let Some(facts) = self.members.remove(&member) {
                    remember(&mut self.gone, facts.uuid);
                    self.members_changed();
                }
                Reply::Done
            }
            Command::MakeMap { map, maps_max } => self.make_map(map, maps_max),
            Command::DropMap { map } => {
                self.maps.remove(&map);
                Reply::Done
            }
            Command::Redefine { id, changes, definitions_max } => self.redefine(id, changes, definitions_max),
            Command::TakeNumbers { name, count } => match self.definitions.get_mut(&name) {
                Some(defined) => {
                    let first = defined.taken;
                    defined.taken = first.saturating_add(count);
                    Reply::Numbers(first)
                }
                None => Reply::Refused(format!("there is no definition {name:?} to take numbers of")),
            },
            Command::Recover { epoch, without, losses, registry_too } => {
                self.recover(epoch, &without, losses, registry_too);
                Reply::Done
            }
        }
    }

    fn found(
        &mut self,
        cluster: Uuid,
        settings: ClusterSettings,
        members: BTreeMap<u64, MemberFacts>,
        members_needed: u64,
    ) -> Reply {
        if !self.cluster.is_nil() {
            return Reply::Refused(format!("the cluster {} is founded already", self.cluster));
        }
        self.cluster = cluster;
        self.settings = settings;
        self.next_member = members.keys().next_back().map_or(1, |last| last.saturating_add(1));
        self.members = members;
        (self.members_needed, self.is_incomplete) = (members_needed, true);
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

    fn redefine(&mut self, id: Uuid, changes: Vec<Change>, definitions_max: usize) -> Reply {
        if self.redefined.contains(&Id(id)) {
            // Whoever asks again has not seen the answer.
            return Reply::Done;
        }
        let found = |change: &Change| self.definitions.get(&change.name);
        if changes.iter().any(|change| found(change).map(|defined| defined.version) != change.expected) {
            return Reply::Stale;
        }
        let (come, go) = changes.iter().fold((0, 0), |(come, go), change| match (&change.text, change.expected) {
            (Some(_), None) => (come + 1, go),
            (None, Some(_)) => (come, go + 1),
            _ => (come, go),
        });
        let count = (self.definitions.len() + come).saturating_sub(go);
        if come > 0 && count > definitions_max {
            return Reply::Refused(format!(
                "the cluster would have {count} definitions, expected at most {definitions_max}"
            ));
        }
        remember(&mut self.redefined, id);
        self.definitions_version += 1;
        for change in changes {
            let taken = self.definitions.get(&change.name).map_or(0, |defined| defined.taken);
            match change.text {
                Some(text) => {
                    let defined = Defined { version: self.definitions_version, text: text.into(), taken };
                    self.definitions.insert(change.name, defined);
                }
                None => _ = self.definitions.remove(&change.name),
            }
        }
        Reply::Done
    }

    fn recover(&mut self, epoch: u64, without: &BTreeSet<u64>, losses: BTreeMap<u32, Loss>, registry_too: bool) {
        let left_behind: Vec<_> = without.iter().filter_map(|id| Some((*id, self.members.get(id)?.clone()))).collect();
        if !self.recoveries.add(epoch, losses, left_behind.iter().cloned()) {
            return;
        }
        for (id, facts) in left_behind {
            self.members.remove(&id);
            self.leaving.remove(&id);
            remember(&mut self.gone, facts.uuid);
        }
        if registry_too {
            self.version = self.version.saturating_add(VERSIONS_SKIPPED);
            self.definitions_version = self.definitions_version.saturating_add(VERSIONS_SKIPPED);
            self.next_member = self.next_member.saturating_add(u64::from(IDS_SKIPPED));
            self.next_map = self.next_map.saturating_add(IDS_SKIPPED);
            self.members_version = self.members_version.saturating_add(IDS_SKIPPED.cast_signed());
            for defined in self.definitions.values_mut() {
                defined.taken = defined.taken.saturating_add(NUMBERS_SKIPPED);
            }
        }
        self.members_changed();
    }

    fn members_changed(&mut self) {
        self.members_version = self.members_version.saturating_add(1);
        let with_data: Vec<u64> = self.stays().collect();
        if with_data.len() as u64 >= self.members_needed {
            self.is_incomplete = false;
        }
        placement::place(&mut self.places, self.settings.groups, self.settings.replicas, &with_data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(n: u128) -> MemberFacts {
        let address = format!("127.0.0.1:{}", 6_000 + n);
        let client_host = "127.0.0.1".to_owned();
        MemberFacts {
            uuid: Uuid::from_u128(n),
            address,
            client_host,
            client_port: 5_701,
            is_lite: false,
            joined_ms: 0,
            version: 1,
        }
    }

    fn founded(members: u64) -> RegistryState {
        let mut state = RegistryState::default();
        let members = (1..=members).map(|id| (id, facts(u128::from(id)))).collect();
        let cluster = Uuid::from_u128(99);
        assert_eq!(
            state.apply(Command::Found { cluster, settings: ClusterSettings::default(), members, members_needed: 1 }),
            Reply::Done
        );
        state
    }

    #[test]
    fn a_cluster_is_founded_once() {
        let mut state = founded(2);
        let again = Command::Found {
            cluster: Uuid::from_u128(7),
            settings: ClusterSettings::default(),
            members: [].into(),
            members_needed: 0,
        };
        assert!(matches!(state.apply(again), Reply::Refused(why) if why.contains("founded already")));
        assert_eq!(state.members().count(), 2);
    }

    #[test]
    fn a_cluster_is_complete_once_and_for_all() {
        let mut state = RegistryState::default();
        let (cluster, settings) = (Uuid::from_u128(99), ClusterSettings::default());
        let members = [(1, facts(1))].into();
        assert_eq!(state.apply(Command::Found { cluster, settings, members, members_needed: 2 }), Reply::Done);
        assert_eq!((state.is_complete(), state.members_needed()), (false, 2));
        assert_eq!(state.apply(Command::Join { facts: facts(2) }), Reply::Member(2));
        assert!(state.is_complete());
        assert_eq!(state.apply(Command::Remove { member: 2 }), Reply::Done);
        assert!(state.is_complete());
    }

    #[test]
    fn ids_of_members_are_not_used_again_and_who_asks_twice_has_one() {
        let mut state = founded(1);
        assert_eq!(state.apply(Command::Join { facts: facts(5) }), Reply::Member(2));
        assert_eq!(state.apply(Command::Join { facts: facts(5) }), Reply::Member(2));
        let version = state.members_version;
        assert!(!state.was_taken_out(MemberId(2)));
        assert_eq!(state.apply(Command::Remove { member: 2 }), Reply::Done);
        assert_eq!([1, 2, 3].map(|id| state.was_taken_out(MemberId(id))), [false, true, false]);
        assert_eq!(state.members_version, version + 1);
        assert_eq!(state.apply(Command::Join { facts: facts(6) }), Reply::Member(3));
    }

    fn redefine(state: &mut RegistryState, id: u128, changes: &[(&str, Option<u64>, Option<&str>)]) -> Reply {
        let change = |(name, expected, text): &(&str, Option<u64>, Option<&str>)| Change {
            name: (*name).to_owned(),
            expected: *expected,
            text: text.map(str::to_owned),
        };
        let changes = changes.iter().map(change).collect();
        state.apply(Command::Redefine { id: Uuid::from_u128(id), changes, definitions_max: 2 })
    }

    #[test]
    fn definitions_are_changed_together_if_they_are_as_expected() {
        let mut state = founded(1);
        assert_eq!(redefine(&mut state, 1, &[("a", None, Some("one"))]), Reply::Done);
        assert_eq!(redefine(&mut state, 1, &[("a", None, Some("one"))]), Reply::Done, "it is asked again");
        assert_eq!(redefine(&mut state, 2, &[("a", None, Some("two"))]), Reply::Stale);
        let version = state.definitions().by_name["a"].version;
        assert_eq!(redefine(&mut state, 3, &[("a", Some(version), None), ("b", Some(9), Some("b"))]), Reply::Stale);
        assert_eq!(&*state.definitions().by_name["a"].text, "one");
        assert_eq!(redefine(&mut state, 4, &[("a", Some(version), None), ("b", None, Some("b"))]), Reply::Done);
        assert_eq!(state.definitions().by_name.keys().collect::<Vec<_>>(), ["b"]);
        assert_eq!(redefine(&mut state, 5, &[("c", None, Some("c")), ("d", None, Some("d"))]), {
            Reply::Refused("the cluster would have 3 definitions, expected at most 2".to_owned())
        });
    }

    #[test]
    fn numbers_of_a_name_come_once_and_end_with_its_definition() {
        let mut state = founded(1);
        let take = |state: &mut RegistryState, count| state.apply(Command::TakeNumbers { name: "s".to_owned(), count });
        assert!(matches!(take(&mut state, 1), Reply::Refused(_)));
        redefine(&mut state, 1, &[("s", None, Some("s"))]);
        assert_eq!((take(&mut state, 5), take(&mut state, 1)), (Reply::Numbers(0), Reply::Numbers(5)));
        let version = state.definitions().by_name["s"].version;
        redefine(&mut state, 2, &[("s", Some(version), None)]);
        redefine(&mut state, 3, &[("s", None, Some("s"))]);
        assert_eq!(take(&mut state, 1), Reply::Numbers(0));
    }

    #[test]
    fn a_cluster_goes_on_without_members_once_and_gives_nothing_twice() {
        let mut state = founded(3);
        redefine(&mut state, 1, &[("s", None, Some("s"))]);
        state.apply(Command::TakeNumbers { name: "s".to_owned(), count: 5 });
        let before = state.clone();
        let loss = Loss { epoch: 7, kept_by: facts(1).uuid, copies_lost: 2 };
        let recover = |epoch, registry_too| Command::Recover {
            epoch,
            without: [2, 3].into(),
            losses: [(4, Loss { epoch, ..loss.clone() })].into(),
            registry_too,
        };
        assert_eq!(state.apply(recover(7, true)), Reply::Done);
        assert_eq!(state.members().map(|(id, _)| id).collect::<Vec<_>>(), [MemberId(1)]);
        assert!(state.is_complete() && state.is_gone(facts(2).uuid) && state.was_taken_out(MemberId(3)));
        assert_eq!(state.places(GroupId(4)), [MemberId(1)]);
        assert!(state.members_version > before.members_version && state.version > before.version + 1_000);
        assert_eq!(state.recoveries().losses().collect::<Vec<_>>(), [(GroupId(4), &loss)]);
        let behind: Vec<_> = state.recoveries().left_behind().map(|(id, _)| id).collect();
        assert_eq!((state.recoveries().epoch().0, behind), (7, vec![MemberId(2), MemberId(3)]));
        // Who comes back comes as another one; ids and numbers that the lost ones may have given are not given.
        assert!(matches!(state.apply(Command::Join { facts: facts(2) }), Reply::Member(id) if id > 1_000));
        let numbers = state.apply(Command::TakeNumbers { name: "s".to_owned(), count: 1 });
        assert!(matches!(numbers, Reply::Numbers(first) if first > 1_000));
        let after = state.clone();
        for epoch in [7, 6] {
            assert_eq!(state.apply(recover(epoch, true)), Reply::Done);
            assert_eq!(RegistryState { version: after.version, ..state.clone() }, after);
        }
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
