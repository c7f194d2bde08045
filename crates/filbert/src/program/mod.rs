//! The program, from the command line to a serving member and its shutdown.
//!
//! arguments ([`args`]) -> configuration ([`settings`]) -> member ([`serve`]) -> messages for the
//! user ([`welcome`])
//!
//! `filbert sql` and `filbert cluster` do not serve: they are clients ([`shell`], [`cluster`]).

mod args;
mod cluster;
mod failure;
mod huge_pages;
mod memory;
mod serve;
mod settings;
mod shell;
mod welcome;

use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Args, Command};
use failure::Failure;

/// Runs the program. The exit code identifies the kind of failure, as documented by `--help`.
pub(crate) fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let _ = writeln!(std::io::stderr(), "filbert: {failure}");
            failure.exit_code()
        }
    }
}

fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Some(Command::Settings { markdown: _ }) => {
            return write_out(&filbert::settings_markdown(&args::flags(&Args::command())));
        }
        Some(Command::Cluster(cluster)) => return cluster::main(cluster).map_err(Failure::Cluster),
        Some(Command::Sql(shell)) => return shell::main(shell).map_err(Failure::Shell),
        None => {}
    }
    args.start_logging();
    let loaded = settings::load(args)?;
    if args.check_config {
        return write_out(&settings::report(&loaded));
    }
    if !loaded.config.huge_pages {
        huge_pages::disable();
    }
    settings::log_notices(&loaded);
    settings::log_cluster(&loaded.config);
    if let Err(error) = filbert_listen::allow_as_many_files_as_possible() {
        tracing::warn!("no more files may be opened than at the start, and each connection is one: {error}");
    }
    if let Err(error) = crate::allocator::return_memory() {
        tracing::warn!("memory that is freed may return to the operating system late: {error}");
    }
    serve::serve(loaded)
}

/// Writes to standard output. A closed pipe (`filbert --check-config | head`) is not an error.
fn write_out(text: &str) -> Result<(), Failure> {
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::Output(error)),
        _ => Ok(()),
    }
}
