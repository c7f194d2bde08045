//! Planted defects: patches in `e2e/chaos/planted` that are applied to a copy of the sources. Fault
//! tests must find them. The shipped program has none of them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{e2e, shell, shell::Workspace};

/// The patches, by name.
fn patches(workspace: &Workspace) -> Result<Vec<(String, PathBuf)>> {
    let directory = workspace.e2e("chaos").join("planted");
    let mut found = Vec::new();
    for entry in fs::read_dir(&directory).with_context(|| format!("reading {}", directory.display()))? {
        let path = entry?.path();
        if let (Some("patch"), Some(name)) = (path.extension().and_then(|it| it.to_str()), path.file_stem()) {
            found.push((name.to_string_lossy().into_owned(), path));
        }
    }
    found.sort();
    Ok(found)
}

/// Checks that all patches still apply.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    for (_, patch) in patches(workspace)? {
        let mut apply = shell::command("git", ["apply", "--check"], &workspace.root);
        shell::run(apply.arg(patch)).context("a planted defect does not fit the sources any more")?;
    }
    Ok(())
}

/// Builds the program with a defect. Returns the words of the command that starts a member with it,
/// as a JSON array.
pub(crate) fn member(workspace: &Workspace, name: &str) -> Result<String> {
    let known = patches(workspace)?;
    let Some((_, patch)) = known.iter().find(|(known, _)| known == name) else {
        let names: Vec<&str> = known.iter().map(|(name, _)| name.as_str()).collect();
        bail!("there is no planted defect {name:?}, expected one of {}", names.join(", "));
    };
    let directory = workspace.target.join("planted");
    copy_sources(workspace, &directory)?;
    let mut apply = shell::command("git", ["apply"], &directory);
    // Otherwise git would interpret the paths in the repository that may contain the target
    // directory.
    apply.env("GIT_CEILING_DIRECTORIES", &workspace.target);
    shell::run(apply.arg(patch))?;
    let mut build = workspace.cargo("build --release --locked --workspace --bin filbert");
    shell::run(build.current_dir(&directory).arg("--target-dir").arg(&workspace.target))?;
    let program = workspace.target.join(format!("filbert-{name}"));
    fs::copy(workspace.program("filbert"), &program).context("keeping the program with a defect")?;
    // Builds the program without a defect again.
    e2e::filbert_member(workspace)?;
    let program = program.to_str().with_context(|| format!("{} is not text", program.display()))?;
    Ok(serde_json::Value::from(vec![program]).to_string())
}

/// Copies the files of the repository. Unchanged files are not written, so that cargo does not
/// build them again.
fn copy_sources(workspace: &Workspace, to: &Path) -> Result<()> {
    let listed = shell::output(&mut shell::command("git", ["ls-files", "-z"], &workspace.root))?;
    for name in listed.split('\0').filter(|name| !name.is_empty()) {
        let (from, to) = (workspace.root.join(name), to.join(name));
        if !from.is_file() {
            // A deleted file is listed until its deletion is committed.
            continue;
        }
        let contents = fs::read(&from).with_context(|| format!("reading {}", from.display()))?;
        if fs::read(&to).is_ok_and(|there| there == contents) {
            continue;
        }
        if let Some(directory) = to.parent() {
            fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
        }
        fs::write(&to, contents).with_context(|| format!("writing {}", to.display()))?;
    }
    Ok(())
}
