//! The chores that run code: Rust's tests, memory checks, fuzzing and the experiments.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{e2e, shell, shell::Workspace, steps::Steps, tools};

/// A search for input that breaks a decoder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fuzzing {
    /// The time for each target.
    pub(crate) seconds: u32,
    /// Optimized targets try more inputs in that time, and take longer to build.
    pub(crate) is_optimized: bool,
}

/// The short search of every test run. An option of `cargo xtask fuzz` sets another time.
const SHORT_FUZZING: Fuzzing = Fuzzing { seconds: 4, is_optimized: false };

/// No address sanitizer. It finds errors of unsafe code, which Valgrind checks here. With it, the
/// targets would take twice as long to build and to run.
const FUZZ_SANITIZER: &str = "--sanitizer none";

/// The time after which an input counts as endless.
const FUZZ_INPUT_SECONDS: u32 = 60;

/// All tests but those with the real clients.
pub(crate) fn all(steps: &mut Steps) {
    steps.step("tests of the workspace", |workspace| {
        shell::run_tests(&mut workspace.cargo("test --release --locked --workspace --no-fail-fast"))
    });
    steps.step("memory checks of unsafe code", memory_checks);
    fuzz(steps, SHORT_FUZZING);
}

/// Writes the results of all records into the sqllogictest files.
pub(crate) fn update_expectations(steps: &mut Steps) {
    steps.step("expectations of the sqllogictest files", |workspace| {
        let words = "test --release --locked --workspace --test sql -- ::update";
        shell::run(workspace.cargo(words).env("FILBERT_SLT", "update"))
    });
}

/// The crates with `unsafe`, each with the module that contains it.
const UNSAFE: [(&str, &str); 3] =
    [("filbert-store", "record::"), ("filbert-grid", "allocation::"), ("filbert-grid", "threads::")];

/// Runs the tests of all modules with `unsafe` under Valgrind.
fn memory_checks(workspace: &Workspace) -> Result<()> {
    tools::install(&[tools::VALGRIND])?;
    UNSAFE.iter().try_for_each(|(package, module)| memory_check(workspace, package, module))
}

fn memory_check(workspace: &Workspace, package: &str, module: &str) -> Result<()> {
    let executable = unit_tests(workspace, package)?;
    let options = ["--quiet", "--error-exitcode=1", "--leak-check=full", "--errors-for-leak-kinds=definite"];
    let filter = [executable.as_str(), module, "--test-threads=1"];
    shell::run_tests(&mut shell::command("valgrind", options.into_iter().chain(filter), &workspace.root))
}

/// The program of a package's unit tests, built with the same libraries as all tests.
fn unit_tests(workspace: &Workspace, package: &str) -> Result<String> {
    let words = "test --release --locked --workspace --lib --no-run --quiet --message-format=json";
    let built = shell::output(&mut workspace.cargo(words))?;
    let library = package.replace('-', "_");
    let is_library = |message: &Value| message.pointer("/target/name").and_then(Value::as_str) == Some(&library);
    built
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(is_library)
        .find_map(|message| message.get("executable")?.as_str().map(str::to_owned))
        .with_context(|| format!("cargo named no test program of {package}"))
}

/// Runs every fuzz target for a while.
pub(crate) fn fuzz(steps: &mut Steps, fuzzing: Fuzzing) {
    let mut targets = Vec::new();
    let built = steps.step("fuzz targets", |workspace| {
        tools::install(&[tools::CXX])?;
        tools::cargo_tool(workspace, "cargo-fuzz")?;
        targets = fuzz_targets(workspace)?;
        if targets.is_empty() {
            bail!("there is none in fuzz/fuzz_targets");
        }
        // All targets in one build. Separate builds would each use one core.
        shell::run(&mut cargo_fuzz(workspace, fuzzing, &format!("build {FUZZ_SANITIZER}")))
    });
    if !built {
        return;
    }
    let seconds = fuzzing.seconds;
    for target in targets {
        steps.step(&format!("fuzz {target} for {seconds} s"), |workspace| {
            // There is no corpus. Without `-len_control=1`, most inputs would have only a few
            // bytes.
            let words = format!(
                "run {FUZZ_SANITIZER} {target} -- -max_total_time={seconds} -timeout={FUZZ_INPUT_SECONDS} \
                 -len_control=1 -print_final_stats=1 -verbosity=0"
            );
            shell::run(&mut cargo_fuzz(workspace, fuzzing, &words))
        });
    }
}

