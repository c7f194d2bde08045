//! What all members of a cluster know of this crate's own: Compact schemas and indexes of maps, as definitions.
//!
//! | name | text |
//! |---|---|
//! | `schema/` and its id | the type's name, then kind and name of each field |
//! | `index/`, the map's name, `/` and its own name | its kind, the unique key and transformation of a bitmap index or `-`, its attributes |
//!
//! Words of a text stand behind each other with a blank between them; names are in hexadecimal digits, as they may have any character.

use std::fmt::Write;

use filbert_data::compact::{FieldDescriptor, FieldKind, Schema};

use crate::cluster::{Definitions, Redefinition};
use crate::config::{BitmapConfig, IndexConfig, IndexKind};
use crate::errors::GridError;
use crate::grid::Grid;
use crate::shared::Shared;

const SCHEMAS: &str = "schema/";
const INDEXES: &str = "index/";

fn hex(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2 + 1);
    // An empty name is a word as well.
    out.push('x');
    // Writing into memory does not fail.
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
        // Writing into memory does not fail.
        let _ = write!(text, " {} {}", field.kind as i32, hex(&field.name));
    }
    Redefinition { name: format!("{SCHEMAS}{}", schema.fingerprint()), expected: None, text: Some(text) }
}

fn read_schema(text: &str) -> Option<Schema> {
    let mut words = text.split(' ');
    let type_name = unhex(words.next()?)?;
    let mut fields = Vec::new();
    while let Some(kind) = words.next() {
        let kind = FieldKind::try_from(kind.parse::<i32>().ok()?).ok()?;
        fields.push(FieldDescriptor { name: unhex(words.next()?)?, kind });
    }
    Some(Schema::new(type_name, fields))
}

fn index_name(map: &str, index: &str) -> String {
    format!("{}{index}", of_map(map))
}

/// What the names of a map's indexes begin with. A map's name may have any character.
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
    let mut words = text.split(' ');
    let kind = match words.next()? {
        "sorted" => IndexKind::Sorted,
        "hash" => IndexKind::Hash,
        "bitmap" => IndexKind::Bitmap,
        _ => return None,
    };
    let (unique_key, transformation) = (words.next()?, words.next()?.parse().ok()?);
    let bitmap = match unique_key {
        "-" => None,
        unique_key => Some(BitmapConfig { unique_key: unhex(unique_key)?, transformation }),
    };
    let attributes = words.map(unhex).collect::<Option<_>>()?;
    Some(IndexConfig { name: Some(name.to_owned()), kind, attributes, bitmap })
}

impl Shared {
    /// Has all members know an index of a map; `false` if there is one of that name.
    pub(crate) fn define_index(&self, map: &str, index: &IndexConfig) -> Result<bool, GridError> {
        let Some(cluster) = self.cluster.get() else { return Ok(true) };
        let name = index_name(map, index.name.as_deref().unwrap_or_default());
        cluster.redefine(vec![Redefinition { name, expected: None, text: Some(write_index(index)) }])
    }

    /// Has all members forget an index of a map; `false` if there was none.
    pub(crate) fn undefine_index(&self, map: &str, index: &str) -> Result<bool, GridError> {
        let Some(cluster) = self.cluster.get() else { return Ok(true) };
        let name = index_name(map, index);
        let Some(known) = cluster.definitions().by_name.get(&name).map(|known| known.version) else { return Ok(false) };
        cluster.redefine(vec![Redefinition { name, expected: Some(known), text: None }])
    }

    /// Has all members forget what is defined of a map that goes.
    pub(crate) fn undefine_map(&self, map: &str) -> Result<(), GridError> {
        let Some(cluster) = self.cluster.get() else { return Ok(()) };
        let start = of_map(map);
        let definitions = cluster.definitions();
        let of_map = definitions.by_name.range(start.clone()..).take_while(|(name, _)| name.starts_with(&start));
        let forget = |(name, known): (&String, &crate::Definition)| Redefinition {
            name: name.clone(),
            expected: Some(known.version),
            text: None,
        };
        let changes: Vec<Redefinition> = of_map.map(forget).collect();
        // One that was changed meanwhile is somebody else's, of another map of the name.
        if changes.is_empty() { Ok(()) } else { cluster.redefine(changes).map(|_| ()) }
    }
}

impl Grid {
    /// The schemas that are here, from clients or from statements, and that not all members of the cluster know: whoever joins later has to be
    /// told of them.
    pub fn schemas_to_announce(&self) -> Vec<Redefinition> {
        let Some(cluster) = self.cluster() else { return Vec::new() };
        let known = cluster.definitions();
        let all = self.schemas().all().into_iter().map(|schema| of_schema(&schema));
        all.filter(|schema| !known.by_name.contains_key(&schema.name)).collect()
    }

    /// Takes over what all members know: schemas, and the indexes of the maps that are here.
    pub(crate) fn follow_definitions(&self, definitions: &Definitions) {
        for (name, definition) in definitions.by_name.range(SCHEMAS.to_owned()..) {
            if !name.starts_with(SCHEMAS) {
                break;
            }
            match read_schema(&definition.text).map(|schema| self.schemas().put(schema)) {
                Some(Ok(_)) => {}
                Some(Err(error)) => tracing::warn!("{name} of the cluster is not known here: {error}"),
                None => tracing::warn!("{name} of the cluster cannot be read"),
            }
        }
        for name in self.map_names() {
            let Some(map) = self.existing_map(&name) else { continue };
            let start = of_map(&name);
            let of_map = definitions.by_name.range(start.clone()..).take_while(|(name, _)| name.starts_with(&start));
            let wanted: Vec<IndexConfig> =
                of_map.filter_map(|(name, known)| read_index(name.strip_prefix(&start)?, &known.text)).collect();
            if let Err(error) = map.follow_indexes(wanted) {
                tracing::warn!(map = name, "an index of the cluster is not made here: {error}");
            }
        }
    }
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
