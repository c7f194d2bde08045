//! The state that all members agree on beside the data: the members, the maps, and the placement of
//! the groups.
//!
//! A pure function of the applied commands: knows neither the time, nor leaders, nor a grid.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use filbert_cluster::{GroupId, MemberId};
use filbert_grid::{Definition, Definitions, Redefinition};
use filbert_store::MapId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::maps::{MapFacts, Replaces};
use super::placement;
use super::recoveries::{IDS_SKIPPED, Loss, NUMBERS_SKIPPED, Recoveries, VERSIONS_SKIPPED};

/// The settings of a cluster. They never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterSettings {
    /// The number of partitions. Default 271.
    pub partitions: u32,
    /// The number of groups that the partitions are divided into. Default 12.
    pub groups: u32,
    /// The number of members that hold each group, if there are enough members. Default 3.
    pub replicas: u32,
    /// The seed of the hashes that order the entries of a partition. With the same seed, the
    /// iteration position that one member returned is valid at each member. 0, the default: the
    /// founder draws a seed.
    pub hash_seed: u64,
}

impl Default for ClusterSettings {
    fn default() -> Self {
        ClusterSettings { partitions: 271, groups: 12, replicas: 3, hash_seed: 0 }
    }
}

/// The description of a member, which it sends when it joins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberFacts {
    /// Identifies the member to clients, and distinguishes it from other processes at the same
    /// address.
    #[serde(with = "crate::text")]
    pub uuid: Uuid,
    /// The address at which other members reach this member, host and port.
    pub address: String,
    /// The host at which clients reach this member.
    pub client_host: String,
    /// The port at which clients reach this member.
    pub client_port: u16,
    /// Whether this member holds no data.
    pub is_lite: bool,
    /// The time at which this member asked to join, by its own clock, in Unix milliseconds.
    #[serde(default)]
    pub joined_ms: i64,
    /// The latest protocol version that this member speaks.
    #[serde(default = "first_version")]
    pub version: u16,
}

fn first_version() -> u16 {
    1
}

/// A command of the registry's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Command {
    /// Founds the cluster with its first members. Applied once.
    Found {
        #[serde(with = "crate::text")]
        cluster: Uuid,
        settings: ClusterSettings,
        members: BTreeMap<u64, MemberFacts>,
        /// The number of members with data that must have joined before any member serves.
        #[serde(default)]
        members_needed: u64,
    },
    /// Adds a member. A member that has joined already keeps its id.
    Join { facts: MemberFacts },
    /// Marks a member as leaving: it gets no groups any more, and can be removed later.
    Leave { member: u64 },
    /// Removes a member for good.
    Remove { member: u64 },
    /// Creates a map. Returns the existing map if there is one.
    MakeMap { map: MapFacts, maps_max: usize },
    /// Destroys a map.
    DropMap { map: u32 },
    /// Destroys a map that is hidden. Another one stays.
    AbandonMap { map: u32 },
    /// A hidden map takes the place of the map that it replaces, and definitions are changed, if
    /// all have the expected versions. A retry with the same id has no further effect.
    ReplaceMap {
        #[serde(with = "crate::text")]
        id: Uuid,
        map: u32,
        changes: Vec<Change>,
        definitions_max: usize,
    },
    /// Changes definitions together, if all have the expected versions. A retry with the same id
    /// has no further effect.
    Redefine {
        #[serde(with = "crate::text")]
        id: Uuid,
        changes: Vec<Change>,
        definitions_max: usize,
    },
    /// Takes numbers from the counter of a definition. A retry skips numbers.
    TakeNumbers { name: String, count: u64 },
    /// The cluster continues without some members, in a later epoch. A retry has no effect.
    Recover {
        epoch: u64,
        /// The members that the cluster continues without.
        without: BTreeSet<u64>,
        /// The groups that may have lost changes.
        losses: BTreeMap<u32, Loss>,
        /// Whether the registry itself may have lost commands.
        registry_too: bool,
    },
}

/// A change of a definition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    pub(crate) name: String,
    /// The expected version of the definition. `None` = there must be no definition.
    pub(crate) expected: Option<u64>,
    /// The new text of the definition. `None` = the definition is removed.
    pub(crate) text: Option<String>,
}

/// The maximum number of definitions of a cluster.
const DEFINITIONS_MAX: usize = 100_000;

fn changes_of(redefinitions: Vec<Redefinition>) -> Vec<Change> {
    let change = |Redefinition { name, expected, text }| Change { name, expected, text };
    redefinitions.into_iter().map(change).collect()
}

