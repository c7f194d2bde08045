//! Every chore of the project as one command: `cargo xtask verify | fix | test | e2e | chaos |
//! siege | fuzz | differential | simulate | bench`.
//!
//! A chore is a list of steps. After a failed step the next steps still run. The summary at the end
//! names all failed steps, and the exit status is then an error. Only `fix` changes files of the
//! repository; tests install the tools that they need.
//!
//! command line (here) -> chores ([`checks`], [`tests`], [`e2e`], [`chaos`]) -> steps ([`steps`])
//! -> programs ([`shell`])

// A chore prints for the person who runs it.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod chaos;
mod checks;
mod e2e;
mod generated;
mod house;
mod layers;
mod modules;
mod packages;
mod planted;
mod shell;
mod steps;
mod tests;
mod tools;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand, ValueEnum};

use crate::{
    e2e::{Language, Target},
    shell::Purpose,
    steps::Steps,
    tests::Fuzzing,
};

/// The languages with suites that every test run also runs against a cluster of three members.
/// `e2e --members 3` runs the suites of all languages.
const IN_CLUSTER: [Language; 2] = [Language::Java, Language::Go];

/// The project's chores
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Check everything that can be checked without running tests; writes nothing
    Verify,
    /// Format, apply clippy's suggestions, write the generated files
    Fix {
        /// Write the results into the sqllogictest files instead, to be read like any other change
        #[arg(long)]
        expectations: bool,
    },
    /// Run all tests; installs what they need
    Test {
        /// Leave out the real clients
        #[arg(long)]
        no_e2e: bool,
    },
    /// Run the real clients against the real program
    E2e {
        /// Languages to run [default: all, and then values exchanged between all of them]
        languages: Vec<Language>,
        /// What to run them against
        #[arg(long, default_value = "filbert")]
        peer: Peer,
        /// Members of the cluster that most tests use; 1 is a member that is in none
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=9), conflicts_with = "peer")]
        members: u32,
    },
    /// Run clusters of real members under faults: nothing acknowledged is lost, and histories are
    /// linearizable
    Chaos {
        /// A defect of e2e/chaos/planted that the program is built with, and that must be found
        #[arg(long)]
        planted: Option<String>,
        /// Passed on to the driver, `--seed 7 --minutes 60 --members 5` for example; `-- --help`
        /// lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// Send a member what could take it down, beside clients that must not notice
    Siege {
        /// Passed on to `filbert-siege`; `--help` lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// Search for input that breaks the decoders
    Fuzz {
        /// Time for each target
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
    /// Compare answers to generated statements with PostgreSQL's and Hazelcast's
    Differential {
        /// Passed on to `filbert-differential`; `--help` lists them
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// Run groups of members over a simulated network, with faults, for as long as wanted
    Simulate {
        /// How long new histories are begun
        #[arg(long, default_value_t = 10)]
        minutes: u64,
        /// The seed of the first history; each one after it has the next seed
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Run an experiment beside Hazelcast and an echo server
    Bench {
        /// p (pipelining), s (put against set), q (queries), c (ingest), cluster, rebalance or
        /// memory
        experiment: String,
        /// Passed on to `filbert-bench experiment`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
}

/// The member that the real clients are run against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Peer {
    /// The program under test
    Filbert,
    /// A real Hazelcast member, which shows whether the tests expect the right things
    Hazelcast,
}

fn main() -> ExitCode {
    match run(Arguments::parse().chore) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a chore. Returns false if one of its steps failed.
fn run(chore: Chore) -> Result<bool> {
    let purpose = if matches!(chore, Chore::Bench { .. }) { Purpose::Measurement } else { Purpose::Tests };
    let mut steps = Steps::new(shell::workspace(purpose)?);
    match chore {
        Chore::Verify => checks::verify(&mut steps),
        Chore::Fix { expectations: true } => tests::update_expectations(&mut steps),
        Chore::Fix { expectations: false } => checks::fix(&mut steps),
        Chore::Test { no_e2e } => {
            tests::all(&mut steps);
            if !no_e2e {
                e2e::run(&mut steps, &[], Target::ALONE);
                e2e::run(&mut steps, &IN_CLUSTER, Target::CLUSTER);
                chaos::run(&mut steps, None, &chaos::SHORT.map(str::to_owned));
                tests::siege(&mut steps, &tests::SHORT_SIEGE.map(str::to_owned));
                tests::differential(&mut steps, &tests::SHORT_COMPARISON.map(str::to_owned));
            }
        }
        Chore::E2e { languages, peer, members } => e2e::run(&mut steps, &languages, Target { peer, members }),
        Chore::Chaos { planted, options } => chaos::run(&mut steps, planted.as_deref(), &options),
        Chore::Siege { options } => tests::siege(&mut steps, &options),
        Chore::Fuzz { seconds } => tests::fuzz(&mut steps, Fuzzing { seconds, is_optimized: true }),
        Chore::Differential { options } => tests::differential(&mut steps, &options),
        Chore::Simulate { minutes, seed } => tests::simulate(&mut steps, minutes, seed),
        Chore::Bench { experiment, options } => tests::bench(&mut steps, &experiment, &options),
    }
    Ok(steps.finish())
}
