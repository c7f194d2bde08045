//! The soak test: random mixes of loads for a given time. At the end the member must be in its
//! initial state.

use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::Instant;

use crate::load::Load;
use crate::member::Settings;
use crate::process::{MIB, mib};
use crate::random::Random;
use crate::report::{Report, Strictness};
use crate::siege::Siege;

/// The maximum number of concurrent loads.
const AT_ONCE_MAX: usize = 4;

/// The permitted memory growth between the first mix and the end. Data that is kept on purpose is
/// bounded: six caches of plans with 16 MiB each, the log of ended statements, the allocator's
/// pages.
const KEPT_MAX: u64 = 128 * MIB;

/// The time for the member to return memory.
const SETTLE: Duration = Duration::from_secs(10);

/// Runs mixes until the time is over. Returns whether nothing failed.
pub(crate) async fn run(
    loads: &[&Load],
    settings: &Settings,
    memory_max: u64,
    time: Duration,
    strictness: Strictness,
) -> Result<bool> {
    let loads: Vec<&Load> = loads.iter().copied().filter(|load| load.open.is_none()).collect();
    if loads.is_empty() {
        bail!("no load is left to draw from");
    }
    let (mut random, deadline) = (Random::new(settings.seed), Instant::now() + time);
    let mut report = Report::default();
    let mut siege = Siege::begin(settings, memory_max).await?;
    let mut level = None;
    let mut grew = Vec::new();
    while Instant::now() < deadline {
        let mix = draw(&loads, &mut random);
        let verdict = siege.run(&mix).await?;
        let is_lost = verdict.is_lost;
        report.add(verdict, strictness);
        if is_lost {
            println!("the member's last words:\n{}", siege.log_tail());
            grew.extend(settle(&siege, level).await);
            siege = Siege::begin(settings, memory_max).await?;
            level = None;
        } else if level.is_none() {
            level = Some(siege.memory_falls_to(0, Duration::from_secs(2)).await?);
        }
    }
    grew.extend(settle(&siege, level).await);
    let passed = report.finish();
    grew.iter().for_each(|line| println!("{line}"));
    Ok(passed && grew.is_empty())
}

/// Checks the memory of the member at the end. Returns the failure, if any.
async fn settle(siege: &Siege, level: Option<u64>) -> Option<String> {
    let level = level?;
    let resident = siege.memory_falls_to(level + KEPT_MAX, SETTLE).await.ok()?;
    println!("memory after the first mix {} MiB, in the end {} MiB", mib(level), mib(resident));
    let grew = resident > level + KEPT_MAX;
    grew.then(|| {
        format!("memory has grown from {} to {} MiB, by more than {}", mib(level), mib(resident), mib(KEPT_MAX))
    })
}

/// Draws one to four different loads.
fn draw<'l>(loads: &[&'l Load], random: &mut Random) -> Vec<&'l Load> {
    let count = 1 + random.below(AT_ONCE_MAX);
    let mut mix: Vec<&Load> = Vec::new();
    while mix.len() < count.min(loads.len()) {
        let Some(load) = loads.get(random.below(loads.len())) else { break };
        if mix.iter().all(|other| other.name != load.name) {
            mix.push(load);
        }
    }
    mix
}
