//! Regression cases: files of statements that every run executes first.
//!
//! A file `cases/DIALECT_NAME.sql` contains statements that end with `;` at the end of a line. A
//! line `-- parameters: [[OID, "text"], ..]` contains the parameters of the next statement, which
//! is then prepared. The file creates its tables, after it drops existing objects with the same
//! names.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::compare::{How, Verdict, compare};
use crate::finding::Finding;
use crate::postgres::Parameter;
use crate::report::Report;
use crate::server::Server;

/// A statement, with parameters if it is prepared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) text: String,
    pub(crate) parameters: Vec<Parameter>,
    /// Whether the last digits of its numbers may differ.
    pub(crate) is_inexact: bool,
}

/// Executes the statements of all files of a dialect on both servers.
pub(crate) fn replay(
    directory: &Path,
    dialect: &'static str,
    other: &mut dyn Server,
    filbert: &mut dyn Server,
    report: &mut Report,
) -> Result<()> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with(dialect) && name.ends_with(".sql") {
            paths.push((name, path));
        }
    }
    paths.sort();
    for (name, path) in paths {
        let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let mut setup = Vec::new();
        for step in steps(&text).with_context(|| format!("reading {}", path.display()))? {
            if let Some(table) = step.text.strip_prefix("create table ").and_then(|rest| rest.split(' ').next()) {
                let drop = format!("drop table if exists {table}");
                other.run(&drop);
                filbert.run(&drop);
            }
            replay_step(&name, dialect, &step, &setup, other, filbert, report);
            if !step.text.starts_with("select") {
                setup.push(step.text);
            }
        }
    }
    Ok(())
}

/// Executes a statement on both servers, and reports a difference. `setup` are the statements that
/// it needs.
pub(crate) fn replay_step(
    name: &str,
    dialect: &'static str,
    step: &Step,
    setup: &[String],
    other: &mut dyn Server,
    filbert: &mut dyn Server,
    report: &mut Report,
) {
    let ask = |server: &mut dyn Server| {
        if step.parameters.is_empty() {
            return Some(server.run(&step.text));
        }
        server.prepare_and_run(&step.text, &step.parameters, false, 1).pop()
    };
    let (Some(there), Some(here)) = (ask(other), ask(filbert)) else { return };
    let is_ordered = step.text.contains(" order by ");
    let (is_inexact, is_superset) = (step.is_inexact, dialect == "hazelcast");
    let verdict = compare(&there, &here, How { is_ordered, is_inexact, is_superset, ..How::default() });
    *report.statements.entry(name.split('.').next().unwrap_or(name).to_owned()).or_default() += 1;
    report.compared += 1;
    match verdict {
        Verdict::Same => report.same += 1,
        Verdict::BothRefuse => report.both_refuse += 1,
        Verdict::Refused(cause) => report.refuse(cause, &step.text),
        Verdict::Different(kind) => {
            *report.met.entry(kind).or_default() += 1;
            let (place, setup) = (name.to_owned(), setup.to_vec());
            let (other, filbert) = (there.shown(), here.shown());
            report.find(Finding { kind, dialect, place, setup, statement: step.text.clone(), other, filbert });
        }
    }
}

fn steps(text: &str) -> Result<Vec<Step>> {
    let (mut steps, mut step) = (Vec::new(), Step::default());
    for line in text.lines() {
        if let Some(parameters) = line.strip_prefix("-- parameters: ") {
            let read: Vec<(u32, Option<String>)> = serde_json::from_str(parameters).with_context(|| line.to_owned())?;
            step.parameters = read.into_iter().map(|(oid, value)| Parameter { oid, value }).collect();
        } else if line.trim_start().starts_with("--") || (line.trim().is_empty() && step.text.is_empty()) {
            continue;
        } else if let Some(last) = line.trim_end().strip_suffix(';') {
            step.text.push_str(last);
            steps.push(std::mem::take(&mut step));
        } else {
            step.text.push_str(line);
            step.text.push('\n');
        }
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_statements_and_parameters() {
        let read =
            steps("-- why\ncreate table t (id int);\n-- parameters: [[23, \"1\"], [25, null]]\nselect $1,\n $2;\n")
                .unwrap();
        assert_eq!(read.len(), 2);
        let last = read.last().unwrap();
        assert_eq!(last.text, "select $1,\n $2");
        assert_eq!(last.parameters.len(), 2);
        assert!(read.first().unwrap().parameters.is_empty());
    }
}
