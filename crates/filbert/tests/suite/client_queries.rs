//! Tests of the queries of our own client with a real member and a real socket: predicates,
//! aggregators, projections, pages, indexes, listeners, Compact schemas, SQL.
//!
//! If `FILBERT_TEST_MEMBER` contains the address of a member, the tests run against that member. So
//! all expectations can be checked against Hazelcast.

use std::collections::BTreeSet;
use std::time::Duration;

use filbert::{Config, Filbert};
use filbert_client::{
    Blob, Client, ClientConfig, ClientError, EntryKinds, Index, Json, List, Listening, Map, ResultKind, Statement,
    UniqueKey, Value,
    compact::{FieldDescriptor, FieldKind, Schema},
    criteria::{Aggregator, Distinct, Entry, Predicate, Projection},
    sql_code,
};

/// Much longer than any event takes.
const PATIENCE: Duration = Duration::from_secs(60);

async fn connected() -> (Option<Filbert>, Client) {
    let (member, address) = match std::env::var("FILBERT_TEST_MEMBER") {
        Ok(address) => (None, address),
        Err(_) => {
            let member = Filbert::start(Config::default().with_listener(([127, 0, 0, 1], 0).into())).unwrap();
            let address = member.address().unwrap().to_string();
            (Some(member), address)
        }
    };
    let client = Client::connect(ClientConfig { addresses: vec![address], ..ClientConfig::default() }).await.unwrap();
    (member, client)
}

const PEOPLE: [(&str, i32, &str); 5] = [
    ("Ada", 36, "London"),
    ("Alan", 41, "London"),
    ("Emmy", 53, "Erlangen"),
    ("Kurt", 71, "Brno"),
    ("Grace", 85, "York"),
];

/// Fills a map with people as JSON, under the keys 1 to 5.
async fn people(client: &Client, name: &str) -> Map<i32, Json> {
    let map = client.map::<i32, Json>(name);
    map.clear().await.unwrap();
    for (number, (name, age, city)) in (1..).zip(PEOPLE) {
        let text = format!(r#"{{"name":"{name}","age":{age},"address":{{"city":"{city}"}},"tags":["{city}","x"]}}"#);
        map.set(&number, &Json::new(text)).await.unwrap();
    }
    map
}

fn int(value: i32) -> Value<'static> {
    Value::Int32(value)
}

