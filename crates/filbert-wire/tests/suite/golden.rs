//! Messages encoded by an existing implementation (`golden.txt`) decode to the expected values. For
//! most of them, the encoding by this crate must have the same bytes.

use std::fmt;

use filbert_wire::{
    CorrelationId, Family, Message, MessageId, Payload, Uuid, encode,
    error_message::{ErrorHolder, ErrorMessage, StackTraceElement},
    sql_page::{SqlColumn, SqlDate, SqlDecimal, SqlPage, SqlTime, SqlTimestamp, SqlTimestampWithTimeZone},
    structure::*,
    table::{
        client, fenced_lock, flake_id_generator, list, map, multi_map, pn_counter, ringbuffer, sql, transaction,
        vector_collection,
    },
};

const KEY: &[u8] = &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xf9, 0, 0, 0, 42];
const VALUE: &[u8] = &[0, 0, 0, 0, 0xff, 0xff, 0xff, 0xf5, 0, 0, 0, 2, b'h', b'i'];

fn uuid(number: u64) -> Uuid {
    Uuid::from_u64_pair(number, number + 1)
}

/// Returns the bytes of the line with this name.
fn golden(name: &str) -> Vec<u8> {
    let line = include_str!("../golden.txt")
        .lines()
        .find(|line| line.split(" | ").next() == Some(name))
        .unwrap_or_else(|| panic!("no line is called {name}"));
    let hex = line.rsplit(" | ").next().unwrap();
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Checks that the line decodes to `expected`, with the right partition and correlation id.
/// Compares the values as text, because they have different lifetimes.
fn decodes<P: Family + fmt::Debug>(name: &str, partition: i32, expected: &P) {
    let bytes = golden(name);
    let message = Message::parse(&bytes).unwrap();
    assert_eq!(message.correlation_id(), CorrelationId(7));
    if partition != RESPONSE {
        assert_eq!(message.partition_id(), partition, "{name}");
    }
    let decoded = message.decode::<P::Of<'_>>().unwrap();
    assert_eq!(format!("{decoded:?}"), format!("{expected:?}"), "{name}");
}

/// As [`decodes`]; also checks that `expected` encodes to the same bytes.
fn matches<P: Payload<'static> + Family + fmt::Debug>(name: &str, partition: i32, expected: &P) {
    decodes(name, partition, expected);
    let mut out = vec![0xee];
    encode(expected, CorrelationId(7), partition, &mut out);
    assert_eq!(out[1..], golden(name), "{name}: bytes differ");
}

/// The value in place of a partition, which responses do not have.
const RESPONSE: i32 = i32::MIN;

#[test]
fn session_requests() {
    decodes(
        "client.authentication",
        -1,
        &client::authentication::Request {
            cluster_name: "dev",
            username: None,
            password: Some("sëcret"),
            uuid: Some(uuid(1)),
            client_type: "PYH",
            serialization_version: 1,
            client_hazelcast_version: "5.7.0",
            client_name: "hz.client_0",
            labels: vec!["blue", "green"],
            routing_mode: 0,
            cp_direct_to_leader_routing: false,
        },
    );
    decodes(
        "client.authentication/null-uuid",
        -1,
        &client::authentication::Request {
            cluster_name: "dev",
            client_type: "PYH",
            serialization_version: 1,
            client_hazelcast_version: "5.7.0",
            client_name: "c",
            ..Default::default()
        },
    );
    matches("client.addClusterViewListener", -1, &client::add_cluster_view_listener::Request {});
    matches("client.createProxy", -1, &client::create_proxy::Request { name: "m", service_name: "hz:impl:mapService" });
    matches("client.sendSchema", -1, &client::send_schema::Request { schema: person() });
    matches("client.sendAllSchemas", -1, &client::send_all_schemas::Request { schemas: vec![person(), person()] });
}

fn person() -> Schema<'static> {
    let fields = vec![FieldDescriptor { field_name: "age", kind: 9 }, FieldDescriptor { field_name: "name", kind: 17 }];
    Schema { type_name: "person", fields }
}

