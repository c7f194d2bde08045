//! What CI checks without running a test, and what `fix` can mend of it.

use anyhow::{Result, bail};

use crate::steps::{Steps, run};
use crate::workspace::{cargo, command};
use crate::{generate, house, layers, tools};

/// Checks everything; changes nothing.
///
/// # Errors
/// A check failed.
pub(crate) fn verify() -> Result<()> {
    let mut steps = Steps::new();
    steps.run("format", || run(&mut cargo(&["fmt", "--all", "--check"])));
    steps.run("clippy", || {
        run(&mut cargo(&["clippy", "--release", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]))
    });
    steps.run("layers", layers::check);
    steps.run("house rules", house::check);
    steps.run("licences, bans and sources", || {
        tools::need_cargo("deny")?;
        run(&mut cargo(&["deny", "check", "--hide-inclusion-graph", "licenses", "bans", "sources"]))
    });
    steps.run("advisories", advisories);
    steps.run("documentation", || {
        let mut doc = cargo(&["doc", "--release", "--workspace", "--no-deps", "--quiet"]);
        run(doc.env("RUSTDOCFLAGS", "-D warnings"))
    });
    steps.run("generated files", generate::check);
    steps.finish()
}

/// Known weaknesses of what we build on. The database comes from GitHub; a machine that cannot reach it cannot check.
fn advisories() -> Result<()> {
    let database = "https://github.com/RustSec/advisory-db";
    let reachable = command("git")
        .args(["ls-remote", "--exit-code", database, "HEAD"])
        .env("GIT_TERMINAL_PROMPT", "0")
        .output()
        .is_ok_and(|output| output.status.success());
    if !reachable {
        println!("  {database} cannot be reached from here: advisories are NOT checked");
        return Ok(());
    }
    run(&mut cargo(&["deny", "check", "--hide-inclusion-graph", "advisories"]))
}

/// Mends what can be mended.
///
/// # Errors
/// A tool failed.
pub(crate) fn fix() -> Result<()> {
    let mut steps = Steps::new();
    steps.run("clippy's suggestions", || {
        run(&mut cargo(&[
            "clippy",
            "--release",
            "--workspace",
            "--all-targets",
            "--quiet",
            "--fix",
            "--allow-dirty",
            "--allow-staged",
        ]))
    });
    steps.run("format", || run(&mut cargo(&["fmt", "--all"])));
    steps.run("generated files", generate::write);
    match steps.finish() {
        Ok(()) => Ok(()),
        Err(error) => bail!("{error}; mend the rest by hand"),
    }
}
