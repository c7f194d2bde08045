//! Objects that a connection keeps for its client draw from the member's budget. They are refused
//! if there is not enough memory, and release it when they are closed.

use std::{thread, time::Duration};

use crate::common::{Raw, Server, error_field, eventually};

/// The body of a `Parse` message with `oids` types of parameters.
fn parse(name: &str, text: &str, oids: usize) -> Vec<u8> {
    let count = u16::try_from(oids).unwrap().to_be_bytes();
    [format!("{name}\0{text}\0").as_bytes(), &count, &23_u32.to_be_bytes().repeat(oids)].concat()
}

/// The body of a `Bind` message with one value as text.
fn bind(portal: &str, statement: &str, value: &[u8]) -> Vec<u8> {
    let length = u32::try_from(value.len()).unwrap().to_be_bytes();
    [format!("{portal}\0{statement}\0").as_bytes(), &[0, 0, 0, 1], &length, value, &[0, 0]].concat()
}

/// The body of a `Parse` message with one parameter that is an array of numbers.
fn parse_array() -> Vec<u8> {
    [b"\0select echo $1\0\0\x01", &1007_u32.to_be_bytes()[..]].concat()
}

fn sync(raw: &mut Raw) -> String {
    raw.send('S', "");
    raw.until_ready()
}

const LONG: usize = 100_000;

/// Waits until nothing is reserved. The engine may release a statement after its reply.
fn until_released(server: &Server) {
    while server.budget.used() > 0 {
        std::thread::yield_now();
    }
}

#[test]
fn a_prepared_statement_reserves_memory_until_it_is_closed() {
    let server = Server::start();
    let mut raw = Raw::session(&server);
    raw.send('P', parse("s", &format!("select echo {}", "x".repeat(LONG)), 0));
    assert_eq!(sync(&mut raw), "1 Z(I)");
    let text_bytes = server.budget.used();
    assert!((LONG..2 * LONG).contains(&text_bytes), "{text_bytes}");
    // A short text with types that take more than a megabyte.
    raw.send('P', parse("t", "insert 1", 65_535));
    assert_eq!(sync(&mut raw), "1 Z(I)");
    assert!(server.budget.used() > 1_000_000, "{}", server.budget.used());
    raw.send('C', "St\0");
    assert_eq!(sync(&mut raw), "3 Z(I)");
    // The rest of the connection's first 16 KiB is not counted.
    assert_eq!(server.budget.used(), text_bytes);
    for ends in ["DEALLOCATE s", "DEALLOCATE ALL", "DISCARD ALL"] {
        raw.query(ends);
        assert!(raw.until_ready().ends_with(" Z(I)"));
        until_released(&server);
        raw.query(&format!("PREPARE s AS select echo {}", "x".repeat(LONG)));
        assert_eq!(raw.until_ready(), "C(PREPARE) Z(I)");
        assert!(server.budget.used() > LONG);
    }
    drop(raw);
    eventually("the end of the connection gives its room back", || server.budget.used() == 0);
}

#[test]
fn a_portal_keeps_the_reservation_of_its_closed_statement() {
    let server = Server::start();
    let mut raw = Raw::session(&server);
    raw.query("begin");
    assert_eq!(raw.until_ready(), "C(BEGIN) Z(T)");
    for portal in ["p", "q"] {
        raw.send('P', parse("s", &format!("select echo {} $1", "x".repeat(LONG)), 0));
        raw.send('B', bind(portal, "s", &b"v".repeat(LONG)));
        raw.send('C', "Ss\0");
    }
    assert_eq!(sync(&mut raw), "1 2 3 1 2 3 Z(T)");
    assert!(server.budget.used() > 4 * LONG, "{}", server.budget.used());
    raw.send('C', "Pp\0");
    assert_eq!(sync(&mut raw), "3 Z(T)");
    assert!((2 * LONG..3 * LONG).contains(&server.budget.used()), "{}", server.budget.used());
    raw.query("commit");
    assert_eq!(raw.until_ready(), "C(COMMIT) Z(I)");
    until_released(&server);
}

