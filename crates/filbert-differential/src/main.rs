//! The differential test: Filbert and another database must return the same results for generated
//! statements.
//!
//! `cargo xtask differential` builds and runs it. It starts PostgreSQL, a Hazelcast member and
//! Filbert, creates the same tables in them, sends them the same statements in several ways, and
//! reports minimized differences. It must not depend on the internals of the servers: it uses the
//! protocols.
//!
//! ```text
//! seed ──► generate ──► tree ──► print ──► session ──► PostgreSQL, Hazelcast ──┐
//!                        ▲                    └──────► Filbert ────────────────┴─► compare
//!                        │                                                            │
//!                        └───────── shrink ◄──────────────── different ◄──────────────┤
//!                                                                                     ▼
//!                                                                       report ◄─── known
//! ```
//!
//! # Invariants
//!
//! - The same seed generates the same statements in the same order.
//! - Rejections by Filbert are counted by cause. Different results are differences.
//! - A difference is a failure unless a file lists it as a decision or as an open defect.
//! - Every process that a run starts ends with it.
//!
//! Start reading at [`rounds::run`]. [`partition::run`] and [`races::run`] need no other server.

// A command-line tool prints to the terminal.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod calls;
mod cases;
mod compare;
mod finding;
mod generate;
mod known;
mod member;
mod outcome;
mod partition;
mod peer;
mod postgres;
mod races;
mod random;
mod report;
mod rounds;
mod server;
mod session;
mod tree;
mod untyped;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};

use crate::generate::functions::Functions;
use crate::known::KnownDifferences;
use crate::member::Member;
use crate::peer::{Filbert, Hazelcast, Postgres};
use crate::postgres::Connection;
use crate::report::Report;
use crate::rounds::Span;
use crate::session::Session;
use crate::tree::Dialect;

/// Compare Filbert's results with the results of other databases
#[derive(Debug, Parser)]
#[command(name = "filbert-differential")]
struct Arguments {
    /// Seed of the statements [default: different each time]
    #[arg(long)]
    seed: Option<u64>,
    /// The first round; with a seed, it repeats that round
    #[arg(long, default_value_t = 0)]
    round: u64,
    /// Number of rounds of each part [default: limited by time]
    #[arg(long)]
    rounds: Option<u64>,
    /// Maximum duration of each part in seconds [default: 60, or unlimited if rounds are given]
    #[arg(long)]
    seconds: Option<u64>,
    /// Maximum duration of each part in minutes
    #[arg(long, conflicts_with = "seconds")]
    minutes: Option<u64>,
    /// Part of the comparison to run
    #[arg(long, default_value = "all")]
    dialect: Part,
    /// The program under test [default: next to this program]
    #[arg(long)]
    filbert: Option<PathBuf>,
    /// Command of a Hazelcast member, as a JSON array of words [default: skip Hazelcast's dialect]
    #[arg(long, env = "FILBERT_DIFFERENTIAL_MEMBER")]
    member: Option<String>,
    /// File to which differences are appended
    #[arg(long)]
    output: Option<PathBuf>,
    /// Directory of the regression cases
    #[arg(long, default_value = "crates/filbert-differential/cases")]
    cases: PathBuf,
    /// Print only the documentation page of decisions
    #[arg(long)]
    markdown: bool,
}

/// A part of the comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// PostgreSQL's dialect, with PostgreSQL
    Postgres,
    /// Hazelcast's dialect, with a Hazelcast member
    Hazelcast,
    /// Calls of functions with literals in Hazelcast's dialect, with a Hazelcast member
    Calls,
    /// Conditions that partition rows into three parts
    Tlp,
    /// Concurrent connections, checked against a model
    Races,
    All,
}

