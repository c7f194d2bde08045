//! Large numbers of harmless objects: listeners, query caches, maps, names, locks.

use std::time::Duration;

use anyhow::{Result, bail};
use filbert_client::ToBlob;
use filbert_client::criteria::Predicate;
use filbert_wire::table::{continuous_query, map};
use tokio::time::sleep;

use super::{SMALL, refusal};
use crate::load::HOLD;
use crate::loads::crowd;
use crate::target::Target;

/// Listeners of clients that do not read, while entries of ten kilobytes change.
pub(super) async fn listeners_unread(target: Target, connections: usize, each: usize) -> Result<String> {
    const NAME: &str = "siege-heard";
    let open = crowd(connections, |_| async move {
        let mut connection = target.raw_client().await?;
        let request =
            map::add_entry_listener::Request { name: NAME, include_value: true, listener_flags: 63, local_only: false };
        for _ in 0..each {
            connection.call(&request).await?;
        }
        Ok(connection)
    })
    .await?;
    let client = target.client().await?;
    let map = client.map::<i32, String>(NAME);
    let value = "x".repeat(10_000);
    let begun = std::time::Instant::now();
    let mut changes = 0;
    while begun.elapsed() < HOLD * 2 {
        for key in 0..20 {
            map.set(&key, value.as_str()).await?;
            changes += 1;
        }
    }
    Ok(format!("{changes} changes, {} listeners", open.len() * each))
}

pub(super) async fn listeners_in_a_loop(target: Target) -> Result<String> {
    let mut connection = target.raw_client().await?;
    let begun = std::time::Instant::now();
    let predicate = Predicate::Sql(format!("this = '{}'", "x".repeat(10_000)));
    let predicate = predicate.to_blob().map_err(|error| anyhow::anyhow!("{error}"))?;
    let mut count = 0;
    while begun.elapsed() < Duration::from_secs(10) && count < 120_000 {
        let request = map::add_entry_listener_with_predicate::Request {
            name: "siege-looped",
            predicate: predicate.as_bytes(),
            include_value: true,
            listener_flags: 63,
            local_only: false,
        };
        if let Err(error) = connection.call(&request).await {
            return Ok(format!("{count} listeners, then {error:.40}"));
        }
        count += 1;
    }
    Ok(format!("{count} listeners of 10 KB"))
}

fn query_cache<'a>(
    cache_name: &'a str,
    predicate: &'a [u8],
) -> continuous_query::publisher_create_with_value::Request<'a> {
    continuous_query::publisher_create_with_value::Request {
        map_name: SMALL,
        cache_name,
        predicate,
        batch_size: i32::MAX,
        buffer_size: i32::MAX,
        delay_seconds: i64::MAX,
        populate: false,
        coalesce: false,
    }
}

pub(super) async fn query_caches(target: Target) -> Result<String> {
    let predicate = Predicate::True.to_blob().map_err(|error| anyhow::anyhow!("{error}"))?;
    let mut connection = target.raw_client().await?;
    let begun = std::time::Instant::now();
    let mut count = 0;
    while begun.elapsed() < Duration::from_secs(8) && count < 20_000 {
        let name = format!("cache{count}");
        let made = connection.call(&query_cache(&name, predicate.as_bytes())).await;
        let listener = continuous_query::add_listener::Request { listener_name: &name, local_only: false };
        let heard = connection.call(&listener).await;
        if let Err(error) = made.and(heard) {
            return Ok(format!("{count} caches, then {error:.40}"));
        }
        count += 1;
    }
    Ok(format!("{count} caches"))
}

/// A hundred query caches that keep all changes of a map. Their client never fetches the changes.
pub(super) async fn query_caches_unread(target: Target) -> Result<String> {
    let predicate = Predicate::True.to_blob().map_err(|error| anyhow::anyhow!("{error}"))?;
    let mut connection = target.raw_client().await?;
    let mut caches = 0;
    for cache in 0..100 {
        let name = format!("unread{cache}");
        if connection.call(&query_cache(&name, predicate.as_bytes())).await.is_err() {
            break;
        }
        caches += 1;
    }
    let client = target.client().await?;
    let map = client.map::<i32, String>(SMALL);
    let (value, begun) = ("x".repeat(10_000), std::time::Instant::now());
    let mut changes = 0;
    while begun.elapsed() < HOLD * 2 {
        map.set(&(changes % 100), value.as_str()).await?;
        changes += 1;
    }
    Ok(format!("{caches} caches, {changes} changes"))
}

pub(super) async fn maps(target: Target) -> Result<String> {
    let client = target.client().await?;
    for number in 0..12_000 {
        if let Err(error) = client.map::<i32, i32>(&format!("siege-{number}")).set(&1, &1).await {
            return Ok(format!("{} at map {number}", refusal(&error)?));
        }
    }
    bail!("12,000 maps were made, 10,000 objects are allowed")
}

pub(super) async fn names(target: Target) -> Result<String> {
    let client = target.client().await?;
    let mut told = Vec::new();
    for number in 0..40 {
        let name = format!("siege-{number}-{}", "n".repeat(10 << 20));
        match client.map::<i32, i32>(&name).set(&1, &1).await {
            Ok(()) => told.push("made".to_owned()),
            Err(error) => told.push(refusal(&error)?),
        }
    }
    told.dedup();
    Ok(told.join(", "))
}

pub(super) async fn locks(target: Target) -> Result<String> {
    let client = target.client().await?;
    let map = client.map::<i32, i32>("siege-locked");
    for batch in 0..100 {
        let calls: Vec<_> = (0..10_000).map(|key| map.lock(&(batch * 10_000 + key))).collect();
        for call in calls {
            if let Err(error) = call.await {
                return Ok(format!("{} in batch {batch}", refusal(&error)?));
            }
        }
    }
    client.shutdown().await;
    Ok("1,000,000 locks".to_owned())
}

/// Many calls wait for a key that another client has locked. Each call has a value of ten
/// kilobytes.
pub(super) async fn lock_waiters(target: Target) -> Result<String> {
    let owner = target.client().await?;
    owner.map::<i32, String>("siege-waited").lock(&1).await?;
    let client = target.client().await?;
    let map = client.map::<i32, String>("siege-waited");
    let value = "x".repeat(10_000);
    let calls: Vec<_> = (0..20_000).map(|_| map.set(&1, value.as_str())).collect();
    sleep(HOLD).await;
    drop(calls);
    client.shutdown().await;
    owner.shutdown().await;
    Ok("20,000 waited".to_owned())
}

pub(super) async fn expiring(target: Target) -> Result<String> {
    let client = target.client().await?;
    let map = client.map::<i32, i32>("siege-expiring");
    let expiry = filbert_client::Expiry::ttl(Duration::from_secs(2));
    for batch in 0..30 {
        let calls: Vec<_> = (0..10_000).map(|key| map.set_with(&(batch * 10_000 + key), &key, expiry)).collect();
        for call in calls {
            call.await?;
        }
    }
    Ok("300,000 entries".to_owned())
}
