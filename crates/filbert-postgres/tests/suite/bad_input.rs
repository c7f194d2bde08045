//! Bytes that violate the protocol, messages in the wrong order, and input beyond the limits.

use std::{thread, time::Duration};

use crate::common::{Raw, Server, error_field, eventually};

#[test]
fn bytes_that_are_not_the_protocol_end_the_connection() {
    let server = Server::start();
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0, 0, 0, 7, 0, 3, 0, 0], &[255; 64], &[0, 0, 0, 9, 0, 3, 0, 0, 1]] {
        let mut raw = Raw::open(&server);
        raw.bytes(bytes);
        let (tag, body) = raw.read();
        assert_eq!((tag, error_field(&body, 'C').as_str()), ('E', "08P01"), "{bytes:?}");
        assert_eq!(raw.read().0, '-');
    }
    for (tag, body) in [
        ('Q', &b"no end"[..]),
        ('P', b"\0\0"),
        ('B', b"\0\0\0\x01"),
        ('D', b"Xx\0"),
        ('?', b""),
        ('S', b"x"),
        ('p', b"x\0"),
    ] {
        let mut raw = Raw::session(&server);
        raw.send(tag, body);
        assert_eq!(raw.until_ready(), "E08P01 -", "{tag}");
    }
    for length in [0, 3, u32::MAX, 1 << 30] {
        let mut raw = Raw::session(&server);
        raw.bytes(&[&b"Q"[..], &length.to_be_bytes()].concat());
        assert_eq!(raw.until_ready(), "E08P01 -", "{length}");
    }
}

#[test]
fn other_versions_are_sent_the_supported_ones() {
    let server = Server::start();
    let mut raw = Raw::open(&server);
    raw.startup(0x0002_0000, &[]);
    assert_eq!(raw.until_ready(), "E0A000 -");
    for (version, option, expected) in [
        (0x0003_0002, "application_name", None),
        (0x0003_270f, "application_name", Some(2)),
        (0x0003_0000, "_pq_.x", Some(0)),
    ] {
        let mut raw = Raw::open(&server);
        raw.startup(version, &[("user", "ann"), (option, "x")]);
        let first = raw.read();
        assert_eq!((first.0 == 'v').then(|| first.1[3]), expected);
        assert!(raw.until_ready().ends_with("K Z(I)"));
    }
    let mut raw = Raw::open(&server);
    raw.startup(0x0003_0000, &[("database", "x")]);
    assert_eq!(raw.until_ready(), "E28000 -");
    let mut raw = Raw::open(&server);
    raw.startup(0x0003_0000, &[("user", "x"), ("client_encoding", "LATIN1")]);
    assert_eq!(raw.until_ready(), "E22023 -");
}

#[test]
fn encryption_that_is_not_there_is_declined() {
    let server = Server::start();
    let mut raw = Raw::open(&server);
    for request in [80_877_103_u32, 80_877_104] {
        raw.bytes(&[8_u32.to_be_bytes(), request.to_be_bytes()].concat());
        let mut answer = [0];
        std::io::Read::read_exact(&mut raw.0, &mut answer).unwrap();
        assert_eq!(answer, *b"N");
    }
    raw.startup(0x0003_0000, &[("user", "ann")]);
    assert!(raw.until_ready().starts_with("R S"));
}

#[test]
fn encryption_is_requested_once() {
    let server = Server::start();
    let ask = |raw: &mut Raw, request: u32| raw.bytes(&[8_u32.to_be_bytes(), request.to_be_bytes()].concat());
    for (requests, version) in [
        (&[80_877_103_u32, 80_877_103][..], "1234.5679"),
        (&[80_877_104, 80_877_104], "1234.5680"),
        (&[80_877_103, 80_877_104, 80_877_103], "1234.5679"),
    ] {
        let mut raw = Raw::open(&server);
        for request in requests {
            ask(&mut raw, *request);
        }
        let mut answers = vec![0; requests.len() - 1];
        std::io::Read::read_exact(&mut raw.0, &mut answers).unwrap();
        assert!(answers.iter().all(|answer| *answer == b'N'), "{answers:?}");
        let (tag, body) = raw.read();
        let found = (tag, error_field(&body, 'S'), error_field(&body, 'C'), error_field(&body, 'M'));
        let message = format!("unsupported frontend protocol {version}: server supports 3.0 to 3.2");
        assert_eq!(found, ('E', "FATAL".to_owned(), "0A000".to_owned(), message));
        assert_eq!(raw.read().0, '-');
    }
}

