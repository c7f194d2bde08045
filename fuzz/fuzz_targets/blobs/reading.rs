//! Reads blobs with every reader of `filbert-data`.

use std::cell::RefCell;
use std::sync::Arc;

use filbert_data::criteria::{Distinct, Entry, distinct_blob, entry_blob, row_blob};
use filbert_data::portable::{self, ClassDefinition};
use filbert_data::{
    Blob, DataError, FieldPath, FieldReader, Formats, FromBlob, IdsLayout, Json, List, Path, Side, Step, ToBlob,
    TypeId, Value, compact, partition_of, type_id,
};
use libfuzzer_sys::arbitrary::Result;

use super::drawing::Schemas;
use super::values::{self, shown};

/// The schemas, the layout and the paths for reading a blob.
pub struct Reading {
    /// The Compact schemas.
    pub schemas: Arc<Schemas>,
    layout: Option<Arc<IdsLayout>>,
    /// The names of the fields that were drawn.
    names: Vec<String>,
    paths: Vec<Path>,
}

impl Reading {
    /// With these schemas, and this layout of objects without names. The fields have these names.
    pub fn new(schemas: Schemas, layout: Option<IdsLayout>, names: Vec<String>) -> Reading {
        let known = ["this", "a", "a.b", "[0]", "[3].a", "[any]", "[any][any]", "a[any].b", "b[0]", "c[any]"];
        let mut paths: Vec<Path> = known.iter().filter_map(|path| Path::parse(path).ok()).collect();
        for name in &names {
            let field = Step::Field(name.as_str().into());
            paths.push(Path::of(vec![field.clone()]));
            paths.push(Path::of(vec![field.clone(), Step::Any]));
            paths.push(Path::of(vec![field, Step::Index(1), Step::Field("a".into())]));
        }
        Reading { schemas: Arc::new(schemas), layout: layout.map(Arc::new), names, paths }
    }

    /// With further paths.
    pub fn with(mut self, paths: Vec<Path>) -> Reading {
        self.paths.extend(paths);
        self
    }