#[test]
fn a_cursor_reserves_memory_until_it_is_closed() {
    let server = Server::start();
    let mut raw = Raw::session(&server);
    let declare = |query: &str| format!("DECLARE c CURSOR WITH HOLD FOR {query} {}", "x".repeat(LONG));
    // The engine reports an error, so that nothing is kept.
    raw.query(&declare("select"));
    assert_eq!(raw.until_ready(), "E42601 Z(I)");
    until_released(&server);
    for ends in ["CLOSE c", "CLOSE ALL", "DISCARD ALL"] {
        raw.query(&declare("select echo"));
        assert_eq!(raw.until_ready(), "C(DECLARE CURSOR) Z(I)");
        assert!(server.budget.used() > LONG);
        raw.query(ends);
        assert!(raw.until_ready().ends_with(" Z(I)"));
        until_released(&server);
    }
}

#[test]
fn a_client_whose_message_finds_no_memory_can_send_it_whole_and_is_told() {
    let server = Server::with_buffers(1 << 20);
    let mut raw = Raw::session(&server);
    // The rest of the message is dropped without memory. Otherwise the connection is reset, and the
    // client learns no reason.
    let bytes = 32_u32 << 20;
    let message = [&b"Q"[..], &bytes.to_be_bytes(), &b" ".repeat(bytes as usize - 4)].concat();
    raw.try_bytes(&message).unwrap();
    assert_eq!(raw.until_ready(), "E53200 -");
    eventually("the end of the connection gives its room back", || server.budget.used() == 0);
}

#[test]
fn objects_beyond_the_memory_are_refused_and_the_session_continues() {
    let server = Server::with_buffers(4 << 20);
    let mut raw = Raw::session(&server);
    let mut kept = 0;
    let refused = loop {
        raw.send('P', parse(&format!("s{kept}"), &format!("select echo {}", "x".repeat(LONG)), 0));
        raw.send('S', "");
        let (tag, body) = raw.read();
        raw.until_ready();
        if tag == 'E' {
            break body;
        }
        kept += 1;
        assert!(kept < 50, "5 MB are kept in 4 MiB");
    };
    assert!(kept > 30, "{kept} of 100 KB each");
    assert_eq!(error_field(&refused, 'C'), "53200");
    assert!(error_field(&refused, 'H').starts_with("Close prepared statements"), "{refused:?}");
    // A request with many types, on another connection.
    let mut other = Raw::session(&server);
    other.send('P', parse("", "insert 1", 15_000));
    assert_eq!(sync(&mut other), "E53200 Z(I)");
    for raw in [&mut raw, &mut other] {
        raw.query("insert 7");
        assert_eq!(raw.until_ready(), "C(INSERT 0 7) Z(I)");
    }
    drop(raw);
    eventually("its statements go with the connection", || server.budget.used() == 0);
    other.send('P', parse("", "insert 1", 40_000));
    assert_eq!(sync(&mut other), "1 Z(I)");
}

#[test]
fn an_array_that_becomes_too_much_is_refused_before_it_is_read() {
    let server = Server::with_buffers(4 << 20);
    let mut raw = Raw::session(&server);
    // 200 KB of text become 100,000 numbers, which take several megabytes.
    let array = |items: usize| format!("{{{}1}}", "1,".repeat(items - 1)).into_bytes();
    for (items, expected) in [(100_000, "1 E53200 Z(I)"), (10_000, "1 2 D C(SELECT 1) Z(I)")] {
        raw.send('P', parse_array());
        raw.send('B', bind("", "", &array(items)));
        raw.send('E', "\0\0\0\0\0");
        assert_eq!(sync(&mut raw), expected, "{items}");
    }
    // The same limit applies to COPY.
    for (items, expected) in [(100_000, "E53200 Z(I)"), (10_000, "C(COPY 1) Z(I)")] {
        raw.query("copy arrays from stdin");
        assert_eq!(raw.read().0, 'G');
        raw.send('d', [b"7\t", &array(items)[..], b"\n"].concat());
        raw.send('c', "");
        assert_eq!(raw.until_ready(), expected, "{items}");
    }
    drop(raw);
    eventually("everything is given back", || server.budget.used() == 0);
}

#[test]
fn a_long_message_of_rows_is_not_copied() {
    let server = Server::with_buffers(6 << 20);
    let mut raw = Raw::session(&server);
    let rows: String = (0..30_000).map(|row| format!("{row}\t{}\n", "x".repeat(90))).collect();
    assert!(rows.len() > 2_500_000);
    raw.query("copy t from stdin");
    assert_eq!(raw.read().0, 'G');
    // With a short message before and after the long one. The order of both kinds must be kept.
    for part in ["-7\tfirst\n", &rows, "-9\tlast\n"] {
        raw.send('d', part);
    }
    raw.send('c', "");
    assert_eq!(raw.until_ready(), "C(COPY 30002) Z(I)");
    let copied = server.engine.take_written();
    let ids: Vec<String> = copied.iter().map(|row| row[0].to_string()).collect();
    assert_eq!((ids[0].as_str(), ids[1].as_str(), ids[30_001].as_str()), ("-7", "0", "-9"));
    eventually("everything is given back", || server.budget.used() == 0);
}

