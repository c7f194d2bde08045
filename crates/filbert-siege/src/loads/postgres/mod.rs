//! Misuse of PostgreSQL's protocol: incomplete exchanges, unread replies, incomplete messages.

mod kept;
mod multiplied;

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::crowd;
use crate::load::Door::Postgres;
use crate::load::{HOLD, Kind, Load, Table};
use crate::random::Random;
use crate::target::Target;
use crate::wire::postgres::{CancelKey, cancel, query, startup};

pub(crate) fn loads() -> Vec<Load> {
    let t = Table(Kind::Postgres);
    vec![
        t.does("unfinished-messages", Postgres, unfinished_messages),
        t.does("announced-1gb", Postgres, announced_too_long).short(),
        t.does("announced-250mb-by-500", Postgres, announced_by_many),
        t.does("portals-450", Postgres, |target| kept::portals(target, 1, 450)).short(),
        t.does("portals-900-by-20", Postgres, |target| kept::portals(target, 20, 900)),
        t.does("cursors-500", Postgres, kept::cursors),
        t.does("cursors-held", Postgres, |target| kept::cursors_held(target, 1, false)).short(),
        t.does("cursors-held-and-read-by-10", Postgres, |target| kept::cursors_held(target, 10, true)),
        t.does("settings-300mb", Postgres, kept::settings).short(),
        t.does("settings-by-300-sessions", Postgres, kept::settings_by_many),
        t.does("savepoints-100000", Postgres, kept::savepoints),
        t.does("copy-without-end", Postgres, |target| kept::copy(target, b"7\tx\n")),
        t.does("copy-without-newline", Postgres, |target| kept::copy(target, b"xxxxxxxx")).short(),
        t.does("copy-by-8-at-once", Postgres, kept::copy_at_once),
        t.does("copy-to-unread", Postgres, |target| unread(target, 50, "COPY crowd TO STDOUT")),
        t.does("results-unread-by-50", Postgres, |target| {
            unread(target, 50, "SELECT * FROM crowd, generate_series(1, 100)")
        })
        .short(),
        t.does("60mb-values-unread-by-8", Postgres, |target| {
            unread(target, 8, "SELECT repeat('x', 60000000) FROM crowd")
        }),
        t.does("30mb-rows-unread-by-50", Postgres, |target| {
            unread(target, 50, "SELECT repeat(t, 100), repeat(t, 9000) FROM crowd")
        }),
        t.does("10mb-pages-unread-by-120", Postgres, |target| {
            unread(target, 120, "SELECT repeat('x', 1000000 + g::int) FROM generate_series(1, 10) g")
        }),
        t.does("pipeline-100000-unread", Postgres, pipeline_unread).short(),
        t.does("pipeline-of-endless-queries", Postgres, |target| pipeline_of_endless(target, End::Closed)),
        t.does("pipeline-of-endless-queries-reset", Postgres, |target| pipeline_of_endless(target, End::Reset)),
        t.does("idle-connections-2000", Postgres, idle_connections),
        t.does("half-open-startup-2000", Postgres, |target| half_open(target, &[0, 0, 0])),
        t.does("half-open-tls-1000", Postgres, half_open_tls),
        t.does("startup-of-1mb", Postgres, startup_of_1mb),
        t.does("connect-and-go-3000", Postgres, connect_and_go),
        t.does("garbage-by-500", Postgres, garbage).short(),
        t.does("cancel-keys-guessed", Postgres, cancel_keys_guessed).short(),
        t.does("parse-10000-statements", Postgres, kept::parse_many),
        t.does("prepare-20000-in-sql", Postgres, kept::prepare_many),
        t.does("bind-65535-parameters", Postgres, kept::bind_many).short(),
        t.does("bind-of-200mb", Postgres, kept::bind_large),
        t.does("parse-300-with-all-types", Postgres, |target| multiplied::parameter_types(target, 300)).short(),
        t.does("closed-statements-of-portals", Postgres, |target| multiplied::closed_statements(target, false)),
        t.does("statements-of-cursors", Postgres, |target| multiplied::closed_statements(target, true)),
        t.does("arrays-of-20mb-by-4", Postgres, multiplied::arrays).short(),
        t.does("arrays-of-20mb-copied-by-4", Postgres, multiplied::arrays_copied),
        t.does("descriptions-unread", Postgres, multiplied::descriptions).short(),
        t.does("tls-asked-for-again", Postgres, tls_again).short(),
    ]
}

