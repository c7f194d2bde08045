//! The siege: no client request may take a member down.
//!
//! `cargo xtask siege` builds and runs it. It starts the real program with little memory, runs
//! bystanders with ordinary requests, and executes one hostile load after the other. It must not
//! depend on the internals of the program: it uses the protocols, and the kernel's data about the
//! process.
//!
//! ```text
//! loads ──► assault ──► Member ◄── Bystanders (gets, statements, HTTP; every reply checked)
//!              │          ▲            │
//!              │          └─ process   │
//!              ▼             ▼         ▼
//!           Aftermath ──► Siege::run: ended? memory? bystanders? doors? ──► Verdict ──► Report
//! ```
//!
//! # Conditions for a passed load
//!
//! - The process lives, and its memory never exceeded `--memory-max` plus a reserve
//!   ([`siege::RESERVE`]).
//! - Its reply was an expected reply.
//! - No bystander had an error or a wrong result.
//! - Its work ended as soon as no client waited for it, and the memory budget for requests in
//!   flight is free again.
//! - New clients of all three front doors are served afterwards, and the objects of the load can be
//!   removed.
//!
//! # Invariants
//!
//! - A load really tries to do harm.
//! - Every process that the siege starts ends with it.
//! - A lost member is replaced, and the run continues.
//!
//! [`loads`] contains the loads, one table for each kind. Start reading there, then at
//! [`siege::Siege::run`].

// A command-line tool prints to the terminal.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod assault;
mod bystanders;
mod cleanup;
mod latency;
mod load;
mod loads;
mod member;
mod process;
mod random;
mod report;
mod siege;
mod soak;
mod target;
mod wire;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::Parser;
use tokio::signal::unix::SignalKind;

use crate::load::{Kind, Load};
use crate::member::Settings;
use crate::report::{Report, Strictness};
use crate::siege::Siege;

/// Show that no client request can take a member down
#[derive(Debug, Parser)]
#[command(name = "filbert-siege")]
struct Arguments {
    /// The program under siege [default: filbert, next to this program]
    #[arg(long)]
    member: Option<PathBuf>,
    /// Its memory limit, as --memory-max
    #[arg(long, default_value = "512MiB")]
    memory: String,
    /// Let the process map at most this much, such as 4GiB (ulimit -v)
    #[arg(long)]
    address_space: Option<String>,
    /// Run only these loads
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Run only loads of this kind
    #[arg(long)]
    kind: Option<Kind>,
    /// Run a selection of at most two minutes; time-dependent results are reported, not judged
    #[arg(long)]
    short: bool,
    /// Run random mixes of one to four concurrent loads for this number of minutes
    #[arg(long)]
    minutes: Option<u64>,
    /// Seed of random choices of loads and mixes [default: different each time]
    #[arg(long)]
    seed: Option<u64>,
    /// Judge the latencies of bystanders and the end of work, on an otherwise idle machine
    #[arg(long)]
    strict: bool,
    /// Seconds until a load is considered hanging
    #[arg(long, default_value_t = 60)]
    patience: u64,
    /// Print the loads
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("filbert-siege: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool> {
    let all = loads::all();
    let chosen = arguments.choose(&all)?;
    if arguments.list {
        chosen.iter().for_each(|load| println!("{:10?} {:9} {}", load.kind, load.door.name(), load.name));
        println!("{} loads", chosen.len());
        return Ok(true);
    }
    let seed = arguments.seed.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        now.as_secs() % 100_000
    });
    let settings = Settings {
        program: program(arguments.member.as_ref())?,
        memory: arguments.memory.clone(),
        address_space: arguments.address_space.as_deref().map(bytes).transpose()?,
        seed,
        patience: Duration::from_secs(arguments.patience),
        configuration: None,
    };
    let memory_max = bytes(&arguments.memory)?;
    allow_many_files()?;
    println!("siege of {} loads with seed {seed}, {} of memory", chosen.len(), arguments.memory);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.context("a runtime for the loads")?;
    let passed = runtime.block_on(async {
        let mut terminated = tokio::signal::unix::signal(SignalKind::terminate()).context("listening to signals")?;
        tokio::select! {
            passed = besiege(arguments, &chosen, &settings, memory_max) => passed,
            _ = tokio::signal::ctrl_c() => bail!("interrupted"),
            _ = terminated.recv() => bail!("terminated"),
        }
    });
    // Do not wait for hanging loads.
    runtime.shutdown_background();
    passed
}

