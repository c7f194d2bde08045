//! Checks the dependencies between the top modules of a crate: they must not form a cycle.
//!
//! Imports are read from the text. A path that begins with `crate::` is a dependency of the file's
//! top module on the module in the path. The path may also name an export of the crate's root,
//! which stands for its module. Tests and the root itself are ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::{shell, shell::Workspace};

/// Modules and the modules of the same crate that they use.
type Arrows = BTreeMap<String, BTreeSet<String>>;

/// Fails if modules form a cycle.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let listed = shell::output(&mut shell::command("git", ["ls-files", "crates"], &workspace.root))?;
    let mut crates: BTreeMap<&str, Arrows> = BTreeMap::new();
    for path in listed.lines().filter(|path| path.ends_with(".rs")) {
        let Some((name, module)) = place(path) else { continue };
        let file = workspace.root.join(path);
        // A deletion may not be committed yet.
        if !Path::is_file(&file) {
            continue;
        }
        let text = fs::read_to_string(&file).with_context(|| format!("cannot read {path}"))?;
        let arrows = crates.entry(name).or_default().entry(module.to_owned()).or_default();
        arrows.extend(used(&text));
    }
    let mut wrong = Vec::new();
    for (name, arrows) in &mut crates {
        let root = workspace.root.join(format!("crates/{name}/src/lib.rs"));
        let exports = fs::read_to_string(root).map(|text| exports(&text)).unwrap_or_default();
        let modules: BTreeSet<String> = arrows.keys().cloned().collect();
        for (module, used) in arrows.iter_mut() {
            let of = |name: &String| if modules.contains(name) { None } else { exports.get(name).cloned() };
            *used = used.iter().map(|name| of(name).unwrap_or_else(|| name.clone())).collect();
            used.remove(module);
        }
        for circle in circles(arrows) {
            wrong.push(format!("{name}: modules use each other in a circle: {}", shown(&circle, arrows)));
        }
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(())
}

/// The modules from which the root of a crate exports names.
fn exports(root: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for statement in root.split(';').filter_map(|text| text.rsplit_once("use ").map(|(_, path)| path.trim())) {
        let Some((module, exported)) = statement.strip_prefix("self::").unwrap_or(statement).split_once("::") else {
            continue;
        };
        let exported = exported.strip_prefix('{').and_then(|list| list.strip_suffix('}')).unwrap_or(exported);
        for item in exported.split(',') {
            let named = item.rsplit_once(" as ").map_or(item, |(_, named)| named).trim();
            let named = named.rsplit_once("::").map_or(named, |(_, named)| named);
            found.insert(named.to_owned(), module.to_owned());
        }
    }
    found
}

/// The crate and the top module of a source file; `None` for the root of a library, and for files
/// outside of libraries.
fn place(path: &str) -> Option<(&str, &str)> {
    let (name, within) = path.strip_prefix("crates/")?.split_once("/src/")?;
    let top = within.split('/').next()?;
    let module = top.strip_suffix(".rs").unwrap_or(top);
    let is_test = within == "tests.rs" || within.ends_with("/tests.rs") || within.contains("/tests/");
    (!matches!(module, "lib" | "main" | "bin") && !is_test).then_some((name, module))
}

/// The modules of its own crate that a file names, without its tests and comments.
fn used(text: &str) -> BTreeSet<String> {
    let mut modules = BTreeSet::new();
    let code: String = text
        .lines()
        .take_while(|line| !line.starts_with("#[cfg(test)]"))
        .map(|line| line.split("//").next().unwrap_or_default())
        .flat_map(|line| [line, "\n"])
        .collect();
    for (at, _) in code.match_indices("crate::") {
        // A longer name such as `my_crate::` is another path. `$crate::` in a macro is this crate.
        if code.get(..at).is_some_and(|before| before.ends_with(|last: char| last.is_alphanumeric() || last == '_')) {
            continue;
        }
        let rest = code.get(at + "crate::".len()..).unwrap_or_default();
        match rest.strip_prefix('{') {
            Some(list) => modules.extend(items(list)),
            None => modules.extend(name(rest)),
        }
    }
    modules
}

/// The first names of the items of a list, up to the brace that ends it.
fn items(list: &str) -> Vec<String> {
    let (mut depth, mut begins, mut found) = (0_usize, true, Vec::new());
    for (at, character) in list.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            _ if begins && !character.is_whitespace() => {
                found.extend(list.get(at..).and_then(name));
                begins = false;
            }
            _ => {}
        }
    }
    found
}

