//! The state that a session keeps: portals, cursors, settings, savepoints, prepared statements, and
//! the rows of a COPY until it ends.

use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::load::HOLD;
use crate::loads::crowd;
use crate::target::Target;
use crate::wire::postgres::{Answer, Session, bind, execute, message, parse, query, sync};

/// Portals that have returned one of many rows.
pub(super) async fn portals(target: Target, sessions: usize, portals: usize) -> Result<String> {
    let open = crowd(sessions, |_| async move {
        let mut session = target.session().await?;
        let mut bytes = [query("BEGIN"), parse("s", "SELECT *, repeat(t, 20) FROM crowd ORDER BY a")].concat();
        for portal in 0..portals {
            let name = format!("p{portal}");
            bytes.extend([bind(&name, "s", &[]), execute(&name, 1)].concat());
        }
        bytes.extend(sync());
        session.send(&bytes).await?;
        let begun = session.answer().await?;
        ensure!(begun.state().is_none(), "BEGIN: {begun:?}");
        let answer = session.answer().await?;
        Ok((session, answer))
    })
    .await?;
    sleep(HOLD).await;
    let refused: Vec<&str> = open.iter().filter_map(|(_, answer)| answer.state()).collect();
    ensure!(refused.iter().all(|state| ["54000", "53200"].contains(state)), "{refused:?}");
    Ok(format!("{} of {sessions} refused {}", refused.len(), refused.first().unwrap_or(&"")))
}

pub(super) async fn cursors(target: Target) -> Result<String> {
    let mut session = target.session().await?;
    session.done("BEGIN").await?;
    let mut open = 0;
    for cursor in 0..500 {
        let text = format!("DECLARE c{cursor} CURSOR FOR SELECT * FROM crowd ORDER BY t; FETCH 1 FROM c{cursor}");
        let answer = session.run(&text).await?;
        if let Some(state) = answer.state() {
            ensure!(["53200", "54000"].contains(&state), "cursor {cursor}: {answer:?}");
            sleep(HOLD).await;
            return Ok(format!("{open} cursors, then {state}"));
        }
        open += 1;
    }
    sleep(HOLD).await;
    Ok(format!("{open} cursors"))
}

/// Cursors that outlive their transaction. Clients read nothing or only the first row; the member
/// must not compute the other rows.
pub(super) async fn cursors_held(target: Target, sessions: usize, are_read: bool) -> Result<String> {
    let open = crowd(sessions, |_| async move {
        let mut session = target.session().await?;
        for cursor in 0..100 {
            let fetch = if are_read { format!("; FETCH 1 FROM h{cursor}") } else { String::new() };
            let text = format!("DECLARE h{cursor} CURSOR WITH HOLD FOR SELECT repeat(t, 10) FROM crowd{fetch}");
            let answer = session.run(&text).await?;
            if let Some(state) = answer.state() {
                ensure!(["53200", "54000", "0A000"].contains(&state), "cursor {cursor}: {answer:?}");
                return Ok((session, format!("{cursor} held, then {state}")));
            }
        }
        Ok((session, "100 held".to_owned()))
    })
    .await?;
    sleep(HOLD).await;
    Ok(open.into_iter().map(|(_, told)| told).next().unwrap_or_default())
}

pub(super) async fn settings(target: Target) -> Result<String> {
    let mut session = target.session().await?;
    let value = "x".repeat(1_000_000);
    for setting in 0..300 {
        let answer = session.run(&format!("SET siege.s{setting} = '{value}'")).await?;
        if let Some(state) = answer.state() {
            ensure!(state == "53200", "setting {setting}: {answer:?}");
            return Ok(format!("53200 at setting {setting}"));
        }
    }
    anyhow::bail!("300 MB of settings were kept")
}

pub(super) async fn settings_by_many(target: Target) -> Result<String> {
    let text = format!("SET siege.s = '{}'", "x".repeat(900_000));
    let open = crowd(600, |_| {
        let text = text.clone();
        async move {
            let mut session = target.session().await?;
            // The member closes a connection if it has no memory for its message, possibly while
            // the message is sent.
            let answer = session.run(&text).await.ok();
            Ok((session, answer))
        }
    })
    .await?;
    sleep(HOLD).await;
    let is_kept = |answer: &Option<Answer>| answer.as_ref().is_some_and(|answer| answer.state().is_none());
    let kept = open.iter().filter(|(_, answer)| is_kept(answer)).count();
    ensure!(kept < 300, "{kept} sessions keep 900 KB each, with a budget of 256 MiB");
    Ok(format!("{kept} of 600 sessions keep it"))
}

pub(super) async fn savepoints(target: Target) -> Result<String> {
    let mut session = target.session().await?;
    session.done("BEGIN").await?;
    let name = "s".repeat(60);
    for batch in 0..100 {
        let text: String = (0..1_000).map(|point| format!("SAVEPOINT {name}{batch}_{point};")).collect();
        let answer = session.run(&text).await?;
        if let Some(state) = answer.state() {
            ensure!(["53200", "54000"].contains(&state), "{answer:?}");
            return Ok(format!("{state} at savepoint {batch}000"));
        }
    }
    Ok("100,000 savepoints".to_owned())
}

