//! The real clients, from their registries, against the real program.
//!
//! Each language's suite starts members itself, by the command in `FILBERT_E2E_MEMBER` (a JSON list of words), to which
//! it adds `--listen` and `--config`; the member prints the address that it serves.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use clap::ValueEnum;

use crate::steps::{Steps, output, run};
use crate::tools;
use crate::workspace::{cargo, command, program, root, target_directory};

/// The release that the expectations are checked against.
const HAZELCAST: &str = "5.7.0";

/// A client, by the language it is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Language {
    /// `hazelcast-python-client`, by pytest.
    Python,
    /// `com.hazelcast:hazelcast`, by JUnit.
    Java,
    /// `hazelcast-client`, by Node's test runner.
    Node,
    /// `hazelcast-go-client`, by go test.
    Go,
}

/// Runs the suites; all of them if none is named.
///
/// # Errors
/// A suite failed.
pub(crate) fn e2e(clients: &[Language], against_hazelcast: bool) -> Result<()> {
    let mut steps = Steps::new();
    add_steps(&mut steps, clients, against_hazelcast);
    steps.finish()
}

/// Adds a step for each suite.
pub(crate) fn add_steps(steps: &mut Steps, clients: &[Language], against_hazelcast: bool) {
    let clients = if clients.is_empty() { Language::value_variants() } else { clients };
    let mut member = None;
    steps.run("the member under test", || {
        member = Some(if against_hazelcast { hazelcast()? } else { filbert()? });
        Ok(())
    });
    let Some(member) = member else { return };
    for client in clients {
        let name = format!("{client:?} client").replace("Node", "Node.js");
        steps.run(&name, || suite(*client, &member, against_hazelcast));
    }
}

/// The command that starts our program.
fn filbert() -> Result<Vec<String>> {
    run(&mut cargo(&["build", "--release", "--package", "filbert"]))?;
    Ok(vec![program()?.to_string_lossy().into_owned()])
}

/// The command that starts a real Hazelcast member with the same arguments.
fn hazelcast() -> Result<Vec<String>> {
    need_java()?;
    let artifact = format!("-Dartifact=com.hazelcast:hazelcast:{HAZELCAST}");
    run(command("mvn").args(["-q", "-B", "dependency:get", &artifact]))?;
    let repository = output(command("mvn").args([
        "-q",
        "-B",
        "help:evaluate",
        "-Dexpression=settings.localRepository",
        "-DforceStdout",
    ]))?;
    let jar =
        PathBuf::from(repository.trim()).join(format!("com/hazelcast/hazelcast/{HAZELCAST}/hazelcast-{HAZELCAST}.jar"));
    let source = root().join("e2e/peer/Member.java");
    let words = ["java", "-Xmx512m", "-cp", &jar.to_string_lossy(), &source.to_string_lossy()];
    Ok(words.map(str::to_owned).to_vec())
}

fn need_java() -> Result<()> {
    tools::need("java", "-version", &["openjdk-17-jdk-headless"])?;
    tools::need("mvn", "-version", &["maven"])
}

fn suite(language: Language, member: &[String], against_hazelcast: bool) -> Result<()> {
    let directory = root().join("e2e").join(format!("{language:?}").to_lowercase());
    let mut tests = match language {
        Language::Python => python()?,
        Language::Java => java()?,
        Language::Node => node(&directory)?,
        Language::Go => go()?,
    };
    tests.current_dir(directory).env("FILBERT_E2E_MEMBER", serde_json::to_string(member)?);
    tests.env("FILBERT_E2E_TARGET", if against_hazelcast { "hazelcast" } else { "filbert" });
    run(&mut tests)
}

fn python() -> Result<Command> {
    tools::need("python3", "--version", &["python3", "python3-venv"])?;
    let environment = target_directory()?.join("e2e-python");
    let interpreter = environment.join("bin/python");
    if !interpreter.exists() {
        let mut create = command("python3");
        create.args(["-m", "venv"]).arg(&environment);
        if run(&mut create).is_err() {
            // Debian's python3 alone cannot make environments.
            tools::install(&["python3-venv"])?;
            run(&mut create)?;
        }
    }
    let interpreter = interpreter.to_str().context("the target directory's name is no text")?;
    let requirements = root().join("e2e/python/requirements.txt");
    run(command(interpreter)
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"])
        .arg(requirements))?;
    let mut tests = command(interpreter);
    tests.args(["-m", "pytest", "-q"]);
    Ok(tests)
}

fn java() -> Result<Command> {
    need_java()?;
    let mut tests = command("mvn");
    let build = target_directory()?.join("e2e-java");
    tests.args(["-q", "-B", "test"]).arg(format!("-De2e.build={}", build.display()));
    Ok(tests)
}

fn node(directory: &std::path::Path) -> Result<Command> {
    tools::need("node", "--version", &["nodejs"])?;
    tools::need("npm", "--version", &["npm"])?;
    run(command("npm").args(["ci", "--silent", "--no-audit", "--no-fund"]).current_dir(directory))?;
    let mut tests = command("npm");
    tests.args(["test", "--silent"]);
    Ok(tests)
}

fn go() -> Result<Command> {
    tools::need("go", "version", &["golang"])?;
    let mut tests = command("go");
    tests.args(["test", "-count=1", "./..."]);
    Ok(tests)
}
