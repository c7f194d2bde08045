//! Runs steps one after the other, prints the outcome of each, and a summary at the end.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::shell::Workspace;

/// The outcome of a step.
#[derive(Debug)]
enum Outcome {
    Passed,
    /// With the missing part. A person has to decide whether it matters.
    Incomplete(String),
    /// With the error, for the summary: the output of the step may be far above, or cut off.
    Failed(String),
}

/// The result of a successful step.
pub(crate) enum Done {
    /// The step is complete.
    Fully,
    /// A part is not possible on this machine, with the reason.
    Except(String),
}

/// The steps of one chore.
pub(crate) struct Steps {
    /// The chore's workspace.
    pub(crate) workspace: Workspace,
    started: Instant,
    outcomes: Vec<(String, Duration, Outcome)>,
}

impl Steps {
    pub(crate) fn new(workspace: Workspace) -> Steps {
        Steps { workspace, started: Instant::now(), outcomes: Vec::new() }
    }

    /// Runs a step, and records its outcome. Returns false if it failed.
    pub(crate) fn step(&mut self, name: &str, work: impl FnOnce(&Workspace) -> Result<()>) -> bool {
        self.step_with(name, |workspace| work(workspace).map(|()| Done::Fully))
    }

    /// As [`Steps::step`], for a step with a part that may be impossible on this machine.
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

    /// Prints the summary. Returns false if a step failed.
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
