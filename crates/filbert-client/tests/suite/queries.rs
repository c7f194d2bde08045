//! Tests of predicates and SQL: the requests of the client, and its results from the responses.

use std::time::Duration;

use crate::support::{Act, FakeMember, PARTITIONS, ReceivedRequest, encode, eventually};
use filbert_client::{
    Blob, Client, ClientConfig, ClientError, ClientLimits, EntryKinds, Index, Json, List, Listening, ResultKind,
    Statement, ToBlob, UniqueKey, Value,
    compact::{FieldDescriptor, FieldKind, Schema},
    criteria::{Aggregator, Distinct, Entry, Predicate, Projection, distinct_blob, entry_blob, row_blob},
    sql_code,
};
use filbert_wire::{
    Event, Message,
    sql_page::{SqlColumn as Column, SqlDate, SqlDecimal, SqlPage, SqlTime, SqlTimestamp, SqlTimestampWithTimeZone},
    structure::{AnchorDataListHolder, HazelcastJsonValue, SqlColumnMetadata, SqlError},
    table::{client, map, sql},
};
use uuid::Uuid;

fn adults() -> Predicate {
    Predicate::Compare { attribute: "age".into(), value: Value::Int32(18), equal: true, less: false }
}

fn send<R: filbert_wire::Response>(received: &ReceivedRequest, response: &R) -> Act {
    Act::Send(encode(received, response))
}

#[tokio::test]
async fn a_predicate_finds_keys_values_and_entries() {
    let predicate = adults().to_blob().unwrap();
    let member = FakeMember::start(move |received| {
        let message = Message::parse(&received.bytes).unwrap();
        let (one, ada) = (1i32.to_blob().unwrap(), "Ada".to_blob().unwrap());
        match received.id {
            map::key_set_with_predicate::ID => {
                let request = message.decode::<map::key_set_with_predicate::Request<'_>>().unwrap();
                assert_eq!((request.name, request.predicate), ("people", predicate.as_bytes()));
                send(received, &map::key_set_with_predicate::Response { response: vec![&one] })
            }
            map::values_with_predicate::ID => {
                send(received, &map::values_with_predicate::Response { response: vec![&ada] })
            }
            map::entries_with_predicate::ID => {
                send(received, &map::entries_with_predicate::Response { response: vec![(&one, &ada)] })
            }
            map::remove_all::ID => {
                let request = message.decode::<map::remove_all::Request<'_>>().unwrap();
                assert_eq!(request.predicate, predicate.as_bytes());
                send(received, &map::remove_all::Response {})
            }
            _ => Act::Usual,
        }
    })
    .await;
    let people = Client::connect(member.config()).await.unwrap().map::<i32, String>("people");
    assert_eq!(people.keys_with(&adults()).await.unwrap(), [1]);
    assert_eq!(people.values_with(&adults()).await.unwrap(), ["Ada"]);
    assert_eq!(people.entries_with(&adults()).await.unwrap(), [(1, "Ada".to_owned())]);
    people.remove_all_with(&adults()).await.unwrap();
}

#[tokio::test]
async fn a_predicate_of_a_partition_goes_to_its_owner() {
    let member = FakeMember::start(|received| match received.id {
        map::key_set_with_predicate::ID => send(received, &map::key_set_with_predicate::Response { response: vec![] }),
        _ => Act::Usual,
    })
    .await;
    let client = Client::connect(member.config()).await.unwrap();
    let key = 5i32.to_blob().unwrap();
    let partition = client.partition_of(&key);
    let of_partition = Predicate::Partition { key, predicate: Box::new(Predicate::True) };
    client.map::<i32, i32>("m").keys_with(&of_partition).await.unwrap();
    client.map::<i32, i32>("m").keys_with(&Predicate::True).await.unwrap();
    let received = member.received(map::key_set_with_predicate::ID);
    assert_eq!([received[0].partition, received[1].partition], [i32::try_from(partition.0).unwrap(), -1]);
}