/// Creates the command that changes definitions together. A retry of the same command has no
/// further effect.
pub(crate) fn redefine(changes: Vec<Redefinition>) -> Command {
    Command::Redefine { id: Uuid::new_v4(), changes: changes_of(changes), definitions_max: DEFINITIONS_MAX }
}

/// Creates the command that replaces a map by a hidden map, and changes definitions. A retry of the
/// same command has no further effect.
pub(crate) fn replace(map: MapId, changes: Vec<Redefinition>) -> Command {
    let (id, changes) = (Uuid::new_v4(), changes_of(changes));
    Command::ReplaceMap { id, map: map.0, changes, definitions_max: DEFINITIONS_MAX }
}

/// A definition, stored under its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Defined {
    version: u64,
    #[serde(with = "crate::text::shared")]
    text: Arc<str>,
    /// The number of numbers that were taken.
    #[serde(default, skip_serializing_if = "is_zero")]
    taken: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The command was applied, now or before.
    Done,
    /// The id of the member.
    Member(u64),
    /// The id of the map, and its description.
    Map(u32, MapFacts),
    /// A definition did not have the expected version. Nothing was changed.
    Stale,
    /// The first of the numbers that were taken.
    Numbers(u64),
    /// The command was refused, for this reason.
    Refused(String),
}

