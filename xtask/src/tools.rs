//! The tools that tests need, installed where they are missing: Debian packages, cargo subcommands.

use std::path::Path;

use anyhow::{Result, bail};

use crate::{shell, shell::Workspace};

/// A tool: a program that exists if the tool is installed, and the Debian packages that contain it.
pub(crate) struct Tool {
    program: &'static str,
    packages: &'static [&'static str],
}

pub(crate) const VALGRIND: Tool = Tool { program: "valgrind", packages: &["valgrind", "libc6-dbg"] };
pub(crate) const CXX: Tool = Tool { program: "c++", packages: &["g++"] };
pub(crate) const PYTHON: Tool = Tool { program: "python3", packages: &["python3", "python3-venv"] };
pub(crate) const PSQL: Tool = Tool { program: "psql", packages: &["postgresql-client"] };
pub(crate) const PGBENCH: Tool = Tool { program: "pgbench", packages: &["postgresql-contrib"] };
pub(crate) const CHROMIUM: Tool = Tool { program: "chromium", packages: &["chromium"] };
pub(crate) const CHROMEDRIVER: Tool = Tool { program: "chromedriver", packages: &["chromium-driver"] };
pub(crate) const JAVA: Tool = Tool { program: "javac", packages: &["openjdk-17-jdk-headless"] };
pub(crate) const MAVEN: Tool = Tool { program: "mvn", packages: &["maven"] };
pub(crate) const NODE: Tool = Tool { program: "node", packages: &["nodejs"] };
pub(crate) const NPM: Tool = Tool { program: "npm", packages: &["npm"] };
pub(crate) const IP: Tool = Tool { program: "ip", packages: &["iproute2"] };
pub(crate) const GO: Tool = Tool { program: "go", packages: &["golang-go"] };

/// Installs PostgreSQL's server. Debian does not put its programs on the search path.
pub(crate) fn postgresql() -> Result<()> {
    let is_there = Path::new("/usr/lib/postgresql").read_dir().is_ok_and(|mut versions| {
        versions.any(|version| version.is_ok_and(|version| version.path().join("bin/initdb").is_file()))
    });
    if is_there { Ok(()) } else { packages(&["postgresql"]) }
}

/// Installs the missing tools.
pub(crate) fn install(tools: &[Tool]) -> Result<()> {
    let missing: Vec<&str> =
        tools.iter().filter(|tool| !shell::installed(tool.program)).flat_map(|tool| tool.packages).copied().collect();
    packages(&missing)
}

/// Installs Debian packages.
pub(crate) fn packages(names: &[&str]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    if !shell::installed("apt-get") {
        bail!("missing here, and this is no Debian to install it on: {}", names.join(", "));
    }
    println!("         installing {}", names.join(", "));
    apt(&["update", "-qq"])?;
    let mut arguments = vec!["install", "-y", "-qq", "--no-install-recommends"];
    arguments.extend(names);
    apt(&arguments)
}

fn apt(arguments: &[&str]) -> Result<()> {
    let root = shell::output(&mut shell::command("id", ["-u"], Path::new("/")))?.trim() == "0";
    let words = if root { vec!["apt-get"] } else { vec!["sudo", "apt-get"] };
    let mut words = words.into_iter().chain(arguments.iter().copied());
    let program = words.next().unwrap_or_default();
    shell::run(shell::command(program, words, Path::new("/")).env("DEBIAN_FRONTEND", "noninteractive"))
}

/// Installs a cargo subcommand from crates.io, without optimization: compiling it takes longer than
/// running it.
pub(crate) fn cargo_tool(workspace: &Workspace, name: &str) -> Result<()> {
    if shell::installed(name) {
        return Ok(());
    }
    println!("         installing {name}");
    shell::run(&mut workspace.cargo(&format!("install --locked --quiet --debug {name}")))
}
