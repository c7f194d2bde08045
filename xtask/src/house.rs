//! House rules that a program can check: files say what they own, stay small, and speak of the project alone.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use crate::steps::output;
use crate::workspace::{command, root};

/// Lines beyond which a file is too large to hold in the head, unless its head says why it is.
const LINES_MAX: usize = 800;
/// Paths of one machine, which mean nothing on another.
const MACHINE_PATHS: &[&str] = &["/root/", "/home/"];

/// Checks every source file that git knows.
///
/// # Errors
/// A rule is broken; the text lists where.
pub(crate) fn check() -> Result<()> {
    let mut wrong = Vec::new();
    for name in output(command("git").args(["ls-files"]))?.lines() {
        // A file may be removed and not yet committed so.
        let Ok(text) = fs::read_to_string(root().join(name)) else { continue };
        if name.ends_with(".rs") {
            check_rust(name, &text, &mut wrong);
        }
        let this_file = Path::new(name) == Path::new("xtask/src/house.rs");
        for path in MACHINE_PATHS {
            if !this_file && text.contains(path) {
                wrong.push(format!("{name} names {path}, a path of one machine"));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { bail!("{}", wrong.join("; ")) }
}

fn check_rust(name: &str, text: &str, wrong: &mut Vec<String>) {
    let head = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with("#!"));
    if !head.is_some_and(|line| line.starts_with("//!")) {
        wrong.push(format!("{name} does not begin with //! and what it owns"));
    }
    let lines = text.lines().count();
    if lines > LINES_MAX {
        wrong.push(format!("{name} has {lines} lines, at most {LINES_MAX} are expected: split it"));
    }
}
