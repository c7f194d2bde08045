//! Checks of crates for their users: features, packages, and no unused dependencies.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{shell, shell::Workspace, tools};

/// The documented combinations of features of the crate `filbert`, besides the default one.
const FEATURES: &[&str] = &["", "sql", "server"];
/// The library of the query engine. A member without the feature `sql` is built without it.
const ENGINE: &str = "datafusion";

/// Fails if a crate declares a dependency that it does not use.
pub(crate) fn unused(workspace: &Workspace) -> Result<()> {
    tools::cargo_tool(workspace, "cargo-machete")?;
    // The tool prints its progress and its findings to the same output.
    let found = shell::command("cargo-machete", ["--skip-target-dir", "."], &workspace.root).output()?;
    if !found.status.success() {
        bail!("{}{}", String::from_utf8_lossy(&found.stdout), String::from_utf8_lossy(&found.stderr));
    }
    Ok(())
}

/// Builds each documented combination of features. Checks that a build without features does not
/// contain the query engine's library, and that all others do.
pub(crate) fn features(workspace: &Workspace) -> Result<()> {
    for features in FEATURES {
        let words = format!("--locked --package filbert --no-default-features --features={features}");
        // The PostgreSQL door requests a feature of the engine's library. Each build with the
        // library therefore includes the door, and the library is compiled once for all
        // combinations.
        let beside = if features.is_empty() { "" } else { "--package filbert-postgres" };
        shell::run(&mut workspace.cargo(&format!("check --release --quiet {words} {beside}")))?;
        let tree = shell::output(&mut workspace.cargo(&format!("tree {words} --edges normal --prefix none")))?;
        let has_engine = tree.lines().any(|line| line.starts_with(ENGINE));
        if has_engine == features.is_empty() {
            bail!("filbert with the features {features:?}: {ENGINE} is among its dependencies: {has_engine}");
        }
    }
    Ok(())
}

/// Checks that every published crate can be packaged, and has the metadata that a registry
/// requires.
pub(crate) fn packaged(workspace: &Workspace) -> Result<()> {
    let mut words = "package --locked --no-verify --allow-dirty --quiet".to_owned();
    for package in &workspace.packages {
        // An empty list of registries: not to be published.
        if package.get("publish").is_some_and(Value::is_array) {
            continue;
        }
        let name = package.get("name").and_then(Value::as_str).context("a package without a name")?;
        for field in ["description", "license", "rust_version"] {
            if package.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
                bail!("{name} has no {field}");
            }
        }
        words.push_str(" --package ");
        words.push_str(name);
    }
    shell::run(&mut workspace.cargo(&words))
}
