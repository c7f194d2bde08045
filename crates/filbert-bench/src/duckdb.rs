//! DuckDB for experiment Q: its Python environment, and the driver bench/duckdb/driver.py.

use std::path::Path;
use std::process::Command;

use crate::error::Result;
use crate::java::{Driver, bench_directory};
use crate::python;

/// Starts the driver in a Python environment in `directory`. The environment contains the packages
/// of bench/duckdb/requirements.txt.
pub fn driver(directory: &Path, log: &Path) -> Result<Driver> {
    let sources = bench_directory("duckdb", "requirements.txt")?;
    let programs = python::environment(directory, &sources.join("requirements.txt"))?;
    let mut command = Command::new(programs.join("python"));
    command.arg(sources.join("driver.py"));
    Driver::start("duckdb", command, log)
}