#[tokio::test]
async fn responses_of_aggregators_and_projections_have_the_requested_types() {
    let member = FakeMember::start(|received| {
        let message = Message::parse(&received.bytes).unwrap();
        let (one, ada) = (1i32.to_blob().unwrap(), "Ada".to_blob().unwrap());
        match received.id {
            map::aggregate::ID => {
                let request = message.decode::<map::aggregate::Request<'_>>().unwrap();
                let answer = match Aggregator::from_blob(request.aggregator).unwrap() {
                    Aggregator::Count(None) => Some(7i64.to_blob().unwrap()),
                    Aggregator::MaxBy(Some(_)) => Some(entry_blob(&one, &ada).unwrap()),
                    Aggregator::Distinct(_) => Some(distinct_blob([&one].into_iter()).unwrap()),
                    _ => None,
                };
                send(received, &map::aggregate::Response { response: answer.as_deref() })
            }
            map::aggregate_with_predicate::ID => {
                let request = message.decode::<map::aggregate_with_predicate::Request<'_>>().unwrap();
                assert_eq!(Predicate::from_blob(request.predicate).unwrap(), adults());
                let answer = 1.5f64.to_blob().unwrap();
                send(received, &map::aggregate_with_predicate::Response { response: Some(&answer) })
            }
            map::project::ID => send(received, &map::project::Response { response: vec![Some(&ada), None] }),
            map::project_with_predicate::ID => {
                let row = row_blob([&one, &one].into_iter()).unwrap();
                send(received, &map::project_with_predicate::Response { response: vec![Some(&row)] })
            }
            _ => Act::Usual,
        }
    })
    .await;
    let people = Client::connect(member.config()).await.unwrap().map::<i32, String>("people");
    let path = || Some("age".to_owned());
    assert_eq!(people.aggregate::<i64>(&Aggregator::Count(None), None).await.unwrap(), Some(7));
    assert_eq!(people.aggregate::<i64>(&Aggregator::Max(path()), None).await.unwrap(), None);
    assert_eq!(people.aggregate::<f64>(&Aggregator::DoubleAvg(path()), Some(&adults())).await.unwrap(), Some(1.5));
    let oldest = people.aggregate::<Entry<i32, String>>(&Aggregator::MaxBy(path()), None).await.unwrap();
    assert_eq!(oldest, Some(Entry { key: 1, value: "Ada".into() }));
    let ages = people.aggregate::<Distinct<i32>>(&Aggregator::Distinct(path()), None).await.unwrap();
    assert_eq!(ages, Some(Distinct(vec![1])));
    let wrong = people.aggregate::<i32>(&Aggregator::Count(None), None).await.unwrap_err();
    assert!(matches!(wrong, ClientError::Data(_)), "{wrong}");
    let names = people.project::<String>(&Projection::Single("name".into()), None).await.unwrap();
    assert_eq!(names, [Some("Ada".to_owned()), None]);
    let both = Projection::Multi(vec!["a".into(), "b".into()]);
    assert_eq!(people.project::<List<i32>>(&both, Some(&adults())).await.unwrap(), [Some(List(vec![1, 1]))]);
}

