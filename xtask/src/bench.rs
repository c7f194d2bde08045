//! The experiments: builds the programs and hands over to `filbert-bench`.

use anyhow::Result;

use crate::steps::run;
use crate::tools;
use crate::workspace::{cargo, command, target_directory};

/// Runs an experiment with what it needs: Java and Maven for the peers.
///
/// # Errors
/// Something cannot be built or installed, or the experiment failed.
pub(crate) fn bench(arguments: &[String]) -> Result<()> {
    tools::need("java", "-version", &["openjdk-17-jdk-headless"])?;
    tools::need("mvn", "-version", &["maven"])?;
    run(&mut cargo(&["build", "--release", "--package", "filbert", "--package", "filbert-bench"]))?;
    let program = target_directory()?.join("release").join("filbert-bench");
    run(command(&program.to_string_lossy()).arg("experiment").args(arguments))
}
