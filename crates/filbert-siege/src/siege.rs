//! Runs loads against a member: the attack, its end, its cost, and the verdict.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tokio::time::{Instant, sleep, timeout};

use crate::assault;
use crate::bystanders::{Bystanders, STATEMENTS, Seen};
use crate::cleanup;
use crate::load::Load;
use crate::member::{Member, Settings};
use crate::process::{MIB, Pid};
use crate::target::Target;
use crate::wire::http;

/// The permitted memory beyond `--memory-max`: the program and its threads, the caches of the
/// allocator, the plan of a statement during planning, and result pages in flight.
pub(crate) const RESERVE: u64 = 256 * MIB;

/// The bytes that statements and buffers may take beyond `--memory-max` if maps fill it: an eighth
/// and a sixteenth, within limits, as `docs/guide/limits.md` states it.
fn guaranteed(memory_max: u64) -> u64 {
    (memory_max / 8).clamp(64 * MIB, 1024 * MIB) + (memory_max / 16).clamp(32 * MIB, 512 * MIB)
}

/// The time limit for the end of a load's work after the last client stopped waiting.
pub(crate) const ENDED_MAX: Duration = Duration::from_millis(200);

/// The tolerance for the machine: two windows of [`WINDOW`] to detect the end, threads of the load
/// that share the processors, and compilers that may run at the same time.
pub(crate) const ENDED_TOLERANCE: Duration = Duration::from_millis(800);

/// The time after which work is considered endless. Then the member is replaced.
const ENDLESS: Duration = Duration::from_secs(30);

/// The length of a window in which processor time is measured.
const WINDOW: Duration = Duration::from_millis(50);

/// The processor time per window, in addition to twice the bystanders' need, at which the member is
/// still considered idle. It covers sweeps, the allocator, and the return of memory.
const IDLE_SLACK: Duration = Duration::from_millis(8);

/// The timeout for the removal of a load's objects. Ten thousand tables are dropped one by one.
const CLEANUP_MAX: Duration = Duration::from_secs(60);

/// The permitted use of the budget after a load: requests of bystanders, and buffers that are kept
/// for a while.
const BUDGET_KEPT_MAX: u64 = 8 * MIB;

/// The timeout for the first reply to a new client after a load.
const DOOR_MAX: Duration = Duration::from_secs(10);

/// The result of a load.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) name: String,
    pub(crate) door: &'static str,
    pub(crate) told: String,
    /// The failures. Empty if the load passed.
    pub(crate) wrong: Vec<String>,
    /// The peak memory of the member and its current memory, in bytes.
    pub(crate) peak: u64,
    pub(crate) resident: u64,
    /// The time from the end of the last client's wait until the member was idle. `None` if the
    /// work did not end.
    pub(crate) ended: Option<Duration>,
    pub(crate) seen: Seen,
    /// The permitted peak, in bytes.
    pub(crate) peak_max: u64,
    /// The reason of a known failure.
    pub(crate) open: Option<&'static str>,
    /// Whether the member is unusable.
    pub(crate) is_lost: bool,
}

/// A member with its bystanders.
pub(crate) struct Siege {
    /// Declared before the member, so that the bystanders stop first.
    bystanders: Bystanders,
    member: Member,
    memory_max: u64,
    patience: Duration,
    /// The number of processors that bystanders keep busy.
    idle: f64,
}

impl Siege {
    /// Starts a member, its bystanders, and creates the data for the loads. Then it measures the
    /// processor use of the bystanders.
    pub(crate) async fn begin(settings: &Settings, memory_max: u64) -> Result<Siege> {
        let member = Member::start(settings)?;
        cleanup::furnish(member.target()).await?;
        let bystanders = Bystanders::start(member.target()).await.context("starting bystanders")?;
        let mut siege = Siege { bystanders, member, memory_max, patience: settings.patience, idle: 0.0 };
        // The bystanders first authenticate and plan their statements.
        sleep(Duration::from_secs(1)).await;
        siege.idle = siege.busy(Duration::from_secs(2)).await?;
        siege.bystanders.seen().await?;
        Ok(siege)
    }

    pub(crate) fn pid(&self) -> Pid {
        self.member.pid()
    }

    pub(crate) fn idle(&self) -> f64 {
        self.idle
    }

    /// The last lines of the member's log.
    pub(crate) fn log_tail(&self) -> String {
        self.member.log_tail()
    }