#[tokio::test]
async fn pages_are_requested_with_the_anchors_of_the_previous_ones() {
    let member = FakeMember::start(|received| {
        if received.id != map::key_set_with_paging_predicate::ID {
            return Act::Usual;
        }
        let message = Message::parse(&received.bytes).unwrap();
        let request = message.decode::<map::key_set_with_paging_predicate::Request<'_>>().unwrap();
        let holder = request.predicate;
        assert_eq!((holder.page_size, holder.iteration_type_id), (2, 0));
        assert_eq!(holder.comparator_data, None);
        assert_eq!(Predicate::from_blob(holder.predicate_data.unwrap()).unwrap(), adults());
        let anchors = holder.anchor_data_list_holder.anchor_page_list;
        assert_eq!(anchors, (0..holder.page).collect::<Vec<_>>());
        let keys: Vec<Blob> = (holder.page * 2..5).take(2).map(|key| key.to_blob().unwrap()).collect();
        let last = keys.last().unwrap().clone();
        let anchor_data_list = AnchorDataListHolder {
            anchor_page_list: (0..=holder.page).collect(),
            anchor_data_list: (0..=holder.page).map(|_| (last.as_bytes(), last.as_bytes())).collect(),
        };
        let response = keys.iter().map(Blob::as_bytes).collect();
        send(received, &map::key_set_with_paging_predicate::Response { response, anchor_data_list })
    })
    .await;
    let people = Client::connect(member.config()).await.unwrap().map::<i32, String>("people");
    let mut pages = people.key_pages(Some(&adults()), 2);
    assert_eq!(pages.next().await.unwrap(), Some(vec![0, 1]));
    assert_eq!(pages.next().await.unwrap(), Some(vec![2, 3]));
    assert_eq!(pages.next().await.unwrap(), Some(vec![4]));
    assert_eq!(pages.next().await.unwrap(), None);
    assert_eq!(member.received(map::key_set_with_paging_predicate::ID).len(), 3);
}

