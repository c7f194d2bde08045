//! Declarations of indexes in the configuration, by clients and by statements: validates and names
//! them, and parses their attributes.

use filbert_data::FieldPath;
use filbert_store::IndexKind;

use crate::errors::GridError;
use crate::names::check_name;

/// The maximum number of attributes of one index, as in Hazelcast.
const ATTRIBUTES_MAX: usize = 255;

/// The declaration of an index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IndexConfig {
    /// The name of the index, if one was given.
    pub name: Option<String>,
    /// The kind of index.
    pub kind: IndexKind,
    /// The indexed attributes, in order.
    pub attributes: Vec<String>,
    /// The options of a bitmap index; `None` for its defaults, and for other kinds.
    pub bitmap: Option<BitmapConfig>,
}

/// The options of a bitmap index, as declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitmapConfig {
    /// The attribute that has a unique value in every entry.
    pub unique_key: String,
    /// The conversion of these values to numbers, by Hazelcast's number: 0 = as objects, 1 = as
    /// 64-bit numbers, 2 = unchanged.
    pub transformation: i32,
}

/// Validates and completes a declaration: removes `this.` from attributes, and generates a missing
/// name from the map's name, the kind and the attributes.
pub(crate) fn normalized(map: &str, mut index: IndexConfig) -> Result<IndexConfig, GridError> {
    let invalid = |text: String| Err(GridError::IllegalArgument(format!("index of map {map:?}: {text}")));
    let count = index.attributes.len();
    if !(1..=ATTRIBUTES_MAX).contains(&count) {
        return invalid(format!("{count} attributes, expected 1 to {ATTRIBUTES_MAX}"));
    }
    for attribute in &mut index.attributes {
        check_name("attribute", attribute)?;
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
    if let Some(bitmap) = &index.bitmap {
        check_name("unique key", &bitmap.unique_key)?;
    }
    fields_of(map, &index)?;
    let name = index.name.take().filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| default_name(map, &index));
    check_name("index", &name)?;
    index.name = Some(name);
    Ok(index)
}

/// The fields of a declaration's attributes.
pub(crate) fn fields_of(map: &str, index: &IndexConfig) -> Result<Vec<FieldPath>, GridError> {
    let invalid = |text: String| GridError::IllegalArgument(format!("index of map {map:?}: {text}"));
    let parsed = index.attributes.iter().map(|attribute| FieldPath::parse(attribute));
    let fields: Vec<FieldPath> = parsed.collect::<Result<_, _>>().map_err(|error| invalid(error.to_string()))?;
    // An entry has a key for every combination of its items. Several attributes could have too
    // many.
    let many_count = fields.iter().filter(|field| field.path.finds_many()).count();
    if many_count > 1 {
        return Err(invalid(format!("{many_count} attributes with [any], expected one at most")));
    }
    Ok(fields)
}

/// The default name, as in Hazelcast: `map_sorted_age_name`.
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
        let index = normalized("people", index(IndexKind::Sorted, &["this.age", "address.city"])).unwrap();
        assert_eq!(index.name.as_deref(), Some("people_sorted_age_address.city"));
        assert_eq!(index.attributes, ["age", "address.city"]);
    }

    #[test]
    fn an_index_has_no_name_and_no_attribute_without_end() {
        let long = "n".repeat(crate::NAME_BYTES_MAX + 1);
        let named = IndexConfig { name: Some(long.clone()), ..index(IndexKind::Hash, &["a"]) };
        // The default name consists of these two attributes.
        let halves = [&long[..600], &long[..601]];
        for (index, whose) in [
            (named, "index name of 1025 bytes"),
            (index(IndexKind::Hash, &[&long]), "attribute name of 1025 bytes"),
            (index(IndexKind::Sorted, &halves), "index name of 1211 bytes"),
        ] {
            let error = normalized("m", index).unwrap_err();
            assert_eq!(error.to_string(), format!("{whose}, expected at most 1024"));
        }
    }

    #[test]
    fn what_cannot_be_an_index_is_refused() {
        let cases: [(&[&str], IndexKind, &str); 7] = [
            (&[], IndexKind::Sorted, "0 attributes, expected 1 to 255"),
            (&[""], IndexKind::Sorted, "attribute \"\", expected a path"),
            (&["a."], IndexKind::Hash, "attribute \"a.\", expected a path"),
            (&["a", "this.a"], IndexKind::Hash, "attribute \"a\" stands twice"),
            (&["a[x]"], IndexKind::Hash, "neither a number nor `any`"),
            (&["a[any]", "b[any]"], IndexKind::Hash, "2 attributes with [any], expected one at most"),
            (&["a", "b"], IndexKind::Bitmap, "2 attributes in a bitmap index, expected one"),
        ];
        for (attributes, kind, expected) in cases {
            let error = normalized("m", index(kind, attributes)).unwrap_err().to_string();
            assert!(error.starts_with("index of map \"m\": ") && error.contains(expected), "{error}");
        }
    }
}
