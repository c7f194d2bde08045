//! Python programs for experiments. Each program has its own virtual environment.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{BenchError, Result};

/// Creates the virtual environment in `directory` if it does not exist, installs the requirements,
/// and returns the directory of its programs.
pub fn environment(directory: &Path, requirements: &Path) -> Result<PathBuf> {
    let programs = directory.join("bin");
    let python = programs.join("python");
    if !python.is_file() {
        run(Command::new("python3").args(["-m", "venv"]).arg(directory))?;
    }
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(requirements))?;
    Ok(programs)
}

/// Runs a program to its end and returns its output.
pub fn run(command: &mut Command) -> Result<String> {
    let program = command.get_program().display().to_string();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(BenchError::io(format!("starting {program} (Debian's packages are python3 and python3-venv)")))?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_owned();
    if output.status.success() {
        return Ok(said);
    }
    Err(BenchError::Program { program, what: format!("failed: {said}") })
}