#[tokio::test]
async fn indexes_are_added_as_they_are_described() {
    let member = FakeMember::start(|received| match received.id {
        map::add_index::ID => send(received, &map::add_index::Response {}),
        _ => Act::Usual,
    })
    .await;
    let people = Client::connect(member.config()).await.unwrap().map::<i32, String>("people");
    people.add_index(&Index::sorted(["age", "name"]).named("by_age")).await.unwrap();
    people.add_index(&Index::hash(["name"])).await.unwrap();
    people.add_index(&Index::bitmap("status", "__key", UniqueKey::Raw)).await.unwrap();
    let received = member.received(map::add_index::ID);
    let described = received.iter().map(|received| {
        let message = Message::parse(&received.bytes).unwrap();
        let index = message.decode::<map::add_index::Request<'_>>().unwrap().index_config;
        let bitmap = index.bitmap_index_options.map(|it| (it.unique_key.to_owned(), it.unique_key_transformation));
        (index.name.map(str::to_owned), index.kind, index.attributes.join(","), bitmap)
    });
    let expected = [
        (Some("by_age".to_owned()), 0, "age,name".to_owned(), None),
        (None, 1, "name".to_owned(), None),
        (None, 2, "status".to_owned(), Some(("__key".to_owned(), 2))),
    ];
    assert_eq!(described.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn listeners_with_a_predicate_receive_the_events_of_their_message() {
    let member = FakeMember::start(|received| match received.id {
        map::add_entry_listener_with_predicate::ID => {
            let message = Message::parse(&received.bytes).unwrap();
            let request = message.decode::<map::add_entry_listener_with_predicate::Request<'_>>().unwrap();
            assert_eq!(Predicate::from_blob(request.predicate).unwrap(), adults());
            let one = 1i32.to_blob().unwrap();
            let event = map::add_entry_listener_with_predicate::EntryEvent {
                key: Some(&one),
                value: None,
                old_value: None,
                merging_value: None,
                event_type: 1,
                uuid: Uuid::from_u128(3),
                number_of_affected_entries: 1,
            };
            let response = Uuid::from_u128(9);
            let mut bytes = encode(received, &map::add_entry_listener_with_predicate::Response { response });
            event.encode(received.correlation, -1, &mut bytes);
            Act::Send(bytes)
        }
        _ => Act::Usual,
    })
    .await;
    let people = Client::connect(member.config()).await.unwrap().map::<i32, String>("people");
    let adults = adults();
    let what = Listening::<i32> { kinds: EntryKinds::ALL, key: None, predicate: Some(&adults), include_value: false };
    let mut events = people.listen_to(what).await.unwrap();
    let event = events.next().await.unwrap().unwrap();
    assert_eq!((event.kind, event.key, event.value), (EntryKinds::ADDED, Some(1), None));
    events.stop().await;
    assert_eq!(member.received(map::remove_entry_listener::ID).len(), 1);
}

#[tokio::test]
async fn projections_of_all_partitions_come_in_batches() {
    let member = FakeMember::start(|received| {
        if received.id != map::fetch_with_query::ID {
            return Act::Usual;
        }
        let message = Message::parse(&received.bytes).unwrap();
        let request = message.decode::<map::fetch_with_query::Request<'_>>().unwrap();
        assert_eq!(Predicate::from_blob(request.predicate).unwrap(), adults());
        assert_eq!(Projection::from_blob(request.projection).unwrap(), Projection::Single("age".into()));
        let age = received.partition.to_blob().unwrap();
        let is_first = request.iteration_pointers == [(i32::MAX, -1)];
        let iteration_pointers = vec![(if is_first { 7 } else { -1 }, 8)];
        let results = vec![Some(age.as_bytes()).filter(|_| is_first)];
        send(received, &map::fetch_with_query::Response { results, iteration_pointers })
    })
    .await;
    let people = Client::connect(member.config()).await.unwrap().map::<i32, String>("people");
    let cursor = people.iter_projected::<i32>(&Projection::Single("age".into()), &adults()).unwrap();
    let expected: Vec<_> = (0..PARTITIONS).flat_map(|partition| [Some(partition), None]).collect();
    assert_eq!(cursor.collect().await.unwrap(), expected);
}

#[tokio::test]
async fn schemas_are_announced_once_and_to_a_restarted_cluster() {
    let member = FakeMember::start(|received| match received.id {
        client::send_schema::ID => send(received, &client::send_schema::Response { replicated_members: vec![] }),
        client::send_all_schemas::ID => send(received, &client::send_all_schemas::Response {}),
        _ => Act::Usual,
    })
    .await;
    let config = member.config();
    let client = Client::connect(config).await.unwrap();
    let schema = Schema::new("person", [FieldDescriptor { name: "age".into(), kind: FieldKind::Int32 }]);
    client.send_schema(&schema).await.unwrap();
    client.send_schema(&schema).await.unwrap();
    let received = member.received(client::send_schema::ID);
    assert_eq!(received.len(), 1);
    let message = Message::parse(&received[0].bytes).unwrap();
    let sent = message.decode::<client::send_schema::Request<'_>>().unwrap().schema;
    assert_eq!((sent.type_name, sent.fields[0].field_name, sent.fields[0].kind), ("person", "age", 9));
    assert!(member.received(client::send_all_schemas::ID).is_empty());
    member.cut_all();
    assert!(client.wait_for_members(1, Duration::from_secs(10)).await);
    assert!(member.received(client::send_all_schemas::ID).is_empty(), "the cluster is the same");
    member.set_cluster(Uuid::from_u128(2));
    member.cut_all();
    let received = member.wait_for(client::send_all_schemas::ID, 1).await;
    let message = Message::parse(&received[0].bytes).unwrap();
    let sent = message.decode::<client::send_all_schemas::Request<'_>>().unwrap().schemas;
    assert_eq!((sent.len(), sent[0].type_name), (1, "person"));
    eventually(|| client.connected_members().len() == 1).await;
}

/// The metadata of columns of these types, named by position.
fn columns(kinds: &[i32]) -> Option<Vec<SqlColumnMetadata<'static>>> {
    const NAMES: [&str; 16] =
        ["c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8", "c9", "c10", "c11", "c12", "c13", "c14", "c15"];
    let all = kinds.iter().zip(NAMES);
    Some(all.map(|(kind, name)| SqlColumnMetadata { name, kind: *kind, nullable: true }).collect())
}

fn answer(
    columns: Option<Vec<SqlColumnMetadata<'static>>>,
    page: Option<SqlPage<'static>>,
) -> sql::execute::Response<'static> {
    sql::execute::Response {
        update_count: if columns.is_some() { -1 } else { 3 },
        row_metadata: columns,
        row_page: page,
        error: None,
        is_infinite_rows: false,
        partition_argument_index: -1,
    }
}

