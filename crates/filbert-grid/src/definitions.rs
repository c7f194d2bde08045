//! The definitions of this crate that all members of a cluster share: Compact schemas and indexes
//! of maps.
//!
//! | name | text |
//! |---|---|
//! | `schema/` and its id | the type name, then the kind and the name of each field |
//! | `index/`, map name, `/`, index name | the kind, the bitmap options, the attributes |
//!
//! The bitmap options are the unique key and the transformation of a bitmap index, or `- 0`. The
//! parts of a text are separated by spaces. Map names, type names, fields and attributes are in
//! hexadecimal digits, because they may contain any character.

use std::collections::BTreeMap;
use std::fmt::Write;

use filbert_data::compact::{FieldDescriptor, FieldKind, Schema};
use filbert_store::IndexKind;

use crate::cluster::{Cluster, Definition, Definitions, Redefinition};
use crate::errors::GridError;
use crate::indexes::{BitmapConfig, IndexConfig};

const SCHEMAS: &str = "schema/";
const INDEXES: &str = "index/";

fn hex(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2 + 1);
    // The prefix makes a word of an empty name too.
    out.push('x');
    // Writing into a string does not fail.
    text.bytes().for_each(|byte| _ = write!(out, "{byte:02x}"));
    out
}

fn unhex(word: &str) -> Option<String> {
    let digits = word.strip_prefix('x')?.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Vec<u8> = digits.chunks(2).map(byte).collect::<Option<_>>()?;
    String::from_utf8(bytes).ok()
}

/// The definition of a schema.
pub(crate) fn of_schema(schema: &Schema) -> Redefinition {
    let mut text = hex(schema.type_name());
    for field in schema.fields() {
        // Writing into a string does not fail.
        let _ = write!(text, " {} {}", field.kind as i32, hex(&field.name));
    }
    Redefinition { name: format!("{SCHEMAS}{}", schema.fingerprint()), expected: None, text: Some(text) }
}

fn read_schema(text: &str) -> Option<Schema> {
    let mut parts = text.split(' ');
    let type_name = unhex(parts.next()?)?;
    let mut fields = Vec::new();
    while let Some(kind) = parts.next() {
        let kind = FieldKind::try_from(kind.parse::<i32>().ok()?).ok()?;
        fields.push(FieldDescriptor { name: unhex(parts.next()?)?, kind });
    }
    Some(Schema::new(type_name, fields))
}

fn index_name(map: &str, index: &str) -> String {
    format!("{}{index}", of_map(map))
}

/// The name prefix of a map's indexes. The map's name may contain any character.
fn of_map(map: &str) -> String {
    format!("{INDEXES}{}/", hex(map))
}

fn write_index(index: &IndexConfig) -> String {
    let kind = match index.kind {
        IndexKind::Sorted => "sorted",
        IndexKind::Hash => "hash",
        IndexKind::Bitmap => "bitmap",
    };
    let bitmap = match &index.bitmap {
        Some(bitmap) => format!("{} {}", hex(&bitmap.unique_key), bitmap.transformation),
        None => "- 0".to_owned(),
    };
    let attributes = index.attributes.iter().map(|attribute| format!(" {}", hex(attribute)));
    format!("{kind} {bitmap}{}", attributes.collect::<String>())
}

fn read_index(name: &str, text: &str) -> Option<IndexConfig> {
    let mut parts = text.split(' ');
    let kind = match parts.next()? {
        "sorted" => IndexKind::Sorted,
        "hash" => IndexKind::Hash,
        "bitmap" => IndexKind::Bitmap,
        _ => return None,
    };
    let (unique_key, transformation) = (parts.next()?, parts.next()?.parse().ok()?);
    let bitmap = match unique_key {
        "-" => None,
        unique_key => Some(BitmapConfig { unique_key: unhex(unique_key)?, transformation }),
    };
    let attributes = parts.map(unhex).collect::<Option<_>>()?;
    Some(IndexConfig { name: Some(name.to_owned()), kind, attributes, bitmap })
}

/// The schemas among the definitions, by definition name; `None` for a schema that cannot be
/// parsed.
pub(crate) fn schemas_in(definitions: &Definitions) -> impl Iterator<Item = (&str, Option<Schema>)> {
    let from = definitions.by_name.range(SCHEMAS.to_owned()..);
    let schemas = from.take_while(|(name, _)| name.starts_with(SCHEMAS));
    schemas.map(|(name, definition)| (name.as_str(), read_schema(&definition.text)))
}

/// The indexes of a map among the definitions.
pub(crate) fn indexes_in(definitions: &Definitions, map: &str) -> Vec<IndexConfig> {
    let start = of_map(map);
    let of_map = definitions.by_name.range(start.clone()..).take_while(|(name, _)| name.starts_with(&start));
    of_map.filter_map(|(name, known)| read_index(name.strip_prefix(&start)?, &known.text)).collect()
}

