//! Statements and the mappings that they declare.

use std::sync::Arc;

use filbert_data::compact::{Schema, SchemaId};
use filbert_data::{Json, SchemaSource, ToBlob};
use filbert_dialect::{CreateMapping, DefaultPlace, Limits, Parsed, parse};

use super::*;

struct NoSchemas;

impl SchemaSource for NoSchemas {
    fn schema(&self, _: SchemaId) -> Option<Arc<Schema>> {
        None
    }
}

fn statement(text: &str) -> CreateMapping {
    match parse(text, filbert_grid::query::Dialect::Hazelcast, &Limits::default(), &DefaultPlace).unwrap().parsed {
        Parsed::CreateMapping(mapping) => mapping,
        other => panic!("{text} is {other:?}"),
    }
}

fn columns(mapping: &Mapping) -> String {
    let column = |column: &MappingColumn| {
        let hidden = if column.hidden { " hidden" } else { "" };
        format!("{} {} {}{hidden}", column.name, column.field_type, ddl::external_name(column))
    };
    mapping.columns.iter().map(column).collect::<Vec<_>>().join(", ")
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let mapping = Mapping::of(&statement(text)).unwrap();
    assert_eq!(columns(&mapping), expected, "{text}");
    // The statement generated from a mapping declares the same mapping.
    let again = Mapping::of(&statement(&ddl(&mapping))).unwrap();
    assert_eq!(again, mapping, "{}", ddl(&mapping));
}

#[track_caller]
fn refused(text: &str, expected: &str) {
    let error = Mapping::of(&statement(text)).unwrap_err();
    assert!(error.message.contains(expected), "{text}: {}", error.message);
}

#[test]
fn columns_follow_formats_and_declarations() {
    for (text, expected) in [
        (
            "CREATE MAPPING m TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='varchar')",
            "__key INTEGER __key, this VARCHAR this",
        ),
        (
            "CREATE MAPPING m (this VARCHAR, id INT EXTERNAL NAME __key) TYPE imap OPTIONS ('keyFormat'='integer', 'valueFormat'='varchar')",
            "id INTEGER __key, __key INTEGER __key hidden, this VARCHAR this",
        ),
        (
            "CREATE MAPPING m (__key BIGINT, name VARCHAR, age INT EXTERNAL NAME \"this.years\") TYPE IMap OPTIONS ('keyFormat'='bigint', 'valueFormat'='json-flat')",
            "__key BIGINT __key, name VARCHAR this.name, age INTEGER this.years, this JSON this hidden",
        ),
        (
            "CREATE MAPPING m (__key INT, this JSON, city VARCHAR EXTERNAL NAME this.address.city) TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='json')",
            "__key INTEGER __key, this JSON this, city VARCHAR this.address.city",
        ),
        (
            "CREATE MAPPING m (id INT EXTERNAL NAME \"__key.id\", \"a.b\" VARCHAR) TYPE IMap OPTIONS ('keyFormat'='compact', 'keyCompactTypeName'='k', 'valueFormat'='portable', 'valuePortableFactoryId'='1', 'valuePortableClassId'='2')",
            "id INTEGER __key.id, __key OBJECT __key hidden, a.b VARCHAR this.a.b, this OBJECT this hidden",
        ),
        (
            "CREATE MAPPING m (__key UUID, a INT, b BIGINT[], c VARCHAR EXTERNAL NAME this.d) TYPE IMap OPTIONS ('keyFormat'='java', 'keyJavaClass'='java.util.UUID', 'valueFormat'='ids', 'valueFactoryId'='-3', 'valueClassId'='4', 'columnar'='true')",
            "__key UUID __key, a INTEGER this.a, b BIGINT[] this.b, c VARCHAR this.d, this OBJECT this hidden",
        ),
        (
            "CREATE MAPPING m TYPE IMap OPTIONS ('keyFormat'='java', 'keyJavaClass'='java.lang.Long', 'valueFormat'='java', 'valueJavaClass'='com.example.Person')",
            "__key BIGINT __key, this OBJECT this",
        ),
    ] {
        if text.contains("a.b") {
            // A dot in a column name is no path step. The generated statement cannot express that.
            assert_eq!(columns(&Mapping::of(&statement(text)).unwrap()), expected);
        } else {
            check(text, expected);
        }
    }
    let mapping = Mapping::of(&statement(
        "CREATE MAPPING m (__key INT, a INT, c VARCHAR EXTERNAL NAME this.d) TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='ids', 'valueFactoryId'='1', 'valueClassId'='4', 'columnar'='true')",
    ))
    .unwrap();
    let EntryFormat::Ids(layout) = &mapping.value_format else { panic!("{mapping:?}") };
    assert_eq!(layout.fields.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "d"]);
    assert!(mapping.columnar);
}