fn numbers(numbers: std::ops::Range<i32>, last: bool) -> SqlPage<'static> {
    SqlPage { last, columns: vec![Column::Integer(numbers.map(Some).collect())] }
}

#[tokio::test]
async fn a_statement_carries_its_parameters_and_settings() {
    let member = FakeMember::start(|received| match received.id {
        sql::execute::ID => send(received, &answer(None, None)),
        _ => Act::Usual,
    })
    .await;
    let client = Client::connect(member.config()).await.unwrap();
    let result = client.sql("DELETE FROM m WHERE a = ? AND b = ?", &[&7i32, &None::<i32>]).await.unwrap();
    assert_eq!((result.update_count(), result.columns().len()), (Some(3), 0));
    let statement = Statement::new("SELECT 1")
        .timeout(Duration::from_secs(2))
        .page_rows(10)
        .schema("public")
        .expect(ResultKind::UpdateCount);
    assert_eq!(client.execute(statement).await.unwrap().next_row().await.unwrap(), None);
    let received = member.received(sql::execute::ID);
    let messages: Vec<_> = received.iter().map(|received| Message::parse(&received.bytes).unwrap()).collect();
    let first = messages[0].decode::<sql::execute::Request<'_>>().unwrap();
    let seven = 7i32.to_blob().unwrap();
    assert_eq!(first.parameters, [Some(seven.as_bytes()), None]);
    assert_eq!((first.timeout_millis, first.cursor_buffer_size, first.schema), (-1, 4096, None));
    let (high, low) = member.uuid.as_u64_pair();
    assert_eq!((first.query_id.member_id_high, first.query_id.member_id_low), (high as i64, low as i64));
    let second = messages[1].decode::<sql::execute::Request<'_>>().unwrap();
    assert_eq!((second.timeout_millis, second.cursor_buffer_size, second.schema), (2000, 10, Some("public")));
    assert_eq!(second.expected_result_type, 2);
    assert_ne!(first.query_id, second.query_id);
    assert!(member.received(sql::close::ID).is_empty());
}

#[tokio::test]
async fn members_without_data_get_no_statements_while_others_are_there() {
    let answering = || {
        FakeMember::start(|received| match received.id {
            sql::execute::ID => send(received, &answer(None, None)),
            _ => Act::Usual,
        })
    };
    let (stays, leaves) = (answering().await, answering().await);
    stays.set_view_with_lite(&[&stays], &[&leaves], Vec::new(), 1);
    let client = Client::connect(stays.config()).await.unwrap();
    eventually(|| client.connected_members().len() == 2).await;
    for _ in 0..4 {
        client.sql("DELETE FROM m", &[]).await.unwrap();
    }
    assert_eq!((stays.received(sql::execute::ID).len(), leaves.received(sql::execute::ID).len()), (4, 0));
    stays.set_view_with_lite(&[], &[&stays, &leaves], Vec::new(), 2);
    eventually(|| client.members().iter().all(|member| member.is_lite)).await;
    for _ in 0..4 {
        client.sql("DELETE FROM m", &[]).await.unwrap();
    }
    assert_eq!(leaves.received(sql::execute::ID).len(), 2, "in rotation");
}

