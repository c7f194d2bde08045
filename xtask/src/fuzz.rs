//! Fuzzing: each target of `fuzz/` for a while, with the stable toolchain.

use std::fs;

use anyhow::{Context, Result};

use crate::steps::{Steps, run};
use crate::tools;
use crate::workspace::{cargo, root};

/// Seconds for each target, unless said otherwise.
pub(crate) const SECONDS: u32 = 60;

/// Runs every target.
///
/// # Errors
/// A target found something, or cannot be run.
pub(crate) fn fuzz(seconds: u32) -> Result<()> {
    let mut steps = Steps::new();
    add_steps(&mut steps, seconds);
    steps.finish()
}

/// Adds a step for every target.
pub(crate) fn add_steps(steps: &mut Steps, seconds: u32) {
    let targets = match targets() {
        Ok(targets) => targets,
        Err(error) => return steps.run("fuzz targets", || Err(error)),
    };
    for target in targets {
        steps.run(&format!("fuzz {target} for {seconds} s"), || {
            tools::need_cargo("fuzz")?;
            let limit = format!("-max_total_time={seconds}");
            let mut fuzz = cargo(&["fuzz", "run", &target, "--", &limit, "-print_final_stats=1", "-verbosity=0"]);
            // Instrumentation is an unstable flag of the compiler, which the stable one takes with this variable.
            run(fuzz.env("RUSTC_BOOTSTRAP", "1"))
        });
    }
}

fn targets() -> Result<Vec<String>> {
    let mut targets = Vec::new();
    for entry in fs::read_dir(root().join("fuzz/fuzz_targets")).context("fuzz/fuzz_targets")? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs")
            && let Some(name) = path.file_stem()
        {
            targets.push(name.to_string_lossy().into_owned());
        }
    }
    targets.sort();
    Ok(targets)
}
