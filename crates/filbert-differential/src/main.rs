//! The oracle: generated statements that Filbert and another database must answer alike.
//!
//! `cargo xtask differential` builds and starts it. It starts PostgreSQL, a Hazelcast member and Filbert, makes the same
//! tables in them, asks them the same statements in several ways, and tells where they differ, as small as it can be
//! made. It must know nothing of the inside of what it tests: it speaks the protocols.
//!
//! ```text
//! seed ──► generate ──► tree ──► print ──► session ──► PostgreSQL, Hazelcast ─┐
//!                        ▲                    └──────► Filbert ───────────────┴─► compare ──► known ──► report
//!                        └───────────── shrink ◄── different ◄────────────────────────┘
//! ```
//!
//! # Invariants
//!
//! - The same seed makes the same statements in the same order.
//! - What Filbert refuses is counted by its cause; what it answers otherwise is a difference.
//! - A difference is a failure unless a file says that it is a decision, or that it is known and open.
//! - Every process that it starts ends with it.
//!
//! Start reading at [`rounds::run`]; [`partition::run`] and [`races::run`] need no other server.

// A chore speaks to the person who runs it.
#![allow(clippy::print_stdout, clippy::print_stderr)]

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

/// Compare Filbert's answers with those of other databases
#[derive(Debug, Parser)]
#[command(name = "filbert-differential")]
struct Arguments {
    /// Where statements begin [default: another one each time]
    #[arg(long)]
    seed: Option<u64>,
    /// The first round; with a seed, that round again
    #[arg(long, default_value_t = 0)]
    round: u64,
    /// How many rounds of each part [default: as many as there is time for]
    #[arg(long)]
    rounds: Option<u64>,
    /// How long each part runs at most, in seconds [default: 60, or without end if rounds are given]
    #[arg(long)]
    seconds: Option<u64>,
    /// How long each part runs at most, in minutes
    #[arg(long, conflicts_with = "seconds")]
    minutes: Option<u64>,
    /// What to compare
    #[arg(long, default_value = "all")]
    dialect: Part,
    /// The program under test [default: beside this one]
    #[arg(long)]
    filbert: Option<PathBuf>,
    /// The words that start a Hazelcast member, as a JSON array [default: Hazelcast's dialect is left out]
    #[arg(long, env = "FILBERT_DIFFERENTIAL_MEMBER")]
    member: Option<String>,
    /// A file that differences are added to
    #[arg(long)]
    output: Option<PathBuf>,
    /// The files of cases that were found earlier
    #[arg(long, default_value = "crates/filbert-differential/cases")]
    cases: PathBuf,
    /// Print the documentation's page of decisions, and nothing else
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
    /// Conditions that divide rows into three parts
    Tlp,
    /// Many connections that race, with a model
    Races,
    All,
}

/// How long a part runs unless told otherwise.
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

/// Runs what is asked for; false when there are differences that are not listed.
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
    if arguments.asks_for(Part::Hazelcast) {
        match &arguments.member {
            Some(member) => with_hazelcast(arguments, seed, &filbert, member, &mut report)?,
            None => println!("Hazelcast's dialect is left out: no member to compare with"),
        }
    }
    println!("{}", report.summary());
    println!("seed {seed}");
    Ok(report.findings.is_empty())
}

/// What is set at the beginning of every connection.
const SETTINGS: [&str; 3] = ["set timezone = 'UTC'", "set intervalstyle = 'postgres'", "set statement_timeout = '20s'"];

fn with_postgres(arguments: &Arguments, seed: u64, filbert: &Filbert, report: &mut Report) -> Result<()> {
    let postgres = Postgres::start()?;
    let mut other = Box::new(Connection::open(postgres.address, "postgres", &SETTINGS)?);
    let mut tested = Box::new(Connection::open(filbert.postgres, "filbert", &SETTINGS)?);
    let functions = Functions::read(Dialect::Postgres)?;
    if arguments.asks_for(Part::Postgres) {
        cases::replay(&arguments.cases, "postgres", &mut *other, &mut *tested, report)?;
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
