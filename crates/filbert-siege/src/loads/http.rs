//! Misuse of HTTP: bodies that decompress without limit, requests that never end, unread replies.

use std::io::Write;
use std::time::Duration;

use anyhow::{Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use tokio::time::{sleep, timeout};

use super::crowd;
use crate::load::Door::Http;
use crate::load::{HOLD, Kind, Load, Table};
use crate::random::Random;
use crate::target::Target;
use crate::wire::http::{Connection, post, statement};

/// The permitted statuses of a rejection: not understood, not allowed, too large, too slow, or no
/// memory.
const REFUSED: &[u16] = &[400, 403, 408, 411, 413, 414, 415, 417, 429, 431, 501, 503, 505];

pub(crate) fn loads() -> Vec<Load> {
    let t = Table(Kind::Http);
    vec![
        t.does("gzip-20000000-args", Http, |target| packed(target, 1, args(20_000_000))).short(),
        t.does("gzip-bomb-1000-to-1", Http, |target| packed(target, 1, spaces(1 << 30))).short(),
        t.does("gzip-bombs-by-8", Http, |target| packed(target, 8, spaces(240 << 20))),
        t.does("gzip-args-by-8", Http, |target| packed(target, 8, args(9_000))),
        t.does("gzip-within-gzip", Http, |target| async move { refused(target, &post("Content-Encoding: gzip, gzip\r\n", &pack(&pack(b"{}")))).await }),
        t.does("gzip-broken", Http, |target| async move { refused(target, &post("Content-Encoding: gzip\r\n", b"\x1f\x8b\x08broken")).await }),
        t.does("bulk-bodies-178mb-by-3", Http, |target| bulk(target, 3, 178 << 20)),
        t.does("bulk-bodies-40mb-by-12", Http, |target| bulk(target, 12, 40 << 20)).fills(),
        t.does("silent-connections-2000", Http, |target| waiting(target, 2_000, b"")).short(),
        t.does("half-heads-2000", Http, |target| waiting(target, 2_000, b"POST /_sql HTTP/1.1\r\nHost: localh")),
        t.does("lengths-announced-2000", Http, |target| waiting(target, 2_000, b"POST /_sql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 250000000\r\n\r\n{")),
        t.does("expect-continue-500", Http, |target| waiting(target, 500, b"POST /_sql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: 250000000\r\n\r\n")),
        t.does("slow-bodies-500", Http, slow_bodies),
        t.does("chunked-without-end", Http, |target| chunked(target, &[b' '; 64 << 10])).short(),
        t.does("chunks-of-a-byte", Http, |target| chunked(target, b" ")),
        t.does("head-of-100mb", Http, head_without_end).short(),
        t.does("headers-100000", Http, |target| async move {
            let headers: String = (0..100_000).map(|number| format!("X-{number}: y\r\n")).collect();
            refused(target, &post(&headers, b"{\"stmt\": \"SELECT 1\"}")).await
        }),
        t.does("url-of-10mb", Http, |target| async move {
            refused(target, format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(10 << 20)).as_bytes()).await
        }),
        t.does("pipelined-100000-unread", Http, |target| pipelined(target, statement("SELECT t FROM crowd WHERE id = 7"), 100_000)),
        t.does("metrics-pipelined-unread", Http, |target| pipelined(target, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec(), 100_000)),
        t.does("console-by-500", Http, console),
        t.does("wrong-host", Http, |target| async move {
            let answer = target.http().await?.ask(b"GET /metrics HTTP/1.1\r\nHost: attacker.example\r\n\r\n").await?;
            ensure!(answer.status == 403, "a strange host is answered with {}", answer.status);
            Ok("403".to_owned())
        })
        .short(),
        t.does("wrong-origin", Http, |target| async move {
            let answer = target.http().await?.ask(&post("Origin: http://attacker.example\r\n", b"{\"stmt\": \"SELECT 1\"}")).await?;
            ensure!(answer.status == 403, "a strange origin is answered with {}", answer.status);
            Ok("403".to_owned())
        }),
        t.does("json-deep-1000000", Http, |target| async move { refused(target, &post("", "[".repeat(1_000_000).as_bytes())).await }).short(),
        t.does("json-deep-args", Http, |target| async move {
            let body = format!("{{\"stmt\": \"SELECT ?\", \"args\": [{}1{}]}}", "[".repeat(500_000), "]".repeat(500_000));
            refused(target, &post("", body.as_bytes())).await
        }),
        t.does("json-deep-objects", Http, |target| async move {
            let body = format!("{{\"stmt\": \"SELECT ?\", \"args\": [{}1{}]}}", "{\"a\":".repeat(500_000), "}".repeat(500_000));
            refused(target, &post("", body.as_bytes())).await
        }),
        t.does("json-of-20mb-key", Http, |target| async move {
            refused(target, &post("", format!("{{\"{}\": 1}}", "k".repeat(20 << 20)).as_bytes())).await
        }),
        t.does("number-of-1000000-digits", Http, |target| async move {
            let body = format!("{{\"stmt\": \"SELECT ?\", \"args\": [{}]}}", "9".repeat(1_000_000));
            told(target, &post("", body.as_bytes())).await
        }),
        t.does("content-types", Http, content_types),
        t.does("two-lengths", Http, |target| async move {
            refused(target, b"POST /_sql HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 900\r\n\r\n{}").await
        }),
        t.does("length-and-chunks", Http, |target| async move {
            let request = b"POST /_sql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n";
            refused(target, request).await
        }),
        t.does("garbage-by-500-over-http", Http, garbage),
        t.does("results-unread-by-50-over-http", Http, |target| unread(target, 50, "SELECT * FROM crowd a, crowd b")),
        t.does("60mb-values-unread-over-http", Http, |target| unread(target, 8, "SELECT repeat('x', 60000000) FROM crowd")),
        t.does("wide-rows-unread-over-http", Http, |target| unread(target, 50, "SELECT repeat(t, 9000) FROM crowd")),
        t.does("endless-closed-by-50", Http, |target| unread(target, 50, "SELECT count(*) FROM crowd a, crowd b")).short(),
        t.does("inserts-endless-closed", Http, |target| async move {
            target.session().await?.done("CREATE TABLE siege_http (id BIGINT PRIMARY KEY, t TEXT)").await?;
            unread(target, 1, "INSERT INTO siege_http SELECT i, repeat('x', 100) FROM generate_series(1, 1000000000000) s(i)").await
        }),
    ]
}