/// The name at the beginning of a text: of a module, or of an item that the root exports.
fn name(text: &str) -> Option<String> {
    let name: String = text.chars().take_while(|char| char.is_alphanumeric() || *char == '_').collect();
    (!name.is_empty()).then_some(name)
}

/// The cycles among modules: groups in which each module depends on each other one, directly or
/// indirectly.
fn circles(arrows: &Arrows) -> Vec<BTreeSet<String>> {
    let reached = |from: &str| {
        let (mut seen, mut left) = (BTreeSet::new(), vec![from.to_owned()]);
        while let Some(next) = left.pop() {
            let others = arrows.get(&next).into_iter().flatten().filter(|other| arrows.contains_key(*other));
            for other in others.cloned().collect::<Vec<_>>() {
                if seen.insert(other.clone()) {
                    left.push(other);
                }
            }
        }
        seen
    };
    let reach: BTreeMap<&str, BTreeSet<String>> =
        arrows.keys().map(|module| (module.as_str(), reached(module))).collect();
    let mut groups: BTreeSet<BTreeSet<String>> = BTreeSet::new();
    for (module, all) in &reach {
        if all.contains(*module) {
            let within =
                all.iter().filter(|other| reach.get(other.as_str()).is_some_and(|back| back.contains(*module)));
            groups.insert(within.cloned().collect());
        }
    }
    groups.into_iter().collect()
}

/// The dependencies within a cycle, for the error text.
fn shown(circle: &BTreeSet<String>, arrows: &Arrows) -> String {
    let of = |module: &String| {
        let used = arrows.get(module).into_iter().flatten().filter(|used| circle.contains(*used));
        format!("{module} -> {}", used.cloned().collect::<Vec<_>>().join(", "))
    };
    circle.iter().map(of).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows(of: &[(&str, &[&str])]) -> Arrows {
        let one = |(module, used): &(&str, &[&str])| {
            ((*module).to_owned(), used.iter().map(|used| (*used).to_owned()).collect())
        };
        of.iter().map(one).collect()
    }

    #[test]
    fn imports_are_arrows() {
        let text = "use crate::error::Failed;\nuse crate::{Grid, map::{Map, cell}, names};\n// crate::comment\nfn f() { crate::call::of(); $crate::macros!(); }\n\
                    #[cfg(test)]\nmod tests { use crate::testing; }\n";
        assert_eq!(used(text).into_iter().collect::<Vec<_>>(), ["Grid", "call", "error", "macros", "map", "names"]);
    }

    #[test]
    fn names_that_the_root_exports_are_of_their_modules() {
        let found = exports("mod a;\npub use a::{One, Two as Other};\npub(crate) use self::b::three;\nuse std::fmt;");
        let modules = |name: &str| found.get(name).map(String::as_str);
        assert_eq!([modules("One"), modules("Other"), modules("three")], [Some("a"), Some("a"), Some("b")]);
        assert_eq!(modules("Two"), None);
    }

    #[test]
    fn circles_are_found_and_chains_are_not() {
        let chain = arrows(&[("a", &["b"]), ("b", &["c", "Elsewhere"]), ("c", &[])]);
        assert!(circles(&chain).is_empty());
        let two = arrows(&[("a", &["b"]), ("b", &["c"]), ("c", &["a"]), ("d", &["a", "e"]), ("e", &["d"])]);
        let found: Vec<Vec<String>> = circles(&two).into_iter().map(|circle| circle.into_iter().collect()).collect();
        assert_eq!(found, [vec!["a", "b", "c"], vec!["d", "e"]]);
    }

    #[test]
    fn tests_and_roots_are_no_modules() {
        assert_eq!(place("crates/filbert-grid/src/map.rs"), Some(("filbert-grid", "map")));
        assert_eq!(place("crates/filbert-grid/src/query/reader.rs"), Some(("filbert-grid", "query")));
        for other in [
            "crates/filbert-grid/src/lib.rs",
            "crates/filbert-grid/tests/cluster.rs",
            "crates/filbert-query/src/catalog/tests.rs",
        ] {
            assert_eq!(place(other), None, "{other}");
        }
    }
}