/// Sends rows until the member rejects them. The maximum of 2 GB exceeds its memory.
pub(super) async fn copy(target: Target, row: &[u8]) -> Result<String> {
    let mut session = target.session().await?;
    session.done("CREATE TABLE IF NOT EXISTS siege_copy (id INT, t TEXT)").await?;
    copy_into(&mut session, row).await
}

async fn copy_into(session: &mut Session, row: &[u8]) -> Result<String> {
    session.send(&query("COPY siege_copy FROM STDIN")).await?;
    let tag = session.next().await?;
    ensure!(tag == b'G', "COPY is answered with {:?}", char::from(tag));
    let piece = message(b'd', &row.repeat((1 << 20) / row.len()));
    let mut sent = 0;
    for _ in 0..2_000 {
        match timeout(Duration::from_secs(10), session.send(&piece)).await {
            Ok(Ok(())) => sent += 1,
            // The member rejected the rows and may have closed the connection.
            Ok(Err(_)) | Err(_) => break,
        }
        if session.has_answer().await {
            break;
        }
    }
    copy_refused(session.answer().await, sent)
}

fn copy_refused(answer: Result<crate::wire::postgres::Answer>, sent: usize) -> Result<String> {
    let answer = answer?;
    ensure!(answer.state().is_some_and(|state| ["53200", "54000"].contains(&state)), "{answer:?} after {sent} MiB");
    Ok(format!("{answer} after {sent} MiB"))
}

pub(super) async fn copy_at_once(target: Target) -> Result<String> {
    target.session().await?.done("CREATE TABLE IF NOT EXISTS siege_copy (id INT, t TEXT)").await?;
    let told = crowd(8, |_| async move { copy_into(&mut target.session().await?, b"7\tx\n").await }).await?;
    Ok(told.into_iter().next().unwrap_or_default())
}

pub(super) async fn parse_many(target: Target) -> Result<String> {
    let mut session = target.session().await?;
    let filler = "x".repeat(20_000);
    let mut bytes = Vec::new();
    for statement in 0..10_000 {
        bytes.extend(parse(
            &format!("s{statement}"),
            &format!("SELECT t, '{filler}{statement}' FROM crowd WHERE id = $1"),
        ));
    }
    bytes.extend(sync());
    let answer = tokio::select! {
        sent = session.send(&bytes) => { sent?; session.answer().await? }
    };
    ensure!(
        answer.state().is_some_and(|state| ["53200", "54000"].contains(&state)),
        "200 MB of statements: {answer:?}"
    );
    sleep(HOLD).await;
    Ok(answer.to_string())
}

pub(super) async fn prepare_many(target: Target) -> Result<String> {
    let mut session = target.session().await?;
    for batch in 0..20 {
        let text: String = (0..1_000)
            .map(|one| format!("PREPARE p{batch}_{one} AS SELECT {one} + a FROM crowd WHERE id = $1;"))
            .collect();
        let answer = session.run(&text).await?;
        if let Some(state) = answer.state() {
            ensure!(["53200", "54000"].contains(&state), "{answer:?}");
            return Ok(format!("{state} in batch {batch}"));
        }
    }
    Ok("20,000 prepared".to_owned())
}

pub(super) async fn bind_many(target: Target) -> Result<String> {
    let mut session = target.session().await?;
    let values = vec![&b"7"[..]; 65_535];
    let list: String = (1..=65_535).map(|number| format!(", ${number}::int")).collect();
    let mut told = Vec::new();
    for text in ["SELECT 1".to_owned(), format!("SELECT 1{list}")] {
        session.send(&[parse("", &text), bind("", "", &values), execute("", 0), sync()].concat()).await?;
        let answer = session.answer().await?;
        ensure!(answer.state().is_some(), "{text:.20} with 65,535 values: {answer:?}");
        told.push(answer.to_string());
    }
    Ok(told.join(", "))
}

/// Values of 200 MB in total that a portal must keep, in each of four sessions.
pub(super) async fn bind_large(target: Target) -> Result<String> {
    let value = vec![b'x'; 50 << 20];
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let value = value.clone();
        tasks.spawn(async move {
            let mut session = target.session().await?;
            let values = [&value[..], &value, &value, &value];
            let parsed = parse("", "SELECT length($1::text || $2 || $3 || $4)");
            // A rejection closes the connection before all data is sent.
            let _ = session.send(&[parsed, bind("p", "", &values), execute("p", 0), sync()].concat()).await;
            session.answer().await
        });
    }
    let mut told = Vec::new();
    while let Some(answer) = tasks.join_next().await {
        told.push(answer?.map_or_else(|_| "closed".to_owned(), |answer| answer.to_string()));
    }
    told.sort();
    told.dedup();
    Ok(told.join(", "))
}
