//! The catalog that the members of a cluster share. A change of the catalog is a change of the
//! cluster's definitions, and every member applies it.
//!
//! | name | definition |
//! |---|---|
//! | `relation/` and a name | the mapping, table or view of that name |
//! | `namespace/` and a name | a schema that was created |
//! | `sequence/` and an id | the counter of an identity column; its text is empty |

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use filbert_grid::query::{SqlError, SqlErrorCode};
use filbert_grid::{Cluster, Definitions, GridError, Redefinition};

use super::written::{read, write};
use super::{Catalog, Change, Content, Entry, Mapping};

const RELATIONS: &str = "relation/";
const NAMESPACES: &str = "namespace/";

/// How often a change is decided again because others changed the same definition meanwhile.
const ROUNDS_MAX: usize = 100;

impl Catalog {
    /// Shares the catalog with the members of a cluster. The catalog must be empty.
    pub(crate) fn join_cluster(&self, cluster: &Arc<dyn Cluster>) {
        // A member is in one cluster only.
        let _first = self.cluster.set(Arc::downgrade(cluster));
        self.row_ids.of_member(cluster.member_number());
    }

    /// Proposes a change to all members; `false` if there is nothing to change.
    pub(super) fn change_for_all(
        &self,
        cluster: &Weak<dyn Cluster>,
        decide: impl Fn(&Content) -> Result<Vec<Change>, SqlError>,
    ) -> Result<bool, SqlError> {
        let cluster = cluster.upgrade().ok_or(GridError::NotActive)?;
        self.propose(&cluster, decide, &mut |redefinitions| Ok(cluster.redefine(redefinitions)?))
    }

    /// Replaces the mapping that the new one was derived from, on all members of a cluster.
    /// `redefine` changes the cluster's definitions, together with the map; it returns `false` if
    /// another member has changed a definition before.
    ///
    /// # Errors
    /// The name has another definition by now, the new name is in use, or `redefine` fails. Nothing
    /// was changed then.
    pub(crate) fn replace_on_all(
        &self,
        expected: &Arc<Mapping>,
        new: &Arc<Mapping>,
        redefine: &mut dyn FnMut(Vec<Redefinition>) -> Result<bool, SqlError>,
    ) -> Result<(), SqlError> {
        let cluster = self.cluster.get().and_then(Weak::upgrade).ok_or(GridError::NotActive)?;
        self.propose(&cluster, |content| content.replacing(expected, new), redefine)?;
        self.catch_up()
    }

    /// Blocks this thread until the member has all of the cluster's definitions.
    ///
    /// # Errors
    /// The member does not reach the other members.
    pub(crate) fn catch_up(&self) -> Result<(), SqlError> {
        let cluster = self.cluster.get().and_then(Weak::upgrade).ok_or(GridError::NotActive)?;
        catch_up(&cluster)
    }

    fn propose(
        &self,
        cluster: &Arc<dyn Cluster>,
        decide: impl Fn(&Content) -> Result<Vec<Change>, SqlError>,
        redefine: &mut dyn FnMut(Vec<Redefinition>) -> Result<bool, SqlError>,
    ) -> Result<bool, SqlError> {
        for _ in 0..ROUNDS_MAX {
            let redefinitions = {
                let content = self.content.read();
                let changes = decide(&content)?;
                if changes.is_empty() {
                    return Ok(false);
                }
                content.redefinitions(&cluster.definitions(), changes)?
            };
            if redefine(redefinitions)? {
                return Ok(true);
            }
            catch_up(cluster)?;
        }
        let text = "the catalog of the cluster was changed by others again and again while the statement ran";
        Err(SqlError::new(SqlErrorCode::Generic, text).with_sqlstate("40001"))
    }