    /// Returns the average number of busy processors over this time.
    async fn busy(&self, time: Duration) -> Result<f64> {
        let (before, begun) = (self.pid().processor_time()?, Instant::now());
        sleep(time).await;
        let used = self.pid().processor_time()?.saturating_sub(before);
        Ok(used.as_secs_f64() / begun.elapsed().as_secs_f64())
    }

    /// Runs one or several concurrent loads and judges the result. The replies to several loads are
    /// not judged, because the loads compete for resources.
    pub(crate) async fn run(&self, loads: &[&Load]) -> Result<Verdict> {
        let target = self.member.target();
        self.bystanders.seen().await?;
        // An ended member has no memory to reset.
        let _ = self.pid().forget_peak();
        let attacks = loads.iter().map(|load| assault::run(load, target, self.patience));
        let aftermaths = join_all(attacks).await;
        let over = aftermaths.iter().map(|aftermath| aftermath.over).max().unwrap_or_else(Instant::now);
        let ended = self.until_idle(over).await;
        let seen = self.bystanders.seen().await?;
        let mut verdict = Verdict {
            name: names(loads),
            door: loads.first().map_or("", |load| if loads.len() == 1 { load.door.name() } else { "several" }),
            told: aftermaths.iter().map(|aftermath| aftermath.told.as_str()).collect::<Vec<_>>().join(" | "),
            wrong: Vec::new(),
            peak: self.pid().peak().unwrap_or(0),
            resident: self.pid().resident().unwrap_or(0),
            ended,
            seen,
            peak_max: self.memory_max
                + RESERVE
                + if loads.iter().any(|load| load.fills) { guaranteed(self.memory_max) } else { 0 },
            open: loads.iter().find_map(|load| load.open),
            is_lost: false,
        };
        if loads.len() == 1 {
            verdict.wrong.extend(aftermaths.into_iter().filter_map(|aftermath| aftermath.wrong));
        }
        self.judge(&mut verdict, target).await;
        Ok(verdict)
    }

    async fn judge(&self, verdict: &mut Verdict, target: Target) {
        if let Some(end) = self.member.end() {
            verdict.wrong.insert(0, format!("the member {end}"));
            verdict.is_lost = true;
            return;
        }
        let is_beyond = verdict.peak > verdict.peak_max;
        if is_beyond {
            let (peak, allowed) = (verdict.peak / MIB, verdict.peak_max / MIB);
            verdict.wrong.push(format!("{peak} MiB of memory, at most {allowed} are allowed"));
        }
        for (name, lane) in verdict.seen.lanes() {
            if lane.failed > 0 {
                let of = lane.latencies.count();
                verdict.wrong.push(format!("{} of {of} {name} failed: {}", lane.failed, lane.errors.join("; ")));
            }
        }
        if verdict.ended.is_none() {
            verdict.wrong.push(format!("still at work {ENDLESS:?} after its end"));
            verdict.is_lost = true;
        }
        for (door, result) in doors(target).await {
            if let Err(error) = result {
                verdict.wrong.push(format!("{door} serves no new client: {error:#}"));
                verdict.is_lost = true;
            }
        }
        if verdict.is_lost {
            return;
        }
        let removed = timeout(CLEANUP_MAX, cleanup::remove_what_loads_made(target)).await;
        if let Err(error) = removed.context("no end in time").and_then(|removed| removed) {
            verdict.wrong.push(format!("what it made cannot be removed: {error:#}"));
            verdict.is_lost = true;
        }
        if let Err(error) = self.budget_is_free(target).await {
            verdict.wrong.push(format!("{error:#}"));
            verdict.is_lost = true;
        }
        // The member may keep the memory, and the next load would be judged by it.
        verdict.is_lost |= is_beyond;
    }

    /// Waits until the member is only as busy as bystanders require and executes no other
    /// statement. Returns the time since `over`.
    async fn until_idle(&self, over: Instant) -> Option<Duration> {
        let mut running = String::new();
        // A dead member does no more work and cannot be queried.
        while over.elapsed() < ENDLESS && self.member.end().is_none() {
            let (before, begun) = (self.pid().processor_time().ok()?, Instant::now());
            sleep(WINDOW).await;
            let used = self.pid().processor_time().ok()?.saturating_sub(before);
            let limit = begun.elapsed().mul_f64(2.0 * self.idle) + IDLE_SLACK;
            if used > limit {
                continue;
            }
            match timeout(DOOR_MAX, statements_running(self.member.target())).await {
                Ok(Ok(none)) if none.is_empty() => return Some(begun.saturating_duration_since(over)),
                Ok(Ok(some)) => running = some,
                Ok(Err(_)) | Err(_) => {}
            }
        }
        if !running.is_empty() {
            eprintln!("still running: {running:.200}");
        }
        None
    }

