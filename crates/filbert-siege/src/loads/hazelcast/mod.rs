//! Misuse of the client protocol: unread replies, endless numbers of listeners, malformed frames.

mod many;
mod messages;

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use filbert_client::criteria::{Aggregator, Predicate, Projection};
use filbert_client::{Blob, Client, ClientError, Map, Statement, ToBlob, Value};
use filbert_wire::table::map;
use tokio::time::{sleep, timeout};

use super::crowd;
use crate::load::Door::Hazelcast;
use crate::load::{HOLD, Kind, Load, Table};
use crate::target::Target;

pub(crate) fn loads() -> Vec<Load> {
    let t = Table(Kind::Hazelcast);
    vec![
        t.does("values-300mb-unread-36", Hazelcast, |target| values_unread(target, 1, 36)),
        t.does("values-300mb-unread-by-6", Hazelcast, |target| values_unread(target, 6, 1)),
        t.does("values-300mb-unread-by-36", Hazelcast, |target| values_unread(target, 36, 1)),
        t.does("values-300mb-read", Hazelcast, values_read),
        t.does("entry-set-of-300000", Hazelcast, |target| small(target, async |map| Ok(map.entry_set().await?.len())))
            .short(),
        t.does("key-set-of-300000-by-20", Hazelcast, keys_by_many),
        t.does("project-of-300000", Hazelcast, |target| {
            small(target, async |map| Ok(map.project::<Blob>(&Projection::Identity, None).await?.len()))
        }),
        t.does("set-unfinished-6", Hazelcast, messages::unfinished).short(),
        t.does("put-all-100mb-by-4", Hazelcast, messages::put_all).fills(),
        t.does("values-of-60mb-until-full", Hazelcast, messages::until_full).fills(),
        t.does("frames-that-lie", Hazelcast, messages::frames_that_lie).short(),
        t.does("fragments-unfinished", Hazelcast, messages::fragments),
        t.does("garbage-by-500-clients", Hazelcast, messages::garbage).short(),
        t.does("unauthenticated-2000", Hazelcast, messages::unauthenticated),
        t.does("unauthenticated-messages", Hazelcast, messages::unauthenticated_messages),
        t.does("gets-1000000-unread", Hazelcast, messages::gets_unread),
        t.does("listeners-180-unread", Hazelcast, |target| many::listeners_unread(target, 180, 1)).short(),
        t.does("listeners-unread-10-by-50", Hazelcast, |target| many::listeners_unread(target, 50, 10)),
        t.does("listeners-in-a-loop", Hazelcast, many::listeners_in_a_loop),
        t.does("query-caches-in-a-loop", Hazelcast, many::query_caches),
        t.does("query-caches-unread", Hazelcast, many::query_caches_unread),
        t.does("in-100000-over-300000", Hazelcast, |target| {
            finds(target, |_| Predicate::In("this".to_owned(), (0..100_000).map(|n| text(format!("v{n}"))).collect()))
        }),
        t.does("predicates-nested-5000", Hazelcast, |target| {
            finds(target, |_| (0..5_000).fold(Predicate::True, |inner, _| Predicate::Not(Box::new(inner))))
        })
        .short(),
        t.does("predicate-or-of-20000", Hazelcast, |target| {
            finds(target, |_| {
                Predicate::Or((0..20_000).map(|n| Predicate::Equal("this".to_owned(), text(format!("v{n}")))).collect())
            })
        }),
        t.does("predicate-text-deep", Hazelcast, |target| {
            finds(target, |_| Predicate::Sql(format!("{}this = 1{}", "(".repeat(100_000), ")".repeat(100_000))))
        }),
        t.does("predicate-text-of-nots", Hazelcast, |target| {
            finds(target, |_| Predicate::Sql(format!("{}this = 1", "NOT ".repeat(100_000))))
        }),
        t.does("regex-catastrophic", Hazelcast, |target| finds(target, |_| regex("(v*)*(v|vv|[0-9]*)*!".to_owned())))
            .short(),
        t.does("regex-of-counts", Hazelcast, |target| {
            finds(target, |_| regex("((v{1,1000}){1,1000}){1,1000}".to_owned()))
        }),
        t.does("like-wildcards-over-300000", Hazelcast, |target| {
            finds(target, |_| Predicate::Like {
                attribute: "this".to_owned(),
                pattern: Some("%v".repeat(3_000)),
                ignore_case: true,
            })
        }),
        t.does("paging-page-of-2-billion", Hazelcast, |target| {
            small(target, async |map| Ok(map.entry_pages(None, 2_000_000_000).get(0).await?.len()))
        }),
        t.does("paging-number-of-2-billion", Hazelcast, |target| {
            small(target, async |map| Ok(map.key_pages(None, 1_000).get(2_000_000_000).await?.len()))
        }),
        t.does("aggregator-distinct", Hazelcast, |target| {
            small(target, async |map| {
                Ok(usize::from(map.aggregate::<Blob>(&Aggregator::Distinct(None), None).await?.is_some()))
            })
        }),
        t.does("aggregators-by-200", Hazelcast, aggregators),
        t.does("maps-12000", Hazelcast, many::maps),
        t.does("names-of-10mb", Hazelcast, many::names),
        t.does("locks-on-1000000-keys", Hazelcast, many::locks),
        t.does("lock-waiters-20000", Hazelcast, many::lock_waiters),
        t.does("ttl-entries-300000", Hazelcast, many::expiring),
        t.does("sql-cursors-open-1000", Hazelcast, sql_cursors).short(),
        t.does("sql-endless-closed", Hazelcast, sql_endless),
        t.does("sql-timeout-holds", Hazelcast, sql_timeout),
        t.does("indexes-on-300000", Hazelcast, indexes),
        t.does("deserialize-garbage", Hazelcast, messages::values_of_garbage),
    ]
}

