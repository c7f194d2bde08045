//! Many concurrent statements or sessions. Each of them is harmless.

mod guesses;

use std::pin::pin;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::time::{sleep, timeout};

use super::crowd;
use crate::load::Door::{Hazelcast, Http, Postgres};
use crate::load::{HOLD, Kind, Load, Table};
use crate::target::Target;
use crate::wire::http::statement;
use crate::wire::postgres::{bind, execute, parse, query, sync};

pub(crate) fn loads() -> Vec<Load> {
    let t = Table(Kind::Sessions);
    vec![
        t.does("literals-of-1mb-by-300", Postgres, |target| literals(target, 300, 1 << 20)),
        t.does("literals-of-100kb-by-3000", Postgres, |target| literals(target, 3_000, 100 << 10)),
        t.does("plans-of-500-wide-statements", Postgres, wide_statements),
        t.does("prepared-large-by-300", Postgres, prepared),
        t.does("long-statements-100-closed", Postgres, |target| at_once(target, 100, CROSS)),
        t.does("sorts-50-closed", Postgres, |target| at_once(target, 50, "SELECT i FROM generate_series(1, 1000000000) s(i) ORDER BY i DESC")),
        t.does("joins-50-closed", Postgres, |target| at_once(target, 50, "SELECT count(*) FROM generate_series(1, 10000000) l(i) JOIN generate_series(1, 10000000) r(i) ON l.i = r.i")),
        t.does("likes-100-closed", Postgres, |target| at_once(target, 100, "SELECT repeat('a', 1000000) LIKE repeat('%a', 3000) || 'b'")),
        t.does("functions-100-closed", Postgres, |target| at_once(target, 100, "SELECT max(reverse(repeat(t, 300))) FROM crowd, generate_series(1, 1000)")),
        t.does("planning-50-closed", Postgres, planning_closed),
        t.does("long-statements-100-cancelled", Postgres, cancelled).short(),
        t.does("sessions-300-of-short-statements", Postgres, busy_sessions).short(),
        t.does("sessions-1000-over-http", Http, http_sessions),
        t.does("tables-9900-empty", Postgres, empty_tables),
        t.does("tables-made-and-dropped", Postgres, tables_come_and_go),
        t.does("updates-of-one-row-by-100", Postgres, one_row),
        t.does("kill-all-in-a-loop", Postgres, kill_all),
        t.does("passwords-guessed", Hazelcast, guesses::passwords).short(),
    ]
}

const CROSS: &str = "SELECT count(*) FROM crowd a, crowd b";

/// Statements with different large literals, which a plan cache would keep.
async fn literals(target: Target, count: usize, bytes: usize) -> Result<String> {
    let mut session = target.session().await?;
    for number in 0..count {
        let literal = format!("{number}{}", "x".repeat(bytes));
        session.done(&format!("SELECT length('{literal}'), count(*) FROM known WHERE id = {}", number % 1_000)).await?;
    }
    Ok(format!("{count} answered"))
}

/// Two thousand different plans with a thousand expressions each.
async fn wide_statements(target: Target) -> Result<String> {
    crowd(8, |session| async move {
        let mut connection = target.session().await?;
        for number in 0..62 {
            let columns: String =
                (0..1_000).map(|column| format!(", n + id AS c{session}_{number}_{column}")).collect();
            connection.done(&format!("SELECT id{columns} FROM known WHERE id = 7")).await?;
        }
        Ok(())
    })
    .await?;
    Ok("496 answered".to_owned())
}

async fn prepared(target: Target) -> Result<String> {
    let open = crowd(300, |index| async move {
        let mut session = target.session().await?;
        let text = format!("SELECT length('{index}{}'), n FROM known WHERE id = $1", "x".repeat(1_000_000));
        session.send(&[parse("s", &text), bind("", "s", &[b"7"]), execute("", 0), sync()].concat()).await?;
        let answer = session.answer().await?;
        Ok((session, answer))
    })
    .await?;
    sleep(HOLD).await;
    let refused: Vec<&str> = open.iter().filter_map(|(_, answer)| answer.state()).collect();
    ensure!(refused.iter().all(|state| ["53200", "54000"].contains(state)), "{refused:?}");
    Ok(format!("{} of 300 kept", open.len() - refused.len()))
}

/// The same statement in many sessions. Then all sessions are closed at the same time.
async fn at_once(target: Target, sessions: usize, text: &'static str) -> Result<String> {
    let open = crowd(sessions, |_| async move {
        let mut session = target.session().await?;
        session.send(&query(text)).await?;
        Ok(session)
    })
    .await?;
    sleep(HOLD * 2).await;
    Ok(format!("{} closed", open.len()))
}

