//! Loads of a full member: maps have taken all memory that they may take, so statements and buffers
//! have the parts that are guaranteed to them.

use anyhow::{Result, ensure};
use tokio::time::{sleep, timeout};

use crate::load::Door::{Hazelcast, Http, Postgres};
use crate::load::{HOLD, Kind, Load, Table};
use crate::loads::{crowd, http};
use crate::target::Target;
use crate::wire::postgres::query;

/// The rows of an insert into the map that fills the member, of a million bytes each.
const ROWS: usize = 10;

/// SQLSTATEs of statements that have no room.
const REFUSED: [&str; 3] = ["53200", "54000", "57014"];

/// The concurrent clients of a load.
const CLIENTS: usize = 8;

pub(crate) fn loads() -> Vec<Load> {
    let t = Table(Kind::Full);
    vec![
        t.does("full-sorts", Postgres, |target| statements(target, "SELECT repeat(t, 200) AS x FROM crowd ORDER BY x DESC LIMIT 1")).short(),
        t.does("full-groups", Postgres, |target| statements(target, "SELECT count(*) FROM (SELECT DISTINCT repeat(t, 100), a FROM crowd) x")),
        t.does("full-joins", Postgres, |target| statements(target, "SELECT count(*) FROM crowd a JOIN crowd b ON a.g = b.g AND a.t || b.t > 'x' AND a.id < 20000")),
        t.does("full-array-agg", Postgres, |target| statements(target, "SELECT cardinality(array_agg(repeat(t, 100))) FROM crowd")),
        t.does("full-functions", Postgres, |target| statements(target, "SELECT max(length(repeat('x', 60000000) || i)) FROM generate_series(1, 50) s(i)")),
        t.does("full-planning", Postgres, planning),
        t.does("full-updates", Postgres, |target| statements(target, "UPDATE crowd SET t = repeat(t, 50) WHERE id > 0")),
        t.does("full-unread", Postgres, unread),
        t.does("full-bodies", Http, |target| bodies(target, 12, 20 << 20)).short(),
        t.does("full-entry-sets", Hazelcast, entry_sets),
    ]
    .into_iter()
    .map(Load::fills)
    .collect()
}

/// Fills the member until it refuses a row.
async fn fill(target: Target) -> Result<()> {
    let mut session = target.session().await?;
    session.done("CREATE TABLE siege_full (id INT PRIMARY KEY, t TEXT)").await?;
    for first in (0..).step_by(ROWS) {
        let last = first + ROWS - 1;
        let insert =
            format!("INSERT INTO siege_full SELECT i, repeat('x', 1000000) FROM generate_series({first}, {last}) s(i)");
        let answer = session.run(&insert).await?;
        if let Some(state) = answer.state() {
            ensure!(state == "53200" && first > 0, "row {first} of a map that fills the member: {answer}");
            return Ok(());
        }
    }
    Ok(())
}

/// One statement of several sessions. Each is answered, or refused for lack of memory.
async fn statements(target: Target, text: &'static str) -> Result<String> {
    fill(target).await?;
    let told = crowd(CLIENTS, |_| async move {
        let answer = target.session().await?.run(text).await?;
        ensure!(answer.state().is_none_or(|state| REFUSED.contains(&state)), "{text}: {answer}");
        Ok(answer.state().map_or_else(|| "answered".to_owned(), str::to_owned))
    })
    .await?;
    Ok(http::summary(told))
}

/// Long statements, each with another text.
async fn planning(target: Target) -> Result<String> {
    fill(target).await?;
    let told = crowd(CLIENTS, |client| async move {
        let mut session = target.session().await?;
        for round in 0..4 {
            let items: Vec<String> = (0..2_000).map(|item| format!("a + {item} AS c{client}_{round}_{item}")).collect();
            let answer = session.run(&format!("SELECT {} FROM crowd WHERE id = 1", items.join(", "))).await?;
            if let Some(state) = answer.state() {
                ensure!(["53200", "54011", "54001"].contains(&state), "{answer}");
                return Ok(state.to_owned());
            }
        }
        Ok("answered".to_owned())
    })
    .await?;
    Ok(http::summary(told))
}

/// Results that their clients do not read.
async fn unread(target: Target) -> Result<String> {
    fill(target).await?;
    let open = crowd(50, |_| async move {
        let mut session = target.session().await?;
        let _ = timeout(HOLD, session.send(&query("SELECT repeat(t, 2000) FROM crowd"))).await;
        Ok(session)
    })
    .await?;
    sleep(HOLD).await;
    Ok(format!("{} unread", open.len()))
}

/// Bulk inserts that the maps have no room for.
async fn bodies(target: Target, count: usize, bytes: usize) -> Result<String> {
    fill(target).await?;
    http::bulk(target, count, bytes).await
}

/// Lists of all entries of the large map.
async fn entry_sets(target: Target) -> Result<String> {
    use filbert_wire::table::map;

    fill(target).await?;
    let told = crowd(CLIENTS, |_| async move {
        let mut connection = target.raw_client().await?;
        let answer = connection.call(&map::values::Request { name: "siege_full" }).await;
        Ok(if answer.is_ok() { "answered".to_owned() } else { "refused".to_owned() })
    })
    .await?;
    Ok(http::summary(told))
}