    /// Reads a blob in all ways.
    pub fn check(&self, blob: &[u8]) {
        assert!(partition_of(blob, 271).0 < 271);
        assert!(!format!("{:?}", Blob::from(blob)).is_empty());
        let found = RefCell::new(Vec::new());
        let keep = |value: &Value<'_>| {
            let mut found = found.borrow_mut();
            if found.len() < values::COMPARED_MAX && found.iter().all(|other| shown(other) != shown(value)) {
                found.push(value.clone().into_owned());
            }
        };
        checked(Value::from_blob(blob)).iter().for_each(&keep);
        self.fields(blob, &keep);
        types(blob);
        match (type_id(blob), blob.get(8..)) {
            (Ok(TypeId::PORTABLE), Some(payload)) => {
                checked(portable::class_of(payload));
                checked(portable::fields_of(payload));
                checked(portable::cut_out(payload, 0));
                checked(portable::to_json(payload)).iter().for_each(|json| check_json(json));
            }
            (Ok(TypeId::COMPACT), Some(payload)) => {
                checked(compact::fields_of(payload, &*self.schemas));
                checked(compact::object_bytes(payload, &*self.schemas));
                checked(compact::to_json(payload, &*self.schemas)).iter().for_each(|json| check_json(json));
            }
            _ => {}
        }
        for answer in [entry_blob(blob, blob), distinct_blob([blob].iter()), row_blob([blob].iter())] {
            checked(answer);
        }
        values::check(&found.borrow());
    }

    fn reader(&self, side: Side, paths: &[Path]) -> FieldReader {
        let fields = paths.iter().map(|path| FieldPath { side, path: path.clone() }).collect();
        let (schemas, layout) = (self.schemas.clone(), self.layout.clone());
        FieldReader::new(fields, Formats { schemas, key_layout: layout.clone(), value_layout: layout })
    }

    /// Reads the value of every path, alone and together.
    fn fields(&self, blob: &[u8], keep: &dyn Fn(&Value<'_>)) {
        let mut all: Vec<Option<String>> = vec![None; self.paths.len()];
        let together = self.reader(Side::Key, &self.paths).read(blob, &[], &mut |number, value| {
            assert!(all[number].is_none(), "the path {} is visited twice", self.paths[number]);
            all[number] = Some(shown(&value));
        });
        let mut are_sound = true;
        for (path, among_all) in self.paths.iter().zip(all) {
            let reader = self.reader(Side::Value, std::slice::from_ref(path));
            let one = reader.read_one(&[], blob);
            let mut alone = None;
            let read = reader.read(&[], blob, &mut |_, value| alone = Some(shown(&value)));
            assert_eq!(one.is_ok(), read.is_ok(), "{path}");
            are_sound &= read.is_ok();
            if let Some(value) = checked(one) {
                assert_eq!(Some(shown(&value)), alone, "{path}");
                assert!(together.is_err() || alone == among_all, "{path}");
                keep(&value);
            }
        }
        assert_eq!(together.is_ok(), are_sound, "the paths are read as each of them: {together:?}");
    }

    /// The fields of an object are equal to the values from which it was written.
    pub fn check_fields(&self, blob: &[u8], values: &[Value<'_>]) {
        for (name, value) in self.names.iter().zip(values) {
            // Bytes are read as an array.
            if matches!(value, Value::Bytes(_)) {
                continue;
            }
            let reader = self.reader(Side::Value, &[Path::field(name.as_str())]);
            let found = reader.read_one(&[], blob).map(|found| shown(&found));
            assert_eq!(found, Ok(shown(value)), "{name:?}");
        }
    }
}

/// The value; `None` for an error, which must have a text.
fn checked<T>(result: std::result::Result<T, DataError>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

/// An error has a text.
pub fn check_error(error: &DataError) -> Result<()> {
    assert!(!error.to_string().is_empty());
    Ok(())
}

/// An object as text is a JSON document.
fn check_json(json: &str) {
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(json) {
        assert!(error.to_string().contains("recursion"), "{error} in {json}");
    }
}

/// The class of an object is equal to the class from which it was written.
pub fn check_class(blob: &[u8], class: &ClassDefinition) {
    let found = portable::definition_of(&blob[8..]).expect("what was written can be read");
    assert_eq!((found.factory_id, found.class_id, found.version), (class.factory_id, class.class_id, class.version));
    let fields =
        |class: &ClassDefinition| class.fields.iter().map(|field| (field.name.clone(), field.kind)).collect::<Vec<_>>();
    assert_eq!(fields(&found), fields(class));
}

/// A value that was read from a blob is written and read again without a change.
pub fn check_again<T: ToBlob + std::fmt::Debug>(
    blob: &[u8],
    read: impl Fn(&[u8]) -> std::result::Result<T, DataError>,
) {
    let Some(value) = checked(read(blob)) else { return };
    if let Some(again) = checked(value.to_blob()) {
        let again = read(&again).map(|again| format!("{again:?}"));
        assert_eq!(again, Ok(format!("{value:?}")));
    }
}

/// Results of aggregators.
pub fn check_answers(blob: &[u8]) {
    checked(Entry::<Option<String>, Blob>::from_blob(blob));
    checked(Entry::<List<Option<i32>>, Option<Blob>>::from_blob(blob));
    checked(Distinct::<Option<i64>>::from_blob(blob));
}

/// The text of a path is read as the path, unless it begins with a field that has the name of the
/// value or of the key.
pub fn check_path(text: &str) {
    let Some(field) = checked(FieldPath::parse(text)) else { return };
    let is_named_as_whole =
        matches!(field.path.steps(), [Step::Field(name), ..] if &**name == "this" || name.starts_with("__key"));
    if !is_named_as_whole {
        assert_eq!(FieldPath::parse(&field.to_string()), Ok(field), "{text:?}");
    }
}

/// Reads a blob as each type of Rust.
fn types(blob: &[u8]) {
    macro_rules! check {
        ($($of:ty),*) => {
            $(check_again::<$of>(blob, <$of>::from_blob);)*
        };
    }
    check! {
        bool, i8, i16, i32, i64, f32, f64, char, String, Json, Blob, Option<String>, Option<Blob>,
        Vec<bool>, Vec<i16>, Vec<i32>, Vec<i64>, Vec<f32>, Vec<f64>, Vec<char>, Vec<String>, Vec<u8>,
        List<i32>, List<Option<String>>, List<List<i32>>, List<Option<Json>>
    }
}