#[tokio::test]
async fn values_of_every_type_are_read() {
    let member = FakeMember::start(|received| {
        if received.id != sql::execute::ID {
            return Act::Usual;
        }
        let blob: &'static [u8] = Vec::leak(List(vec![1i32, 2]).to_blob().unwrap().into_vec());
        let date = SqlDate { year: 2024, month: 2, day: 29 };
        let time = SqlTime { hour: 12, minute: 34, second: 56, nanosecond: 789_000_000 };
        let local = SqlTimestamp { date, time };
        let zoned = SqlTimestampWithTimeZone { local, offset_seconds: -19_800 };
        let all = vec![
            Column::Varchar(vec![Some("x"), None]),
            Column::Boolean(vec![Some(true), None]),
            Column::TinyInt(vec![Some(1), None]),
            Column::SmallInt(vec![Some(2), None]),
            Column::Integer(vec![Some(3), None]),
            Column::BigInt(vec![Some(4), None]),
            Column::Decimal(vec![Some(SqlDecimal { unscaled: &[0x88], scale: 2 }), None]),
            Column::Real(vec![Some(1.5), None]),
            Column::Double(vec![Some(2.5), None]),
            Column::Date(vec![Some(date), None]),
            Column::Time(vec![Some(time), None]),
            Column::Timestamp(vec![Some(local), None]),
            Column::TimestampWithTimeZone(vec![Some(zoned), None]),
            Column::Object(vec![Some(blob), None]),
            Column::Nulls { column_type: Column::NULL, rows: 2 },
            Column::Json(vec![Some(HazelcastJsonValue { value: "{}" }), None]),
        ];
        let kinds: Vec<i32> = (0..16).collect();
        send(received, &answer(columns(&kinds), Some(SqlPage { last: true, columns: all })))
    })
    .await;
    let client = Client::connect(member.config()).await.unwrap();
    let mut result = client.sql("SELECT *", &[]).await.unwrap();
    let shown: Vec<String> =
        result.columns().iter().map(|it| it.field_type.as_ref().map_or("NULL".into(), ToString::to_string)).collect();
    let expected = "VARCHAR BOOLEAN TINYINT SMALLINT INTEGER BIGINT DECIMAL REAL DOUBLE DATE TIME TIMESTAMP \
                    TIMESTAMP WITH TIME ZONE OBJECT NULL JSON";
    assert_eq!(shown.join(" "), expected);
    let row = result.next_row().await.unwrap().unwrap();
    let moment = chrono::DateTime::parse_from_rfc3339("2024-02-29T12:34:56.789-05:30").unwrap();
    let expected = [
        Value::text("x"),
        Value::Boolean(true),
        Value::Int8(1),
        Value::Int16(2),
        Value::Int32(3),
        Value::Int64(4),
        Value::Decimal("-1.20".parse().unwrap()),
        Value::Float32(1.5),
        Value::Float64(2.5),
        Value::Date(moment.date_naive()),
        Value::Time(moment.time()),
        Value::Timestamp(moment.naive_local()),
        Value::TimestampTz(moment),
        Value::Array(vec![Value::Int32(1), Value::Int32(2)]),
        Value::Null,
        Value::Json("{}".into()),
    ];
    assert_eq!(row.values(), expected);
    assert_eq!((row.get("c4"), row.at(4), row.get("none")), (Some(&Value::Int32(3)), Some(&Value::Int32(3)), None));
    let row = result.next_row().await.unwrap().unwrap();
    assert!(row.values().iter().all(Value::is_null));
    assert_eq!(result.next_row().await.unwrap(), None);
    assert_eq!(result.next_row().await.unwrap(), None);
}

#[tokio::test]
async fn the_next_page_is_requested_while_one_is_read_and_none_after_the_last() {
    let mut fetched = 0;
    let member = FakeMember::start(move |received| match received.id {
        sql::execute::ID => send(received, &answer(columns(&[Column::INTEGER]), Some(numbers(0..2, false)))),
        sql::fetch::ID => {
            fetched += 1;
            let page = match fetched {
                1 => numbers(2..4, false),
                2 => numbers(0..0, false),
                _ => numbers(4..5, true),
            };
            send(received, &sql::fetch::Response { row_page: Some(page), error: None })
        }
        _ => Act::Usual,
    })
    .await;
    let client = Client::connect(member.config()).await.unwrap();
    let mut result = client.sql("SELECT n", &[]).await.unwrap();
    member.wait_for(sql::fetch::ID, 1).await;
    let first = result.next_page().await.unwrap().unwrap();
    assert_eq!(first.len(), 2);
    let rest: Vec<_> = result.collect().await.unwrap().into_iter().map(|row| row.into_values()).collect();
    assert_eq!(rest, [[Value::Int32(2)], [Value::Int32(3)], [Value::Int32(4)]]);
    assert_eq!(member.received(sql::fetch::ID).len(), 3);
    assert!(member.received(sql::close::ID).is_empty());
    let scalar = client.sql("SELECT n", &[]).await.unwrap().scalar().await.unwrap();
    assert_eq!(scalar, Some(Value::Int32(0)));
}