#[test]
fn map_requests() {
    matches("map.put", 203, &map::put::Request { name: "m", key: KEY, value: VALUE, thread_id: 1, ttl: -1 });
    matches("map.get", 203, &map::get::Request { name: "m", key: KEY, thread_id: 1 });
    let entries = vec![(KEY, VALUE), (VALUE, KEY)];
    matches("map.putAll", 203, &map::put_all::Request { name: "m", entries, trigger_map_loader: true });
    matches("map.getAll", -1, &map::get_all::Request { name: "m", keys: vec![KEY, VALUE] });
    matches(
        "map.addEntryListener",
        -1,
        &map::add_entry_listener::Request { name: "m", include_value: true, listener_flags: 7, local_only: false },
    );
    matches(
        "map.tryLock",
        3,
        &map::try_lock::Request { name: "m", key: KEY, thread_id: 1, lease: 5000, timeout: 250, reference_id: 9 },
    );
    let config = IndexConfig {
        name: Some("i"),
        kind: 2,
        attributes: vec!["__key", "a.b"],
        bitmap_index_options: Some(BitmapIndexOptions { unique_key: "__key", unique_key_transformation: 0 }),
        b_tree_index_config: None,
    };
    decodes("map.addIndex", -1, &map::add_index::Request { name: "m", index_config: config });
    let config = IndexConfig {
        kind: 2,
        attributes: vec!["x"],
        bitmap_index_options: Some(BitmapIndexOptions { unique_key: "__key", unique_key_transformation: 1 }),
        ..Default::default()
    };
    decodes("map.addIndex/bitmap", -1, &map::add_index::Request { name: "m", index_config: config });
    let anchor_data_list = vec![(KEY, VALUE), (VALUE, KEY)];
    let predicate = PagingPredicateHolder {
        anchor_data_list_holder: AnchorDataListHolder { anchor_page_list: vec![0, 1], anchor_data_list },
        predicate_data: Some(KEY),
        page_size: 10,
        page: 2,
        iteration_type_id: 1,
        ..Default::default()
    };
    decodes(
        "map.entriesWithPagingPredicate",
        -1,
        &map::entries_with_paging_predicate::Request { name: "m", predicate },
    );
}

#[test]
fn requests_of_other_services() {
    matches(
        "pnCounter.add",
        4,
        &pn_counter::add::Request {
            name: "c",
            delta: -5,
            get_before_update: true,
            replica_timestamps: vec![(uuid(1), 10), (uuid(2), 20)],
            target_replica_uuid: uuid(3),
        },
    );
    matches(
        "sql.execute",
        -1,
        &sql::execute::Request {
            sql: "SELECT ?",
            parameters: vec![Some(KEY), None],
            timeout_millis: -1,
            cursor_buffer_size: 4096,
            schema: None,
            expected_result_type: 1,
            query_id: SqlQueryId { member_id_high: 1, member_id_low: 2, local_id_high: 3, local_id_low: 4 },
            skip_update_statistics: false,
        },
    );
    let entries = vec![(KEY, vec![VALUE, VALUE]), (VALUE, vec![])];
    matches("multiMap.putAll", -1, &multi_map::put_all::Request { name: "mm", entries });
    let value_list = vec![VALUE, VALUE];
    matches("ringbuffer.addAll", -1, &ringbuffer::add_all::Request { name: "r", value_list, overflow_policy: 1 });
    matches(
        "fencedLock.lock",
        -1,
        &fenced_lock::lock::Request {
            group_id: RaftGroupId { name: "default", seed: 1, id: 2 },
            name: "l",
            session_id: 3,
            thread_id: 4,
            invocation_uid: uuid(5),
        },
    );
    let vectors = vec![VectorPair { name: "", kind: 0, vector: Some(vec![1.5, -2.0]) }];
    let value = VectorDocument { value: VALUE, vectors };
    matches("vectorCollection.put", -1, &vector_collection::put::Request { name: "vc", key: KEY, value });
    matches(
        "transaction.create",
        -1,
        &transaction::create::Request { timeout: 120_000, durability: 1, transaction_type: 2, thread_id: 9 },
    );
    matches("list.compareAndRetainAll", -1, &list::compare_and_retain_all::Request { name: "l", values: vec![KEY] });
}

#[test]
fn responses() {
    decodes(
        "client.authentication response",
        RESPONSE,
        &client::authentication::Response {
            address: Some(Address { host: "127.0.0.1", port: 5701 }),
            member_uuid: Some(uuid(1)),
            serialization_version: 1,
            server_hazelcast_version: "5.6.0",
            partition_count: 271,
            cluster_id: uuid(2),
            failover_supported: true,
            ..Default::default()
        },
    );
    matches("map.put response/null", RESPONSE, &map::put::Response { response: None });
    matches("map.get response", RESPONSE, &map::get::Response { response: Some(VALUE) });
    let view = SimpleEntryView {
        key: KEY,
        value: VALUE,
        cost: 1,
        creation_time: 2,
        expiration_time: 3,
        hits: 4,
        last_access_time: 5,
        last_stored_time: 6,
        last_update_time: 7,
        version: 8,
        ttl: 9,
        max_idle: 10,
    };
    matches(
        "map.getEntryView response",
        RESPONSE,
        &map::get_entry_view::Response { response: Some(view), max_idle: 11 },
    );
    matches("map.entrySet response", RESPONSE, &map::entry_set::Response { response: vec![(KEY, VALUE)] });
    matches("map.size response", RESPONSE, &map::size::Response { response: 3 });
    let objects = vec![DistributedObjectInfo { service_name: "hz:impl:mapService", name: "m" }];
    matches(
        "client.getDistributedObjects response",
        RESPONSE,
        &client::get_distributed_objects::Response { response: objects },
    );
    matches(
        "client.sendSchema response",
        RESPONSE,
        &client::send_schema::Response { replicated_members: vec![uuid(1)] },
    );
    matches("client.fetchSchema response", RESPONSE, &client::fetch_schema::Response { schema: Some(person()) });
    matches(
        "flakeIdGenerator.newIdBatch response",
        RESPONSE,
        &flake_id_generator::new_id_batch::Response { base: 100, increment: 1, batch_size: 50 },
    );
    let replica_timestamps = vec![(uuid(1), 10)];
    matches(
        "pnCounter.get response",
        RESPONSE,
        &pn_counter::get::Response { value: -5, replica_timestamps, replica_count: 2 },
    );
    matches(
        "ringbuffer.readMany response",
        RESPONSE,
        &ringbuffer::read_many::Response { read_count: 1, items: vec![VALUE], item_seqs: Some(vec![8]), next_seq: 9 },
    );
    let error = SqlError { code: 1008, message: Some("no"), originating_member_id: uuid(1), ..Default::default() };
    decodes(
        "sql.execute response",
        RESPONSE,
        &sql::execute::Response {
            row_metadata: Some(vec![SqlColumnMetadata { name: "c", kind: 4, nullable: true }]),
            update_count: -1,
            error: Some(error),
            ..Default::default()
        },
    );
}

