//! The layers: which of our crates may depend on which, and which outside crates stay out of some of them.

use anyhow::{Result, bail};

use crate::workspace::metadata;

/// Each crate with those of ours that it may use. Tests may use more: they look from above.
const ALLOWED: &[(&str, &[&str])] = &[
    ("filbert-data", &[]),
    ("filbert-store", &["filbert-data"]),
    ("filbert-wire", &[]),
    ("filbert-grid", &["filbert-data", "filbert-store"]),
    ("filbert-hazelcast", &["filbert-data", "filbert-grid", "filbert-wire"]),
    ("filbert-client", &["filbert-data", "filbert-wire"]),
    ("filbert", &["filbert-data", "filbert-grid", "filbert-hazelcast"]),
    ("filbert-bench", &["filbert", "filbert-client", "filbert-data", "filbert-wire"]),
    ("xtask", &[]),
];

/// Those that are neither async nor know sockets.
const WITHOUT_ASYNC: &[&str] = &["filbert-data", "filbert-store", "filbert-wire", "filbert-grid"];
const ASYNC: &[&str] = &["tokio", "mio", "socket2", "futures", "async-std", "smol"];

/// Checks every dependency of the workspace's packages.
///
/// # Errors
/// A dependency is not allowed, or a package is missing in the list.
pub(crate) fn check() -> Result<()> {
    let metadata = metadata()?;
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let Some((_, allowed)) = ALLOWED.iter().find(|(of, _)| *of == name) else {
            wrong.push(format!("{name} is not in the list of layers (xtask/src/layers.rs)"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            // `kind` is null for what the library or program itself uses, "dev" for its tests.
            if !dependency["kind"].is_null() {
                continue;
            }
            let used = dependency["name"].as_str().unwrap_or_default();
            if used.starts_with("filbert") && !allowed.contains(&used) {
                wrong.push(format!("{name} must not depend on {used}"));
            }
            if WITHOUT_ASYNC.contains(&name) && ASYNC.contains(&used) {
                wrong.push(format!("{name} is not async and must not depend on {used}"));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { bail!("{}", wrong.join("; ")) }
}