/// Four concurrent messages with a declared size of 250 MiB each. At most 200 MiB of each are sent,
/// which is more than the memory budget. The member reads and discards a rejected message for a
/// while. The memory of the member shows the cost.
async fn unfinished_messages(target: Target) -> Result<String> {
    let piece = vec![b'x'; 1 << 20];
    let sent = crowd(4, |_| {
        let piece = piece.clone();
        async move {
            let mut session = target.session().await?;
            session.send(&[&[b'Q'][..], &(250_i32 << 20).to_be_bytes()].concat()).await?;
            let mut sent = 0;
            // A rejection closes the connection, and the next write fails.
            while sent < 200 && timeout(HOLD, session.send(&piece)).await.is_ok_and(|result| result.is_ok()) {
                sent += 1;
            }
            Ok((session, sent))
        }
    })
    .await?;
    sleep(HOLD).await;
    let total: usize = sent.iter().map(|(_, sent)| sent).sum();
    Ok(format!("{total} MiB sent"))
}

async fn announced_too_long(target: Target) -> Result<String> {
    let mut session = target.session().await?;
    session.send(&[&[b'Q'][..], &(1_i32 << 30).to_be_bytes(), b"SELECT"].concat()).await?;
    let answer = session.answer().await?;
    ensure!(answer.state().is_some_and(|state| ["54000", "53200", "08P01"].contains(&state)), "{answer:?}");
    Ok(answer.to_string())
}

async fn announced_by_many(target: Target) -> Result<String> {
    let open = crowd(500, |_| async move {
        let mut session = target.session().await?;
        session.send(&[&[b'Q'][..], &(250_i32 << 20).to_be_bytes(), b"SELECT"].concat()).await?;
        Ok(session)
    })
    .await?;
    sleep(HOLD).await;
    Ok(format!("{} wait", open.len()))
}

/// Statements with unread rows.
async fn unread(target: Target, sessions: usize, text: &'static str) -> Result<String> {
    let open = crowd(sessions, |_| async move {
        let mut session = target.session().await?;
        session.send(&query(text)).await?;
        Ok(session)
    })
    .await?;
    sleep(HOLD * 2).await;
    Ok(format!("{} unread", open.len()))
}

/// The member stops reading if the client does not read its replies. Then a write blocks.
async fn pipeline_unread(target: Target) -> Result<String> {
    let mut session = target.session().await?;
    let statements = query("SELECT t FROM crowd WHERE id = 7").repeat(100_000);
    let all = timeout(HOLD, session.send(&statements)).await.is_ok();
    sleep(HOLD).await;
    Ok(if all { "all taken" } else { "not all taken" }.to_owned())
}

/// The end of a connection with statements that the member has not read.
#[derive(Clone, Copy)]
enum End {
    /// With as many statements as the buffers of the sockets take: behind more of them, the end
    /// does not arrive.
    Closed,
    /// With more statements than that. A reset arrives in any case.
    Reset,
}

async fn pipeline_of_endless(target: Target, end: End) -> Result<String> {
    let statements = match end {
        End::Closed => 1_500,
        End::Reset => 100_000,
    };
    let open = crowd(20, |_| async move {
        let mut session = target.session().await?;
        // The member reads ahead only a little while a statement runs.
        let endless = query("SELECT count(*) FROM crowd a, crowd b").repeat(statements);
        let all = timeout(HOLD, session.send(&endless)).await.is_ok();
        if let End::Reset = end {
            session.resets()?;
        }
        Ok((session, all))
    })
    .await?;
    let all = open.iter().filter(|(_, all)| *all).count();
    Ok(format!("{} closed, {all} with all statements sent", open.len()))
}

async fn idle_connections(target: Target) -> Result<String> {
    let open = crowd(2_000, |_| async move { target.session().await }).await?;
    sleep(HOLD).await;
    Ok(format!("{} idle", open.len()))
}

async fn half_open(target: Target, begin: &'static [u8]) -> Result<String> {
    let open = crowd(2_000, |_| async move {
        let mut stream = TcpStream::connect(target.postgres).await?;
        stream.write_all(begin).await?;
        Ok(stream)
    })
    .await?;
    sleep(HOLD).await;
    Ok(format!("{} half open", open.len()))
}