    /// Waits until finished requests have released their memory. A budget that stays full would
    /// reject all clients.
    async fn budget_is_free(&self, target: Target) -> Result<()> {
        let begun = Instant::now();
        loop {
            let taken = budget_taken(target).await?;
            if taken <= BUDGET_KEPT_MAX {
                return Ok(());
            }
            ensure!(begun.elapsed() < DOOR_MAX, "{} MiB of the budget are still taken", taken / MIB);
            sleep(WINDOW).await;
        }
    }

    /// Waits until the member's memory is at most `bytes`, or until the timeout. Returns the
    /// memory.
    pub(crate) async fn memory_falls_to(&self, bytes: u64, time: Duration) -> Result<u64> {
        let deadline = Instant::now() + time;
        loop {
            let resident = self.pid().resident()?;
            if resident <= bytes || Instant::now() >= deadline {
                return Ok(resident);
            }
            sleep(Duration::from_millis(100)).await;
        }
    }
}

/// The names of concurrent loads.
fn names(loads: &[&Load]) -> String {
    loads.iter().map(|load| load.name).collect::<Vec<_>>().join(" + ")
}

/// Awaits all futures concurrently.
async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut pending: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        let mut all = true;
        for (future, output) in &mut pending {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(ready) => *output = Some(ready),
                    std::task::Poll::Pending => all = false,
                }
            }
        }
        if all { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    pending.into_iter().filter_map(|(_, output)| output).collect()
}

/// Returns a running statement that is neither a bystander's nor this query itself. Empty if there
/// is none.
async fn statements_running(target: Target) -> Result<String> {
    const QUESTION: &str = "SELECT stmt FROM sys.jobs";
    let mut session = target.session().await?;
    session.send(&crate::wire::postgres::query(QUESTION)).await?;
    let mut found = String::new();
    loop {
        match session.next().await? {
            b'Z' => return Ok(found),
            b'D' => {
                // The row has one column: number of columns, length, text.
                let text = String::from_utf8_lossy(session.body().get(6..).unwrap_or_default()).into_owned();
                if text != QUESTION && !STATEMENTS.contains(&text.as_str()) {
                    found = text;
                }
            }
            _ => {}
        }
    }
}

/// Returns the used bytes of the memory budget for requests in flight, from the member's metrics.
async fn budget_taken(target: Target) -> Result<u64> {
    const METRIC: &str = "filbert_buffer_bytes ";
    let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let asked = async { target.http().await?.ask(request).await };
    let answer = timeout(DOOR_MAX, asked).await.context("no metrics in time")??;
    let value = answer.body.lines().find_map(|line| line.strip_prefix(METRIC));
    let value = value.with_context(|| format!("no {METRIC}among the metrics"))?;
    Ok(value.trim().parse::<f64>().context("reading a metric")? as u64)
}

/// Checks that each front door serves a new client.
async fn doors(target: Target) -> [(&'static str, Result<()>); 3] {
    let limited = async |work: std::pin::Pin<Box<dyn Future<Output = Result<()>>>>| {
        timeout(DOOR_MAX, work).await.context("no answer in time")?
    };
    let postgres = limited(Box::pin(async move {
        let rows = target.session().await?.done("SELECT n FROM known WHERE id = 1").await?;
        ensure!(rows == 1, "{rows} rows instead of one");
        Ok(())
    }));
    let over_http = limited(Box::pin(async move {
        let answer = target.http().await?.ask(&http::statement("SELECT n FROM known WHERE id = 1")).await?;
        ensure!(answer.status == 200 && answer.body.contains("[[8]]"), "{} {:.200}", answer.status, answer.body);
        Ok(())
    }));
    let hazelcast = limited(Box::pin(async move {
        let client = target.client().await?;
        let value = client.sql("SELECT 7", &[]).await?.scalar().await?;
        client.shutdown().await;
        ensure!(value.is_some(), "no value of SELECT 7");
        Ok(())
    }));
    [("postgres", postgres.await), ("http", over_http.await), ("hazelcast", hazelcast.await)]
}
