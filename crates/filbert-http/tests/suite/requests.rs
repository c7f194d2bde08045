//! Requests of every kind: paths, users, limits, incomplete bodies, many connections, shutdown.

use std::time::Duration;

use crate::common::{door, eventually};
use filbert_http::{HttpConfig, HttpUser};
use serde_json::json;

#[test]
fn tools_and_browsers_get_what_they_expect() {
    let door = door(HttpConfig { node_name: Some("first".to_owned()), ..HttpConfig::default() });
    let mut client = door.connect();
    let answer = client.get("/", "Accept: application/json\r\n").json();
    assert_eq!((&answer["ok"], &answer["status"], &answer["name"]), (&json!(true), &json!(200), &json!("first")));
    assert_eq!(answer["cluster_name"], "dev");
    assert!(answer["version"]["number"].as_str().unwrap().starts_with("5."));
    for field in ["build_hash", "build_timestamp", "build_snapshot", "lucene_version"] {
        assert!(!answer["version"][field].is_null(), "{field}");
    }
    let page = client.get("/", "Accept: text/html,application/xhtml+xml\r\n");
    assert!(page.head.contains("content-type: text/html"), "{page:?}");
    client.send("HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let mut head = String::new();
    std::io::Read::read_to_string(&mut client.stream, &mut head).unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.ends_with("\r\n\r\n"), "{head}");
    assert_eq!(door.connect().get("/_health", "").json()["status"], "serving");
}

#[test]
fn unknown_paths_are_reported_in_json() {
    let door = door(HttpConfig::default());
    let mut client = door.connect();
    let answer = client.get("/nowhere?x", "");
    assert_eq!(answer.error(), (404, 4040, "ResourceUnknownException[nothing is served at \"/nowhere\"]".to_owned()));
    assert_eq!(client.get("/_sql", "").error().0, 405);
    assert_eq!(client.post("/metrics", "", "").error().0, 405);
    let answer = client.get("/_blobs/table/0123", "");
    assert_eq!((answer.error().0, answer.error().1), (400, 4004));
}

