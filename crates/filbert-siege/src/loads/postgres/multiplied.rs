//! Messages that need much more memory than their size: parameter types, number arrays,
//! descriptions of wide rows.

use anyhow::{Result, ensure};
use tokio::time::{sleep, timeout};

use crate::load::HOLD;
use crate::loads::crowd;
use crate::target::Target;
use crate::wire::postgres::{Answer, bind, execute, message, parse, query, sync};

/// Whether a reply is an expected rejection for lack of memory.
fn is_refusal(answer: &Answer) -> bool {
    answer.state().is_some_and(|state| ["53200", "54000"].contains(&state))
}

/// Statements of eight bytes, each with the maximum number of parameter types.
pub(super) async fn parameter_types(target: Target, statements: usize) -> Result<String> {
    let mut session = target.session().await?;
    for statement in 0..statements {
        let name = format!("s{statement}");
        let types = 23_i32.to_be_bytes().repeat(65_535);
        let body = [name.as_bytes(), b"\0SELECT 1\0\xff\xff", &types].concat();
        session.send(&[message(b'P', &body), sync()].concat()).await?;
        let answer = session.answer().await?;
        if answer.state().is_some() {
            ensure!(is_refusal(&answer), "statement {statement}: {answer:?}");
            sleep(HOLD).await;
            return Ok(format!("{answer} at statement {statement}"));
        }
    }
    anyhow::bail!("{statements} statements with 65,535 types each are kept")
}

/// Statements that are closed while portals or cursors still use them.
pub(super) async fn closed_statements(target: Target, cursors: bool) -> Result<String> {
    let mut session = target.session().await?;
    session.done("BEGIN").await?;
    let text = format!("SELECT '{}'", "x".repeat(1_000_000));
    for portal in 0..600 {
        let name = format!("p{portal}");
        let bytes = match cursors {
            true => query(&format!("DECLARE {name} CURSOR FOR {text}")),
            false => [parse("s", &text), bind(&name, "s", &[]), message(b'C', b"Ss\0"), sync()].concat(),
        };
        session.send(&bytes).await?;
        let answer = session.answer().await?;
        if answer.state().is_some() {
            ensure!(is_refusal(&answer), "portal {portal}: {answer:?}");
            sleep(HOLD).await;
            return Ok(format!("{answer} at portal {portal}"));
        }
    }
    anyhow::bail!("600 portals keep statements of 1 MB each")
}

/// An array text with ten million numbers in 20 MB.
fn numbers() -> Vec<u8> {
    [b"{", &b"1,".repeat(10_000_000)[..], b"1}"].concat()
}

pub(super) async fn arrays(target: Target) -> Result<String> {
    let told = crowd(4, |_| async move {
        let mut session = target.session().await?;
        let bytes = [parse("", "SELECT $1::int[]"), bind("", "", &[&numbers()]), execute("", 0), sync()].concat();
        session.send(&bytes).await?;
        session.answer().await
    })
    .await?;
    told.iter().try_for_each(|answer| {
        ensure!(is_refusal(answer), "{answer:?}");
        Ok(())
    })?;
    Ok(told.first().map(Answer::to_string).unwrap_or_default())
}

pub(super) async fn arrays_copied(target: Target) -> Result<String> {
    target.session().await?.done("CREATE TABLE IF NOT EXISTS siege_arrays (id INT, a INT[])").await?;
    let told = crowd(4, |_| async move {
        let mut session = target.session().await?;
        session.send(&query("COPY siege_arrays FROM STDIN")).await?;
        ensure!(session.next().await? == b'G', "COPY is refused");
        let row = [b"7\t", &numbers()[..], b"\n"].concat();
        session.send(&[message(b'd', &row), message(b'c', &[])].concat()).await?;
        session.answer().await
    })
    .await?;
    told.iter().try_for_each(|answer| {
        ensure!(is_refusal(answer), "{answer:?}");
        Ok(())
    })?;
    Ok(told.first().map(Answer::to_string).unwrap_or_default())
}

/// Statements of 15 bytes. Each reply describes 1,600 columns, and the client does not read it.
pub(super) async fn descriptions(target: Target) -> Result<String> {
    let columns: Vec<String> = (0..1_600).map(|column| format!("1 AS a{column}")).collect();
    let declare = format!("BEGIN; DECLARE c CURSOR FOR SELECT {}", columns.join(","));
    let open = crowd(4, |_| {
        let declare = declare.clone();
        async move {
            let mut session = target.session().await?;
            session.done(&declare).await?;
            // The member stops reading if the client does not read its replies.
            let _ = timeout(HOLD, session.send(&query(&"FETCH 0 FROM c;".repeat(10_000)))).await;
            Ok(session)
        }
    })
    .await?;
    sleep(HOLD).await;
    Ok(format!("{} unread", open.len()))
}
