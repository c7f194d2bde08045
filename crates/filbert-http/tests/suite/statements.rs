//! Statements over HTTP: responses, streamed rows, bulk requests, errors, sessions.

use crate::common::{door, eventually};
use filbert_http::HttpConfig;
use serde_json::json;

#[test]
fn a_statement_is_answered_as_crate_db_does() {
    let door = door(HttpConfig::default());
    let answer = door.sql(r#"{"stmt": "select echo", "args": [1, "a", null, [2], {"b": 3}]}"#);
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("content-type: application/json\n"), "{answer:?}");
    let body = answer.json();
    assert_eq!(body["cols"], json!(["text"]));
    assert_eq!(body["rows"], json!([["BIGINT 1|VARCHAR a|null|ARRAY [2]|JSON {\"b\":3}"]]));
    assert_eq!(body["rowcount"], 1);
    assert!(body["duration"].as_f64().unwrap() >= 0.0);
    assert_eq!(body.get("col_types"), None);
    let body = door.connect().post("/_sql?types", "", r#"{"stmt": "select later 2"}"#).json();
    assert_eq!(body["col_types"], json!([10, 4]));
    assert_eq!(body["rows"], json!([[0, "row 0"], [1, null]]));
    let body = door.connect().post("/_sql?types=true", "", r#"{"stmt": "set mood calm"}"#).json();
    assert_eq!((&body["cols"], &body["rows"], &body["rowcount"]), (&json!([]), &json!([[]]), &json!(0)));
    assert_eq!(body["col_types"], json!([]));
}

#[test]
fn numbers_are_converted_to_timestamps_of_the_statement() {
    let door = door(HttpConfig::default());
    let answer = door.sql(r#"{"stmt": "select timestamp $1", "args": [308534400500]}"#).json();
    assert_eq!(answer["rows"][0][0], "1979-10-12 00:00:00.500");
    assert_eq!(door.sql(r#"{"stmt": "select timestamp $1", "args": ["x"]}"#).error().1, 4000);
    assert_eq!(door.sql(r#"{"stmt": "select timestamp $1", "args": [[1]]}"#).error().1, 4000);
}

#[test]
fn many_rows_come_in_pieces_and_all_of_them() {
    let door = door(HttpConfig::default());
    let mut client = door.connect();
    for count in [0, 1, 4095, 4096, 4097, 100_000] {
        let answer = client.post("/_sql", "", &format!(r#"{{"stmt": "select later {count}"}}"#));
        let body = answer.json();
        let rows = body["rows"].as_array().unwrap();
        assert_eq!((rows.len(), body["rowcount"].as_u64()), (count, Some(count as u64)));
        for (at, row) in rows.iter().enumerate() {
            assert_eq!(*row, json!([at, at.is_multiple_of(2).then(|| format!("row {at}"))]));
        }
        assert_eq!(answer.head.contains("chunked"), count > 4096, "{count}");
    }
    eventually("all cursors are dropped", || door.engine.cursors_dropped() == 6);
}

#[test]
fn errors_have_codes_and_traces() {
    let door = door(HttpConfig::default());
    let message = "SQLParseException[cannot understand \"fail\"]".to_owned();
    let answer = door.sql(r#"{"stmt": "fail"}"#);
    assert_eq!(answer.error(), (400, 4000, message));
    assert_eq!(answer.json().get("error_trace"), None);
    let answer = door.connect().post("/_sql?error_trace=true", "", r#"{"stmt": "fail"}"#);
    let trace = answer.json()["error_trace"].as_str().unwrap().to_owned();
    assert!(trace.contains("SQLSTATE 42601") && trace.contains("at character 3"), "{trace}");
    for body in ["", "x", "[]", "{}", r#"{"stmt": 1}"#, r#"{"stmt": "select echo", "args": [1"#, "\u{0}"] {
        let (status, code, message) = door.sql(body).error();
        assert_eq!((status, code), (400, 4000), "{body}: {message}");
    }
    let deep = format!(r#"{{"stmt": "select echo", "args": [{}]}}"#, "[".repeat(1_000_000));
    assert_eq!(door.sql(&deep).status, 400);
}

#[test]
fn an_error_before_the_first_row_is_an_error_and_one_after_it_breaks_off() {
    let door = door(HttpConfig::default());
    let mut client = door.connect();
    let answer = client.post("/_sql", "", r#"{"stmt": "select later 0 then fail"}"#);
    assert_eq!(answer.error(), (400, 4000, "SQLParseException[division by zero]".to_owned()));
    let answer = client.post("/_sql", "", r#"{"stmt": "select later 5000 then fail"}"#);
    assert_eq!(answer.status, 200);
    assert!(!answer.is_whole);
    assert!(!answer.body.contains("rowcount"));
    assert!(client.is_closed());
}

#[test]
fn a_client_that_goes_ends_its_statement() {
    let door = door(HttpConfig::default());
    let mut client = door.connect();
    client.send_sql(r#"{"stmt": "select hang"}"#);
    eventually("the request has come", || door.monitor.statistics().requests == 1);
    drop(client);
    eventually("the statement is cancelled", || door.engine.cancelled() == 1);
    eventually("the connection is gone", || door.monitor.statistics().connections == 0);
    assert_eq!(door.grid.metrics().statements_running(), 0);
}

#[test]
fn a_client_that_goes_in_the_midst_of_rows_ends_its_cursor() {
    let door = door(HttpConfig::default());
    let mut client = door.connect();
    client.send_sql(r#"{"stmt": "select later 100000000"}"#);
    eventually("some pages are made", || door.engine.pages() > 2);
    std::thread::sleep(std::time::Duration::from_millis(300));
    // Nobody reads, so that few pages are requested: no more than sockets can hold.
    assert!(door.engine.pages() < 200);
    assert_eq!(door.engine.cursors_dropped(), 0);
    assert_eq!(door.grid.metrics().statements_running(), 1);
    drop(client);
    eventually("the cursor is dropped", || door.engine.cursors_dropped() == 1);
    eventually("the statement is over", || door.grid.metrics().statements_running() == 0);
}

#[test]
fn each_row_of_a_bulk_request_has_its_result() {
    let door = door(HttpConfig::default());
    let body = r#"{"stmt": "insert", "bulk_args": [[1, 1500], [-1, null], [2], ["x", 1], 7, [3, "2020-01-01"]]}"#;
    let answer = door.sql(body).json();
    assert_eq!(answer["cols"], json!([]));
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results[0], json!({"rowcount": 1}));
    let duplicate = "DuplicateKeyException[a document with the same primary key exists already]";
    assert_eq!(results[1], json!({"rowcount": -2, "error": {"code": 4091, "message": duplicate}}));
    let length = "SQLParseException[row 3 of bulk_args has 1 values, expected 2]";
    assert_eq!(results[2]["error"]["message"], length);
    assert_eq!(results[3]["rowcount"], -2);
    assert_eq!(
        results[4]["error"]["message"],
        "SQLParseException[row 5 of bulk_args is no list, expected a list of 2 values]"
    );
    assert_eq!(results[5], json!({"rowcount": 1}));
    let written: Vec<String> = door.engine.take_written().iter().map(|row| format!("{} {}", row[0], row[1])).collect();
    assert_eq!(written, ["1 1970-01-01T00:00:01.500", "3 2020-01-01"]);
    assert_eq!(door.sql(r#"{"stmt": "insert", "bulk_args": []}"#).json()["results"], json!([]));
}

#[test]
fn few_errors_of_a_bulk_request_are_reported_with_a_text() {
    let door = door(HttpConfig { bulk_errors_max: 2, ..HttpConfig::default() });
    let rows = vec!["[-1, null]"; 10_000].join(",");
    let answer = door.sql(&format!(r#"{{"stmt": "insert", "bulk_args": [{rows}]}}"#)).json();
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), 10_000);
    assert_eq!(results.iter().filter(|result| result.get("error").is_some()).count(), 2);
    assert!(results.iter().all(|result| result["rowcount"] == -2));
}

#[test]
fn other_statements_run_once_for_each_row() {
    let door = door(HttpConfig::default());
    let rows: Vec<String> = (0..100).map(|number| format!("[{number}]")).collect();
    let body = format!(r#"{{"bulk_args": [{}, ["x"], 1], "stmt": "update $1"}}"#, rows.join(","));
    let answer = door.sql(&body).json();
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results[99], json!({"rowcount": 99}));
    assert_eq!((&results[100]["rowcount"], &results[101]["rowcount"]), (&json!(-2), &json!(-2)));
    let (status, code, message) = door.sql(r#"{"stmt": "select later 1", "bulk_args": [[1]]}"#).error();
    assert_eq!((status, code), (400, 4004), "{message}");
    assert_eq!(door.sql(r#"{"stmt": "fail", "bulk_args": [[1]]}"#).error().1, 4000);
}

#[test]
fn a_connection_keeps_its_session_until_the_user_changes() {
    let door = door(HttpConfig::default());
    let mut client = door.connect();
    let mut who = |headers: &str| client.post("/_sql", headers, r#"{"stmt": "who"}"#).json()["rows"][0][0].clone();
    assert_eq!(who(""), "crate None ");
    assert_eq!(who("Default-Schema: mine\r\n"), "crate Some(\"mine\") ");
    assert_eq!(who(""), "crate None ");
    client.post("/_sql", "", r#"{"stmt": "set mood happy"}"#);
    let mut who = |headers: &str| client.post("/_sql", headers, r#"{"stmt": "who"}"#).json()["rows"][0][0].clone();
    assert_eq!(who(""), "crate None happy");
    assert_eq!(who("X-User: ann\r\n"), "ann None ");
    assert_eq!(door.sql(r#"{"stmt": "who"}"#).json()["rows"][0][0], "crate None ");
}