#[test]
fn an_sql_page_with_columns_of_every_layout() {
    let date = SqlDate { year: 2024, month: 2, day: 29 };
    let time = SqlTime { hour: 23, minute: 59, second: 58, nanosecond: 123_456_000 };
    let timestamp = SqlTimestamp { date, time };
    let zoned = SqlTimestampWithTimeZone { local: timestamp, offset_seconds: 3600 };
    let columns = vec![
        SqlColumn::Varchar(vec![Some("a"), None, Some("")]),
        SqlColumn::Boolean(vec![Some(true), Some(false), Some(true)]),
        SqlColumn::Integer(vec![Some(1), None, Some(-3)]),
        SqlColumn::BigInt(vec![Some(1), Some(2), Some(3)]),
        SqlColumn::Decimal(vec![
            Some(SqlDecimal { unscaled: &[0xff, 0x38], scale: 2 }),
            None,
            Some(SqlDecimal { unscaled: &[7], scale: -1 }),
        ]),
        SqlColumn::Double(vec![None, Some(2.5), None]),
        SqlColumn::Date(vec![Some(date), None, None]),
        SqlColumn::Time(vec![None, None, Some(time)]),
        SqlColumn::Timestamp(vec![Some(timestamp), None, None]),
        SqlColumn::TimestampWithTimeZone(vec![Some(zoned), None, None]),
        SqlColumn::Nulls { column_type: SqlColumn::NULL, rows: 3 },
        SqlColumn::Json(vec![Some(HazelcastJsonValue { value: "{\"a\":1}" }), None, None]),
        SqlColumn::Nulls { column_type: SqlColumn::INTEGER, rows: 3 },
    ];
    assert!(columns.iter().all(|column| column.rows() == 3));
    let row_page = Some(SqlPage { last: true, columns });
    matches("sql.fetch response", RESPONSE, &sql::fetch::Response { row_page, error: None });
}

#[test]
fn an_error_and_its_cause() {
    let frame = |method_name, file_name, line_number| StackTraceElement {
        class_name: "a.B",
        method_name,
        file_name,
        line_number,
    };
    let holders = vec![
        ErrorHolder {
            code: 1,
            class_name: "java.lang.IllegalArgumentException",
            message: Some("bad"),
            stack_trace: vec![frame("c", Some("B.java"), 3), frame("d", None, -1)],
        },
        ErrorHolder { code: 2, class_name: "java.lang.NullPointerException", ..Default::default() },
    ];
    matches("error", RESPONSE, &ErrorMessage { holders });
    assert_eq!(Message::parse(&golden("error")).unwrap().id(), MessageId::ERROR);
}

#[test]
fn events() {
    matches(
        "map.addEntryListener EntryEvent",
        -1,
        &map::add_entry_listener::EntryEvent {
            key: Some(KEY),
            value: Some(VALUE),
            event_type: 1,
            uuid: uuid(9),
            number_of_affected_entries: 1,
            ..Default::default()
        },
    );
    let member = MemberInfo {
        address: Address { host: "127.0.0.1", port: 5701 },
        uuid: uuid(1),
        attributes: vec![("k", "v")],
        lite_member: false,
        version: MemberVersion { major: 5, minor: 6, patch: 0 },
        address_map: vec![(EndpointQualifier { kind: 1, identifier: None }, Address { host: "h", port: 1 })],
    };
    matches(
        "client.addClusterViewListener MembersViewEvent",
        -1,
        &client::add_cluster_view_listener::MembersViewEvent { version: 1, member_infos: vec![member] },
    );
    matches(
        "client.addClusterViewListener PartitionsViewEvent",
        -1,
        &client::add_cluster_view_listener::PartitionsViewEvent {
            version: 2,
            partitions: vec![(uuid(1), vec![0, 2]), (uuid(2), vec![1])],
        },
    );
    let bytes = golden("map.addEntryListener EntryEvent");
    assert!(Message::parse(&bytes).unwrap().is_event());
}