/// The map of small entries: 300,000 short texts.
pub(super) const SMALL: &str = "siege-small";

/// The map of large entries: 300 MB.
pub(super) const LARGE: &str = "siege-large";

fn text(text: String) -> Value<'static> {
    Value::Text(text.into())
}

fn regex(pattern: String) -> Predicate {
    Predicate::Regex { attribute: "this".to_owned(), pattern: Some(pattern) }
}

/// Fills a map with texts.
pub(super) async fn fill(client: &Client, name: &str, entries: i32, value: impl Fn(i32) -> String) -> Result<()> {
    const BATCH: usize = 10_000;
    let map = client.map::<i32, String>(name);
    let keys: Vec<i32> = (0..entries).collect();
    for keys in keys.chunks(BATCH) {
        map.put_all(keys.iter().map(|key| (*key, value(*key)))).await.with_context(|| format!("filling {name}"))?;
    }
    Ok(())
}

async fn fill_large(target: Target) -> Result<()> {
    let client = target.client().await?;
    for batch in 0..30_i32 {
        let value = "x".repeat(10_000);
        let keys = batch * 1_000..(batch + 1) * 1_000;
        client.map::<i32, String>(LARGE).put_all(keys.map(|key| (key, value.clone()))).await?;
    }
    client.shutdown().await;
    Ok(())
}

/// Checks that the error is a permitted rejection: out of memory, not understood, not supported.
/// Returns its class.
pub(super) fn refusal(error: &ClientError) -> Result<String> {
    match error {
        ClientError::Server(error) => {
            let class = error.class_name.rsplit('.').next().unwrap_or_default();
            let expected = ["Memory", "Query", "Illegal", "Serialization", "Unsupported", "Overload"];
            ensure!(expected.iter().any(|word| class.contains(word)), "{error}");
            Ok(class.to_owned())
        }
        ClientError::Disconnected { .. } => Ok("disconnected".to_owned()),
        other => bail!("{other}"),
    }
}

/// Fills the map of small entries, then runs a request with a number as its result.
async fn small(target: Target, ask: impl AsyncFn(Map<i32, String>) -> Result<usize, ClientError>) -> Result<String> {
    let client = target.client().await?;
    fill(&client, SMALL, 300_000, |key| format!("v{key}")).await?;
    match ask(client.map(SMALL)).await {
        Ok(count) => Ok(format!("{count} items")),
        Err(error) => refusal(&error),
    }
}

/// As [`small`], with a predicate.
async fn finds(target: Target, predicate: impl Fn(()) -> Predicate) -> Result<String> {
    // Serialized before the first await: a predicate may be large too.
    let predicate = predicate(()).to_blob().map_err(|error| anyhow::anyhow!("{error}"))?;
    let client = target.client().await?;
    fill(&client, SMALL, 300_000, |key| format!("v{key}")).await?;
    let mut connection = target.raw_client().await?;
    let request = map::key_set_with_predicate::Request { name: SMALL, predicate: predicate.as_bytes() };
    // Clients cannot cancel a call. A client that does not wait closes the connection.
    let Ok(answer) = timeout(HOLD * 2, connection.call(&request)).await else { return Ok("closed".to_owned()) };
    match answer {
        Ok(answer) => Ok(format!("{} bytes", answer.len())),
        Err(error) => {
            let said = error.to_string();
            let class = said.split(':').next().unwrap_or_default().to_owned();
            let expected = ["Memory", "Query", "Illegal", "Serialization", "PatternSyntax", "Unsupported"];
            ensure!(expected.iter().any(|word| class.contains(word)), "{said:.200}");
            Ok(class)
        }
    }
}