#[tokio::test]
async fn a_cursor_is_closed_when_its_result_is_dropped() {
    let member = FakeMember::start(|received| match received.id {
        sql::execute::ID => send(received, &answer(columns(&[Column::INTEGER]), Some(numbers(0..2, false)))),
        sql::fetch::ID => Act::Wait,
        sql::close::ID => send(received, &sql::close::Response {}),
        _ => Act::Usual,
    })
    .await;
    let client = Client::connect(member.config()).await.unwrap();
    drop(client.sql("SELECT n", &[]).await.unwrap());
    member.wait_for(sql::close::ID, 1).await;
    client.sql("SELECT n", &[]).await.unwrap().close().await.unwrap();
    let closed = member.received(sql::close::ID);
    let executed = member.received(sql::execute::ID);
    assert_eq!(closed.len(), 2);
    for (closed, executed) in closed.iter().zip(&executed) {
        let closed = Message::parse(&closed.bytes).unwrap();
        let executed = Message::parse(&executed.bytes).unwrap();
        let closed = closed.decode::<sql::close::Request>().unwrap().query_id;
        assert_eq!(closed, executed.decode::<sql::execute::Request<'_>>().unwrap().query_id);
    }
}

#[tokio::test]
async fn an_execution_that_nobody_waits_for_is_closed() {
    let member = FakeMember::start(|received| match received.id {
        sql::execute::ID => Act::Wait,
        sql::close::ID => send(received, &sql::close::Response {}),
        _ => Act::Usual,
    })
    .await;
    let client = Client::connect(member.config()).await.unwrap();
    let waiting = tokio::spawn(client.sql("SELECT slow", &[]));
    member.wait_for(sql::execute::ID, 1).await;
    waiting.abort();
    member.wait_for(sql::close::ID, 1).await;
}

#[tokio::test]
async fn an_error_of_a_statement_has_code_text_and_suggestion() {
    let originating_member_id = Uuid::from_u128(7);
    let member = FakeMember::start(move |received| {
        let error = SqlError {
            code: sql_code::OBJECT_NOT_FOUND,
            message: Some("Object 'm' not found"),
            originating_member_id,
            suggestion: Some("CREATE MAPPING m"),
            cause_stack_trace: None,
        };
        match received.id {
            sql::execute::ID => {
                let message = Message::parse(&received.bytes).unwrap();
                if message.decode::<sql::execute::Request<'_>>().unwrap().sql == "later" {
                    return send(received, &answer(columns(&[Column::INTEGER]), Some(numbers(0..1, false))));
                }
                send(received, &sql::execute::Response { error: Some(error), ..answer(None, None) })
            }
            sql::fetch::ID => send(received, &sql::fetch::Response { row_page: None, error: Some(error) }),
            _ => Act::Usual,
        }
    })
    .await;
    let client = Client::connect(member.config()).await.unwrap();
    let failed = client.sql("SELECT * FROM m", &[]).await.unwrap_err();
    assert_eq!(failed.to_string(), "Object 'm' not found; suggested: CREATE MAPPING m");
    let ClientError::Sql(error) = failed else { panic!("{failed}") };
    assert_eq!((error.code, error.member), (sql_code::OBJECT_NOT_FOUND, Some(originating_member_id)));
    let mut result = client.sql("later", &[]).await.unwrap();
    assert!(result.next_row().await.unwrap().is_some());
    assert!(matches!(result.next_row().await, Err(ClientError::Sql(_))));
    assert_eq!(result.next_row().await.unwrap(), None);
    drop(result);
    assert_eq!(member.received(sql::execute::ID).len(), 2, "an error is not tried again");
    assert!(member.received(sql::close::ID).is_empty(), "a cursor that failed is gone");
}

