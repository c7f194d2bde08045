//! Tests of our own client with a real member and a real socket: all map operations, locks,
//! listeners, iteration, the event journal, pipelining, and the reconnect after a restart of the
//! member.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use filbert::{Config, Filbert};
use filbert_client::{Client, ClientConfig, ClientError, Expiry, Map, Pipelining};

const MOMENT: Duration = Duration::from_millis(20);

fn member_at(address: SocketAddr) -> Filbert {
    Filbert::start(Config::default().with_listener(address)).unwrap()
}

fn member() -> Filbert {
    member_at(([127, 0, 0, 1], 0).into())
}

async fn connect(member: &Filbert) -> Client {
    let addresses = vec![member.address().unwrap().to_string()];
    Client::connect(ClientConfig { addresses, ..ClientConfig::default() }).await.unwrap()
}

/// Returns a member, a client, and a map of texts.
async fn texts() -> (Filbert, Client, Map<String, String>) {
    let member = member();
    let client = connect(&member).await;
    let map = client.map("texts");
    (member, client, map)
}

fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_key_operations_answer_as_the_stock_clients_do() {
    let (_member, client, map) = texts().await;
    assert_eq!(client.partition_count(), 271);
    assert_eq!(map.put("a", "1").await.unwrap(), None);
    assert_eq!(map.put("a", "2").await.unwrap(), text("1"));
    assert_eq!(map.get("a").await.unwrap(), text("2"));
    map.set("b", "x").await.unwrap();
    assert_eq!(map.put_if_absent("b", "y").await.unwrap(), text("x"));
    assert_eq!(map.put_if_absent("c", "y").await.unwrap(), None);
    assert_eq!(map.replace("b", "z").await.unwrap(), text("x"));
    assert_eq!(map.replace("nothing", "z").await.unwrap(), None);
    assert!(map.replace_if_same("b", "z", "w").await.unwrap());
    assert!(!map.replace_if_same("b", "z", "w").await.unwrap());
    assert!(!map.remove_if_same("b", "other").await.unwrap());
    assert!(map.remove_if_same("b", "w").await.unwrap());
    assert!(map.try_put("t", "1", MOMENT).await.unwrap());
    assert!(map.try_remove("t", MOMENT).await.unwrap());
    assert_eq!(map.remove("a").await.unwrap(), text("2"));
    assert!(map.contains_key("c").await.unwrap());
    assert!(map.contains_value("y").await.unwrap());
    assert!(!map.contains_value("w").await.unwrap());
    assert!(map.evict("c").await.unwrap());
    assert!(map.is_empty().await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_expire_as_they_were_told_to() {
    let (_member, _client, map) = texts().await;
    map.put_with("put", "v", Expiry::ttl(MOMENT)).await.unwrap();
    map.set_with("set", "v", Expiry::max_idle(MOMENT)).await.unwrap();
    map.put_transient_with("transient", "v", Expiry::ttl(MOMENT)).await.unwrap();
    map.put_if_absent_with("absent", "v", Expiry::ttl(MOMENT)).await.unwrap();
    map.put_transient("later", "v").await.unwrap();
    assert!(map.set_ttl("later", Some(MOMENT)).await.unwrap());
    map.set("stays", "v").await.unwrap();
    while map.size().await.unwrap() > 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(map.key_set().await.unwrap(), ["stays"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whole_map_operations_move_everything() {
    let (_member, _client, map) = texts().await;
    let entries: HashMap<String, String> = (0..1_000).map(|n| (format!("k{n}"), format!("v{n}"))).collect();
    map.put_all(entries.clone()).await.unwrap();
    let keys: Vec<String> = entries.keys().cloned().collect();
    let found: HashMap<String, String> = map.get_all(&keys).await.unwrap().into_iter().collect();
    assert_eq!(found, entries);
    assert_eq!(map.entry_set().await.unwrap().into_iter().collect::<HashMap<_, _>>(), entries);
    assert_eq!(map.values().await.unwrap().len(), 1_000);
    let walked = map.iter().with_batch(7).collect().await.unwrap();
    assert_eq!(walked.into_iter().collect::<HashMap<_, _>>(), entries);
    assert_eq!(map.iter_keys().with_batch(100).collect().await.unwrap().len(), 1_000);
    let view = map.entry_view("k1").await.unwrap().unwrap();
    assert_eq!(view.value, "v1");
    map.evict_all().await.unwrap();
    assert_eq!(map.size().await.unwrap(), 0);
    map.put_all(entries).await.unwrap();
    map.clear().await.unwrap();
    assert!(map.is_empty().await.unwrap());
    map.destroy().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_keep_others_out_until_they_are_given_back() {
    let (member, _client, map) = texts().await;
    let other: Map<String, String> = connect(&member).await.map("texts");
    let guard = map.locked("k").await.unwrap();
    assert!(map.is_locked("k").await.unwrap());
    assert!(!other.try_put("k", "no", MOMENT).await.unwrap());
    assert!(!other.try_lock("k", MOMENT, None).await.unwrap());
    guard.map().set("k", "held").await.unwrap();
    let waiting = other.put("k", "after");
    guard.unlock().await.unwrap();
    assert_eq!(waiting.await.unwrap(), text("held"));
    assert!(matches!(other.unlock("k").await, Err(ClientError::Server(_))));
    map.lock("k").await.unwrap();
    other.force_unlock("k").await.unwrap();
    assert!(!map.is_locked("k").await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_hears_changes_in_order() {
    let (_member, _client, map) = texts().await;
    let mut events = map.listen().await.unwrap();
    map.set("a", "1").await.unwrap();
    map.set("a", "2").await.unwrap();
    map.delete("a").await.unwrap();
    let mut values = Vec::new();
    for _ in 0..3 {
        let event = events.next().await.unwrap();
        values.push(event.unwrap().value);
    }
    assert_eq!(values, [text("1"), text("2"), None]);
    events.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pipeline_answers_in_the_order_of_its_calls() {
    let (_member, client, _) = texts().await;
    let map: Map<i32, String> = client.map("numbers");
    for depth in [1, 5, 100] {
        let mut writes = Pipelining::new(depth);
        for n in 0..1_000 {
            writes.add(map.set(&n, &n.to_string())).await;
        }
        for result in writes.results().await {
            result.unwrap();
        }
        let mut reads = Pipelining::new(depth);
        for n in (0..1_000).rev() {
            reads.add(map.get(&n)).await;
        }
        let found: Vec<Option<String>> = reads.results().await.into_iter().map(Result::unwrap).collect();
        let expected: Vec<Option<String>> = (0..1_000).rev().map(|n: i32| Some(n.to_string())).collect();
        assert_eq!(found, expected);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_values_and_wrong_types_are_told_apart() {
    let (_member, client, map) = texts().await;
    let blobs: Map<i32, Vec<u8>> = client.map("blobs");
    let value = vec![7; 30_000_000];
    blobs.set(&1, &value).await.unwrap();
    assert_eq!(blobs.get(&1).await.unwrap(), Some(value));
    map.set("a", "text").await.unwrap();
    let numbers: Map<String, i32> = client.map("texts");
    assert!(numbers.get("a").await.is_err());
    assert_eq!(map.get("a").await.unwrap(), text("text"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_cluster_name_is_refused() {
    let member = member();
    let addresses = vec![member.address().unwrap().to_string()];
    let config = ClientConfig { addresses, cluster_name: "somewhere else".to_owned(), ..ClientConfig::default() };
    assert!(Client::connect(config).await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_comes_back_to_a_member_that_restarts_on_its_port() {
    let first = member();
    let address = first.address().unwrap();
    let client = connect(&first).await;
    let map: Map<String, String> = client.map("texts");
    map.set("before", "1").await.unwrap();
    tokio::task::spawn_blocking(move || drop(first)).await.unwrap();
    let second = tokio::task::spawn_blocking(move || member_at(address)).await.unwrap();
    // A read is retried until the new member answers it.
    assert_eq!(map.get("before").await.unwrap(), None);
    map.set("after", "2").await.unwrap();
    assert_eq!(map.get("after").await.unwrap(), text("2"));
    client.shutdown().await;
    tokio::task::spawn_blocking(move || drop(second)).await.unwrap();
}
