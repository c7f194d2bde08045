//! Chaos: real members, real clients of several languages, faults by name, histories that Porcupine checks. The driver is a Go program in
//! `e2e/chaos`; this module brings what it needs and runs it.

use crate::{e2e, shell, shell::Workspace, steps::Steps, tools};

/// What every test run does: each scenario once, from the same seed, in about three minutes.
pub(crate) const SHORT: [&str; 4] = ["--seed", "1", "--histories", "1"];

const NAME: &str = "chaos";

/// Runs the driver with these options.
pub(crate) fn run(steps: &mut Steps, options: &[String]) {
    let mut member = String::new();
    let ready = steps.step("chaos: the member under test, the driver and its clients", |workspace| {
        member = e2e::filbert_member(workspace)?;
        prepare(workspace)
    });
    if !ready {
        return;
    }
    steps.step("chaos: histories of a cluster under faults", |workspace| {
        let mut driver = shell::command(driver(workspace), options, &workspace.e2e(NAME));
        driver.env("FILBERT_E2E_MEMBER", &member);
        driver.arg("--python").arg(e2e::python(workspace, NAME));
        driver.arg("--out").arg(workspace.target.join("chaos"));
        shell::run_tests(&mut driver)
    });
}

fn driver(workspace: &Workspace) -> std::path::PathBuf {
    workspace.target.join("e2e-chaos/driver")
}

fn prepare(workspace: &Workspace) -> anyhow::Result<()> {
    tools::install(&[tools::GO, tools::IP])?;
    let directory = workspace.e2e(NAME);
    e2e::prepare_python(workspace, NAME, &directory)?;
    shell::run(&mut shell::command("go", ["vet", "."], &directory))?;
    // The models themselves: what must be found is found.
    shell::run_tests(&mut shell::command("go", ["test", "."], &directory))?;
    let mut build = shell::command("go", ["build", "-o"], &directory);
    shell::run(build.arg(driver(workspace)).arg("."))
}
