//! The clients of the chaos driver in Rust: `chaos_worker LIMIT_S`. It reads an operation from each
//! line of standard input (JSON) and writes its result to a line of standard output, under the
//! operation's number; operations of different threads of a client overlap. It ends with its input.
//! See e2e/chaos/worker.go.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, stdin};
use std::sync::Arc;
use std::time::Duration;

use filbert_client::{Client, ClientConfig, ClientError, Routing, code};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// How long the members may take to let a client in.
const CONNECT_SECONDS_MAX: u64 = 120;

/// The result of an operation: the value that was read or replaced, and a boolean result.
type Answer = (Option<String>, bool);

/// An operation, as the driver asks for it.
struct Operation(Value);

impl Operation {
    fn text(&self, field: &str) -> &str {
        self.0.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    fn number(&self, field: &str) -> i64 {
        self.0.get(field).and_then(Value::as_i64).unwrap_or_default()
    }

    /// How long a lock is waited for.
    fn wait(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.number("wait_ms")).unwrap_or_default())
    }
}

/// Clients by name, and the ids of their threads by the driver's numbers.
struct Clients {
    limit: Duration,
    connected: Mutex<HashMap<String, Client>>,
    threads: Mutex<HashMap<(String, i64), i64>>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let limit = std::env::args().nth(1).ok_or("usage: chaos_worker LIMIT_S")?.parse()?;
    let clients = Arc::new(Clients {
        limit: Duration::from_secs_f64(limit),
        connected: Mutex::default(),
        threads: Mutex::default(),
    });
    let runtime = Runtime::new()?;
    println!("ready");
    for line in stdin().lock().lines() {
        let operation = Operation(serde_json::from_str(&line?)?);
        let clients = Arc::clone(&clients);
        runtime.spawn(async move { println!("{}", clients.answer(&operation).await) });
    }
    Ok(())
}

impl Clients {
    async fn answer(&self, operation: &Operation) -> Value {
        let id = operation.number("id");
        let result = match operation.text("kind") {
            "connect" => self.connect(operation).await,
            "close" => {
                let client = self.connected.lock().remove(operation.text("client"));
                if let Some(client) = client {
                    client.shutdown().await;
                }
                Ok((None, true))
            }
            _ => {
                let limit = self.limit + operation.wait();
                match tokio::time::timeout(limit, self.make(operation)).await {
                    Ok(result) => result,
                    Err(_) => return json!({"id": id, "outcome": "unknown", "error": "TookTooLong"}),
                }
            }
        };
        match result {
            Ok((value, truth)) => {
                json!({"id": id, "outcome": "acknowledged", "value": value.unwrap_or_default(), "truth": truth})
            }
            Err(error) => {
                eprintln!("{}: {error}", operation.0);
                let outcome = if is_refusal(operation.text("kind"), &error) { "refused" } else { "unknown" };
                json!({"id": id, "outcome": outcome, "error": kind(&error)})
            }
        }
    }

    async fn connect(&self, operation: &Operation) -> Result<Answer, ClientError> {
        let name = operation.text("client").to_owned();
        let config = ClientConfig {
            addresses: operation.text("value").split(',').map(str::to_owned).collect(),
            name: Some(name.clone()),
            routing: if operation.text("routing") == "unisocket" { Routing::SingleMember } else { Routing::AllMembers },
            cluster_connect_timeout: Duration::from_secs(CONNECT_SECONDS_MAX),
            invocation_timeout: self.limit,
            ..ClientConfig::default()
        };
        let client = Client::connect(config).await?;
        self.connected.lock().insert(name, client);
        Ok((None, true))
    }

    async fn make(&self, operation: &Operation) -> Result<Answer, ClientError> {
        let name = operation.text("client");
        let client = self.connected.lock().get(name).cloned().ok_or(ClientError::Shutdown)?;
        let thread = (name.to_owned(), operation.number("thread"));
        let thread = *self.threads.lock().entry(thread).or_insert_with(|| client.new_thread());
        let map = client.map::<String, String>(operation.text("map")).on_thread(thread);
        let (key, value) = (operation.text("key"), operation.text("value"));
        Ok(match operation.text("kind") {
            "get" => (map.get(key).await?, true),
            "put" => (map.put(key, value).await?, true),
            "set" => {
                map.set(key, value).await?;
                (None, true)
            }
            "putIfAbsent" => (map.put_if_absent(key, value).await?, true),
            "replaceIfSame" => (None, map.replace_if_same(key, operation.text("expected"), value).await?),
            "remove" => (map.remove(key).await?, true),
            "tryLock" => (None, map.try_lock(key, operation.wait(), None).await?),
            "unlock" => match map.unlock(key).await {
                Err(error) if error.code() == Some(code::ILLEGAL_MONITOR_STATE) => (None, false),
                result => (None, result.map(|()| true)?),
            },
            "sqlUpdate" => {
                let text = format!("UPDATE {} SET this = ? WHERE __key = ?", operation.text("map"));
                let updating = client.sql(&text, &[&value, &key]);
                let updated = updating.await?.update_count();
                (None, updated.is_some_and(|rows| rows > 0))
            }
            other => {
                eprintln!("no such operation: {other}");
                return Err(ClientError::AlreadyCompleted);
            }
        })
    }
}

/// Whether nothing was made: no member took the request, however often the client sent it. A call
/// that the client repeats after its connection was lost may have been taken the first time.
fn is_refusal(kind: &str, error: &ClientError) -> bool {
    if matches!(kind, "tryLock" | "unlock" | "sqlUpdate") {
        return false;
    }
    match error {
        ClientError::NotConnected { .. } | ClientError::Overloaded { .. } => true,
        ClientError::Timeout { last, .. } => is_refusal(kind, last),
        ClientError::Server(error) => matches!(
            error.code,
            code::WRONG_TARGET
                | code::TARGET_NOT_MEMBER
                | code::HAZELCAST_INSTANCE_NOT_ACTIVE
                | code::RETRYABLE_HAZELCAST
                | code::PARTITION_MIGRATING
        ),
        _ => false,
    }
}

/// The kind of an error, for the counts of errors.
fn kind(error: &ClientError) -> String {
    match error {
        ClientError::Server(error) => {
            let class = error.class_name.rsplit('.').next().unwrap_or_default();
            class.trim_end_matches("Exception").to_owned()
        }
        ClientError::Sql(error) => format!("SQL {}", error.code),
        ClientError::Disconnected { .. } => "TargetDisconnected".to_owned(),
        ClientError::NotConnected { .. } => "NotConnected".to_owned(),
        ClientError::Overloaded { .. } => "Overloaded".to_owned(),
        ClientError::Timeout { last, .. } => format!("Timeout after {}", kind(last)),
        ClientError::Shutdown => "ClientNotActive".to_owned(),
        other => other.to_string(),
    }
}
