//! Queries through the door: predicates, pages, aggregators, projections, listeners with a
//! predicate, and SQL, with the engine of fixed results.

use std::{sync::Arc, time::Duration};

use crate::common::{Client, Reply, Server, wait_until};
use filbert_grid::GridConfig;
use filbert_hazelcast::DoorConfig;
use filbert_test_engine::Engine;
use filbert_wire::{
    sql_page::SqlColumn,
    structure::{AnchorDataListHolder, PagingPredicateHolder, SqlQueryId},
    table::{map::*, sql},
};

const NAME: &str = "m";

fn with(change: impl FnOnce(&mut DoorConfig)) -> (Server, Arc<Engine>) {
    let mut door = DoorConfig::default();
    change(&mut door);
    let server = Server::with(door, GridConfig::default());
    let engine = Arc::new(Engine::default());
    assert!(server.grid.serve_queries(engine.clone()));
    (server, engine)
}

fn start() -> (Server, Arc<Engine>) {
    with(|_| ())
}

fn put(client: &mut Client, key: &str, value: &str) {
    let (key, value) = (key.as_bytes(), value.as_bytes());
    client.ok(&put::Request { name: NAME, key, value, thread_id: 1, ttl: -1 });
}

/// Puts the entries `k0` to `k9`. Values of even ones begin with `a`, those of the others with `b`.
fn fill(client: &mut Client) {
    for number in 0..10 {
        let letter = if number % 2 == 0 { 'a' } else { 'b' };
        put(client, &format!("k{number}"), &format!("{letter}{number}"));
    }
}