fn pack(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory cannot fail.
    let _ = packer.write_all(bytes);
    packer.finish().unwrap_or_default()
}

/// A statement with this number of arguments.
fn args(count: usize) -> Vec<u8> {
    let mut body = b"{\"stmt\": \"SELECT 1\", \"args\": [1".to_vec();
    body.extend(b",1".repeat(count - 1));
    body.extend(b"]}");
    body
}

/// A statement after this number of blanks. A thousand blanks compress to a few bytes.
fn spaces(count: usize) -> Vec<u8> {
    let mut body = vec![b' '; count];
    body.extend(b"{\"stmt\": \"SELECT 1\"}");
    body
}

/// Sends the compressed body `count` times concurrently. Each request is answered or rejected.
async fn packed(target: Target, count: usize, body: Vec<u8>) -> Result<String> {
    let request = post("Content-Encoding: gzip\r\n", &pack(&body));
    drop(body);
    let told = crowd(count, |_| {
        let request = request.clone();
        async move { told(target, &request).await }
    })
    .await?;
    Ok(summary(told))
}

/// The distinct replies, each with its count.
pub(super) fn summary(mut told: Vec<String>) -> String {
    told.sort();
    let mut words: Vec<(usize, String)> = Vec::new();
    for one in told {
        match words.last_mut() {
            Some((count, word)) if *word == one => *count += 1,
            _ => words.push((1, one)),
        }
    }
    words.iter().map(|(count, word)| format!("{count} x {word}")).collect::<Vec<_>>().join(", ")
}

/// Returns the status of a reply. It must be a success or a permitted rejection.
async fn told(target: Target, request: &[u8]) -> Result<String> {
    match target.http().await?.ask(request).await {
        Ok(answer) => {
            let expected = answer.status == 200 || REFUSED.contains(&answer.status);
            ensure!(expected, "answered with {} {:.200}", answer.status, answer.body);
            Ok(answer.status.to_string())
        }
        // The member rejected the request and closed the connection before the body was sent. The
        // reply is lost.
        Err(_) => Ok("closed".to_owned()),
    }
}

/// Returns the status of a request that must be rejected.
async fn refused(target: Target, request: &[u8]) -> Result<String> {
    let told = told(target, request).await?;
    ensure!(told != "200", "was answered as if nothing were wrong");
    Ok(told)
}

/// Sends bulk inserts concurrently, each with a body of this length.
pub(super) async fn bulk(target: Target, count: usize, bytes: usize) -> Result<String> {
    target.session().await?.done("CREATE TABLE siege_bulk (id BIGINT PRIMARY KEY, t TEXT)").await?;
    let told = crowd(count, |index| async move {
        let mut body = b"{\"stmt\": \"INSERT INTO siege_bulk VALUES (?, ?)\", \"bulk_args\": [".to_vec();
        let mut row = index * 100_000_000;
        while body.len() < bytes {
            body.extend(format!("[{row},\"a row of a bulk insert\"],").bytes());
            row += 1;
        }
        body.extend(format!("[{row},\"the last\"]]}}").bytes());
        told(target, &post("", &body)).await
    })
    .await?;
    Ok(summary(told))
}