#[test]
fn what_does_not_fit_is_refused() {
    let with = |columns: &str, options: &str| format!("CREATE MAPPING m {columns} TYPE IMap OPTIONS ({options})");
    for (columns, options, expected) in [
        ("", "'valueFormat'='int'", "Missing 'keyFormat' option"),
        ("", "'keyFormat'='int'", "Missing 'valueFormat' option"),
        ("", "'keyFormat'='int', 'valueFormat'='nonsense'", "Unsupported serialization format: nonsense"),
        ("", "'keyFormat'='int', 'valueFormat'='avro'", "avro is not served"),
        ("", "'keyFormat'='int', 'valueFormat'='java'", "Missing 'valueJavaClass' option"),
        ("", "'keyFormat'='int', 'valueFormat'='compact'", "Missing 'valueCompactTypeName' option"),
        ("", "'keyFormat'='int', 'valueFormat'='portable'", "'valuePortableClassId' option"),
        ("", "'keyFormat'='int', 'valueFormat'='json-flat'", "Column list is required for JSON format"),
        (
            "",
            "'keyFormat'='int', 'valueFormat'='compact', 'valueCompactTypeName'='t'",
            "Column list is required for Compact",
        ),
        (
            "(__key VARCHAR, this INT)",
            "'keyFormat'='int', 'valueFormat'='int'",
            "Mismatch between declared and resolved type",
        ),
        ("(__key INT, this INT, a INT)", "'keyFormat'='int', 'valueFormat'='int'", "cannot be in the 'this' field"),
        ("(__key INT, this JSON)", "'keyFormat'='int', 'valueFormat'='json-flat'", "Cannot use the 'this' field"),
        ("(__key INT EXTERNAL NAME this)", "'keyFormat'='int', 'valueFormat'='int'", "Cannot rename field: '__key'"),
        (
            "(a INT EXTERNAL NAME this.x, b INT EXTERNAL NAME this.x)",
            "'keyFormat'='int', 'valueFormat'='json-flat'",
            "Duplicate external name: x",
        ),
        ("(a INT)", "'keyFormat'='int', 'valueFormat'='json-flat', 'columnar'='maybe'", "expected 'true' or 'false'"),
        (
            "(a INT)",
            "'keyFormat'='int', 'valueFormat'='ids', 'valueFactoryId'='x', 'valueClassId'='1'",
            "expected a whole number",
        ),
    ] {
        refused(&with(columns, options), expected);
    }
    refused("CREATE MAPPING m TYPE Kafka", "Unknown connector type: Kafka");
}

#[test]
fn a_stored_entry_suggests_a_mapping() {
    let infer = |key: &[u8], value: &[u8]| super::infer("m", key, value, &NoSchemas).unwrap();
    let text = "x".to_blob().unwrap();
    let json = Json("{}".into()).to_blob().unwrap();
    let number = 7_i32.to_blob().unwrap();
    assert_eq!(columns(&infer(&number, &text)), "__key INTEGER __key, this VARCHAR this");
    let mapping = infer(&text, &json);
    assert_eq!(columns(&mapping), "__key VARCHAR __key, this JSON this");
    assert_eq!(Mapping::of(&statement(&ddl(&mapping))).unwrap(), mapping);
}