/// Defines an index of a map on all members. `false` if there is one with this name.
pub(crate) fn define_index(cluster: &dyn Cluster, map: &str, index: &IndexConfig) -> Result<bool, GridError> {
    let name = index_name(map, index.name.as_deref().unwrap_or_default());
    cluster.redefine(vec![Redefinition { name, expected: None, text: Some(write_index(index)) }])
}

/// Deletes the definition of an index on all members. `false` if there was none.
pub(crate) fn undefine_index(cluster: &dyn Cluster, map: &str, index: &str) -> Result<bool, GridError> {
    let name = index_name(map, index);
    let Some(known) = cluster.definitions().by_name.get(&name).map(|known| known.version) else { return Ok(false) };
    cluster.redefine(vec![Redefinition { name, expected: Some(known), text: None }])
}

/// Deletes all definitions of a destroyed map on all members.
pub(crate) fn undefine_map(cluster: &dyn Cluster, map: &str) -> Result<(), GridError> {
    let start = of_map(map);
    let definitions = cluster.definitions();
    let of_map = definitions.by_name.range(start.clone()..).take_while(|(name, _)| name.starts_with(&start));
    let forget = |(name, known): (&String, &Definition)| Redefinition {
        name: name.clone(),
        expected: Some(known.version),
        text: None,
    };
    let changes: Vec<Redefinition> = of_map.map(forget).collect();
    // A definition that changed meanwhile belongs to a new map with the same name.
    if changes.is_empty() { Ok(()) } else { cluster.redefine(changes).map(|_| ()) }
}

/// The changes of definitions for a map that is replaced by a map with these indexes.
pub(crate) fn replace_indexes(
    definitions: &Definitions,
    old: &str,
    new: &str,
    indexes: &[IndexConfig],
) -> Vec<Redefinition> {
    let start = of_map(old);
    let known = definitions.by_name.range(start.clone()..).take_while(|(name, _)| name.starts_with(&start));
    let mut changes: BTreeMap<String, Redefinition> = BTreeMap::new();
    for (name, definition) in known {
        let (name, expected) = (name.clone(), Some(definition.version));
        changes.insert(name.clone(), Redefinition { name, expected, text: None });
    }
    for index in indexes {
        let name = index_name(new, index.name.as_deref().unwrap_or_default());
        let expected = definitions.by_name.get(&name).map(|known| known.version);
        changes.insert(name.clone(), Redefinition { name, expected, text: Some(write_index(index)) });
    }
    let is_same = |change: &Redefinition| {
        definitions.by_name.get(&change.name).map(|known| &*known.text) == change.text.as_deref()
    };
    changes.into_values().filter(|change| !is_same(change)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schemas_are_read_as_they_were_written() {
        let field = |name: &str, kind| FieldDescriptor { name: name.to_owned(), kind };
        let fields =
            [field("a b", FieldKind::Int32), field("", FieldKind::String), field("ü/\n", FieldKind::ArrayOfString)];
        let schema = Schema::new("t y\u{1F600}", fields);
        let text = of_schema(&schema).text.unwrap();
        assert_eq!(read_schema(&text), Some(schema));
        assert_eq!(read_schema(""), None);
        assert_eq!(read_schema("x00zz"), None);
    }

    #[test]
    fn indexes_move_to_the_map_that_replaces_theirs() {
        let index = |name: &str, attribute: &str| IndexConfig {
            name: Some(name.to_owned()),
            kind: IndexKind::Sorted,
            attributes: vec![attribute.to_owned()],
            bitmap: None,
        };
        let mut definitions = Definitions::default();
        for (version, name) in (1..).zip(["same", "other", "gone"]) {
            let text = write_index(&index(name, "a")).into();
            definitions.by_name.insert(index_name("t", name), Definition { version, text });
        }
        let indexes = [index("same", "a"), index("other", "b")];
        let changes = |new| -> Vec<_> {
            let changes = replace_indexes(&definitions, "t", new, &indexes).into_iter();
            changes.map(|change| (change.name, change.expected, change.text.is_some())).collect()
        };
        let of = |map, name, expected, is_there| (index_name(map, name), expected, is_there);
        assert_eq!(changes("t"), [of("t", "gone", Some(3), false), of("t", "other", Some(2), true)]);
        let moved = changes("u");
        assert_eq!(moved.iter().filter(|(_, expected, is_there)| expected.is_some() && !is_there).count(), 3);
        assert!(moved.contains(&of("u", "same", None, true)) && moved.contains(&of("u", "other", None, true)));
    }

    #[test]
    fn indexes_are_read_as_they_were_written() {
        let attributes = vec!["a b".to_owned(), "c.d[any]".to_owned()];
        let bitmap = Some(BitmapConfig { unique_key: "__key".to_owned(), transformation: 1 });
        for (kind, bitmap) in [(IndexKind::Sorted, None), (IndexKind::Hash, None), (IndexKind::Bitmap, bitmap)] {
            let index = IndexConfig { name: Some("i/1".to_owned()), kind, attributes: attributes.clone(), bitmap };
            assert_eq!(read_index("i/1", &write_index(&index)), Some(index));
        }
        assert_eq!(read_index("i", "other - 0 x61"), None);
    }
}