/// The state of the registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistryState {
    /// The number of applied commands.
    pub version: u64,
    /// The UUID of the cluster. Nil before the cluster is founded.
    #[serde(with = "crate::text")]
    pub cluster: Uuid,
    /// The settings of the cluster.
    pub settings: ClusterSettings,
    /// The members by id. The member with the least id has been in the cluster for longest.
    members: BTreeMap<u64, MemberFacts>,
    /// The members that are leaving.
    leaving: BTreeSet<u64>,
    next_member: u64,
    /// The number of members with data that must have been present together before any member
    /// serves.
    #[serde(default)]
    members_needed: u64,
    /// Whether that number has not been reached yet.
    #[serde(default)]
    is_incomplete: bool,
    /// Incremented with each change of the members.
    pub members_version: i32,
    maps: BTreeMap<u32, MapFacts>,
    next_map: u32,
    /// The members that are to hold each group, by group number. The first member is to lead the
    /// group.
    places: Vec<Vec<u64>>,
    /// The UUIDs of former members, the latest last.
    #[serde(default)]
    gone: Vec<Id>,
    /// The definitions by name. Maps are not among them.
    #[serde(default)]
    definitions: BTreeMap<String, Defined>,
    /// Incremented with each change of definitions.
    #[serde(default)]
    definitions_version: u64,
    /// The ids of the latest changes of definitions, the latest last.
    #[serde(default)]
    redefined: Vec<Id>,
    #[serde(default)]
    recoveries: Recoveries,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Id(#[serde(with = "crate::text")] Uuid);

/// The maximum number of former members, and of changes, that are remembered. A question about one
/// of them comes long before it is forgotten.
const REMEMBERED_MAX: usize = 256;

fn remember(ids: &mut Vec<Id>, id: Uuid) {
    ids.push(Id(id));
    let forgotten = ids.len().saturating_sub(REMEMBERED_MAX);
    ids.drain(..forgotten);
}

impl RegistryState {
    /// The members, ordered by id.
    pub fn members(&self) -> impl Iterator<Item = (MemberId, &MemberFacts)> {
        self.members.iter().map(|(id, facts)| (MemberId(*id), facts))
    }

    /// The latest protocol version that all members speak. Messages and entries that other members
    /// read must not have a later version.
    #[must_use]
    pub fn version_of_all(&self) -> u16 {
        self.members.values().map(|facts| facts.version).min().unwrap_or_else(first_version)
    }

    /// The member with an id.
    #[must_use]
    pub fn member(&self, id: MemberId) -> Option<&MemberFacts> {
        self.members.get(&id.0)
    }

    /// The maps, ordered by id.
    pub fn maps(&self) -> impl Iterator<Item = (MapId, &MapFacts)> {
        self.maps.iter().map(|(id, map)| (MapId(*id), map))
    }

    /// The upper bound of map ids: all maps that were ever created have a lower id. Grows with each
    /// map that is created.
    #[must_use]
    pub fn maps_made(&self) -> u32 {
        self.next_map
    }

    /// Whether a map was destroyed. False if it has not been created yet, as far as this member
    /// knows. Map ids are never reused.
    #[must_use]
    pub fn was_dropped(&self, id: MapId) -> bool {
        id.0 < self.next_map && !self.knows_map(id)
    }

    /// Whether a map exists.
    #[must_use]
    pub fn knows_map(&self, id: MapId) -> bool {
        self.maps.contains_key(&id.0)
    }

    /// The members that are to hold a group of partitions. The first member is to lead it.
    #[must_use]
    pub fn places(&self, group: GroupId) -> Vec<MemberId> {
        let places = usize::try_from(group.0).ok().and_then(|group| self.places.get(group));
        places.map_or_else(Vec::new, |places| places.iter().map(|id| MemberId(*id)).collect())
    }

    /// The members that are to vote in the registry itself: the members with data that have been in
    /// the cluster for longest.
    #[must_use]
    pub fn registry_places(&self) -> Vec<MemberId> {
        let replicas = self.settings.replicas.max(1) as usize;
        self.stays().take(replicas).map(MemberId).collect()
    }

    /// Whether a UUID belongs to a former member. Only the latest former members are remembered.
    #[must_use]
    pub fn is_gone(&self, member: Uuid) -> bool {
        self.gone.contains(&Id(member))
    }

    /// All definitions. Maps are not among them.
    #[must_use]
    pub fn definitions(&self) -> Definitions {
        let known = |defined: &Defined| Definition { version: defined.version, text: defined.text.clone() };
        let by_name = self.definitions.iter().map(|(name, defined)| (name.clone(), known(defined)));
        Definitions { version: self.definitions_version, by_name: by_name.collect() }
    }

    /// Incremented with each change of definitions.
    #[must_use]
    pub fn definitions_version(&self) -> u64 {
        self.definitions_version
    }

    /// Whether as many members have been present together as were needed to found the cluster.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.cluster.is_nil() && !self.is_incomplete
    }

    /// The number of members with data that must have been present together before any member
    /// serves: a majority of the configured members.
    #[must_use]
    pub fn members_needed(&self) -> u64 {
        self.members_needed
    }

    /// Whether a member has been removed. Its id is never reused.
    #[must_use]
    pub fn was_taken_out(&self, id: MemberId) -> bool {
        id.0 < self.next_member && !self.members.contains_key(&id.0)
    }

    /// The record of recoveries without a majority.
    pub(crate) fn recoveries(&self) -> &Recoveries {
        &self.recoveries
    }

    /// Whether a member is leaving.
    #[must_use]
    pub fn is_leaving(&self, id: MemberId) -> bool {
        self.leaving.contains(&id.0)
    }

    /// Whether any member that holds data is not leaving.
    #[must_use]
    pub fn any_stays(&self) -> bool {
        self.stays().next().is_some()
    }

    /// The members that hold data and are not leaving.
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
                    self.drop_hidden_of(member);
                    self.members_changed();
                }
                Reply::Done
            }
            Command::MakeMap { map, maps_max } => self.make_map(map, maps_max),
            Command::DropMap { map } => {
                self.maps.remove(&map);
                Reply::Done
            }
            Command::AbandonMap { map } => {
                self.maps.retain(|id, facts| *id != map || !facts.is_hidden());
                Reply::Done
            }
            Command::ReplaceMap { id, map, changes, definitions_max } => {
                self.replace_map(id, map, changes, definitions_max)
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
        let is_same = |known: &MapFacts| match (&map.replaces, &known.replaces) {
            (Some(new), Some(known)) => new.id == known.id,
            (Some(_), None) => false,
            (None, _) => known.name == map.name && !known.is_hidden(),
        };
        if let Some((id, known)) = self.maps.iter().find(|(_, known)| is_same(known)) {
            return Reply::Map(*id, known.clone());
        }
        // A replacing map may exceed the limit, because the replaced map is dropped soon.
        if self.maps.len() >= maps_max && map.replaces.is_none() {
            let found = self.maps.len();
            return Reply::Refused(format!("the cluster has {found} maps, expected at most {maps_max}"));
        }
        let id = self.next_map;
        self.next_map += 1;
        self.maps.insert(id, map.clone());
        Reply::Map(id, map)
    }

    fn replace_map(&mut self, id: Uuid, map: u32, changes: Vec<Change>, definitions_max: usize) -> Reply {
        if self.redefined.contains(&Id(id)) {
            // A retry: the caller has not received the answer.
            return Reply::Done;
        }
        let Some(facts) = self.maps.get(&map) else { return Reply::Refused("the new map was dropped".to_owned()) };
        let (name, Some(replaces)) = (&facts.name, facts.replaces.filter(|replaces| replaces.is_hidden)) else {
            return Reply::Refused(format!("the map {:?} replaces no map", facts.name));
        };
        if !self.maps.contains_key(&replaces.old) {
            return Reply::Refused("the map that was to be replaced was dropped".to_owned());
        }
        let others = |(id, known): (&u32, &MapFacts)| *id != replaces.old && !known.is_hidden() && known.name == *name;
        if self.maps.iter().any(others) {
            return Reply::Refused(format!("there is a map {name:?} already"));
        }
        let redefined = self.redefine(id, changes, definitions_max);
        if redefined == Reply::Done {
            self.maps.remove(&replaces.old);
            if let Some(facts) = self.maps.get_mut(&map) {
                facts.replaces = Some(Replaces { is_hidden: false, ..replaces });
            }
        }
        redefined
    }

    /// Drops the hidden maps of a member that is gone.
    fn drop_hidden_of(&mut self, member: u64) {
        let is_of_member = |replaces: Replaces| replaces.is_hidden && replaces.member == member;
        self.maps.retain(|_, facts| !facts.replaces.is_some_and(is_of_member));
    }

    fn redefine(&mut self, id: Uuid, changes: Vec<Change>, definitions_max: usize) -> Reply {
        if self.redefined.contains(&Id(id)) {
            // A retry: the caller has not received the answer.
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
            self.drop_hidden_of(id);
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
    use filbert_store::MapSettings;

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
        // A member that comes back gets a new id. Ids and numbers that lost commands may have
        // assigned are not assigned again.
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

    #[test]
    fn a_hidden_map_takes_the_place_of_another_one_together_with_definitions() {
        let mut state = founded(2);
        let facts = |name: &str| MapFacts::new(name, &MapSettings::default());
        let make = |state: &mut RegistryState, map: MapFacts| match state.apply(Command::MakeMap { map, maps_max: 2 }) {
            Reply::Map(id, _) => MapId(id),
            reply => panic!("{reply:?}"),
        };
        let (old, other) = (make(&mut state, facts("m")), make(&mut state, facts("n")));
        let hidden = facts("m").replacing(old, MemberId(1));
        let new = make(&mut state, hidden.clone());
        assert_eq!(make(&mut state, hidden), new, "it is asked again");
        assert_eq!(make(&mut state, facts("m")), old, "the name is still that of the old map");
        redefine(&mut state, 1, &[("t", None, Some("old"))]);
        let version = state.definitions().by_name["t"].version;
        let change = |expected| Redefinition { name: "t".to_owned(), expected, text: Some("new".to_owned()) };
        assert_eq!(state.apply(replace(new, vec![change(None)])), Reply::Stale);
        assert!(state.knows_map(old));
        let command = replace(new, vec![change(Some(version))]);
        assert_eq!(state.apply(command.clone()), Reply::Done);
        assert_eq!(&*state.definitions().by_name["t"].text, "new");
        assert_eq!((state.knows_map(old), state.was_dropped(old)), (false, true));
        let found: Vec<_> = state.maps().map(|(id, facts)| (id, facts.is_hidden(), facts.replaced())).collect();
        assert_eq!(found, [(other, false, None), (new, false, Some(old))]);
        assert_eq!(make(&mut state, facts("m")), new);
        assert_eq!(state.apply(command), Reply::Done, "it is asked again");
        // A member that does not know the outcome abandons the map: it stays.
        assert_eq!(state.apply(Command::AbandonMap { map: new.0 }), Reply::Done);
        assert!(state.knows_map(new));
        assert!(matches!(state.apply(replace(new, vec![])), Reply::Refused(_)), "it is not hidden any more");
        // The name of another map is not taken, and a map that was dropped is not replaced.
        let renamed = make(&mut state, facts("n").replacing(new, MemberId(2)));
        assert!(matches!(state.apply(replace(renamed, vec![])), Reply::Refused(why) if why.contains("already")));
        let late = make(&mut state, facts("m").replacing(new, MemberId(2)));
        state.apply(Command::DropMap { map: new.0 });
        assert!(matches!(state.apply(replace(late, vec![])), Reply::Refused(why) if why.contains("dropped")));
        // A map that was abandoned takes no place any more.
        let abandoned = make(&mut state, facts("n").replacing(other, MemberId(1)));
        assert_eq!(state.apply(Command::AbandonMap { map: abandoned.0 }), Reply::Done);
        assert!(matches!(state.apply(replace(abandoned, vec![])), Reply::Refused(_)));
        // A member takes its hidden maps with it.
        state.apply(Command::Remove { member: 2 });
        assert_eq!(state.maps().map(|(id, _)| id).collect::<Vec<_>>(), [other]);
    }
}
