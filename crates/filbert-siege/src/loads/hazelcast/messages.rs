//! Incomplete, malformed, forbidden and unread messages.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use filbert_client::criteria::Predicate;
use filbert_client::{Blob, ToBlob};
use filbert_wire::table::map;
use tokio::time::{sleep, timeout};

use super::{LARGE, SMALL, fill, refusal};
use crate::load::HOLD;
use crate::loads::crowd;
use crate::random::Random;
use crate::target::Target;
use crate::wire::grid::{self, Connection};

/// Incomplete messages with a declared size of 250 MB, from six clients: more than the memory
/// budget.
pub(super) async fn unfinished(target: Target) -> Result<String> {
    let sent = crowd(6, |_| async move {
        let mut connection = target.raw_client().await?;
        let value = vec![0; 1_000];
        let request = map::set::Request { name: LARGE, key: &value, value: &value, thread_id: 1, ttl: -1 };
        let whole = grid::encoded(&request, 7, 0);
        // The value frame is the last frame. Its declared length is larger than its content.
        let at = whole.len().saturating_sub(1_006);
        let mut begun = whole.get(..at).unwrap_or_default().to_vec();
        begun.extend((250_i32 << 20).to_le_bytes());
        begun.extend(whole.get(at + 4..).unwrap_or_default());
        connection.send(&begun).await?;
        let piece = vec![0; 1 << 20];
        let mut sent = 0;
        while sent < 200 && timeout(HOLD, connection.send(&piece)).await.is_ok_and(|result| result.is_ok()) {
            sent += 1;
        }
        Ok((connection, sent))
    })
    .await?;
    sleep(HOLD).await;
    let total: usize = sent.iter().map(|(_, sent)| sent).sum();
    Ok(format!("{total} MiB sent"))
}

pub(super) async fn put_all(target: Target) -> Result<String> {
    let told = crowd(4, |index| async move {
        let client = target.client().await?;
        let map = client.map::<i32, Vec<u8>>("siege-put-all");
        let value = vec![7; 1 << 20];
        let keys = (0..100).map(|key| (key + 1_000 * index as i32, value.clone()));
        match map.put_all(keys).await {
            Ok(()) => Ok("done".to_owned()),
            Err(error) => refusal(&error),
        }
    })
    .await?;
    Ok(told.join(", "))
}

pub(super) async fn until_full(target: Target) -> Result<String> {
    let client = target.client().await?;
    let map = client.map::<i32, Vec<u8>>("siege-full");
    let value = vec![7; 60 << 20];
    for key in 0..30 {
        if let Err(error) = map.set(&key, &value).await {
            return Ok(format!("{} after {key}", refusal(&error)?));
        }
    }
    bail!("1,800 MB were taken")
}

/// Frames with wrong lengths, flags or counts.
pub(super) async fn frames_that_lie(target: Target) -> Result<String> {
    let request = map::size::Request { name: "siege-none" };
    let whole = grid::encoded(&request, 7, -1);
    let lengths: [i32; 9] = [-1, 0, 1, 5, 6, 7, i32::MAX, i32::MIN, 1 << 30];
    let mut closed = 0;
    for length in lengths {
        for authenticated in [false, true] {
            let mut connection =
                if authenticated { target.raw_client().await? } else { Connection::silent(target.hazelcast).await? };
            let lie = [&length.to_le_bytes()[..], whole.get(4..).unwrap_or_default()].concat();
            let _ = connection.send(&lie).await;
            closed += usize::from(timeout(Duration::from_millis(200), connection.drain()).await.is_ok());
        }
    }
    // A list with a declared count of two billion items, in a message that ends after the count.
    let mut connection = target.raw_client().await?;
    let request = map::put_all::Request { name: "siege-none", entries: Vec::new(), trigger_map_loader: false };
    let mut lie = grid::encoded(&request, 8, 0);
    lie.truncate(lie.len().saturating_sub(4));
    lie.extend(i32::MAX.to_le_bytes());
    let _ = connection.send(&lie).await;
    let _ = timeout(HOLD, connection.drain()).await;
    Ok(format!("{closed} of {} closed", 2 * lengths.len()))
}

