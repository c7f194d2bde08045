//! Known differences: decisions with their reasons, and open defects.
//!
//! Both lists are files of the crate. `docs/reference/differences.md` is generated from
//! `decisions.json`. Every run prints `open.json`, so that open defects are not forgotten.

use anyhow::{Context, Result};
use regex::Regex;
use serde::Deserialize;

use crate::compare::Kind;
use crate::finding::Finding;

const DECISIONS: &str = include_str!("../decisions.json");
const OPEN: &str = include_str!("../open.json");

/// A known difference in its file format.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// The title in reports and documentation.
    title: String,
    /// `postgres`, `hazelcast`, or both.
    dialect: String,
    /// The reason for a decision, or a description of an open defect.
    reason: String,
    /// The names of the difference kinds. Empty means any kind.
    #[serde(default)]
    kinds: Vec<String>,
    /// The pattern for the statement. Empty means any statement.
    #[serde(default)]
    statement: String,
    /// The pattern for the outcome of the other server.
    #[serde(default)]
    other: String,
    /// The pattern for Filbert's outcome.
    #[serde(default)]
    filbert: String,
    /// An example statement for the documentation.
    #[serde(default)]
    example: String,
}

/// An entry with its compiled patterns.
struct Known {
    entry: Entry,
    patterns: [Regex; 3],
}

/// All known differences.
pub(crate) struct KnownDifferences {
    decisions: Vec<Known>,
    open: Vec<Known>,
}

/// The classification of a known finding.
pub(crate) enum Standing<'a> {
    Decision(&'a str),
    Open(&'a str),
}

impl KnownDifferences {
    /// Reads both files.
    pub(crate) fn read() -> Result<KnownDifferences> {
        let decisions = read(DECISIONS).context("reading decisions.json")?;
        Ok(KnownDifferences { decisions, open: read(OPEN).context("reading open.json")? })
    }

    /// Classifies a finding, if it is known.
    pub(crate) fn standing(&self, finding: &Finding) -> Option<Standing<'_>> {
        let matching = |list: &'_ [Known]| list.iter().position(|known| known.matches(finding));
        if let Some(known) = matching(&self.decisions).and_then(|at| self.decisions.get(at)) {
            return Some(Standing::Decision(&known.entry.title));
        }
        matching(&self.open).and_then(|at| self.open.get(at)).map(|known| Standing::Open(&known.entry.title))
    }

    /// The open defects, one line each.
    pub(crate) fn open(&self) -> Vec<String> {
        self.open.iter().map(|known| format!("{}: {}", known.entry.title, known.entry.reason)).collect()
    }

    /// The documentation page with the decisions.
    pub(crate) fn markdown(&self) -> String {
        let mut text = String::from(
            "# Differences from PostgreSQL and Hazelcast\n\n\
             Where Filbert answers otherwise on purpose. `cargo xtask differential` compares generated\n\
             statements with both, and accepts these differences alone. Rejections by Filbert with a clear\n\
             error are not listed here. `cargo xtask fix` writes this page from\n\
             `crates/filbert-differential/decisions.json`.\n",
        );
        for (title, dialect) in [("PostgreSQL", "postgres"), ("Hazelcast", "hazelcast")] {
            text.push_str(&format!("\n## {title}\n\n| difference | reason | example |\n|---|---|---|\n"));
            for Known { entry, .. } in self.decisions.iter().filter(|known| known.entry.dialect.contains(dialect)) {
                let example = if entry.example.is_empty() {
                    String::new()
                } else {
                    format!("`{}`", entry.example.replace('|', "\\|"))
                };
                text.push_str(&format!("| {} | {} | {example} |\n", entry.title, entry.reason));
            }
        }
        text
    }
}

impl Known {
    fn matches(&self, finding: &Finding) -> bool {
        let [statement, other, filbert] = &self.patterns;
        let kinds = &self.entry.kinds;
        (kinds.is_empty() || kinds.iter().any(|kind| kind == finding.kind.name()))
            && self.entry.dialect.contains(finding.dialect)
            && (statement.is_match(&finding.statement) || is_of_change(finding, statement))
            && other.is_match(&finding.other)
            && filbert.is_match(&finding.filbert)
    }
}

/// Whether the pattern matches the change that preceded a comparison of the table.
fn is_of_change(finding: &Finding, statement: &Regex) -> bool {
    finding.kind == Kind::Table && finding.setup.last().is_some_and(|change| statement.is_match(change))
}

fn read(text: &str) -> Result<Vec<Known>> {
    let entries: Vec<Entry> = serde_json::from_str(text)?;
    let known = |entry: Entry| {
        for kind in &entry.kinds {
            Kind::named(kind).with_context(|| format!("{:?} of {:?} is no kind of difference", kind, entry.title))?;
        }
        let pattern =
            |text: &str| Regex::new(text).with_context(|| format!("the pattern {text:?} of {:?}", entry.title));
        let patterns = [pattern(&entry.statement)?, pattern(&entry.other)?, pattern(&entry.filbert)?];
        Ok(Known { entry, patterns })
    };
    entries.into_iter().map(known).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(statement: &str) -> Finding {
        let (place, other, filbert) = (String::new(), "1".to_owned(), "2".to_owned());
        Finding {
            kind: Kind::Rows,
            dialect: "postgres",
            place,
            setup: Vec::new(),
            statement: statement.to_owned(),
            other,
            filbert,
        }
    }

    #[test]
    fn the_files_can_be_read() {
        assert!(KnownDifferences::read().unwrap().markdown().contains("## Hazelcast"));
    }

    #[test]
    fn a_finding_is_known_by_its_patterns() {
        let text =
            r#"[{"title": "t", "dialect": "postgres", "reason": "r", "kinds": ["other rows"], "statement": "f\\("}]"#;
        let known = KnownDifferences { decisions: Vec::new(), open: read(text).unwrap() };
        assert!(matches!(known.standing(&finding("select f(1)")), Some(Standing::Open("t"))));
        assert!(known.standing(&finding("select g(1)")).is_none());
        assert!(read(r#"[{"title": "t", "dialect": "postgres", "reason": "r", "kinds": ["unheard of"]}]"#).is_err());
    }
}