async fn planning_closed(target: Target) -> Result<String> {
    let conditions: String = (0..20_000).map(|number| format!(" AND id <> {number}")).collect();
    let open = crowd(50, |index| {
        let text = format!("SELECT count(*) FROM crowd WHERE a > {index}{conditions}");
        async move {
            let mut session = target.session().await?;
            session.send(&query(&text)).await?;
            Ok(session)
        }
    })
    .await?;
    sleep(HOLD).await;
    Ok(format!("{} closed", open.len()))
}

async fn cancelled(target: Target) -> Result<String> {
    let times = crowd(100, |_| async move {
        let mut session = target.session().await?;
        session.send(&query(CROSS)).await?;
        let (cancel, mut answer) = (session.canceller(), pin!(session.answer()));
        if let Ok(answer) = timeout(HOLD, &mut answer).await {
            anyhow::bail!("answered early: {:?}", answer?);
        }
        let begun = std::time::Instant::now();
        cancel.cancel().await?;
        let answer = answer.await?;
        ensure!(answer.state() == Some("57014"), "was cancelled, and says {answer:?}");
        Ok(begun.elapsed().as_millis())
    })
    .await?;
    Ok(format!("57014 after {} ms at most", times.into_iter().max().unwrap_or(0)))
}

/// Many sessions with small, continuous queries.
async fn busy_sessions(target: Target) -> Result<String> {
    let counts = crowd(300, |index| async move {
        let mut session = target.session().await?;
        let (begun, mut count) = (std::time::Instant::now(), 0_usize);
        while begun.elapsed() < HOLD * 2 {
            session.done(&format!("SELECT n FROM known WHERE id = {}", 1 + (index + count) % 1_000)).await?;
            count += 1;
        }
        Ok(count)
    })
    .await?;
    Ok(format!("{} answered", counts.iter().sum::<usize>()))
}

async fn http_sessions(target: Target) -> Result<String> {
    let counts = crowd(1_000, |index| async move {
        let mut connection = target.http().await?;
        let (begun, mut count) = (std::time::Instant::now(), 0_usize);
        while begun.elapsed() < HOLD * 2 {
            let text = format!("SELECT n FROM known WHERE id = {}", 1 + (index + count) % 1_000);
            let answer = connection.ask(&statement(&text)).await?;
            ensure!(answer.status == 200, "{} {:.200}", answer.status, answer.body);
            count += 1;
        }
        Ok(count)
    })
    .await?;
    Ok(format!("{} answered", counts.iter().sum::<usize>()))
}

async fn empty_tables(target: Target) -> Result<String> {
    let mut session = target.session().await?;
    let begun = std::time::Instant::now();
    for table in 0..9_900 {
        let answer = session.run(&format!("CREATE TABLE siege_empty_{table} (id INT PRIMARY KEY, t TEXT)")).await?;
        if let Some(state) = answer.state() {
            ensure!(["53200", "54000", "53400"].contains(&state), "table {table}: {answer:?}");
            return Ok(format!("{table} tables, then {state}"));
        }
        if begun.elapsed() > Duration::from_secs(60) {
            return Ok(format!("{table} tables in a minute"));
        }
    }
    Ok(format!("9,900 tables in {} s", begun.elapsed().as_secs()))
}

async fn tables_come_and_go(target: Target) -> Result<String> {
    crowd(8, |index| async move {
        let mut session = target.session().await?;
        for _ in 0..100 {
            let name = format!("siege_fleeting_{index}");
            session.done(&format!("CREATE TABLE {name} AS SELECT * FROM known")).await?;
            session.done(&format!("DROP TABLE {name}")).await?;
        }
        Ok(())
    })
    .await?;
    Ok("800 tables".to_owned())
}

async fn one_row(target: Target) -> Result<String> {
    target.session().await?.done("CREATE TABLE siege_row AS SELECT 1 AS id, 0 AS n").await?;
    let counts = crowd(100, |_| async move {
        let mut session = target.session().await?;
        let (begun, mut count) = (std::time::Instant::now(), 0_usize);
        while begun.elapsed() < HOLD * 2 {
            session.done("UPDATE siege_row SET n = n + 1 WHERE id = 1").await?;
            count += 1;
        }
        Ok(count)
    })
    .await?;
    Ok(format!("{} updates", counts.iter().sum::<usize>()))
}

/// A user must not be able to cancel the statements of another user.
async fn kill_all(target: Target) -> Result<String> {
    let mut session = target.session().await?;
    let begun = std::time::Instant::now();
    let (mut count, mut last) = (0, String::new());
    while begun.elapsed() < HOLD {
        last = session.run("KILL ALL").await?.to_string();
        count += 1;
    }
    Ok(format!("{count} times: {last}"))
}