/// A TLS request without a TLS handshake.
async fn half_open_tls(target: Target) -> Result<String> {
    let open = crowd(1_000, |index| async move {
        let mut stream = TcpStream::connect(target.postgres).await?;
        stream.write_all(&[0, 0, 0, 8, 4, 0xD2, 0x16, 0x2F]).await?;
        let answer = stream.read_u8().await?;
        ensure!(answer == b'N', "a request for TLS is answered with {answer}");
        // Half of the connections repeat the request, which must have a limit.
        for _ in 0..index % 2 * 1_000 {
            if stream.write_all(&[0, 0, 0, 8, 4, 0xD2, 0x16, 0x2F]).await.is_err() {
                break;
            }
        }
        Ok(stream)
    })
    .await?;
    sleep(HOLD).await;
    Ok(format!("{} half open", open.len()))
}

/// Encryption may be requested once. A client that repeats the request has no session that could be
/// counted.
async fn tls_again(target: Target) -> Result<String> {
    let mut stream = TcpStream::connect(target.postgres).await?;
    for _ in 0..100_000 {
        if stream.write_all(&[0, 0, 0, 8, 4, 0xD2, 0x16, 0x2F]).await.is_err() {
            break;
        }
    }
    let mut answer = Vec::new();
    let _ = timeout(HOLD, stream.read_to_end(&mut answer)).await;
    let refusals = answer.iter().filter(|byte| **byte == b'N').count();
    ensure!(answer.starts_with(b"NE") || answer.is_empty(), "{} bytes of answers, {refusals} times N", answer.len());
    Ok("refused".to_owned())
}

async fn startup_of_1mb(target: Target) -> Result<String> {
    let value = "x".repeat(100);
    let names: Vec<String> = (0..10_000).map(|index| format!("siege.p{index}")).collect();
    let parameters: Vec<(&str, &str)> =
        [("user", "siege")].into_iter().chain(names.iter().map(|name| (name.as_str(), value.as_str()))).collect();
    let bytes = startup(&parameters);
    let open = crowd(50, |_| {
        let bytes = bytes.clone();
        async move {
            let mut stream = TcpStream::connect(target.postgres).await?;
            // The rejection comes while the message is sent, or afterwards.
            let _ = stream.write_all(&bytes).await;
            let mut answer = Vec::new();
            let _ = timeout(HOLD, stream.read_to_end(&mut answer)).await;
            Ok(answer.first().copied())
        }
    })
    .await?;
    let refused = open.iter().filter(|tag| **tag != Some(b'R')).count();
    Ok(format!("{refused} of 50 refused"))
}

async fn connect_and_go(target: Target) -> Result<String> {
    for _ in 0..30 {
        crowd(100, |_| async move {
            let mut stream = TcpStream::connect(target.postgres).await?;
            stream.write_all(&startup(&[("user", "siege")])).await?;
            stream.write_all(&query("SELECT count(*) FROM crowd a, crowd b")).await?;
            Ok(())
        })
        .await?;
    }
    Ok("3,000 gone".to_owned())
}

/// Random bytes, before and after the start of a session.
async fn garbage(target: Target) -> Result<String> {
    crowd(500, |index| async move {
        let mut random = Random::new(target.seed ^ index as u64);
        let bytes = random.bytes(10_000);
        if index % 2 == 0 {
            let mut stream = TcpStream::connect(target.postgres).await?;
            let _ = stream.write_all(&bytes).await;
            let _ = timeout(HOLD, stream.read_to_end(&mut Vec::new())).await;
        } else {
            let mut session = target.session().await?;
            let _ = session.send(&bytes).await;
            while let Ok(Ok(_)) = timeout(HOLD, session.next()).await {}
        }
        Ok(())
    })
    .await?;
    Ok("500 sent".to_owned())
}

/// Guessed cancel keys must not cancel the statement of another session.
async fn cancel_keys_guessed(target: Target) -> Result<String> {
    let mut session = target.session().await?;
    session.send(&query("SELECT count(*) FROM crowd a, crowd b")).await?;
    let own = session.canceller().key;
    for batch in 0..20 {
        crowd(100, |index| async move {
            let mut random = Random::new(target.seed.wrapping_add(batch * 100 + index as u64));
            let secret = random.next() as i32;
            let of_whom = if index % 2 == 0 { own.session } else { random.next() as i32 & i32::MAX };
            cancel(target.postgres, CancelKey { session: of_whom, secret }).await
        })
        .await?;
    }
    if let Ok(answer) = timeout(Duration::from_millis(100), session.answer()).await {
        anyhow::bail!("a statement that others have guessed at ended with {:?}", answer?);
    }
    Ok("2,000 guesses, none right".to_owned())
}