async fn besiege(arguments: &Arguments, chosen: &[&Load], settings: &Settings, memory_max: u64) -> Result<bool> {
    let strictness = Strictness { judges_end: arguments.strict || !arguments.short, judges_latency: arguments.strict };
    if let Some(minutes) = arguments.minutes {
        let time = Duration::from_secs(60 * minutes);
        return soak::run(chosen, settings, memory_max, time, strictness).await;
    }
    let mut report = Report::default();
    let mut siege = None;
    println!("{}", report::head());
    for load in chosen {
        let current = match siege.take() {
            Some(current) => current,
            None => begin(settings, memory_max).await?,
        };
        let verdict = current.run(&[*load]).await?;
        let is_lost = verdict.is_lost;
        report.add(verdict, strictness);
        if is_lost {
            println!("a new member takes its place; the last words of the old one:\n{}", current.log_tail());
        } else {
            siege = Some(current);
        }
    }
    Ok(report.finish())
}

async fn begin(settings: &Settings, memory_max: u64) -> Result<Siege> {
    let siege = Siege::begin(settings, memory_max).await?;
    let (resident, busy) = (process::mib(siege.pid().resident()?), 100.0 * siege.idle());
    println!(
        "a member with {} threads and {resident} MiB; bystanders take {busy:.0} % of a processor",
        siege.pid().threads()?
    );
    Ok(siege)
}

impl Arguments {
    /// Returns the selected loads, in table order.
    fn choose<'l>(&self, all: &'l [Load]) -> Result<Vec<&'l Load>> {
        if let Some(unknown) = self.only.iter().find(|name| all.iter().all(|load| load.name != **name)) {
            bail!("there is no load {unknown:?}; --list prints them all");
        }
        let is_chosen = |load: &&Load| {
            (self.only.is_empty() || self.only.iter().any(|name| name == load.name))
                && self.kind.is_none_or(|kind| kind == load.kind)
                && (!self.short || load.is_short)
        };
        Ok(all.iter().filter(is_chosen).collect())
    }
}

/// Raises the limit of open files to the maximum, for thousands of concurrent connections. The
/// member raises its own limit.
fn allow_many_files() -> Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).context("raising the limit of open files")
}

/// Returns the program under siege: the given path, or the file next to this program.
fn program(given: Option<&PathBuf>) -> Result<&'static Path> {
    let path = match given {
        Some(path) => path.clone(),
        None => std::env::current_exe().context("finding this program")?.with_file_name("filbert"),
    };
    if path.is_file() {
        // The member has a different working directory.
        let path = path.canonicalize().with_context(|| format!("finding {}", path.display()))?;
        // The path is used until the end of the run.
        return Ok(Box::leak(path.into_boxed_path()));
    }
    bail!("{} is not there; build it with `cargo build --release -p filbert`", path.display())
}

/// Parses an amount of memory such as 512MiB.
fn bytes(text: &str) -> Result<u64> {
    let at = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    let shift = match unit {
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => bail!("{text:?} is no amount of memory, such as 512MiB or 4GiB"),
    };
    let number: u64 = number.parse().with_context(|| format!("the amount of memory {text:?}"))?;
    Ok(number << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_memory_are_read() {
        assert_eq!(bytes("512MiB").unwrap(), 512 << 20);
        assert_eq!(bytes("4GiB").unwrap(), 4 << 30);
        assert!(bytes("4").is_err());
        assert!(bytes("xGiB").is_err());
    }
}
