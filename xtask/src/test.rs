//! All tests: Rust, memory under Valgrind, fuzzing, real clients.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::steps::{Steps, output, run};
use crate::workspace::{cargo, command};
use crate::{e2e, fuzz, tools};

/// Runs them.
///
/// # Errors
/// Any of them failed.
pub(crate) fn test(with_clients: bool) -> Result<()> {
    let mut steps = Steps::new();
    steps.run("build", || run(&mut cargo(&["build", "--release", "--workspace", "--all-targets"])));
    steps.run("Rust tests", || run(&mut cargo(&["test", "--release", "--workspace", "--no-fail-fast"])));
    steps.run("records under memcheck", memcheck);
    fuzz::add_steps(&mut steps, fuzz::SECONDS);
    if with_clients {
        e2e::add_steps(&mut steps, &[], false);
    }
    steps.finish()
}

/// Runs the tests of the one file with unsafe code under Valgrind.
fn memcheck() -> Result<()> {
    tools::need("valgrind", "--version", &["valgrind"])?;
    let tests = store_tests()?;
    let mut valgrind = command("valgrind");
    // Only what nothing points to any more is a leak: the test harness keeps threads and their memory to the end.
    valgrind.args(["--error-exitcode=1", "--leak-check=full", "--errors-for-leak-kinds=definite", "--quiet"]);
    run(valgrind.arg(tests).args(["record::", "--test-threads=1"]))
}

/// The store's unit tests as a program.
fn store_tests() -> Result<PathBuf> {
    let messages = output(&mut cargo(&[
        "test",
        "--release",
        "--package",
        "filbert-store",
        "--lib",
        "--no-run",
        "--message-format=json",
    ]))?;
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .next_back()
        .context("cargo named no test program of filbert-store")
}