#[test]
fn an_error_skips_what_comes_until_sync() {
    let server = Server::start();
    let mut raw = Raw::session(&server);
    raw.send('P', b"\0unknown\0\0\0");
    raw.send('B', b"\0\0\0\0\0\0\0\0");
    raw.send('E', b"\0\0\0\0\0");
    raw.query("insert 1");
    raw.send('S', "");
    raw.send('P', b"\0insert 7\0\0\0");
    raw.send('B', b"\0\0\0\0\0\0\0\0");
    raw.send('D', b"P\0");
    raw.send('E', b"\0\0\0\0\0");
    raw.send('C', b"S\0");
    raw.send('S', "");
    assert_eq!(raw.until_ready(), "E42601 Z(I)");
    assert_eq!(raw.until_ready(), "1 2 n C(INSERT 0 7) 3 Z(I)");
}

#[test]
fn what_is_not_there_is_an_error() {
    let server = Server::start();
    let mut raw = Raw::session(&server);
    for (tag, body, sqlstate) in [
        ('B', &b"\0nothing\0\0\0\0\0\0\0"[..], "26000"),
        ('D', b"Snothing\0", "26000"),
        ('D', b"Pnothing\0", "34000"),
        ('E', b"nothing\0\0\0\0\0", "34000"),
        ('P', b"\0insert 1; insert 2\0\0\0", "42601"),
    ] {
        raw.send(tag, body);
        raw.send('S', "");
        assert_eq!(raw.until_ready(), format!("E{sqlstate} Z(I)"), "{tag}");
    }
    raw.send('P', b"s\0insert 1\0\0\0");
    raw.send('B', b"\0s\0\0\0\0\x01\0\0\0\x01x\0\0");
    raw.send('S', "");
    assert_eq!(raw.until_ready(), "1 E08P01 Z(I)");
    raw.send('P', b"s\0insert 1\0\0\0");
    raw.send('S', "");
    assert_eq!(raw.until_ready(), "E42P05 Z(I)");
    // Messages of a COPY that does not run.
    raw.send('d', "x");
    raw.send('c', "");
    raw.query("insert 1");
    assert_eq!(raw.until_ready(), "C(INSERT 0 1) Z(I)");
}

#[test]
fn a_text_that_is_not_utf_8_is_an_error_of_its_statement() {
    let server = Server::start();
    let mut raw = Raw::session(&server);
    raw.send('Q', b"select '\xff'\0");
    assert_eq!(raw.until_ready(), "E22021 Z(I)");
    raw.send('P', b"\0select \xff\0\0\0");
    raw.send('B', b"\0\0\0\0\0\0\0\0");
    raw.send('S', "");
    assert_eq!(raw.until_ready(), "E22021 Z(I)");
}

#[test]
fn malformed_values_of_parameters_are_reported_by_number() {
    let server = Server::start();
    let mut raw = Raw::session(&server);
    for (format, value) in [(0_u8, &b"x"[..]), (1, b"abc"), (0, b"\xff")] {
        raw.send('P', b"\0select echo $1\0\0\x01\0\0\0\x17");
        let length = (value.len() as u32).to_be_bytes();
        raw.send('B', [&[0, 0, 0, 1, 0, format, 0, 1], &length[..], value, &[0, 0]].concat());
        raw.send('S', "");
        assert_eq!(raw.read().0, '1');
        let (tag, body) = raw.read();
        assert_eq!((tag, error_field(&body, 'W').as_str()), ('E', "parameter $1"));
        assert_eq!(raw.until_ready(), "Z(I)");
    }
}

#[test]
fn there_are_limits() {
    let server = Server::with(|config| {
        config.connections_max = 2;
        config.statements_max = 2;
        config.portals_max = 1;
        config.message_bytes_max = 1000;
    });
    let mut first = Raw::session(&server);
    let second = Raw::session(&server);
    let mut third = Raw::open(&server);
    third.startup(0x0003_0000, &[("user", "ann")]);
    assert_eq!(third.until_ready(), "E53300 -");
    drop(second);
    eventually("a place is free", || server.monitor.statistics().connections == 1);
    for name in ["a", "b", "c"] {
        first.send('P', format!("{name}\0insert 1\0\0\0"));
    }
    first.send('S', "");
    assert_eq!(first.until_ready(), "1 1 E54000 Z(I)");
    first.send('B', b"p\0a\0\0\0\0\0\0\0");
    first.send('B', b"q\0a\0\0\0\0\0\0\0");
    first.send('S', "");
    assert_eq!(first.until_ready(), "2 E54000 Z(I)");
    first.query(&"x".repeat(2000));
    assert_eq!(first.until_ready(), "E08P01 -");
}

