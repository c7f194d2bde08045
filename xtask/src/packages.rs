//! What others get who depend on a crate: its features, its package, and nothing that it does not
//! use.

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{shell, shell::Workspace, tools};

/// Features of the crate `filbert` that documentation names, besides the default ones.
const FEATURES: &[&str] = &["", "sql", "server"];
/// The library behind SQL, which a member without `sql` is built without.
const ENGINE: &str = "datafusion";

/// No crate names a dependency that it does not use.
pub(crate) fn unused(workspace: &Workspace) -> Result<()> {
    tools::cargo_tool(workspace, "cargo-machete")?;
    // Its own words about what it reads go to the same output as what it finds.
    let found = shell::command("cargo-machete", ["--skip-target-dir", "."], &workspace.root).output()?;
    if !found.status.success() {
        bail!("{}{}", String::from_utf8_lossy(&found.stdout), String::from_utf8_lossy(&found.stderr));
    }
    Ok(())
}

/// Each combination of features that documentation names is built, and brings no more than it says.
pub(crate) fn features(workspace: &Workspace) -> Result<()> {
    for features in FEATURES {
        let words = format!("--locked --package filbert --no-default-features --features={features}");
        // With a feature that the door of PostgreSQL asks for, the engine is checked once for all
        // combinations that have it.
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

/// Every crate that others can depend on can be packaged, and says of itself what a registry asks
/// for.
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
