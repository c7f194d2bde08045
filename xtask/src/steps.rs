//! Running steps one after another, telling how each goes, and summing up at the end.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::shell::Workspace;

/// What became of a step.
#[derive(Debug)]
enum Outcome {
    Passed,
    /// With what is missing, for a person to decide whether that matters.
    Incomplete(String),
    /// With why, for the summary: what was printed then may be far above it, or cut off.
    Failed(String),
}

/// What a step that did not fail has to say.
pub(crate) enum Done {
    /// All of it was done.
    Fully,
    /// A part could not be done here, and why.
    Except(String),
}

/// The steps of one chore.
pub(crate) struct Steps {
    /// Where the chore works.
    pub(crate) workspace: Workspace,
    started: Instant,
    outcomes: Vec<(String, Duration, Outcome)>,
}

impl Steps {
    pub(crate) fn new(workspace: Workspace) -> Steps {
        Steps { workspace, started: Instant::now(), outcomes: Vec::new() }
    }

    /// Runs a step and remembers how it went; true when it did not fail.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce(&Workspace) -> Result<()>) -> bool {
        self.step_with(name, |workspace| work(workspace).map(|()| Done::Fully))
    }

    /// As [`Steps::step`], for a step that may find a part of its work impossible.
    pub(crate) fn step_with(&mut self, name: &str, work: impl FnOnce(&Workspace) -> Result<Done>) -> bool {
        let number = self.outcomes.len() + 1;
        println!("[{:>6}] step {number}: {name}", seconds(self.started.elapsed()));
        let started = Instant::now();
        let result = work(&self.workspace);
        let took = started.elapsed();
        let outcome = match result {
            Ok(Done::Fully) => Outcome::Passed,
            Ok(Done::Except(what)) => {
                println!("         not done: {what}");
                Outcome::Incomplete(what)
            }
            Err(error) => {
                println!("         FAILED: {error:#}");
                Outcome::Failed(format!("{error:#}"))
            }
        };
        println!("         {name}: {}", seconds(took));
        let went_well = !matches!(outcome, Outcome::Failed(_));
        self.outcomes.push((name.to_owned(), took, outcome));
        went_well
    }

    /// Prints the summary; true when nothing failed.
    pub(crate) fn finish(self) -> bool {
        println!("\nsummary, {} in all:", seconds(self.started.elapsed()));
        for (name, took, outcome) in &self.outcomes {
            let said = match outcome {
                Outcome::Passed => "ok".to_owned(),
                Outcome::Incomplete(what) => format!("ok, but for: {what}"),
                Outcome::Failed(_) => "FAILED".to_owned(),
            };
            println!("  {:>7}  {name}: {said}", seconds(*took));
        }
        let mut failed = 0;
        for (name, _, outcome) in &self.outcomes {
            if let Outcome::Failed(why) = outcome {
                println!("\n{name}: {why}");
                failed += 1;
            }
        }
        match failed {
            0 => println!("all {} steps passed", self.outcomes.len()),
            _ => println!("{failed} of {} steps FAILED", self.outcomes.len()),
        }
        failed == 0
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}
