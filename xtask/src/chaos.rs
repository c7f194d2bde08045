//! Fault tests: real members, real clients in several languages, and named faults. Porcupine checks
//! the histories. The driver is a Go program in `e2e/chaos`. This module prepares its tools and its
//! clients, and runs it.

use std::collections::VecDeque;
use std::env;
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::steps::{Done, Steps};
use crate::{e2e, planted, shell, shell::Workspace, tools};

/// The short form, for every test run: each scenario once, from the same seed, in about three
/// minutes.
pub(crate) const SHORT: [&str; 6] = ["--seed", "1", "--histories", "2", "--at-once", "2"];

const NAME: &str = "chaos";

/// The exit status of the driver if scenarios were skipped that are not possible on this machine,
/// and all others passed.
const LEFT_OUT: i32 = 3;

/// The directories of Debian's `ip`. The search path of a user may lack them.
const SYSTEM_PROGRAMS: [&str; 2] = ["/usr/sbin", "/sbin"];

/// Runs the driver with these options. With the name of a planted defect, the program under test
/// has this defect, and the run must find it.
pub(crate) fn run(steps: &mut Steps, defect: Option<&str>, options: &[String]) {
    let (mut member, mut workers) = (String::new(), String::new());
    let ready = steps.step("chaos: the member under test, the driver and its clients", |workspace| {
        member = match defect {
            None => e2e::filbert_member(workspace)?,
            Some(name) => planted::member(workspace, name)?,
        };
        prepare(workspace)?;
        workers = workers_by_language(workspace)?;
        Ok(())
    });
    if !ready {
        return;
    }
    steps.step_with("chaos: histories of a cluster under faults", |workspace| {
        let mut driver = shell::command(driver(workspace), options, &workspace.e2e(NAME));
        if defect.is_some() {
            driver.arg("--planted");
        }
        driver.env("FILBERT_E2E_MEMBER", &member).env("FILBERT_CHAOS_WORKERS", &workers).env("PATH", search_path()?);
        driver.arg("--out").arg(workspace.target.join("chaos"));
        drive(&mut driver)
    });
}

/// Runs the driver. As in [`shell::run_tests`], the error contains the last lines of output. The
/// exit status distinguishes a complete run from a run with skipped scenarios.
fn drive(driver: &mut Command) -> Result<Done> {
    const LAST_LINES_MAX: usize = 40;
    let mut child = driver.stdout(Stdio::piped()).spawn().context("starting the driver of chaos")?;
    let mut last = VecDeque::new();
    if let Some(printed) = child.stdout.take() {
        for bytes in BufReader::new(printed).split(b'\n') {
            let line = String::from_utf8_lossy(&bytes?).into_owned();
            println!("{line}");
            if last.len() == LAST_LINES_MAX {
                last.pop_front();
            }
            last.push_back(line);
        }
    }
    let status = child.wait().context("waiting for the driver of chaos")?;
    match status.code() {
        Some(0) => Ok(Done::Fully),
        Some(LEFT_OUT) => Ok(Done::Except(
            "network namespaces cannot be made here, so that the scenarios that cut links were left out".to_owned(),
        )),
        _ => bail!("the driver of chaos ended with {status}\n{}", Vec::from(last).join("\n")),
    }
}

/// This program's search path, and the directories of system programs.
fn search_path() -> Result<OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories = env::split_paths(&path).chain(SYSTEM_PROGRAMS.map(PathBuf::from));
    env::join_paths(directories).context("extending the search path")
}

fn driver(workspace: &Workspace) -> PathBuf {
    workspace.target.join("e2e-chaos/driver")
}

fn prepare(workspace: &Workspace) -> Result<()> {
    tools::install(&[tools::GO])?;
    if !SYSTEM_PROGRAMS.iter().any(|directory| Path::new(directory).join("ip").is_file()) {
        tools::install(&[tools::IP])?;
    }
    let directory = workspace.e2e(NAME);
    e2e::prepare_python(workspace, NAME, &directory)?;
    shell::run(&mut shell::command("go", ["vet", "."], &directory))?;
    // Tests of the driver: its checks must find wrong histories.
    shell::run_tests(&mut shell::command("go", ["test", "."], &directory))?;
    let mut build = shell::command("go", ["build", "-o"], &directory);
    shell::run(build.arg(driver(workspace)).arg("."))
}

/// The words that start the clients of each language, as a JSON object of arrays.
fn workers_by_language(workspace: &Workspace) -> Result<String> {
    let directory = workspace.e2e(NAME);
    let python = vec![e2e::text(&e2e::python(workspace, NAME))?, e2e::text(&directory.join("worker.py"))?];
    // A client must start fast and computes little, so the optimizing compiler takes more time than
    // it saves.
    let options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"];
    let java = e2e::java_program(workspace, &options, &directory.join("Worker.java"))?;
    workspace.build_programs()?;
    let rust = vec![e2e::text(&workspace.program("examples/chaos_worker"))?];
    Ok(serde_json::json!({"python": python, "java": java, "rust": rust}).to_string())
}
