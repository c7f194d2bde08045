//! House rules that a program can check: the head of every file, its length, and the files that may
//! contain `unsafe`.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};

use crate::{shell, shell::Workspace};

/// The maximum number of lines of a file. A longer file is hard to read, and has to be split.
const LINES_MAX: usize = 800;
/// The maximum width of a line of a comment or of a document. With longer lines, readers lose the
/// next line.
const TEXT_COLUMNS_MAX: usize = 100;
/// The signs of tables, diagrams and links, which cannot be wrapped.
const WIDE: &[&str] = &["|", "─", "│", "►", "-->", "]", "..... "];
/// The files that may contain `unsafe`: records are thin pointers to one allocation, threads
/// request their time slices from the system, and the allocator is counted and configured.
const UNSAFE_FILES: &[&str] = &[
    "crates/filbert/src/allocator.rs",
    "crates/filbert-store/src/record.rs",
    "crates/filbert-grid/src/allocation.rs",
    "crates/filbert-grid/src/threads.rs",
    "crates/filbert-grid/tests/empty_maps.rs",
];
/// The attributes that allow unsafe code, with or without a reason. Written in two parts so that
/// this file passes its own check.
const ALLOWS_UNSAFE: [&str; 2] = [concat!("allow(", "unsafe_code"), concat!("expect(", "unsafe_code")];
/// Marks of postponed work. Each is written in two parts so that this file passes its own check.
const PUT_OFF: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:")];

/// Home directories: a path below them has no meaning on another machine. Written in two parts as
/// well.
const MACHINE_PATHS: &[&str] = &[concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// Checks every file in the repository.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let listed = shell::output(&mut shell::command("git", ["ls-files"], &workspace.root))?;
    let mut wrong = Vec::new();
    for path in listed.lines() {
        let file = workspace.root.join(path);
        let rust = path.ends_with(".rs");
        let document = path.ends_with(".md");
        let manifest = path.starts_with("crates/") && path.ends_with("/Cargo.toml");
        // A deleted file may still be listed, because its deletion is not committed. A file that is
        // not text has no rules.
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let mut objections = match (rust, manifest, document) {
            (true, ..) => in_rust(path, &text),
            (_, true, _) => in_manifest(&text),
            (.., true) => in_document(&text),
            _ => Vec::new(),
        };
        if let Some(named) = MACHINE_PATHS.iter().find(|named| text.contains(**named)) {
            objections.push(format!("names {named}, a path of one machine"));
        }
        wrong.extend(objections.into_iter().map(|objection| format!("{path}: {objection}")));
    }
    for name in ["LICENSE", "README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        if !Path::is_file(&workspace.root.join(name)) {
            wrong.push(format!("{name} is missing"));
        }
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(())
}

/// The numbers of the lines on which a comment is too wide. Examples are code.
fn wide_comments(text: &str) -> impl Iterator<Item = usize> {
    let mut is_example = false;
    text.lines().enumerate().filter_map(move |(at, line)| {
        let comment = line.trim_start();
        if !comment.starts_with("//") {
            is_example = false;
            return None;
        }
        is_example ^= comment.contains("```");
        let is_wide = line.chars().count() > TEXT_COLUMNS_MAX && !WIDE.iter().any(|sign| comment.contains(sign));
        (is_wide && !is_example).then_some(at + 1)
    })
}

fn in_rust(path: &str, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    wrong.extend(
        wide_comments(text).map(|number| format!("line {number}: a comment of more than {TEXT_COLUMNS_MAX} columns")),
    );
    if !text.lines().take(5).any(|line| line.starts_with("//!")) {
        wrong.push("says nothing of itself; begin it with a `//!` comment".to_owned());
    }
    let count = text.lines().count();
    if count > LINES_MAX {
        wrong.push(format!("has {count} lines, more than {LINES_MAX}; split it"));
    }
    if !UNSAFE_FILES.contains(&path) && ALLOWS_UNSAFE.iter().any(|allows| text.contains(allows)) {
        wrong.push(format!("allows unsafe code, which only {} may", UNSAFE_FILES.join(", ")));
    }
    for (number, line) in text.lines().enumerate() {
        if let Some(word) = PUT_OFF.iter().find(|word| line.contains(**word)) {
            wrong.push(format!("line {}: {word:?}: what is not there is left out, or done", number + 1));
        }
        if line.trim_start().starts_with(concat!("#[", "ignore")) {
            wrong.push(format!("line {}: a test that is not run is no test", number + 1));
        }
    }
    wrong
}

fn in_manifest(text: &str) -> Vec<String> {
    let lints = text.lines().skip_while(|line| line.trim() != "[lints]").nth(1);
    match lints {
        Some(line) if line.replace(' ', "") == "workspace=true" => Vec::new(),
        _ => vec!["does not take the workspace's lints; add `[lints]` with `workspace = true`".to_owned()],
    }
}

/// Paragraphs and lists are wrapped; tables, headings and examples cannot be.
fn in_document(text: &str) -> Vec<String> {
    let mut is_example = false;
    let mut wrong = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let start = line.trim_start();
        is_example ^= start.starts_with("```");
        let has_one_line = ["|", "#", "<!--", "["].iter().any(|sign| start.starts_with(sign));
        if line.chars().count() > TEXT_COLUMNS_MAX && !is_example && !has_one_line {
            wrong.push(format!("line {}: text of more than {TEXT_COLUMNS_MAX} columns", number + 1));
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_keeps_the_rules_passes() {
        assert_eq!(in_rust("crates/a/src/lib.rs", "//! Owns nothing.\n\nfn f() {}\n"), Vec::<String>::new());
        assert_eq!(in_manifest("[package]\n[lints]\nworkspace = true\n"), Vec::<String>::new());
    }

    #[test]
    fn each_breach_is_named() {
        assert_eq!(in_rust("a.rs", "fn f() {}\n").len(), 1);
        assert_eq!(in_rust("a.rs", &format!("//! Long.\n{}", "\n".repeat(900))).len(), 1);
        assert_eq!(in_rust("a.rs", concat!("//! A.\n#![allow(", "unsafe_code)]\n")).len(), 1);
        assert_eq!(in_rust("a.rs", concat!("//! A.\n#[expect(", "unsafe_code, reason = \"fast\")]\n")).len(), 1);
        assert_eq!(in_rust("a.rs", concat!("//! A.\n// TO", "DO\n")).len(), 1);
        assert_eq!(in_manifest("[package]\n").len(), 1);
        let long = "word ".repeat(21);
        assert_eq!(in_document(&long).len(), 1);
        assert_eq!(in_document(&format!("```\n{long}\n```\n| {long} |\n")), Vec::<String>::new());
    }
}
