//! The cost of reading fields of an entry, by the format of its value.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use filbert_data::compact::{Schema, SchemaId, Writer};
use filbert_data::portable::{self, ClassDefinition, FieldDefinition};
use filbert_data::{Blob, DataError, FieldPath, FieldReader, FieldType, Formats, Json, SchemaSource, ToBlob, Value};

struct OneSchema(Arc<Schema>);

impl SchemaSource for OneSchema {
    fn schema(&self, id: SchemaId) -> Option<Arc<Schema>> {
        (self.0.fingerprint() == id).then(|| Arc::clone(&self.0))
    }
}

fn person() -> (Vec<(String, FieldType)>, Vec<Value<'static>>) {
    let fields = [
        ("id", FieldType::BigInt, Value::Int64(123_456)),
        ("name", FieldType::Varchar, Value::Text("Ada Lovelace".into())),
        ("age", FieldType::Integer, Value::Int32(36)),
        ("city", FieldType::Varchar, Value::Text("London".into())),
        ("balance", FieldType::Double, Value::Float64(1234.5)),
    ];
    fields.into_iter().map(|(name, field_type, value)| ((name.to_owned(), field_type), value)).unzip()
}

fn fields(criterion: &mut Criterion) -> Result<(), DataError> {
    let (columns, values) = person();
    let compact = Writer::new("person", columns.clone());
    let schemas = Arc::new(OneSchema(Arc::new(compact.schema().clone())));
    let definitions = columns.into_iter().map(|(name, field_type)| {
        let kind = portable::FieldKind::of_type(&field_type);
        FieldDefinition { name, kind, nested: (0, 0) }
    });
    let class = ClassDefinition { factory_id: 1, class_id: 1, version: 0, fields: definitions.collect() };
    let portable = portable::Writer::new(class)?;
    let document = r#"{"id":123456,"name":"Ada Lovelace","age":36,"city":"London","balance":1234.5}"#;
    let blobs: [(&str, Blob); 3] = [
        ("JSON", Json::new(document).to_blob()?),
        ("Compact", compact.write(&values)?),
        ("Portable", portable.write(&values)?),
    ];
    let reader = |names: &[&str]| -> Result<FieldReader, DataError> {
        let fields = names.iter().map(|name| FieldPath::parse(name)).collect::<Result<_, _>>()?;
        let schemas: Arc<dyn SchemaSource> = schemas.clone();
        Ok(FieldReader::new(fields, Formats { schemas, key_layout: None, value_layout: None }))
    };

    let key = 7i32.to_blob()?;
    let of_key = reader(&["__key"])?;
    criterion.bench_function("an int, the key itself", |bencher| {
        bencher.iter(|| of_key.read_one(black_box(&key), &[]));
    });
    for (format, blob) in &blobs {
        for name in ["age", "city", "balance"] {
            let one = reader(&[name])?;
            criterion.bench_function(&format!("{format}: {name}"), |bencher| {
                bencher.iter(|| one.read_one(&[], black_box(blob)));
            });
        }
        let all = reader(&["id", "name", "age", "city", "balance"])?;
        criterion.bench_function(&format!("{format}: all five"), |bencher| {
            bencher.iter(|| all.read(&[], black_box(blob), &mut |_, value| drop(black_box(value))));
        });
    }

    let mut out = Vec::with_capacity(64);
    let keys = [("an int", Value::Int32(7)), ("a text", Value::Text("Ada Lovelace".into()))];
    for (name, value) in keys {
        criterion.bench_function(&format!("index key of {name}"), |bencher| {
            bencher.iter(|| {
                out.clear();
                black_box(&value).append_index_key(&mut out);
                out.len()
            });
        });
    }
    Ok(())
}

fn run(criterion: &mut Criterion) {
    if let Err(error) = fields(criterion) {
        // The name of a benchmark is the only place for its error.
        criterion.bench_function(&format!("failed: {error}"), |bencher| bencher.iter(|| ()));
    }
}

criterion_group!(benches, run);
criterion_main!(benches);