/// The default duration of a part, in seconds.
const SECONDS: u64 = 60;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("filbert-differential: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the selected parts. Returns false if there are unlisted differences.
fn run(arguments: &Arguments) -> Result<bool> {
    let known = KnownDifferences::read()?;
    if arguments.markdown {
        print!("{}", known.markdown());
        return Ok(true);
    }
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs());
    let seed = arguments.seed.unwrap_or_else(now);
    println!("seed {seed}");
    let program = match &arguments.filbert {
        Some(program) => program.clone(),
        None => std::env::current_exe().context("finding this program")?.with_file_name("filbert"),
    };
    let filbert = Filbert::start(&program)?;
    let mut report = Report::new(known, arguments.output.clone());
    if arguments.asks_for(Part::Races) {
        arguments.during(seed, |span| races::run(filbert.postgres, span, &mut report))?;
    }
    if arguments.asks_for(Part::Postgres) || arguments.asks_for(Part::Tlp) {
        with_postgres(arguments, seed, &filbert, &mut report)?;
    }
    if arguments.asks_for(Part::Hazelcast) || arguments.asks_for(Part::Calls) {
        match &arguments.member {
            Some(member) => with_hazelcast(arguments, seed, &filbert, member, &mut report)?,
            None => println!("Hazelcast's dialect is left out: no member to compare with"),
        }
    }
    println!("{}", report.summary());
    println!("seed {seed}");
    Ok(report.findings.is_empty())
}

/// The settings of every connection.
const SETTINGS: [&str; 3] = ["set timezone = 'UTC'", "set intervalstyle = 'postgres'", "set statement_timeout = '20s'"];

fn with_postgres(arguments: &Arguments, seed: u64, filbert: &Filbert, report: &mut Report) -> Result<()> {
    let postgres = Postgres::start()?;
    let mut other = Box::new(Connection::open(postgres.address, "postgres", &SETTINGS)?);
    let mut tested = Box::new(Connection::open(filbert.postgres, "filbert", &SETTINGS)?);
    let functions = Functions::read(Dialect::Postgres)?;
    if arguments.asks_for(Part::Postgres) {
        cases::replay(&arguments.cases, "postgres", &mut *other, &mut *tested, report)?;
        untyped::run(&mut *other, &mut *tested, report);
    }
    let mut session = Session::with_postgres(other, tested);
    if arguments.asks_for(Part::Postgres) {
        arguments.during(seed, |span| rounds::run(&mut session, &functions, span, report))?;
    }
    if arguments.asks_for(Part::Tlp) {
        arguments.during(seed, |span| partition::run(&mut session, &functions, span, report))?;
    }
    Ok(())
}

fn with_hazelcast(
    arguments: &Arguments,
    seed: u64,
    filbert: &Filbert,
    member: &str,
    report: &mut Report,
) -> Result<()> {
    let hazelcast = Hazelcast::start(member)?;
    let mut other = Box::new(Member::open(hazelcast.address)?);
    let mut tested = Box::new(Member::open(filbert.hazelcast)?);
    let functions = Functions::read(Dialect::Hazelcast)?;
    cases::replay(&arguments.cases, "hazelcast", &mut *other, &mut *tested, report)?;
    if arguments.asks_for(Part::Calls) {
        arguments.during(seed, |span| {
            calls::run(&mut *other, &mut *tested, span, report);
            Ok(())
        })?;
    }
    if !arguments.asks_for(Part::Hazelcast) {
        return Ok(());
    }
    let mut session = Session::with_hazelcast(other, tested);
    arguments.during(seed, |span| rounds::run(&mut session, &functions, span, report))?;
    arguments.during(seed, |span| partition::run(&mut session, &functions, span, report))
}

impl Arguments {
    fn asks_for(&self, part: Part) -> bool {
        self.dialect == Part::All || self.dialect == part
    }

    /// Runs a part for its rounds and its time.
    fn during(&self, seed: u64, part: impl FnOnce(&mut Span<'_>) -> Result<()>) -> Result<()> {
        let seconds = self.minutes.map(|minutes| 60 * minutes).or(self.seconds);
        let seconds = seconds.or_else(|| self.rounds.is_none().then_some(SECONDS));
        let end = seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds));
        let mut until = || end.is_some_and(|end| Instant::now() > end);
        part(&mut Span { seed, first: self.round, count: self.rounds, until: &mut until })
    }
}
