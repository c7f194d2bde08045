//! Every chore of the project as one command: `cargo xtask verify | fix | test | e2e | fuzz | bench`.
//!
//! It installs what it needs on a fresh machine that has a Rust toolchain, tells what it does and how long that took,
//! and ends with a status that is not 0 if anything failed. It knows the workspace from outside, by its commands.

mod bench;
mod e2e;
mod fuzz;
mod generate;
mod house;
mod layers;
mod steps;
mod test;
mod tools;
mod verify;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand, ValueEnum};

/// The chores of the project.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check everything that can be read: format, clippy, layers, house rules, licences and advisories, documentation,
    /// generated files. Changes nothing.
    Verify,
    /// Format, apply clippy's suggestions, write the generated files.
    Fix,
    /// Run all tests: Rust, memory checks under Valgrind, a minute of fuzzing, the real clients.
    Test {
        /// Leave the real clients out.
        #[arg(long)]
        no_e2e: bool,
    },
    /// Run the real clients against the real program.
    E2e {
        /// Which of them; all of them if none is named.
        clients: Vec<e2e::Language>,
        /// Run against another server, to see that our expectations are right.
        #[arg(long)]
        peer: Option<Peer>,
    },
    /// Fuzz each target for a while.
    Fuzz {
        /// Seconds for each target.
        #[arg(long, default_value_t = fuzz::SECONDS)]
        seconds: u32,
    },
    /// Run an experiment beside its peers; what follows goes to `filbert-bench experiment`.
    Bench {
        /// `p`, `s` or `memory`, and more options.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        arguments: Vec<String>,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Peer {
    /// A real Hazelcast member, from Maven Central.
    Hazelcast,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\n{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Verify => verify::verify(),
        Command::Fix => verify::fix(),
        Command::Test { no_e2e } => test::test(!no_e2e),
        Command::E2e { clients, peer } => e2e::e2e(&clients, peer == Some(Peer::Hazelcast)),
        Command::Fuzz { seconds } => fuzz::fuzz(seconds),
        Command::Bench { arguments } => bench::bench(&arguments),
    }
}
