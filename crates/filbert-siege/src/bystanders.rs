//! Bystanders: ordinary clients that send requests at a steady rate and check every reply. They
//! must not notice the siege.
//!
//! They run on a separate thread with separate connections. The latency of a request starts at its
//! due time, not at its send time, so it includes the time for which a slow member delays its
//! clients.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::latency::Latencies;
use crate::target::Target;
use crate::wire::http;

/// The number of keys and rows that bystanders use.
pub(crate) const KNOWN: i32 = 1_000;

/// The map and the table of bystanders. Loads never use these names.
pub(crate) const MAP: &str = "known-entries";
pub(crate) const TABLE: &str = "known";

/// The interval between gets: 500 per second.
const GET_INTERVAL: Duration = Duration::from_millis(2);

/// The interval between statements over PostgreSQL's protocol: 50 per second.
const STATEMENT_INTERVAL: Duration = Duration::from_millis(20);

/// The interval between statements over HTTP.
const HTTP_INTERVAL: Duration = Duration::from_millis(100);

/// The timeout of a request. It is the longest delay that a user would still accept.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// The number of error texts that are kept for each lane.
const ERRORS_KEPT: usize = 3;

/// The statements of bystanders. Their texts identify them in lists of running statements.
pub(crate) const STATEMENTS: [&str; 3] = [
    "SELECT n FROM known WHERE id = $1",
    "SELECT count(*) AS c, sum(n) AS s FROM known WHERE id <= $1",
    "SELECT n FROM known WHERE id = ?",
];

/// The value of a bystander's key or row.
fn value_of(key: i32) -> i32 {
    key * 7 + 1
}

/// The observations of one kind of bystander.
#[derive(Debug, Clone)]
pub(crate) struct Lane {
    pub(crate) latencies: Latencies,
    /// The number of errors and wrong results.
    pub(crate) failed: u64,
    /// The texts of the first errors.
    pub(crate) errors: Vec<String>,
    under_way: u64,
}

impl Lane {
    fn new() -> Result<Lane> {
        Ok(Lane { latencies: Latencies::new()?, failed: 0, errors: Vec::new(), under_way: 0 })
    }
}

/// The kinds of bystanders.
#[derive(Debug, Clone, Copy)]
enum Which {
    Gets,
    Statements,
    Http,
}

/// The observations of all bystanders.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) gets: Lane,
    pub(crate) statements: Lane,
    pub(crate) http: Lane,
}

impl Seen {
    fn new() -> Result<Seen> {
        Ok(Seen { gets: Lane::new()?, statements: Lane::new()?, http: Lane::new()? })
    }

    pub(crate) fn lanes(&self) -> [(&'static str, &Lane); 3] {
        [("gets", &self.gets), ("statements", &self.statements), ("http", &self.http)]
    }

    fn lane(&mut self, which: Which) -> &mut Lane {
        match which {
            Which::Gets => &mut self.gets,
            Which::Statements => &mut self.statements,
            Which::Http => &mut self.http,
        }
    }
}

/// The shared record of observations.
#[derive(Clone)]
struct Book(Arc<Mutex<Seen>>);

impl Book {
    fn with<T>(&self, work: impl FnOnce(&mut Seen) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes a request with the given due time and records its result.
    async fn observe(&self, which: Which, due: Instant, request: impl Future<Output = Result<()>>) {
        self.with(|seen| seen.lane(which).under_way += 1);
        let result = timeout(ANSWER_MAX, request).await;
        let result = result.unwrap_or_else(|_| Err(anyhow!("no answer within {ANSWER_MAX:?}")));
        self.with(|seen| {
            let lane = seen.lane(which);
            lane.under_way -= 1;
            lane.latencies.record(due.elapsed());
            if let Err(error) = result {
                lane.failed += 1;
                if lane.errors.len() < ERRORS_KEPT {
                    lane.errors.push(format!("{error:#}"));
                }
            }
        });
    }
}

/// The running bystanders. Dropping the value stops them.
pub(crate) struct Bystanders {
    book: Book,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Bystanders {
    /// Creates the data of the bystanders and starts them.
    pub(crate) async fn start(target: Target) -> Result<Bystanders> {
        prepare(target).await?;
        let book = Book(Arc::new(Mutex::new(Seen::new()?)));
        let (stop, stopped) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("a runtime")?;
        let own = book.clone();
        let thread = std::thread::Builder::new().name("bystanders".to_owned()).spawn(move || {
            runtime.block_on(async {
                let mut stopped = stopped;
                tokio::select! {
                    _ = stopped.wait_for(|stop| *stop) => {}
                    () = stand_by(target, &own) => {}
                }
            });
            // Requests in flight end with the runtime.
            runtime.shutdown_background();
        });
        Ok(Bystanders { book, stop, thread: Some(thread.context("a thread for bystanders")?) })
    }

    /// Returns the observations so far, after all earlier requests are answered, and resets them. A
    /// request that takes too long is counted as an error by then.
    pub(crate) async fn seen(&self) -> Result<Seen> {
        let deadline = Instant::now() + ANSWER_MAX + Duration::from_secs(1);
        let quiet = |seen: &Seen| seen.lanes().iter().all(|(_, lane)| lane.under_way <= 1);
        while !self.book.with(|seen| quiet(seen)) && Instant::now() < deadline {
            sleep(Duration::from_millis(5)).await;
        }
        Ok(self.book.with(|seen| {
            let old = seen.clone();
            for which in [Which::Gets, Which::Statements, Which::Http] {
                let lane = seen.lane(which);
                lane.latencies.clear();
                lane.failed = 0;
                lane.errors.clear();
            }
            old
        }))
    }
}

impl Drop for Bystanders {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            // The thread does not panic. Errors are in the record.
            let _ = thread.join();
        }
    }
}

/// Creates the map and the table of the bystanders.
async fn prepare(target: Target) -> Result<()> {
    let client = target.client().await?;
    client.map::<i32, i32>(MAP).put_all((1..=KNOWN).map(|key| (key, value_of(key)))).await?;
    client.shutdown().await;
    let mut session = target.session().await?;
    session.done(&format!("CREATE TABLE {TABLE} (id INT PRIMARY KEY, n INT)")).await?;
    let fill = format!("INSERT INTO {TABLE} SELECT g, g * 7 + 1 FROM generate_series(1, {KNOWN}) AS s(g)");
    session.done(&fill).await?;
    Ok(())
}

async fn stand_by(target: Target, book: &Book) {
    tokio::join!(
        until_told(book, Which::Gets, || gets(target, book)),
        until_told(book, Which::Statements, || statements(target, book)),
        until_told(book, Which::Http, || http_statements(target, book)),
    );
}

/// Runs `work` again after each failure. Failures are recorded.
async fn until_told<F: Future<Output = Result<()>>>(book: &Book, which: Which, work: impl Fn() -> F) {
    loop {
        let Err(error) = work().await else { continue };
        book.observe(which, Instant::now(), async { Err(error) }).await;
        sleep(Duration::from_millis(100)).await;
    }
}

/// Due times at a steady rate. Missed ticks fire immediately.
fn ticks(period: Duration) -> tokio::time::Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    ticks
}