/// Fragments of messages without a last fragment.
pub(super) async fn fragments(target: Target) -> Result<String> {
    const BEGIN_FRAGMENT: u16 = 1 << 15;
    let sent = crowd(50, |_| async move {
        let mut connection = target.raw_client().await?;
        let mut sent = 0;
        for fragment in 0..64_i64 {
            // The first frame of a fragment contains its id. The second frame is a piece of the
            // message and ends the fragment.
            let mut bytes = 14_i32.to_le_bytes().to_vec();
            bytes.extend(BEGIN_FRAGMENT.to_le_bytes());
            bytes.extend(fragment.to_le_bytes());
            bytes.extend((6 + (1_i32 << 20)).to_le_bytes());
            bytes.extend((1_u16 << 13).to_le_bytes());
            bytes.extend(vec![0; 1 << 20]);
            if !timeout(HOLD, connection.send(&bytes)).await.is_ok_and(|result| result.is_ok()) {
                break;
            }
            sent += 1;
        }
        Ok((connection, sent))
    })
    .await?;
    sleep(HOLD).await;
    Ok(format!("{} MiB sent", sent.iter().map(|(_, sent)| sent).sum::<usize>()))
}

pub(super) async fn garbage(target: Target) -> Result<String> {
    crowd(500, |index| async move {
        let bytes = Random::new(target.seed ^ index as u64).bytes(10_000);
        let mut connection =
            if index % 2 == 0 { Connection::silent(target.hazelcast).await? } else { target.raw_client().await? };
        let _ = connection.send(&bytes).await;
        let _ = timeout(HOLD, connection.drain()).await;
        Ok(())
    })
    .await?;
    Ok("500 sent".to_owned())
}

pub(super) async fn unauthenticated(target: Target) -> Result<String> {
    let open = crowd(2_000, |_| async move { Connection::silent(target.hazelcast).await }).await?;
    sleep(HOLD).await;
    Ok(format!("{} wait", open.len()))
}

/// Requests before the authentication, and an authentication request of a megabyte.
pub(super) async fn unauthenticated_messages(target: Target) -> Result<String> {
    let mut served = 0;
    for bytes in [
        grid::encoded(&map::values::Request { name: crate::bystanders::MAP }, 2, -1),
        grid::encoded(&map::clear::Request { name: crate::bystanders::MAP }, 2, -1),
        grid::login(Some(&"u".repeat(1 << 20)), Some("p")),
    ] {
        let mut connection = Connection::silent(target.hazelcast).await?;
        let _ = connection.send(&bytes).await;
        served += usize::from(timeout(HOLD, connection.drain()).await.is_ok_and(|count| count > 1_000));
    }
    ensure!(served == 0, "{served} strangers were answered at length");
    Ok("none served".to_owned())
}

pub(super) async fn gets_unread(target: Target) -> Result<String> {
    let client = target.client().await?;
    fill(&client, SMALL, 1_000, |_| "v".repeat(10_000)).await?;
    let key = 7_i32.to_blob().map_err(|error| anyhow::anyhow!("{error}"))?;
    let partition = client.partition_of(key.as_bytes()).0;
    let one = grid::encoded(&map::get::Request { name: SMALL, key: key.as_bytes(), thread_id: 1 }, 9, partition as i32);
    let open = crowd(20, |_| {
        let many = one.repeat(50_000);
        async move {
            let mut connection = target.raw_client().await?;
            let _ = timeout(HOLD, connection.send(&many)).await;
            Ok(connection)
        }
    })
    .await?;
    sleep(HOLD).await;
    Ok(format!("{} unread", open.len()))
}

/// Entries with invalid values, and queries that read their attributes.
pub(super) async fn values_of_garbage(target: Target) -> Result<String> {
    let mut random = Random::new(target.seed);
    let client = target.client().await?;
    let map = client.raw_map("siege-garbage");
    for key in 0..2_000_i32 {
        let key = key.to_blob().map_err(|error| anyhow::anyhow!("{error}"))?;
        let length = 8 + random.below(200);
        let mut value = random.bytes(length);
        // Half of the values claim a valid type id, from -1 to -130.
        if random.below(2) == 0 {
            let kind = -1 - random.below(130) as i32;
            value.splice(4..8, kind.to_be_bytes());
        }
        map.set(&key, &Blob::from(value)).await?;
    }
    let mut told = Vec::new();
    for predicate in
        [Predicate::Sql("a.b[any].c = 7".to_owned()), Predicate::Sql("this > 7 OR x LIKE '%y%'".to_owned())]
    {
        match map.keys_with(&predicate).await {
            Ok(keys) => told.push(format!("{} keys", keys.len())),
            Err(error) => told.push(refusal(&error)?),
        }
    }
    Ok(told.join(", "))
}