#[test]
fn a_predicate_finds_keys_values_and_entries_in_place_and_later() {
    let (server, _) = start();
    let mut client = server.client();
    fill(&mut client);
    for predicate in [b"a".as_slice(), b"long:a"] {
        let reply = client.ok(&key_set_with_predicate::Request { name: NAME, predicate });
        let keys: [&[u8]; 5] = [b"k0", b"k2", b"k4", b"k6", b"k8"];
        assert_eq!(reply.decode::<key_set_with_predicate::Response<'_>>().response, keys);
        let reply = client.ok(&values_with_predicate::Request { name: NAME, predicate });
        let values: [&[u8]; 5] = [b"a0", b"a2", b"a4", b"a6", b"a8"];
        assert_eq!(reply.decode::<values_with_predicate::Response<'_>>().response, values);
        let reply = client.ok(&entries_with_predicate::Request { name: NAME, predicate });
        let entries = reply.decode::<entries_with_predicate::Response<'_>>().response;
        assert_eq!(entries, keys.into_iter().zip(values).collect::<Vec<_>>());
    }
    let (code, class, text) = client.error(&key_set_with_predicate::Request { name: NAME, predicate: b"broken" });
    assert_eq!((code, class.as_str()), (21, "com.hazelcast.nio.serialization.HazelcastSerializationException"));
    assert_eq!(text, "a broken predicate");
}

#[test]
fn aggregators_answer_one_value_and_projections_many() {
    let (server, _) = start();
    let mut client = server.client();
    fill(&mut client);
    put(&mut client, "empty", "");
    let count = |reply: &Reply| reply.decode::<aggregate::Response<'_>>().response.unwrap().to_vec();
    assert_eq!(count(&client.ok(&aggregate::Request { name: NAME, aggregator: b"count" })), b"11");
    for predicate in [b"a".as_slice(), b"long:a"] {
        let request = aggregate_with_predicate::Request { name: NAME, aggregator: b"count", predicate };
        let reply = client.ok(&request);
        assert_eq!(reply.decode::<aggregate_with_predicate::Response<'_>>().response, Some(b"5".as_slice()));
        let reply = client.ok(&project_with_predicate::Request { name: NAME, projection: b"first", predicate });
        let results = reply.decode::<project_with_predicate::Response<'_>>().response;
        assert_eq!(results, [Some(b"a".as_slice()); 5]);
    }
    let reply = client.ok(&project::Request { name: NAME, projection: b"first" });
    assert_eq!(reply.decode::<project::Response<'_>>().response[0], None);
}

fn paging(page: i32, anchors: AnchorDataListHolder<'_>) -> PagingPredicateHolder<'_> {
    PagingPredicateHolder {
        anchor_data_list_holder: anchors,
        predicate_data: Some(b"a"),
        page_size: 2,
        page,
        iteration_type_id: 2,
        ..PagingPredicateHolder::default()
    }
}

#[test]
fn pages_come_with_the_anchors_of_all_pages_up_to_them() {
    let (server, _) = start();
    let mut client = server.client();
    fill(&mut client);
    let request = |holder| entries_with_paging_predicate::Request { name: NAME, predicate: holder };
    let reply = client.ok(&request(paging(1, AnchorDataListHolder::default())));
    let response: entries_with_paging_predicate::Response<'_> = reply.decode();
    assert_eq!(response.response, [(b"k4".as_slice(), b"a4".as_slice()), (b"k6", b"a6")]);
    assert_eq!(response.anchor_data_list.anchor_page_list, [0, 1]);
    assert_eq!(response.anchor_data_list.anchor_data_list[1], (b"k6".as_slice(), b"a6".as_slice()));

    // The client's anchors are kept, one for each page.
    let reply = client.ok(&request(paging(2, response.anchor_data_list.clone())));
    let response: entries_with_paging_predicate::Response<'_> = reply.decode();
    assert_eq!(response.response, [(b"k8".as_slice(), b"a8".as_slice())]);
    assert_eq!(response.anchor_data_list.anchor_page_list, [0, 1, 2]);

    let mut holder = paging(0, AnchorDataListHolder::default());
    holder.comparator_data = Some(b"code");
    assert_eq!(client.error(&request(holder)).0, 61);
    let mut holder = paging(0, AnchorDataListHolder::default());
    holder.page_size = 0;
    assert_eq!(client.error(&request(holder)).0, 23);
    assert_eq!(client.error(&request(paging(-1, AnchorDataListHolder::default()))).0, 23);
}

#[test]
fn remove_all_takes_out_what_its_predicate_finds() {
    let (server, _) = start();
    let mut client = server.client();
    fill(&mut client);
    client.ok(&remove_all::Request { name: NAME, predicate: b"a" });
    assert_eq!(client.ok(&size::Request { name: NAME }).decode::<size::Response>().response, 5);
    client.ok(&remove_all::Request { name: NAME, predicate: b"long:b" });
    assert_eq!(client.ok(&size::Request { name: NAME }).decode::<size::Response>().response, 0);
}

#[test]
fn an_iteration_with_a_predicate_sees_each_entry_once() {
    let (server, _) = start();
    let mut client = server.client();
    for number in 0..1000 {
        put(&mut client, &format!("k{number}"), if number % 10 == 0 { "found" } else { "other" });
    }
    let mut found = 0;
    for partition in 0..271 {
        let mut pointers = vec![(i32::MAX, -1)];
        while pointers[0].0 >= 0 {
            let request = fetch_with_query::Request {
                name: NAME,
                iteration_pointers: pointers,
                batch: 1,
                projection: b"first",
                predicate: b"found",
            };
            let correlation = client.send_to(&request, partition);
            let reply = client.reply_to(correlation);
            let response: fetch_with_query::Response<'_> = reply.decode();
            assert!(response.results.iter().all(|result| *result == Some(b"f")));
            found += response.results.len();
            pointers = response.iteration_pointers;
        }
    }
    assert_eq!(found, 100);
}

#[test]
fn a_reply_beyond_the_limit_is_refused() {
    let (server, _) = with(|door| door.reply_bytes_max = 1000);
    let mut client = server.client();
    let value = "a".repeat(400);
    for key in ["1", "2", "3"] {
        put(&mut client, key, &value);
    }
    for predicate in [b"a".as_slice(), b"long:a"] {
        let (_, class, text) = client.error(&values_with_predicate::Request { name: NAME, predicate });
        assert_eq!(class, "com.hazelcast.core.HazelcastOverloadException");
        assert!(text.contains("expected at most 1000 (reply_bytes_max)"), "{text}");
    }
    // The keys are shorter.
    client.ok(&key_set_with_predicate::Request { name: NAME, predicate: b"long:a" });
}

#[test]
fn listeners_with_a_predicate_see_entries_enter_and_leave() {
    let (server, _) = start();
    let mut client = server.client();
    client.ok(&add_entry_listener_with_predicate::Request {
        name: NAME,
        predicate: b"a",
        include_value: true,
        listener_flags: 1023,
        local_only: false,
    });
    put(&mut client, "k", "b1");
    put(&mut client, "k", "a1");
    put(&mut client, "k", "a2");
    put(&mut client, "k", "b2");
    client.ok(&remove::Request { name: NAME, key: b"k", thread_id: 1 });
    put(&mut client, "k", "a3");
    let mut check = |kind: i32, value: Option<&[u8]>, old_value: Option<&[u8]>| {
        let event = client.event();
        let event: add_entry_listener_with_predicate::EntryEvent<'_> = event.decode();
        assert_eq!((event.event_type, event.value, event.old_value), (kind, value, old_value));
    };
    check(1, Some(b"a1"), Some(b"b1"));
    check(4, Some(b"a2"), Some(b"a1"));
    check(2, Some(b"b2"), Some(b"a2"));
    check(1, Some(b"a3"), None);
}

#[test]
fn a_listener_to_a_key_with_a_predicate_hears_of_that_key_only() {
    let (server, _) = start();
    let mut client = server.client();
    client.ok(&add_entry_listener_to_key_with_predicate::Request {
        name: NAME,
        key: b"k",
        predicate: b"a",
        include_value: false,
        listener_flags: 1023,
        local_only: false,
    });
    put(&mut client, "other", "a1");
    put(&mut client, "k", "b1");
    put(&mut client, "k", "a1");
    let event = client.event();
    let event: add_entry_listener_to_key_with_predicate::EntryEvent<'_> = event.decode();
    assert_eq!((event.event_type, event.key, event.value), (1, Some(b"k".as_slice()), None));
}

fn id(number: i64) -> SqlQueryId {
    SqlQueryId { member_id_high: 1, member_id_low: 2, local_id_high: 3, local_id_low: number }
}

fn statement(text: &str, number: i64) -> sql::execute::Request<'_> {
    sql::execute::Request {
        sql: text,
        timeout_millis: -1,
        cursor_buffer_size: 4,
        query_id: id(number),
        ..sql::execute::Request::default()
    }
}

fn fetch(number: i64) -> sql::fetch::Request {
    sql::fetch::Request { query_id: id(number), cursor_buffer_size: 4 }
}

/// The ids of a page, and whether the page is the last one.
fn ids(page: &filbert_wire::sql_page::SqlPage<'_>) -> (Vec<i64>, bool) {
    let SqlColumn::BigInt(ids) = &page.columns[0] else { panic!("{page:?}") };
    (ids.iter().map(|id| id.unwrap()).collect(), page.last)
}

#[test]
fn counts_come_in_place_and_later() {
    let (server, _) = start();
    let mut client = server.client();
    for text in ["insert 3", "insert later 3"] {
        let reply = client.ok(&statement(text, 1));
        let response: sql::execute::Response<'_> = reply.decode();
        assert_eq!((response.update_count, response.error, response.row_page), (3, None, None));
        assert!(response.row_metadata.is_none());
    }
}

#[test]
fn rows_come_page_by_page_and_the_cursor_ends_with_the_last() {
    let (server, engine) = start();
    let mut client = server.client();
    for text in ["select now 10", "select later 10"] {
        let reply = client.ok(&statement(text, 1));
        let response: sql::execute::Response<'_> = reply.decode();
        assert_eq!((response.update_count, response.is_infinite_rows), (-1, false));
        let metadata = response.row_metadata.unwrap();
        assert_eq!((metadata[0].name, metadata[0].kind, metadata[0].nullable), ("id", SqlColumn::BIGINT, true));
        assert_eq!(ids(&response.row_page.unwrap()), (vec![0, 1, 2, 3], false));
        for expected in [(vec![4, 5, 6, 7], false), (vec![8, 9], true)] {
            let reply = client.ok(&fetch(1));
            let response: sql::fetch::Response<'_> = reply.decode();
            assert_eq!(ids(&response.row_page.unwrap()), expected);
        }
        let reply = client.ok(&fetch(1));
        let error = reply.decode::<sql::fetch::Response<'_>>().error.unwrap();
        assert_eq!(error.code, -1);
        assert!(error.message.unwrap().contains("cursor is not there"), "{error:?}");
        assert_eq!(engine.cursors(), 0);
    }
}

#[test]
fn large_rows_are_cut_into_pages_by_their_bytes() {
    let (server, engine) = with(|door| door.page_bytes_max = 2500);
    let mut client = server.client();
    let mut request = statement("select texts 100 of 1000", 1);
    request.cursor_buffer_size = 60;
    let reply = client.ok(&request);
    let response: sql::execute::Response<'_> = reply.decode();
    let (mut all, mut last) = ids(&response.row_page.unwrap());
    while !last {
        let reply = client.ok(&sql::fetch::Request { query_id: id(1), cursor_buffer_size: 60 });
        assert!(reply.0.len() < 4000);
        let page;
        (page, last) = ids(&reply.decode::<sql::fetch::Response<'_>>().row_page.unwrap());
        all.extend(page);
    }
    assert_eq!(all, (0..100).collect::<Vec<_>>());
    assert_eq!(engine.cursors(), 0);
}

#[test]
fn errors_of_statements_travel_in_the_response() {
    let (server, _) = start();
    let mut client = server.client();
    let reply = client.ok(&statement("nonsense", 1));
    let response: sql::execute::Response<'_> = reply.decode();
    let error = response.error.unwrap();
    assert_eq!((error.code, error.suggestion), (1008, Some("select now 1")));
    assert_eq!(error.originating_member_id, server.grid.member_uuid());
    assert_eq!(response.update_count, -1);

    let broken: Vec<Option<&[u8]>> = vec![None, Some(b"no blob")];
    let reply = client.ok(&sql::execute::Request { parameters: broken, ..statement("select echo", 2) });
    let error = reply.decode::<sql::execute::Response<'_>>().error.unwrap();
    assert_eq!(error.code, 2000);
    assert!(error.message.unwrap().starts_with("parameter 2 cannot be read: "), "{error:?}");

    for request in [
        sql::execute::Request { cursor_buffer_size: 0, ..statement("select now 1", 3) },
        sql::execute::Request { expected_result_type: 9, ..statement("select now 1", 3) },
    ] {
        let reply = client.ok(&request);
        assert_eq!(reply.decode::<sql::execute::Response<'_>>().error.unwrap().code, -1);
    }
    let reply = client.ok(&sql::execute_reserved::Request::default());
    let error = reply.decode::<sql::execute_reserved::Response<'_>>().error.unwrap();
    assert!(error.message.unwrap().contains("expected a client of version 5.0"));
    client.ok(&sql::fetch_reserved::Request::default());
}

#[test]
fn parameters_reach_the_statement() {
    let (server, _) = start();
    let mut client = server.client();
    let text = filbert_data::ToBlob::to_blob("text").unwrap();
    let number = filbert_data::ToBlob::to_blob(&7_i32).unwrap();
    let parameters = vec![Some(text.as_bytes()), Some(number.as_bytes()), None];
    let reply = client.ok(&sql::execute::Request { parameters, ..statement("select echo", 2) });
    let page = reply.decode::<sql::execute::Response<'_>>().row_page.unwrap();
    let SqlColumn::Varchar(texts) = &page.columns[0] else { panic!("{page:?}") };
    assert_eq!(*texts, [Some("VARCHAR text|INTEGER 7|null")]);
}

#[test]
fn a_mapping_is_returned_if_there_is_one() {
    let (server, _) = start();
    let mut client = server.client();
    let reply = client.ok(&sql::mapping_ddl::Request { name: "m" });
    assert_eq!(reply.decode::<sql::mapping_ddl::Response<'_>>().sql, Some("CREATE MAPPING m"));
    let reply = client.ok(&sql::mapping_ddl::Request { name: "nothing" });
    assert_eq!(reply.decode::<sql::mapping_ddl::Response<'_>>().sql, None);
}

#[test]
fn close_cancels_a_statement_that_runs() {
    let (server, engine) = start();
    let mut client = server.client();
    let waiting = client.send(&statement("select hang later", 1));
    wait_until("the statement runs", || engine.hanging() == 1);
    let (closing, bytes) = client.encode(&sql::close::Request { query_id: id(1) }, -1);
    client.write(&bytes);
    // Both requests are answered, in any order.
    let mut replies = [client.receive().unwrap(), client.receive().unwrap()];
    replies.sort_by_key(|reply| reply.message().correlation_id().0);
    let correlations: Vec<i64> = replies.iter().map(|reply| reply.message().correlation_id().0).collect();
    assert_eq!(correlations, [waiting, closing]);
    let error = replies[0].decode::<sql::execute::Response<'_>>().error.unwrap();
    assert_eq!(error.code, 1003);
    assert_eq!(engine.hanging(), 0);
}

#[test]
fn close_cancels_a_page_that_is_waited_for() {
    let (server, engine) = start();
    let mut client = server.client();
    let reply = client.ok(&statement("select later 1 then hang", 1));
    let response: sql::execute::Response<'_> = reply.decode();
    assert!(response.is_infinite_rows);
    assert_eq!(ids(&response.row_page.unwrap()), (vec![0], false));
    client.send(&fetch(1));
    wait_until("the page is waited for", || engine.hanging() == 1);
    // In the meantime another request for a page fails.
    let second = client.send(&fetch(1));
    let reply = client.reply_to(second);
    assert!(reply.decode::<sql::fetch::Response<'_>>().error.unwrap().message.unwrap().contains("another page"));
    client.send(&sql::close::Request { query_id: id(1) });
    let replies = [client.receive().unwrap(), client.receive().unwrap()];
    let cancelled = replies.iter().find(|reply| reply.message().id() == sql::fetch::RESPONSE_ID).unwrap();
    assert_eq!(cancelled.decode::<sql::fetch::Response<'_>>().error.unwrap().code, 1003);
    wait_until("the cursor is dropped", || engine.cursors() == 0);
}

#[test]
fn cursors_have_a_limit_and_closing_makes_room() {
    let (server, engine) = with(|door| door.cursors_max = 3);
    let mut client = server.client();
    for number in 0..3 {
        let reply = client.ok(&statement("select now 10", number));
        assert!(reply.decode::<sql::execute::Response<'_>>().error.is_none());
    }
    for text in ["select now 10", "select later 10", "select hang later"] {
        let reply = client.ok(&statement(text, 7));
        let error = reply.decode::<sql::execute::Response<'_>>().error.unwrap();
        assert!(error.message.unwrap().contains("3 open cursors, the most that cursors_max allows"), "{error:?}");
    }
    // A result that fits into its first page needs no cursor.
    assert!(client.ok(&statement("select now 4", 8)).decode::<sql::execute::Response<'_>>().error.is_none());
    client.ok(&sql::close::Request { query_id: id(0) });
    assert!(client.ok(&statement("select now 10", 7)).decode::<sql::execute::Response<'_>>().error.is_none());
    let reply = client.ok(&statement("select now 10", 7));
    assert!(reply.decode::<sql::execute::Response<'_>>().error.is_some());
    wait_until("only open cursors are kept", || engine.cursors() == 3);
}

#[test]
fn a_client_that_goes_leaves_no_cursors_and_no_statements_behind() {
    let (server, engine) = start();
    let mut client = server.client();
    for number in 0..900 {
        client.send(&statement("select now 10", number));
    }
    for number in 900..950 {
        client.send(&statement("select later 10", number));
    }
    for number in 950..1000 {
        client.send(&statement("select hang later", number));
    }
    wait_until("all run", || engine.cursors() == 950 && engine.hanging() == 50);
    client.close();
    wait_until("nothing is left", || engine.cursors() == 0 && engine.hanging() == 0);
    server.wait_until_idle(0);
    server.assert_serves();
}

#[test]
fn a_cursor_that_nobody_reads_is_closed() {
    let (server, engine) = with(|door| door.cursor_idle_timeout = Duration::from_millis(50));
    let mut client = server.client();
    client.ok(&statement("select now 10", 1));
    wait_until("the cursor is closed", || engine.cursors() == 0);
    let reply = client.ok(&fetch(1));
    let error = reply.decode::<sql::fetch::Response<'_>>().error.unwrap();
    assert!(error.message.unwrap().contains("cursor_idle_timeout"), "{error:?}");
}

#[test]
fn queries_that_run_have_a_limit() {
    let (server, engine) = with(|door| door.queries_max = 2);
    let mut client = server.client();
    client.send(&statement("select hang later", 1));
    client.send(&statement("select hang later", 2));
    wait_until("both run", || engine.hanging() == 2);
    let correlation = client.send(&statement("select hang later", 3));
    let reply = client.reply_to(correlation);
    let error = reply.decode::<sql::execute::Response<'_>>().error.unwrap();
    assert!(error.message.unwrap().contains("2 queries that run, the most that queries_max allows"), "{error:?}");
    let (_, class, _) = client.error(&values_with_predicate::Request { name: NAME, predicate: b"long:a" });
    assert_eq!(class, "com.hazelcast.core.HazelcastOverloadException");
    // A query that runs in place needs no place.
    client.ok(&values_with_predicate::Request { name: NAME, predicate: b"a" });
}

#[test]
fn replies_of_long_queries_are_not_counted_as_events() {
    let (server, _) = with(|door| door.event_buffer_bytes_max = 1000);
    let mut client = server.client();
    let value = "a".repeat(10_000);
    put(&mut client, "k", &value);
    let reply = client.ok(&values_with_predicate::Request { name: NAME, predicate: b"long:a" });
    assert_eq!(reply.decode::<values_with_predicate::Response<'_>>().response, [value.as_bytes()]);
}