#[test]
fn metrics_count_connections_and_responses() {
    let door = door(HttpConfig::default());
    door.grid.map("numbers").unwrap();
    assert_eq!(door.sql(r#"{"stmt": "who"}"#).status, 200);
    assert_eq!(door.sql(r#"{"stmt": "fail"}"#).status, 400);
    let answer = door.connect().get("/metrics", "");
    assert!(answer.head.contains("content-type: text/plain; version=0.0.4"), "{}", answer.head);
    for line in [
        "filbert_map_entries{map=\"numbers\"} 0",
        "filbert_http_answers_total{path=\"/_sql\",status=\"2xx\"} 1",
        "filbert_http_answers_total{path=\"/_sql\",status=\"4xx\"} 1",
        "filbert_statements_total{kind=\"other\",outcome=\"success\"} 1",
        "filbert_statements_total{kind=\"other\",outcome=\"failure\"} 1",
        "filbert_statement_duration_seconds_count{kind=\"other\"} 2",
        "filbert_active 1",
    ] {
        assert!(answer.body.lines().any(|found| found == line), "{line}\n{}", answer.body);
    }
}

#[test]
fn pages_of_other_servers_are_refused() {
    let door = door(HttpConfig::default());
    let body = r#"{"stmt": "who"}"#;
    let answer = door.connect().post("/_sql", "Origin: http://evil.example\r\n", body);
    assert_eq!((answer.error().0, answer.error().1), (403, 4030));
    // The origin of the console's own requests is accepted.
    let mut client = door.connect();
    let host = door.address;
    let length = body.len();
    client.send(&format!(
        "POST /_sql HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    assert_eq!(client.answer().status, 200);
}

#[test]
fn strangers_are_refused() {
    let users = vec![HttpUser { name: "bob".to_owned(), password: "b".to_owned() }];
    let door = door(HttpConfig { users, ..HttpConfig::default() });
    let body = r#"{"stmt": "who"}"#;
    let answer = door.connect().post("/_sql", "", body);
    assert_eq!((answer.error().0, answer.error().1), (401, 4010));
    assert!(answer.head.contains("www-authenticate: Basic"), "{answer:?}");
    for path in ["/", "/metrics", "/_filbert/status"] {
        assert_eq!(door.connect().get(path, "").status, 401, "{path}");
    }
    assert_eq!(door.connect().get("/_health", "").status, 200);
    let answer = door.connect().post("/_sql", "Authorization: Basic Ym9iOmI=\r\n", body);
    assert_eq!(answer.json()["rows"][0][0], "bob None ");
    assert_eq!(door.connect().post("/_sql", "Authorization: Basic Ym9iOmE=\r\n", body).status, 401);
}

#[test]
fn a_body_that_is_announced_too_long_is_refused_before_it_comes() {
    let door = door(HttpConfig { body_bytes_max: 1000, ..HttpConfig::default() });
    let mut client = door.connect();
    client.send("POST /_sql HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n\r\n");
    let answer = client.answer();
    assert_eq!(answer.error().0, 413);
    assert!(answer.head.contains("connection: close"));
    // A client that sends the body nevertheless can read the response. It is not disconnected
    // before.
    let mut client = door.connect();
    client.send(&format!("POST /_sql HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\n{}", "x".repeat(9_000_000)));
    assert_eq!(client.answer().error().0, 413);
    assert!(client.is_closed());
    assert_eq!(door.monitor.statistics().body_bytes, 0);
}

#[test]
fn a_body_that_turns_out_too_long_is_refused() {
    let door = door(HttpConfig { body_bytes_max: 1000, ..HttpConfig::default() });
    let mut client = door.connect();
    client.send("POST /_sql HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send(&format!("3e9\r\n{}\r\n0\r\n\r\n", " ".repeat(1001)));
    assert_eq!(client.answer().error().0, 413);
    // A small body may decompress to a large one.
    let answer = door.connect().post_bytes("Content-Encoding: gzip\r\n", &bytes(&SPACES.concat()));
    assert_eq!(answer.error().0, 413);
}

/// 100,000 spaces, compressed by gzip.
const SPACES: &[&str] = &[
    "1f8b0800000000000203edc13101000000c2a02aeb9fd21a1e40010000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000af062df079caa0860100",
];

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Compresses bytes by gzip.
fn packed(parts: &[(&[u8], usize)]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    for (part, times) in parts {
        let block = part.repeat(1_000);
        for _ in 0..times / 1_000 {
            std::io::Write::write_all(&mut packer, &block).unwrap();
        }
        std::io::Write::write_all(&mut packer, &part.repeat(times % 1_000)).unwrap();
    }
    packer.finish().unwrap()
}

/// The limit of a member's buffers in the tests below.
const BUFFERS_BYTES: usize = 32 << 20;

/// Checks that all buffers are released and that requests are served.
fn is_well(door: &crate::common::Running) {
    eventually("all room is given back", || door.grid.budget().used() == 0);
    assert_eq!(door.sql(r#"{"stmt": "who"}"#).status, 200);
}

#[test]
fn memory_is_reserved_before_a_body_is_unpacked_and_parsed() {
    let door = crate::common::door_with(HttpConfig::default(), BUFFERS_BYTES);
    let gzip = "Content-Encoding: gzip\r\n";
    // 39 KB decompress to 40 MB with 20 million values: as arguments, as items of one list, which
    // is one value, and as rows of a statement.
    let values = (b"1," as &[u8], 20_000_000);
    let bodies = [
        packed(&[(br#"{"stmt": "select echo", "args": ["#, 1), values, (b"1]}", 1)]),
        packed(&[(br#"{"stmt": "select echo", "args": [["#, 1), values, (b"1]]}", 1)]),
        packed(&[(br#"{"stmt": "update $1", "bulk_args": ["#, 1), (b"[1],", 10_000_000), (b"[1]]}", 1)]),
        packed(&[(br#"{"stmt": "insert", "bulk_args": ["#, 1), (b"[],", 10_000_000), (b"[]]}", 1)]),
    ];
    for body in &bodies {
        assert!(body.len() < 130_000, "{}", body.len());
        let answer = door.connect().post_bytes(gzip, body);
        assert_eq!(answer.error().0, 429, "{answer:?}");
        assert!(answer.error().2.contains("see b"), "{answer:?}");
    }
    // A body that fits is refused if it has too many values, or if there is not enough memory for
    // its values.
    let few = packed(&[(br#"{"stmt": "select echo", "args": ["#, 1), (b"1,", 1_000_000), (b"1]}", 1)]);
    let answer = door.connect().post_bytes(gzip, &few);
    assert_eq!(answer.error().0, 400);
    assert!(answer.error().2.contains("more than 65535 values"), "{answer:?}");
    let nested = format!("{{\"stmt\": \"select echo\", \"args\": [[{}1]]}}", "1,".repeat(5_000_000));
    assert_eq!(door.sql(&nested).error().0, 429);
    is_well(&door);
}

#[test]
fn many_packed_bodies_at_once_stay_within_the_memory() {
    let door = crate::common::door_with(HttpConfig::default(), BUFFERS_BYTES);
    let body = packed(&[(br#"{"stmt": "select echo", "args": [""#, 1), (b" ", 20_000_000), (b"\"]}", 1)]);
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let post = || door.connect().post_bytes("Content-Encoding: gzip\r\n", &body).status;
        let posts: Vec<_> = (0..8).map(|_| scope.spawn(post)).collect();
        let most = std::iter::repeat_with(|| door.grid.budget().used()).take(10_000).max().unwrap();
        assert!(most <= BUFFERS_BYTES);
        posts.into_iter().map(|post| post.join().unwrap()).collect()
    });
    assert!(statuses.iter().all(|status| matches!(status, 200 | 429)), "{statuses:?}");
    assert_eq!(door.connect().post_bytes("Content-Encoding: gzip\r\n", &body).status, 200, "one alone fits");
    is_well(&door);
}

#[test]
fn a_body_that_comes_bit_by_bit_is_given_up() {
    let config =
        HttpConfig { body_timeout: Duration::from_millis(300), body_rate_min: 1 << 20, ..HttpConfig::default() };
    let door = door(config);
    let mut client = door.connect();
    client.send("POST /_sql HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
    client.stream.set_nodelay(true).unwrap();
    let mut reader = client.stream.try_clone().unwrap();
    let status = std::thread::spawn(move || {
        let mut bytes = [0; 12];
        std::io::Read::read_exact(&mut reader, &mut bytes).map(|()| bytes)
    });
    // Each byte arrives in time, and all bytes together are far too slow.
    while !status.is_finished() {
        client.send(" ");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(&status.join().unwrap().unwrap(), b"HTTP/1.1 408");
}

#[test]
fn a_connection_without_a_request_is_closed() {
    let config = HttpConfig { head_timeout: Duration::from_millis(200), ..HttpConfig::default() };
    let door = door(config);
    let (mut silent, mut half, mut asking) = (door.connect(), door.connect(), door.connect());
    assert_eq!(asking.get("/_health", "").status, 200);
    half.send("GET / HTTP/1.1\r\nHost: ");
    assert!(silent.is_closed());
    assert!(half.is_closed());
    assert_eq!(asking.get("/_health", "").status, 200, "one that has asked may be idle");
}

#[test]
fn names_that_strangers_may_own_are_refused() {
    let door = door(HttpConfig { hosts: vec!["filbert.example.com".to_owned()], ..HttpConfig::default() });
    let ask = |request: &str| {
        let mut client = door.connect();
        client.send(request);
        client.answer().status
    };
    for path in ["/", "/metrics", "/_filbert/cluster", "/_filbert/status", "/_filbert/map?name=m"] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: evil.example:4200\r\nAccept: text/html\r\n\r\n");
        assert_eq!(ask(&request), 403, "{path}");
    }
    let body = r#"{"stmt": "who"}"#;
    let post = |host: &str, headers: &str| {
        ask(&format!("POST /_sql HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()))
    };
    assert_eq!(post("evil.example:4200", "Content-Type: text/plain\r\n"), 403);
    assert_eq!(
        post("evil.example:4200", "Origin: http://evil.example:4200\r\nContent-Type: application/json\r\n"),
        403
    );
    assert_eq!(post("evil.example:4200", "Content-Type: application/json\r\n"), 200, "a tool");
    assert_eq!(post("filbert.example.com:4200", "Origin: http://filbert.example.com:4200\r\n"), 200);
    assert_eq!(post("127.0.0.1:4200", ""), 200);
    assert_eq!(ask("GET /metrics HTTP/1.1\r\nHost: filbert.example.com:4200\r\n\r\n"), 200);
}

#[test]
fn wrong_passwords_are_slowed() {
    let users = vec![HttpUser { name: "ann".into(), password: "a".into() }];
    let guesses = filbert_listen::GuessLimits { free: 3, pause: Duration::from_secs(3_600), ..Default::default() };
    let door = door(HttpConfig { users, guesses, ..HttpConfig::default() });
    let ask = |credentials: &str| {
        let headers = format!("Authorization: Basic {credentials}\r\n");
        door.connect().post("/_sql", &headers, r#"{"stmt": "who"}"#).status
    };
    for _ in 0..20 {
        assert_eq!(ask("YW5uOmE="), 200, "ann:a, as often as she likes");
    }
    assert_eq!([(); 5].map(|()| ask("YW5uOmI=")), [401, 401, 401, 429, 429], "ann:b");
    assert_eq!(ask("YW5uOmE="), 429, "nor is the right one looked at, by which a guess would be told");
    assert_eq!(ask("Ym9iOmI="), 401, "somebody else");
}

#[test]
fn all_bodies_together_have_a_limit() {
    // Short bodies are not counted.
    let door = door(HttpConfig { bodies_bytes_max: 60_000, ..HttpConfig::default() });
    let mut first = door.connect();
    first.send(&format!("POST /_sql HTTP/1.1\r\nHost: x\r\nContent-Length: 30000\r\n\r\n{}", " ".repeat(29_000)));
    eventually("the first body is there", || door.monitor.statistics().body_bytes >= 29_000);
    let mut second = door.connect();
    second.send(&format!("POST /_sql HTTP/1.1\r\nHost: x\r\nContent-Length: 40000\r\n\r\n{}", " ".repeat(40_000)));
    assert_eq!(second.answer().error().0, 429);
    drop(first);
    eventually("the first body is gone", || door.monitor.statistics().body_bytes == 0);
    assert_eq!(door.sql(r#"{"stmt": "who"}"#).status, 200);
}

#[test]
fn bodies_that_do_not_come_hold_nobody() {
    let door = door(HttpConfig { body_timeout: Duration::from_millis(100), ..HttpConfig::default() });
    let mut client = door.connect();
    client.send("POST /_sql HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"stmt\": ");
    assert_eq!(client.answer().error().0, 408);
    // A client that disconnects in the middle of a body.
    let mut client = door.connect();
    client.send("POST /_sql HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"stmt\": ");
    drop(client);
    eventually("all connections are gone", || door.monitor.statistics().connections == 0);
    assert_eq!(door.monitor.statistics().body_bytes, 0);
}

#[test]
fn bodies_packed_by_gzip_are_unpacked_and_others_refused() {
    let door = door(HttpConfig::default());
    // {"stmt": "who"}, compressed by Python's gzip.
    let packed = "1f8b0800000000000203ab562a2ec92d51b252502acfc857aa050062cbdf250f000000";
    let answer = door.connect().post_bytes("Content-Encoding: gzip\r\n", &bytes(packed));
    assert_eq!(answer.json()["rows"][0][0], "crate None ");
    let answer = door.connect().post("/_sql", "Content-Encoding: br\r\n", "x");
    assert_eq!(answer.error().0, 415);
}

#[test]
fn bytes_other_than_http_are_refused() {
    let door = door(HttpConfig::default());
    for bytes in ["\r\n\r\n\r\n", "CP2\u{1}\u{2}\u{3}\r\n\r\n", "GET\r\n\r\n", "POST /_sql HTTP/9.9\r\n\r\n"] {
        let mut client = door.connect();
        client.send(bytes);
        let _ = client.stream.shutdown(std::net::Shutdown::Write);
        let mut rest = Vec::new();
        let _ = std::io::Read::read_to_end(&mut client.stream, &mut rest);
        assert!(rest.is_empty() || rest.starts_with(b"HTTP/1.1 4"), "{}", String::from_utf8_lossy(&rest));
    }
    let mut client = door.connect();
    client.send(&format!("GET / HTTP/1.1\r\nHost: x\r\nLong: {}\r\n\r\n", "x".repeat(100_000)));
    let status = client.answer().status;
    assert_eq!(status, 431);
    assert_eq!(door.connect().get("/_health", "").status, 200);
}

#[test]
fn idle_connections_are_closed() {
    let door = door(HttpConfig { idle_timeout: Duration::from_secs(1), ..HttpConfig::default() });
    let mut silent = door.connect();
    let mut slow = door.connect();
    slow.send("GET / HT");
    let mut used = door.connect();
    assert_eq!(used.get("/_health", "").status, 200);
    assert!(used.is_closed());
    let _ = silent.is_closed();
    let _ = slow.is_closed();
    eventually("all connections are gone", || door.monitor.statistics().connections == 0);
}

#[test]
fn a_client_that_does_not_read_is_cut_off() {
    let door = door(HttpConfig { write_timeout: Duration::from_millis(200), ..HttpConfig::default() });
    let mut client = door.connect();
    client.send_sql(r#"{"stmt": "select later 100000000"}"#);
    eventually("the cursor is dropped", || door.engine.cursors_dropped() == 1);
    eventually("the connection is gone", || door.monitor.statistics().connections == 0);
}

#[test]
fn there_is_a_limit_of_connections() {
    let door = door(HttpConfig { connections_max: 2, ..HttpConfig::default() });
    let (mut first, mut second) = (door.connect(), door.connect());
    assert_eq!((first.get("/_health", "").status, second.get("/_health", "").status), (200, 200));
    assert!(door.connect().is_closed());
    assert_eq!(door.monitor.statistics().refused, 1);
    drop(first);
    eventually("there is room again", || door.monitor.statistics().connections == 1);
    assert_eq!(door.connect().get("/_health", "").status, 200);
}

#[test]
fn thousands_of_connections_are_served() {
    // The client and the server side of a connection are both files of this process.
    filbert_listen::allow_as_many_files_as_possible().unwrap();
    let door = door(HttpConfig::default());
    let mut clients: Vec<_> = (0..5000).map(|_| door.connect()).collect();
    for client in &mut clients {
        client.send_sql(r#"{"stmt": "who"}"#);
    }
    for client in &mut clients {
        assert_eq!(client.answer().status, 200);
    }
    assert_eq!(door.monitor.statistics().connections, 5000);
    drop(clients);
    eventually("all connections are gone", || door.monitor.statistics().connections == 0);
}

#[test]
fn at_the_end_requests_are_answered_and_connections_closed() {
    let mut door = door(HttpConfig::default());
    let mut idle = door.connect();
    assert_eq!(idle.get("/_health", "").status, 200);
    let mut busy = door.connect();
    busy.send_sql(r#"{"stmt": "select later 300000"}"#);
    eventually("rows are on their way", || door.engine.pages() > 1);
    door.begin_stop();
    assert!(idle.is_closed());
    assert_eq!(busy.answer().json()["rowcount"], 300_000);
    door.wait();
}

#[test]
fn a_request_that_does_not_end_is_cut_off_at_the_end() {
    let mut door = door(HttpConfig { close_timeout: Duration::from_millis(200), ..HttpConfig::default() });
    let mut client = door.connect();
    client.send_sql(r#"{"stmt": "select hang"}"#);
    eventually("the request has come", || door.monitor.statistics().requests == 1);
    door.begin_stop();
    door.wait();
    assert_eq!(door.engine.cancelled(), 1);
    assert!(client.is_closed());
}