/// Requests the values of a large map and does not read the replies.
async fn values_unread(target: Target, connections: usize, times: usize) -> Result<String> {
    fill_large(target).await?;
    let open = crowd(connections, |_| async move {
        let mut connection = target.raw_client().await?;
        for _ in 0..times {
            connection.request(&map::values::Request { name: LARGE }, -1).await?;
        }
        Ok(connection)
    })
    .await?;
    sleep(HOLD * 2).await;
    Ok(format!("{} x {times} unread", open.len()))
}

async fn values_read(target: Target) -> Result<String> {
    fill_large(target).await?;
    let mut connection = target.raw_client().await?;
    let answer = connection.call(&map::values::Request { name: LARGE }).await;
    Ok(answer.map_or_else(|error| format!("{error:.40}"), |answer| format!("{} MiB", answer.len() >> 20)))
}

async fn keys_by_many(target: Target) -> Result<String> {
    let client = target.client().await?;
    fill(&client, SMALL, 300_000, |key| format!("v{key}")).await?;
    let told = crowd(20, |_| async move {
        let mut connection = target.raw_client().await?;
        for _ in 0..5 {
            connection.call(&map::key_set::Request { name: SMALL }).await?;
        }
        Ok(())
    })
    .await?;
    Ok(format!("{} x 5 answered", told.len()))
}

async fn aggregators(target: Target) -> Result<String> {
    let client = target.client().await?;
    fill(&client, SMALL, 300_000, |key| format!("v{key}")).await?;
    let predicate =
        Predicate::Like { attribute: "this".to_owned(), pattern: Some("%7%".to_owned()), ignore_case: false };
    let map = client.map::<i32, String>(SMALL);
    let calls: Vec<_> = (0..200).map(|_| map.aggregate::<i64>(&Aggregator::Count(None), Some(&predicate))).collect();
    let mut answered = 0;
    for call in calls {
        match call.await {
            Ok(_) => answered += 1,
            Err(error) => drop(refusal(&error)?),
        }
    }
    Ok(format!("{answered} of 200 answered"))
}

/// Cursors with one page read.
async fn sql_cursors(target: Target) -> Result<String> {
    let client = target.client().await?;
    let mut open = Vec::new();
    for cursor in 0..1_000 {
        match client.execute(Statement::new("SELECT * FROM crowd").page_rows(1)).await {
            Ok(result) => open.push(result),
            Err(ClientError::Sql(error)) => return Ok(format!("{cursor} cursors, then {:.40}", error.message)),
            Err(error) => bail!("cursor {cursor}: {error}"),
        }
    }
    sleep(HOLD).await;
    Ok(format!("{} cursors", open.len()))
}

async fn sql_endless(target: Target) -> Result<String> {
    let client = target.client().await?;
    let endless = client.sql("SELECT COUNT(*) FROM crowd a JOIN crowd b ON a.a < b.a", &[]);
    let early = timeout(HOLD, async { endless.await?.scalar().await }).await;
    ensure!(early.is_err(), "answered early: {early:?}");
    Ok("closed".to_owned())
}

async fn sql_timeout(target: Target) -> Result<String> {
    let client = target.client().await?;
    let text = "SELECT COUNT(*) FROM crowd a JOIN crowd b ON a.a < b.a";
    let begun = std::time::Instant::now();
    let result = client.execute(Statement::new(text).timeout(Duration::from_secs(1))).await;
    let result = match result {
        Ok(result) => result.scalar().await.map(drop),
        Err(error) => Err(error),
    };
    let took = begun.elapsed().as_millis();
    ensure!(result.is_err() && took < 5_000, "a limit of 1 s ended it after {took} ms: {result:?}");
    Ok(format!("ended after {took} ms"))
}

async fn indexes(target: Target) -> Result<String> {
    let client = target.client().await?;
    fill(&client, SMALL, 300_000, |key| format!("v{key}")).await?;
    let map = client.map::<i32, String>(SMALL);
    for (number, index) in
        [filbert_client::Index::sorted(["this"]), filbert_client::Index::hash(["this"])].iter().enumerate()
    {
        if let Err(error) = map.add_index(index).await {
            return Ok(format!("{} at index {number}", refusal(&error)?));
        }
    }
    Ok("2 indexes".to_owned())
}
