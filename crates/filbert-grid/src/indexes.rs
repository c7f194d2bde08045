//! Indexes that were declared for a map, by its configuration or by clients: checked, named, and kept for the engine that
//! will build them. Nothing is indexed here.

use parking_lot::RwLock;

use crate::config::{IndexConfig, IndexKind};
use crate::errors::GridError;

/// Attributes of one index, at most; the same as in Hazelcast.
const ATTRIBUTES_MAX: usize = 255;

/// The declared indexes of one map, in the order of their declaration.
#[derive(Default)]
pub(crate) struct Indexes(RwLock<Vec<IndexConfig>>);

impl Indexes {
    /// Those of the configuration, whose validation has refused what cannot be an index.
    pub(crate) fn of_config(map: &str, declared: &[IndexConfig]) -> Self {
        Indexes(RwLock::new(declared.iter().filter_map(|index| normalized(map, index.clone()).ok()).collect()))
    }

    pub(crate) fn list(&self) -> Vec<IndexConfig> {
        self.0.read().clone()
    }

    /// Declares an index; one whose name is taken changes nothing, as clients declare theirs at each start.
    pub(crate) fn add(&self, map: &str, index: IndexConfig, indexes_max: usize) -> Result<(), GridError> {
        let index = normalized(map, index)?;
        let mut indexes = self.0.write();
        if indexes.iter().any(|known| known.name == index.name) {
            return Ok(());
        }
        if indexes.len() >= indexes_max {
            return Err(GridError::LimitReached {
                what: "indexes of one map",
                setting: "indexes_max",
                limit: indexes_max,
            });
        }
        indexes.push(index);
        Ok(())
    }
}

/// Checks a declaration and completes it: attributes without `this.` in front, and a name, made of the map's, the
/// kind and the attributes if it has none.
pub(crate) fn normalized(map: &str, mut index: IndexConfig) -> Result<IndexConfig, GridError> {
    let invalid = |text: String| Err(GridError::IllegalArgument(format!("index of map {map:?}: {text}")));
    let count = index.attributes.len();
    if !(1..=ATTRIBUTES_MAX).contains(&count) {
        return invalid(format!("{count} attributes, expected 1 to {ATTRIBUTES_MAX}"));
    }
    for attribute in &mut index.attributes {
        if let Some(rest) = attribute.strip_prefix("this.") {
            *attribute = rest.to_owned();
        }
        if attribute.trim().is_empty() || attribute.ends_with('.') {
            return invalid(format!("attribute {attribute:?}, expected a path such as address.city"));
        }
    }
    for (at, attribute) in index.attributes.iter().enumerate() {
        if index.attributes.iter().take(at).any(|before| before == attribute) {
            return invalid(format!("attribute {attribute:?} stands twice, expected each once"));
        }
    }
    if index.kind == IndexKind::Bitmap && count > 1 {
        return invalid(format!("{count} attributes in a bitmap index, expected one"));
    }
    let name = index.name.take().filter(|name| !name.is_empty());
    index.name = Some(name.unwrap_or_else(|| default_name(map, &index)));
    Ok(index)
}

/// The name that Hazelcast gives: `map_sorted_age_name`.
fn default_name(map: &str, index: &IndexConfig) -> String {
    let kind = match index.kind {
        IndexKind::Sorted => "sorted",
        IndexKind::Hash => "hash",
        IndexKind::Bitmap => "bitmap",
    };
    format!("{map}_{kind}_{}", index.attributes.join("_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(kind: IndexKind, attributes: &[&str]) -> IndexConfig {
        let attributes = attributes.iter().map(|&attribute| attribute.to_owned()).collect();
        IndexConfig { kind, attributes, ..IndexConfig::default() }
    }

    #[test]
    fn an_index_without_a_name_gets_the_one_that_hazelcast_gives() {
        let indexes = Indexes::default();
        indexes.add("people", index(IndexKind::Sorted, &["this.age", "address.city"]), 10).unwrap();
        let list = indexes.list();
        assert_eq!(list[0].name.as_deref(), Some("people_sorted_age_address.city"));
        assert_eq!(list[0].attributes, ["age", "address.city"]);
    }

    #[test]
    fn declaring_an_index_again_changes_nothing() {
        let indexes = Indexes::default();
        for _ in 0..3 {
            indexes.add("m", index(IndexKind::Hash, &["age"]), 1).unwrap();
        }
        assert_eq!(indexes.list().len(), 1);
        assert!(matches!(
            indexes.add("m", index(IndexKind::Hash, &["name"]), 1),
            Err(GridError::LimitReached { limit: 1, .. })
        ));
    }

    #[test]
    fn what_cannot_be_an_index_is_refused() {
        let cases: [(&[&str], IndexKind, &str); 5] = [
            (&[], IndexKind::Sorted, "0 attributes, expected 1 to 255"),
            (&[""], IndexKind::Sorted, "attribute \"\", expected a path"),
            (&["a."], IndexKind::Hash, "attribute \"a.\", expected a path"),
            (&["a", "this.a"], IndexKind::Hash, "attribute \"a\" stands twice"),
            (&["a", "b"], IndexKind::Bitmap, "2 attributes in a bitmap index, expected one"),
        ];
        for (attributes, kind, expected) in cases {
            let error = Indexes::default().add("m", index(kind, attributes), 10).unwrap_err().to_string();
            assert!(error.starts_with("index of map \"m\": ") && error.contains(expected), "{error}");
        }
    }
}