/// cargo-fuzz with these words.
fn cargo_fuzz(workspace: &Workspace, fuzzing: Fuzzing, words: &str) -> Command {
    let mut command = workspace.cargo(&format!("fuzz {words}"));
    if !fuzzing.is_optimized {
        command.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
    }
    // With this variable, the stable toolchain accepts the instrumentation flags of nightly
    // toolchains.
    command.env("RUSTC_BOOTSTRAP", "1");
    command
}

fn fuzz_targets(workspace: &Workspace) -> Result<Vec<String>> {
    let directory = workspace.root.join("fuzz/fuzz_targets");
    let mut names = Vec::new();
    for entry in fs::read_dir(&directory).context("reading fuzz/fuzz_targets")? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            names.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// The short siege of every test run: a selection of the loads, in two minutes at most.
pub(crate) const SHORT_SIEGE: [&str; 3] = ["--short", "--seed", "1"];

/// Sends a member hostile loads, one after the other.
pub(crate) fn siege(steps: &mut Steps, options: &[String]) {
    let built = steps.step("the siege and the member", Workspace::build_programs);
    if !built {
        return;
    }
    steps.step("hostile loads", |workspace| {
        shell::run(&mut shell::command(workspace.program("filbert-siege"), options, &workspace.root))
    });
}

/// The short comparison of every test run: the same statements each time.
pub(crate) const SHORT_COMPARISON: [&str; 4] = ["--seed", "1", "--rounds", "1"];

/// Compares Filbert's answers with those of PostgreSQL and of a Hazelcast member.
pub(crate) fn differential(steps: &mut Steps, options: &[String]) {
    let built = steps.step("the oracle and the members", |workspace| {
        tools::postgresql()?;
        workspace.build_programs()
    });
    if !built {
        return;
    }
    steps.step("comparison with PostgreSQL and Hazelcast", |workspace| {
        let mut oracle = shell::command(workspace.program("filbert-differential"), options, &workspace.root);
        shell::run(oracle.env("FILBERT_DIFFERENTIAL_MEMBER", e2e::hazelcast_member(workspace)?))
    });
}

/// Runs simulated histories of groups until the time is over, or until a history is wrong.
pub(crate) fn simulate(steps: &mut Steps, minutes: u64, seed: u64) {
    steps.step(&format!("simulated histories for {minutes} min, from seed {seed}"), |workspace| {
        let words = "test --release --locked --workspace --test simulation random_histories -- --nocapture";
        let mut test = workspace.cargo(words);
        test.env("FILBERT_SIM_SECONDS", (minutes * 60).to_string()).env("FILBERT_SIM_SEED", seed.to_string());
        shell::run(&mut test)
    });
}

/// Runs the load generator, which starts the servers and prints the tables.
pub(crate) fn bench(steps: &mut Steps, experiment: &str, options: &[String]) {
    let built = steps.step("build", |workspace| {
        tools::install(&[tools::JAVA, tools::MAVEN])?;
        workspace.build_programs()
    });
    if !built {
        return;
    }
    steps.step(&format!("experiment {experiment}"), |workspace| {
        let arguments = ["experiment", experiment].into_iter().chain(options.iter().map(String::as_str));
        shell::run(&mut shell::command(workspace.program("filbert-bench"), arguments, &workspace.root))
    });
}
