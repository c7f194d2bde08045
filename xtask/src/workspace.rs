//! Where things are: the checkout, the target directory, and cargo as it is run here.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The checkout.
pub(crate) fn root() -> PathBuf {
    // The manifest's directory is `xtask` below the root.
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// A command that runs in the checkout.
pub(crate) fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// Cargo, the one that runs us.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = command(&std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned()));
    cargo.args(arguments);
    cargo
}

/// What cargo knows of the workspace's own packages.
pub(crate) fn metadata() -> Result<Value> {
    let output = cargo(&["metadata", "--format-version", "1", "--no-deps"]).output().context("cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    serde_json::from_slice(&output.stdout).context("the output of cargo metadata")
}

/// The directory that all checkouts on this machine build into.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let metadata = metadata()?;
    let path = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
    Ok(PathBuf::from(path))
}

/// The program that users run, built.
pub(crate) fn program() -> Result<PathBuf> {
    Ok(target_directory()?.join("release").join("filbert"))
}
