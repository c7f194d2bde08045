//! The allowed dependencies between crates. A dependency that is not listed here is rejected.
//!
//! Dependencies have one direction: data <- store <- grid <- front doors <- the program, and data
//! <- wire <- the crates that speak the protocol. A front door knows the grid and its own codec,
//! and no other door.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::shell::Workspace;

/// A crate's place among the layers.
struct Layer {
    name: &'static str,
    /// The crates of the workspace on which it may depend.
    uses: &'static [&'static str],
    /// Further crates, for its tests, benches and examples only.
    tests_use: &'static [&'static str],
    /// Whether it may use sockets and async runtimes.
    network: bool,
}

const LAYERS: &[Layer] = &[
    Layer { name: "filbert-data", uses: &[], tests_use: &[], network: false },
    Layer { name: "filbert-store", uses: &["filbert-data"], tests_use: &[], network: false },
    Layer { name: "filbert-grid", uses: &["filbert-data", "filbert-store"], tests_use: &[], network: false },
    Layer { name: "filbert-cluster", uses: &["filbert-data", "filbert-store"], tests_use: &[], network: true },
    Layer {
        name: "filbert-links",
        uses: &["filbert-cluster"],
        tests_use: &["filbert-data", "filbert-store"],
        network: true,
    },
    Layer {
        name: "filbert-member",
        uses: &["filbert-cluster", "filbert-data", "filbert-grid", "filbert-links", "filbert-store"],
        tests_use: &[],
        network: true,
    },
    Layer { name: "filbert-dialect", uses: &["filbert-data", "filbert-grid"], tests_use: &[], network: false },
    Layer {
        name: "filbert-functions",
        uses: &["filbert-data", "filbert-dialect", "filbert-grid"],
        tests_use: &[],
        network: true,
    },
    Layer {
        name: "filbert-query",
        uses: &["filbert-data", "filbert-dialect", "filbert-functions", "filbert-grid"],
        tests_use: &[],
        network: true,
    },
    Layer { name: "filbert-wire", uses: &["filbert-data"], tests_use: &[], network: false },
    Layer { name: "filbert-listen", uses: &[], tests_use: &[], network: true },
    Layer { name: "filbert-test-engine", uses: &["filbert-data", "filbert-grid"], tests_use: &[], network: false },
    Layer {
        name: "filbert-hazelcast",
        uses: &["filbert-data", "filbert-grid", "filbert-listen", "filbert-wire"],
        tests_use: &["filbert-client", "filbert-test-engine"],
        network: true,
    },
    Layer {
        name: "filbert-http",
        uses: &["filbert-data", "filbert-grid", "filbert-listen"],
        tests_use: &["filbert-test-engine"],
        network: true,
    },
    Layer {
        name: "filbert-postgres",
        uses: &["filbert-data", "filbert-grid", "filbert-listen"],
        tests_use: &["filbert-test-engine"],
        network: true,
    },
    Layer {
        name: "filbert-client",
        uses: &["filbert-data", "filbert-wire"],
        tests_use: &["filbert", "filbert-grid", "filbert-hazelcast"],
        network: true,
    },
    Layer {
        name: "filbert",
        uses: &[
            "filbert-data",
            "filbert-grid",
            "filbert-hazelcast",
            "filbert-http",
            "filbert-links",
            "filbert-listen",
            "filbert-member",
            "filbert-postgres",
            "filbert-query",
            "filbert-store",
        ],
        tests_use: &["filbert-client", "filbert-wire"],
        network: true,
    },
    Layer {
        name: "filbert-bench",
        uses: &["filbert", "filbert-client", "filbert-data", "filbert-wire"],
        tests_use: &[],
        network: true,
    },
    Layer { name: "filbert-differential", uses: &["filbert-client"], tests_use: &[], network: true },
    Layer { name: "filbert-siege", uses: &["filbert-client", "filbert-wire"], tests_use: &[], network: true },
    Layer { name: "xtask", uses: &[], tests_use: &[], network: false },
];

/// Runtimes and sockets.
const NETWORK: &[&str] = &["async-std", "futures", "hyper", "mio", "smol", "socket2", "tokio"];

/// Compares every package's dependencies with its layer.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let names: BTreeSet<&str> = workspace.packages.iter().map(|package| text(package, "name")).collect();
    let mut wrong = Vec::new();
    for package in &workspace.packages {
        let name = text(package, "name");
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == name) else {
            wrong.push(format!("{name} has no place among the layers; give it one in xtask/src/layers.rs"));
            continue;
        };
        let dependencies = package.get("dependencies").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for dependency in dependencies {
            wrong.extend(objection(layer, &names, dependency));
        }
    }
    if !wrong.is_empty() {
        bail!("{}", wrong.join("\n"));
    }
    Ok(())
}

/// The objection to a dependency of the crate; `None` if the dependency is allowed.
fn objection(layer: &Layer, workspace: &BTreeSet<&str>, dependency: &Value) -> Option<String> {
    let used = text(dependency, "name");
    let by_tests = text(dependency, "kind") == "dev";
    let own = workspace.contains(used);
    let allowed = layer.uses.contains(&used) || (by_tests && layer.tests_use.contains(&used));
    if own && !allowed {
        return Some(format!("{} must not depend on {used}", layer.name));
    }
    if NETWORK.contains(&used) && !layer.network {
        return Some(format!("{} must not depend on {used}: it knows neither sockets nor waiting", layer.name));
    }
    None
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(name: &str, dependency: &Value) -> Option<String> {
        let layer = LAYERS.iter().find(|layer| layer.name == name).unwrap();
        objection(layer, &LAYERS.iter().map(|layer| layer.name).collect(), dependency)
    }

    #[test]
    fn arrows_run_one_way() {
        assert_eq!(said("filbert-store", &json!({"name": "filbert-data"})), None);
        assert!(said("filbert-data", &json!({"name": "filbert-store"})).is_some());
        assert!(said("filbert-hazelcast", &json!({"name": "filbert-store"})).is_some());
    }

    #[test]
    fn only_the_edges_know_sockets() {
        assert!(said("filbert-grid", &json!({"name": "tokio"})).is_some());
        assert!(said("filbert-store", &json!({"name": "tokio", "kind": "dev"})).is_some());
        assert_eq!(said("filbert-hazelcast", &json!({"name": "tokio"})), None);
    }

    #[test]
    fn tests_may_use_more() {
        assert_eq!(said("filbert-hazelcast", &json!({"name": "filbert-client", "kind": "dev"})), None);
        assert!(said("filbert-hazelcast", &json!({"name": "filbert-client"})).is_some());
    }
}
