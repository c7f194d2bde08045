//! The end-to-end tests: the real clients and tools, unmodified and from their registries, against
//! the real program. There is one suite for each language, and one for a browser.
//!
//! A suite starts its own members with the command in `FILBERT_E2E_MEMBER` (a JSON array of words),
//! on ephemeral loopback ports, and ends them. Most tests use the first member of a cluster;
//! `FILBERT_E2E_MEMBERS` is the number of its members. All suites share one member for the exchange
//! of values: each language reads the values that the other languages have written. This module
//! runs that member.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;

use crate::{Peer, shell, shell::Workspace, steps::Steps, tools};

/// Far more than any suite needs. A suite that hangs must fail while CI still has time for the
/// others.
const SUITE_SECONDS_MAX: u32 = 15 * 60;

/// The environment variable with the directory for screenshots.
const ARTEFACTS: &str = "FILBERT_ARTEFACTS";

/// A suite: a language with its stock clients, or the browser.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    Python,
    Java,
    Node,
    Go,
    Browser,
}

impl Language {
    const ALL: [Language; 5] = [Language::Python, Language::Java, Language::Node, Language::Go, Language::Browser];
    /// The languages with a Hazelcast client: each reads the values that the others have written.
    const WITH_CLIENT: [Language; 4] = [Language::Python, Language::Java, Language::Node, Language::Go];

    fn name(self) -> &'static str {
        match self {
            Language::Python => "python",
            Language::Java => "java",
            Language::Node => "node",
            Language::Go => "go",
            Language::Browser => "browser",
        }
    }

    /// Installs the language if it is missing, and the client from its registry.
    fn prepare(self, workspace: &Workspace) -> Result<()> {
        let directory = workspace.e2e(self.name());
        match self {
            Language::Python => {
                tools::install(&[tools::PSQL, tools::PGBENCH])?;
                prepare_python(workspace, self.name(), &directory)
            }
            Language::Browser => {
                tools::install(&[tools::CHROMIUM, tools::CHROMEDRIVER])?;
                prepare_python(workspace, self.name(), &directory)
            }
            Language::Java => {
                tools::install(&[tools::JAVA, tools::MAVEN])?;
                shell::run(&mut shell::command("mvn", ["-B", "-q", "-ntp", "process-test-classes"], &directory))
            }
            Language::Node => {
                tools::install(&[tools::NODE, tools::NPM])?;
                shell::run(&mut shell::command("npm", ["ci", "--no-audit", "--no-fund", "--silent"], &directory))
            }
            Language::Go => {
                tools::install(&[tools::GO])?;
                shell::run(&mut shell::command("go", ["vet", "."], &directory))
            }
        }
    }

    /// The suite, or only its exchange of values with other languages.
    fn suite(self, workspace: &Workspace, exchange_only: bool) -> Command {
        let directory = workspace.e2e(self.name());
        let words: &[&str] = match (self, exchange_only) {
            // Two processes, because tests wait more than they compute. The tests of one file run
            // in one process, and share their members. The browser's suite takes no part in the
            // exchange.
            (Language::Python, false) | (Language::Browser, _) => &["-m", "pytest", "-n", "2", "--dist", "loadfile"],
            (Language::Python, true) => &["-m", "pytest", "-q", "test_exchange.py"],
            (Language::Java, false) => &["-B", "-ntp", "test", "-DforkCount=2"],
            (Language::Java, true) => &["-B", "-q", "-ntp", "test", "-Dtest=ExchangeTest"],
            (Language::Node, false) => &["--test", "--test-concurrency=1"],
            (Language::Node, true) => &["--test", "exchange.test.js"],
            (Language::Go, false) => &["test", "-count=1", "-timeout=20m", "-v", "."],
            (Language::Go, true) => &["test", "-count=1", "-timeout=5m", "-run=Exchange", "."],
        };
        let program = match self {
            Language::Python | Language::Browser => python(workspace, self.name()),
            Language::Java => "mvn".into(),
            Language::Node => "node".into(),
            Language::Go => "go".into(),
        };
        let mut suite = shell::limited(SUITE_SECONDS_MAX, program, words, &directory);
        if self == Language::Browser && std::env::var_os(ARTEFACTS).is_none() {
            suite.env(ARTEFACTS, workspace.target.join("artefacts"));
        }
        suite
    }
}