/// Connections that send these bytes and nothing more.
async fn waiting(target: Target, count: usize, begin: &'static [u8]) -> Result<String> {
    let open = crowd(count, |_| async move {
        let mut connection = target.http().await?;
        connection.send(begin).await?;
        Ok(connection)
    })
    .await?;
    sleep(HOLD).await;
    Ok(format!("{} wait", open.len()))
}

/// Bodies that arrive one byte at a time.
async fn slow_bodies(target: Target) -> Result<String> {
    let open = crowd(500, |_| async move {
        let mut connection = target.http().await?;
        let head = b"POST /_sql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10000000\r\n\r\n";
        connection.send(head).await?;
        for _ in 0..15 {
            if connection.send(b" ").await.is_err() {
                break;
            }
            sleep(Duration::from_millis(200)).await;
        }
        Ok(connection)
    })
    .await?;
    Ok(format!("{} slow", open.len()))
}

/// Sends chunks until the member rejects the body. The member must do so.
async fn chunked(target: Target, chunk: &[u8]) -> Result<String> {
    const BYTES_MAX: usize = 1 << 30;
    let mut connection = target.http().await?;
    let head = "POST /_sql HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    connection.send(head.as_bytes()).await?;
    let one = [format!("{:x}\r\n", chunk.len()).as_bytes(), chunk, b"\r\n"].concat();
    let many = one.repeat((256_usize << 10).div_ceil(one.len()));
    let (begun, mut sent) = (std::time::Instant::now(), 0);
    let patience = if chunk.len() == 1 { HOLD } else { Duration::from_secs(60) };
    while sent < BYTES_MAX && begun.elapsed() < patience {
        if !matches!(timeout(patience, connection.send(&many)).await, Ok(Ok(()))) {
            break;
        }
        sent += many.len();
    }
    if chunk.len() == 1 {
        return Ok(format!("{} MiB taken", sent >> 20));
    }
    ensure!(sent < BYTES_MAX, "a body of {sent} bytes was taken, 256 MiB are allowed");
    let said = connection.answer().await.map_or_else(|_| "closed".to_owned(), |answer| answer.status.to_string());
    Ok(format!("{said} after {} MiB", sent >> 20))
}

async fn head_without_end(target: Target) -> Result<String> {
    let mut connection = target.http().await?;
    connection.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Long: ").await?;
    let piece = vec![b'x'; 1 << 20];
    let mut sent = 0;
    while sent < 100 && timeout(HOLD, connection.send(&piece)).await.is_ok_and(|result| result.is_ok()) {
        sent += 1;
    }
    ensure!(sent < 100, "a head of 100 MiB was taken");
    Ok(format!("refused after {sent} MiB"))
}

async fn pipelined(target: Target, request: Vec<u8>, count: usize) -> Result<String> {
    let mut connection = target.http().await?;
    let all = timeout(HOLD, connection.send(&request.repeat(count))).await.is_ok();
    sleep(HOLD).await;
    Ok(if all { "all taken" } else { "not all taken" }.to_owned())
}

/// Requests the largest page many times, on connections that do not read.
async fn console(target: Target) -> Result<String> {
    let open = crowd(500, |_| async move {
        let mut connection = target.http().await?;
        let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\n\r\n".repeat(100);
        let _ = timeout(HOLD, connection.send(&request)).await;
        Ok(connection)
    })
    .await?;
    sleep(HOLD).await;
    Ok(format!("{} unread", open.len()))
}

async fn content_types(target: Target) -> Result<String> {
    let mut said = Vec::new();
    for kind in ["text/plain", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded", "a/b; c=\"", "\u{1}"] {
        let head = format!("POST /_sql HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: 20\r\n\r\n");
        said.push(told(target, &[head.as_bytes(), b"{\"stmt\": \"SELECT 1\"}"].concat()).await?);
    }
    Ok(said.join(", "))
}

async fn garbage(target: Target) -> Result<String> {
    crowd(500, |index| async move {
        let bytes = Random::new(target.seed ^ index as u64).bytes(10_000);
        let mut connection = target.http().await?;
        let _ = connection.send(if index % 2 == 0 { b"" } else { b"POST /_sql HTTP/1.1\r\nHost: localhost\r\n" }).await;
        let _ = connection.send(&bytes).await;
        let _ = timeout(HOLD, connection.drain()).await;
        Ok(())
    })
    .await?;
    Ok("500 sent".to_owned())
}

/// Statements with unread rows. Then the connections are closed.
async fn unread(target: Target, count: usize, text: &'static str) -> Result<String> {
    let open: Vec<Connection> = crowd(count, |_| async move {
        let mut connection = target.http().await?;
        connection.send(&statement(text)).await?;
        Ok(connection)
    })
    .await?;
    sleep(HOLD * 2).await;
    Ok(format!("{} unread", open.len()))
}