#[test]
fn the_catalog_knows_what_is_there() {
    let catalog = Catalog::new(3);
    let mapping = |name: &str, external: &str| {
        Mapping::of(&statement(&format!(
            "CREATE MAPPING {name} EXTERNAL NAME {external} TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='int')"
        )))
        .unwrap()
    };
    let before = catalog.changes().count();
    assert!(catalog.put_mapping(mapping("orders", "o"), false, false).unwrap());
    assert!(catalog.changes().count() > before);
    assert!(!catalog.put_mapping(mapping("orders", "p"), false, true).unwrap());
    assert!(
        catalog
            .put_mapping(mapping("orders", "p"), false, false)
            .unwrap_err()
            .message
            .contains("already exists: orders")
    );
    assert!(catalog.put_mapping(mapping("orders", "p"), true, false).unwrap());
    assert_eq!(catalog.mapping("orders").unwrap().external_name, "p");
    assert_eq!(catalog.mapping_of_map("p").unwrap().name, "orders");
    assert!(catalog.mapping_of_map("orders").is_none());
    let view = View {
        name: "v".into(),
        query: "SELECT 1".into(),
        dialect: Default::default(),
        path: Vec::new(),
        columns: Vec::new(),
    };
    assert!(catalog.put_view(view.clone(), false, false).unwrap());
    assert!(catalog.put_mapping(mapping("v", "v"), true, false).is_err());
    assert!(catalog.put_mapping(mapping("third", "v"), false, false).unwrap());
    assert!(catalog.put_mapping(mapping("fourth", "v"), false, false).unwrap_err().message.contains("no more"));
    assert_eq!(catalog.nearest("odrers").as_deref(), Some("orders"));
    assert_eq!(catalog.nearest("ORDERS").as_deref(), Some("orders"));
    assert_eq!(catalog.nearest("nothing like it"), None);
    let error = catalog.no_mapping("order").message;
    assert_eq!(error, "Mapping does not exist: order, did you mean 'orders'?");
    let found = catalog.mapping("orders").unwrap();
    catalog.replace(&found, mapping("orders", "q").into(), || Ok(())).unwrap();
    let stale = catalog.replace(&found, mapping("orders", "r").into(), || panic!("too late")).unwrap_err();
    assert_eq!(stale.sqlstate(), "40001", "another change came in between");
    assert_eq!(catalog.remove::<()>(&found, || panic!("too late")).unwrap_err().sqlstate(), "40001");
    let found = catalog.mapping("orders").unwrap();
    assert_eq!(catalog.replace(&found, mapping("v", "q").into(), || Ok(())).unwrap_err().sqlstate(), "42P07");
    let refused = parsing_error("no").with_sqlstate("22000");
    assert_eq!(catalog.replace(&found, mapping("w", "q").into(), || Err(refused)).unwrap_err().sqlstate(), "22000");
    catalog.replace(&found, mapping("w", "q").into(), || Ok(())).unwrap();
    assert!(catalog.mapping("orders").is_none());
    let found = catalog.mapping("w").unwrap();
    assert_eq!(catalog.remove(&found, || Ok(7)).unwrap(), 7);
    assert!(catalog.mapping("w").is_none());
    assert!(catalog.drop_view("v", false).unwrap());
    assert!(catalog.drop_view("v", false).is_err());
}

#[test]
fn what_names_stand_for_is_read_as_it_was_written() {
    let mappings = [
        "CREATE MAPPING a TYPE IMap OPTIONS ('keyFormat'='int', 'valueFormat'='json')",
        "CREATE MAPPING b EXTERNAL NAME \"x.y\" (__key VARCHAR, \"odd.name\" DECIMAL(10, 2), n INT EXTERNAL NAME \"this.a.b\") \
         TYPE IMap OPTIONS ('keyFormat'='varchar', 'valueFormat'='compact', 'valueCompactTypeName'='t', 'columnar'='true')",
        "CREATE MAPPING c (id BIGINT EXTERNAL NAME \"__key.id\", s VARCHAR) TYPE IMap OPTIONS ('keyFormat'='portable', \
         'keyPortableFactoryId'='1', 'keyPortableClassId'='2', 'valueFormat'='json-flat')",
    ];
    for text in mappings {
        assert_same(Entry::Mapping(Arc::new(Mapping::of(&statement(text)).unwrap())));
    }
    assert_same(Entry::View(Arc::new(View {
        name: "v".to_owned(),
        query: "SELECT 'a\"b' AS \"c\"".to_owned(),
        dialect: Dialect::Crate,
        path: vec!["doc".to_owned()],
        columns: vec![("c".to_owned(), FieldType::Array(Box::new(FieldType::Decimal(Some((5, 2))))))],
    })));
    assert_same(Entry::Schema);
    assert!(written::read("{\"Later\":1}", &|_| None).is_none());
    assert!(written::read("", &|_| None).is_none());
}

/// Reading a written mapping returns the same mapping.
pub(crate) fn assert_same_mapping(mapping: Mapping) {
    assert_same(Entry::Mapping(Arc::new(mapping)));
}

/// Writes an entry, reads it, and writes it again.
fn assert_same(entry: Entry) {
    let text = written::write(&entry).unwrap();
    let counter = |written: &sequence::Written| {
        let nobody: std::sync::Weak<Nobody> = std::sync::Weak::new();
        let nobody: std::sync::Weak<dyn Cluster> = nobody;
        Sequence::shared(written, &nobody).map(Arc::new)
    };
    let read = written::read(&text, &counter).unwrap();
    match (&entry, &read) {
        (Entry::Mapping(written), Entry::Mapping(read)) => assert_eq!(written, read),
        (Entry::View(written), Entry::View(read)) => assert_eq!(written, read),
        (Entry::Schema, Entry::Schema) => {}
        _ => panic!("{text} is read as something else"),
    }
    assert_eq!(written::write(&read).unwrap(), text);
}

/// A cluster without members.
struct Nobody;

impl Cluster for Nobody {
    fn view(&self) -> Arc<filbert_grid::ClusterView> {
        Arc::default()
    }

    fn on_change(&self, _: filbert_grid::ViewCallback) {}
}