#[test]
fn a_long_statement_reserves_memory_while_it_runs() {
    let server = Server::with_buffers(3 << 20);
    let mut raw = Raw::session(&server);
    // The limit covers the message and the engine's copies of the statement.
    raw.query(&format!("set a {}", "x".repeat(1_200_000)));
    assert_eq!(raw.until_ready(), "E53200 Z(I)");
    raw.query(&format!("set a {}", "x".repeat(500_000)));
    assert_eq!(raw.until_ready(), "C(SET) Z(I)");
    raw.query("set a x");
    assert_eq!(raw.until_ready(), "C(SET) Z(I)");
    until_released(&server);
}

/// Reads a result of long rows. Returns the number of rows and the end of the result.
fn count_rows(raw: &mut Raw) -> (usize, String) {
    let mut rows = 0;
    loop {
        match raw.read() {
            ('D', _) => rows += 1,
            ('C', _) => return (rows, raw.until_ready()),
            ('E', body) => return (rows, format!("{} {}", error_field(&body, 'C'), raw.until_ready())),
            (tag, _) => assert_eq!(tag, 'T'),
        }
    }
}

#[test]
fn unread_rows_reserve_memory() {
    let server = Server::with_buffers(64 << 20);
    let mut raw = Raw::session(&server);
    raw.query("select texts 60 of 1000000");
    eventually("the page and what is written of it are counted", || server.budget.used() > 31_000_000);
    assert_eq!(count_rows(&mut raw), (60, "Z(I)".to_owned()));
    eventually("everything is given back", || server.budget.used() == 0);
    assert_eq!(server.engine.cursors(), 0);
}

#[test]
fn unread_rows_are_dropped_without_memory() {
    let server = Server::with_buffers(4 << 20);
    let mut raw = Raw::session(&server);
    raw.query("select texts 60 of 1000000");
    // The one page ends its cursor before the client is found not to read.
    eventually("the rows are given up", || server.budget.refusals() > 0);
    let (rows, end) = count_rows(&mut raw);
    assert!(rows < 60 && end == "53200 Z(I)", "{rows} rows, then {end}");
    raw.query("insert 1");
    assert_eq!(raw.until_ready(), "C(INSERT 0 1) Z(I)");
    until_released(&server);
}

#[test]
fn settings_of_the_first_message_reserve_memory_for_the_session() {
    let server = Server::with_buffers(1 << 20);
    let names: Vec<String> = (0..2_000).map(|number| format!("{number:x}")).collect();
    let settings: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    let settings = [&[("user", "ann")], &settings[..]].concat();
    let mut open = Vec::new();
    loop {
        let mut raw = Raw::open(&server);
        raw.startup(0x0003_0000, &settings);
        match raw.until_ready().as_str() {
            "E53200 -" => break,
            begun => assert!(begun.ends_with("Z(I)"), "{begun}"),
        }
        open.push(raw);
        assert!(open.len() < 10, "a session with 2,000 settings takes some hundred kilobytes");
    }
    assert!(!open.is_empty());
    drop(open);
    eventually("they are given back", || server.budget.used() == 0);
}

#[test]
fn replies_of_a_text_with_many_statements_do_not_wait_for_its_end() {
    let server = Server::start();
    let mut raw = Raw::session(&server);
    raw.query("DECLARE c CURSOR WITH HOLD FOR select types");
    assert_eq!(raw.until_ready(), "C(DECLARE CURSOR) Z(I)");
    // Each statement has fifteen bytes, and its reply describes 22 columns: far more than sockets
    // hold.
    let pages = server.engine.pages();
    raw.query(&format!("{}select now 1", "FETCH 0 FROM c;".repeat(100_000)));
    // The absence of an event can only be observed over time. Without a reader the last statement
    // is not reached, however long this takes.
    thread::sleep(Duration::from_secs(1));
    assert_eq!(server.engine.pages(), pages, "answers are collected");
    assert!(raw.until_ready().ends_with("T D C(SELECT 1) Z(I)"));
}