    /// Adopts the cluster's definitions. Returns the new or changed mappings, and the removed ones.
    pub(crate) fn follow(&self, definitions: &Definitions) -> (Vec<Arc<Mapping>>, Vec<Arc<Mapping>>) {
        let Some(cluster) = self.cluster.get() else { return Default::default() };
        let is_ours = |name: &str| name.starts_with(RELATIONS) || name.starts_with(NAMESPACES);
        let (mut come, mut gone, mut changed) = (Vec::new(), Vec::new(), Vec::new());
        let mut content = self.content.write();
        let missing: Vec<String> =
            content.versions.keys().filter(|name| !definitions.by_name.contains_key(*name)).cloned().collect();
        for name in missing {
            content.versions.remove(&name);
            changed.extend(change_of(&name, None).map(|change| change.definition()));
            gone.extend(content.forget(&name));
        }
        for (name, definition) in definitions.by_name.iter().filter(|(name, _)| is_ours(name)) {
            if content.versions.get(name) == Some(&definition.version) {
                continue;
            }
            let entry = read(&definition.text, &|written| content.counter(written, cluster));
            let Some(entry) = entry else {
                tracing::warn!("{name} of the cluster cannot be read by this member: statements do not find it here");
                continue;
            };
            content.versions.insert(name.clone(), definition.version);
            changed.extend(change_of(name, None).map(|change| change.definition()));
            let before = content.forget(name);
            gone.extend(before.filter(|before| !matches!(&entry, Entry::Mapping(new) if new.name == before.name)));
            if let Entry::Mapping(mapping) = &entry {
                come.push(mapping.clone());
            }
            content.make(vec![change_of(name, Some(entry))].into_iter().flatten().collect());
        }
        drop(content);
        for definition in changed {
            self.changed(definition);
        }
        (come, gone)
    }
}

/// Blocks this thread until the member has all of the cluster's definitions.
fn catch_up(cluster: &Arc<dyn Cluster>) -> Result<(), SqlError> {
    let (sender, caught_up) = std::sync::mpsc::sync_channel(1);
    // The receiver lives until the result arrives.
    cluster.catch_up(Box::new(move |result| _ = sender.send(result)));
    caught_up.recv().unwrap_or(Err(GridError::NotActive))?;
    Ok(())
}

/// The change for a definition's name.
fn change_of(name: &str, entry: Option<Entry>) -> Option<Change> {
    match (name.strip_prefix(RELATIONS), name.strip_prefix(NAMESPACES)) {
        (Some(relation), _) => Some(Change::Relation(relation.to_owned(), entry)),
        (_, Some(schema)) => Some(Change::Schema(schema.to_owned(), entry.is_some())),
        _ => None,
    }
}

/// The names of the counters of a mapping's columns.
fn counters(mapping: Option<&Arc<Mapping>>) -> BTreeSet<String> {
    let facts = mapping.and_then(|mapping| mapping.table.as_ref());
    let columns = facts.map(|facts| facts.columns.as_slice()).unwrap_or_default();
    columns.iter().filter_map(|column| Some(column.identity.as_ref()?.sequence.shared_name())).collect()
}

impl Content {
    /// Removes a definition; returns it if it was a mapping.
    fn forget(&mut self, name: &str) -> Option<Arc<Mapping>> {
        let before = self.mappings.get(name.strip_prefix(RELATIONS).unwrap_or_default()).cloned();
        self.make(change_of(name, None).into_iter().collect());
        before
    }

    /// The sequence with an id: the existing one if it is here, otherwise a new one.
    fn counter(&self, written: &super::sequence::Written, cluster: &Weak<dyn Cluster>) -> Option<Arc<super::Sequence>> {
        let new = super::Sequence::shared(written, cluster)?;
        let facts = self.mappings.values().filter_map(|mapping| mapping.table.as_ref());
        let known = facts
            .flat_map(|facts| facts.columns.iter().filter_map(|column| column.identity.as_ref()))
            .find(|identity| identity.sequence.id() == new.id());
        Some(known.map_or_else(|| Arc::new(new), |identity| identity.sequence.clone()))
    }

    /// The changes for the cluster, including counters that are added and removed.
    fn redefinitions(&self, known: &Definitions, changes: Vec<Change>) -> Result<Vec<Redefinition>, SqlError> {
        let version = |name: &String| self.versions.get(name).copied();
        let (mut redefinitions, mut come, mut go) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        for change in changes {
            let (name, text) = match change {
                Change::Relation(name, entry) => {
                    go.extend(counters(self.mappings.get(&name)));
                    if let Some(Entry::Mapping(mapping)) = &entry {
                        come.extend(counters(Some(mapping)));
                    }
                    (format!("{RELATIONS}{name}"), entry.as_ref().map(write).transpose()?)
                }
                Change::Schema(name, is_there) => {
                    (format!("{NAMESPACES}{name}"), is_there.then(|| write(&Entry::Schema)).transpose()?)
                }
            };
            redefinitions.push(Redefinition { expected: version(&name), name, text });
        }
        for name in come.difference(&go) {
            redefinitions.push(Redefinition { name: name.clone(), expected: None, text: Some(String::new()) });
        }
        for name in go.difference(&come) {
            let expected = known.by_name.get(name).map(|known| known.version);
            redefinitions.push(Redefinition { name: name.clone(), expected, text: None });
        }
        Ok(redefinitions)
    }
}
