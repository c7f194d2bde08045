//! Steps with their names and times: what runs now, how long it took, and what failed, at a glance.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// A sequence of steps of which each runs, also when one before it failed.
pub(crate) struct Steps {
    started: Instant,
    done: Vec<(String, f64, Option<String>)>,
}

impl Steps {
    pub(crate) fn new() -> Self {
        Steps { started: Instant::now(), done: Vec::new() }
    }

    /// Runs one step and tells how it went.
    pub(crate) fn run(&mut self, name: &str, step: impl FnOnce() -> Result<()>) {
        println!("\n==> {name}");
        let started = Instant::now();
        let failure = step().err().map(|error| format!("{error:#}"));
        let seconds = started.elapsed().as_secs_f64();
        match &failure {
            None => println!("--- {name}: done in {seconds:.1} s"),
            Some(text) => println!("--- {name}: FAILED after {seconds:.1} s: {text}"),
        }
        self.done.push((name.to_owned(), seconds, failure));
    }

    /// Sums up.
    ///
    /// # Errors
    /// A step failed.
    pub(crate) fn finish(self) -> Result<()> {
        println!("\n    seconds  step");
        for (name, seconds, failure) in &self.done {
            println!("{} {seconds:9.1}  {name}", if failure.is_some() { "FAIL" } else { "  ok" });
        }
        println!("     {:9.1}  altogether", self.started.elapsed().as_secs_f64());
        let failed: Vec<&str> =
            self.done.iter().filter(|(_, _, failure)| failure.is_some()).map(|(name, ..)| name.as_str()).collect();
        if failed.is_empty() { Ok(()) } else { bail!("failed: {}", failed.join(", ")) }
    }
}

/// Runs a command to its end, with its output on ours.
///
/// # Errors
/// It cannot be started, or ends with another status than 0.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let text = shown(command);
    println!("  $ {text}");
    let status = command.status().with_context(|| format!("cannot run {text}"))?;
    if status.success() { Ok(()) } else { bail!("{text} ended with {status}") }
}

/// Runs a command and returns what it printed.
///
/// # Errors
/// It cannot be started, or ends with another status than 0.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let text = shown(command);
    println!("  $ {text}");
    let output = command.output().with_context(|| format!("cannot run {text}"))?;
    if !output.status.success() {
        bail!("{text} ended with {}: {}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).with_context(|| format!("the output of {text}"))
}

fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}