#[test]
fn requests_of_all_clients_have_a_limit() {
    let server = Server::with(|config| config.requests_bytes_max = 5_000_000);
    let mut clients: Vec<Raw> = (0..3).map(|_| Raw::session(&server)).collect();
    let part = [&b"Q"[..], &2_000_000_u32.to_be_bytes(), &[b' '; 1_200_000]].concat();
    let mut last = clients.pop().unwrap();
    // More than a quarter of each message has arrived, so that memory for its whole length is
    // reserved.
    for (client, held) in clients.iter_mut().zip([2_000_001, 4_000_002]) {
        client.bytes(&part);
        eventually("the request is held", || server.monitor.statistics().request_bytes == held);
    }
    last.bytes(&part);
    assert_eq!(last.until_ready(), "E53200 -");
    drop(last);
    // The other clients keep their memory until their requests are handled. Then it is released.
    for client in &mut clients {
        client.bytes(&[&[b' '; 799_995][..], b"\0"].concat());
        assert_eq!(client.until_ready(), "I Z(I)");
        client.query("insert 1");
        assert_eq!(client.until_ready(), "C(INSERT 0 1) Z(I)");
    }
    assert_eq!(server.monitor.statistics().request_bytes, 0);
}

/// Far more pages than sockets hold, and far fewer than the result has.
const PAGES_MAX: usize = 1_000;

#[test]
fn a_client_that_does_not_read_does_not_fill_the_memory() {
    let server = Server::start();
    let mut raw = Raw::session(&server);
    raw.query("select later 100000000");
    // The sockets hold some megabytes. Further pages are not produced. A constant number of pages
    // can only be observed over time. The limit below must hold however long this takes.
    eventually("no more pages are made", || {
        let pages = server.engine.pages();
        thread::sleep(Duration::from_millis(500));
        pages > 0 && server.engine.pages() == pages
    });
    assert!(server.engine.pages() < PAGES_MAX, "{} pages for nobody", server.engine.pages());
    drop(raw);
    eventually("the query ends", || server.engine.cursors() == 0);
}

#[test]
fn whoever_does_not_authenticate_is_disconnected() {
    let server = Server::with(|config| config.authentication_timeout = Duration::from_millis(50));
    let mut raw = Raw::open(&server);
    raw.bytes(&[0, 0]);
    assert_eq!(raw.read().0, '-');
}

#[test]
fn a_door_that_closes_says_so() {
    let mut server = Server::with(|config| config.close_timeout = Duration::from_millis(300));
    let mut idle = Raw::session(&server);
    let mut busy = Raw::session(&server);
    busy.query("select hang later");
    eventually("the statement runs", || server.engine.hanging() == 1);
    server.begin_stop();
    assert_eq!(idle.until_ready(), "E57P01 -");
    assert_eq!(busy.until_ready(), "E57P01 -", "its statement was cancelled");
}

#[test]
fn a_door_that_closes_lets_transactions_end() {
    let mut server = Server::with(|config| config.close_timeout = Duration::from_secs(60));
    let (mut idle, mut open, mut batch) = (Raw::session(&server), Raw::session(&server), Raw::session(&server));
    open.query("begin");
    assert_eq!(open.until_ready(), "C(BEGIN) Z(T)");
    // A statement that is parsed and will run next.
    batch.send('P', "\0select now 1\0\0\0");
    batch.send('H', "");
    assert_eq!(batch.read().0, '1');
    server.begin_stop();
    assert_eq!(idle.until_ready(), "E57P01 -");
    batch.send('B', "\0\0\0\0\0\0\0\0");
    batch.send('E', "\0\0\0\0\0");
    batch.send('S', "");
    assert_eq!(batch.until_ready(), "2 D C(SELECT 1) Z(I)");
    assert_eq!(batch.until_ready(), "E57P01 -");
    open.query("select now 1");
    assert_eq!(open.until_ready(), "T D C(SELECT 1) Z(T)");
    open.query("commit");
    assert_eq!(open.until_ready(), "C(COMMIT) Z(I)");
    assert_eq!(open.until_ready(), "E57P01 -");
}

#[test]
fn a_transaction_that_does_not_end_is_cut_off() {
    let mut server = Server::with(|config| config.close_timeout = Duration::from_millis(300));
    let mut open = Raw::session(&server);
    open.query("begin");
    assert_eq!(open.until_ready(), "C(BEGIN) Z(T)");
    server.begin_stop();
    assert_eq!(open.until_ready(), "E57P01 -");
}