/// Returns the next key. The sequence visits all keys.
fn next_key(key: &mut i32) -> i32 {
    *key = (*key + 367) % KNOWN;
    *key + 1
}

async fn gets(target: Target, book: &Book) -> Result<()> {
    let client = target.client().await?;
    let map = client.map::<i32, i32>(MAP);
    let (mut ticks, mut key) = (ticks(GET_INTERVAL), 0);
    loop {
        let due = ticks.tick().await;
        let key = next_key(&mut key);
        // The request is sent immediately. Its reply is awaited concurrently with later requests.
        let call = map.get(&key);
        let book = book.clone();
        tokio::spawn(async move {
            let check = async {
                let value = call.await?;
                ensure!(value == Some(value_of(key)), "key {key} has {value:?}, expected {}", value_of(key));
                Ok(())
            };
            book.observe(Which::Gets, due, check).await;
        });
    }
}

async fn statements(target: Target, book: &Book) -> Result<()> {
    let words = format!("host={} port={} user=bystander dbname=filbert", target.postgres.ip(), target.postgres.port());
    let (client, connection) = tokio_postgres::connect(&words, tokio_postgres::NoTls).await?;
    let connection = tokio::spawn(connection);
    let [by_key, summary, _] = STATEMENTS;
    let (by_key, summary) = (client.prepare(by_key).await?, client.prepare(summary).await?);
    let (client, mut ticks, mut key) = (Arc::new(client), ticks(STATEMENT_INTERVAL), 0);
    let mut is_summary = false;
    while !connection.is_finished() {
        let due = ticks.tick().await;
        let key = next_key(&mut key);
        is_summary = !is_summary;
        let statement = if is_summary { summary.clone() } else { by_key.clone() };
        let (client, book) = (client.clone(), book.clone());
        tokio::spawn(async move {
            let check = async {
                let row = client.query_one(&statement, &[&key]).await?;
                if is_summary {
                    let (count, sum): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
                    let expected = (1..=key).map(value_of).map(i64::from).sum::<i64>();
                    ensure!((count, sum) == (i64::from(key), expected), "{count} rows up to {key} with the sum {sum}");
                } else {
                    let value: i32 = row.try_get(0)?;
                    ensure!(value == value_of(key), "row {key} has {value}, expected {}", value_of(key));
                }
                Ok(())
            };
            book.observe(Which::Statements, due, check).await;
        });
    }
    bail!("the connection to PostgreSQL's door was lost")
}

async fn http_statements(target: Target, book: &Book) -> Result<()> {
    let mut connection = target.http().await?;
    let (mut ticks, mut key) = (ticks(HTTP_INTERVAL), 0);
    loop {
        let due = ticks.tick().await;
        let key = next_key(&mut key);
        let mut is_open = true;
        let body = serde_json::json!({ "stmt": STATEMENTS[2], "args": [key] }).to_string();
        let check = async {
            is_open = false;
            let answer = connection.ask(&http::post("", body.as_bytes())).await?;
            is_open = !answer.closes;
            let rows = format!("[[{}]]", value_of(key));
            ensure!(answer.status == 200 && answer.body.contains(&rows), "{} {:.200}", answer.status, answer.body);
            Ok(())
        };
        book.observe(Which::Http, due, check).await;
        if !is_open {
            connection = target.http().await?;
        }
    }
}
