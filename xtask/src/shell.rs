//! Runs other programs: their directories, their environment variables, and the errors of failed
//! programs.

use std::collections::VecDeque;
use std::env;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The checks that tests switch on in the workspace's own crates. The profile of the dependencies
/// in Cargo.toml excludes them, so dependencies are built once for both purposes.
const CHECKS: [&str; 2] = ["CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS"];

/// The purpose of a build of the workspace's own crates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Debug assertions and overflow checks are on.
    Tests,
    /// As users build them.
    Measurement,
}

/// The checkout, and the target directory of its builds.
pub(crate) struct Workspace {
    purpose: Purpose,
    /// The directory with the workspace's Cargo.toml.
    pub(crate) root: PathBuf,
    /// Cargo's target directory.
    pub(crate) target: PathBuf,
    /// The description of the workspace's own packages by `cargo metadata`.
    pub(crate) packages: Vec<Value>,
}

impl Workspace {
    /// The program of that name, built with the one profile.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.target.join("release").join(name)
    }

    /// The directory of the end-to-end tests of a language.
    pub(crate) fn e2e(&self, language: &str) -> PathBuf {
        self.root.join("e2e").join(language)
    }

    /// Cargo at the workspace's root, with these words, separated by blanks.
    pub(crate) fn cargo(&self, words: &str) -> Command {
        let mut cargo = command(cargo_program(), words.split_whitespace(), &self.root);
        // Cargo has set these variables for this program. Some build scripts depend on them: their
        // crates, and all dependents, would be built again when cargo runs in this program after it
        // ran in a shell.
        for (name, _) in env::vars_os() {
            if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
                cargo.env_remove(name);
            }
        }
        if self.purpose == Purpose::Tests {
            cargo.envs(CHECKS.map(|name| (name, "true")));
        }
        cargo
    }

    /// Builds all programs and examples, with the same libraries as the tests. A package that is
    /// built alone has other features of its dependencies, so all crates above them would be built
    /// again.
    pub(crate) fn build_programs(&self) -> Result<()> {
        run(&mut self.cargo("build --release --locked --workspace --bins --examples"))
    }
}

/// Finds the workspace that this program was built from.
pub(crate) fn workspace(purpose: Purpose) -> Result<Workspace> {
    let mut metadata = Command::new(cargo_program());
    metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
    let text = output(&mut metadata)?;
    let metadata: Value = serde_json::from_str(&text).context("reading what `cargo metadata` printed")?;
    let path = |field: &str| {
        let text = metadata.get(field).and_then(Value::as_str);
        text.map(PathBuf::from).with_context(|| format!("`cargo metadata` told no {field}"))
    };
    let packages = metadata.get("packages").and_then(Value::as_array).cloned().unwrap_or_default();
    Ok(Workspace { purpose, root: path("workspace_root")?, target: path("target_directory")?, packages })
}

fn cargo_program() -> String {
    env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned())
}

/// A program with its arguments and working directory.
pub(crate) fn command<A: AsRef<OsStr>>(
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = A>,
    directory: &Path,
) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(directory);
    command
}

/// As [`command`], with a time limit. At the limit, the program and its child processes are ended.
pub(crate) fn limited<A: AsRef<OsStr>>(
    seconds_max: u32,
    program: impl AsRef<OsStr>,
    arguments: impl IntoIterator<Item = A>,
    directory: &Path,
) -> Command {
    if !installed("timeout") {
        return command(program, arguments, directory);
    }
    let seconds = seconds_max.to_string();
    let mut limited = command("timeout", ["--kill-after=30", seconds.as_str()], directory);
    limited.arg(program).args(arguments);
    limited
}

/// Runs a program with this program's output. Returns an error if it fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("starting {}", described(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", described(command));
    }
    Ok(())
}

/// As [`run`], for programs that run tests: the error contains the output of the failed tests.
pub(crate) fn run_tests(command: &mut Command) -> Result<()> {
    let line = described(command);
    let mut child = command.stdout(Stdio::piped()).spawn().with_context(|| format!("starting {line}"))?;
    let mut said = Failures::default();
    if let Some(printed) = child.stdout.take() {
        for bytes in BufReader::new(printed).split(b'\n') {
            let text = String::from_utf8_lossy(&bytes?).into_owned();
            println!("{text}");
            said.hear(text);
        }
    }
    let status = child.wait().with_context(|| format!("waiting for {line}"))?;
    if !status.success() {
        bail!("{line} ended with {status}\n{}", said.told());
    }
    Ok(())
}

/// The output of a test program about failed tests.
#[derive(Default)]
struct Failures {
    /// Rust's tests print it between two fixed lines.
    sections: Vec<String>,
    is_in_section: bool,
    /// Other test programs print it at the end.
    last: VecDeque<String>,
}

impl Failures {
    /// The maximum numbers of lines in `sections` and in `last`.
    const SECTION_LINES_MAX: usize = 200;
    const LAST_LINES_MAX: usize = 40;

    fn hear(&mut self, line: String) {
        self.is_in_section = (self.is_in_section || line == "failures:") && !line.starts_with("test result:");
        if self.is_in_section && self.sections.len() < Self::SECTION_LINES_MAX {
            self.sections.push(line.clone());
        }
        if self.last.len() == Self::LAST_LINES_MAX {
            self.last.pop_front();
        }
        self.last.push_back(line);
    }

    fn told(self) -> String {
        if self.sections.is_empty() { Vec::from(self.last).join("\n") } else { self.sections.join("\n") }
    }
}

/// Runs a program, and returns its standard output. Its standard error is that of this program.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("starting {}", described(command)))?;
    if !output.status.success() {
        bail!("{} ended with {}", described(command), output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("reading what {} printed", described(command)))
}

/// Whether a program of that name is on the search path.
pub(crate) fn installed(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

/// The command line, for error texts.
fn described(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    format!("`{line}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(lines: &[&str]) -> String {
        let mut failures = Failures::default();
        lines.iter().for_each(|line| failures.hear((*line).to_owned()));
        failures.told()
    }

    #[test]
    fn rusts_tests_are_told_by_their_sections() {
        let run =
            ["test a ... FAILED", "failures:", "---- a stdout ----", "left: 1", "test result: FAILED", "running 7"];
        assert_eq!(told(&run), "failures:\n---- a stdout ----\nleft: 1");
    }

    #[test]
    fn others_are_told_by_their_last_lines() {
        let many: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        let lines: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(told(&lines).starts_with("60\n61\n"), "the last 40 are kept");
    }
}