/// The Python of a suite's virtual environment. The environment is in cargo's target directory, so
/// that the checkout stays clean.
pub(crate) fn python(workspace: &Workspace, suite: &str) -> PathBuf {
    workspace.target.join(format!("e2e-{suite}/bin/python"))
}

pub(crate) fn prepare_python(workspace: &Workspace, suite: &str, directory: &Path) -> Result<()> {
    tools::install(&[tools::PYTHON])?;
    let python = python(workspace, suite);
    if !python.is_file() {
        // Debian's python3 does not include the module for virtual environments.
        let complete = Command::new("python3").args(["-c", "import ensurepip"]).stderr(Stdio::null()).status();
        if !complete.is_ok_and(|status| status.success()) {
            tools::packages(&["python3-venv"])?;
        }
        let environment = workspace.target.join(format!("e2e-{suite}"));
        let words = ["-m".as_ref(), "venv".as_ref(), environment.as_os_str()];
        shell::run(&mut shell::command("python3", words, directory))?;
    }
    let words = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"];
    shell::run(&mut shell::command(python, words, directory))
}

/// The members under test.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) peer: Peer,
    /// The number of members of the cluster; 1 = a member without a cluster.
    pub(crate) members: u32,
}

impl Target {
    /// A member without a cluster.
    pub(crate) const ALONE: Target = Target { peer: Peer::Filbert, members: 1 };
    /// The smallest cluster that keeps a majority when one member dies.
    pub(crate) const CLUSTER: Target = Target { peer: Peer::Filbert, members: 3 };
}

/// Runs the suites of these languages, or of all. With all languages and a member without a
/// cluster, the exchange of values follows.
pub(crate) fn run(steps: &mut Steps, languages: &[Language], target: Target) {
    let Target { peer, members } = target;
    let everything = languages.is_empty();
    // The browser's suite tests Filbert's console alone, and starts its own clusters.
    let all: &[Language] = if peer == Peer::Filbert && members == 1 { &Language::ALL } else { &Language::WITH_CLIENT };
    let languages = if everything { all } else { languages };
    let mut member = Vec::new();
    let ready = steps.step("the member under test", |workspace| {
        member = member_command(workspace, peer)?;
        Ok(())
    });
    if !ready {
        return;
    }
    let against = if members == 1 { String::new() } else { format!(" against a cluster of {members}") };
    let mut prepared = Vec::new();
    for language in languages {
        let name = language.name();
        if steps.step(&format!("{name}: client and tools"), |workspace| language.prepare(workspace)) {
            prepared.push(*language);
            steps.step(&format!("{name}: the client's suite{against}"), |workspace| {
                let mut suite = language.suite(workspace, false);
                suite.env("FILBERT_E2E_MEMBERS", members.to_string());
                shell::run_tests(with_member(&mut suite, &member, peer))
            });
        }
    }
    if members > 1 {
        return;
    }
    if Language::WITH_CLIENT.iter().all(|language| everything && prepared.contains(language)) {
        steps.step("values written by each client and read by all", |workspace| exchange(workspace, &member, peer));
    }
}

fn with_member<'c>(suite: &'c mut Command, member: &[String], peer: Peer) -> &'c mut Command {
    let words = serde_json::Value::from(member.to_vec()).to_string();
    suite.env("FILBERT_E2E_MEMBER", words);
    match peer {
        Peer::Filbert => suite.env_remove("FILBERT_E2E_TARGET"),
        Peer::Hazelcast => suite.env("FILBERT_E2E_TARGET", "hazelcast"),
    }
}

/// The words that start a member; its arguments follow them.
fn member_command(workspace: &Workspace, peer: Peer) -> Result<Vec<String>> {
    match peer {
        Peer::Filbert => {
            workspace.build_programs()?;
            Ok(vec![text(&workspace.program("filbert"))?])
        }
        Peer::Hazelcast => java_program(workspace, &["-Xmx1g"], &workspace.e2e("peer").join("Member.java")),
    }
}

/// The words that run a single file of Java with Hazelcast's client and member.
pub(crate) fn java_program(workspace: &Workspace, options: &[&str], source: &Path) -> Result<Vec<String>> {
    Language::Java.prepare(workspace)?;
    let jars = workspace.e2e("java").join("target/lib/*");
    let mut words = vec!["java".to_owned()];
    words.extend(options.iter().map(|&option| option.to_owned()));
    words.extend(["-cp".to_owned(), text(&jars)?, text(source)?]);
    Ok(words)
}