fn text(text: &'static str) -> Value<'static> {
    Value::text(text)
}

fn compare(attribute: &str, value: Value<'static>, equal: bool, less: bool) -> Predicate {
    Predicate::Compare { attribute: attribute.into(), value, equal, less }
}

fn sql(text: &str) -> Predicate {
    Predicate::Sql(text.into())
}

fn path(path: &str) -> Option<String> {
    Some(path.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_predicate_finds_its_keys() {
    let (_member, client) = connected().await;
    let map = people(&client, "client-predicates").await;
    let equal = |attribute: &str, value| Predicate::Equal(attribute.into(), value);
    let like = |pattern: &str, ignore_case| Predicate::Like {
        attribute: "name".into(),
        pattern: Some(pattern.into()),
        ignore_case,
    };
    let not = |predicate| Predicate::Not(Box::new(predicate));
    let key = filbert_client::ToBlob::to_blob(&3).unwrap();
    let cases: Vec<(Predicate, &[i32])> = vec![
        (Predicate::True, &[1, 2, 3, 4, 5]),
        (Predicate::False, &[]),
        (equal("age", int(41)), &[2]),
        (equal("address.city", text("London")), &[1, 2]),
        (equal("tags[0]", text("Brno")), &[4]),
        (equal("tags[any]", text("York")), &[5]),
        (equal("missing", Value::Null), &[1, 2, 3, 4, 5]),
        (Predicate::NotEqual("age".into(), int(41)), &[1, 3, 4, 5]),
        (compare("age", int(53), false, false), &[4, 5]),
        (compare("age", int(53), true, false), &[3, 4, 5]),
        (compare("age", int(53), false, true), &[1, 2]),
        (compare("__key", int(2), true, true), &[1, 2]),
        (Predicate::Between { attribute: "age".into(), from: int(41), to: int(71) }, &[2, 3, 4]),
        (Predicate::In("name".into(), vec![text("Ada"), text("Kurt"), text("Nobody")]), &[1, 4]),
        (like("A%a%", false), &[1, 2]),
        (like("a%", false), &[]),
        (like("a%", true), &[1, 2]),
        (like("_rac_", false), &[5]),
        (Predicate::Regex { attribute: "name".into(), pattern: Some("[AE].*".into()) }, &[1, 2, 3]),
        (Predicate::And(vec![like("A%", false), compare("age", int(40), false, false)]), &[2]),
        (Predicate::Or(vec![equal("age", int(36)), equal("age", int(85))]), &[1, 5]),
        (not(equal("address.city", text("London"))), &[3, 4, 5]),
        (sql("age > 40 AND (name LIKE 'A%' OR address.city = 'York')"), &[2, 5]),
        (sql("age BETWEEN 41 AND 53 OR __key IN (1, 5)"), &[1, 2, 3, 5]),
        (Predicate::Partition { key, predicate: Box::new(equal("__key", int(3))) }, &[3]),
    ];
    for (predicate, expected) in cases {
        let mut found = map.keys_with(&predicate).await.unwrap_or_else(|error| panic!("{predicate:?}: {error}"));
        found.sort_unstable();
        assert_eq!(found, expected, "{predicate:?}");
        assert_eq!(map.values_with(&predicate).await.unwrap().len(), expected.len(), "{predicate:?}");
        let entries = map.entries_with(&predicate).await.unwrap();
        let keys: BTreeSet<i32> = entries.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, expected.iter().copied().collect(), "{predicate:?}");
    }
    let broken = map.keys_with(&sql("age >")).await.unwrap_err();
    assert!(matches!(broken, ClientError::Server(_)), "{broken}");
    map.remove_all_with(&compare("age", int(50), false, false)).await.unwrap();
    assert_eq!(map.size().await.unwrap(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aggregators_and_projections_answer_values_of_their_types() {
    let (_member, client) = connected().await;
    let map = people(&client, "client-aggregators").await;
    let londoners = Predicate::Equal("address.city".into(), text("London"));
    assert_eq!(map.aggregate::<i64>(&Aggregator::Count(None), None).await.unwrap(), Some(5));
    assert_eq!(map.aggregate::<i64>(&Aggregator::Count(path("age")), Some(&londoners)).await.unwrap(), Some(2));
    assert_eq!(map.aggregate::<i64>(&Aggregator::FixedSum(path("age")), None).await.unwrap(), Some(286));
    assert_eq!(map.aggregate::<f64>(&Aggregator::FloatingSum(path("age")), None).await.unwrap(), Some(286.0));
    assert_eq!(map.aggregate::<f64>(&Aggregator::NumberAvg(path("age")), Some(&londoners)).await.unwrap(), Some(38.5));
    assert_eq!(map.aggregate::<String>(&Aggregator::Min(path("name")), None).await.unwrap().as_deref(), Some("Ada"));
    assert_eq!(map.aggregate::<String>(&Aggregator::Max(path("name")), None).await.unwrap().as_deref(), Some("Kurt"));
    let cities = map.aggregate::<Distinct<String>>(&Aggregator::Distinct(path("address.city")), None).await.unwrap();
    let cities: BTreeSet<String> = cities.unwrap().0.into_iter().collect();
    assert_eq!(cities, ["Brno", "Erlangen", "London", "York"].map(str::to_owned).into());
    let oldest = map.aggregate::<Entry<i32, Json>>(&Aggregator::MaxBy(path("age")), None).await.unwrap().unwrap();
    assert_eq!(oldest.key, 5);
    let nobody = Predicate::False;
    assert_eq!(map.aggregate::<Blob>(&Aggregator::Max(path("age")), Some(&nobody)).await.unwrap(), None);
    let mut names = map.project::<String>(&Projection::Single("name".into()), Some(&londoners)).await.unwrap();
    names.sort();
    assert_eq!(names, [path("Ada"), path("Alan")]);
    let two = Projection::Multi(vec!["name".into(), "missing".into()]);
    let mut rows = map.project::<List<Option<String>>>(&two, Some(&londoners)).await.unwrap();
    rows.sort();
    assert_eq!(rows, [Some(List(vec![path("Ada"), None])), Some(List(vec![path("Alan"), None]))]);
    let city = Projection::Single("address.city".into());
    let mut cities = map.iter_projected::<String>(&city, &londoners).unwrap().with_batch(1).collect().await.unwrap();
    cities.sort();
    assert_eq!(cities, [path("London"), path("London")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_come_in_order_and_can_be_jumped_to() {
    let (_member, client) = connected().await;
    let map = client.map::<i32, i32>("client-pages");
    map.put_all((0..100).map(|key| (key, 1000 - key))).await.unwrap();
    let even = compare("this", int(900), false, false);
    let mut pages = map.key_pages(Some(&even), 30);
    let mut seen = Vec::new();
    while let Some(page) = pages.next().await.unwrap() {
        seen.extend(page);
    }
    assert_eq!(seen, (0..100).collect::<Vec<_>>());
    assert_eq!(pages.get(2).await.unwrap(), (60..90).collect::<Vec<_>>());
    assert_eq!(pages.get(7).await.unwrap(), Vec::<i32>::new());
    let mut values = map.value_pages(None, 40);
    assert_eq!(values.get(1).await.unwrap(), (941..=980).collect::<Vec<_>>());
    let mut entries = map.entry_pages(Some(&Predicate::True), 3);
    assert_eq!(entries.next().await.unwrap().unwrap().len(), 3);
    map.clear().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn indexes_change_no_answer() {
    let (_member, client) = connected().await;
    let map = people(&client, "client-indexes").await;
    let between = Predicate::Between { attribute: "age".into(), from: int(40), to: int(60) };
    let find = async |predicate: &Predicate| {
        let mut found = map.keys_with(predicate).await.unwrap();
        found.sort_unstable();
        found
    };
    let before = find(&between).await;
    map.add_index(&Index::sorted(["age"])).await.unwrap();
    map.add_index(&Index::sorted(["age"])).await.unwrap();
    map.add_index(&Index::hash(["name"])).await.unwrap();
    map.add_index(&Index::hash(["address.city", "age"]).named("both")).await.unwrap();
    map.add_index(&Index::bitmap("address.city", "__key", UniqueKey::Object)).await.unwrap();
    assert_eq!(find(&between).await, before);
    assert_eq!(find(&Predicate::Equal("name".into(), text("Kurt"))).await, [4]);
    assert_eq!(find(&sql("address.city = 'London' AND age = 41")).await, [2]);
    map.set(&2, &Json::new(r#"{"name":"Alan","age":99}"#)).await.unwrap();
    assert_eq!(find(&between).await, [3]);
    map.add_index(&Index::sorted(Vec::<String>::new())).await.unwrap_err();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_are_heard_of_as_they_enter_and_leave_a_predicate() {
    let (_member, client) = connected().await;
    let map = client.map::<i32, i32>("client-listeners");
    map.clear().await.unwrap();
    let large = compare("this", int(10), false, false);
    let what = Listening::<i32> { kinds: EntryKinds::ALL, key: None, predicate: Some(&large), include_value: true };
    let mut events = map.listen_to(what).await.unwrap();
    for value in [1, 11, 12, 2] {
        map.set(&1, &value).await.unwrap();
    }
    map.set(&2, &20).await.unwrap();
    map.remove(&2).await.unwrap();
    let expected = [
        (EntryKinds::ADDED, 1),
        (EntryKinds::UPDATED, 1),
        (EntryKinds::REMOVED, 1),
        (EntryKinds::ADDED, 2),
        (EntryKinds::REMOVED, 2),
    ];
    let mut heard = Vec::new();
    for _ in 0..expected.len() {
        let event = tokio::time::timeout(PATIENCE, events.next()).await;
        let event = event.unwrap_or_else(|_| panic!("heard only {heard:?}")).unwrap().unwrap();
        heard.push((event.kind, event.key.unwrap()));
    }
    // The order of events of different keys is not defined.
    heard.sort_by_key(|(_, key)| *key);
    assert_eq!(heard, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn values_of_announced_schemas_are_queried() {
    let (_member, client) = connected().await;
    let fields = [("age", FieldKind::Int32), ("name", FieldKind::String)];
    let fields = fields.map(|(name, kind)| FieldDescriptor { name: name.into(), kind });
    let schema = Schema::new("client-person", fields);
    client.send_schema(&schema).await.unwrap();
    let person = |name: &str, age: i32| {
        let mut blob = vec![0; 4];
        blob.extend((-55i32).to_be_bytes());
        blob.extend(schema.fingerprint().0.to_be_bytes());
        blob.extend((8 + name.len() as i32).to_be_bytes());
        blob.extend(age.to_be_bytes());
        blob.extend((name.len() as i32).to_be_bytes());
        blob.extend(name.as_bytes());
        // The offset of the name.
        blob.push(4);
        Blob::from(blob)
    };
    let map = client.map::<i32, Blob>("client-compact");
    for (key, (name, age, _)) in (1..).zip(PEOPLE) {
        map.set(&key, &person(name, age)).await.unwrap();
    }
    let found = map.keys_with(&Predicate::Equal("name".into(), text("Emmy"))).await.unwrap();
    assert_eq!(found, [3]);
    let oldest = map.aggregate::<Entry<i32, Blob>>(&Aggregator::MaxBy(path("age")), None).await.unwrap().unwrap();
    assert_eq!(oldest.key, 5);
    assert_eq!(map.get(&5).await.unwrap(), Some(person("Grace", 85)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_answer_rows_counts_and_errors() {
    let (_member, client) = connected().await;
    client.map::<i32, String>("client_names").clear().await.unwrap();
    let mapping = "CREATE OR REPLACE MAPPING client_names (__key INTEGER, this VARCHAR) \
                   TYPE IMap OPTIONS ('keyFormat' = 'int', 'valueFormat' = 'varchar')";
    let created = client.sql(mapping, &[]).await.unwrap();
    assert_eq!(created.update_count(), Some(0));
    for number in 0..1000 {
        let name = format!("name {number}");
        client.sql("SINK INTO client_names VALUES (?, ?)", &[&number, &name]).await.unwrap();
    }
    assert_eq!(client.map::<i32, String>("client_names").get(&7).await.unwrap().as_deref(), Some("name 7"));
    let statement = Statement::new("SELECT __key, this FROM client_names WHERE __key < ? ORDER BY __key").bind(&500);
    let mut result = client.execute(statement.clone().page_rows(100).expect(ResultKind::Rows)).await.unwrap();
    let columns: Vec<_> = result.columns().iter().map(|column| column.name.as_str()).collect();
    assert_eq!(columns, ["__key", "this"]);
    assert_eq!((result.update_count(), result.is_infinite()), (None, false));
    for number in 0..500 {
        let row = result.next_row().await.unwrap().unwrap();
        assert_eq!(row.get("__key"), Some(&int(number)));
        assert_eq!(row.get("this"), Some(&Value::Text(format!("name {number}").into())));
    }
    assert_eq!(result.next_row().await.unwrap(), None);
    assert_eq!(client.execute(statement.page_rows(7)).await.unwrap().collect().await.unwrap().len(), 500);
    let count = client.sql("SELECT count(*) FROM client_names", &[]).await.unwrap().scalar().await.unwrap();
    assert_eq!(count, Some(Value::Int64(1000)));
    // A cursor that is dropped before its end.
    drop(client.execute(Statement::new("SELECT * FROM client_names").page_rows(1)).await.unwrap());
    client.execute(Statement::new("SELECT * FROM client_names").page_rows(1)).await.unwrap().close().await.unwrap();
    let unknown = client.sql("SELECT * FROM client_unknown", &[]).await.unwrap_err();
    let ClientError::Sql(unknown) = unknown else { panic!("{unknown}") };
    assert_eq!(unknown.code, sql_code::OBJECT_NOT_FOUND);
    let wrong = client.sql("SELEC", &[]).await.unwrap_err();
    let ClientError::Sql(wrong) = wrong else { panic!("{wrong}") };
    assert_eq!(wrong.code, sql_code::PARSING);
    let rows = Statement::new("SELECT * FROM client_names").expect(ResultKind::UpdateCount);
    assert!(matches!(client.execute(rows).await.unwrap_err(), ClientError::Sql(_)));
}
