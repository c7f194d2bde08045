//! The DuckDB side of experiment Q: its Python environment, and the driver bench/duckdb/driver.py in it.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::{BenchError, Result};
use crate::java::{Driver, bench_directory};

/// Makes the environment in `directory` if it is not there, installs what bench/duckdb/requirements.txt names, and starts
/// the driver.
pub fn driver(directory: &Path, log: &Path) -> Result<Driver> {
    let sources = bench_directory("duckdb", "requirements.txt")?;
    let python = directory.join("bin/python");
    if !python.is_file() {
        run(Command::new("python3").args(["-m", "venv"]).arg(directory))?;
    }
    let requirements = sources.join("requirements.txt");
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(requirements))?;
    let mut command = Command::new(python);
    command.arg(sources.join("driver.py"));
    Driver::start("duckdb", command, log)
}

fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().display().to_string();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(BenchError::io(format!("starting {program} (Debian's packages are python3 and python3-venv)")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let what = format!("failed: {}", String::from_utf8_lossy(&said).trim());
    Err(BenchError::Program { program, what })
}
