//! What a chore needs beyond a Rust toolchain, installed where it is missing: Debian packages and cargo subcommands.

use std::process::{Command, Stdio};
use std::sync::Once;

use anyhow::{Context, Result, bail};

use crate::steps::run;
use crate::workspace::{cargo, command};

/// Whether a program answers.
fn answers(program: &str, argument: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(argument).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Sees to it that a program is there, from Debian's packages if it is not.
///
/// # Errors
/// It is not there and cannot be installed.
pub(crate) fn need(program: &str, argument: &str, packages: &[&str]) -> Result<()> {
    if answers(program, argument) {
        return Ok(());
    }
    install(packages).with_context(|| format!("{program} is missing; install {}", packages.join(", ")))?;
    if answers(program, argument) { Ok(()) } else { bail!("{program} does not work after its installation") }
}

/// Installs Debian packages.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    static UPDATED: Once = Once::new();
    if !answers("apt-get", "--version") {
        bail!("this machine has no apt-get to install them with");
    }
    let apt = || {
        let mut apt = if answers("sudo", "--version") && !is_root() {
            let mut sudo = command("sudo");
            sudo.arg("apt-get");
            sudo
        } else {
            command("apt-get")
        };
        apt.env("DEBIAN_FRONTEND", "noninteractive");
        apt
    };
    let mut updated = Ok(());
    UPDATED.call_once(|| updated = run(apt().args(["update", "-q"])));
    updated?;
    run(apt().args(["install", "-y", "-q", "--no-install-recommends"]).args(packages))
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Sees to it that a cargo subcommand is there, from crates.io if it is not.
///
/// # Errors
/// It is not there and cannot be installed.
pub(crate) fn need_cargo(subcommand: &str) -> Result<()> {
    if cargo(&[subcommand, "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status()?.success() {
        return Ok(());
    }
    run(&mut cargo(&["install", "--locked", &format!("cargo-{subcommand}")]))
}
