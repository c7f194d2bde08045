//! The definitions that a plan was made from. Planning looks names up in the catalog, and every
//! lookup is recorded here, successful or not. A plan stays valid while none of them changes.

use std::cell::RefCell;
use std::collections::BTreeSet;

use filbert_grid::{ChangeLog, LayoutChanges};

/// A part of the definitions, to look up or to change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Definition {
    /// The mapping, table or view of a name in the catalog.
    Relation(String),
    /// A schema, with the names of its relations.
    Schema(String),
    /// The map of a name, with its indexes and columns.
    Map(String),
    /// All mappings, tables, views and schemas.
    Catalog,
}

impl Definition {
    /// Whether a lookup of this definition may have another result after a change of the catalog.
    fn depends_on(&self, changed: &Definition) -> bool {
        match (self, changed) {
            (Definition::Map(_), _) | (_, Definition::Map(_)) => false,
            (Definition::Catalog, _) | (_, Definition::Catalog) => true,
            (Definition::Schema(schema), Definition::Relation(name)) => {
                name.strip_prefix(schema.as_str()).is_some_and(|rest| rest.starts_with('.'))
            }
            (found, changed) => found == changed,
        }
    }
}

/// The definitions that a plan was made from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources(BTreeSet<Definition>);

tokio::task_local! {
    static LOOKED_UP: RefCell<Sources>;
}

/// Records a lookup, if the task records them.
pub(crate) fn looked_up(definition: impl FnOnce() -> Definition) {
    // Outside of planning, nobody records.
    let _ = LOOKED_UP.try_with(|sources| sources.borrow_mut().0.insert(definition()));
}

/// Runs a future and records the lookups of its task.
pub(crate) async fn recorded<T>(planning: impl Future<Output = T>) -> (T, Sources) {
    LOOKED_UP
        .scope(RefCell::default(), async {
            let planned = planning.await;
            (planned, LOOKED_UP.with(RefCell::take))
        })
        .await
}

/// The state of all definitions: the numbers of their latest changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) catalog: u64,
    pub(crate) layouts: u64,
}

/// The changes of all definitions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    pub(crate) catalog: ChangeLog<Definition>,
    pub(crate) layouts: LayoutChanges,
}

impl Changes {
    /// The current version.
    #[inline]
    pub(crate) fn version(&self) -> Version {
        Version { catalog: self.catalog.count(), layouts: self.layouts.count() }
    }

    /// The current version, if a plan that was made at `version` is still valid.
    #[inline]
    pub(crate) fn valid_since(&self, version: Version, sources: &Sources) -> Option<Version> {
        if self.version() == version {
            return Some(version);
        }
        let Sources(sources) = sources;
        let catalog = self
            .catalog
            .unconcerned_since(version.catalog, |changed| sources.iter().any(|source| source.depends_on(changed)))?;
        let layouts = self.layouts.unconcerned_since(version.layouts, |map| {
            sources.iter().any(|source| matches!(source, Definition::Map(name) if name == map))
        })?;
        Some(Version { catalog, layouts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relation(name: &str) -> Definition {
        Definition::Relation(name.to_owned())
    }

    fn schema(name: &str) -> Definition {
        Definition::Schema(name.to_owned())
    }

    #[tokio::test]
    async fn lookups_of_a_task_are_recorded_across_its_awaits() {
        looked_up(|| relation("before"));
        let (result, Sources(sources)) = recorded(async {
            looked_up(|| relation("a"));
            tokio::task::yield_now().await;
            looked_up(|| Definition::Map("b".to_owned()));
            looked_up(|| relation("a"));
            7
        })
        .await;
        assert_eq!(result, 7);
        assert_eq!(Vec::from_iter(sources), [relation("a"), Definition::Map("b".to_owned())]);
    }

    #[test]
    fn a_plan_is_valid_until_one_of_its_sources_changes() {
        let is_valid = |sources: Vec<Definition>, changed: Definition| {
            let changes = Changes::default();
            let version = changes.version();
            match changed {
                Definition::Map(name) => _ = changes.layouts.note(name),
                changed => _ = changes.catalog.note(changed),
            }
            let since = changes.valid_since(version, &Sources(sources.into_iter().collect()));
            assert!(since.is_none_or(|since| since == changes.version()));
            since.is_some()
        };
        let map = |name: &str| Definition::Map(name.to_owned());
        assert!(!is_valid(vec![relation("other"), relation("t")], relation("t")));
        assert!(!is_valid(vec![map("t")], map("t")));
        assert!(!is_valid(vec![schema("s")], schema("s")));
        assert!(!is_valid(vec![schema("s")], relation("s.t")), "a schema exists while it has tables");
        assert!(!is_valid(vec![Definition::Catalog], relation("t")));
        assert!(!is_valid(vec![relation("t")], Definition::Catalog));
        assert!(is_valid(vec![relation("t"), map("t"), schema("s")], relation("t2")));
        assert!(is_valid(vec![relation("t"), schema("s")], map("t")));
        assert!(is_valid(vec![map("t"), schema("s")], relation("t")));
        assert!(is_valid(vec![schema("s")], relation("s2.t")));
        assert!(is_valid(vec![], Definition::Catalog));
    }
}
