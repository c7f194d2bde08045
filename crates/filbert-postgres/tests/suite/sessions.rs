//! Sessions of a stock client: statements, parameters, portals, transactions, COPY, cancellation.

use std::pin::pin;

use crate::common::{Raw, Server, eventually, types};
use filbert_data::Value;
use futures_util::{SinkExt, TryStreamExt};
use tokio_postgres::{NoTls, SimpleQueryMessage, error::SqlState, types::Type};

/// The command tags and rows of a simple query, as strings.
async fn simple(client: &tokio_postgres::Client, text: &str) -> Vec<String> {
    let messages = client.simple_query(text).await.unwrap();
    let word = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => {
            (0..row.len()).map(|at| row.get(at).unwrap_or("null")).collect::<Vec<_>>().join("|")
        }
        SimpleQueryMessage::CommandComplete(count) => format!("complete {count}"),
        _ => "rows".to_owned(),
    };
    messages.iter().map(word).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_of_several_statements_runs_one_by_one() {
    let server = Server::start();
    let client = server.connect().await;
    let found = simple(&client, "insert 3; select now 2; /* ; */ select later 1;").await;
    assert_eq!(found, ["complete 3", "rows", "0|row 0", "1|null", "complete 2", "rows", "0|row 0", "complete 1"]);
    assert_eq!(simple(&client, " -- nothing\n").await, ["complete 0"]);
    let error = client.simple_query("insert 1; ünknown; insert 2").await.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!((error.code(), error.hint()), (&SqlState::SYNTAX_ERROR, Some("select now 1")));
    // Character 3 of the second statement.
    assert_eq!(error.position(), Some(&tokio_postgres::error::ErrorPosition::Original(13)));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_type_is_shown_as_text_and_as_binary() {
    let server = Server::start();
    let client = server.connect().await;
    let text = simple(&client, "select types").await;
    let expected: Vec<&str> = types::ALL.iter().map(|(.., text)| *text).collect();
    assert_eq!(text[1], expected.join("|"));
    let row = client.query_one("select types", &[]).await.unwrap();
    let oids: Vec<u32> = row.columns().iter().map(|column| column.type_().oid()).collect();
    assert_eq!(oids, types::ALL.map(|(_, oid, _)| oid));
    assert!(row.get::<_, bool>("boolean"));
    assert_eq!(
        (row.get::<_, i16>("tinyint"), row.get::<_, i32>("integer"), row.get::<_, i64>("bigint")),
        (-8, -32, 64)
    );
    assert_eq!((row.get::<_, f32>("real"), row.get::<_, f64>("double")), (0.1, 1e20));
    assert_eq!(row.get::<_, &str>("varchar"), "ü");
    assert_eq!(row.get::<_, Vec<u8>>("binary"), [0, 255]);
    assert_eq!(row.get::<_, Vec<Option<i32>>>("array"), [Some(1), None, Some(3)]);
    assert_eq!(
        (row.get::<_, u32>("oid"), row.get::<_, &str>("name"), row.get::<_, i8>("char")),
        (1259, "pg_class", 114)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn parameters_come_in_the_types_that_clients_say() {
    let server = Server::start();
    let client = server.connect().await;
    let types = [Type::INT4, Type::FLOAT8, Type::BYTEA, Type::INT8_ARRAY, Type::TEXT, Type::BOOL];
    let statement = client.prepare_typed("select echo $1, $2, $3, $4, $5, $6", &types).await.unwrap();
    assert_eq!(statement.params(), types);
    let array = vec![Some(1_i64), None];
    let row = client
        .query_one(&statement, &[&7_i32, &1.5_f64, &[1_u8, 255].as_slice(), &array, &"ü", &None::<bool>])
        .await
        .unwrap();
    let expected = ["INTEGER 7", "DOUBLE 1.5", "BYTEA \\x01ff", "ARRAY [1, null]", "VARCHAR ü", "null"];
    assert_eq!(row.get::<_, &str>(0), expected.join("|"));
    let repeated = client.query_one("select echo $1", &[&"x"]).await.unwrap();
    assert_eq!(repeated.get::<_, &str>(0), "VARCHAR x");
}

#[tokio::test(flavor = "multi_thread")]
async fn portals_are_read_in_parts() {
    let server = Server::start();
    let mut client = server.connect().await;
    let transaction = client.transaction().await.unwrap();
    for text in ["select now 5000", "select later 5000"] {
        let portal = transaction.bind(text, &[]).await.unwrap();
        for (wanted, found) in [(2000, 2000), (1, 1), (2500, 2500), (0, 499), (10, 0)] {
            let rows = transaction.query_portal(&portal, wanted).await.unwrap();
            assert_eq!(rows.len(), found, "{text}");
        }
    }
    transaction.commit().await.unwrap();
    eventually("cursors end with their transaction", || server.engine.cursors() == 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn cursors_are_read_in_parts() {
    let server = Server::start();
    let client = server.connect().await;
    let error = client.simple_query("DECLARE c CURSOR FOR select now 5").await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::NO_ACTIVE_SQL_TRANSACTION));
    let text = "begin; DECLARE c CURSOR FOR select later 5; FETCH 2 c; MOVE 1 FROM c; FETCH ALL FROM c; FETCH c; CLOSE c; commit";
    let found: Vec<_> = simple(&client, text).await.into_iter().filter(|word| word.contains('|')).collect();
    assert_eq!(found, ["0|row 0", "1|null", "3|null", "4|row 4"]);
    simple(&client, "DECLARE h CURSOR WITH HOLD FOR select now 2").await;
    assert_eq!(simple(&client, "FETCH h").await[1], "0|row 0");
    client.simple_query("CLOSE ALL").await.unwrap();
    assert_eq!(client.simple_query("FETCH h").await.unwrap_err().code(), Some(&SqlState::INVALID_CURSOR_NAME));
}

#[tokio::test(flavor = "multi_thread")]
async fn statements_are_prepared_by_sql() {
    let server = Server::start();
    let client = server.connect().await;
    simple(&client, "PREPARE p AS select now 2").await;
    assert_eq!(simple(&client, "EXECUTE p").await.len(), 4);
    let error = client.simple_query("PREPARE p AS select now 2").await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::DUPLICATE_PSTATEMENT));
    simple(&client, "DEALLOCATE p").await;
    let error = client.simple_query("EXECUTE p").await.unwrap_err();
    assert_eq!(error.code(), Some(&SqlState::INVALID_SQL_STATEMENT_NAME));
    let error = client.simple_query("PREPARE q AS unknown").await.unwrap_err();
    let position = error.as_db_error().unwrap().position().cloned();
    assert_eq!(position, Some(tokio_postgres::error::ErrorPosition::Original(16)));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_fails_the_transaction() {
    let server = Server::start();
    let mut raw = Raw::session(&server);
    raw.query("begin");
    assert_eq!(raw.until_ready(), "C(BEGIN) Z(T)");
    raw.query("unknown");
    assert_eq!(raw.until_ready(), "E42601 Z(E)");
    raw.query("insert 1");
    assert_eq!(raw.until_ready(), "E25P02 Z(E)");
    raw.query("commit");
    assert_eq!(raw.until_ready(), "C(ROLLBACK) Z(I)");
    raw.query("insert 1");
    assert_eq!(raw.until_ready(), "C(INSERT 0 1) Z(I)");
}

#[tokio::test(flavor = "multi_thread")]
async fn notices_are_sent_before_the_end_of_their_statement() {
    let server = Server::start();
    let mut raw = Raw::session(&server);
    raw.query("insert warned 1");
    assert_eq!(raw.until_ready(), "N01000 N00000 C(INSERT 0 1) Z(I)");
    raw.query("set client_min_messages warning");
    assert_eq!(raw.until_ready(), "C(SET) Z(I)");
    raw.query("insert warned 1");
    assert_eq!(raw.until_ready(), "N01000 C(INSERT 0 1) Z(I)");
    raw.query("set client_min_messages error");
    assert_eq!(raw.until_ready(), "C(SET) Z(I)");
    raw.query("insert warned 1");
    assert_eq!(raw.until_ready(), "C(INSERT 0 1) Z(I)");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_fails_after_a_change_warns_that_the_change_remains() {
    let server = Server::start();
    let mut raw = Raw::session(&server);
    raw.query("insert 1; unknown");
    assert_eq!(raw.until_ready(), "C(INSERT 0 1) N01000 E42601 Z(I)");
    raw.query("select now 0; unknown");
    assert!(!raw.until_ready().contains("N0"));
    raw.query("begin; insert 1; commit; unknown");
    assert!(!raw.until_ready().contains("N0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_fail_after_a_change_warn_that_the_change_remains() {
    let server = Server::start();
    let mut raw = Raw::session(&server);
    let mut answer_to = |statements: &[&str]| {
        for statement in statements {
            raw.send('P', format!("\0{statement}\0\0\0"));
            raw.send('B', b"\0\0\0\0\0\0\0\0");
            raw.send('E', b"\0\0\0\0\0");
        }
        raw.send('S', b"");
        raw.until_ready()
    };
    assert_eq!(answer_to(&["insert 1", "unknown", "insert 1"]), "1 2 C(INSERT 0 1) N01000 E42601 Z(I)");
    assert_eq!(answer_to(&["insert 1"]), "1 2 C(INSERT 0 1) Z(I)");
    for statements in [&["select now 0", "unknown"][..], &["begin", "insert 1", "commit", "unknown"]] {
        assert!(!answer_to(statements).contains("N0"), "{statements:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_settings_are_reported() {
    let server = Server::start();
    let mut raw = Raw::open(&server);
    raw.startup(0x0003_0000, &[("user", "ann"), ("application_name", "x"), ("options", "-c timezone=Europe/Berlin")]);
    let mut reported = Vec::new();
    loop {
        match raw.read() {
            ('S', body) => reported.push(String::from_utf8(body).unwrap().trim_end_matches('\0').replace('\0', "=")),
            ('Z', _) => break,
            _ => {}
        }
    }
    for expected in
        ["application_name=x", "TimeZone=Europe/Berlin", "client_encoding=UTF8", "server_version=14.0 (Filbert)"]
    {
        assert!(reported.iter().any(|reported| reported == expected), "{expected}: {reported:?}");
    }
    raw.query("set application_name y");
    assert_eq!(raw.until_ready(), "C(SET) S Z(I)");
    raw.query("set other y");
    assert_eq!(raw.until_ready(), "C(SET) Z(I)");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_is_cancelled() {
    let server = Server::start();
    let client = server.connect().await;
    let token = client.cancel_token();
    for text in ["select hang later", "select later 3000 then hang"] {
        let query = async { client.simple_query(text).await.unwrap_err() };
        let cancel = async {
            while server.engine.hanging() == 0 {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            token.cancel_query(NoTls).await.unwrap();
        };
        let (error, ()) = tokio::join!(query, cancel);
        assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED));
        assert_eq!((server.engine.hanging(), server.engine.cursors()), (0, 0));
    }
    // Without a running statement, nothing happens.
    token.cancel_query(NoTls).await.unwrap();
    assert_eq!(simple(&client, "insert 1").await, ["complete 1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_cancels_what_it_runs() {
    let server = Server::start();
    for text in ["select hang later", "select later 3 then hang"] {
        let mut raw = Raw::session(&server);
        raw.query(text);
        eventually("the statement runs", || server.engine.hanging() == 1);
        drop(raw);
        eventually("the statement ends", || server.engine.hanging() == 0 && server.engine.cursors() == 0);
    }
    eventually("sessions end", || server.monitor.statistics().connections == 0);
    assert_eq!(server.monitor.statistics().connections_total, 2);
}

/// Statements that were sent ahead are in the socket before the end of the connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_behind_many_statements_cancels_what_it_runs() {
    let server = Server::with(|config| config.read_ahead_bytes_max = 4 << 10);
    let mut raw = Raw::session(&server);
    raw.query("select hang later");
    eventually("the statement runs", || server.engine.hanging() == 1);
    for _ in 0..100 {
        raw.query(&format!("select hang later {}", " ".repeat(1_000)));
    }
    drop(raw);
    eventually("the session ends", || server.monitor.statistics().connections == 0);
    assert_eq!(server.engine.hanging(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_copied_in_and_out() {
    let server = Server::start();
    let client = server.connect().await;
    for (format, bytes) in [
        ("text", &b"1\ta\\nb\n2\t\\N\n"[..]),
        ("csv header", b"id,text\r\n1,\"a\nb\"\r\n2,"),
        ("binary", b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\x08\0\0\0\0\0\0\0\x01\0\0\0\x03a\nb\0\x02\0\0\0\x08\0\0\0\0\0\0\0\x02\xff\xff\xff\xff\xff\xff"),
    ] {
        for part in [1, 7, 1000] {
            let mut sink = pin!(client.copy_in(&format!("copy t from stdin {format}")).await.unwrap());
            for part in bytes.chunks(part) {
                sink.send(bytes::Bytes::copy_from_slice(part)).await.unwrap();
            }
            assert_eq!(sink.finish().await.unwrap(), 2);
            let rows = server.engine.take_written();
            let expected = [[Value::Int64(1), Value::text("a\nb")], [Value::Int64(2), Value::Null]];
            assert_eq!(rows, expected.map(Vec::from), "{format}");
        }
    }
    for (format, expected) in [
        ("text", &b"0\trow 0\n1\t\\N\n"[..]),
        ("csv header", b"id,text\n0,row 0\n1,\n"),
        ("binary", b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\x02\0\0\0\x08\0\0\0\0\0\0\0\0\0\0\0\x05row 0\0\x02\0\0\0\x08\0\0\0\0\0\0\0\x01\xff\xff\xff\xff\xff\xff"),
    ] {
        let stream = client.copy_out(&format!("copy 2 to stdout {format}")).await.unwrap();
        let parts: Vec<bytes::Bytes> = stream.try_collect().await.unwrap();
        assert_eq!(parts.concat(), expected, "{format}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_rows_are_reported_and_none_is_written() {
    let server = Server::start();
    for (rows, sqlstate, place) in [
        ("1,a\nx,b\n", "22P02", "COPY, line 2, column id"),
        ("1,a\n-1,b\n", "23505", "COPY, line 2"),
        ("1,a\n2\n", "22P04", "COPY, line 2"),
        ("1,a\n2,b,c\n", "22P04", "COPY, line 2"),
        ("1,\"a\n", "22P04", "COPY, line 1"),
    ] {
        let mut raw = Raw::session(&server);
        raw.query("copy t from stdin csv");
        assert_eq!(raw.read().0, 'G');
        raw.send('d', rows);
        raw.send('c', "");
        let (tag, body) = raw.read();
        assert_eq!((tag, crate::common::error_field(&body, 'C').as_str()), ('E', sqlstate), "{rows}");
        assert_eq!(crate::common::error_field(&body, 'W'), place, "{rows}");
        raw.query("insert 1");
        assert_eq!(raw.until_ready(), "Z(I)");
        assert_eq!(raw.until_ready(), "C(INSERT 0 1) Z(I)");
    }
    let many: String = (0..200_000).map(|row| format!("{row},text {row}\n")).collect();
    let mut raw = Raw::session(&server);
    raw.query("copy t from stdin csv");
    raw.send('d', &many);
    drop(raw);
    let mut raw = Raw::session(&server);
    raw.query("copy t from stdin csv");
    raw.send('d', &many);
    raw.send('f', "no more\0");
    assert_eq!(raw.until_ready(), "G E57014 Z(I)");
    raw.query("copy t from stdin csv");
    raw.send('d', &many);
    raw.send('c', "");
    assert_eq!(raw.until_ready(), "G C(COPY 200000) Z(I)");
    assert_eq!(server.engine.take_written().len(), 200_000);
}