/// A path as a word of a command, which is passed on as JSON.
pub(crate) fn text(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).with_context(|| format!("{} is not text", path.display()))
}

/// The words that start a real Hazelcast member, as a JSON array.
pub(crate) fn hazelcast_member(workspace: &Workspace) -> Result<String> {
    Ok(serde_json::Value::from(member_command(workspace, Peer::Hazelcast)?).to_string())
}

/// The words that start a member of this program, as a JSON array.
pub(crate) fn filbert_member(workspace: &Workspace) -> Result<String> {
    Ok(serde_json::Value::from(member_command(workspace, Peer::Filbert)?).to_string())
}

/// The exchange of values: all suites write to one member, then each suite reads the values of all
/// others.
///
/// With Filbert, that member is embedded in a Rust program. The program also writes values, and
/// compares the values of the other languages with its own byte for byte.
fn exchange(workspace: &Workspace, member: &[String], peer: Peer) -> Result<()> {
    let mut shared = SharedMember::start(workspace, member, peer)?;
    let names: Vec<&str> = Language::WITH_CLIENT.iter().map(|language| language.name()).collect();
    let writers = if peer == Peer::Filbert { [names.as_slice(), &["rust"]].concat() } else { names.clone() };
    let mut failed = Vec::new();
    for phase in ["write", "read"] {
        for language in Language::WITH_CLIENT {
            println!("         {}: {phase}", language.name());
            let mut suite = language.suite(workspace, true);
            suite.env_remove("FILBERT_E2E_MEMBERS");
            suite.env("FILBERT_E2E_EXCHANGE", &shared.address).env("FILBERT_E2E_PHASE", phase);
            suite.env("FILBERT_E2E_WRITERS", writers.join(","));
            if let Err(error) = shell::run_tests(with_member(&mut suite, member, peer)) {
                failed.push(format!("{error:#}"));
            }
        }
    }
    if peer == Peer::Filbert {
        for name in names {
            println!("         rust: reads what {name} has written");
            let answer = shared.compare(name)?;
            if answer != "same" {
                failed.push(format!("rust, reading what {name} has written: {answer}"));
            }
        }
    }
    if !failed.is_empty() {
        bail!("{}", failed.join("; "));
    }
    Ok(())
}

/// The member that all suites share. Dropping the value ends the member.
struct SharedMember {
    process: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    address: String,
}

impl SharedMember {
    fn start(workspace: &Workspace, member: &[String], peer: Peer) -> Result<SharedMember> {
        let mut command = match peer {
            Peer::Filbert => {
                workspace.build_programs()?;
                let values = workspace.e2e("shared").join("types.json");
                shell::command(workspace.program("examples/exchange"), [values], &workspace.root)
            }
            Peer::Hazelcast => {
                let (program, words) = member.split_first().context("the member has no program")?;
                let listen = ["--listen", "127.0.0.1:0"];
                shell::command(program, words.iter().map(String::as_str).chain(listen), &workspace.root)
            }
        };
        let mut process =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().context("starting the shared member")?;
        let (Some(input), Some(output)) = (process.stdin.take(), process.stdout.take()) else {
            bail!("the shared member has no input or output");
        };
        let mut lines = BufReader::new(output).lines();
        let ready = lines.by_ref().map_while(Result::ok).find_map(|line| ready_address(&line));
        let Some(address) = ready else {
            let status = process.wait();
            bail!("the shared member ended before it was ready: {status:?}");
        };
        Ok(SharedMember { process, input, lines, address })
    }

    /// Makes the Rust program compare the values of a language. Returns `same` or the differences.
    fn compare(&mut self, language: &str) -> Result<String> {
        writeln!(self.input, "{language}").context("asking the shared member")?;
        self.lines.next().context("the shared member has ended")?.context("reading the shared member's answer")
    }
}

impl Drop for SharedMember {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The address in a member's ready line. Tests depend on no other output of a member.
fn ready_address(line: &str) -> Option<String> {
    let address = line.strip_prefix("ready: ")?.split_whitespace().next_back()?;
    address.contains(':').then(|| address.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_tells_the_address() {
        assert_eq!(ready_address("ready: Hazelcast clients on 127.0.0.1:4711"), Some("127.0.0.1:4711".to_owned()));
        assert_eq!(ready_address("Filbert serves on 127.0.0.1:4711"), None);
        assert_eq!(ready_address("ready: soon"), None);
    }
}