#[tokio::test]
async fn a_cursor_ends_with_its_connection() {
    let member = FakeMember::start(|received| match received.id {
        sql::execute::ID => send(received, &answer(columns(&[Column::INTEGER]), Some(numbers(0..1, false)))),
        sql::fetch::ID => Act::Cut,
        sql::close::ID => send(received, &sql::close::Response {}),
        _ => Act::Usual,
    })
    .await;
    let client = Client::connect(member.config()).await.unwrap();
    let mut result = client.sql("SELECT n", &[]).await.unwrap();
    assert!(result.next_row().await.unwrap().is_some());
    result.next_row().await.unwrap_err();
    assert_eq!(result.next_row().await.unwrap(), None);
    eventually(|| client.connected_members().len() == 1).await;
    // The cursor ended with its connection. The client must not send a close request on the new
    // connection.
    drop(result);
    client.sql("SELECT n", &[]).await.unwrap();
}

#[tokio::test]
async fn pages_that_cannot_be_are_errors() {
    let pages = [
        SqlPage { last: true, columns: vec![Column::Nulls { column_type: Column::INTEGER, rows: u32::MAX >> 1 }] },
        SqlPage { last: true, columns: vec![Column::Integer(vec![Some(1)]), Column::Integer(vec![Some(1)])] },
        SqlPage { last: true, columns: vec![Column::Date(vec![Some(SqlDate { year: 2024, month: 13, day: 1 })])] },
        SqlPage {
            last: true,
            columns: vec![Column::Time(vec![Some(SqlTime { hour: 1, minute: 1, second: 1, nanosecond: -1 })])],
        },
        SqlPage { last: true, columns: vec![Column::Object(vec![Some(b"short")])] },
    ];
    for page in pages {
        let shown = format!("{page:?}");
        let member = FakeMember::start(move |received| match received.id {
            sql::execute::ID => send(received, &answer(columns(&[Column::INTEGER]), Some(page.clone()))),
            sql::close::ID => send(received, &sql::close::Response {}),
            _ => Act::Usual,
        })
        .await;
        let client = Client::connect(member.config()).await.unwrap();
        let failed = client.sql("SELECT n", &[]).await.unwrap_err();
        assert!(matches!(failed, ClientError::Data(_)), "{shown}: {failed}");
    }
}

#[tokio::test]
async fn values_that_cannot_be_written_are_errors_and_nothing_is_sent() {
    let member = FakeMember::usual().await;
    let limits = ClientLimits { value_bytes_max: 100, ..ClientLimits::default() };
    let client = Client::connect(ClientConfig { limits, ..member.config() }).await.unwrap();
    let failed = client.sql("SELECT ?", &[&'😀']).await.unwrap_err();
    assert!(matches!(failed, ClientError::Data(_)), "{failed}");
    let failed = client.sql("SELECT ?", &[&Json::new("x".repeat(100))]).await.unwrap_err();
    assert!(matches!(failed, ClientError::TooLarge { .. }), "{failed}");
    let failed = client.map::<i32, i32>("m").keys_with(&Predicate::Sql("x".repeat(100))).await.unwrap_err();
    assert!(matches!(failed, ClientError::TooLarge { .. }), "{failed}");
    let failed = client.map::<i32, i32>("m").key_pages(Some(&Predicate::Sql("x".repeat(100))), 10).next().await;
    assert!(matches!(failed, Err(ClientError::TooLarge { .. })));
    assert!(member.received(sql::execute::ID).is_empty());
}
