//! The chores that need no running member: `verify`, which only reads, and `fix`, which changes
//! files.

use std::process::{Command, Stdio};

use anyhow::Result;

use crate::{
    generated, house, layers, modules, packages, planted, shell,
    shell::Workspace,
    steps::{Done, Steps},
    tools,
};

/// The checks of CI besides tests.
pub(crate) fn verify(steps: &mut Steps) {
    steps.step("format", |workspace| shell::run(&mut workspace.cargo("fmt --all --check")));
    steps.step("layers", layers::check);
    steps.step("modules", modules::check);
    steps.step("house rules", house::check);
    steps.step("clippy", |workspace| {
        shell::run(&mut workspace.cargo("clippy --release --locked --workspace --all-targets --quiet -- -D warnings"))
    });
    steps.step("documentation", |workspace| {
        let mut doc = workspace.cargo("doc --release --locked --workspace --no-deps --document-private-items --quiet");
        // Private items are documented as well, so that links to them have a target.
        shell::run(doc.env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private-intra-doc-links"))
    });
    steps.step("generated files", generated::check);
    steps.step("planted defects", planted::check);
    steps.step("unused dependencies", packages::unused);
    steps.step("features", packages::features);
    steps.step("packages", packages::packaged);
    steps.step_with("licences, sources and advisories", deny);
}

/// All automatic corrections.
pub(crate) fn fix(steps: &mut Steps) {
    steps.step("clippy's suggestions", |workspace| {
        let words = "clippy --release --workspace --all-targets --fix --allow-dirty --allow-staged --quiet";
        shell::run(&mut workspace.cargo(words))
    });
    steps.step("format", |workspace| shell::run(&mut workspace.cargo("fmt --all")));
    steps.step("generated files", generated::write);
}

fn deny(workspace: &Workspace) -> Result<Done> {
    tools::cargo_tool(workspace, "cargo-deny")?;
    shell::run(&mut workspace.cargo("deny --workspace --log-level error check bans licenses sources"))?;
    // The database of advisories is a remote git repository. Without access to it, advisories
    // cannot be checked.
    let fetched = quiet(&mut workspace.cargo("deny fetch db"));
    if !fetched {
        return Ok(Done::Except("the database of advisories cannot be reached from here".to_owned()));
    }
    shell::run(&mut workspace.cargo("deny --workspace --log-level error check --disable-fetch advisories"))?;
    Ok(Done::Fully)
}

fn quiet(command: &mut Command) -> bool {
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}
